//! What says that a plateau is a limiter's, and not the storage's own speed.

use crate::math;
pub(super) use crate::throttle::REFUSED;

/// Strongest evidence first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A burst that comes back after rest: a bucket.
    Bucket,
    /// Refusals (429, 503 SlowDown) while the rate is held.
    Refusals,
    /// The rate is held more exactly than storage does by itself: what a stall holds up is made good. Links do that too.
    Held,
    /// Refusals, and no rate that is held: a limiter whose law is another one, or that a saturating load keeps shut.
    Refusing,
    /// Nothing tells it from the storage's own speed.
    None,
}

impl Cause {
    /// For a sentence: `a burst that comes back after rest`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Bucket => "a burst that comes back after rest",
            Self::Refusals => "refusals while the rate stays constant",
            Self::Held => "a rate steadier than storage produces by itself",
            Self::Refusing => "refusals, at a rate that is not constant",
            Self::None => "none; the rate may be the storage's own speed",
        }
    }
}

/// How a plateau behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steadiness {
    /// Length of the plateau that was looked at.
    pub seconds: f64,
    /// Largest less smallest distance of the work done from the straight line, in seconds of the rate.
    pub wander_s: f64,
    /// The same in ops; infinite for bytes that move in pieces smaller than an op.
    pub wander_ops: f64,
    /// Mean square change of that distance over a sixth of the plateau, over that of two slices: what wanders by chance goes
    /// the further the longer it goes; what is held comes back. Infinite: the plateau is too short, against the latency, to tell.
    pub growth: f64,
    /// Share of attempts that were refused.
    pub refused: f64,
    /// Mean latency of what ended, seconds.
    pub latency_s: f64,
    /// It is longer than a slice, and the work is averaged over it: a series of few independent pieces.
    pub is_averaged: bool,
}

/// A plateau shorter than this says nothing about how exactly a rate is held.
const LEAST_S: f64 = 10.0;
/// Refusals say it themselves.
const LEAST_REFUSED_S: f64 = 4.0;
/// A limiter makes a stall good as far as its bucket allows, often a tenth of a second. Storage whose rate varies by
/// 1 % from second to second wanders by 0.07 s in 20 s, and by more over longer times.
const HELD_S: f64 = 0.04;
const HELD_OPS: f64 = 2.5;
/// By chance alone it is 8 and more for the shortest plateau; what is held stays near 1.
const HELD_GROWTH: f64 = 3.0;
/// What was averaged over a latency tells less: by chance it was 2.9 in two of 160 storages (limiters: 1 and less).
const HELD_AVERAGED: f64 = 2.0;
/// Times that the latency has to fit into a sixth of the plateau for averages over it to wander by chance: 4 and more then.
const LAGS: usize = 4;
/// Less is rounding.
const RESOLUTION_S: f64 = 1e-6;
const LOOSE_S: f64 = 0.5;
const LOOSE_GROWTH: f64 = 1.5;
const LOOSE_AVERAGED: f64 = 1.0;
/// With refusals the limiter is plain: the rate only has to be held, not exactly.
const REFUSED_WANDER_S: f64 = 0.5;

impl Steadiness {
    /// `x`: units per second of the plateau; `unit`: one op in those units.
    ///
    /// Ops count when they end. Where a limiter lets them through together they end together, as often as their latency is long:
    /// the work then goes in steps of all that is in flight, which hide how it is held, and would hide as well how storage
    /// wanders. So it is averaged over a latency; a plateau that is too short for that does not tell how its rate is held.
    pub fn of(x: &[f64], dt: f64, unit: f64, refused: f64, latency_s: f64) -> Self {
        let lag = lag(latency_s, dt);
        let too_short = lag.is_some_and(|k| x.len() < slices_to_tell(k));
        let lag = lag.filter(|_| !too_short);
        let smooth: Vec<f64>;
        let x = match lag {
            Some(k) => {
                smooth = x.windows(k).map(math::mean).collect();
                &smooth
            }
            None => x,
        };
        let rate = math::mean(x);
        let work = math::cumulative(x, dt);
        let away: Vec<f64> = work.iter().enumerate().map(|(i, w)| w - rate * i as f64 * dt).collect();
        let low = away.iter().copied().fold(0.0, f64::min);
        let wander = away.iter().copied().fold(0.0, f64::max) - low;
        Self {
            seconds: x.len() as f64 * dt,
            wander_s: if rate > 0.0 { wander / rate } else { f64::INFINITY },
            wander_ops: if unit > 0.0 { wander / unit } else { f64::INFINITY },
            // Sums round: what moves by less than a microsecond of the rate does not move, and its growth is arithmetic's own.
            growth: match () {
                () if wander <= RESOLUTION_S * rate => 0.0,
                () if too_short => f64::INFINITY,
                () => growth(&away, lag.unwrap_or(2)),
            },
            refused,
            latency_s,
            is_averaged: lag.is_some(),
        }
    }

    /// What its shape, and its refusals, tell about who holds it.
    pub fn cause(&self) -> Cause {
        let refused = self.refused >= REFUSED;
        if refused {
            let held =
                self.seconds >= LEAST_REFUSED_S && self.wander_s <= REFUSED_WANDER_S.max(0.02 * self.seconds);
            // Who refuses limits, whatever passes meanwhile: nothing at all where refusals cost tokens.
            return if held { Cause::Refusals } else { Cause::Refusing };
        }
        if self.is_held_exactly() { Cause::Held } else { Cause::None }
    }

    /// More exactly than storage does by itself, whatever was refused.
    pub fn is_held_exactly(&self) -> bool {
        if self.seconds < LEAST_S || !self.wander_s.is_finite() {
            return false;
        }
        let most = if self.is_averaged { HELD_AVERAGED } else { HELD_GROWTH };
        let exactly = (self.wander_s <= HELD_S || self.wander_ops <= HELD_OPS) && self.growth <= most;
        // Buffers on the way fill and empty: further away, but no further in the long run.
        let loosely = self.wander_s <= LOOSE_S
            && self.growth <= if self.is_averaged { LOOSE_AVERAGED } else { LOOSE_GROWTH };
        exactly || loosely
    }

    /// What it strays by does not grow at all with the time that it has.
    pub(super) fn comes_back(&self) -> bool {
        self.growth <= LOOSE_GROWTH
    }

    /// Half width of the mean rate, relative: the line's ends are off by no more than the wander.
    pub fn relative_half_width(&self) -> f64 {
        if self.seconds > 0.0 { self.wander_s / self.seconds } else { f64::INFINITY }
    }
}

/// Slices that a latency lasts, where it is more than one.
fn lag(latency_s: f64, dt: f64) -> Option<usize> {
    Some((latency_s / dt).round() as usize).filter(|k| *k > 1)
}

/// Slices of a plateau from which on averages over `lag` of them tell who holds it.
fn slices_to_tell(lag: usize) -> usize {
    6 * LAGS * lag
}

/// Seconds of plateau that ops of such a latency take to tell a rate that is held from the storage's own; `None`: any length that
/// is looked at does.
pub(super) fn seconds_to_tell(latency_s: f64, dt: f64) -> Option<f64> {
    lag(latency_s, dt).map(|k| slices_to_tell(k) as f64 * dt)
}

/// `lag`: slices over which the series was averaged, else two.
fn growth(away: &[f64], lag: usize) -> f64 {
    let change = |lag: usize| {
        let n = away.len().saturating_sub(lag);
        let sum: f64 = away[lag.min(away.len())..].iter().zip(away).map(|(b, a)| (b - a) * (b - a)).sum();
        if n > 0 { sum / n as f64 } else { f64::NAN }
    };
    let (short, long) = (change(1).max(change(2)).max(change(lag)), change(away.len() / 6));
    // What does not move at all is held.
    if long <= 1e-18 { 0.0 } else { long / short.max(1e-18) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn storage_wanders_and_limiters_do_not() {
        let mut g = Rng::new(3);
        let own: Vec<f64> = (0..200).map(|_| 1000.0 * (1.0 + 0.05 * g.normal())).collect();
        let s = Steadiness::of(&own, 0.2, 1.0, 0.0, 0.01);
        assert_eq!(s.cause(), Cause::None, "{s:?}");
        // Stalls of half of a slice, made good in the next one.
        let held: Vec<f64> = (0..200)
            .map(|i| match i % 20 {
                3 => 900.0,
                4 => 1100.0,
                _ => 1000.0,
            })
            .collect();
        assert_eq!(Steadiness::of(&held, 0.2, 1.0, 0.0, 0.01).cause(), Cause::Held);
        // A rate that is held to the last digit, in bytes: what is left are rounded sums.
        assert_eq!(Steadiness::of(&[67_066_382.440_997_99; 400], 0.2, 0.0, 0.0, 0.01).cause(), Cause::Held);
        assert_eq!(Steadiness::of(&own, 0.2, 1.0, 0.3, 0.01).cause(), Cause::Refusals);
        assert_eq!(Steadiness::of(&held[..10], 0.2, 1.0, 0.3, 0.01).cause(), Cause::Refusing);
        // Nearly all is refused, and nothing passes: that is no storage without a limiter.
        assert_eq!(Steadiness::of(&[0.0; 100], 0.2, 1.0, 0.9996, 0.01).cause(), Cause::Refusing);
        assert_eq!(Steadiness::of(&[0.0; 100], 0.2, 1.0, 0.0, 0.01).cause(), Cause::None);
        // A fast server whose ops vary by 10 % each: it wanders little, and further the longer it goes.
        let fast: Vec<f64> = (0..600).map(|_| 2400.0 + 5.0 * g.normal() / 0.2f64.sqrt()).collect();
        let s = Steadiness::of(&fast, 0.2, 1.0, 0.0, 0.01);
        assert!(s.wander_s < 0.1 && s.cause() == Cause::None, "{s:?}");
        // 32 uploads in flight at 20 a second, all let through together: steps of 1.6 s, which are the limiter's way.
        let steps: Vec<f64> = [0.0, 0.0, 20.0, 40.0, 40.0, 40.0, 15.0, 5.0].repeat(29);
        let s = Steadiness::of(&steps, 0.2, 0.0, 0.0, 1.6);
        assert!(s.wander_s < 0.1 && s.cause() == Cause::Held, "{s:?}");
        // The same steps of storage whose rate varies by 1 % over seconds: they do not hide that it wanders.
        let mut slow_noise = 0.0;
        let wandering: Vec<f64> = steps
            .iter()
            .map(|v| {
                slow_noise += 0.05 * (0.075 * g.normal() - slow_noise);
                v * (1.0 + slow_noise)
            })
            .collect();
        let s = Steadiness::of(&wandering, 0.2, 0.0, 0.0, 1.6);
        assert_eq!(s.cause(), Cause::None, "{s:?}");
        // 64 downloads in flight that take 3 s each, for 10 s: how far apart they end hides whether anything is held.
        let short: Vec<f64> = (0..50).map(|_| 4e7 * (1.0 + 0.2 * g.normal())).collect();
        let s = Steadiness::of(&short, 0.2, 0.0, 0.0, 2.9);
        assert!(s.wander_s < 0.5 && s.cause() == Cause::None, "{s:?}");
        // Ten ops a second: whole ops are all that can be seen.
        let slow: Vec<f64> = (0..200).map(|i| if i % 2 == 0 { 10.0 } else { 5.0 }).collect();
        assert_eq!(Steadiness::of(&slow, 0.2, 1.0, 0.0, 1.0).cause(), Cause::Held);
    }
}
