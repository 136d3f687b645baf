//! What a controller cannot do, and what to do about it.

use plimsoll_model::plan::PlanError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The plan asks for what this controller cannot do, or it cannot go on after a kill.
    #[error("{problem}. {remedy}")]
    Input { problem: String, remedy: String },
    #[error(transparent)]
    Plan(#[from] PlanError),
}

impl ControlError {
    pub fn input(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Input { problem: problem.into(), remedy: remedy.into() }
    }
}
