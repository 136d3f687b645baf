//! Why a run could not be packed, or a file not be unpacked.

use std::io;

/// What is wrong, and what helps.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub struct PlimError {
    /// For a person.
    pub problem: String,
    /// What to do about it.
    pub remedy: &'static str,
}

impl PlimError {
    pub(crate) fn new(problem: impl Into<String>, remedy: &'static str) -> Self {
        Self { problem: problem.into(), remedy }
    }

    /// The file is not what a run was packed into, or was changed since.
    pub(crate) fn bad(problem: impl Into<String>) -> Self {
        Self::new(problem, "Nothing was unpacked. Have it packed and sent again: plimsoll runs pack RUN")
    }

    pub(crate) fn io(doing: &str, e: &io::Error) -> Self {
        Self::new(format!("cannot {doing}: {e}"), "Check path, permissions and free space")
    }
}
