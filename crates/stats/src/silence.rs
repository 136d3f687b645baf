//! Slices in which nothing ended: how many there are, whether a quota per window leaves them, and the series without them.

use crate::math;

/// So many of them are the series' way, and no single stall.
const MUCH: f64 = 0.1;
/// Fewer slices than these in half of a series show no level.
pub(crate) const LEAST_SLICES: usize = 12;

/// Share of slices in which next to nothing ended.
fn silent(x: &[f64]) -> f64 {
    let low = 0.05 * math::mean(x);
    x.iter().filter(|v| **v < low).count() as f64 / x.len().max(1) as f64
}

/// Period and units of a quota per fixed window: bursts and silence in turn, at the same phase each time.
///
/// Needs slices of a quarter of the window or finer: the autocorrelation has its first strong peak at the period, and
/// a stable share of the slices is (nearly) silent.
pub(crate) fn fixed_window(x: &[f64], dt: f64) -> Option<(f64, f64)> {
    let n = x.len();
    let mean = math::mean(x);
    if n < 40 || mean <= 0.0 {
        return None;
    }
    if !(MUCH..0.95).contains(&silent(x)) {
        return None;
    }
    let d: Vec<f64> = x.iter().map(|v| v - mean).collect();
    let v: f64 = d.iter().map(|v| v * v).sum();
    let r = |k: usize| d[k..].iter().zip(&d).map(|(a, b)| a * b).sum::<f64>() / v * n as f64 / (n - k) as f64;
    let lag = (3..n / 4).find(|&k| r(k) > 0.8 && r(k) >= r(k - 1) && r(k) >= r(k + 1))?;
    Some((lag as f64 * dt, mean * lag as f64 * dt))
}

/// Empty slices hide every level: their logarithm is far from all others, and looks like noise. A series that has them on its
/// plateau, be it by a quota per window or by ops that end together, is seen by the period of that, or else in the shortest
/// slices of which hardly any is empty.
pub(crate) fn without_silence(x: &[f64], dt: f64) -> Option<(Vec<f64>, f64)> {
    let late = &x[x.len() / 2..];
    if late.len() < LEAST_SLICES || silent(late) < MUCH {
        return None;
    }
    let filled = |k: &usize| silent(&math::bin_means(late, *k)) < 0.02;
    let k = match fixed_window(late, dt) {
        Some((period_s, _)) => ((period_s / dt).round() as usize).max(2),
        None => (2..=late.len() / LEAST_SLICES).find(filled)?,
    };
    Some((math::bin_means(x, k), k as f64 * dt))
}
