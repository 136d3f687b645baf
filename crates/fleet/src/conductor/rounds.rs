//! Rounds of questions to the clocks of a run's agents: some agents at a time, so that what is asked of a thousand fits into what a bus takes
//! at once and the answers do not wait behind each other; and in a thread of their own, so that no sign of life waits for them.

use std::time::{Duration, Instant};

use plimsoll_crew::CrewError;
use plimsoll_engine::ring::monotonic_ns;

use super::known::Inside;
use super::link::Link;
use crate::agent::{ClockProbe, json};
use crate::clock::{ENOUGH, PROBES};

/// So many agents are asked at the same time. (A choice: two thousand questions and answers in a tenth of a second, and a thousand agents in two
/// seconds.)
pub const TOGETHER: usize = 64;
/// Between two questions to an agent.
pub const BETWEEN: Duration = Duration::from_millis(3);
/// So long the last answers may be on their way: round the world and back, over a line that is slow as well.
const LAST_ECHO: Duration = Duration::from_secs(1);
/// Clocks that do not answer are no use: all are given up when none has answered for so long. (Where agents may be silent for longer, so
/// may their clocks.)
const PATIENCE: Duration = Duration::from_secs(5);
/// However many there are, and however slowly they answer.
const AT_MOST: Duration = Duration::from_secs(120);
/// Clocks are compared again so often.
const EVERY: Duration = Duration::from_secs(10);
/// Whether the run is over is looked at so often.
const LOOK: Duration = Duration::from_millis(50);

impl Link {
    /// For as long as the line is open.
    pub fn compare_clocks_on(&self) {
        let mut compared = Instant::now();
        while self.is_open() {
            std::thread::sleep(LOOK);
            if compared.elapsed() < EVERY {
                continue;
            }
            compared = Instant::now();
            let there: Vec<usize> = {
                let inside = self.lock();
                // Those that are not known yet are asked before the run.
                let is_there = |n: &usize| {
                    let agent = &inside.agents[*n];
                    agent.lost.is_none() && agent.fit.is_known()
                };
                (0..inside.agents.len()).filter(is_there).collect()
            };
            for some in there.chunks(TOGETHER) {
                if !self.is_open() {
                    return;
                }
                self.compare(some);
            }
        }
    }

    /// Before a run: an error names whose clock does not answer.
    pub fn know_clocks(&self) -> Result<(), CrewError> {
        let begun = Instant::now();
        let patience = PATIENCE.max(self.patience);
        loop {
            // Those that are known are not asked again: a thousand on a busy machine would answer yesterday's questions for ever.
            let unknown: Vec<usize> = {
                let inside = self.lock();
                (0..inside.agents.len()).filter(|n| !inside.agents[*n].fit.is_known()).collect()
            };
            let Some(first) = unknown.first() else { return Ok(()) };
            let (name, echoed) = {
                let inside = self.lock();
                (inside.agents[*first].name.clone(), inside.echoed)
            };
            let since = echoed.map_or(begun, |at| at.max(begun));
            if since.elapsed() >= patience || begun.elapsed() >= AT_MOST {
                return Err(CrewError::input(
                    format!("agent {name}: its clock does not answer"),
                    "Look whether it still runs, and run again",
                ));
            }
            unknown.chunks(TOGETHER).for_each(|some| self.compare(some));
        }
    }

    /// One round with these: until all have answered, or nobody does any more.
    fn compare(&self, some: &[usize]) {
        let mut inside = self.lock();
        some.iter().for_each(|n| inside.agents[*n].forget_echoes());
        drop(inside);
        for _ in 0..PROBES {
            self.ask_time(some);
            std::thread::sleep(BETWEEN);
        }
        let asked = Instant::now();
        let silent = |inside: &Inside| inside.echoed.map_or(asked, |at| at.max(asked)).elapsed();
        loop {
            let inside = self.lock();
            let is_answered =
                |n: &usize| inside.agents[*n].lost.is_some() || inside.agents[*n].probes.is_empty();
            if some.iter().all(is_answered) || silent(&inside) >= LAST_ECHO || !self.is_open() {
                break;
            }
            drop(inside);
            std::thread::sleep(BETWEEN);
        }
        self.weigh_echoes(some);
    }

    /// A question to each. They are said while nothing else is looked at: a question whose answer is there before it is noted would be none, and
    /// one that waits between its time and its way would make the clock seem less sure.
    fn ask_time(&self, some: &[usize]) {
        let mut inside = self.lock();
        for number in some {
            let agent = &mut inside.agents[*number];
            let probe = ClockProbe { asked_ns: monotonic_ns() };
            agent.probes.push(probe.asked_ns);
            // One that is lost is one of many.
            let _ = self.bus.publish(&self.subjects.clock(&agent.name), &json(&probe));
        }
    }

    /// What each agent's clock is ahead of ours, as its answers have it. Whose clock did not answer is none the wiser.
    fn weigh_echoes(&self, some: &[usize]) {
        let mut inside = self.lock();
        for number in some {
            let agent = &mut inside.agents[*number];
            agent.probes.clear();
            let echoes = std::mem::take(&mut agent.echoes);
            if echoes.len() >= ENOUGH {
                agent.fit.add(&echoes);
            }
        }
    }
}
