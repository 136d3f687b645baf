//! The time that a budget leaves to preparing data: what takes longer leaves none to measure in, and the budget is of all of it.

use std::time::Duration;

use plimsoll_model::Plan;
use plimsoll_model::count::counted;
use plimsoll_model::event::Counted;
use plimsoll_model::units::{Span, about_size};

use crate::error::CrewError;
use crate::fill::Job;

/// Share of what the budget has left that preparing may take (a choice: a search that has less than the other half is hardly answered).
const SHARE: f64 = 0.5;
/// Share after which an estimate of how long all takes is believed (a choice): before it a burst that ran dry, or a pause that was asked
/// for once, may be most of what was seen.
const BELIEVED: f64 = 0.25;

/// Share of the budget that is there at least for what is prepared between measurements (a choice).
const LATER: f64 = 0.5;

/// What a budget leaves when preparing begins.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    budget: Duration,
    left: Duration,
}

/// How far preparing is.
#[derive(Debug, Clone, Copy)]
pub struct HowFar {
    /// Since it began.
    pub elapsed: Duration,
    /// Of the job's total, in its unit.
    pub done: u64,
    /// Attempts that the storage refused.
    pub refused: u64,
}

impl Allowance {
    /// Of a plan's budget, where it has one; `gone`: since the run began. `is_later`: something was measured before, and what comes last
    /// may go a little beyond the budget: there is a share for it all the same.
    pub fn of(plan: &Plan, gone: Duration, is_later: bool) -> Option<Self> {
        plan.controller.as_ref()?.budget().map(|budget| Self::new(budget.0, gone, is_later))
    }

    fn new(budget: Duration, gone: Duration, is_later: bool) -> Self {
        let least = if is_later { budget.mul_f64(LATER) } else { Duration::ZERO };
        Self { budget, left: budget.saturating_sub(gone).max(least) }
    }

    /// Whether it takes too long: its share is used up, or at its pace all of it would take more than there is.
    pub fn is_over(&self, at: HowFar, total: u64) -> bool {
        if at.done >= total {
            return false;
        }
        let (elapsed_s, left_s) = (at.elapsed.as_secs_f64(), self.left.as_secs_f64());
        let in_all_s = expected_s(at, total);
        elapsed_s >= SHARE * left_s
            || elapsed_s >= BELIEVED * left_s && in_all_s.is_some_and(|all_s| all_s > left_s)
    }

    /// What is said when it is over.
    pub fn used_up(&self, job: &Job<'_>, at: HowFar) -> CrewError {
        let of = match job.unit {
            Counted::Bytes => format!("{} of {}", about_size(at.done), about_size(job.total)),
            Counted::Objects => format!("{} of {}", at.done, counted(job.total, "object")),
        };
        let refused = match at.refused {
            0 => String::new(),
            n => format!(" ({} refused: 429 or 503)", counted(n, "attempt")),
        };
        let all = expected_s(at, job.total)
            .map_or(String::new(), |s| format!("; at that pace all would take about {}", round(s)));
        let would = expected_s(at, job.total).map_or(String::new(), |s| {
            format!(" (preparing may take half of it: {} at least)", round(s / SHARE))
        });
        let fewer = match job.unit {
            Counted::Bytes => "a smaller --size",
            Counted::Objects => {
                "fewer (--objects) or smaller objects (--size); or measure --op put, which needs none; or prepare them once, in a run \
                 without a budget, with --dataset NAME"
            }
        };
        CrewError::OutOfTime {
            problem: format!(
                "{} could not be prepared within the budget of {}: {of} in {:.0} s{refused}{all}",
                job.what,
                Span(self.budget),
                at.elapsed.as_secs_f64()
            ),
            remedy: format!("Give a larger --budget{would}, or ask for {fewer}"),
        }
    }
}

/// Seconds that all of it takes at the pace so far; `None`: nothing has come.
fn expected_s(at: HowFar, total: u64) -> Option<f64> {
    (at.done > 0).then(|| at.elapsed.as_secs_f64() * total as f64 / at.done as f64)
}

/// As a person says it: `40 s`, `6 min`, `2.5 h`.
fn round(s: f64) -> String {
    match s {
        s if s < 99.5 => format!("{s:.0} s"),
        s if s < 5_970.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOTAL: u64 = 1_000;

    fn at(s: u64, done: u64) -> HowFar {
        HowFar { elapsed: Duration::from_secs(s), done, refused: 0 }
    }

    fn of(budget_s: u64, gone_s: u64) -> Allowance {
        Allowance::new(Duration::from_secs(budget_s), Duration::from_secs(gone_s), false)
    }

    #[test]
    fn preparing_ends_where_its_share_does_or_where_it_is_clear_that_it_takes_longer() {
        let a = of(60, 0);
        assert!(!a.is_over(at(14, 0), TOTAL) && !a.is_over(at(29, 0), TOTAL), "nothing came: no estimate");
        assert!(a.is_over(at(30, 0), TOTAL) && a.is_over(at(30, 999), TOTAL), "half of the budget");
        assert!(!a.is_over(at(14, 42), TOTAL), "too soon to tell");
        assert!(a.is_over(at(15, 45), TOTAL), "three a second: 333 s");
        assert!(!a.is_over(at(15, 260), TOTAL), "it may come to its end within the budget");
        assert!(!a.is_over(at(90, TOTAL), TOTAL), "all is there");
    }

    #[test]
    fn of_what_others_took_there_is_less() {
        let a = of(60, 40);
        assert!(!a.is_over(at(9, 700), TOTAL) && a.is_over(at(10, 700), TOTAL));
        assert!(of(60, 70).is_over(at(0, 0), TOTAL), "nothing is left");
        let later = Allowance::new(Duration::from_secs(60), Duration::from_secs(70), true);
        assert!(
            !later.is_over(at(14, 0), TOTAL) && later.is_over(at(15, 0), TOTAL),
            "what was measured is not lost by a second"
        );
    }

    #[test]
    fn it_says_how_far_it_came_how_long_all_takes_and_what_to_do() {
        let job = Job { what: "data set of get", unit: Counted::Objects, total: TOTAL, allowed: None };
        let text = of(60, 0).used_up(&job, HowFar { refused: 71, ..at(15, 45) }).to_string();
        assert_eq!(
            text,
            "data set of get could not be prepared within the budget of 1m: 45 of 1000 objects in 15 s (71 attempts refused: 429 or 503); at that \
             pace all would take about 6 min. Give a larger --budget (preparing may take half of it: 11 min at least), or ask for fewer (--objects) or smaller objects (--size); or measure --op put, which \
             needs none; or prepare them once, in a run without a budget, with --dataset NAME"
        );
    }
}
