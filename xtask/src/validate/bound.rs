//! What no estimate can do better than: the bounds of Cramér and Rao, from the information in the data itself.
//!
//! Where a goal is missed, they say whether the method is to blame or what was measured.

use plimsoll_stats::least_squares::solve;
use plimsoll_stats::limit_model::{MeasuredCell, Theta};

/// Standard deviation of the logarithm of the knee, for cells whose mean logarithm has the standard deviation `sd`.
/// `None` where the cells do not determine it.
pub fn knee(theta: &Theta, p: f64, cells: &[MeasuredCell], sd: f64) -> Option<f64> {
    const H: f64 = 1e-4;
    let moved = |j: usize, by: f64| {
        let mut t = *theta;
        t.0[j] += by;
        t
    };
    let mut information = vec![0.0; 16];
    for c in cells {
        let at = |t: Theta| t.log_rate(c.size_bytes, c.concurrency, p);
        let slope: [f64; 4] = std::array::from_fn(|j| (at(moved(j, H)) - at(moved(j, -H))) / (2.0 * H));
        for i in 0..4 {
            for j in 0..4 {
                information[4 * i + j] += slope[i] * slope[j] / (sd * sd);
            }
        }
    }
    // The variance of W - O is a' I^-1 a: solve I x = a.
    let x = solve(information, vec![-1.0, 1.0, 0.0, 0.0], 4)?;
    let variance = x[1] - x[0];
    (variance.is_finite() && variance > 0.0).then(|| variance.sqrt())
}

/// Standard deviation, relative to the rate, of the best mean of a limiter's rate over `seconds`, if the rate wanders by `jitter`
/// as a first-order autoregression with the correlation time `tau_s` (its continuous limit: `2 tau / (T + 2 tau)`).
pub fn mean_rate(jitter: f64, tau_s: f64, seconds: f64) -> f64 {
    jitter * (2.0 * tau_s / (seconds + 2.0 * tau_s)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cells that are at one cap each: the caps are plain means, and the knee has the variance of both.
    #[test]
    fn plain_means() {
        let theta = Theta([1000f64.ln(), 1e9f64.ln(), 1e-3f64.ln(), 1e6f64.ln()]);
        let cell = |s: f64, c: f64| MeasuredCell { size_bytes: s, concurrency: c, ops_per_s: vec![] };
        let mut cells = vec![cell(1.0, 1e9), cell(1.0, 1e9), cell(1e12, 1e9), cell(1e12, 1e9)];
        cells.extend([cell(1.0, 0.01), cell(1e8, 0.01)]);
        let sd = knee(&theta, 64.0, &cells, 0.02).expect("they determine it");
        assert!((sd - 0.02).abs() < 1e-6, "{sd}");
        assert!(knee(&theta, 64.0, &cells[..2], 0.02).is_none());
        assert!((mean_rate(0.03, 5.0, 30.0) - 0.015).abs() < 1e-12);
    }
}
