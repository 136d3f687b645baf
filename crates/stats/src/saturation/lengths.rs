//! How long the steps of a search are, and what of its budget is left: enough ops of each worker in a step, enough steps in the
//! budget.

use super::{
    Ended, LEAST_STEP_S, Point, SaturationObservation, SaturationPhase, SaturationSearch, USUAL_STEPS,
};
use crate::math;

/// A search that its budget cut off is asked to be given so many times as much, at the least (guess).
const MORE: f64 = 1.25;
/// A measurement is so many times as long as one of its ops takes, at the least: workers that go in step make its rate uncertain by
/// one part in as many. So is its ramp, so that each worker has an op behind it. (Choices.)
const OPS_OF_A_WORKER: f64 = 4.0;
const OPS_OF_A_RAMP: f64 = 1.5;
/// With fewer than so many ops of each worker a measurement that turned out too short is made again.
const FEWEST_OPS_OF_A_WORKER: f64 = 2.0;
/// No measurement is longer than this for the sake of its ops, seconds: who waits as long for one op has another question.
const LONGEST_FOR_OPS_S: f64 = 120.0;

impl SaturationSearch {
    /// The budget, from the search's first step on, once it is known better: what is made ready before a search takes its time, and
    /// how much is known when the first step has begun. `fixed`: the length of steps is the caller's, and stays.
    pub fn allot(&mut self, budget_s: f64, fixed: bool) {
        self.options.budget_s = Some(budget_s.max(0.0));
        self.fixed = fixed;
        self.fit_lengths();
    }

    /// Steps as long as the budget allows beside what surrounds each.
    fn fit_lengths(&mut self) {
        if !self.fixed && self.options.budget_s.is_some() {
            let around_s = if self.around_s.is_empty() { 0.0 } else { math::median(&self.around_s) };
            self.options = self.options.within_budget_beside(around_s);
        }
    }

    /// Seconds of a budget in which this search would have come to its end, as a rule: of one that ended before. `around_s`: what a
    /// step takes beside its load, where this search has seen too little to know.
    pub fn needed_s(&self, around_s: f64) -> f64 {
        let step_s = if self.fixed { self.options.ramp_s + self.options.measure_s } else { LEAST_STEP_S };
        let around_s = around_s.max(self.most_around_s());
        // Half of the usual steps have as many in flight as the best, or more.
        let longer_s = (self.longest_s - step_s).max(0.0) * USUAL_STEPS / 2.0;
        let usual_s = self.options.drain_s.unwrap_or(0.0) + USUAL_STEPS * (step_s + around_s) + longer_s;
        // That of this search was too little, whatever the rule says.
        usual_s.max(MORE * self.options.budget_s.unwrap_or(0.0))
    }

    /// Of each step beside its load: it is started, ends what is in flight, and the next one begins.
    pub fn most_around_s(&self) -> f64 {
        self.around_s.iter().copied().fold(0.0, f64::max)
    }

    /// The longest step to be expected, with what surrounds it.
    fn step_s(&self) -> f64 {
        self.options.ramp_s + self.options.measure_s + self.most_around_s()
    }

    /// Seconds since the search's first step, after each step: what a budget is held against.
    pub fn elapsed(&mut self, seconds: f64) {
        if self.phase != SaturationPhase::Drain {
            let load_s = self.lengths_s.0 + self.lengths_s.1;
            self.around_s.push((seconds - self.elapsed_s - load_s).max(0.0));
        }
        self.elapsed_s = seconds;
        self.fit_lengths();
    }

    /// The number of the present step, from 1, and of all that a search takes as a rule; never less than the steps that are
    /// sure to come.
    pub fn steps(&self) -> (u32, u32) {
        // The first rung comes again; before that each rung that is looked at closely is measured twice at the least.
        let sure = match self.phase {
            SaturationPhase::Drain | SaturationPhase::Ladder => 4,
            SaturationPhase::Confirm => 1 + self.queue.len() as u32,
            SaturationPhase::Return => 0,
        };
        let usual = if self.phase == SaturationPhase::Return { 0 } else { USUAL_STEPS as u32 };
        let Some(budget_s) = self.options.budget_s else { return (self.steps, usual.max(self.steps + sure)) };
        // No more than the budget holds, the present step among them.
        let fit = (budget_s - self.elapsed_s).max(0.0) / self.step_s().max(f64::MIN_POSITIVE);
        let hold = self.steps.max(1) - 1 + (fit as u32).max(1);
        (self.steps, usual.max(self.steps + sure).min(hold).max(self.steps))
    }

    /// Seconds that are left, the present step included: of the budget, else of the steps that a search takes as a rule.
    pub fn left_s(&self) -> f64 {
        let (step, all) = self.steps();
        match self.options.budget_s {
            Some(b) => (b - self.elapsed_s).max(0.0),
            None => f64::from(all + 1 - step.min(all)) * self.step_s(),
        }
    }

    /// What one op takes with so many in flight, at the most: as it was seen, else in proportion to those below it (Little's law, were the
    /// rate to grow no more; slots that pause after a refusal are no ops).
    fn op_s(&self, concurrency: u32) -> f64 {
        let below = self.points.iter().rfind(|p| p.concurrency <= concurrency);
        let of = |p: &Point| p.latency_s() * f64::from(concurrency) / f64::from(p.concurrency.max(1));
        below.map(of).or_else(|| self.points.first().map(Point::latency_s)).unwrap_or(0.0)
    }

    /// Ramp and measurement of a step with so many in flight, seconds.
    pub(super) fn step_of(&self, concurrency: u32) -> (f64, f64) {
        let (ramp_s, measure_s) = (self.options.ramp_s, self.options.measure_s);
        if self.fixed {
            return (ramp_s, measure_s);
        }
        let op_s = self
            .op_s(concurrency)
            .max(self.least_s / OPS_OF_A_WORKER)
            .min(LONGEST_FOR_OPS_S / OPS_OF_A_WORKER);
        (ramp_s.max(OPS_OF_A_RAMP * op_s), measure_s.max(OPS_OF_A_WORKER * op_s))
    }

    /// Whether steps with so many in flight fit into the budget.
    pub(super) fn has_time_for(&self, steps: &[u32]) -> bool {
        let length_s = |c: &u32| {
            let (ramp_s, measure_s) = self.step_of(*c);
            ramp_s + measure_s + self.most_around_s()
        };
        let needed_s: f64 = steps.iter().map(length_s).sum();
        self.options.budget_s.is_none_or(|b| self.elapsed_s + needed_s <= b)
    }

    /// Whether a step was too short for its ops, and is no point of the curve: it is made again, or the search ends there.
    pub(super) fn is_made_again(&mut self, c: u32, o: &SaturationObservation) -> bool {
        let measure_s = self.lengths_s.1;
        if !o.none_ended && o.mean_latency_s * FEWEST_OPS_OF_A_WORKER <= measure_s {
            return false;
        }
        let before_s = self.least_s;
        // Where none ended one takes as long at the least, and most likely no more than twice as long.
        let op_s = if o.none_ended { 2.0 * measure_s / OPS_OF_A_WORKER } else { o.mean_latency_s };
        self.least_s = (OPS_OF_A_WORKER * op_s).max(before_s);
        let is_longer = self.step_of(c).1 > 1.2 * measure_s;
        if is_longer && self.has_time_for(&[c]) {
            return true;
        }
        self.least_s = before_s;
        if o.none_ended {
            self.ended = Some(Ended::TooShort { concurrency: c, measure_s });
        }
        o.none_ended
    }
}
