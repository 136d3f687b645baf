//! Falls between runs that follow each other: after how many, and how deep.

use plimsoll_model::Estimate;
use plimsoll_model::count::counted;
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

/// Of cells that have no instances: runs on several volumes do not follow each other. Where a run goes round several times itself, as the
/// file benchmark does, its rounds are what follows each other, and each run has a series of its own.
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
            let of = |rates| RunSeries {
                subject: cell.subject.clone(),
                workload: cell.workload.clone(),
                line: line.to_owned(),
                op: op.to_owned(),
                rates,
            };
            let own =
                has.runs.iter().flat_map(|r| &r.figures).filter(|f| f.line == line && !f.each.is_empty());
            let rounds: Vec<RunSeries> = own.map(|f| of(f.each.iter().map(|v| Some(*v)).collect())).collect();
            if !rounds.is_empty() {
                out.extend(rounds);
                continue;
            }
            let rate = |r: &crate::figures::CellRun| {
                let f = r.figures.iter().find(|f| f.line == line)?;
                Some(f.ops_per_s.or(f.bytes_per_s)?.value)
            };
            out.push(of(has.runs.iter().map(rate).collect()));
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
        let first = by_line.or_else(|| series.iter().filter(of).find(|s| op.is_some_and(|o| s.op == o)));
        let line = first.map(|f| &f.line);
        let ours: Vec<&RunSeries> = series.iter().filter(of).filter(|s| Some(&s.line) == line).collect();
        out.extend(one(cliff, &ours));
    }
    let mut cells: Vec<(&str, &str)> = series.iter().map(|s| (&s.subject[..], &s.workload[..])).collect();
    cells.dedup();
    let notes = cells.iter().filter_map(|(s, w)| moment(series, s, w)).collect();
    (out, notes)
}

fn one(cliff: &PublishedCliff, ours: &[&RunSeries]) -> [ComparedFigures; 2] {
    let of = ours.first().map_or_else(|| cliff.op.clone().unwrap_or_default(), |s| s.line.clone());
    let line = |figure| ComparedFigures::bare(figure, &cliff.subject, &cliff.workload, &of);
    let (mut run, mut drop) = (line(ComparedFigure::CliffAfterRuns), line(ComparedFigure::CliffDrop));
    run.published_word = Some(cliff.after_run.to_string());
    let (before, then) = (printed_rate(&cliff.before), printed_rate(&cliff.then));
    drop.published = then.zip(before).map(|(t, b)| less(Estimate::exact(1.0), ratio(t, b)));
    let known: Vec<Vec<f64>> =
        ours.iter().filter_map(|s| s.rates.iter().copied().collect::<Option<_>>()).collect();
    let falls: Vec<(usize, &[f64])> =
        known.iter().filter_map(|r| Some((cycles::fall(r)?.first_after, &r[..]))).collect();
    if falls.is_empty() || falls.len() < ours.len() {
        let why = match ours.iter().map(|s| s.rates.len()).max() {
            None | Some(0) => "there is no run of ours".to_owned(),
            Some(n) if n < 5 => format!("{} of ours: two levels take five", counted(n, "run")),
            Some(n) if ours.len() == 1 => format!("no fall is sure in {n} runs of ours"),
            Some(n) => format!("a fall is sure in {} of {} times {n} runs of ours", falls.len(), ours.len()),
        };
        return [run, drop].map(|c| c.told(ReplicaVerdict::Inconclusive, &why));
    }
    let (least, most) = falls.iter().fold((usize::MAX, 0), |(l, m), f| (l.min(f.0), m.max(f.0)));
    if least == most {
        run.our_word = Some(least.to_string());
        let is_same = least == cliff.after_run as usize;
        run.verdict = if is_same { ReplicaVerdict::Same } else { ReplicaVerdict::Differs };
    } else {
        run.our_word = Some(format!("{least} to {most}"));
        run = run.told(ReplicaVerdict::Inconclusive, "ours do not all fall after as many runs");
    }
    let level = |v: Vec<f64>| over_runs(&Repeats::default(), &v);
    let high = level(falls.iter().flat_map(|(at, r)| r[..*at].to_vec()).collect());
    let low = level(falls.iter().flat_map(|(at, r)| r[*at..].to_vec()).collect());
    drop.ours = low.zip(high).map(|(l, h)| less(Estimate::exact(1.0), ratio(l, h)));
    [run, drop.judge(false)]
}

/// Lines of a run follow each other: where the earlier ones fall one run later than the later ones, the moment is between them.
fn moment(series: &[RunSeries], subject: &str, workload: &str) -> Option<String> {
    let mut of: Vec<&RunSeries> =
        series.iter().filter(|s| s.subject == subject && s.workload == workload && s.op != "total").collect();
    // Of several runs that go round by themselves, the first.
    let mut seen = Vec::new();
    of.retain(|s| {
        !seen.contains(&&s.line) && {
            seen.push(&s.line);
            true
        }
    });
    let of = of.into_iter();
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
