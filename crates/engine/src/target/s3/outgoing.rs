//! What a lane sends: a head, then a body that is never made but pieced together from stamps and the pool.

use super::conn::Conn;
use super::content::{ObjectContent, Piece, STAMP_BYTES, Stamp};

/// Memory pieces of one send at most, and the stamps among them.
const PIECES: usize = 64;
const STAMPS: usize = 34;
/// Body bytes of one send at most: what moves is counted as it moves, so it must not be too coarse.
const WINDOW_BYTES: usize = 1 << 20;
/// The same with TLS, where the window is copied (encrypted) into memory of the lane.
pub(super) const TLS_WINDOW_BYTES: usize = 256 << 10;

/// Bodies up to this are copied behind their head: the kernel takes one piece of memory faster than several.
pub(super) const FLAT_BYTES: u64 = 8 << 10;

/// What is to be sent next.
#[derive(Debug, Clone, Copy)]
pub(super) enum Message {
    Nothing,
    Flat(*const u8, u32),
    Pieces(*const libc::msghdr),
}

/// The body of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    None,
    /// The text in [`Outgoing::text`].
    Text,
    /// Of an object; see [`ObjectContent::piece`].
    Object {
        object: u64,
        base: u64,
    },
}

/// A request on its way out.
pub(super) struct Outgoing {
    pub head: Vec<u8>,
    /// XML bodies.
    pub text: Vec<u8>,
    pub source: Source,
    pub body_len: u64,
    head_sent: usize,
    body_sent: u64,
    /// The request asks for `100 Continue`.
    pub expects: bool,
    /// The body waits: for `100 Continue`, or, as the connection takes no more of it, for the answer that may still come.
    pub held: bool,
    iovecs: Box<[libc::iovec]>,
    stamps: Box<[Stamp]>,
    message: Box<libc::msghdr>,
    /// A whole small request; empty where it is sent in pieces.
    flat: Vec<u8>,
    /// TLS: what was encrypted and not sent yet, and how far it was sent.
    wire: Vec<u8>,
    wire_sent: usize,
    /// Body bytes in `wire`.
    wire_body: u64,
}

impl std::fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Outgoing({}/{} + {}/{})", self.head_sent, self.head.len(), self.body_sent, self.body_len)
    }
}

impl Outgoing {
    pub fn new(tls: bool, text_room: usize) -> Self {
        let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Self {
            head: Vec::with_capacity(plimsoll_s3::head::HEAD_CAPACITY),
            text: Vec::with_capacity(text_room),
            source: Source::None,
            body_len: 0,
            head_sent: 0,
            body_sent: 0,
            expects: false,
            held: false,
            iovecs: vec![empty; PIECES].into_boxed_slice(),
            stamps: vec![[0; STAMP_BYTES]; STAMPS].into_boxed_slice(),
            // SAFETY: msghdr is plain data for which all zeros is a valid (empty) value.
            message: Box::new(unsafe { std::mem::zeroed() }),
            flat: Vec::with_capacity(if tls {
                0
            } else {
                plimsoll_s3::head::HEAD_CAPACITY + FLAT_BYTES as usize
            }),
            wire: Vec::with_capacity(if tls { TLS_WINDOW_BYTES + (16 << 10) } else { 0 }),
            wire_sent: 0,
            wire_body: 0,
        }
    }

    /// Starts from the first byte of the head again.
    pub fn rewind(&mut self) {
        self.head_sent = 0;
        self.body_sent = 0;
        self.flat.clear();
        self.wire.clear();
        self.wire_sent = 0;
        self.wire_body = 0;
        // Why it was held on the connection before is over with that connection.
        self.held = self.expects;
    }

    /// All of it was taken by the kernel (and the body was not withheld).
    pub fn all_sent(&self) -> bool {
        self.head_sent == self.head.len()
            && self.body_sent == self.body_len
            && self.wire_sent == self.wire.len()
    }

    /// The next message to send.
    pub fn next_message(&mut self, content: &ObjectContent) -> Message {
        if let Some(flat) = self.next_flat(content) {
            return flat;
        }
        let mut n = 0;
        if self.head_sent < self.head.len() {
            self.iovecs[0] = iovec(&self.head[self.head_sent..]);
            n = 1;
        }
        if !self.held {
            n = self.body_pieces(n, content);
        }
        match n {
            0 => Message::Nothing,
            1 => Message::Flat(self.iovecs[0].iov_base.cast(), self.iovecs[0].iov_len as u32),
            _ => {
                self.message.msg_iov = self.iovecs.as_mut_ptr();
                self.message.msg_iovlen = n as _;
                Message::Pieces(&raw const *self.message)
            }
        }
    }

    /// The rest of a small request, which is put together when its sending begins.
    fn next_flat(&mut self, content: &ObjectContent) -> Option<Message> {
        let sent = self.head_sent + self.body_sent as usize;
        if sent == 0
            && self.flat.is_empty()
            && !self.held
            && self.body_len <= FLAT_BYTES
            && let Source::Object { object, base } = self.source
        {
            self.flat.extend_from_slice(&self.head);
            content.each(object, base, self.body_len, |piece| self.flat.extend_from_slice(piece));
        }
        let rest = self.flat.get(sent..).filter(|rest| !rest.is_empty())?;
        Some(Message::Flat(rest.as_ptr(), rest.len() as u32))
    }

    fn body_pieces(&mut self, mut n: usize, content: &ObjectContent) -> usize {
        let mut at = self.body_sent;
        let end = self.body_len.min(at + WINDOW_BYTES as u64);
        let mut stamps = 0;
        while at < end && n < PIECES {
            let piece = match self.source {
                Source::None => break,
                Source::Text => iovec(&self.text[at as usize..]),
                Source::Object { object, base } => match content.piece(object, base, at, self.body_len) {
                    Piece::Pool(p) => iovec(&p[..p.len().min((end - at) as usize)]),
                    Piece::Stamp { block, from, len } => {
                        if stamps == STAMPS {
                            break;
                        }
                        self.stamps[stamps] = content.stamp(object, block);
                        stamps += 1;
                        iovec(&self.stamps[stamps - 1][from..from + len])
                    }
                },
            };
            at += piece.iov_len as u64;
            self.iovecs[n] = piece;
            n += 1;
        }
        n
    }

    /// The kernel took `n` bytes of the last message. Returns how many of them were body.
    pub fn sent(&mut self, n: usize) -> u64 {
        let head = n.min(self.head.len() - self.head_sent);
        self.head_sent += head;
        let body = (n - head) as u64;
        self.body_sent += body;
        body
    }

    /// TLS: the next encrypted bytes to send; encrypts more when all was sent. `None`: nothing to send now.
    pub fn next_wire(&mut self, conn: &mut Conn, content: &ObjectContent) -> Option<(*const u8, u32)> {
        if self.wire_sent == self.wire.len() {
            self.wire.clear();
            self.wire_sent = 0;
            conn.drain_wire(&mut self.wire);
            if conn.ready() {
                self.encrypt(conn, content);
                conn.drain_wire(&mut self.wire);
            }
        }
        let rest = &self.wire[self.wire_sent..];
        (!rest.is_empty()).then(|| (rest.as_ptr(), rest.len().min(1 << 30) as u32))
    }

    fn encrypt(&mut self, conn: &mut Conn, content: &ObjectContent) {
        while self.head_sent < self.head.len() {
            match conn.write_plain(&self.head[self.head_sent..]) {
                0 => return,
                n => self.head_sent += n,
            }
        }
        if self.held {
            return;
        }
        let end = self.body_len.min(self.body_sent + TLS_WINDOW_BYTES as u64);
        while self.body_sent < end {
            let left = (end - self.body_sent) as usize;
            let n = match self.source {
                Source::None => return,
                Source::Text => conn.write_plain(&self.text[self.body_sent as usize..]),
                Source::Object { object, base } => {
                    match content.piece(object, base, self.body_sent, self.body_len) {
                        Piece::Pool(p) => conn.write_plain(&p[..p.len().min(left)]),
                        Piece::Stamp { block, from, len } => {
                            conn.write_plain(&content.stamp(object, block)[from..from + len.min(left)])
                        }
                    }
                }
            };
            if n == 0 {
                return;
            }
            self.body_sent += n as u64;
            self.wire_body += n as u64;
        }
    }

    /// TLS: the kernel took `n` encrypted bytes. Returns body bytes, counted when the whole window has gone.
    pub fn wire_sent(&mut self, n: usize) -> u64 {
        self.wire_sent += n;
        if self.wire_sent < self.wire.len() { 0 } else { std::mem::take(&mut self.wire_body) }
    }
}

fn iovec(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::super::content::Layout;
    use super::*;
    use plimsoll_model::plan::DataSpec;
    use proptest::prelude::*;

    #[test]
    fn a_request_that_is_sent_again_is_held_for_its_own_reason_alone() {
        for expects in [false, true] {
            let mut out = Outgoing::new(false, 0);
            out.expects = expects;
            out.held = true;
            out.rewind();
            assert_eq!(out.held, expects);
        }
    }

    /// What the kernel would read from the message, up to `max` bytes.
    fn gather(m: Message, max: usize) -> Vec<u8> {
        let mut v = Vec::new();
        let m = match m {
            Message::Nothing => return v,
            Message::Flat(ptr, len) => {
                // SAFETY: as below.
                v.extend_from_slice(unsafe { std::slice::from_raw_parts(ptr, len as usize) });
                v.truncate(max);
                return v;
            }
            Message::Pieces(m) => m,
        };
        // SAFETY: the message was just made; its iovecs point to live memory of the same Outgoing and the pool.
        unsafe {
            for i in 0..(*m).msg_iovlen {
                let io = *(*m).msg_iov.add(i);
                v.extend_from_slice(std::slice::from_raw_parts(io.iov_base.cast::<u8>(), io.iov_len));
            }
        }
        v.truncate(max);
        v
    }

    proptest! {
        /// However short the sends are, the bytes on the wire are the head and then the object.
        #[test]
        fn short_sends_lose_nothing(length in prop_oneof![0u64..5_000_000, 0u64..10_000], base in 0u64..200_000, sends in proptest::collection::vec(1usize..900_000, 1..8)) {
            static CONTENT: LazyLock<ObjectContent> =
                LazyLock::new(|| ObjectContent::new(5, DataSpec::default(), Layout::Stamped, &[]));
            let c = &*CONTENT;
            let mut o = Outgoing::new(false, 0);
            o.head.extend_from_slice(b"HEAD");
            o.source = Source::Object { object: 3, base };
            o.body_len = length;
            let mut wire = Vec::new();
            let mut body = 0;
            let mut i = 0;
            loop {
                let m = o.next_message(c);
                if matches!(m, Message::Nothing) { break; }
                let got = gather(m, sends[i % sends.len()]);
                i += 1;
                prop_assert!(!got.is_empty());
                body += o.sent(got.len());
                wire.extend(got);
            }
            let mut want = b"HEAD".to_vec();
            c.each(3, base, length, |p| want.extend_from_slice(p));
            prop_assert!(o.all_sent() && body == length);
            prop_assert!(wire == want);
        }
    }
}
