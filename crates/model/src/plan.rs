//! What is asked for: the plan, as written in TOML. It is validated here and lowered elsewhere.
//! Secrets are never in it, only where to find them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::OpKind;
use crate::units::{BytesRate, OpsRate, Size, Span};

pub mod bounds;
mod check;
mod mark_at;
mod secrets;
pub mod suite;
mod target;
pub use check::PlanError;
pub use mark_at::planned_mark;
pub use secrets::{is_secret_header, shown_url};
pub use target::{
    Addressing, BlockTarget, Checksum, EmbeddedSpec, FilesTarget, OnThrottle, PayloadSigning, S3Target,
    SimBucket, SimTarget, TargetSpec, TlsSpec,
};

/// The version of the plan format that this program writes; it reads this and older ones.
pub const PLAN_VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Format version: 1.
    pub version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Seed of everything random: op order, keys, sizes, payload, arrival times.
    #[serde(default)]
    pub seed: u64,
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
    /// Share of failed (not throttled) ops above which the result is invalid.
    pub max_error_rate: f64,
    /// Keep what the run created.
    pub keep: bool,
    /// `auto`, `io_uring`, `epoll`, `psync`, `libaio`.
    pub ring: RingChoice,
    /// Worker threads; absent: chosen from cores and concurrency.
    pub threads: Option<u32>,
    /// Pin worker i to the i-th of these CPUs.
    pub cpus: Vec<u32>,
    /// Slice of the recorded series.
    pub grid: Span,
    /// Write one record per request to this file.
    pub trace: Option<String>,
    /// The horizon that the user needs: a shorter run is qualified (Q01).
    pub goal: Option<Span>,
    /// Events that somebody brings about at a known time after the first load has begun: `30s=node 3 off`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mark_at: Vec<String>,
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
            mark_at: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RingChoice {
    #[default]
    Auto,
    IoUring,
    Epoll,
    Psync,
    Libaio,
}

impl RingChoice {
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Ops before this are made but not measured.
    #[serde(default = "default_warmup")]
    pub warmup: Span,
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
    pub index: u32,
    pub repeat: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    pub name: String,
    /// Name of the target; absent where the plan has only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Kinds of op by weight.
    pub mix: BTreeMap<OpKind, u32>,
    /// Size of objects, or block size.
    #[serde(default = "default_sizes")]
    pub size: SizeDist,
    /// Which object, or which offset.
    #[serde(default)]
    pub keys: KeyDist,
    /// Ops in flight, over all threads of the workload (object); per job (block).
    #[serde(default = "one")]
    pub concurrency: u32,
    /// Jobs (block and files): each a thread with its own sequence and `concurrency` ops in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u32>,
    #[serde(default)]
    pub pacing: Pacing,
    #[serde(default)]
    pub stop: Stop,
    /// Check the stamp of each block that is read.
    #[serde(default)]
    pub verify: bool,
    #[serde(default)]
    pub data: DataSpec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectOptions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<BlockOptions>,
}

impl Workload {
    /// Ops in flight of all its jobs.
    pub fn in_flight(&self) -> u32 {
        self.concurrency.saturating_mul(self.jobs.unwrap_or(1))
    }
}

fn default_sizes() -> SizeDist {
    SizeDist::Fixed(Size(4096))
}

/// Options of object workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ObjectOptions {
    /// Objects prepared for GET, stat, copy, list and delete.
    pub objects: u64,
    /// Prefixes over which keys are spread.
    pub prefixes: u32,
    /// Prepare once under this name and reuse.
    pub dataset: Option<String>,
    /// Bytes of a ranged GET.
    pub range: Option<Size>,
    pub part_size: Size,
    /// Parts of one upload in flight.
    pub part_concurrency: u32,
    pub list_max_keys: u32,
    pub list_delimiter: Option<String>,
    pub delete_batch: u32,
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SizeDist {
    /// Every size from `min` to `max` alike (block: multiples of `min`).
    Uniform { min: Size, max: Size },
    /// Sizes by weight.
    Weighted(Vec<(Size, u32)>),
    /// Log-normal with this median and sigma (of the natural log), cut at `max`.
    LogNormal { median: Size, sigma: f64, max: Size },
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

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeyDist {
    #[default]
    Uniform,
    /// Zipf with this exponent.
    Zipf(f64),
    /// Pareto with this index (block).
    Pareto(f64),
    Sequential,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// As many as `concurrency` in flight, always.
    #[default]
    Closed,
    /// Open loop at this rate of the whole workload.
    Constant(OpsRate),
    Poisson(OpsRate),
    /// Open loop at a rate of bytes.
    Bytes(BytesRate),
    Ramp {
        from: OpsRate,
        to: OpsRate,
        over: Span,
    },
}

/// When a workload ends: at the first that is reached. None given: 30 s.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Stop {
    /// Of the measured part; the warm-up comes before.
    pub duration: Option<Span>,
    pub ops: Option<u64>,
    pub bytes: Option<Size>,
    /// Passes over the whole region (block).
    pub loops: Option<u32>,
}

/// What written bytes look like.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DataSpec {
    /// Share of each block that compresses away, 0 to 1.
    pub compressible: f64,
    /// Share of blocks that repeat another, 0 to 1.
    pub dedupable: f64,
}

/// What decides stages as the run goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ControllerSpec {
    /// Every op at every size (and concurrency), each `repeat` times, in random order.
    Sweep {
        template: Box<Stage>,
        ops: Vec<OpKind>,
        /// Empty: a pilot looks where the caps are, and chooses sizes around the knee and concurrencies that saturate.
        sizes: Vec<Size>,
        #[serde(default)]
        concurrencies: Vec<u32>,
        #[serde(default = "one")]
        repeat: u32,
    },
    /// Finds the concurrency beyond which throughput no longer grows.
    Saturation {
        template: Box<Stage>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_concurrency: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        p99_ceiling: Option<Span>,
        /// Saturate this long first, so that the search does not follow a bucket that empties.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        drain: Option<Span>,
        /// Then latency in open loop at these fractions (0 to 1) of the rate that was found.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        load_points: Vec<f64>,
        /// All of it, load points included, takes about this long; absent: as many steps as the search needs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<Span>,
    },
    /// Finds ops and bytes limits, bursts, capacities and refill.
    Limits {
        template: Box<Stage>,
        budget: Span,
        #[serde(default)]
        probe_shared: bool,
        #[serde(default)]
        probe_scope: bool,
        /// Targets that differ from the template's in one thing, by that thing: `bucket` or `key`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        scope_targets: BTreeMap<String, String>,
    },
    /// Runs on for `duration`, whatever duration the template names, and reports cliffs as they come.
    Watch { template: Box<Stage>, duration: Span },
}
