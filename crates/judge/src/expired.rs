//! Keys of the storage that expired while a load was on: from when on everything was refused for it. What was refused is no throughput
//! in any case; this says why, and that the line is no rate of the storage.

use plimsoll_model::{Finding, Level, Outcome};
use plimsoll_store::{RunData, StageData};

/// What a worker's end says of keys that expired and were not renewed begins so (`setup::s3::EXPIRED_KEYS`).
const NOTE: &str = "expired credentials: ";
/// Codes by which servers refuse them, as the words of a failure have them. AWS, "Error responses".
const CODES: [&str; 2] = ["ExpiredToken", "TokenRefreshRequired"];

/// Of one stage.
pub fn findings(data: &RunData, stage: &StageData) -> Vec<Finding> {
    (0..stage.spec.workloads.len()).filter_map(|index| of_workload(data.step_ns, stage, index)).collect()
}

fn of_workload(step_ns: u64, stage: &StageData, index: usize) -> Option<Finding> {
    let notes = stage.report.notes.get(index);
    let said = notes.and_then(|notes| notes.iter().find_map(|n| n.strip_prefix(NOTE)));
    let by_server = |f: &&(String, String, String)| CODES.iter().any(|code| f.2.contains(code));
    let refused = stage.report.failures.iter().find(by_server);
    if said.is_none() && refused.is_none() {
        return None;
    }
    let w = &stage.spec.workloads[index];
    let begins = match (said, refused) {
        (Some(said), _) => said.to_owned(),
        (None, Some(_)) => "The storage says that the credentials have expired.".into(),
        (None, None) => return None,
    };
    let Some((first_s, count)) = refusals(step_ns, stage, index) else {
        // A server that does not look, or a load that had ended.
        let text = format!("{begins} No operation was refused for it.");
        return said
            .map(|_| Finding::new("V25", "credentials_expired", Level::Info, text).on(w.name.clone()));
    };
    let text = format!(
        "{begins} From {first_s:.1} s after the start of this load on, {count} operations were refused (HTTP 400 or 403), so its rate \
         is not one of this storage. Use credentials that are renewed (a role, an SSO session, a credential_process), or a shorter run."
    );
    Some(Finding::new("V25", "credentials_expired", Level::Invalid, text).on(w.name.clone()))
}

/// When the first request was refused as such keys are, seconds after the load's start, and how many were.
fn refusals(step_ns: u64, stage: &StageData, index: usize) -> Option<(f64, u64)> {
    let mine = stage.series.iter().filter(|(id, _)| usize::from(id.workload) == index);
    let refused = [Outcome::Http4xx, Outcome::Http403];
    let (mut first, mut count) = (u64::MAX, 0u64);
    for (at, point) in mine.flat_map(|(_, points)| (stage.first_point..).zip(points)) {
        let n = refused.iter().map(|o| point.counts.outcomes[o.index()]).fold(0, u64::saturating_add);
        if n > 0 {
            (first, count) = (first.min(at), count.saturating_add(n));
        }
    }
    let first_ns = first.saturating_mul(step_ns).saturating_sub(stage.start_ns);
    (count > 0).then_some((first_ns as f64 / 1e9, count))
}
