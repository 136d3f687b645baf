//! What agents send over a network that loses, doubles and reorders: frames are numbered, and are put in order again here.

use std::collections::BTreeMap;

/// How far ahead of the next frame one may be. (A choice: what is missing is asked for many times a second, and who is silent for ten
/// seconds is lost; so many frames of a quarter of a megabyte in that time are more than a network carries. A number beyond is no
/// frame's.)
pub const WINDOW: u64 = 4096;
/// How many missing ones are asked for at once: the others follow when these have come.
const ASKED: usize = 512;

/// A number that no frame can have by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("frame {number} was sent where {next} is next")]
pub struct BeyondWindow {
    /// As it was told.
    pub number: u64,
    /// The one that is given out next.
    pub next: u64,
}

/// What came from one agent. Frames are numbered from 0 in the order in which they were sent.
#[derive(Debug)]
pub struct Inbox<T> {
    /// Number of the frame that is given out next.
    next: u64,
    /// Came before those ahead of them.
    waiting: BTreeMap<u64, T>,
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        Self { next: 0, waiting: BTreeMap::new() }
    }
}

impl<T> Inbox<T> {
    /// Number of the frame that is given out next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// A frame has come, perhaps not for the first time: whether it is new.
    pub fn offer(&mut self, number: u64, frame: T) -> Result<bool, BeyondWindow> {
        let Some(ahead) = number.checked_sub(self.next) else { return Ok(false) };
        if ahead >= WINDOW || number == u64::MAX {
            return Err(BeyondWindow { number, next: self.next });
        }
        let is_new = !self.waiting.contains_key(&number);
        self.waiting.entry(number).or_insert(frame);
        Ok(is_new)
    }

    /// The next frame in order, if it is there.
    pub fn take(&mut self) -> Option<T> {
        let frame = self.waiting.remove(&self.next)?;
        self.next += 1;
        Some(frame)
    }

    /// Numbers of frames that are missing while later ones are there, in order: to be asked for. The first so many.
    pub fn missing(&self) -> Vec<u64> {
        let until = self.waiting.keys().last().copied().unwrap_or(self.next);
        (self.next..until).filter(|n| !self.waiting.contains_key(n)).take(ASKED).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_the_network_does_each_comes_once_and_in_order(
            count in 1u64..40,
            arrivals in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
        ) {
            let mut inbox = Inbox::default();
            let mut out = Vec::new();
            for i in arrivals {
                let n = i.index(count as usize) as u64;
                inbox.offer(n, n).unwrap();
                out.extend(std::iter::from_fn(|| inbox.take()));
            }
            // What is missing is asked for, and comes; so does the last.
            inbox.offer(count - 1, count - 1).unwrap();
            for n in inbox.missing() {
                inbox.offer(n, n).unwrap();
            }
            out.extend(std::iter::from_fn(|| inbox.take()));
            prop_assert!(out.into_iter().eq(0..count));
            prop_assert!(inbox.missing().is_empty());
        }
    }

    #[test]
    fn a_number_that_no_frame_has_is_told_and_costs_nothing() {
        let mut inbox = Inbox::default();
        for number in [WINDOW, 1_000_000_000_000, u64::MAX] {
            assert_eq!(inbox.offer(number, ()), Err(BeyondWindow { number, next: 0 }));
        }
        assert!(inbox.missing().is_empty());
        assert_eq!(inbox.offer(WINDOW - 1, ()), Ok(true));
        assert_eq!(inbox.missing(), (0..ASKED as u64).collect::<Vec<_>>());
        inbox.offer(0, ()).unwrap();
        assert!(inbox.take().is_some());
        assert_eq!(inbox.offer(WINDOW, ()), Ok(true));
    }
}
