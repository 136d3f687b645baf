//! A pivot of lines: two keys, and in each cell one figure with its interval, over lines of one load only.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_index::IndexedLine;
use plimsoll_model::Estimate;
use plimsoll_report::{mean_of_lines, number};
use serde::Serialize;

use super::query::{HistoryFigure, HistoryKey};
use super::{History, HistoryQuery};

/// What fits on a page that somebody reads.
const MOST_ROWS: usize = 60;
const MOST_COLUMNS: usize = 30;
/// Runs that a cell links to, the newest.
const MOST_LINKS: usize = 5;
/// Labels that are named at most.
const MOST_NAMED: usize = 4;
/// In place of the value of a label that a run does not have.
const NO_LABEL: &str = "(none)";

/// One cell. Void lines are counted, and are in no figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PivotCell {
    /// Of one line its own, with the interval within its run; of several the geometric mean with Student's interval over runs.
    pub figure: Option<Estimate>,
    /// Why there is none, or what kind of interval it is.
    pub said: String,
    pub lines: usize,
    pub left_out: usize,
    /// The newest of its runs.
    pub runs: Vec<String>,
}

/// A table of cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PivotAnswer {
    pub schema: &'static str,
    pub figure: &'static str,
    pub row_head: String,
    pub column_head: String,
    pub rows: Vec<String>,
    pub columns: Vec<String>,
    /// By row, then by column; null: no line.
    pub cells: Vec<Vec<Option<PivotCell>>>,
    /// Rows and columns beyond what is shown.
    pub more: (usize, usize),
}

/// Sorts by number first: 64 KiB comes after 4 KiB, 12 nodes after 4.
type Place = (u64, String);

fn place(key: &HistoryKey, line: &IndexedLine) -> Place {
    match key {
        HistoryKey::Op if line.load.is_empty() || line.load == line.op => (0, line.op.clone()),
        // The read half of a mix is no run of reads.
        HistoryKey::Op => (0, format!("{} ({})", line.op, line.load)),
        HistoryKey::Size => (line.size_bytes, number::size(line.size_bytes)),
        HistoryKey::Concurrency => (u64::from(line.concurrency), format!("{} in flight", line.concurrency)),
        HistoryKey::Label(name) => {
            let value = line.labels.get(name).map_or(NO_LABEL, String::as_str);
            let digits: String = value.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
            let sized = plimsoll_model::units::parse_size(value).ok().map(|b| b.saturating_mul(1000));
            let number = sized.or_else(|| digits.parse::<f64>().ok().map(|x| (x * 1e3) as u64));
            (number.unwrap_or(0), value.to_owned())
        }
    }
}

fn head(key: &HistoryKey) -> String {
    match key {
        HistoryKey::Op => "Operation".into(),
        HistoryKey::Size => "Size".into(),
        HistoryKey::Concurrency => "In flight".into(),
        HistoryKey::Label(name) => name.clone(),
    }
}

/// What a line says of the figure. An exact one is written as an interval without a width, for it has none of its own.
pub fn figure_of(line: &IndexedLine, figure: HistoryFigure) -> Option<Estimate> {
    let bare = |ns: u64| Estimate { value: ns as f64, low: ns as f64, high: ns as f64, n_eff: 1.0 };
    match figure {
        HistoryFigure::OpsPerS => line.ops_per_s,
        HistoryFigure::BytesPerS => line.bytes_per_s,
        HistoryFigure::P50 => line.response_p50_ns.map(bare),
        HistoryFigure::P99 => line.response_p99_ns.map(|ns| line.response_p99.unwrap_or_else(|| bare(ns))),
    }
}

/// In what the lines of one cell differ that no mean may be made over.
fn differing(lines: &[&IndexedLine]) -> Option<String> {
    let kinds = |what: &str, of: fn(&IndexedLine) -> String| {
        let all: BTreeSet<String> = lines.iter().map(|l| of(l)).collect();
        (all.len() > 1).then(|| format!("{} {what}", all.len()))
    };
    let all = [
        kinds("ops", |l| format!("{} {}", l.op, l.load)),
        kinds("sizes", |l| l.size_bytes.to_string()),
        kinds("numbers in flight", |l| l.concurrency.to_string()),
        kinds("offered rates", |l| l.offered_per_s.map_or("closed loop".into(), |r| r.to_string())),
        kinds("targets", |l| l.target.clone()),
        several_of_one_run(lines),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Lines of one run are different loads, whatever they have in common, and no repeats of each other.
fn several_of_one_run(lines: &[&IndexedLine]) -> Option<String> {
    let mut by_run: BTreeMap<&str, usize> = BTreeMap::new();
    lines.iter().for_each(|l| *by_run.entry(&l.run).or_default() += 1);
    by_run.into_values().max().filter(|n| *n > 1).map(|n| format!("{n} lines of one run"))
}

/// Labels in which lines differ that are taken together: `tier differs`. Whoever chose them may not have meant that.
pub fn labels_that_differ(lines: &[&IndexedLine]) -> Option<String> {
    let names: BTreeSet<&String> = lines.iter().flat_map(|l| l.labels.keys()).collect();
    let differs = |name: &&String| {
        let values: BTreeSet<Option<&String>> = lines.iter().map(|l| l.labels.get(*name)).collect();
        values.len() > 1
    };
    let all: Vec<&str> = names.into_iter().filter(differs).map(String::as_str).take(MOST_NAMED).collect();
    let verb = if all.len() == 1 { "differs" } else { "differ" };
    (!all.is_empty()).then(|| format!("{} {verb}", all.join(", ")))
}

fn cell(lines: &[&IndexedLine], figure: HistoryFigure) -> PivotCell {
    let valid: Vec<&IndexedLine> = lines.iter().copied().filter(|l| l.valid).collect();
    let known: Vec<Estimate> = valid.iter().filter_map(|l| figure_of(l, figure)).collect();
    let is_latency = matches!(figure, HistoryFigure::P50 | HistoryFigure::P99);
    let (figure, said) = match (differing(&valid), &known[..]) {
        (Some(what), _) => (None, format!("no figure over {what}")),
        (None, []) if valid.is_empty() => (None, "no valid line".into()),
        (None, []) => (None, "not measured".into()),
        (None, [one]) if one.low == one.high => {
            (Some(*one), "one line, without an interval of its own".into())
        }
        (None, [one]) => (Some(*one), "one line: 95 % within its run".into()),
        // Percentiles are not averaged: the middle one of the runs, and how far they reach.
        (None, many) if is_latency => {
            let mut all: Vec<f64> = many.iter().map(|e| e.value).collect();
            all.sort_by(f64::total_cmp);
            let value = all[all.len() / 2].midpoint(all[(all.len() - 1) / 2]);
            let e = Estimate { value, low: all[0], high: all[all.len() - 1], n_eff: all.len() as f64 };
            (Some(e), format!("median of {} lines, least to most", all.len()))
        }
        (None, many) => (mean_of_lines(many), format!("95 % over {} lines", many.len())),
    };
    let said = match labels_that_differ(&valid).filter(|_| figure.is_some() && known.len() > 1) {
        Some(differ) => format!("{said}; {differ}"),
        None => said,
    };
    let mut runs: Vec<String> = Vec::new();
    for l in if valid.is_empty() { lines } else { &valid } {
        if !runs.contains(&l.run) && runs.len() < MOST_LINKS {
            runs.push(l.run.clone());
        }
    }
    PivotCell { figure, said, lines: valid.len(), left_out: lines.len() - valid.len(), runs }
}

/// The lines of the runs that are wanted, as a table.
pub fn pivot(history: &History, query: &HistoryQuery) -> PivotAnswer {
    let row_key = query.rows.clone().unwrap_or(HistoryKey::Size);
    let column_key = query.columns.clone().unwrap_or(HistoryKey::Op);
    let mut found: BTreeMap<(Place, Place), Vec<&IndexedLine>> = BTreeMap::new();
    for (_, line) in history.lines_of(query) {
        found.entry((place(&row_key, line), place(&column_key, line))).or_default().push(line);
    }
    let rows: BTreeSet<&Place> = found.keys().map(|(r, _)| r).collect();
    let columns: BTreeSet<&Place> = found.keys().map(|(_, c)| c).collect();
    let more = (rows.len().saturating_sub(MOST_ROWS), columns.len().saturating_sub(MOST_COLUMNS));
    let rows: Vec<&Place> = rows.into_iter().take(MOST_ROWS).collect();
    let columns: Vec<&Place> = columns.into_iter().take(MOST_COLUMNS).collect();
    let of = |r: &Place, c: &Place| found.get(&(r.clone(), c.clone())).map(|lines| cell(lines, query.figure));
    PivotAnswer {
        schema: "plimsoll.pivot/1",
        figure: query.figure.name(),
        row_head: head(&row_key),
        column_head: head(&column_key),
        cells: rows.iter().map(|r| columns.iter().map(|c| of(r, c)).collect()).collect(),
        rows: rows.iter().map(|r| r.1.clone()).collect(),
        columns: columns.iter().map(|c| c.1.clone()).collect(),
        more,
    }
}
