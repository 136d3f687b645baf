//! Fits each law to a record, and says which of them it carries.

use super::errors::{LawCandidate, LawErrors, steps_of};
use super::guess::Guess;
use super::replay::{Limiter, Parameters};
use super::search::{REPLAYS, fitted, searched};
use super::{LoadRecord, RIVALS, RivalLaw};

/// A law that is better by so much (natural logarithm of odds) has won (a choice: odds of twenty to one, "strong" evidence, Kass and
/// Raftery 1995; a law with one parameter more that explains no more is behind by less).
pub const WON: f64 = 3.0;
/// Half of the change of twice the likelihood that bounds 95 % of one parameter (Wilks 1938).
const WITHIN: f64 = 1.92;
/// Errors up to so many times the least that any law makes, or to this share of its rate, are no reason against it (validated: limiters of
/// products, simulated).
const CLOSE: f64 = 1.5;
const CLOSE_SHARE: f64 = 0.05;
/// Up to so many times that, it is worth a trial whether its rate holds.
const LIKELY: f64 = 2.5;
/// Seconds with refusals without which nothing is told.
const LEAST_BINS: usize = 8;
/// Slices of a record that laws are held against (a choice: 40 minutes of load, and 5 seconds of replaying it).
const MOST_SLICES: usize = 12_000;
/// Rates further apart than this are different hypotheses: what is to be known is a rate within 3 %.
const RATE_APART: f64 = 0.025;
/// What is further behind, as the logarithm of odds, is no hypothesis any more.
const BEHIND: f64 = 6.0;
/// Laws, each with the periods or times that may be its own, of which it is asked how well their rate is known: the best ones.
const BOUNDED: usize = 10;

/// A law with what fits best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LawFit {
    /// Which.
    pub law: RivalLaw,
    /// Ops per second that pass for ever when nobody insists; and the bounds within which that is known.
    pub rate_per_s: f64,
    /// See `rate_per_s`.
    pub rate_bounds: (f64, f64),
    /// Seconds for which all is refused, or until it is calm; absent: it is not of this law.
    pub shut_s: Option<f64>,
    /// From the begin of one period to that of the next, seconds; absent: it is not of this law.
    pub period_s: Option<f64>,
    /// Ops that it lets pass wrongly, or refuses wrongly, each second, on average.
    pub error_ops: f64,
    /// Logarithm of the odds against the best of the others, the null hypothesis among them: negative, another is better.
    pub ahead: f64,
    /// Whether its errors are hardly more than what ops in flight and edges of slices make.
    pub is_close: bool,
    /// Whether they are not much more than that.
    pub is_likely: bool,
    p: Parameters,
}

/// A count over a period has forgotten after so many of them (and a little more, for its begin); a quota of a clock's period may be given twice
/// within one.
const REMEMBERS: f64 = 1.2;

impl LawFit {
    /// What passes for longer than this does not pass because less was asked for before, seconds; 0: no period is of this law.
    pub fn memory_s(&self) -> f64 {
        let periods = match self.law {
            RivalLaw::Calendar | RivalLaw::CalendarBan => 2.0,
            RivalLaw::Bucket
            | RivalLaw::Ban
            | RivalLaw::CountsRefused
            | RivalLaw::UntilCalm
            | RivalLaw::CountsPassed
            | RivalLaw::CountsAtLooks
            | RivalLaw::TakesFirst
            | RivalLaw::Slower => REMEMBERS,
        };
        self.period_s.map_or(0.0, |s| periods * s)
    }

    /// How it stands at the record's end.
    pub fn state(&self, record: &LoadRecord) -> LawState {
        Self::states([self], record)[0]
    }

    /// The same of several, each at its place.
    pub fn states<'l>(laws: impl IntoIterator<Item = &'l Self>, record: &LoadRecord) -> Vec<LawState> {
        let (steps, _) = steps_of(record);
        let state = |l: &Self| LawState { limiter: l.law.after(&l.p, &steps), now_s: record.end_s() };
        laws.into_iter().map(state).collect()
    }
}

/// What a law foresees from some time on.
#[derive(Debug, Clone, Copy)]
pub struct LawState {
    limiter: Limiter,
    now_s: f64,
}

impl LawState {
    /// When the first op would be refused, seconds, of a load of so many ops per second that begins so long after the record ends, with
    /// at most so many seconds of it. `None`: not within them.
    pub fn first_refusal_s(&self, rest_s: f64, per_s: f64, most_s: f64) -> Option<f64> {
        self.limiter.first_refusal_s(self.now_s, rest_s, per_s, most_s)
    }

    /// When most of such a load would pass first.
    pub fn first_passing_s(&self, rest_s: f64, per_s: f64, most_s: f64) -> Option<f64> {
        self.limiter.first_passing_s(self.now_s, rest_s, per_s, most_s)
    }
}

/// A law with figures that may be it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LawHypothesis {
    /// What it comes to.
    pub fit: LawFit,
    /// Its share of the likelihood of all.
    pub weight: f64,
    /// With another rate than the one that explains best: the lowest or the highest that the record bears.
    pub is_bound: bool,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct LawContest {
    /// The best of each law, the best first.
    pub fits: Vec<LawFit>,
    /// Those that may be it, of each law with each period, or time, that people choose.
    pub hypotheses: Vec<LawHypothesis>,
    /// Independent seconds that decided.
    pub n_eff: f64,
    /// Logarithm of the odds of the best against that each load had a rate of its own.
    pub ahead_of_none: f64,
}

impl LawContest {
    /// The law that the record carries: the others have lost.
    pub fn winner(&self) -> Option<&LawFit> {
        self.fits.first().filter(|f| f.ahead >= WON)
    }

    /// The laws that have not lost, the best first: one, where there is a winner; none, where no law is better than none.
    pub fn standing(&self) -> &[LawFit] {
        let better = self.ahead_of_none >= 0.0;
        let n = if better { self.fits.iter().take_while(|f| f.ahead > -WON).count() } else { 0 };
        &self.fits[..n]
    }
}

impl LawCandidate {
    fn fit(&self, rate_bounds: (f64, f64), ahead: f64, floor: f64) -> LawFit {
        let [rate, second, third, fourth] = self.p;
        let period_s = self.law.has_phase().then_some(second);
        let shut_s = match self.law {
            RivalLaw::Ban => Some(third),
            RivalLaw::CalendarBan | RivalLaw::UntilCalm | RivalLaw::Slower => Some(fourth),
            RivalLaw::Bucket
            | RivalLaw::Calendar
            | RivalLaw::CountsRefused
            | RivalLaw::CountsPassed
            | RivalLaw::CountsAtLooks
            | RivalLaw::TakesFirst => None,
        };
        LawFit {
            law: self.law,
            rate_per_s: rate,
            rate_bounds,
            shut_s,
            period_s,
            error_ops: self.error,
            ahead,
            is_close: self.error <= (CLOSE * floor).max(CLOSE_SHARE * rate),
            is_likely: self.error <= LIKELY * (CLOSE * floor).max(CLOSE_SHARE * rate),
            p: self.p,
        }
    }
}

fn ln_likelihood(error: f64, floor: f64, n: f64) -> f64 {
    -n * error.max(floor).ln()
}

/// Holds the laws that a probe of so many seconds can tell against the record; `None`: too little was refused to tell any.
pub fn contest(record: &LoadRecord, budget_s: f64) -> Option<LawContest> {
    // Each replay goes through all of it: hours of load would be replayed for minutes.
    if record.slices().len() > MOST_SLICES {
        return None;
    }
    let judge = LawErrors::of(record);
    if judge.refusing < LEAST_BINS {
        return None;
    }
    let guess = Guess::of(record);
    let laws = RIVALS.iter().filter(|l| l.takes_s() <= budget_s);
    let mut all: Vec<LawCandidate> = laws.flat_map(|law| fitted(&judge, *law, &guess)).collect();
    all.sort_by(|a, b| a.error.total_cmp(&b.error));
    let n = judge.independent(&all[0]);
    let floor = judge.floor;
    let score = |error: f64, k: usize| ln_likelihood(error, floor, n) - 0.5 * k as f64 * n.ln();
    let (null_error, null_k) = judge.null();
    let null = score(null_error, null_k);
    let mut scored: Vec<(f64, LawCandidate)> =
        all.iter().map(|c| (score(c.error, c.law.parameters()), *c)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    // The best of each law.
    let mut laws: Vec<(f64, LawCandidate)> = Vec::new();
    for s in &scored {
        if laws.iter().all(|l| l.1.law != s.1.law) {
            laws.push(*s);
        }
    }
    let best_other = |i: usize| {
        let others = laws.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, s)| s.0);
        others.fold(null, f64::max)
    };
    let ahead: Vec<f64> = (0..laws.len()).map(|i| laws[i].0 - best_other(i)).collect();
    let ahead_of_none = laws[0].0 - null;
    // How well a rate is known matters of those that may be it.
    let may_be = scored.iter().filter(|s| s.0 > scored[0].0 - BEHIND).take(BOUNDED);
    let ridges: Vec<(LawCandidate, [Ridge; 2])> =
        may_be.map(|(_, c)| (*c, [-1.0, 1.0].map(|sign| ridge(&judge, c, n, sign)))).collect();
    let fits = laws.iter().zip(ahead).map(|((_, c), ahead)| {
        let sides = ridges.iter().find(|(of, _)| of.law == c.law && of.p == c.p).map(|r| &r.1);
        let [low, high] = sides.map_or([None, None], |sides| [sides[0].bound, sides[1].bound]);
        c.fit((low.unwrap_or(0.0), high.unwrap_or(f64::INFINITY)), ahead, floor)
    });
    let fits = fits.collect();
    let on = ridges.iter().flat_map(|(_, sides)| sides).flat_map(|side| &side.on);
    let variants: Vec<(f64, LawCandidate)> = on.map(|v| (score(v.error, v.law.parameters()), *v)).collect();
    let hypotheses = weighed(&scored, &variants, floor);
    Some(LawContest { fits, hypotheses, n_eff: n, ahead_of_none })
}

/// Those that are not much behind the best, with their share of the likelihood.
fn weighed(scored: &[(f64, LawCandidate)], bounds: &[(f64, LawCandidate)], floor: f64) -> Vec<LawHypothesis> {
    let best = scored.first().map_or(0.0, |s| s.0);
    let both = scored.iter().map(|s| (s, false)).chain(bounds.iter().map(|s| (s, true)));
    let near = both.filter(|(s, _)| s.0 > best - BEHIND);
    let sum: f64 = near.clone().map(|(s, _)| (s.0 - best).exp()).sum();
    near.map(|((score, c), is_bound)| LawHypothesis {
        fit: c.fit((0.0, f64::INFINITY), score - best, floor),
        weight: (score - best).exp() / sum,
        is_bound,
    })
    .collect()
}

/// A law with lower rates than its best, or with higher ones, and the other parameters as suits them.
struct Ridge {
    /// Rates that explain the record hardly worse, [`RIDGE_APART`] from each other: one that is not known well is several.
    on: Vec<LawCandidate>,
    /// The one that explains it so much worse that it bounds them; absent: none within [`RIDGE_END`].
    bound: Option<f64>,
}

/// As a share, to begin with, and how much further each time; as logarithms, how far.
const RIDGE_STEP: f64 = 0.01;
const RIDGE_FURTHER: f64 = 1.6;
const RIDGE_END: f64 = 1.2;
const RIDGE_APART: f64 = 0.1;

fn ridge(judge: &LawErrors<'_>, best: &LawCandidate, n: f64, sign: f64) -> Ridge {
    let floor = judge.floor;
    let at = ln_likelihood(best.error, floor, n);
    let mut out = Ridge { on: Vec::new(), bound: None };
    let (mut from, mut away, mut last) = (*best, RIDGE_STEP, RATE_APART - RIDGE_APART);
    while away < RIDGE_END && out.bound.is_none() {
        from.p[0] = best.p[0] * (sign * away).exp();
        from = searched(judge, from, 1, REPLAYS / 4);
        if at - ln_likelihood(from.error, floor, n) > WITHIN {
            out.bound = Some(from.p[0]);
        }
        if away >= last + RIDGE_APART || out.bound.is_some() && away >= RATE_APART {
            out.on.push(from);
            last = away;
        }
        away *= RIDGE_FURTHER;
    }
    out
}
