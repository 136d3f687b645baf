//! One HTTP exchange at a time over one connection: connect if need be, send, receive, end.
//!
//! A lane has at most one send and one receive in flight. It ends only when the ring has let go of both; what it
//! ends with is kept in the meantime. An idle connection that the server has closed is no error of the op: the
//! request goes out once more, on a new connection, if not a byte of an answer came.

use plimsoll_model::Outcome;
use plimsoll_s3::Crc;
use plimsoll_s3::response::{BodyLeft, Malformed, ResponseEvent, ResponseParser};

use super::content::ContentDifference;
use super::exchange::{Ended, Exchange, Progress, Side, TAG_CONNECT, TAG_RECEIVE, TAG_SEND, Wants, Why};
use super::outgoing::{Message, Outgoing};
use super::water::LowWater;
use crate::ring::{Ring, RingOp};

/// Bytes that one discarding receive may take: as they move they are counted.
const DISCARD_BYTES: u64 = 1 << 20;
/// Receive for the head when a body that will be discarded follows: little of it should be copied.
const HEAD_RECEIVE: u32 = 2048;
/// Bodies up to this are copied with their head: one receive is cheaper than two.
const SMALL_BODY: u64 = 16 * 1024;
/// What is kept of bodies that are read for their meaning.
const MAX_TEXT: usize = 1 << 20;

const CONNECT: u8 = 1 << TAG_CONNECT;
const SEND: u8 = 1 << TAG_SEND;
const RECEIVE: u8 = 1 << TAG_RECEIVE;

/// What comes when the ring has let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Nothing,
    Resend,
    End(Ended),
}

#[derive(Debug)]
pub(super) struct Lane {
    pub out: Outgoing,
    pub parser: ResponseParser,
    pub exchange: Exchange,
    /// Body bytes of the answer so far.
    pub body_bytes: u64,
    /// Of which the kernel threw away.
    pub discarded: u64,
    /// Errors, and bodies that [`Wants::Text`].
    pub text: Vec<u8>,
    pub difference: Option<ContentDifference>,
    pub differences: u64,
    pub tls_error: String,
    crc: Option<Crc>,
    busy: u8,
    /// The receive in flight discards.
    discarding: bool,
    water: LowWater,
    /// The request went out twice already.
    resent: bool,
    /// The body waits for a `100 Continue` that may never come.
    pub awaits_continue: bool,
    /// Each request says `Connection: close`: nothing may follow it, whatever the server answers (RFC 9112, 9.6).
    closes: bool,
    after: After,
    wire: Box<[u8]>,
    plain: Box<[u8]>,
    /// Bodies may be discarded in the kernel here at all.
    can_discard: bool,
    pub active: bool,
    /// Bodies whose checksum was to be checked, and that came without one.
    pub unchecked: u64,
    /// Uploads with a checksum that the answer says nothing of.
    pub unconfirmed: u64,
    /// Checksum of the object body that was last sent.
    pub sent_checksum: plimsoll_s3::checksum::Base64Crc,
}

/// Bytes of a lane's buffers: for what is received, and (TLS) for what that is decrypted to. `reads`: bodies are looked at.
fn buffers(tls: bool, reads: bool) -> [usize; 2] {
    [if tls || reads { 128 << 10 } else { 32 << 10 }, if tls { 64 << 10 } else { 0 }]
}

/// Memory of a connection at work, about: its buffers, its texts, and what rustls keeps of a session (two records each way).
pub fn bytes_of(tls: bool, reads: bool) -> u64 {
    const TEXTS: u64 = 16 << 10;
    const SESSION: u64 = 64 << 10;
    let [wire, plain] = buffers(tls, reads);
    (wire + plain) as u64 + TEXTS + if tls { SESSION } else { 0 }
}

impl Lane {
    /// `reads`: bodies are looked at, so the buffer should be large.
    pub fn new((tls, reads): (bool, bool), closes: bool, text_room: usize) -> Self {
        let [wire, plain] = buffers(tls, reads);
        Self {
            out: Outgoing::new(tls, text_room),
            parser: ResponseParser::new(),
            exchange: Exchange::IDLE,
            body_bytes: 0,
            discarded: 0,
            text: Vec::with_capacity(8 << 10),
            difference: None,
            differences: 0,
            tls_error: String::new(),
            crc: None,
            busy: 0,
            discarding: false,
            water: LowWater::new(),
            resent: false,
            awaits_continue: false,
            closes,
            after: After::Nothing,
            wire: vec![0; wire].into_boxed_slice(),
            plain: vec![0; plain].into_boxed_slice(),
            can_discard: !tls,
            active: false,
            unchecked: 0,
            unconfirmed: 0,
            sent_checksum: Default::default(),
        }
    }

    /// Starts the exchange whose request is in `out`. It may end at once (no socket).
    pub fn begin<R: Ring>(&mut self, exchange: Exchange, side: &mut Side<'_, R>) -> Progress {
        self.exchange = exchange;
        self.resent = false;
        self.active = true;
        self.after = After::Nothing;
        self.start(side)
    }

    fn start<R: Ring>(&mut self, side: &mut Side<'_, R>) -> Progress {
        self.out.rewind();
        self.awaits_continue = self.out.held;
        self.parser.begin(self.exchange.head_request);
        self.body_bytes = 0;
        self.discarded = 0;
        self.text.clear();
        self.difference = None;
        self.differences = 0;
        self.crc = self.exchange.checksum.map(Crc::new);
        if side.conn.open {
            self.pump(side);
            return Progress::NOTHING;
        }
        if let Err(text) = side.conn.prepare(side.server, side.ring) {
            self.tls_error = text;
            return self.end(Ended::Failed(Outcome::IoError, Why::Socket), side);
        }
        self.water.new_socket();
        let (addr, addr_len) = side.conn.address();
        let op = RingOp::Connect { sock: side.conn.sock, addr, addr_len };
        self.busy |= CONNECT;
        // SAFETY: the address lies in the connection's box and is not changed before the completion.
        unsafe { side.ring.push(side.token(TAG_CONNECT), op) };
        Progress::NOTHING
    }

    /// Queues what can be sent and received now.
    fn pump<R: Ring>(&mut self, side: &mut Side<'_, R>) {
        if self.busy & SEND == 0 {
            self.pump_send(side);
        }
        if self.busy & RECEIVE == 0 {
            self.pump_receive(side);
        }
    }

    fn pump_send<R: Ring>(&mut self, side: &mut Side<'_, R>) {
        let sock = side.conn.sock;
        let op = if side.conn.tls.is_some() {
            let Some((ptr, len)) = self.out.next_wire(side.conn, side.content) else { return };
            RingOp::Send { sock, ptr, len, flags: 0 }
        } else {
            match self.out.next_message(side.content) {
                Message::Nothing => return,
                Message::Flat(ptr, len) => RingOp::Send { sock, ptr, len, flags: 0 },
                Message::Pieces(msg) => RingOp::SendMsg { sock, msg, flags: 0 },
            }
        };
        self.busy |= SEND;
        // SAFETY: the message and all that it points to lie in `out`'s boxes and in the shared pool; neither is
        // touched before the completion, because `busy` says that a send is in flight.
        unsafe { side.ring.push(side.token(TAG_SEND), op) };
    }

    fn pump_receive<R: Ring>(&mut self, side: &mut Side<'_, R>) {
        let sock = side.conn.sock;
        self.discarding = false;
        let left = self.parser.body_left();
        if let BodyLeft::Exactly(left) = left
            && self.parser.started()
        {
            self.mark_water(left, side);
        }
        let awaited = !self.parser.started() || self.water.is_set();
        let op = match left {
            BodyLeft::Exactly(left) if left > 0 && self.may_discard() => {
                self.discarding = true;
                // Never more than is left of this answer: the next one begins right behind it.
                let len = left.min(DISCARD_BYTES) as u32;
                RingOp::Recv {
                    sock,
                    ptr: std::ptr::null_mut(),
                    len,
                    // Without MSG_WAITALL: io_uring (6.18) turns round and round on a discard that came in part.
                    flags: libc::MSG_TRUNC,
                    awaited,
                }
            }
            _ => {
                let head_only = !self.parser.started()
                    && self.can_discard
                    && self.exchange.wants == Wants::Nothing
                    && self.exchange.checksum.is_none()
                    && self.exchange.expected > SMALL_BODY;
                let len = if head_only { HEAD_RECEIVE } else { self.wire.len() as u32 };
                RingOp::Recv { sock, ptr: self.wire.as_mut_ptr(), len, flags: 0, awaited }
            }
        };
        self.busy |= RECEIVE;
        // SAFETY: the buffer is the lane's own and is not touched before the completion.
        unsafe { side.ring.push(side.token(TAG_RECEIVE), op) };
    }

    /// Has the next receive of a plain body wait for more than the first byte, where it comes fast.
    fn mark_water<R: Ring>(&mut self, left: u64, side: &mut Side<'_, R>) {
        let room = if self.may_discard() { DISCARD_BYTES } else { self.wire.len() as u64 };
        if side.conn.tls.is_none()
            && let Some(level) = self.water.next(left, room)
        {
            side.ring.socket_low_water(side.conn.sock, level);
        }
    }

    /// Measures the pace of a body that comes in several receives.
    fn measure_body<R: Ring>(&mut self, p: &Progress, side: &mut Side<'_, R>) {
        match self.parser.body_left() {
            BodyLeft::Exactly(left) if p.head && left > 0 => self.water.begin(left, side.ring.now_ns()),
            BodyLeft::Exactly(left) if !p.head && self.body_bytes > 0 => {
                self.water.moved(left, side.ring.now_ns());
            }
            _ => {}
        }
    }

    /// Only bodies of successful answers that nobody looks at, plain, and of known length.
    fn may_discard(&self) -> bool {
        self.can_discard
            && self.exchange.wants == Wants::Nothing
            && self.crc.is_none()
            && (200..300).contains(&self.parser.head().status)
    }

    /// Takes one completion of this lane.
    pub fn complete<R: Ring>(&mut self, kind: u32, result: i32, side: &mut Side<'_, R>) -> Progress {
        self.busy &= !(1 << kind);
        if self.after != After::Nothing {
            return self.settle(side);
        }
        match kind {
            TAG_CONNECT if result < 0 => self.not_connected(-result, side),
            TAG_CONNECT => {
                let reconnected = std::mem::replace(&mut side.conn.ever_open, true);
                self.pump(side);
                Progress { reconnected, ..Progress::NOTHING }
            }
            TAG_SEND => self.sent(result, side),
            _ => self.received(result, side),
        }
    }

    /// A name may stand for several addresses (`localhost` for ::1 and 127.0.0.1): the next one is tried, and the op
    /// fails only when all did.
    fn not_connected<R: Ring>(&mut self, error: i32, side: &mut Side<'_, R>) -> Progress {
        side.conn.mark_bad();
        if side.conn.tried_all(side.server.addresses.len()) {
            return self.end(Ended::Failed(Outcome::NoConnection, Why::Connect(error)), side);
        }
        side.conn.close(side.ring);
        self.start(side)
    }

    /// No `100 Continue` came for a while: the body goes out without (RFC 9110, 10.1.1). False while there is no
    /// connection yet.
    pub fn stop_awaiting<R: Ring>(&mut self, side: &mut Side<'_, R>) -> bool {
        if !self.active || self.after != After::Nothing || !self.awaits_continue {
            return true;
        }
        if self.busy & CONNECT != 0 || !side.conn.ready() {
            return false;
        }
        self.awaits_continue = false;
        self.out.held = false;
        if self.busy & SEND == 0 {
            self.pump_send(side);
        }
        true
    }

    fn sent<R: Ring>(&mut self, result: i32, side: &mut Side<'_, R>) -> Progress {
        if result < 0 {
            // A server that refuses may close before it took the body; its answer, if there is one, comes through
            // the receive in flight, and so does the end of the connection.
            if self.busy & RECEIVE != 0 && result != -libc::ECONNRESET {
                self.out.held = true;
                self.awaits_continue = false;
                return Progress::NOTHING;
            }
            return self.lost(Why::Send(-result), side);
        }
        let moved = if side.conn.tls.is_some() {
            self.out.wire_sent(result as usize)
        } else {
            self.out.sent(result as usize)
        };
        self.pump_send(side);
        Progress { moved: if self.is_upload() { moved } else { 0 }, ..Progress::NOTHING }
    }

    /// Whether the request's body is an object's, and so counts as payload.
    fn is_upload(&self) -> bool {
        matches!(self.out.source, super::outgoing::Source::Object { .. })
    }

    /// Whether the answer's body is an object's, and so counts as payload.
    fn is_download(&self) -> bool {
        self.exchange.expected > 0 && (200..300).contains(&self.parser.head().status)
    }

    fn received<R: Ring>(&mut self, result: i32, side: &mut Side<'_, R>) -> Progress {
        if result < 0 {
            return self.lost(Why::Receive(-result), side);
        }
        if result == 0 {
            return match self.parser.closed() {
                Ok(()) => {
                    side.conn.reused = false;
                    self.finish(side, Progress::NOTHING)
                }
                Err(e) => self.lost(Why::Malformed(e), side),
            };
        }
        let n = result as usize;
        let mut p = Progress::NOTHING;
        let fed = if self.discarding {
            self.discarded += n as u64;
            self.body_bytes += n as u64;
            p.moved += if self.is_download() { n as u64 } else { 0 };
            self.parser.skip_body(n as u64);
            self.feed(&[], side, &mut p)
        } else {
            let wire = std::mem::take(&mut self.wire);
            let fed = if side.conn.tls.is_some() {
                self.feed_tls(&wire[..n], side, &mut p)
            } else {
                self.feed(&wire[..n], side, &mut p)
            };
            self.wire = wire;
            fed
        };
        match fed {
            Ok(true) => {
                self.measure_body(&p, side);
                self.finish(side, p)
            }
            Ok(false) => {
                self.measure_body(&p, side);
                self.pump(side);
                p
            }
            Err(why) => {
                let outcome = Outcome::Protocol;
                Progress { moved: p.moved, head: p.head, ..self.end(Ended::Failed(outcome, why), side) }
            }
        }
    }

    /// Hands bytes of the answer to the parser; true when the answer is complete.
    fn feed<R: Ring>(&mut self, input: &[u8], side: &Side<'_, R>, p: &mut Progress) -> Result<bool, Why> {
        let mut at = 0;
        loop {
            let (used, event) = self.parser.step(&input[at..]).map_err(Why::Malformed)?;
            at += used;
            match event {
                // A body may go on for ever: what is behind its end is not waited for.
                ResponseEvent::NeedMore if self.is_download() && self.body_bytes > self.exchange.expected => {
                    return Err(Why::TooLong);
                }
                ResponseEvent::NeedMore => return Ok(false),
                ResponseEvent::Continue => {
                    self.out.held = false;
                    self.awaits_continue = false;
                }
                ResponseEvent::Head => p.head = true,
                ResponseEvent::Body { len } => {
                    p.moved += if self.is_download() { len as u64 } else { 0 };
                    self.body(&input[at - len..at], side);
                }
                ResponseEvent::Done if at == input.len() => return Ok(true),
                // Nothing was asked for after this answer.
                ResponseEvent::Done => return Err(Why::Malformed(Malformed::Excess)),
            }
        }
    }

    fn feed_tls<R: Ring>(
        &mut self,
        wire: &[u8],
        side: &mut Side<'_, R>,
        p: &mut Progress,
    ) -> Result<bool, Why> {
        let mut at = 0;
        let mut done = false;
        while at < wire.len() {
            match side.conn.take_wire(&wire[at..]) {
                Ok(0) => break,
                Ok(n) => at += n,
                Err(text) => {
                    self.tls_error = text;
                    return Err(Why::Tls);
                }
            }
            let mut plain = std::mem::take(&mut self.plain);
            loop {
                let n = side.conn.read_plain(&mut plain);
                if n == 0 {
                    break;
                }
                match self.feed(&plain[..n], side, p) {
                    Ok(d) => done = d,
                    Err(e) => {
                        self.plain = plain;
                        return Err(e);
                    }
                }
            }
            self.plain = plain;
        }
        Ok(done)
    }

    fn body<R: Ring>(&mut self, bytes: &[u8], side: &Side<'_, R>) {
        let at = self.body_bytes;
        self.body_bytes += bytes.len() as u64;
        let success = (200..300).contains(&self.parser.head().status);
        if !success || self.exchange.wants == Wants::Text {
            let room = MAX_TEXT.saturating_sub(self.text.len());
            self.text.extend_from_slice(&bytes[..bytes.len().min(room)]);
            return;
        }
        if let Some(c) = &mut self.crc {
            c.update(bytes);
        }
        if let Wants::Compare { object, base } = self.exchange.wants
            && let Err(d) = side.content.check(object, base, at, self.exchange.expected, bytes)
        {
            self.differences += 1;
            self.difference.get_or_insert(d);
        }
    }

    /// The answer is complete.
    fn finish<R: Ring>(&mut self, side: &mut Side<'_, R>, p: Progress) -> Progress {
        if let Some(level) = self.water.end() {
            side.ring.socket_low_water(side.conn.sock, level);
        }
        let mut ended = self.end(Ended::Answered, side);
        ended.moved += p.moved;
        ended.head |= p.head;
        ended
    }

    /// The connection broke.
    fn lost<R: Ring>(&mut self, why: Why, side: &mut Side<'_, R>) -> Progress {
        if side.conn.reused && !self.parser.started() && !self.resent {
            self.resent = true;
            self.after = After::Resend;
            self.release(side);
            return self.settle(side);
        }
        let outcome = match why {
            // The head promised more than came, and the server ended the connection in order. A connection that was
            // broken is a reset, wherever in the answer it happens.
            Why::Malformed(Malformed::Closed) if self.parser.started() && self.parser.head().status != 0 => {
                Outcome::ShortBody
            }
            Why::Malformed(e) if e != Malformed::Closed => Outcome::Protocol,
            _ => Outcome::Reset,
        };
        self.end(Ended::Failed(outcome, why), side)
    }

    /// Ends the exchange, as soon as nothing is in flight.
    fn end<R: Ring>(&mut self, ended: Ended, side: &mut Side<'_, R>) -> Progress {
        self.after = After::End(ended);
        if self.busy != 0 {
            self.release(side);
        }
        self.settle(side)
    }

    /// Stops an exchange from outside.
    pub fn cancel<R: Ring>(&mut self, outcome: Outcome, side: &mut Side<'_, R>) -> Progress {
        if self.busy & CONNECT != 0 {
            side.conn.mark_bad();
        }
        if !matches!(self.after, After::End(_)) {
            self.after = After::End(Ended::Failed(outcome, Why::Cancelled));
        }
        self.release(side);
        self.settle(side)
    }

    /// Asks the ring to let go of what is in flight.
    fn release<R: Ring>(&mut self, side: &mut Side<'_, R>) {
        for kind in [TAG_CONNECT, TAG_SEND, TAG_RECEIVE] {
            if self.busy & 1 << kind != 0 {
                side.ring.cancel(side.token(kind));
            }
        }
    }

    /// Goes on with what was decided, once nothing is in flight.
    fn settle<R: Ring>(&mut self, side: &mut Side<'_, R>) -> Progress {
        if self.busy != 0 {
            return Progress::NOTHING;
        }
        match std::mem::replace(&mut self.after, After::Nothing) {
            After::Nothing => Progress::NOTHING,
            After::Resend => {
                side.conn.close(side.ring);
                self.start(side)
            }
            After::End(ended) => {
                self.active = false;
                let clean =
                    ended == Ended::Answered && self.parser.reusable() && self.out.all_sent() && !self.closes;
                if clean {
                    side.conn.reused = true;
                } else {
                    side.conn.close(side.ring);
                }
                Progress { ended: Some(ended), ..Progress::NOTHING }
            }
        }
    }

    /// Whether the checksum that the server gave is that of the bytes. An answer without one is counted as unchecked, and so
    /// is one of several parts: `SUM-3` is the checksum of three parts' checksums, not of the bytes.
    pub fn checksum_holds(&mut self) -> bool {
        self.unchecked += u64::from(self.exchange.part_of_checked);
        let (Some(crc), Some(kind)) = (&self.crc, self.exchange.checksum) else { return true };
        match self.parser.head().checksum(kind) {
            Some(sum) if !sum.contains(&b'-') => sum == crc.base64().as_bytes(),
            _ => {
                self.unchecked += 1;
                true
            }
        }
    }

    /// Whether the checksum that the server says it stored is the one that was sent. An answer that says nothing of it is counted: a
    /// server that does not know the header ignores it, and has checked nothing.
    pub fn upload_is_confirmed(&mut self) -> bool {
        let Some(kind) = self.exchange.sent else { return true };
        match self.parser.head().checksum(kind) {
            Some(said) => said == self.sent_checksum.as_bytes(),
            None => {
                self.unconfirmed += 1;
                true
            }
        }
    }
}
