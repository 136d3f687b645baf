//! Runs made up, with a plan, a record, a seal and a summary, as fast as a file system takes them.
#![allow(dead_code, reason = "each user has its own part")]

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_model::analysis::{self, LineSpan};
use plimsoll_model::summary::{Latencies, LatencySummary, SCHEMA, WorkloadSummary};
use plimsoll_model::{
    Analysis, Environment, Estimate, Finding, Histogram, Interval, Level, OpKind, Plan, RunStatus,
    RunSummary, SeriesCounts, SeriesId,
};
use plimsoll_store::{EnvFile, Mark, RunDir, SparseHistogram, SparseInterval, SparseSeries, StreamWriter};

/// What a made-up run is to be.
pub struct MadeRun<'a> {
    pub id: &'a str,
    pub op: &'a str,
    pub tier: &'a str,
    /// Begun so long after 2026-11-01 08:00.
    pub hours: i64,
    pub rate: f64,
    pub void: bool,
    pub unsealed: bool,
    /// Ops that ended well in each slice of its measured time; empty: its record has no counts.
    pub ended: &'a [u64],
}

/// Length of a slice.
const GRID_NS: u64 = 100_000_000;

impl Default for MadeRun<'_> {
    fn default() -> Self {
        Self {
            id: "20261101-080000-0001",
            op: "get",
            tier: "standard",
            hours: 0,
            rate: 800.0,
            void: false,
            unsealed: false,
            ended: &[],
        }
    }
}

const PLAN: &str = r#"
version = 1
[targets.n]
kind = "null"
[[stage]]
[[stage.workload]]
name = "w"
mix = { null = 1 }
"#;

pub fn make(root: &Path, m: &MadeRun<'_>) -> RunDir {
    let run = RunDir::create_at(&root.join(m.id)).unwrap();
    let labels = BTreeMap::from([("tier".to_owned(), m.tier.to_owned())]);
    let plan = Plan { labels: labels.clone(), ..Plan::from_toml(PLAN).unwrap() };
    run.write_plan(&plan).unwrap();
    let begin: jiff::Timestamp = "2026-11-01T08:00:00Z".parse().unwrap();
    let started_at = (begin + jiff::SignedDuration::from_hours(m.hours)).to_string();
    let environment = Environment { started_at, ..Environment::default() };
    run.write_env(&EnvFile {
        format: "plimsoll.env/1".into(),
        id: m.id.into(),
        environment: environment.clone(),
        rerun: "plimsoll run plan.toml".into(),
        clock_offsets_ns: BTreeMap::new(),
    })
    .unwrap();
    let mut stream = run.create_intervals("local", GRID_NS).unwrap();
    match m.ended {
        [] => stream.interval(0, &Interval::empty(0)).unwrap(),
        _ => record(&mut stream, &plan, m),
    }
    stream.finish().unwrap();
    if !m.unsealed {
        run.seal("done").unwrap();
    }
    if !m.ended.is_empty() {
        let end_s = m.ended.len() as f64 * GRID_NS as f64 / 1e9;
        let span = LineSpan {
            line: 0,
            stage: 0,
            workload: 0,
            kind: kind(m),
            repeat: 0,
            start_s: 0.0,
            end_s,
            window_start_s: 0.0,
            window_end_s: end_s,
        };
        let analysis = Analysis { schema: analysis::SCHEMA.into(), spans: vec![span], ..Analysis::default() };
        run.write_analysis(&analysis).unwrap();
    }
    run.write_summary(&summary(m, labels, environment)).unwrap();
    run
}

fn kind(m: &MadeRun<'_>) -> OpKind {
    OpKind::parse(m.op).expect("a kind of op")
}

/// One stage, measured from its first slice to its last.
fn record(stream: &mut StreamWriter, plan: &Plan, m: &MadeRun<'_>) {
    let (stage, end_ns) = (0, m.ended.len() as u64 * GRID_NS);
    let start = Mark::StageStart {
        stage,
        at_ns: 0,
        spec: Box::new(plan.stages[0].clone()),
        endpoints: Vec::new(),
        workers: 1,
        ring: String::new(),
        slots: 16,
    };
    stream.mark(&start).unwrap();
    stream.mark(&Mark::WarmupEnd { stage, at_ns: 0 }).unwrap();
    let mut times = Histogram::new();
    (1..200).for_each(|i| times.record(i * 100_000));
    let times = SparseHistogram::from(&times);
    for (index, ended) in m.ended.iter().enumerate() {
        let mut counts = SeriesCounts { started: *ended, ..SeriesCounts::default() };
        counts.outcomes[0] = *ended;
        let series = SparseSeries {
            id: SeriesId { stage, workload: 0, kind: kind(m) },
            counts,
            response: times.clone(),
            service: None,
            first_byte: None,
            submission: None,
            throttled: None,
            endpoints: Vec::new(),
        };
        let slice = SparseInterval { series: vec![series], ..SparseInterval::empty(index as u64) };
        stream.sparse(stage, &slice).unwrap();
    }
    let reason = "duration".to_owned();
    stream.mark(&Mark::StopRequested { stage, at_ns: end_ns, reason }).unwrap();
    stream.mark(&Mark::StageEnd { stage, at_ns: end_ns }).unwrap();
}

fn summary(m: &MadeRun<'_>, labels: BTreeMap<String, String>, environment: Environment) -> RunSummary {
    let mut h = Histogram::new();
    (1..2_000).for_each(|i| h.record(i * 10_000));
    let line = WorkloadSummary {
        name: "w".into(),
        op: m.op.into(),
        valid: !m.void,
        size_bytes: 4096,
        concurrency: 16,
        window_s: 30.0,
        horizon_s: 34.0,
        ops_per_s: Some(Estimate::symmetric(m.rate, 5.0, 24.0)),
        latency_ns: Latencies { response: LatencySummary::of(&h), ..Latencies::default() },
        outcomes: BTreeMap::from([("ok".into(), 24_000)]),
        ..WorkloadSummary::default()
    };
    let busy = || Finding::new("V07", "client_bound", Level::Invalid, "the client was busy");
    RunSummary {
        schema: SCHEMA.into(),
        id: m.id.into(),
        valid: !m.void,
        answered: !m.void,
        status: if m.void { RunStatus::None } else { RunStatus::Valid },
        verdict: "made up".into(),
        findings: if m.void { vec![busy()] } else { Vec::new() },
        workloads: vec![line],
        labels,
        environment,
        ..RunSummary::default()
    }
}
