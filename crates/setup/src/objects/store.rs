//! The few calls on a bucket that are made outside the measurement. The engine's blocking client does them, here or on another machine
//! that is asked to; tests do them in memory.

use plimsoll_engine::admin::GiveUp;
use serde::{Deserialize, Serialize};

/// Why a call failed, as far as the caller has to tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum StoreFault {
    /// It may have to be made, or its name is wrong.
    #[error("no such bucket")]
    NoSuchBucket,
    /// Only that one is missing: the bucket is there.
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
    /// It cannot be removed yet.
    #[error("the bucket is not empty")]
    NotEmpty,
    /// No connection, an internal error, or throttled after several attempts: the server may come back.
    #[error("{0}")]
    Away(Told),
    /// None of these; trying again does not help.
    #[error("{0}")]
    Other(Told),
}

/// What happened, and what to do about it (may be empty). Neither ends with a full stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// For a person.
    pub what: String,
    /// For a person; empty: there is none.
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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeyPage {
    /// In the order of the listing.
    pub keys: Vec<String>,
    /// Hand it in for the next page; `None`: this was the last.
    pub next: Option<String>,
}

/// An object, or one version of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Item {
    /// Raw, as it was put.
    pub key: String,
    /// `None`: the object itself, whatever version is on top.
    pub version: Option<String>,
}

impl Item {
    /// Without a version: it is what a listing of keys shows.
    pub fn object(key: impl Into<String>) -> Self {
        Self { key: key.into(), version: None }
    }
}

/// A page of items, and where the next one begins; `None`: this was the last.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ItemPage {
    /// Versions and delete markers alike.
    pub items: Vec<Item>,
    /// Last key and last version of this page.
    pub next: Option<(String, String)>,
}

/// What was to be removed and stays, in the server's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// With its version, if one was named.
    pub item: Item,
    /// The server's code and message, for a person.
    pub why: String,
}

/// What a bucket does with what is overwritten or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Versioning {
    /// `Enabled`, `Suspended`, or empty: it never kept versions.
    pub status: String,
    /// Objects can be locked.
    pub lock: bool,
    /// How long each new object is locked, where the bucket says so: `3 days, COMPLIANCE`.
    pub retention: Option<String>,
    /// Its answers show that it keeps versions, and whoever asks may neither ask about that nor list them.
    pub hidden: bool,
}

impl Versioning {
    /// What is removed by its key alone leaves something behind.
    pub fn keeps(&self) -> bool {
        !self.status.is_empty()
    }

    /// What it means for a run in this bucket; nothing where versions are not kept.
    pub fn words(&self, bucket: &str) -> Option<String> {
        if let Some(retention) = &self.retention {
            return Some(format!(
                "bucket '{bucket}' locks each new object ({retention}): what this run writes cannot be removed \
                 before the lock expires"
            ));
        }
        if self.hidden {
            return Some(format!(
                "bucket '{bucket}' keeps versions, according to its answers, but these keys are not allowed to list \
                 them: all versions and delete markers of this run remain, and are billed, until somebody with \
                 permission removes them (s3:ListBucketVersions)"
            ));
        }
        let lock = if self.lock { ", and objects in it can be locked" } else { "" };
        self.keeps().then(|| {
            format!(
                "bucket '{bucket}' keeps versions ({}){lock}: cleanup removes the versions and delete markers of \
                 this run one by one",
                self.status
            )
        })
    }
}

/// A multipart upload that has begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// It becomes an object only when the upload is completed.
    pub key: String,
    /// Of the upload, as the listing had it.
    pub id: String,
}

/// One bucket at one endpoint.
pub trait ObjectStore {
    /// Without it the prefix can be neither claimed nor cleaned up.
    fn bucket_exists(&self) -> Result<bool, StoreFault>;
    /// In the region of who asks.
    fn create_bucket(&self) -> Result<(), StoreFault>;
    /// Only ever called for a bucket that this run created.
    fn delete_bucket(&self) -> Result<(), StoreFault>;
    /// Replaces what is there.
    fn put(&self, key: &str, body: &[u8]) -> Result<(), StoreFault>;
    /// Puts an object where there is none; false: there is one, and it stays. A server that does not know the condition may
    /// overwrite it all the same.
    fn put_new(&self, key: &str, body: &[u8]) -> Result<bool, StoreFault>;
    /// `None`: there is no such object.
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreFault>;
    /// At most `most` keys, in the server's order; `from`: [`KeyPage::next`] of the page before.
    fn list(&self, prefix: &str, from: Option<&str>, most: u32) -> Result<KeyPage, StoreFault>;
    /// Whether versions are kept; an error where the server does not say.
    fn versioning(&self) -> Result<Versioning, StoreFault>;
    /// All versions and delete markers under a prefix.
    fn versions(&self, prefix: &str, from: Option<&(String, String)>) -> Result<ItemPage, StoreFault>;
    /// Whether an answer showed that the bucket keeps versions.
    fn shows_versions(&self) -> bool {
        false
    }
    /// `None`: that version is not there.
    fn get_version(&self, key: &str, version: &str) -> Result<Option<Vec<u8>>, StoreFault>;
    /// At most 1,000 items; those that are gone already are no error. Gives those that cannot be removed. An error is of the whole.
    fn delete(&self, items: &[Item]) -> Result<Vec<Held>, StoreFault>;
    /// Calls fail at once from when this is due.
    fn give_up_when(&self, _: GiveUp) {}
    /// All under a prefix, of whatever run.
    fn uploads(&self, prefix: &str) -> Result<Vec<Upload>, StoreFault>;
    /// What was uploaded of it goes with it. One that is gone already is no error.
    fn abort_upload(&self, upload: &Upload) -> Result<(), StoreFault>;
}
