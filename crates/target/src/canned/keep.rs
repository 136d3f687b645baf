//! Bodies that were PUT, kept in memory up to a limit, given back by GET and shown by LIST: for a client that verifies
//! what it reads. With it the canned server is the least of a store: one version of whole objects, nothing durable.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A kept body.
pub(crate) type Kept = Arc<Vec<u8>>;

/// The kept bodies of all connections, by `/bucket/key`, decoded.
#[derive(Debug)]
pub(crate) struct Keep {
    room_bytes: u64,
    bodies: Mutex<(BTreeMap<String, Kept>, u64)>,
}

impl Keep {
    /// Room for so many bytes of bodies; 0 keeps none.
    pub fn new(room_bytes: u64) -> Keep {
        Keep { room_bytes, bodies: Mutex::default() }
    }

    pub fn is_on(&self) -> bool {
        self.room_bytes > 0
    }

    /// Keeps a body in place of an earlier one; false when there is no room for it.
    pub fn put(&self, path: String, body: Vec<u8>) -> bool {
        let mut held = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        let (bodies, bytes) = &mut *held;
        let before = bodies.get(&path).map_or(0, |b| b.len() as u64);
        let after = *bytes - before + body.len() as u64;
        if after > self.room_bytes {
            return false;
        }
        *bytes = after;
        bodies.insert(path, Arc::new(body));
        true
    }

    pub fn get(&self, path: &str) -> Option<Kept> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).0.get(path).cloned()
    }

    pub fn delete(&self, path: &str) {
        let mut held = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(body) = held.0.remove(path) {
            held.1 -= body.len() as u64;
        }
    }

    /// Keys of `bucket` that begin with `prefix` and come after `after`, with their sizes: `max` of them, and whether
    /// there are more.
    pub fn list(&self, bucket: &str, prefix: &str, after: &str, max: usize) -> (Vec<(String, u64)>, bool) {
        let held = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        let root = format!("/{bucket}/");
        let mut all = held.0.range(format!("{root}{prefix}")..).map_while(|(path, body)| {
            let key = path.strip_prefix(&root).filter(|k| k.starts_with(prefix))?;
            Some((key.to_owned(), body.len() as u64))
        });
        let page: Vec<_> = all.by_ref().filter(|(key, _)| key.as_str() > after).take(max).collect();
        let more = all.any(|(key, _)| key.as_str() > after);
        (page, more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_for_what_is_there_now() {
        let k = Keep::new(10);
        assert!(k.put("/b/a".into(), vec![1; 6]));
        assert!(!k.put("/b/b".into(), vec![2; 5]), "no room beside the first");
        assert!(k.put("/b/a".into(), vec![3; 10]), "in place of the first");
        assert_eq!(k.get("/b/a").map(|b| b[0]), Some(3));
        k.delete("/b/a");
        assert!(k.get("/b/a").is_none() && k.put("/b/b".into(), vec![2; 10]));
        assert!(!Keep::new(0).is_on() && !Keep::new(0).put("/b/a".into(), vec![1]));
    }

    #[test]
    fn lists_are_of_one_bucket_and_prefix_in_pages() {
        let k = Keep::new(100);
        for path in ["/a/x", "/b/p/1", "/b/p/2", "/b/p/3", "/b/q", "/c/p/4"] {
            k.put(path.into(), vec![0]);
        }
        let keys = |prefix: &str, after: &str, max| {
            let (page, more) = k.list("b", prefix, after, max);
            (page.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), more)
        };
        assert_eq!(keys("p/", "", 2), (vec!["p/1".into(), "p/2".into()], true));
        assert_eq!(keys("p/", "p/2", 2), (vec!["p/3".into()], false));
        assert_eq!(keys("", "", 9).0.len(), 4);
    }
}
