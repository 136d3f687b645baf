//! Keys of the storage that expired while a load was on: from when on everything was refused for it. What was refused is no throughput
//! in any case; this says why, and that the line is no rate of the storage.

use plimsoll_model::{Finding, Level, Outcome, SeriesId};
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
    let refused = stage.report.failures.iter().find(|f| CODES.iter().any(|code| f.2.contains(code)));
    let refused = refused.map(|(outcome, kind, _)| {
        let is_mine = |o: &Outcome, id: &SeriesId| o.name() == outcome && id.kind.name() == kind;
        refusals(step_ns, stage, index, &is_mine)
    });
    let finding = found(said, refused)?;
    Some(finding.on(stage.spec.workloads[index].name.clone()))
}

/// `said`: that keys had expired here. `refused`: the storage said so, and what ended as that did (the first one's time, seconds, and how
/// many); inside it nothing where no operation of this workload did.
fn found(said: Option<&str>, refused: Option<Option<(f64, u64)>>) -> Option<Finding> {
    let begins = said.unwrap_or("The storage says that the credentials have expired.");
    let Some(Some((first_s, count))) = refused else {
        // A server that does not look, a load that had ended, or another workload's refusal. What else failed did so for other reasons.
        said?;
        let text = format!("{begins} The storage refused no operation of this load for it.");
        return Some(Finding::new("V25", "credentials_expired", Level::Info, text));
    };
    let text = format!(
        "{begins} The storage refused operations for it: {count} ended in the class of that refusal, the first {first_s:.1} s after the \
         start of this load, so its rate is not one of this storage. Use credentials that are renewed (a role, an SSO session, a \
         credential_process), or a shorter run."
    );
    Some(Finding::new("V25", "credentials_expired", Level::Invalid, text))
}

/// When the first operation of a workload ended so, seconds after the load's start, and how many did.
fn refusals(
    step_ns: u64,
    stage: &StageData,
    index: usize,
    is_mine: &dyn Fn(&Outcome, &SeriesId) -> bool,
) -> Option<(f64, u64)> {
    let (mut first, mut count) = (u64::MAX, 0u64);
    for (id, points) in stage.series.iter().filter(|(id, _)| usize::from(id.workload) == index) {
        for (at, point) in (stage.first_point..).zip(points) {
            let mine = Outcome::ALL.iter().filter(|o| is_mine(o, id));
            let n = mine.map(|o| point.counts.outcomes[o.index()]).fold(0, u64::saturating_add);
            if n > 0 {
                (first, count) = (first.min(at), count.saturating_add(n));
            }
        }
    }
    let first_ns = first.saturating_mul(step_ns).saturating_sub(stage.start_ns);
    (count > 0).then_some((first_ns as f64 / 1e9, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_storage_said_of_expired_keys_voids_a_line() {
        let level = |said, refused| found(said, refused).map(|f| f.level);
        assert_eq!(level(None, None), None);
        // A server that does not look, and a 416 or a 403 for something else.
        assert_eq!(level(Some("Expired."), None), Some(Level::Info));
        assert_eq!(level(Some("Expired."), Some(None)), Some(Level::Info));
        assert_eq!(level(None, Some(None)), None, "another workload's");
        let f = found(None, Some(Some((6.0, 40)))).unwrap();
        assert_eq!(f.level, Level::Invalid);
        assert!(
            f.text.contains("40 ended in the class of that refusal, the first 6.0 s after"),
            "{}",
            f.text
        );
    }
}
