//! (c) Token buckets from one passive series: sustained rate, burst rate and capacity, tier by tier.
//!
//! A limiter with capacity B and rate r lets through at most `B + r t`. Under a load that saturates it from a full
//! bucket, the work done after the cliff lies on that line, so that B is the intercept of the cumulative curve:
//! `B = Q75{A(t) - r t}` over the first 5 to 30 s after the cliff. The rate is a mean, not a median: limiters bank tokens
//! during stalls and give them back. Half width: `(T hw_r)^2 + (step dt / 4 + in flight)^2 + IQR^2`.

use crate::math;
use crate::rate::Mean;
use crate::segment::{Excursion, Piece, SegmentOptions, batch_interval, segment};
use crate::silence::{LEAST_SLICES, without_silence};

/// What the series shows.
#[derive(Debug, Clone, PartialEq)]
pub enum FitVerdict {
    /// One level all along: no more than a bound follows (see [`min_bucket`]).
    NoCliff,
    /// One bucket.
    Bucket,
    /// Two or more in series.
    MultiTier,
    /// It wanders too much to be read; why.
    Unsteady(String),
    /// Too short, or too uncertain; why.
    Undetermined(String),
}

impl FitVerdict {
    /// A level ends in a cliff, once or more often.
    pub fn is_limiter(&self) -> bool {
        matches!(self, Self::Bucket | Self::MultiTier)
    }

    /// For data and tables: `no-cliff`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoCliff => "no-cliff",
            Self::Bucket => "bucket",
            Self::MultiTier => "multi-tier",
            Self::Unsteady(_) => "unsteady",
            Self::Undetermined(_) => "undetermined",
        }
    }
}

/// One bucket: all half widths are of 95 % intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tier {
    /// Units per second in the long run.
    pub rate: f64,
    /// Of `rate`.
    pub rate_half_width: f64,
    /// In units of the series (ops or bytes).
    pub capacity: f64,
    /// Of `capacity`.
    pub capacity_half_width: f64,
    /// Seconds from the start.
    pub cliff_s: f64,
    /// Rate before the cliff.
    pub before: f64,
    /// Whether the capacity stands out from what the slice and the ops in flight hide.
    pub resolved: bool,
}

/// A stretch in which the rate holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLevel {
    /// Seconds from the start of the series.
    pub start_s: f64,
    /// Seconds from the start of the series.
    pub end_s: f64,
    /// Mean, units per second.
    pub rate: f64,
}

/// A downward step against the noise of the levels beside it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelStep {
    /// Logarithm of the ratio of the levels.
    pub height: f64,
    /// Height over the slow wander of either level (spread of medians over 10 s).
    pub over_wander: f64,
    /// Height over the spread of single slices of a second before it.
    pub over_noise: f64,
    /// Spread of such slices after it over that before: a limiter flattens.
    pub noise_ratio: f64,
    /// The same of what changes from one second to the next. Noise that wanders slowly spreads less in a short level than in a
    /// long one, and looks flatter there; from second to second it changes as much as before.
    pub jump_ratio: f64,
}

/// Changes from second to second that are less than this share of those before are a limiter's: in half a minute of the same
/// noise they are so in less than one case of a hundred.
const CALMER: f64 = 0.65;

impl LevelStep {
    /// Whether slow noise could have made it. A limiter flattens: a step with a flatter level after it may be half as
    /// clear, and a small one
    /// without is none, unless it stands clear of single slices too.
    fn is_weak(&self) -> bool {
        let flatter = self.noise_ratio < 0.5 && self.jump_ratio < CALMER && self.over_wander >= 2.0;
        // Clear of both sides: a level that is calm before and not after was calm by chance.
        let over_both = self.over_noise / self.noise_ratio.max(1.0);
        (self.over_wander < 4.0 && !flatter)
            || (self.height < 0.25 && self.noise_ratio > 0.5 && over_both < 8.0)
    }
}

/// What one passive series shows of token buckets.
#[derive(Debug, Clone, PartialEq)]
pub struct TierFit {
    /// What the figures may be taken for.
    pub verdict: FitVerdict,
    /// In order, as the fit cut them.
    pub levels: Vec<RateLevel>,
    /// In order of their cliffs: the last is the slowest.
    pub tiers: Vec<Tier>,
    /// Mean of the last level, units per second.
    pub sustained: f64,
    /// Of the 95 % interval; infinite where nothing could be fitted.
    pub sustained_half_width: f64,
    /// Mean of the first level, units per second.
    pub burst: f64,
    /// Of the 95 % interval.
    pub burst_half_width: f64,
    /// Relative change over the last level.
    pub drift: f64,
    /// How each step stands against the noise beside it.
    pub steps: Vec<LevelStep>,
    /// Dips and spikes that are no levels.
    pub events: Vec<Excursion>,
    /// Of the whole series, seconds.
    pub length_s: f64,
}

impl TierFit {
    /// Tokens of a bucket that a sustained rate of `r` would need, and that this run does not exclude.
    pub fn not_excluded(&self, r: f64) -> f64 {
        (self.sustained - r).max(0.0) * self.length_s
    }
}

/// What a fit needs, and what it cannot see.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitOptions {
    /// Seconds after the cliff that a fit needs.
    pub min_post_s: f64,
    /// Smallest step that is a cliff, as a share of the rate.
    pub min_step: f64,
    /// Ops (or bytes) in flight: what the measurement can't tell apart from the bucket.
    pub in_flight: f64,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self { min_post_s: 20.0, min_step: 0.08, in_flight: 0.0 }
    }
}

/// Fits `x`, units per second per slice of `dt` seconds, under a saturating load from a full bucket.
pub fn fit(x: &[f64], dt: f64, o: &FitOptions) -> TierFit {
    if let Some((y, dt)) = without_silence(x, dt).filter(|(y, _)| y.len() >= LEAST_SLICES) {
        return fit(&y, dt, o);
    }
    let seg = segment(x, dt, &SegmentOptions { min_step: o.min_step, ..SegmentOptions::default() });
    let n = x.len();
    if let Some(why) = unusable(x, dt) {
        return empty(FitVerdict::Undetermined(why), n as f64 * dt);
    }
    // What the levels look like decides whether they are a limiter's; what was spent where, how large it is.
    let seen = collapse_wander(x, absorb_short(x, dt, seg.pieces, o.min_step), o.min_step);
    let pieces = end_of_burst(x, dt, &seen);
    let means = |p: &[Piece]| p.iter().map(|&(a, b)| math::mean(&x[a..b])).collect::<Vec<f64>>();
    let rates = means(&pieces);
    let &(post_a, post_b) = pieces.last().expect("a usable series has a piece");
    let post_s = (post_b - post_a) as f64 * dt;
    let guard = part(post_s, GUARD_S, dt);
    let y = &x[(post_a + guard).min(post_b - 1)..post_b];
    let y = &y[..before_late_stall(y, dt)];
    let (r, hr) = level_mean(y, dt);
    let drift = relative_rise(y, r);
    let mut out = TierFit {
        levels: pieces
            .iter()
            .zip(&rates)
            .map(|(&(a, b), &rate)| RateLevel { start_s: a as f64 * dt, end_s: b as f64 * dt, rate })
            .collect(),
        sustained: r,
        sustained_half_width: hr,
        drift,
        events: seg.events,
        ..empty(FitVerdict::NoCliff, n as f64 * dt)
    };
    if pieces.len() == 1 {
        (out.burst, out.burst_half_width) = (r, hr);
        return out;
    }
    if !rates.windows(2).all(|w| w[0] > w[1] * (1.0 + o.min_step / 2.0)) {
        out.verdict = FitVerdict::Unsteady("its levels do not only fall".into());
        return out;
    }
    out.steps = steps(x, dt, &seen, &means(&seen));
    out.verdict = verdict(&out, post_s, o.min_post_s);
    let (a, b) = seen[0];
    let g = part(post_s, START_S, dt).min((b - a) / 4);
    (out.burst, out.burst_half_width) = batch_interval(&x[a + g..(b - 1).max(a + g + 1)], dt, 3.0);
    out.tiers = tiers(x, dt, &pieces, &rates, (r, hr), o.in_flight);
    out
}

/// Longest part of a level that is left out after its cliff, seconds. The slice in which the cliff falls is a mixture, and work in
/// flight ends in it; whatever else is left out is missed in the mean, which for 30 s of plateau is what limits it.
const GUARD_S: f64 = 1.0;
/// The same at the start of the burst, where load is still coming up.
const START_S: f64 = 2.0;

/// Slices of a tenth of a level, at most `most_s`.
fn part(level_s: f64, most_s: f64, dt: f64) -> usize {
    ((0.1 * level_s).min(most_s) / dt).round_ties_even() as usize
}

fn unusable(x: &[f64], dt: f64) -> Option<String> {
    if !(dt.is_finite() && dt > 0.0) {
        return Some(format!("the slice length of {dt} s is not a positive time"));
    }
    if !math::is_series(x) {
        return Some("the series contains a value that is not a rate".into());
    }
    if x.len() < 8 {
        return Some(format!("{} slices are too few to show a constant level", x.len()));
    }
    x.iter().all(|v| *v == 0.0).then(|| "no op succeeded: every slice is zero".into())
}

fn empty(verdict: FitVerdict, length_s: f64) -> TierFit {
    TierFit {
        verdict,
        levels: vec![],
        tiers: vec![],
        sustained: 0.0,
        sustained_half_width: f64::INFINITY,
        burst: 0.0,
        burst_half_width: f64::INFINITY,
        drift: 0.0,
        steps: vec![],
        events: vec![],
        length_s,
    }
}

/// A step of less than this share of the largest drop is none: a limiter's burst wanders, too.
const WEAK: f64 = 0.2;
/// Drops count up to this (a logarithm): an outage is one of any height, and makes no two levels one.
const DEEP: f64 = 2.1;
/// Longest piece that can't be a level of its own here, seconds; and longest run of such pieces.
const SHORT_S: f64 = 8.0;
const SHORT_RUN_S: f64 = 16.0;

/// Joins what a stall leaves behind: a dip with its catch-up between two equal levels, a slow start, a dip at the
/// end, and a short piece on the way down. The tokens stay counted: only the cliff's place and its levels are cleared.
fn absorb_short(x: &[f64], dt: f64, mut p: Vec<Piece>, min_step: f64) -> Vec<Piece> {
    let len = |q: Piece| (q.1 - q.0) as f64 * dt;
    let short = |q: Piece| len(q) <= SHORT_S;
    // A run of short pieces between two levels that agree: up to what counts as no step beside the largest drop.
    let logs: Vec<f64> = p.iter().map(|q| log_level(x, *q)).collect();
    let drop = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max) - logs.last().copied().unwrap_or(0.0);
    let mut i = 1;
    while i < p.len() {
        let before = p[i - 1];
        let near = min_step.max((2.0 * fine(x, dt, before)).min(0.2)).max(WEAK * drop.min(DEEP));
        let run = p[i..].iter().take_while(|q| short(**q)).count();
        // The furthest that is back at the level before.
        let back = (i..(i + run + 1).min(p.len())).rev().find(|&j| {
            let within = (p[j].0 - p[i].0) as f64 * dt;
            if j == i || within > SHORT_RUN_S || len(before) < 0.5 * within {
                return false;
            }
            let is_back = (log_level(x, before) - log_level(x, p[j])).abs() < near;
            is_back && (short(p[j]) || len(p[j]) >= 0.5 * within)
        });
        match back {
            Some(j) => {
                p[i - 1].1 = p[j].1;
                p.drain(i..=j);
            }
            None => i += 1,
        }
    }
    // A slow start.
    while p.len() > 1 && short(p[0]) && log_level(x, p[0]) < log_level(x, p[1]) {
        p[1].0 = p[0].0;
        p.remove(0);
    }
    // A dip that the end of the series cuts off.
    while p.len() > 2 && short(p[p.len() - 1]) {
        let last = p.len() - 1;
        p[last - 1].1 = p[last].1;
        p.remove(last);
    }
    // A short piece on the way down, or beside it, belongs to the burst before it.
    let mut i = 1;
    while i + 1 < p.len() {
        let (before, here, after) = (log_level(x, p[i - 1]), log_level(x, p[i]), log_level(x, p[i + 1]));
        if short(p[i]) && before > after + min_step && here > after {
            p[i - 1].1 = p[i].1;
            p.remove(i);
        } else {
            i += 1;
        }
    }
    p
}

fn log_level(x: &[f64], (a, b): Piece) -> f64 {
    math::median(&x[a..b]).max(1e-9).ln()
}

/// A limiter only steps down: joins neighbours whose step is small next to the largest drop, weakest first.
fn collapse_wander(x: &[f64], mut pieces: Vec<Piece>, min_step: f64) -> Vec<Piece> {
    while pieces.len() > 2 {
        let logs: Vec<f64> = pieces.iter().map(|&p| log_level(x, p)).collect();
        let steps: Vec<f64> = logs.windows(2).map(|w| w[0] - w[1]).collect();
        let largest = steps.iter().copied().fold(f64::NEG_INFINITY, f64::max).min(DEEP);
        let floor = min_step.ln_1p().max(WEAK * largest);
        let weak = (0..steps.len())
            .filter(|&i| steps[i] < floor && steps[i].abs() < floor.max(0.35 * largest))
            .min_by(|&i, &j| steps[i].abs().total_cmp(&steps[j].abs()));
        let Some(i) = weak else { break };
        pieces[i].1 = pieces[i + 1].1;
        pieces.remove(i + 1);
    }
    pieces
}

/// Seconds after a cliff in which the burst may come back, and the least step (a logarithm) that shows that it does.
const AGAIN_S: f64 = 10.0;
const AGAIN_STEP: f64 = 0.25;

/// Moves a cliff behind what is still burst. A stall shortly before the cliff looks like the cliff, and a stall shortly after it
/// brings its tokens back at the burst's rate: either way the bucket is known to be empty only after the last slice that is
/// nearer to the level before than to the one after. Counted to the plateau, three such seconds lift its rate by up to 20 %.
fn end_of_burst(x: &[f64], dt: f64, seen: &[Piece]) -> Vec<Piece> {
    let mut pieces = seen.to_vec();
    let reach = (AGAIN_S / dt).round() as usize;
    for i in 1..pieces.len() {
        let (a, b) = pieces[i];
        let (before, after) = (log_level(x, pieces[i - 1]), log_level(x, pieces[i]));
        if before - after < AGAIN_STEP {
            continue;
        }
        let middle = ((before + after) / 2.0).exp();
        // The first slices are left out anyway.
        let from = a + part((b - a) as f64 * dt, GUARD_S, dt);
        let end = (a + reach).min(a + (b - a) / 2);
        if let Some(last) = (from..end).rev().find(|&k| x[k] > middle) {
            pieces[i - 1].1 = last + 1;
            pieces[i].0 = last + 1;
        }
    }
    pieces
}

/// Samples of a plateau up to a stall in its last 10 s. Tokens banked during a stall come back after it: a mean that
/// ends in between is low by up to 5 % in half a minute.
fn before_late_stall(y: &[f64], dt: f64) -> usize {
    let late = y.len().saturating_sub((10.0 / dt).round() as usize);
    if late < y.len() / 2 {
        return y.len();
    }
    let level = math::median(y);
    y[late..].iter().position(|v| *v < 0.6 * level).map_or(y.len(), |i| late + i)
}

/// Mean of a level and its half width: the wider of none, so that short levels do not claim too much.
fn level_mean(y: &[f64], dt: f64) -> (f64, f64) {
    if y.len() < 6 {
        return batch_interval(y, dt, 10.0);
    }
    let m = Mean::of(y);
    // A window of half a minute can't see correlations of its own length: simulated limiters whose rate wanders for
    // 5 s need a quarter more there, and nothing more from two minutes on.
    let window_s = y.len() as f64 * dt;
    (m.value, m.half_width * (1.0 + 0.25 * (30.0 / window_s).powi(2)))
}

fn relative_rise(y: &[f64], r: f64) -> f64 {
    if y.len() <= 5 || r <= 0.0 { 0.0 } else { math::line(y).0 * (y.len() - 1) as f64 / r }
}

/// Spread of the logarithm of medians over 10 s: the slow wander of a level. Medians, so that a stall is none.
fn wander(x: &[f64], dt: f64, (a, b): Piece) -> f64 {
    let k = ((10.0 / dt).round_ties_even() as usize).max(2);
    let m = (b - a) / k;
    if m < 3 {
        return 0.0;
    }
    let v: Vec<f64> = x[b - m * k..b].chunks_exact(k).map(|c| math::median(c).max(1e-9).ln()).collect();
    math::stdev(&v, 1)
}

/// Robust spread of the logarithm of means over a second.
fn fine(x: &[f64], dt: f64, piece: Piece) -> f64 {
    spread(&log_seconds(x, dt, piece)).max(whole_op(x, dt, piece))
}

/// Robust spread of what that logarithm changes by from one second to the next.
fn jump(x: &[f64], dt: f64, piece: Piece) -> f64 {
    let d: Vec<f64> = log_seconds(x, dt, piece).windows(2).map(|w| w[1] - w[0]).collect();
    spread(&d).max(whole_op(x, dt, piece))
}

fn log_seconds(x: &[f64], dt: f64, (a, b): Piece) -> Vec<f64> {
    let k = ((1.0 / dt).round() as usize).max(1);
    math::bin_means(&x[a..b], k).into_iter().map(|v| v.max(1e-9).ln()).collect()
}

/// Half of the middle two thirds.
fn spread(v: &[f64]) -> f64 {
    if v.is_empty() { 0.0 } else { (math::quantile(v, 0.84) - math::quantile(v, 0.16)) / 2.0 }
}

/// Slow rates come in whole ops, which hide a spread of less than half of one.
fn whole_op(x: &[f64], dt: f64, (a, b): Piece) -> f64 {
    let k = ((1.0 / dt).round() as usize).max(1);
    0.5 * quantum(&x[a..b]) / k as f64 / math::mean(&x[a..b]).max(1e-9)
}

/// Least difference between values: one op over the slice where ops are counted, next to nothing elsewhere.
fn quantum(x: &[f64]) -> f64 {
    let mut v = x.to_vec();
    v.sort_unstable_by(f64::total_cmp);
    let least = v.windows(2).map(|w| w[1] - w[0]).filter(|d| *d > 0.0).fold(f64::INFINITY, f64::min);
    if least.is_finite() { least } else { 0.0 }
}

fn steps(x: &[f64], dt: f64, pieces: &[Piece], rates: &[f64]) -> Vec<LevelStep> {
    (0..pieces.len() - 1)
        .map(|i| {
            let height = (rates[i].max(1e-9) / rates[i + 1].max(1e-9)).ln();
            let slow = wander(x, dt, pieces[i]).max(wander(x, dt, pieces[i + 1])).max(1e-3);
            let (before, after) = (fine(x, dt, pieces[i]).max(1e-3), fine(x, dt, pieces[i + 1]).max(1e-3));
            let jumps = |p: Piece| jump(x, dt, p).max(1e-3);
            LevelStep {
                height,
                over_wander: height / slow,
                over_noise: height / before,
                noise_ratio: after / before,
                jump_ratio: jumps(pieces[i + 1]) / jumps(pieces[i]),
            }
        })
        .collect()
}

fn verdict(out: &TierFit, post_s: f64, min_post_s: f64) -> FitVerdict {
    let weak = out.steps.iter().any(LevelStep::is_weak);
    if post_s < min_post_s {
        FitVerdict::Undetermined(format!(
            "only {post_s:.0} s were measured after the cliff, and {min_post_s:.0} s are needed: run {:.0} s longer",
            min_post_s - post_s
        ))
    } else if weak {
        FitVerdict::Unsteady("its step is not clear of the slow variation of the rate".into())
    } else if out.drift.abs() > 0.10 && out.drift.abs() * out.sustained > 2.0 * out.sustained_half_width {
        FitVerdict::Undetermined("the rate still drifts after the cliff: run twice as long".into())
    } else if out.levels.len() == 2 {
        FitVerdict::Bucket
    } else {
        FitVerdict::MultiTier
    }
}

fn tiers(x: &[f64], dt: f64, pieces: &[Piece], rates: &[f64], last: (f64, f64), in_flight: f64) -> Vec<Tier> {
    let work = math::cumulative(x, dt);
    (1..pieces.len())
        .map(|i| {
            let (a, b) = pieces[i];
            let span_s = (b - a) as f64 * dt;
            let g = part(span_s, GUARD_S, dt);
            let (r, hr) = if i == pieces.len() - 1 {
                last
            } else {
                level_mean(&x[a + g..(b - 1).max(a + g + 3).min(x.len())], dt)
            };
            let cliff_s = a as f64 * dt;
            let reach = (((0.25 * span_s).clamp(5.0, 30.0) / dt).round_ties_even() as usize).max(4);
            let e: Vec<f64> = (a + g..=b.min(a + g + reach)).map(|t| work[t] - r * t as f64 * dt).collect();
            let mut e = e;
            e.sort_unstable_by(f64::total_cmp);
            let capacity = math::quantile_sorted(&e, 0.75);
            let spread = capacity - math::quantile_sorted(&e, 0.25);
            let resolution = (rates[i - 1] - rates[i]) * dt * 0.25 + in_flight;
            let hw = ((cliff_s * hr).powi(2) + resolution.powi(2) + spread.powi(2)).sqrt();
            Tier {
                rate: r,
                rate_half_width: hr,
                capacity,
                capacity_half_width: hw,
                cliff_s,
                before: rates[i - 1],
                resolved: capacity > 3.0 * resolution,
            }
        })
        .collect()
}

/// Frontier: the smallest bucket that any limiter of sustained rate `r` must have to allow this series,
/// `max over s <= t of A(t) - A(s) - r (t - s)`. Needs no fit.
pub fn min_bucket(x: &[f64], dt: f64, r: f64) -> f64 {
    let (mut least, mut most, mut e) = (0.0f64, 0.0f64, 0.0f64);
    for v in x {
        e += (v - r) * dt;
        least = least.min(e);
        most = most.max(e - least);
    }
    most
}
