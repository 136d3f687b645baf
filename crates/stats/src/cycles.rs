//! A fall between two cycles of a benchmark that is repeated: one number a cycle, so few that the methods for series of slices
//! have nothing to hold on to.

use crate::math;
use crate::student;

/// Fewer cycles on either side show no level.
const LEAST_CYCLES: usize = 2;
/// The smallest fall that is told (as for levels in a series, `segment`).
const LEAST_FALL: f64 = 0.08;
/// Chance of a fall that is none: of the best of all places where it could be (guess: one in a thousand places).
const CHANCE: f64 = 1e-3;

/// A fall that lasts to the end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fall {
    /// The first cycle after it, from 0.
    pub first_after: usize,
    /// Geometric means of the cycles on either side.
    pub before: f64,
    /// Of the cycles from `first_after` on.
    pub after: f64,
}

/// The place at which two levels explain the cycles best, where the later one is surely lower.
pub fn fall(per_cycle: &[f64]) -> Option<Fall> {
    let n = per_cycle.len();
    if n < 2 * LEAST_CYCLES + 1 || per_cycle.iter().any(|v| !(v.is_finite() && *v > 0.0)) {
        return None;
    }
    let y: Vec<f64> = per_cycle.iter().map(|v| v.ln()).collect();
    let squares = |v: &[f64]| v.len() as f64 * math::variance(v, 0);
    let at = (LEAST_CYCLES..=n - LEAST_CYCLES).min_by(|&a, &b| {
        let cost = |i: usize| squares(&y[..i]) + squares(&y[i..]);
        cost(a).total_cmp(&cost(b))
    })?;
    let (before, after) = (math::mean(&y[..at]), math::mean(&y[at..]));
    let df = (n - 2) as f64;
    let sd = ((squares(&y[..at]) + squares(&y[at..])) / df).sqrt().max(1e-4);
    let se = sd * (1.0 / at as f64 + 1.0 / (n - at) as f64).sqrt();
    let (height, p) = (before - after, student::tail((before - after) / se, df));
    let sure = height > LEAST_FALL.ln_1p() && p < CHANCE / n as f64;
    sure.then(|| Fall { first_after: at, before: before.exp(), after: after.exp() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn a_fall_is_found_where_it_is() {
        let f = fall(&[300.0, 310.0, 305.0, 298.0, 120.0, 118.0, 121.0]).unwrap();
        assert_eq!(f.first_after, 4);
        assert!((f.before - 303.0).abs() < 2.0 && (f.after - 119.7).abs() < 1.0, "{f:?}");
        assert_eq!(fall(&[300.0, 310.0, 120.0]), None, "one cycle is no level");
        assert_eq!(fall(&[100.0, 100.0, 300.0, 300.0, 300.0]), None, "a rise is no fall");
        assert_eq!(fall(&[1.0, 0.0, f64::NAN, 2.0, 3.0, 4.0]), None);
    }

    #[test]
    fn cycles_that_differ_by_chance_do_not_fall() {
        let said = (0..2000).filter(|seed| {
            let mut g = Rng::new(*seed);
            let n = 5 + g.below(20);
            let v: Vec<f64> = (0..n).map(|_| 100.0 * (0.1 * g.normal()).exp()).collect();
            fall(&v).is_some()
        });
        assert!(said.count() <= 10);
    }
}
