//! What a conductor orders.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_lower::Agent;
use plimsoll_model::plan::{Stage, Workload};
use plimsoll_net::wire::NetOrder;
use plimsoll_setup::objects::FoundObjects;
use plimsoll_setup::s3::ReachTold;
use serde::{Deserialize, Serialize};

use super::errand::Errand;
use super::roll::PackedRoll;

/// An order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Something to be done, and answered once it is. Said again until then, under the same number.
    Work {
        /// Counts up within the run.
        task: u64,
        /// What.
        job: Box<Assignment>,
    },
    /// The conductor is there; and what of a stage's stream it has. Said all the time, and not answered.
    Heed(Heed),
    /// What is being made ready is left where it is; what is measured is stopped.
    Leave,
    /// The run is over for this agent.
    Dismiss,
    /// What an agent that works for nobody kept of the run is wanted. Answered with [`super::tell::Tell::Kept`], and with frames.
    Fetch(FetchKept),
}

/// What is wanted of an agent's own record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchKept {
    /// Comes back with the answer.
    pub question: u64,
    /// Frames of this stage; absent: what there is.
    pub stage: Option<u32>,
    /// Frames that are lacking, of those before `from`.
    pub missing: Vec<u64>,
    /// And those from here on, as many as are sent at once.
    pub from: u64,
}

/// What is done one after the other, in the order in which it stands here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Assignment {
    /// Works for the run that the envelope names, if its plan is inside of the agent's bounds.
    Hire {
        /// The plan, as TOML; empty: there is none, and nothing but the network is measured.
        plan: String,
        /// Without a word of the conductor for so long, the agent ends by itself.
        deadman_ns: u64,
    },
    /// Keys of the storage, in place of those that it would find on its own machine.
    Entrust {
        /// [`super::entrusted::Entrusted`], sealed to this agent.
        sealed: String,
    },
    /// Asks the storage in place of the conductor.
    Errand(Box<Errand>),
    /// Measures its machine's own ceiling, and keeps it there.
    Calibrate {
        /// Of each measurement.
        duration_ns: u64,
    },
    /// Looks at what the plan's devices and files are there.
    Survey,
    /// Who all the agents are, and what was claimed for them.
    Muster {
        /// All, in order of their numbers.
        roll: PackedRoll,
        /// The number of this one.
        seat: u32,
        /// Places in buckets, by target.
        claims: BTreeMap<String, ReachTold>,
        /// Targets whose directory others have, too: each agent's files lie in one of its own.
        #[serde(default)]
        apart: BTreeSet<String>,
        /// Targets whose devices and images all agents have: each works in its own range. True: this one holds them, for its machine.
        #[serde(default)]
        shared: BTreeMap<String, bool>,
    },
    /// Takes samples of its host from now on.
    Watch {
        /// The run's start on the agent's clock.
        epoch_ns: u64,
    },
    /// Devices and files of a stage.
    MakeReady {
        /// The whole stage; each agent divides it for itself.
        stage: Box<Stage>,
    },
    /// Its part of objects `first .. first + count`.
    Fill {
        /// In words.
        what: String,
        /// Whose objects.
        workload: Box<Workload>,
        /// Number of the first.
        first: u64,
        /// How many, over all agents.
        count: u64,
    },
    /// Makes the workers of a stage.
    Arm(Box<Arm>),
    /// Starts them.
    Go {
        /// Since the run's start; an edge of the grid.
        at_ns: u64,
    },
    /// Its part of a network test.
    Net(Box<NetOrder>),
    /// Takes no more samples.
    Rest,
    /// Lets go of what it held, and removes what it made.
    Disband {
        /// Or leaves it there.
        keep: bool,
    },
}

/// A stage, as an agent is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Its number in the run.
    pub index: u32,
    /// The whole stage.
    pub stage: Stage,
    /// The run's start on the agent's clock.
    pub epoch_ns: u64,
    /// Step of the shared grid.
    pub grid_ns: u64,
    /// On the virtual clock: where it stands. Absent: the real one.
    pub virtual_ns: Option<u64>,
    /// By workload: the objects that it reads, where they were there already.
    pub found: Vec<Option<FoundTold>>,
    /// A frame is cut so often.
    #[serde(default)]
    pub frame_ns: u64,
}

/// What the conductor has of a stage's stream, and wants.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Heed {
    /// The stage that this is of; absent: of none.
    pub stage: Option<u32>,
    /// Frames that it lacks, of those before `from`.
    pub missing: Vec<u64>,
    /// And all from here on.
    pub from: u64,
    /// How many outputs it has taken: on the virtual clock, the agent's workers wait for it.
    pub taken: u64,
    /// No new ops.
    pub stop: bool,
    /// And what is in flight is cancelled.
    pub abort: bool,
    /// How its clock has gone since its workers were made: its slices follow. Absent: not known, or there is none to follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<ClockAhead>,
}

/// What an agent's clock has gained on the conductor's since its stage was armed, at a time, and how that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClockAhead {
    /// On the conductor's clock, since the run's start.
    pub at_ns: u64,
    /// Gained by then.
    pub ahead_ns: i64,
    /// Gained each second from then on.
    pub drift_ns_per_s: i64,
}

/// One agent of the roll.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// As its records are called.
    pub name: String,
    /// As its samples are called.
    pub host: String,
    /// CPUs that it may use.
    pub cores: u32,
    /// Targets whose storage is on the same machine.
    pub beside: BTreeSet<String>,
}

impl From<&Agent> for Seat {
    fn from(a: &Agent) -> Self {
        Self { name: a.name.clone(), host: a.host.clone(), cores: a.cores, beside: a.beside.clone() }
    }
}

impl From<Seat> for Agent {
    fn from(s: Seat) -> Self {
        Self { name: s.name, host: s.host, cores: s.cores, beside: s.beside }
    }
}

/// Objects that were there already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundTold {
    keys: Vec<String>,
    bytes: Vec<u64>,
    near: bool,
}

impl From<&FoundObjects> for FoundTold {
    fn from(f: &FoundObjects) -> Self {
        Self { keys: f.keys.to_vec(), bytes: f.bytes.to_vec(), near: f.near }
    }
}

impl From<&FoundTold> for FoundObjects {
    fn from(f: &FoundTold) -> Self {
        Self { keys: Arc::from(&f.keys[..]), bytes: Arc::from(&f.bytes[..]), near: f.near, ..Self::default() }
    }
}
