//! When the parts of a stage begin and end.

use plimsoll_engine::StopRule;
use plimsoll_model::OpKind;
use plimsoll_model::plan::{Stage, Workload};
use plimsoll_model::units::Span;

use crate::division::Division;

/// Warm-up of a stage. A workload that ends by a number of ops, bytes or passes has none, unless one was asked for:
/// the plan's default would eat the work that is to be measured.
pub fn warmup_ns(stage: &Stage) -> u64 {
    let default = Span(std::time::Duration::from_secs(2));
    let counted = |w: &Workload| {
        // Deletes that nothing makes up for end with the objects that were prepared for them.
        let deletes_only = w.mix.keys().all(|k| matches!(k, OpKind::Delete | OpKind::DeleteBatch));
        deletes_only
            || w.stop.duration.is_none()
                && (w.stop.ops.is_some() || w.stop.bytes.is_some() || w.stop.loops.is_some())
    };
    if stage.warmup == default && stage.workloads.iter().any(counted) { 0 } else { stage.warmup.as_ns() }
}

/// When one worker's share of a workload ends. Durations are of the measured part; ops and bytes of the whole load.
pub fn stop_rule(w: &Workload, warmup_ns: u64, part: &Division) -> StopRule {
    StopRule {
        after_ns: after_ns(w, warmup_ns),
        ops: w.stop.ops.map(|ops| part.part_of(ops)),
        bytes: w.stop.bytes.map(|b| part.part_of(b.0)),
        loops: w.stop.loops,
    }
}

/// End of a workload's load after the start of its stage, where it ends by time.
fn after_ns(w: &Workload, warmup_ns: u64) -> Option<u64> {
    w.stop.lasts().map(|d| warmup_ns + d.as_ns())
}

/// Planned end of a stage's load after its start; `None` where it ends by work, not by time.
pub fn planned_ns(stage: &Stage) -> Option<u64> {
    let warmup = warmup_ns(stage);
    stage.workloads.iter().map(|w| after_ns(w, warmup)).collect::<Option<Vec<u64>>>()?.into_iter().max()
}
