//! The whole latency distribution of a line: percentile spectrum and density.

use plimsoll_model::{Histogram, RunSummary, Series};
use plimsoll_store::Totals;
use serde::{Deserialize, Serialize};

use crate::lines::Line;
use crate::number::round4;

/// Classes of the density per decade of latency.
const PER_DECADE: f64 = 16.0;

/// Latencies of all measured windows of a line, merged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spectrum {
    pub line: usize,
    /// `response`, `service`, `ttfb` or `submission`.
    pub kind: String,
    pub count: u64,
    /// (quantile, nanoseconds), up to the last quantile with an op beyond it.
    pub quantiles: Vec<(f64, u64)>,
    /// Quantiles beyond this one have fewer than ten ops beyond them.
    pub sure_to: f64,
    /// (lower end of the class in ns, share of ops); classes are evenly spaced in the logarithm.
    pub density: Vec<(f64, f64)>,
    pub max_ns: u64,
}

pub fn of(summary: &RunSummary, lines: &[Line], totals: &[Totals]) -> Vec<Spectrum> {
    let mut out = Vec::new();
    for line in 0..summary.workloads.len() {
        let mut merged: Option<Series> = None;
        for l in lines.iter().filter(|l| l.line == Some(line)) {
            let series = totals.iter().find(|t| Some(t.window) == l.window).and_then(|t| t.get(l.id));
            match (&mut merged, series) {
                (Some(m), Some(s)) => {
                    let mut s = s.clone();
                    s.id = m.id;
                    m.merge(&s);
                }
                (m @ None, Some(s)) => *m = Some(s.clone()),
                _ => {}
            }
        }
        let Some(s) = merged else { continue };
        out.extend(spectrum(line, "response", &s.response));
        let optional = [("service", &s.service), ("ttfb", &s.first_byte), ("submission", &s.submission)];
        for (kind, h) in optional {
            out.extend(h.as_ref().and_then(|h| spectrum(line, kind, h)));
        }
    }
    out
}

/// `None` for an empty histogram.
pub fn spectrum(line: usize, kind: &str, h: &Histogram) -> Option<Spectrum> {
    if h.is_empty() {
        return None;
    }
    let count = h.count();
    let quantiles = quantiles().into_iter().filter(|q| count as f64 * (1.0 - q) >= 1.0 - 1e-9 || *q <= 0.5);
    Some(Spectrum {
        line,
        kind: kind.into(),
        count,
        quantiles: quantiles.map(|q| (q, h.quantile(q))).collect(),
        sure_to: (1.0 - 10.0 / count as f64).max(0.5),
        density: density(h),
        max_ns: h.max(),
    })
}

/// 0 to 0.99999, closer together in the logarithm of what lies beyond.
fn quantiles() -> Vec<f64> {
    let mut out = vec![0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8];
    for decade in 1..=5 {
        let beyond = 10f64.powi(-decade);
        out.extend([1.0, 0.7, 0.5, 0.35, 0.25, 0.15].map(|f| round6(1.0 - beyond * f)));
    }
    out.push(0.999_999);
    out
}

fn round6(x: f64) -> f64 {
    (x * 1e7).round() / 1e7
}

fn density(h: &Histogram) -> Vec<(f64, f64)> {
    let class = |ns: u64| ((ns.max(1) as f64).log10() * PER_DECADE).floor() as i32;
    let mut counts: std::collections::BTreeMap<i32, u64> = std::collections::BTreeMap::new();
    for (low, high, n) in h.buckets() {
        *counts.entry(class(low.midpoint(high))).or_default() += n;
    }
    let total = h.count() as f64;
    let (Some(first), Some(last)) = (counts.keys().next().copied(), counts.keys().next_back().copied())
    else {
        return Vec::new();
    };
    let share = |c: i32| round4(counts.get(&c).copied().unwrap_or(0) as f64 / total);
    let low = |c: i32| round4(10f64.powf(f64::from(c) / PER_DECADE));
    // One empty class after the last closes the shape.
    (first..=last + 1).map(|c| (low(c), share(c))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spectrum_ends_where_the_data_does() {
        let mut h = Histogram::new();
        for i in 1..=1000u64 {
            h.record(i * 1000);
        }
        let s = spectrum(0, "response", &h).unwrap();
        assert_eq!(s.sure_to, 0.99);
        let last = s.quantiles.last().unwrap();
        assert_eq!(last.0, 0.999);
        assert!((last.1 as f64 / 999_000.0 - 1.0).abs() < 0.002);
        let total: f64 = s.density.iter().map(|d| d.1).sum();
        assert!((total - 1.0).abs() < 1e-3, "{total}");
        assert!(s.quantiles.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1));
        assert!(spectrum(0, "x", &Histogram::new()).is_none());
    }
}
