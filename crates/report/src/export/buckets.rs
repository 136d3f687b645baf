//! Latencies of a line as counts in buckets: these can be added up over lines, runs and time, which percentiles cannot.

use plimsoll_model::{Histogram, Series};
use plimsoll_store::{RunDir, StoreError, Window};

use super::{ExportTable, HeadKind};
use crate::RunReport;
use crate::lines::Line;

/// Upper bounds, nanoseconds: 1, 2 and 5 of each decade from 1 µs to 100 s. They never change, so that buckets of different runs fit.
pub const BUCKET_BOUNDS_NS: [u64; 25] = {
    let mut bounds = [0; 25];
    let (mut i, mut decade) = (0, 1_000);
    while i < 25 {
        bounds[i] = decade * [1, 2, 5][i % 3];
        if i % 3 == 2 {
            decade *= 10;
        }
        i += 1;
    }
    bounds
};

/// Latencies of one line by one clock, all its measured windows merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineBuckets {
    /// Index into the summary's workloads.
    pub line: usize,
    /// `response`, `service` or `ttfb`.
    pub clock: &'static str,
    /// Ops that took no longer than each bound of [`BUCKET_BOUNDS_NS`], in its order: each holds those before it. The histogram has three
    /// digits: an op within 0.1 % of a bound may be on its other side.
    pub at_most: [u64; BUCKET_BOUNDS_NS.len()],
    /// All ops: those beyond the last bound, too.
    pub count: u64,
    /// Sum of all times, nanoseconds; exact.
    pub sum_ns: u128,
}

impl LineBuckets {
    fn of(line: usize, clock: &'static str, h: &Histogram) -> Option<Self> {
        let at_most = BUCKET_BOUNDS_NS.map(|bound| {
            let below = h.buckets().filter(|(low, high, _)| low + (high - low) / 2 <= bound);
            below.map(|(_, _, n)| n).sum()
        });
        (!h.is_empty()).then(|| Self { line, clock, at_most, count: h.count(), sum_ns: h.sum_ns() })
    }
}

/// Of every line whose windows are on record; of imported figures and of a run without its raw data there are none.
pub fn line_buckets(dir: &RunDir, run: &RunReport) -> Result<Vec<LineBuckets>, StoreError> {
    let Some(series) = &run.series else { return Ok(Vec::new()) };
    let mut windows: Vec<Window> = series.lines.iter().filter_map(|l| l.window).collect();
    windows.sort_by_key(|w| (w.stage, w.from, w.to));
    windows.dedup();
    let totals = dir.totals(&windows, 0)?;
    let mut out = Vec::new();
    for line in 0..run.summary.workloads.len() {
        let of_line = |l: &&Line| l.line == Some(line);
        let parts = series.lines.iter().filter(of_line).filter_map(|l| {
            let total = totals.iter().find(|t| Some(t.window) == l.window)?;
            total.get(l.id)
        });
        let merged = parts.cloned().reduce(|mut all: Series, mut more| {
            more.id = all.id;
            all.merge(&more);
            all
        });
        let Some(s) = merged else { continue };
        out.extend(LineBuckets::of(line, "response", &s.response));
        out.extend(s.service.as_ref().and_then(|h| LineBuckets::of(line, "service", h)));
        out.extend(s.first_byte.as_ref().and_then(|h| LineBuckets::of(line, "ttfb", h)));
    }
    Ok(out)
}

/// A row for each bucket: how many ops took no longer than `le_ns`. The last of each line has no bound and holds them all.
pub fn buckets_table(dir: &RunDir, run: &RunReport) -> Result<ExportTable, StoreError> {
    let heads = [
        ("run", HeadKind::Text),
        ("line", HeadKind::Number),
        ("workload", HeadKind::Text),
        ("op", HeadKind::Text),
        ("clock", HeadKind::Text),
        ("le_ns", HeadKind::Number),
        ("count", HeadKind::Number),
    ];
    let mut table = ExportTable::new(heads.map(|(h, k)| (h.to_owned(), k)).to_vec());
    for b in line_buckets(dir, run)? {
        let w = &run.summary.workloads[b.line];
        let bounds = BUCKET_BOUNDS_NS.iter().map(u64::to_string).chain([String::new()]);
        for (bound, count) in bounds.zip(b.at_most.iter().chain([&b.count])) {
            table.push(vec![
                run.summary.id.clone(),
                b.line.to_string(),
                w.name.clone(),
                w.op.clone(),
                b.clock.into(),
                bound,
                count.to_string(),
            ]);
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_decades() {
        assert_eq!(BUCKET_BOUNDS_NS[..4], [1_000, 2_000, 5_000, 10_000]);
        assert_eq!(BUCKET_BOUNDS_NS[24], 100_000_000_000);
        assert!(BUCKET_BOUNDS_NS.is_sorted());
    }

    #[test]
    fn every_op_is_in_a_bucket_and_in_those_above() {
        let mut h = Histogram::new();
        for ns in [900, 1_500, 40_000, 3_000_000, 250_000_000_000] {
            h.record(ns);
        }
        let b = LineBuckets::of(0, "response", &h).unwrap();
        assert!(b.at_most.is_sorted());
        let at_most = |ns: u64| b.at_most[BUCKET_BOUNDS_NS.iter().position(|b| *b == ns).unwrap()];
        assert_eq!((at_most(1_000), at_most(2_000), at_most(50_000), at_most(2_000_000)), (1, 2, 3, 3));
        assert_eq!((at_most(5_000_000), at_most(100_000_000_000), b.count), (4, 4, 5));
    }
}
