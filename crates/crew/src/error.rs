//! What keeps a crew from its work, in words for the user.

use plimsoll_engine::EngineError;
use plimsoll_model::plan::PlanError;
use plimsoll_setup::SetupError;
use plimsoll_store::StoreError;

/// What happened, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum CrewError {
    /// Plan, storage or run directory; or Ctrl-C.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The engine could not start or go on; its message names the remedy.
    #[error("{0}")]
    Engine(String),
    /// What a stage needs takes longer than the run's budget allows.
    #[error("{problem}. {remedy}")]
    OutOfTime {
        /// How far it came. Without a full stop.
        problem: String,
        /// What to do about it. Without a full stop.
        remedy: String,
    },
}

impl CrewError {
    /// For what the user, or the environment, has to change. Both without a full stop.
    pub fn input(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Setup(SetupError::input(problem, remedy))
    }

    /// A broken invariant: ours to fix.
    pub fn bug(what: impl Into<String>) -> Self {
        Self::Setup(SetupError::Bug(what.into()))
    }
}

impl From<PlanError> for CrewError {
    fn from(e: PlanError) -> Self {
        Self::Setup(e.into())
    }
}

impl From<StoreError> for CrewError {
    fn from(e: StoreError) -> Self {
        Self::Setup(e.into())
    }
}

impl From<EngineError> for CrewError {
    fn from(e: EngineError) -> Self {
        // Most of its messages end with what to use instead: that is the remedy.
        let text = e.to_string();
        let split = ["; use ", ": use "].into_iter().find_map(|at| text.rsplit_once(at));
        match split {
            Some((problem, other)) => Self::input(problem, format!("Use {other}")),
            None => Self::Engine(text),
        }
    }
}
