//! How often a cell is measured. Decided once, from the spread of its first runs, and never from what differs from what: who repeats
//! until an interval is narrow (or a difference significant) stops when the spread happens to look small, and its interval holds the
//! truth less often than it says.
//!
//! Stein's two stages (1945): the first `n0` runs give a standard deviation s; `n = (2 t s / w)^2` runs give an interval of width w,
//! with t for n0 - 1 degrees of freedom, whatever the true spread is. The later runs count for the mean, s stays that of the first.

use plimsoll_model::Estimate;
use plimsoll_stats::student::t95;

use crate::file::Repeats;

/// How many runs a cell takes, from what its first runs measured: a series for each figure of the cell (op/s of each line), of those
/// runs that are valid. `runs`: how many there were, void ones included.
pub fn wanted(repeats: &Repeats, series: &[Vec<f64>], runs: u32) -> u32 {
    let Some(wide) = repeats.until_wide else { return repeats.at_least };
    if runs < repeats.at_least {
        return repeats.at_least;
    }
    let needed = series.iter().map(|values| runs_for(first(values, repeats), wide)).max().unwrap_or(0);
    needed.clamp(repeats.at_least, repeats.at_most)
}

/// Those of the first stage.
fn first<'a>(values: &'a [f64], repeats: &Repeats) -> &'a [f64] {
    &values[..values.len().min(repeats.at_least as usize)]
}

/// Runs that an interval of this width (of the mean) takes, by Stein. Of a single one, or around zero, none can be told: 0.
fn runs_for(pilot: &[f64], wide: f64) -> u32 {
    let Some((mean, sd)) = mean_and_sd(pilot) else { return 0 };
    if mean == 0.0 {
        return 0;
    }
    let half = wide * mean.abs() / 2.0;
    let n = (t95(pilot.len() as f64 - 1.0) * sd / half).powi(2).ceil();
    if n.is_finite() { n.min(f64::from(u32::MAX)) as u32 } else { 0 }
}

/// Mean of all runs with its interval. Where how many there are was decided from the first, the spread is that of the first.
/// `None` without a run; of a single one the ends are not bounded.
pub fn over_runs(repeats: &Repeats, values: &[f64]) -> Option<Estimate> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let decided = repeats.until_wide.is_some() && values.len() > repeats.at_least as usize;
    let spread = if decided { first(values, repeats) } else { values };
    let n = values.len() as f64;
    let Some((_, sd)) = mean_and_sd(spread) else {
        return Some(Estimate::symmetric(mean, f64::INFINITY, n));
    };
    Some(Estimate::symmetric(mean, t95(spread.len() as f64 - 1.0) * sd / n.sqrt(), n))
}

/// Mean, and standard deviation (n - 1); `None` of fewer than two.
pub fn mean_and_sd(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let sum: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Some((mean, (sum / (n - 1.0)).sqrt()))
}

#[cfg(test)]
mod tests {
    use plimsoll_stats::rng::Rng;

    use super::*;

    fn rule(until_wide: Option<f64>) -> Repeats {
        Repeats { at_least: 5, until_wide, at_most: 400 }
    }

    #[test]
    fn without_a_width_it_is_as_often_as_asked() {
        assert_eq!(wanted(&rule(None), &[vec![1.0, 9.0, 4.0]], 3), 5);
        assert_eq!(wanted(&rule(None), &[], 9), 5);
    }

    #[test]
    fn what_is_narrow_takes_no_more_and_what_is_wide_as_many_as_it_needs() {
        let narrow = vec![100.0, 100.1, 99.9, 100.0, 100.05];
        let wide = vec![100.0, 110.0, 90.0, 105.0, 95.0];
        assert_eq!(wanted(&rule(Some(0.03)), std::slice::from_ref(&narrow), 5), 5);
        // (2.776 x 7.906 / 1.5)^2 = 214.1
        assert_eq!(wanted(&rule(Some(0.03)), &[narrow, wide.clone()], 5), 215);
        let few = Repeats { at_most: 12, ..rule(Some(0.03)) };
        assert_eq!(wanted(&few, &[wide], 5), 12);
        assert_eq!(wanted(&rule(Some(0.03)), &[vec![]], 5), 5, "all of its runs are void");
    }

    /// What it says of itself: 95 of 100 intervals hold the truth, whatever the spread, and none is wider than was asked for.
    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        for (seed, sd) in [(1, 1.0), (2, 4.0), (3, 10.0)] {
            let mut rng = Rng::new(seed);
            let r = Repeats { at_least: 4, until_wide: Some(0.08), at_most: 100_000 };
            let (mut held, rounds) = (0, 1500);
            for _ in 0..rounds {
                let mut values: Vec<f64> = (0..4).map(|_| 100.0 + sd * rng.normal()).collect();
                let n = wanted(&r, std::slice::from_ref(&values), 4).min(3000);
                values.extend((4..n).map(|_| 100.0 + sd * rng.normal()));
                assert_eq!(wanted(&r, std::slice::from_ref(&values), n).min(3000), n, "it is decided once");
                held += u32::from(over_runs(&r, &values).unwrap().contains(100.0));
            }
            let share = f64::from(held) / f64::from(rounds);
            assert!((0.93..0.975).contains(&share), "sd {sd}: {share}");
        }
    }

    #[test]
    fn a_single_run_has_no_interval_over_runs() {
        let one = over_runs(&rule(None), &[7.0]).unwrap();
        assert!(one.value == 7.0 && one.low == f64::NEG_INFINITY && one.high == f64::INFINITY);
        assert_eq!(over_runs(&rule(None), &[]), None);
    }
}
