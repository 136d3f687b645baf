//! What ends a run before its time: Ctrl-C, or whoever conducts it. Each run has its own, so that a process can carry out several.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use crate::error::SetupError;

/// What a signal means, by how often it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// End in order: write the result, clean up.
    Stop,
    /// Wait for nothing more, neither for ops in flight nor for what is removed; the result is written.
    LeaveTheRest,
    /// End at once.
    Abort,
}

/// A run's own: end in order, clean up, write the result; and, when it comes again, wait for nothing more. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    enough: Arc<AtomicBool>,
}

impl Interrupt {
    /// It has come (once more). Async-signal-safe.
    pub fn signal(&self) -> Meaning {
        if !self.asked.swap(true, Ordering::AcqRel) {
            Meaning::Stop
        } else if !self.enough.swap(true, Ordering::AcqRel) {
            Meaning::LeaveTheRest
        } else {
            Meaning::Abort
        }
    }

    /// The run is to end.
    pub fn is_requested(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// For those who wait in small steps while something is made ready: set when the run is to end.
    pub fn asked_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }

    /// Does what may wait without an end (a pipe whose writer never comes) in a thread of its own, which is left there when the
    /// run is to end.
    pub fn unless_ended<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, SetupError> + Send + 'static,
    ) -> Result<T, SetupError> {
        const LOOK: Duration = Duration::from_millis(20);
        let (done, waited) = std::sync::mpsc::sync_channel(1);
        let body = move || drop(done.send(work()));
        std::thread::Builder::new().name("reads-inputs".into()).spawn(body).map_err(|e| {
            SetupError::input(format!("cannot start a thread: {e}"), "Raise the limit on threads")
        })?;
        loop {
            match waited.recv_timeout(LOOK) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Timeout) if self.is_requested() => return Err(SetupError::Interrupted),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(SetupError::Bug("the thread that reads the inputs stopped".into()));
                }
            }
        }
    }

    /// For those who wait in small steps: set when cleaning up is to stop.
    pub fn enough_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.enough)
    }

    /// Nothing is waited for any more: ops in flight are given up, and cleaning up stops.
    pub fn is_enough(&self) -> bool {
        self.enough.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ends_in_order_the_second_waits_for_nothing_and_the_third_ends_at_once() {
        let interrupt = Interrupt::default();
        assert_eq!(interrupt.signal(), Meaning::Stop);
        assert_eq!(interrupt.signal(), Meaning::LeaveTheRest, "what was measured is still written");
        assert_eq!(interrupt.signal(), Meaning::Abort);
        assert_eq!(interrupt.signal(), Meaning::Abort);
    }

    #[test]
    fn each_run_has_its_own() {
        let (one, other) = (Interrupt::default(), Interrupt::default());
        let same = one.clone();
        one.signal();
        assert!(same.is_requested() && !same.is_enough() && !other.is_requested());
    }
}
