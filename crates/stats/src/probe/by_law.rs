//! What the laws say ([`crate::laws`]), offered: as long as those that are left come to different rates, what tells them apart ([`design`]);
//! where they agree, their rate is known, and what remains is whether it holds. A search takes a trial for each halving.

use plimsoll_model::Estimate;

use super::bisect::Bisection;
use super::design::{self, DesignBounds};
use super::hold::{self, HELD_AT_LEAST, HoldSearch, HoldState};
use super::plateau::Plateau;
use super::questions::{AGAIN, Penalty, Question, Trial};
use super::{HeldBack, Probe, ProbeAction, Resource, cause};
use crate::laws::{self, LawContest, LawFit, LawHypothesis, LawState, RivalLaw};

/// A law that won, and its rate, which held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ByLaw {
    /// The law.
    pub fit: LawFit,
    /// The one that came next, and how far it is behind, as the logarithm of odds.
    pub next: Option<(RivalLaw, f64)>,
    /// The other laws have lost; if not, they come to the same rate.
    pub sure: bool,
    /// Next to all of the likelihood is of laws that come to this rate.
    pub agreed: bool,
    /// Independent seconds that decided.
    pub n_eff: f64,
    /// Ops per second that were offered, of which none were refused; or would be, where there was no time to try it.
    pub offered: f64,
    /// For so long, seconds; 0: it was not tried, and the law foretold what the last trial would come to.
    pub seconds: f64,
    /// Ops per second that were offered, and refused.
    pub refused: f64,
    /// When the law had said, not before and not later.
    pub foreseen: bool,
    /// Without load before it, at the least, seconds.
    pub rest_s: f64,
}

impl ByLaw {
    /// The rate: what is sure of it is what held and what was refused. By the law alone it is known better, which is another claim.
    pub fn rate(&self) -> Estimate {
        let value = self.fit.rate_per_s;
        if self.seconds <= 0.0 {
            let (low, high) = self.fit.rate_bounds;
            let high = (FORETOLD * high).min(self.refused).max(value);
            return Estimate { value, low: (low / FORETOLD).min(value), high, n_eff: 1.0 };
        }
        // What passes in a period was counted, whatever was refused beside it; and what was foreseen of a higher rate is of that law.
        let told = self.sure && self.fit.law == RivalLaw::Calendar || self.agreed && self.foreseen;
        let high = match told {
            true => self.refused.min(BOUNDED * value),
            // It held, and no other law is left: how much more there was no time to try. (With laws that are left and come to as much, as many
            // rates more are wrong as are right.)
            false if self.sure && self.agreed && self.fit.is_close => {
                (FORETOLD * self.fit.rate_bounds.1).min(self.refused).max(value)
            }
            false => self.refused,
        };
        // For less than the law's period, what passed may be what was not asked for before: then it is the law alone that says how low it may be.
        let low = HELD_AT_LEAST * self.offered;
        let low = match self.fit.memory_s() > self.seconds && self.fit.law != RivalLaw::Calendar {
            true => low.min(self.fit.rate_bounds.0),
            false => low,
        };
        Estimate { value, low, high, n_eff: 1.0 }
    }
}

/// What goes on where the law's rate does not hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Interrupted {
    Hold(HoldSearch),
    Bisect(Bisection),
    /// What passed beside refusals was refused by itself: there is no other way.
    Less {
        offered: f64,
    },
}

/// A trial that a law asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LawTrial {
    law: ByLaw,
    then: Interrupted,
    /// Not much more than the rate was refused before.
    bounded: bool,
    step: LawStep,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum LawStep {
    /// What tells most between the laws that are left; and when the likeliest says that it is refused, seconds.
    Explore { offered: f64, length_s: f64, foreseen_s: Option<f64> },
    /// A little of it, until it is let in again; and when the likeliest says so, seconds.
    Watch { offered: f64, foreseen_s: Option<f64> },
    /// The rate, for long.
    Holds,
    /// More than the rate: the law says when that is refused.
    Above { offered: f64, foreseen_s: f64 },
}

/// So much of the law's rate is offered, surely less than it.
const SURELY: f64 = 0.98;
/// Laws agree on a rate where so much of the likelihood is of those that come to it, within this share of it.
const AGREES: f64 = 0.9;
const NEAR: f64 = 0.03;
/// A rate that was tried is not tried again, nor is one so near to it; and of laws that come to no more than this share above what held, no
/// more is asked.
const TRIED: f64 = 0.015;
const SETTLED: f64 = 1.05;
/// So little more of a law's rate may hold for a while: tokens of a rest, which it explains.
const AS_MUCH: f64 = 1.02;
/// More of it, so that tokens last for as short a time as it takes; the first that is refused soon enough.
const MORE: [f64; 3] = [1.29, 1.6, 2.0];
const SOON_S: f64 = 40.0;
/// A refusal of no more than so many times the rate bounds it; without one, a refusal is foreseen.
const BOUNDED: f64 = 1.3;
/// A refusal that is foreseen is waited for by so much longer (as a share, and in seconds).
const FORESEEN: f64 = 0.3;
const FORESEEN_S: f64 = 2.0;
/// And it was as foreseen within that share, or within this, seconds: whole ops, and slices.
const SOON_ENOUGH_S: f64 = 1.0;
/// No rest before a rate is to hold is shorter, seconds.
const LEAST_REST_S: f64 = 3.0;
/// Rests that are tried, seconds; and laws that are asked whether they are long enough.
const RESTS_S: [f64; 12] = [1.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 75.0, 90.0];
const MOST_FORESEEN: usize = 12;
/// Less is not asked for, to tell laws apart: as a share of what the storage does, and ops per second (guess).
const LEAST_SHARE: f64 = 0.01;
const LEAST_PER_S: f64 = 0.5;
/// After a rest that was not forgiven, the next one is so many times as long, up to this; seconds.
const LONGER: f64 = 1.7;
const LONGEST_REST_S: f64 = 60.0;
/// A trial of whether a rate holds is no shorter, seconds, where there is no time for more.
const LEAST_HOLD_S: f64 = 20.0;
/// No trial is longer that only tells laws apart, seconds.
const LONGEST_S: f64 = 60.0;
/// No law that lowers the rate until it is calm shows for how long that is, before it was.
const CALM_S: f64 = 20.0;
/// A trial goes on for so long after a refusal was foreseen, seconds.
const SHORT_S: f64 = 3.0;
/// Rests before a rate is to hold are so many times as long as the laws ask for.
const MORE_REST: f64 = 1.15;
/// Share of the most that passed in a second that the storage is sure to do again (guess).
const STORAGE: f64 = 0.8;
/// What held and what was refused are near enough to each other; and a search that brings them nearer takes so long, seconds.
const NEAR_ENOUGH: f64 = 1.06;
const SEARCH_S: f64 = 60.0;
/// Trials that laws ask for.
const MOST_TRIES: usize = 16;
/// Less than this share of the rate is almost nothing.
const LITTLE: f64 = 0.1;

/// A rate that was not tried, or not from above, may lie so much further away than the law's own bounds: with half as much, three of 1,120 statements more
/// were wrong on seeds that nothing was tuned on. (Where the last two trials have to be as foretold, fewer
/// rates are told and no fewer wrong ones; where none has to, four times as many wrong ones.)
pub(super) const FORETOLD: f64 = 1.1;

/// Of a trial whose refusal is foreseen at that time, seconds.
fn length_of(foreseen_s: f64) -> f64 {
    (1.0 + FORESEEN) * foreseen_s + FORESEEN_S + SHORT_S
}

/// It was refused when it was said to be.
fn is_as_said(refused_s: f64, said_s: f64) -> bool {
    (refused_s - said_s).abs() <= (FORESEEN * said_s).max(SOON_ENOUGH_S)
}

/// Share of the likelihood of laws that come to so much.
fn share_near(found: &LawContest, per_s: f64) -> f64 {
    let near = |h: &&LawHypothesis| (h.fit.rate_per_s / per_s - 1.0).abs() < NEAR;
    let all: f64 = found.hypotheses.iter().map(|h| h.weight).sum();
    found.hypotheses.iter().filter(near).map(|h| h.weight).sum::<f64>() / all
}

impl LawTrial {
    pub fn phase(&self) -> String {
        let law = self.law.fit.law.words();
        let n = |x: f64| crate::words::about(x, 3);
        match self.step {
            LawStep::Explore { offered, .. } => {
                format!("telling laws apart ({law} is the likeliest): offering {} op/s", n(offered))
            }
            LawStep::Watch { .. } => {
                format!("telling laws apart ({law} is the likeliest): when does it let in again?")
            }
            LawStep::Holds => format!("{law}: do {} op/s hold without refusals?", n(self.law.offered)),
            LawStep::Above { offered, .. } => {
                format!("{law}: are {} op/s refused when it says so?", n(offered))
            }
        }
    }

    pub fn rest_s(&self) -> f64 {
        match self.step {
            LawStep::Explore { .. } | LawStep::Holds => self.law.rest_s,
            LawStep::Above { .. } | LawStep::Watch { .. } => 0.0,
        }
    }

    /// It is to be refused, until it passes.
    pub fn watches(&self) -> bool {
        matches!(self.step, LawStep::Watch { .. })
    }
}

impl Probe {
    /// What the laws that are left ask for: where they agree on a rate, whether it holds; else what tells them apart. `refused`: the least
    /// rate that was, so far.
    pub(super) fn try_law(&mut self, then: Interrupted, refused: Option<f64>) -> Option<ProbeAction> {
        // A quota of a window that was seen by its silences is told by them.
        let is_window = self.tracks[Resource::Ops as usize].drains.iter().any(|d| d.window.is_some());
        if is_window || self.questions.law_trials >= MOST_TRIES {
            return None;
        }
        self.questions.contest = laws::contest(&self.record, self.options.budget_s);
        let found = self.questions.contest.clone()?;
        // A rate that would not be asked for is none to ask for.
        let least_per_s = (LEAST_SHARE * self.record.most_per_s()).max(LEAST_PER_S);
        let likely: Vec<LawHypothesis> = found
            .hypotheses
            .iter()
            .filter(|h| h.fit.rate_per_s >= least_per_s && !h.is_bound)
            .copied()
            .collect();
        let best = likely.iter().find(|h| h.fit.is_likely).or(likely.first())?.fit;
        // Before one held, no more is asked of each law than the rate that explains best.
        let held = self.questions.law_held;
        let asked: Vec<LawHypothesis> = found
            .hypotheses
            .iter()
            .filter(|h| h.fit.rate_per_s >= least_per_s && (!h.is_bound || held.is_some()))
            .copied()
            .collect();
        let all: f64 = asked.iter().map(|h| h.weight).sum();
        let share = |of: &dyn Fn(f64) -> bool| -> f64 {
            asked.iter().filter(|h| of(h.fit.rate_per_s)).map(|h| h.weight).sum::<f64>() / all
        };
        if held.is_some_and(|held| share(&|rate| SURELY * rate > SETTLED * held.offered) < 1.0 - AGREES) {
            return None;
        }
        let tried = |rate: f64| self.questions.laws_tried.iter().any(|r| (r / rate - 1.0).abs() < TRIED);
        let mut trial = LawTrial {
            law: self.by_law_of(&found, best, refused),
            then,
            bounded: false,
            step: LawStep::Holds,
        };
        let above_s = if refused.is_some() { 1.0 } else { FORESEEN_S + SHORT_S + 1.0 };
        let rested_s = self.now_s - self.record.end_s();
        let rest_s = self.rest_before(&likely, trial.law.offered).map(|s| s.max(self.questions.least_rest_s));
        let to_rest_s = rest_s.map(|s| (s - rested_s).max(0.0));
        let least_hold_s = LEAST_HOLD_S.max(self.questions.remembers_s);
        let room_s = to_rest_s.map(|s| self.left_s() - s - above_s).filter(|s| *s >= least_hold_s);
        // Time is kept for whether a rate holds, where there is enough of it.
        let kept_s = room_s
            .and(to_rest_s)
            .map_or(0.0, |s| (s + trial.law.seconds + above_s).min(CALM_S + least_hold_s));
        // Before a law explains more than that each load had a rate of its own, none is asked to hold.
        let known = best.is_likely && found.ahead_of_none >= laws::WON;
        let agree = known && share(&|rate| (rate / best.rate_per_s - 1.0).abs() < NEAR) >= AGREES;
        let mut asks = agree && !tried(best.rate_per_s);
        if !asks {
            let bounds = DesignBounds {
                most_per_s: self.most_offered(),
                least_per_s,
                least_rest_s: self.questions.least_rest_s,
                most_s: self.left_s() - kept_s,
                rested_s,
                longest_s: LONGEST_S,
            };
            if let Some(d) = design::design(&self.record, &found.hypotheses, bounds) {
                self.questions.law_trials += 1;
                trial.law.rest_s = d.rest_s;
                let state = best.state(&self.record);
                if d.watches {
                    let foreseen_s = state.first_passing_s(d.rest_s, d.offered, d.length_s);
                    trial.step = LawStep::Watch { offered: d.offered, foreseen_s };
                    return Some(self.offer_law(trial, d.offered, d.length_s, 0.0));
                }
                let foreseen_s = state.first_refusal_s(d.rest_s, d.offered, d.length_s);
                trial.step = LawStep::Explore { offered: d.offered, length_s: d.length_s, foreseen_s };
                let rest_s = (d.rest_s - rested_s).max(0.0);
                return Some(self.offer_law(trial, d.offered, d.length_s, rest_s));
            }
            // No trial tells more of the laws that are left: whether the best one's rate holds does.
            asks = best.is_likely && !tried(best.rate_per_s);
        }
        if !asks || trial.law.offered > self.most_offered() {
            return None;
        }
        let (Some(room_s), Some(rest_s)) = (room_s, rest_s) else { return self.foretell(trial, rested_s) };
        trial.law.seconds = room_s.min(trial.law.seconds);
        trial.law.rest_s = rest_s;
        trial.bounded = trial.law.refused > best.rate_per_s && trial.law.refused <= BOUNDED * best.rate_per_s;
        self.questions.law_trials += 1;
        self.questions.laws_tried.push(best.rate_per_s);
        let rest_s = (trial.law.rest_s - rested_s).max(0.0);
        Some(self.offer_law(trial, trial.law.offered, trial.law.seconds, rest_s))
    }

    /// Where there is no time to try whether a rate holds: whether more of it is refused when the law says.
    fn foretell(&mut self, mut trial: LawTrial, rested_s: f64) -> Option<ProbeAction> {
        let rest_s = rested_s.max(self.questions.least_rest_s).max(LEAST_REST_S);
        let left_s = self.left_s() - (rest_s - rested_s) - FORESEEN_S - SHORT_S;
        let within_s = SOON_S.min(left_s / (1.0 + FORESEEN)).max(0.0);
        let (offered, said_s) = self.refused_soon(&trial.law.fit, rest_s, within_s, self.most_offered())?;
        let length_s = length_of(said_s);
        self.questions.law_trials += 1;
        trial.law.rest_s = rest_s;
        trial.step = LawStep::Explore { offered, length_s, foreseen_s: Some(said_s) };
        Some(self.offer_law(trial, offered, length_s, rest_s - rested_s))
    }

    fn by_law_of(&self, found: &LawContest, fit: LawFit, refused: Option<f64>) -> ByLaw {
        let whole = found.fits.iter().find(|f| f.law == fit.law);
        let sure = found.winner().is_some_and(|w| w.law == fit.law);
        let next = found.fits.iter().find(|f| f.law != fit.law);
        ByLaw {
            // With its bounds, where it is the best of its law.
            fit: whole.filter(|f| f.rate_per_s == fit.rate_per_s).copied().unwrap_or(fit),
            // Not sure of it: only one that has not lost is named.
            next: next.filter(|f| sure || f.ahead > -laws::WON).map(|f| (f.law, f.ahead.abs())),
            sure,
            agreed: share_near(found, fit.rate_per_s) >= AGREES,
            n_eff: found.n_eff,
            offered: SURELY * fit.rate_per_s,
            seconds: self.holds_s(),
            refused: refused.unwrap_or(f64::INFINITY),
            foreseen: false,
            rest_s: 0.0,
        }
    }

    /// The shortest rest after which next to no law that comes to as much foresees a refusal of what is offered, and a little more of it;
    /// seconds.
    fn rest_before(&self, likely: &[LawHypothesis], offered: f64) -> Option<f64> {
        let asked: Vec<&LawHypothesis> = likely
            .iter()
            .filter(|h| SURELY * h.fit.rate_per_s >= (1.0 - TRIED) * offered)
            .take(MOST_FORESEEN)
            .collect();
        let laws: Vec<LawFit> = asked.iter().map(|h| h.fit).collect();
        let all: f64 = asked.iter().map(|h| h.weight).sum();
        // How long it has to be calm, or without an attempt, shows no record before it was.
        let calms = |f: &LawFit| matches!(f.law, RivalLaw::UntilCalm | RivalLaw::Slower);
        let least_s = if laws.iter().any(calms) { CALM_S } else { LEAST_REST_S };
        let states = LawFit::states(&laws, &self.record);
        let refused = |rest_s: f64, s: &LawState| {
            s.first_refusal_s(rest_s, (1.0 - TRIED) * offered, self.holds_s()).is_some()
        };
        let enough = |rest_s: &f64| {
            let against = states.iter().zip(&asked).filter(|(s, _)| refused(*rest_s, s));
            against.map(|(_, h)| h.weight).sum::<f64>() <= (1.0 - AGREES) * all
        };
        RESTS_S.into_iter().find(enough).map(|s| (MORE_REST * s + 1.0).max(least_s))
    }

    /// More is not to be had of the storage, whatever the limiter does.
    pub(super) fn most_offered(&self) -> f64 {
        match self.record.most_per_s() {
            most if most > 0.0 => STORAGE * most,
            _ => f64::INFINITY,
        }
    }

    fn offer_law(&mut self, trial: LawTrial, offered: f64, length_s: f64, rest_s: f64) -> ProbeAction {
        self.try_it(Trial {
            question: Question::Law(trial),
            size_bytes: self.options.small_bytes,
            concurrency: self.open_concurrency(),
            offered_per_s: Some(offered),
            length_s,
            rest_s,
            // What was foreseen was so of a load that follows the last one.
            again: if matches!(trial.step, LawStep::Above { .. }) { 0 } else { AGAIN },
            seen: Plateau::default(),
        })
    }

    /// After its rate held: the least that the law says is refused soon, and when.
    fn above(&self, law: &ByLaw) -> Option<(f64, f64)> {
        let left_s = SOON_S.min(self.left_s() - FORESEEN_S - SHORT_S);
        self.refused_soon(&law.fit, 0.0, left_s.max(0.0) / (1.0 + FORESEEN), f64::INFINITY)
    }

    /// The least that is enough more than a law's rate to be refused within so long after a rest, ops per second, and when; of no more than
    /// can be offered.
    fn refused_soon(&self, fit: &LawFit, rest_s: f64, within_s: f64, most_per_s: f64) -> Option<(f64, f64)> {
        let state = fit.state(&self.record);
        let mut offers = MORE.into_iter().map(|more| more * fit.rate_per_s).filter(|o| *o <= most_per_s);
        offers.find_map(|offered| Some((offered, state.first_refusal_s(rest_s, offered, within_s)?)))
    }

    pub(super) fn law_next(&mut self, l: LawTrial, t: Trial) -> ProbeAction {
        let dt = self.options.dt_s;
        let held = Some((l.law.offered, l.law.seconds));
        let (ok, tail) = t.tail(dt);
        let refused = t.refused_from(0.0, dt).max(tail) >= cause::REFUSED;
        // What was refused from its begin was refused for what went before.
        let shut = t.begins_shut(dt) && l.rest_s() > 0.0;
        let of_it = |offered: f64| (refused && !shut).then_some(offered);
        if shut {
            self.questions.least_rest_s = (LONGER * l.rest_s()).min(LONGEST_REST_S);
            self.questions.was_shut_after(l.rest_s());
        }
        match l.step {
            LawStep::Above { offered, foreseen_s } => {
                let at_s = t.first_refusal(dt).map(|(s, _)| s);
                let as_said = |s: f64| is_as_said(s, foreseen_s);
                // Where it was not foreseen so, the laws are held against what was seen once more, and come to another rate.
                let refused = if at_s.is_some() { offered } else { l.law.refused };
                if refused.is_finite() {
                    let foreseen = at_s.is_some_and(as_said);
                    self.law_held(l, ByLaw { refused, foreseen, ..l.law }, t)
                } else {
                    self.law_failed(l, held, None, t)
                }
            }
            LawStep::Explore { offered, length_s, foreseen_s } => {
                self.was_foretold(&l.law.fit, foreseen_s, t.first_refusal(dt).map(|(s, _)| s));
                let passed = (!refused && ok >= hold::SHORT_OF * offered).then_some((offered, length_s));
                self.law_failed(l, passed, of_it(offered), t)
            }
            LawStep::Watch { offered, foreseen_s } => {
                let passed_s = t.first_passing_s(dt, offered);
                self.was_foretold(&l.law.fit, foreseen_s, passed_s);
                self.law_failed(l, None, None, t)
            }
            LawStep::Holds if refused || ok < hold::SHORT_OF * l.law.offered => {
                self.law_failed(l, None, of_it(l.law.offered), t)
            }
            LawStep::Holds if l.bounded => self.law_held(l, l.law, t),
            LawStep::Holds => match self.above(&l.law) {
                Some((offered, foreseen_s)) => {
                    let length_s = length_of(foreseen_s);
                    self.offer_law(
                        LawTrial { step: LawStep::Above { offered, foreseen_s }, ..l },
                        offered,
                        length_s,
                        0.0,
                    )
                }
                // What was refused before is the bound.
                _ if l.law.refused.is_finite() => self.law_held(l, l.law, t),
                _ => self.law_failed(l, held, None, t),
            },
        }
    }

    /// Whether a trial went as the likeliest law had said.
    fn was_foretold(&mut self, fit: &LawFit, foreseen_s: Option<f64>, refused_s: Option<f64>) {
        let as_said = match (foreseen_s, refused_s) {
            (Some(said), Some(s)) => is_as_said(s, said),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        self.questions.foretold = as_said.then_some((fit.law, fit.rate_per_s));
    }

    /// Where there was no time to try whether a rate holds: a law that explains all that was seen, that no other contests the rate of, and
    /// that has foretold what was tried.
    pub(super) fn foretold_law(&self) -> Option<ByLaw> {
        let found = self.questions.contest.as_ref()?;
        let (law, rate) = self.questions.foretold?;
        let fit = *found.fits.first()?;
        let same = fit.law == law && (fit.rate_per_s / rate - 1.0).abs() < NEAR;
        let told = same && fit.is_close && found.ahead_of_none >= laws::WON;
        let of = self.by_law_of(found, fit, self.questions.least_refused);
        let refused = if of.refused > fit.rate_per_s { of.refused } else { f64::INFINITY };
        (told && of.agreed).then_some(ByLaw { seconds: 0.0, refused, ..of })
    }

    /// What goes on after a trial that was no answer. `held`: what passed, for so long.
    fn law_failed(
        &mut self,
        l: LawTrial,
        held: Option<(f64, f64)>,
        refused_at: Option<f64>,
        t: Trial,
    ) -> ProbeAction {
        if let Some(offered) = refused_at {
            self.questions.was_refused(offered);
        }
        let before = match l.then {
            Interrupted::Hold(h) => h.refused(),
            Interrupted::Bisect(b) => b.refused(),
            Interrupted::Less { offered } => Some(offered),
        };
        let refused = self.questions.least_refused.into_iter().chain(before).reduce(f64::min);
        if let Some(action) = self.try_law(l.then, refused) {
            return action;
        }
        // Where what was refused lies far above what held, a search brings them nearer.
        let searches = !matches!(l.then, Interrupted::Less { .. }) && self.left_s() >= SEARCH_S;
        let near = |law: &ByLaw| law.refused <= NEAR_ENOUGH * law.offered;
        let told = self.questions.law_held.is_some_and(|law| near(&law) || self.law_after_all(law).is_some());
        if let Some(action) = (told || !searches).then(|| self.tell_what_held()).flatten() {
            return action;
        }
        let of_law = self.questions.law_held.map(|law| (law.offered, law.seconds));
        let held = held.into_iter().chain(of_law).max_by(|a, b| a.0.total_cmp(&b.0));
        match l.then {
            Interrupted::Hold(h) => self.hold_on(h, held, refused_at),
            Interrupted::Bisect(b) => self.bisect_on(b, held, refused_at, t),
            Interrupted::Less { offered } => {
                let pushed = self.outcome().ops.passed_per_s();
                let more = held.filter(|(rate, _)| *rate > pushed).map(|(value, seconds)| {
                    let high = refused_at.unwrap_or(offered.max(value));
                    let rate = Estimate { value, low: HELD_AT_LEAST * value, high, n_eff: 1.0 };
                    HeldBack::More { rate, pushed, seconds, calm_s: Some(l.law.rest_s) }
                });
                self.held(Some(more.unwrap_or(HeldBack::Less { offered })))
            }
        }
    }

    /// The rate that held, with the law that explains it; or whatever the law.
    pub(super) fn tell_what_held(&mut self) -> Option<ProbeAction> {
        let law = self.questions.law_held?;
        let refused = self.questions.least_refused.filter(|r| *r > law.offered).unwrap_or(f64::INFINITY);
        let law = ByLaw { refused: law.refused.min(refused), ..law };
        if let Some(law) = self.law_after_all(law) {
            return Some(self.law_holds(law));
        }
        let pushed = self.outcome().ops.passed_per_s();
        if !law.refused.is_finite() || !hold::outlasts(law.offered, law.seconds, pushed, law.rest_s) {
            return None;
        }
        let low = HELD_AT_LEAST * law.offered;
        let rate = Estimate { value: law.offered, low, high: law.refused, n_eff: 1.0 };
        let (seconds, calm_s) = (law.seconds, Some(law.rest_s));
        // It held by itself, however what passes beside refusals moves.
        let answers = &mut self.questions.answers;
        match pushed < LITTLE * law.offered {
            true => (answers.penalty, answers.free_s) = (Some(Penalty::CostsTokens(rate)), Some(seconds)),
            false => answers.held_back = Some(HeldBack::More { rate, pushed, seconds, calm_s }),
        }
        self.questions.hold = HoldState::Asked;
        Some(self.choose())
    }

    /// Its rate held. Where another law may be it that comes to more, that is tried, too.
    fn law_held(&mut self, l: LawTrial, law: ByLaw, t: Trial) -> ProbeAction {
        self.questions.law_held = Some(law);
        self.law_failed(l, Some((law.offered, law.seconds)), Some(law.refused).filter(|r| r.is_finite()), t)
    }

    fn law_holds(&mut self, law: ByLaw) -> ProbeAction {
        self.law_is(law);
        (self.questions.hold, self.questions.penalty_asked) = (HoldState::Asked, true);
        self.choose()
    }

    pub(super) fn law_is(&mut self, law: ByLaw) {
        let little = self.outcome().ops.passed_per_s() < LITTLE * law.fit.rate_per_s;
        let counts = matches!(law.fit.law, RivalLaw::CountsRefused | RivalLaw::TakesFirst);
        let answers = &mut self.questions.answers;
        answers.by_law = Some(law);
        answers.held_back = None;
        if law.fit.law.punishes() {
            answers.penalty = None;
        }
        if counts && little {
            let free_s = Some(law.seconds).filter(|s| *s > 0.0);
            (answers.penalty, answers.free_s) = (Some(Penalty::CostsTokens(law.rate())), free_s);
        }
    }

    /// The law that explains best all that was seen by now, with a rate of which what held is surely less.
    fn law_after_all(&self, law: ByLaw) -> Option<ByLaw> {
        let found =
            self.questions.contest.as_ref().filter(|c| c.ahead_of_none >= laws::WON || law.foreseen)?;
        let fits = |f: &LawFit| {
            let share = law.offered / f.rate_per_s;
            (f.is_close || f.is_likely && law.foreseen)
                && (SURELY / SETTLED..=AS_MUCH).contains(&share)
                && f.rate_per_s < law.refused
        };
        let fit = found.hypotheses.iter().filter(|h| !h.is_bound).map(|h| h.fit).find(fits)?;
        let of = self.by_law_of(found, fit, Some(law.refused).filter(|r| r.is_finite()));
        let ByLaw { offered, seconds, rest_s, foreseen, .. } = law;
        Some(ByLaw { offered, seconds, rest_s, foreseen, ..of })
    }
}
