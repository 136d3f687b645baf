//! What a conductor knows of each agent, and of the stage that they carry out.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use plimsoll_crew::{Arrival, FromAgent};
use plimsoll_model::{Event, Sample};

use super::holds::{HoldNews, SharedThing};
use super::roll_call::Present;
use crate::clock::{ClockFit, Echo};
use crate::error::AgentRefusal;
use crate::frame::incoming::{Incoming, WAITING_OF_ALL};
use crate::frame::record;
use crate::wire::order::ClockAhead;
use crate::wire::pieces::Joiner;
use crate::wire::tell::{State, WorkDone};

/// The longest that an agent has to tell (devices, findings, leftovers) is far below.
pub const LONGEST_TELL: usize = 16 << 20;

/// Memory of an agent's outputs that wait for the collector: what is beyond waits as it came. (A choice: slices of a few dozen threads,
/// and little for a conductor of many agents.)
const UNTAKEN: usize = 16 << 20;
/// The same of all agents together: each may have its part of it, and one output in any case. (A choice: what a conductor of a thousand
/// agents can spare.)
pub const UNTAKEN_OF_ALL: usize = 128 << 20;

/// An agent of the run.
#[derive(Debug)]
pub struct KnownAgent {
    pub name: String,
    pub session: String,
    /// Of the last order to it.
    pub sequence: u64,
    /// Its clock less ours, about: good enough for how long an order holds.
    pub about_ahead_ns: i128,
    pub heard: Instant,
    pub state: State,
    /// It told that it works for this run.
    pub is_hired: bool,
    /// Why nothing more comes from it.
    pub lost: Option<String>,
    /// Work that was ordered and not answered yet: of nothing else anything is taken.
    pub open: BTreeSet<u64>,
    pub answers: BTreeMap<u64, Result<WorkDone, AgentRefusal>>,
    /// What it told of its work, and nobody took yet: the work's number first.
    pub events: Vec<(u64, Event)>,
    pub joiner: Joiner,
    /// Of the last sample that was taken.
    pub sampled_ns: Option<u64>,
    pub fit: ClockFit,
    /// What its clock was taken to be ahead of ours when its workers were made, and when it began to take samples: the times that it tells
    /// count from there.
    pub armed_ahead_ns: i64,
    pub watched_ahead_ns: i64,
    /// Questions for the time that are open.
    pub probes: Vec<u64>,
    pub echoes: Vec<Echo>,
    /// Shared devices and images that it says it holds for all.
    pub holds: BTreeSet<String>,
    /// In its words: one of them is somebody else's by now.
    pub taken: Option<String>,
    /// Its part of the stage.
    pub part: Option<StagePart>,
    pub heeded: Instant,
}

/// What an agent does in the stage that runs.
#[derive(Debug)]
pub struct StagePart {
    pub incoming: Incoming,
    /// Outputs that were given back.
    pub taken: u64,
    /// Outputs that came.
    pub given: u64,
    /// Memory of each that was not given back yet.
    weights: VecDeque<usize>,
    /// Of all of them.
    pub weight: usize,
    /// So much is enough.
    most: usize,
    /// Its workers: nobody else measured anything there.
    pub workers: BTreeSet<u16>,
    /// End of the last slice that came.
    pub seen_until_ns: u64,
    /// When something of its stream came that had not come before.
    pub progress: Instant,
}

impl KnownAgent {
    pub fn new(present: &Present) -> Self {
        let now = Instant::now();
        Self {
            name: present.name.clone(),
            session: present.session.clone(),
            sequence: present.here.last_order,
            about_ahead_ns: i128::from(present.here.monotonic_ns) - i128::from(present.heard_ns),
            heard: now,
            state: present.here.state,
            is_hired: false,
            lost: None,
            open: BTreeSet::new(),
            answers: BTreeMap::new(),
            events: Vec::new(),
            joiner: Joiner::up_to(LONGEST_TELL),
            sampled_ns: None,
            fit: ClockFit::default(),
            armed_ahead_ns: 0,
            watched_ahead_ns: 0,
            probes: Vec::new(),
            echoes: Vec::new(),
            holds: BTreeSet::new(),
            taken: None,
            part: None,
            heeded: now,
        }
    }

    /// Questions for the time that were asked before, and what came of them, count no more.
    pub fn forget_echoes(&mut self) {
        self.echoes.clear();
        self.probes.clear();
    }

    /// How its clock has gone since its workers were made. `None`: nothing is known of it.
    pub fn clock_ahead(&self, epoch_ns: u64) -> Option<ClockAhead> {
        let now_ns = plimsoll_engine::ring::monotonic_ns();
        let clock = self.fit.at(now_ns)?;
        Some(ClockAhead {
            at_ns: now_ns.checked_sub(epoch_ns)?,
            ahead_ns: clock.offset_ns.saturating_sub(self.armed_ahead_ns),
            drift_ns_per_s: clock.drift_ns_per_s.round() as i64,
        })
    }

    /// It has a part of the stage of which something is still to come.
    pub fn is_awaited(&self) -> bool {
        self.lost.is_none() && self.part.as_ref().is_some_and(|p| p.incoming.end().is_none())
    }
}

impl StagePart {
    pub fn new(incoming: Incoming, workers: BTreeSet<u16>, seen_until_ns: u64) -> Self {
        Self {
            incoming,
            taken: 0,
            given: 0,
            weights: VecDeque::new(),
            weight: 0,
            most: UNTAKEN,
            workers,
            seen_until_ns,
            progress: Instant::now(),
        }
    }

    /// As one of so many.
    pub fn among(self, agents: usize) -> Self {
        let most = UNTAKEN.min(UNTAKEN_OF_ALL / agents.max(1));
        Self { most, incoming: self.incoming.among(agents), ..self }
    }

    /// An output goes to the collector.
    pub fn gives(&mut self, came: &FromAgent) {
        let weight = record::weight(came);
        self.weights.push_back(weight);
        self.weight += weight;
        self.given += 1;
    }

    /// The collector gives back the one that it has had for the longest time.
    pub fn takes_back(&mut self) {
        self.weight -= self.weights.pop_front().unwrap_or(0);
        self.taken += 1;
    }

    /// Enough of it waits for the collector: the rest stays as it came.
    pub fn is_full(&self) -> bool {
        self.weight >= self.most
    }

    /// For how long nothing came of its stream, though all that did has been taken.
    pub fn still(&self) -> Duration {
        if self.given > self.taken { Duration::ZERO } else { self.progress.elapsed() }
    }
}

/// The stage that runs.
#[derive(Debug)]
pub struct StageUnderway {
    pub index: u32,
    pub grid_ns: u64,
    /// On the virtual clock: each output is waited for.
    pub in_lockstep: bool,
    /// The run's start on our clock.
    pub epoch_ns: u64,
    pub stop: bool,
    pub abort: bool,
    /// Since when it is cancelled.
    pub aborted: Option<Instant>,
    /// Since the run's start: its load ends by itself. `None`: it ends by work, or when it is told to.
    pub ends_ns: Option<u64>,
    /// Since when it is told to stop.
    pub stopped: Option<Instant>,
    /// It is of devices or files: a call of the system that flushes what was written may not come back for minutes, and nothing shows that
    /// it goes on. Only who was told to cancel has to end.
    pub may_block: bool,
    /// It was told that agents are ahead of what is taken here.
    pub told_ahead: bool,
    /// What has come, and was not taken yet.
    pub ready: VecDeque<Arrival>,
}

impl StageUnderway {
    /// For how long its load should have been over: told to stop, or past its time. On the virtual clock agents wait for us.
    pub fn over_for(&self) -> Option<Duration> {
        if self.in_lockstep {
            return None;
        }
        if self.may_block {
            return self.aborted.map(|at| at.elapsed());
        }
        let now_ns = plimsoll_engine::ring::monotonic_ns().saturating_sub(self.epoch_ns);
        let planned = self.ends_ns.and_then(|end| now_ns.checked_sub(end)).map(Duration::from_nanos);
        planned.max(self.stopped.map(|at| at.elapsed()))
    }
}

/// All of it.
#[derive(Default)]
pub struct Inside {
    /// When a clock answered last.
    pub echoed: Option<Instant>,
    pub agents: Vec<KnownAgent>,
    /// The agents' numbers by name: asked with each message.
    numbers: HashMap<String, usize>,
    pub stage: Option<StageUnderway>,
    pub sink: Option<Box<dyn FnMut(Sample) + Send>>,
    pub next_task: u64,
    pub said: u64,
    /// What agents share, and who keeps others away from it.
    pub shared: Vec<SharedThing>,
    /// What is to be told, and came while there was no stage.
    pub unsaid: Vec<String>,
    /// In words: nobody does any more, and the run ends.
    pub unheld: Option<String>,
    /// One of our threads has died: nothing can be conducted any more, in words.
    pub dead: Option<String>,
}

impl std::fmt::Debug for Inside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inside")
            .field("agents", &self.agents)
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

impl Inside {
    /// These agents, and nothing of theirs yet.
    pub fn new(present: &[Present]) -> Self {
        let agents: Vec<KnownAgent> = present.iter().map(KnownAgent::new).collect();
        let numbers = agents.iter().enumerate().map(|(n, a)| (a.name.clone(), n)).collect();
        Self { agents, numbers, ..Self::default() }
    }

    pub fn number_of(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// Whether somebody holds what agents share. `patience`: after so long agents without a conductor end by themselves.
    pub fn look_at_holds(&mut self, patience: Duration) {
        if self.unheld.is_some() {
            return;
        }
        for thing in &mut self.shared {
            let arrival = match thing.look(&self.agents, patience) {
                None => continue,
                Some(HoldNews::TakenOver(text)) => Arrival::Said(text),
                Some(HoldNews::Unheld(text)) => {
                    self.unheld.get_or_insert_with(|| text.clone());
                    Arrival::Unheld(text)
                }
            };
            match (&mut self.stage, arrival) {
                (Some(stage), arrival) => stage.ready.push_back(arrival),
                (None, Arrival::Said(text)) => self.unsaid.push(text),
                _ => {}
            }
        }
    }

    /// Frames of an agent stay with it, for want of room here: told once a stage, as nothing is lost by it.
    pub fn is_ahead(&mut self, number: usize) {
        let (Some(stage), agent) = (&mut self.stage, &self.agents[number]) else { return };
        if !std::mem::replace(&mut stage.told_ahead, true) {
            stage.ready.push_back(Arrival::Said(format!(
                "agent {} is ahead of what this machine takes: frames of all agents wait here in {} MiB, agents keep what is beyond, \
                 and are asked for it again",
                agent.name,
                WAITING_OF_ALL >> 20
            )));
        }
    }

    /// Nothing more comes from an agent, and nobody waits for it.
    pub fn lose(&mut self, number: usize, why: String) {
        let agent = &mut self.agents[number];
        let was_awaited = agent.is_awaited();
        if agent.lost.is_none() {
            agent.lost = Some(why);
        }
        if let (Some(stage), Some(part), true) = (&mut self.stage, &agent.part, was_awaited) {
            let why = agent.lost.clone().unwrap_or_default();
            let (agent, seen_until_ns) = (number as u32, part.seen_until_ns);
            stage.ready.push_back(Arrival::Lost { agent, seen_until_ns, why });
        }
    }
}
