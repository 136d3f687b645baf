//! What one drain shows: a cliff with the tokens recovered before it, a burst too short to be a level, or nothing.

use super::plateau::{Plateau, START};
use super::{Resource, Steadiness, ladder};
use crate::bucket::{FitOptions, FitVerdict, fit};
use crate::math;
use crate::rate::Mean;
use crate::segment::batch_interval;
use crate::silence::{quota, without_silence};
use crate::steady;
use crate::student;

/// What shape a drain has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainKind {
    /// A burst, a cliff, a plateau.
    Cliff,
    /// A burst of a second or two: significant, but no level.
    Micro,
    /// One level.
    Flat,
    /// It wanders too much to be any of these.
    Unsteady,
}

impl DrainKind {
    /// For tables: `short burst`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cliff => "cliff",
            Self::Micro => "short burst",
            Self::Flat => "flat",
            Self::Unsteady => "unsteady",
        }
    }
}

/// One drain: evidence, kept as it was seen.
#[derive(Debug, Clone, PartialEq)]
pub struct DrainEvidence {
    /// What shape it has.
    pub kind: DrainKind,
    /// Of the plateau, units per second.
    pub rate: f64,
    /// Of the 95 % interval.
    pub rate_half_width: f64,
    /// Of one level: its own mean and half width, whatever rate was known before.
    pub own: Option<(f64, f64)>,
    /// Units per second before the cliff; absent without one.
    pub burst: Option<f64>,
    /// Half width of the burst's rate, as its own batches have it.
    pub burst_half_width: f64,
    /// Tokens beyond `rate x time` that this drain found.
    pub recovered: Option<f64>,
    /// Of the 95 % interval.
    pub recovered_half_width: f64,
    /// When the burst ended, seconds from the drain's start; absent without a cliff.
    pub cliff_s: Option<f64>,
    /// Idle time before it; `None` for the first.
    pub idle_s: Option<f64>,
    /// Time since this resource was loaded last: the idle time, and before a first drain what went before it.
    pub rest_s: f64,
    /// Tokens per second that other phases took meanwhile.
    pub taken_per_s: f64,
    /// Tokens that the idle time brings at the plateau's rate.
    pub would_fill: Option<f64>,
    /// On the clock of the observations.
    pub start_s: f64,
    /// Seconds.
    pub length_s: f64,
    /// Length of a slice of `x`, seconds.
    pub dt_s: f64,
    /// Ops in flight that drained it.
    pub concurrency: u32,
    /// Mean time in system of what ended on the plateau, seconds.
    pub latency_s: Option<f64>,
    /// The drain itself: units per second, per slice.
    pub x: Vec<f64>,
    /// Buckets in series before the last: (rate, capacity), fastest first.
    pub tiers: Vec<(f64, f64)>,
    /// How the plateau behaves.
    pub steadiness: Option<Steadiness>,
    /// Period and units of a quota per fixed window, where the plateau has that shape.
    pub window: Option<(f64, f64)>,
    /// The plateau moves more than one that is steady may (SNIA's rules, as in V04): `drifted` or `moved`, and by how much.
    pub moves: Option<(&'static str, f64)>,
}

/// A rate above the known one by this factor is still the burst's.
const CUT_OFF: f64 = 1.15;
/// And by this one, where twice its interval keeps clear of the known rate (guess: limiters hold theirs within 2 %).
const SURELY: f64 = 1.03;
const NEED_FIRST_S: f64 = 20.0;
const NEED_AGAIN_S: f64 = 8.0;

fn need(first: bool) -> f64 {
    if first { NEED_FIRST_S } else { NEED_AGAIN_S }
}

/// A quota per window leaves whole slices empty, and for longer than ops that end together do by themselves (`wave_s`).
fn window(x: &[f64], dt: f64, wave_s: f64, refused: &[f64]) -> Option<(f64, f64)> {
    let found = quota(x, dt, refused)?;
    let low = 0.05 * math::mean(x);
    let silence = x.split(|v| *v >= low).map(<[f64]>::len).max().unwrap_or(0);
    (wave_s <= 0.0 || silence as f64 * dt > 2.0 * wave_s + dt).then_some(found)
}

fn fitted(x: &[f64], dt: f64, min_post_s: f64) -> crate::bucket::TierFit {
    fit(x, dt, &FitOptions { min_post_s, ..FitOptions::default() })
}

/// What is known when a drain is looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Before {
    /// No drain of this resource went before.
    pub first: bool,
    pub rate: Option<f64>,
    /// A short burst was seen, and its own cycles showed that there is none: only a cliff ends the next look.
    pub refuted: bool,
}

/// Seconds of a first drain after which a burst too short to be a level may end it, as a cliff would: as long as a steady window
/// has to be, since the plateau is what the burst is held against.
const SHORT_FIRST_S: f64 = 60.0;

/// Whether `t` seconds of draining have shown the plateau well enough.
pub(super) fn is_enough(x: &[f64], dt: f64, t: f64, before: Before) -> bool {
    let Before { first, rate: known, refuted } = before;
    if t < if first { 25.0 } else { 10.0 } {
        return false;
    }
    if let Some((y, dt)) = without_silence(x, dt) {
        return is_enough(&y, dt, t, before);
    }
    let f = fitted(x, dt, need(first));
    // A step that is no limiter's may be a stall before the cliff: a first look goes on.
    if let Some(tier) = f.tiers.last().filter(|_| !first || f.verdict.is_limiter()) {
        let after = t - tier.cliff_s;
        return after >= need(first) && (!first || tier.rate_half_width < 0.02 * tier.rate || after >= 60.0);
    }
    if first {
        let short = f.verdict == FitVerdict::NoCliff && !refuted && t >= SHORT_FIRST_S;
        return short && ShortBurst::scan(x, dt, None).is_found(EARLY_Z);
    }
    // A later drain of a known limiter that sits on the known plateau has nothing more to show.
    f.verdict == FitVerdict::NoCliff
        && known.is_some_and(|r| r > 0.0 && (f.sustained / r - 1.0).abs() < 0.05)
        && t >= need(first) + 5.0
}

impl DrainEvidence {
    pub(super) fn of(x: &[f64], dt: f64, before: Before) -> Self {
        let Before { first, rate: known, .. } = before;
        if let Some((y, dt)) = without_silence(x, dt) {
            return Self::of(&y, dt, before);
        }
        let f = fitted(x, dt, need(first).min(15.0));
        let blank = Self {
            kind: DrainKind::Unsteady,
            rate: f.sustained,
            rate_half_width: f.sustained_half_width,
            own: None,
            burst: None,
            burst_half_width: f64::INFINITY,
            recovered: None,
            recovered_half_width: f64::INFINITY,
            cliff_s: None,
            idle_s: None,
            rest_s: 0.0,
            taken_per_s: 0.0,
            would_fill: None,
            start_s: 0.0,
            length_s: 0.0,
            dt_s: dt,
            concurrency: 0,
            latency_s: None,
            x: Vec::new(),
            tiers: Vec::new(),
            steadiness: None,
            window: None,
            moves: None,
        };
        if let (true, Some(t)) = (f.verdict.is_limiter(), f.tiers.last()) {
            let pooled = known.filter(|r| *r > 0.0 && (t.rate / r - 1.0).abs() < 0.1);
            let recovered = pooled.map_or(t.capacity, |r| intercept(x, dt, t.cliff_s + 1.0, r));
            return Self {
                kind: DrainKind::Cliff,
                rate: t.rate,
                rate_half_width: t.rate_half_width,
                burst: Some(f.burst),
                burst_half_width: f.burst_half_width,
                recovered: Some(recovered),
                recovered_half_width: t.capacity_half_width,
                cliff_s: Some(t.cliff_s),
                tiers: f.tiers[..f.tiers.len() - 1].iter().map(|t| (t.rate, t.capacity)).collect(),
                ..blank
            };
        }
        if f.verdict != FitVerdict::NoCliff {
            return blank;
        }
        let pooled = known.filter(|r| *r > 0.0 && (f.sustained / r - 1.0).abs() < 0.1);
        let s = ShortBurst::scan(x, dt, pooled);
        let found = s.is_found(FOUND_Z);
        Self {
            own: Some((f.sustained, f.sustained_half_width)),
            kind: if found { DrainKind::Micro } else { DrainKind::Flat },
            rate: s.rate,
            rate_half_width: s.rate_half_width,
            recovered: Some(if found { s.recovered } else { 0.0 }),
            recovered_half_width: 2.0 * s.sd,
            ..blank
        }
    }

    /// What was taken for a plateau was a burst that had not ended.
    pub(super) fn was_a_burst(&mut self) {
        (self.kind, self.recovered) = (DrainKind::Unsteady, None);
    }

    /// The cycles of a short burst showed that there is none: it was the storage's own noise.
    pub(super) fn refute(&mut self) {
        if self.kind == DrainKind::Micro {
            self.kind = DrainKind::Flat;
            self.recovered = Some(0.0);
        }
    }

    /// A later drain that stays well above the known rate, or surely above it, was cut off before its burst had ended: it shows no
    /// plateau. Says whether it was.
    pub(super) fn was_cut_off(&mut self, known: Option<f64>) -> bool {
        let Some(r) = known.filter(|r| self.kind == DrainKind::Flat && *r > 0.0) else { return false };
        let surely = |(own, hw): (f64, f64)| own > SURELY * r && own - 2.0 * hw > r;
        let was = self.rate > CUT_OFF * r || self.own.is_some_and(surely);
        if was {
            self.was_a_burst();
        }
        was
    }

    /// A burst that buffers on the way explain is none; a larger one is not known better than they are large.
    pub(super) fn hide(&mut self, buffered: f64) {
        if self.kind == DrainKind::Micro && self.recovered.is_some_and(|r| r <= buffered) {
            (self.kind, self.recovered) = (DrainKind::Flat, Some(0.0));
        }
        self.recovered_half_width = self.recovered_half_width.hypot(buffered);
    }

    /// Looks at the part after the cliff, or at the last two thirds.
    pub(super) fn judge_plateau(&mut self, seen: &Plateau, dt: f64, of: Resource) {
        let n = seen.x.len();
        let from = match self.cliff_s {
            Some(s) => (((s + 2.0) / dt) as usize).min(n),
            None => n / START,
        };
        let part = |v: &[f64]| v.get(from.min(v.len())..).unwrap_or_default().to_vec();
        let (ok, refused, latency) = (part(&seen.ok), part(&seen.refused), part(&seen.latency_s));
        let (n_ok, n_refused): (f64, f64) = (ok.iter().sum(), refused.iter().sum());
        self.latency_s = ladder::latency(ok.iter().zip(&refused).map(|(a, b)| a + b), &latency);
        let x = part(&seen.x);
        let unit = if x == ok { 1.0 } else { whole_op(&x, &ok) };
        let share = if n_ok + n_refused > 0.0 { n_refused / (n_ok + n_refused) } else { 0.0 };
        self.moves = steady::moves(&x, dt);
        let s = Steadiness::of(&x, dt, unit, share, self.latency_s.unwrap_or(0.0));
        // Bytes that fill and empty buffers come in bursts, too.
        self.window =
            window(&x, dt, seen.wave_s(), &refused).filter(|_| of == Resource::Ops || share >= 0.01);
        // Whoever holds a rate exactly has it known exactly; the usual interval needs longer plateaus than a short probe has.
        if !self.rate_half_width.is_finite() {
            self.rate_half_width = if x.len() >= 20 { Mean::of(&x).half_width } else { f64::INFINITY };
        }
        self.steadiness = Some(s);
    }

    /// The idle time would have filled more than was found: what was found is the capacity.
    pub fn is_saturated(&self) -> bool {
        self.compare().is_some_and(|more| more)
    }

    /// What was found is what the idle time brought.
    pub fn is_unsaturated(&self) -> bool {
        self.compare().is_some_and(|more| !more)
    }

    fn compare(&self) -> Option<bool> {
        let (fill, r) = (self.would_fill?, self.recovered.filter(|r| *r > 0.0)?);
        Some(fill > 1.3 * r + self.recovered_half_width)
    }
}

/// Bytes of one op, where they come with the ops that end: what is put into a socket's buffer at once counts as one piece. 0: they
/// move in pieces smaller than an op.
fn whole_op(bytes: &[f64], ok: &[f64]) -> f64 {
    let (all, n): (f64, f64) = (bytes.iter().sum(), ok.iter().sum());
    if !(all > 0.0 && n > 0.0) {
        return 0.0;
    }
    let size = all / n;
    let apart: f64 = bytes.iter().zip(ok).map(|(b, n)| (b - n * size).abs()).sum();
    if apart <= SMALLER * all { size } else { 0.0 }
}

/// Share of the bytes that may be counted in another slice than their op (guess: a chunk at the edge of a slice).
const SMALLER: f64 = 0.1;

/// Upper envelope of `A(t) - r t` from `from_s` on.
fn intercept(x: &[f64], dt: f64, from_s: f64, r: f64) -> f64 {
    let work = math::cumulative(x, dt);
    let a = ((from_s / dt) as usize).min(work.len() - 1);
    let e: Vec<f64> = (a..work.len()).map(|t| work[t] - r * t as f64 * dt).collect();
    math::quantile(&e, 0.75)
}

/// Standard deviations of the work that a burst has to stand above the plateau.
const FOUND_Z: f64 = 5.0;
/// The same to end a drain early: it is looked at every five seconds, and noise has that many chances.
const EARLY_Z: f64 = 8.0;

/// Scan for a burst too short to be a level: `R(W) = A(W) - r W` over W, against its long-run spread.
struct ShortBurst {
    rate: f64,
    rate_half_width: f64,
    recovered: f64,
    sd: f64,
    z: f64,
}

impl ShortBurst {
    fn scan(x: &[f64], dt: f64, known: Option<f64>) -> Self {
        let half = x.len() / 2;
        let work = math::cumulative(x, dt);
        let y = &x[half..];
        let (own, hw) = batch_interval(y, dt, 10.0);
        let se = hw / 2.5;
        let rate = known.unwrap_or(own);
        let seconds = y.len() as f64 * dt;
        let k = (((if seconds >= 40.0 { 5.0 } else { 2.0 }) / dt).round_ties_even() as usize).max(2);
        let bins: Vec<f64> = y[y.len() % k..].chunks_exact(k).map(math::mean).collect();
        // Variance of the cumulative work per second.
        let lrv = math::variance(&bins, 1) * k as f64 * dt + 1e-12;
        let spread = |w: usize| {
            let t = w as f64 * dt;
            (lrv * t + (t * se).powi(2) + (0.25 * rate * dt).powi(2)).sqrt()
        };
        let longest = (half as f64 * dt).max(1.0);
        let (mut z, mut at) = (f64::NEG_INFINITY, 1);
        for i in 0..14 {
            let w = 0.5 * (longest / 0.5).powf(f64::from(i) / 13.0) / dt;
            let w = (w.round_ties_even() as usize).clamp(1, half.max(1));
            let r = work[w.min(work.len() - 1)] - rate * w as f64 * dt;
            let score = r / spread(w);
            if score > z {
                (z, at) = (score, w);
            }
        }
        // The burst was looked for in the first half; the plateau is all that came after it.
        let after = (at + (1.0 / dt).round() as usize).min(half);
        let (own, hw) = if z > FOUND_Z { batch_interval(&x[after..], dt, 10.0) } else { (own, hw) };
        let rate = known.unwrap_or(own);
        let end = (at + ((4.0 / dt) as usize).max(4)).min(work.len());
        let e: Vec<f64> = (at.min(end)..end).map(|t| work[t] - rate * t as f64 * dt).collect();
        Self { rate, rate_half_width: hw, recovered: math::quantile(&e, 0.75), sd: spread(at), z }
    }

    fn is_found(&self, z: f64) -> bool {
        self.z > z && self.recovered > 0.15 * self.rate
    }
}

/// A short bucket from repeated idle-and-drain cycles, against windows of the plateau that followed no idle time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Micro {
    pub capacity: f64,
    pub spread: f64,
    pub cycles: usize,
    pub control: f64,
    pub control_spread: f64,
}

/// Tokens beyond the rate in one short drain, from two seconds on.
pub fn micro_capacity(x: &[f64], dt: f64, rate: f64) -> f64 {
    let work = math::cumulative(x, dt);
    let from = ((2.0 / dt).round() as usize).min(work.len() - 1);
    let e: Vec<f64> = (from..work.len()).map(|t| work[t] - rate * t as f64 * dt).collect();
    math::quantile(&e, 0.6)
}

impl Micro {
    pub fn of(values: &[f64], plateau: &[f64], dt: f64, rate: f64) -> Option<Self> {
        let k = ((6.0 / dt) as usize).max(1);
        let control: Vec<f64> =
            plateau[plateau.len() / 2..].chunks_exact(k).map(|w| micro_capacity(w, dt, rate)).collect();
        if values.len() < 3 || control.len() < 3 {
            return None;
        }
        Some(Self {
            capacity: math::median(values),
            spread: math::stdev(values, 1),
            cycles: values.len(),
            control: math::mean(&control),
            control_spread: math::stdev(&control, 1),
        })
    }

    /// Of the mean of the cycles, by their spread: three cycles know it badly.
    pub fn half_width(&self) -> f64 {
        student::t95(self.cycles as f64 - 1.0) * self.spread / (self.cycles as f64).sqrt()
    }

    /// Whether the burst stands out from what the plateau does by itself.
    pub fn is_real(&self, rate: f64) -> bool {
        let se = (self.spread.powi(2) / self.cycles as f64 + self.control_spread.powi(2) / 6.0).sqrt();
        self.capacity - self.control > 4.0 * se
            && self.capacity - self.half_width() > self.control.max(0.0)
            && self.capacity > 2.0 * self.control_spread
            && self.capacity > 0.15 * rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A burst that has not ended is no plateau, however flat it is.
    #[test]
    fn a_burst_that_goes_on_is_not_enough() {
        let before = Before { first: false, rate: Some(300.0), refuted: false };
        assert!(!is_enough(&[900.0; 50], 0.2, 10.0, before));
        let mut x = vec![900.0; 50];
        x[0] = 450.0;
        assert!(!is_enough(&x, 0.2, 10.0, before), "{:?}", fitted(&x, 0.2, need(false)).tiers);
        x[0] = 1800.0;
        assert!(!is_enough(&x, 0.2, 10.0, before), "{:?}", fitted(&x, 0.2, need(false)).tiers);
    }

    /// Uploads of 1.1 MiB that a server delays to 30 MiB/s, as they were seen: a slice has whole ones, and one more or less of them
    /// is 0.04 s of the rate.
    #[test]
    fn bytes_of_whole_ops_are_held_within_some_ops() {
        let ops = "6344565574 6745746646 7466556566 4665745766 4666466557 4674574664 6655656656 5574665565 6655746736 7466466557 \
                   4754655746 6557";
        let ok: Vec<f64> = ops.chars().filter_map(|c| c.to_digit(10)).map(|n| f64::from(n) / 0.2).collect();
        let n = ok.len();
        let x: Vec<f64> = ok.iter().map(|v| v * 1_146_880.0).collect();
        let seen = Plateau { x, ok, refused: vec![0.0; n], latency_s: vec![0.583; n] };
        let before = Before { first: true, rate: None, refuted: false };
        let mut d = DrainEvidence::of(&seen.x, 0.2, before);
        d.judge_plateau(&seen, 0.2, Resource::Bytes);
        assert_eq!(d.steadiness.unwrap().cause(), super::super::Cause::Held, "{:?}", d.steadiness);
        // Bytes that come between the ends of ops are no whole ones.
        assert_eq!(whole_op(&[10.0; 20], &[0.0, 4.0].repeat(10)), 0.0);
        assert_eq!(whole_op(&[], &[]), 0.0);
    }

    /// A step that may be a stall's ended first looks before the cliff: the burst was the sustained rate then.
    #[test]
    fn a_first_look_ends_early_only_at_what_it_can_tell() {
        let before = Before { first: true, rate: None, refuted: false };
        for seed in 0..1000 {
            let mut g = crate::rng::Rng::new(seed);
            // Storage whose rate wanders within seconds, without a limiter.
            let mut away = 0.0;
            let mut slice = || {
                away += 0.03 * (g.normal() * 0.5 - away);
                1000.0 * (1.0 + away)
            };
            let mut x: Vec<f64> = (0..100).map(|_| slice()).collect();
            for t in (25..60).step_by(5) {
                x.extend((0..20).map(|_| slice()));
                let enough = is_enough(&x, 0.25, f64::from(t), before);
                assert!(
                    !enough || DrainEvidence::of(&x, 0.25, before).kind != DrainKind::Unsteady,
                    "seed {seed}"
                );
            }
        }
    }

    /// What three cycles showed, which differ by more than their mean, is no burst; six that agree are one.
    #[test]
    fn cycles_that_do_not_agree_show_nothing() {
        let plateau: Vec<f64> = (0..300).map(|i| 1000.0 + f64::from(i % 7) - 3.0).collect();
        let seen = |values: &[f64]| Micro::of(values, &plateau, 0.2, 1000.0).unwrap().is_real(1000.0);
        assert!(!seen(&[900.0, 300.0, 170.0]));
        assert!(seen(&[400.0, 420.0, 390.0, 410.0, 405.0, 400.0]));
        assert!(seen(&[400.0, 420.0, 390.0]));
    }

    /// Ops that end together leave every third slice empty: the cliff before them is as clear as any other.
    #[test]
    fn a_cliff_before_waves_is_seen() {
        let waves = |n: usize| (0..n).map(|i| [200.0, 0.0, 100.0][i % 3]);
        for n in [85, 120, 600, 870] {
            let x: Vec<f64> = [500.0].into_iter().chain([300.0; 28]).chain(waves(n)).collect();
            let d = DrainEvidence::of(&x, 0.2, Before { first: false, rate: Some(100.0), refuted: false });
            let burst = d.burst.unwrap_or_else(|| panic!("{n}: {d:?}"));
            assert!(d.kind == DrainKind::Cliff && (burst / 300.0 - 1.0).abs() < 0.05, "{n}: {d:?}");
            assert!((d.rate / 100.0 - 1.0).abs() < 0.005, "{n}: {}", d.rate);
            assert!((d.recovered.unwrap() / 1220.0 - 1.0).abs() < 0.05, "{n}: {:?}", d.recovered);
        }
    }

    /// Three ops a second: most slices are empty, at no period of whole slices.
    #[test]
    fn a_cliff_of_few_ops_is_seen() {
        let slow: Vec<f64> =
            (0..600).map(|i| if (i * 3) / 5 != ((i + 1) * 3) / 5 { 5.0 } else { 0.0 }).collect();
        let x: Vec<f64> = [30.0; 50].into_iter().chain(slow).collect();
        let d = DrainEvidence::of(&x, 0.2, Before { first: true, rate: None, refuted: false });
        assert!(d.kind == DrainKind::Cliff && (d.rate / 3.0 - 1.0).abs() < 0.02, "{:?} {}", d.kind, d.rate);
        assert!((d.recovered.unwrap() / 270.0 - 1.0).abs() < 0.05, "{:?}", d.recovered);
    }

    /// One stall is a stall, however many of its slices are empty.
    #[test]
    fn a_stall_does_not_change_how_a_series_is_seen() {
        for (n, stall) in [(100, 8), (200, 20), (600, 60), (600, 100)] {
            let x: Vec<f64> =
                (0..n).map(|i| if i > n - stall - 10 && i <= n - 10 { 0.0 } else { 100.0 }).collect();
            assert!(without_silence(&x, 0.2).is_none(), "{n} {stall}");
        }
    }

    /// 32 in flight behind a limiter of 100/s that lets them end together: slices are empty, and it is no quota per window.
    #[test]
    fn ops_that_end_together_are_no_quota() {
        let waves: Vec<f64> = (0..200).map(|i| if i % 3 == 0 { 300.0 } else { 0.0 }).collect();
        assert!(window(&waves, 0.2, 0.0, &[]).is_some() && window(&waves, 0.2, 0.32, &[]).is_none());
        let quota: Vec<f64> = (0..200).map(|i| if i % 10 == 0 { 1000.0 } else { 0.0 }).collect();
        assert!(window(&quota, 0.2, 0.32, &[]).is_some());
    }
}
