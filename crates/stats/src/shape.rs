//! Shapes of a rate over time that are neither one level nor a cliff: levels that grow, and teeth.
//!
//! A limit that is raised while it is asked gives one level after the other, each flat, the next one higher: the mean over them is the
//! rate of none. One that adapts to the load goes up slowly and down at once, again and again: its mean is a mean of teeth.

use plimsoll_model::Estimate;

use crate::rate::Mean;
use crate::segment::Piece;
use crate::{math, student};

/// What a series shows.
#[derive(Debug, Clone, PartialEq)]
pub enum RateShape {
    /// Levels that follow each other, each higher than the one before.
    Grows(Vec<GrownLevel>),
    /// It rises slowly and falls at once.
    Sawtooth(Sawtooth),
}

/// One of several levels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GrownLevel {
    /// Slices of the series.
    pub piece: Piece,
    /// Mean in it, units per second.
    pub per_s: Estimate,
}

/// Whole teeth only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sawtooth {
    /// How many.
    pub teeth: usize,
    /// From one fall to the next, seconds.
    pub period_s: f64,
    /// Where a tooth begins and ends, units per second: of the middle one.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// Mean over whole teeth, with what they differ by.
    pub mean: Estimate,
}

// All of these were guessed, and tested on the shapes below.

/// Fewer levels are a step, which may be a start.
const LEAST_LEVELS: usize = 3;
/// Shortest level, seconds; a shorter one at either end is load that comes up, or a level that has only just begun.
const LEAST_LEVEL_S: f64 = 10.0;
/// A step between two levels is as high as one of `segment` at the least.
const LEAST_STEP: f64 = 0.08;
/// Within a level the rate rises by no more than this part of the lower step beside it. On a ramp it rises by as much as from one to the next.
const FLAT: f64 = 0.25;
/// A step is so many times what means over [`MEANS_S`] spread by within the levels beside it.
const CLEAR: f64 = 4.0;
const MEANS_S: f64 = 5.0;
/// Left out at either end of a level, seconds: a slice there is of both.
const EDGE_S: f64 = 1.0;

/// What is not steady by steady.rs's rules is at least so wide, over its mean.
const LEAST_RANGE: f64 = crate::steady::EXCURSION;
/// A fall is so large a part of the range, within two slices of a second; teeth rise by so large a part of it.
const FALL: f64 = 0.6;
const RISE: f64 = 0.5;
/// Correlation with time in a tooth. Theory: a square wave has 0.87 at the most.
const STRAIGHT: f64 = 0.9;
/// So many teeth at the least, this share of them straight, as far apart from each other within this share.
const LEAST_TEETH: usize = 3;
const MOSTLY: f64 = 0.75;
const REGULAR: f64 = 0.3;
/// Shorter teeth are noise of single slices, seconds.
const LEAST_TOOTH_S: usize = 5;
/// Parts of a series outside of its range on either side.
const OUTSIDE: f64 = 0.05;

/// The shape of a series of rates per slice of `dt` seconds, with its levels as `segment` cut them.
pub fn shape(x: &[f64], dt: f64, pieces: &[Piece]) -> Option<RateShape> {
    if !(math::is_series(x) && dt.is_finite() && dt > 0.0) {
        return None;
    }
    grows(x, dt, pieces).map(RateShape::Grows).or_else(|| sawtooth(x, dt).map(RateShape::Sawtooth))
}

/// Least and most that a series comes to over a few seconds, but for a little on either side.
pub fn range(x: &[f64], dt: f64) -> Option<(f64, f64)> {
    let means = math::bin_means(x, slices(MEANS_S, dt));
    (means.len() > 1).then(|| (math::quantile(&means, OUTSIDE), math::quantile(&means, 1.0 - OUTSIDE)))
}

fn slices(seconds: f64, dt: f64) -> usize {
    ((seconds / dt).round() as usize).max(1)
}

fn grows(x: &[f64], dt: f64, pieces: &[Piece]) -> Option<Vec<GrownLevel>> {
    let is_short = |p: &Piece| (p.1 - p.0) as f64 * dt < LEAST_LEVEL_S - 1e-9;
    let from = pieces.iter().position(|p| !is_short(p))?;
    let to = pieces.iter().rposition(|p| !is_short(p))? + 1;
    let pieces = &pieces[from..to];
    let edge = slices(EDGE_S, dt);
    let is_edges = |p: &Piece| p.1 - p.0 <= 2 * edge + 1;
    if pieces.len() < LEAST_LEVELS || pieces.iter().any(|p| is_short(p) || is_edges(p)) {
        return None;
    }
    let inner: Vec<&[f64]> = pieces.iter().map(|&(a, b)| &x[a + edge..b - edge]).collect();
    let rates: Vec<f64> = inner.iter().map(|v| math::mean(v)).collect();
    let steps: Vec<f64> = rates.windows(2).map(|w| w[1] - w[0]).collect();
    let wander: Vec<f64> = inner.iter().map(|v| spread(v, dt)).collect();
    let is_clear = |(i, step): (usize, &f64)| {
        *step >= LEAST_STEP * rates[i] && *step >= CLEAR * wander[i].max(wander[i + 1])
    };
    if !steps.iter().enumerate().all(is_clear) {
        return None;
    }
    let is_flat = |(i, v): (usize, &&[f64])| {
        let beside = [i.checked_sub(1), Some(i)].into_iter().flatten().filter_map(|s| steps.get(s));
        let lower = beside.copied().fold(f64::INFINITY, f64::min);
        (math::line(v).0 * (v.len() - 1) as f64).abs() <= FLAT * lower
    };
    if !inner.iter().enumerate().all(is_flat) {
        return None;
    }
    let level = |(piece, v): (&Piece, &&[f64])| {
        let m = Mean::of(v);
        let half = if m.half_width.is_finite() { m.half_width } else { m.value };
        GrownLevel { piece: *piece, per_s: Estimate::symmetric(m.value, half, m.n_eff) }
    };
    Some(pieces.iter().zip(&inner).map(level).collect())
}

/// Spread of means over a few seconds.
fn spread(v: &[f64], dt: f64) -> f64 {
    let means = math::bin_means(v, slices(MEANS_S, dt).min(v.len() / 2).max(1));
    if means.len() > 1 { math::stdev(&means, 1) } else { 0.0 }
}

fn sawtooth(x: &[f64], dt: f64) -> Option<Sawtooth> {
    let k = slices(1.0, dt);
    let y = math::bin_means(x, k);
    if y.len() < LEAST_TEETH * LEAST_TOOTH_S {
        return None;
    }
    let range = math::quantile(&y, 1.0 - OUTSIDE) - math::quantile(&y, OUTSIDE);
    if range.is_nan() || range < LEAST_RANGE * math::mean(&y) || range <= 0.0 {
        return None;
    }
    let falls = falls(&y, FALL * range);
    let teeth: Vec<&[f64]> =
        falls.windows(2).map(|w| &y[w[0]..w[1]]).filter(|t| t.len() >= LEAST_TOOTH_S).collect();
    let gaps: Vec<f64> = falls.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
    if teeth.len() < LEAST_TEETH || math::stdev(&gaps, 1) > REGULAR * math::mean(&gaps) {
        return None;
    }
    // The slices at both ends are of the fall as well.
    let lines: Vec<(f64, f64)> =
        teeth.iter().filter_map(|t| ends(&t[1..t.len() - 1], RISE * range)).collect();
    if (lines.len() as f64) < MOSTLY * teeth.len() as f64 {
        return None;
    }
    let middle = |f: fn(&(f64, f64)) -> f64| math::median(&lines.iter().map(f).collect::<Vec<f64>>());
    let means: Vec<f64> = teeth.iter().map(|t| math::mean(t)).collect();
    let n = means.len() as f64;
    let half = student::t95(n - 1.0) * math::stdev(&means, 1) / n.sqrt();
    Some(Sawtooth {
        teeth: teeth.len(),
        period_s: math::mean(&gaps) * k as f64 * dt,
        low: middle(|l| l.0),
        high: middle(|l| l.1),
        mean: Estimate::symmetric(math::mean(&means), half, n),
    })
}

/// Where it falls by so much within two slices: the first slice after each fall.
fn falls(y: &[f64], least: f64) -> Vec<usize> {
    let drop = |i: usize| y[i - 1] - y[i + 1].min(y[i]);
    let mut out: Vec<usize> = Vec::new();
    for i in (1..y.len() - 1).filter(|i| drop(*i) >= least) {
        match out.last_mut() {
            // One fall is seen at two slices.
            Some(last) if i - *last <= 2 => {
                if drop(i) > drop(*last) {
                    *last = i;
                }
            }
            _ => out.push(i),
        }
    }
    out
}

/// Begin and end of the line through a tooth, if it rises straight.
fn ends(tooth: &[f64], least: f64) -> Option<(f64, f64)> {
    let t: Vec<f64> = (0..tooth.len()).map(|i| i as f64).collect();
    let (slope, low) = math::line(tooth);
    let high = low + slope * (tooth.len() - 1) as f64;
    (high - low >= least && math::pearson(tooth, &t) >= STRAIGHT).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rng::Rng;
    use crate::segment::{SegmentOptions, segment};

    fn of(x: &[f64]) -> Option<RateShape> {
        shape(x, 1.0, &segment(x, 1.0, &SegmentOptions::default()).pieces)
    }

    fn steps(levels: &[(f64, usize)], cv: f64, g: &mut Rng) -> Vec<f64> {
        let one = |&(rate, n): &(f64, usize)| vec![rate; n];
        levels.iter().flat_map(one).map(|v| (v * (1.0 + cv * g.normal())).max(0.0)).collect()
    }

    fn levels(x: &[f64]) -> Vec<(Piece, f64)> {
        match of(x) {
            Some(RateShape::Grows(all)) => all.into_iter().map(|l| (l.piece, l.per_s.value)).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn four_exact_levels_are_four() {
        let x = steps(&[(100.0, 75), (200.0, 75), (300.0, 75), (400.0, 75)], 0.0, &mut Rng::new(1));
        assert_eq!(
            levels(&x),
            [((0, 75), 100.0), ((75, 150), 200.0), ((150, 225), 300.0), ((225, 300), 400.0)]
        );
        // A start, and a level that has only just begun, are none of them.
        let x = steps(&[(30.0, 5), (100.0, 75), (200.0, 75), (300.0, 75), (400.0, 5)], 0.0, &mut Rng::new(1));
        assert_eq!(levels(&x).iter().map(|l| l.1).collect::<Vec<f64>>(), [100.0, 200.0, 300.0]);
    }

    #[test]
    fn levels_with_noise_are_found_where_they_are() {
        for seed in 0..50 {
            let mut g = Rng::new(seed);
            let x = steps(&[(100.0, 60), (200.0, 75), (300.0, 75), (400.0, 90)], 0.05, &mut g);
            let Some(RateShape::Grows(found)) = of(&x) else { panic!("{seed}: {:?}", of(&x)) };
            assert_eq!(found.len(), 4, "{seed}: {found:?}");
            for (l, rate) in found.iter().zip([100.0, 200.0, 300.0, 400.0]) {
                assert!((l.per_s.value / rate - 1.0).abs() < 0.04, "{seed}: {l:?}");
                assert!(l.per_s.relative_half_width() < 0.06, "{seed}: {l:?}");
            }
            assert!(found.iter().zip([60, 135, 210]).all(|(l, at)| l.piece.1.abs_diff(at) <= 2), "{found:?}");
        }
    }

    #[test]
    fn ramps_are_no_levels() {
        for seed in 0..50 {
            let mut g = Rng::new(seed);
            let mut of_law = |law: &dyn Fn(f64) -> f64, cv: f64| {
                let x: Vec<f64> =
                    (0..300).map(|i| law(f64::from(i) / 300.0) * (1.0 + cv * g.normal())).collect();
                of(&x)
            };
            for cv in [0.0, 0.02, 0.05] {
                assert_eq!(of_law(&|t| 100.0 + 300.0 * t, cv), None, "{seed} {cv}");
                assert_eq!(of_law(&|t| 100.0 * 4f64.powf(t), cv), None, "{seed} {cv}");
                assert_eq!(of_law(&|t| 100.0 + 300.0 * t.sqrt(), cv), None, "{seed} {cv}");
            }
        }
    }

    #[test]
    fn a_dip_a_step_and_a_fall_are_none() {
        let mut g = Rng::new(3);
        for shape in [
            &[(400.0, 120), (100.0, 30), (400.0, 120)][..],
            &[(100.0, 120), (400.0, 120)],
            &[(400.0, 75), (300.0, 75), (200.0, 75), (100.0, 75)],
            &[(100.0, 75), (300.0, 75), (200.0, 75), (400.0, 75)],
            &[(100.0, 300)],
        ] {
            assert_eq!(of(&steps(shape, 0.03, &mut g)), None, "{shape:?}");
        }
        assert_eq!((of(&[]), of(&[1.0]), of(&[0.0; 300]), of(&[f64::NAN; 300])), (None, None, None, None));
    }

    fn teeth(period: usize, low: f64, high: f64, cv: f64, g: &mut Rng) -> Vec<f64> {
        let at = |i: usize| low + (high - low) * (i % period) as f64 / (period - 1) as f64;
        (0..300).map(|i| at(i + 7) * (1.0 + cv * g.normal())).collect()
    }

    #[test]
    fn a_sawtooth_is_one() {
        for seed in 0..30 {
            let mut g = Rng::new(seed);
            for cv in [0.0, 0.03] {
                let x = teeth(40, 60.0, 120.0, cv, &mut g);
                let Some(RateShape::Sawtooth(s)) = of(&x) else { panic!("{seed} {cv}: {:?}", of(&x)) };
                assert!(s.teeth == 6 && (s.period_s - 40.0).abs() < 0.5, "{seed} {cv}: {s:?}");
                assert!((s.low / 60.0 - 1.0).abs() < 0.1 && (s.high / 120.0 - 1.0).abs() < 0.1, "{s:?}");
                assert!(
                    (s.mean.value / 90.0 - 1.0).abs() < 0.05 && s.mean.relative_half_width() < 0.1,
                    "{s:?}"
                );
            }
        }
    }

    #[test]
    fn dips_square_waves_and_noise_are_no_teeth() {
        let mut g = Rng::new(5);
        let mut noisy = |law: &dyn Fn(usize) -> f64| -> Vec<f64> {
            (0..300).map(|i| law(i) * (1.0 + 0.03 * g.normal())).collect()
        };
        let dips = noisy(&|i| if i % 40 > 35 { 300.0 } else { 1000.0 });
        let square = noisy(&|i| if i % 40 >= 20 { 500.0 } else { 1000.0 });
        let flat = noisy(&|_| 1000.0);
        // It falls slowly and rises at once.
        let other = noisy(&|i| 1000.0 - 12.0 * (i % 40) as f64);
        for x in [dips, square, flat, other] {
            assert_eq!(of(&x), None);
        }
        let mut walk = 0.0;
        let wander: Vec<f64> = (0..600)
            .map(|_| {
                walk = 0.97 * walk + 0.06 * g.normal();
                1000.0 * f64::exp(walk)
            })
            .collect();
        assert_eq!(of(&wander), None);
    }

    #[test]
    fn the_range_leaves_out_a_stall() {
        let x: Vec<f64> =
            (0..300).map(|i| if (100..103).contains(&i) { 0.0 } else { 50.0 + f64::from(i % 50) }).collect();
        let (low, high) = range(&x, 1.0).unwrap();
        assert!(low > 45.0 && high < 100.0, "{low} {high}");
        assert_eq!(range(&[1.0; 5], 1.0), None);
    }

    proptest! {
        /// Whatever levels grow are found as those that they are, in whatever unit.
        #[test]
        fn levels_that_grow_are_found(
            first in 20.0f64..5000.0,
            all in proptest::collection::vec((1.3f64..3.0, 20usize..90), 2..6),
            cv in 0.0f64..0.02,
            seed in 0u64..1000,
        ) {
            let mut rate = first;
            let mut shape = vec![(first, 40)];
            for (factor, n) in all {
                rate *= factor;
                shape.push((rate, n));
            }
            let found = levels(&steps(&shape, cv, &mut Rng::new(seed)));
            prop_assert_eq!(found.len(), shape.len(), "{:?} {:?}", found, shape);
            for ((_, per_s), (rate, _)) in found.iter().zip(&shape) {
                prop_assert!((per_s / rate - 1.0).abs() < 0.03, "{} {}", per_s, rate);
            }
        }

        #[test]
        fn any_series_is_looked_at(x in proptest::collection::vec(0.0f64..1e6, 0..200), dt in 0.1f64..3.0) {
            let pieces = segment(&x, dt, &SegmentOptions::default()).pieces;
            if let Some(RateShape::Grows(all)) = shape(&x, dt, &pieces) {
                prop_assert!(all.windows(2).all(|w| w[0].per_s.value < w[1].per_s.value));
            }
        }
    }
}
