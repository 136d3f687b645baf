//! Why there is no network test.

/// In words for a person, with what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    /// Something has to be changed first.
    #[error("{problem}")]
    Input {
        /// What is wrong.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
    /// A host that took part is gone.
    #[error("{host} is gone: {why}")]
    Lost {
        /// Its name.
        host: String,
        /// What was seen.
        why: String,
    },
    /// A person ended it.
    #[error("interrupted")]
    Interrupted,
}

impl NetError {
    /// What is wrong, and what to do about it.
    pub fn input(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Input { problem: problem.into(), remedy: remedy.into() }
    }
}
