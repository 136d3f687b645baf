//! The random bytes that blocks are slices of: one pool for all workers of a seed, made by the first of them.
//!
//! A pool of its own for each worker was 4 MiB and as many random numbers per job, for bytes that are the same.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::{GRANULE, POOL_BYTES, SMALL_GRANULE};
use crate::rng;

pub(super) struct Pool {
    pub bytes: Vec<u8>,
    /// Where in the pool a slice begins, by its first word: made when a read first begins inside a granule.
    pub places: OnceLock<Vec<(u64, u32)>>,
}

/// Seed and compressible share (its bits) of a pool that somebody may still hold.
type Entry = (u64, u64, Weak<Pool>);

static POOLS: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

impl Pool {
    /// The pool of a seed, shared with whoever has it already. Not for the hot path: who comes second waits for the first.
    pub fn of(seed: u64, compressible: f64) -> Arc<Self> {
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|(_, _, pool)| pool.strong_count() > 0);
        let bits = compressible.to_bits();
        let mine = |(s, c, pool): &Entry| (*s == seed && *c == bits).then(|| pool.upgrade()).flatten();
        if let Some(pool) = pools.iter().find_map(mine) {
            return pool;
        }
        let pool = Arc::new(Self { bytes: make(seed, compressible), places: OnceLock::new() });
        pools.push((seed, bits, Arc::downgrade(&pool)));
        pool
    }
}

fn make(seed: u64, compressible: f64) -> Vec<u8> {
    let len = POOL_BYTES + GRANULE;
    let mut pool = Vec::with_capacity(len + 8);
    let mut n = 0;
    while pool.len() < len {
        pool.extend_from_slice(&rng::at(seed, n).to_le_bytes());
        n += 1;
    }
    pool.truncate(len);
    let zeros = (compressible.clamp(0.0, 1.0) * SMALL_GRANULE as f64) as usize;
    for unit in pool.chunks_mut(SMALL_GRANULE) {
        let n = zeros.min(unit.len());
        unit[..n].fill(0);
    }
    pool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_of_one_seed_share_a_pool_and_others_do_not() {
        let a = Pool::of(77, 0.5);
        assert!(Arc::ptr_eq(&a, &Pool::of(77, 0.5)));
        assert!(!Arc::ptr_eq(&a, &Pool::of(77, 0.0)) && !Arc::ptr_eq(&a, &Pool::of(78, 0.5)));
        let bytes = a.bytes.clone();
        drop(a);
        assert!(POOLS.lock().unwrap().iter().all(|(seed, _, pool)| *seed != 77 || pool.strong_count() == 0));
        assert!(Pool::of(77, 0.5).bytes == bytes);
    }
}
