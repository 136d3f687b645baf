//! How a run's rate went over its measured time, for a small drawing beside it in a list.

use std::ops::Range;

use plimsoll_model::analysis::LineSpan;
use plimsoll_model::{RunSummary, SeriesId};
use plimsoll_store::RunDir;
use serde::{Deserialize, Serialize};

/// As many as a drawing of an inch shows.
const MOST_POINTS: usize = 32;
/// Fewer are no course.
const LEAST_POINTS: usize = 4;
/// Bytes of interval files, compressed: what has more takes seconds to read, and is left to the run's own report.
const MOST_BYTES: u64 = 256 << 20;

/// The rate of a run's main line over its measured time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunCourse {
    /// Place of the line in the summary, from 0.
    pub line: usize,
    /// Length of the time, seconds. Of several repeats it is the longest.
    pub seconds: f64,
    /// Ops a second that ended well, in equal parts of it, to four digits.
    pub ops_per_s: Vec<f64>,
}

impl RunCourse {
    /// Reads it. `None`: the run has no rate, or was not measured long enough, or what it is of cannot be read.
    pub fn of(dir: &RunDir) -> Option<Self> {
        let files = dir.interval_files().ok()?;
        let bytes = files.iter().filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum::<u64>();
        if bytes > MOST_BYTES {
            return None;
        }
        let (summary, analysis) = (dir.summary().ok()?, dir.analysis().ok()?);
        let line = main_line(&summary)?;
        let parts = parts_of(&summary, line);
        let mine = || analysis.spans.iter().filter(|s| parts.contains(&s.line));
        // The first of the longest.
        let span = mine().rev().max_by(|a, b| length(a).total_cmp(&length(b)))?;
        let here = mine().filter(|s| s.stage == span.stage && s.workload == span.workload);
        let series: Vec<SeriesId> =
            here.map(|s| SeriesId { stage: s.stage, workload: s.workload, kind: s.kind }).collect();
        let between_s = between(span);
        let rates = dir.rates(&series, between_s, MOST_POINTS).ok()??;
        let seconds = between_s.1 - between_s.0;
        (rates.len() >= LEAST_POINTS).then(|| Self {
            line,
            seconds,
            ops_per_s: rates.into_iter().map(four_digits).collect(),
        })
    }
}

/// The measured window; that of a stage which was taken with the slices at its edges reaches beyond it.
fn between(s: &LineSpan) -> (f64, f64) {
    (s.window_start_s.max(s.start_s), s.window_end_s.min(s.end_s))
}

fn length(s: &LineSpan) -> f64 {
    let (from, to) = between(s);
    to - from
}

/// All ops of a mix together, else the first line; one that has a rate.
fn main_line(summary: &RunSummary) -> Option<usize> {
    let has_rate = |i: &usize| {
        let w = &summary.workloads[*i];
        w.together == 0 && w.ops_per_s.is_some()
    };
    let mut all = (0..summary.workloads.len()).filter(has_rate);
    let total = all.clone().find(|i| summary.workloads[*i].op == "total");
    total.or_else(|| all.next())
}

/// The lines that a line is the sum of: the kinds of a mix come right before their total. Of any other line itself.
fn parts_of(summary: &RunSummary, line: usize) -> Range<usize> {
    let all = &summary.workloads;
    if all[line].op != "total" {
        return line..line + 1;
    }
    let is_part =
        |i: &usize| all[*i].op != "total" && all[*i].together == 0 && all[*i].name == all[line].name;
    let first = (0..line).rev().take_while(is_part).last().unwrap_or(line);
    first..line
}

fn four_digits(v: f64) -> f64 {
    format!("{v:.3e}").parse().unwrap_or(v)
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Estimate;
    use plimsoll_model::summary::WorkloadSummary;

    use super::*;

    fn summary(lines: &[(&str, &str, bool)]) -> RunSummary {
        let line = |(name, op, has_rate): &(&str, &str, bool)| WorkloadSummary {
            name: (*name).into(),
            op: (*op).into(),
            ops_per_s: has_rate.then(|| Estimate::symmetric(1.0, 0.1, 20.0)),
            ..WorkloadSummary::default()
        };
        RunSummary { workloads: lines.iter().map(line).collect(), ..RunSummary::default() }
    }

    #[test]
    fn the_main_line_is_the_sum_of_a_mix_or_the_first_with_a_rate() {
        let one = summary(&[("a", "put", false), ("b", "get", true), ("c", "get", true)]);
        assert_eq!((main_line(&one), parts_of(&one, 1)), (Some(1), 1..2));
        let mix = summary(&[
            ("a", "put", true),
            ("a", "total", true),
            ("b", "put", true),
            ("b", "get", true),
            ("b", "total", true),
        ]);
        assert_eq!((main_line(&mix), parts_of(&mix, 1), parts_of(&mix, 4)), (Some(1), 0..1, 2..4));
        assert_eq!(main_line(&summary(&[("a", "put", false)])), None);
        assert_eq!(main_line(&summary(&[])), None);
    }

    #[test]
    fn figures_are_short() {
        assert_eq!([0.0, 12.3456, 98765.4, 1e-9].map(four_digits), [0.0, 12.35, 98770.0, 1e-9]);
    }
}
