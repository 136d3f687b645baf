//! What an agent tells.

use std::collections::BTreeMap;

use plimsoll_crew::Enlisted;
use plimsoll_model::{Event, Finding, HostFacts, Sample, WorkerId};
use plimsoll_net::wire::NetAnswer;
use plimsoll_run::ceiling::Calibration;
use plimsoll_setup::safety::survey::Survey;
use serde::{Deserialize, Serialize};

use super::errand::ErrandDone;
use crate::error::AgentRefusal;

/// From whom, and what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentTold {
    /// [`super::VERSION`].
    pub version: u32,
    /// Of the process: an agent that was started again is another one.
    pub session: String,
    /// The run that it works for, or none.
    pub run: Option<String>,
    /// What it says.
    pub tell: Tell,
}

/// What an agent says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tell {
    /// That it is there, and who it is: said twice a second while it waits for a run, and when it is called.
    Here(Box<Here>),
    /// That it is still there: said twice a second while it works for a run, whose conductor knows who it is.
    There(Box<There>),
    /// What came of a piece of work.
    Answer {
        /// Its number.
        task: u64,
        /// What came of it.
        result: Result<WorkDone, AgentRefusal>,
    },
    /// What happens while it works.
    Event {
        /// The work.
        task: u64,
        /// What happens.
        event: Event,
    },
    /// Of its host.
    Sample(Box<Sample>),
    /// What it kept of a run that it worked for.
    Kept {
        /// As it was asked.
        question: u64,
        /// By stage, or why nothing is given.
        result: Result<Vec<KeptStage>, AgentRefusal>,
    },
}

/// A stage in an agent's own record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptStage {
    /// Its number in the run.
    pub stage: u32,
    /// How many, from 0.
    pub frames: u64,
    /// XXH3-64 of their content in order, as hex.
    pub hash: String,
}

/// An agent, for the roll call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Here {
    /// [`super::language`]: who speaks another one cannot work with us.
    pub language: String,
    /// Of the program.
    pub version: String,
    /// Its machine.
    pub machine: HostFacts,
    /// What it was marked with, to be chosen by.
    pub labels: BTreeMap<String, String>,
    /// What it does.
    pub state: State,
    /// Its monotonic clock when it said this.
    pub monotonic_ns: u64,
    /// The last order that it accepted: the next one has a higher number.
    pub last_order: u64,
    /// Shared devices and images that it holds at present for all agents of its run, by the plan's names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<String>,
    /// In words: one of them is somebody else's by now, and its own load has been cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<String>,
    /// To which secrets for it may be sealed; absent: it takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealing: Option<SealingTold>,
}

/// An agent that is at work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct There {
    /// What it does.
    pub state: State,
    /// Its monotonic clock when it said this.
    pub monotonic_ns: u64,
    /// As in [`Here`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<String>,
    /// As in [`Here`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<String>,
}

impl From<Here> for There {
    fn from(here: Here) -> Self {
        let Here { state, monotonic_ns, holds, taken, .. } = here;
        Self { state, monotonic_ns, holds, taken }
    }
}

/// To which secrets for an agent may be sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealingTold {
    /// Of a key pair that this process made.
    pub key: String,
    /// That whoever says so holds the fleet's token.
    pub voucher: String,
}

/// What an agent does, for a person and for the barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It waits for a run.
    #[default]
    Free,
    /// It works for a run, and waits for what comes next.
    Waiting,
    /// It looks at the plan.
    Planning,
    /// It reaches storage, devices and files.
    Mustering,
    /// It makes devices and files ready, or objects.
    Preparing,
    /// It makes its workers.
    Arming,
    /// Its workers wait for the time.
    Armed,
    /// There is load.
    Running,
    /// It lets go, and removes what it made.
    Leaving,
    /// Its conductor was silent for too long, and it ends by itself.
    Deserted,
    /// The run lasts longer than it may here, and it ends by itself.
    Overdue,
    /// Its own machine asked it to end.
    Stopped,
}

impl State {
    /// For a sentence: `agent a is ...`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Waiting => "waiting",
            Self::Planning => "looking at the plan",
            Self::Mustering => "reaching the storage",
            Self::Preparing => "preparing data",
            Self::Arming => "making its workers",
            Self::Armed => "ready to start",
            Self::Running => "under load",
            Self::Leaving => "cleaning up",
            Self::Deserted => "ending by itself, without its conductor",
            Self::Overdue => "ending by itself, after its --max-duration",
            Self::Stopped => "ending, because its own machine asked it to",
        }
    }
}

/// What came of a [`super::order::Assignment`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkDone {
    /// Nothing more to tell.
    Well,
    /// The storage was asked.
    Errand(Box<ErrandDone>),
    /// What its machine can drive.
    Calibrated(Box<Calibration>),
    /// What the plan's devices and files are.
    Surveyed(Survey),
    /// It reached what it needs.
    Mustered {
        /// What the devices are, by target and fact.
        describes: BTreeMap<String, BTreeMap<String, String>>,
    },
    /// Devices and files are ready.
    Ready {
        /// What was found out about them.
        findings: Vec<Finding>,
    },
    /// Its workers are ready.
    Armed {
        /// The earliest time since the run's start at which they can begin.
        earliest_ns: u64,
        /// All of them.
        workers: Vec<WorkerTold>,
    },
    /// Load begins.
    Going {
        /// Since the run's start.
        started_ns: u64,
    },
    /// Of a network test.
    Net(Box<NetAnswer>),
    /// It let go.
    Gone {
        /// What could not be removed, in words.
        left: Vec<String>,
    },
}

/// A worker, and the ops that it keeps in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerTold {
    /// Of its agent.
    pub worker: u16,
    /// At most.
    pub slots: u32,
}

impl WorkerTold {
    pub fn of(e: &Enlisted) -> Self {
        Self { worker: e.id.worker, slots: e.slots }
    }

    pub fn enlisted(self, agent: u32) -> Enlisted {
        Enlisted { id: WorkerId { agent, worker: self.worker }, slots: self.slots }
    }
}
