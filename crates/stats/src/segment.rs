//! One segmentation engine for steady state, throttle verdict and bucket fit: a series to levels and events.
//!
//! PELT (Killick, Fearnhead and Eckley 2012) on the logarithm of the running median, then excursions that
//! return to where they came from are absorbed as events, then boundaries that carry no step are merged, weakest
//! first (as hunter does, after Matteson and James 2014). Penalty: `max(6 ln n s^2 (1+r)/(1-r), ml (d/2)^2 / 2)` with
//! noise s and lag-1 correlation r estimated from first and second differences, so that steps do not inflate them.

use crate::math;
use crate::student;

/// A piece of the series with one level: samples `start..end`.
pub type Piece = (usize, usize);

/// A short departure from a level, and back: a stall, a dip, or the catch-up after it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Excursion {
    /// Seconds from the start of the series.
    pub start_s: f64,
    /// Seconds from the start of the series.
    pub end_s: f64,
    /// Relative to the level around it: -0.7 is 70 % below.
    pub change: f64,
}

/// A series cut into levels.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Segmentation {
    /// In order, without gaps, covering the whole series. Empty only for an empty series.
    pub pieces: Vec<Piece>,
    /// Departures too short for levels.
    pub events: Vec<Excursion>,
}

/// What counts as a level and as a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SegmentOptions {
    /// Smallest step that matters: the smallest that a specification of +-5 % would care about.
    pub min_step: f64,
    /// Longest excursion that is an event, seconds.
    pub transient_s: f64,
    /// Shortest level, seconds.
    pub min_level_s: f64,
    /// Points to bin the series to: PELT's cost stays bounded.
    pub max_points: usize,
    /// Factor of the penalty per change: 3 is strict, so that noise makes no levels.
    pub penalty: f64,
}

impl Default for SegmentOptions {
    /// The fields say what for; the values were guessed, and validated with the whole method (METHODOLOGY.md).
    fn default() -> Self {
        Self { min_step: 0.08, transient_s: 8.0, min_level_s: 3.0, max_points: 1500, penalty: 3.0 }
    }
}

// Of those below, what has no paper was guessed, and validated with the whole method (METHODOLOGY.md).

/// Fewer points are one piece.
const LEAST_POINTS: usize = 8;
/// Fewer values have no spread of differences, and no batches.
const LEAST_VALUES: usize = 6;
/// Most lag-1 correlation that noise is corrected for.
const MOST_LAG1: f64 = 0.8;
/// Rates below this share of the median are as good as silence: their logarithm would be a level of its own.
const NEAR_ZERO: f64 = 1e-3;
/// Half of the running median's window, seconds.
const MEDIAN_HALF_S: f64 = 1.5;
/// Least noise of a logarithm: a simulated or paced series has none, and every ripple would be a step.
const LEAST_NOISE: f64 = 0.004;
/// An excursion lasts this share of the series at most, where that is more than `transient_s`.
const MOST_EXCURSION: f64 = 0.02;
/// Levels beside an excursion agree within this many times the noise.
const AGREE: f64 = 2.0;
/// And the shorter of them lasts this share of the excursion at least.
const BESIDE: f64 = 0.5;
/// Added to the spread within pieces, so that two constant pieces do not divide by zero.
const LEAST_SPREAD: f64 = 0.003;
/// A step of this many spreads needs no test; a lesser one has to be significant at this level.
const FAR: f64 = 4.0;
const SIGNIFICANT: f64 = 1e-3;
/// Values of a batch of the long-run error, and its batches, least and most.
const ERROR_BATCH: usize = 10;
const ERROR_BATCHES: (usize, usize) = (3, 12);
/// The error of a piece without batches is taken for this many times the plain one.
const UNSURE: f64 = 2.0;
/// Reach of the refinement of an edge, in binned points.
const REACH: usize = 3;
/// Batches of an interval, least and most; fewer than [`FEW_BATCHES`] are not made for correlation's sake.
const INTERVAL_BATCHES: (usize, usize) = (3, 10);
const FEW_BATCHES: usize = 5;
/// Batches whose lag-1 correlation (corrected for its bias) is below this count as independent. Paper: Schmeiser 1982 for
/// the method; the value is a guess.
const INDEPENDENT: f64 = 0.15;

/// Splits a series of rates (or counts) per slice of `dt` seconds into levels.
///
/// A series that is too short to split, or that holds something that is no rate, is one piece.
pub fn segment(x: &[f64], dt: f64, o: &SegmentOptions) -> Segmentation {
    let n = x.len();
    let whole = Segmentation { pieces: if n == 0 { vec![] } else { vec![(0, n)] }, events: vec![] };
    if !(math::is_series(x) && dt.is_finite() && dt > 0.0) {
        return whole;
    }
    let mut k = 1;
    while n / k > o.max_points {
        k += 1;
    }
    if n / k < LEAST_POINTS {
        return whole;
    }
    let s = Smoothed::of(x, k, dt);
    let min_len = ((o.min_level_s / s.dt).round_ties_even() as usize).max(2);
    // A change smaller than min_step that lasts only min_level_s is never of interest.
    let floor = 0.5 * min_len as f64 * (o.min_step / 2.0).powi(2);
    let m = s.y.len() as f64;
    let beta = (o.penalty * 2.0 * m.ln() * s.noise * s.noise * (1.0 + s.lag1) / (1.0 - s.lag1)).max(floor);
    let mut edges = vec![0];
    edges.extend(optimal_partition(&s.y, beta, min_len));
    edges.push(s.y.len());
    let events = absorb_excursions(&mut edges, &s, o);
    merge_weak(&mut edges, &s.y, o.min_step);
    for e in &mut edges {
        *e *= k;
    }
    if let Some(last) = edges.last_mut() {
        *last = n;
    }
    refine(&mut edges, x, k, s.window);
    Segmentation { pieces: edges.windows(2).map(|w| (w[0], w[1])).collect(), events }
}

/// Noise of the series around its levels: standard deviation and lag-1 correlation, robust to rare steps.
pub fn noise(x: &[f64]) -> (f64, f64) {
    if x.len() < LEAST_VALUES {
        return (math::stdev(x, 0), 0.0);
    }
    let d1: Vec<f64> = x.windows(2).map(|w| w[1] - w[0]).collect();
    let d2: Vec<f64> = x.windows(3).map(|w| w[2] - w[0]).collect();
    let (v1, v2) = (math::mad_sd(&d1), math::mad_sd(&d2));
    if v1 <= 0.0 {
        return (0.0, 0.0);
    }
    let r = ((v2 / v1).powi(2) - 1.0).clamp(0.0, MOST_LAG1);
    (v1 / (2.0 * (1.0 - r)).sqrt(), r)
}

/// The binned series, its logarithm smoothed by a running median.
struct Smoothed {
    y: Vec<f64>,
    /// Seconds per point.
    dt: f64,
    /// Points of the running median.
    window: usize,
    noise: f64,
    lag1: f64,
}

impl Smoothed {
    fn of(x: &[f64], k: usize, dt: f64) -> Self {
        let binned = math::bin_means(x, k);
        let floor = (math::median(&binned) * NEAR_ZERO).max(1e-12);
        let y: Vec<f64> = binned.iter().map(|v| v.max(floor).ln()).collect();
        let (noise, lag1) = noise(&y);
        let dt = dt * k as f64;
        let window = (2.0 * (MEDIAN_HALF_S / dt).round_ties_even() + 1.0).max(1.0) as usize;
        Self { y: running_median(&y, window), dt, window, noise: noise.max(LEAST_NOISE), lag1 }
    }

    fn level(&self, a: usize, b: usize) -> f64 {
        math::median(&self.y[a..b])
    }
}

/// Centred running median of odd `w`; the first and last half window hold the median of the window at the edge.
fn running_median(y: &[f64], w: usize) -> Vec<f64> {
    let m = y.len();
    let h = w / 2;
    let mut out: Vec<f64> = if w > 1 && m > 3 * w {
        (0..m).map(|i| if i < h || i + h >= m { 0.0 } else { math::median(&y[i - h..=i + h]) }).collect()
    } else {
        y.to_vec()
    };
    let h = h.min(m);
    let (first, last) = (math::median(&y[..w.min(m)]), math::median(&y[m - w.min(m)..]));
    out[..h].fill(first);
    out[m - h..].fill(last);
    out
}

/// The exact least-squares partition with `beta` per change and pieces of at least `min_len`: inner edges.
fn optimal_partition(y: &[f64], beta: f64, min_len: usize) -> Vec<usize> {
    let n = y.len();
    let (mut s, mut q) = (vec![0.0; n + 1], vec![0.0; n + 1]);
    for (i, v) in y.iter().enumerate() {
        s[i + 1] = s[i] + v;
        q[i + 1] = q[i] + v * v;
    }
    let mut best = vec![f64::INFINITY; n + 1];
    best[0] = -beta;
    let mut last = vec![0usize; n + 1];
    let mut candidates = vec![0usize];
    let mut costs = Vec::new();
    for t in min_len..=n {
        let usable = candidates.partition_point(|&c| c + min_len <= t);
        costs.clear();
        for &c in &candidates[..usable] {
            let d = s[t] - s[c];
            let cost = best[c] + (q[t] - q[c] - d * d / (t - c) as f64) + beta;
            costs.push(cost);
            if cost < best[t] {
                best[t] = cost;
                last[t] = c;
            }
        }
        let mut i = 0;
        candidates.retain(|_| {
            i += 1;
            i > usable || costs[i - 1] - beta <= best[t]
        });
        candidates.push(t);
    }
    let mut edges = Vec::new();
    let mut t = n;
    while last[t] > 0 {
        t = last[t];
        edges.push(t);
    }
    edges.reverse();
    edges
}

/// Turns a short piece between two that agree into an event; shortest first.
fn absorb_excursions(e: &mut Vec<usize>, s: &Smoothed, o: &SegmentOptions) -> Vec<Excursion> {
    let mut events = Vec::new();
    let longest = o.transient_s.max(MOST_EXCURSION * s.y.len() as f64 * s.dt);
    'again: while e.len() > 3 {
        let mut order: Vec<usize> = (1..e.len() - 2).collect();
        order.sort_by_key(|&i| e[i + 1] - e[i]);
        for i in order {
            let len = e[i + 1] - e[i];
            if len as f64 * s.dt > longest {
                continue;
            }
            let (a, b) = (s.level(e[i - 1], e[i]), s.level(e[i + 1], e[i + 2]));
            let shorter = (e[i] - e[i - 1]).min(e[i + 2] - e[i + 1]);
            if (a - b).abs() < o.min_step.max(AGREE * s.noise) && shorter as f64 >= len as f64 * BESIDE {
                events.push(Excursion {
                    start_s: e[i] as f64 * s.dt,
                    end_s: e[i + 1] as f64 * s.dt,
                    change: (s.level(e[i], e[i + 1]) - a).exp() - 1.0,
                });
                e.drain(i..i + 2);
                continue 'again;
            }
        }
        break;
    }
    events.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    events
}

/// Removes edges that carry no step: smaller than `min_step`, or neither far outside the spread within the
/// pieces nor significant by Welch's test with standard errors from batch means.
fn merge_weak(e: &mut Vec<usize>, y: &[f64], min_step: f64) {
    while e.len() > 2 {
        let mut weakest: Option<(f64, usize)> = None;
        for i in 1..e.len() - 1 {
            let (a, b) = (&y[e[i - 1]..e[i]], &y[e[i]..e[i + 1]]);
            let d = (math::median(a) - math::median(b)).abs();
            let within = ((math::variance(a, 0) + math::variance(b, 0)) / 2.0).sqrt() + LEAST_SPREAD;
            let (sa, da) = long_run_error(a);
            let (sb, db) = long_run_error(b);
            let p = student::two_sided(d / sa.hypot(sb).max(1e-9), da + db);
            let strong = d > FAR * within || p < SIGNIFICANT;
            if (d < min_step.ln_1p() || !strong) && weakest.is_none_or(|w| d / within < w.0) {
                weakest = Some((d / within, i));
            }
        }
        match weakest {
            Some((_, i)) => e.remove(i),
            None => break,
        };
    }
}

/// Standard error of a mean from batch means, and its degrees of freedom.
fn long_run_error(v: &[f64]) -> (f64, f64) {
    let n = v.len();
    if n < LEAST_VALUES {
        return (math::stdev(v, 1) / (n.max(2) as f64).sqrt() * UNSURE, 2.0);
    }
    let nb = (n / ERROR_BATCH).clamp(ERROR_BATCHES.0, ERROR_BATCHES.1);
    (math::stdev(&math::batch_means(v, nb), 1) / (nb as f64).sqrt(), (nb - 1) as f64)
}

/// Moves each edge to where the raw samples put it: least sum of absolute deviations, cut at the step's height.
fn refine(e: &mut [usize], x: &[f64], k: usize, window: usize) {
    for i in 1..e.len().saturating_sub(1) {
        let (a0, b0) = (math::median(&x[e[i - 1]..e[i]]), math::median(&x[e[i]..e[i + 1]]));
        let cut = (a0 - b0).abs();
        let reach = REACH * k + window;
        let low = (e[i - 1] + 2).max(e[i].saturating_sub(reach));
        let high = (e[i + 1].saturating_sub(2)).min(e[i] + reach);
        if high <= low {
            continue;
        }
        let (mut best, mut at) = (f64::INFINITY, e[i]);
        for c in low..=high {
            let cost: f64 = x[low..c].iter().map(|v| (v - a0).abs().min(cut)).sum::<f64>()
                + x[c..high].iter().map(|v| (v - b0).abs().min(cut)).sum::<f64>();
            if cost < best - 1e-12 {
                (best, at) = (cost, c);
            }
        }
        e[i] = at;
    }
}

/// Mean and 95 % half width by batch means of at least `min_batch_s`, enlarged until neighbours hardly correlate.
///
/// Decisions inside the methods use this one; what is reported uses [`crate::rate::Mean`], which covers better.
pub fn batch_interval(x: &[f64], dt: f64, min_batch_s: f64) -> (f64, f64) {
    let n = x.len();
    if n < LEAST_VALUES {
        return (math::mean(x), f64::INFINITY);
    }
    let mut nb =
        ((n as f64 * dt / min_batch_s).floor() as usize).clamp(INTERVAL_BATCHES.0, INTERVAL_BATCHES.1);
    loop {
        let b = math::batch_means(x, nb);
        if nb <= FEW_BATCHES || crate::rate::lag1(&b) + 1.0 / (nb as f64) < INDEPENDENT {
            let se = math::stdev(&b, 1) / (nb as f64).sqrt();
            return (math::mean(x), student::t95((nb - 1) as f64) * se);
        }
        nb -= 1;
    }
}
