//! Bodies that were PUT, kept in memory up to a limit and given back by GET: for a client that verifies what it reads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A kept body.
pub(crate) type Kept = Arc<Vec<u8>>;

/// The kept bodies of all connections, by the path of the request as it was written.
#[derive(Debug)]
pub(crate) struct Keep {
    room_bytes: u64,
    bodies: Mutex<(HashMap<Vec<u8>, Kept>, u64)>,
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
    pub fn put(&self, path: Vec<u8>, body: Vec<u8>) -> bool {
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

    pub fn get(&self, path: &[u8]) -> Option<Kept> {
        if !self.is_on() {
            return None;
        }
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).0.get(path).cloned()
    }

    pub fn delete(&self, path: &[u8]) {
        if !self.is_on() {
            return;
        }
        let mut held = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(body) = held.0.remove(path) {
            held.1 -= body.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_for_what_is_there_now() {
        let k = Keep::new(10);
        assert!(k.put(b"/b/a".to_vec(), vec![1; 6]));
        assert!(!k.put(b"/b/b".to_vec(), vec![2; 5]), "no room beside the first");
        assert!(k.put(b"/b/a".to_vec(), vec![3; 10]), "in place of the first");
        assert_eq!(k.get(b"/b/a").map(|b| b[0]), Some(3));
        k.delete(b"/b/a");
        assert!(k.get(b"/b/a").is_none() && k.put(b"/b/b".to_vec(), vec![2; 10]));
        assert!(!Keep::new(0).is_on() && !Keep::new(0).put(b"/b/a".to_vec(), vec![1]));
    }
}
