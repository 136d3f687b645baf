//! What is asked for: the plan, as written in TOML. It is validated here and lowered elsewhere.
//! Secrets are never in it, only where to find them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::OpKind;
use crate::cluster::Cluster;
use crate::cost::CostOptions;
use crate::units::{BytesRate, OpsRate, Size, Span};

pub mod bounds;
mod check;
mod client;
mod cluster;
mod controller;
mod each;
mod existing;
mod guard;
mod mark_at;
mod observe;
mod secrets;
pub mod suite;
mod target;
pub use check::PlanError;
pub use client::ClientBounds;
pub use cluster::{ClusterProblem, EmbeddedCluster};
pub use controller::{ControllerSpec, ScopeWish};
pub use existing::ExistingObjects;
pub use guard::{AbortGuard, GuardQuantile, GuardSubject, ServerGuard};
pub use mark_at::planned_mark;
pub use observe::{OBSERVE_EVERY, ObserveMake, ObserveSpec};
pub use secrets::{is_secret_header, shown_url};
pub use target::{
    Addressing, BlockTarget, Checksum, EMBEDDED_VOLUME, EmbeddedDisk, EmbeddedSpec, EmbeddedVolume,
    FilesTarget, OnThrottle, PayloadSigning, S3Target, SimBucket, SimTarget, TargetSpec, TlsSpec,
};

/// The version of the plan format that this program writes; it reads this and older ones.
pub const PLAN_VERSION: u32 = 1;

/// What is measured, how, and in which order. Written as TOML; an unknown key is an error. Sizes are texts such as `4KiB` (1024) or
/// `4KB` (1000), times such as `30s`, rates such as `800/s` or `100MB/s`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Format version: 1.
    pub version: u32,
    /// For people: it stands in reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Seed of everything random: op order, keys, sizes, payload, arrival times. Default: 0.
    #[serde(default)]
    pub seed: u64,
    /// How the run as a whole behaves.
    #[serde(default)]
    pub options: RunOptions,
    /// Free marks such as `tier = "standard"`, kept in the summary and usable in reports.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Promises such as `get.ops_per_s >= 800 +-1%`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<String>,
    /// What is measured, by name.
    pub targets: BTreeMap<String, TargetSpec>,
    /// What is done, in order; empty when a controller decides.
    #[serde(default, rename = "stage", skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// Decides stages as it goes: sweep, speedtest, limits, watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerSpec>,
}

/// How the run as a whole behaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunOptions {
    /// Share of failed (not throttled) ops, 0 to 1, above which the result is invalid. Default: 0.001.
    pub max_error_rate: f64,
    /// Keep what the run created. Default: false.
    pub keep: bool,
    /// How I/O is handed to the kernel. Default: `auto`.
    pub ring: RingChoice,
    /// Worker threads; absent: chosen from cores and concurrency.
    pub threads: Option<u32>,
    /// Pin worker i to the i-th of these CPUs.
    pub cpus: Vec<u32>,
    /// Slice of the recorded series, 1 ms to 60 s. Default: 100 ms.
    pub grid: Span,
    /// Write one record per request to this file.
    pub trace: Option<String>,
    /// The horizon that the user needs: a shorter run is qualified (Q01).
    pub goal: Option<Span>,
    /// The plan was asked for each of so many agents: its figures are of all of them together, and it runs on so many only. Absent: what
    /// it asks for is divided over however many there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<u32>,
    /// Devices and images that several agents have are written by all of them, each in a range of its own; and of sets of files on a
    /// file system that several agents have, who only reads reads what the next agent wrote. Default: false, and such a device is refused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Events that somebody brings about at a known time after the first load has begun: `30s=node 3 off`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mark_at: Vec<String>,
    /// What becomes of a run over several agents when one of them is lost. Default: `invalid`.
    #[serde(skip_serializing_if = "AgentLoss::is_default")]
    pub on_agent_loss: AgentLoss,
    /// What it costs: prices, and a budget of money. Absent: nothing is said of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostOptions>,
    /// What the load generator may use of its machine, in a control group of its own (needs root). Absent: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientBounds>,
    /// Who is asked what the servers do meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub observe: Vec<ObserveSpec>,
    /// How often, 1 s to 10 min. Default: 5 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observe_every: Option<Span>,
    /// What ends the run so that others are left alone: `server.cpu > 90 % for 30s`, `other.p99 > 50ms`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub abort_if: Vec<String>,
    /// What the servers are made of: `cluster.toml`. Absent: nobody said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Box<Cluster>>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            max_error_rate: 0.001,
            keep: false,
            ring: RingChoice::Auto,
            threads: None,
            cpus: Vec::new(),
            grid: Span(std::time::Duration::from_millis(100)),
            trace: None,
            goal: None,
            each: None,
            shared: false,
            mark_at: Vec::new(),
            on_agent_loss: AgentLoss::default(),
            cost: None,
            client: None,
            observe: Vec::new(),
            observe_every: None,
            abort_if: Vec::new(),
            cluster: None,
        }
    }
}

/// What becomes of a run over several agents when one of them is lost. In each case figures are of the time in which all agents were
/// there, and no load is moved to those that are left. Default: `invalid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentLoss {
    /// The others go on. The result is invalid: it is not of the time that was asked for.
    #[default]
    Invalid,
    /// The others go on. The result stands for the time in which all were there.
    Continue,
    /// The load ends when the loss is noticed, and no stage follows. The result is invalid.
    Stop,
}

impl AgentLoss {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How I/O is handed to the kernel. Default: `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RingChoice {
    /// Sockets: `epoll`. Files: `io_uring` where the kernel has it, else `libaio`, or `psync` for one op at a time. The result says
    /// which, and why.
    #[default]
    Auto,
    /// For files and sockets; Linux 5.15 or later, and not where a container forbids it.
    IoUring,
    /// For sockets.
    Epoll,
    /// For files only: one pread or pwrite at a time, and so a concurrency of 1.
    Psync,
    /// For files only.
    Libaio,
}

impl RingChoice {
    /// As the run says it, with an underscore: `io_uring`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::IoUring => "io_uring",
            Self::Epoll => "epoll",
            Self::Psync => "psync",
            Self::Libaio => "libaio",
        }
    }
}

fn one() -> u32 {
    1
}

/// Workloads that run at the same time, with warm-up before and drain after the measured part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Names it in reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Ops before this are made but not measured. Default: 2 s, and none where a workload ends by ops, bytes or passes.
    #[serde(default = "default_warmup")]
    pub warmup: Span,
    /// One at least.
    #[serde(rename = "workload")]
    pub workloads: Vec<Workload>,
    /// Which cell of a sweep, and which repeat of it, this stage is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<Cell>,
}

fn default_warmup() -> Span {
    Span(std::time::Duration::from_secs(2))
}

/// The place of a stage in a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Number of the cell in the sweep.
    pub index: u32,
    /// Number of the repeat of this cell, from 0.
    pub repeat: u32,
}

/// One kind of load on one target: what is done, how much of it at once, and when it ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Names its lines in reports.
    pub name: String,
    /// Name of the target; absent where the plan has only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Kinds of op by weight.
    pub mix: BTreeMap<OpKind, u32>,
    /// Size of objects, or block size. Default: 4 KiB.
    #[serde(default = "default_sizes")]
    pub size: SizeDist,
    /// Which object, or which offset. Default: `uniform`.
    #[serde(default)]
    pub keys: KeyDist,
    /// Ops in flight, over all threads of the workload (object); per job (block). Default: 1.
    #[serde(default = "one")]
    pub concurrency: u32,
    /// Jobs (block and files): each a thread with its own sequence and `concurrency` ops in flight. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u32>,
    /// When ops are intended to start. Default: `closed`.
    #[serde(default)]
    pub pacing: Pacing,
    /// When it ends. Default: after 30 s.
    #[serde(default)]
    pub stop: Stop,
    /// Check the stamp of each block that is read. Default: false.
    #[serde(default)]
    pub verify: bool,
    /// What written bytes look like. Default: random, no two blocks alike.
    #[serde(default)]
    pub data: DataSpec,
    /// Of workloads on objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectOptions>,
    /// Of workloads on devices and files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<BlockOptions>,
    /// Of a run over several machines: done by the agents of some of them only. Absent: by all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<MachinesPart>,
}

/// Some of the machines that a run's agents are on: twice as many clients are what the second has and the first has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MachinesPart {
    /// Half of them, in order of their agents' numbers; of an odd number, the smaller half; one at least.
    Half,
    /// Twice as many: all, or all but the last.
    BothHalves,
}

impl Workload {
    /// Ops in flight of all its jobs.
    pub fn in_flight(&self) -> u32 {
        self.concurrency.saturating_mul(self.jobs.unwrap_or(1))
    }

    /// Whether it came from a job file of fio's, whose options it names.
    pub fn is_of_job_file(&self) -> bool {
        self.block.as_ref().and_then(|b| b.fio.as_ref()).is_some_and(|f| !f.options.is_empty())
    }
}

fn default_sizes() -> SizeDist {
    SizeDist::Fixed(Size(4096))
}

/// Options of object workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ObjectOptions {
    /// Objects prepared for GET, stat, copy, list and delete. Default: 1000.
    pub objects: u64,
    /// Prefixes over which keys are spread. Default: 1.
    pub prefixes: u32,
    /// Prepare once under this name and reuse.
    pub dataset: Option<String>,
    /// Bytes of a ranged GET.
    pub range: Option<Size>,
    /// Bytes of each part of a multipart upload but the last. Default: 8 MiB.
    pub part_size: Size,
    /// Parts of one upload in flight. Default: 4.
    pub part_concurrency: u32,
    /// Keys asked for with each LIST. Default: 1000.
    pub list_max_keys: u32,
    /// Delimiter of LIST, such as `/`; absent: listings go through all levels.
    pub list_delimiter: Option<String>,
    /// Keys of one `delete-batch`. Default: 1.
    pub delete_batch: u32,
    /// Read objects that are there in place of prepared ones: nothing is written, marked or removed. `objects` is then the most that
    /// are read, and `size` what is looked for: objects within a factor of two of it, or of any size where there are none such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub existing: Option<ExistingObjects>,
}

impl Default for ObjectOptions {
    fn default() -> Self {
        Self {
            objects: 1000,
            prefixes: 1,
            dataset: None,
            range: None,
            part_size: Size(8 << 20),
            part_concurrency: 4,
            list_max_keys: 1000,
            list_delimiter: None,
            delete_batch: 1,
            existing: None,
        }
    }
}

/// Options of block and file workloads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BlockOptions {
    /// fsync after every n writes; 0: never.
    pub fsync: u32,
    /// fdatasync after every n writes; 0: never.
    pub fdatasync: u32,
    /// fsync once at the end, inside the measured time.
    pub end_fsync: bool,
    /// Random offsets may repeat before all were used.
    pub norandommap: bool,
    /// Seconds after the stage's start at which the job starts.
    pub start_delay: Option<Span>,
    /// The ring of this workload, where it differs from the run's.
    pub ring: Option<RingChoice>,
    /// Block size of writes, where it differs from `size` (which is then that of reads).
    pub write_size: Option<SizeDist>,
    /// Random offsets are multiples of this; absent: of the (smallest) block size.
    pub offset_align: Option<Size>,
    /// Files of an earlier stage are removed first, so that every block is newly allocated.
    pub fresh: bool,
    /// The fio job that this workload was made from, for reports in fio's formats.
    pub fio: Option<FioJob>,
}

/// Ends of the names of the two workloads of a fio job whose reads and writes run side by side: reports put them together.
pub const FIO_READS: &str = " (reads)";
/// Likewise of the writes.
pub const FIO_WRITES: &str = " (writes)";

/// What fio's own reports say of a job, and a plan does not: its names, its group, its options as written.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FioJob {
    /// Name of the section.
    pub job: String,
    /// Which of its `numjobs` clones this workload is, from 0.
    pub clone: u32,
    /// Group of jobs: counts up at every stonewall or new_group, from 0.
    pub group: u32,
    /// Jobs of one group are reported as one.
    pub group_reporting: bool,
    /// Options as written in the job's section.
    pub options: BTreeMap<String, String>,
    /// Options as written in the global section.
    pub global_options: BTreeMap<String, String>,
    /// Percentiles to print; empty: fio's own list.
    pub percentiles: Vec<f64>,
    /// What was lowered otherwise than written, and why: one sentence each.
    pub notes: Vec<String>,
}

/// One size for all (`4KiB`), or a law by which sizes are drawn: `{ uniform = { min = "4KiB", max = "64KiB" } }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SizeDist {
    /// Every size from `min` to `max` alike (block: multiples of `min`).
    Uniform {
        /// Smallest size, included.
        min: Size,
        /// Largest size, included.
        max: Size,
    },
    /// Sizes by weight.
    Weighted(Vec<(Size, u32)>),
    /// Log-normal with this median and sigma (of the natural log), cut at `max`.
    LogNormal {
        /// Half of the sizes are smaller.
        median: Size,
        /// Standard deviation of the natural logarithm of the size. 0.7: two thirds of the sizes lie within a factor of two of the median.
        sigma: f64,
        /// Larger sizes become this one.
        max: Size,
    },
    /// One size, written plainly.
    #[serde(untagged)]
    Fixed(Size),
}

impl SizeDist {
    /// Mean bytes of what is drawn; of a log-normal law without its cut at `max`: near enough for a nominal size.
    pub fn mean_bytes(&self) -> u64 {
        match self {
            Self::Fixed(s) => s.0,
            Self::Uniform { min, max } => min.0.midpoint(max.0),
            Self::Weighted(list) => {
                let weights: f64 = list.iter().map(|(_, w)| f64::from(*w)).sum();
                let sum: f64 = list.iter().map(|(s, w)| s.0 as f64 * f64::from(*w)).sum();
                if weights > 0.0 { (sum / weights).round() as u64 } else { 0 }
            }
            Self::LogNormal { median, sigma, max } => {
                ((median.0 as f64 * (sigma * sigma / 2.0).exp()).round() as u64).min(max.0)
            }
        }
    }

    /// The most bytes that can be drawn.
    pub fn max_bytes(&self) -> u64 {
        match self {
            Self::Fixed(size) | Self::Uniform { max: size, .. } | Self::LogNormal { max: size, .. } => size.0,
            Self::Weighted(list) => list.iter().map(|(s, _)| s.0).max().unwrap_or(0),
        }
    }
}

/// Which object or offset comes next: `uniform` (the default), `sequential`, `{ zipf = 1.1 }` or `{ pareto = 0.2 }`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeyDist {
    /// Each as likely as any other. Blocks: each once before any comes again, unless `norandommap`.
    #[default]
    Uniform,
    /// Zipf with this exponent.
    Zipf(f64),
    /// Pareto with this index (block).
    Pareto(f64),
    /// One after the other, and from the beginning again.
    Sequential,
}

/// When ops are intended to start: `closed`, `{ constant = "800/s" }`, `{ poisson = "800/s" }`, `{ bytes = "100MB/s" }` or `{ ramp
/// = { from = "100/s", to = "800/s", over = "1m" } }`. In an open loop (all but `closed`) response times count from the intended
/// start.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// As many as `concurrency` in flight, always.
    #[default]
    Closed,
    /// Open loop at this rate of the whole workload.
    Constant(OpsRate),
    /// Never more than this rate of the whole workload: as `constant`, but what is overdue is left out and not made up for.
    Capped(OpsRate),
    /// Open loop with this mean rate of the whole workload, at random times, as of many clients that know nothing of each other.
    Poisson(OpsRate),
    /// Open loop at a rate of bytes.
    Bytes(BytesRate),
    /// Open loop at a rate that grows, or falls, evenly.
    Ramp {
        /// Rate at the start of the load, warm-up included.
        from: OpsRate,
        /// Rate at the end of the ramp, and after it.
        to: OpsRate,
        /// Length of the ramp.
        over: Span,
    },
}

/// When a workload ends: at the first that is reached. None given: 30 s.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Stop {
    /// Of the measured part; the warm-up comes before.
    pub duration: Option<Span>,
    /// Ops started by the whole workload, its warm-up included. Shared out over its threads or jobs.
    pub ops: Option<u64>,
    /// Payload of the ops started, counted and shared out as `ops` are.
    pub bytes: Option<Size>,
    /// Passes over the whole region (block).
    pub loops: Option<u32>,
}

impl Stop {
    /// A measured part that is given no end lasts this long.
    pub const DEFAULT: Span = Span(std::time::Duration::from_secs(30));

    /// How long the measured part is to last; `None` where it ends by work, not by time.
    pub fn lasts(&self) -> Option<Span> {
        let is_endless = self.ops.is_none() && self.bytes.is_none() && self.loops.is_none();
        self.duration.or(is_endless.then_some(Self::DEFAULT))
    }
}

/// What written bytes look like.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DataSpec {
    /// Share of each block that compresses away, 0 to 1. Default: 0.
    pub compressible: f64,
    /// Share of blocks that repeat another, 0 to 1. Default: 0.
    pub dedupable: f64,
}
