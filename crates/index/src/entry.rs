//! What the index knows of a run: all that a list shows, and its lines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plimsoll_model::plan::TargetSpec;
use plimsoll_model::{Estimate, Plan, RunStatus, RunSummary};
use plimsoll_report::{RunReport, glance};
use plimsoll_store::{RunDir, RunEntry, RunState, StoreError, bounds};
use serde::{Deserialize, Serialize};

use crate::filter::RunStanding;

/// A run in a list.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IndexedRun {
    /// What the store says of it. Without its summary.
    #[serde(flatten)]
    pub entry: RunEntry,
    /// What was measured, in a few words. Empty: nothing is known yet.
    pub what: String,
    /// The first figure, or what there is in place of one.
    pub result: String,
    /// How far it may be used, in a word; empty without a summary.
    pub mark: String,
    /// What was asked for is answered. Absent without a summary.
    pub answered: Option<bool>,
    /// How it stands, as filters name it.
    pub standing: RunStanding,
    /// Ops of its lines, sorted.
    pub ops: Vec<String>,
    /// Names, kinds, endpoints, buckets and paths of what was measured, sorted.
    pub targets: Vec<String>,
    /// Tool whose figures they are, of an imported run.
    pub imported: Option<String>,
}

/// One line of results, as a trend over many runs needs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IndexedLine {
    /// Id of its run.
    pub run: String,
    /// Of its run, RFC 3339.
    pub started_at: String,
    /// Of its run.
    pub labels: BTreeMap<String, String>,
    /// Its place in the summary, from 0.
    pub line: usize,
    /// Name of the workload.
    pub workload: String,
    /// `get`, ...; `total`: all kinds of a mix.
    pub op: String,
    /// The mix that it is a part of; empty, or the op itself: none.
    pub load: String,
    /// Workloads that ran together, of a line that is their sum; else 0.
    pub together: usize,
    /// Nominal size, bytes.
    pub size_bytes: u64,
    /// Ops in flight at most.
    pub concurrency: u32,
    /// Of an open loop, ops a second. Null: as many in flight, always.
    pub offered_per_s: Option<f64>,
    /// What its run was put on, in words: kind, name, endpoints, bucket, path.
    pub target: String,
    /// Its figures may be used.
    pub valid: bool,
    /// Null where the data does not carry it.
    pub ops_per_s: Option<Estimate>,
    /// Payload of the same ops.
    pub bytes_per_s: Option<Estimate>,
    /// Median response time, nanoseconds.
    pub response_p50_ns: Option<u64>,
    /// 99 in 100 took no longer, nanoseconds. Null: too few ops beyond it.
    pub response_p99_ns: Option<u64>,
    /// 95 % interval of the same.
    pub response_p99: Option<Estimate>,
}

impl IndexedRun {
    /// Reads one run, wherever it is.
    pub fn of(dir: &RunDir) -> Self {
        read(dir).0
    }
}

/// Reads a run: its entry, and its lines.
pub(crate) fn read(dir: &RunDir) -> (IndexedRun, Vec<IndexedLine>) {
    let mut entry = RunEntry::of(dir);
    let summary = entry.summary.take();
    let plan = dir.plan();
    let unread = unread(dir, &entry, &plan, summary.is_none());
    let plan = plan.ok();
    // Of a run without a seal no figure is believed; what it was of is said all the same.
    let stored = || (entry.state != RunState::Sealed).then(|| dir.summary().ok()).flatten();
    let words = summary.clone().or_else(stored);
    let title = words.clone().map(|s| glance::title(&RunReport::of(s)));
    let run = IndexedRun {
        what: unread.or(entry.name.clone()).or(title).unwrap_or_default(),
        result: summary.as_ref().map(glance::result).unwrap_or_default(),
        mark: summary.as_ref().map(glance::mark).unwrap_or_default(),
        answered: summary.as_ref().map(|s| s.answered),
        standing: standing(entry.state, entry.status),
        ops: words
            .iter()
            .flat_map(|s| &s.workloads)
            .map(|w| w.op.clone())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        targets: plan.as_ref().map(targets).unwrap_or_default().into_iter().collect(),
        imported: words.as_ref().and_then(|s| s.environment.imported.as_ref()).map(|i| i.tool.clone()),
        entry,
    };
    let lines = summary.map(|s| lines(&run, &s)).unwrap_or_default();
    (run, lines)
}

fn is_too_large(journal: &Path) -> bool {
    let most = bounds::most_bytes("journal");
    most.zip(journal.metadata().ok()).is_some_and(|(most, file)| file.len() > most)
}

/// Documents that are there and cannot be read: damaged, or larger than any run writes. `None`: there are none.
fn unread(
    dir: &RunDir,
    entry: &RunEntry,
    plan: &Result<Plan, StoreError>,
    no_summary: bool,
) -> Option<String> {
    let is_there = |name: &str| dir.path().join(name).is_file();
    let is_sealed = entry.state == RunState::Sealed;
    // Nothing that was read well is read again.
    let mut names = Vec::new();
    let mut add = |name, is_bad: bool| names.extend(is_bad.then_some(name));
    add("plan.toml", is_there("plan.toml") && plan.is_err());
    add("env.json", is_there("env.json") && entry.started_at.is_empty() && dir.env().is_err());
    add("seal.json", entry.state == RunState::Unfinished && dir.sealed().is_err());
    add("summary.json", is_there("summary.json") && is_sealed && no_summary);
    add("journal", is_too_large(&dir.journal_path()));
    (!names.is_empty()).then(|| format!("{} cannot be read", names.join(", ")))
}

pub(crate) fn standing(state: RunState, status: Option<RunStatus>) -> RunStanding {
    match (state, status) {
        (RunState::Running, _) => RunStanding::Running,
        (RunState::Unfinished, _) => RunStanding::Killed,
        (RunState::Sealed, None) => RunStanding::Unjudged,
        (RunState::Sealed, Some(RunStatus::Valid)) => RunStanding::Valid,
        (RunState::Sealed, Some(RunStatus::Partly)) => RunStanding::Partly,
        (RunState::Sealed, Some(RunStatus::None)) => RunStanding::Invalid,
    }
}

fn lines(run: &IndexedRun, summary: &RunSummary) -> Vec<IndexedLine> {
    let line = |(at, w): (usize, &plimsoll_model::summary::WorkloadSummary)| {
        let response = w.latency_ns.response.as_ref();
        IndexedLine {
            run: run.entry.id.clone(),
            started_at: run.entry.started_at.clone(),
            labels: run.entry.labels.clone(),
            line: at,
            workload: w.name.clone(),
            op: w.op.clone(),
            load: w.load.clone(),
            together: w.together as usize,
            size_bytes: w.size_bytes,
            concurrency: w.concurrency,
            offered_per_s: w.offered_per_s,
            target: run.targets.join(" "),
            valid: w.valid,
            ops_per_s: w.ops_per_s,
            bytes_per_s: w.bytes_per_s,
            response_p50_ns: response.and_then(|l| l.p50),
            response_p99_ns: response.and_then(|l| l.p99),
            response_p99: response.and_then(|l| l.intervals.p99),
        }
    };
    summary.workloads.iter().enumerate().map(line).collect()
}

/// Words by which somebody looks for what was measured.
fn targets(plan: &Plan) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for (name, target) in &plan.targets {
        words.insert(name.clone());
        match target {
            TargetSpec::S3(s) => {
                words.insert("s3".into());
                words.extend(s.endpoints.iter().cloned());
                words.insert(s.bucket.clone());
            }
            TargetSpec::Block(b) => {
                words.insert("block".into());
                words.insert(b.path.clone());
                words.extend(b.also.iter().cloned());
            }
            TargetSpec::Files(f) => {
                words.insert("files".into());
                words.insert(f.directory.clone());
            }
            TargetSpec::Null => drop(words.insert("null".into())),
            TargetSpec::Sim(_) => drop(words.insert("sim".into())),
        }
    }
    words.remove("");
    words
}
