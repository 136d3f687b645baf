//! A rate that fell and stayed down: credits that ran out, or somebody else who came to the path.

use crate::math;
use crate::segment::{SegmentOptions, segment};

/// Least fall, as a share of the level before. Guess: twice what makes a level, so that the last of many levels of a noisy rate is none.
pub const LEAST: f64 = 0.16;
/// The lower level lasts so long at the least, seconds. Guess.
const STAYS_S: f64 = 5.0;

/// The one cut of a series after which everything is lower than anything was before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LastingFall {
    /// Seconds from the start of the series.
    pub at_s: f64,
    /// Mean of all before, in the series' unit.
    pub before: f64,
    /// Mean of all after.
    pub after: f64,
    /// From then to the end of the series, seconds.
    pub lasts_s: f64,
}

/// Of a series of rates (or counts) per slice of `dt` seconds, the fall from which it did not come back, where there is one: the levels of
/// the segmentation on either side of a cut, each of those after it lower by a sixth than each of those before.
pub fn lasting_fall(x: &[f64], dt: f64) -> Option<LastingFall> {
    let levels = segment(x, dt, &SegmentOptions::default()).pieces;
    let means: Vec<f64> = levels.iter().map(|(a, b)| math::mean(&x[*a..*b])).collect();
    let fall = |cut: usize| {
        let lowest = means[..cut].iter().copied().fold(f64::INFINITY, f64::min);
        let highest = means[cut..].iter().copied().fold(0.0, f64::max);
        let at = levels[cut].0;
        let lasts_s = (x.len() - at) as f64 * dt;
        (highest < (1.0 - LEAST) * lowest && lasts_s >= STAYS_S - 1e-9).then_some((
            highest / lowest,
            at,
            lasts_s,
        ))
    };
    let (_, at, lasts_s) = (1..levels.len()).filter_map(fall).min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(LastingFall {
        at_s: at as f64 * dt,
        before: math::mean(&x[..at]),
        after: math::mean(&x[at..]),
        lasts_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Slices of 100 ms around 100, with so much noise that depends on the slice before.
    fn noisy(seed: u64, n: usize, noise: f64, rho: f64, level: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        let mut e = 0.0;
        (0..n)
            .map(|i| {
                e = rho * e + (1.0 - rho * rho).sqrt() * noise * rng.normal();
                (level(i) * (1.0 + e)).max(0.0)
            })
            .collect()
    }

    #[test]
    fn a_step_down_is_found_with_its_time() {
        for seed in 0..40 {
            let x = noisy(seed, 600, 0.05, 0.5, |i| if i < 423 { 100.0 } else { 50.0 });
            let fall = lasting_fall(&x, 0.1).unwrap_or_else(|| panic!("seed {seed}"));
            assert!((fall.at_s - 42.3).abs() < 0.6, "{fall:?}");
            assert!((fall.before - 100.0).abs() < 3.0 && (fall.after - 50.0).abs() < 3.0, "{fall:?}");
            assert!((fall.lasts_s - 17.7).abs() < 0.6);
        }
    }

    #[test]
    fn what_comes_back_rises_or_is_short_is_none() {
        let none = |level: fn(usize) -> f64| {
            let x = noisy(3, 600, 0.05, 0.5, level);
            assert_eq!(lasting_fall(&x, 0.1), None);
        };
        none(|_| 100.0);
        none(|i| if (200..400).contains(&i) { 50.0 } else { 100.0 });
        none(|i| if i < 300 { 50.0 } else { 100.0 });
        none(|i| if i < 570 { 100.0 } else { 50.0 });
        none(|i| if i < 300 { 100.0 } else { 92.0 });
        assert_eq!(lasting_fall(&[], 0.1), None);
        assert_eq!(lasting_fall(&[0.0; 100], 0.1), None);
    }

    #[test]
    fn noise_is_no_fall() {
        let mut false_falls = 0;
        for (n, noise, rho) in [(100, 0.1, 0.5), (100, 0.2, 0.0), (600, 0.1, 0.8), (600, 0.2, 0.5)] {
            false_falls += (0..250)
                .filter(|s| lasting_fall(&noisy(*s, n, noise, rho, |_| 100.0), 0.1).is_some())
                .count();
        }
        assert!(false_falls <= 10, "{false_falls} of 1000");
    }
}
