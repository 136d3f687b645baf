//! (h) Two configurations: the ratio with its interval, and the smallest difference that could have been seen.
//!
//! The unit is the run, not the second. Student's t on the logarithms of run means: paired where runs were interleaved (ABBA), Welch
//! otherwise. Repeating stops on the width of the interval, never on significance (which gives 26 % false differences instead of 5 %).
//! "No difference" is only ever said with the size that was excluded.

use plimsoll_model::count::both_counted;
use plimsoll_model::{Estimate, Verdict};

use crate::math;
use crate::rng::Rng;
use crate::student;

/// Fewest pairs before stopping, and the half width (relative) to stop at. Guess; validated (compare's error rates).
pub const MIN_RUNS: usize = 5;
/// As [`MIN_RUNS`] is for their number.
pub const TARGET_HALF_WIDTH: f64 = 0.02;
/// Runs of a side from which on a ratio of medians is given. Guess.
const LEAST_FOR_MEDIANS: usize = 5;
/// Power of the smallest difference that is told. Convention.
const POWER: f64 = 0.8;
/// Error of a family of comparisons, and of each of two one-sided tests. Convention.
const ALPHA: f64 = 0.05;
/// Most runs that are ever advised. Guess.
const MOST_RUNS: usize = 1000;

/// Of A against B, at 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// A is greater.
    Greater,
    /// A is less.
    Less,
    /// None larger than the minimal detectable one.
    NoneSeen,
}

/// Two sides of runs, held against each other.
#[derive(Debug, Clone, PartialEq)]
pub struct RunComparison {
    /// Of A, and of B.
    pub runs: (usize, usize),
    /// Run i of A was held against run i of B.
    pub paired: bool,
    /// Geometric mean of A over that of B.
    pub ratio: Estimate,
    /// What the interval of the ratio says.
    pub difference: Difference,
    /// Difference (relative) that these runs would have shown in 80 % of cases.
    pub minimal_detectable: f64,
    /// Ratio of medians, from five runs on.
    pub median_ratio: Option<Estimate>,
    /// Mean and median ratio lie outside each other's interval: the runs have more than one mode.
    pub bimodal: bool,
    /// Two-sided p-value of "no difference": only for Holm's correction over a table.
    pub p: f64,
    /// Runs of each that would bring the half width to 2 %.
    pub runs_for_target: Option<usize>,
}

impl RunComparison {
    /// Whether repeating may stop: enough runs, and a narrow interval.
    pub fn is_enough(&self, target: f64) -> bool {
        self.runs.0.min(self.runs.1) >= MIN_RUNS && self.ratio.relative_half_width() <= target
    }

    /// One sentence, with the interval.
    pub fn text(&self) -> String {
        let pc = |x: f64| format!("{:.1} %", 100.0 * x);
        let r = &self.ratio;
        let range = format!("ratio {:.3}, 95 % interval {:.3} to {:.3}", r.value, r.low, r.high);
        match self.difference {
            Difference::Greater => format!("A is {} greater ({range}).", pc(r.value - 1.0)),
            Difference::Less => format!("A is {} less ({range}).", pc(1.0 - r.value)),
            Difference::NoneSeen => format!(
                "No difference proved ({range}); one of {} would have been seen in 8 of 10 campaigns.",
                pc(self.minimal_detectable)
            ),
        }
    }
}

/// Compares run means (any positive measure). With `paired`, run i of A and run i of B were made next to each other.
pub fn compare(a: &[f64], b: &[f64], paired: bool) -> Verdict<RunComparison> {
    let bad = |x: &[f64]| x.iter().any(|v| !(v.is_finite() && *v > 0.0));
    if bad(a) || bad(b) {
        return Verdict::Inconclusive("a run has no positive mean: nothing to compare".into());
    }
    let (k, l) = (a.len(), b.len());
    if k < 2 || l < 2 {
        return Verdict::Inconclusive(format!(
            "{}: the run-to-run variation is not known; make at least 3 runs of each",
            both_counted(k, l, "run")
        ));
    }
    if paired && k != l {
        return Verdict::Inconclusive(format!("{} cannot be paired", both_counted(k, l, "run")));
    }
    let (la, lb): (Vec<f64>, Vec<f64>) =
        (a.iter().map(|v| v.ln()).collect(), b.iter().map(|v| v.ln()).collect());
    let (d, se, df) = if paired { paired_t(&la, &lb) } else { welch(&la, &lb) };
    let hw = student::t95(df) * se;
    let n = k.min(l) as f64;
    let ratio = Estimate { value: d.exp(), low: (d - hw).exp(), high: (d + hw).exp(), n_eff: n };
    let difference = if ratio.low > 1.0 {
        Difference::Greater
    } else if ratio.high < 1.0 {
        Difference::Less
    } else {
        Difference::NoneSeen
    };
    let p = if se > 0.0 { student::two_sided(d / se, df) } else { f64::from(u8::from(d == 0.0)) };
    let median_ratio =
        (k >= LEAST_FOR_MEDIANS && l >= LEAST_FOR_MEDIANS).then(|| median_ratio(&la, &lb, paired));
    let bimodal = median_ratio.is_some_and(|m| !m.contains(ratio.value) && !ratio.contains(m.value));
    Verdict::Known(RunComparison {
        runs: (k, l),
        paired,
        ratio,
        difference,
        minimal_detectable: ((student::t95(df) + student::quantile(POWER, df)) * se).exp() - 1.0,
        median_ratio,
        bimodal,
        p,
        runs_for_target: runs_for(se * n.sqrt(), TARGET_HALF_WIDTH, paired),
    })
}

fn paired_t(la: &[f64], lb: &[f64]) -> (f64, f64, f64) {
    let d: Vec<f64> = la.iter().zip(lb).map(|(x, y)| x - y).collect();
    let k = d.len() as f64;
    (math::mean(&d), math::stdev(&d, 1) / k.sqrt(), k - 1.0)
}

fn welch(la: &[f64], lb: &[f64]) -> (f64, f64, f64) {
    let (k, l) = (la.len() as f64, lb.len() as f64);
    let (va, vb) = (math::variance(la, 1) / k, math::variance(lb, 1) / l);
    (math::mean(la) - math::mean(lb), (va + vb).sqrt(), welch_df((va, k), (vb, l)))
}

/// Degrees of freedom of the sum of two variances of means, each with its number of runs (Satterthwaite 1946, Welch 1947).
///
/// With 3 against 3 runs it covers 96.5 % if both spread alike, 94.8 % if one spreads three times as much, 94.2 % if five times
/// (simulated, 200,000 pairs each). Welch's other formula, with unbiased estimates of the squared variances, covers 95.8, 93.8
/// and 93.3 %, and 91.4 % with 3 against 10 runs: an interval that is a little too wide for like runs was preferred.
fn welch_df((va, k): (f64, f64), (vb, l): (f64, f64)) -> f64 {
    let v = va + vb;
    if v > 0.0 { v * v / (va * va / (k - 1.0) + vb * vb / (l - 1.0)) } else { k + l - 2.0 }
}

/// Bootstrap over runs (or pairs), percentiles; the seed is fixed.
fn median_ratio(la: &[f64], lb: &[f64], paired: bool) -> Estimate {
    let mut rng = Rng::new(1);
    let (k, l) = (la.len(), lb.len());
    let mut draws: Vec<f64> = (0..1000)
        .map(|_| {
            if paired {
                let d: Vec<f64> = (0..k).map(|_| rng.below(k)).map(|i| la[i] - lb[i]).collect();
                return math::median(&d);
            }
            let a: Vec<f64> = (0..k).map(|_| la[rng.below(k)]).collect();
            let b: Vec<f64> = (0..l).map(|_| lb[rng.below(l)]).collect();
            math::median(&a) - math::median(&b)
        })
        .collect();
    draws.sort_unstable_by(f64::total_cmp);
    let value = if paired {
        math::median(&la.iter().zip(lb).map(|(x, y)| x - y).collect::<Vec<_>>())
    } else {
        math::median(la) - math::median(lb)
    };
    let q = |p| math::quantile_sorted(&draws, p).exp();
    Estimate { value: value.exp(), low: q(0.025), high: q(0.975), n_eff: k.min(l) as f64 }
}

/// Runs of each configuration until the half width is `target`, if the spread stays; `sd` of one run's contribution.
pub fn runs_for(sd: f64, target: f64, paired: bool) -> Option<usize> {
    let narrow = |k: usize| {
        let df = if paired { k - 1 } else { 2 * k - 2 } as f64;
        student::t95(df) * sd / (k as f64).sqrt() <= target
    };
    // The width falls with every run: halve the range.
    let (mut low, mut high) = (2, MOST_RUNS);
    if !narrow(high) {
        return None;
    }
    while high - low > 1 {
        let mid = (low + high) / 2;
        if narrow(mid) { high = mid } else { low = mid }
    }
    Some(high)
}

/// Smallest ratio minus one that `k` runs of each find with 80 % power, for runs that differ by `cv`.
pub fn minimal_detectable(cv: f64, k: usize) -> f64 {
    if k < 2 {
        return f64::INFINITY;
    }
    let df = (2 * k - 2) as f64;
    ((student::t95(df) + student::quantile(POWER, df)) * cv * (2.0 / k as f64).sqrt()).exp() - 1.0
}

/// Equivalence within `margin` (0.05: 5 %) by two one-sided tests at 5 %: the 90 % interval lies inside.
pub fn is_equivalent(a: &[f64], b: &[f64], paired: bool, margin: f64) -> Option<bool> {
    compare(a, b, paired).known()?;
    let (la, lb): (Vec<f64>, Vec<f64>) =
        (a.iter().map(|v| v.ln()).collect(), b.iter().map(|v| v.ln()).collect());
    let (d, se, df) = if paired { paired_t(&la, &lb) } else { welch(&la, &lb) };
    let hw = student::quantile(1.0 - ALPHA, df) * se;
    Some(d - hw > -margin.ln_1p() && d + hw < margin.ln_1p())
}

/// Holm (1979): which of several comparisons hold together at 5 %, in the order given.
pub fn holm(p: &[f64]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    let mut out = vec![false; p.len()];
    for (rank, &i) in order.iter().enumerate() {
        if p[i] > ALPHA / (p.len() - rank) as f64 {
            break;
        }
        out[i] = true;
    }
    out
}

/// Whether run i of A and run i of B were made next to each other, before pair i + 1; of their starts, RFC 3339 in UTC, whose text sorts as
/// they do.
pub fn made_in_turn(a: &[String], b: &[String]) -> bool {
    let pairs: Vec<_> = a.iter().zip(b).collect();
    a.len() == b.len() && pairs.windows(2).all(|w| w[0].0.max(w[0].1) < w[1].0.min(w[1].1))
}

/// Order of runs that drift does not favour: A B B A A B B A ...; `true` is A.
pub fn abba(pairs: usize) -> Vec<bool> {
    (0..pairs).flat_map(|i| if i % 2 == 0 { [true, false] } else { [false, true] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn differences_and_their_absence() {
        let a = [104.0, 105.5, 103.9, 104.8, 105.1];
        let b = [100.1, 99.8, 100.5, 99.9, 100.2];
        let c = compare(&a, &b, false);
        let c = c.known().unwrap();
        assert_eq!(c.difference, Difference::Greater);
        assert!(c.ratio.contains(1.046) && c.is_enough(0.02) && c.p < 1e-4);
        let c = compare(&b, &b.map(|v| v * 1.001), true);
        assert_eq!(c.known().unwrap().runs, (5, 5));
        let near = compare(&[100.0, 103.0, 98.0], &[101.0, 99.0, 102.0], false);
        let near = near.known().unwrap();
        assert!(near.difference == Difference::NoneSeen && near.text().contains("No difference proved"));
        assert!(near.runs_for_target.unwrap() > 5 && !near.is_enough(0.02));
    }

    /// The table in METHODOLOGY.md: 2 % spread, 5 % spread.
    #[test]
    fn what_can_be_detected() {
        for (cv, k, want) in [(0.02, 3, 0.063), (0.02, 5, 0.041), (0.05, 5, 0.106), (0.10, 10, 0.14)] {
            assert!((minimal_detectable(cv, k) - want).abs() < 0.002, "{}", minimal_detectable(cv, k));
        }
        assert!(minimal_detectable(0.1, 1).is_infinite());
    }

    #[test]
    fn equivalence_needs_a_margin() {
        let (a, b) = ([100.0, 101.0, 99.5, 100.2, 100.4], [100.1, 100.8, 99.9, 100.0, 100.6]);
        assert_eq!(is_equivalent(&a, &b, false, 0.05), Some(true));
        assert_eq!(is_equivalent(&a, &b, false, 0.001), Some(false));
        assert_eq!(is_equivalent(&a[..1], &b, false, 0.05), None);
    }

    /// Like spreads have nearly all degrees of freedom that there are; one wide side has its own alone.
    #[test]
    fn degrees_of_freedom() {
        assert_eq!(welch_df((1.0, 3.0), (1.0, 3.0)), 4.0);
        assert!((welch_df((1.0, 3.0), (0.0, 3.0)) - 2.0).abs() < 1e-12);
        assert!((welch_df((1.0, 3.0), (1.0, 9.0)) - 6.4).abs() < 1e-12);
        assert_eq!(welch_df((0.0, 3.0), (0.0, 4.0)), 5.0);
    }

    #[test]
    fn bad_runs_are_a_reason() {
        assert!(compare(&[1.0], &[1.0, 2.0], false).known().is_none());
        assert!(compare(&[1.0, 0.0], &[1.0, 2.0], false).known().is_none());
        assert!(compare(&[1.0, f64::NAN], &[1.0, 2.0], false).known().is_none());
        assert!(compare(&[1.0, 2.0], &[1.0, 2.0, 3.0], true).known().is_none());
        let same = compare(&[5.0; 5], &[5.0; 5], true);
        assert_eq!(same.known().unwrap().difference, Difference::NoneSeen);
    }

    #[test]
    fn holm_and_order() {
        assert_eq!(holm(&[0.001, 0.04, 0.03]), [true, false, false]);
        assert_eq!(abba(3), [true, false, false, true, true, false]);
    }

    proptest! {
        #[test]
        fn scale_moves_nothing_but_the_ratio(a in proptest::collection::vec(1.0f64..1e3, 3..9), b in proptest::collection::vec(1.0f64..1e3, 3..9), k in 0.1f64..10.0) {
            let one = compare(&a, &b, false).known().unwrap().ratio;
            let scaled: Vec<f64> = a.iter().map(|v| v * k).collect();
            let two = compare(&scaled, &b, false).known().unwrap().ratio;
            prop_assert!((two.value / (one.value * k) - 1.0).abs() < 1e-9);
            prop_assert!((two.high / two.low / (one.high / one.low) - 1.0).abs() < 1e-6);
        }
    }
}
