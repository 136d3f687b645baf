//! How far an agent's monotonic clock is ahead of the conductor's, and how sure that is.
//!
//! The conductor asks for the agent's time and notes its own before and after. The agent's reading was taken in between: neither way can
//! have taken less than no time, and nobody can see how the rest is divided. So the offset lies between two readings, and those that are
//! nearest count. What is known grows old: by what clocks may drift apart, as far as the rounds before did not tell it.

use std::collections::VecDeque;

use plimsoll_model::AgentClock;

/// A round's probes. (A choice: the shortest of 16 is near the shortest of many; more cost time before each run.)
pub const PROBES: u32 = 24;
/// A round gives a time from so many answers on.
pub const ENOUGH: usize = 8;
/// Rounds that are looked back on: at one in 10 s, ten minutes.
const ROUNDS: usize = 60;
/// What two clocks differ by at the most, until one shows that it does by more: each crystal may be off by 50 ppm.
const DRIFT: f64 = 100e-6;
/// By how much that changes within the rounds that are looked back on: machines warm up.
const WANDER: f64 = 5e-6;
/// A clock that went off by a larger share of the time since the last round was set, or stood still: kernels slew by no more (adjtime:
/// 500 ppm).
const SLEWED: f64 = 1e-3;

/// One question and its answer. Times of the conductor's clock, but for the agent's two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// The conductor asked.
    pub asked_ns: u64,
    /// The agent heard it: on its own clock.
    pub heard_ns: u64,
    /// The agent answered: on its own clock.
    pub answered_ns: u64,
    /// The conductor had the answer.
    pub had_ns: u64,
}

impl Echo {
    fn middle_ns(&self) -> u64 {
        self.asked_ns.midpoint(self.had_ns)
    }

    /// Between what and what the offset lies at `at_ns`, if clocks drift apart by no more than `drift`: the way back, and the way there,
    /// took no time at the least.
    fn range_ns(&self, at_ns: u64, drift: f64) -> (i128, i128) {
        // The agent looked at its clock some time between question and answer.
        let away_ns =
            at_ns.abs_diff(self.middle_ns()) as f64 + self.had_ns.saturating_sub(self.asked_ns) as f64 / 2.0;
        let grown_ns = (away_ns * drift).ceil() as i128;
        let least_ns = i128::from(self.answered_ns) - i128::from(self.had_ns);
        let most_ns = i128::from(self.heard_ns) - i128::from(self.asked_ns);
        (least_ns - grown_ns, most_ns + grown_ns)
    }
}

#[derive(Debug, Clone, Copy)]
struct Round {
    at_ns: u64,
    offset_ns: i64,
    bound_ns: u64,
}

impl Round {
    /// What the newest answers agree on. Each way counts by itself: the shortest one there and the shortest one back need not be of one
    /// question.
    fn of(echoes: &[Echo], drift: f64) -> Option<Self> {
        let mut newest_first: Vec<&Echo> = echoes.iter().collect();
        newest_first.sort_unstable_by_key(|e| std::cmp::Reverse(e.middle_ns()));
        let mut known: Option<(u64, (i128, i128))> = None;
        for echo in newest_first {
            let (at_ns, (low, high)) = known.unwrap_or((echo.middle_ns(), (i128::MIN, i128::MAX)));
            let (least, most) = echo.range_ns(at_ns, drift);
            let both = (low.max(least), high.min(most));
            match both.0 <= both.1 {
                true => known = Some((at_ns, both)),
                // Before that it was another clock, or it jumped while it answered the newest.
                false if known.is_some() => break,
                false => {}
            }
        }
        let (at_ns, (low, high)) = known?;
        Some(Self {
            at_ns,
            offset_ns: i64::try_from((low + high) / 2).ok()?,
            bound_ns: u64::try_from(high - low).ok()?.div_ceil(2),
        })
    }
}

/// How fast the offset grows, as a share of time, and what that is off by at the most.
#[derive(Debug, Clone, Copy)]
struct Drift {
    slope: f64,
    unsure: f64,
}

/// What the rounds of one agent say together.
#[derive(Debug, Clone)]
pub struct ClockFit {
    rounds: VecDeque<Round>,
    /// What its clock and ours differ by at the most.
    most_drift: f64,
}

impl Default for ClockFit {
    fn default() -> Self {
        Self { rounds: VecDeque::new(), most_drift: DRIFT }
    }
}

impl ClockFit {
    /// A round of probes. One in which nothing fits together tells nothing.
    pub fn add(&mut self, echoes: &[Echo]) {
        let Some(round) = Round::of(echoes, self.most_drift) else { return };
        if let (Some(known), Some(&last)) = (self.at(round.at_ns), self.rounds.back()) {
            let agree =
                known.offset_ns.abs_diff(round.offset_ns) <= known.bound_ns.saturating_add(round.bound_ns);
            if !agree {
                self.forget(last, round);
            }
        }
        self.rounds.push_back(round);
        if self.rounds.len() > ROUNDS {
            self.rounds.pop_front();
        }
    }

    /// A clock that was set, or a machine that stood still: what was known of it is of another clock. One that went further than crystals
    /// do, and no further than one that is steered may, can do so again.
    fn forget(&mut self, last: Round, now: Round) {
        self.rounds.clear();
        let bounds_ns = last.bound_ns.saturating_add(now.bound_ns);
        let most_ns = last.offset_ns.abs_diff(now.offset_ns).saturating_add(bounds_ns);
        let drift = most_ns as f64 / now.at_ns.abs_diff(last.at_ns).max(1) as f64;
        if drift <= SLEWED {
            self.most_drift = self.most_drift.max(drift);
        }
    }

    /// Whether anything is known.
    pub fn is_known(&self) -> bool {
        !self.rounds.is_empty()
    }

    /// The slope of a line through the rounds, as sure as their bounds make it: each may be off by all of its own, in the direction that
    /// does most harm. Inside of what clocks may differ by at all.
    fn drift(&self) -> Drift {
        let unknown = Drift { slope: 0.0, unsure: self.most_drift };
        let Some(first) = self.rounds.front() else { return unknown };
        // Relative to the first: neither nanoseconds since boot nor offsets of weeks keep their digits in a product.
        let points = self.rounds.iter().map(|r| {
            let bound = r.bound_ns.max(1) as f64;
            let (x, y) = (r.at_ns.saturating_sub(first.at_ns), r.offset_ns.saturating_sub(first.offset_ns));
            (x as f64, y as f64, bound.powi(-2), bound)
        });
        let all: f64 = points.clone().map(|p| p.2).sum();
        let middle = points.clone().map(|p| p.0 * p.2).sum::<f64>() / all;
        let along: f64 = points.clone().map(|p| p.2 * (p.0 - middle).powi(2)).sum();
        // Of one round, or of rounds at one time, there is no line.
        if along <= 0.0 {
            return unknown;
        }
        let slope = points.clone().map(|p| p.2 * (p.0 - middle) * p.1).sum::<f64>() / along;
        let off = points.map(|p| p.2 * (p.0 - middle).abs() * p.3).sum::<f64>() / along + WANDER;
        let (low, high) = ((slope - off).max(-self.most_drift), (slope + off).min(self.most_drift));
        if low > high {
            return Drift { slope, unsure: off };
        }
        Drift { slope: low.midpoint(high), unsure: (high - low) / 2.0 }
    }

    /// The agent's clock at a time of the conductor's. Of all rounds that one counts whose bound, grown by what the clocks may have
    /// drifted apart since, is the tightest.
    pub fn at(&self, now_ns: u64) -> Option<AgentClock> {
        let Drift { slope, unsure } = self.drift();
        let age_ns = |r: &Round| now_ns.abs_diff(r.at_ns) as f64;
        let bound_ns = |r: &Round| r.bound_ns.saturating_add((age_ns(r) * unsure).ceil() as u64);
        let best = self.rounds.iter().min_by_key(|r| bound_ns(r))?;
        let since_ns = (i128::from(now_ns) - i128::from(best.at_ns)) as f64;
        Some(AgentClock {
            offset_ns: best.offset_ns.saturating_add((since_ns * slope).round() as i64),
            // The offset was rounded, too.
            bound_ns: bound_ns(best).saturating_add(1),
            drift_ns_per_s: slope * 1e9,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    /// An echo at `at_ns` of a clock that is `offset_ns` ahead then, with ways of these lengths.
    fn echo(at_ns: u64, offset_ns: i64, there_ns: u64, back_ns: u64) -> Echo {
        let heard_ns = (at_ns + there_ns).strict_add_signed(offset_ns);
        Echo {
            asked_ns: at_ns,
            heard_ns,
            answered_ns: heard_ns + 1000,
            had_ns: at_ns + there_ns + 1000 + back_ns,
        }
    }

    proptest! {
        #[test]
        fn the_truth_is_within_the_bound_however_the_way_is_divided(
            offset_ns in -1_000_000_000_000i64..1_000_000_000_000,
            ways in prop::collection::vec((0u64..5_000_000, 0u64..5_000_000), 1..30),
        ) {
            let echoes: Vec<Echo> =
                ways.iter().map(|(there, back)| echo(2_000_000_000_000, offset_ns, *there, *back)).collect();
            let mut fit = ClockFit::default();
            fit.add(&echoes);
            let clock = fit.at(2_000_000_000_000).unwrap();
            prop_assert!(clock.offset_ns.abs_diff(offset_ns) <= clock.bound_ns, "{:?}", clock);
            // And no wider than the shortest way there and the shortest one back leave it, but for what clocks drift within a question.
            let least = |of: fn(&(u64, u64)) -> u64| ways.iter().map(of).min().unwrap();
            prop_assert!(clock.bound_ns <= (least(|w| w.0) + least(|w| w.1)).div_ceil(2) + 2000);
        }

        #[test]
        fn a_drift_is_followed_and_the_truth_stays_within_the_bound(
            ppm in -40.0f64..40.0,
            jitter in prop::collection::vec(0u64..200_000, 30..31),
        ) {
            let truth = |at_ns: u64| 5_000_000 + (ppm * 1e-6 * at_ns as f64) as i64;
            let mut fit = ClockFit::default();
            for (i, late) in jitter.iter().enumerate() {
                let at_ns = S + i as u64 * 10 * S;
                fit.add(&[echo(at_ns, truth(at_ns), 50_000 + late, 50_000)]);
                let clock = fit.at(at_ns + 9 * S).unwrap();
                let off = clock.offset_ns.abs_diff(truth(at_ns + 9 * S));
                prop_assert!(off <= clock.bound_ns, "round {}: {} of {:?}", i, off, clock);
            }
            let clock = fit.at(300 * S).unwrap();
            prop_assert!((clock.drift_ns_per_s - ppm * 1e3).abs() < 3_000.0, "{} ppm: {:?}", ppm, clock);
        }
    }

    #[test]
    fn nothing_is_known_before_an_answer() {
        let mut fit = ClockFit::default();
        fit.add(&[]);
        assert!(!fit.is_known() && fit.at(5).is_none());
    }

    #[test]
    fn what_was_known_before_a_jump_does_not_count() {
        let mut fit = ClockFit::default();
        for round in 0..6 {
            fit.add(&[echo(1000 * S + round * 10 * S, 5_000_000, 50_000, 50_000)]);
        }
        fit.add(&[echo(1060 * S, 3_005_000_000, 900_000, 900_000)]);
        let clock = fit.at(1061 * S).unwrap();
        assert!(clock.offset_ns.abs_diff(3_005_000_000) <= clock.bound_ns, "{clock:?}");
        assert_eq!(clock.drift_ns_per_s, 0.0);
    }

    #[test]
    fn a_step_that_no_crystal_makes_is_seen_however_small() {
        let mut fit = ClockFit::default();
        for round in 0..30 {
            fit.add(&[echo(1000 * S + round * 10 * S, 5_000_000, 50_000, 50_000)]);
        }
        fit.add(&[echo(1300 * S, 5_900_000, 50_000, 50_000)]);
        let clock = fit.at(1301 * S).unwrap();
        assert!(
            clock.offset_ns.abs_diff(5_900_000) <= clock.bound_ns && clock.bound_ns < 300_000,
            "{clock:?}"
        );
    }

    #[test]
    fn of_a_clock_that_jumped_between_two_questions_the_newer_answer_counts() {
        let mut fit = ClockFit::default();
        let before = |n: u64| echo(1000 * S + n * 3_000_000, 5_000_000, 40_000, 40_000);
        let after = |n: u64| echo(1000 * S + n * 3_000_000, 25_000_000, 90_000, 90_000);
        let mut crossed = after(7);
        crossed.heard_ns -= 20_000_000;
        crossed.answered_ns = crossed.heard_ns + 20_000_000;
        fit.add(&[before(0), before(1), after(4), after(5), crossed]);
        let clock = fit.at(1000 * S).unwrap();
        assert!(
            clock.offset_ns.abs_diff(25_000_000) <= clock.bound_ns && clock.bound_ns < 100_000,
            "{clock:?}"
        );
    }

    #[test]
    fn a_clock_that_runs_off_by_more_than_crystals_is_learnt() {
        let truth = |at_ns: u64| (300e-6 * at_ns as f64) as i64;
        let mut fit = ClockFit::default();
        for round in 0..10 {
            let at_ns = 1000 * S + round * 10 * S;
            fit.add(&[echo(at_ns, truth(at_ns), 50_000, 50_000)]);
            let clock = fit.at(at_ns + 9 * S).unwrap();
            let off = clock.offset_ns.abs_diff(truth(at_ns + 9 * S));
            assert!(round == 0 || off <= clock.bound_ns, "round {round}: {off} of {clock:?}");
        }
        assert!((fit.at(1100 * S).unwrap().drift_ns_per_s - 300_000.0).abs() < 5_000.0);
    }
}
