//! Who did it: workers by agent.

use std::fmt;

/// A worker of a stage: a thread of one agent. Numbers of agents are a run's, in the order of its roll; numbers of workers are their
/// agent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WorkerId {
    /// The process that carries it out.
    pub agent: u32,
    /// Unique among the workers of its agent in the stage.
    pub worker: u16,
}

impl WorkerId {
    /// A worker of the one agent of a run on one machine.
    pub fn here(worker: u16) -> Self {
        Self { agent: 0, worker }
    }
}

impl fmt::Display for WorkerId {
    /// Where there is one agent only, nobody wants to read its number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.agent {
            0 => write!(f, "{}", self.worker),
            agent => write!(f, "{} of agent {agent}", self.worker),
        }
    }
}
