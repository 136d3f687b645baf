//! The run's own place in a bucket: made here, in the order that lets a kill at any point be cleaned up.

use plimsoll_model::text::{clean, is_harmful};
use plimsoll_store::{Journal, Thing};

use super::proof::{BUCKET_MARKER, MARKER, bucket_content, marker_content};
use super::store::{Item, ObjectStore, StoreFault, Versioning};
use crate::error::SetupError;

/// A prefix of ours, with its marker in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    /// Name of the target in the plan.
    pub target: String,
    /// The journal names it, so that cleaning up finds the way.
    pub bucket: String,
    /// Ends in `/`.
    pub prefix: String,
    /// As it was when the marker was put.
    pub versioning: Versioning,
}

/// Why there is no area.
#[derive(Debug)]
pub struct NoArea {
    /// In words for the user.
    pub error: SetupError,
    /// The server may make the bucket still, or may have made it: what is not there now proves nothing, and the journal keeps it.
    pub unsure: bool,
}

impl NoArea {
    fn input(problem: String, remedy: &str) -> Self {
        SetupError::input(problem, remedy).into()
    }
}

impl<E: Into<SetupError>> From<E> for NoArea {
    fn from(error: E) -> Self {
        Self { error: error.into(), unsure: false }
    }
}

impl std::fmt::Display for NoArea {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

/// Makes the bucket if it was asked for, then the marker under the prefix. Each is in the journal before it exists.
pub fn open_area(
    store: &dyn ObjectStore,
    journal: &mut Journal,
    (target, bucket): (&str, &str),
    prefix: &str,
    create_bucket: bool,
    tell: &mut dyn FnMut(String),
) -> Result<Area, NoArea> {
    check_prefix(prefix)?;
    let exists = store.bucket_exists().map_err(|e| bucket_error(bucket, &e))?;
    if !exists {
        if !create_bucket {
            return Err(bucket_error(bucket, &StoreFault::NoSuchBucket).into());
        }
        let id = journal.creating(Thing::Bucket { target: target.into(), bucket: bucket.into() })?;
        if let Err(e) = store.create_bucket() {
            // Nobody heard the answer: it may be there all the same, or be there in a moment. Then it stays in the journal.
            let unsure = e.may_pass();
            if unsure {
                tell(format!("left behind: bucket '{bucket}', if the server created it after all"));
            } else {
                journal.removed(id)?;
            }
            return Err(NoArea { error: bucket_error(bucket, &e), unsure });
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
        return Err(NoArea::input(
            format!("the prefix '{prefix}' of bucket '{bucket}' is not empty: it contains '{}'", clean(key)),
            "Choose another prefix: a run only uses a prefix that it created",
        ));
    }
    // What others deleted is still there, and would go with what is ours.
    if versioning.keeps()
        && let Some(item) = store.versions(&prefix, None).map_err(|e| bucket_error(bucket, &e))?.items.first()
    {
        return Err(NoArea::input(
            format!(
                "the prefix '{prefix}' of bucket '{bucket}' contains versions of deleted objects, such as '{}'",
                clean(&item.key)
            ),
            "Choose another prefix: a run only uses a prefix that it created",
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
        return Err(NoArea::input(
            format!("cannot write to bucket '{bucket}': {e}"),
            e.remedy().unwrap_or("Use credentials with permission to put and delete objects there"),
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
        return Err(NoArea::input(
            format!("the prefix '{prefix}' of bucket '{bucket}' {problem}"),
            "Choose another prefix, or wait for the other run to end: a run only uses a prefix that it created",
        ));
    }
    if is_unknown && store.shows_versions() {
        match store.versions(&prefix, None) {
            Ok(_) => versioning.status = "according to its answers".into(),
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
        Ok(Some(_)) => return Ok(Some("was just taken by another run, whose marker is in it".into())),
        Ok(None) => return Ok(Some(format!("does not contain '{marker}', which was just written"))),
        // Who may write and not read can measure writes. What the list says is held against all the same.
        Err(StoreFault::Forbidden(_)) => tell(format!(
            "these credentials can write the marker '{marker}' but not read it. Only the listing shows that the \
             prefix is this run's alone, and what the run creates there will be left behind, because nothing is \
             deleted without its marker"
        )),
        Err(e) => return Err(e),
    }
    let other = store.list(prefix, None, 2)?.keys.into_iter().find(|k| k != marker);
    Ok(other.map(|key| {
        format!("was just taken by another run or by somebody else: it contains '{}'", clean(&key))
    }))
}

/// Refuses to begin where another run has overwritten the marker since it was written. A server that does not answer is
/// found out about by the load itself.
pub fn still_ours(store: &dyn ObjectStore, area: &Area, run: &str) -> Result<(), SetupError> {
    let marker = format!("{}{MARKER}", area.prefix);
    match store.get(&marker) {
        Ok(Some(found)) if found != marker_content(run).as_bytes() => Err(SetupError::input(
            format!("another run has taken the prefix '{}' of bucket '{}'", area.prefix, area.bucket),
            "Choose another prefix, or wait for the other run to end",
        )),
        _ => Ok(()),
    }
}

/// Where runs have their areas by default, and data sets theirs.
const DEFAULT_AREA: &str = "plimsoll/";
pub(super) const DATASETS: &str = "plimsoll/datasets/";

/// Refuses a prefix that cannot be a run's own place: one that could not be cleaned up, that servers may take for another,
/// or in which other runs have theirs.
pub fn check_prefix(prefix: &str) -> Result<(), SetupError> {
    let slashed = with_slash(prefix);
    let odd = |part: &str| part.is_empty() || part == "." || part == "..";
    let problem = if prefix.is_empty() {
        "is empty: a run needs a prefix of its own, and the whole bucket could not be cleaned up".to_owned()
    } else if prefix.contains(is_harmful) {
        "contains non-printing characters".to_owned()
    } else if slashed.trim_end_matches('/').split('/').any(odd) || slashed.ends_with("//") {
        "has a part that is empty, '.' or '..': servers and proxies may change such keys".to_owned()
    } else if DEFAULT_AREA.starts_with(&slashed) {
        "is where runs keep their objects by default: this run's prefix would contain those of others"
            .to_owned()
    } else if slashed.starts_with(DATASETS) {
        "is where data sets are stored".to_owned()
    } else {
        return Ok(());
    };
    Err(SetupError::input(
        format!("the prefix '{}' {problem}", clean(prefix)),
        "Choose another prefix, such as --prefix bench/one, or omit --prefix: the run then makes its own",
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
        format!("cannot write to bucket '{bucket}', which was just created: {e}"),
        e.remedy().unwrap_or("Use credentials with permission to put and delete objects there"),
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

/// So that `a` does not also stand for what lies under `ab`. Empty stays empty: the whole bucket.
pub fn with_slash(prefix: &str) -> String {
    if prefix.is_empty() || prefix.ends_with('/') { prefix.to_owned() } else { format!("{prefix}/") }
}

/// With the remedy that fits: to make it, to give other keys, or what the server's answer leads to.
pub fn bucket_error(bucket: &str, fault: &StoreFault) -> SetupError {
    let usual = match fault {
        StoreFault::NoSuchBucket => "Create it first, or use --create-bucket",
        StoreFault::Denied(_) | StoreFault::Forbidden(_) => {
            "Check the credentials, their permissions on this bucket, and the region"
        }
        _ => "Check the endpoint, and that it is an S3 server",
    };
    SetupError::input(format!("bucket '{bucket}': {fault}"), fault.remedy().unwrap_or(usual))
}
