//! The directory behind the embedded S3 server: buckets, objects, their names on disk and their index in memory.
//!
//! An object's file is named by the SHA-256 of its key, so any key works and none can leave its place; the true key
//! stands in the file. Layout: `buckets/NAME/objects/xx/HASH`, `buckets/NAME/uploads/ID/`, and `tmp/` for what is not
//! yet whole. All calls block; the server runs them on threads for that.

use super::error::StoreError;
use super::index::{Entry, Index, Page, PageRequest, page};
use super::object::{self, Meta, Opened, Writer};
use super::own;
use crate::data_dir::{DataDir, DataDirError};
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Sha256};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{SystemTime, UNIX_EPOCH};

/// A condition on what is under a key now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    None,
    /// `If-None-Match: *`
    Absent,
    /// `If-Match: *`
    Present,
    /// `If-Match: "etag"`
    Is(String),
    /// `If-None-Match: "etag"`
    IsNot(String),
}

impl Condition {
    fn check(&self, now: Option<&Entry>) -> Result<(), StoreError> {
        match (self, now) {
            (Condition::None, _)
            | (Condition::Absent | Condition::IsNot(_), None)
            | (Condition::Present, Some(_)) => Ok(()),
            (Condition::Present | Condition::Is(_), None) => Err(StoreError::NoSuchKey),
            (Condition::Absent, Some(_)) => Err(StoreError::Precondition),
            (Condition::Is(tag), Some(e)) if **tag == *e.etag => Ok(()),
            (Condition::IsNot(tag), Some(e)) if **tag != *e.etag => Ok(()),
            _ => Err(StoreError::Precondition),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Bucket {
    pub dir: PathBuf,
    pub created_ms: u64,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    index: Index,
    /// Removed: whoever still holds the bucket must not write to it.
    gone: bool,
}

#[derive(Serialize, Deserialize)]
struct BucketFile {
    created_ms: u64,
}

#[derive(Debug)]
pub(crate) struct Store {
    root: PathBuf,
    pub sync: bool,
    buckets: RwLock<BTreeMap<String, Arc<Bucket>>>,
    next_tmp: AtomicU64,
    /// Held for the life of the store: one server per directory.
    _dir: DataDir,
    /// Files that were not whole when the store was opened.
    pub damaged: Vec<PathBuf>,
}

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// What the mark of a data directory says.
const DATA_FORMAT: &str = "plimsoll.s3/1";

impl Store {
    /// Opens a directory, makes it if need be, and reads what is there. One that holds anything else is refused.
    pub fn open(root: &Path, sync: bool) -> Result<Store, StoreError> {
        let dir = DataDir::claim(root, DATA_FORMAT)?;
        clear(&root.join("tmp"))?;
        make_dir(&root.join("buckets"))?;
        let mut store = Store {
            root: root.to_owned(),
            sync,
            buckets: RwLock::default(),
            next_tmp: AtomicU64::new(0),
            _dir: dir,
            damaged: Vec::new(),
        };
        let mut buckets = BTreeMap::new();
        for dir in fs::read_dir(root.join("buckets"))? {
            let dir = dir?;
            if let Some(name) = dir.file_name().to_str() {
                buckets.insert(name.to_owned(), Arc::new(load_bucket(&dir.path(), &mut store.damaged)?));
            }
        }
        store.buckets = RwLock::new(buckets);
        Ok(store)
    }

    pub fn tmp_path(&self) -> PathBuf {
        self.root.join("tmp").join(own::passing_name(self.next_tmp.fetch_add(1, Ordering::Relaxed)))
    }

    /// A new object on its way.
    pub fn writer(&self, sums: ChecksumHasher) -> Result<Writer, StoreError> {
        Writer::create(self.tmp_path(), sums, self.sync)
    }

    pub fn bucket(&self, name: &str) -> Result<Arc<Bucket>, StoreError> {
        read(&self.buckets).get(name).cloned().ok_or(StoreError::NoSuchBucket)
    }

    /// (name, created) of each bucket, in order.
    pub fn bucket_names(&self) -> Vec<(String, u64)> {
        read(&self.buckets).iter().map(|(n, b)| (n.clone(), b.created_ms)).collect()
    }

    pub fn create_bucket(&self, name: &str) -> Result<(), StoreError> {
        let mut buckets = write(&self.buckets);
        if buckets.contains_key(name) {
            return Err(StoreError::BucketExists);
        }
        let created_ms = now_ms();
        let (tmp, dir) = (self.tmp_path(), self.root.join("buckets").join(name));
        fs::create_dir_all(tmp.join("objects"))?;
        fs::create_dir(tmp.join("uploads"))?;
        let text =
            serde_json::to_vec(&BucketFile { created_ms }).map_err(|e| StoreError::Damaged(e.to_string()))?;
        fs::write(tmp.join("bucket.json"), text)?;
        if self.sync {
            File::open(tmp.join("bucket.json"))?.sync_data()?;
        }
        self.sync_dir(&tmp)?;
        fs::rename(&tmp, &dir)?;
        self.sync_dir(&self.root.join("buckets"))?;
        buckets.insert(name.to_owned(), Arc::new(Bucket { dir, created_ms, state: RwLock::default() }));
        Ok(())
    }

    pub fn delete_bucket(&self, name: &str) -> Result<(), StoreError> {
        let mut buckets = write(&self.buckets);
        let bucket = buckets.get(name).cloned().ok_or(StoreError::NoSuchBucket)?;
        let mut state = write(&bucket.state);
        if !state.index.is_empty() {
            return Err(StoreError::BucketNotEmpty);
        }
        if let Some(theirs) = own::strange_in_bucket(&bucket.dir)? {
            return Err(StoreError::Holds(theirs));
        }
        let tmp = self.tmp_path();
        fs::rename(&bucket.dir, &tmp)?;
        state.gone = true;
        buckets.remove(name);
        drop((state, buckets));
        self.sync_dir(&self.root.join("buckets"))?;
        fs::remove_dir_all(&tmp)?;
        Ok(())
    }

    /// Puts a sealed object under its key, if the condition holds; durable when this returns.
    pub fn commit(
        &self,
        bucket: &Bucket,
        mut w: Writer,
        meta: &Meta,
        condition: &Condition,
    ) -> Result<(), StoreError> {
        let path = bucket.path_of(&meta.key);
        let entry = entry_of(meta);
        {
            let mut state = write(&bucket.state);
            if state.gone {
                return Err(StoreError::NoSuchBucket);
            }
            condition.check(state.index.get(meta.key.as_bytes()))?;
            w.rename(&path)?;
            state.index.insert(meta.key.as_bytes().into(), entry);
        }
        self.sync_dir(path.parent().unwrap_or(&path))
    }

    /// Removes a key; one that is not there is no error, as in S3.
    pub fn delete(&self, bucket: &Bucket, key: &str, condition: &Condition) -> Result<(), StoreError> {
        match self.delete_name(bucket, key, condition)? {
            Some(dir) => self.sync_dir(&dir),
            None => Ok(()),
        }
    }

    /// Removes a name; the directory that has to be synced for it to last, if there was such a name. A
    /// batch syncs each directory once.
    pub fn delete_name(
        &self,
        bucket: &Bucket,
        key: &str,
        condition: &Condition,
    ) -> Result<Option<PathBuf>, StoreError> {
        let path = bucket.path_of(key);
        {
            let mut state = write(&bucket.state);
            if *condition != Condition::None {
                condition.check(state.index.get(key.as_bytes()))?;
            }
            if !state.index.contains_key(key.as_bytes()) {
                return Ok(None);
            }
            fs::remove_file(&path)?;
            state.index.remove(key.as_bytes());
        }
        Ok(Some(path.parent().unwrap_or(&path).to_owned()))
    }

    /// Makes names in a directory durable.
    pub fn sync_dir(&self, dir: &Path) -> Result<(), StoreError> {
        if self.sync {
            File::open(dir)?.sync_all()?;
        }
        Ok(())
    }

    /// A whole small file, by way of tmp/.
    pub fn write_file(&self, to: &Path, content: &[u8]) -> Result<(), StoreError> {
        let tmp = self.tmp_path();
        let mut file = File::create_new(&tmp)?;
        file.write_all(content)?;
        if self.sync {
            file.sync_data()?;
        }
        fs::rename(&tmp, to)?;
        self.sync_dir(to.parent().unwrap_or(to))
    }
}

/// Makes `tmp/`, or removes from it what a killed server left. What else is in it is somebody's.
fn clear(tmp: &Path) -> Result<(), StoreError> {
    if !make_dir(tmp)? {
        return Ok(());
    }
    if let Some(theirs) = own::strange_in_passing(tmp)? {
        return Err(StoreError::DataDir(DataDirError::Theirs(theirs)));
    }
    for entry in fs::read_dir(tmp)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

/// Whether the directory was there already. A link to one is somebody's.
fn make_dir(path: &Path) -> Result<bool, StoreError> {
    match fs::create_dir(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        made => return Ok(made.map(|()| false)?),
    }
    match fs::symlink_metadata(path)?.is_dir() {
        true => Ok(true),
        false => Err(StoreError::DataDir(DataDirError::Theirs(path.to_owned()))),
    }
}

impl Bucket {
    fn path_of(&self, key: &str) -> PathBuf {
        let name = hex(Sha256::checksum(key.as_bytes()).as_ref());
        self.dir.join("objects").join(&name[..2]).join(&name)
    }

    pub fn open(&self, key: &str) -> Result<Opened, StoreError> {
        object::open(&self.path_of(key))
    }

    pub fn list(&self, ask: PageRequest<'_>) -> Page {
        page(&read(&self.state).index, ask)
    }
}

fn entry_of(meta: &Meta) -> Entry {
    Entry {
        size: meta.size,
        etag: meta.etag.as_str().into(),
        modified_ms: meta.modified_ms,
        storage_class: meta.headers.storage_class.as_deref().map(Into::into),
    }
}

/// Reads the index of a bucket back from its files.
fn load_bucket(dir: &Path, damaged: &mut Vec<PathBuf>) -> Result<Bucket, StoreError> {
    let text = fs::read(dir.join("bucket.json"))?;
    let file: BucketFile =
        serde_json::from_slice(&text).map_err(|e| StoreError::Damaged(format!("{}: {e}", dir.display())))?;
    let mut index = Index::new();
    for shard in fs::read_dir(dir.join("objects"))? {
        for path in fs::read_dir(shard?.path())? {
            let path = path?.path();
            match object::open(&path) {
                Ok(o) => {
                    index.insert(o.meta.key.as_bytes().into(), entry_of(&o.meta));
                }
                Err(_) => damaged.push(path),
            }
        }
    }
    let state = RwLock::new(State { index, gone: false });
    Ok(Bucket { dir: dir.to_owned(), created_ms: file.created_ms, state })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn put(
        store: &Store,
        bucket: &Bucket,
        key: &str,
        data: &[u8],
        condition: &Condition,
    ) -> Result<(), StoreError> {
        let mut w = store.writer(ChecksumHasher::default())?;
        w.write(&[Bytes::copy_from_slice(data)])?;
        let (size, md5, _) = w.digest();
        let meta = Meta { key: key.into(), size, etag: hex(&md5), modified_ms: now_ms(), ..Meta::default() };
        w.seal(&meta, store.sync)?;
        store.commit(bucket, w, &meta, condition)
    }

    fn keys(bucket: &Bucket) -> Vec<Vec<u8>> {
        let ask = PageRequest { prefix: b"", delimiter: b"", after: b"", max: usize::MAX };
        bucket.list(ask).items.into_iter().map(|i| i.0.into_vec()).collect()
    }

    #[test]
    fn what_was_committed_is_there_after_a_restart_and_leftovers_are_not() {
        let dir = tempfile::tempdir().unwrap();
        {
            let store = Store::open(dir.path(), true).unwrap();
            store.create_bucket("bkt").unwrap();
            let b = store.bucket("bkt").unwrap();
            for key in ["z", "a/b", "a", "..", "\u{e9}"] {
                put(&store, &b, key, key.as_bytes(), &Condition::None).unwrap();
            }
            store.delete(&b, "z", &Condition::None).unwrap();
            let second = Store::open(dir.path(), true).unwrap_err().to_string();
            assert!(second.contains("in use by another server"), "{second}");
            // A writer that a kill would have left behind.
            std::mem::forget(store.writer(ChecksumHasher::default()).unwrap());
        }
        let shard = dir.path().join("buckets/bkt/objects/zz");
        fs::create_dir(&shard).unwrap();
        fs::write(shard.join("torn"), b"half an obj").unwrap();
        let store = Store::open(dir.path(), true).unwrap();
        assert_eq!(store.damaged, [shard.join("torn")]);
        assert_eq!(fs::read_dir(dir.path().join("tmp")).unwrap().count(), 0);
        let b = store.bucket("bkt").unwrap();
        assert_eq!(keys(&b), [&b".."[..], b"a", b"a/b", "\u{e9}".as_bytes()]);
        assert_eq!(b.open("a/b").unwrap().data.unwrap(), "a/b");
        assert!(matches!(store.delete_bucket("bkt"), Err(StoreError::BucketNotEmpty)));
    }

    #[test]
    fn a_directory_of_somebody_else_is_refused_before_anything_in_it_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("tmp")).unwrap();
        for name in ["tmp/theirs", "lock"] {
            fs::write(dir.path().join(name), b"precious").unwrap();
        }
        let told = Store::open(dir.path(), false).unwrap_err().to_string();
        assert!(told.contains("is not empty") && told.contains(&dir.path().display().to_string()), "{told}");
        for name in ["tmp/theirs", "lock"] {
            assert_eq!(fs::read(dir.path().join(name)).unwrap(), b"precious");
        }
        assert!(!dir.path().join("buckets").exists());
    }

    #[test]
    fn what_others_put_into_its_place_for_what_is_not_whole_survives() {
        let dir = tempfile::tempdir().unwrap();
        let (data, theirs) = (dir.path().join("data"), dir.path().join("theirs"));
        drop(Store::open(&data, false).unwrap());
        let precious = data.join("tmp/notes.txt");
        let passing = own::passing_name(7);
        fs::write(data.join("tmp").join(&passing), b"of a writer that was killed").unwrap();
        fs::write(&precious, b"precious").unwrap();
        let told = Store::open(&data, false).unwrap_err().to_string();
        assert!(told.contains("notes.txt") && told.contains("was not made by this server"), "{told}");
        assert_eq!(fs::read(&precious).unwrap(), b"precious");
        fs::rename(data.join("tmp"), &theirs).unwrap();
        fs::remove_file(theirs.join("notes.txt")).unwrap();
        std::os::unix::fs::symlink(&theirs, data.join("tmp")).unwrap();
        assert!(Store::open(&data, false).is_err() && theirs.join(&passing).exists());
    }

    /// Each of these was taken for the server's own once: by a number for a name, or by the bucket that it was in.
    #[test]
    fn what_others_put_beside_what_is_ours_is_refused_by_name_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let leave = |place: &str| {
            let at = data.join(place);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(&at, b"precious").unwrap();
            at
        };
        {
            let store = Store::open(&data, false).unwrap();
            store.create_bucket("bkt").unwrap();
        }
        let dirs = [format!("tmp/{}/uploads/notes", own::passing_name(3)), "tmp/2024/taxes.txt".into()];
        for place in dirs {
            let at = leave(&place);
            let told = Store::open(&data, false).unwrap_err().to_string();
            assert!(told.contains("was not made by this server"), "{told}");
            assert_eq!(fs::read(&at).unwrap(), b"precious");
            fs::remove_dir_all(data.join("tmp")).unwrap();
        }
        let store = Store::open(&data, false).unwrap();
        for place in ["notes", "objects/notes", "objects/ab/notes", "uploads/notes", "uploads/ab/part-00001"]
        {
            let at = leave(&format!("buckets/bkt/{place}"));
            let told = store.delete_bucket("bkt").unwrap_err();
            assert!(matches!(told, StoreError::Holds(_)), "{place}: {told}");
            assert_eq!(fs::read(&at).unwrap(), b"precious", "{place}");
            fs::remove_file(&at).unwrap();
        }
        fs::remove_dir(data.join("buckets/bkt/uploads/ab")).unwrap();
        store.delete_bucket("bkt").unwrap();
    }

    #[test]
    fn of_many_who_create_a_key_exactly_one_succeeds_and_readers_never_see_a_mixture() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), false).unwrap();
        store.create_bucket("bkt").unwrap();
        let b = store.bucket("bkt").unwrap();
        let won = AtomicU64::new(0);
        std::thread::scope(|s| {
            for t in 0..4u8 {
                let (store, b, won) = (&store, &b, &won);
                s.spawn(move || {
                    for i in 0..30 {
                        if put(store, b, &format!("once{i}"), &[t], &Condition::Absent).is_ok() {
                            won.fetch_add(1, Ordering::Relaxed);
                        }
                        put(store, b, "same", &vec![t; 1_000 * usize::from(t + 1)], &Condition::None)
                            .unwrap();
                        let data = b.open("same").unwrap().data.unwrap();
                        assert!(
                            data.iter().all(|&x| x == data[0])
                                && data.len() == 1_000 * usize::from(data[0] + 1)
                        );
                    }
                });
            }
        });
        assert_eq!(won.load(Ordering::Relaxed), 30);
        assert_eq!(keys(&b).len(), 31);
    }

    #[test]
    fn a_bucket_that_is_gone_takes_nothing_more() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), true).unwrap();
        store.create_bucket("bkt").unwrap();
        let held = store.bucket("bkt").unwrap();
        store.delete_bucket("bkt").unwrap();
        assert!(matches!(put(&store, &held, "k", b"x", &Condition::None), Err(StoreError::NoSuchBucket)));
        assert!(store.bucket("bkt").is_err() && !dir.path().join("buckets/bkt").exists());
    }
}
