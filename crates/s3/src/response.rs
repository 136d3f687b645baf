//! The response parser: bytes in, events out, in any pieces. It copies no body and allocates nothing after start.
//!
//! The caller gives what it received and is told what the first part of it means and how long that part is; then
//! it gives the rest. The parser says how many bytes of body are certainly still to come ([`BodyLeft`]), so that a
//! caller may receive that many elsewhere (or throw them away in the kernel) and only report their number.
//! Source of the rules: RFC 9112 sections 4 to 7.

use crate::checksum::CrcKind;

mod chunked;
mod head;

use chunked::{Chunked, Part};
pub use head::{ResponseHead, Text};

/// The longest head (status line and headers) that is read, interim ones each.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;
/// The most headers of one head.
pub const MAX_HEADERS: usize = 128;

/// An answer that is not HTTP or breaks its rules. The connection is of no further use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// What the parser stumbled over.
    #[error("the answer is not HTTP/1.x ({0})")]
    NotHttp(&'static str),
    /// More than a slot keeps.
    #[error(
        "the head of the answer is longer than {MAX_HEAD_BYTES} bytes or has more than {MAX_HEADERS} headers"
    )]
    HeadTooLong,
    /// Where the answer ends cannot be known.
    #[error("the Content-Length of the answer is not a number, or there are several different ones")]
    ContentLength,
    /// Only `chunked` is understood.
    #[error("the answer has a transfer coding other than chunked")]
    TransferCoding,
    /// A size that is no number, or a line that does not end as it must.
    #[error("the chunked body is broken")]
    Chunk,
    /// Status 101.
    #[error("the answer switches protocols, which was not requested")]
    Switching,
    /// Bytes that were promised did not come.
    #[error("the connection was closed before the answer was complete")]
    Closed,
    /// Bytes to which no request belongs.
    #[error("there are bytes after the end of the answer")]
    Excess,
}

/// What the first `used` bytes of the input were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseEvent {
    /// All input is used up; more is needed.
    NeedMore,
    /// `100 Continue`: the body may be sent. Other interim answers are swallowed.
    Continue,
    /// The final head is there: see [`ResponseParser::head`].
    Head,
    /// The last `len` of the used bytes are body.
    Body {
        /// Bytes; at the end of those used.
        len: usize,
    },
    /// The answer is complete. What follows it is not looked at.
    Done,
}

/// Body bytes that are still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLeft {
    /// Exactly so many, as plain bytes.
    Exactly(u64),
    /// Chunked, or until the connection closes.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Length(u64),
    UntilClose,
    Chunked(Chunked),
    /// All was read; `Done` was not said yet, or was.
    Done,
    Broken(Malformed),
}

/// Reads one answer after another on one connection.
#[derive(Debug)]
pub struct ResponseParser {
    state: State,
    head: ResponseHead,
    /// A head that came in pieces, and the trailer line that did.
    pending: Vec<u8>,
    head_request: bool,
}

impl Default for ResponseParser {
    fn default() -> Self {
        Self::new()
    }
}

impl ResponseParser {
    /// Allocates room for usual heads; only a head of over 8 KiB that comes in pieces makes it grow.
    pub fn new() -> Self {
        Self {
            state: State::Head,
            head: ResponseHead::default(),
            pending: Vec::with_capacity(8 * 1024),
            head_request: false,
        }
    }

    /// Gets ready for the next answer. `head_request`: it answers a HEAD and has no body whatever it says.
    pub fn begin(&mut self, head_request: bool) {
        self.state = State::Head;
        self.head.clear();
        self.pending.clear();
        self.head_request = head_request;
    }

    /// The final head; meaningful after [`ResponseEvent::Head`]. Checksums of trailers are in it after [`ResponseEvent::Done`].
    pub fn head(&self) -> &ResponseHead {
        &self.head
    }

    /// The final head by value; the parser has an empty one then.
    pub fn take_head(&mut self) -> ResponseHead {
        std::mem::take(&mut self.head)
    }

    /// Whether any byte of the answer was seen.
    pub fn started(&self) -> bool {
        self.state != State::Head || !self.pending.is_empty()
    }

    /// Body bytes still to come; meaningful after [`ResponseEvent::Head`].
    pub fn body_left(&self) -> BodyLeft {
        match self.state {
            State::Length(n) => BodyLeft::Exactly(n),
            State::Done => BodyLeft::Exactly(0),
            _ => BodyLeft::Unknown,
        }
    }

    /// Says that `n` bytes of body were received elsewhere. At most what [`Self::body_left`] said.
    pub fn skip_body(&mut self, n: u64) {
        match &mut self.state {
            State::Length(left) if n <= *left => *left -= n,
            _ => self.state = State::Broken(Malformed::Excess),
        }
    }

    /// Whether the connection can carry another request after [`ResponseEvent::Done`].
    pub fn reusable(&self) -> bool {
        self.state == State::Done && !self.head.close
    }

    /// Reads on. Returns how many bytes of `input` were used and what they were; call again with the rest until
    /// [`ResponseEvent::NeedMore`] or [`ResponseEvent::Done`].
    pub fn step(&mut self, input: &[u8]) -> Result<(usize, ResponseEvent), Malformed> {
        let mut used = 0;
        loop {
            let (n, event) = self.step_once(&input[used..])?;
            used += n;
            // A swallowed part (an interim answer, a trailer) is no reason to come back for the rest.
            if event != ResponseEvent::NeedMore || used == input.len() {
                return Ok((used, event));
            }
        }
    }

    fn step_once(&mut self, input: &[u8]) -> Result<(usize, ResponseEvent), Malformed> {
        let r = match self.state {
            State::Head => self.step_head(input),
            State::Length(0) => {
                self.state = State::Done;
                Ok((0, ResponseEvent::Done))
            }
            State::Length(left) => {
                let len = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                self.state = State::Length(left - len as u64);
                Ok((len, body_or_more(len)))
            }
            State::UntilClose => Ok((input.len(), body_or_more(input.len()))),
            State::Chunked(mut c) => {
                let r = c.step(input, &mut self.pending);
                self.state = State::Chunked(c);
                match r {
                    Ok((used, Part::More)) => Ok((used, ResponseEvent::NeedMore)),
                    Ok((used, Part::Data(len))) => Ok((used, ResponseEvent::Body { len })),
                    Ok((used, Part::Trailer)) => {
                        self.head.trailer_line(&self.pending);
                        self.pending.clear();
                        Ok((used, ResponseEvent::NeedMore))
                    }
                    Ok((used, Part::End)) => {
                        self.state = State::Done;
                        Ok((used, ResponseEvent::Done))
                    }
                    Err(e) => Err(e),
                }
            }
            State::Done => Ok((0, ResponseEvent::Done)),
            State::Broken(e) => Err(e),
        };
        if let Err(e) = r {
            self.state = State::Broken(e);
        }
        r
    }

    /// The server closed its side. `Ok` when that ends the answer rightly.
    pub fn closed(&mut self) -> Result<(), Malformed> {
        match self.state {
            State::Done => Ok(()),
            State::UntilClose | State::Length(0) => {
                self.state = State::Done;
                Ok(())
            }
            State::Broken(e) => Err(e),
            // Nothing of an answer came: the caller may want to know that (see `started`).
            State::Head if self.pending.is_empty() => Err(Malformed::Closed),
            State::Head => {
                let e = self.head.parse(&self.pending).err().unwrap_or(Malformed::Closed);
                self.state = State::Broken(e);
                Err(e)
            }
            _ => {
                self.state = State::Broken(Malformed::Closed);
                Err(Malformed::Closed)
            }
        }
    }

    fn step_head(&mut self, input: &[u8]) -> Result<(usize, ResponseEvent), Malformed> {
        // Fast path: the whole head is in one piece, and nothing of it came before.
        if self.pending.is_empty() {
            return match self.head.parse(input)? {
                Some(used) => Ok((used, self.after_head()?)),
                None => self.keep(input).map(|used| (used, ResponseEvent::NeedMore)),
            };
        }
        let before = self.pending.len();
        let used = self.keep(input)?;
        // Only a new line end can have completed it: this keeps a trickle of bytes from costing n squared.
        if !input[..used].contains(&b'\n') {
            return Ok((used, ResponseEvent::NeedMore));
        }
        match self.head.parse(&self.pending)? {
            None => Ok((used, ResponseEvent::NeedMore)),
            Some(end) => {
                self.pending.clear();
                Ok((end - before, self.after_head()?))
            }
        }
    }

    fn keep(&mut self, input: &[u8]) -> Result<usize, Malformed> {
        if self.pending.len() + input.len() > MAX_HEAD_BYTES {
            // What is beyond the limit may be body: a head within the limit is still good.
            let room = MAX_HEAD_BYTES - self.pending.len();
            if room == 0 || self.pending.is_empty() {
                return Err(Malformed::HeadTooLong);
            }
            self.pending.extend_from_slice(&input[..room]);
            return Ok(room);
        }
        self.pending.extend_from_slice(input);
        Ok(input.len())
    }

    /// Decides what follows a head that was read.
    fn after_head(&mut self) -> Result<ResponseEvent, Malformed> {
        let h = &self.head;
        match h.status {
            100 => return Ok(self.interim(ResponseEvent::Continue)),
            101 => return Err(Malformed::Switching),
            102..=199 => return Ok(self.interim(ResponseEvent::NeedMore)),
            _ => {}
        }
        self.state = if self.head_request || matches!(h.status, 204 | 304) {
            State::Length(0)
        } else if h.chunked {
            State::Chunked(Chunked::new())
        } else if let Some(n) = h.content_length {
            State::Length(n)
        } else {
            self.head.close = true;
            State::UntilClose
        };
        Ok(ResponseEvent::Head)
    }

    fn interim(&mut self, event: ResponseEvent) -> ResponseEvent {
        self.head.clear();
        event
    }
}

fn body_or_more(len: usize) -> ResponseEvent {
    if len == 0 { ResponseEvent::NeedMore } else { ResponseEvent::Body { len } }
}

impl ResponseHead {
    /// The checksum that the server gave, base64; `None` when it gave none of this kind.
    pub fn checksum(&self, kind: CrcKind) -> Option<&[u8]> {
        let t = match kind {
            CrcKind::Crc32c => &self.crc32c,
            CrcKind::Crc64Nvme => &self.crc64nvme,
        };
        (!t.is_empty()).then(|| t.as_bytes())
    }
}

#[cfg(test)]
mod tests;
