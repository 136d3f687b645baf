//! A bucket for somebody else's orders: what is put, removed and read beside listings is held to the same rules as where the one who
//! orders does it himself. Nothing here believes the one who orders: what is the run's is looked at in the bucket.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use plimsoll_engine::admin::GiveUp;
use plimsoll_engine::target::s3::keys::is_of_shape;
use plimsoll_model::text::clean;

use super::area::check_prefix;
use super::dataset::{MANIFEST, is_of_dataset};
use super::proof::{BUCKET_MARKER, MARKER, bucket_content, is_of, marker_content};
use super::store::{Held, Item, ItemPage, KeyPage, ObjectStore, StoreFault, Told, Upload, Versioning};

/// A bucket in which one run may do what a run does: mark a prefix that nobody else has, and remove what it can have written under a
/// prefix that carries its marker.
#[derive(Debug)]
pub struct Guarded<S> {
    inner: S,
    /// Of the run; in its markers.
    mark: String,
    /// The plan has the run make the bucket, so that it may be removed, too.
    makes_bucket: bool,
    /// Prefixes in which the marker was seen, or put by us.
    proven: RefCell<BTreeSet<String>>,
    /// The bucket was not there, and we made it; or the run's marker of it was seen in it.
    ours: Cell<bool>,
}

fn refused(what: String) -> StoreFault {
    StoreFault::Other(Told { what, remedy: "Clean up manually, if it belongs to this run".into() })
}

impl<S: ObjectStore> Guarded<S> {
    /// `mark`: of the run that orders. `makes_bucket`: its plan asks for the bucket to be made.
    pub fn new(inner: S, mark: &str, makes_bucket: bool) -> Self {
        Self {
            inner,
            mark: mark.to_owned(),
            makes_bucket,
            proven: RefCell::default(),
            ours: Cell::new(false),
        }
    }

    /// The bucket itself, for what only asks.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// An object of the name of a marker was read or put: whether its prefix is the run's.
    fn note(&self, key: &str, body: &[u8]) -> bool {
        if key == BUCKET_MARKER && body == bucket_content(&self.mark).as_bytes() {
            self.ours.set(true);
        }
        let Some(prefix) = key.strip_suffix(MARKER).filter(|p| p.ends_with('/')) else { return false };
        let ours = std::str::from_utf8(body).is_ok_and(|text| is_of(text, &self.mark));
        if ours {
            self.proven.borrow_mut().insert(prefix.to_owned());
        }
        ours
    }

    /// The run's prefix that a key lies under, as an object of the shape that runs write, or as its marker.
    fn is_ours(&self, key: &str) -> Result<bool, StoreFault> {
        // WORD/HEX and WORD/DIRECTORY/HEX have their prefix two or three steps up, and a marker one.
        let ends = key.char_indices().rev().filter(|(_, c)| *c == '/').map(|(at, _)| at + 1);
        for (prefix, below) in ends.take(3).map(|at| key.split_at(at)) {
            if below != MARKER && !is_of_shape(below) {
                continue;
            }
            let known = self.proven.borrow().contains(prefix);
            if known {
                return Ok(true);
            }
            let marker = format!("{prefix}{MARKER}");
            if self.inner.get(&marker)?.is_some_and(|body| self.note(&marker, &body)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What a run puts outside of its load: markers, and what describes a data set.
    fn check_put(&self, key: &str, body: &[u8]) -> Result<(), StoreFault> {
        if is_of_dataset(key, body) {
            return Ok(());
        }
        // In a bucket that was there before it would be the first step to the removal of that.
        if key == BUCKET_MARKER && self.may_remove() && body == bucket_content(&self.mark).as_bytes() {
            return Ok(());
        }
        let prefix = key.strip_suffix(MARKER).unwrap_or_default();
        let is_marker = body == marker_content(&self.mark).as_bytes() && prefix.ends_with('/');
        if !is_marker || check_prefix(prefix).is_err() {
            return Err(refused(format!("'{}' is nothing that a run puts there", clean(key))));
        }
        // Who may not list is told so by the one who orders; what is there would show.
        match self.inner.list(prefix, None, 2) {
            Ok(page) => match page.keys.iter().find(|k| *k != key) {
                Some(other) => Err(refused(format!(
                    "the prefix '{}' is not empty: it contains '{}'",
                    clean(prefix),
                    clean(other)
                ))),
                None => Ok(()),
            },
            Err(_) => Ok(()),
        }
    }

    /// The plan has the bucket made, and it is known to be the run's.
    fn may_remove(&self) -> bool {
        self.makes_bucket && self.ours.get()
    }

    fn check_read(&self, key: &str) -> Result<(), StoreFault> {
        let name = key.rsplit('/').next().unwrap_or(key);
        if [MARKER, BUCKET_MARKER, MANIFEST].contains(&name) {
            return Ok(());
        }
        Err(refused(format!("'{}' is nothing that a run reads there", clean(key))))
    }
}

impl<S: ObjectStore> ObjectStore for Guarded<S> {
    fn bucket_exists(&self) -> Result<bool, StoreFault> {
        self.inner.bucket_exists()
    }
    fn create_bucket(&self) -> Result<(), StoreFault> {
        if !self.makes_bucket {
            return Err(refused("the plan makes no bucket".into()));
        }
        // Some servers say yes for a bucket that its owner has already.
        let was_there = self.inner.bucket_exists()?;
        self.inner.create_bucket()?;
        if !was_there {
            self.ours.set(true);
        }
        Ok(())
    }
    fn delete_bucket(&self) -> Result<(), StoreFault> {
        if !self.makes_bucket {
            return Err(refused("the plan makes no bucket, so none is removed".into()));
        }
        if !self.may_remove() {
            return Err(refused("the bucket is not known to be this run's, so it is not removed".into()));
        }
        self.inner.delete_bucket()
    }
    fn put(&self, key: &str, body: &[u8]) -> Result<(), StoreFault> {
        self.check_put(key, body)?;
        self.inner.put(key, body)?;
        self.note(key, body);
        Ok(())
    }
    fn put_new(&self, key: &str, body: &[u8]) -> Result<bool, StoreFault> {
        self.check_put(key, body)?;
        let made = self.inner.put_new(key, body)?;
        if made {
            self.note(key, body);
        }
        Ok(made)
    }
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreFault> {
        self.check_read(key)?;
        let found = self.inner.get(key)?;
        if let Some(body) = &found {
            self.note(key, body);
        }
        Ok(found)
    }
    fn list(&self, prefix: &str, from: Option<&str>, most: u32) -> Result<KeyPage, StoreFault> {
        self.inner.list(prefix, from, most)
    }
    fn versioning(&self) -> Result<Versioning, StoreFault> {
        self.inner.versioning()
    }
    fn versions(&self, prefix: &str, from: Option<&(String, String)>) -> Result<ItemPage, StoreFault> {
        self.inner.versions(prefix, from)
    }
    fn shows_versions(&self) -> bool {
        self.inner.shows_versions()
    }
    fn get_version(&self, key: &str, version: &str) -> Result<Option<Vec<u8>>, StoreFault> {
        self.check_read(key)?;
        let found = self.inner.get_version(key, version)?;
        if let Some(body) = &found {
            self.note(key, body);
        }
        Ok(found)
    }
    fn delete(&self, items: &[Item]) -> Result<Vec<Held>, StoreFault> {
        for item in items {
            let ours = match item.key.as_str() {
                BUCKET_MARKER => {
                    let found = self.inner.get(BUCKET_MARKER)?;
                    found.is_none_or(|body| {
                        self.note(BUCKET_MARKER, &body);
                        body == bucket_content(&self.mark).as_bytes()
                    })
                }
                key => self.is_ours(key)?,
            };
            if !ours {
                return Err(refused(format!("'{}' is not known to be this run's", clean(&item.key))));
            }
        }
        self.inner.delete(items)
    }
    fn give_up_when(&self, end: GiveUp) {
        self.inner.give_up_when(end);
    }
    fn uploads(&self, prefix: &str) -> Result<Vec<Upload>, StoreFault> {
        self.inner.uploads(prefix)
    }
    fn abort_upload(&self, upload: &Upload) -> Result<(), StoreFault> {
        if !self.is_ours(&upload.key)? {
            return Err(refused(format!("'{}' is not known to be this run's", clean(&upload.key))));
        }
        self.inner.abort_upload(upload)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_store::Journal;

    use super::super::memory::Memory;
    use super::super::patience::tests::Virtual;
    use super::super::{Cleaned, clean as clean_thing, open_area};
    use super::*;

    const MARK: &str = "20261122-053127-d0ae.0123456789abcdef0123456789abcdef";

    fn journal() -> (tempfile::TempDir, Journal) {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(&dir.path().join("journal")).unwrap();
        (dir, journal)
    }

    #[test]
    fn what_a_run_does_is_let_through_from_its_claim_to_its_end() {
        let (_dir, mut j) = journal();
        let store = Guarded::new(Memory::default(), j.mark(), true);
        let area = open_area(&store, &mut j, ("t", "b"), "plimsoll/id", true, &mut |_| {}).unwrap();
        let objects = (0..1500).map(|n| format!("{}4KiB/{n:016x}", area.prefix));
        objects.for_each(|key| store.inner().put(&key, b"o").unwrap());
        store.inner().begin_upload(&format!("{}4KiB/{:016x}", area.prefix, 7));
        // By another one, who has seen nothing of it.
        let next = Guarded::new(store.inner, j.mark(), true);
        let mut clock = Virtual::default();
        let mut things = Vec::new();
        // The prefix, and then the bucket that it is in.
        for (id, thing) in j.pending() {
            things.push(clean_thing(&next, &mut j, (id, &thing, true), &mut clock, &mut |_| true).unwrap());
        }
        assert!(matches!(things[..], [Cleaned::Gone { objects: 1500 }, Cleaned::Gone { .. }]), "{things:?}");
        assert!(!next.bucket_exists().unwrap());
    }

    #[test]
    fn what_is_anybodys_is_neither_read_nor_removed_nor_overwritten() {
        let memory = Memory::with_bucket();
        for key in ["theirs", "data/4KiB/0123456789abcdef", "other/.plimsoll"] {
            memory.put(key, b"precious").unwrap();
        }
        memory.begin_upload("data/4KiB/0123456789abcdef");
        let before = memory.keys();
        let store = Guarded::new(memory, MARK, false);
        let marker = marker_content(MARK);
        for (key, body) in [
            ("theirs", "x"),
            ("data/.plimsoll", marker.as_str()),
            (".plimsoll", &marker),
            ("plimsoll/.plimsoll", &marker),
            ("new/.plimsoll", "made by plimsoll, run another"),
            (BUCKET_MARKER, &bucket_content(MARK)),
            ("plimsoll/datasets/a/4096/data", "x"),
            ("plimsoll/datasets/a/4096/.plimsoll", &marker),
        ] {
            assert!(store.put(key, body.as_bytes()).is_err(), "{key}");
            assert!(store.put_new(key, body.as_bytes()).is_err(), "{key}");
        }
        for key in ["theirs", "data/4KiB/0123456789abcdef", "other/.plimsoll"] {
            assert!(store.delete(&[Item::object(key)]).is_err(), "{key}");
        }
        assert!(store.get("theirs").is_err());
        let upload = store.uploads("").unwrap().remove(0);
        assert!(store.abort_upload(&upload).is_err());
        assert!(store.create_bucket().is_err() && store.delete_bucket().is_err());
        assert_eq!(store.inner().keys(), before);
        // Of a run's own only what it can have written.
        store.put_new("mine/.plimsoll", marker.as_bytes()).unwrap();
        store.inner().put("mine/report.pdf", b"x").unwrap();
        store.inner().put("mine/4KiB/0123456789abcdef", b"x").unwrap();
        assert!(store.delete(&[Item::object("mine/report.pdf")]).is_err());
        assert!(store.delete(&[Item::object("mine/4KiB/0123456789abcdef")]).unwrap().is_empty());
    }

    /// One whose plan makes a bucket, of which somebody else has one by that name already, and an empty one at that.
    #[test]
    fn a_bucket_that_was_there_before_stays_though_it_is_empty() {
        let store = Guarded::new(Memory::with_bucket(), MARK, true);
        let ours = bucket_content(MARK);
        assert!(store.delete_bucket().is_err());
        // As servers answer who has the bucket already.
        store.create_bucket().unwrap();
        assert!(store.delete_bucket().is_err());
        assert!(store.put(BUCKET_MARKER, ours.as_bytes()).is_err());
        assert!(store.put_new(BUCKET_MARKER, ours.as_bytes()).is_err());
        assert!(store.get(BUCKET_MARKER).unwrap().is_none());
        assert!(store.delete(&[Item::object(BUCKET_MARKER)]).unwrap().is_empty());
        assert!(store.delete_bucket().is_err());
        // Nor where another run has marked it.
        store.inner().put(BUCKET_MARKER, bucket_content("another.0").as_bytes()).unwrap();
        store.get(BUCKET_MARKER).unwrap();
        assert!(store.delete_bucket().is_err() && store.bucket_exists().unwrap());
        // The run's own marker is proof of it, by whomever it is seen.
        store.inner().put(BUCKET_MARKER, ours.as_bytes()).unwrap();
        store.delete(&[Item::object(BUCKET_MARKER)]).unwrap();
        store.put(BUCKET_MARKER, ours.as_bytes()).unwrap();
        store.delete(&[Item::object(BUCKET_MARKER)]).unwrap();
        store.delete_bucket().unwrap();
        assert!(!store.bucket_exists().unwrap());
    }

    #[test]
    fn a_bucket_that_we_made_a_moment_ago_may_go_without_a_marker() {
        let store = Guarded::new(Memory::default(), MARK, true);
        store.create_bucket().unwrap();
        store.delete_bucket().unwrap();
        assert!(!store.bucket_exists().unwrap());
    }

    #[test]
    fn a_data_set_is_described_by_what_describes_one() {
        let body = b"made by plimsoll, data set a\n";
        let store = Guarded::new(Memory::with_bucket(), MARK, false);
        store.put("plimsoll/datasets/a/4096/.plimsoll", body).unwrap();
        assert!(store.put("plimsoll/datasets/b/4096/.plimsoll", body).is_err());
        assert!(store.put("plimsoll/datasets/a/4096/.plimsoll-dataset.json", b"{}").is_err());
    }
}
