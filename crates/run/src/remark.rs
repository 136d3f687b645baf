//! Events that a person puts on a run's time axis: planned ones (`--mark-at 30s=TEXT`), and notes while it goes on
//! (`plimsoll mark`).

use std::time::Duration;

use plimsoll_engine::ring::monotonic_ns;
use plimsoll_model::units::Span;
use plimsoll_store::{RunDir, StoreError};

/// `30s=node 3 off`: when after the first load has begun, and what.
pub fn planned(text: &str) -> Result<(Duration, String), String> {
    let example = "write TIME=TEXT, for example '30s=node 3 off'";
    let (at, what) = text.split_once('=').ok_or_else(|| format!("'{text}' has no '=': {example}"))?;
    let at: Span = at.trim().parse().map_err(|e| format!("'{at}' is no time ({e}): {example}"))?;
    let what = what.trim();
    if what.is_empty() || what.chars().any(char::is_control) {
        return Err(format!("'{text}' says nothing that could be shown in one line: {example}"));
    }
    Ok((at.0, what.to_owned()))
}

/// Seconds from a run's start until now. `None`: it began on another machine, or before this one was started.
pub fn now_s(run: &RunDir) -> Result<Option<f64>, StoreError> {
    let environment = run.env()?.environment;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let here = boot.trim() == environment.boot_id;
    let since_ns = monotonic_ns().checked_sub(environment.started_monotonic_ns);
    Ok(since_ns.filter(|_| here).map(|ns| ns as f64 / 1e9))
}

/// The time of day so long ago, as a clock on the wall had it.
pub fn clock_time(ago: Duration) -> String {
    let now = jiff::Zoned::now();
    let then = jiff::SignedDuration::try_from(ago).ok().and_then(|d| now.checked_sub(d).ok());
    then.unwrap_or(now).strftime("%H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_events_are_a_time_and_a_text() {
        assert_eq!(planned("30s=node 3 off"), Ok((Duration::from_secs(30), "node 3 off".into())));
        assert_eq!(planned("1m30s=a=b").unwrap().1, "a=b");
        for bad in ["node 3 off", "soon=node 3 off", "30s=", "30s= ", "30s=a\nb"] {
            assert!(planned(bad).unwrap_err().contains("30s=node 3 off"), "{bad}");
        }
    }
}
