//! Holding back: what is quoted as a limiter's rate is what passes when nobody insists, and not what a fight with it yields.
//!
//! Under a token bucket both are one rate. A limiter that bans for a while, lowers its rate after an excess, draws on its tokens for
//! what it refuses, or follows the load gives less to a load that is refused, or something else each time. So whatever was found under
//! refusals is offered in open loop, from both sides: a little less of it has to pass, a little more must not; and after a rest, in
//! which such a limiter calms down, half as much again must not pass for longer than a bucket's tokens last. Where more does pass, the
//! highest rate that does is looked for.

use plimsoll_model::Estimate;

use super::by_law::Interrupted;
use super::plateau::Plateau;
use super::questions::{AGAIN, Question, Trial};
use super::{Capacity, DrainKind, Found, Probe, ProbeAction, Resource, cause};
use crate::math;

/// What came of holding back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HeldBack {
    /// The rate is the same for a load that insists and for one that does not.
    Same {
        /// Ops per second of which none were refused, and of which some were.
        passes: f64,
        /// See `passes`.
        refused: f64,
        /// Half as much again was refused after a rest, too, once a bucket's tokens were used up.
        rested: bool,
    },
    /// More passes without refusals than beside them.
    More {
        /// Between what passed and what did not; no upper end: nothing higher could be offered.
        rate: Estimate,
        /// Ops per second that a load gets which insists.
        pushed: f64,
        /// How long the highest of them passed, seconds.
        seconds: f64,
        /// Seconds without load before it passed; absent: it took none.
        calm_s: Option<f64>,
    },
    /// What passes beside refusals is refused when it is offered by itself, after a rest as well: it is no rate of the limiter's.
    Less {
        /// Ops per second that were offered.
        offered: f64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HoldStep {
    /// A little less than what passes beside refusals, at once; after a rest.
    Below { rested: bool },
    /// A little more.
    Above,
    /// Half as much again, after a rest.
    Rested,
    /// Higher and higher, as long as all passes.
    Up,
    /// Between what passed and what did not, after a rest.
    Between,
    /// The highest that passed, for longer.
    Long,
    /// What passed from both sides, for longer, where the level moved while it refused.
    Stays,
}

/// Where trials after a rest were first refused. What passed until then is what a bucket held and what came meanwhile: two of them give
/// both.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct FirstRefusals {
    /// Seconds from its begin, and ops that had passed: the last two trials.
    last: [Option<(f64, f64)>; 2],
}

/// Times of first refusals nearer to each other than this tell no rate.
const TIMES_APART: f64 = 1.25;
/// Surely less than a rate that was concluded from two trials.
const SURELY: f64 = 0.98;

impl FirstRefusals {
    pub fn add(&mut self, seen: Option<(f64, f64)>) {
        if seen.is_some() {
            self.last = [self.last[1], seen];
        }
    }

    /// Ops per second that came back.
    pub fn rate(&self) -> Option<f64> {
        let [a, b] = [self.last[0]?, self.last[1]?];
        let ((t1, n1), (t2, n2)) = if a.0 < b.0 { (a, b) } else { (b, a) };
        (t1 > 0.0 && t2 > TIMES_APART * t1).then(|| (n2 - n1) / (t2 - t1)).filter(|r| *r > 0.0)
    }
}

/// What passed for [`HOLDS_S`] may still have used up tokens: a bucket of two seconds of its rate lasts for so long at 4 % more.
pub(super) const HELD_AT_LEAST: f64 = 0.95;

/// How far the question has got.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum HoldState {
    #[default]
    Unasked,
    /// From both sides, and not yet after a rest.
    Sides(HoldSearch),
    Asked,
}

/// The search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct HoldSearch {
    step: HoldStep,
    /// What passed beside refusals, ops per second.
    pushed: f64,
    /// Tokens that the rest before [`HoldStep::Rested`] brings back at the most; known when that is asked.
    tokens: f64,
    /// Passed, for so long; refused.
    low: Option<(f64, f64)>,
    /// The longest rest before a trial that passed, seconds.
    calmed_s: f64,
    high: Option<f64>,
    /// What is offered now.
    offered: f64,
    /// Seconds of a rest.
    calm_s: f64,
    tokens_seen: FirstRefusals,
    left: u32,
}

/// Less and more than the rate by so much: limiters hold theirs within 2 %.
pub(super) const LESS: f64 = 0.97;
const MORE: f64 = 1.06;
const RESTED: f64 = 1.5;
const STEP_UP: f64 = 1.4;
/// Where what passed and what did not are so near, the rate is known.
const KNOWN: f64 = 1.04;
/// What did not hold for long is tried with so much of it.
const LONG_LESS: f64 = 0.94;
/// Seconds in which a limiter calms down (guess: rules of fair use and blocks last for 5 to 30 s); after silences that were seen, longer.
const CALM_S: f64 = 20.0;
const LONGEST_CALM_S: f64 = 45.0;
/// A trial; one near to the rate takes longer, since a bucket's tokens last the longer the less is missing.
const SHORT_S: f64 = 10.0;
const ABOVE_S: f64 = 12.0;
const BETWEEN_S: f64 = 20.0;
const LONG_S: f64 = 60.0;
const LONGEST_S: f64 = 60.0;
/// What passed for so long holds; what did for less may have used up tokens (a choice: the bursts of products last for half of it).
pub(super) const HOLDS_S: f64 = 45.0;
/// And for so many times as long as the limiter was seen to remember what came before.
const REMEMBERS: f64 = 1.2;
/// Budgets from which on it is asked early, and time is kept for the trial after a rest; less is for the figures first.
pub(super) const KEEPS_S: f64 = 200.0;
const KEPT_S: f64 = 82.0;
/// A drain that ended no longer ago left no tokens to speak of; and less than this share of the most that passed is next to nothing.
const DRAINED_S: f64 = 1.0;
pub(super) const SHUT: f64 = 0.02;
/// The start of a trial may still be refused for what went before.
pub(super) const START_S: f64 = 3.0;
/// So many ops, at least, are offered in a trial: fewer tell nothing of one in a hundred.
const LEAST_OPS: f64 = 100.0;
const TRIALS: u32 = 12;
/// Less than what was offered, and nothing refused: the storage, or this machine, was the limit.
pub(super) const SHORT_OF: f64 = 0.9;

impl HoldSearch {
    /// The least rate that was refused.
    pub fn refused(&self) -> Option<f64> {
        self.high
    }

    pub fn phase(&self) -> String {
        let rate = crate::words::about(self.offered, 3);
        match self.step {
            HoldStep::Below { .. } => format!("holding back: does {rate} op/s pass without refusals?"),
            HoldStep::Stays => format!("holding back: does {rate} op/s pass for longer?"),
            HoldStep::Above | HoldStep::Rested => format!("holding back: are {rate} op/s refused?"),
            HoldStep::Up | HoldStep::Between | HoldStep::Long => {
                format!("looking for the highest rate that holds without refusals: offering {rate} op/s")
            }
        }
    }

    /// Rest before the next trial, and its length.
    fn times(&self) -> (f64, f64) {
        let calm_s = self.calm_s;
        let enough_s = (LEAST_OPS / self.offered).min(LONGEST_S);
        let (rest_s, length_s) = match self.step {
            HoldStep::Below { rested: false } => (0.0, SHORT_S),
            HoldStep::Below { rested: true } => (calm_s, BETWEEN_S),
            HoldStep::Above => (0.0, ABOVE_S),
            HoldStep::Rested => (calm_s, self.rested_s()),
            HoldStep::Up => (0.0, SHORT_S),
            HoldStep::Between => (calm_s, BETWEEN_S),
            HoldStep::Long => (if self.high.is_some() { calm_s } else { 0.0 }, LONG_S),
            HoldStep::Stays => (0.0, LONG_S),
        };
        (rest_s, length_s.max(enough_s))
    }

    /// Until tokens of a rest are used up at half as much again, and a little longer.
    fn rested_s(&self) -> f64 {
        1.15 * self.tokens / ((RESTED - 1.0) * self.pushed) + START_S + SHORT_S
    }

    /// The rest before this step, seconds.
    pub fn rest_s(&self) -> f64 {
        self.times().0
    }

    /// What is known where the search ends.
    fn answer(&self) -> Option<HeldBack> {
        // More than what passes beside refusals did pass, however briefly: that much is known.
        let passed = matches!(self.step, HoldStep::Up | HoldStep::Between | HoldStep::Long);
        let (low, low_s) = self.low.or_else(|| passed.then_some((self.pushed, 0.0)))?;
        if low < self.pushed {
            let high = self.high?;
            return Some(HeldBack::Same { passes: low, refused: high, rested: false });
        }
        // What passed for a short while may have been a bucket's tokens.
        let holds = low_s >= HOLDS_S && outlasts(low, low_s, self.pushed, self.calmed_s);
        let low = if holds { low } else { self.pushed };
        let high = self.high.unwrap_or(f64::INFINITY);
        // To be quoted is what held; how near to it the limit lies, the tokens of a bucket hide.
        let rate = Estimate { value: low, low: HELD_AT_LEAST * low, high, n_eff: 1.0 };
        let calm_s = Some(self.calmed_s).filter(|s| *s > 0.0);
        let seconds = if holds { low_s } else { 0.0 };
        Some(HeldBack::More { rate, pushed: self.pushed, seconds, calm_s })
    }
}

impl Probe {
    /// Right after a drain of small ops that was refused: its tokens are used up, and what passes is what comes.
    pub(super) fn ask_hold(&mut self) -> Option<ProbeAction> {
        let q = &self.questions;
        let early =
            q.enabled && !q.penalty_asked && q.hold == HoldState::Unasked && self.options.budget_s >= KEEPS_S;
        let t = &self.tracks[Resource::Ops as usize];
        if !early || t.drains.is_empty() || self.now_s - t.last_end_s > DRAINED_S || self.is_growing() {
            return None;
        }
        let ops = self.outcome().ops;
        let pushed = pushed(&ops)?;
        // What grants next to nothing has a search of its own.
        (pushed > SHUT * ops.most_passed()).then(|| self.hold_back(pushed))
    }

    /// After a rest, once the capacity is known as well as it will be.
    pub(super) fn ask_rested(&mut self) -> Option<ProbeAction> {
        let HoldState::Sides(mut h) = self.questions.hold else { return None };
        self.questions.hold = HoldState::Asked;
        let idle_s = self.now_s - self.tracks[Resource::Ops as usize].last_end_s;
        h.tokens = self.tokens_of_a_rest().min(h.pushed * idle_s.max(h.calm_s));
        // A bucket that lasts for longer than a trial tells nothing in it.
        (h.rested_s() <= LONGEST_S).then(|| self.hold(h))
    }

    /// All but what was kept of the budget is used: for the trial after a rest, or where that tells nothing, for what else is open.
    pub(super) fn rested_or_end(&mut self) -> ProbeAction {
        match self.questions.hold {
            HoldState::Sides(_) => self.ask_rested().unwrap_or_else(|| self.choose()),
            HoldState::Unasked | HoldState::Asked => self.finish(),
        }
    }

    /// Seconds that are kept for the trial after a rest.
    pub(super) fn kept_s(&self) -> f64 {
        match self.questions.hold {
            HoldState::Sides(_) => KEPT_S,
            HoldState::Unasked | HoldState::Asked => 0.0,
        }
    }

    fn tokens_of_a_rest(&self) -> f64 {
        match self.outcome().ops.capacity {
            Capacity::Measured(e) => e.high,
            Capacity::AtLeast(_) => f64::INFINITY,
            Capacity::NoneSeen => 0.0,
        }
    }

    /// Begins where tokens are used up, with what passed beside refusals.
    pub(super) fn hold_back(&mut self, pushed: f64) -> ProbeAction {
        self.questions.hold = HoldState::Asked;
        self.questions.penalty_asked = true;
        let step = HoldStep::Below { rested: false };
        let offered = LESS * pushed;
        self.hold(HoldSearch {
            step,
            pushed,
            tokens: 0.0,
            low: None,
            calmed_s: 0.0,
            high: None,
            offered,
            calm_s: self.calm_s(),
            tokens_seen: FirstRefusals::default(),
            left: TRIALS,
        })
    }

    /// Seconds that a limiter needs to calm down: longer than any time for which it refused all.
    fn calm_s(&self) -> f64 {
        let drains = &self.tracks[Resource::Ops as usize].drains;
        let longest = drains.iter().map(|d| longest_shut_s(d.x.as_slice(), d.dt_s)).fold(0.0, f64::max);
        (1.3 * longest + 1.0).clamp(CALM_S, LONGEST_CALM_S)
    }

    /// A rate holds that passes for so long, seconds: for longer than the limiter remembers, since as much may pass after a rest as was
    /// not asked for in it (a rule that counts over two minutes lets twice its rate through for one).
    pub(super) fn holds_s(&self) -> f64 {
        HOLDS_S.max(REMEMBERS * self.questions.remembers_s)
    }

    fn hold(&mut self, mut h: HoldSearch) -> ProbeAction {
        let (rest_s, mut length_s) = h.times();
        let idle_s = self.now_s - self.tracks[Resource::Ops as usize].last_end_s;
        let rest_s = (rest_s - idle_s).max(0.0);
        let is_long = matches!(h.step, HoldStep::Long | HoldStep::Stays);
        if is_long {
            length_s = length_s.min(self.left_s() - rest_s - 1.0);
        }
        let least_s = if is_long { HOLDS_S } else { SHORT_S };
        let fits = rest_s + length_s < self.left_s() && length_s >= least_s;
        if !fits || h.left == 0 {
            return match h.step {
                HoldStep::Stays => self.held(Some(HeldBack::Less { offered: h.offered })),
                _ => self.held(h.answer()),
            };
        }
        h.left -= 1;
        self.try_it(Trial {
            question: Question::Hold(h),
            size_bytes: self.options.small_bytes,
            concurrency: self.open_concurrency(),
            offered_per_s: Some(h.offered),
            length_s,
            rest_s,
            again: AGAIN,
            seen: Plateau::default(),
        })
    }

    pub(super) fn hold_next(&mut self, mut h: HoldSearch, t: Trial) -> ProbeAction {
        let (ok, tail) = t.tail(self.options.dt_s);
        if t.begins_shut(self.options.dt_s) && h.rest_s() > 0.0 && h.calm_s < LONGEST_CALM_S {
            // The rest was too short to be forgiven: that tells nothing of what is offered now.
            self.questions.was_shut_after(h.rest_s());
            h.calm_s = (2.0 * h.calm_s).min(LONGEST_CALM_S);
            return self.hold(h);
        }
        let refused = t.refused_from(START_S, self.options.dt_s).max(tail) >= cause::REFUSED;
        let length_s = t.length_s;
        if refused && h.rest_s() > 0.0 {
            h.tokens_seen.add(t.first_refusal(self.options.dt_s));
        }
        if refused {
            h.high = Some(h.high.map_or(h.offered, |high| high.min(h.offered)));
        } else if ok < SHORT_OF * h.offered {
            // There is no higher rate to be had here, and none is known to be refused.
            let known = h.answer();
            return self.held(known.filter(|a| matches!(a, HeldBack::More { .. })));
        } else {
            h.low = Some((h.offered, length_s));
            h.calmed_s = h.calmed_s.max(h.rest_s());
        }
        match (h.step, refused) {
            (HoldStep::Below { rested: false }, true) => {
                h.high = None;
                h.step = HoldStep::Below { rested: true };
            }
            (HoldStep::Below { rested: true }, true) => {
                let offered = h.offered;
                return self
                    .try_law(Interrupted::Less { offered }, Some(offered))
                    .unwrap_or_else(|| self.held(Some(HeldBack::Less { offered })));
            }
            (HoldStep::Below { rested: false }, false) => {
                (h.step, h.offered) = (HoldStep::Above, MORE * h.pushed)
            }
            (HoldStep::Above, true) => {
                // What is known so far; the rest comes when the capacity is known.
                (h.step, h.offered) = (HoldStep::Rested, RESTED * h.pushed);
                self.questions.answers.held_back = h.answer();
                self.questions.hold = HoldState::Sides(h);
                return self.choose();
            }
            (HoldStep::Rested, true) => {
                let passes = h.low.map_or(LESS * h.pushed, |l| l.0);
                if !self.has_moved() {
                    return self.held(Some(HeldBack::Same {
                        passes,
                        refused: MORE * h.pushed,
                        rested: true,
                    }));
                }
                (h.step, h.offered) = (HoldStep::Stays, passes);
            }
            (HoldStep::Stays, true) => return self.held(Some(HeldBack::Less { offered: h.offered })),
            (HoldStep::Stays, false) => {
                self.questions.answers.held_back =
                    Some(HeldBack::Same { passes: h.offered, refused: MORE * h.pushed, rested: true });
                return self.choose();
            }
            (HoldStep::Long, false) => return self.held(h.answer()),
            // It passed for a short while only: a little less may hold.
            (HoldStep::Long, true) => {
                h.low = Some((h.pushed, 0.0));
                h.offered *= LONG_LESS;
                if h.offered <= h.pushed {
                    return self.held(h.answer());
                }
            }
            (HoldStep::Below { rested: true } | HoldStep::Above | HoldStep::Rested | HoldStep::Up, false) => {
                // What was refused before the rest was refused for what went before.
                h.high = None;
                (h.step, h.offered) = (HoldStep::Up, STEP_UP * h.offered.max(h.pushed));
                if let Some(action) = self.try_law(Interrupted::Hold(h), None) {
                    return action;
                }
            }
            (HoldStep::Up | HoldStep::Between, _) => {
                let low = h.low.map_or(h.pushed, |l| l.0);
                let high = h.high.unwrap_or(STEP_UP * low);
                // The last that there is time for is whether it holds.
                let last = self.left_s() < 2.0 * h.calm_s + BETWEEN_S + HOLDS_S + 2.0;
                let law = h.tokens_seen.rate().filter(|r| *r > low && *r < high);
                (h.step, h.offered) = match high < KNOWN * low || last || law.is_some() {
                    true => (HoldStep::Long, law.map_or(low, |r| SURELY * r)),
                    false => (HoldStep::Between, (low * high).sqrt()),
                };
                if let Some(action) = refused.then(|| self.try_law(Interrupted::Hold(h), h.high)).flatten() {
                    return action;
                }
            }
        }
        self.hold(h)
    }

    /// Goes on after a law's rate did not hold.
    pub(super) fn hold_on(
        &mut self,
        mut h: HoldSearch,
        held: Option<(f64, f64)>,
        refused_at: Option<f64>,
    ) -> ProbeAction {
        h.high = refused_at.into_iter().chain(h.high).reduce(f64::min);
        h.low = held.filter(|a| h.low.is_none_or(|b| a.0 > b.0)).or(h.low);
        if let Some(high) = h.high {
            // What passed for a short while, and was refused for longer, did not hold.
            h.low = h.low.filter(|low| low.0 < high);
            if h.offered >= high {
                h.offered = (h.low.map_or(h.pushed, |low| low.0).min(high) * high).sqrt();
            }
        }
        self.hold(h)
    }

    /// The level moved while it refused: then what passes today is no rate of tomorrow's. After a rest it may well: a sliding count lets much through
    /// at once, and nothing for as long.
    fn has_moved(&self) -> bool {
        let drains = &self.tracks[Resource::Ops as usize].drains;
        drains.iter().any(|d| d.kind == DrainKind::Unsteady && d.idle_s.is_none())
    }

    pub(super) fn held(&mut self, found: Option<HeldBack>) -> ProbeAction {
        let moved = self.has_moved();
        self.questions.answers.held_back = match found {
            Some(HeldBack::More { rate, .. }) if moved => Some(HeldBack::Less { offered: rate.low }),
            Some(HeldBack::Same { passes, .. }) if moved => Some(HeldBack::Less { offered: passes }),
            found => found,
        };
        self.choose()
    }
}

/// What passed after a rest is more than a bucket of the pushed rate would have had from that rest and since.
pub(super) fn outlasts(per_s: f64, seconds: f64, pushed: f64, rest_s: f64) -> bool {
    (per_s - pushed) * seconds > pushed * rest_s
}

/// Longest time in which next to nothing passed, seconds.
pub(super) fn longest_shut_s(x: &[f64], dt: f64) -> f64 {
    let low = 0.02 * math::mean(x);
    x.split(|v| *v > low).map(<[f64]>::len).max().unwrap_or(0) as f64 * dt
}

/// Of a track: what passes beside refusals, where that is to be held against what passes without.
pub(super) fn pushed(ops: &Found) -> Option<f64> {
    let rate = ops.sustained.map(|e| e.value).filter(|r| r.is_finite() && *r > 0.0);
    rate.filter(|_| ops.refused() >= cause::REFUSED)
}
