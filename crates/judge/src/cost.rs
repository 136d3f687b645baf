//! What the run's rates, and its own load, come to in money.

use plimsoll_cost::{RunSeen, Sent, size_of, summary};
use plimsoll_model::cost::CostSummary;
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_store::RunData;
use rust_decimal::Decimal;

/// Of a run that was given prices.
pub fn of_run(data: &RunData, workloads: &[WorkloadSummary]) -> Option<CostSummary> {
    let cost = data.plan.options.cost.as_ref()?;
    // Checked before the run began.
    summary(cost, &seen(data, workloads)).ok()
}

/// What a run has seen, as far as it costs: of any run, with prices or without.
pub fn seen<'a>(data: &RunData, workloads: &'a [WorkloadSummary]) -> RunSeen<'a> {
    let mut sent: Vec<Sent> = Vec::new();
    for stage in &data.stages {
        for (id, points) in &stage.series {
            let Some(w) = stage.spec.workloads.get(usize::from(id.workload)) else { continue };
            // Of a stage that was cut off, too: what was sent is paid.
            let (ops, bytes) = points.iter().fold((0u64, 0u64), |(ops, bytes), p| {
                (ops.saturating_add(p.counts.started), bytes.saturating_add(p.counts.bytes_moved))
            });
            let size = size_of(id.kind, w);
            match sent.iter_mut().find(|s| s.kind == id.kind && s.size == size) {
                Some(s) => {
                    s.ops += Decimal::from(ops);
                    s.bytes += Decimal::from(bytes);
                }
                None => sent.push(Sent { kind: id.kind, ops: ops.into(), size, bytes: bytes.into() }),
            }
        }
    }
    sent.retain(|s| !s.ops.is_zero());
    let end_ns = data.stages.iter().map(|s| s.end_ns.unwrap_or(s.last_ns)).max().unwrap_or(0);
    RunSeen { workloads, sent, seconds: end_ns as f64 / 1e9 }
}
