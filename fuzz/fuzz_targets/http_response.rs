//! An answer in any pieces is the answer in one piece: same body, same end. No input makes the parser spin.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_s3::{Malformed, ResponseEvent, ResponseParser};

#[derive(Debug, PartialEq)]
struct Seen {
    status: u16,
    body: Vec<u8>,
    end: Result<bool, Malformed>,
}

/// Feeds `input` in pieces of `piece` bytes; the end is `Ok(true)` for a complete answer.
fn read(input: &[u8], piece: usize, head_request: bool) -> Seen {
    let mut parser = ResponseParser::new();
    parser.begin(head_request);
    let mut seen = Seen { status: 0, body: Vec::new(), end: Ok(false) };
    for chunk in input.chunks(piece) {
        let mut rest = chunk;
        let mut idle = 0;
        loop {
            match parser.step(rest) {
                Err(e) => {
                    seen.end = Err(e);
                    return seen;
                }
                Ok((used, event)) => {
                    assert!(used <= rest.len());
                    if let ResponseEvent::Body { len } = event {
                        seen.body.extend_from_slice(&rest[used - len..used]);
                    }
                    rest = &rest[used..];
                    match event {
                        ResponseEvent::Done => {
                            seen.status = parser.head().status;
                            seen.end = Ok(true);
                            return seen;
                        }
                        ResponseEvent::NeedMore => {
                            assert!(rest.is_empty(), "more is needed only when all is used");
                            break;
                        }
                        _ => {}
                    }
                    idle = if used == 0 { idle + 1 } else { 0 };
                    assert!(idle < 8, "the parser makes no progress");
                }
            }
        }
    }
    seen
}

fuzz_target!(|input: (bool, u8, &[u8])| {
    let (head_request, piece, bytes) = input;
    let whole = read(bytes, bytes.len().max(1), head_request);
    let pieces = read(bytes, usize::from(piece).max(1), head_request);
    // A broken head may be seen as broken before its end has come, or only then. A complete answer is complete, and
    // the same, in whatever pieces it came.
    if whole.end == Ok(true) || pieces.end == Ok(true) {
        assert_eq!(whole, pieces);
    }
});
