//! What a conductor asks of a crew, and what it is told.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::{Clock, Output, SliceGrid, StageSpec, TraceChunk, WorkerEnd, WorkerSpec};
use plimsoll_lower::Agent;
use plimsoll_model::plan::{Stage, Workload};
use plimsoll_model::{AgentHost, Event, Finding, Sample, WorkerId};
use plimsoll_setup::objects::FoundObjects;
use plimsoll_setup::s3::{Errands, Reach};
use plimsoll_store::SparseInterval;

use crate::error::CrewError;

/// An op that the client submits later than this after its intended start, though a slot was free, counts as late (V06).
const LATE_TOLERANCE_NS: u64 = 10_000_000;

/// A stage to be carried out.
#[derive(Debug, Clone, Copy)]
pub struct StageOrder<'a> {
    /// Its number in the run.
    pub index: u32,
    /// As the controller made it; each agent divides it for itself.
    pub stage: &'a Stage,
    /// The run's start on the conductor's monotonic clock: all times count from it.
    pub epoch_ns: u64,
    /// Step of the shared grid.
    pub grid_ns: u64,
    /// Which clock it lives by; a simulated one starts where that clock stands.
    pub clock: Clock,
    /// By workload: the objects that it reads, where they were there already. Found once, by the conductor, so that all agents read the
    /// same ones.
    pub found: &'a [Option<FoundObjects>],
}

impl StageOrder<'_> {
    /// The same for the engine, once it is known who works.
    pub(crate) fn spec(&self, workers: Vec<WorkerSpec>) -> StageSpec {
        StageSpec {
            epoch_ns: self.epoch_ns,
            grid_ns: self.grid_ns,
            clock: self.clock,
            late_tolerance_ns: LATE_TOLERANCE_NS,
            workers,
        }
    }
}

/// Objects `first .. first + count` of a workload, to be put there before its stage.
#[derive(Debug, Clone, Copy)]
pub struct Fill<'a> {
    /// In words, for the progress line.
    pub what: &'a str,
    /// Its target, keys, sizes and payload.
    pub workload: &'a Workload,
    /// Number of the first, as [`plimsoll_lower::KeyPlan`] has them.
    pub first: u64,
    /// How many, over all agents.
    pub count: u64,
}

/// Those who carry out the stages of one run. Called in the order in which the methods stand; `make_ready`, `fill` and `start` once and
/// again for each stage.
pub trait Crew: Debug {
    /// Who they are, in order of their numbers: the same for the whole run.
    fn roll(&self) -> &[Agent];

    /// Their machines and clocks, as far as they are known by now, for the run's environment. Empty: the one agent is on the conductor's
    /// machine, of which the environment tells anyway.
    fn hosts(&self) -> Vec<AgentHost>;

    /// What is to be said of them in the result, beside what was measured.
    fn remarks(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// Agents who ask the storage in place of the conductor, for the run of this mark; none: its crew is where it is itself.
    fn errands(&self, mark: &str) -> Option<Box<dyn Errands>> {
        let _ = mark;
        None
    }

    /// Reaches what was claimed, and looks at what each agent has of its own (devices, directories) before anything is made there.
    fn muster(&mut self, claims: BTreeMap<String, Reach>) -> Result<(), CrewError>;

    /// What the devices of a target are, by fact; empty where it has none.
    fn describe(&self, target: &str) -> BTreeMap<String, String>;

    /// Takes samples of each agent's host, a second apart, from now (`since_ns` after the run's start) until the crew disbands.
    fn watch(&mut self, since_ns: u64, sink: Box<dyn FnMut(Sample) + Send>) -> Result<(), CrewError>;

    /// Devices and files of a stage: claimed, made, written in full where they are read, dropped from the cache. Gives what was found out
    /// about them. Refuses a stage that takes more memory than there is.
    fn make_ready(&mut self, stage: &Stage, tell: &mut dyn FnMut(Event)) -> Result<Vec<Finding>, CrewError>;

    /// Puts objects.
    fn fill(&mut self, fill: &Fill<'_>, tell: &mut dyn FnMut(Event)) -> Result<(), CrewError>;

    /// Makes all workers of a stage, waits until the last is ready, and starts them all at one time: an edge of the grid.
    fn start(&mut self, order: &StageOrder<'_>) -> Result<Box<dyn Load>, CrewError>;

    /// Stops sampling.
    fn rest(&mut self);

    /// Lets go of what the agents held, and removes what they made, unless it is to be kept. Gives what could not be removed, in words.
    fn disband(&mut self, keep: bool) -> Result<Vec<String>, CrewError>;
}

/// A stage at work. Take what arrives until nothing more comes, give each output back, then `join`. One that is dropped before is
/// cancelled: a load must not go on behind its conductor's back.
pub trait Load: Debug {
    /// When op 0 is intended, nanoseconds since the run's start.
    fn started_ns(&self) -> u64;

    /// All workers, in order.
    fn workers(&self) -> &[Enlisted];

    /// Where the slices of workers in this process end, on its own clock: to be bent where they are to follow another one. `None`: they are
    /// elsewhere, or there are none.
    fn grid(&self) -> Option<Arc<SliceGrid>> {
        None
    }

    /// What comes next, waited for at most so long; `None`: all workers have ended, or are lost, and all of their output was taken.
    fn next(&mut self, wait: Duration) -> Option<Arrival>;

    /// Gives back what has been taken, to be filled again. On the simulated clock its worker waits for it.
    fn recycle(&mut self, taken: Arrival);

    /// No new ops; what is in flight ends by itself.
    fn stop(&mut self);

    /// No new ops, and what is in flight is cancelled.
    fn abort(&mut self);

    /// Waits for the workers, and tells how each that is not lost has ended.
    fn join(self: Box<Self>) -> Vec<WorkerEnd>;
}

/// A worker of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enlisted {
    /// Whose it is, and which of theirs.
    pub id: WorkerId,
    /// Ops in flight that it keeps at most.
    pub slots: u32,
}

impl Enlisted {
    /// Those of a stage, in order of their numbers as the engine has them.
    pub(crate) fn all(specs: &[WorkerSpec]) -> Vec<Self> {
        specs.iter().map(|w| Self { id: w.worker, slots: w.slots }).collect()
    }
}

/// What a worker in another process handed over, as it travelled, and as it will be stored: dense, the slices that wait in a conductor of a
/// thousand agents have gigabytes.
#[derive(Debug)]
pub enum FromAgent {
    /// Its slice of the grid.
    Interval {
        /// Whose it is.
        worker: WorkerId,
        /// Its counts and latencies.
        interval: Box<SparseInterval>,
    },
    /// Ops of a slice, ahead of the slice.
    Trace(TraceChunk),
}

impl FromAgent {
    /// Whose it is.
    pub fn worker(&self) -> WorkerId {
        match self {
            Self::Interval { worker, .. } => *worker,
            Self::Trace(chunk) => chunk.worker,
        }
    }
}

/// What came.
#[derive(Debug)]
pub enum Arrival {
    /// From a worker in this process. To be given back with [`Load::recycle`].
    Output(Output),
    /// From a worker elsewhere. To be given back, too.
    FromAgent(FromAgent),
    /// An agent was not heard of for too long, or what it says cannot be: nothing more comes from it in this stage, and what it did since is not known.
    Lost {
        /// Its number in the roll.
        agent: u32,
        /// End of the last slice that came from it.
        seen_until_ns: u64,
        /// In words, without a full stop.
        why: String,
    },
    /// Something about the crew that changes no figure, in words without a full stop: to be told, and noted.
    Said(String),
    /// Nobody keeps others away any more from what the load is on, in words without a full stop: it ends now, and so does the run.
    Unheld(String),
    /// Nothing within the time.
    Nothing,
}
