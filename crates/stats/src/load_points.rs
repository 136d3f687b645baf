//! (k) Load points: latency in open loop at fractions of the sustained limit.
//!
//! Latency counts from the intended start, at rates that the storage sustains: fractions of the *lower* end of the sustained
//! rate's interval. A point whose backlog grows is not sustained; it is shown, not dropped.

use plimsoll_model::Estimate;

use crate::math;
use crate::student;

/// Fractions of the sustained rate.
pub const FRACTIONS: [f64; 6] = [0.25, 0.50, 0.70, 0.80, 0.90, 0.95];
/// A load point lasts this long at the least (as a steady window does), seconds. Guess.
pub const LEAST_S: f64 = 60.0;
/// Ops beyond a percentile that it needs. Paper: the rule of ten of order statistics; the value is a convention.
const TAIL: f64 = 10.0;
/// Slices that a judgement needs, and of a batch. Guess.
const LEAST_SLICES: usize = 10;
const BATCH: usize = 5;
/// Batches of the regression, least and most: as of the steady window's slope. Guess, validated there.
const BATCHES: (usize, usize) = (5, 12);
/// Standard deviations of a Poisson count that arrivals may differ by. Convention: 95 %.
const CHANCE: f64 = 2.0;
/// Growth of the backlog that is a queue without end, as a share of the offered rate. Guess.
const GROWS: f64 = 0.01;
/// Share of the offered rate that a sustained point achieves. Guess.
const ACHIEVES: f64 = 0.95;

/// One load in open loop, before it is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadPointPlan {
    /// Of the sustained rate: 0.9 is 90 %.
    pub fraction: f64,
    /// Ops per second to offer.
    pub rate_per_s: f64,
    /// Long enough for the percentile that is wanted.
    pub duration_s: f64,
}

/// Points for a sustained rate, long enough for `percentile` (0.999: 99.9 %).
pub fn plan(sustained: &Estimate, percentile: f64) -> Vec<LoadPointPlan> {
    plan_at(sustained, &FRACTIONS, percentile)
}

/// The same at other fractions.
pub fn plan_at(sustained: &Estimate, fractions: &[f64], percentile: f64) -> Vec<LoadPointPlan> {
    let base = if sustained.low.is_finite() && sustained.low > 0.0 { sustained.low } else { sustained.value };
    if !(base.is_finite() && base > 0.0) {
        return Vec::new();
    }
    let samples = TAIL / (1.0 - percentile.clamp(0.0, 0.999_999));
    fractions
        .iter()
        .map(|&fraction| {
            let rate_per_s = base * fraction;
            LoadPointPlan { fraction, rate_per_s, duration_s: LEAST_S.max((samples / rate_per_s).ceil()) }
        })
        .collect()
}

/// What a load point showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PointVerdict {
    /// The rate was reached, and the backlog did not grow.
    pub sustained: bool,
    /// Share of the offered rate that was achieved.
    pub achieved: f64,
    /// Growth of the backlog, ops per second, with its 95 % interval.
    pub backlog_growth_per_s: Estimate,
}

/// Judges a point from the backlog (ops intended but not ended) at the end of each slice of `dt` seconds.
pub fn judge(point: &LoadPointPlan, ended_per_s: f64, backlog: &[f64], dt: f64) -> Option<PointVerdict> {
    if point.rate_per_s <= 0.0 || dt <= 0.0 || backlog.len() < LEAST_SLICES || !math::is_series(backlog) {
        return None;
    }
    // Batches make the regression's errors independent enough.
    let nb = (backlog.len() / BATCH).clamp(BATCHES.0, BATCHES.1);
    let b = math::batch_means(backlog, nb);
    let step_s = (backlog.len() / nb) as f64 * dt;
    let (slope, c) = math::line(&b);
    let t0 = (nb as f64 - 1.0) / 2.0;
    let stt: f64 = (0..nb).map(|i| (i as f64 - t0).powi(2)).sum();
    let rss: f64 = b.iter().enumerate().map(|(i, v)| (v - c - slope * i as f64).powi(2)).sum();
    let hw = student::t95((nb - 2) as f64) * (rss / (nb - 2) as f64 / stt).sqrt();
    let growth = Estimate::symmetric(slope / step_s, hw / step_s, nb as f64);
    let achieved = ended_per_s / point.rate_per_s;
    // Arrivals by chance: of so many, two standard deviations of a Poisson count more or fewer come.
    let chance = CHANCE / (point.rate_per_s * backlog.len() as f64 * dt).sqrt();
    // Growth that is sure, and that would add a per cent of the offered rate: a queue without end.
    let grows = growth.low > 0.0 && growth.value > GROWS * point.rate_per_s;
    Some(PointVerdict {
        sustained: achieved >= ACHIEVES - chance && !grows,
        achieved,
        backlog_growth_per_s: growth,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_lie_below_the_lower_end() {
        let p = plan(&Estimate::symmetric(1000.0, 50.0, 30.0), 0.999);
        assert_eq!((p.len(), p[5].rate_per_s), (6, 902.5));
        assert!(p.iter().all(|p| p.duration_s >= 60.0 && p.duration_s * p.rate_per_s >= 1e4));
        let slow = plan(&Estimate::symmetric(10.0, 1.0, 5.0), 0.99);
        assert!(slow[0].duration_s > 400.0);
        assert!(plan(&Estimate::symmetric(0.0, 0.0, 1.0), 0.99).is_empty());
        assert!(plan(&Estimate::symmetric(f64::NAN, 1.0, 1.0), 0.99).is_empty());
    }

    #[test]
    fn a_growing_backlog_is_not_sustained() {
        let p = LoadPointPlan { fraction: 0.95, rate_per_s: 1000.0, duration_s: 60.0 };
        let steady: Vec<f64> = (0..60).map(|i| 8.0 + f64::from(i % 3)).collect();
        assert!(judge(&p, 999.0, &steady, 1.0).unwrap().sustained);
        let growing: Vec<f64> = (0..60).map(|i| 8.0 + 30.0 * f64::from(i) + f64::from(i % 3)).collect();
        let v = judge(&p, 970.0, &growing, 1.0).unwrap();
        assert!(!v.sustained && (v.backlog_growth_per_s.value - 30.0).abs() < 1.0);
        assert!(!judge(&p, 900.0, &steady, 1.0).unwrap().sustained);
        assert!(judge(&p, 900.0, &[], 1.0).is_none());
    }
}
