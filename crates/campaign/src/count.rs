//! What a run asked of the storage: what budgets are counted in.

use plimsoll_model::OpKind;
use plimsoll_model::plan::TargetSpec;
use plimsoll_store::RunData;

/// Payload bytes and ops of a run: those of its load, by its record; and those that put objects there before it and take them away
/// after it, by its plan. What marks, lists and looks is a handful of requests, and not in it.
pub fn asked(data: &RunData) -> (u64, u64) {
    let (mut bytes, mut requests, mut made) = (0u64, 0u64, 0u64);
    for (id, points) in data.stages.iter().flat_map(|s| &s.series) {
        for p in points {
            bytes = bytes.saturating_add(p.counts.bytes_moved);
            requests = p.counts.outcomes.iter().fold(requests, |all, n| all.saturating_add(*n));
            if matches!(id.kind, OpKind::Put | OpKind::Copy | OpKind::Multipart) {
                made += p.counts.ok();
            }
        }
    }
    let mut workloads = data.stages.iter().flat_map(|s| &s.spec.workloads).filter(|w| w.existing().is_none());
    let on_s3 =
        |w: &plimsoll_model::plan::Workload| matches!(data.plan.target_of(w), Ok((_, TargetSpec::S3(_))));
    // Stages of one run share what was prepared for the first.
    if let Some(w) = workloads.find(|w| on_s3(w)) {
        let (read, deleted) = plimsoll_lower::prepared_objects(w);
        bytes += (read + deleted) * w.size.mean_bytes();
        requests += 2 * (read + deleted) + made;
    }
    (bytes, requests)
}
