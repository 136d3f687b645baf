//! The list of runs that are wanted, a part of it at a time, and what can be asked for.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_index::IndexedRun;
use plimsoll_store::RunState;
use serde::Serialize;

use super::{History, HistoryQuery, HistoryTest};

/// Runs of one answer.
pub const RUNS_SHOWN: usize = 100;
/// Names of labels, and values of each, that are offered: beyond them one is written into the address.
const MOST_LABELS: usize = 50;
const MOST_VALUES: usize = 200;

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

fn row(run: &IndexedRun) -> ListedRun {
    let mark = match (run.entry.state, run.mark.as_str()) {
        (RunState::Running, _) => "running",
        (RunState::Unfinished, _) => "killed, not judged",
        (RunState::Sealed, "") => "done, not judged",
        (RunState::Sealed, mark) => mark,
    };
    ListedRun {
        id: run.entry.id.clone(),
        started_at: run.entry.started_at.clone(),
        what: run.what.clone(),
        result: run.result.clone(),
        mark: mark.into(),
        standing: run.standing.name(),
        labels: run.entry.labels.clone(),
        imported: run.imported.clone(),
    }
}

/// The runs that are wanted, the newest first.
pub fn list(history: &History, query: &HistoryQuery) -> ListAnswer {
    let mut found = 0;
    let mut runs = Vec::new();
    for r in history.runs.iter().filter(|r| query.filter.takes(&r.run)) {
        if found >= query.skip && runs.len() < RUNS_SHOWN {
            runs.push(row(&r.run));
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
