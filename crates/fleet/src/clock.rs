//! How far an agent's monotonic clock is ahead of the conductor's, and how sure that is.
//!
//! The conductor asks for the agent's time and notes its own before and after. The agent's reading was taken in between: the offset is
//! known to half of the way there and back, and nobody can see how that is divided. So the shortest way counts.

use std::collections::VecDeque;

use plimsoll_model::AgentClock;

/// A round's probes. (A choice: the shortest of 16 is near the shortest of many; more cost time before each run.)
pub const PROBES: u32 = 24;
/// A round gives a time from so many answers on.
pub const ENOUGH: usize = 8;
/// Rounds that are looked back on: at one in 10 s, ten minutes.
const ROUNDS: usize = 60;
/// Drift is told from rounds that lie so far apart at least. A crystal's 50 ppm are a millisecond in this time; less is noise.
const SPAN_NS: u64 = 20_000_000_000;
/// What a crystal may be off by, as far as it was not measured.
const UNKNOWN_DRIFT: f64 = 50e-6;
/// And where it was.
const KNOWN_DRIFT: f64 = 5e-6;

/// A clock that is so far beyond both bounds from where it should be has jumped. (A choice: far more than a crystal, far less than a
/// slice.)
const JUMP_NS: u64 = 2_000_000;

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
    /// What the agent's clock is ahead, if the way there took as long as the way back.
    pub fn offset_ns(&self) -> i64 {
        let there = i128::from(self.heard_ns) - i128::from(self.asked_ns);
        let back = i128::from(self.answered_ns) - i128::from(self.had_ns);
        i64::try_from((there + back) / 2).unwrap_or(0)
    }

    /// Half of the time on the way: the offset is off by no more.
    pub fn bound_ns(&self) -> u64 {
        let all = self.had_ns.saturating_sub(self.asked_ns);
        all.saturating_sub(self.answered_ns.saturating_sub(self.heard_ns)).div_ceil(2)
    }
}

#[derive(Debug, Clone, Copy)]
struct Round {
    at_ns: u64,
    offset_ns: i64,
    bound_ns: u64,
}

/// What the rounds of one agent say together.
#[derive(Debug, Clone, Default)]
pub struct ClockFit {
    rounds: VecDeque<Round>,
}

impl ClockFit {
    /// A round of probes: the one with the shortest way counts.
    pub fn add(&mut self, echoes: &[Echo]) {
        let Some(best) = echoes.iter().min_by_key(|e| e.bound_ns()) else { return };
        let at_ns = best.asked_ns.midpoint(best.had_ns);
        let round = Round { at_ns, offset_ns: best.offset_ns(), bound_ns: best.bound_ns() };
        // A clock that was set, or a machine that stood still: what was known of it is of another clock.
        let stays = |known: AgentClock| {
            let apart_ns = known.bound_ns.saturating_add(round.bound_ns).saturating_add(JUMP_NS);
            known.offset_ns.abs_diff(round.offset_ns) <= apart_ns
        };
        if self.at(at_ns).is_some_and(|known| !stays(known)) {
            self.rounds.clear();
        }
        self.rounds.push_back(round);
        if self.rounds.len() > ROUNDS {
            self.rounds.pop_front();
        }
    }

    /// Whether anything is known.
    pub fn is_known(&self) -> bool {
        !self.rounds.is_empty()
    }

    /// What the offset grows by, as a share of time, where the rounds tell it: the slope of their line.
    fn drift(&self) -> Option<f64> {
        let (first, last) = (self.rounds.front()?, self.rounds.back()?);
        if self.rounds.len() < 3 || last.at_ns.saturating_sub(first.at_ns) < SPAN_NS {
            return None;
        }
        // Relative to the first: neither nanoseconds since boot nor offsets of weeks keep their digits in a product.
        let points = self.rounds.iter().map(|r| {
            let weight = 1.0 / (r.bound_ns.max(1) as f64).powi(2);
            (
                r.at_ns.saturating_sub(first.at_ns) as f64,
                r.offset_ns.saturating_sub(first.offset_ns) as f64,
                weight,
            )
        });
        let all: f64 = points.clone().map(|p| p.2).sum();
        let mean = |of: fn(&(f64, f64, f64)) -> f64| points.clone().map(|p| of(&p) * p.2).sum::<f64>() / all;
        let (x, y) = (mean(|p| p.0), mean(|p| p.1));
        let across: f64 = points.clone().map(|p| p.2 * (p.0 - x) * (p.1 - y)).sum();
        let along: f64 = points.map(|p| p.2 * (p.0 - x).powi(2)).sum();
        (along > 0.0).then(|| across / along)
    }

    /// The agent's clock at a time of the conductor's. Of all rounds that one counts whose bound, grown by what the clocks may have
    /// drifted apart since, is the tightest.
    pub fn at(&self, now_ns: u64) -> Option<AgentClock> {
        let drift = self.drift();
        let (slope, unsure) = drift.map_or((0.0, UNKNOWN_DRIFT), |d| (d, KNOWN_DRIFT));
        let age_ns = |r: &Round| now_ns.abs_diff(r.at_ns) as f64;
        let bound_ns = |r: &Round| r.bound_ns.saturating_add((age_ns(r) * unsure).ceil() as u64);
        let best = self.rounds.iter().min_by_key(|r| bound_ns(r))?;
        let since_ns = now_ns as f64 - best.at_ns as f64;
        Some(AgentClock {
            offset_ns: best.offset_ns.saturating_add((since_ns * slope).round() as i64),
            bound_ns: bound_ns(best),
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
            prop_assert!(clock.offset_ns.abs_diff(offset_ns) <= clock.bound_ns + 1, "{:?}", clock);
            let least = ways.iter().map(|(a, b)| (a + b).div_ceil(2)).min().unwrap();
            prop_assert!(clock.bound_ns <= least + 1000);
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
                // Two or three rounds do not know the drift to 5 ppm, but their bounds are of the way.
                prop_assert!(off <= clock.bound_ns + 100_000, "round {}: {} of {:?}", i, off, clock);
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
}
