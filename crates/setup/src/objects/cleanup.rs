//! Cleaning up in a bucket what the journal says is there.

use std::collections::HashSet;

use plimsoll_engine::target::s3::keys::is_of_shape;
use plimsoll_model::text::clean as clean_text;
use plimsoll_store::{Journal, StoreError, Thing};

use super::patience::{Waiting, patiently};
use super::proof;
use super::store::{Item, ObjectStore, StoreFault, Upload};
use super::sweep::Sweep;

/// What became of one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cleaned {
    /// Gone, with so many objects.
    Gone {
        /// Of the run, the marker not among them.
        objects: u64,
    },
    /// Gone, with so many objects; beside them lies what is not the run's, in words: it stays.
    GoneBeside {
        /// Of the run, the marker not among them.
        objects: u64,
        /// What lies there besides, as a sentence has it.
        others: String,
    },
    /// Left as it is, and why.
    Left(String),
}

/// Removes one journalled thing of a bucket, waiting for a server that is away. `progress` gets the number of objects
/// deleted so far, and says whether to go on.
pub fn clean(
    store: &dyn ObjectStore,
    journal: &mut Journal,
    (id, thing, uploads): (u64, &Thing, bool),
    waiting: &mut dyn Waiting,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Cleaned, StoreError> {
    let run = journal.mark().to_owned();
    if let Some(why) = proof::doubt(thing, &run) {
        return Ok(Cleaned::Left(why));
    }
    let mut unmarked = false;
    let mut deleted = 0;
    let mut page = HashSet::new();
    let done = patiently(waiting, |forward| {
        let before = deleted;
        let done = clean_once(store, (thing, &run, &mut unmarked), (uploads, &mut page), &mut |n| {
            deleted += n;
            progress(deleted)
        });
        *forward = deleted > before;
        done
    });
    match done {
        Ok(Attempt::Gone(others)) => {
            journal.removed(id)?;
            Ok(match others {
                None => Cleaned::Gone { objects: deleted },
                Some(others) => Cleaned::GoneBeside { objects: deleted, others },
            })
        }
        Err(StoreFault::NoSuchBucket) => {
            journal.removed(id)?;
            Ok(Cleaned::Gone { objects: deleted })
        }
        Ok(Attempt::Stays(why)) => Ok(Cleaned::Left(why)),
        Err(e) => Ok(Cleaned::Left(e.to_string())),
    }
}

/// What one attempt came to.
enum Attempt {
    /// Gone; what lies beside it and is not the run's, in words.
    Gone(Option<String>),
    /// Why it has to stay.
    Stays(String),
}

impl From<Option<String>> for Attempt {
    fn from(why: Option<String>) -> Self {
        why.map_or(Self::Gone(None), Self::Stays)
    }
}

/// One attempt. `deleted` is told of each batch of objects.
fn clean_once(
    store: &dyn ObjectStore,
    (thing, run, unmarked): (&Thing, &str, &mut bool),
    (uploads, page): (bool, &mut HashSet<Item>),
    deleted: &mut dyn FnMut(u64) -> bool,
) -> Result<Attempt, StoreFault> {
    match thing {
        Thing::Prefix { prefix, marker, content, .. } => {
            clean_prefix(store, (prefix, marker, content), (uploads, page), deleted)
        }
        Thing::Bucket { .. } => proof::clean_bucket(store, run, unmarked).map(Attempt::from),
        Thing::Upload { .. } => Ok(proof::doubt(thing, run).into()),
        Thing::File { .. }
        | Thing::Directory { .. }
        | Thing::Tree { .. }
        | Thing::Process { .. }
        | Thing::Group { .. }
        | Thing::Mount { .. }
        | Thing::Namespace { .. }
        | Thing::Link { .. } => Ok(Attempt::Stays("it is not in a bucket".into())),
    }
}

/// Deletes what the run wrote under a prefix whose marker is its own, the marker last: a kill in between can be resumed.
fn clean_prefix(
    store: &dyn ObjectStore,
    (prefix, marker, content): (&str, &str, &str),
    (uploads, page): (bool, &mut HashSet<Item>),
    deleted: &mut dyn FnMut(u64) -> bool,
) -> Result<Attempt, StoreFault> {
    // A prefix that is empty or has no end of its own would reach beyond what is ours.
    if !prefix.ends_with('/') || !marker.starts_with(prefix) {
        return Ok(Attempt::Stays(format!("'{prefix}' is not a prefix that plimsoll creates")));
    }
    let found = store.get(marker)?;
    let versions = keeps_versions(store, prefix)?;
    match found {
        Some(found) if found == content.as_bytes() => {}
        Some(_) => {
            return Ok(Attempt::Stays(format!("the marker '{marker}' is not the one that this run wrote")));
        }
        None if versions && has_version(store, marker, content)? => {}
        None if nothing_under(store, prefix, versions)? => return Ok(Attempt::Gone(None)),
        None => {
            return Ok(Attempt::Stays(format!(
                "the marker '{marker}' is missing, so the objects under '{prefix}' may not be the run's"
            )));
        }
    }
    let swept = Sweep { prefix, marker, versions }.run(store, page, deleted)?;
    if swept.marker.is_empty() {
        // The marker is there: it was read above. A listing without it, as of a server that is just starting,
        // says nothing about what else is there.
        return Err(StoreFault::Away(format!("the listing lacks '{marker}', which exists").into()));
    }
    if uploads && let Some(why) = abort_uploads(store, prefix)? {
        return Ok(Attempt::Stays(why));
    }
    let held = match swept.held.is_empty() {
        true => store.delete(&swept.marker)?,
        false => swept.held,
    };
    if held.is_empty() && !versions && store.shows_versions() {
        return Ok(Attempt::Stays(
            "the bucket keeps versions, and these keys are not allowed to list them, so versions and delete markers \
             of the removed objects remain; remove them with keys that are allowed to (s3:ListBucketVersions, \
             s3:DeleteObjectVersion)"
                .into(),
        ));
    }
    let what = if versions { "versions" } else { "objects" };
    if let Some(first) = held.first() {
        return Ok(Attempt::Stays(format!(
            "{} {what} cannot be removed, the first is '{}': {}",
            held.len(),
            clean_text(&first.item.key),
            first.why
        )));
    }
    Ok(Attempt::Gone(swept.first_other.map(|first| {
        format!(
            "{} {what} there do not belong to this run and were left in place, the first is '{}'",
            swept.others,
            clean_text(&first)
        )
    })))
}

/// Whether versions have to be removed. A server that does not answer that may still list them.
fn keeps_versions(store: &dyn ObjectStore, prefix: &str) -> Result<bool, StoreFault> {
    match store.versioning() {
        Ok(v) => Ok(v.keeps()),
        Err(StoreFault::Unsupported) => Ok(false),
        Err(_) => Ok(store.versions(prefix, None).is_ok()),
    }
}

/// Whether a version of the marker has our content: its latest one may have been deleted.
fn has_version(store: &dyn ObjectStore, marker: &str, content: &str) -> Result<bool, StoreFault> {
    for item in store.versions(marker, None)?.items.iter().filter(|i| i.key == marker) {
        if let Some(version) = &item.version
            && store.get_version(marker, version)?.is_some_and(|c| c == content.as_bytes())
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn nothing_under(store: &dyn ObjectStore, prefix: &str, versions: bool) -> Result<bool, StoreFault> {
    let page = store.list(prefix, None, 1)?;
    let none = page.keys.is_empty() && page.next.is_none();
    Ok(none && (!versions || store.versions(prefix, None)?.items.is_empty()))
}

/// Takes back unfinished uploads under the prefix: why some may be left, or `None`. MinIO takes a prefix of uploads for a whole
/// key and then shows none, so that all are asked for, too, and ours picked out.
fn abort_uploads(store: &dyn ObjectStore, prefix: &str) -> Result<Option<String>, StoreFault> {
    let mut found: Vec<Upload> = Vec::new();
    for ask in [prefix, ""] {
        match store.uploads(ask) {
            Ok(all) => {
                found.extend(all.into_iter().filter(|u| u.key.strip_prefix(prefix).is_some_and(is_of_shape)))
            }
            // A server without multipart uploads has none.
            Err(StoreFault::Unsupported) => return Ok(None),
            Err(e) if e.may_pass() => return Err(e),
            Err(e) => {
                return Ok(Some(format!(
                    "the objects were removed, but unfinished uploads cannot be listed: {e}"
                )));
            }
        }
        if !found.is_empty() {
            break;
        }
    }
    for upload in found {
        match store.abort_upload(&upload) {
            Ok(()) | Err(StoreFault::NoSuchKey) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::memory::Memory;
    use super::super::patience::{PATIENCE, tests::Virtual};
    use super::super::{Area, MARKER, open_area};
    use super::*;

    fn journal() -> (tempfile::TempDir, Journal) {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(&dir.path().join("journal")).unwrap();
        (dir, journal)
    }

    /// A key as a workload of the run has it.
    fn key(area: &Area, n: u64) -> String {
        format!("{}4KiB/{n:016x}", area.prefix)
    }

    fn clean_all(store: &Memory, journal: &mut Journal) -> Vec<Cleaned> {
        let mut clock = Virtual::default();
        let pending = journal.pending();
        let mut one = |(id, t): &(u64, Thing)| {
            clean(store, journal, (*id, t, true), &mut clock, &mut |_| true).unwrap()
        };
        pending.iter().map(&mut one).collect()
    }

    #[test]
    fn a_bucket_is_left_as_it_was() {
        let store = Memory::with_bucket();
        store.put("theirs", b"x").unwrap();
        store.put("plimsoll/other/.plimsoll", b"another run").unwrap();
        let before = store.keys();
        let (_dir, mut j) = journal();
        let area = open_area(&store, &mut j, ("t", "b"), "plimsoll/id", false, &mut |_| {}).unwrap();
        for i in 0..2500 {
            store.put(&key(&area, i), b"o").unwrap();
        }
        store.begin_upload(&key(&area, 7));
        store.begin_upload("theirs-too");
        assert_eq!(clean_all(&store, &mut j), [Cleaned::Gone { objects: 2500 }]);
        assert_eq!(store.keys(), before);
        assert_eq!(store.uploads("").unwrap().len(), 1, "a foreign upload goes on");
        assert!(j.pending().is_empty());
    }

    #[test]
    fn what_others_put_under_our_prefix_meanwhile_stays_and_is_told() {
        let store = Memory::with_bucket();
        let (_dir, mut j) = journal();
        let area = open_area(&store, &mut j, ("t", "b"), "mine", false, &mut |_| {}).unwrap();
        let theirs = [
            "mine/20261122-053127-d0ae/.plimsoll",
            "mine/20261122-053127-d0ae/4KiB/0123456789abcdef",
            "mine/4KiB/.plimsoll",
            "mine/4KiB/10000000/0123456789abcdef",
            "mine/report.pdf",
            "mine/4KiB/report.pdf",
        ];
        theirs.iter().for_each(|k| store.put(k, b"x").unwrap());
        store.begin_upload("mine/video.mp4");
        (0..2500).for_each(|i| store.put(&key(&area, i), b"o").unwrap());
        let done = clean_all(&store, &mut j);
        assert!(
            matches!(&done[..], [Cleaned::GoneBeside { objects: 2500, others }]
                if others.starts_with("6 objects") && others.contains("mine/20261122-053127-d0ae/")),
            "{done:?}"
        );
        let mut left: Vec<String> = theirs.iter().map(|k| k.to_string()).collect();
        left.sort();
        assert_eq!(store.keys(), left);
        assert_eq!(store.uploads("").unwrap().len(), 1);
        assert!(j.pending().is_empty());
    }

    #[test]
    fn a_prefix_that_another_run_takes_at_the_same_time_is_refused_and_left() {
        // Both listed it before either wrote; with and without a server that knows the condition.
        for store in [Memory::with_bucket(), Memory::without_conditions()] {
            let (_dir, mut j) = journal();
            store.be_raced("p/.plimsoll", b"made by plimsoll, run another");
            let e = open_area(&store, &mut j, ("t", "b"), "p", false, &mut |_| {}).unwrap_err().to_string();
            assert!(e.contains("another run"), "{e}");
            clean_all(&store, &mut j);
            assert_eq!(store.keys(), ["p/.plimsoll"], "the other's marker stays");
        }
        // The other was first: its marker came between our listing and our own.
        let store = Memory::with_bucket();
        store.put("p/.plimsoll", b"made by plimsoll, run another").unwrap();
        store.list_nothing(1);
        let (_dir, mut j) = journal();
        let e = open_area(&store, &mut j, ("t", "b"), "p", false, &mut |_| {}).unwrap_err().to_string();
        assert!(e.contains("another run"), "{e}");
        assert_eq!(store.get("p/.plimsoll").unwrap().unwrap(), b"made by plimsoll, run another");
        assert!(j.pending().is_empty());
        // On a server that ignores the condition the other's objects tell of it.
        let store = Memory::without_conditions();
        store.put("p/.plimsoll", b"made by plimsoll, run another").unwrap();
        store.put("p/4KiB/0123456789abcdef", b"live").unwrap();
        store.list_nothing(1);
        let (_dir, mut j) = journal();
        let e = open_area(&store, &mut j, ("t", "b"), "p", false, &mut |_| {}).unwrap_err().to_string();
        assert!(e.contains("another run"), "{e}");
        clean_all(&store, &mut j);
        assert_eq!(store.keys(), ["p/4KiB/0123456789abcdef"], "what is the other's stays");
    }

    #[test]
    fn a_bucket_that_may_have_been_made_is_told_and_stays_in_the_journal() {
        let store = Memory::default();
        store.make_without_an_answer();
        let (_dir, mut j) = journal();
        let mut told = Vec::new();
        let e = open_area(&store, &mut j, ("t", "b"), "p", true, &mut |t| told.push(t)).unwrap_err();
        assert!(
            e.unsure && told == ["left behind: bucket 'b', if the server created it after all"],
            "{told:?}"
        );
        assert!(matches!(&j.pending()[..], [(_, Thing::Bucket { .. })]), "{:?}", j.pending());
    }

    #[test]
    fn a_bucket_of_ours_goes_only_when_empty() {
        let store = Memory::default();
        let (_dir, mut j) = journal();
        assert!(
            open_area(&store, &mut j, ("t", "b"), "p", false, &mut |_| {})
                .unwrap_err()
                .to_string()
                .contains("--create-bucket")
        );
        open_area(&store, &mut j, ("t", "b"), "p", true, &mut |_| {}).unwrap();
        store.put("someone-elses", b"x").unwrap();
        let done = clean_all(&store, &mut j);
        assert_eq!(done[0], Cleaned::Gone { objects: 0 });
        assert!(matches!(&done[1], Cleaned::Left(why) if why.contains("other objects")));
        store.delete(&[Item::object("someone-elses")]).unwrap();
        assert_eq!(clean_all(&store, &mut j), [Cleaned::Gone { objects: 0 }]);
        assert!(!store.bucket_exists().unwrap());
    }

    #[test]
    fn without_our_marker_nothing_is_deleted() {
        let store = Memory::with_bucket();
        let (_dir, mut j) = journal();
        let area = open_area(&store, &mut j, ("t", "b"), "p", false, &mut |_| {}).unwrap();
        store.put("p/precious", b"x").unwrap();
        let marker = format!("{}{MARKER}", area.prefix);
        for content in [Some(&b"another"[..]), None] {
            match content {
                Some(c) => store.put(&marker, c).unwrap(),
                None => drop(store.delete(&[Item::object(&marker)]).unwrap()),
            }
            assert!(matches!(&clean_all(&store, &mut j)[..], [Cleaned::Left(_)]));
            assert!(store.keys().contains(&"p/precious".to_owned()));
        }
    }

    #[test]
    fn a_prefix_in_use_is_refused() {
        let store = Memory::with_bucket();
        store.put("p/x", b"x").unwrap();
        let (_dir, mut j) = journal();
        let e = open_area(&store, &mut j, ("t", "b"), "p", false, &mut |_| {}).unwrap_err().to_string();
        assert!(e.contains("not empty") && e.contains("p/x"), "{e}");
        assert!(j.pending().is_empty());
    }

    #[test]
    fn a_server_without_uploads_is_cleaned_all_the_same() {
        let store = Memory::without_uploads();
        let (_dir, mut j) = journal();
        open_area(&store, &mut j, ("t", "b"), "p", false, &mut |_| {}).unwrap();
        assert_eq!(clean_all(&store, &mut j), [Cleaned::Gone { objects: 0 }]);
    }

    #[test]
    fn a_server_that_comes_back_is_cleaned_and_one_that_does_not_is_told() {
        let store = Memory::with_bucket();
        let (_dir, mut j) = journal();
        let area = open_area(&store, &mut j, ("t", "b"), "p", false, &mut |_| {}).unwrap();
        for i in 0..1500 {
            store.put(&key(&area, i), b"o").unwrap();
        }
        store.be_away_for(u32::MAX);
        assert!(
            matches!(&clean_all(&store, &mut j)[..], [Cleaned::Left(why)] if why.contains("cannot be reached"))
        );
        assert_eq!(j.pending().len(), 1, "cleanup finds it again");
        // Away at first, and once more in the middle of it.
        store.be_away_for(5);
        store.be_away_after(4, 3);
        let mut clock = Virtual::default();
        let (id, thing) = j.pending().remove(0);
        let done = clean(&store, &mut j, (id, &thing, true), &mut clock, &mut |_| true).unwrap();
        assert_eq!(done, Cleaned::Gone { objects: 1500 });
        assert!(clock.now < PATIENCE && clock.pauses == 8, "{clock:?}");
        assert!(store.keys().is_empty());
    }

    #[test]
    fn a_listing_that_lacks_the_marker_is_not_believed() {
        let store = Memory::with_bucket();
        let (_dir, mut j) = journal();
        let area = open_area(&store, &mut j, ("t", "b"), "p", false, &mut |_| {}).unwrap();
        store.put(&key(&area, 1), b"o").unwrap();
        store.list_nothing(2);
        assert_eq!(clean_all(&store, &mut j), [Cleaned::Gone { objects: 1 }]);
        assert!(store.keys().is_empty());
    }

    #[test]
    fn what_is_locked_is_gone_round() {
        let store = Memory::with_bucket();
        let (_dir, mut j) = journal();
        let area = open_area(&store, &mut j, ("t", "b"), "p", false, &mut |_| {}).unwrap();
        for i in 0..2500 {
            let key = key(&area, i);
            store.put(&key, b"o").unwrap();
            // A whole page of them at the beginning, and some later.
            if i < 1100 || i % 100 == 7 {
                store.lock(&key);
            }
        }
        let left = clean_all(&store, &mut j);
        assert!(
            matches!(&left[..], [Cleaned::Left(why)] if why.starts_with("1114 objects cannot")),
            "{left:?}"
        );
        assert_eq!(store.keys().len(), 1115, "the locked ones and the marker");
        assert_eq!(j.pending().len(), 1);
    }

    #[test]
    fn a_server_that_deletes_nothing_is_not_asked_for_ever() {
        let store = Memory::with_bucket();
        let (_dir, mut j) = journal();
        let area = open_area(&store, &mut j, ("t", "b"), "p", false, &mut |_| {}).unwrap();
        store.put(&key(&area, 1), b"o").unwrap();
        store.keep_all();
        let left = clean_all(&store, &mut j);
        assert!(matches!(&left[..], [Cleaned::Left(why)] if why.contains("still listed")), "{left:?}");
    }

    #[test]
    fn it_stops_when_it_is_told_to() {
        let store = Memory::with_bucket();
        let (_dir, mut j) = journal();
        let area = open_area(&store, &mut j, ("t", "b"), "p", false, &mut |_| {}).unwrap();
        for i in 0..2500 {
            store.put(&key(&area, i), b"o").unwrap();
        }
        let (id, thing) = j.pending().remove(0);
        let mut clock = Virtual::default();
        let done = clean(&store, &mut j, (id, &thing, false), &mut clock, &mut |n| n < 500).unwrap();
        assert!(matches!(&done, Cleaned::Left(why) if why.contains("Ctrl-C")), "{done:?}");
        assert!(store.keys().len() > 1000 && j.pending().len() == 1);
    }
}
