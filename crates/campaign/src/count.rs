//! What a run asked of the storage: what budgets are counted in.

use plimsoll_model::OpKind;
use plimsoll_model::plan::TargetSpec;
use plimsoll_store::RunData;

/// Payload bytes and ops of a run: those of its load, by its record, and of a run that was killed what its load may have done after that
/// ends; and those that put objects there before it and take them away after it, by its plan: of one that was cut short before its load began
/// all of them. What marks, lists and looks is a handful of requests, and not in it.
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
    // What the load did after the record of a killed run ends is no less of it.
    let more = 1.0 + data.unrecorded_share(|_| true);
    let [mut bytes, mut requests, made] = [bytes, requests, made].map(|n| (n as f64 * more).ceil() as u64);
    let is_cut = matches!(data.end.as_deref(), None | Some("interrupted"));
    let planned = || data.plan.stages.iter().chain(data.plan.controller.iter().flat_map(|c| c.templates()));
    let unbegun = planned().filter(|_| is_cut && data.stages.is_empty()).flat_map(|s| &s.workloads);
    let begun = data.stages.iter().flat_map(|s| &s.spec.workloads);
    let mut workloads = begun.chain(unbegun).filter(|w| w.existing().is_none());
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
