//! Falls between runs that follow each other: after how many, and how deep.

use plimsoll_model::Estimate;
use plimsoll_stats::cycles;

use super::compared::{ComparedFigure, ComparedFigures, ReplicaVerdict, less, ratio};
use super::published::{Published, PublishedCliff, printed_rate};
use crate::cells::CampaignCell;
use crate::file::Repeats;
use crate::state::CampaignState;
use crate::stop::over_runs;

/// A line of a cell, run after run. A run in which the fall happened is void as a mean, and its place is known all the same: rates are
/// here whether they may be used as a figure or not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunSeries {
    pub subject: String,
    pub workload: String,
    pub line: String,
    pub op: String,
    pub rates: Vec<Option<f64>>,
}

/// Of cells that have no instances: runs on several volumes do not follow each other.
pub(crate) fn series(cells: &[CampaignCell], state: &CampaignState) -> Vec<RunSeries> {
    let mut out = Vec::new();
    for (cell, has) in cells.iter().zip(&state.cells).filter(|(c, _)| c.instance.is_empty()) {
        let mut lines: Vec<(&str, &str)> = Vec::new();
        for f in has.runs.iter().flat_map(|r| &r.figures) {
            if !lines.iter().any(|(l, _)| *l == f.line) {
                lines.push((&f.line, &f.op));
            }
        }
        for (line, op) in lines {
            let rate = |r: &crate::figures::CellRun| {
                let f = r.figures.iter().find(|f| f.line == line)?;
                Some(f.ops_per_s.or(f.bytes_per_s)?.value)
            };
            out.push(RunSeries {
                subject: cell.subject.clone(),
                workload: cell.workload.clone(),
                line: line.to_owned(),
                op: op.to_owned(),
                rates: has.runs.iter().map(rate).collect(),
            });
        }
    }
    out
}

/// Two lines for each fall that was published, and what the phases of one run say of the moment.
pub(crate) fn cliffs(published: &Published, series: &[RunSeries]) -> (Vec<ComparedFigures>, Vec<String>) {
    let mut out = Vec::new();
    for cliff in &published.cliffs {
        let of = |s: &&RunSeries| s.subject == cliff.subject && s.workload == cliff.workload;
        let op = cliff.op.as_deref();
        let by_line = series.iter().filter(of).find(|s| op.is_none_or(|o| s.line == o));
        let ours = by_line.or_else(|| series.iter().filter(of).find(|s| op.is_some_and(|o| s.op == o)));
        out.extend(one(cliff, ours));
    }
    let mut cells: Vec<(&str, &str)> = series.iter().map(|s| (&s.subject[..], &s.workload[..])).collect();
    cells.dedup();
    let notes = cells.iter().filter_map(|(s, w)| moment(series, s, w)).collect();
    (out, notes)
}

fn one(cliff: &PublishedCliff, ours: Option<&RunSeries>) -> [ComparedFigures; 2] {
    let of = ours.map_or_else(|| cliff.op.clone().unwrap_or_default(), |s| s.line.clone());
    let line = |figure| ComparedFigures::bare(figure, &cliff.subject, &cliff.workload, &of);
    let (mut run, mut drop) = (line(ComparedFigure::CliffAfterRuns), line(ComparedFigure::CliffDrop));
    run.published_word = Some(cliff.after_run.to_string());
    let (before, then) = (printed_rate(&cliff.before), printed_rate(&cliff.then));
    drop.published = then.zip(before).map(|(t, b)| less(Estimate::exact(1.0), ratio(t, b)));
    let rates: Option<Vec<f64>> = ours.and_then(|s| s.rates.iter().copied().collect());
    let fall = rates.as_deref().and_then(cycles::fall);
    let (Some(rates), Some(fall)) = (&rates, fall) else {
        let why = match ours.map(|s| s.rates.len()) {
            None | Some(0) => "there is no run of ours".to_owned(),
            Some(n) if n < 5 => format!("{n} runs of ours: two levels take five"),
            Some(n) => format!("no fall is sure in {n} runs of ours"),
        };
        return [run, drop].map(|c| c.told(ReplicaVerdict::Inconclusive, &why));
    };
    run.our_word = Some(fall.first_after.to_string());
    run.verdict = if fall.first_after == cliff.after_run as usize {
        ReplicaVerdict::Same
    } else {
        ReplicaVerdict::Differs
    };
    let (high, low) = rates.split_at(fall.first_after);
    let level = |v: &[f64]| over_runs(&Repeats::default(), v);
    drop.ours = level(low).zip(level(high)).map(|(l, h)| less(Estimate::exact(1.0), ratio(l, h)));
    [run, drop.judge(false)]
}

/// Lines of a run follow each other: where the earlier ones fall one run later than the later ones, the moment is between them.
fn moment(series: &[RunSeries], subject: &str, workload: &str) -> Option<String> {
    let of = series.iter().filter(|s| s.subject == subject && s.workload == workload && s.op != "total");
    let falls: Vec<(&str, usize)> = of
        .filter_map(|s| {
            let rates: Option<Vec<f64>> = s.rates.iter().copied().collect();
            Some((s.line.as_str(), cycles::fall(&rates?)?.first_after))
        })
        .collect();
    let first = falls.iter().map(|(_, n)| *n).min()?;
    let named = |n: usize| {
        let list: Vec<&str> = falls.iter().filter(|(_, at)| *at == n).map(|(l, _)| *l).collect();
        list.join(", ")
    };
    let later = named(first + 1);
    let lead = format!("{subject}, {workload}");
    Some(if later.is_empty() {
        format!("{lead}: {} fall after run {first}, before those phases of run {}", named(first), first + 1)
    } else {
        format!(
            "{lead}: the fall is inside run {}: {later} of it are as before, {} are not",
            first + 1,
            named(first)
        )
    })
}
