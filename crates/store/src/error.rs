//! What can go wrong with a run directory, and what to do about it.

use std::path::PathBuf;

/// Why a run directory could not be written or read.
#[allow(missing_docs, reason = "each message has all fields in it")]
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{}: {problem}. {remedy}", path.display())]
    Dir { path: PathBuf, problem: String, remedy: &'static str },
    #[error("cannot {doing} {}: {source}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: std::io::Error },
    /// A record whose checksum holds but whose content does not: a newer format, or our bug.
    #[error("a record cannot be read: bad {0}")]
    Record(&'static str),
    #[error("{}: {problem}", path.display())]
    Content { path: PathBuf, problem: String },
    /// No run writes it.
    #[error("{} is {bytes} bytes long, and at most {most} are read of it", path.display())]
    TooLarge { path: PathBuf, bytes: u64, most: u64 },
    #[error(
        "{} has format '{found}', and this program reads '{wanted}'; use the plimsoll that wrote it, or a newer one",
        path.display()
    )]
    Format { path: PathBuf, found: String, wanted: &'static str },
}

impl StoreError {
    /// What was being done to which file, for `map_err`.
    pub fn io<'a>(
        doing: &'static str,
        path: &'a std::path::Path,
    ) -> impl FnOnce(std::io::Error) -> StoreError + 'a {
        move |source| StoreError::Io { doing, path: path.to_owned(), source }
    }

    /// Whether the disk was full.
    pub fn is_no_space(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull)
    }
}
