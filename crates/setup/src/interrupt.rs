//! What ends a run before its time: Ctrl-C, or whoever conducts it. Each run has its own, so that a process can carry out several.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use plimsoll_engine::admin::GiveUp;
use plimsoll_engine::ring::monotonic_ns;

use crate::error::SetupError;

/// What a first Ctrl-C leaves to a removal that it meets: most end in that time.
const GRACE: Duration = Duration::from_secs(5);

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
    /// When it was asked first, `CLOCK_MONOTONIC` in nanoseconds; 0: it was not.
    asked_ns: Arc<AtomicU64>,
}

impl Interrupt {
    /// It has come (once more). Async-signal-safe.
    pub fn signal(&self) -> Meaning {
        if !self.asked.swap(true, Ordering::AcqRel) {
            self.asked_ns.store(monotonic_ns(), Ordering::Release);
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

    /// Nothing is waited for any more: ops in flight are given up, and cleaning up stops.
    pub fn is_enough(&self) -> bool {
        self.enough.load(Ordering::Acquire)
    }
}

/// When the removal of what a run made is to stop, whatever the servers do: when it was asked twice, and five seconds after a first time that came
/// while it was going on. Who asked before ended the load, and wants all of it removed. Made once, when the removal begins.
#[derive(Debug, Clone, Default)]
pub struct RemovalEnd {
    interrupt: Interrupt,
    was_asked: bool,
}

impl RemovalEnd {
    /// Of a removal that begins now.
    pub fn of(interrupt: &Interrupt) -> Self {
        Self { interrupt: interrupt.clone(), was_asked: interrupt.is_requested() }
    }

    /// What the run itself looks at.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// It was asked for while the removal was going on: nothing is waited for that is away.
    pub fn is_asked(&self) -> bool {
        self.interrupt.is_enough() || (!self.was_asked && self.interrupt.is_requested())
    }

    /// The removal stops.
    pub fn is_due(&self) -> bool {
        self.give_up().is_due()
    }

    /// The same, for whoever waits for an answer.
    pub fn give_up(&self) -> GiveUp {
        let twice = GiveUp::from(Arc::clone(&self.interrupt.enough));
        match self.was_asked {
            true => twice,
            false => twice.or_after(Arc::clone(&self.interrupt.asked_ns), GRACE),
        }
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

    /// It was looked at between two requests only, and one request took up to a minute.
    #[test]
    fn what_is_asked_while_things_are_removed_leaves_that_five_seconds() {
        let (interrupt, long_ago) = (Interrupt::default(), monotonic_ns() - GRACE.as_nanos() as u64);
        let end = RemovalEnd::of(&interrupt);
        assert!(!end.is_asked() && !end.is_due());
        interrupt.signal();
        let left = end.give_up().left();
        assert!(end.is_asked() && !end.is_due() && left.is_some_and(|t| t <= GRACE), "{left:?}");
        // One that began after that: whoever ended the load wants its data gone.
        let later = RemovalEnd::of(&interrupt);
        interrupt.asked_ns.store(long_ago, Ordering::Release);
        assert!(end.is_due() && !later.is_asked() && !later.is_due());
        interrupt.signal();
        assert!(later.is_asked() && later.is_due(), "asked twice");
    }

    #[test]
    fn each_run_has_its_own() {
        let (one, other) = (Interrupt::default(), Interrupt::default());
        let same = one.clone();
        one.signal();
        assert!(same.is_requested() && !same.is_enough() && !other.is_requested());
    }
}
