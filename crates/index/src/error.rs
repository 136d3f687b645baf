//! What can go wrong with an index.

use std::path::PathBuf;

/// Why the index could not answer.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The directory of runs could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Root {
        /// Where the runs are.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// SQLite failed for another reason than a damaged file, which is remade: the disk is full, or another process held it for too long.
    #[error("the index of runs failed: {0}")]
    Sql(rusqlite::Error),
    /// The file is not what was written; whoever opened it makes it anew.
    #[error("the index of runs is damaged: {0}")]
    Damaged(String),
}

impl From<rusqlite::Error> for IndexError {
    fn from(e: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match e.sqlite_error_code() {
            Some(
                ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::SchemaChanged
                | ErrorCode::TypeMismatch
                | ErrorCode::ConstraintViolation
                // "no such table", "no such column": somebody else's file, or a half of ours.
                | ErrorCode::Unknown,
            ) => Self::Damaged(e.to_string()),
            Some(_) => Self::Sql(e),
            // Without a code: a value of another type than was written.
            None => Self::Damaged(e.to_string()),
        }
    }
}
