//! One connection of the canned server: head, body, wait, answer, as a small state machine that never blocks.

use super::answer::AnswerWriter;
use super::io::Io;
use super::keep::Kept;
use super::limits::Limits;
use super::pool::Body;
use super::request::{ChunkSkipper, Head, Method, Parsed};
use super::response::{self, Env, Kind, kind_of};
use super::stats::{Counters, add};
use super::{Continue, Shared};
use crate::clock::now_ns;
use crate::limiter::Direction;
use std::io::ErrorKind;
use std::net::Shutdown;
use std::time::Duration;

/// Largest request head; also how much of a body comes in with it.
const INPUT_BYTES: usize = 16 << 10;
/// Bodies up to this leave in one piece with their head: cheaper than two pieces in one call.
const INLINE_BYTES: u64 = 8 << 10;
/// Largest batch delete that is answered by name.
const MAX_COLLECT_BYTES: usize = 4 << 20;

/// What the worker lends a connection for one drive.
#[derive(Debug)]
pub(crate) struct Cx<'a> {
    pub shared: &'a Shared,
    pub counters: &'a Counters,
    pub date: &'a str,
    pub scratch: &'a mut [u8],
}

/// What the worker has to do after a drive.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Wait for the socket.
    Idle,
    /// Drive again at this monotonic time.
    WakeAt(u64),
    Close,
    /// Close with RST.
    Reset,
}

enum Flow {
    Again,
    Blocked,
    Close,
    Reset,
}

#[derive(Debug)]
enum Phase {
    Head,
    /// Bytes of a request body of known length that are still to come.
    Length(u64),
    Chunked(ChunkSkipper),
    /// The request is whole, its answer is in `out`.
    Answer,
    Send,
    /// No answer will come.
    Stalled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Keep,
    Close,
    Reset,
}

/// Why the body of a request is read: a batch delete in this bucket (`/bucket`), or a PUT that is kept (`/bucket/key`).
#[derive(Debug)]
enum Purpose {
    DeleteMany(String),
    Keep(String),
}

#[derive(Debug)]
pub(crate) struct Conn {
    io: Io,
    input: Vec<u8>,
    start: usize,
    end: usize,
    phase: Phase,
    readable: bool,
    writable: bool,
    hung_up: bool,
    served: u64,
    /// Head (and inline body) of the answer, and how much of it is sent.
    out: Vec<u8>,
    sent: usize,
    /// Body that follows: next offset, bytes left.
    body: (u64, u64),
    /// Its bytes, when they are not the pool's.
    kept: Option<Kept>,
    after: After,
    trickle: bool,
    /// Body of a request that has to be read, and what for.
    collect: Option<(Purpose, Vec<u8>)>,
    /// Not before this time does anything happen; 0 when nothing is awaited.
    pause_until: u64,
    /// When the answer in hand was due to leave, while it has not begun to; 0 without a delay.
    due_ns: u64,
    /// The wake-up that the worker's timer already holds.
    armed: u64,
    limits: Limits,
}

impl Conn {
    pub fn new(io: Io, client: String, connection: u64) -> Conn {
        Conn {
            limits: Limits { client, connection, ..Limits::default() },
            io,
            input: vec![0; INPUT_BYTES],
            start: 0,
            end: 0,
            phase: Phase::Head,
            readable: true,
            writable: true,
            hung_up: false,
            served: 0,
            out: Vec::with_capacity(1_024),
            sent: 0,
            body: (0, 0),
            kept: None,
            due_ns: 0,
            after: After::Keep,
            trickle: false,
            collect: None,
            pause_until: 0,
            armed: 0,
        }
    }

    pub fn io(&mut self) -> &mut Io {
        &mut self.io
    }

    /// What epoll said; edge-triggered, so it is kept until a call would block.
    pub fn ready(&mut self, readable: bool, writable: bool, hung_up: bool) {
        self.readable |= readable | hung_up;
        self.writable |= writable | hung_up;
        self.hung_up |= hung_up;
    }

    /// A timer of this connection went off; false when it is one of the past.
    pub fn timer(&mut self, at_ns: u64) -> bool {
        let mine = self.armed == at_ns;
        if mine {
            self.armed = 0;
        }
        mine
    }

    /// Goes on until the socket blocks, a time has to be awaited, or the connection ends.
    pub fn drive(&mut self, cx: &mut Cx<'_>) -> Step {
        loop {
            if self.pause_until > 0 {
                if now_ns() < self.pause_until {
                    if self.armed == self.pause_until {
                        return Step::Idle;
                    }
                    self.armed = self.pause_until;
                    return Step::WakeAt(self.pause_until);
                }
                self.pause_until = 0;
            }
            let flow = match self.phase {
                Phase::Head => self.on_head(cx),
                Phase::Length(_) => self.on_length(cx),
                Phase::Chunked(_) => self.on_chunked(cx),
                Phase::Answer => self.on_answer(cx),
                Phase::Send => self.on_send(cx),
                Phase::Stalled => self.on_stalled(cx),
            };
            match flow {
                Flow::Again => {}
                Flow::Blocked => return Step::Idle,
                Flow::Close => {
                    self.io.shutdown();
                    return Step::Close;
                }
                Flow::Reset => return Step::Reset,
            }
        }
    }

    /// Reads into the free part of the input buffer.
    fn fill(&mut self) -> Flow {
        if !self.readable {
            return Flow::Blocked;
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.input.len() {
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let room = self.input.len() - self.end;
        match self.io.recv(&mut self.input[self.end..]) {
            Ok(0) => Flow::Close,
            Ok(n) => {
                self.end += n;
                self.after_read(n, room);
                Flow::Again
            }
            Err(e) => self.read_error(&e),
        }
    }

    fn after_read(&mut self, n: usize, room: usize) {
        // A read that did not fill its room emptied the socket; the next bytes make a new edge.
        if n < room && !self.hung_up && self.io.short_read_is_empty() {
            self.readable = false;
        }
    }

    fn read_error(&mut self, e: &std::io::Error) -> Flow {
        match e.kind() {
            ErrorKind::WouldBlock => {
                self.readable = false;
                Flow::Blocked
            }
            ErrorKind::Interrupted => Flow::Again,
            _ => Flow::Close,
        }
    }

    fn on_head(&mut self, cx: &mut Cx<'_>) -> Flow {
        if self.start == self.end {
            match self.fill() {
                Flow::Again => {}
                other => return other,
            }
        }
        let (len, chunked, content_length, expects) = match Head::parse(&self.input[self.start..self.end]) {
            Parsed::Partial if self.end - self.start == self.input.len() => return self.refuse(cx, 431),
            Parsed::Partial => return self.fill(),
            Parsed::Bad => return self.refuse(cx, 400),
            Parsed::Complete(head) => {
                let kind = kind_of(&head);
                count(cx.counters, kind, head.method);
                self.served += 1;
                let keeps = cx.shared.keep.is_on();
                let path = if keeps { response::decode(head.path) } else { String::new() };
                let reads = keeps && matches!(kind, Kind::Get | Kind::Head);
                self.kept = if reads { cx.shared.keep.get(&path) } else { None };
                let content = match &self.kept {
                    Some(bytes) => Body::Kept(bytes),
                    None => Body::Pool(&cx.shared.pool),
                };
                let answer = AnswerWriter::new(&mut self.out, content);
                let (body, after, stall, trickle) = match self.limits.admit(&head, kind, cx) {
                    None => answer.prepare(&head, kind, self.served, cx),
                    Some((status, wait_s)) => {
                        add(&cx.counters.throttled, 1);
                        answer.refuse(&head, status, wait_s, cx)
                    }
                };
                (self.body, self.after, self.trickle) = (body, after, trickle);
                if self.body.1 <= INLINE_BYTES && cx.shared.gate.is_none() && !trickle {
                    add(&cx.counters.bytes_out, self.body.1);
                    while self.body.1 > 0 {
                        let piece = content.slice(self.body.0, self.body.1);
                        self.out.extend_from_slice(piece);
                        self.body = (self.body.0 + piece.len() as u64, self.body.1 - piece.len() as u64);
                    }
                }
                let whole =
                    stall || self.out.starts_with(b"HTTP/1.1 4") || self.out.starts_with(b"HTTP/1.1 5");
                self.collect = match kind {
                    _ if whole => None,
                    Kind::Put if keeps && head.chunked => return self.refuse(cx, 501),
                    Kind::Put if keeps => Some((Purpose::Keep(path), Vec::new())),
                    Kind::DeleteMany => Some((Purpose::DeleteMany(path), Vec::new())),
                    Kind::Delete if keeps => {
                        cx.shared.keep.delete(&path);
                        None
                    }
                    _ => None,
                };
                if stall {
                    self.out.clear();
                    self.phase = Phase::Stalled;
                    return Flow::Again;
                }
                (head.len, head.chunked, head.content_length, head.expect_continue)
            }
        };
        self.start += len;
        self.sent = 0;
        self.phase = match (chunked, content_length) {
            (true, _) => Phase::Chunked(ChunkSkipper::default()),
            (false, 0) => Phase::Answer,
            (false, n) => Phase::Length(n),
        };
        if expects && self.start == self.end && !matches!(self.phase, Phase::Answer) {
            return self.on_expect(cx);
        }
        Flow::Again
    }

    /// The client waits for leave to send its body.
    fn on_expect(&mut self, cx: &Cx<'_>) -> Flow {
        let line: &[u8] = match cx.shared.options.expect_continue {
            Continue::Send => b"HTTP/1.1 100 Continue\r\n\r\n",
            Continue::Silent => return Flow::Again,
            Continue::Refuse => return self.refuse(cx, 417),
        };
        // An empty socket takes 25 bytes at once; a connection that cannot is not worth keeping.
        match self.io.send(line, Body::Pool(&cx.shared.pool), 0, 0) {
            Ok(n) if n == line.len() => Flow::Again,
            _ => Flow::Close,
        }
    }

    /// An error answer after which the connection ends, because its framing is lost.
    fn refuse(&mut self, cx: &Cx<'_>, status: u16) -> Flow {
        self.out.clear();
        response::error(&mut self.out, status, "Connection: close\r\n", false, &env(cx));
        (self.start, self.end, self.sent, self.body) = (0, 0, 0, (0, 0));
        self.after = After::Close;
        self.phase = Phase::Answer;
        Flow::Again
    }

    fn on_length(&mut self, cx: &mut Cx<'_>) -> Flow {
        let Phase::Length(left) = self.phase else { return Flow::Close };
        let have = (self.end - self.start).min(usize::try_from(left).unwrap_or(usize::MAX));
        let moved = if have > 0 {
            if !self.collect_bytes(self.start, have) {
                return self.refuse(cx, 400);
            }
            self.start += have;
            have
        } else if self.collect.is_some() {
            return self.fill();
        } else {
            if !self.readable {
                return Flow::Blocked;
            }
            let mut room = cx.scratch.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if let (Some(gate), true) = (&cx.shared.gate, self.limits.ticket.charges(Direction::In)) {
                room = room.min(gate.piece_bytes() as usize);
            }
            match self.io.discard(&mut cx.scratch[..room]) {
                Ok(0) => return Flow::Close,
                Ok(n) => {
                    self.after_read(n, room);
                    n
                }
                Err(e) => return self.read_error(&e),
            }
        };
        add(&cx.counters.bytes_in, moved as u64);
        self.charge_in(cx, moved as u64);
        let left = left - moved as u64;
        self.phase = if left == 0 { Phase::Answer } else { Phase::Length(left) };
        Flow::Again
    }

    fn on_chunked(&mut self, cx: &mut Cx<'_>) -> Flow {
        if self.start == self.end {
            match self.fill() {
                Flow::Again => {}
                other => return other,
            }
        }
        let Phase::Chunked(skipper) = &mut self.phase else { return Flow::Close };
        let before = skipper.data_bytes;
        match skipper.take(&self.input[self.start..self.end]) {
            Ok((used, done)) => {
                let moved = skipper.data_bytes - before;
                add(&cx.counters.bytes_in, moved);
                if let (Some(gate), true) = (&cx.shared.gate, moved > 0) {
                    self.pause_until = gate.bytes(&self.limits.ticket, Direction::In, moved);
                }
                if done {
                    self.phase = Phase::Answer;
                }
                if !self.collect_bytes(self.start, used) {
                    return self.refuse(cx, 400);
                }
                self.start += used;
                Flow::Again
            }
            Err(_) => self.refuse(cx, 400),
        }
    }

    /// Keeps body bytes where the answer depends on them; false when there are too many.
    fn collect_bytes(&mut self, from: usize, n: usize) -> bool {
        let Some((purpose, body)) = &mut self.collect else { return true };
        body.extend_from_slice(&self.input[from..from + n]);
        matches!(purpose, Purpose::Keep(_)) || body.len() <= MAX_COLLECT_BYTES
    }

    fn on_answer(&mut self, cx: &Cx<'_>) -> Flow {
        let there_is_room = match self.collect.take() {
            Some((Purpose::Keep(path), body)) => cx.shared.keep.put(path, body),
            Some((Purpose::DeleteMany(bucket), request)) => {
                self.out.clear();
                response::delete_many(&mut self.out, &request, &bucket, &env(cx));
                true
            }
            None => true,
        };
        if !there_is_room {
            return self.refuse(cx, 507);
        }
        self.phase = Phase::Send;
        let delay_ns = cx.shared.delay_ns + self.limits.latency_ns;
        if delay_ns > 0 {
            self.pause_until = now_ns() + delay_ns;
            self.due_ns = self.pause_until;
        }
        self.pause_until = self.pause_until.max(self.limits.go_at_ns);
        Flow::Again
    }

    /// Bytes that came in are charged, and what follows them waits until they are paid.
    fn charge_in(&mut self, cx: &Cx<'_>, moved: u64) {
        if let Some(gate) = &cx.shared.gate {
            self.pause_until = gate.bytes(&self.limits.ticket, Direction::In, moved);
        }
    }

    /// Pays for the next piece of the body before it leaves; true when it has to wait for that.
    fn charge_out(&mut self, cx: &Cx<'_>) -> bool {
        let Some(gate) = &cx.shared.gate else { return false };
        if self.body.1 == 0 || self.limits.paid_out > 0 || !self.limits.ticket.charges(Direction::Out) {
            return false;
        }
        let n = self.body.1.min(gate.piece_bytes());
        self.limits.paid_out = n;
        self.pause_until = gate.bytes(&self.limits.ticket, Direction::Out, n);
        self.pause_until > now_ns()
    }

    fn on_send(&mut self, cx: &Cx<'_>) -> Flow {
        if self.due_ns > 0 && cx.shared.delay_ns > 0 {
            cx.counters.late.record(now_ns().saturating_sub(self.due_ns));
        }
        self.due_ns = 0;
        while self.sent < self.out.len() || self.body.1 > 0 {
            if self.charge_out(cx) {
                return Flow::Again;
            }
            if !self.writable {
                return Flow::Blocked;
            }
            match self.send_piece(cx) {
                Ok(n) => {
                    let of_head = n.min(self.out.len() - self.sent);
                    self.sent += of_head;
                    self.body.0 += (n - of_head) as u64;
                    self.body.1 -= (n - of_head) as u64;
                    self.limits.paid_out = self.limits.paid_out.saturating_sub((n - of_head) as u64);
                    add(&cx.counters.bytes_out, (n - of_head) as u64);
                    if self.trickle {
                        let pause: Duration = cx.shared.options.trickle.interval;
                        self.pause_until = now_ns() + pause.as_nanos() as u64;
                        return Flow::Again;
                    }
                }
                Err(e) => match self.write_error(&e) {
                    Flow::Again => {}
                    other => return other,
                },
            }
        }
        if let Err(e) = self.io.flush() {
            return self.write_error(&e);
        }
        self.out.clear();
        self.phase = Phase::Head;
        match self.after {
            After::Keep => Flow::Again,
            After::Close => {
                // The client may still be sending: end our half first, so that the answer is not lost to a reset.
                self.io.shutdown();
                let _ = self.io.socket().shutdown(Shutdown::Write);
                self.phase = Phase::Stalled;
                Flow::Again
            }
            After::Reset => Flow::Reset,
        }
    }

    fn send_piece(&mut self, cx: &Cx<'_>) -> std::io::Result<usize> {
        let head = &self.out[self.sent..];
        let content = match &self.kept {
            Some(bytes) => Body::Kept(bytes),
            None => Body::Pool(&cx.shared.pool),
        };
        let (offset, mut left) = self.body;
        if cx.shared.gate.is_some() && self.limits.ticket.charges(Direction::Out) {
            left = left.min(self.limits.paid_out);
        }
        if !self.trickle {
            return self.io.send(head, content, offset, left);
        }
        let piece = cx.shared.options.trickle.piece_bytes.max(1) as usize;
        if head.is_empty() {
            self.io.send(&[], content, offset, left.min(piece as u64))
        } else {
            self.io.send(&head[..head.len().min(piece)], content, offset, 0)
        }
    }

    fn write_error(&mut self, e: &std::io::Error) -> Flow {
        match e.kind() {
            ErrorKind::WouldBlock => {
                self.writable = false;
                Flow::Blocked
            }
            ErrorKind::Interrupted => Flow::Again,
            _ => Flow::Close,
        }
    }

    /// Drops whatever still comes until the client leaves.
    fn on_stalled(&mut self, cx: &mut Cx<'_>) -> Flow {
        if !self.readable {
            return Flow::Blocked;
        }
        match self.io.discard(cx.scratch) {
            Ok(0) => Flow::Close,
            Ok(_) => Flow::Again,
            Err(e) => self.read_error(&e),
        }
    }
}

pub(crate) fn env<'a>(cx: &'a Cx<'_>) -> Env<'a> {
    let o = &cx.shared.options;
    let keep = cx.shared.keep.is_on().then_some(&cx.shared.keep);
    Env { date: cx.date, body_bytes: o.body_bytes, list_keys: o.list_keys, server: &o.server, keep }
}

fn count(c: &Counters, kind: Kind, method: Method) {
    let counter = match (kind, method) {
        (Kind::Stats, _) => return,
        (Kind::Get, _) => &c.get,
        (Kind::Head, _) => &c.head,
        (Kind::Put | Kind::Copy | Kind::Part, _) => &c.put,
        (Kind::Multipart | Kind::DeleteMany, _) => &c.post,
        (Kind::Delete, _) => &c.delete,
        (Kind::List, _) => &c.list,
        (Kind::Bucket, _) => &c.other,
    };
    add(counter, 1);
}
