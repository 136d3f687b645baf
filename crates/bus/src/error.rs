//! What stops a message, or whoever wants to speak, in words for the user.

/// Why nothing was carried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The message is longer than the bus takes.
    #[error("a message of {bytes} bytes does not fit: the bus takes {largest}")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// What would fit.
        largest: usize,
    },
    /// A subject that cannot be one.
    #[error("{0:?} is no subject")]
    Subject(String),
    /// The connection was ended by ourselves, or cannot come back.
    #[error("the connection is closed")]
    Closed,
    /// More waits to be sent than there is room for: the broker is gone for the moment, or slow.
    #[error("the connection takes no more at the moment")]
    Busy,
    /// Nobody answers there.
    #[error("{problem}. {remedy}")]
    Unreachable {
        /// What was tried, and what came of it. Without a full stop.
        problem: String,
        /// What to do about it. Without a full stop.
        remedy: String,
    },
    /// Whoever answers does not want us, or is not who we look for.
    #[error("{problem}. {remedy}")]
    Refused {
        /// What was refused, by whom. Without a full stop.
        problem: String,
        /// What to do about it. Without a full stop.
        remedy: String,
    },
}

impl BusError {
    /// Nobody answers.
    pub fn unreachable(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Unreachable { problem: problem.into(), remedy: remedy.into() }
    }

    /// We are not wanted, or should not want them.
    pub fn refused(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Refused { problem: problem.into(), remedy: remedy.into() }
    }
}
