//! Messages that are longer than the bus takes, in pieces. A message whose pieces do not all come is as one that was lost.

use std::collections::BTreeMap;

/// Number of the message, of the piece, and how many there are.
const HEAD: usize = 8 + 4 + 4;
/// No message is longer: who says so is not believed.
const LONGEST: usize = 256 << 20;
/// Nor of more pieces: the longest one, in pieces as small as a broker may want them.
const PIECES: usize = 1 << 16;
/// Messages of one sender that may be under way at once; beyond it, the oldest is given up.
const UNDER_WAY: usize = 8;

/// A message as what is published, one after the other. `number` is the sender's, another for each.
pub fn split(number: u64, message: &[u8], largest: usize) -> Vec<Vec<u8>> {
    let room = largest.saturating_sub(HEAD).max(1);
    let of = message.len().div_ceil(room).max(1) as u32;
    let piece = |i: u32| {
        let from = i as usize * room;
        let part = &message[from..message.len().min(from + room)];
        let mut out = Vec::with_capacity(HEAD + part.len());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&i.to_le_bytes());
        out.extend_from_slice(&of.to_le_bytes());
        out.extend_from_slice(part);
        out
    };
    (0..of).map(piece).collect()
}

/// Puts the pieces of one sender together again.
#[derive(Debug)]
pub struct Joiner {
    longest: usize,
    under_way: BTreeMap<u64, Partial>,
}

impl Default for Joiner {
    fn default() -> Self {
        Self::up_to(LONGEST)
    }
}

/// No message has such a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoPiece {
    /// It has no head, or none that holds.
    #[error("it is no piece of a message")]
    Head,
    /// Its message has too many.
    #[error("its message is in {0} pieces")]
    TooMany(u32),
    /// Its message is too long.
    #[error("its message is longer than {0} bytes")]
    TooLong(usize),
}

#[derive(Debug)]
struct Partial {
    of: u32,
    bytes: usize,
    pieces: BTreeMap<u32, Vec<u8>>,
}

impl Joiner {
    /// Of messages up to this length. All that are under way together are no longer than that, either.
    pub fn up_to(longest: usize) -> Self {
        Self { longest, under_way: BTreeMap::new() }
    }

    /// A piece has come: gives the message that it completes. Only who does not keep to the wire gets an error.
    pub fn offer(&mut self, piece: &[u8]) -> Result<Option<Vec<u8>>, NoPiece> {
        let (number, index, of, part) = head_of(piece).ok_or(NoPiece::Head)?;
        if part.len() > self.longest {
            return Err(NoPiece::TooLong(self.longest));
        }
        if of == 1 {
            return Ok(Some(part.to_vec()));
        }
        if of as usize > PIECES {
            return Err(NoPiece::TooMany(of));
        }
        // A message in several pieces has something in each.
        if part.is_empty() {
            return Err(NoPiece::Head);
        }
        let partial =
            self.under_way.entry(number).or_insert(Partial { of, bytes: 0, pieces: BTreeMap::new() });
        if partial.of != of {
            self.under_way.remove(&number);
            return Err(NoPiece::Head);
        }
        if partial.bytes + part.len() > self.longest {
            self.under_way.remove(&number);
            return Err(NoPiece::TooLong(self.longest));
        }
        if let std::collections::btree_map::Entry::Vacant(slot) = partial.pieces.entry(index) {
            slot.insert(part.to_vec());
            partial.bytes += part.len();
        }
        if partial.pieces.len() as u32 == of {
            let whole = self.under_way.remove(&number);
            return Ok(whole.map(|p| p.pieces.into_values().flatten().collect()));
        }
        while self.is_too_much() {
            self.under_way.pop_first();
        }
        Ok(None)
    }

    fn is_too_much(&self) -> bool {
        let (mut bytes, mut pieces) = (0, 0);
        for p in self.under_way.values() {
            (bytes, pieces) = (bytes + p.bytes, pieces + p.pieces.len());
        }
        self.under_way.len() > UNDER_WAY || bytes > self.longest || pieces > PIECES
    }
}

/// Number of the message, of the piece, how many there are, and what is in it.
fn head_of(piece: &[u8]) -> Option<(u64, u32, u32, &[u8])> {
    let (head, part) = piece.split_at_checked(HEAD)?;
    let number = u64::from_le_bytes(head[..8].try_into().ok()?);
    let index = u32::from_le_bytes(head[8..12].try_into().ok()?);
    let of = u32::from_le_bytes(head[12..].try_into().ok()?);
    (index < of).then_some((number, index, of, part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn in_whatever_order_they_come(
            message in prop::collection::vec(any::<u8>(), 0..400),
            largest in 17usize..80,
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..80),
        ) {
            let pieces = split(7, &message, largest);
            prop_assert!(pieces.iter().all(|p| p.len() <= largest));
            let mut joiner = Joiner::default();
            let (mut seen, mut whole) = (std::collections::BTreeSet::new(), None);
            for i in order.iter().map(|i| i.index(pieces.len())).chain(0..pieces.len()) {
                if seen.len() == pieces.len() {
                    break;
                }
                seen.insert(i);
                whole = whole.or(joiner.offer(&pieces[i]).unwrap());
            }
            prop_assert_eq!(whole, Some(message));
        }

        #[test]
        fn hostile_pieces_never_panic(pieces: Vec<Vec<u8>>) {
            let mut joiner = Joiner::default();
            for piece in pieces {
                let _ = joiner.offer(&piece);
            }
            prop_assert!(joiner.under_way.len() <= UNDER_WAY);
        }
    }

    fn piece(number: u64, index: u32, of: u32, part: &[u8]) -> Vec<u8> {
        [&number.to_le_bytes()[..], &index.to_le_bytes(), &of.to_le_bytes(), part].concat()
    }

    #[test]
    fn what_is_under_way_is_bounded_in_bytes_and_in_number() {
        let mut joiner = Joiner::up_to(1000);
        assert_eq!(joiner.offer(&piece(0, 7, u32::MAX, b"")), Err(NoPiece::TooMany(u32::MAX)));
        assert_eq!(joiner.offer(&piece(0, 7, 9, b"")), Err(NoPiece::Head));
        assert_eq!(joiner.offer(&piece(0, 0, 1, &[0; 1001])), Err(NoPiece::TooLong(1000)));
        assert_eq!(joiner.offer(&piece(1, 0, 3, &[0; 600])), Ok(None));
        assert_eq!(joiner.offer(&piece(1, 1, 3, &[0; 600])), Err(NoPiece::TooLong(1000)));
        for number in 2..9 {
            assert_eq!(joiner.offer(&piece(number, 0, 2, &[0; 600])), Ok(None));
            assert_eq!(joiner.under_way.len(), 1);
        }
    }
}
