//! Student's t and the normal and chi-squared distributions, as far as intervals and tests need them.
//!
//! Degrees of freedom are real numbers: an effective sample size is not whole.

use statrs::function::beta::beta_reg;
use statrs::function::erf::{erfc, erfc_inv};
use statrs::function::gamma::gamma_ur;

/// `P(T > t)` for Student's t with `df` degrees of freedom. Not a number in: 1 out (nothing is shown).
pub fn tail(t: f64, df: f64) -> f64 {
    if t.is_nan() || df.is_nan() {
        return 1.0;
    }
    if t.is_infinite() {
        return if t > 0.0 { 0.0 } else { 1.0 };
    }
    let df = df.max(1e-3);
    if df > 1e7 {
        return normal_tail(t);
    }
    let half = 0.5 * beta_reg(df / 2.0, 0.5, df / (df + t * t));
    if t >= 0.0 { half } else { 1.0 - half }
}

/// Two-sided p-value of a t statistic.
pub fn two_sided(t: f64, df: f64) -> f64 {
    (2.0 * tail(t.abs(), df)).min(1.0)
}

/// The quantile `t` with `P(T <= t) = p`, for p strictly between 0 and 1.
pub fn quantile(p: f64, df: f64) -> f64 {
    if p.is_nan() || p <= 0.0 || p >= 1.0 || df.is_nan() {
        return f64::INFINITY.copysign(p - 0.5);
    }
    if p < 0.5 {
        return -quantile(1.0 - p, df);
    }
    if p == 0.5 {
        return 0.0;
    }
    if df > 1e7 {
        return normal_quantile(p);
    }
    let target = 1.0 - p;
    // The tail falls monotonically: bracket, then bisect in log t, which no shape of the tail upsets.
    let (mut low, mut high) = (0.0f64, 1.0f64);
    while tail(high, df) > target {
        low = high;
        high *= 2.0;
        if high > 1e12 {
            return high;
        }
    }
    for _ in 0..60 {
        let mid = 0.5 * (low + high);
        if tail(mid, df) > target {
            low = mid;
        } else {
            high = mid;
        }
        if high - low <= 1e-12 * high {
            break;
        }
    }
    0.5 * (low + high)
}

/// Factor for a 95 % two-sided interval: `t` at 0.975.
pub fn t95(df: f64) -> f64 {
    quantile(0.975, df.max(1.0))
}

/// `P(Z > z)` of the standard normal.
pub fn normal_tail(z: f64) -> f64 {
    0.5 * erfc(z / std::f64::consts::SQRT_2)
}

/// Quantile of the standard normal.
pub fn normal_quantile(p: f64) -> f64 {
    std::f64::consts::SQRT_2 * erfc_inv(2.0 * (1.0 - p))
}

/// `P(X > x)` of chi-squared with `df` degrees of freedom.
pub fn chi_squared_tail(x: f64, df: f64) -> f64 {
    if x <= 0.0 || df <= 0.0 { 1.0 } else { gamma_ur(df / 2.0, x / 2.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of scipy 1.17's `stats.t.ppf` and `stats.t.sf`.
    #[test]
    fn agrees_with_tables() {
        for (p, df, want) in [
            (0.975, 1.0, 12.706204736432095),
            (0.975, 4.0, 2.7764451051977934),
            (0.975, 9.0, 2.262157162740992),
            (0.8, 8.0, 0.8888895177660656),
            (0.975, 2.5, 3.5746548420036817),
            (0.975, 1e9, 1.959963984540054),
        ] {
            assert!((quantile(p, df) - want).abs() < 1e-4 * want, "{p} {df}: {}", quantile(p, df));
        }
        assert!((two_sided(2.262157162740992, 9.0) - 0.05).abs() < 1e-9);
        assert!((chi_squared_tail(3.841458820694124, 1.0) - 0.05).abs() < 1e-9);
        assert!((quantile(0.025, 9.0) + quantile(0.975, 9.0)).abs() < 1e-12);
    }

    #[test]
    fn odd_input_is_no_panic() {
        assert_eq!(tail(f64::NAN, 3.0), 1.0);
        assert!(quantile(0.0, 3.0).is_infinite());
        assert_eq!(tail(f64::INFINITY, 3.0), 0.0);
    }
}
