//! Cumulative work of the stages that emptied a bucket, straight from the series: the picture behind a limit's
//! capacity, where the analysis brought none.

use plimsoll_model::analysis::{BucketFit, Drain};
use plimsoll_model::summary::BucketSummary;
use plimsoll_model::{OpKind, RunSummary};
use plimsoll_store::StageData;

use crate::number::round4;
use crate::run::RunSeries;

/// A stage drains a bucket when it begins faster than this multiple of the sustained rate.
const ABOVE: f64 = 1.15;

/// One fit per limiter of the summary, with the drains that show it.
pub fn of(summary: &RunSummary, series: &RunSeries) -> Vec<BucketFit> {
    let mut out = Vec::new();
    for l in &summary.limits {
        for (unit, bucket) in [("ops", &l.ops_per_s), ("bytes", &l.bytes_per_s)] {
            let Some(b) = bucket else { continue };
            let fit = fit(l.op_class.as_str(), unit, b, series);
            out.extend(fit.map(|f| BucketFit { target: l.target.clone(), ..f }));
        }
    }
    out
}

fn fit(op_class: &str, unit: &str, b: &BucketSummary, series: &RunSeries) -> Option<BucketFit> {
    let sustained = b.sustained.filter(|s| s.value > 0.0)?;
    let kind = OpKind::parse(op_class);
    let bytes = unit == "bytes";
    let stages = series.data.stages.iter().filter(|s| s.void.is_none());
    let drains: Vec<Drain> =
        stages.filter_map(|s| drain(s, kind, bytes, sustained.value, series.data.step_ns)).collect();
    (!drains.is_empty()).then(|| BucketFit {
        op_class: op_class.into(),
        unit: unit.into(),
        sustained_per_s: Some(sustained),
        burst_per_s: b.burst,
        capacity: b.capacity,
        refill_per_s: b.refill,
        drains,
        ..BucketFit::default()
    })
}

/// `None` when the stage was never faster than the sustained rate.
fn drain(s: &StageData, kind: Option<OpKind>, bytes: bool, sustained: f64, step_ns: u64) -> Option<Drain> {
    let ids = s.series.keys().copied().filter(|id| kind.is_none_or(|k| k == id.kind));
    let work = s.counts(ids, step_ns, 0, u64::MAX);
    let start_s = s.start_ns as f64 / 1e9;
    let end_of = |i: usize| ((s.first_point + i as u64 + 1) * step_ns) as f64 / 1e9 - start_s;
    let mut done = 0.0;
    let mut curve = vec![(0.0, 0.0)];
    // The last step is rarely whole: its work belongs to less time than its end says.
    for (i, c) in work.iter().enumerate().take(work.len().saturating_sub(1)) {
        done += if bytes { c.bytes_ok } else { c.ok() } as f64;
        if end_of(i) > 0.0 {
            curve.push((round4(end_of(i)), round4(done)));
        }
    }
    // The first step may be cut short by the stage's start; the mean to the end of the second tells.
    let (t, a) = *curve.get(2)?;
    (a > ABOVE * sustained * t).then(|| Drain { start_s: round4(start_s), work: curve, cliff_s: None })
}
