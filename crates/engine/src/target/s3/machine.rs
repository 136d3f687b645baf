//! The state machine of ops: which exchanges an op is made of, on which lanes and servers, and how it ends.
//!
//! It knows nothing of workers: it is given a ring, the time, and a [`Sink`] for what is worth telling.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_model::{Op, OpKind, Outcome};
use plimsoll_s3::Heads;
use plimsoll_s3::response::Text;

use super::config::{Config, ResolvedEndpoint};
use super::conn::Conn;
use super::content::{ContentDifference, Layout};
use super::exchange::{Ended, Progress, Side};
use super::gone::Gone;
use super::judge::{judge, upload_id};
use super::lane::Lane;
use super::redirect::Places;
use super::renewal::HeadsInbox;
use super::request::{Call, PartDone, Upload, Writer};
use super::waits::{ABORT_NS, CONTINUE_NS};
use crate::ring::Ring;
use crate::target::{Done, OpStep};

/// What is told beside the ends of ops.
pub(super) trait Sink {
    /// A connection was opened that is not the first of its lane.
    fn reconnected(&mut self);
    /// An op (or part) did not end Ok; `text` is made only when it is the first of its class.
    fn failed(&mut self, outcome: Outcome, kind: OpKind, text: String);
    fn wants_text(&self, outcome: Outcome, kind: OpKind) -> bool;
    fn mismatch(&mut self, op: &Op, key: String, difference: &ContentDifference);
    /// A part of an upload ended: bytes, and when its request was written.
    fn part(&mut self, outcome: Outcome, bytes: u64, endpoint: u16, submitted_ns: u64);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    Single,
    Initiate,
    Parts,
    Complete,
    Abort,
}

#[derive(Debug)]
pub(super) struct Slot {
    op: Op,
    pub(super) n: u64,
    pub(super) phase: Phase,
    pub server: usize,
    /// The endpoint of the configuration that the op is counted for.
    endpoint: u16,
    pub hops: u8,
    upload: Upload,
    parts: u32,
    next_part: u32,
    parts_done: u32,
    /// The first thing that went wrong.
    failed: Option<Outcome>,
    /// `cancel` was called: nothing new is begun.
    stopping: bool,
    pub(super) throttles: u8,
    pub(super) hold_until_ns: u64,
    /// When an abort of the upload is given up.
    pub(super) abort_until_ns: u64,
}

const NO_OP: Op = Op { kind: OpKind::Null, key: 0, offset: 0, length: 0 };

/// All slots of one worker.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) config: Arc<Config>,
    pub(super) servers: Vec<ResolvedEndpoint>,
    pub(super) heads: Vec<Heads>,
    /// With new keys, if these were renewed.
    new_heads: HeadsInbox,
    /// How often that was.
    pub renewals: u64,
    writer: Writer,
    pub(super) slots: Vec<Slot>,
    /// `lanes_per_slot` lanes of each slot, one slot after another.
    pub(super) lanes: Vec<Lane>,
    calls: Vec<Call>,
    /// When each lane's request was written.
    pub(super) began_ns: Vec<u64>,
    /// For each lane, one connection for each possible server.
    pub(super) conns: Vec<Conn>,
    pub(super) lanes_per_slot: usize,
    pub(super) servers_per_lane: usize,
    /// Unix time at ring time zero, nanoseconds.
    unix_at_zero_ns: i128,
    pub server_names: Vec<Text<64>>,
    pub(super) places: Places,
    /// Redirects that were followed, by server from and to.
    pub(super) redirected: Vec<u64>,
    gone: Gone,
    pub discarded_bytes: u64,
    pub copied_bytes: u64,
    /// When [`Self::wake`] has something to do.
    pub(super) wake_ns: u64,
    /// How long a body waits for `100 Continue`.
    pub(super) continue_ns: u64,
}

/// Work that follows from what just happened on a lane.
enum Next {
    Wait,
    Done(Outcome),
}

impl Machine {
    pub fn new(config: Arc<Config>, slots: u32, verify: bool, ring_now_ns: u64) -> Result<Self, String> {
        if verify && config.object.multipart && config.content.layout() == Layout::Pool {
            return Err("objects uploaded in parts with pool signing cannot be verified: use --signing full or unsigned".into());
        }
        let servers: Vec<ResolvedEndpoint> =
            config.servers.iter().chain(&config.redirects).cloned().collect();
        let (heads, new_heads) =
            config.keys_in_use.subscribe(config.head_recipe()).map_err(|e| e.to_string())?;
        let lanes_per_slot =
            if config.object.multipart { config.object.part_concurrency.max(1) as usize } else { 1 };
        let count = slots as usize * lanes_per_slot;
        let servers_per_lane = servers.len();
        let tls = servers.iter().any(|s| s.endpoint.tls);
        let reads = verify || config.checksum.is_some();
        let room = Writer::text_room(&config);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i128);
        let max_parts = if config.object.multipart {
            config.object.max_multipart_bytes.div_ceil(config.object.part_bytes.max(1)) as usize
        } else {
            0
        };
        Ok(Self {
            places: Places::new(&servers, config.heads.virtual_host.then_some(config.heads.bucket.as_str())),
            redirected: vec![0; servers.len() * servers.len()],
            servers,
            heads,
            new_heads,
            renewals: 0,
            writer: Writer::new(&config, verify),
            slots: (0..slots).map(|_| Slot::new(max_parts)).collect(),
            lanes: (0..count).map(|_| Lane::new((tls, reads), config.heads.close, room)).collect(),
            calls: vec![Call::Single; count],
            began_ns: vec![0; count],
            conns: (0..count * servers_per_lane).map(|i| Conn::new(i as u32, i / servers_per_lane)).collect(),
            lanes_per_slot,
            servers_per_lane,
            unix_at_zero_ns: now - i128::from(ring_now_ns),
            server_names: vec![Text::default(); config.servers.len()],
            gone: Gone::new(config.servers.len(), slots),
            discarded_bytes: 0,
            copied_bytes: 0,
            wake_ns: u64::MAX,
            continue_ns: CONTINUE_NS,
            config,
        })
    }

    /// Sockets and ring ops in flight that the ring must have room for.
    pub fn ring_needs(config: &Config, slots: u32) -> (u32, u32) {
        let lanes = slots * if config.object.multipart { config.object.part_concurrency.max(1) } else { 1 };
        (lanes * (config.servers.len() + config.redirects.len()) as u32, lanes * 3)
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn begin<R: Ring, S: Sink>(
        &mut self,
        ring: &mut R,
        (now_ns, sink): (u64, &mut S),
        slot: u32,
        op: &Op,
        n: u64,
    ) -> OpStep {
        let endpoint = self.gone.choose((n % self.config.servers.len() as u64) as usize, now_ns);
        let parts = op.length.div_ceil(self.config.object.part_bytes.max(1)).max(1) as u32;
        let s = &mut self.slots[slot as usize];
        s.op = *op;
        s.n = n;
        s.server = endpoint;
        s.endpoint = endpoint as u16;
        s.hops = 0;
        s.failed = None;
        s.stopping = false;
        s.hold_until_ns = 0;
        s.abort_until_ns = u64::MAX;
        s.next_part = 0;
        s.parts_done = 0;
        s.parts = parts;
        let call = if op.kind == OpKind::Multipart {
            s.phase = Phase::Initiate;
            Call::Initiate
        } else {
            s.phase = Phase::Single;
            Call::Single
        };
        let progress = self.start(ring, now_ns, slot, 0, call);
        self.advance(ring, (now_ns, sink), slot, 0, progress)
    }

    pub fn complete<R: Ring, S: Sink>(
        &mut self,
        ring: &mut R,
        (now_ns, sink): (u64, &mut S),
        slot: u32,
        tag: u32,
        result: i32,
    ) -> OpStep {
        let lane = (tag >> 2) as usize;
        let (at_work, mut side) = self.lane_with_side(ring, slot, lane);
        let progress = at_work.complete(tag & 3, result, &mut side);
        self.advance(ring, (now_ns, sink), slot, lane, progress)
    }

    pub fn cancel<R: Ring>(&mut self, ring: &mut R, now_ns: u64, slot: u32, why: Outcome) -> OpStep {
        let s = &mut self.slots[slot as usize];
        if s.phase == Phase::Idle {
            return OpStep::Done(Done::at_once(why, 0));
        }
        s.stopping = true;
        s.failed.get_or_insert(why);
        self.stop_lanes(ring, slot, why);
        if self.is_quiet(slot) {
            let outcome = self.slots[slot as usize].failed.unwrap_or(why);
            return self.done(slot, outcome, now_ns, 0, false);
        }
        OpStep::MORE
    }

    /// Bodies whose checksum was to be checked, and that came without one.
    pub fn unchecked_bodies(&self) -> u64 {
        self.lanes.iter().map(|l| l.unchecked).sum()
    }

    /// Uploads with a checksum that the server said nothing of.
    pub fn unconfirmed_uploads(&self) -> u64 {
        self.lanes.iter().map(|l| l.unconfirmed).sum()
    }

    /// Between slices: requests that are written from now on have the keys of now.
    pub fn take_new_keys(&mut self) {
        if self.new_heads.fetch(&mut self.heads) {
            self.renewals += 1;
        }
    }

    /// Closes all connections; nothing may be in flight.
    pub fn close<R: Ring>(&mut self, ring: &mut R) {
        for c in &mut self.conns {
            c.close(ring);
        }
    }

    fn start<R: Ring>(&mut self, ring: &mut R, now_ns: u64, slot: u32, lane: usize, call: Call) -> Progress {
        let i = slot as usize * self.lanes_per_slot + lane;
        let s = &self.slots[slot as usize];
        let unix_s = ((self.unix_at_zero_ns + i128::from(now_ns)) / 1_000_000_000).max(0) as u64;
        let exchange = self.writer.write(
            &mut self.lanes[i],
            (&mut self.heads[s.server], &self.config),
            (&s.op, s.n),
            (call, &s.upload),
            unix_s,
        );
        self.calls[i] = call;
        self.began_ns[i] = now_ns;
        let (at_work, mut side) = self.lane_with_side(ring, slot, lane);
        let progress = at_work.begin(exchange, &mut side);
        if at_work.awaits_continue {
            self.wake_ns = self.wake_ns.min(now_ns + self.continue_ns);
        }
        progress
    }

    pub(super) fn stop_lanes<R: Ring>(&mut self, ring: &mut R, slot: u32, why: Outcome) {
        for lane in 0..self.lanes_per_slot {
            let i = slot as usize * self.lanes_per_slot + lane;
            if !self.lanes[i].active {
                continue;
            }
            let (at_work, mut side) = self.lane_with_side(ring, slot, lane);
            at_work.cancel(why, &mut side);
        }
    }

    /// A lane, and what it works with beside it.
    pub(super) fn lane_with_side<'a, R: Ring>(
        &'a mut self,
        ring: &'a mut R,
        slot: u32,
        lane: usize,
    ) -> (&'a mut Lane, Side<'a, R>) {
        let server = self.slots[slot as usize].server;
        let i = slot as usize * self.lanes_per_slot + lane;
        let side = Side {
            ring,
            conn: &mut self.conns[i * self.servers_per_lane + server],
            server: &self.servers[server],
            content: &self.config.content,
            slot,
            lane: lane as u32,
        };
        (&mut self.lanes[i], side)
    }

    fn is_quiet(&self, slot: u32) -> bool {
        let from = slot as usize * self.lanes_per_slot;
        self.lanes[from..from + self.lanes_per_slot].iter().all(|l| !l.active)
    }

    /// Follows a lane's progress to where the op waits or ends.
    fn advance<R: Ring, S: Sink>(
        &mut self,
        ring: &mut R,
        (now_ns, sink): (u64, &mut S),
        slot: u32,
        lane: usize,
        mut progress: Progress,
    ) -> OpStep {
        let mut moved = 0;
        let mut head = false;
        loop {
            moved += progress.moved;
            head |= progress.head;
            if progress.reconnected {
                sink.reconnected();
            }
            let Some(ended) = progress.ended else {
                return OpStep::More { moved_bytes: moved, first_byte: head };
            };
            match self.ended(ring, (now_ns, &mut *sink), slot, lane, ended, &mut progress) {
                Next::Wait if progress.ended.is_some() => {}
                Next::Wait => {
                    moved += progress.moved;
                    if progress.reconnected {
                        sink.reconnected();
                    }
                    return OpStep::More { moved_bytes: moved, first_byte: head };
                }
                Next::Done(outcome) => return self.done(slot, outcome, now_ns, moved, head),
            }
        }
    }

    /// An exchange ended. What it starts on the same lane is put into `progress`.
    fn ended<R: Ring, S: Sink>(
        &mut self,
        ring: &mut R,
        (now_ns, sink): (u64, &mut S),
        slot: u32,
        lane: usize,
        ended: Ended,
        progress: &mut Progress,
    ) -> Next {
        let i = slot as usize * self.lanes_per_slot + lane;
        *progress = Progress::default();
        let call = self.calls[i];
        let op = self.slots[slot as usize].op;
        self.note_answer(slot, i, ended, now_ns);
        if ended == Ended::Answered && !self.slots[slot as usize].stopping && self.follow(slot, i) {
            *progress = self.start(ring, now_ns, slot, lane, call);
            return Next::Wait;
        }
        let refused =
            if ended == Ended::Answered { self.redirect(slot, i).and_then(Result::err) } else { None };
        let (outcome, text) = judge(&mut self.lanes[i], ended, call, &op);
        let kind = if matches!(call, Call::Part(_)) { OpKind::UploadPart } else { op.kind };
        if let Some(text) = text
            && !outcome.is_ok()
            && call != Call::Abort
            && outcome != Outcome::Cancelled
            && sink.wants_text(outcome, kind)
        {
            let server = &self.servers[self.slots[slot as usize].server].endpoint;
            let why = refused.map_or(String::new(), |r| {
                let location = self.lanes[i].parser.head().shown_location();
                format!("; the redirect to '{location}' is {}", r.words(&location))
            });
            sink.failed(outcome, kind, format!("{server}: {text}{why}"));
        }
        if let Some(d) = self.lanes[i].difference.take() {
            sink.mismatch(&op, self.config.keys.key(op.key), &d);
        }
        if outcome.is_throttled() {
            let asked = self.lanes[i].parser.head().retry_after_s();
            self.pause(slot, now_ns, asked);
        }
        if let Call::Part(index) = call {
            let bytes = self.part_bytes(&op, index);
            sink.part(outcome, bytes, self.slots[slot as usize].endpoint, self.began_ns[i]);
        }
        self.next(ring, now_ns, slot, lane, call, outcome, progress)
    }

    fn part_bytes(&self, op: &Op, index: u32) -> u64 {
        let part = self.config.object.part_bytes;
        part.min(op.length.saturating_sub(u64::from(index) * part))
    }

    #[allow(clippy::too_many_arguments, reason = "the step of the op's state machine: each is used once")]
    fn next<R: Ring>(
        &mut self,
        ring: &mut R,
        now_ns: u64,
        slot: u32,
        lane: usize,
        call: Call,
        outcome: Outcome,
        progress: &mut Progress,
    ) -> Next {
        let i = slot as usize * self.lanes_per_slot + lane;
        let s = &mut self.slots[slot as usize];
        if s.phase == Phase::Single {
            return Next::Done(s.failed.filter(|_| s.stopping).unwrap_or(outcome));
        }
        if !outcome.is_ok() && call != Call::Abort {
            s.failed.get_or_insert(outcome);
        }
        match call {
            Call::Initiate if outcome.is_ok() => {
                upload_id(&self.lanes[i].text, &mut s.upload.id);
                s.upload.parts.clear();
                s.upload.parts.resize(s.parts as usize, PartDone::default());
                s.phase = Phase::Parts;
            }
            Call::Part(index) if outcome.is_ok() => {
                let lane = &self.lanes[i];
                s.upload.parts[index as usize] =
                    PartDone { etag: lane.parser.head().etag, checksum: lane.sent_checksum };
                s.parts_done += 1;
            }
            _ => {}
        }
        if let Some(failed) = s.failed {
            return self.unwind(ring, now_ns, slot, lane, call, failed, progress);
        }
        match call {
            Call::Complete => return Next::Done(Outcome::Ok),
            _ if s.parts_done == s.parts => {
                s.phase = Phase::Complete;
                *progress = self.start(ring, now_ns, slot, lane, Call::Complete);
            }
            _ => {
                *progress = self.next_part(ring, now_ns, slot, lane).unwrap_or_default();
                let others = if call == Call::Initiate { self.lanes_per_slot } else { 0 };
                for other in (0..others).filter(|o| *o != lane) {
                    self.next_part(ring, now_ns, slot, other);
                }
            }
        }
        match self.slots[slot as usize].failed {
            // No lane could begin its part, so that nothing will come back to end the op.
            Some(failed) if progress.ended.is_none() && self.is_quiet(slot) => {
                self.unwind(ring, now_ns, slot, lane, call, failed, progress)
            }
            _ => Next::Wait,
        }
    }

    /// Begins the next part on `lane`, if there is one.
    fn next_part<R: Ring>(&mut self, ring: &mut R, now_ns: u64, slot: u32, lane: usize) -> Option<Progress> {
        let s = &mut self.slots[slot as usize];
        if s.next_part == s.parts || s.failed.is_some() {
            return None;
        }
        let index = s.next_part;
        s.next_part += 1;
        let progress = self.start(ring, now_ns, slot, lane, Call::Part(index));
        if let Some(Ended::Failed(outcome, _)) = progress.ended {
            // No socket: the op fails when the other lanes have ended.
            self.slots[slot as usize].failed.get_or_insert(outcome);
        }
        Some(progress)
    }

    /// An upload that failed: stop its parts, then take it back, then the op ends.
    #[allow(clippy::too_many_arguments, reason = "as above")]
    fn unwind<R: Ring>(
        &mut self,
        ring: &mut R,
        now_ns: u64,
        slot: u32,
        lane: usize,
        call: Call,
        failed: Outcome,
        progress: &mut Progress,
    ) -> Next {
        if call == Call::Abort {
            return Next::Done(failed);
        }
        self.stop_lanes(ring, slot, Outcome::Cancelled);
        if !self.is_quiet(slot) {
            return Next::Wait;
        }
        let s = &mut self.slots[slot as usize];
        // Without an answer to its beginning there is no upload that could be named.
        if s.phase == Phase::Initiate {
            return Next::Done(failed);
        }
        s.phase = Phase::Abort;
        // A server that let the op run into its time-out may do the same to the abort.
        s.abort_until_ns = now_ns + ABORT_NS;
        self.wake_ns = self.wake_ns.min(s.abort_until_ns);
        *progress = self.start(ring, now_ns, slot, lane, Call::Abort);
        Next::Wait
    }

    fn done(&mut self, slot: u32, outcome: Outcome, now_ns: u64, moved: u64, head: bool) -> OpStep {
        let s = &mut self.slots[slot as usize];
        s.phase = Phase::Idle;
        if outcome.is_ok() {
            s.throttles = 0;
        } else {
            s.hold_until_ns = s.hold_until_ns.max(self.gone.hold_until_ns(now_ns, s.n));
        }
        let hold = if s.hold_until_ns > now_ns { s.hold_until_ns } else { 0 };
        OpStep::Done(Done {
            outcome,
            bytes: if outcome.is_ok() && s.op.kind.moves_bytes() { s.op.length } else { 0 },
            moved_bytes: moved,
            first_byte: head,
            endpoint: s.endpoint,
            hold_until_ns: hold,
        })
    }

    fn note_answer(&mut self, slot: u32, i: usize, ended: Ended, now_ns: u64) {
        let lane = &self.lanes[i];
        if lane.exchange.expected > 0 {
            self.discarded_bytes += lane.discarded;
            self.copied_bytes += lane.body_bytes - lane.discarded;
        }
        let server = self.slots[slot as usize].server;
        self.gone.note(server, ended, now_ns);
        if ended == Ended::Answered
            && let Some(name) = self.server_names.get_mut(server)
            && name.is_empty()
        {
            *name = lane.parser.head().server;
        }
    }
}

impl Slot {
    fn new(max_parts: usize) -> Self {
        Self {
            op: NO_OP,
            n: 0,
            phase: Phase::Idle,
            server: 0,
            endpoint: 0,
            hops: 0,
            upload: Upload { id: String::with_capacity(512), parts: Vec::with_capacity(max_parts) },
            parts: 0,
            next_part: 0,
            parts_done: 0,
            failed: None,
            stopping: false,
            throttles: 0,
            hold_until_ns: 0,
            abort_until_ns: u64::MAX,
        }
    }
}
