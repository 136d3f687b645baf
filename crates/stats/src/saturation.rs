//! (f) The search for the concurrency beyond which throughput no longer grows, as a pure controller.
//!
//! A ladder of doublings ends after two steps that do not beat the best by 3 % (or at the latency ceiling, at errors, or when the
//! client is saturated: then the search is limited by the client, and says so). The plateau is the geometric mean of the best
//! points within 5 % of each other, not the lucky maximum; `c95` is the least concurrency that reaches 95 % of it. It is confirmed by
//! repeats of half, itself and double in random order. The first rung is measured again last: if it differs, the storage changed
//! during the search, and no concurrency follows from it.
//!
//! With a budget, steps are as long as it allows, it is never overrun by a step that can be foreseen, and what is left of it
//! after the usual repeats goes into more of them, until it is clear that fewer in flight fall short.
//!
//! A step is some times as long as its ops take, by Little's law from the rungs before it: else what it counts is where it began and
//! ended. One in which no op ended says nothing of the storage, and is made again, longer.
//!
//! A rung at which a limiter refuses attempts is none to recommend, and what it gives is no part of the plateau: two of them above one
//! without refusals end the ladder.

mod conclude;
mod lengths;
mod refused;

pub use crate::throttle::REFUSED;
use plimsoll_model::Estimate;

use crate::math;
use crate::rng::Rng;
use crate::student;

/// What a search may use, and where it begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SaturationOptions {
    /// Ops in flight of the first rung.
    pub start: u32,
    /// Most ops in flight.
    pub max: u32,
    /// Most of the 99th percentile that counts as reached; absent: no bound.
    pub p99_ceiling_s: Option<f64>,
    /// Load ahead of each measurement, not counted.
    pub ramp_s: f64,
    /// Length of each measurement.
    pub measure_s: f64,
    /// Saturate this long first, so that the search does not follow a bucket that drains.
    pub drain_s: Option<f64>,
    /// The length of steps is the caller's, and stays, however long an op takes.
    pub fixed: bool,
    /// All steps together may take this long, from the search's first step on. `None`: as many as it needs.
    pub budget_s: Option<f64>,
    /// Of the bootstrap.
    pub seed: u64,
}

/// Steps that a search takes, as a rule: a ladder of eight, two repeats of three, the return (simulated: 12 to 18).
const USUAL_STEPS: f64 = 16.0;
/// No shorter step is asked for, seconds: ten slices of the grid and a few more (guess).
pub const LEAST_STEP_S: f64 = 1.5;
const LONGEST_STEP_S: f64 = 33.0;
/// Share of a step that is its ramp, where the budget sets its length (as 3 of 13 s without).
const RAMP_SHARE: f64 = 0.23;
impl SaturationOptions {
    /// With steps as long as the budget allows.
    pub fn within_budget(self) -> Self {
        self.within_budget_beside(0.0)
    }

    /// The same, where each step takes so many seconds beside its load.
    fn within_budget_beside(self, around_s: f64) -> Self {
        let Some(budget_s) = self.budget_s else { return self };
        let left_s = (budget_s - self.drain_s.unwrap_or(0.0)).max(0.0);
        let step_s = (left_s / USUAL_STEPS - around_s).clamp(LEAST_STEP_S, LONGEST_STEP_S);
        Self { ramp_s: RAMP_SHARE * step_s, measure_s: (1.0 - RAMP_SHARE) * step_s, ..self }
    }
}

impl Default for SaturationOptions {
    fn default() -> Self {
        Self {
            start: 4,
            max: 4096,
            p99_ceiling_s: None,
            ramp_s: 3.0,
            measure_s: 10.0,
            drain_s: None,
            fixed: false,
            budget_s: None,
            seed: 0,
        }
    }
}

/// What a measurement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum SaturationPhase {
    /// No measurement: it empties a bucket.
    Drain,
    /// More in flight than before, to see whether the rate still grows.
    Ladder,
    /// A rung near the answer once more.
    Confirm,
    /// The first rung again.
    Return,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SaturationAction {
    /// Make one measurement.
    Measure {
        /// Ops in flight.
        concurrency: u32,
        /// Load ahead, not counted, seconds.
        ramp_s: f64,
        /// What counts, seconds.
        measure_s: f64,
        /// What it is for: for names and tables.
        phase: SaturationPhase,
    },
    /// The outcome is final.
    Done,
}

/// What a measurement showed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SaturationObservation {
    /// Of ops that ended `Ok`.
    pub ops_per_s: f64,
    /// How many those are: the fewer, the less sure their rate. 0: more than need be counted.
    pub ops: u64,
    /// Standard deviation of their time in system over its mean.
    pub latency_cv: f64,
    /// Time in system of these.
    pub mean_latency_s: f64,
    /// Median response; absent: too few ops.
    pub p50_s: Option<f64>,
    /// Response; absent: too few ops.
    pub p99_s: Option<f64>,
    /// Failed, not throttled.
    pub error_rate: f64,
    /// Share of attempts that were answered with 429 or 503.
    pub refused: f64,
    /// Share of the slots' time in which they paused after refusals: whoever backs off is refused rarely.
    pub held_back: f64,
    /// The client was at its limit (V07): more in flight would show nothing of the storage.
    pub client_bound: bool,
    /// No op ended, in whatever way.
    pub none_ended: bool,
}

/// Why a search went no further.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// The plateau was seen.
    Saturated,
    /// So it was, or the largest concurrency, or two rungs in a row, of a limiter that refused attempts: how a load comes back after a
    /// refusal sets such a rate, and not the storage.
    Refused,
    /// The largest concurrency still gained.
    AtMaximum,
    /// The client was what was measured.
    ClientBound,
    /// The 99th percentile went above what was asked for.
    LatencyCeiling,
    /// Too many ops failed.
    Errors,
    /// The budget was used up while the rate still rose.
    Budget,
    /// Nothing came back.
    NoThroughput,
    /// No op ended within a step, and there was no time for one that is long enough.
    TooShort {
        /// Ops in flight of that step.
        concurrency: u32,
        /// Its length, seconds.
        measure_s: f64,
    },
    /// The run ended first, or no step was made at all.
    Unfinished,
}

/// One rung of the curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Ops in flight.
    pub concurrency: u32,
    /// Each measurement of it, in order.
    pub seen: Vec<SaturationObservation>,
}

impl Point {
    fn log_mean(&self) -> f64 {
        math::mean(&self.seen.iter().map(|o| o.ops_per_s.max(1e-12).ln()).collect::<Vec<_>>())
    }

    /// What of the variance of a rate's logarithm counting alone makes: where a window begins and ends among ops that go in step, and
    /// that no op takes just as long as the next (a renewal process).
    fn counting(&self) -> f64 {
        // Two ends, each anywhere in a round of all in flight.
        let ends = f64::from(self.concurrency).powi(2) / 6.0;
        let of = |o: &SaturationObservation| {
            let n = o.ops as f64;
            if o.ops == 0 { 0.0 } else { (n * o.latency_cv.powi(2) + ends) / (n * n) }
        };
        math::mean(&self.seen.iter().map(of).collect::<Vec<_>>()) / self.seen.len().max(1) as f64
    }

    fn latency_s(&self) -> f64 {
        math::mean(&self.seen.iter().map(|o| o.mean_latency_s).collect::<Vec<_>>())
    }

    /// Median over its measurements of what each showed; the greatest of their 99th percentiles.
    pub fn percentiles_s(&self) -> (Option<f64>, Option<f64>) {
        let p50: Vec<f64> = self.seen.iter().filter_map(|o| o.p50_s).collect();
        let p99 = self.seen.iter().filter_map(|o| o.p99_s).reduce(f64::max);
        ((!p50.is_empty()).then(|| math::median(&p50)), p99)
    }
}

/// What a search has found so far.
#[derive(Debug, Clone, PartialEq)]
pub struct SaturationOutcome {
    /// With [`Ended::Budget`] more time would have found more.
    pub ended: Ended,
    /// Recommended: least concurrency with 95 % of the plateau.
    pub c95: Option<u32>,
    /// Rate at `c95`.
    pub rate: Option<Estimate>,
    /// The plateau, ops per second.
    pub plateau: Option<f64>,
    /// The largest concurrency below `c95` that surely (95 %) does not reach its share of the plateau.
    pub surely_short: Option<u32>,
    /// The next lower rung surely falls short: `c95` is not just the luckier of two.
    pub fewer_fall_short: bool,
    /// Mean time in system at `c95`.
    pub latency_s: Option<f64>,
    /// Where rate over latency is greatest (Kleinrock's power): the gentle alternative.
    pub knee: Option<u32>,
    /// By concurrency.
    pub curve: Vec<Point>,
    /// Whether the last rung gave more than the one before it, by what counts as a gain; none with one rung only.
    pub still_rose: Option<bool>,
    /// Rate of each point of the curve. Its interval is of the spread of all repeats: two of one point know little of it.
    pub rates: Vec<Estimate>,
    /// The greatest share of attempts that any rung of the curve had refused.
    pub refused: f64,
    /// The least concurrency from which on all that were tried were refused attempts; none: the largest was not.
    pub refused_from: Option<u32>,
    /// Set when the first rung, measured again, differs by more than 5 %, than repeats differ, and than two counts of so few ops would.
    pub changed: Option<f64>,
}

/// The controller.
#[derive(Debug, Clone)]
pub struct SaturationSearch {
    options: SaturationOptions,
    points: Vec<Point>,
    phase: SaturationPhase,
    asked: Option<u32>,
    queue: Vec<u32>,
    flat: u32,
    best: f64,
    rounds: u32,
    ended: Option<Ended>,
    returned: Vec<SaturationObservation>,
    /// Measurements that were asked for.
    steps: u32,
    /// Time of the search so far, and of each step what its load did not take, on the caller's clock.
    elapsed_s: f64,
    around_s: Vec<f64>,
    /// The length of steps is the caller's.
    fixed: bool,
    /// Ramp and measurement of the step that was asked for last, seconds; the longest together.
    lengths_s: (f64, f64),
    longest_s: f64,
    /// Measurements are at least so long, as one that was too short has shown, seconds.
    least_s: f64,
    rng: Rng,
    done: bool,
}

/// An interval (of a logarithm) wider than a factor of two to each side bounds nothing that a user could want bounded (guess).
const WIDEST_LOG: f64 = std::f64::consts::LN_2;
/// MinIO's autotune stops at 2.5 %; two steps below this end the ladder (validated against that rule).
const GAIN: f64 = 1.03;
const SAME: f64 = 0.05;
const SHARE: f64 = 0.95;
const CONFIRM_ROUNDS: u32 = 3;
/// Student's t of the repeats falls from 12.7 to 3.2 by then.
const ENOUGH_SEEN: usize = 4;

impl SaturationSearch {
    /// The first rung is asked for by the first step.
    pub fn new(options: SaturationOptions) -> Self {
        Self {
            options,
            points: Vec::new(),
            phase: if options.drain_s.is_some() { SaturationPhase::Drain } else { SaturationPhase::Ladder },
            asked: None,
            queue: Vec::new(),
            flat: 0,
            best: 0.0,
            rounds: 0,
            ended: None,
            returned: Vec::new(),
            steps: 0,
            elapsed_s: 0.0,
            around_s: Vec::new(),
            fixed: options.fixed || options != options.within_budget(),
            lengths_s: (0.0, 0.0),
            longest_s: 0.0,
            least_s: 0.0,
            rng: Rng::new(options.seed),
            done: false,
        }
    }

    /// What to do after `last` (nothing, at first).
    pub fn next(&mut self, last: Option<&SaturationObservation>) -> SaturationAction {
        if self.done {
            return SaturationAction::Done;
        }
        if let (Some(c), Some(o)) = (self.asked.take(), last) {
            self.record(c, *o);
        } else if self.phase == SaturationPhase::Drain {
            return self.ask(self.options.start.max(64).min(self.options.max));
        }
        if self.phase == SaturationPhase::Ladder {
            // The first step is looked at again at the end.
            let start = self.options.start.max(1);
            if !self.points.is_empty() && self.climb().is_some_and(|c| !self.has_time_for(&[c, start])) {
                self.ended = Some(Ended::Budget);
            }
            if let Some(c) = self.climb() {
                return self.ask(c);
            }
            self.phase = SaturationPhase::Confirm;
        }
        if self.phase == SaturationPhase::Confirm {
            let most = self.c95().map_or(0, |c| c.saturating_mul(2));
            if self.has_time_for(&[most, self.options.start.max(1)])
                && let Some(c) = self.confirm()
            {
                return self.ask(c);
            }
            // What is left is too short for more in flight, and makes an interval of what was found.
            if let Some(c) = self.c95().filter(|c| self.options.budget_s.is_some() && self.is_seen_rarely(*c))
                && self.has_time_for(&[c, self.options.start.max(1)])
            {
                return self.ask(c);
            }
            self.phase = SaturationPhase::Return;
        }
        let start = self.options.start.max(1);
        if self.returned.is_empty() && self.points.len() > 1 && self.has_time_for(&[start]) {
            return self.ask(start);
        }
        self.done = true;
        SaturationAction::Done
    }

    fn ask(&mut self, concurrency: u32) -> SaturationAction {
        self.asked = Some(concurrency);
        self.steps += 1;
        let (ramp_s, measure_s) = match (self.phase, self.options.drain_s) {
            (SaturationPhase::Drain, Some(s)) => (self.options.ramp_s, s),
            _ => self.step_of(concurrency),
        };
        self.lengths_s = (ramp_s, measure_s);
        self.longest_s = self.longest_s.max(ramp_s + measure_s);
        SaturationAction::Measure { concurrency, ramp_s, measure_s, phase: self.phase }
    }

    fn record(&mut self, c: u32, o: SaturationObservation) {
        match self.phase {
            SaturationPhase::Drain => {
                self.phase = SaturationPhase::Ladder;
                return;
            }
            SaturationPhase::Return => {
                self.returned.push(o);
                return;
            }
            SaturationPhase::Ladder | SaturationPhase::Confirm => {}
        }
        if self.phase == SaturationPhase::Ladder && self.is_made_again(c, &o) {
            return;
        }
        match self.points.iter_mut().find(|p| p.concurrency == c) {
            Some(p) => p.seen.push(o),
            None => self.points.push(Point { concurrency: c, seen: vec![o] }),
        }
        self.points.sort_by_key(|p| p.concurrency);
        if self.phase == SaturationPhase::Ladder {
            self.judge_rung(c, &o);
        }
    }

    fn judge_rung(&mut self, c: u32, o: &SaturationObservation) {
        let over = |limit: Option<f64>| limit.zip(o.p99_s).is_some_and(|(l, p)| p > l);
        self.ended = if !(o.ops_per_s.is_finite() && o.ops_per_s > 0.0) {
            Some(Ended::NoThroughput)
        } else if o.error_rate > 0.01 {
            Some(Ended::Errors)
        } else if over(self.options.p99_ceiling_s) {
            Some(Ended::LatencyCeiling)
        } else if o.client_bound {
            Some(Ended::ClientBound)
        } else {
            self.flat = if o.ops_per_s > self.best * GAIN { 0 } else { self.flat + 1 };
            if self.flat >= 2 {
                Some(Ended::Saturated)
            } else if self.is_refused_again() {
                Some(Ended::Refused)
            } else {
                (c >= self.options.max).then_some(Ended::AtMaximum)
            }
        };
        if !matches!(self.ended, Some(Ended::NoThroughput | Ended::Errors | Ended::LatencyCeiling)) {
            self.best = self.best.max(o.ops_per_s);
        }
    }

    /// Next rung, or `None` when the ladder has ended.
    fn climb(&self) -> Option<u32> {
        if self.ended.is_some() {
            return None;
        }
        Some(
            self.points
                .last()
                .map_or(self.options.start.max(1), |p| p.concurrency.saturating_mul(2).min(self.options.max)),
        )
    }

    /// Usable points: those that broke a limit don't count, nor those that were refused, where others were not.
    fn usable(&self) -> Vec<&Point> {
        let ceiling = self.options.p99_ceiling_s.unwrap_or(f64::INFINITY);
        let most = self.most_unrefused().unwrap_or(u32::MAX);
        self.points
            .iter()
            .filter(|p| p.concurrency <= most)
            .filter(|p| {
                p.seen.iter().all(|o| {
                    o.ops_per_s > 0.0 && o.error_rate <= 0.01 && o.p99_s.is_none_or(|l| l <= ceiling)
                })
            })
            .collect()
    }

    /// Logarithm of the plateau: the best three points within 5 % of the best.
    fn plateau(&self) -> Option<f64> {
        let mut v: Vec<f64> = self.usable().iter().map(|p| p.log_mean()).collect();
        v.sort_unstable_by(|a, b| b.total_cmp(a));
        let top = *v.first()?;
        let near: Vec<f64> = v.into_iter().take(3).filter(|x| *x > top - SAME).collect();
        Some(math::mean(&near))
    }

    fn c95(&self) -> Option<u32> {
        let plateau = self.plateau()?;
        self.usable().iter().find(|p| p.log_mean() >= plateau + SHARE.ln()).map(|p| p.concurrency)
    }

    /// Whether more measurements of this rung would make its interval much narrower.
    fn is_seen_rarely(&self, c: u32) -> bool {
        self.points.iter().find(|p| p.concurrency == c).is_some_and(|p| p.seen.len() < ENOUGH_SEEN)
    }

    /// Next of the confirming measurements, two of each in random order; `None` when settled.
    fn confirm(&mut self) -> Option<u32> {
        if let Some(c) = self.queue.pop() {
            return Some(c);
        }
        // A budget is not given up while the answer is open.
        let rounds = if self.options.budget_s.is_some() { u32::MAX } else { CONFIRM_ROUNDS };
        if matches!(self.ended, Some(Ended::NoThroughput | Ended::TooShort { .. })) || self.rounds >= rounds {
            return None;
        }
        let c95 = self.c95()?;
        if self.rounds > 0 && self.is_settled(c95) {
            return None;
        }
        self.rounds += 1;
        let top = if matches!(self.ended, Some(Ended::Saturated)) && self.refused_from().is_none() {
            self.options.max
        } else {
            self.usable().last()?.concurrency
        };
        // Where all were refused, fewer may not be.
        let fewer = self.below_all_refused().unwrap_or(c95 / 2);
        let near: Vec<u32> = [fewer, c95, c95.saturating_mul(2)]
            .into_iter()
            // Below the first rung, too: one that was flat from the start is not the least that does.
            .filter(|c| *c >= 1 && *c <= top)
            .collect();
        for _ in 0..2 {
            let mut round = near.clone();
            self.rng.shuffle(&mut round);
            self.queue.extend(round);
        }
        self.queue.pop()
    }

    /// Twice as many in flight gain less than 5 %, and the point was repeated.
    fn is_settled(&self, c95: u32) -> bool {
        let usable = self.usable();
        let at = |c: u32| usable.iter().find(|p| p.concurrency == c);
        let Some(here) = at(c95) else { return false };
        let up = at(c95.saturating_mul(2)).map_or(0.0, |p| p.log_mean() - here.log_mean());
        let clear = self.options.budget_s.is_none() || self.below(c95).is_none_or(|p| self.falls_short(p));
        let may_be_less = self.below_all_refused().is_some_and(|fewer| fewer > 0);
        here.seen.len() >= 3 && up <= SAME && clear && !may_be_less
    }

    /// The rung before this one.
    fn below(&self, c: u32) -> Option<&Point> {
        self.points.iter().rfind(|p| p.concurrency < c)
    }

    /// Whether a point surely (95 %) lies below its share of the plateau.
    fn falls_short(&self, p: &Point) -> bool {
        let Some(plateau) = self.plateau() else { return false };
        let near = self
            .usable()
            .iter()
            .filter(|q| q.log_mean() > plateau - SAME)
            .map(|q| q.seen.len())
            .sum::<usize>();
        let (sd, df) = self.noise();
        if !sd.is_finite() {
            return false;
        }
        let se = sd * (1.0 / p.seen.len() as f64 + 1.0 / near.max(1) as f64).sqrt();
        plateau + SHARE.ln() - p.log_mean() > student::t95(df) * se
    }
}

#[cfg(test)]
mod tests;
