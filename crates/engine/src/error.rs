//! What can keep a stage from starting, in words that name the place and the remedy.

use crate::ring::RingError;

#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum EngineError {
    /// The stage asks for something that cannot be.
    #[error("{0}")]
    BadSpec(String),
    #[error(transparent)]
    Ring(#[from] RingError),
    /// A file or device could not be opened or used as asked.
    #[error("{path}: {what}")]
    File { path: String, what: String },
    /// The target refused before the first op.
    #[error("{0}")]
    Target(String),
    /// A worker's thread could not be made, or died.
    #[error("worker {worker}: {what}")]
    Worker { worker: u16, what: String },
}
