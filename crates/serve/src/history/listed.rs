//! The list of runs that are wanted, a part of it at a time, and what can be asked for.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_index::IndexedRun;
use plimsoll_store::RunState;
use serde::Serialize;

use super::trended::name;
use super::{History, HistoryQuery, HistoryRun, HistoryTest};

/// Runs of one answer.
pub const RUNS_SHOWN: usize = 100;
/// Names of labels, and values of each, that are offered: beyond them one is written into the address.
const MOST_LABELS: usize = 50;
const MOST_VALUES: usize = 200;

/// How a run's rate went over its measured time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListedCourse {
    /// Which line it is of, where the run has several.
    pub of: Option<String>,
    /// Length of the time.
    pub seconds: f64,
    /// In equal parts of it.
    pub ops_per_s: Vec<f64>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListedRun {
    pub id: String,
    /// RFC 3339.
    pub started_at: String,
    pub what: String,
    pub result: String,
    /// `VALID`, `INVALID V07`, `running`, ...
    pub mark: String,
    /// As filters name it.
    pub standing: &'static str,
    pub labels: BTreeMap<String, String>,
    pub imported: Option<String>,
    /// Null: it has no rate, or its record was not read yet.
    pub course: Option<ListedCourse>,
}

/// What there is to filter by.
#[derive(Debug, Clone, Default)]
pub struct FilterOffers {
    labels: BTreeMap<String, Vec<String>>,
    ops: Vec<String>,
}

impl FilterOffers {
    pub fn of<'a>(runs: impl Iterator<Item = &'a IndexedRun>) -> Self {
        let mut labels: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut ops = BTreeSet::new();
        for run in runs {
            for (name, value) in &run.entry.labels {
                if labels.len() < MOST_LABELS || labels.contains_key(name.as_str()) {
                    let values = labels.entry(name).or_default();
                    if values.len() < MOST_VALUES {
                        values.insert(value);
                    }
                }
            }
            ops.extend(run.ops.iter().map(String::as_str));
        }
        let owned = |set: BTreeSet<&str>| set.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let labels = labels.into_iter().map(|(name, values)| (name.to_owned(), owned(values))).collect();
        Self { labels, ops: owned(ops) }
    }
}

/// What a page shows as a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListAnswer {
    pub schema: &'static str,
    /// Runs that there are, and those that are wanted.
    pub all: usize,
    pub found: usize,
    pub skip: usize,
    pub runs: Vec<ListedRun>,
    /// Network tests: only where nothing is filtered by, for they have none of it.
    pub tests: Vec<HistoryTest>,
    /// What there is to filter by.
    pub labels: BTreeMap<String, Vec<String>>,
    pub ops: Vec<String>,
    pub note: Option<String>,
}

fn course(history: &History, r: &HistoryRun) -> Option<ListedCourse> {
    let course = r.course.as_ref()?;
    let lines = &history.lines[r.lines.clone()];
    let of = lines.iter().find(|l| l.line == course.line).filter(|_| lines.len() > 1).map(name);
    Some(ListedCourse { of, seconds: course.seconds, ops_per_s: course.ops_per_s.clone() })
}

fn row(history: &History, r: &HistoryRun) -> ListedRun {
    let run = &r.run;
    let mark = match (run.entry.state, run.mark.as_str()) {
        (RunState::Running, _) => "running".to_owned(),
        (RunState::Unfinished, "") => "killed, not judged".into(),
        (RunState::Unfinished, mark) => format!("killed ({mark})"),
        (RunState::Sealed, "") => "done, not judged".into(),
        (RunState::Sealed, mark) => mark.into(),
    };
    ListedRun {
        id: run.entry.id.clone(),
        started_at: run.entry.started_at.clone(),
        what: run.what.clone(),
        result: run.result.clone(),
        mark,
        standing: run.standing.name(),
        labels: run.entry.labels.clone(),
        imported: run.imported.clone(),
        course: course(history, r),
    }
}

/// The runs that are wanted, the newest first.
pub fn list(history: &History, query: &HistoryQuery) -> ListAnswer {
    let mut found = 0;
    let mut runs = Vec::new();
    for r in history.runs.iter().filter(|r| query.filter.takes(&r.run)) {
        if found >= query.skip && runs.len() < RUNS_SHOWN {
            runs.push(row(history, r));
        }
        found += 1;
    }
    ListAnswer {
        schema: "plimsoll.history/1",
        all: history.runs.len(),
        found,
        skip: query.skip,
        runs,
        tests: if query.filter == Default::default() { history.tests.clone() } else { Vec::new() },
        labels: history.offers.labels.clone(),
        ops: history.offers.ops.clone(),
        note: history.note.clone(),
    }
}
