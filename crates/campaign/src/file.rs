//! The campaign file: subjects, workloads, and how often, in which order and within what budget they are measured.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::cost::Money;
use plimsoll_model::plan::{
    BlockOptions, ClientBounds, KeyDist, ObjectOptions, ObserveSpec, Pacing, RunOptions, ScopeWish, SizeDist,
    TargetSpec,
};
use plimsoll_model::units::{BytesRate, OpsRate, Size, Span};
use plimsoll_model::{Cluster, OpKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::axes::{CampaignAxis, HasAxes};
use crate::check::{CampaignError, wrong};
use crate::replicate::Published;
use crate::rest::CampaignRest;
use crate::schedule::TimesOfDay;

/// The version of the file's format that this program writes; it reads this one.
pub const CAMPAIGN_VERSION: u32 = 1;

/// A matrix of subjects and workloads, and how it is measured. Written as TOML; an unknown key is an error. Sizes, times and rates are
/// texts as in a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignFile {
    /// Format version: 1.
    pub version: u32,
    /// Names the campaign, and the directory of its ledger: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// What it is to answer, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Of the order of cells, and of what each run draws at random. Default: 0.
    #[serde(default)]
    pub seed: u64,
    /// Which cell comes after which. Default: `random`.
    #[serde(default)]
    pub order: CellOrder,
    /// Between two cells: a pause such as `30s`, or `{ pause = "30s", wait = "10m" }`. Default: none.
    #[serde(default)]
    pub rest: CampaignRest,
    /// Times of day, such as `["02:00", "14:00"]`: the repeats of each cell are spread over them, one block at each in turn. Default: one
    /// after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<String>,
    /// Of `times`: `Europe/Berlin`, `UTC`. Default: the machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// How often each cell is measured.
    #[serde(default)]
    pub repeat: Repeats,
    /// What all of it may take. Absent: no bound.
    #[serde(default)]
    pub budget: CampaignBudget,
    /// Your prices (TOML, as prices/examples.toml), by the path from where this file is: what runs cost is said before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<String>,
    /// Of every run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// How each run behaves: as `options` of a plan.
    #[serde(default)]
    pub options: RunOptions,
    /// What is measured.
    #[serde(rename = "subject")]
    pub subjects: Vec<Subject>,
    /// What is done to each of them.
    #[serde(rename = "workload")]
    pub workloads: Vec<CampaignLoad>,
    /// What others published of the same matrix, for `plimsoll replicate`. Nothing that is measured depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
}

/// Which cell comes after which. In each case all cells are measured once before any is measured again. Default: `random`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CellOrder {
    /// Blocks: each has every cell once, in an order of its own, drawn from the seed.
    #[default]
    Random,
    /// As `random`, but all cells of a subject together: for subjects whose hooks take long.
    BySubject,
    /// Of two subjects: A B, then B A, then A B, so that drift favours neither.
    Abba,
    /// As the file has them.
    AsWritten,
}

/// How often each cell is measured: `at_least` times; where `until_wide` is given as many more, up to `at_most`, as the spread of
/// these says that an interval of that width takes. It never depends on what differs from what.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Repeats {
    /// Runs of each cell. Default: 3.
    pub at_least: u32,
    /// Width of the 95 % interval of a cell (of each instance) over the value, such as 0.03 for 3 %; with `at_least = 5` better than with 3.
    /// Absent: `at_least` it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_wide: Option<f64>,
    /// No cell is measured more often. Default: 10.
    pub at_most: u32,
}

impl Default for Repeats {
    fn default() -> Self {
        Self { at_least: 3, until_wide: None, at_most: 10 }
    }
}

/// What a campaign may take, over all of its sessions. Looked at before each cell: none is begun that would go beyond it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CampaignBudget {
    /// Time at work, rests and hooks included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    /// Payload, up and down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Size>,
    /// Ops, those that prepare and remove data included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Money, by `prices`: `20USD`. A run whose load has no bound is ended where what it sent comes to what is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
}

/// Something that is measured, beside others: a tier, a disk, a cluster of one shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// Stands in tables.
    pub name: String,
    /// What tables and charts group by: `tier`, `cloud`, `disk`, `size`, `cache`, `nodes`, `ec`, `tls`, ...
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// As a target of a plan. Absent where there are instances, or runs that were brought along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetSpec>,
    /// Several of its kind (three volumes, three machines): the interval in the table is then the one between them.
    #[serde(default, rename = "instance", skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<SubjectInstance>,
    /// What its maker says that it does.
    #[serde(default)]
    pub promised: Promised,
    /// Which of the subjects of `prices` is paid for it. Default: the one of its own name; where one is measured and one has a price,
    /// that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<String>,
    /// What the load generator may use of its machine while it measures this one; in place of `options.client`. Needs root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientBounds>,
    /// What its servers are made of, as the file of `plimsoll describe cluster`; in place of `options.cluster`. Where it says so, `nodes` and `ec`
    /// (or `replicas`) are labels of the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Box<Cluster>>,
    /// Who is asked what its servers do meanwhile; in place of `options.observe`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observe: Vec<ObserveSpec>,
    /// What ends its runs so that others are left alone; beside what `options.abort_if` has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub abort_if: Vec<String>,
    /// Commands for `sh -c` before its cells: they switch it on, attach it, set its parity. They may run again after a kill.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// Commands after its cells, before those of another subject.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// A command that takes longer is ended with all that it started. Default: 60 s.
    #[serde(default = "default_hook_limit")]
    pub hook_limit: Span,
    /// Directories of runs that were made elsewhere: it is not measured here. Each belongs to the cell that its label `workload` names,
    /// or to those of its ops and sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<String>,
    /// A subject for each value of each of them: with TLS and without, a volume of each size.
    #[serde(default, rename = "axis", skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<CampaignAxis>,
    /// What it stands for on them: axis and value.
    #[serde(skip)]
    pub values: Vec<(String, String)>,
}

pub(crate) fn default_hook_limit() -> Span {
    Span(Duration::from_secs(60))
}

/// One of several of a subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubjectInstance {
    /// Tells it from the others.
    pub name: String,
    /// As a target of a plan.
    pub target: TargetSpec,
}

/// What is said of a subject by whoever sells it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Promised {
    /// Operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ops_per_s: Option<OpsRate>,
    /// Payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<BytesRate>,
    /// Payload of what is read (GET, read), where that is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_bytes_per_s: Option<BytesRate>,
    /// Payload of what is written (PUT, write).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_bytes_per_s: Option<BytesRate>,
}

impl Promised {
    /// What of it is of this op.
    pub(crate) fn of_op(self, op: &str) -> Self {
        let own = match op {
            "get" | "get_range" | "read" => self.read_bytes_per_s,
            "put" | "multipart" | "write" => self.write_bytes_per_s,
            _ => None,
        };
        Self { bytes_per_s: own.or(self.bytes_per_s), ..self }
    }
}

/// A kind of load, and the values on its axes: a cell for each value of `axis`, each size and each concurrency. What is not named here is as in a plan's
/// workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CampaignLoad {
    /// Stands in tables, with the value on each axis that has several.
    pub name: String,
    /// Kinds of op by weight, such as `{ put = 1 }`. Not with `file`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mix: BTreeMap<OpKind, u32>,
    /// A cell for each. Default: 4 KiB.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizeDist>,
    /// Ops in flight; a cell for each. Default: 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub concurrency: Vec<u32>,
    /// Jobs (block and files).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u32>,
    /// Which object, or which offset. Default: `uniform`.
    #[serde(default)]
    pub keys: KeyDist,
    /// When ops are intended to start. Default: `closed`.
    #[serde(default)]
    pub pacing: Pacing,
    /// Offer this share of the ops that the subject promises, evenly spaced: 1.05 is 5 % more. Over a fleet each agent offers its part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_promised: Option<f64>,
    /// Measured part of each run; of a speedtest that of each step. Default: 30 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// Before it. Default: 2 s.
    #[serde(default = "default_warmup")]
    pub warmup: Span,
    /// Check the stamp of each block that is read. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verify: bool,
    /// Of workloads on objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectOptions>,
    /// Of workloads on devices and files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<BlockOptions>,
    /// The probe for limits with this load, in place of a plain run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitsOfLoad>,
    /// The search for the best concurrency with this load, in place of a plain run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedtest: Option<SpeedtestOfLoad>,
    /// The file benchmark (write, read, IOPS) in the directory of a target of kind `files`, in place of a plain run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileOfLoad>,
    /// The load of `plimsoll watch`, for this long: its falls are told with their time, in place of a plain run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<WatchOfLoad>,
    /// Keys of the targets that are otherwise for this workload, such as `{ file_size = "64MiB" }`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub target: Map<String, Value>,
    /// Only on subjects with these labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub only: BTreeMap<String, String>,
    /// A workload for each value of each of them: patterns, shares of reads, rates.
    #[serde(default, rename = "axis", skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<CampaignAxis>,
    /// What it stands for on axes that the file gives a name: axis and value.
    #[serde(skip)]
    pub values: Vec<(String, String)>,
}

fn default_warmup() -> Span {
    Span(Duration::from_secs(2))
}

/// As `plimsoll limits`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsOfLoad {
    /// Time that the probe may take.
    pub budget: Span,
    /// Also find out which ops draw on the same bucket (objects only).
    #[serde(default)]
    pub probe_shared: bool,
    /// Also find out whether the limit is per connection or per prefix (objects only): `true`, or a list of these.
    #[serde(default, skip_serializing_if = "asks_for_none")]
    pub probe_scope: ScopeWish,
}

fn asks_for_none(wish: &ScopeWish) -> bool {
    *wish == ScopeWish::default()
}

/// As `plimsoll watch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WatchOfLoad {
    /// From the end of the warm-up.
    pub duration: Span,
}

/// As `plimsoll speedtest`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpeedtestOfLoad {
    /// All of it takes about this long.
    pub budget: Span,
    /// The search goes no higher. Default: 4096.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// A 99th percentile of the response above it ends the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ceiling: Option<Span>,
    /// Saturate this long first, so that the search does not follow a bucket that empties.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Span>,
}

/// As `plimsoll file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileOfLoad {
    /// Files, each with a thread of its own: a number, `"cores"` for one for each core, or a list of these with a cell for each.
    /// Absent: one for each core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<ThreadCounts>,
    /// All files together, whatever the number of threads. Absent: each thread's file has the target's `file_size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<Size>,
    /// Write, read and IOPS so many times in each run, one after the other: a fall is then dated within run and phase. Default: 1.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub cycles: u32,
    /// Length of the IOPS phase. Default: 15 s.
    #[serde(default = "default_iops")]
    pub iops_duration: Span,
}

fn once() -> u32 {
    1
}

fn is_once(n: &u32) -> bool {
    *n == 1
}

/// One number of threads, or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a number of threads, \"cores\", or a list of these")]
pub enum ThreadCounts {
    /// In every cell.
    One(ThreadCount),
    /// A cell for each.
    Many(Vec<ThreadCount>),
}

/// So many threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a number of threads, or \"cores\"")]
pub enum ThreadCount {
    /// Written out.
    Fixed(u32),
    /// Of the machine that measures.
    Each(PerMachine),
}

/// What the machine decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PerMachine {
    /// One for each core.
    Cores,
}

impl ThreadCount {
    /// `None`: one for each core.
    pub fn fixed(self) -> Option<u32> {
        match self {
            Self::Fixed(n) => Some(n),
            Self::Each(PerMachine::Cores) => None,
        }
    }

    /// As a name has it.
    pub fn words(self) -> String {
        match self.fixed() {
            None => "a thread per core".into(),
            Some(1) => "1 thread".into(),
            Some(n) => format!("{n} threads"),
        }
    }
}

impl FileOfLoad {
    /// A cell for each.
    pub fn thread_counts(&self) -> Vec<ThreadCount> {
        match &self.threads {
            None => vec![ThreadCount::Each(PerMachine::Cores)],
            Some(ThreadCounts::One(n)) => vec![*n],
            Some(ThreadCounts::Many(list)) => list.clone(),
        }
    }
}

fn default_iops() -> Span {
    Span(Duration::from_secs(15))
}

impl CampaignFile {
    /// One of its subjects.
    pub fn subject(&self, name: &str) -> Option<&Subject> {
        self.subjects.iter().find(|s| s.name == name)
    }

    /// When its blocks are measured; `None`: one after the other. Of a file that was read there is no error.
    pub fn times_of_day(&self) -> Option<TimesOfDay> {
        TimesOfDay::of(self).ok().flatten()
    }

    /// Every command line that the file would have run, and every device whose data it lets be destroyed: what nobody takes from a file
    /// unseen.
    pub fn dangers(&self) -> Vec<String> {
        let mut out = Vec::new();
        for s in &self.subjects {
            out.extend(s.before.iter().map(|c| format!("{}, before, at most {}: {c}", s.name, s.hook_limit)));
            out.extend(s.after.iter().map(|c| format!("{}, after, at most {}: {c}", s.name, s.hook_limit)));
            for target in s.targets() {
                if let TargetSpec::Block(b) = target
                    && let Some(device) = &b.destroy_data
                {
                    out.push(format!("{}: all data on {device} may be destroyed", s.name));
                }
            }
        }
        out
    }
}

impl Subject {
    /// All that are measured of it here.
    pub fn targets(&self) -> impl Iterator<Item = &TargetSpec> {
        self.target.iter().chain(self.instances.iter().map(|i| &i.target))
    }

    /// Whether its runs were made elsewhere.
    pub fn is_brought(&self) -> bool {
        !self.runs.is_empty()
    }
}

impl HasAxes for Subject {
    const WHAT: &'static str = "subject";

    fn name(&self) -> &str {
        &self.name
    }

    fn take_axes(&mut self) -> Vec<CampaignAxis> {
        std::mem::take(&mut self.axes)
    }

    fn stands_for(&mut self, name: String, values: Vec<(String, String)>) -> Result<(), CampaignError> {
        self.name = name;
        self.values.clone_from(&values);
        for (axis, value) in values {
            if self.labels.contains_key(&axis) {
                return Err(wrong(
                    format!("subject '{}'", self.name),
                    format!("'{axis}' is a label of it as well as one of its axes"),
                    "Leave the label out: the axis gives each of its values as one.",
                ));
            }
            self.labels.insert(axis, value);
        }
        Ok(())
    }
}

impl HasAxes for CampaignLoad {
    const WHAT: &'static str = "workload";

    fn name(&self) -> &str {
        &self.name
    }

    fn take_axes(&mut self) -> Vec<CampaignAxis> {
        std::mem::take(&mut self.axes)
    }

    fn stands_for(&mut self, name: String, values: Vec<(String, String)>) -> Result<(), CampaignError> {
        (self.name, self.values) = (name, values);
        Ok(())
    }
}
