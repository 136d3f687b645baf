//! Who does which part of a workload: divided over agents first, then over each agent's threads, and nowhere else.
//!
//! What is a sequence goes round: of the common sequence of ops (their kinds, sizes, keys and offsets) and of the common schedule each
//! agent takes every so-manieth, and each of its threads every so-manieth of these. So no key comes twice and none is missing, however
//! many agents there are, and each offers as much as any other, however unlike their cores: a rate for each agent is each agent's. What
//! is a sum (ops in flight, a bound on ops, bytes a second) is divided in the same way, and the parts add up.

use plimsoll_engine::Share;

/// A worker's part of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Division {
    /// Its number in the roll.
    pub agent: u32,
    /// Number among the workers of its agent.
    pub thread: u32,
    /// Number among all workers of the workload, of all agents.
    pub index: u32,
    /// How many they are.
    pub of: u32,
    /// Ops in flight at most.
    pub slots: u32,
    turn: Share,
}

impl Division {
    /// Its part of the common sequence of ops, and of the common schedule.
    pub fn share(&self) -> Share {
        self.turn
    }

    /// Its part of so many, which add up to the whole: agents' parts differ by one at most, and those of an agent's threads.
    pub fn part_of(&self, whole: u64) -> u64 {
        let (index, of) = (u64::from(self.turn.index), u64::from(self.turn.of));
        whole / of + u64::from(index < whole % of)
    }

    /// Its part of a rate, in the rate's unit.
    pub fn rate_of(&self, whole_per_s: f64) -> f64 {
        whole_per_s / f64::from(self.turn.of)
    }
}

/// Spreads `slots` ops in flight over `agents` as evenly as it goes, and what each agent gets over its threads: as many as
/// `threads_of(agent, its slots)` says, one at least, none without a slot. Workers are numbered through, agent by agent; an agent that
/// gets nothing has no workers.
pub fn divide(slots: u32, agents: u32, threads_of: impl Fn(u32, u32) -> u32) -> Vec<Division> {
    assert!(agents > 0, "a workload is divided over one agent at least");
    let mut all = Vec::new();
    // Who gets nothing has no turn.
    let at_work = agents.min(slots);
    for (agent, slots) in (0..agents).zip(evenly(slots, agents)).filter(|(_, slots)| *slots > 0) {
        let threads = threads_of(agent, slots).clamp(1, slots);
        for (thread, slots) in (0..threads).zip(evenly(slots, threads)) {
            let turn = Share { index: agent + at_work * thread, of: at_work * threads };
            all.push(Division { agent, thread, index: all.len() as u32, of: 0, slots, turn });
        }
    }
    let of = all.len() as u32;
    all.iter_mut().for_each(|d| d.of = of);
    all
}

/// Jobs are workers with a sequence each: one agent's come one after the other, each with its number among all, which is its turn, too:
/// what a job does follows from its number, whoever does it.
pub fn divide_jobs(jobs: u32, agents: u32) -> Vec<Division> {
    let mut all = divide(jobs, agents, |_, jobs| jobs);
    all.iter_mut().for_each(|d| d.turn = Share { index: d.index, of: d.of });
    all
}

/// `whole` in `parts` that differ by one at most, the larger ones first.
fn evenly(whole: u32, parts: u32) -> impl Iterator<Item = u32> {
    let (each, left) = (whole / parts, whole % parts);
    (0..parts).map(move |i| each + u32::from(i < left))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Agents with unlike cores, as threads that each would like to run.
    fn cores() -> impl Strategy<Value = Vec<u32>> {
        prop::collection::vec(0u32..40, 1..12)
    }

    proptest! {
        #[test]
        fn sums_are_whole_and_parts_are_even(slots in 1u32..5000, cores in cores(), ops in 0u64..1 << 40) {
            let all = divide(slots, cores.len() as u32, |agent, _| cores[agent as usize]);
            prop_assert_eq!(all.iter().map(|d| d.slots).sum::<u32>(), slots);
            prop_assert!(all.iter().all(|d| d.slots > 0));
            prop_assert_eq!(all.iter().map(|d| d.part_of(ops)).sum::<u64>(), ops);
            let rate: f64 = all.iter().map(|d| d.rate_of(1e6)).sum();
            prop_assert!((rate - 1e6).abs() < 1e-3);
            let of_agent = |a: u32| all.iter().filter(|d| d.agent == a).map(|d| d.slots).sum::<u32>();
            let each: Vec<u32> = (0..cores.len() as u32).map(of_agent).collect();
            prop_assert!(each.iter().max().unwrap() - each.iter().min().unwrap() <= 1, "{:?}", each);
        }

        #[test]
        fn no_op_comes_twice_and_none_is_missing(slots in 1u32..300, cores in cores(), ops in 0u64..2000) {
            let all = divide(slots, cores.len() as u32, |agent, _| cores[agent as usize]);
            let mut seen = BTreeSet::new();
            for d in &all {
                let s = d.share();
                for n in 0..d.part_of(ops) {
                    let op = u64::from(s.index) + n * u64::from(s.of);
                    prop_assert!(seen.insert(op), "op {} comes twice", op);
                }
            }
            prop_assert!(seen.into_iter().eq(0..ops));
        }

        #[test]
        fn workers_are_numbered_through_and_within_their_agent(slots in 1u32..300, cores in cores()) {
            let all = divide(slots, cores.len() as u32, |agent, _| cores[agent as usize]);
            prop_assert!(all.iter().enumerate().all(|(i, d)| d.index == i as u32 && d.of == all.len() as u32));
            prop_assert!(all.is_sorted_by_key(|d| (d.agent, d.thread)));
            for pair in all.windows(2) {
                let expected = if pair[0].agent == pair[1].agent { pair[0].thread + 1 } else { 0 };
                prop_assert_eq!(pair[1].thread, expected);
            }
        }

        #[test]
        fn each_job_is_somebodys(jobs in 1u32..3000, agents in 1u32..40) {
            let all = divide_jobs(jobs, agents);
            prop_assert!(all.iter().map(|d| d.index).eq(0..jobs));
            prop_assert!(all.iter().all(|d| d.slots == 1 && d.of == jobs));
        }
    }

    /// Agents with unlike cores, and with them unlike threads: a schedule, and a bound on ops, are divided over agents first.
    #[test]
    fn each_agent_offers_as_much_as_any_other() {
        let all = divide(128, 2, |agent, _| [2, 4][agent as usize]);
        for agent in [0, 1] {
            let its = || all.iter().filter(|d| d.agent == agent);
            assert_eq!(its().map(|d| d.rate_of(200.0)).sum::<f64>(), 100.0);
            assert_eq!(its().map(|d| d.part_of(1000)).sum::<u64>(), 500);
        }
    }

    #[test]
    fn one_agent_is_as_it_was_before_there_were_agents() {
        let slots: Vec<u32> = divide(10, 1, |_, _| 4).iter().map(|d| d.slots).collect();
        assert_eq!(slots, [3, 3, 2, 2]);
    }

    #[test]
    fn an_agent_too_many_gets_nothing() {
        let all = divide(2, 3, |_, _| 8);
        assert_eq!(all.iter().map(|d| (d.agent, d.slots)).collect::<Vec<_>>(), [(0, 1), (1, 1)]);
    }
}
