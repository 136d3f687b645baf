//! How much passes at once after a rest, where no burst was seen while the limiter was pushed: a count over a period gives all of it at
//! once to whoever comes back, and one that was never left alone shows nothing of that.

use super::plateau::Plateau;
use super::questions::{Question, Trial};
use super::{Capacity, Probe, ProbeOutcome, cause};

/// Seconds without load before it: longer than most periods that limiters count over (a choice), and no less than this.
const REST_S: f64 = 30.0;
const LEAST_REST_S: f64 = 10.0;
/// Then so many times the rate is offered, for so long, seconds.
const TIMES: f64 = 10.0;
const OFFERED_S: f64 = 5.0;
/// Fewer ops beyond the rate, and less than it gives in a second, are none (a choice).
const LEAST_OPS: f64 = 5.0;

/// What passed after a rest, beyond the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AfterRest {
    /// Without load before it, seconds.
    pub rest_s: f64,
    /// Ops that passed until no more did than the rate gives, and in how many seconds.
    pub passed: f64,
    /// From the first on.
    pub within_s: f64,
    /// Of these, beyond what the rate gives in that time; 0: no burst.
    pub beyond: f64,
    /// Nothing was refused while it was looked at: it is more.
    pub at_least: bool,
}

impl Probe {
    /// Asked last, of what is left of the budget.
    pub(super) fn ask_after_rest(&mut self, known: &ProbeOutcome) -> Option<Trial> {
        if std::mem::replace(&mut self.questions.after_rest_asked, true) {
            return None;
        }
        let ops = &known.ops;
        let rate = ops.known()?.value;
        let is_open = ops.refused() >= cause::REFUSED && ops.capacity == Capacity::NoneSeen && rate > 0.0;
        let other =
            known.answers.at_once.is_some() || known.answers.same_share.is_some() || self.is_growing();
        if !is_open || other {
            return None;
        }
        let rest_s = REST_S.min(self.left_s() - OFFERED_S - 1.0);
        (rest_s >= LEAST_REST_S).then(|| Trial {
            question: Question::AfterRest { rate, rest_s },
            size_bytes: self.options.small_bytes,
            concurrency: self.open_concurrency(),
            offered_per_s: Some((TIMES * rate).min(self.most_offered())),
            length_s: OFFERED_S,
            rest_s,
            again: 0,
            seen: Plateau::default(),
        })
    }
}

/// Of a trial with much more than the rate.
pub(super) fn after_rest(
    ok_per_s: &[f64],
    refused_per_s: &[f64],
    dt_s: f64,
    rate: f64,
    rest_s: f64,
) -> AfterRest {
    let (mut passed, mut best) = (0.0, (0.0, 0.0, 0.0));
    for (i, ok) in ok_per_s.iter().enumerate() {
        passed += ok * dt_s;
        let s = (i + 1) as f64 * dt_s;
        let beyond = passed - rate * s;
        if beyond > best.0 {
            best = (beyond, passed, s);
        }
    }
    let (beyond, passed, within_s) = best;
    let none = beyond < LEAST_OPS.max(rate);
    AfterRest {
        rest_s,
        passed,
        within_s,
        beyond: if none { 0.0 } else { beyond },
        at_least: refused_per_s.iter().all(|r| *r <= 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 in each 10 s (haproxy, refused ones spared): they pass at once after a rest, and "no burst seen" was told of it.
    #[test]
    fn what_a_count_over_a_period_gives_at_once_is_seen() {
        let ok: Vec<f64> = (0..20).map(|i| if i < 4 { 100.0 } else { 0.0 }).collect();
        let refused: Vec<f64> = ok.iter().map(|r| 100.0 - r).collect();
        let a = after_rest(&ok, &refused, 0.25, 10.0, 30.0);
        assert_eq!((a.passed, a.within_s, a.beyond, a.at_least), (100.0, 1.0, 90.0, false));
        // A bucket of two tokens is no burst, and what was never refused is more than was seen.
        let small: Vec<f64> = (0..20).map(|i| if i == 0 { 18.0 } else { 10.0 }).collect();
        assert_eq!(after_rest(&small, &refused, 0.25, 10.0, 30.0).beyond, 0.0);
        assert!(after_rest(&[100.0; 20], &[0.0; 20], 0.25, 10.0, 30.0).at_least);
    }
}
