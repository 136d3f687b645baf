//! The run's own place in a bucket: made here, in the order that lets a kill at any point be cleaned up.

use plimsoll_model::text::{clean, is_harmful};
use plimsoll_store::{Journal, Thing};

use super::proof::{BUCKET_MARKER, MARKER, bucket_content, marker_content};
use super::store::{Item, ObjectStore, StoreFault, Versioning};
use crate::error::SetupError;

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
) -> Result<Area, SetupError> {
    check_prefix(prefix)?;
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
        return Err(SetupError::input(
            format!("the prefix '{prefix}' of bucket '{bucket}' is not empty: it holds '{}'", clean(key)),
            "Choose another prefix: a run uses only one that it made itself",
        ));
    }
    // What others deleted is still there, and would go with what is ours.
    if versioning.keeps()
        && let Some(item) = store.versions(&prefix, None).map_err(|e| bucket_error(bucket, &e))?.items.first()
    {
        return Err(SetupError::input(
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
    if let Err(e) = store.put_new(&marker, content.as_bytes()) {
        // It may have arrived all the same, if it was a time-out: then it stays in the journal.
        if matches!(e, StoreFault::Denied(_) | StoreFault::Forbidden(_) | StoreFault::NoSuchBucket) {
            journal.removed(id)?;
        }
        return Err(SetupError::input(
            format!("cannot write to bucket '{bucket}': {e}"),
            e.remedy().unwrap_or("Give credentials that may put and delete objects there"),
        ));
    }
    if let Some(problem) =
        taken(store, (&prefix, &marker, &content), tell).map_err(|e| bucket_error(bucket, &e))?
    {
        // Nothing of this run is there but its marker, if that was not overwritten. It goes alone: what the usual cleaning up
        // would take along is the other's, so that nothing is left to that, even where the marker has to stay.
        let gone = match store.get(&marker) {
            Ok(Some(found)) if found == content.as_bytes() => {
                store.delete(&[Item::object(&marker)]).is_ok_and(|held| held.is_empty())
            }
            found => found.is_ok(),
        };
        if !gone {
            tell(format!("left behind: '{marker}' in bucket '{bucket}', if it is this run's"));
        }
        journal.removed(id)?;
        return Err(SetupError::input(
            format!("the prefix '{prefix}' of bucket '{bucket}' {problem}"),
            "Choose another prefix, or wait for the end of the other run: a run uses only a prefix that it made itself",
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

/// Why a prefix is not this run's alone, although its marker was just written: two runs may have found it empty at the same
/// time. What a server made of our condition is not asked: the marker is read back, and the prefix listed once more.
fn taken(
    store: &dyn ObjectStore,
    (prefix, marker, content): (&str, &str, &str),
    tell: &mut dyn FnMut(String),
) -> Result<Option<String>, StoreFault> {
    match store.get(marker) {
        Ok(Some(found)) if found == content.as_bytes() => {}
        Ok(Some(_)) => return Ok(Some("was just taken by another run, whose marker is there".into())),
        Ok(None) => return Ok(Some(format!("does not hold '{marker}', which was just written"))),
        // Who may write and not read can measure writes. What the list says is held against all the same.
        Err(StoreFault::Forbidden(_)) => tell(format!(
            "the marker '{marker}' may be written and not read by who asks: whether the prefix is this run's alone is known \
             from a list only, and what the run makes there will be left behind, as nothing is deleted without its marker"
        )),
        Err(e) => return Err(e),
    }
    let other = store.list(prefix, None, 2)?.keys.into_iter().find(|k| k != marker);
    Ok(other
        .map(|key| format!("was just taken by another run, or by somebody else: it holds '{}'", clean(&key))))
}

/// Refuses to begin where another run has overwritten the marker since it was written. A server that does not answer is
/// found out about by the load itself.
pub fn still_ours(store: &dyn ObjectStore, area: &Area, run: &str) -> Result<(), SetupError> {
    let marker = format!("{}{MARKER}", area.prefix);
    match store.get(&marker) {
        Ok(Some(found)) if found != marker_content(run).as_bytes() => Err(SetupError::input(
            format!("another run has taken the prefix '{}' of bucket '{}'", area.prefix, area.bucket),
            "Choose another prefix, or wait for the end of the other run",
        )),
        _ => Ok(()),
    }
}

/// Where runs have their areas by default, and data sets theirs.
const DEFAULT_AREA: &str = "plimsoll/";
const DATASETS: &str = "plimsoll/datasets/";

/// Refuses a prefix that cannot be a run's own place: one that could not be cleaned up, that servers may take for another,
/// or in which other runs have theirs.
pub fn check_prefix(prefix: &str) -> Result<(), SetupError> {
    let slashed = with_slash(prefix);
    let odd = |part: &str| part.is_empty() || part == "." || part == "..";
    let problem = if prefix.is_empty() {
        "is empty: the whole bucket is no place of a run's own, and could not be cleaned up".to_owned()
    } else if prefix.contains(is_harmful) {
        "has characters that do something else than being seen".to_owned()
    } else if slashed.trim_end_matches('/').split('/').any(odd) || slashed.ends_with("//") {
        "has a part that is empty, '.' or '..': servers and proxies take such a key for another".to_owned()
    } else if DEFAULT_AREA.starts_with(&slashed) {
        "is where runs have their places by default: what others have there would lie in this run's"
            .to_owned()
    } else if slashed.starts_with(DATASETS) {
        "is where data sets are kept".to_owned()
    } else {
        return Ok(());
    };
    Err(SetupError::input(
        format!("the prefix '{}' {problem}", clean(prefix)),
        "Name another prefix, such as --prefix bench/one, or none: then the run has one of its own",
    ))
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
) -> Result<(), SetupError> {
    let Err(e) = store.put(BUCKET_MARKER, bucket_content(journal.mark()).as_bytes()) else { return Ok(()) };
    // Made a moment ago, and empty, unless the mark arrived all the same: then it is in the journal.
    if store.delete_bucket().is_ok() {
        journal.removed(id)?;
    }
    Err(SetupError::input(
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
) -> Result<bool, SetupError> {
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
    // Of a run that may list: its marker is not to be overwritten by one that may not.
    if store.get(&marker).is_ok_and(|found| found.is_some()) {
        journal.removed(id)?;
        return Ok(false);
    }
    let forbidden = match store.put_new(&marker, content.as_bytes()) {
        Err(StoreFault::Forbidden(_)) => true,
        Err(_) | Ok(false) => false,
        // What is written without a right to list cannot be cleaned up: this much can.
        Ok(true) if store.delete(&[Item::object(marker)]).is_ok_and(|held| held.is_empty()) => false,
        Ok(true) => return Ok(false),
    };
    journal.removed(id)?;
    Ok(forbidden)
}

pub fn with_slash(prefix: &str) -> String {
    if prefix.is_empty() || prefix.ends_with('/') { prefix.to_owned() } else { format!("{prefix}/") }
}

pub fn bucket_error(bucket: &str, fault: &StoreFault) -> SetupError {
    let usual = match fault {
        StoreFault::NoSuchBucket => "Make it first, or let plimsoll make it with --create-bucket",
        StoreFault::Denied(_) | StoreFault::Forbidden(_) => {
            "Check the credentials, the region, and what they may do with this bucket"
        }
        _ => "Check the endpoint, and that it speaks S3",
    };
    SetupError::input(format!("bucket '{bucket}': {fault}"), fault.remedy().unwrap_or(usual))
}
