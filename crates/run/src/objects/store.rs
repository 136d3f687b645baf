//! The few calls on a bucket that are made outside the measurement. The engine's blocking client does them;
//! tests do them in memory.

/// Why a call failed, as far as the caller has to tell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreFault {
    #[error("no such bucket")]
    NoSuchBucket,
    #[error("no such object")]
    NoSuchKey,
    /// Who asks is refused: keys, clock, region.
    #[error("{0}")]
    Denied(Told),
    /// Who asks is known, and not allowed to do it.
    #[error("{0}")]
    Forbidden(Told),
    /// The server does not know the call.
    #[error("not implemented by this server")]
    Unsupported,
    #[error("the bucket is not empty")]
    NotEmpty,
    /// No connection, an internal error, or throttled after several attempts: the server may come back.
    #[error("{0}")]
    Away(Told),
    #[error("{0}")]
    Other(Told),
}

/// What happened, and what to do about it (may be empty). Neither ends with a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub what: String,
    pub remedy: String,
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl From<String> for Told {
    fn from(what: String) -> Self {
        Self { what, remedy: String::new() }
    }
}

impl StoreFault {
    /// What to do about it, where that is known.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Self::Denied(t) | Self::Forbidden(t) | Self::Away(t) | Self::Other(t) => {
                Some(t.remedy.as_str()).filter(|r| !r.is_empty())
            }
            Self::NoSuchBucket | Self::NoSuchKey | Self::Unsupported | Self::NotEmpty => None,
        }
    }

    /// The same call may go through later.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Away(_))
    }
}

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListPage {
    pub keys: Vec<String>,
    /// Hand it in for the next page; `None`: this was the last.
    pub next: Option<String>,
}

/// A multipart upload that has begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    pub key: String,
    pub id: String,
}

/// One bucket at one endpoint.
pub trait ObjectStore {
    fn bucket_exists(&self) -> Result<bool, StoreFault>;
    fn create_bucket(&self) -> Result<(), StoreFault>;
    /// Only ever called for a bucket that this run created.
    fn delete_bucket(&self) -> Result<(), StoreFault>;
    fn put(&self, key: &str, body: &[u8]) -> Result<(), StoreFault>;
    /// `None`: there is no such object.
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreFault>;
    fn list(&self, prefix: &str, from: Option<&str>, most: u32) -> Result<ListPage, StoreFault>;
    /// At most 1,000 keys; those that are gone already are no error.
    fn delete(&self, keys: &[String]) -> Result<(), StoreFault>;
    fn uploads(&self, prefix: &str) -> Result<Vec<Upload>, StoreFault>;
    fn abort_upload(&self, upload: &Upload) -> Result<(), StoreFault>;
}
