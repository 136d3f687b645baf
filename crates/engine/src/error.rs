//! What can keep a stage from starting, in words that name the place and the remedy.

use plimsoll_model::WorkerId;

use crate::ring::RingError;

/// Why a stage, or a worker of it, cannot do its work.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum EngineError {
    /// The stage asks for something that cannot be.
    #[error("{0}")]
    BadSpec(String),
    /// The ring could not be made, or broke.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// A file or device could not be opened or used as asked.
    #[error("{path}: {what}")]
    File {
        /// As it was opened.
        path: String,
        /// What was tried, and the system's words.
        what: String,
    },
    /// The target refused before the first op.
    #[error("{0}")]
    Target(String),
    /// A worker's thread could not be made, or died.
    #[error("worker {worker}: {what}")]
    Worker {
        /// Which.
        worker: WorkerId,
        /// What became of it.
        what: String,
    },
}
