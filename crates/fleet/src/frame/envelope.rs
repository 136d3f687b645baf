//! A frame as it travels: a line of JSON that says which one it is, and the compressed bytes of the stream.

use serde::{Deserialize, Serialize};

use crate::wire::VERSION;

/// Bytes of the stream in one frame at the most: also what does not compress stays below what a bus takes.
pub const CONTENT: usize = 256 << 10;
const LEVEL: i32 = 1;

/// Which frame it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameHead {
    version: u32,
    /// Of the process that measured.
    pub session: String,
    /// The run.
    pub run: String,
    /// The stage's number in it.
    pub stage: u32,
    /// From 0, in the order of the stream.
    pub number: u64,
    /// Length of the content.
    bytes: usize,
}

impl FrameHead {
    pub fn new(session: &str, run: &str, stage: u32, number: u64) -> Self {
        let (session, run) = (session.to_owned(), run.to_owned());
        Self { version: VERSION, session, run, stage, number, bytes: 0 }
    }
}

/// As it is published.
pub fn encode(mut head: FrameHead, content: &[u8]) -> Vec<u8> {
    assert!(content.len() <= CONTENT, "a frame is cut before it is too long");
    head.bytes = content.len();
    let mut out = serde_json::to_vec(&head).expect("plain data is always JSON");
    out.push(b'\n');
    let packed = zstd::bulk::compress(content, LEVEL).expect("what is in memory can be compressed");
    out.extend_from_slice(&packed);
    out
}

/// Which one it is, and its content; `None` where it is none of ours.
pub fn decode(bytes: &[u8]) -> Option<(FrameHead, Vec<u8>)> {
    let end = bytes.iter().position(|b| *b == b'\n')?;
    let head: FrameHead = serde_json::from_slice(&bytes[..end]).ok()?;
    if head.version != VERSION || head.bytes > CONTENT {
        return None;
    }
    let content = zstd::bulk::decompress(&bytes[end + 1..], CONTENT).ok()?;
    (content.len() == head.bytes).then_some((head, content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn comes_back_as_it_was(content: Vec<u8>, number: u64, stage: u32) {
            let head = FrameHead::new("s", "r", stage, number);
            let (back, bytes) = decode(&encode(head, &content)).unwrap();
            prop_assert_eq!((back.stage, back.number, bytes), (stage, number, content));
        }

        #[test]
        fn hostile_bytes_never_panic(bytes: Vec<u8>, flip: prop::sample::Index, bit in 0u8..8) {
            let _ = decode(&bytes);
            let mut frame = encode(FrameHead::new("s", "r", 1, 2), b"content");
            let at = flip.index(frame.len());
            frame[at] ^= 1 << bit;
            let _ = decode(&frame);
        }
    }

    #[test]
    fn what_does_not_compress_fits() {
        let noise: Vec<u8> = (0..CONTENT as u64)
            .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ (i.wrapping_mul(i) >> 13) as u8)
            .collect();
        assert!(encode(FrameHead::new("s", "r", 0, 0), &noise).len() < plimsoll_bus::LARGEST_BYTES);
    }
}
