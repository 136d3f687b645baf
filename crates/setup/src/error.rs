//! What stops the setting up or taking down of something, in words for the user.

use plimsoll_model::plan::PlanError;
use plimsoll_store::StoreError;

use crate::safety::judge::TargetRefusal;

/// What happened, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The plan or the environment does not allow it.
    #[error("{problem}. {remedy}")]
    Input {
        /// Without a full stop.
        problem: String,
        /// What to do about it. Without a full stop.
        remedy: String,
    },
    /// What the plan's own rules do not allow.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Reading or writing the run directory failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Whoever waits has ended it.
    #[error("interrupted")]
    Interrupted,
    /// A broken invariant: ours to fix.
    #[error("this is a bug in plimsoll: {0}. Please report it with the plan")]
    Bug(String),
}

impl SetupError {
    /// For what the user, or the environment, has to change.
    pub fn input(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Input { problem: problem.into(), remedy: remedy.into() }
    }
}

impl From<TargetRefusal> for SetupError {
    fn from(r: TargetRefusal) -> Self {
        Self::input(format!("{}: {}", r.path, r.problem), r.remedy)
    }
}
