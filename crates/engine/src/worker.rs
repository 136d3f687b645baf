//! The loop: pace, prepare, submit, reap, record. Modes are data; there is no second loop.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use plimsoll_model::plan::RingChoice;
use plimsoll_model::{OpKind, Outcome};

use crate::api::{StopCause, WorkerSpec};
use crate::pacer::PaceCursor;
use crate::recorder::{InFlight, Recorder};
use crate::ring::{Completions, Ring};
use crate::source::{Numbered, OpCursor, sync_op};
use crate::target::{Context, Done, OpStep, Target};

mod clock;
mod held;

use clock::ThreadClock;
pub(crate) use clock::ThreadTimes;
use held::Held;

/// In an open loop the last stretch before an intended start is polled: a sleeping thread wakes late.
const SPIN_NS: u64 = 60_000;
/// Completions taken in one turn.
const BATCH: usize = 256;
/// How long an abort waits for the ring to let go.
const LET_GO_NS: u64 = 5_000_000_000;

/// What the stage tells its workers.
#[derive(Debug, Default)]
pub(crate) struct Control {
    pub stop: AtomicBool,
    pub abort: AtomicBool,
}

/// What a worker is about to do, and has done.
pub(crate) struct Worker<'a, R, T> {
    pub ring: R,
    pub target: T,
    pub recorder: Recorder,
    control: &'a Control,
    ops: OpCursor,
    pace: PaceCursor,
    open_loop: bool,
    track_submission: bool,
    late_tolerance_ns: u64,
    start_ns: u64,
    end_ns: u64,
    ops_left: u64,
    bytes_left: u64,
    /// Drawn but not begun: the next op and when it is intended.
    next: Option<(Numbered, u64)>,
    slots: Vec<Option<InFlight>>,
    free: Vec<u32>,
    /// Slots that take no op for a while.
    held: Held,
    begun: Vec<u32>,
    /// Of `begun`, how many were handed to the ring.
    handed: usize,
    submit_every: usize,
    done: Completions,
    /// When all slots were last taken: what was intended before then is late for want of a slot.
    full_ns: u64,
    timeout_check_ns: u64,
    cancelled: Vec<Outcome>,
    sync_files: u64,
    next_sync: u64,
    synced: SyncMark,
    /// Of the fsync in each slot: every write before this number was acknowledged when it began.
    promises: Vec<u64>,
    now_ns: u64,
    pub cause: Option<StopCause>,
    pub stopped_ns: u64,
    pub last_submit_ns: u64,
    pub begun_ops: u64,
    aborting_since_ns: Option<u64>,
    clock: ThreadClock,
}

/// Which writes are durable.
#[derive(Debug, Default, Clone, Copy)]
struct SyncMark {
    through: u64,
    /// An fsync speaks for one file only: over several files nothing is claimed.
    one_file: bool,
    next_write: u64,
    failed: Option<u64>,
}

impl<'a, R: Ring, T: Target<R>> Worker<'a, R, T> {
    pub fn new(
        spec: &WorkerSpec,
        ring: R,
        target: T,
        recorder: Recorder,
        control: &'a Control,
        late_tolerance_ns: u64,
    ) -> Self {
        let slots = spec.slots as usize;
        let submit_every = target.submit_every().max(1) as usize;
        Self {
            ring,
            target,
            recorder,
            control,
            ops: OpCursor::new(&spec.source, spec.share),
            pace: PaceCursor::new(spec.pacer, spec.pace_share),
            open_loop: spec.pacer.is_open(),
            // A synchronous call is submission and completion in one: fio does not tell them apart there either.
            track_submission: R::CHOICE != RingChoice::Psync
                && spec.series.iter().any(|s| s.shape.submission),
            late_tolerance_ns,
            start_ns: 0,
            end_ns: u64::MAX,
            ops_left: spec.stop.ops.unwrap_or(u64::MAX),
            bytes_left: bytes_to_do(spec),
            next: None,
            slots: vec![None; slots],
            free: (0..spec.slots).rev().collect(),
            held: Held::with_capacity(slots),
            begun: Vec::with_capacity(slots),
            handed: 0,
            submit_every,
            done: Completions::with_room(BATCH),
            full_ns: 0,
            timeout_check_ns: u64::MAX,
            cancelled: vec![Outcome::Ok; slots],
            sync_files: if spec.source.sync.end_fsync { files_of(spec) } else { 0 },
            next_sync: 0,
            synced: SyncMark { one_file: files_of(spec) == 1, ..SyncMark::default() },
            promises: vec![0; slots],
            now_ns: 0,
            cause: None,
            stopped_ns: 0,
            last_submit_ns: 0,
            begun_ops: 0,
            aborting_since_ns: None,
            clock: ThreadClock::of_this_thread(),
        }
    }

    /// Times come from a virtual clock: CPU time is not part of them.
    pub fn without_cpu_clock(mut self) -> Self {
        self.clock = ThreadClock::Stopped;
        self
    }

    /// Sets the times from which the worker counts: op 0 is intended at `start_ns`.
    pub fn start(&mut self, start_ns: u64, after_ns: Option<u64>) {
        self.start_ns = start_ns;
        self.end_ns = after_ns.map_or(u64::MAX, |t| start_ns.saturating_add(t));
        self.now_ns = self.ring.now_ns();
        self.recorder.start(self.now_ns, self.clock.read());
        if let Some(t) = self.target.timeout_ns() {
            self.timeout_check_ns = self.now_ns + t / 16;
        }
    }

    pub fn started_ns(&self) -> u64 {
        self.start_ns
    }

    pub fn has_started(&self) -> bool {
        self.now_ns >= self.start_ns
    }

    /// As [`Self::wake_ns`]; before the start, that or the grid's edge.
    pub fn wake_or_start_ns(&self) -> u64 {
        if self.has_started() {
            // A free slot in a closed loop begins now, were it not for the round's limit.
            let undrawn = !self.open_loop || self.next.is_none();
            let more_now = self.cause.is_none() && undrawn && !self.free.is_empty();
            let sync_now = self.cause.is_some() && self.next_sync < self.sync_files && self.in_flight() == 0;
            if more_now || sync_now { self.now_ns } else { self.wake_ns() }
        } else {
            self.start_ns.min(self.recorder.edge_ns())
        }
    }

    /// Sleeps until the start, handing over empty slices at the grid's edges.
    pub fn wait_for_start(&mut self) -> std::io::Result<()> {
        while self.now_ns < self.start_ns && self.why_stop().is_none() {
            self.ring.wait(1, self.start_ns.min(self.recorder.edge_ns()))?;
            self.now_ns = self.ring.now_ns();
            self.reap();
        }
        Ok(())
    }

    /// Runs to the end on a real clock.
    pub fn drive(&mut self) -> std::io::Result<()> {
        while !self.is_over() {
            self.begin_due();
            // The end came with nothing in flight: there is nothing to wait for, least of all the grid's next edge.
            if self.is_over() {
                break;
            }
            self.submit_and_wait()?;
            self.reap();
        }
        Ok(())
    }

    /// Nothing is in flight, and nothing more is to begin.
    pub fn is_over(&self) -> bool {
        let idle = self.free.len() + self.held.len() == self.slots.len();
        self.cause.is_some()
            && idle
            && (self.next_sync >= self.sync_files || self.control.abort.load(Relaxed))
            || self.aborting_since_ns.is_some_and(|t| self.now_ns > t + LET_GO_NS)
    }

    /// Ops that the ring did not give back.
    pub fn in_flight(&self) -> u32 {
        (self.slots.len() - self.free.len() - self.held.len()) as u32
    }

    /// Begins what is due, at most one round over the slots: a target that ends its ops at once must
    /// not keep the clock from being read.
    pub fn begin_due(&mut self) {
        self.begun.clear();
        self.handed = 0;
        // Also with all slots taken: the end must be noticed when it comes, not when a slot is free.
        if self.cause.is_none()
            && let Some(cause) = self.why_stop()
        {
            self.stop(cause);
        }
        if !self.held.is_empty() {
            self.release_held();
        }
        // With every slot taken nobody asks for the next op, and the deadline would wake the loop for ever.
        if self.free.is_empty() && self.cause.is_none() && self.now_ns >= self.end_ns {
            self.stop(StopCause::Deadline);
        }
        for _ in 0..self.slots.len() {
            let Some(&slot) = self.free.last() else { break };
            let Some((numbered, intended_ns)) = self.take_due() else { break };
            self.free.pop();
            self.begin(slot, numbered, intended_ns);
            if self.begun.len() - self.handed >= self.submit_every {
                // What fails for good fails again in the turn's wait.
                let _ = self.hand_over();
            }
        }
        if self.free.is_empty() {
            self.full_ns = self.now_ns;
        }
        if !self.begun.is_empty() {
            self.last_submit_ns = self.now_ns;
            if T::STAMP_AFTER_PREPARE {
                let mut prepared_ns = 0;
                self.stamp(|f, now_ns| {
                    prepared_ns += now_ns.saturating_sub(f.submitted_ns);
                    f.submitted_ns = now_ns;
                });
                // Being prepared is not being in flight: with answers of a millisecond (a limiter's no),
                // the difference would break Little's law.
                self.recorder.was_prepared_for(prepared_ns);
            }
        }
    }

    /// The ring takes what was begun, and time has passed since.
    fn hand_over(&mut self) -> std::io::Result<()> {
        self.ring.submit()?;
        let now_ns = if self.track_submission {
            self.stamp(|f, now_ns| f.accepted_ns = now_ns)
        } else {
            self.ring.now_ns()
        };
        // What the turn begins next is submitted now, not when the turn began.
        self.now_ns = now_ns;
        self.handed = self.begun.len();
        Ok(())
    }

    /// Sets the time in those that were begun and not handed over yet.
    fn stamp(&mut self, mut set: impl FnMut(&mut InFlight, u64)) -> u64 {
        let now_ns = self.ring.now_ns();
        for slot in &self.begun[self.handed..] {
            if let Some(f) = &mut self.slots[*slot as usize] {
                set(f, now_ns);
            }
        }
        now_ns
    }

    fn begin(&mut self, slot: u32, numbered: Numbered, intended_ns: u64) {
        let Numbered { op, n } = numbered;
        let now_ns = self.now_ns;
        if op.kind == OpKind::Fsync {
            self.promises[slot as usize] = self.first_unacknowledged();
        } else if op.kind == OpKind::Write {
            self.synced.next_write = n + 1;
        }
        self.slots[slot as usize] =
            Some(InFlight { op, n, intended_ns, submitted_ns: now_ns, accepted_ns: 0, first_byte_ns: 0 });
        self.cancelled[slot as usize] = Outcome::Ok;
        let late = self.open_loop
            && intended_ns > self.full_ns
            && now_ns.saturating_sub(intended_ns) > self.late_tolerance_ns;
        self.recorder.begun(op.kind, now_ns, late);
        self.begun_ops += 1;
        self.begun.push(slot);
        let mut cx = Context { ring: &mut self.ring, now_ns, recorder: &mut self.recorder };
        let step = self.target.begin(&mut cx, slot, &op, n);
        self.take(slot, step);
    }

    /// The next op, if it may begin now.
    fn take_due(&mut self) -> Option<(Numbered, u64)> {
        if self.cause.is_some() {
            return self.take_end_sync();
        }
        if self.ops_left == 0 || self.bytes_left == 0 {
            // The round itself used them up.
            return None;
        }
        let (numbered, intended_ns) = match self.next.take() {
            Some(next) => next,
            None => {
                let numbered = self.ops.next_op();
                let at = if self.open_loop && numbered.op.kind != OpKind::Fsync {
                    self.pace.leave_out_before(self.now_ns.saturating_sub(self.start_ns));
                    self.start_ns + self.pace.next_ns(numbered.op.length)
                } else {
                    self.now_ns
                };
                (numbered, at)
            }
        };
        if intended_ns >= self.end_ns {
            self.stop(StopCause::Deadline);
            return None;
        }
        if intended_ns > self.now_ns || self.target.must_wait(&numbered.op) {
            self.next = Some((numbered, intended_ns));
            return None;
        }
        if numbered.op.kind != OpKind::Fsync {
            self.ops_left -= 1;
            self.bytes_left = self.bytes_left.saturating_sub(numbered.op.length);
        }
        Some((numbered, intended_ns))
    }

    /// After the last op and with nothing in flight: one fsync of each file.
    fn take_end_sync(&mut self) -> Option<(Numbered, u64)> {
        let idle = self.free.len() + self.held.len() == self.slots.len();
        if !idle || self.next_sync >= self.sync_files || self.control.abort.load(Relaxed) {
            return None;
        }
        let op = sync_op(self.next_sync, false);
        self.next_sync += 1;
        Some((Numbered { op, n: self.synced.next_write }, self.now_ns))
    }

    fn why_stop(&self) -> Option<StopCause> {
        if self.control.abort.load(Relaxed) {
            Some(StopCause::Aborted)
        } else if self.control.stop.load(Relaxed) {
            Some(StopCause::Asked)
        } else if self.ops_left == 0 {
            Some(StopCause::Ops)
        } else if self.bytes_left == 0 {
            Some(StopCause::Bytes)
        } else if self.now_ns >= self.end_ns {
            Some(StopCause::Deadline)
        } else {
            None
        }
    }

    fn stop(&mut self, cause: StopCause) {
        self.cause = Some(cause);
        // A deadline is when it was, not when it was noticed.
        self.stopped_ns =
            if cause == StopCause::Deadline { self.end_ns.min(self.now_ns) } else { self.now_ns };
    }

    fn release_held(&mut self) {
        let over =
            self.cause.is_some() || self.control.stop.load(Relaxed) || self.control.abort.load(Relaxed);
        // A worker that slept through a pause was not busy: what was intended before the first slot came free is late for want of one.
        if self.free.is_empty()
            && let Some(first_ns) = self.held.first_ns()
        {
            self.full_ns = self.full_ns.max(first_ns.min(self.now_ns));
        }
        while let Some((slot, refused)) = self.held.pop(if over { u64::MAX } else { self.now_ns }) {
            self.free.push(slot);
            if refused {
                self.recorder.resumed(self.now_ns);
            }
        }
    }

    /// When the worker has something to do by itself.
    pub fn wake_ns(&self) -> u64 {
        let mut until = self.recorder.edge_ns().min(self.timeout_check_ns).min(self.target.wake_ns());
        until = until.min(self.held.first_ns().unwrap_or(u64::MAX));
        if self.cause.is_none() {
            until = until.min(self.end_ns);
            if let Some((_, intended_ns)) = &self.next
                && !self.free.is_empty()
            {
                until = until.min(*intended_ns);
            }
        }
        until
    }

    fn submit_and_wait(&mut self) -> std::io::Result<()> {
        if self.track_submission && self.begun.len() > self.handed {
            self.hand_over()?;
        }
        let wake_ns = self.wake_ns();
        let next_ns = self.next.as_ref().map_or(u64::MAX, |n| n.1);
        let soon = !self.free.is_empty() && self.cause.is_none() && next_ns <= self.now_ns + SPIN_NS;
        // In a closed loop a free slot means that an op ended at once: there is more to begin now.
        let more_now = self.cause.is_none() && !self.open_loop && !self.free.is_empty();
        let more_to_sync = self.cause.is_some() && self.next_sync < self.sync_files && self.in_flight() == 0;
        if soon {
            self.ring.wait(0, 0)?;
            let then_ns = self.ring.now_ns();
            self.recorder.spun(then_ns - self.now_ns);
            self.now_ns = then_ns;
            return Ok(());
        }
        let before_next = if wake_ns == next_ns { wake_ns - SPIN_NS } else { wake_ns };
        self.ring.wait(u32::from(!more_now && !more_to_sync), before_next)?;
        self.now_ns = self.ring.now_ns();
        Ok(())
    }

    /// Takes what has ended, then what is due: time-outs, the grid's edge, an abort.
    pub fn reap(&mut self) {
        self.done.clear();
        self.ring.reap(&mut self.done);
        for i in 0..self.done.as_slice().len() {
            let c = self.done.as_slice()[i];
            let now_ns = self.now_ns;
            let mut cx = Context { ring: &mut self.ring, now_ns, recorder: &mut self.recorder };
            let step = self.target.complete(&mut cx, c.token, c.result);
            self.take(c.token.slot(), step);
        }
        if self.now_ns >= self.timeout_check_ns {
            self.check_timeouts();
        }
        if self.now_ns >= self.target.wake_ns() {
            let mut cx = Context { ring: &mut self.ring, now_ns: self.now_ns, recorder: &mut self.recorder };
            self.target.wake(&mut cx);
        }
        if self.aborting_since_ns.is_none() && self.control.abort.load(Relaxed) {
            self.abort();
        }
        if self.recorder.turn(self.now_ns, false, || self.clock.read()) {
            self.target.between_slices();
        }
    }

    /// Reads the virtual clock.
    pub fn wake(&mut self) {
        self.now_ns = self.ring.now_ns();
    }

    #[inline]
    fn take(&mut self, slot: u32, step: OpStep) {
        let Some(f) = self.slots.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        match step {
            OpStep::More { moved_bytes, first_byte } => {
                if first_byte && f.first_byte_ns == 0 {
                    f.first_byte_ns = self.now_ns;
                }
                let kind = f.op.kind;
                self.recorder.moved(kind, moved_bytes);
            }
            OpStep::Done(done) => self.end(slot, done),
        }
    }

    #[inline]
    fn end(&mut self, slot: u32, mut done: Done) {
        let Some(mut f) = self.slots[slot as usize].take() else { return };
        if done.first_byte && f.first_byte_ns == 0 {
            f.first_byte_ns = self.now_ns;
        }
        // A cancelled op ends as what it was cancelled for, unless it made it after all.
        let why = self.cancelled[slot as usize];
        if !why.is_ok() && !done.outcome.is_ok() {
            done.outcome = why;
        }
        match f.op.kind {
            OpKind::Write if !done.outcome.is_ok() => {
                self.synced.failed = Some(self.synced.failed.map_or(f.n, |x| x.min(f.n)));
            }
            OpKind::Fsync if done.outcome.is_ok() && self.synced.one_file => {
                self.synced.through = self.synced.through.max(self.promises[slot as usize]);
            }
            _ => {}
        }
        self.recorder.moved(f.op.kind, done.moved_bytes);
        self.recorder.done(slot, &f, &done, self.now_ns);
        if done.hold_until_ns > self.now_ns {
            let refused = done.outcome.is_throttled();
            if refused {
                self.recorder.paused(self.now_ns);
            }
            // Whatever the answer asks for (Retry-After), nobody waits beyond the end.
            self.held.push(done.hold_until_ns.min(self.end_ns.max(self.now_ns)), slot, refused);
        } else {
            self.free.push(slot);
        }
    }

    fn check_timeouts(&mut self) {
        let Some(limit_ns) = self.target.timeout_ns() else {
            self.timeout_check_ns = u64::MAX;
            return;
        };
        for slot in 0..self.slots.len() as u32 {
            let overdue = self.slots[slot as usize]
                .as_ref()
                .is_some_and(|f| self.now_ns.saturating_sub(f.submitted_ns) >= limit_ns);
            if overdue && self.cancelled[slot as usize].is_ok() {
                self.cancel(slot, Outcome::Timeout);
            }
        }
        self.timeout_check_ns = self.now_ns + (limit_ns / 64).clamp(1_000_000, 100_000_000);
    }

    fn cancel(&mut self, slot: u32, why: Outcome) {
        self.cancelled[slot as usize] = why;
        let now_ns = self.now_ns;
        let mut cx = Context { ring: &mut self.ring, now_ns, recorder: &mut self.recorder };
        let step = self.target.cancel(&mut cx, slot, why);
        self.take(slot, step);
    }

    fn abort(&mut self) {
        self.aborting_since_ns = Some(self.now_ns);
        if self.cause.is_none() {
            self.stop(StopCause::Aborted);
        }
        for slot in 0..self.slots.len() as u32 {
            if self.slots[slot as usize].is_some() && self.cancelled[slot as usize].is_ok() {
                self.cancel(slot, Outcome::Cancelled);
            }
        }
    }

    /// The lowest write that is not known to be done: in flight, failed, or not begun.
    fn first_unacknowledged(&self) -> u64 {
        let in_flight = self.slots.iter().flatten().filter(|f| f.op.kind == OpKind::Write).map(|f| f.n).min();
        let open = in_flight.unwrap_or(self.synced.next_write);
        self.synced.failed.map_or(open, |x| x.min(open))
    }

    pub fn synced_through(&self) -> u64 {
        self.synced.through
    }

    /// After the last op: the target lets go of what it left in flight; the last slice is handed over.
    pub fn close(&mut self) -> std::io::Result<()> {
        let now_ns = self.ring.now_ns();
        let mut cx = Context { ring: &mut self.ring, now_ns, recorder: &mut self.recorder };
        self.target.close(&mut cx);
        let give_up_ns = now_ns + LET_GO_NS;
        while self.target.idle_in_flight() > 0 && self.ring.now_ns() < give_up_ns {
            self.ring.wait(1, self.ring.now_ns() + 100_000_000)?;
            self.reap();
        }
        self.now_ns = self.now_ns.max(self.ring.now_ns());
        self.recorder.turn(self.now_ns, true, || self.clock.read());
        Ok(())
    }

    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }
}

/// Bytes that the worker may begin: its own limit, or its passes over the region.
fn bytes_to_do(spec: &WorkerSpec) -> u64 {
    let loops =
        spec.stop.loops.zip(spec.source.region_bytes()).map(|(n, bytes)| u64::from(n).saturating_mul(bytes));
    spec.stop.bytes.unwrap_or(u64::MAX).min(loops.unwrap_or(u64::MAX))
}

fn files_of(spec: &WorkerSpec) -> u64 {
    match &spec.target {
        crate::api::TargetConfig::Block(c) | crate::api::TargetConfig::Files(c) => c.paths.len() as u64,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
