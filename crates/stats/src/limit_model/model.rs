//! The p-norm model itself and its fit for given exponents.

use crate::least_squares::{FitSettings, minimise};

/// Exponents that are tried: 1 is one shared resource, 64 the plain minimum.
pub const EXPONENTS: [f64; 8] = [1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 64.0];

/// Logarithms of O (ops/s), W (bytes/s), L0 (s) and v (bytes/s).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Theta(pub [f64; 4]);

impl Theta {
    /// Unloaded latency, seconds.
    pub fn latency(&self) -> f64 {
        self.0[2].exp()
    }

    /// Bandwidth of one stream, bytes per second.
    pub fn stream(&self) -> f64 {
        self.0[3].exp()
    }

    /// Logarithm of the rate that each cap alone would allow: ops, bytes, latency.
    pub fn terms(&self, s: f64, c: f64) -> [f64; 3] {
        [self.0[0], self.0[1] - s.ln(), c.ln() - (self.latency() + s / self.stream()).ln()]
    }

    /// Logarithm of the rate.
    pub fn log_rate(&self, s: f64, c: f64, p: f64) -> f64 {
        let t = self.terms(s, c);
        let m = t[0].min(t[1]).min(t[2]);
        m - t.iter().map(|x| (-p * (x - m)).exp()).sum::<f64>().ln() / p
    }
}

pub struct Fit {
    pub theta: Theta,
    pub exponent: f64,
    pub cost: f64,
    pub by_exponent: Vec<(f64, f64)>,
}

/// Standard errors beyond which a cell's loss is linear (validated, as the caps are: a few bad cells do not decide).
const SOFT: f64 = 2.0;
/// Logarithms: what no rate, time or bandwidth exceeds.
const BOUNDS: [(f64, f64); 4] = [(-60.0, 60.0); 4];
/// Steps of the fit (guess; it takes a dozen or two).
const MAX_STEPS: usize = 60;
/// The least noise that a cell is credited with, as a logarithm (guess).
const LEAST_NOISE: f64 = 0.005;
/// Caps at the start, over the highest rate that was seen (guess).
const ABOVE_SEEN: f64 = 1.02;
/// By how much, as a logarithm, the other starts are pushed: a factor of two (guess).
const PUSH: f64 = 0.7;
/// Time that the bytes of a large op take, as a part of all of it, at the least (guess; where the start is, not the end).
const LEAST_STREAM: f64 = 0.2;
/// Shortest time of an op, seconds, and how much more a concurrency counts than a size for the least loaded cell.
const SHORTEST_S: f64 = 1e-6;
const LOADED: f64 = 1e6;

/// Best fit over the exponents; from `start`, or from four starts that the data suggests.
pub fn fit(s: &[f64], c: &[f64], y: &[f64], sigma: f64, exponents: &[f64], start: Option<Theta>) -> Fit {
    let starts = start.map_or_else(|| starts(s, c, y), |t| vec![t]);
    let w = 1.0 / sigma.max(LEAST_NOISE);
    let settings = FitSettings { soft: SOFT, max_steps: MAX_STEPS };
    let mut best: Option<Fit> = None;
    let mut by_exponent = Vec::new();
    for &p in exponents {
        let residuals = |x: &[f64], r: &mut [f64]| {
            let t = Theta([x[0], x[1], x[2], x[3]]);
            for i in 0..y.len() {
                r[i] = (t.log_rate(s[i], c[i], p) - y[i]) * w;
            }
        };
        let found = starts
            .iter()
            .map(|x| minimise(&x.0, &BOUNDS, y.len(), settings, residuals))
            .min_by(|a, b| a.cost.total_cmp(&b.cost))
            .expect("there is a start");
        by_exponent.push((p, found.cost));
        if best.as_ref().is_none_or(|b| found.cost < b.cost) {
            let x = &found.x;
            best = Some(Fit {
                theta: Theta([x[0], x[1], x[2], x[3]]),
                exponent: p,
                cost: found.cost,
                by_exponent: Vec::new(),
            });
        }
    }
    let mut best = best.expect("there is an exponent");
    best.by_exponent = by_exponent;
    best
}

/// Maxima as caps, the least loaded cell as latency, and the same with each pushed up.
fn starts(s: &[f64], c: &[f64], y: &[f64]) -> Vec<Theta> {
    let n = y.len();
    let x: Vec<f64> = y.iter().map(|v| v.exp()).collect();
    let ops = ABOVE_SEEN * x.iter().copied().fold(0.0, f64::max);
    let bytes = ABOVE_SEEN * (0..n).map(|i| x[i] * s[i]).fold(0.0, f64::max);
    let latency: Vec<f64> = (0..n).map(|i| (c[i] / x[i]).max(SHORTEST_S)).collect();
    let by = |key: &dyn Fn(usize) -> f64| (0..n).min_by(|&i, &j| key(i).total_cmp(&key(j))).unwrap_or(0);
    let least = c.iter().copied().fold(f64::INFINITY, f64::min);
    let light = by(&|i| c[i] * LOADED + s[i]);
    let heavy = by(&|i| if c[i] == least { -s[i] } else { 0.0 });
    let l0 = latency[light];
    let v = s[heavy] / (latency[heavy] - l0).max(LEAST_STREAM * latency[heavy]);
    let base = [ops.ln(), bytes.ln(), l0.ln(), v.ln()];
    [[0.0; 4], [PUSH, 0.0, 0.0, 0.0], [0.0, PUSH, 0.0, 0.0], [0.0, 0.0, -PUSH, PUSH]]
        .iter()
        .map(|d| Theta(std::array::from_fn(|i| base[i] + d[i])))
        .collect()
}
