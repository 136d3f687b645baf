//! Ctrl-C, as the run sees it.

use std::sync::atomic::{AtomicBool, Ordering};

/// What a signal handler sets and what it may look at.
#[derive(Debug)]
pub struct Flags {
    asked: AtomicBool,
    cleaning: AtomicBool,
    enough: AtomicBool,
}

/// What a signal means, by how often it came and what goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// End in order: write the result, clean up.
    Stop,
    /// Clean up no more; the result is written.
    LeaveTheRest,
    /// End at once.
    Abort,
}

impl Flags {
    pub const fn new() -> Self {
        Self {
            asked: AtomicBool::new(false),
            cleaning: AtomicBool::new(false),
            enough: AtomicBool::new(false),
        }
    }

    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// A signal has come. Async-signal-safe.
    pub fn signal(&self) -> Meaning {
        if !self.asked.swap(true, Ordering::AcqRel) {
            Meaning::Stop
        } else if self.cleaning.load(Ordering::Acquire) && !self.enough.swap(true, Ordering::AcqRel) {
            Meaning::LeaveTheRest
        } else {
            Meaning::Abort
        }
    }
}

impl Default for Flags {
    fn default() -> Self {
        Self::new()
    }
}

/// What a signal handler sets: end in order, clean up, write the result; and, when it comes again, clean up no more.
#[derive(Debug, Clone, Copy)]
pub struct Interrupt(&'static Flags);

static NEVER: Flags = Flags::new();

impl Default for Interrupt {
    /// One that never comes.
    fn default() -> Self {
        Self(&NEVER)
    }
}

impl Interrupt {
    pub fn of(flags: &'static Flags) -> Self {
        Self(flags)
    }

    pub fn is_requested(self) -> bool {
        self.0.is_asked()
    }

    /// From here on things are removed: a second signal stops that, rather than the program.
    pub fn begin_cleaning(self) {
        self.0.cleaning.store(true, Ordering::Release);
    }

    /// For those who wait in small steps: set when cleaning up is to stop.
    pub fn enough_flag(self) -> &'static AtomicBool {
        &self.0.enough
    }

    /// Cleaning up is to stop.
    pub fn is_enough(self) -> bool {
        self.0.enough.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_signal_means_depends_on_what_goes_on() {
        let flags = Flags::new();
        assert_eq!(flags.signal(), Meaning::Stop);
        assert_eq!(flags.signal(), Meaning::Abort, "it measures, or drains");
        flags.cleaning.store(true, Ordering::Release);
        assert_eq!(flags.signal(), Meaning::LeaveTheRest);
        assert_eq!(flags.signal(), Meaning::Abort);
    }
}
