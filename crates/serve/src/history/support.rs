//! A history made up, for tests.

use std::collections::BTreeMap;

use plimsoll_index::{IndexedLine, IndexedRun, RunStanding};
use plimsoll_model::Estimate;
use plimsoll_store::{RunEntry, RunState};

use super::History;

/// A run with one line.
#[derive(Debug, Clone, Copy)]
pub struct Made {
    pub label: &'static str,
    pub op: &'static str,
    pub size: u64,
    pub rate: f64,
    pub valid: bool,
    pub offered: Option<f64>,
}

impl Default for Made {
    fn default() -> Self {
        Self { label: "gold", op: "get", size: 4096, rate: 800.0, valid: true, offered: None }
    }
}

/// Runs `r0`, `r1`, ..., an hour after each other from 2026-11-01 08:00 on.
pub fn history(all: &[Made]) -> History {
    let begin: jiff::Timestamp = "2026-11-01T08:00:00Z".parse().unwrap();
    let of = |(i, m): (usize, &Made)| {
        let id = format!("r{i}");
        let started_at = (begin + jiff::SignedDuration::from_hours(i as i64)).to_string();
        let labels = BTreeMap::from([("tier".to_owned(), m.label.to_owned())]);
        let entry = RunEntry {
            id: id.clone(),
            path: id.clone().into(),
            name: None,
            started_at: started_at.clone(),
            state: RunState::Sealed,
            labels: labels.clone(),
            verdict: None,
            valid: Some(m.valid),
            status: None,
            cleanup_due: 0,
            bytes: 0,
            summary: None,
        };
        let run = IndexedRun {
            entry,
            what: format!("{} of 4 KiB", m.op),
            result: format!("{} op/s", m.rate),
            mark: if m.valid { "VALID" } else { "INVALID V07" }.into(),
            answered: Some(m.valid),
            standing: if m.valid { RunStanding::Valid } else { RunStanding::Invalid },
            ops: vec![m.op.into()],
            targets: vec!["s3.example.net".into()],
            imported: None,
        };
        let line = IndexedLine {
            run: id,
            started_at,
            labels,
            line: 0,
            workload: m.op.into(),
            op: m.op.into(),
            load: m.op.into(),
            together: 0,
            size_bytes: m.size,
            concurrency: 16,
            offered_per_s: m.offered,
            target: "s3 s3.example.net".into(),
            valid: m.valid,
            ops_per_s: Some(Estimate::symmetric(m.rate, m.rate / 100.0, 20.0)),
            bytes_per_s: Some(Estimate::symmetric(m.rate * m.size as f64, 1.0, 20.0)),
            response_p50_ns: Some(1_000_000),
            response_p99_ns: Some(9_000_000),
            response_p99: None,
        };
        (run, line)
    };
    let (runs, lines) = all.iter().enumerate().map(of).unzip();
    History::of(runs, lines)
}
