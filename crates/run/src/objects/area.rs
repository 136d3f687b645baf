//! The run's own place in a bucket: made here, in the order that lets a kill at any point be cleaned up.

use plimsoll_model::text::clean;
use plimsoll_store::{Journal, Thing};

use super::MARKER;
use super::proof::{BUCKET_MARKER, bucket_content, marker_content};
use super::store::{Item, ObjectStore, StoreFault, Versioning};
use crate::error::RunError;

/// A prefix of ours, with its marker in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    pub target: String,
    pub bucket: String,
    /// Ends in `/`.
    pub prefix: String,
    pub versioning: Versioning,
}

/// Makes the bucket if it was asked for, then the marker under the prefix. Each is in the journal before it exists.
pub fn open_area(
    store: &dyn ObjectStore,
    journal: &mut Journal,
    (target, bucket): (&str, &str),
    prefix: &str,
    create_bucket: bool,
    tell: &mut dyn FnMut(String),
) -> Result<Area, RunError> {
    let exists = store.bucket_exists().map_err(|e| bucket_error(bucket, &e))?;
    if !exists {
        if !create_bucket {
            return Err(bucket_error(bucket, &StoreFault::NoSuchBucket));
        }
        let id = journal.creating(Thing::Bucket { target: target.into(), bucket: bucket.into() })?;
        if let Err(e) = store.create_bucket() {
            journal.removed(id)?;
            return Err(bucket_error(bucket, &e));
        }
        mark_bucket(store, journal, bucket, id)?;
    }
    // Those that do not answer this question keep none, or show it by their answer to the first upload.
    let asked = store.versioning();
    let is_unknown = asked.is_err();
    let mut versioning = asked.unwrap_or_default();
    warn(bucket, &versioning, tell);
    let prefix = with_slash(prefix);
    let found = store.list(&prefix, None, 1).map_err(|e| bucket_error(bucket, &e))?;
    if let Some(key) = found.keys.first() {
        return Err(RunError::input(
            format!("the prefix '{prefix}' of bucket '{bucket}' is not empty: it holds '{}'", clean(key)),
            "Choose another prefix: a run uses only one that it made itself",
        ));
    }
    // What others deleted is still there, and would go with what is ours.
    if versioning.keeps()
        && let Some(item) = store.versions(&prefix, None).map_err(|e| bucket_error(bucket, &e))?.items.first()
    {
        return Err(RunError::input(
            format!(
                "the prefix '{prefix}' of bucket '{bucket}' holds versions of deleted objects, such as '{}'",
                clean(&item.key)
            ),
            "Choose another prefix: a run uses only one that it made itself",
        ));
    }
    let marker = format!("{prefix}{MARKER}");
    let content = marker_content(journal.mark());
    let thing = Thing::Prefix {
        target: target.into(),
        bucket: bucket.into(),
        prefix: prefix.clone(),
        marker: marker.clone(),
        content: content.clone(),
    };
    let id = journal.creating(thing)?;
    if let Err(e) = store.put(&marker, content.as_bytes()) {
        // It may have arrived all the same, if it was a time-out: then it stays in the journal.
        if matches!(e, StoreFault::Denied(_) | StoreFault::Forbidden(_) | StoreFault::NoSuchBucket) {
            journal.removed(id)?;
        }
        return Err(RunError::input(
            format!("cannot write to bucket '{bucket}': {e}"),
            e.remedy().unwrap_or("Give credentials that may put and delete objects there"),
        ));
    }
    if is_unknown && store.shows_versions() {
        match store.versions(&prefix, None) {
            Ok(_) => versioning.status = "as its answers show".into(),
            Err(_) => versioning.hidden = true,
        }
        warn(bucket, &versioning, tell);
    }
    Ok(Area { target: target.into(), bucket: bucket.into(), prefix, versioning })
}

/// What cannot be undone is said before it is done.
fn warn(bucket: &str, versioning: &Versioning, tell: &mut dyn FnMut(String)) {
    if let Some(text) = versioning.words(bucket) {
        tell(text);
    }
}

/// Without its mark a bucket could not be told from anybody's, and would stay.
fn mark_bucket(
    store: &dyn ObjectStore,
    journal: &mut Journal,
    bucket: &str,
    id: u64,
) -> Result<(), RunError> {
    let Err(e) = store.put(BUCKET_MARKER, bucket_content(journal.mark()).as_bytes()) else { return Ok(()) };
    // Made a moment ago, and empty, unless the mark arrived all the same: then it is in the journal.
    if store.delete_bucket().is_ok() {
        journal.removed(id)?;
    }
    Err(RunError::input(
        format!("cannot write to bucket '{bucket}', which was just made: {e}"),
        e.remedy().unwrap_or("Give credentials that may put and delete objects there"),
    ))
}

/// Whether not even the marker may be written: the server refuses everything, so that a run cannot leave anything.
pub fn nothing_is_allowed(
    store: &dyn ObjectStore,
    journal: &mut Journal,
    (target, bucket): (&str, &str),
    prefix: &str,
) -> Result<bool, RunError> {
    let prefix = with_slash(prefix);
    let marker = format!("{prefix}{MARKER}");
    let content = marker_content(journal.mark());
    let id = journal.creating(Thing::Prefix {
        target: target.into(),
        bucket: bucket.into(),
        prefix,
        marker: marker.clone(),
        content: content.clone(),
    })?;
    let forbidden = match store.put(&marker, content.as_bytes()) {
        Err(StoreFault::Forbidden(_)) => true,
        Err(_) => false,
        // What is written without a right to list cannot be cleaned up: this much can.
        Ok(()) if store.delete(&[Item::object(marker)]).is_ok_and(|held| held.is_empty()) => false,
        Ok(()) => return Ok(false),
    };
    journal.removed(id)?;
    Ok(forbidden)
}

pub fn with_slash(prefix: &str) -> String {
    if prefix.is_empty() || prefix.ends_with('/') { prefix.to_owned() } else { format!("{prefix}/") }
}

pub fn bucket_error(bucket: &str, fault: &StoreFault) -> RunError {
    let usual = match fault {
        StoreFault::NoSuchBucket => "Make it first, or let plimsoll make it with --create-bucket",
        StoreFault::Denied(_) | StoreFault::Forbidden(_) => {
            "Check the credentials, the region, and what they may do with this bucket"
        }
        _ => "Check the endpoint, and that it speaks S3",
    };
    RunError::input(format!("bucket '{bucket}': {fault}"), fault.remedy().unwrap_or(usual))
}
