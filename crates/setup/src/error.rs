//! What stops the setting up or taking down of something, in words for the user.

use plimsoll_model::plan::PlanError;
use plimsoll_store::StoreError;

use crate::safety::judge::Refusal;

/// What happened, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The plan or the environment does not allow it.
    #[error("{problem}. {remedy}")]
    Input { problem: String, remedy: String },
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Whoever waits has ended it.
    #[error("interrupted")]
    Interrupted,
    /// A broken invariant: ours to fix.
    #[error("this is a bug of plimsoll: {0}. Please report it with the plan")]
    Bug(String),
}

impl SetupError {
    pub fn input(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Input { problem: problem.into(), remedy: remedy.into() }
    }
}

impl From<Refusal> for SetupError {
    fn from(r: Refusal) -> Self {
        Self::input(format!("{}: {}", r.path, r.problem), r.remedy)
    }
}
