//! A simulated network: who is cut off when, what is lost, doubled or delayed, and events in order of the world's time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_engine::rng;

/// Agents, their clocks and the network between them and their conductor. Probabilities are of each frame on its way.
#[derive(Debug, Clone, PartialEq)]
pub struct SimNetwork {
    /// How many; one at least.
    pub agents: u32,
    /// How far each agent's clock is ahead of the conductor's, as far as its offset was not found out; agents beyond the end: 0.
    pub ahead_ns: Vec<i64>,
    /// Least and most time on the way.
    pub delay_ns: (u64, u64),
    /// That it never arrives.
    pub loss: f64,
    /// That it arrives twice.
    pub duplicates: f64,
    /// They may overlap.
    pub partitions: Vec<Partition>,
    /// An agent that was silent for so long is lost to the conductor, and one that heard nothing for so long stops its load.
    pub patience_ns: u64,
    /// Of what is lost, doubled and how long each frame takes: the same again with the same seed.
    pub seed: u64,
}

/// Nothing passes between an agent and the conductor in `[from_ns, to_ns)` of the world's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    /// Its number in the roll.
    pub agent: u32,
    /// Since the run's start.
    pub from_ns: u64,
    /// What was sent before `from_ns`, and would arrive before this, is gone, too.
    pub to_ns: u64,
}

impl Default for SimNetwork {
    /// One agent next door: everything arrives at once.
    fn default() -> Self {
        Self {
            agents: 1,
            ahead_ns: Vec::new(),
            delay_ns: (0, 0),
            loss: 0.0,
            duplicates: 0.0,
            partitions: Vec::new(),
            patience_ns: 10_000_000_000,
            seed: 1,
        }
    }
}

impl SimNetwork {
    pub(super) fn ahead_ns(&self, agent: u32) -> i64 {
        self.ahead_ns.get(agent as usize).copied().unwrap_or(0)
    }

    pub(super) fn most_ahead_ns(&self) -> u64 {
        self.ahead_ns.iter().copied().max().unwrap_or(0).max(0) as u64
    }
}

/// The way between the conductor and its agents.
#[derive(Debug)]
pub(super) struct Wire<T> {
    network: SimNetwork,
    /// (when, order of sending), and what arrives.
    events: BinaryHeap<Reverse<(u64, u64)>>,
    contents: std::collections::BTreeMap<u64, T>,
    sent: u64,
    drawn: u64,
}

impl<T: Clone> Wire<T> {
    pub fn new(network: SimNetwork) -> Self {
        Self {
            network,
            events: BinaryHeap::new(),
            contents: std::collections::BTreeMap::new(),
            sent: 0,
            drawn: 0,
        }
    }

    fn chance(&mut self) -> f64 {
        self.drawn += 1;
        rng::unit(rng::at(rng::derive(self.network.seed, 7), self.drawn))
    }

    fn is_cut(&self, agent: u32, at_ns: u64) -> bool {
        self.network.partitions.iter().any(|p| p.agent == agent && (p.from_ns..p.to_ns).contains(&at_ns))
    }

    /// Puts something on the way to or from an agent. It may be lost, or arrive twice.
    pub fn send(&mut self, agent: u32, at_ns: u64, what: T) {
        let copies = if self.chance() < self.network.duplicates { 2 } else { 1 };
        for _ in 0..copies {
            let (least, most) = self.network.delay_ns;
            let on_the_way_ns = least + (self.chance() * most.saturating_sub(least) as f64) as u64;
            let arrives_ns = at_ns + on_the_way_ns;
            let is_lost = self.chance() < self.network.loss;
            // Whatever is on the way when the line is cut is gone, too.
            if !is_lost && !self.is_cut(agent, at_ns) && !self.is_cut(agent, arrives_ns) {
                self.at(arrives_ns, what.clone());
            }
        }
    }

    /// Something that happens by itself.
    pub fn at(&mut self, at_ns: u64, what: T) {
        self.events.push(Reverse((at_ns, self.sent)));
        self.contents.insert(self.sent, what);
        self.sent += 1;
    }

    /// What arrives next, and when, if that is no later than `until_ns`.
    pub fn arrival(&mut self, until_ns: u64) -> Option<(u64, T)> {
        let Reverse((at_ns, _)) = self.events.peek()?;
        if *at_ns > until_ns {
            return None;
        }
        let Reverse((at_ns, number)) = self.events.pop()?;
        self.contents.remove(&number).map(|what| (at_ns, what))
    }
}
