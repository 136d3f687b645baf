//! What objects contain: random, incompressible, no two alike, and known to whoever knows seed, number and offset.
//!
//! An object is a row of blocks of [`BLOCK_BYTES`]. Each block is a stamp (which object, which offset, under which
//! seed) ahead of a slice of a shared random pool. So a body is sent without being made, as a list of memory
//! pieces, and what comes back is compared with the same pieces, byte for byte.
//! With `pool` signing a body is one plain slice of the pool, chosen by the object's number, so that its hash can be
//! known before the run.

use std::collections::BTreeMap;

use plimsoll_model::plan::DataSpec;
use plimsoll_s3::sign::sha256_hex;

/// Distance of stamps.
pub const BLOCK_BYTES: u64 = 64 * 1024;
/// Bytes of a stamp: magic, object, offset, check; 8 each, little-endian.
pub const STAMP_BYTES: usize = 32;
const MAGIC: [u8; 8] = *b"PLIMSOLL";
/// The pool's size without its tail; slices begin at multiples of 64 bytes below it.
const POOL_BYTES: usize = 8 << 20;
/// Slices of one length that `pool` signing knows the hash of.
pub const POOL_SLICES: u64 = 16;
/// Granularity of compressible data.
const COMPRESS_UNIT: usize = 4096;

/// How bodies look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// A stamp in each block.
    #[default]
    Stamped,
    /// One slice of the pool per body, unstamped.
    Pool,
}

/// The content of all objects under one seed. Shared by all workers.
pub struct ObjectContent {
    pool: Vec<u8>,
    seed: u64,
    layout: Layout,
    /// Of 2^32: share of blocks that repeat another.
    dedup: u64,
    /// Hashes of the pool slices of a length, by slice.
    hashes: BTreeMap<u64, Vec<[u8; 64]>>,
}

impl std::fmt::Debug for ObjectContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Content(seed {}, {:?}, {} bytes)", self.seed, self.layout, self.pool.len())
    }
}

/// The first value of SplitMix64 from `x`.
fn mix(x: u64) -> u64 {
    crate::rng::at(x, 0)
}

/// A stamp's bytes.
pub type Stamp = [u8; STAMP_BYTES];

impl ObjectContent {
    /// `body_sizes`: lengths of bodies whose hashes are computed now, for [`Layout::Pool`].
    pub fn new(seed: u64, data: DataSpec, layout: Layout, body_sizes: &[u64]) -> Self {
        let longest = body_sizes.iter().copied().max().unwrap_or(0).max(BLOCK_BYTES) as usize;
        let len = POOL_BYTES + if layout == Layout::Pool { longest } else { BLOCK_BYTES as usize };
        let mut content = Self {
            pool: make_pool(seed, len, data.compressible),
            seed,
            layout,
            dedup: (data.dedupable.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u64,
            hashes: BTreeMap::new(),
        };
        if layout == Layout::Pool {
            for &size in body_sizes {
                let list = (0..POOL_SLICES).map(|i| sha256_hex(content.pool_slice(i, size))).collect();
                content.hashes.insert(size, list);
            }
        }
        content
    }

    /// Where stamps lie, and how large slices are.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The hash of `object`'s body part, where it was computed before; see [`Layout::Pool`].
    pub fn known_hash(&self, object: u64, part: u64, length: u64) -> Option<&[u8; 64]> {
        self.hashes.get(&length).map(|list| &list[self.slice_of(object, part) as usize])
    }

    fn slice_of(&self, object: u64, part: u64) -> u64 {
        mix(self.seed ^ mix(object ^ part << 40)) % POOL_SLICES
    }

    fn pool_slice(&self, slice: u64, length: u64) -> &[u8] {
        let at = slice as usize * (POOL_BYTES / POOL_SLICES as usize);
        &self.pool[at..(at + length as usize).min(self.pool.len())]
    }

    /// The longest body that [`Layout::Pool`] can give.
    pub fn max_pool_body(&self) -> u64 {
        (self.pool.len() - POOL_BYTES) as u64
    }

    /// The stamp at the head of the block of `object` that begins at `offset`.
    pub fn stamp(&self, object: u64, offset: u64) -> Stamp {
        let (object, offset) = self.identity(object, offset);
        let check = mix(self.seed ^ mix(object ^ mix(offset)));
        let mut s = [0; STAMP_BYTES];
        s[..8].copy_from_slice(&MAGIC);
        s[8..16].copy_from_slice(&object.to_le_bytes());
        s[16..24].copy_from_slice(&offset.to_le_bytes());
        s[24..].copy_from_slice(&check.to_le_bytes());
        s
    }

    /// A block that repeats others pretends to be one of a few blocks of object 0.
    #[inline]
    fn identity(&self, object: u64, offset: u64) -> (u64, u64) {
        if self.dedup > 0 {
            let r = mix(self.seed.rotate_left(9) ^ mix(object ^ mix(offset)));
            if (r & 0xffff_ffff) < self.dedup {
                return (0, (r >> 32) % 16 * BLOCK_BYTES);
            }
        }
        (object, offset)
    }

    /// The piece of `object` at byte `at` of a body of `length` bytes that begins at `base` of the object (a part
    /// of an upload; 0 for a whole object): either bytes of a stamp, or of the pool; never more than `length - at`.
    #[inline]
    pub fn piece(&self, object: u64, base: u64, at: u64, length: u64) -> Piece<'_> {
        let left = length - at;
        if self.layout == Layout::Pool {
            let slice = self.pool_slice(self.slice_of(object, base), length);
            return Piece::Pool(&slice[at as usize..]);
        }
        let absolute = base + at;
        let block = absolute - absolute % BLOCK_BYTES;
        let inside = (absolute - block) as usize;
        if inside < STAMP_BYTES {
            let len = (STAMP_BYTES - inside).min(left as usize);
            return Piece::Stamp { block, from: inside, len };
        }
        let len = (BLOCK_BYTES as usize - inside).min(left as usize);
        let (o, b) = self.identity(object, block);
        // Multiples of 64 keep copies aligned.
        let start = (mix(self.seed ^ mix(o.rotate_left(32) ^ b)) % (POOL_BYTES as u64 / 64)) as usize * 64;
        Piece::Pool(&self.pool[start + inside..start + inside + len])
    }

    /// Has the memory of a small body fetched, so that it is near when the request has been signed: slices lie anywhere
    /// in the pool, which is larger than a core's own cache.
    #[inline]
    pub fn prefetch(&self, object: u64, base: u64, length: u64) {
        let after_stamp = (STAMP_BYTES as u64).min(length);
        if let Piece::Pool(p) = self.piece(object, base, after_stamp, length.max(after_stamp)) {
            p.chunks(64).for_each(fetch);
        }
    }

    /// Calls `take` with each piece of a body, in order.
    pub fn each(&self, object: u64, base: u64, length: u64, mut take: impl FnMut(&[u8])) {
        let mut at = 0;
        while at < length {
            at += match self.piece(object, base, at, length) {
                Piece::Stamp { block, from, len } => {
                    take(&self.stamp(object, block)[from..from + len]);
                    len as u64
                }
                Piece::Pool(p) => {
                    take(p);
                    p.len() as u64
                }
            };
        }
    }

    /// Compares received bytes with what belongs at `at` of the body; the first difference.
    pub fn check(
        &self,
        object: u64,
        base: u64,
        at: u64,
        length: u64,
        found: &[u8],
    ) -> Result<(), ContentDifference> {
        let mut rest = found;
        let mut at = at;
        while !rest.is_empty() && at < length {
            let stamp;
            let want: &[u8] = match self.piece(object, base, at, length) {
                Piece::Stamp { block, from, len } => {
                    stamp = self.stamp(object, block);
                    &stamp[from..from + len]
                }
                Piece::Pool(p) => p,
            };
            let n = want.len().min(rest.len());
            if want[..n] != rest[..n] {
                let i = want.iter().zip(rest).position(|(a, b)| a != b).unwrap_or(0);
                return Err(ContentDifference {
                    offset: base + at + i as u64,
                    expected: window(&want[i..]),
                    found: window(&rest[i..]),
                });
            }
            rest = &rest[n..];
            at += n as u64;
        }
        Ok(())
    }
}

/// Asks for the cache line of the first byte.
#[inline]
fn fetch(line: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which accesses nothing; SSE is part of every x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// A run of bytes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes `from..from + len` of the stamp of the block at `block`.
    Stamp {
        /// Where in the object the block begins.
        block: u64,
        /// Of the stamp, from its first byte.
        from: usize,
        /// At most what is left of the stamp.
        len: usize,
    },
    /// A slice of the shared random pool.
    Pool(&'a [u8]),
}

/// Where an object is not what was written: up to 8 bytes of each, in hex by `Display` of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentDifference {
    /// In the object.
    pub offset: u64,
    /// Zeros beyond the end.
    pub expected: [u8; 8],
    /// Zeros beyond the end.
    pub found: [u8; 8],
}

fn window(b: &[u8]) -> [u8; 8] {
    let mut w = [0; 8];
    let n = b.len().min(8);
    w[..n].copy_from_slice(&b[..n]);
    w
}

fn make_pool(seed: u64, len: usize, compressible: f64) -> Vec<u8> {
    let mut pool = Vec::with_capacity(len + 8);
    let mut x = seed ^ 0x5851_f42d_4c95_7f2d;
    while pool.len() < len {
        x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        pool.extend_from_slice(&mix(x).to_le_bytes());
    }
    pool.truncate(len);
    let zeros = (compressible.clamp(0.0, 1.0) * COMPRESS_UNIT as f64) as usize;
    if zeros > 0 {
        for unit in pool.chunks_mut(COMPRESS_UNIT) {
            let n = zeros.min(unit.len());
            unit[..n].fill(0);
        }
    }
    pool
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use proptest::prelude::*;

    fn bytes(c: &ObjectContent, object: u64, base: u64, length: u64) -> Vec<u8> {
        let mut v = Vec::new();
        c.each(object, base, length, |p| v.extend_from_slice(p));
        v
    }

    #[test]
    fn no_two_objects_or_blocks_are_alike() {
        let c = ObjectContent::new(1, DataSpec::default(), Layout::Stamped, &[]);
        let a = bytes(&c, 1, 0, 2 * BLOCK_BYTES);
        assert_ne!(a, bytes(&c, 2, 0, 2 * BLOCK_BYTES));
        assert_ne!(a[..BLOCK_BYTES as usize], a[BLOCK_BYTES as usize..]);
        assert_ne!(
            a,
            bytes(&ObjectContent::new(2, DataSpec::default(), Layout::Stamped, &[]), 1, 0, 2 * BLOCK_BYTES)
        );
        assert_eq!(&a[..8], b"PLIMSOLL");
    }

    #[test]
    fn a_flipped_bit_is_found_where_it_is() {
        let c = ObjectContent::new(1, DataSpec::default(), Layout::Stamped, &[]);
        let good = bytes(&c, 9, 0, 200_000);
        for at in [0usize, 31, 32, 65_535, 65_536, 65_600, 199_999] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            let d = c.check(9, 0, 0, 200_000, &bad).unwrap_err();
            assert_eq!((d.offset, d.expected[0] ^ d.found[0]), (at as u64, 1));
        }
    }

    #[test]
    fn hashes_of_the_pool_are_those_of_the_bodies() {
        let c = ObjectContent::new(3, DataSpec::default(), Layout::Pool, &[1000, 70_000]);
        for object in 0..20 {
            for part in [0u64, 5] {
                let body = bytes(&c, object, part, 70_000);
                assert_eq!(body.len(), 70_000);
                assert_eq!(c.known_hash(object, part, 70_000), Some(&sha256_hex(&body)));
            }
        }
        assert_eq!(c.known_hash(1, 0, 5), None);
    }

    #[test]
    fn options_shape_the_data() {
        let half = DataSpec { compressible: 0.5, dedupable: 0.0 };
        let c = ObjectContent::new(1, half, Layout::Stamped, &[]);
        let zeros = bytes(&c, 1, 0, 1 << 20).iter().filter(|b| **b == 0).count() as f64 / f64::from(1 << 20);
        assert!((0.48..0.53).contains(&zeros), "{zeros}");
        let dedup = DataSpec { compressible: 0.0, dedupable: 0.5 };
        let c = ObjectContent::new(1, dedup, Layout::Stamped, &[]);
        let mut seen = std::collections::HashSet::new();
        let fresh = (0..400).filter(|o| seen.insert(bytes(&c, *o, 0, BLOCK_BYTES))).count();
        assert!((180..260).contains(&fresh), "{fresh}");
    }

    proptest! {
        /// Any cut of an object into parts and of a part into pieces is the same object; checking in any pieces agrees.
        #[test]
        fn parts_make_the_whole(object in any::<u64>(), length in 1u64..300_000, cut in any::<u64>(), step in 1usize..70_000) {
            static CONTENT: LazyLock<ObjectContent> =
                LazyLock::new(|| ObjectContent::new(7, DataSpec::default(), Layout::Stamped, &[]));
            let c = &*CONTENT;
            let whole = bytes(c, object, 0, length);
            prop_assert_eq!(whole.len() as u64, length);
            let cut = cut % length;
            let mut parts = bytes(c, object, 0, cut);
            parts.extend(bytes(c, object, cut, length - cut));
            prop_assert_eq!(&parts, &whole);
            let mut at = 0u64;
            for chunk in whole.chunks(step) {
                prop_assert_eq!(c.check(object, 0, at, length, chunk), Ok(()));
                at += chunk.len() as u64;
            }
        }
    }
}
