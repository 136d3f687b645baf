//! What the laws say ([`crate::laws`]), offered: where one of them explains all that was refused so far, its rate is known, and what
//! remains is whether it holds. That takes one trial, where a search takes one for each halving.

use plimsoll_model::Estimate;

use super::bisect::Bisection;
use super::drain::Plateau;
use super::hold::{self, HELD_AT_LEAST, HoldSearch, HoldState};
use super::questions::{AGAIN, Penalty, Question, Trial};
use super::{HeldBack, Probe, ProbeAction, Resource, cause};
use crate::laws::{self, LawFit, RivalLaw};

/// A law that won, and its rate, which held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ByLaw {
    /// The law.
    pub fit: LawFit,
    /// The one that came next, and how far it is behind, as the logarithm of odds.
    pub next: Option<(RivalLaw, f64)>,
    /// The other laws have lost; if not, they come to the same rate.
    pub sure: bool,
    /// Independent seconds that decided.
    pub n_eff: f64,
    /// Ops per second that were offered, of which none were refused.
    pub offered: f64,
    /// For so long, seconds.
    pub seconds: f64,
    /// Ops per second that were offered, and refused.
    pub refused: f64,
    /// Without load before it, at the least, seconds.
    pub rest_s: f64,
}

impl ByLaw {
    /// The rate: what is sure of it is what held and what was refused. By the law alone it is known better, which is another claim.
    pub fn rate(&self) -> Estimate {
        let value = self.fit.rate_per_s;
        // A refusal that was foreseen, of more than that, bounds it as well.
        let high = self.refused.min(BOUNDED * value);
        Estimate { value, low: HELD_AT_LEAST * self.offered, high, n_eff: 1.0 }
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

/// The trial: the rate for long, and then more of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LawTrial {
    law: ByLaw,
    then: Interrupted,
    /// Not much more than the rate was refused before.
    bounded: bool,
    above: Option<Above>,
}

/// More than the rate: the law says when that is refused.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Above {
    offered: f64,
    foreseen_s: f64,
}

/// So much of the law's rate is offered, surely less than it.
const SURELY: f64 = 0.98;
/// A rate whose bounds are further apart is not known well enough to be offered (a choice: a trial costs as much as a halving).
const KNOWN: f64 = 1.15;
/// A rate that failed is not offered again, nor is one so near to it.
const NEAR: f64 = 0.02;
/// More of it, so that tokens last for as short a time as it takes; the first that is refused soon enough.
const MORE: [f64; 3] = [1.29, 1.6, 2.0];
const SOON_S: f64 = 40.0;
/// A refusal of no more than so many times the rate bounds it; without one, a refusal is foreseen.
const BOUNDED: f64 = 1.3;
/// A refusal that comes so much sooner or later than was foreseen (as a share, and in seconds) was not foreseen.
const FORESEEN: f64 = 0.3;
const FORESEEN_S: f64 = 2.0;
/// Rates nearer than this to one that was tried tell little; and no law is followed further than to this share of what was refused.
const APART: f64 = 1.05;
const FURTHEST: f64 = 0.1;
/// No law that lowers the rate until it is calm shows for how long that is, before it was.
const CALM_S: f64 = 20.0;
/// A trial goes on for so long after a refusal was foreseen, seconds.
const SHORT_S: f64 = 3.0;
/// Rests are longer than what is forgotten in, seconds; and no longer than this.
const MORE_REST: f64 = 1.15;
const LONGEST_REST_S: f64 = 90.0;
/// Laws that are tried, one after the other.
const MOST_TRIES: usize = 3;
/// Less than this share of the rate is almost nothing.
const LITTLE: f64 = 0.1;

impl LawTrial {
    pub fn phase(&self) -> String {
        let law = self.law.fit.law.words();
        let n = |x: f64| crate::words::about(x, 3);
        match self.above {
            None => format!("{law}: do {} op/s hold without refusals?", n(self.law.offered)),
            Some(a) => format!("{law}: are {} op/s refused when it says so?", n(a.offered)),
        }
    }

    pub fn rest_s(&self) -> f64 {
        let least_s = if self.law.fit.law.punishes() { CALM_S } else { 1.0 };
        match self.above {
            None => (MORE_REST * self.law.fit.forgets_s + 1.0).max(least_s),
            Some(_) => 0.0,
        }
    }
}

impl Probe {
    /// The trial, where the record carries a law and its rate was not tried yet. `refused`: the least rate that was, so far.
    pub(super) fn try_law(&mut self, then: Interrupted, refused: Option<f64>) -> Option<ProbeAction> {
        self.questions.laws = None;
        let found = laws::contest(&self.record)?;
        // Of laws that all may be it, the one with the highest rate: a trial above it tells most.
        let close = found.standing().iter().filter(|f| f.is_close && f.rate_bounds.0 > 0.0);
        self.questions.laws = close.max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s)).copied();
        let fit = *found.rate_within(KNOWN)?;
        let tried = |rate: &f64| (rate / fit.rate_per_s - 1.0).abs() < NEAR;
        let tries = &self.questions.laws_tried;
        if !fit.is_close || tries.len() >= MOST_TRIES || tries.iter().any(tried) {
            return None;
        }
        let law = ByLaw {
            fit,
            // Not sure of it: only one that has not lost is named.
            next: found
                .fits
                .get(1)
                .filter(|f| found.winner().is_some() || f.ahead > -laws::WON)
                .map(|f| (f.law, -f.ahead)),
            sure: found.winner().is_some(),
            n_eff: found.n_eff,
            offered: SURELY * fit.rate_per_s,
            seconds: hold::HOLDS_S,
            refused: refused.unwrap_or(f64::INFINITY),
            rest_s: 0.0,
        };
        let bounded = law.refused > fit.rate_per_s && law.refused <= BOUNDED * fit.rate_per_s;
        let mut trial = LawTrial { law, then, bounded, above: None };
        trial.law.rest_s = trial.rest_s();
        let idle_s = self.now_s - self.tracks[Resource::Ops as usize].last_end_s;
        let rest_s = (trial.rest_s() - idle_s).max(0.0);
        let above_s = if bounded { 0.0 } else { FORESEEN_S + SHORT_S };
        if trial.rest_s() > LONGEST_REST_S || rest_s + law.seconds + above_s + 1.0 > self.left_s() {
            return None;
        }
        self.questions.laws_tried.push(fit.rate_per_s);
        Some(self.offer_law(trial, law.offered, law.seconds, rest_s))
    }

    /// What to offer next in a search for the highest rate without refusals, as the best law has it so far: not much more than its rate,
    /// after a rest in which it forgets, for as long as it takes until more is refused. That tells most of the rate. Rest, rate, length.
    pub(super) fn by_laws(&self, b: &Bisection, longest_s: f64) -> Option<(f64, f64, f64)> {
        let fit = self.questions.laws?;
        let rest_s = (b.rests() * (MORE_REST * fit.forgets_s + 1.0)).clamp(CALM_S, longest_s);
        let (low, high) = (b.passed(), b.refused().unwrap_or(f64::INFINITY));
        MORE.into_iter().find_map(|more| {
            let offered = more * fit.rate_per_s;
            let foreseen_s = fit.first_refusal_s(&self.record, rest_s, offered, longest_s)?;
            let least = if high.is_finite() { low.max(FURTHEST * high) } else { low };
            let passed = |p: &f64| (p / offered).max(offered / p) < APART;
            let apart = offered > APART * least && APART * offered < high;
            let apart = apart && !self.questions.short_passes.iter().any(passed);
            apart.then(|| (rest_s, offered, ((1.0 + FORESEEN) * foreseen_s + SHORT_S).min(longest_s)))
        })
    }

    fn offer_law(&mut self, trial: LawTrial, offered: f64, length_s: f64, rest_s: f64) -> ProbeAction {
        self.try_it(Trial {
            question: Question::Law(trial),
            size_bytes: self.options.small_bytes,
            concurrency: self.concurrency_of(Resource::Ops),
            offered_per_s: Some(offered),
            length_s,
            rest_s,
            // What was foreseen was so of a load that follows the last one.
            again: if trial.above.is_some() { 0 } else { AGAIN },
            seen: Plateau::default(),
        })
    }

    /// After its rate held: the least that the law says is refused soon.
    fn above(&self, law: &ByLaw) -> Option<Above> {
        let left_s = SOON_S.min(self.left_s() - FORESEEN_S - SHORT_S);
        MORE.into_iter().find_map(|more| {
            let offered = more * law.fit.rate_per_s;
            let foreseen_s =
                law.fit.first_refusal_s(&self.record, 0.0, offered, left_s.max(0.0) / (1.0 + FORESEEN))?;
            Some(Above { offered, foreseen_s })
        })
    }

    pub(super) fn law_next(&mut self, l: LawTrial, t: Trial) -> ProbeAction {
        let dt = self.options.dt_s;
        let held = Some((l.law.offered, l.law.seconds));
        if let Some(a) = l.above {
            let at_s = t.first_refusal(dt).map(|(s, _)| s);
            let foreseen =
                at_s.is_some_and(|s| (s - a.foreseen_s).abs() <= (FORESEEN * a.foreseen_s).max(FORESEEN_S));
            return if foreseen {
                self.law_holds(ByLaw { refused: a.offered, ..l.law })
            } else {
                self.law_failed(l, held, at_s.map(|_| a.offered), t)
            };
        }
        let (ok, tail) = t.tail(dt);
        let refused = t.refused_from(0.0, dt).max(tail) >= cause::REFUSED;
        if refused || ok < hold::SHORT_OF * l.law.offered {
            return self.law_failed(l, None, refused.then_some(l.law.offered), t);
        }
        match self.above(&l.law) {
            _ if l.bounded => self.law_holds(l.law),
            Some(a) => {
                let length_s = (1.0 + FORESEEN) * a.foreseen_s + FORESEEN_S + SHORT_S;
                self.offer_law(LawTrial { above: Some(a), ..l }, a.offered, length_s, 0.0)
            }
            None => self.law_failed(l, held, None, t),
        }
    }

    /// `held`: its rate did, for so long, and more was not refused as foreseen.
    fn law_failed(
        &mut self,
        l: LawTrial,
        held: Option<(f64, f64)>,
        refused_at: Option<f64>,
        t: Trial,
    ) -> ProbeAction {
        // The rate of another law may be asked for, now that this is known, too.
        let before = match l.then {
            Interrupted::Hold(h) => h.refused(),
            Interrupted::Bisect(b) => b.refused(),
            Interrupted::Less { offered } => Some(offered),
        };
        let refused = refused_at.into_iter().chain(before).reduce(f64::min);
        if let Some(action) = self.try_law(l.then, refused) {
            return action;
        }
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

    fn law_holds(&mut self, law: ByLaw) -> ProbeAction {
        let little = self.outcome().ops.passed_per_s() < LITTLE * law.fit.rate_per_s;
        let counts = matches!(law.fit.law, RivalLaw::CountsRefused | RivalLaw::TakesFirst);
        let answers = &mut self.questions.answers;
        answers.by_law = Some(law);
        answers.held_back = None;
        if law.fit.law.punishes() {
            answers.penalty = None;
        }
        if counts && little {
            (answers.penalty, answers.free_s) = (Some(Penalty::CostsTokens(law.rate())), Some(law.seconds));
        }
        (self.questions.hold, self.questions.penalty_asked) = (HoldState::Asked, true);
        self.choose()
    }
}
