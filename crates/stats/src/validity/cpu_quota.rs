//! A client that its own control group stops: a CPU quota that ran out. In the rest of each such period nothing of the client
//! runs, so that rate and latencies are the quota's, whatever the storage does.

use plimsoll_model::{Finding, Level};

use super::invalid::{CLIENT_BUSY, found, percent};
use super::{Facts, QuotaUse};

/// Name of the finding.
pub const NAME: &str = "cpu_quota";
/// From this share of stopped periods on it is told: the 99th percentile is the quota's (guess).
const TOLD: f64 = 0.01;
/// From here on the rate is the quota's, not the storage's: in half of all periods the client stood still (guess).
const BOUND: f64 = 0.50;

/// Whether the quota shows in the figures at all.
pub fn holds_back(q: &QuotaUse) -> bool {
    q.throttled >= TOLD || q.used >= CLIENT_BUSY
}

/// How often it stopped the client, as it is said.
pub(super) fn said(q: &QuotaUse) -> String {
    format!(
        "a quota of {} cores was used up in {} of its periods",
        plimsoll_model::units::significant(q.cores, 2),
        percent(q.throttled)
    )
}

/// Client-bound where the quota ran out half of the time, or nearly all of it was used; a remark where it ran out now and then.
pub(super) fn found_in(f: &Facts) -> Option<Finding> {
    let q = f.cpu_quota.filter(holds_back)?;
    let (level, measured, limit) = match () {
        () if q.throttled >= BOUND => (Level::Invalid, q.throttled, BOUND),
        () if q.used >= CLIENT_BUSY => (Level::Invalid, q.used, CLIENT_BUSY),
        () => (Level::Qualified, q.throttled, TOLD),
    };
    let whose = match level {
        Level::Invalid => "This rate is the quota's limit, not the storage's.",
        _ => "This adds to latencies, and lowers the rate unless something else limited it.",
    };
    let text = format!(
        "Client-bound: the CPU quota of the client's control group stopped it: {}; the client's process used {} of \
         it. {whose} Raise or remove the quota.",
        said(&q),
        percent(q.used)
    );
    Some(found(f, "V07", NAME, level, text).measured(measured, limit))
}

#[cfg(test)]
mod tests {
    use super::super::{CpuWait, check_all};
    use super::*;

    fn with(throttled: f64, used: f64) -> Facts {
        Facts { cpu_quota: Some(QuotaUse { cores: 0.1, throttled, used }), ..Facts::default() }
    }

    #[test]
    fn the_level_follows_how_often_it_ran_out() {
        assert!(check_all(&with(0.005, 0.3)).is_empty());
        let level = |f: &Facts| check_all(f).first().map(|f| (f.code.clone(), f.name.clone(), f.level));
        let told = |level| Some(("V07".to_owned(), NAME.to_owned(), level));
        assert_eq!(level(&with(0.05, 0.3)), told(Level::Qualified));
        assert_eq!(level(&with(0.98, 0.99)), told(Level::Invalid));
        assert_eq!(
            level(&with(0.0, 0.9)),
            told(Level::Invalid),
            "a quota that is just enough is the limit, too"
        );
    }

    #[test]
    fn nobody_else_is_blamed_for_it() {
        let wait = CpuWait { total_s: 9.0, share: 0.9, for_others: Some(1.0) };
        let f =
            Facts { cpu_wait: Some(wait), client_busy: Some(0.99), late_share: Some(0.5), ..with(0.98, 1.0) };
        let found = check_all(&f);
        assert_eq!(found.iter().map(|f| f.code.as_str()).collect::<Vec<_>>(), ["V06", "V07"]);
        assert!(found.iter().all(|f| !f.text.to_lowercase().contains("other processes")), "{found:?}");
        assert!(
            found[1].text.contains("0.10 cores") && found[1].text.contains("98.0 %"),
            "{}",
            found[1].text
        );
        // What other work took beyond the stopped periods is still said.
        let f = Facts { cpu_wait: Some(wait), ..with(0.005, 0.1) };
        assert_eq!(check_all(&f)[0].name, "cpu_taken");
    }
}
