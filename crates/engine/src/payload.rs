//! What written blocks contain: random, incompressible, no two alike, and known to whoever knows the
//! seed. A stamp at the head of each granule says which object, which offset and which writing of it;
//! the rest is a slice of a shared random pool that follows from the stamp.

use std::sync::OnceLock;

use plimsoll_model::plan::DataSpec;

use crate::api::DataSeed;
use crate::rng;

/// Distance of stamps where all sizes and offsets are multiples of it, and otherwise.
pub const GRANULE: usize = 4096;
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
    pool: Vec<u8>,
    /// Where in the pool a slice begins, by its first word: made when a read first begins inside a granule.
    places: OnceLock<Vec<(u64, u32)>>,
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
    pub expected: String,
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
    pub fn new(data: DataSeed) -> Self {
        let DataSpec { compressible, dedupable } = data.spec;
        Self {
            pool: make_pool(rng::derive(data.seed, 21), compressible),
            places: OnceLock::new(),
            seed: rng::derive(data.seed, 22),
            dedup: (dedupable.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u64,
        }
    }

    /// Fills `block`, which is written at `offset` of `object` for the `generation`-th time.
    #[inline]
    pub fn fill(&self, block: &mut [u8], object: u64, offset: u64, generation: u64) {
        let granule = if (block.len() as u64 | offset).is_multiple_of(GRANULE as u64) {
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
        &self.pool[from..from + len]
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

    /// Checks what was read at `offset` of `object`, against whichever writing of it the stamps name. Of a read
    /// that begins inside a granule, the part before the first stamp must be of the pool: whose it is cannot
    /// be told, that it is ours and whole can.
    pub fn check(&self, block: &[u8], object: u64, offset: u64) -> Result<(), Difference> {
        self.check_each(block, object, offset, |_, _| Ok(()))
    }

    /// The same; `judge` is asked about each granule that is sound: where it is in the block, and its generation.
    /// Granules that repeat others carry none.
    pub fn check_each(
        &self,
        block: &[u8],
        object: u64,
        offset: u64,
        mut judge: impl FnMut(usize, u64) -> Result<(), Difference>,
    ) -> Result<(), Difference> {
        let mut at = 0;
        while at < block.len() {
            let here = offset + at as u64;
            let rest = &block[at..];
            if rest.len() < STAMP_BYTES {
                break;
            }
            let head = head_of(rest);
            if head[0] != MAGIC && !here.is_multiple_of(GRANULE as u64) && at == 0 {
                let len = (GRANULE - (here % GRANULE as u64) as usize).min(rest.len());
                self.check_middle(&rest[..len], object, here)?;
                at = len;
                continue;
            }
            let len =
                self.check_one(rest, head, object, here).map_err(|d| Difference { at: at + d.at, ..d })?;
            if (head[1], head[2]) == (object, here) {
                judge(at, head[3])?;
            }
            at += len;
        }
        Ok(())
    }

    /// Checks the granule at the start of `rest`; its length.
    fn check_one(&self, rest: &[u8], head: [u64; 6], object: u64, offset: u64) -> Result<usize, Difference> {
        let granule = head[4] ^ self.seed;
        let found = Stamp { object: head[1], offset: head[2], generation: head[3], granule };
        let wanted = self.identity(Stamp { object, offset, ..found });
        let sound = head[0] == MAGIC
            && matches!(granule as usize, GRANULE | SMALL_GRANULE)
            && head[5] == self.check_of(found);
        if !sound || (found.object, found.offset) != (wanted.object, wanted.offset) {
            return Err(Difference {
                at: 0,
                expected: format!("the stamp of object {object}, offset {offset}"),
                found: describe(rest, head),
            });
        }
        let len = (granule as usize).min(rest.len());
        let body = self.body(found, granule as usize);
        match body[STAMP_BYTES..len].iter().zip(&rest[STAMP_BYTES..len]).position(|(a, b)| a != b) {
            None => Ok(len),
            Some(i) => {
                let at = STAMP_BYTES + i;
                Err(Difference { at, expected: hex(&body[at..len]), found: hex(&rest[at..len]) })
            }
        }
    }
}

/// The middle of a granule.
impl Payload {
    /// Checks a part of a granule that begins a multiple of the slices' step behind its stamp.
    fn check_middle(&self, piece: &[u8], object: u64, offset: u64) -> Result<(), Difference> {
        let Some((at, word)) = first_word(piece) else {
            // Zeros throughout: a pool that compresses to nothing has such pieces, another has none.
            let zeros_are_ours = self.pool.chunks(piece.len().max(1)).any(|c| c.iter().all(|b| *b == 0));
            return if zeros_are_ours { Ok(()) } else { Err(stranger(piece, object, offset)) };
        };
        let places = self.places.get_or_init(|| places_of(&self.pool));
        let from = places.partition_point(|(w, _)| *w < word);
        // Words of the pool are random, so that as a rule there is one place; all of them are tried.
        let candidates = places[from..].iter().take_while(|(w, _)| *w == word).filter_map(|(_, place)| {
            let start = (*place as usize).checked_sub(at)?;
            self.pool.get(start..start + piece.len())
        });
        let mut nearest: Option<usize> = None;
        for ours in candidates {
            match ours.iter().zip(piece).position(|(a, b)| a != b) {
                None => return Ok(()),
                Some(i) => nearest = nearest.max(Some(i)),
            }
        }
        match nearest {
            None => Err(stranger(piece, object, offset)),
            Some(at) => Err(Difference {
                at,
                expected: "the rest of the random data before it".into(),
                found: hex(&piece[at..]),
            }),
        }
    }
}

fn stranger(piece: &[u8], object: u64, offset: u64) -> Difference {
    let expected = format!("a stamp of object {object}, offset {offset}, or data of this seed");
    Difference { at: 0, expected, found: describe(piece, head_of(piece)) }
}

/// The first word that is not zero, at a multiple of the slices' step, and where it is.
fn first_word(piece: &[u8]) -> Option<(usize, u64)> {
    (0..piece.len()).step_by(SLICE_STEP).find_map(|at| match word_at(piece, at) {
        Some(0) | None => None,
        Some(word) => Some((at, word)),
    })
}

fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn places_of(pool: &[u8]) -> Vec<(u64, u32)> {
    let mut places: Vec<(u64, u32)> = (0..pool.len())
        .step_by(SLICE_STEP)
        .filter_map(|at| Some((word_at(pool, at).filter(|w| *w != 0)?, at as u32)))
        .collect();
    places.sort_unstable();
    places
}

fn head_of(block: &[u8]) -> [u64; 6] {
    let mut words = [0; 6];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    }
    words
}

fn check_word(seed: u64, s: Stamp) -> u64 {
    rng::mix(seed ^ rng::mix(s.object ^ rng::mix(s.offset ^ rng::mix(s.generation ^ s.granule))))
}

/// Whether the head is a sound stamp under some seed: the stamp itself tells which it would have to be.
fn is_sound_elsewhere(head: [u64; 6]) -> bool {
    [GRANULE as u64, SMALL_GRANULE as u64].into_iter().any(|granule| {
        let stamp = Stamp { object: head[1], offset: head[2], generation: head[3], granule };
        head[5] == check_word(head[4] ^ granule, stamp)
    })
}

/// What is said of a block whose stamp is sound, but made with another seed. Whoever judges a run looks for it: such a
/// block is no damage.
pub const OTHER_SEED: &str = "it was written under another seed";

fn describe(block: &[u8], head: [u64; 6]) -> String {
    if head[0] == MAGIC {
        let (object, offset) = (head[1], head[2]);
        return if is_sound_elsewhere(head) {
            format!(
                "a whole stamp of object {object}, offset {offset} (if these are right, {OTHER_SEED}: verify with the --seed of the run that wrote it)"
            )
        } else {
            format!("a damaged stamp of object {object}, offset {offset}")
        };
    }
    if block[..block.len().min(SMALL_GRANULE)].iter().all(|b| *b == 0) {
        return "zeros".into();
    }
    format!("no stamp: {}", hex(block))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(8).map(|b| format!("{b:02x}")).collect()
}

fn make_pool(seed: u64, compressible: f64) -> Vec<u8> {
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
            p.fill(&mut block, 3, first * unit as u64, generation);
            prop_assert_eq!(p.check(&block, 3, first * unit as u64), Ok(()));
            let from = (part % blocks) * SMALL_GRANULE;
            prop_assert_eq!(p.check(&block[from..], 3, first * unit as u64 + from as u64), Ok(()));
        }

        #[test]
        fn a_flipped_bit_is_found_where_it_is(at in 0usize..8192, bit in 0u8..8) {
            let p = payload(DataSpec::default());
            let mut block = vec![0; 8192];
            p.fill(&mut block, 1, 8192, 5);
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
            p.fill(&mut granule, 1, 8192, 5);
            let piece = &mut granule[unit * 512..][..512];
            let offset = 8192 + unit as u64 * 512;
            prop_assert_eq!(p.check(piece, 1, offset), Ok(()));
            piece[at] ^= 1 << bit;
            prop_assert!(p.check(piece, 1, offset).is_err());
        }
    }

    #[test]
    fn small_blocks_that_lost_their_stamp_are_named() {
        let p = payload(DataSpec::default());
        assert_eq!(p.check(&[0; 512], 1, 512).unwrap_err().found, "zeros");
        assert!(p.check(&[7; 512], 1, 512).is_err());
        let mut block = vec![0; 512];
        p.fill(&mut block, 1, 512, 0);
        block[0] ^= 1;
        assert!(p.check(&block, 1, 512).is_err());
        p.fill(&mut block, 1, 1024, 0);
        assert!(p.check(&block, 1, 512).unwrap_err().found.contains("offset 1024"));
    }

    #[test]
    fn another_seed_is_told_from_damage() {
        let (p, other) =
            (payload(DataSpec::default()), Payload::new(DataSeed { seed: 8, ..DataSeed::default() }));
        let mut block = vec![0; 4096];
        other.fill(&mut block, 1, 4096, 0);
        assert!(p.check(&block, 1, 4096).unwrap_err().found.contains(OTHER_SEED));
        p.fill(&mut block, 1, 4096, 0);
        block[24] ^= 1;
        assert!(p.check(&block, 1, 4096).unwrap_err().found.contains("damaged"));
    }

    #[test]
    fn zeros_and_strangers_are_named() {
        let p = payload(DataSpec::default());
        assert_eq!(p.check(&[0; 4096], 1, 0).unwrap_err().found, "zeros");
        let mut block = vec![0; 4096];
        p.fill(&mut block, 2, 4096, 0);
        assert!(p.check(&block, 1, 4096).unwrap_err().found.contains("object 2, offset 4096"));
    }

    #[test]
    fn no_two_blocks_are_alike() {
        let p = payload(DataSpec::default());
        let mut seen = std::collections::HashSet::new();
        for generation in 0..4 {
            for i in 0..64 {
                let mut block = vec![0; 4096];
                p.fill(&mut block, 1, i * 4096, generation);
                assert!(seen.insert(block));
            }
        }
    }
}
