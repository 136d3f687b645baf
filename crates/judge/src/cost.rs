//! What the run's rates, and its own load, come to in money.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_cost::{RunSeen, Sent, size_of, summary};
use plimsoll_model::OpKind;
use plimsoll_model::cost::CostSummary;
use plimsoll_model::plan::Workload;
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
    RunSeen { workloads, sent, seconds: end_ns as f64 / 1e9, syncs: syncs(data, workloads) }
}

/// Every so many writes an fsync, as a workload has them; those that are ops of a mix have a line of their own.
fn rule(w: &Workload) -> (u32, u32) {
    let block = w.block.as_ref().filter(|_| !w.mix.contains_key(&OpKind::Fsync));
    block.map_or((0, 0), |b| (b.fsync, b.fdatasync))
}

/// Fsyncs for each write, by the names of lines. A line may be called otherwise than its workload: where the workloads differ in how
/// often they sync, it is then not known. One at the end of a load is none of a rate.
fn syncs(data: &RunData, workloads: &[WorkloadSummary]) -> BTreeMap<String, Option<Decimal>> {
    let mut rules = BTreeSet::new();
    // Of all, and by the workload's name: fsyncs and writes.
    let mut counts: BTreeMap<Option<&str>, (u64, u64)> = BTreeMap::new();
    for stage in &data.stages {
        for (id, points) in &stage.series {
            let Some(w) = stage.spec.workloads.get(usize::from(id.workload)) else { continue };
            if !matches!(id.kind, OpKind::Write | OpKind::Fsync) {
                continue;
            }
            rules.insert(rule(w));
            let n: u64 = points.iter().map(|p| p.counts.started).sum();
            for name in [None, Some(w.name.as_str()).filter(|_| rule(w) != (0, 0))] {
                let (syncs, writes) = counts.entry(name).or_default();
                *(if id.kind == OpKind::Fsync { syncs } else { writes }) += n;
            }
        }
    }
    if rules.iter().all(|r| *r == (0, 0)) {
        return BTreeMap::new();
    }
    let each = |name: Option<&str>| {
        let (syncs, writes) = counts.get(&name).filter(|(_, writes)| *writes > 0)?;
        Some(Decimal::from(*syncs) / Decimal::from(*writes))
    };
    let of = |w: &WorkloadSummary| {
        let same = (rules.len() == 1).then(|| each(None)).flatten();
        (w.name.clone(), same.or_else(|| each(Some(&w.name))))
    };
    // Of a line of a workload that does not sync nothing is known to be missing.
    let syncless: BTreeSet<&str> = data
        .stages
        .iter()
        .flat_map(|s| &s.spec.workloads)
        .filter(|w| rule(w) == (0, 0))
        .map(|w| w.name.as_str())
        .collect();
    workloads.iter().filter(|w| rules.len() == 1 || !syncless.contains(w.name.as_str())).map(of).collect()
}
