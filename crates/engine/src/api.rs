//! What `run/` says to the engine, and what it gets back. Plain data; all of it is made before the start.

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_model::interval::SeriesShape;
use plimsoll_model::plan::{DataSpec, RingChoice};
use plimsoll_model::trace::OpRecord;
use plimsoll_model::{Interval, OpKind, WorkerId};

use crate::error::EngineError;
use crate::pacer::Pacer;
use crate::recorder::{FirstError, Mismatch};
use crate::source::{OpSource, Share};
use crate::target::s3;
use crate::target::sim::SimWorld;
use crate::written::Written;

/// Which clock a stage lives by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`; all workers start together, as soon as the last is ready.
    Real,
    /// The simulated target's own time: the stage starts at this time after the epoch. All workers
    /// run in one thread, in the order of their events: the same spec gives the same Intervals.
    Virtual {
        /// Since the epoch.
        start_ns: u64,
    },
}

/// Workers that run at the same time.
#[derive(Debug, Clone)]
pub struct StageSpec {
    /// The run's start on `CLOCK_MONOTONIC` ([`crate::ring::monotonic_ns`]); all times count from it.
    pub epoch_ns: u64,
    /// Step of the shared grid: slice `i` covers `[i, i + 1) * grid_ns` since the epoch.
    pub grid_ns: u64,
    /// What its times are times of.
    pub clock: Clock,
    /// An op that the client submits later than this after its intended start, though a slot was
    /// free, counts as late (V06 of methods: 10 ms).
    pub late_tolerance_ns: u64,
    /// In order of their numbers ([`WorkerSpec::worker`]), each once.
    pub workers: Vec<WorkerSpec>,
}

/// One worker: a thread that serves one workload.
#[derive(Debug, Clone)]
pub struct WorkerSpec {
    /// Unique in the stage.
    pub worker: WorkerId,
    /// Index of the stage in the order in which stages run; its series carry it.
    pub stage: u32,
    /// Index of the workload in the stage.
    pub workload: u16,
    /// The series that its ops record into; each kind that the source or the target yields must be here.
    pub series: Vec<SeriesSpec>,
    /// Pin the thread to this CPU.
    pub cpu: Option<u32>,
    /// `auto`: the best that the kernel and the target allow. Otherwise this one, or an error.
    pub ring: RingChoice,
    /// Which ops, in which order, over all workers of the workload.
    pub source: OpSource,
    /// This worker's share of the source's sequence: `{0, 1}` for a job with a sequence of its own.
    pub share: Share,
    /// When each op is intended, over all workers of the workload.
    pub pacer: Pacer,
    /// This worker's share of the pacer's schedule.
    pub pace_share: Share,
    /// What the ops are done to.
    pub target: TargetConfig,
    /// Ops in flight at most.
    pub slots: u32,
    /// Of this worker alone.
    pub stop: StopRule,
    /// The worker's first op is intended this long after the stage's start.
    pub start_delay_ns: u64,
    /// Also give one record per op ([`Output::Trace`]).
    pub trace: bool,
    /// Check the stamps of what is read.
    pub verify: bool,
    /// What it writes, and what it compares with what it reads.
    pub data: DataSeed,
}

/// A series of the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesSpec {
    /// The ops that it is of.
    pub kind: OpKind,
    /// Which histograms are kept. `submission` costs one more clock read a batch.
    pub shape: SeriesShape,
    /// [`OpRecord::series`] of its records.
    pub trace_series: u16,
}

/// What written bytes look like, and the seed that they (and what is verified) come from.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DataSeed {
    /// How much of it compresses, and how much repeats.
    pub spec: DataSpec,
    /// Who reads with `verify` must know the one that was written with.
    pub seed: u64,
}

/// What is measured.
#[derive(Debug, Clone)]
pub enum TargetConfig {
    /// Each op is a no-op of the ring; with `auto` not even a system call.
    Null,
    /// A service-time law on the virtual clock, shared by all workers and stages that hold it.
    Sim(SimWorld),
    /// A block device, or a file used like one.
    Block(FileConfig),
    /// A set of files; `Op::key` is the index of the file.
    Files(FileConfig),
    /// Objects of one bucket, at one endpoint or several.
    S3(Arc<s3::Config>),
}

/// Files or a device, opened by the worker that uses them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileConfig {
    /// In order of the keys that ops name ([`plimsoll_model::op::Op::key`]).
    pub paths: Vec<PathBuf>,
    /// Where each of them is opened, when not by its name: what was judged before, whatever has its name now. Or empty.
    pub through: Vec<PathBuf>,
    /// Through the page cache; otherwise `O_DIRECT`, which is an error where it is refused.
    pub buffered: bool,
    /// Make files that do not exist (regular files only).
    pub create: bool,
    /// Stamps carry this number plus the file's index, so that a block of another file is told apart.
    pub first_object: u64,
    /// The record of what was written last, one for each path; empty: none is kept.
    pub written: Vec<Arc<Written>>,
}

/// When a worker takes no more new ops: at the first that is reached. None set: when it is told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StopRule {
    /// Since the worker's first intended start.
    pub after_ns: Option<u64>,
    /// Ops started by this worker.
    pub ops: Option<u64>,
    /// Payload bytes of the ops started by this worker.
    pub bytes: Option<u64>,
    /// Passes over the source's region by this worker; counted in bytes of its region.
    pub loops: Option<u32>,
}

/// What comes out while a stage runs. Give each back with `RunningStage::recycle`.
#[derive(Debug)]
pub enum Output {
    /// One worker's slice of the grid. Slices without anything in them come too, as long as the worker lives.
    Interval {
        /// Whose it is.
        worker: WorkerId,
        /// Its counts and latencies; the last one of a worker may end before the grid's edge does.
        interval: Box<Interval>,
    },
    /// Where [`WorkerSpec::trace`] asks for it: those of a slice, ahead of the slice.
    Trace(TraceChunk),
}

/// Records of ops that ended, in the order in which they ended.
#[derive(Debug)]
pub struct TraceChunk {
    /// Who did them.
    pub worker: WorkerId,
    /// One for each op.
    pub records: Vec<OpRecord>,
}

/// Why a worker took no more ops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// [`StopRule::after_ns`] has gone.
    Deadline,
    /// [`StopRule::ops`] were started.
    Ops,
    /// [`StopRule::bytes`] or [`StopRule::loops`].
    Bytes,
    /// `stop()` was called.
    Asked,
    /// `abort()` was called.
    Aborted,
    /// See [`WorkerEnd::error`].
    Failed,
}

/// The ring that a worker used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingUse {
    /// `io_uring`, `epoll`, `psync`, `libaio`, `memory` or `virtual`.
    pub name: String,
    /// Why this one: asked for, or what `auto` found.
    pub why: String,
    /// Features of the kernel in use.
    pub detail: String,
}

/// How a worker ended.
#[derive(Debug, Clone)]
pub struct WorkerEnd {
    /// As in its [`WorkerSpec`].
    pub worker: WorkerId,
    /// As in its [`WorkerSpec`].
    pub stage: u32,
    /// As in its [`WorkerSpec`].
    pub workload: u16,
    /// Absent when no ring could be made.
    pub ring: Option<RingUse>,
    /// Could not start, or broke off.
    pub error: Option<EngineError>,
    /// [`StopCause::Failed`] where there is an `error`.
    pub cause: StopCause,
    /// Since the epoch: the first op's intended start.
    pub started_ns: u64,
    /// Since the epoch: when it awoke at its start, and its first op could begin.
    pub began_ns: u64,
    /// Since the epoch: when it took no more new ops.
    pub stopped_ns: u64,
    /// Since the epoch: when the last new op was submitted.
    pub last_submit_ns: u64,
    /// Since the epoch: when the last op was over.
    pub finished_ns: u64,
    /// Ops started (the sync ops of the source's rule included).
    pub ops: u64,
    /// Ops that the ring never gave back after an abort (a hung device); their memory is leaked on purpose.
    pub abandoned: u32,
    /// Verified reads that showed other data than what was written, all of them.
    pub mismatches: u64,
    /// Verified reads that did not show what was expected, and prove nothing: a write to the same place crossed them.
    pub crossed_reads: u64,
    /// Bodies whose checksum was to be checked, and that came without one.
    pub unchecked_bodies: u64,
    /// Uploads with a checksum that the server said nothing of.
    pub unconfirmed_uploads: u64,
    /// The first of `mismatches`, in words.
    pub first_mismatches: Vec<Mismatch>,
    /// First error of each outcome, with its text.
    pub errors: Vec<FirstError>,
    /// Every write of the sequence before this count was acknowledged before an fsync that ended Ok. Zero
    /// where there are several files: an fsync speaks for one.
    pub synced_through: u64,
    /// Facts from the target, name to value.
    pub notes: Vec<(String, String)>,
    /// System calls of the ring, all told.
    pub ring_syscalls: u64,
    /// Slices that had to be allocated because the collector was behind.
    pub starved_slices: u32,
}
