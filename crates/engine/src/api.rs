//! What run/ hands to the engine, and what it gets back. Plain data in, intervals out.

use std::path::PathBuf;

use crossbeam_channel::{Receiver, Sender};
use plimsoll_model::interval::SeriesShape;
use plimsoll_model::plan::{DataSpec, RingChoice, SimTarget};
use plimsoll_model::trace::OpRecord;
use plimsoll_model::{Interval, OpKind, Outcome, SeriesId};

use crate::pacer::Pacer;
use crate::source::OpSource;
use crate::target::s3::S3Config;

/// Which clock the stage runs on. Virtual: the simulated target's, which jumps from event to event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClockKind {
    #[default]
    Real,
    Virtual,
}

/// Everything that runs at the same time.
#[derive(Debug)]
pub struct StageSpec {
    pub clock: ClockKind,
    /// The run's start on CLOCK_MONOTONIC, nanoseconds. All times below count from it.
    pub epoch_ns: u64,
    /// When the stage starts, nanoseconds since `epoch_ns`; op 0 is intended then.
    pub start_ns: u64,
    /// Length of a slice of the shared grid; slice i covers [i, i + 1) times this, from `epoch_ns`.
    pub grid_ns: u64,
    pub workers: Vec<WorkerSpec>,
}

/// One thread: one workload's ops, or its share of them.
#[derive(Debug, Clone)]
pub struct WorkerSpec {
    /// Index in the stage; names the thread and the worker in traces.
    pub worker: u16,
    /// Kinds of op that the source can yield, with the histograms that each needs; in ascending order of id.
    pub series: Vec<(SeriesId, SeriesShape)>,
    pub cpu: Option<u32>,
    pub ring: RingChoice,
    pub source: OpSource,
    pub pacer: Pacer,
    /// This worker takes ops `first`, `first + step`, ... of the workload's sequence.
    pub first_op: u64,
    pub op_step: u64,
    /// Ops in flight at most.
    pub slots: u32,
    pub stop: WorkerStop,
    /// After the stage's start.
    pub start_delay_ns: u64,
    pub target: TargetConfig,
    /// Check stamps of what is read.
    pub verify: bool,
    pub data: DataSpec,
    /// Seed of the payload pool and stamps.
    pub seed: u64,
    /// Record every op.
    pub trace: bool,
}

/// When this worker ends by itself: at the first that is reached. `None`s only: when told to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkerStop {
    /// No op is intended at or after this, nanoseconds since the stage's start.
    pub after_ns: Option<u64>,
    /// This worker's share of ops.
    pub ops: Option<u64>,
    /// This worker's share of bytes: no op begins once so many were given out.
    pub bytes: Option<u64>,
}

/// What the worker's ops are done to.
#[derive(Debug, Clone)]
pub enum TargetConfig {
    Null,
    Sim(SimTarget),
    Block(BlockConfig),
    S3(Box<S3Config>),
}

/// Files or a device, opened by the worker itself. An op's key is an index into `files`.
#[derive(Debug, Clone)]
pub struct BlockConfig {
    pub files: Vec<BlockFile>,
    /// O_DIRECT; refused with an error where the file system refuses it.
    pub direct: bool,
    pub writable: bool,
    /// The object id in stamps of key k is `stamp_base + k`: the same for whoever verifies later.
    pub stamp_base: u64,
    /// fsync (or fdatasync) after this many writes of this worker; 0: never.
    pub fsync_every: u32,
    pub fdatasync_every: u32,
    /// fsync once when the last op is done; it counts as an op where the series has `Fsync`.
    pub end_fsync: bool,
    /// Largest length of an op, bytes.
    pub max_length: u64,
}

#[derive(Debug, Clone)]
pub struct BlockFile {
    pub path: PathBuf,
    pub size_bytes: u64,
}

/// What a worker sends at each edge of the grid, and once more at its end.
#[derive(Debug)]
pub struct WorkerInterval {
    pub worker: u16,
    pub interval: Box<Interval>,
    /// Ops that ended in the slice, when traced.
    pub trace: Vec<OpRecord>,
}

/// The end of one worker.
#[derive(Debug, Clone, Default)]
pub struct WorkerReport {
    pub worker: u16,
    pub ring: String,
    pub ring_reason: String,
    /// When its first op was submitted and its last one ended, nanoseconds since the run's start.
    pub first_ns: u64,
    pub last_ns: u64,
    /// When it took no further op (deadline, budget or told to stop).
    pub stopped_ns: u64,
    pub ops: u64,
    /// System calls that the ring made after start.
    pub ring_calls: u64,
    /// Why it could not start or go on; the stage is void then.
    pub error: Option<String>,
    /// The first failure of each class, in words.
    pub first_failures: Vec<(Outcome, OpKind, String)>,
    /// Blocks that were not what was written (the first 16), and how many there were in all.
    pub mismatches: Vec<Mismatch>,
    pub mismatch_count: u64,
    /// Facts to put beside the result, such as `body discarded in kernel`.
    pub notes: Vec<String>,
    /// `Server` header per endpoint index, as first seen.
    pub servers: Vec<(u16, String)>,
}

/// A block that is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Object key or file path.
    pub object: String,
    pub offset_bytes: u64,
    pub expected: String,
    pub found: String,
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Bad input or environment: a sentence with the remedy.
    #[error("{0}")]
    Setup(String),
    #[error("worker {worker}: {message}")]
    Worker { worker: u16, message: String },
}

/// The two ends between a worker and whoever collects: full intervals out, empty ones back in.
#[derive(Debug, Clone)]
pub struct Outlet {
    pub full: Sender<WorkerInterval>,
    pub empty: Receiver<WorkerInterval>,
}
