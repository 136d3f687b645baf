//! Every slice of a run as a row.

use plimsoll_store::{Point, Quantiles, RunData};

use super::{ExportTable, HeadKind};
use crate::RunReport;
use crate::csv::number;
use crate::lines;

const HEADS: [(&str, HeadKind); 20] = [
    ("run", HeadKind::Text),
    ("stage", HeadKind::Number),
    ("workload", HeadKind::Text),
    ("op", HeadKind::Text),
    ("line", HeadKind::Number),
    ("start_s", HeadKind::Number),
    ("length_s", HeadKind::Number),
    ("in_window", HeadKind::Flag),
    ("started_ops", HeadKind::Number),
    ("ok_ops", HeadKind::Number),
    ("throttled_ops", HeadKind::Number),
    ("failed_ops", HeadKind::Number),
    ("moved_bytes", HeadKind::Number),
    ("ok_bytes", HeadKind::Number),
    ("response_mean_ns", HeadKind::Number),
    ("response_p50_ns", HeadKind::Number),
    ("response_p90_ns", HeadKind::Number),
    ("response_p99_ns", HeadKind::Number),
    ("response_p999_ns", HeadKind::Number),
    ("response_max_ns", HeadKind::Number),
];

/// A row for each slice of each series, from `data` as it was loaded: on the grid of the record (100 ms), or coarser where the run is too
/// long for that. `start_s` counts from the run's start; `line` is the place in the summary, empty for a series that it does not show.
/// Percentiles are of the slice alone: those of a longer time are no mean of them (see [`super::buckets_table`]).
pub fn slices_table(run: &RunReport, data: &RunData) -> ExportTable {
    let mut table = ExportTable::new(HEADS.map(|(h, k)| (h.to_owned(), k)).to_vec());
    let per_point = data.step_ns / data.grid_ns.max(1);
    for line in lines::of(&run.summary, &run.analysis, data) {
        let Some(stage) = data.stages.iter().find(|s| s.index == line.id.stage) else { continue };
        let workload = stage.spec.workloads.get(usize::from(line.id.workload));
        let name = workload.map(|w| w.name.clone()).unwrap_or_default();
        for (i, point) in stage.series.get(&line.id).into_iter().flatten().enumerate() {
            let at = stage.first_point + i as u64;
            let (from, to) = (at * per_point, (at + 1) * per_point);
            let inside = line.window.is_some_and(|w| w.from <= from && to <= w.to);
            let mut row = vec![
                run.summary.id.clone(),
                line.id.stage.to_string(),
                name.clone(),
                line.id.kind.name().into(),
                line.line.map_or(String::new(), |l| l.to_string()),
                seconds(at.saturating_mul(data.step_ns)),
                seconds(data.step_ns),
                inside.to_string(),
            ];
            row.extend(counts(point));
            row.extend(quantiles(point.counts.ok(), &point.response));
            table.push(row);
        }
    }
    table
}

/// Whole multiples of the grid have a few digits; a quotient of floats would not.
fn seconds(ns: u64) -> String {
    let (whole, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let text = format!("{whole}.{rest:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn counts(p: &Point) -> [String; 6] {
    let c = &p.counts;
    [c.started, c.ok(), c.throttled(), c.failed(), c.bytes_moved, c.bytes_ok].map(|n| n.to_string())
}

/// Of a slice in which nothing ended well there are none.
fn quantiles(ok: u64, q: &Quantiles) -> [String; 6] {
    if ok == 0 {
        return [const { String::new() }; 6];
    }
    let whole = [q.p50_ns, q.p90_ns, q.p99_ns, q.p999_ns, q.max_ns].map(|n| n.to_string());
    let [p50, p90, p99, p999, max] = whole;
    [number(q.mean_ns), p50, p90, p99, p999, max]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact() {
        assert_eq!(seconds(300_000_000), "0.3");
        assert_eq!(seconds(12_000_000_000), "12");
        assert_eq!(seconds(0), "0");
    }
}
