//! One figure of one line over all its runs: where its level changed.

use std::collections::BTreeMap;

use plimsoll_index::IndexedLine;
use plimsoll_model::count::counted;
use plimsoll_model::units::significant;
use plimsoll_model::{Estimate, Verdict};
use plimsoll_report::number;
use plimsoll_stats::trend;
use serde::Serialize;

use super::pivoted::{figure_of, labels_that_differ};
use super::{History, HistoryQuery};

/// Lines that are offered, those with most runs.
const MOST_LINES: usize = 100;

/// A line that a trend can be had of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendLine {
    /// How a query names it.
    pub key: String,
    pub name: String,
    pub runs: usize,
}

/// One run's figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendPoint {
    pub run: String,
    /// RFC 3339.
    pub started_at: String,
    pub figure: Estimate,
}

/// The level changed here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendStep {
    /// Place of the first point of the new level.
    pub at: usize,
    pub run: String,
    /// New level over the old one, 95 % over runs.
    pub ratio: Option<Estimate>,
    pub p: f64,
}

/// A level, as points `from..to`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendLevel {
    pub from: usize,
    pub to: usize,
    pub median: f64,
}

/// What a page draws.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendAnswer {
    pub schema: &'static str,
    pub figure: &'static str,
    pub lines: Vec<TrendLine>,
    /// Key of the one that is shown; null: there is none.
    pub line: Option<String>,
    /// Oldest first.
    pub points: Vec<TrendPoint>,
    /// Lines that are void or lack the figure, and older ones than are looked at.
    pub left_out: usize,
    pub older: usize,
    pub steps: Vec<TrendStep>,
    pub levels: Vec<TrendLevel>,
    /// In words; where nothing can be said, why.
    pub said: String,
}

fn key(l: &IndexedLine) -> String {
    let offered = l.offered_per_s.map_or(String::new(), |r| r.to_string());
    format!("{}|{}|{}|{}|{}|{offered}|{}", l.op, l.load, l.size_bytes, l.concurrency, l.workload, l.target)
}

/// What a line is called.
pub(super) fn name(l: &IndexedLine) -> String {
    let load = if l.load.is_empty() || l.load == l.op { String::new() } else { format!(" ({})", l.load) };
    let size = if l.size_bytes > 0 { format!(" {}", number::size(l.size_bytes)) } else { String::new() };
    // A plan's own name for it, where it says more than the op.
    let own =
        if l.workload.is_empty() || l.workload == l.op { String::new() } else { format!(", {}", l.workload) };
    let offered = l.offered_per_s.map_or(String::new(), |r| format!(", {}/s offered", significant(r, 4)));
    format!("{}{load}{size}, {} in flight{offered}{own}", l.op, l.concurrency)
}

/// The trend that is asked for: of the line that the query names, else of the one with most runs.
pub fn trend(history: &History, query: &HistoryQuery) -> TrendAnswer {
    let mut by_line: BTreeMap<String, Vec<&IndexedLine>> = BTreeMap::new();
    for (_, line) in history.lines_of(query) {
        by_line.entry(key(line)).or_default().push(line);
    }
    let offered = |(key, of): (&String, &Vec<&IndexedLine>)| TrendLine {
        key: key.clone(),
        name: name(of[0]),
        runs: of.len(),
    };
    let mut lines: Vec<TrendLine> = by_line.iter().map(offered).collect();
    let names: Vec<String> = lines.iter().map(|l| l.name.clone()).collect();
    for l in lines.iter_mut().filter(|l| names.iter().filter(|n| **n == l.name).count() > 1) {
        let target = by_line.get(&l.key).map_or("", |all| all[0].target.as_str());
        l.name = format!("{}, {target}", l.name);
    }
    lines.sort_by_key(|l| std::cmp::Reverse(l.runs));
    let line = query
        .line
        .clone()
        .filter(|l| by_line.contains_key(l))
        .or_else(|| lines.first().map(|l| l.key.clone()));
    lines.truncate(MOST_LINES);
    let all = line.as_ref().and_then(|l| by_line.get(l)).map_or(&[][..], Vec::as_slice);
    // Newest run first, as the history has them: the newest stay.
    let usable = all.iter().filter(|l| l.valid);
    let point = |l: &&IndexedLine| {
        let figure = figure_of(l, query.figure)?;
        Some(TrendPoint { run: l.run.clone(), started_at: l.started_at.clone(), figure })
    };
    let mut points: Vec<TrendPoint> = usable.filter_map(point).collect();
    let left_out = all.len() - points.len();
    let older = points.len().saturating_sub(trend::MOST_RUNS);
    points.truncate(trend::MOST_RUNS);
    points.reverse();
    let mut answer = TrendAnswer {
        schema: "plimsoll.trend/1",
        figure: query.figure.name(),
        lines,
        line,
        left_out,
        older,
        steps: Vec::new(),
        levels: Vec::new(),
        said: String::new(),
        points,
    };
    answer.read();
    let usable: Vec<&IndexedLine> = all.iter().copied().filter(|l| l.valid).collect();
    if let Some(differ) = labels_that_differ(&usable) {
        answer.said += &format!(" Of these runs {differ}: filter by label to see one kind.");
    }
    answer
}

impl TrendAnswer {
    fn read(&mut self) {
        let values: Vec<f64> = self.points.iter().map(|p| p.figure.value).collect();
        let reading = match trend::trend(&values) {
            Verdict::Known(reading) => reading,
            Verdict::Inconclusive(why) => {
                self.said = format!("Undetermined: {why}.");
                return;
            }
        };
        self.levels =
            reading.levels.iter().map(|&(from, to, median)| TrendLevel { from, to, median }).collect();
        let step = |c: &trend::TrendChange| TrendStep {
            at: c.at,
            run: self.points[c.at].run.clone(),
            ratio: c.ratio,
            p: c.p,
        };
        self.steps = reading.changes.iter().map(step).collect();
        let runs = counted(values.len(), "run");
        self.said = match self.steps.len() {
            0 => format!("No change of the level is proved over {runs}."),
            1 => format!("The level changed once over {runs}."),
            n => format!("The level changed {n} times over {runs}."),
        };
        self.said += " Of 100 histories without a change, 5 at most show one.";
        if reading.resembling {
            self.said +=
                " Neighbouring runs resemble each other here, so that more would: look for what they share.";
        }
    }
}
