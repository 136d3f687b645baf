//! Turns the ends of ops into counts and histograms of the current slice of the grid. No lock, no
//! allocation, no formatting: full slices are swapped for the collector's empty ones.

use std::fmt;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use plimsoll_model::interval::ClientCounts;
use plimsoll_model::trace::OpRecord;
use plimsoll_model::{Interval, Op, OpKind, Outcome, Series, SeriesId, WorkerId};

use crate::api::{Output, SeriesSpec, TraceChunk, WorkerSpec};
use crate::grid::SliceGrid;
use crate::target::Done;
use crate::worker::ThreadTimes;

/// Empty slices that a worker has beside the one it fills: the collector may lag this far.
pub const SPARE_SLICES: usize = 8;
/// With this in the environment as `1` the ends of ops are not recorded. It is for one purpose: to measure what recording
/// costs (by `examples/s3_loop.rs`). Such a run has no results, and says why.
pub const BENCH_NO_RECORD: &str = "PLIMSOLL_BENCH_NO_RECORD";
/// Mismatches that are kept in words; the rest is counted.
const KEPT_MISMATCHES: usize = 16;
/// First errors that are kept in words, of all outcomes and op kinds.
const KEPT_ERRORS: usize = 64;
/// Records of a trace that a slice has room for without allocating.
const TRACE_ROOM: usize = 1 << 15;

/// The first failure of an outcome, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstError {
    /// How the op ended.
    pub outcome: Outcome,
    /// What it was.
    pub kind: OpKind,
    /// What the server or the kernel said, or what was wrong with the answer.
    pub text: String,
}

/// A block that is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Object key or file path.
    pub object: String,
    /// From the beginning of the object or file: of the first byte, or of the block, that differs.
    pub offset_bytes: u64,
    /// In words or in hex.
    pub expected: String,
    /// In the same form.
    pub found: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at byte {}: expected {}, found {}",
            self.object, self.offset_bytes, self.expected, self.found
        )
    }
}

/// What the worker knows of an op in flight. Times since the epoch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InFlight {
    pub op: Op,
    pub n: u64,
    pub intended_ns: u64,
    pub submitted_ns: u64,
    /// When the ring had taken it; 0 where that is not measured.
    pub accepted_ns: u64,
    pub first_byte_ns: u64,
}

/// The two ends between a worker and whoever collects: full ones out, empty ones back.
#[derive(Debug, Clone)]
pub(crate) struct Outlet {
    pub full: Sender<Output>,
    pub empty: Receiver<Output>,
    /// On the simulated clock each slice is waited for until it comes back: simulated time runs thousands of times faster than
    /// whoever looks at the slices, and a stop would else come minutes late, by chance more or less.
    pub lockstep: bool,
}

/// Records one worker.
#[derive(Debug)]
pub struct Recorder {
    worker: WorkerId,
    stage: u32,
    workload: u16,
    grid: Arc<SliceGrid>,
    /// End of the current slice.
    edge_ns: u64,
    open_loop: bool,
    tracing: bool,
    /// Nothing is recorded; see [`BENCH_NO_RECORD`].
    muted: bool,
    specs: Vec<SeriesSpec>,
    /// Place of each kind in `specs` and in a slice's series.
    by_kind: [u8; OpKind::ALL.len()],
    slice: Box<Interval>,
    trace: Vec<OpRecord>,
    outlet: Option<Outlet>,
    /// What came back in lockstep.
    spare: Option<Output>,
    in_flight: u64,
    /// Slots that pause after a refused attempt.
    paused: u64,
    changed_ns: u64,
    slice_began_ns: u64,
    thread_began: ThreadTimes,
    spun_ns: u64,
    /// Op-nanoseconds that ops were counted in flight while they were still being prepared.
    prepared_ns: u64,
    pub(crate) starved: u32,
    pub(crate) mismatches: u64,
    pub(crate) first_mismatches: Vec<Mismatch>,
    pub(crate) errors: Vec<FirstError>,
}

fn new_slice(stage: u32, workload: u16, specs: &[SeriesSpec]) -> Box<Interval> {
    let series =
        specs.iter().map(|s| Series::new(SeriesId { stage, workload, kind: s.kind }, s.shape)).collect();
    Box::new(Interval { index: 0, series, client: ClientCounts::default() })
}

/// The empty slices (and trace chunks) that a worker starts with.
pub(crate) fn spares(spec: &WorkerSpec, count: usize) -> Vec<Output> {
    let specs = ordered(&spec.series);
    let mut all = Vec::new();
    for _ in 0..count {
        let interval = new_slice(spec.stage, spec.workload, &specs);
        all.push(Output::Interval { worker: spec.worker, interval });
    }
    all
}

/// Series of a slice are in order of their id: intervals merge by it.
fn ordered(series: &[SeriesSpec]) -> Vec<SeriesSpec> {
    let mut s = series.to_vec();
    s.sort_by_key(|s| s.kind);
    s
}

impl Recorder {
    pub(crate) fn new(spec: &WorkerSpec, grid: Arc<SliceGrid>, outlet: Option<Outlet>) -> Self {
        let specs = ordered(&spec.series);
        let mut by_kind = [u8::MAX; OpKind::ALL.len()];
        for (i, s) in specs.iter().enumerate() {
            by_kind[s.kind as usize] = i as u8;
        }
        Self {
            worker: spec.worker,
            stage: spec.stage,
            workload: spec.workload,
            edge_ns: grid.edge_ns(1),
            grid,
            open_loop: spec.pacer.is_open(),
            tracing: spec.trace,
            muted: std::env::var_os(BENCH_NO_RECORD).is_some_and(|v| v == "1"),
            by_kind,
            slice: new_slice(spec.stage, spec.workload, &specs),
            specs,
            trace: Vec::with_capacity(if spec.trace { TRACE_ROOM } else { 0 }),
            outlet,
            spare: None,
            in_flight: 0,
            paused: 0,
            changed_ns: 0,
            slice_began_ns: 0,
            thread_began: ThreadTimes::default(),
            spun_ns: 0,
            prepared_ns: 0,
            starved: 0,
            mismatches: 0,
            first_mismatches: Vec::with_capacity(KEPT_MISMATCHES),
            errors: Vec::with_capacity(KEPT_ERRORS),
        }
    }

    /// The worker's life begins.
    pub(crate) fn start(&mut self, now_ns: u64, times: ThreadTimes) {
        self.slice.index = self.grid.index_at(now_ns);
        self.edge_ns = self.grid.edge_ns(self.slice.index + 1);
        self.changed_ns = now_ns;
        self.slice_began_ns = now_ns;
        self.thread_began = times;
    }

    /// End of the current slice.
    #[inline]
    pub(crate) fn edge_ns(&self) -> u64 {
        self.edge_ns
    }

    #[inline]
    fn series(&mut self, kind: OpKind) -> Option<&mut Series> {
        self.slice.series.get_mut(usize::from(self.by_kind[kind as usize]))
    }

    #[inline]
    fn change(&mut self, now_ns: u64) {
        let held = now_ns.saturating_sub(self.changed_ns);
        if held > 0 {
            self.slice.client.in_flight_ns += u128::from(self.in_flight) * u128::from(held);
            self.slice.client.paused_ns += u128::from(self.paused) * u128::from(held);
            self.changed_ns = now_ns;
        }
    }

    #[inline]
    pub(crate) fn begun(&mut self, kind: OpKind, now_ns: u64, late: bool) {
        if self.muted {
            return;
        }
        self.change(now_ns);
        self.in_flight += 1;
        self.slice.client.late_ops += u64::from(late);
        if let Some(s) = self.series(kind) {
            s.counts.started += 1;
        }
    }

    /// A slot pauses after a refused attempt, ...
    pub(crate) fn paused(&mut self, now_ns: u64) {
        if !self.muted {
            self.change(now_ns);
            self.paused += 1;
        }
    }

    /// ... and goes on.
    pub(crate) fn resumed(&mut self, now_ns: u64) {
        if !self.muted {
            self.change(now_ns);
            self.paused -= 1;
        }
    }

    /// Payload bytes moved.
    #[inline]
    pub(crate) fn moved(&mut self, kind: OpKind, bytes: u64) {
        if bytes > 0
            && !self.muted
            && let Some(s) = self.series(kind)
        {
            s.counts.bytes_moved += bytes;
        }
    }

    /// Time in which the worker polled instead of sleeping, for the sake of its schedule: no work.
    #[inline]
    pub(crate) fn spun(&mut self, ns: u64) {
        self.spun_ns += ns;
    }

    /// Ops that were begun at the turn's time were submitted so much later, all told.
    #[inline]
    pub(crate) fn was_prepared_for(&mut self, op_ns: u64) {
        self.prepared_ns += op_ns;
    }

    #[inline]
    pub(crate) fn done(&mut self, slot: u32, f: &InFlight, done: &Done, now_ns: u64) {
        if self.muted {
            return;
        }
        self.change(now_ns);
        self.in_flight -= 1;
        let service_ns = now_ns.saturating_sub(f.submitted_ns);
        let response_ns = if self.open_loop { now_ns.saturating_sub(f.intended_ns) } else { service_ns };
        let outcome = done.outcome;
        if let Some(s) = self.series(f.op.kind) {
            s.counts.outcomes[outcome.index()] += 1;
            if outcome.is_ok() {
                record_ok(s, f, done.bytes, response_ns, service_ns);
            } else if outcome.is_throttled() {
                s.counts.in_system_ns += u128::from(service_ns);
                if let Some(h) = &mut s.throttled {
                    h.record(service_ns);
                }
            } else {
                s.counts.failed_in_system_ns += u128::from(service_ns);
            }
            if let Some(e) = s.endpoints.get_mut(usize::from(done.endpoint)) {
                e.ok += u64::from(outcome.is_ok());
                e.throttled += u64::from(outcome.is_throttled());
                e.failed += u64::from(outcome.is_failure());
                if outcome.is_ok() {
                    e.bytes_ok += done.bytes;
                    e.response_sum_ns += u128::from(response_ns);
                    e.response_max_ns = e.response_max_ns.max(response_ns);
                }
            }
        }
        if self.tracing {
            self.trace_op(slot, f, done, now_ns);
        }
    }

    fn trace_op(&mut self, slot: u32, f: &InFlight, done: &Done, now_ns: u64) {
        let place = usize::from(self.by_kind[f.op.kind as usize]);
        self.trace.push(OpRecord {
            series: self.specs.get(place).map_or(0, |s| s.trace_series),
            worker: self.worker,
            slot,
            endpoint: done.endpoint,
            kind: f.op.kind,
            outcome: done.outcome,
            key: f.op.key,
            bytes: if done.outcome.is_ok() { done.bytes } else { 0 },
            intended_ns: if self.open_loop { f.intended_ns } else { f.submitted_ns },
            submitted_ns: f.submitted_ns,
            first_byte_ns: f.first_byte_ns,
            done_ns: now_ns,
        });
    }

    /// A part of an op that has a series of its own (the parts of a multipart upload): begun and ended.
    /// It is not in flight beside its op.
    #[inline]
    pub fn part(&mut self, kind: OpKind, outcome: Outcome, bytes: u64, began_ns: u64, now_ns: u64) {
        let service_ns = now_ns.saturating_sub(began_ns);
        if let Some(s) = self.series(kind) {
            s.counts.started += 1;
            s.counts.outcomes[outcome.index()] += 1;
            s.counts.bytes_moved += bytes;
            if outcome.is_ok() {
                s.counts.bytes_ok += bytes;
                s.counts.in_system_ns += u128::from(service_ns);
                s.response.record(service_ns);
            } else {
                s.counts.failed_in_system_ns += u128::from(service_ns);
            }
        }
    }

    /// What a run must say that recorded nothing.
    pub(crate) fn mute_note(&self) -> Option<(String, String)> {
        self.muted.then(|| {
            let text = format!("{BENCH_NO_RECORD} is set: nothing was recorded, this is not a measurement");
            ("recording".to_owned(), text)
        })
    }

    /// A connection was opened after the first on its slot.
    pub fn reconnected(&mut self) {
        self.slice.client.reconnects += 1;
    }

    /// Keeps the first error of each outcome of each op in words; `text` is not called for later ones.
    pub fn error(&mut self, outcome: Outcome, kind: OpKind, text: impl FnOnce() -> String) {
        if self.wants_error(outcome, kind) {
            self.errors.push(FirstError { outcome, kind, text: text() });
        }
    }

    /// Whether an error of this outcome of this op would still be kept in words.
    pub fn wants_error(&self, outcome: Outcome, kind: OpKind) -> bool {
        self.errors.len() < KEPT_ERRORS && !self.errors.iter().any(|e| e.outcome == outcome && e.kind == kind)
    }

    /// Counts a mismatch; keeps the first in words.
    pub fn mismatch(&mut self, what: impl FnOnce() -> Mismatch) {
        self.mismatches += 1;
        if self.first_mismatches.len() < KEPT_MISMATCHES {
            self.first_mismatches.push(what());
        }
    }

    /// Hands the slice over when its edge has come, or at the end, and goes on in an empty one.
    /// `times` reads the thread's times; it is called once a slice. Tells whether it was.
    #[inline]
    pub(crate) fn turn(&mut self, now_ns: u64, at_end: bool, times: impl FnOnce() -> ThreadTimes) -> bool {
        let ends = now_ns >= self.edge_ns() || at_end;
        if ends {
            self.hand_over(now_ns, times());
        }
        ends
    }

    fn hand_over(&mut self, now_ns: u64, times: ThreadTimes) {
        self.change(now_ns);
        let client = &mut self.slice.client;
        client.workers = 1;
        let prepared_ns = u128::from(std::mem::take(&mut self.prepared_ns));
        client.in_flight_ns = client.in_flight_ns.saturating_sub(prepared_ns);
        client.alive_ns = now_ns.saturating_sub(self.slice_began_ns);
        let began = std::mem::replace(&mut self.thread_began, times);
        client.cpu_ns = times.cpu_ns.saturating_sub(began.cpu_ns);
        client.run_wait_ns = times.run_wait_ns.saturating_sub(began.run_wait_ns);
        client.cpu_turns = times.cpu_turns.saturating_sub(began.cpu_turns);
        let worked_ns = client.cpu_ns.saturating_sub(self.spun_ns);
        client.waited_ns = client.alive_ns.saturating_sub(worked_ns);
        self.slice_began_ns = now_ns;
        self.spun_ns = 0;
        let mut next = self.empty();
        next.reset(self.grid.index_at(now_ns));
        self.edge_ns = self.grid.edge_ns(next.index + 1);
        let full = std::mem::replace(&mut self.slice, next);
        let Some(outlet) = &self.outlet else { return };
        // A collector that is gone means that the run is over: nobody wants the rest.
        if !self.trace.is_empty() {
            let records = std::mem::replace(&mut self.trace, Vec::with_capacity(TRACE_ROOM));
            let _ = outlet.full.send(Output::Trace(TraceChunk { worker: self.worker, records }));
        }
        let sent = outlet.full.send(Output::Interval { worker: self.worker, interval: full });
        if outlet.lockstep && sent.is_ok() {
            // An error: nobody gives back any more.
            self.spare = outlet.empty.recv().ok();
        }
    }

    fn empty(&mut self) -> Box<Interval> {
        if let Some(Output::Interval { interval, .. }) = self.spare.take() {
            return interval;
        }
        if let Some(outlet) = &self.outlet {
            while let Ok(back) = outlet.empty.try_recv() {
                if let Output::Interval { interval, .. } = back {
                    return interval;
                }
            }
        }
        // The collector lags: memory grows rather than a slice is lost.
        self.starved += 1;
        new_slice(self.stage, self.workload, &self.specs)
    }
}

#[inline]
fn record_ok(s: &mut Series, f: &InFlight, bytes: u64, response_ns: u64, service_ns: u64) {
    s.counts.bytes_ok += bytes;
    s.counts.in_system_ns += u128::from(service_ns);
    s.response.record(response_ns);
    if let Some(h) = &mut s.service {
        h.record(service_ns);
    }
    if f.first_byte_ns > 0
        && let Some(h) = &mut s.first_byte
    {
        h.record(f.first_byte_ns.saturating_sub(f.submitted_ns));
    }
    if f.accepted_ns > 0
        && let Some(h) = &mut s.submission
    {
        h.record(f.accepted_ns.saturating_sub(f.submitted_ns));
    }
}
