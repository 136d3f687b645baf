//! What can go wrong in the store, and how S3 says it.

use s3s::{S3Error, S3ErrorCode};

#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("the bucket does not exist")]
    NoSuchBucket,
    #[error("the key does not exist")]
    NoSuchKey,
    #[error("the upload does not exist; it may have been aborted or completed")]
    NoSuchUpload,
    #[error("the bucket exists already")]
    BucketExists,
    #[error("the bucket is not empty")]
    BucketNotEmpty,
    #[error("the bucket's directory holds {}, which this server did not put there: move it away first", .0.display())]
    Holds(std::path::PathBuf),
    #[error("a precondition does not hold")]
    Precondition,
    #[error("{1}")]
    Invalid(S3ErrorCode, String),
    #[error("damaged object: {0}")]
    Damaged(String),
    #[error(transparent)]
    DataDir(#[from] crate::data_dir::DataDirError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl StoreError {
    pub fn invalid(code: S3ErrorCode, text: impl Into<String>) -> StoreError {
        StoreError::Invalid(code, text.into())
    }
}

impl From<StoreError> for S3Error {
    fn from(e: StoreError) -> S3Error {
        let code = match &e {
            StoreError::NoSuchBucket => S3ErrorCode::NoSuchBucket,
            StoreError::NoSuchKey => S3ErrorCode::NoSuchKey,
            StoreError::NoSuchUpload => S3ErrorCode::NoSuchUpload,
            StoreError::BucketExists => S3ErrorCode::BucketAlreadyOwnedByYou,
            StoreError::BucketNotEmpty | StoreError::Holds(_) => S3ErrorCode::BucketNotEmpty,
            StoreError::Precondition => S3ErrorCode::PreconditionFailed,
            StoreError::Invalid(code, _) => code.clone(),
            StoreError::Damaged(_) | StoreError::DataDir(_) => S3ErrorCode::InternalError,
            StoreError::Io(io) => match io.kind() {
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                    let text = "the server's disk is full: free space in its data directory";
                    return custom("StorageFull", hyper::StatusCode::INSUFFICIENT_STORAGE, text);
                }
                _ => S3ErrorCode::InternalError,
            },
        };
        S3Error::with_message(code, e.to_string())
    }
}

/// An error whose code s3s has no name for.
pub(crate) fn custom(code: &'static str, status: hyper::StatusCode, text: impl Into<String>) -> S3Error {
    let mut e = S3Error::with_message(S3ErrorCode::Custom(code.into()), text.into());
    e.set_status_code(status);
    e
}
