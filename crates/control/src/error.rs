//! What a controller cannot do, and what to do about it.

use plimsoll_model::plan::PlanError;

/// Why a controller cannot begin, or go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The plan asks for what this controller cannot do, or it cannot go on after a kill.
    #[error("{problem}. {remedy}")]
    Input {
        /// Without a full stop.
        problem: String,
        /// What to do about it. Without a full stop.
        remedy: String,
    },
    /// A stage that the plan's own rules do not allow.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

impl ControlError {
    /// For what a user asked.
    pub fn input(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Input { problem: problem.into(), remedy: remedy.into() }
    }
}
