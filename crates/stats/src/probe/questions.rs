//! What kind of limiter it is, asked after its figures are known: does a refusal cost tokens (Ppen), is the burst one of
//! tokens or of time (Ptype), and is the cost of an op really one op plus its bytes (Pmid).

use plimsoll_model::Estimate;

use super::after_rest::{AfterRest, after_rest};
use super::bisect::Bisection;
use super::by_law::{ByLaw, Interrupted, LawTrial};
use super::cause;
use super::cost::{Cost, cost};
use super::design::WATCHED_S;
use super::hold::{self, HeldBack, HoldSearch};
use super::plateau::Plateau;
use super::{
    AtOnce, Capacity, Cause, DrainKind, Found, Probe, ProbeAction, ProbeOutcome, Resource, SameShare,
    ServedAtOnce, State,
};
use crate::laws::{LawContest, RivalLaw};
use crate::math;
use crate::simulate::RatesSeen;

/// What a refused request costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Penalty {
    /// Offered twice the rate, the limiter still grants the rate.
    Free,
    /// Refusals use up tokens: saturating it grants next to nothing. The highest rate without refusals.
    CostsTokens(Estimate),
}

/// What a burst uses up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BurstLaw {
    /// Half of the excess lasts twice as long.
    Tokens,
    /// It ends after its time, however much of it was used.
    Timer,
}

/// Answers, as far as there are any.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Answers {
    /// What refusals cost.
    pub penalty: Option<Penalty>,
    /// What a load gets that does not insist, where another was refused.
    pub held_back: Option<HeldBack>,
    /// Seconds for which the highest rate without refusals was seen.
    pub free_s: Option<f64>,
    /// Of ops and of bytes. The ratio of the burst's lengths is the measurement.
    pub burst: [Option<(BurstLaw, f64)>; 2],
    /// What an op of a size between the two costs.
    pub cost: Option<Cost>,
    /// What is refused is how many requests there are at once.
    pub at_once: Option<AtOnce>,
    /// Refusals came with a rate that is held no better than storage holds its own, and their number does not follow how many are in flight.
    pub is_unclear: bool,
    /// The same share is refused of however few.
    pub same_share: Option<SameShare>,
    /// The law that explains what was refused, and whose rate held.
    pub by_law: Option<ByLaw>,
    /// How many ops in flight are enough, where nothing is refused.
    pub served: Option<ServedAtOnce>,
    /// What passes at once after a rest, where pushing showed no burst.
    pub after_rest: Option<AfterRest>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Questions {
    pub enabled: bool,
    pub at_once_asked: bool,
    /// What is refused may be how many requests there are at once, or a rate that so many reach.
    pub maybe_at_once: Option<AtOnce>,
    pub answers: Answers,
    pub penalty_asked: bool,
    pub hold: hold::HoldState,
    burst_asked: [bool; 2],
    /// The rest before it was given: clocks round, and a rest that ends an ulp too soon must not be asked for again.
    burst_rested: [bool; 2],
    /// Ops that had been granted when the bisection began: what may pass at once.
    pub burst_ops: Option<f64>,
    /// Sizes in between with what they gave.
    cost: Vec<(u64, f64)>,
    cost_asked: bool,
    pub served_asked: bool,
    pub after_rest_asked: bool,
    /// Rates of laws that were to hold.
    pub laws_tried: Vec<f64>,
    /// Seconds of rest that the next of them takes at the least: shorter ones were not forgiven.
    pub least_rest_s: f64,
    /// The longest rest after which a load was refused from its begin: for so long the limiter remembers what came before, seconds.
    pub remembers_s: f64,
    /// Trials that laws asked for.
    pub law_trials: usize,
    /// The least rate that was refused in them.
    pub least_refused: Option<f64>,
    /// The law that foretold the last trial, and its rate.
    pub foretold: Option<(RivalLaw, f64)>,
    /// The law with the highest rate that held.
    pub law_held: Option<ByLaw>,
    /// How the laws stand, as of the last look at the record.
    pub contest: Option<LawContest>,
}

impl Questions {
    pub fn new(enabled: bool) -> Self {
        Self { enabled, ..Self::default() }
    }

    /// So much was refused, however long it passed before.
    pub fn was_refused(&mut self, offered: f64) {
        self.least_refused = Some(self.least_refused.map_or(offered, |least| least.min(offered)));
    }

    /// After a rest of so long a load was refused from its begin.
    pub fn was_shut_after(&mut self, rest_s: f64) {
        self.remembers_s = self.remembers_s.max(rest_s);
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is copied once for each trial")]
pub(super) enum Question {
    /// Twice the plateau is offered.
    TwiceTheRate(f64),
    Bisect(Bisection),
    /// What was found under refusals, held back from.
    Hold(HoldSearch),
    /// The rate of a law.
    Law(LawTrial),
    /// Half of the excess is offered; the cliff of the full drain.
    HalfExcess {
        of: Resource,
        rate: f64,
        offered: f64,
        cliff_s: f64,
    },
    InBetween,
    /// One in flight, where any number comes to `rate`.
    Alone {
        rate: Estimate,
    },
    /// Much more than the rate, after a rest.
    AfterRest {
        rate: f64,
        rest_s: f64,
    },
}

/// A stretch of load that answers a question.
#[derive(Debug, Clone)]
pub(super) struct Trial {
    pub question: Question,
    pub size_bytes: u64,
    pub concurrency: u32,
    pub offered_per_s: Option<f64>,
    pub length_s: f64,
    /// Leave the storage alone for so long first.
    pub rest_s: f64,
    /// Times that it may be made again because the load stood still.
    pub again: u32,
    pub seen: Plateau,
}

/// Times that a trial is made again in which the load stood still (guess; a machine on which it happens three times in a row is no
/// place to measure).
pub(super) const AGAIN: u32 = 2;
/// Nothing ended for so long, though so many ops were due: the client or the storage stood still, and what was due then came at once
/// (a stop of the client's is told from half a second on, too).
const STILL_S: f64 = 0.5;
const STILL_OPS: f64 = 5.0;
/// In the slice after it no more end than were offered, but for its edges.
const AS_SENT: f64 = 1.3;

/// Seconds between two looks at a trial that may end early, and for which it goes on after a refusal.
const CHUNK_S: f64 = 4.0;
const AFTER_S: f64 = 3.0;
/// Seconds at the end of a trial that count.
pub(super) const TAIL_S: f64 = 3.0;
pub(super) const TRIAL_S: f64 = 6.0;
/// A difference beyond this is one.
pub(super) const APART: f64 = 0.10;
impl Trial {
    pub fn phase(&self) -> String {
        match self.question {
            Question::TwiceTheRate(_) => "offering twice the rate: do refused requests cost tokens?".into(),
            Question::Bisect(b) => b.phase(),
            Question::Hold(h) => h.phase(),
            Question::Law(l) => l.phase(),
            Question::HalfExcess { of, .. } => {
                format!("is the burst of {} limited by tokens or by time?", of.name())
            }
            Question::Alone { .. } => "finding how many ops in flight are enough: 1".into(),
            Question::AfterRest { .. } => "finding how much passes at once after a rest".into(),
            Question::InBetween => {
                format!(
                    "measuring what an op of {} costs",
                    plimsoll_model::units::format_size(self.size_bytes)
                )
            }
        }
    }

    /// Once it was refused, more of it tells little.
    fn ends_early(&self) -> bool {
        match self.question {
            Question::Law(_) | Question::Bisect(_) => true,
            Question::Hold(h) => h.rest_s() > 0.0,
            Question::TwiceTheRate(_)
            | Question::HalfExcess { .. }
            | Question::InBetween
            | Question::Alone { .. }
            | Question::AfterRest { .. } => false,
        }
    }

    /// Of its length, seconds.
    fn left_s(&self, dt: f64) -> f64 {
        self.length_s - self.seen.ok.len() as f64 * dt
    }

    /// It was refused for long enough.
    fn is_answered(&self, dt: f64) -> bool {
        if !self.ends_early() {
            return false;
        }
        if let (Question::Law(l), Some(offered)) = (self.question, self.offered_per_s)
            && l.watches()
        {
            let seen_s = self.seen.ok.len() as f64 * dt;
            return self.first_passing_s(dt, offered).is_some_and(|s| seen_s >= s + WATCHED_S);
        }
        // The start may still be refused for what went before.
        let start_s = if matches!(self.question, Question::Hold(_)) { hold::START_S } else { 0.0 };
        let from = (start_s / dt).round() as usize;
        let late = self.seen.refused.iter().skip(from).position(|r| *r > 0.0);
        let seen_s = self.seen.ok.len() as f64 * dt;
        late.map(|i| (from + i) as f64 * dt)
            .is_some_and(|s| seen_s >= s + AFTER_S && self.refused_from(s, dt) >= cause::REFUSED)
    }

    /// Whether the load stood still for a part of it: for so long nothing ended, and what was due then was not merely refused late.
    fn stood_still(&self, dt: f64) -> bool {
        let Some(offered) = self.offered_per_s else { return false };
        let ended: Vec<f64> = self.seen.ok.iter().zip(&self.seen.refused).map(|(a, b)| a + b).collect();
        let mut from = 0;
        ended.split(|e| *e > 0.0).any(|still| {
            let at = from + still.len();
            from = at + 1;
            let still_s = still.len() as f64 * dt;
            // Kept waiting and refused (a tarpit), they come back as they were sent, or all that were in flight.
            let (all, ok) =
                (ended.get(at).map_or(0.0, |e| e * dt), self.seen.ok.get(at).map_or(0.0, |ok| ok * dt));
            let sent = (AS_SENT * offered * dt).max(f64::from(self.concurrency));
            let tarpit = all > 0.0 && ok < 0.5 * all && all <= sent;
            still_s >= STILL_S - 1e-9 && still_s * offered >= STILL_OPS && !tarpit
        })
    }

    /// When something was refused first, seconds from its begin, and ops that had passed.
    pub fn first_refusal(&self, dt: f64) -> Option<(f64, f64)> {
        let at = self.seen.refused.iter().position(|r| *r > 0.0)?;
        Some((at as f64 * dt, self.seen.ok.iter().take(at).sum::<f64>() * dt))
    }

    /// When most of what was offered passed first, in a second of it; seconds from its begin.
    pub fn first_passing_s(&self, dt: f64, offered: f64) -> Option<f64> {
        let n = ((1.0 / dt).round() as usize).max(1);
        let most = 0.5 * offered * n as f64;
        self.seen.ok.windows(n).position(|w| w.iter().sum::<f64>() >= most).map(|i| i as f64 * dt)
    }

    /// Whether most of its first second was refused, be it later.
    pub fn begins_shut(&self, dt: f64) -> bool {
        let n = ((1.0 / dt).round() as usize).max(1);
        let sum = |v: &[f64]| v.iter().take(n).sum::<f64>() * dt;
        let (ok, refused) = (sum(&self.seen.ok), sum(&self.seen.refused));
        let late = self.seen.refused.iter().any(|r| *r > 0.0) && refused <= 0.0;
        refused > ok || late && self.offered_per_s.is_some_and(|offered| ok < 0.5 * offered)
    }

    /// Share of refusals, but for the start.
    pub fn refused_from(&self, start_s: f64, dt: f64) -> f64 {
        let from = (start_s / dt).round() as usize;
        let sum = |v: &[f64]| v.get(from..).unwrap_or_default().iter().sum::<f64>();
        let (ok, refused) = (sum(&self.seen.ok), sum(&self.seen.refused));
        if ok + refused > 0.0 { refused / (ok + refused) } else { 0.0 }
    }

    /// Mean of ok and share of refusals in the tail.
    pub fn tail(&self, dt: f64) -> (f64, f64) {
        let from = self.seen.ok.len().saturating_sub((TAIL_S / dt).round() as usize);
        let ok = math::mean(&self.seen.ok[from..]);
        let refused = math::mean(self.seen.refused.get(from..).unwrap_or_default());
        (ok, if ok + refused > 0.0 { refused / (ok + refused) } else { 0.0 })
    }
}

impl Probe {
    /// The next question that is open and can be answered within the budget.
    pub(super) fn ask(&mut self) -> ProbeAction {
        if !self.questions.enabled {
            return self.finish();
        }
        if let Some(action) = self.ask_rested().or_else(|| self.decide_again()) {
            return action;
        }
        let known = self.outcome();
        let trial = self.ask_penalty(&known.ops);
        if let Some(t) = trial {
            self.questions.burst_ops = Some(self.used[Resource::Ops as usize]);
            if let Question::Bisect(b) = t.question
                && let Some(action) = self.try_law(Interrupted::Bisect(b), None)
            {
                return action;
            }
            return self.try_it(t);
        }
        for of in [Resource::Ops, Resource::Bytes] {
            if let Some(action) = self.ask_burst(if of == Resource::Ops { &known.ops } else { &known.bytes })
            {
                return action;
            }
        }
        let rest = self.ask_cost(&known).or_else(|| self.ask_served(&known));
        match rest.or_else(|| self.ask_after_rest(&known)) {
            Some(t) => self.try_it(t),
            None => self.finish(),
        }
    }

    /// What was kept for a trial that was not made is left for what is open.
    fn decide_again(&mut self) -> Option<ProbeAction> {
        let (left_s, known) = (self.left_s(), self.outcome());
        let mut reopened = false;
        for (t, f) in self.tracks.iter_mut().zip([&known.ops, &known.bytes]) {
            if t.done && f.open.iter().any(|q| q.more_s.is_some_and(|s| s <= left_s)) {
                t.decide(left_s);
                reopened |= !t.done;
            }
        }
        reopened.then(|| self.choose())
    }

    /// Of the budget, but for what holding back wants of it.
    pub(super) fn left_s(&self) -> f64 {
        self.options.budget_s - self.elapsed_s() - self.kept_s()
    }

    /// Asked where attempts are refused: then a plateau under saturation may not be the rate.
    fn ask_penalty(&mut self, ops: &Found) -> Option<Trial> {
        if std::mem::replace(&mut self.questions.penalty_asked, true) {
            return None;
        }
        if ops.refused() < cause::REFUSED || self.is_growing() {
            return None;
        }
        let rate = hold::pushed(ops).unwrap_or_else(|| ops.drains.last().map_or(0.0, |d| d.rate));
        let shut =
            ops.drains.last().is_some_and(|d| d.steadiness.is_some_and(|s| s.cause() == Cause::Refusing));
        let trial = |question, offered: f64, length_s: f64| Trial {
            question,
            size_bytes: self.options.small_bytes,
            concurrency: self.open_concurrency(),
            offered_per_s: Some(offered),
            length_s,
            rest_s: 0.0,
            again: AGAIN,
            seen: Plateau::default(),
        };
        if rate > hold::SHUT * ops.most_passed() && !shut {
            let capacity = match ops.capacity {
                Capacity::Measured(e) => e.value,
                Capacity::AtLeast(v) => v,
                Capacity::NoneSeen => 0.0,
            };
            let length_s = (capacity / rate + TRIAL_S).min(40.0);
            return (length_s < self.left_s())
                .then(|| trial(Question::TwiceTheRate(rate), 2.0 * rate, length_s));
        }
        // All that was granted so far passed at once, as far as can be known: the rate is looked for from half of it per second.
        let offered = (0.5 * self.used[Resource::Ops as usize].max(2.0)).min(self.most_offered());
        let (rest_s, length_s) = self.times_of(offered);
        let fits = rest_s + length_s < self.left_s();
        fits.then(|| Trial { rest_s, ..trial(Question::Bisect(Bisection::from(offered)), offered, length_s) })
    }

    /// A rest until the bucket is full, then half of the excess.
    fn ask_burst(&mut self, f: &Found) -> Option<ProbeAction> {
        let i = f.resource as usize;
        if self.questions.burst_asked[i] {
            return None;
        }
        let Capacity::Measured(capacity) = f.capacity else { return None };
        let (rate, burst) = (f.sustained?.value, f.burst?.value);
        let full = f
            .drains
            .iter()
            .filter(|d| d.kind == DrainKind::Cliff && d.recovered > Some(0.9 * capacity.value))
            .filter_map(|d| d.cliff_s)
            .fold(0.0, f64::max);
        let rest_s = 1.2 * capacity.value / rate;
        let longest_s = 2.6 * full + 4.0;
        // No time is known better than a slice of the series.
        let idle_s = self.now_s - self.tracks[i].last_end_s + self.options.dt_s;
        if full < 4.0 || burst < 1.2 * rate || (rest_s - idle_s).max(0.0) + longest_s > self.left_s() {
            self.questions.burst_asked[i] = true;
            return None;
        }
        if idle_s < rest_s {
            // Who could not wait for so long once cannot do it the second time.
            if std::mem::replace(&mut self.questions.burst_rested[i], true) {
                self.questions.burst_asked[i] = true;
                return None;
            }
            // Asked again after it: the state is to choose.
            return Some(ProbeAction::Idle { seconds: rest_s - idle_s + self.options.dt_s });
        }
        self.questions.burst_asked[i] = true;
        let offered = rate + 0.5 * (burst - rate);
        let size_bytes = self.size_of(f.resource);
        let per_op = if f.resource == Resource::Bytes { size_bytes as f64 } else { 1.0 };
        let trial = Trial {
            question: Question::HalfExcess { of: f.resource, rate, offered, cliff_s: full },
            size_bytes,
            concurrency: self.concurrency_of(f.resource),
            offered_per_s: Some(offered / per_op),
            length_s: longest_s,
            rest_s: 0.0,
            again: 0,
            seen: Plateau::default(),
        };
        Some(self.try_it(trial))
    }

    /// Two sizes between the caps: at the knee, where a shared resource gives half, and at half as much again, where units show.
    fn ask_cost(&mut self, known: &ProbeOutcome) -> Option<Trial> {
        if self.questions.cost_asked {
            return None;
        }
        let (ops, bytes) = (known.ops.sustained.map(|e| e.value), known.bytes.sustained.map(|e| e.value));
        let both = known.ops.cause() != Cause::None && known.bytes.cause() != Cause::None;
        let (true, Some(ops), Some(bytes)) = (both && !known.one_cap(), ops, bytes) else {
            self.questions.cost_asked = true;
            return None;
        };
        let step = self.options.small_bytes.clamp(512, 4096);
        let sizes = [1.0, 1.5].map(|f| ((f * bytes / ops / step as f64).round().max(1.0) as u64) * step);
        let done = self.questions.cost.len();
        let cliffs = [&known.ops, &known.bytes].into_iter().flat_map(|f| &f.drains).filter_map(|d| d.cliff_s);
        let length_s = (1.5 * cliffs.fold(0.0, f64::max) + 8.0).min(90.0);
        if done >= sizes.len() || length_s > self.left_s() {
            self.questions.cost_asked = true;
            self.questions.answers.cost = cost(&self.questions.cost, ops, bytes);
            return None;
        }
        let concurrency = self.concurrency_of(Resource::Ops).max(self.concurrency_of(Resource::Bytes));
        Some(Trial {
            question: Question::InBetween,
            size_bytes: sizes[done],
            concurrency,
            offered_per_s: None,
            length_s,
            rest_s: 0.0,
            again: 0,
            seen: Plateau::default(),
        })
    }

    /// The trial, after the rest that it wants.
    pub(super) fn try_it(&mut self, mut t: Trial) -> ProbeAction {
        let seconds = std::mem::take(&mut t.rest_s);
        if seconds > 0.0 {
            self.state = State::Resting(t);
            return ProbeAction::Idle { seconds };
        }
        self.try_on(t, false)
    }

    fn try_on(&mut self, t: Trial, continues: bool) -> ProbeAction {
        let dt_s = self.options.dt_s;
        let left_s = t.left_s(dt_s);
        let action = ProbeAction::Load {
            size_bytes: t.size_bytes,
            concurrency: t.concurrency,
            duration_s: if t.ends_early() { left_s.min(CHUNK_S) } else { left_s },
            dt_s,
            continues,
            offered_per_s: t.offered_per_s,
        };
        self.state = State::Trying(t);
        action
    }

    pub(super) fn trial_seen(&mut self, mut t: Trial, seen: Option<&RatesSeen>) -> ProbeAction {
        if let Some(s) = seen {
            let of = match t.question {
                Question::HalfExcess { of, .. } => of,
                _ => Resource::Ops,
            };
            t.seen.add(s, of);
            let dt_s = self.options.dt_s;
            let ended = s.ops_per_s.is_empty() || t.left_s(dt_s) < dt_s;
            if t.ends_early() && !ended && !t.is_answered(dt_s) {
                return self.try_on(t, true);
            }
        }
        self.state = State::Tried(t);
        ProbeAction::Stop
    }

    pub(super) fn trial_next(&mut self, t: Trial) -> ProbeAction {
        let dt = self.options.dt_s;
        self.rest_begins();
        let stood_still = t.stood_still(dt);
        if stood_still {
            self.record.stood_still();
        }
        if t.again > 0 && stood_still {
            let rest_s = match t.question {
                Question::Bisect(_) => self.times_of(t.offered_per_s.unwrap_or(0.0)).0,
                Question::Hold(h) => h.rest_s(),
                Question::Law(l) => l.rest_s(),
                _ => 0.0,
            };
            if rest_s + t.length_s < self.left_s() {
                return self.try_it(Trial { rest_s, again: t.again - 1, seen: Plateau::default(), ..t });
            }
        }
        let (ok, refused) = t.tail(dt);
        match t.question {
            Question::TwiceTheRate(rate) if (ok / rate - 1.0).abs() <= APART => {
                self.questions.answers.penalty = Some(Penalty::Free);
                return self.hold_back(rate);
            }
            Question::TwiceTheRate(rate) => {
                let b = Bisection::after(2.0 * rate, refused >= cause::REFUSED, t.length_s);
                return self.bisect(b, t);
            }
            Question::Hold(h) => return self.hold_next(h, t),
            Question::Law(l) => return self.law_next(l, t),
            Question::Bisect(b) => return self.bisect_next(b, t),
            Question::HalfExcess { of, rate, offered, cliff_s } => {
                let ratio = second_cliff(&t.seen.x, dt, 0.5 * (rate + offered)) / cliff_s;
                let law = if (1.6..=2.5).contains(&ratio) {
                    Some(BurstLaw::Tokens)
                } else if (0.75..=1.3).contains(&ratio) {
                    Some(BurstLaw::Timer)
                } else {
                    None
                };
                self.questions.answers.burst[of as usize] = law.map(|l| (l, ratio));
            }
            Question::InBetween => self.questions.cost.push((t.size_bytes, ok)),
            Question::Alone { rate } => self.served(rate, &t),
            Question::AfterRest { rate, rest_s } => {
                self.questions.answers.after_rest =
                    Some(after_rest(&t.seen.ok, &t.seen.refused, dt, rate, rest_s));
            }
        }
        self.choose()
    }
}

/// When the rate fell below `level` for two seconds; the whole length when it did not.
fn second_cliff(x: &[f64], dt: f64, level: f64) -> f64 {
    let k = ((1.0 / dt).round() as usize).max(1);
    let seconds = math::bin_means(x, k);
    // The first second is the start of the load.
    let at = (1..seconds.len().saturating_sub(1)).find(|&i| seconds[i] < level && seconds[i + 1] < level);
    at.unwrap_or(seconds.len()) as f64 * k as f64 * dt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_cliff_is_where_the_rate_stays_low() {
        let x: Vec<f64> = (0..200).map(|i| if i < 100 { 750.0 } else { 500.0 }).collect();
        assert!((second_cliff(&x, 0.2, 600.0) - 20.0).abs() <= 1.0);
        assert_eq!(second_cliff(&[], 0.2, 600.0), 0.0);
        assert!((second_cliff(&[750.0; 50], 0.2, 600.0) - 10.0).abs() < 1e-9);
    }
}
