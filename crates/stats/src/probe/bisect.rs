//! Where a load that insists gets next to nothing, or something else each time: the highest rate without refusals, by bisection.

use plimsoll_model::Estimate;

use super::by_law::Interrupted;
use super::plateau::Plateau;
use super::questions::{AGAIN, APART, Penalty, Question, TAIL_S, TRIAL_S, Trial};
use super::{HeldBack, Probe, ProbeAction, Resource, hold};

const BISECTIONS: u32 = 7;
/// Doublings or halvings until the rate lies between two that were tried, where nothing says where it is (guess).
const SEARCHES: u32 = 8;
/// A limiter that counts in periods has forgotten after two of them (haproxy keeps the present and the last); and a little more.
const FORGETS: f64 = 2.2;
/// A trial goes on for longer than what may pass at once lasts at the rate that is tried.
const OUTLASTS: f64 = 1.2;
/// No trial and no rest before one is longer, seconds: a budget has other uses.
const LONGEST_TRIAL_S: f64 = 40.0;
/// Ratio of the rates between which it lies at which the search ends; and the least rate that is tried, ops per second.
const RATE_KNOWN: f64 = 1.01;
/// And where time is kept for whether it holds.
const HELD_KNOWN: f64 = 1.04;
/// No rest is made longer by more than this: a limiter that has not forgiven by then is told by what it refuses.
const LONGER: f64 = 4.0;
const LEAST_OFFERED: f64 = 0.5;

/// Rates between which the highest one without refusals lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bisection {
    low: f64,
    high: Option<f64>,
    offered: f64,
    /// How long the trial of `low` was, seconds.
    low_s: f64,
    /// Rests are this many times as long: shorter ones were not forgiven.
    rests: f64,
    /// It is the last trial: whether `low` holds.
    holds: bool,
    left: u32,
}

impl Bisection {
    /// Nothing is known: it begins here.
    pub fn from(offered: f64) -> Self {
        let left = BISECTIONS + SEARCHES;
        Self { low: 0.0, high: None, offered, low_s: 0.0, rests: 1.0, holds: false, left }
    }

    /// This was offered for so long, and refused in part or not at all.
    pub fn after(offered: f64, refused: bool, length_s: f64) -> Self {
        let (low, low_s, high) = if refused { (0.0, 0.0, Some(offered)) } else { (offered, length_s, None) };
        Self { low, high, low_s, left: BISECTIONS, ..Self::from(offered) }
    }

    /// The least rate that was refused.
    pub fn refused(&self) -> Option<f64> {
        self.high
    }

    pub fn phase(&self) -> String {
        let rate = crate::words::about(self.offered, 3);
        match self.holds {
            true => format!("does {rate} op/s hold without refusals?"),
            false => format!("looking for the highest rate without refusals: offering {rate} op/s"),
        }
    }
}

impl Probe {
    /// Rest before a trial, so that what was refused before is forgotten, and its length, so that what passes at once is not
    /// taken for the rate.
    pub(super) fn times_of(&self, offered: f64) -> (f64, f64) {
        let burst_s =
            self.questions.burst_ops.unwrap_or(self.used[Resource::Ops as usize]) / offered.max(1e-9);
        let rest_s = (FORGETS * burst_s + 1.0).min(LONGEST_TRIAL_S);
        (rest_s, (OUTLASTS * burst_s + TAIL_S + 1.0).clamp(TRIAL_S, LONGEST_TRIAL_S))
    }

    pub(super) fn bisect_next(&mut self, mut b: Bisection, t: Trial) -> ProbeAction {
        let dt = self.options.dt_s;
        let (ok, refused) = t.tail(dt);
        if b.holds {
            // It passed for a short while only: no rate that holds was found.
            if refused.max(t.refused_from(0.0, dt)) >= super::cause::REFUSED {
                // A law's rate that held before does all the same.
                self.questions.was_refused(b.offered);
                self.questions.contest = crate::laws::contest(&self.record, self.options.budget_s);
                if let Some(action) = self.tell_what_held() {
                    return action;
                }
                self.questions.answers.held_back = Some(HeldBack::Less { offered: b.offered });
                return self.choose();
            }
            return self.bisected(Bisection { low_s: t.length_s, ..b });
        }
        if t.begins_shut(dt) && b.rests < LONGER {
            self.questions.was_shut_after(self.rest_of(&b));
            return self.bisect_again(Bisection { rests: 2.0 * b.rests, ..b }, t);
        }
        match (refused < super::cause::REFUSED, ok > (1.0 - APART) * b.offered) {
            (true, true) => {
                (b.low, b.low_s) = (b.offered, t.length_s);
                if let Some(action) = self.try_law(Interrupted::Bisect(b), b.high) {
                    return action;
                }
            }
            // Nothing was refused, and less came than was offered: the storage, or this machine, was the limit. That
            // says nothing of higher rates, and there is no higher one to be had.
            (true, false) if ok > b.low => (b.low, b.low_s, b.left) = (ok, t.length_s, 0),
            (true, false) => b.left = 0,
            (false, _) => {
                b.high = Some(b.offered);
                if let Some(action) = self.try_law(Interrupted::Bisect(b), b.high) {
                    return action;
                }
            }
        }
        self.bisect(b, t)
    }

    /// Goes on after a law's rate did not hold.
    pub(super) fn bisect_on(
        &mut self,
        mut b: Bisection,
        held: Option<(f64, f64)>,
        refused_at: Option<f64>,
        t: Trial,
    ) -> ProbeAction {
        b.high = refused_at.into_iter().chain(b.high).reduce(f64::min);
        if let Some((rate, seconds)) = held.filter(|(rate, _)| *rate > b.low) {
            (b.low, b.low_s) = (rate, seconds);
        }
        // What passed for a short while, and was refused for longer, did not hold.
        if b.high.is_some_and(|high| high <= b.low) {
            (b.low, b.low_s) = (0.0, 0.0);
        }
        self.bisect(b, t)
    }

    pub(super) fn bisect(&mut self, mut b: Bisection, t: Trial) -> ProbeAction {
        b.offered = match b.high {
            None if b.low > 0.0 => 2.0 * b.low,
            // Nothing was told of it yet.
            None => b.offered,
            Some(high) if b.low > 0.0 => (b.low * high).sqrt(),
            Some(high) => 0.5 * high,
        };
        self.bisect_again(b, t)
    }

    /// The rest before what is offered, seconds.
    fn rest_of(&self, b: &Bisection) -> f64 {
        (b.rests * self.times_of(b.offered).0).min(LONGEST_TRIAL_S)
    }

    /// Offers what is to be offered, after a rest.
    fn bisect_again(&mut self, mut b: Bisection, t: Trial) -> ProbeAction {
        let (rest_s, length_s) = (self.rest_of(&b), self.times_of(b.offered).1);
        // Time for whether it holds, where the budget is one for that.
        let keeps = self.options.budget_s >= hold::KEEPS_S;
        let holds_s = self.holds_s();
        let keep_s = if keeps && b.low > 0.0 {
            self.rest_of(&Bisection { offered: b.low, ..b }) + holds_s + 1.0
        } else {
            0.0
        };
        let known_at = if keeps { HELD_KNOWN } else { RATE_KNOWN };
        let known = b.high.is_some_and(|high| high < known_at * b.low);
        let over = rest_s + length_s + keep_s > self.left_s();
        if b.left == 0 || over || known || b.offered < LEAST_OFFERED {
            if keep_s > 0.0 && b.low_s < holds_s {
                if keep_s > self.left_s() {
                    // What passed for a short while is no bound.
                    if let Some(action) = self.tell_what_held() {
                        return action;
                    }
                    b.low = 0.0;
                    return self.bisected(b);
                }
                let rest_s = keep_s - holds_s - 1.0;
                (b.holds, b.offered) = (true, b.low);
                return self.offer(b, t, rest_s, holds_s);
            }
            return self.bisected(b);
        }
        b.left -= 1;
        self.offer(b, t, rest_s, length_s)
    }

    fn offer(&mut self, b: Bisection, t: Trial, rest_s: f64, length_s: f64) -> ProbeAction {
        let (question, offered_per_s) = (Question::Bisect(b), Some(b.offered));
        let seen = Plateau::default();
        self.try_it(Trial { question, offered_per_s, length_s, rest_s, again: AGAIN, seen, ..t })
    }

    /// Bounds are bounds: a rate that was refused at the most, one that was not at the least.
    fn bisected(&mut self, b: Bisection) -> ProbeAction {
        // What passed for less than the limiter remembers may have used up what the rest before it brought.
        if b.low_s > 0.0 && b.low_s >= self.questions.remembers_s {
            // Far apart, what holds is the lower one, and not what lies between them.
            let near = b.high.filter(|high| *high < HELD_KNOWN * HELD_KNOWN * b.low);
            let value = near.map_or(b.low, |high| (b.low * high).sqrt());
            let low = hold::HELD_AT_LEAST * b.low;
            let e = Estimate { value, low, high: b.high.unwrap_or(f64::INFINITY), n_eff: 1.0 };
            self.questions.answers.penalty = Some(Penalty::CostsTokens(e));
            self.questions.answers.free_s = Some(b.low_s);
        }
        self.choose()
    }
}
