//! How often a cell is measured. Decided once, from the spread of its first runs, and never from what differs from what: who repeats
//! until an interval is narrow (or a difference significant) stops when the spread happens to look small, and its interval holds the
//! truth less often than it says.
//!
//! Stein's two stages (1945): the first `n0` runs give a standard deviation s; `n = (2 t s / w)^2` runs give an interval of width w,
//! with t for n0 - 1 degrees of freedom, whatever the true spread is. The later runs count for the mean, s stays that of the first.

use plimsoll_model::Estimate;
use plimsoll_stats::student::t95;

use crate::file::Repeats;

/// How many runs a cell takes in all, void ones included, from what its runs measured: a series for each figure of the cell (the rate
/// of each line), with one entry for each run, `None` where it is void. `runs`: how many there were.
pub fn wanted(repeats: &Repeats, series: &[Vec<Option<f64>>], runs: u32) -> u32 {
    let Some(wide) = repeats.until_wide else { return repeats.at_least };
    let missing = series.iter().map(|line| missing(repeats, wide, line)).max().unwrap_or(0);
    runs.saturating_add(missing).clamp(repeats.at_least, repeats.at_most)
}

/// Valid runs that a line lacks. The first `at_least` of its valid runs decide, and nothing that comes after them.
fn missing(repeats: &Repeats, wide: f64, line: &[Option<f64>]) -> u32 {
    if line.iter().take(repeats.at_least as usize).all(Option::is_none) {
        // Void from the first on: that more of it would be valid nothing says.
        return 0;
    }
    let valid: Vec<f64> = line.iter().flatten().copied().collect();
    let made = valid.len() as u32;
    let needed = if made < repeats.at_least { 0 } else { runs_for(first(&valid, repeats), wide) };
    needed.max(repeats.at_least).saturating_sub(made)
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
        assert_eq!(wanted(&rule(None), &[vec![Some(1.0), Some(9.0), Some(4.0)]], 3), 5);
        assert_eq!(wanted(&rule(None), &[], 9), 5);
    }

    #[test]
    fn what_is_narrow_takes_no_more_and_what_is_wide_as_many_as_it_needs() {
        let narrow = vec![Some(100.0), Some(100.1), Some(99.9), Some(100.0), Some(100.05)];
        let wide = vec![Some(100.0), Some(110.0), Some(90.0), Some(105.0), Some(95.0)];
        assert_eq!(wanted(&rule(Some(0.03)), std::slice::from_ref(&narrow), 5), 5);
        // (2.776 x 7.906 / 1.5)^2 = 214.1
        assert_eq!(wanted(&rule(Some(0.03)), &[narrow, wide.clone()], 5), 215);
        let few = Repeats { at_most: 12, ..rule(Some(0.03)) };
        assert_eq!(wanted(&few, &[wide], 5), 12);
        assert_eq!(wanted(&rule(Some(0.03)), &[vec![None; 5]], 5), 5, "all of its runs are void");
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
                let seen = |values: &[f64]| vec![values.iter().copied().map(Some).collect::<Vec<_>>()];
                let n = wanted(&r, &seen(&values), 4).min(3000);
                values.extend((4..n).map(|_| 100.0 + sd * rng.normal()));
                assert_eq!(wanted(&r, &seen(&values), n).min(3000), n, "it is decided once");
                held += u32::from(over_runs(&r, &values).unwrap().contains(100.0));
            }
            let share = f64::from(held) / f64::from(rounds);
            assert!((0.93..0.975).contains(&share), "sd {sd}: {share}");
        }
    }

    /// Five valid runs decide, whichever of the runs they are; a void one is made up for, and changes nothing of what was decided.
    #[test]
    fn void_runs_are_made_up_for_and_decide_nothing() {
        let r = rule(Some(0.03));
        let first = [100.0, 110.0, 90.0, 105.0, 95.0].map(Some);
        let mut seen = vec![first[0], None, first[1], first[2], first[3]];
        assert_eq!(wanted(&r, &[seen.clone()], 5), 6, "four of five runs are valid");
        seen.push(first[4]);
        assert_eq!(wanted(&r, &[seen.clone()], 6), 216, "215 valid ones, and the void one");
        // What comes later, void or far off, leaves the number of valid ones as it is.
        seen.extend([Some(900.0), None, Some(1.0), Some(400.0)]);
        assert_eq!(wanted(&r, &[seen.clone()], 10), 217);
        assert_eq!(wanted(&Repeats { at_most: 12, ..r }, &[seen], 10), 12, "no more than at_most in all");
    }

    /// Nothing is known of a line that none of the first runs had a figure for: it asks for no more.
    #[test]
    fn a_line_that_is_void_throughout_asks_for_no_more() {
        let r = rule(Some(0.03));
        let narrow = vec![Some(100.0), Some(100.1), Some(99.9), Some(100.0), Some(100.05)];
        assert_eq!(wanted(&r, &[narrow.clone(), vec![None; 5]], 5), 5);
        assert_eq!(wanted(&r, &[vec![None; 2]], 2), 5);
        let once = vec![None, Some(100.0), None, None, None];
        assert_eq!(wanted(&r, &[narrow, once], 5), 9, "four valid ones are missing of the second line");
    }

    #[test]
    fn a_single_run_has_no_interval_over_runs() {
        let one = over_runs(&rule(None), &[7.0]).unwrap();
        assert!(one.value == 7.0 && one.low == f64::NEG_INFINITY && one.high == f64::INFINITY);
        assert_eq!(over_runs(&rule(None), &[]), None);
    }
}
