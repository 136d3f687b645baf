//! (g) Scaling over sizes of a system: efficiency without a model first, then the universal scalability law with honest fans.
//!
//! Gunther (2007): `X(N) = g N / (1 + a (N - 1) + b N (N - 1))`, with contention a >= 0 and crosstalk b >= 0, fitted to the
//! logarithms of run means. Bootstrap over runs, widened by `sqrt(k/(k-1))` and Student's t. Setting b = 0 to get a narrower
//! interval is never done: such intervals cover 39 to 72 %.

use plimsoll_model::count::counted;
use plimsoll_model::{Estimate, Verdict};

use crate::compare;
use crate::least_squares::{FitSettings, minimise};
use crate::math;
use crate::rng::Rng;
use crate::student;

/// Runs of one size.
#[derive(Debug, Clone, PartialEq)]
pub struct ScaleSize {
    /// Nodes, drives, or whatever was scaled.
    pub n: f64,
    /// Rate of each.
    pub runs: Vec<f64>,
}

/// From one size to the next: share of the ideal gain that was reached.
#[derive(Debug, Clone, PartialEq)]
pub struct ScaleStep {
    /// Size that the step starts from.
    pub from: f64,
    /// The next larger size.
    pub to: f64,
    /// 1 is the ideal: twice the nodes, twice the rate.
    pub efficiency: Verdict<Estimate>,
}

/// A prediction beyond the largest size measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Size that it is for.
    pub n: f64,
    /// In the unit of the runs.
    pub rate: Estimate,
    /// Further than 1.5 times the largest size measured.
    pub speculative: bool,
}

/// The universal scalability law, fitted: contention and crosstalk take from the ideal gain.
#[derive(Debug, Clone, PartialEq)]
pub struct Law {
    /// Rate of one node.
    pub gamma: f64,
    /// Contention: the part of the work that nodes do one after the other.
    pub alpha: Estimate,
    /// Crosstalk: what each node costs each other.
    pub beta: Estimate,
    /// Size of greatest rate: only when crosstalk is surely there.
    pub peak: Option<f64>,
    /// For the sizes that were asked for, none beyond [`FURTHEST`].
    pub predictions: Vec<Prediction>,
}

/// What runs at several sizes say of how a system grows.
#[derive(Debug, Clone, PartialEq)]
pub struct ScalingFit {
    /// The headline.
    pub steps: Vec<ScaleStep>,
    /// Needs three sizes, and runs enough of each.
    pub law: Verdict<Law>,
}

/// Furthest prediction, as a multiple of the largest size: beyond it there is none (validated: coverage at twice the size).
pub const FURTHEST: f64 = 2.0;
/// Beyond this multiple a prediction is called speculative (guess; the intervals are validated on both sides of it).
const SURE: f64 = 1.5;
/// Sizes, and runs of each, that the law needs at the least: it has three unknowns, and a spread needs three runs (a choice).
const LEAST_SIZES: usize = 3;
const LEAST_RUNS: usize = 3;
/// Crosstalk whose interval begins above this is surely there, so that there is a peak (guess: a peak at 300 nodes).
const SURE_CROSSTALK: f64 = 1e-5;
/// Quantiles of the bootstrap for 95 %, and the normal distribution's, which Student's t widens.
const TAILS: (f64, f64) = (0.025, 0.975);
const NORMAL_95: f64 = 1.96;
/// A prediction's half width is this part of how much runs differ, at the least (validated: coverage of predictions).
const LEAST_WIDTH: f64 = 0.5;
/// A size that the law misses by this, and by so many standard errors of its mean, contradicts the law (guess).
const MISFIT: f64 = 0.05;
const MISFIT_SE: f64 = 4.0;

/// Rate at `n` by the law.
pub fn law(n: f64, gamma: f64, alpha: f64, beta: f64) -> f64 {
    gamma * n / (1.0 + alpha * (n - 1.0) + beta * n * (n - 1.0))
}

/// Judges sizes in any order.
pub fn scaling(sizes: &[ScaleSize], predict: &[f64], bootstrap: usize, seed: u64) -> ScalingFit {
    let mut sizes: Vec<ScaleSize> = sizes.iter().filter(|s| s.n.is_finite() && s.n > 0.0).cloned().collect();
    sizes.sort_by(|a, b| a.n.total_cmp(&b.n));
    let steps = sizes
        .windows(2)
        .map(|w| ScaleStep { from: w[0].n, to: w[1].n, efficiency: efficiency(&w[0], &w[1]) })
        .collect();
    ScalingFit { steps, law: fit(&sizes, predict, bootstrap, seed) }
}

fn efficiency(a: &ScaleSize, b: &ScaleSize) -> Verdict<Estimate> {
    match compare::compare(&b.runs, &a.runs, false) {
        Verdict::Known(c) => {
            let e = c.ratio.scaled(a.n / b.n);
            // Sizes, or rates, that are no part of each other that a number can hold.
            match e.value.is_nan() || e.low.is_nan() || e.high.is_nan() {
                true => {
                    Verdict::Inconclusive("the sizes or their rates are too far apart for a ratio".into())
                }
                false => Verdict::Known(e),
            }
        }
        Verdict::Inconclusive(why) => Verdict::Inconclusive(why),
    }
}

/// Logarithms of rate, contention and crosstalk: what no system exceeds (guess).
const LOG_BOUNDS: [(f64, f64); 3] = [(-60.0, 60.0), (-16.0, 0.0), (-20.0, -2.0)];
/// Contention and crosstalk, as logarithms, from which the fit starts: some of the one, and some of the other (guess).
const STARTS: [[f64; 2]; 2] = [[-4.0, -8.0], [-10.0, -6.0]];
/// Steps of the fit (guess; it takes a dozen).
const MAX_STEPS: usize = 60;
/// No rate has a logarithm below that of this.
const TINY: f64 = 1e-300;

fn fit_law(n: &[f64], y: &[f64], start: Option<&[f64]>) -> Vec<f64> {
    let first = [y[0] - n[0].ln(), STARTS[0][0], STARTS[0][1]];
    let residuals = |x: &[f64], r: &mut [f64]| {
        for i in 0..n.len() {
            r[i] = law(n[i], x[0].exp(), x[1].exp(), x[2].exp()).max(TINY).ln() - y[i];
        }
    };
    let settings = FitSettings { soft: f64::INFINITY, max_steps: MAX_STEPS };
    let other = [first[0], STARTS[1][0], STARTS[1][1]];
    let starts: Vec<&[f64]> = start.map_or_else(|| vec![&first[..], &other[..]], |s| vec![s, &first[..]]);
    starts
        .into_iter()
        .map(|s| minimise(s, &LOG_BOUNDS, n.len(), settings, residuals))
        .min_by(|a, b| a.cost.total_cmp(&b.cost))
        .expect("there is a start")
        .x
}

fn fit(sizes: &[ScaleSize], predict: &[f64], bootstrap: usize, seed: u64) -> Verdict<Law> {
    let k = sizes.iter().map(|s| s.runs.len()).min().unwrap_or(0);
    if sizes.len() < LEAST_SIZES {
        return Verdict::Inconclusive(format!(
            "{} of nodes: a law with three parameters needs at least three",
            counted(sizes.len(), "number")
        ));
    }
    if k < LEAST_RUNS {
        return Verdict::Inconclusive(format!(
            "{} at one number of nodes: at least three of each are needed",
            counted(k as u64, "run")
        ));
    }
    if sizes.iter().any(|s| s.runs.iter().any(|v| !(v.is_finite() && *v > 0.0))) {
        return Verdict::Inconclusive("a run has no positive rate".into());
    }
    let n: Vec<f64> = sizes.iter().map(|s| s.n).collect();
    let logs: Vec<Vec<f64>> = sizes.iter().map(|s| s.runs.iter().map(|v| v.ln()).collect()).collect();
    let y: Vec<f64> = logs.iter().map(|l| math::mean(l)).collect();
    let cv = (logs.iter().map(|l| math::variance(l, 1)).sum::<f64>() / logs.len() as f64).sqrt();
    let best = fit_law(&n, &y, None);
    if let Some(why) = misfit(&n, &y, &best, cv / (k as f64).sqrt()) {
        return Verdict::Inconclusive(why);
    }
    let mut rng = Rng::new(seed);
    let draws: Vec<Vec<f64>> = (0..bootstrap)
        .map(|_| {
            let yb: Vec<f64> = logs
                .iter()
                .zip(&y)
                .map(|(l, m)| {
                    let again: Vec<f64> = (0..l.len()).map(|_| l[rng.below(l.len())]).collect();
                    m + (math::mean(&again) - m) * (l.len() as f64 / (l.len() - 1) as f64).sqrt()
                })
                .collect();
            fit_law(&n, &yb, Some(&best))
        })
        .collect();
    Verdict::Known(report(&best, &draws, n[n.len() - 1], predict, k, cv))
}

/// The law misses a size by more than runs differ there: what follows from it would contradict what was measured.
fn misfit(n: &[f64], y: &[f64], best: &[f64], se: f64) -> Option<String> {
    let miss = |i: &usize| y[*i] - law(n[*i], best[0].exp(), best[1].exp(), best[2].exp()).max(TINY).ln();
    let worst = (0..n.len()).max_by(|a, b| miss(a).abs().total_cmp(&miss(b).abs()))?;
    let off = miss(&worst);
    (off.abs() > (MISFIT_SE * se).max(MISFIT)).then(|| {
        format!(
            "the scalability law misses the rate at {} by {:.0} %, more than runs differ: no smooth law fits these \
             points",
            n[worst],
            100.0 * (off.exp() - 1.0)
        )
    })
}

fn report(best: &[f64], draws: &[Vec<f64>], largest: f64, predict: &[f64], k: usize, cv: f64) -> Law {
    let widen = student::t95((k - 1) as f64) / NORMAL_95;
    let interval = |f: &dyn Fn(&[f64]) -> f64, floor: f64| {
        let at = f(best);
        let mut v: Vec<f64> = draws.iter().map(|d| f(d)).collect();
        v.push(at);
        v.sort_unstable_by(f64::total_cmp);
        let low = at - widen * (at - math::quantile_sorted(&v, TAILS.0)).max(floor);
        let high = at + widen * (math::quantile_sorted(&v, TAILS.1) - at).max(floor);
        (at, low, high)
    };
    let positive =
        |(value, low, high): (f64, f64, f64)| Estimate { value, low: low.max(0.0), high, n_eff: k as f64 };
    let alpha = positive(interval(&|x| x[1].exp(), 0.0));
    let beta = positive(interval(&|x| x[2].exp(), 0.0));
    let predictions = predict
        .iter()
        .filter(|n| **n <= FURTHEST * largest && **n > 0.0)
        .map(|&n| {
            let (at, low, high) =
                interval(&|x| law(n, x[0].exp(), x[1].exp(), x[2].exp()).max(TINY).ln(), LEAST_WIDTH * cv);
            let rate = Estimate { value: at.exp(), low: low.exp(), high: high.exp(), n_eff: k as f64 };
            Prediction { n, rate, speculative: n > SURE * largest }
        })
        .collect();
    let peak = (beta.low > SURE_CROSSTALK).then(|| ((1.0 - alpha.value).max(0.0) / beta.value).sqrt());
    Law { gamma: best[0].exp(), alpha, beta, peak, predictions }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(n: &[f64], a: f64, b: f64, cv: f64, seed: u64) -> Vec<ScaleSize> {
        let mut rng = Rng::new(seed);
        let runs =
            |n: f64, rng: &mut Rng| (0..5).map(|_| law(n, 100.0, a, b) * (cv * rng.normal()).exp()).collect();
        n.iter().map(|&n| ScaleSize { n, runs: runs(n, &mut rng) }).collect()
    }

    #[test]
    fn efficiency_first() {
        let s = scaling(&sizes(&[4.0, 8.0, 12.0], 0.02, 0.0, 0.01, 1), &[18.0, 30.0], 60, 0);
        let e = *s.steps[0].efficiency.known().unwrap();
        let truth = law(8.0, 1.0, 0.02, 0.0) / law(4.0, 1.0, 0.02, 0.0) / 2.0;
        assert!(e.contains(truth) && e.relative_half_width() < 0.05, "{e:?} {truth}");
        let l = s.law.known().unwrap();
        // 30 nodes are beyond twice the largest: no prediction.
        assert_eq!(l.predictions.len(), 1);
        assert!(l.predictions[0].rate.contains(law(18.0, 100.0, 0.02, 0.0)), "{l:?}");
        assert!(l.peak.is_none());
    }

    #[test]
    fn crosstalk_has_a_peak() {
        let s = scaling(&sizes(&[2.0, 4.0, 8.0, 16.0, 32.0], 0.02, 0.002, 0.005, 2), &[48.0, 64.0], 60, 0);
        let l = s.law.known().unwrap();
        assert!((l.peak.unwrap() / (0.98f64 / 0.002).sqrt() - 1.0).abs() < 0.2, "{l:?}");
        assert!(!l.predictions[0].speculative && l.predictions[1].speculative);
    }

    #[test]
    fn a_law_that_contradicts_its_points_is_none() {
        let of = |n: f64, rate: f64| ScaleSize { n, runs: vec![rate * 0.999, rate, rate * 1.001] };
        let s = scaling(&[of(4.0, 320.0), of(8.0, 631.0), of(12.0, 95.0)], &[15.0], 60, 0);
        let Verdict::Inconclusive(why) = &s.law else { panic!("{:?}", s.law) };
        assert!(why.contains("misses the rate at"), "{why}");
        assert!(s.steps[1].efficiency.known().is_some(), "what was measured is still said");
    }

    #[test]
    fn too_little_is_a_reason() {
        assert!(scaling(&[], &[], 10, 0).law.known().is_none());
        assert!(scaling(&sizes(&[4.0, 8.0], 0.0, 0.0, 0.01, 3), &[], 10, 0).law.known().is_none());
        let mut s = sizes(&[4.0, 8.0, 12.0], 0.0, 0.0, 0.01, 3);
        s[1].runs = vec![1.0];
        let r = scaling(&s, &[], 10, 0);
        assert!(r.law.known().is_none() && r.steps[0].efficiency.known().is_none());
        s[1].runs = vec![0.0; 5];
        assert!(scaling(&s, &[], 10, 0).law.known().is_none());
    }
}
