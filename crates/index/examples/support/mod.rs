//! Runs made up, with a plan, a record, a seal and a summary, as fast as a file system takes them.
#![allow(dead_code, reason = "each user has its own part")]

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_model::summary::{Latencies, LatencySummary, SCHEMA, WorkloadSummary};
use plimsoll_model::{
    Environment, Estimate, Finding, Histogram, Interval, Level, Plan, RunStatus, RunSummary,
};
use plimsoll_store::{EnvFile, RunDir};

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
}

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
    run.write_plan(&Plan { labels: labels.clone(), ..Plan::from_toml(PLAN).unwrap() }).unwrap();
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
    let mut stream = run.create_intervals("local", 100_000_000).unwrap();
    stream.interval(0, &Interval::empty(0)).unwrap();
    stream.finish().unwrap();
    if !m.unsealed {
        run.seal("done").unwrap();
    }
    run.write_summary(&summary(m, labels, environment)).unwrap();
    run
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
