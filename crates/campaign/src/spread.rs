//! How far figures of one line lie apart: over runs, between instances. A series for each instance, with a figure for each valid run.

use plimsoll_model::Estimate;
use plimsoll_stats::words::is_boundless;

use crate::figures::CellFigure;
use crate::file::Repeats;
use crate::result::IntervalOf;
use crate::stop::{mean_and_sd, over_runs};

pub(crate) fn count(series: &[Vec<Estimate>]) -> u32 {
    series.iter().map(Vec::len).sum::<usize>() as u32
}

/// Rounds of a run from which on its interval is over them, and not of the time within each.
const LEAST_ROUNDS: usize = 3;

/// `None` without a bounded interval: single figures of other tools have none. `rounds`: how often a run measured each of its lines.
pub(crate) fn interval_of(
    series: &[Vec<Estimate>],
    rate: Option<Estimate>,
    rounds: usize,
) -> Option<IntervalOf> {
    rate.filter(|e| e.half_width().is_finite() && !is_boundless(e))?;
    Some(match (series.iter().filter(|v| !v.is_empty()).count(), count(series)) {
        (k, _) if k > 1 => IntervalOf::Instances,
        (_, n) if n > 1 => IntervalOf::Runs,
        _ if rounds >= LEAST_ROUNDS => IntervalOf::Rounds,
        _ => IntervalOf::OneRun,
    })
}

/// What one op in the window is on the mean of these runs, as a rate of ops and as one of payload; 0 where that is not known.
pub(crate) fn one_op<'a>(figures: impl Iterator<Item = &'a CellFigure>) -> (f64, f64) {
    let known: Vec<(f64, f64)> = figures.filter_map(CellFigure::one_op).collect();
    let sum = known.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let n = known.len().max(1) as f64;
    (sum.0 / n, sum.1 / n)
}

/// A rate out of a count is known to one op in its window: the ends of the window may hold one more or one less. Repeats that lie to the
/// load alike have the same count, and their spread does not show it; so it is no part of that spread, and does not shrink with their
/// number. A rate is never below zero for it.
pub(crate) fn counted(e: Estimate, one_op: f64) -> Estimate {
    let low = e.value - (e.value - e.low).hypot(one_op);
    let low = if e.low >= 0.0 { low.max(0.0) } else { low };
    Estimate { low, high: e.value + (e.high - e.value).hypot(one_op), ..e }
}

/// Width over value, where it is more than was asked for of intervals over runs.
pub(crate) fn wider(asked: f64, e: Estimate, of: Option<IntervalOf>) -> Option<f64> {
    let is_over_runs = matches!(of, Some(IntervalOf::Runs | IntervalOf::Instances));
    let wide = (e.high - e.low) / e.value.abs();
    (is_over_runs && wide.is_finite() && wide > asked).then_some(wide)
}

/// Of several instances the interval between them; else that over the runs; of a single run the one within it.
pub(crate) fn together(repeats: &Repeats, per_instance: &[Vec<Estimate>]) -> Option<Estimate> {
    let filled: Vec<Vec<f64>> =
        per_instance.iter().filter(|v| !v.is_empty()).map(|v| v.iter().map(|e| e.value).collect()).collect();
    match &filled[..] {
        [] => None,
        [one] if one.len() == 1 => per_instance.iter().flatten().next().copied(),
        [one] => over_runs(repeats, one),
        many => {
            let means: Vec<f64> = many.iter().map(|v| v.iter().sum::<f64>() / v.len() as f64).collect();
            // How many instances there are nobody decided from what was seen.
            over_runs(&Repeats { until_wide: None, ..*repeats }, &means)
        }
    }
}

/// Pooled over the instances.
pub(crate) fn sd_within(ops: &[Vec<Estimate>]) -> Option<f64> {
    let (mut squares, mut free) = (0.0, 0.0);
    for v in ops {
        let values: Vec<f64> = v.iter().map(|e| e.value).collect();
        if let Some((_, sd)) = mean_and_sd(&values) {
            let df = values.len() as f64 - 1.0;
            squares += sd * sd * df;
            free += df;
        }
    }
    (free > 0.0).then(|| (squares / free).sqrt())
}

pub(crate) fn sd_between(ops: &[Vec<Estimate>]) -> Option<f64> {
    let mean = |v: &Vec<Estimate>| v.iter().map(|e| e.value).sum::<f64>() / v.len() as f64;
    let means: Vec<f64> = ops.iter().filter(|v| !v.is_empty()).map(mean).collect();
    mean_and_sd(&means).map(|(_, sd)| sd)
}

/// Of an even number the middle between the two in the middle.
pub(crate) fn median(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut all: Vec<u64> = values.collect();
    all.sort_unstable();
    let upper = *all.get(all.len() / 2)?;
    Some(if all.len().is_multiple_of(2) { all[all.len() / 2 - 1].midpoint(upper) } else { upper })
}
