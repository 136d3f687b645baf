//! What was read, held against what was written: each granule by its stamp, and parts of a granule by the pool.
//!
//! Blocks of different sizes overlap where a workload, or one after another, draws them: a small write inside a granule of
//! an earlier one leaves the rest of that as it was. So a granule may be cut at any multiple of [`SMALL_GRANULE`] by a
//! stamp that belongs there, and its rest is still held against the stamp that it had.

use plimsoll_model::outcome::OTHER_SEED;

use super::{Difference, GRANULE, MAGIC, Payload, SLICE_STEP, SMALL_GRANULE, STAMP_BYTES, Stamp, check_word};

/// A granule whose stamp was seen, and where it begins in what is checked.
type Under = (usize, Stamp);

impl Payload {
    /// Checks what was read at `offset` of `object`, against whichever writing of it the stamps name. Of a part
    /// of a granule whose stamp was not read, or is no longer there, it must be of the pool: whose it is cannot
    /// be told, that it is ours and whole can.
    pub fn check(&self, block: &[u8], object: u64, offset: u64) -> Result<(), Difference> {
        self.check_each(block, object, offset, |_, _, _| Ok(()))
    }

    /// The same; `judge` is asked about each piece that is sound: where it is in the block, its length, and its
    /// generation, or 0 where its stamp is not there. Granules that repeat others carry none, and are not asked about.
    pub fn check_each(
        &self,
        block: &[u8],
        object: u64,
        offset: u64,
        mut judge: impl FnMut(usize, usize, u64) -> Result<(), Difference>,
    ) -> Result<(), Difference> {
        let mut at = 0;
        let mut under: Option<Under> = None;
        while at < block.len() {
            let here = offset + at as u64;
            let rest = &block[at..];
            if rest.len() < STAMP_BYTES {
                break;
            }
            let in_granule = (here % GRANULE as u64) as usize;
            let found = head_of(rest);
            let generation;
            let len;
            if found[0] != MAGIC && in_granule > 0 {
                len = self.uncut(rest, object, here, (GRANULE - in_granule).min(rest.len()));
                let known = under.filter(|(from, _)| at - from < GRANULE);
                generation = self.check_part(&rest[..len], known.map(|u| (at - u.0, u.1)), object, here);
            } else {
                let stamp = self.stamp_at(rest, found, object, here);
                (len, generation) = match stamp {
                    Err(d) => (0, Err(d)),
                    Ok(stamp) => {
                        under = (stamp.granule as usize == GRANULE).then_some((at, stamp)).or(under);
                        let whole = (stamp.granule as usize).min(rest.len());
                        self.check_granule(&rest[..whole], stamp, object, here)
                    }
                };
            }
            let generation = generation.map_err(|d| Difference { at: at + d.at, ..d })?;
            if let Some(generation) = generation {
                judge(at, len, generation)?;
            }
            at += len;
        }
        Ok(())
    }

    /// The stamp at the start of `rest`, if it is sound and belongs there.
    fn stamp_at(&self, rest: &[u8], head: [u64; 6], object: u64, offset: u64) -> Result<Stamp, Difference> {
        let found =
            Stamp { object: head[1], offset: head[2], generation: head[3], granule: head[4] ^ self.seed };
        let sound = head[0] == MAGIC
            && matches!(found.granule as usize, GRANULE | SMALL_GRANULE)
            && head[5] == self.check_of(found);
        let belongs = || {
            let wanted = self.identity(Stamp { object, offset, ..found });
            (found.object, found.offset) == (wanted.object, wanted.offset)
        };
        if !sound || !belongs() {
            return Err(Difference {
                at: 0,
                expected: format!("the stamp of object {object}, offset {offset}"),
                found: describe(rest, head),
            });
        }
        Ok(found)
    }

    /// How much of `rest`, up to `most`, is not cut by a stamp that belongs behind its start.
    fn uncut(&self, rest: &[u8], object: u64, offset: u64, most: usize) -> usize {
        // The first multiple of the small granule behind the start.
        let first = SMALL_GRANULE - (offset % SMALL_GRANULE as u64) as usize;
        let cut = (first..most).step_by(SMALL_GRANULE).find(|at| {
            let behind = &rest[*at..];
            behind.len() >= STAMP_BYTES
                && self.stamp_at(behind, head_of(behind), object, offset + *at as u64).is_ok()
        });
        cut.unwrap_or(most)
    }

    /// Checks a granule behind its stamp, as far as no other was written into it: its length, and its generation.
    fn check_granule(
        &self,
        piece: &[u8],
        stamp: Stamp,
        object: u64,
        offset: u64,
    ) -> (usize, Result<Option<u64>, Difference>) {
        let body = self.body(stamp, stamp.granule as usize);
        let differs = |len: usize| {
            body[STAMP_BYTES..len].iter().zip(&piece[STAMP_BYTES..len]).position(|(a, b)| a != b)
        };
        let mut len = piece.len();
        let mut at = differs(len);
        if at.is_some() && len > SMALL_GRANULE {
            len = self.uncut(piece, object, offset, len);
            at = differs(len);
        }
        match at {
            // A granule that repeats another has that one's stamp.
            None => (len, Ok(((stamp.object, stamp.offset) == (object, offset)).then_some(stamp.generation))),
            Some(i) => {
                let at = STAMP_BYTES + i;
                (len, Err(Difference { at, expected: hex(&body[at..len]), found: hex(&piece[at..len]) }))
            }
        }
    }

    /// Checks a part of a granule that lies `known` bytes behind the stamp that was seen, or of one whose stamp was not.
    fn check_part(
        &self,
        piece: &[u8],
        known: Option<Under>,
        object: u64,
        offset: u64,
    ) -> Result<Option<u64>, Difference> {
        if let Some((from, stamp)) = known {
            let body = &self.body(stamp, stamp.granule as usize)[from..from + piece.len()];
            return match body.iter().zip(piece).position(|(a, b)| a != b) {
                None => Ok((stamp.object == object && stamp.offset + from as u64 == offset)
                    .then_some(stamp.generation)),
                Some(at) => Err(Difference { at, expected: hex(&body[at..]), found: hex(&piece[at..]) }),
            };
        }
        self.check_middle(piece, object, offset)?;
        Ok((self.dedup == 0).then_some(0))
    }

    /// Checks a part of a granule that begins a multiple of the slices' step behind its stamp.
    fn check_middle(&self, piece: &[u8], object: u64, offset: u64) -> Result<(), Difference> {
        let Some((at, word)) = first_word(piece) else {
            // Zeros throughout: a pool that compresses to nothing has such pieces, another has none.
            let zeros_are_ours =
                self.pool.bytes.chunks(piece.len().max(1)).any(|c| c.iter().all(|b| *b == 0));
            return if zeros_are_ours { Ok(()) } else { Err(stranger(piece, object, offset)) };
        };
        let places = self.pool.places.get_or_init(|| places_of(&self.pool.bytes));
        let from = places.partition_point(|(w, _)| *w < word);
        // Words of the pool are random, so that as a rule there is one place; all of them are tried.
        let candidates = places[from..].iter().take_while(|(w, _)| *w == word).filter_map(|(_, place)| {
            let start = (*place as usize).checked_sub(at)?;
            self.pool.bytes.get(start..start + piece.len())
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

/// Whether the head is a sound stamp under some seed: the stamp itself tells which it would have to be.
fn is_sound_elsewhere(head: [u64; 6]) -> bool {
    [GRANULE as u64, SMALL_GRANULE as u64].into_iter().any(|granule| {
        let stamp = Stamp { object: head[1], offset: head[2], generation: head[3], granule };
        head[5] == check_word(head[4] ^ granule, stamp)
    })
}

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
