//! Ctrl-C, as the run sees it.

use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that a signal handler sets: end in order, clean up, write the result.
#[derive(Debug, Clone, Copy)]
pub struct Interrupt(&'static AtomicBool);

static NEVER: AtomicBool = AtomicBool::new(false);

impl Default for Interrupt {
    /// One that never comes.
    fn default() -> Self {
        Self(&NEVER)
    }
}

impl Interrupt {
    pub fn of(flag: &'static AtomicBool) -> Self {
        Self(flag)
    }

    pub fn is_requested(self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
