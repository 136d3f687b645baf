//! Which trial to make next: the one on whose outcome the laws that are left disagree most, for the time that it takes (sequential
//! experimental design by expected information, Lindley 1956).
//!
//! Each law foresees when the first op of a trial is refused. Those that foresee the same can't be told apart by it; the information is the
//! entropy of what is foreseen, weighed by how likely each law is.

use crate::laws::{LawFit, LawHypothesis, LawState, LoadRecord};
use crate::math;

/// A trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TrialDesign {
    /// Ops per second.
    pub offered: f64,
    /// Without load before it, seconds since the last load.
    pub rest_s: f64,
    /// Until all that foresee a refusal have foreseen it.
    pub length_s: f64,
    /// It is refused, and ends when it passes.
    pub watches: bool,
}

/// What is open, and may be spent.
#[derive(Debug, Clone, Copy)]
pub(super) struct DesignBounds {
    /// Ops per second that the storage does, and less than which is not asked for.
    pub most_per_s: f64,
    /// See there.
    pub least_per_s: f64,
    /// No rest is shorter, seconds.
    pub least_rest_s: f64,
    /// Rest and trial, seconds.
    pub most_s: f64,
    /// Rest that is over already.
    pub rested_s: f64,
    /// A trial, seconds.
    pub longest_s: f64,
}

/// Rests and multiples of a law's rate that are looked at. (Choices: a bucket of a few seconds is refused soon at 1.3 times its rate, and
/// tells its rate best late; below it, what has a longer memory is refused.)
const RESTS_S: [f64; 4] = [5.0, 12.0, 20.0, 35.0];
const SHARES: [f64; 5] = [0.9, 1.06, 1.2, 1.5, 2.0];
const RATES_APART: f64 = 1.04;
const MOST_RATES: usize = 24;
/// First refusals nearer to each other than this (seconds, and as a share) are one outcome.
const SAME_S: f64 = 0.6;
const SAME: f64 = 0.08;
/// A trial goes on for so long after the last refusal that is foreseen.
const AFTER_S: f64 = 4.0;
/// Seconds that each trial takes besides: requests in flight end, and clients begin.
const BETWEEN_S: f64 = 3.0;
/// Less tells nothing, bits.
const LEAST: f64 = 0.15;

/// The trial that tells most per second.
pub(super) fn design(record: &LoadRecord, laws: &[LawHypothesis], b: DesignBounds) -> Option<TrialDesign> {
    let states = LawFit::states(laws.iter().map(|h| &h.fit), record);
    let rates = laws
        .iter()
        .flat_map(|h| SHARES.map(|share| share * h.fit.rate_per_s))
        .filter(|r| (b.least_per_s..b.most_per_s).contains(r))
        .collect();
    let rates = math::distinct(rates, RATES_APART, MOST_RATES);
    let mut best: Option<(f64, TrialDesign)> = None;
    for rest_s in RESTS_S.into_iter().map(|s| s.max(b.rested_s).max(b.least_rest_s)) {
        for &offered in &rates {
            let longest_s = b.longest_s.min(b.most_s - (rest_s - b.rested_s) - BETWEEN_S);
            if longest_s < AFTER_S {
                continue;
            }
            let mut outcomes: Vec<(Option<f64>, f64)> = states
                .iter()
                .zip(laws)
                .map(|(s, h)| (s.first_refusal_s(rest_s, offered, longest_s), h.weight))
                .collect();
            let information = entropy(&mut outcomes);
            let last = outcomes.iter().filter_map(|o| o.0).fold(0.0, f64::max);
            let length_s = (1.15 * last + AFTER_S).min(longest_s);
            // Who is refused ends it.
            let mean_s: f64 =
                outcomes.iter().map(|(at, w)| w * at.map_or(length_s, |s| (s + AFTER_S).min(length_s))).sum();
            let cost_s = rest_s - b.rested_s + mean_s + BETWEEN_S;
            let worth = information / cost_s;
            if information >= LEAST && best.is_none_or(|(w, _)| worth > w) {
                best = Some((worth, TrialDesign { offered, rest_s, length_s, watches: false }));
            }
        }
    }
    if let Some((worth, watched)) = watch(&states, laws, b)
        && best.is_none_or(|(w, _)| worth > w)
    {
        best = Some((worth, watched));
    }
    best.map(|(_, d)| d)
}

/// Who is shut out now is let in again at a time on which laws disagree: a little is offered until then.
fn watch(states: &[LawState], laws: &[LawHypothesis], b: DesignBounds) -> Option<(f64, TrialDesign)> {
    let longest_s = b.longest_s.min(b.most_s - BETWEEN_S);
    if longest_s < AFTER_S {
        return None;
    }
    let rates = laws.iter().flat_map(|h| WATCH_SHARES.map(|share| share * h.fit.rate_per_s));
    let rates = rates.filter(|r| (b.least_per_s..b.most_per_s).contains(r)).collect();
    let tries = math::distinct(rates, WATCH_APART, MOST_WATCHED).into_iter().filter_map(|offered| {
        let mut outcomes: Vec<(Option<f64>, f64)> = states
            .iter()
            .zip(laws)
            .map(|(s, h)| (s.first_passing_s(b.rested_s, offered, longest_s), h.weight))
            .collect();
        let information = entropy(&mut outcomes);
        let last = outcomes.iter().filter_map(|o| o.0).fold(0.0, f64::max);
        let length_s = (1.15 * last + AFTER_S).min(longest_s);
        let opens: f64 = outcomes.iter().filter(|o| o.0.is_some()).map(|o| o.1).sum();
        let mean_s: f64 = outcomes
            .iter()
            .map(|(at, w)| w * at.map_or(length_s + LOST_S, |s| (s + WATCHED_S).min(length_s)))
            .sum();
        let design = TrialDesign { offered, rest_s: b.rested_s, length_s, watches: true };
        (information >= LEAST && opens >= OPENS).then_some((information / (mean_s + BETWEEN_S), design))
    });
    tries.max_by(|a, b| a.0.total_cmp(&b.0))
}

/// Multiples of a law's rate that are offered to see when it lets in again, how far apart, and how many of them.
const WATCH_SHARES: [f64; 2] = [0.1, 0.5];
const WATCH_APART: f64 = 1.5;
const MOST_WATCHED: usize = 6;
/// It is worth it where so much of the likelihood is of laws that let in; to those that want it calm first it costs the rest, as well, seconds.
const OPENS: f64 = 0.6;
const LOST_S: f64 = 60.0;
/// It goes on for so long after the first passed, seconds.
pub(super) const WATCHED_S: f64 = 2.0;

/// Of what is foreseen, bits. Weights add up to one.
fn entropy(outcomes: &mut [(Option<f64>, f64)]) -> f64 {
    outcomes.sort_by(|a, b| a.0.unwrap_or(f64::INFINITY).total_cmp(&b.0.unwrap_or(f64::INFINITY)));
    let (mut bits, mut at, mut weight) = (0.0, None::<f64>, 0.0);
    let mut close = |weight: f64| {
        if weight > 0.0 {
            bits -= weight * weight.log2();
        }
    };
    for (i, (s, w)) in outcomes.iter().enumerate() {
        let same = match (at, s) {
            (Some(at), Some(s)) => s - at <= SAME_S + SAME * at,
            (None, None) => i > 0,
            _ => false,
        };
        if !same {
            close(weight);
            (at, weight) = (*s, 0.0);
        }
        weight += w;
    }
    close(weight);
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_foreseen_alike_tells_nothing() {
        let bits = |o: &[(Option<f64>, f64)]| entropy(&mut o.to_vec());
        assert_eq!(bits(&[(Some(5.0), 0.5), (Some(5.3), 0.5)]), 0.0);
        assert_eq!(bits(&[(None, 0.5), (None, 0.5)]), 0.0);
        assert!((bits(&[(Some(5.0), 0.5), (None, 0.5)]) - 1.0).abs() < 1e-12);
        assert!(
            (bits(&[(Some(5.0), 0.25), (Some(9.0), 0.25), (None, 0.25), (Some(20.0), 0.25)]) - 2.0).abs()
                < 1e-12
        );
        assert_eq!(bits(&[]), 0.0);
    }
}
