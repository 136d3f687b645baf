//! One figure of one configuration, run after run: where its level changed, and where nothing is proved to have changed.
//!
//! A permutation test of the largest rank sum over all places (Pettitt 1979, its distribution by permutation instead of by its limit): if
//! nothing changed, runs could have come in any order, so the share of orders that look as split as this one is the p-value, whatever the
//! noise is distributed like. Ranks, so that one odd run does not hide a step. Parts on both sides of a change are looked at again, each
//! with its share of the 5 % by length, so that the whole series has one false change in at most 5 of 100 histories without any.
//! Runs that resemble their neighbours (a time of day, a warm cache) are not exchangeable; that is told ([`TrendReading::resembling`]).

use plimsoll_model::{Estimate, Verdict};

use crate::compare;
use crate::math;
use crate::rng::Rng;

/// Fewer runs have too few orders to tell anything by. 8 in two halves: 2 of 70 orders look as split as a perfect step.
pub const LEAST_RUNS: usize = 8;
/// More are not looked at: the newest are. A choice: what an order costs times the orders.
pub const MOST_RUNS: usize = 500;
/// Chance of a change that is none, over the whole series. Convention.
const ALPHA: f64 = 0.05;
/// Orders that are drawn. The smallest p is one in a thousand.
const ORDERS: usize = 999;
/// Runs on each side of a change, at least: a level of two has no spread worth the name.
const LEAST_SIDE: usize = 3;
/// Sums in another order differ by so much.
const LAST_DIGITS: f64 = 1e-12;
/// Lag-1 correlation of what is left beside the levels, in standard errors, from which on neighbours are said to resemble each other.
const RESEMBLING: f64 = 2.0;

/// The level changed here.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrendChange {
    /// First run of the new level.
    pub at: usize,
    /// New level over the old one; null where a level has runs without a positive figure. The place of the change was found in the same
    /// runs, so the interval is a little too narrow where the step is not clear.
    pub ratio: Option<Estimate>,
    /// Share of orders that look as split.
    pub p: f64,
}

/// What a series of runs says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct TrendReading {
    /// In order of the runs.
    pub changes: Vec<TrendChange>,
    /// Levels, each `start..end` with its median.
    pub levels: Vec<(usize, usize, f64)>,
    /// Neighbouring runs resemble each other beyond their levels: changes are found more often than the test says.
    pub resembling: bool,
}

/// Where the level of `values` changed, in the order of time.
pub fn trend(values: &[f64]) -> Verdict<TrendReading> {
    let n = values.len();
    if n < LEAST_RUNS {
        let runs = if n == 1 { "run" } else { "runs" };
        return Verdict::Inconclusive(format!(
            "{n} {runs}: a change cannot be told from noise with fewer than {LEAST_RUNS}"
        ));
    }
    if n > MOST_RUNS {
        return Verdict::Inconclusive(format!("{n} runs: no more than {MOST_RUNS} are looked at at once"));
    }
    if values.iter().any(|v| !v.is_finite()) {
        return Verdict::Inconclusive("a run has no figure".into());
    }
    let mut found = Vec::new();
    split(values, 0, ALPHA, &mut found);
    found.sort_by_key(|c: &(usize, f64)| c.0);
    let edges: Vec<usize> = std::iter::once(0).chain(found.iter().map(|c| c.0)).chain([n]).collect();
    let levels: Vec<(usize, usize, f64)> =
        edges.windows(2).map(|w| (w[0], w[1], math::median(&values[w[0]..w[1]]))).collect();
    let change = |(i, &(at, p)): (usize, &(usize, f64))| {
        let (old, new) = (&values[edges[i]..at], &values[at..edges[i + 2]]);
        TrendChange { at, ratio: compare::compare(new, old, false).known().map(|c| c.ratio), p }
    };
    Verdict::Known(TrendReading {
        changes: found.iter().enumerate().map(change).collect(),
        resembling: is_resembling(values, &levels),
        levels,
    })
}

/// Splits `values`, which begin at run `from`, for as long as the parts are proved to differ.
fn split(values: &[f64], from: usize, alpha: f64, found: &mut Vec<(usize, f64)>) {
    if values.len() < 2 * LEAST_SIDE {
        return;
    }
    let ranks = ranks(values);
    let Some(p) = chance(&ranks, most_split(&ranks), alpha, from) else { return };
    let at = place(values);
    found.push((from + at, p));
    let share = |part: usize| alpha * part as f64 / values.len() as f64;
    split(&values[..at], from, share(at), found);
    split(&values[at..], from + at, share(values.len() - at), found);
}

/// Ranks about their mean; equals share theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut out = vec![0.0; values.len()];
    let middle = (values.len() - 1) as f64 / 2.0;
    let mut i = 0;
    while i < order.len() {
        let mut j = i;
        while j + 1 < order.len() && values[order[j + 1]] == values[order[i]] {
            j += 1;
        }
        order[i..=j].iter().for_each(|&k| out[k] = (i + j) as f64 / 2.0 - middle);
        i = j + 1;
    }
    out
}

/// How much the place that splits most does so: the sum of the ranks before it, by its spread where all orders are alike.
fn most_split(ranks: &[f64]) -> f64 {
    let n = ranks.len();
    let (mut sum, mut best) = (0.0, 0.0f64);
    for k in 1..=n - LEAST_SIDE {
        sum += ranks[k - 1];
        if k >= LEAST_SIDE {
            best = best.max(f64::abs(sum) / (k as f64 * (n - k) as f64).sqrt());
        }
    }
    best
}

/// Where two levels fit best: least absolute deviations from two medians, of logarithms where there are any. Ranks would draw a change near
/// an end towards the middle, for within the longer part they spread as far as between the parts.
fn place(values: &[f64]) -> usize {
    let logs = values.iter().all(|v| *v > 0.0);
    let y: Vec<f64> = values.iter().map(|v| if logs { v.ln() } else { *v }).collect();
    let off = |part: &[f64]| {
        let middle = math::median(part);
        part.iter().map(|v| (v - middle).abs()).sum::<f64>()
    };
    let cost = |k: &usize| off(&y[..*k]) + off(&y[*k..]);
    let costs: Vec<f64> = (LEAST_SIDE..=y.len() - LEAST_SIDE).map(|k| cost(&k)).collect();
    let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
    // Of places that fit alike the first, and not the one that the last digit of a sum makes of them.
    LEAST_SIDE + costs.iter().position(|c| *c <= least * (1.0 + LAST_DIGITS)).unwrap_or(0)
}

/// Share of orders as split as this one; `None`: more than `alpha`. The seed is fixed: the same runs say the same.
fn chance(ranks: &[f64], seen: f64, alpha: f64, seed: usize) -> Option<f64> {
    let all = (ORDERS + 1) as f64;
    let mut rng = Rng::new(1 + seed as u64);
    let mut order = ranks.to_vec();
    let mut as_split = 1;
    for _ in 0..ORDERS {
        for i in (1..order.len()).rev() {
            order.swap(i, rng.below(i + 1));
        }
        as_split += usize::from(most_split(&order) >= seen * (1.0 - LAST_DIGITS));
        if as_split as f64 > alpha * all {
            return None;
        }
    }
    Some(as_split as f64 / all)
}

fn is_resembling(values: &[f64], levels: &[(usize, usize, f64)]) -> bool {
    let left: Vec<f64> =
        levels.iter().flat_map(|&(a, b, level)| values[a..b].iter().map(move |v| v - level)).collect();
    let ranks = ranks(&left);
    let all: f64 = ranks.iter().map(|r| r * r).sum();
    let lag: f64 = ranks.windows(2).map(|w| w[0] * w[1]).sum();
    all > 0.0 && lag / all > RESEMBLING / (values.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    // Proptest has one of this name, too.
    use crate::rng::Rng;
    use proptest::prelude::*;

    fn noise(rng: &mut Rng, kind: usize) -> f64 {
        match kind {
            0 => 100.0 * (1.0 + 0.02 * rng.normal()),
            // One run in ten is far off.
            1 => 100.0 * (1.0 + 0.02 * rng.normal()) * if rng.uniform() < 0.1 { 0.4 } else { 1.0 },
            _ => 100.0 * (0.3 * rng.normal()).exp(),
        }
    }

    /// The stated error, over lengths and kinds of noise: of 1,200 histories 60, and no more than 80 in 99 of 100 such simulations.
    #[test]
    fn noise_has_no_change_in_more_than_five_of_a_hundred_histories() {
        for kind in 0..3 {
            let mut rng = Rng::new(40 + kind as u64);
            let mut wrong = 0;
            for i in 0..1200 {
                let n = [8, 12, 20, 45][i % 4];
                let values: Vec<f64> = (0..n).map(|_| noise(&mut rng, kind)).collect();
                wrong += usize::from(!trend(&values).known().unwrap().changes.is_empty());
            }
            assert!(wrong <= 80, "{wrong} of 1200, noise {kind}");
            // A test that says nothing has no error either.
            assert!(wrong >= 12, "{wrong} of 1200, noise {kind}");
        }
    }

    #[test]
    fn two_steps_are_found_where_they_are_with_how_large_they_are() {
        let mut rng = Rng::new(7);
        let level = |i: usize| {
            if i < 15 {
                100.0
            } else if i < 32 {
                88.0
            } else {
                110.0
            }
        };
        let values: Vec<f64> = (0..50).map(|i| level(i) * (1.0 + 0.01 * rng.normal())).collect();
        let found = trend(&values);
        let found = found.known().unwrap();
        let ratio =
            |at| found.changes.iter().find(|c| c.at == at).map_or(f64::NAN, |c| c.ratio.unwrap().value);
        assert!((ratio(15) - 0.88).abs() < 0.01 && (ratio(32) - 1.25).abs() < 0.015, "{found:?}");
        assert_eq!(found.levels.len(), found.changes.len() + 1);
        assert!(found.levels.iter().any(|l| (l.2 / 88.0 - 1.0).abs() < 0.01), "{found:?}");
    }

    /// Two places fit equally well here; the last digit of the logarithms of the cubes took the other.
    #[test]
    fn of_places_that_fit_alike_it_is_the_first() {
        let values = [
            925.163768817774,
            881.9964095862101,
            994.0957973807491,
            882.1608396265538,
            861.7184013741502,
            1.0,
            665.6187335865866,
            734.4425724370033,
            71.02975720064764,
            980.3587488603372,
            1.0,
            1.0,
            1.0,
            1.0,
            1.0,
            254.03971057084775,
            291.03261377175414,
            789.1456560145872,
            501.6368541702076,
            696.6259396314807,
            169.2623263069917,
            142.3743218827982,
            676.9368900654853,
        ];
        let cubes = values.map(|v: f64| v.powi(3));
        let places = |v: &[f64]| trend(v).known().unwrap().changes.iter().map(|c| c.at).collect::<Vec<_>>();
        assert_eq!(places(&values), places(&cubes));
    }

    #[test]
    fn one_odd_run_is_no_change() {
        let mut values: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i * 7 % 5)).collect();
        values[9] = 3.0;
        assert!(trend(&values).known().unwrap().changes.is_empty());
        assert!(trend(&[5.0; 30]).known().unwrap().changes.is_empty());
    }

    #[test]
    fn too_few_are_a_reason_and_neighbours_that_resemble_each_other_are_told() {
        assert!(trend(&[1.0; 7]).known().is_none() && trend(&[]).known().is_none());
        assert!(
            trend(&[f64::NAN; 9]).known().is_none() && trend(&vec![1.0; MOST_RUNS + 1]).known().is_none()
        );
        let wave: Vec<f64> = (0..60).map(|i| 100.0 + 10.0 * (f64::from(i) / 3.0).sin()).collect();
        assert!(trend(&wave).known().unwrap().resembling);
    }

    proptest! {
        /// A step of ten times the noise, wherever it is and however large the figures are.
        #[test]
        fn a_clear_step_is_found(seed in 0u64..1000, at in 6usize..24, up in any::<bool>(), scale in 1e-6f64..1e9) {
            let mut rng = Rng::new(seed);
            let step = if up { 1.2 } else { 1.0 / 1.2 };
            let values: Vec<f64> = (0..30).map(|i| scale * if i < at { 1.0 } else { step } * (1.0 + 0.02 * rng.normal())).collect();
            let found = trend(&values);
            let changes = &found.known().unwrap().changes;
            prop_assert!(changes.iter().any(|c| c.at == at && (c.ratio.unwrap().value > 1.0) == up), "{changes:?}");
        }

        /// Only the order of the figures counts for where.
        #[test]
        fn a_power_of_the_figures_changes_at_the_same_places(values in proptest::collection::vec(1.0f64..1e3, 8..40)) {
            let places = |v: &[f64]| trend(v).known().unwrap().changes.iter().map(|c| c.at).collect::<Vec<_>>();
            let cubes: Vec<f64> = values.iter().map(|v| v.powi(3)).collect();
            prop_assert_eq!(places(&values), places(&cubes));
        }
    }
}
