//! Writes under way: which places of a stage's files are being written just now, over all of its jobs.
//!
//! A write is not one step. A read that crosses it may see the old content of one part and the new of another (within
//! a sector, too: what copies memory copies it a cache line at a time), and two writes that cross leave whichever
//! mixture the last stores made. POSIX says otherwise; Linux file systems and devices do not promise it (measured: ext4
//! through the page cache, torn at multiples of 64 bytes). So what such a read shows is no sign of damage,
//! and a verifying reader asks here before it calls it that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::rng;

/// Bytes that are told apart.
const LINE: u64 = 4096;
/// Lines that are kept: 4 GiB without two places that share one. Sharing costs a judgement, and never makes one wrong.
const LINES: usize = 1 << 20;

/// Of a line's word: writes that are under way; whether the content is a mixture of two; how many writes were begun.
const FLYING: u64 = (1 << 16) - 1;
const MIXED: u64 = 1 << 16;
const ONE_BEGUN: u64 = 1 << 17;

/// A word for each line.
#[derive(Debug)]
pub struct Underway {
    lines: Box<[AtomicU64]>,
}

/// It is what it is by its place in memory.
impl PartialEq for Underway {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Underway {}

impl Underway {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { lines: (0..LINES).map(|_| AtomicU64::new(0)).collect() })
    }

    /// Lines that a block of so many bytes touches at most.
    pub fn lines_of(bytes: u64) -> usize {
        (bytes.div_ceil(LINE) + 1) as usize
    }

    fn words(&self, object: u64, offset: u64, length: u64) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let first = rng::mix(object);
        (offset / LINE..(offset + length).div_ceil(LINE))
            .map(move |line| (&self.lines[first.wrapping_add(line) as usize % LINES], line))
    }

    /// A write is about to be submitted; `into` keeps a word for each line until its end.
    #[inline]
    pub fn begin(&self, object: u64, offset: u64, length: u64, into: &mut [u64]) {
        for ((word, line), kept) in self.words(object, offset, length).zip(into) {
            let whole = offset <= line * LINE && (line + 1) * LINE <= offset + length;
            let begun = |old: u64| {
                let new = old.wrapping_add(ONE_BEGUN + 1);
                *kept = match old & FLYING {
                    0 if whole => new & !MIXED,
                    0 => new,
                    _ => new | MIXED,
                };
                Some(*kept)
            };
            // It always gives a value.
            let _ = word.fetch_update(SeqCst, SeqCst, begun);
        }
    }

    /// The parts of a write that is about to be over, offset and length, that no other crossed: what it wrote is there.
    #[inline]
    pub fn settled(
        &self,
        object: u64,
        offset: u64,
        length: u64,
        noted: &[u64],
        mut part: impl FnMut(u64, u64),
    ) {
        let (mut from, end) = (offset, offset + length);
        for ((word, line), before) in self.words(object, offset, length).zip(noted) {
            let next = ((line + 1) * LINE).min(end);
            if before & FLYING > 1 || word.load(SeqCst) != *before {
                if from < line * LINE {
                    part(from, line * LINE - from);
                }
                from = next;
            }
        }
        if from < end {
            part(from, end - from);
        }
    }

    /// The write is over, however it ended.
    #[inline]
    pub fn end(&self, object: u64, offset: u64, length: u64) {
        for (word, _) in self.words(object, offset, length) {
            word.fetch_sub(1, SeqCst);
        }
    }

    /// What a read that is about to be submitted has to keep: a word for each line.
    #[inline]
    pub fn note(&self, object: u64, offset: u64, length: u64, into: &mut [u64]) {
        for ((word, _), kept) in self.words(object, offset, length).zip(into) {
            *kept = word.load(SeqCst);
        }
    }

    /// Whether a write to the lines was under way at any time since `noted`, or they hold a mixture.
    pub fn crossed(&self, object: u64, offset: u64, length: u64, noted: &[u64]) -> bool {
        self.words(object, offset, length)
            .zip(noted)
            .any(|((word, _), before)| before & (FLYING | MIXED) != 0 || word.load(SeqCst) != *before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(u: &Underway, object: u64, offset: u64, length: u64) -> [u64; 8] {
        let mut noted = [0; 8];
        u.begin(object, offset, length, &mut noted);
        noted
    }

    fn crossed(u: &Underway, meanwhile: impl FnOnce()) -> bool {
        let mut noted = [0; 3];
        u.note(1, 512, 4096, &mut noted);
        meanwhile();
        u.crossed(1, 512, 4096, &noted)
    }

    fn settled(u: &Underway, offset: u64, length: u64, noted: &[u64]) -> Vec<(u64, u64)> {
        let mut parts = Vec::new();
        u.settled(1, offset, length, noted, |offset, length| parts.push((offset, length)));
        parts
    }

    #[test]
    fn a_read_knows_what_crossed_it() {
        let u = Underway::new();
        assert!(!crossed(&u, || ()));
        assert!(crossed(&u, || _ = write(&u, 1, 4096, 512)), "begun in between");
        assert!(crossed(&u, || ()), "still under way");
        assert!(crossed(&u, || u.end(1, 4096, 512)), "ended in between");
        assert!(!crossed(&u, || ()), "over before it");
        let elsewhere = || {
            write(&u, 1, 8192, 4096);
            write(&u, 2, 0, 8192);
            u.end(1, 8192, 4096);
        };
        assert!(!crossed(&u, elsewhere), "other places and other files");
    }

    #[test]
    fn a_mixture_stays_until_it_is_written_over() {
        let u = Underway::new();
        write(&u, 1, 0, 8192);
        write(&u, 1, 4096, 4096);
        u.end(1, 0, 8192);
        u.end(1, 4096, 4096);
        assert!(crossed(&u, || ()), "two writes crossed there");
        write(&u, 1, 4096, 512);
        u.end(1, 4096, 512);
        assert!(crossed(&u, || ()), "a part of it is new");
        write(&u, 1, 4096, 4096);
        u.end(1, 4096, 4096);
        assert!(!crossed(&u, || ()), "all of it is");
    }

    #[test]
    fn what_a_write_left_is_known_where_none_crossed_it() {
        let u = Underway::new();
        let first = write(&u, 1, 512, 16384);
        assert_eq!(settled(&u, 512, 16384, &first), [(512, 16384)]);
        let second = write(&u, 1, 8192, 512);
        assert_eq!(settled(&u, 512, 16384, &first), [(512, 7680), (12288, 4608)]);
        assert_eq!(settled(&u, 8192, 512, &second), []);
        u.end(1, 512, 16384);
        assert_eq!(settled(&u, 8192, 512, &second), [], "the first is over, and it did cross");
        u.end(1, 8192, 512);
        let third = write(&u, 1, 8192, 512);
        assert_eq!(settled(&u, 8192, 512, &third), [(8192, 512)]);
    }

    #[test]
    fn places_beyond_the_table_share_lines() {
        let u = Underway::new();
        write(&u, 1, 0, 4096);
        let far = LINES as u64 * LINE;
        let mut noted = [0; 1];
        u.note(1, far, 4096, &mut noted);
        assert!(u.crossed(1, far, 4096, &noted));
    }
}
