//! (a) The steady window of a run, with its mean and interval, or why there is none.
//!
//! The last level of the segmentation, at least a minute long, that passes SNIA's tests on five equal rounds
//! (SSS PTS 2.0.2: excursion within 20 %, slope over the window within 10 % of the average) after MSER-5 has cut the
//! warm-up (White, Cobb and Spratt 2000), and whose slope is known well enough to say so. A line that explains the
//! series better than steps do (BIC on effective sample size) is drift, not a level.

use plimsoll_model::Estimate;

use crate::math;
use crate::rate::Mean;
use crate::segment::{Excursion, Piece, SegmentOptions, batch_interval, segment};
use crate::student;

/// SNIA: most that the five rounds may differ, and most that the fitted line may rise, relative to the mean.
pub const EXCURSION: f64 = 0.20;
/// Most that the line may rise over the window, relative to the mean (SNIA).
pub const SLOPE: f64 = 0.10;
/// Shortest window that may be called steady, seconds. Paper: a minute, as SNIA's rounds last.
pub const MIN_WINDOW_S: f64 = 60.0;
/// Rounds of the window. Paper: SNIA.
const ROUNDS: usize = 5;
/// Slices of a batch of MSER. Paper: the 5 of MSER-5.
const MSER_BATCH: usize = 5;
/// A cut of more than this share of a series is no warm-up. Guess; validated with the whole method (METHODOLOGY.md).
const MOST_WARMUP: f64 = 0.15;
/// Shortest level that a line is held against, and shortest batch of the slope, seconds. Guess; validated with the whole method (METHODOLOGY.md).
const BATCH_S: f64 = 10.0;
/// Batches of the slope, at least and at most: enough for Student's t, few enough to be independent. Guess; validated with the whole method (METHODOLOGY.md).
const SLOPE_BATCHES: (usize, usize) = (5, 12);
/// A slope that is known no better than this many times the bound says nothing. Guess; validated with the whole method (METHODOLOGY.md).
const LOOSE: f64 = 2.0;
/// A slope's error falls with the length of the window to this power. Theory: of a regression on white noise.
const ERROR_POWER: f64 = 1.5;
/// Means over so many seconds decide between line and steps. Guess; validated with the whole method (METHODOLOGY.md).
const LINE_STEP_S: f64 = 5.0;
/// Fewer of them decide nothing. Guess; validated with the whole method (METHODOLOGY.md).
const LEAST_LINE: usize = 12;
/// Residuals are cut at this many times their median: an outage is no bend. Guess; validated with the whole method (METHODOLOGY.md).
const CUT: f64 = 6.0;
/// Most autocorrelation that the effective sample size is corrected for, and the least size after it. Guess; validated with the whole method (METHODOLOGY.md).
const MOST_RHO: f64 = 0.9;
const LEAST_EFFECTIVE: f64 = 6.0;

/// Whether a rate has settled.
#[derive(Debug, Clone, PartialEq)]
pub enum SteadyVerdict {
    /// A window holds both of SNIA's rules.
    Steady,
    /// It rises or falls all along.
    Drifting,
    /// It jumps between levels, or wanders too far.
    Unstable,
    /// What is missing, and what would settle it.
    Undetermined(String),
}

impl SteadyVerdict {
    /// For data and tables: `steady`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Drifting => "drifting",
            Self::Unstable => "unstable",
            Self::Undetermined(_) => "undetermined",
        }
    }
}

/// Relative change over the window, with its 95 % interval where one could be computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// Of the line from the window's begin to its end, over the mean.
    pub change: f64,
    /// Infinite where it is not known.
    pub low: f64,
    /// Infinite where it is not known.
    pub high: f64,
}

/// What a series of rates says of a steady window in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Steady {
    /// Of the window; absent where none could be judged.
    pub verdict: SteadyVerdict,
    /// Seconds from the start of the series.
    pub window: Option<(f64, f64)>,
    /// Of the window.
    pub mean: Option<Estimate>,
    /// Half width by the plain batch means that the decisions use.
    pub batch_half_width: Option<f64>,
    /// Of the window, or of a drift of the whole series.
    pub slope: Option<Slope>,
    /// Largest less smallest round, over the mean.
    pub excursion: Option<f64>,
    /// Those of the whole series, as slices.
    pub levels: Vec<Piece>,
    /// Dips and spikes that are no levels.
    pub events: Vec<Excursion>,
}

/// Judges a series of rates per slice of `dt` seconds.
pub fn steady(x: &[f64], dt: f64) -> Steady {
    steady_with(x, dt, MIN_WINDOW_S)
}

/// The same with another shortest window (the controllers' short runs).
pub fn steady_with(x: &[f64], dt: f64, min_window_s: f64) -> Steady {
    let seg = segment(x, dt, &SegmentOptions::default());
    let mut out = Steady {
        verdict: SteadyVerdict::Undetermined(String::new()),
        window: None,
        mean: None,
        batch_half_width: None,
        slope: None,
        excursion: None,
        levels: seg.pieces,
        events: seg.events,
    };
    if let Some(why) = unusable(x, dt) {
        out.verdict = SteadyVerdict::Undetermined(why);
        return out;
    }
    if let Some(total) = drift_of_the_whole(x, dt, &out.levels) {
        out.verdict = SteadyVerdict::Drifting;
        out.slope = Some(Slope { change: total, low: f64::NEG_INFINITY, high: f64::INFINITY });
        return out;
    }
    let &(a, b) = out.levels.last().expect("a usable series has a level");
    let seen = (b - a) as f64 * dt;
    if seen < min_window_s - 1e-9 {
        out.verdict = SteadyVerdict::Undetermined(format!(
            "the last constant level lasted {seen:.0} s, and a steady window needs {min_window_s:.0} s: run {:.0} s \
             longer",
            min_window_s - seen
        ));
        return out;
    }
    let (cut, late) = mser5(&x[a..b]);
    let mut start = a + if late { 0 } else { cut };
    if ((b - start) as f64) * dt < min_window_s {
        start = a;
    }
    judge_window(&mut out, x, dt, start, b, late);
    out
}

fn unusable(x: &[f64], dt: f64) -> Option<String> {
    if x.is_empty() {
        return Some("the series is empty: nothing was measured".into());
    }
    if !(dt.is_finite() && dt > 0.0) {
        return Some(format!("the slice length of {dt} s is not a positive time"));
    }
    if !math::is_series(x) {
        return Some("the series contains a value that is not a rate".into());
    }
    if x.iter().all(|v| *v == 0.0) {
        return Some("no op succeeded: every slice is zero".into());
    }
    (x.len() < ROUNDS).then(|| format!("{} slices are too few for five rounds", x.len()))
}

/// Total relative change if one straight line beats the steps and it is more than SNIA's 10 %.
fn drift_of_the_whole(x: &[f64], dt: f64, levels: &[Piece]) -> Option<f64> {
    let (cut, late) = mser5(x);
    // Warm-up is not drift; but a larger cut is no warm-up.
    let d0 = if late || cut as f64 > MOST_WARMUP * x.len() as f64 { 0 } else { cut };
    let shifted: Vec<Piece> = levels
        .iter()
        .filter(|(_, j)| *j as f64 - d0 as f64 > (BATCH_S / dt).floor())
        .map(|&(i, j)| (i.saturating_sub(d0), j - d0))
        .collect();
    let (beats, total) = line_beats_steps(&x[d0..], dt, &shifted);
    (beats && total.abs() > SLOPE).then_some(total)
}

fn judge_window(out: &mut Steady, x: &[f64], dt: f64, start: usize, end: usize, late: bool) {
    let y = &x[start..end];
    out.window = Some((start as f64 * dt, end as f64 * dt));
    let rounds = math::batch_means(y, ROUNDS);
    let m = math::mean(&rounds);
    let (low, high) = rounds.iter().fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(*v), h.max(*v)));
    let excursion = if m > 0.0 { (high - low) / m } else { 0.0 };
    out.excursion = Some(excursion);
    let mean = Mean::of(y);
    out.mean = Some(Estimate::symmetric(mean.value, mean.half_width, mean.n_eff));
    out.batch_half_width = Some(batch_interval(y, dt, BATCH_S).1);
    let Some(s) = slope_interval(y, dt) else {
        out.verdict = SteadyVerdict::Undetermined("the window is zero on average: nothing to judge".into());
        return;
    };
    out.slope = Some(s);
    out.verdict = if s.change.abs() > SLOPE && (s.low > 0.0 || s.high < 0.0) {
        SteadyVerdict::Drifting
    } else if excursion > EXCURSION {
        SteadyVerdict::Unstable
    } else if s.low.abs().max(s.high.abs()) > LOOSE * SLOPE {
        let longer =
            ((s.high - s.low) / (2.0 * LOOSE * SLOPE)).powf(1.0 / ERROR_POWER) * (end - start) as f64 * dt;
        SteadyVerdict::Undetermined(format!(
            "the window is too short to bound its drift (between {:+.0} % and {:+.0} %): run about {:.0} s longer",
            100.0 * s.low,
            100.0 * s.high,
            (longer - (end - start) as f64 * dt).max(BATCH_S)
        ))
    } else if late {
        SteadyVerdict::Undetermined("the warm-up took more than half of the window: run twice as long".into())
    } else {
        SteadyVerdict::Steady
    };
}

/// A plateau shorter than this, or of rounds with less in them than a few slices, is not judged, seconds.
const LEAST_PLATEAU_S: f64 = 20.0;

/// Whether a plateau, however short, surely moves more than a steady one may: by SNIA's rules, with what chance explains taken
/// off. Says how, and by which share of its mean.
pub fn moves(x: &[f64], dt: f64) -> Option<(&'static str, f64)> {
    if (x.len() as f64) * dt < LEAST_PLATEAU_S || unusable(x, dt).is_some() {
        return None;
    }
    let s = slope_interval(x, dt)?;
    if s.change.abs() > SLOPE && (s.low > 0.0 || s.high < 0.0) {
        return Some(("drifted", s.change));
    }
    let rounds = math::batch_means(x, 5);
    let m = math::mean(&rounds);
    let (low, high) = rounds.iter().fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(*v), h.max(*v)));
    // Two of five that differ by chance alone do so by 2.3 standard errors in the mean, by 3.9 in one case of twenty.
    let chance = 3.9 * math::stdev(x, 1) / ((x.len() / 5).max(1) as f64).sqrt();
    (m > 0.0 && high - low > EXCURSION * m + chance).then(|| ("moved", (high - low) / m))
}

/// MSER-5: samples to cut from the start, and whether the best cut is at half of the series (too late to trust).
pub fn mser5(x: &[f64]) -> (usize, bool) {
    let y = math::bin_means(x, MSER_BATCH);
    let n = y.len();
    if n == 0 {
        return (0, true);
    }
    let half = n / 2;
    // Variances of all tails from the end, in one pass.
    let (mut sum, mut squares) = (0.0, 0.0);
    // Relative to the last value: a constant tail then has a variance of exactly zero, however long.
    let shift = y[n - 1];
    let mut cost = vec![f64::INFINITY; n];
    for d in (0..n).rev() {
        let v = y[d] - shift;
        sum += v;
        squares += v * v;
        let k = (n - d) as f64;
        cost[d] = (squares / k - (sum / k).powi(2)).max(0.0) / k;
    }
    let mut d = 0;
    for i in 0..=half.min(n - 1) {
        if cost[i] < cost[d] {
            d = i;
        }
    }
    (d * MSER_BATCH, d >= half)
}

/// Relative change over the window with its interval, by regression on 5 to 12 batch means of 10 s or more.
pub fn slope_interval(y: &[f64], dt: f64) -> Option<Slope> {
    let nb = ((y.len() as f64 * dt / BATCH_S).floor() as usize).clamp(SLOPE_BATCHES.0, SLOPE_BATCHES.1);
    let b = math::batch_means(y, nb);
    let m = math::mean(&b);
    if b.len() < SLOPE_BATCHES.0 || m <= 0.0 {
        return None;
    }
    let (s, c) = math::line(&b);
    let t0 = (nb as f64 - 1.0) / 2.0;
    let stt: f64 = (0..nb).map(|i| (i as f64 - t0).powi(2)).sum();
    let rss: f64 = b.iter().enumerate().map(|(i, v)| (v - c - s * i as f64).powi(2)).sum();
    let se = (rss / (nb - 2) as f64 / stt).sqrt();
    let q = student::t95((nb - 2) as f64);
    let k = nb as f64 / m;
    Some(Slope { change: s * k, low: (s - q * se) * k, high: (s + q * se) * k })
}

/// Whether one straight line has the better BIC than the levels, on means over 5 s with the number of
/// observations deflated for autocorrelation; and the line's total relative change.
fn line_beats_steps(x: &[f64], dt: f64, levels: &[Piece]) -> (bool, f64) {
    let k = ((LINE_STEP_S / dt).round_ties_even() as usize).max(1);
    let y = math::bin_means(x, k);
    let m = y.len();
    if m < LEAST_LINE {
        return (false, 0.0);
    }
    let (slope, c) = math::line(&y);
    let mut by_line: Vec<f64> = y.iter().enumerate().map(|(i, v)| v - c - slope * i as f64).collect();
    let mut by_steps = y.clone();
    for &(a, b) in levels {
        let i = (a as f64 / k as f64).round_ties_even() as usize;
        let j = m.min(((b as f64 / k as f64).round_ties_even() as usize).max(i + 1));
        if i < j {
            let level = math::median(&y[i..j]);
            by_steps[i..j].iter_mut().for_each(|v| *v -= level);
        }
    }
    let size: Vec<f64> = by_line.iter().map(|v| v.abs()).collect();
    let cut = CUT * math::median(&size);
    by_line.iter_mut().for_each(|v| *v = v.clamp(-cut, cut));
    let rho = math::pearson(&by_line[1..], &by_line[..m - 1]).clamp(0.0, MOST_RHO);
    let ne = (m as f64 * (1.0 - rho) / (1.0 + rho)).max(LEAST_EFFECTIVE);
    let bic = |r: &[f64], p: f64| {
        let ms = r.iter().map(|v| v * v).sum::<f64>() / r.len() as f64;
        ne * (ms + 1e-12).ln() + p * ne.ln()
    };
    let mean = math::mean(&y);
    let total = if mean > 0.0 { slope * m as f64 / mean } else { 0.0 };
    (bic(&by_line, 2.0) < bic(&by_steps, 2.0 * levels.len() as f64 - 1.0), total)
}
