//! What stops a run before or while it measures, with the exit code that it means.

use plimsoll_model::plan::PlanError;
use plimsoll_store::StoreError;

/// A message for the user. What happened, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan or the environment does not allow the run.
    #[error("{problem}. {remedy}")]
    Input { problem: String, remedy: String },
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine could not start or go on; its message names the remedy.
    #[error("{0}")]
    Engine(String),
    /// Ctrl-C before anything could be measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// A broken invariant: ours to fix.
    #[error("this is a bug of plimsoll: {0}. Please report it with the plan")]
    Bug(String),
}

impl RunError {
    pub fn input(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Input { problem: problem.into(), remedy: remedy.into() }
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Input { .. } | Self::Plan(_) | Self::Store(_) | Self::Engine(_) => exit::INPUT,
            Self::Interrupted => exit::INTERRUPTED,
            Self::Bug(_) => exit::BUG,
        }
    }
}

/// Exit codes of the program.
pub mod exit {
    pub const VALID: u8 = 0;
    pub const BUG: u8 = 1;
    /// Bad input or environment.
    pub const INPUT: u8 = 2;
    /// Measured, but invalid.
    pub const INVALID: u8 = 3;
    /// An expectation was not met.
    pub const NOT_MET: u8 = 4;
    pub const UNDETERMINED: u8 = 5;
    /// Measured and valid, but something that the run made is still there.
    pub const LEFT_BEHIND: u8 = 6;
    /// The storage returned other data than what was written to it.
    pub const DAMAGED: u8 = 7;
    /// Stopped by a guard. No guard stops a run yet: reserved.
    pub const STOPPED: u8 = 8;
    pub const INTERRUPTED: u8 = 130;
}
