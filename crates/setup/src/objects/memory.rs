//! A bucket in memory, for tests.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::store::{Held, Item, ItemPage, KeyPage, ObjectStore, StoreFault, Upload, Versioning};

#[derive(Debug, Default)]
pub struct Memory {
    state: RefCell<State>,
    no_uploads: bool,
    ignores_conditions: bool,
}

#[derive(Debug, Default)]
struct State {
    bucket: bool,
    objects: BTreeMap<String, Vec<u8>>,
    uploads: Vec<Upload>,
    /// Calls that fail because the server is away, after so many that do not.
    away: Vec<(u32, u32)>,
    /// Listings that come back empty.
    blind: u32,
    /// Keys that cannot be deleted.
    locked: std::collections::BTreeSet<String>,
    /// Says that it deletes, and does not.
    undead: bool,
    /// Makes a bucket, and nobody hears of it.
    mute: bool,
    /// What somebody else writes right after the next conditional put.
    rival: Option<(String, Vec<u8>)>,
}

impl Memory {
    pub fn with_bucket() -> Self {
        let m = Self::default();
        m.state.borrow_mut().bucket = true;
        m
    }

    /// A server that knows no multipart uploads.
    pub fn without_uploads() -> Self {
        Self { no_uploads: true, ..Self::with_bucket() }
    }

    /// A server that does not know `If-None-Match`.
    pub fn without_conditions() -> Self {
        Self { ignores_conditions: true, ..Self::with_bucket() }
    }

    /// The answer to the making of a bucket is lost.
    pub fn make_without_an_answer(&self) {
        self.state.borrow_mut().mute = true;
    }

    /// Somebody else writes this right after the next conditional put.
    pub fn be_raced(&self, key: &str, body: &[u8]) {
        self.state.borrow_mut().rival = Some((key.into(), body.into()));
    }

    pub fn keys(&self) -> Vec<String> {
        self.state.borrow().objects.keys().cloned().collect()
    }

    pub fn begin_upload(&self, key: &str) {
        let mut s = self.state.borrow_mut();
        let id = s.uploads.len().to_string();
        s.uploads.push(Upload { key: key.into(), id });
    }

    /// The next calls fail.
    pub fn be_away_for(&self, calls: u32) {
        self.state.borrow_mut().away = vec![(0, calls)];
    }

    /// And again after so many calls that did not fail.
    pub fn be_away_after(&self, good: u32, calls: u32) {
        self.state.borrow_mut().away.push((good, calls));
    }

    pub fn lock(&self, key: &str) {
        self.state.borrow_mut().locked.insert(key.into());
    }

    /// From now on nothing goes, whatever it says.
    pub fn keep_all(&self) {
        self.state.borrow_mut().undead = true;
    }

    /// The next listings come back empty.
    pub fn list_nothing(&self, listings: u32) {
        self.state.borrow_mut().blind = listings;
    }

    fn there(&self) -> Result<std::cell::RefMut<'_, State>, StoreFault> {
        let mut s = self.state.borrow_mut();
        match s.away.first_mut() {
            None => {}
            Some((good, _)) if *good > 0 => *good -= 1,
            Some((_, calls)) if *calls > 0 => {
                *calls -= 1;
                return Err(StoreFault::Away("the server cannot be reached".to_owned().into()));
            }
            Some(_) => drop(s.away.remove(0)),
        }
        if s.bucket { Ok(s) } else { Err(StoreFault::NoSuchBucket) }
    }
}

impl ObjectStore for Memory {
    fn bucket_exists(&self) -> Result<bool, StoreFault> {
        Ok(self.state.borrow().bucket)
    }
    fn create_bucket(&self) -> Result<(), StoreFault> {
        let mut s = self.state.borrow_mut();
        s.bucket = true;
        match s.mute {
            true => Err(StoreFault::Away("no longer waiting for the answer".to_owned().into())),
            false => Ok(()),
        }
    }
    fn delete_bucket(&self) -> Result<(), StoreFault> {
        let mut s = self.there()?;
        if !s.objects.is_empty() {
            return Err(StoreFault::NotEmpty);
        }
        s.bucket = false;
        Ok(())
    }
    fn put(&self, key: &str, body: &[u8]) -> Result<(), StoreFault> {
        self.there()?.objects.insert(key.into(), body.into());
        Ok(())
    }
    fn put_new(&self, key: &str, body: &[u8]) -> Result<bool, StoreFault> {
        let known = self.there()?.objects.contains_key(key);
        if known && !self.ignores_conditions {
            return Ok(false);
        }
        self.put(key, body)?;
        let rival = self.state.borrow_mut().rival.take();
        if let Some((key, body)) = rival {
            self.put(&key, &body)?;
        }
        Ok(true)
    }
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreFault> {
        Ok(self.there()?.objects.get(key).cloned())
    }
    fn list(&self, prefix: &str, from: Option<&str>, most: u32) -> Result<KeyPage, StoreFault> {
        let mut s = self.there()?;
        if s.blind > 0 {
            s.blind -= 1;
            return Ok(KeyPage::default());
        }
        let after = |k: &&String| from.is_none_or(|f| k.as_str() > f);
        let mut keys: Vec<String> = s
            .objects
            .keys()
            .filter(|k| k.starts_with(prefix))
            .filter(after)
            .take(most as usize + 1)
            .cloned()
            .collect();
        let more = keys.len() > most as usize;
        keys.truncate(most as usize);
        Ok(KeyPage { next: more.then(|| keys.last().cloned()).flatten(), keys })
    }
    fn versioning(&self) -> Result<Versioning, StoreFault> {
        Err(StoreFault::Unsupported)
    }
    fn versions(&self, _: &str, _: Option<&(String, String)>) -> Result<ItemPage, StoreFault> {
        Err(StoreFault::Unsupported)
    }
    fn get_version(&self, _: &str, _: &str) -> Result<Option<Vec<u8>>, StoreFault> {
        Err(StoreFault::Unsupported)
    }
    fn delete(&self, items: &[Item]) -> Result<Vec<Held>, StoreFault> {
        assert!(items.len() <= 1000);
        let mut s = self.there()?;
        let mut held = Vec::new();
        for item in items {
            if s.locked.contains(&item.key) {
                held.push(Held { item: item.clone(), why: "AccessDenied: locked".into() });
            } else if !s.undead {
                s.objects.remove(&item.key);
            }
        }
        Ok(held)
    }
    fn uploads(&self, prefix: &str) -> Result<Vec<Upload>, StoreFault> {
        if self.no_uploads {
            return Err(StoreFault::Unsupported);
        }
        Ok(self.there()?.uploads.iter().filter(|u| u.key.starts_with(prefix)).cloned().collect())
    }
    fn abort_upload(&self, upload: &Upload) -> Result<(), StoreFault> {
        self.there()?.uploads.retain(|u| u != upload);
        Ok(())
    }
}
