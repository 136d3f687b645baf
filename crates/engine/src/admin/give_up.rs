//! When nobody waits any longer for an answer: waits are cut into slices, and each looks at this.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::ring::monotonic_ns;

/// When whoever asks a server waits no longer: at once when a flag is set, or some time after something happened.
#[derive(Debug, Clone, Default)]
pub struct GiveUp {
    at_once: Option<Arc<AtomicBool>>,
    /// When it happened, `CLOCK_MONOTONIC` in nanoseconds (0: not yet); and the time that is left then, nanoseconds.
    after: Option<(Arc<AtomicU64>, u64)>,
}

impl From<Arc<AtomicBool>> for GiveUp {
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self { at_once: Some(flag), after: None }
    }
}

impl GiveUp {
    /// Also so long after what is noted there (as [`monotonic_ns`] has it; 0: it has not happened).
    #[must_use]
    pub fn or_after(self, happened_ns: Arc<AtomicU64>, time: Duration) -> Self {
        Self { after: Some((happened_ns, time.as_nanos() as u64)), ..self }
    }

    /// Nobody waits any longer.
    pub fn is_due(&self) -> bool {
        self.at_once.as_ref().is_some_and(|f| f.load(Ordering::Acquire))
            || self.left().is_some_and(|left| left.is_zero())
    }

    /// What is left of the time, where it runs.
    pub fn left(&self) -> Option<Duration> {
        let (happened_ns, time_ns) = self.after.as_ref()?;
        let end_ns = Some(happened_ns.load(Ordering::Acquire)).filter(|t| *t > 0)?.saturating_add(*time_ns);
        Some(Duration::from_nanos(end_ns.saturating_sub(monotonic_ns())))
    }
}
