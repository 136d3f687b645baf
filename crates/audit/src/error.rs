//! What cannot be judged, because it cannot be read: where, what, and what to do about it.

/// Bad input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct AuditError {
    /// Line, column, or key.
    pub place: String,
    /// What is the matter with it.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

impl AuditError {
    pub(crate) fn new(
        place: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { place: place.into(), problem: problem.into(), remedy: remedy.into() }
    }
}
