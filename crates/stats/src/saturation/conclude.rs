//! What the steps of a search, all together, say: the plateau and its concurrency, their intervals, and whether the storage changed
//! meanwhile.

use plimsoll_model::Estimate;

use super::{Ended, GAIN, Point, REFUSED, SAME, SaturationOutcome, SaturationSearch, WIDEST_LOG};
use crate::{math, student};

const NORMAL_95: f64 = 1.96;

impl SaturationSearch {
    /// What the measurements say.
    pub fn outcome(&self) -> SaturationOutcome {
        let c95 = self.c95();
        let at = c95.and_then(|c| self.points.iter().find(|p| p.concurrency == c));
        let refused = self.points.iter().map(Point::refused).fold(0.0, f64::max);
        let refused_from = self.refused_from();
        let is_refused = refused >= REFUSED || refused_from.is_some();
        SaturationOutcome {
            ended: match self.ended.clone().unwrap_or(Ended::Unfinished) {
                Ended::Saturated | Ended::AtMaximum if is_refused => Ended::Refused,
                ended => ended,
            },
            refused,
            refused_from,
            c95,
            rate: at.map(|p| self.rate_of(p)),
            plateau: self.plateau().map(f64::exp),
            surely_short: c95.and_then(|c| {
                let short = |p: &&Point| p.concurrency < c && self.falls_short(p);
                self.points.iter().filter(short).map(|p| p.concurrency).max()
            }),
            fewer_fall_short: c95.and_then(|c| self.below(c)).is_some_and(|p| self.falls_short(p)),
            latency_s: at.map(Point::latency_s),
            knee: self
                .usable()
                .iter()
                .filter(|p| p.latency_s() > 0.0)
                .max_by(|a, b| {
                    (a.log_mean() - a.latency_s().ln()).total_cmp(&(b.log_mean() - b.latency_s().ln()))
                })
                .map(|p| p.concurrency),
            curve: self.points.clone(),
            rates: self.points.iter().map(|p| self.rate_of(p)).collect(),
            still_rose: match &self.points[..] {
                [.., before, last] => Some(last.log_mean() - before.log_mean() > GAIN.ln()),
                _ => None,
            },
            changed: self.change(),
        }
    }

    /// Spread of repeats, pooled over all points that were repeated.
    pub(super) fn noise(&self) -> (f64, f64) {
        let (mut ss, mut df) = (0.0, 0.0);
        for p in self.points.iter().filter(|p| p.seen.len() > 1) {
            let logs: Vec<f64> = p.seen.iter().map(|o| o.ops_per_s.max(1e-12).ln()).collect();
            ss += math::variance(&logs, 1) * (logs.len() - 1) as f64;
            df += (logs.len() - 1) as f64;
        }
        if df > 0.0 { ((ss / df).sqrt(), df) } else { (f64::INFINITY, 1.0) }
    }

    fn rate_of(&self, p: &Point) -> Estimate {
        let n_eff = p.seen.len() as f64;
        // Nothing succeeded there: none of the digits that a logarithm would make of it.
        if p.seen.iter().all(|o| o.ops_per_s <= 0.0) {
            return Estimate { value: 0.0, low: f64::NEG_INFINITY, high: f64::INFINITY, n_eff };
        }
        let (sd, df) = self.noise();
        let m = p.log_mean();
        let hw = student::t95(df) * sd / n_eff.sqrt();
        // Nothing was measured twice, or only two that differ: there is a value, and no interval. (exp of it has 118 digits.)
        if hw.is_nan() || hw > WIDEST_LOG {
            return Estimate { value: m.exp(), low: f64::NEG_INFINITY, high: f64::INFINITY, n_eff };
        }
        Estimate { value: m.exp(), low: (m - hw).exp(), high: (m + hw).exp(), n_eff }
    }

    fn change(&self) -> Option<f64> {
        let start = self.options.start.max(1);
        let (first, again) = (self.points.iter().find(|p| p.concurrency == start)?, *self.returned.first()?);
        let d = again.ops_per_s.max(1e-12).ln() - first.log_mean();
        let (sd, df) = self.noise();
        let repeats = if sd.is_finite() {
            student::t95(df) * sd * (1.0 + 1.0 / first.seen.len() as f64).sqrt()
        } else {
            0.0
        };
        let again = Point { concurrency: start, seen: vec![again] };
        let counting = NORMAL_95 * (first.counting() + again.counting()).sqrt();
        (d.abs() > SAME.max(repeats).max(counting)).then(|| d.exp() - 1.0)
    }
}
