//! What stops a run before or while it measures, with the exit code that it means.

use plimsoll_control::ControlError;
use plimsoll_crew::CrewError;
use plimsoll_judge::exit;
use plimsoll_model::plan::PlanError;
use plimsoll_setup::SetupError;
use plimsoll_store::StoreError;

/// A message for the user. What happened, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan or the environment does not allow the run.
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
    /// Ctrl-C before anything could be measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// A broken invariant: ours to fix.
    #[error("this is a bug in plimsoll: {0}. Please report it with the plan")]
    Bug(String),
}

impl RunError {
    /// For what the user, or the environment, has to change. Both without a full stop.
    pub fn input(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Input { problem: problem.into(), remedy: remedy.into() }
    }

    /// What a run that was ended tells: what was broken off for that is no fault of plan or storage.
    pub fn unless_ended(self, ended: bool) -> Self {
        match self {
            Self::Input { .. } | Self::OutOfTime { .. } | Self::Engine(_) if ended => Self::Interrupted,
            other => other,
        }
    }

    /// As [`plimsoll_judge::exit`] has them.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Input { .. }
            | Self::OutOfTime { .. }
            | Self::Plan(_)
            | Self::Store(_)
            | Self::Engine(_) => exit::INPUT,
            Self::Interrupted => exit::INTERRUPTED,
            Self::Bug(_) => exit::BUG,
        }
    }
}

impl From<ControlError> for RunError {
    fn from(e: ControlError) -> Self {
        match e {
            ControlError::Input { problem, remedy } => Self::Input { problem, remedy },
            ControlError::Plan(e) => Self::Plan(e),
        }
    }
}

impl From<CrewError> for RunError {
    fn from(e: CrewError) -> Self {
        match e {
            CrewError::Setup(e) => e.into(),
            CrewError::Engine(text) => Self::Engine(text),
            CrewError::OutOfTime { problem, remedy } => Self::OutOfTime { problem, remedy },
        }
    }
}

impl From<SetupError> for RunError {
    fn from(e: SetupError) -> Self {
        match e {
            SetupError::Input { problem, remedy } => Self::Input { problem, remedy },
            SetupError::Plan(e) => Self::Plan(e),
            SetupError::Store(e) => Self::Store(e),
            SetupError::Interrupted => Self::Interrupted,
            SetupError::Bug(what) => Self::Bug(what),
        }
    }
}
