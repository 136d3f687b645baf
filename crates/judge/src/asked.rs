//! What a workload asks for, per kind of op: sizes and rates.

use plimsoll_model::OpKind;
use plimsoll_model::plan::{OnThrottle, Pacing, TargetSpec, Workload};
use plimsoll_store::RunData;

pub fn reads(kind: OpKind) -> bool {
    matches!(kind, OpKind::Get | OpKind::GetRange | OpKind::Read)
}

/// Whether a load pauses after refused attempts as the answers ask, or by its back-off.
pub fn backs_off(data: &RunData, w: &Workload) -> bool {
    let target = data.plan.target_of(w).ok().map(|(_, t)| t);
    matches!(target, Some(TargetSpec::S3(s3)) if s3.on_throttle == OnThrottle::Backoff)
}

/// Share of the time in which slots had an op or paused for which they paused; both in one unit.
pub fn paused_share(paused: f64, in_flight: f64) -> f64 {
    paused / (paused + in_flight).max(f64::MIN_POSITIVE)
}

/// The rate that an open loop offers to one kind of its mix. A ramp offers no one rate.
pub fn offered_per_s(w: &Workload, kind: OpKind) -> Option<f64> {
    let whole = match &w.pacing {
        Pacing::Closed | Pacing::Ramp { .. } => return None,
        Pacing::Constant(r) | Pacing::Capped(r) | Pacing::Poisson(r) => r.0,
        Pacing::Bytes(b) => b.0 / w.size.mean_bytes().max(1) as f64,
    };
    let weights: u32 = w.mix.values().sum();
    let weight = *w.mix.get(&kind)?;
    (weights > 0).then(|| whole * f64::from(weight) / f64::from(weights))
}

/// Bytes of one op: the fixed size, or the mean of the distribution.
pub fn nominal_size(w: &Workload, kind: Option<OpKind>) -> u64 {
    let object = w.object.as_ref();
    match kind {
        Some(OpKind::GetRange) => {
            if let Some(range) = object.and_then(|o| o.range) {
                return range.0;
            }
        }
        // Of an object that is smaller than a part, the object.
        Some(OpKind::UploadPart) => {
            return w.size.mean_bytes().min(object.map_or(8 << 20, |o| o.part_size.0));
        }
        _ => {}
    }
    w.size.mean_bytes()
}
