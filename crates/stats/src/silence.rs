//! Slices in which nothing ended: how many there are, whether a quota per window leaves them, and the series without them.

use crate::math;

// All guessed, and validated with the methods that use them (METHODOLOGY.md).

/// So many of them are the series' way, and no single stall.
const MUCH: f64 = 0.1;
/// A series that is silent beyond this share is no quota: next to nothing passes.
const NEARLY_ALL: f64 = 0.95;
/// A slice below this share of the mean is silent.
const NEXT_TO_NOTHING: f64 = 0.05;
/// Slices of which hardly any is silent: this share at most.
const HARDLY_ANY: f64 = 0.02;
/// Fewer slices show no period.
const LEAST_FOR_PERIOD: usize = 40;
/// A period is a peak of the autocorrelation above this, from this lag on.
const STRONG_PEAK: f64 = 0.8;
const LEAST_LAG: usize = 3;
/// Fewer slices than these in half of a series show no level.
pub(crate) const LEAST_SLICES: usize = 12;

/// Share of slices in which next to nothing ended.
fn silent(x: &[f64]) -> f64 {
    let low = NEXT_TO_NOTHING * math::mean(x);
    x.iter().filter(|v| **v < low).count() as f64 / x.len().max(1) as f64
}

/// Period of a quota per fixed window, seconds: bursts and silence in turn, at the same phase each time.
///
/// Needs slices of a quarter of the window or finer: the autocorrelation has its first strong peak at the period, and
/// a stable share of the slices is (nearly) silent.
pub(crate) fn fixed_window(x: &[f64], dt: f64) -> Option<f64> {
    let n = x.len();
    let mean = math::mean(x);
    if n < LEAST_FOR_PERIOD || mean <= 0.0 {
        return None;
    }
    if !(MUCH..NEARLY_ALL).contains(&silent(x)) {
        return None;
    }
    let d: Vec<f64> = x.iter().map(|v| v - mean).collect();
    let v: f64 = d.iter().map(|v| v * v).sum();
    let r = |k: usize| d[k..].iter().zip(&d).map(|(a, b)| a * b).sum::<f64>() / v * n as f64 / (n - k) as f64;
    let lag = (LEAST_LAG..n / 4).find(|&k| r(k) > STRONG_PEAK && r(k) >= r(k - 1) && r(k) >= r(k + 1))?;
    Some(lag as f64 * dt)
}

/// Share of the silent slices in which something has to have been asked for and refused (guess: nearly all).
const ASKED: f64 = 0.8;
/// What passes differs by no more than this from window to window (coefficient of variation; guess: edges of slices).
const ALIKE: f64 = 0.15;

/// Ops that come one by one are a rate, however few they are: what a window of a quota lets through is more than one. (Two of them in a second, half
/// a second apart, are no quota of two.)
pub(crate) const ONE_BY_ONE: f64 = 1.5;

/// A quota per fixed window, its period and units, with the evidence that it takes: the same amount passes in each, and in the silence
/// between, others were refused. A client that backs off is silent by itself, and at a rhythm of its own. `refused`: per slice; empty: not
/// known.
pub(crate) fn quota(x: &[f64], dt: f64, refused: &[f64]) -> Option<(f64, f64)> {
    let period_s = fixed_window(x, dt)?;
    let low = 0.05 * math::mean(x);
    let some_refused = refused.iter().sum::<f64>() > 0.01 * x.iter().sum::<f64>();
    if some_refused {
        let silent: Vec<f64> = x.iter().zip(refused).filter(|(v, _)| **v < low).map(|(_, r)| *r).collect();
        let asked = silent.iter().filter(|r| **r > 0.0).count();
        if (asked as f64) < ASKED * silent.len() as f64 {
            return None;
        }
    }
    let (period_s, units) = alike(x, dt, period_s)?;
    // Of windows too short for a period of slices several make one.
    let goes = x.chunk_by(|a, b| (*a < low) == (*b < low)).filter(|run| run[0] >= low).count();
    let each = (goes as f64 / (x.len() as f64 * dt / period_s)).round().max(1.0);
    Some((period_s / each, units / each))
}

/// The same for windows that are known: `None` where what passes differs from one to the next.
pub(crate) fn alike(x: &[f64], dt: f64, period_s: f64) -> Option<(f64, f64)> {
    let sums = math::bin_means(x, ((period_s / dt).round() as usize).max(1));
    // Of whole periods, since a part of one more has its burst, or has none. The first may have a burst too many, if the load began in the
    // middle of a window: then the middle one is less than the mean.
    let per_s = math::mean(&sums).min(math::quantile(&sums, 0.5));
    let alike = sums.len() > 1 && math::stdev(&sums, 1) <= ALIKE * math::mean(&sums);
    alike.then_some((period_s, per_s * period_s))
}

/// Empty slices hide every level: their logarithm is far from all others, and looks like noise. A series that has them on its
/// plateau, be it by a quota per window or by ops that end together, is seen by the period of that, or else in the shortest
/// slices of which hardly any is empty.
pub(crate) fn without_silence(x: &[f64], dt: f64) -> Option<(Vec<f64>, f64)> {
    let late = &x[x.len() / 2..];
    if late.len() < LEAST_SLICES || silent(late) < MUCH {
        return None;
    }
    let filled = |k: &usize| silent(&math::bin_means(late, *k)) < HARDLY_ANY;
    let k = match fixed_window(late, dt) {
        Some(period_s) => ((period_s / dt).round() as usize).max(2),
        None => (2..=late.len() / LEAST_SLICES).find(filled)?,
    };
    Some((math::bin_means(x, k), k as f64 * dt))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Two a second, half a second apart, in slices of 0.2 s: a rate. Both at once, each second: a quota.
    #[test]
    fn ops_that_come_one_by_one_are_no_quota() {
        let x: Vec<f64> = (0..200).map(|i| if matches!(i % 5, 0 | 3) { 5.0 } else { 0.0 }).collect();
        let refused = vec![50.0; x.len()];
        let (period_s, units) = quota(&x, 0.2, &refused).unwrap();
        assert!((period_s - 0.5).abs() < 1e-9 && units < ONE_BY_ONE, "{period_s} {units}");
        let both: Vec<f64> = (0..200).map(|i| if i % 5 == 0 { 10.0 } else { 0.0 }).collect();
        let (period_s, units) = quota(&both, 0.2, &refused).unwrap();
        assert!((period_s - 1.0).abs() < 1e-9 && (units - 2.0).abs() < 1e-9, "{period_s} {units}");
        // 20 in each 0.4 s, which is no period of three slices.
        let short: Vec<f64> = (0..200).map(|i| if i % 2 == 0 { 100.0 } else { 0.0 }).collect();
        let (period_s, units) = quota(&short, 0.2, &refused).unwrap();
        assert!((period_s - 0.4).abs() < 1e-9 && (units - 20.0).abs() < 1e-9, "{period_s} {units}");
    }

    /// 100 in each 10 s, and a series that ends 2 s after the begin of its seventh window: not 700 in 62 s.
    #[test]
    fn a_part_of_a_window_is_not_counted_as_one() {
        let x: Vec<f64> = (0..62).map(|i| if i % 10 == 0 { 100.0 } else { 0.0 }).collect();
        assert_eq!(quota(&x, 1.0, &[]), Some((10.0, 100.0)));
        // Begun in the middle of a window: the first 10 s have a tenth of another's burst.
        let early: Vec<f64> =
            (0..62).map(|i| [50.0, 40.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10.0][i % 10]).collect();
        let early: Vec<f64> = early.iter().enumerate().map(|(i, v)| if i < 2 { 50.0 } else { *v }).collect();
        assert_eq!(quota(&early, 1.0, &[]), Some((10.0, 100.0)));
    }

    /// 300 in each second, used up in the first 0.3 s of it: a quota where the rest of the second was asked for and refused,
    /// and none where the client slept.
    #[test]
    fn silence_that_nobody_asked_in_is_no_quota() {
        let x: Vec<f64> = (0..600).map(|i| if i % 10 < 3 { 1000.0 } else { 0.0 }).collect();
        let asked: Vec<f64> = (0..600).map(|i| if i % 10 < 3 { 0.0 } else { 400.0 }).collect();
        let slept: Vec<f64> = (0..600).map(|i| if i % 10 == 3 { 400.0 } else { 0.0 }).collect();
        assert!(quota(&x, 0.1, &[]).is_some() && quota(&x, 0.1, &asked).is_some());
        assert_eq!(quota(&x, 0.1, &slept), None);
        // What comes through differs from time to time: no quota either.
        let mut g = Rng::new(5);
        let mut height = 0.0;
        let uneven: Vec<f64> = (0..600)
            .map(|i| {
                if i % 10 == 0 {
                    height = 1000.0 * (0.4 * g.normal()).exp();
                }
                if i % 10 < 3 { height } else { 0.0 }
            })
            .collect();
        assert_eq!(quota(&uneven, 0.1, &asked), None);
    }
}
