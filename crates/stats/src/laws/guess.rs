//! Where a search for a law's parameters begins: what the record suggests by itself, and what people choose.

use super::errors::{BIN_S, SHUT};
use super::replay::Parameters;
use super::{LoadRecord, LoadSlice, RivalLaw, looks};
use crate::math;

/// What the record suggests by itself.
#[derive(Default)]
pub(super) struct Guess {
    /// Where loads were first refused: seconds from their begin, and ops that had passed.
    firsts: Vec<(f64, f64)>,
    /// Ops per second of who is refused.
    pushed: f64,
    /// The fastest load that was never refused, ops per second.
    free: f64,
    /// Between these, a time in which nothing passes ends, seconds: the longest that was seen, and the shortest after which something
    /// passed again, be it under the same load or the next one.
    shut_s: (f64, f64),
    /// When it opened again under a load, seconds from the begin of the record.
    opens_s: Vec<f64>,
}

impl Guess {
    pub fn of(record: &LoadRecord) -> Self {
        let mut g = Self { shut_s: (0.0, f64::INFINITY), ..Self::default() };
        let began_s = record.slices().first().map_or(0.0, |s| s.at_s);
        let mut pushed = Vec::new();
        // Since then nothing has passed of what came.
        let mut shut_at: Option<f64> = None;
        for load in record.loads() {
            let load: Vec<&LoadSlice> = load.iter().filter(|s| s.scored).collect();
            let Some(dt) = load.first().map(|s| s.dt_s) else { continue };
            let refused_from = load.iter().position(|s| s.refused > 0.0);
            let seconds = |n: usize| n as f64 * dt;
            let passed: Vec<f64> = load.iter().map(|s| s.passed).collect();
            match refused_from {
                None => g.free = g.free.max(math::mean(&passed) / dt),
                Some(at) => {
                    let before: f64 = passed[..at].iter().sum();
                    if before > 0.0 {
                        g.firsts.push((seconds(at), before));
                    }
                    if seconds(load.len() - at) >= BIN_S {
                        pushed.push(math::mean(&passed[at..]) / dt);
                    }
                }
            }
            for s in &load {
                let is_shut = s.passed <= SHUT * s.decided();
                if s.decided() <= 0.0 {
                    continue;
                }
                let since_s = shut_at.map(|from| s.at_s - from);
                match (is_shut, since_s) {
                    (true, None) => shut_at = Some(s.at_s),
                    (true, Some(since_s)) => g.shut_s.0 = g.shut_s.0.max(since_s + dt),
                    (false, Some(since_s)) if since_s >= BIN_S => {
                        g.shut_s.1 = g.shut_s.1.min(since_s + dt);
                        g.opens_s.push(s.at_s - began_s);
                        shut_at = None;
                    }
                    (false, _) => shut_at = None,
                }
            }
        }
        g.pushed = if pushed.is_empty() { 1.0 } else { math::median(&pushed).max(0.1) };
        g
    }

    /// Rates from which a search begins, each with the tokens that the first refusals want with it.
    fn buckets(&self) -> Vec<(f64, f64)> {
        // What passed until the first refusal came from a bucket as well.
        let most = self.firsts.iter().filter(|f| f.0 > 0.0).map(|f| f.1 / f.0).fold(f64::INFINITY, f64::min);
        // A load that was never refused may have had tokens left.
        let least = self.pushed.min(self.free.max(0.1)).max(0.1);
        let most = if most.is_finite() { most.max(1.05 * least) } else { 2.0 * least };
        let steps = RATES - 1;
        let mut rates: Vec<f64> =
            (0..RATES).map(|i| least * (most / least).powf(i as f64 / steps as f64)).collect();
        rates.push(self.pushed);
        // Two refusals, at different rates, give both.
        for (i, a) in self.firsts.iter().enumerate() {
            for b in &self.firsts[i + 1..] {
                let rate = (b.1 - a.1) / (b.0 - a.0);
                if (b.0 / a.0).max(a.0 / b.0) > TIMES_APART && rate.is_finite() && rate > 0.0 {
                    rates.push(rate);
                }
            }
        }
        let left =
            |rate: f64| -> Vec<f64> { self.firsts.iter().map(|(s, n)| (n - rate * s).max(1.0)).collect() };
        // Not each of them began with a full bucket.
        let full = |r: f64| match self.firsts.is_empty() {
            true => vec![r],
            false => math::distinct(vec![math::median(&left(r)), math::quantile(&left(r), 1.0)], SAME, 2),
        };
        let rates = math::distinct(rates, SAME, MOST_RATES);
        rates.into_iter().flat_map(|r| full(r).into_iter().map(move |tokens| (r, tokens))).collect()
    }

    /// What a period's quota may be: what passed until the first refusals.
    fn quotas(&self) -> Vec<f64> {
        math::distinct(self.firsts.iter().map(|f| f.1).collect(), SAME, MOST_QUOTAS)
    }

    /// How long nothing passes: between what was seen, and as people choose.
    fn shuts_s(&self) -> Vec<f64> {
        let (low, high) = self.shut_s;
        let low = low.max(1.0);
        let mut out = match high.is_finite() && high > low {
            true => vec![low, (low * high).sqrt(), high],
            false => vec![low, 1.5 * low],
        };
        out.extend([5.0, 10.0, 15.0, 20.0, 30.0].into_iter().filter(|s| *s > low && *s < high));
        out
    }

    /// Phases of a period; and those with which it began when it was seen to open.
    fn phases(&self, period_s: f64, steps: usize) -> Vec<f64> {
        let opened = self.opens_s.iter().take(2).map(|open| (-open / period_s).rem_euclid(1.0));
        (0..steps).map(|i| i as f64 / steps as f64).chain(opened).collect()
    }

    /// Parameters from which the search for a law begins.
    pub fn starts(&self, law: RivalLaw, record: &LoadRecord) -> Vec<Parameters> {
        if law == RivalLaw::CountsAtLooks {
            return looks::starts(record);
        }
        let mut out = Vec::new();
        for (rate, tokens) in self.buckets() {
            match law {
                RivalLaw::Bucket => out.push([rate, tokens, 1.0, 1.0]),
                RivalLaw::Ban => out.extend(self.shuts_s().into_iter().map(|s| [rate, tokens, s, 1.0])),
                RivalLaw::TakesFirst => {
                    for refusal in [0.1, 0.3, 0.9] {
                        out.extend([1.0, 0.5 * rate, 2.0 * rate].map(|floor| [rate, tokens, refusal, floor]));
                    }
                }
                RivalLaw::Slower => {
                    out.extend(CALM_S.map(|s| [rate.max(1.2 * self.pushed), tokens, self.pushed, s]));
                }
                RivalLaw::Calendar
                | RivalLaw::CalendarBan
                | RivalLaw::CountsRefused
                | RivalLaw::UntilCalm
                | RivalLaw::CountsPassed
                | RivalLaw::CountsAtLooks => {}
            }
        }
        if !law.has_phase() {
            return out;
        }
        let longest_s = if law == RivalLaw::CountsPassed { LONGEST_PASSED_S } else { f64::INFINITY };
        for period_s in PERIODS_S.into_iter().filter(|s| *s <= longest_s) {
            let quotas = match law {
                RivalLaw::Calendar | RivalLaw::CountsPassed => vec![self.pushed * period_s],
                _ => vec![self.free * period_s],
            };
            // What begins with the first attempt after a rest has a phase for the first period only.
            let steps = if law == RivalLaw::UntilCalm { PHASES / 4 } else { PHASES };
            let phases = self.phases(period_s, steps);
            let shuts_s = match law {
                RivalLaw::CalendarBan => self.shuts_s(),
                RivalLaw::UntilCalm => CALM_S.to_vec(),
                _ => vec![1.0],
            };
            for quota in self.quotas().into_iter().chain(quotas).filter(|q| *q > 0.0) {
                for phase in &phases {
                    out.extend(shuts_s.iter().map(|s| [quota / period_s, period_s, *phase, *s]));
                }
            }
        }
        out
    }
}

/// Periods that people choose, seconds: a law with one of any length explains by chance what it should not.
const PERIODS_S: [f64; 23] = [
    0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 15.0, 20.0, 30.0, 40.0, 45.0, 60.0, 90.0,
    120.0, 300.0, 600.0, 3600.0,
];
/// A count of what passed over a longer period is told by no budget of minutes, and explains by chance what a quota per period does.
const LONGEST_PASSED_S: f64 = 60.0;
/// Times without a refusal, or without an attempt, after which all is forgiven.
const CALM_S: [f64; 7] = [5.0, 8.0, 11.0, 14.0, 18.0, 24.0, 35.0];
/// Times of first refusals nearer to each other than this tell no rate.
const TIMES_APART: f64 = 1.1;
/// Values nearer to each other than this are one.
const SAME: f64 = 1.03;
/// Rates, quotas and phases from which a search begins.
const MOST_RATES: usize = 14;
const MOST_QUOTAS: usize = 5;
const PHASES: usize = 16;
/// Rates between the least and the most that are tried first.
const RATES: usize = 8;
