//! What written blocks contain: random, incompressible, no two alike, and known to whoever knows the
//! seed. A stamp at the head of each granule says which object, which offset and which writing of it;
//! the rest is a slice of a shared random pool that follows from the stamp.

mod check;
mod pool;

use std::sync::Arc;

use plimsoll_model::plan::DataSpec;
use pool::Pool;

use crate::api::DataSeed;
use crate::rng;

/// Distance of stamps where all sizes and offsets are multiples of it, and otherwise.
pub const GRANULE: usize = 4096;
/// Distance where some size or offset is no multiple of [`GRANULE`].
pub const SMALL_GRANULE: usize = 512;
/// Magic, object, offset, generation, granule and seed, check: 8 bytes each, little endian.
pub const STAMP_BYTES: usize = 48;
const MAGIC: u64 = u64::from_le_bytes(*b"PLIMBLK1");
/// Slices of the pool begin at multiples of 64 below this.
const POOL_BYTES: usize = 4 << 20;
/// Distance of the places in the pool where slices begin.
const SLICE_STEP: usize = 64;
/// Blocks that repeat others are one of so many.
const DEDUP_BLOCKS: u64 = 16;

/// The content of all blocks under one seed.
pub struct Payload {
    pool: Arc<Pool>,
    seed: u64,
    /// Of 2^32: share of granules that repeat another.
    dedup: u64,
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload(seed {})", self.seed)
    }
}

/// How a granule is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// From the start of what was checked.
    pub at: usize,
    /// In words or in hex, as much as tells them apart.
    pub expected: String,
    /// In the same form.
    pub found: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    object: u64,
    offset: u64,
    generation: u64,
    granule: u64,
}

impl Payload {
    /// Fills the pool: not for the hot path.
    pub fn new(data: DataSeed) -> Self {
        let DataSpec { compressible, dedupable } = data.spec;
        Self {
            pool: Pool::of(rng::derive(data.seed, 21), compressible),
            seed: rng::derive(data.seed, 22),
            dedup: (dedupable.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u64,
        }
    }

    /// Fills `block`, which is written at `offset` of `object` for the `generation`-th time. `fine`: others write smaller
    /// blocks, or elsewhere than at multiples of [`GRANULE`], to the same object.
    #[inline]
    pub fn fill(&self, block: &mut [u8], object: u64, offset: u64, generation: u64, fine: bool) {
        let granule = if !fine && (block.len() as u64 | offset).is_multiple_of(GRANULE as u64) {
            GRANULE
        } else {
            SMALL_GRANULE
        };
        let mut at = 0;
        for piece in block.chunks_mut(granule) {
            let stamp = Stamp { object, offset: offset + at, generation, granule: granule as u64 };
            self.fill_one(piece, self.identity(stamp));
            at += granule as u64;
        }
    }

    #[inline]
    fn fill_one(&self, piece: &mut [u8], stamp: Stamp) {
        let body = self.body(stamp, piece.len());
        if piece.len() < STAMP_BYTES {
            // A last bit too short for a stamp is plain pool.
            piece.copy_from_slice(body);
            return;
        }
        self.write_stamp(piece, stamp);
        piece[STAMP_BYTES..].copy_from_slice(&body[STAMP_BYTES..]);
    }

    fn body(&self, s: Stamp, len: usize) -> &[u8] {
        let hash =
            rng::mix(self.seed ^ rng::mix(s.object.rotate_left(40) ^ s.offset ^ rng::mix(s.generation)));
        let from = rng::below(hash, (POOL_BYTES / SLICE_STEP) as u64) as usize * SLICE_STEP;
        &self.pool.bytes[from..from + len]
    }

    fn write_stamp(&self, piece: &mut [u8], s: Stamp) {
        let words = [MAGIC, s.object, s.offset, s.generation, s.granule ^ self.seed, self.check_of(s)];
        for (place, word) in piece.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }

    fn check_of(&self, s: Stamp) -> u64 {
        check_word(self.seed, s)
    }

    /// Granules that repeat others pretend to be one of a few blocks of object 0.
    fn identity(&self, s: Stamp) -> Stamp {
        if self.dedup > 0 {
            let r = rng::mix(self.seed.rotate_left(9) ^ rng::mix(s.object ^ rng::mix(s.offset)));
            if (r & 0xffff_ffff) < self.dedup {
                let offset = (r >> 32) % DEDUP_BLOCKS * s.granule;
                return Stamp { object: 0, offset, generation: 0, granule: s.granule };
            }
        }
        s
    }
}

fn check_word(seed: u64, s: Stamp) -> u64 {
    rng::mix(seed ^ rng::mix(s.object ^ rng::mix(s.offset ^ rng::mix(s.generation ^ s.granule))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::outcome::OTHER_SEED;
    use proptest::prelude::*;

    fn payload(spec: DataSpec) -> Payload {
        Payload::new(DataSeed { spec, seed: 7 })
    }

    proptest! {
        #[test]
        fn what_is_filled_checks_at_any_part(blocks in 1usize..20, first in 0u64..50, part in 0usize..20, generation: u64,
            small: bool, dedupable in prop_oneof![Just(0.0), 0.0..1.0f64])
        {
            let p = payload(DataSpec { dedupable, ..DataSpec::default() });
            let unit = if small { SMALL_GRANULE } else { GRANULE };
            let mut block = vec![0; blocks * unit];
            p.fill(&mut block, 3, first * unit as u64, generation, false);
            prop_assert_eq!(p.check(&block, 3, first * unit as u64), Ok(()));
            let from = (part % blocks) * SMALL_GRANULE;
            prop_assert_eq!(p.check(&block[from..], 3, first * unit as u64 + from as u64), Ok(()));
        }

        #[test]
        fn a_flipped_bit_is_found_where_it_is(at in 0usize..8192, bit in 0u8..8) {
            let p = payload(DataSpec::default());
            let mut block = vec![0; 8192];
            p.fill(&mut block, 1, 8192, 5, false);
            block[at] ^= 1 << bit;
            let d = p.check(&block, 1, 8192).unwrap_err();
            prop_assert!(d.at == at || at % GRANULE < STAMP_BYTES && d.at == at - at % GRANULE);
        }
    }

    proptest! {
        /// A read that is smaller than the granule it lies in sees no stamp, and damage all the same.
        #[test]
        fn damage_inside_a_granule_is_found(unit in 1usize..8, at in 0usize..512, bit in 0u8..8, compressible in prop_oneof![Just(0.0), Just(0.5)]) {
            let p = payload(DataSpec { compressible, ..DataSpec::default() });
            let mut granule = vec![0; 4096];
            p.fill(&mut granule, 1, 8192, 5, false);
            let piece = &mut granule[unit * 512..][..512];
            let offset = 8192 + unit as u64 * 512;
            prop_assert_eq!(p.check(piece, 1, offset), Ok(()));
            piece[at] ^= 1 << bit;
            prop_assert!(p.check(piece, 1, offset).is_err());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Blocks of many sizes over each other are all ours, read in any part; and damage to them is found.
        #[test]
        fn writes_over_parts_of_others_are_no_damage(
            writes in proptest::collection::vec((0usize..64, 1usize..24, any::<bool>()), 1..40),
            from in 0usize..64, len in 1usize..64, at: usize, bit in 0u8..8,
        ) {
            const UNITS: usize = 64;
            let p = payload(DataSpec::default());
            let mut disk = vec![0; UNITS * SMALL_GRANULE];
            p.fill(&mut disk, 1, 0, 0, false);
            for (i, (first, units, whole)) in writes.iter().enumerate() {
                // Half of them are whole granules, where they can overlap small ones.
                let (first, units) = if *whole { (first / 8 * 8, units.next_multiple_of(8)) } else { (*first, *units) };
                let to = (first + units).min(UNITS);
                let block = &mut disk[first * SMALL_GRANULE..to * SMALL_GRANULE];
                p.fill(block, 1, (first * SMALL_GRANULE) as u64, 1 + i as u64, false);
            }
            let to = (from + len).min(UNITS);
            let read = &mut disk[from * SMALL_GRANULE..to * SMALL_GRANULE];
            let offset = (from * SMALL_GRANULE) as u64;
            prop_assert_eq!(p.check(read, 1, offset), Ok(()));
            let at = at % read.len();
            read[at] ^= 1 << bit;
            prop_assert!(p.check(read, 1, offset).is_err(), "a flipped bit at {}", at);
        }
    }

    /// Each piece is judged by the writing that it is of.
    #[test]
    fn a_small_write_inside_a_granule_is_told_from_the_rest_of_it() {
        let p = payload(DataSpec::default());
        let mut block = vec![0; 4096];
        p.fill(&mut block, 1, 8192, 5, false);
        p.fill(&mut block[1024..1536], 1, 9216, 6, false);
        let mut seen = Vec::new();
        let note = |at, len, generation| {
            seen.push((at, len, generation));
            Ok(())
        };
        p.check_each(&block, 1, 8192, note).unwrap();
        assert_eq!(seen, [(0, 1024, 5), (1024, 512, 6), (1536, 2560, 5)]);
        // Its head gone, the rest is ours, and of no writing that could be told.
        p.fill(&mut block[..512], 1, 8192, 7, false);
        seen.clear();
        let note = |at, len, generation| {
            seen.push((at, len, generation));
            Ok(())
        };
        p.check_each(&block, 1, 8192, note).unwrap();
        assert_eq!(seen, [(0, 512, 7), (512, 512, 0), (1024, 512, 6), (1536, 2560, 0)]);
    }

    #[test]
    fn small_blocks_that_lost_their_stamp_are_named() {
        let p = payload(DataSpec::default());
        assert_eq!(p.check(&[0; 512], 1, 512).unwrap_err().found, "zeros");
        assert!(p.check(&[7; 512], 1, 512).is_err());
        let mut block = vec![0; 512];
        p.fill(&mut block, 1, 512, 0, false);
        block[0] ^= 1;
        assert!(p.check(&block, 1, 512).is_err());
        p.fill(&mut block, 1, 1024, 0, false);
        assert!(p.check(&block, 1, 512).unwrap_err().found.contains("offset 1024"));
    }

    #[test]
    fn another_seed_is_told_from_damage() {
        let (p, other) =
            (payload(DataSpec::default()), Payload::new(DataSeed { seed: 8, ..DataSeed::default() }));
        let mut block = vec![0; 4096];
        other.fill(&mut block, 1, 4096, 0, false);
        assert!(p.check(&block, 1, 4096).unwrap_err().found.contains(OTHER_SEED));
        p.fill(&mut block, 1, 4096, 0, false);
        block[24] ^= 1;
        assert!(p.check(&block, 1, 4096).unwrap_err().found.contains("damaged"));
    }

    #[test]
    fn zeros_and_strangers_are_named() {
        let p = payload(DataSpec::default());
        assert_eq!(p.check(&[0; 4096], 1, 0).unwrap_err().found, "zeros");
        let mut block = vec![0; 4096];
        p.fill(&mut block, 2, 4096, 0, false);
        assert!(p.check(&block, 1, 4096).unwrap_err().found.contains("object 2, offset 4096"));
    }

    #[test]
    fn no_two_blocks_are_alike() {
        let p = payload(DataSpec::default());
        let mut seen = std::collections::HashSet::new();
        for generation in 0..4 {
            for i in 0..64 {
                let mut block = vec![0; 4096];
                p.fill(&mut block, 1, i * 4096, generation, false);
                assert!(seen.insert(block));
            }
        }
    }
}
