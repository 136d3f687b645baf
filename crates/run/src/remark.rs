//! Times of notes that a person puts on a run's time axis while it goes on (`plimsoll mark`).

use std::time::Duration;

use plimsoll_engine::ring::monotonic_ns;
use plimsoll_store::{RunDir, StoreError};

/// Seconds from a run's start until now. `None`: it began on another machine, or before this one was started.
pub fn now_s(run: &RunDir) -> Result<Option<f64>, StoreError> {
    let environment = run.env()?.environment;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let here = boot.trim() == environment.machine.boot_id;
    let since_ns = monotonic_ns().checked_sub(environment.started_monotonic_ns);
    Ok(since_ns.filter(|_| here).map(|ns| ns as f64 / 1e9))
}

/// The time of day so long ago, as a clock on the wall had it.
pub fn clock_time(ago: Duration) -> String {
    let now = jiff::Zoned::now();
    let then = jiff::SignedDuration::try_from(ago).ok().and_then(|d| now.checked_sub(d).ok());
    then.unwrap_or(now).strftime("%H:%M:%S").to_string()
}
