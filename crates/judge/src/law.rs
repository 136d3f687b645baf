//! Both sides of Little's law for one stage: what its workers had in flight, and what its ops took, of whatever kind they were
//! and however they ended. The stage's check and the lines' figures come from here.

use plimsoll_model::{OpKind, Series};
use plimsoll_stats::littles_law::{Sums, age_of_in_flight};
use plimsoll_store::{RunData, StageData, Totals};

/// `None`: a run of before the time of failed ops was kept, with failures in it. Their time is then in one side only.
pub fn sums(data: &RunData, stage: &StageData, totals: &Totals, window_s: f64) -> Option<Sums> {
    let mut sums = Sums {
        window_s,
        in_flight_op_s: totals.client.in_flight_ns as f64 / 1e9,
        carried_in_op_s: carried_op_s(data, stage, totals.window.from * data.grid_ns),
        carried_out_op_s: carried_op_s(data, stage, totals.window.to * data.grid_ns),
        ..Sums::default()
    };
    // Parts of a multipart upload are inside their op, which is in flight once.
    for s in totals.series.iter().filter(|s| s.id.kind != OpKind::UploadPart) {
        let ended: u64 = s.counts.outcomes.iter().sum();
        let failed = ended - s.ok() - s.throttled();
        if failed > 0 && s.counts.failed_in_system_ns == 0 {
            return None;
        }
        sums.in_system_s += (s.counts.in_system_ns + s.counts.failed_in_system_ns) as f64 / 1e9;
        sums.ended += ended as f64;
        sums.longest_s = sums.longest_s.max(longest_s(s, failed));
    }
    Some(sums)
}

/// The longest op that is known of: of failed ones only their mean is.
fn longest_s(s: &Series, failed: u64) -> f64 {
    let service = s.service.as_ref().unwrap_or(&s.response);
    let failed_s = s.counts.failed_in_system_ns as f64 / failed.max(1) as f64 / 1e9;
    failed_s.max(service.max() as f64 / 1e9)
}

/// Op-seconds that what is in flight at a time had been in flight by then.
fn carried_op_s(data: &RunData, stage: &StageData, at_ns: u64) -> f64 {
    let ids = stage.series.keys().copied().filter(|id| id.kind != OpKind::UploadPart);
    let sum = stage.counts(ids, data.step_ns, 0, at_ns);
    let started: Vec<f64> = sum.iter().map(|c| c.started as f64).collect();
    let ended: f64 = sum.iter().map(|c| c.outcomes.iter().map(|n| *n as f64).sum::<f64>()).sum();
    let in_flight = (started.iter().sum::<f64>() - ended).max(0.0);
    let dt_s = data.step_ns as f64 / 1e9;
    // Points are whole steps: the last one may end before.
    let rest_s = (at_ns % data.step_ns) as f64 / 1e9;
    age_of_in_flight(&started, in_flight, dt_s) + in_flight * rest_s
}
