//! Hired agents as a run's crew.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_crew::{Arrival, Crew, CrewError, Enlisted, Fill, Load, StageOrder};
use plimsoll_engine::Clock;
use plimsoll_engine::ring::monotonic_ns;
use plimsoll_lower::{self as lower, Agent as Rolled};
use plimsoll_model::plan::{Stage, TargetSpec};
use plimsoll_model::{AgentHost, Event, Finding, Plan, Sample, WorkerId};
use plimsoll_setup::Interrupt;
use plimsoll_setup::block::paths_of_job;
use plimsoll_setup::s3::{Errands, Reach};
use plimsoll_setup::safety::survey::{SeenKind, Survey};

use super::ask::{Barrier, Came};
use super::errands::FleetErrands;
use super::ground::{self, Common};
use super::holds::SharedThing;
use super::known::{self, StagePart};
use super::link::{Link, OpenLink};
use super::load::FleetLoad;
use crate::frame::incoming::Incoming;
use crate::frame::outgoing::frames_every;
use crate::wire::order::{Arm, Assignment, FoundTold};
use crate::wire::roll::PackedRoll;
use crate::wire::tell::WorkDone;

/// From the last agent's being ready to the start: each has been told of it by then. More for more agents: told one after the other.
const LEAD: Duration = Duration::from_millis(150);
const LEAD_OF_EACH: Duration = Duration::from_millis(1);
/// A start that was not answered is told again, so that what was lost still comes before the time.
const GO_AGAIN: Duration = Duration::from_millis(40);

/// An agent that is ready can start within so long.
const START_WITHIN: Duration = Duration::from_secs(60);
/// No machine has more workers.
const WORKERS: usize = 1 << 14;

/// See the module.
#[derive(Debug)]
pub struct FleetCrew {
    open: OpenLink,
    plan: Plan,
    roll: Vec<Rolled>,
    hosts: Vec<AgentHost>,
    describes: BTreeMap<String, BTreeMap<String, String>>,
    /// What there is to be said of it beside the measurement.
    remarks: Vec<Finding>,
    interrupt: Interrupt,
    /// Of the fleet itself; told with the first stage.
    findings: Vec<Finding>,
    /// There was load: who is lost from then on is lost to the others' stages, too.
    has_started: bool,
    /// Agents of which it was told that they have nothing to do.
    idle: BTreeSet<u32>,
}

impl FleetCrew {
    pub fn new(
        open: OpenLink,
        plan: &Plan,
        roll: Vec<Rolled>,
        hosts: Vec<AgentHost>,
        remarks: Vec<Finding>,
        interrupt: Interrupt,
    ) -> Self {
        Self {
            open,
            plan: plan.clone(),
            roll,
            hosts,
            describes: BTreeMap::new(),
            remarks,
            interrupt,
            has_started: false,
            idle: BTreeSet::new(),
            findings: Vec::new(),
        }
    }

    /// To be in the result.
    pub fn with_findings(self, findings: Vec<Finding>) -> Self {
        Self { findings, ..self }
    }

    fn link(&self) -> &Link {
        &self.open.link
    }

    fn numbers(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.roll.len()
    }

    /// Those who are not lost.
    fn there(&self) -> Vec<usize> {
        let inside = self.link().lock();
        self.numbers().filter(|n| inside.agents[*n].lost.is_none()).collect()
    }

    /// The same job of each, which all have to do.
    fn all(
        &self,
        what: &str,
        job: impl Fn(usize) -> Assignment,
        tell: &mut dyn FnMut(Event),
    ) -> Result<BTreeMap<usize, WorkDone>, CrewError> {
        let jobs = self.numbers().map(|n| (n, job(n))).collect();
        self.link().ask_each(jobs, Barrier::new(what, &self.interrupt, tell))
    }

    /// What an agent's clock is ahead of ours now, as far as it is known; it is kept where its later times are held against it.
    fn ahead_ns(&self, number: usize, keep: fn(&mut known::KnownAgent) -> &mut i64) -> i64 {
        let agent = &mut self.link().lock().agents[number];
        let ahead_ns = agent.fit.at(monotonic_ns()).map_or(0, |c| c.offset_ns);
        *keep(agent) = ahead_ns;
        ahead_ns
    }

    /// Agents of whom the first one holds what is shared, for all of them: those of each machine, and of an image all, as a lock on a file
    /// may be one for all machines.
    fn who_could_hold(&self, kind: SeenKind) -> Vec<Vec<usize>> {
        if kind != SeenKind::Device {
            return vec![self.numbers().collect()];
        }
        let mut machines: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (number, host) in self.hosts.iter().enumerate() {
            machines.entry(&host.machine.boot_id).or_default().push(number);
        }
        machines.into_values().collect()
    }

    /// What has to be held from now on: not what is others' and only read.
    fn shared_things(&self, groups: &BTreeMap<String, Vec<Vec<usize>>>) -> Vec<SharedThing> {
        let held =
            self.plan.targets.iter().filter(|(_, spec)| !matches!(spec, TargetSpec::Block(b) if b.existing));
        let of = |(target, spec): (&String, &TargetSpec)| -> Vec<SharedThing> {
            let paths = paths_of_job(target, spec, 0);
            let paths = paths.iter().map(|p| p.display().to_string());
            let groups = groups.get(target).into_iter().flatten();
            paths.flat_map(|p| groups.clone().map(move |g| SharedThing::new(&p, g.clone()))).collect()
        };
        held.flat_map(of).collect()
    }

    /// What the agents have of their own and in common, before anything of it is touched.
    fn compare_ground(&self) -> Result<Common, CrewError> {
        if !self.plan.targets.values().any(TargetSpec::is_on_files) {
            return Ok(Common::default());
        }
        let seen = self.all("looking at devices and files", |_| Assignment::Survey, &mut |_| {})?;
        let of = |(number, done): (usize, WorkDone)| match done {
            WorkDone::Surveyed(survey) => Some((self.roll[number].name.clone(), survey)),
            _ => None,
        };
        let surveys: Vec<(String, Survey)> = seen.into_iter().filter_map(of).collect();
        ground::compare(&surveys, self.plan.options.shared)
    }

    fn arms(&self, order: &StageOrder<'_>, there: &[usize]) -> Vec<(usize, Assignment)> {
        let virtual_ns = match order.clock {
            Clock::Real => None,
            Clock::Virtual { start_ns } => Some(start_ns),
        };
        let found: Vec<Option<FoundTold>> =
            order.found.iter().map(|f| f.as_ref().map(FoundTold::from)).collect();
        let arm = |number: usize| Arm {
            index: order.index,
            stage: order.stage.clone(),
            epoch_ns: order.epoch_ns.saturating_add_signed(self.ahead_ns(number, |a| &mut a.armed_ahead_ns)),
            grid_ns: order.grid_ns,
            virtual_ns,
            found: found.clone(),
            frame_ns: frames_every(self.roll.len()).as_nanos() as u64,
        };
        there.iter().map(|n| (*n, Assignment::Arm(Box::new(arm(*n))))).collect()
    }

    /// Makes the workers of those who are there: who is ready, the earliest time of all, and their workers.
    fn arm(&self, order: &StageOrder<'_>) -> Result<(Vec<usize>, u64, Vec<Enlisted>), CrewError> {
        let there = self.there();
        let mut quiet = |_| {};
        let asked = Barrier::new("making workers", &self.interrupt, &mut quiet);
        let came = self.link().ask(self.arms(order, &there), asked)?;
        let now_ns = match order.clock {
            Clock::Virtual { start_ns } => start_ns,
            Clock::Real => monotonic_ns().saturating_sub(order.epoch_ns),
        };
        let latest_ns = now_ns.saturating_add(START_WITHIN.as_nanos() as u64);
        let (mut ready, mut earliest_ns, mut enlisted) = (Vec::new(), 0, Vec::new());
        for (number, done) in self.of_those_left(came)? {
            let WorkDone::Armed { earliest_ns: its_ns, workers } = done else {
                return Err(CrewError::bug("an agent that is ready says so"));
            };
            // A time far off is a lie, or a clock that cannot be conducted.
            if workers.len() > WORKERS || its_ns > latest_ns {
                let name = &self.roll[number].name;
                return Err(CrewError::input(
                    format!(
                        "agent {name} cannot start with the others: {} workers at {its_ns} ns",
                        workers.len()
                    ),
                    "Leave it out (--agents label=value), and run again",
                ));
            }
            ready.push(number);
            earliest_ns = earliest_ns.max(its_ns);
            enlisted.extend(workers.into_iter().map(|w| w.enlisted(number as u32)));
        }
        let is_ready = |agent: u32| ready.contains(&(agent as usize));
        enlisted.extend(self.of_plan(order.stage)?.into_iter().filter(|w| !is_ready(w.id.agent)));
        enlisted.sort_by_key(|w| w.id);
        Ok((ready, earliest_ns, enlisted))
    }

    /// What those did who are not lost. Before there was load nobody may be missing; from then on the others go on.
    fn of_those_left(&self, came: BTreeMap<usize, Came>) -> Result<Vec<(usize, WorkDone)>, CrewError> {
        let mut left = Vec::new();
        for (number, came) in came {
            let name = &self.roll[number].name;
            match came {
                Came::Answer(Ok(done)) => left.push((number, done)),
                Came::Answer(Err(refusal)) => return Err(refusal.of_agent(name)),
                Came::Lost(why) if !self.has_started => {
                    return Err(CrewError::input(
                        format!("agent {name} was lost before there was load: {why}"),
                        "Look whether it still runs, and run again",
                    ));
                }
                Came::Lost(_) => {}
            }
        }
        Ok(left)
    }

    /// All workers of a stage, as it is divided: those of agents that are lost are missing, and the record says so.
    fn of_plan(&self, stage: &Stage) -> Result<Vec<Enlisted>, CrewError> {
        let mut first = vec![0u16; self.roll.len()];
        let mut all = Vec::new();
        for w in &stage.workloads {
            let target = self.plan.target_of(w)?;
            for part in lower::parts(&self.plan, w, target, &self.roll) {
                let id = lower::worker_of(&part, 0);
                let next = &mut first[id.agent as usize];
                let slots = if target.1.is_on_files() { w.concurrency } else { part.slots };
                all.push(Enlisted { id: WorkerId { worker: *next, ..id }, slots });
                *next += 1;
            }
        }
        Ok(all)
    }

    /// When all can begin: an edge of the grid.
    fn start_ns(&self, order: &StageOrder<'_>, earliest_ns: u64) -> u64 {
        match order.clock {
            Clock::Virtual { .. } => earliest_ns,
            Clock::Real => {
                // The way to the farthest: half of an echo's, with as much again for the order's own delays.
                let far = Duration::from_nanos(self.link().longest_way_ns().saturating_mul(2));
                let lead = LEAD + LEAD_OF_EACH * self.roll.len() as u32 + far;
                let told_ns = monotonic_ns().saturating_sub(order.epoch_ns) + lead.as_nanos() as u64;
                told_ns.max(earliest_ns).next_multiple_of(order.grid_ns)
            }
        }
    }

    /// Whoever has no part in a load, though it is for all, stands idle without a word otherwise.
    fn tell_idle(&mut self, stage: &Stage, workers: &[Enlisted]) {
        if stage.workloads.iter().any(|w| w.machines.is_some()) {
            return;
        }
        let at_work: BTreeSet<u32> = workers.iter().map(|w| w.id.agent).collect();
        let mut inside = self.open.link.lock();
        let there = (0u32..).zip(&inside.agents).filter(|(_, a)| a.lost.is_none());
        let idle: Vec<u32> = there.map(|(n, _)| n).filter(|n| !at_work.contains(n)).collect();
        let new: Vec<u32> = idle.into_iter().filter(|n| self.idle.insert(*n)).collect();
        if !new.is_empty() {
            let names: Vec<&str> = new.iter().map(|n| self.roll[*n as usize].name.as_str()).collect();
            inside.unsaid.push(format!(
                "{} with nothing to do: the load has fewer ops in flight than there are agents; give it more (--concurrency; \
                 of files and devices --iodepth, --jobs or --threads), or take fewer agents (--agents): {}",
                if new.len() == 1 { "one agent is".to_owned() } else { format!("{} agents are", new.len()) },
                names.join(", ")
            ));
        }
    }

    /// What comes of the stage is kept from now on.
    fn open_stage(&self, order: &StageOrder<'_>, at_ns: u64, workers: &[Enlisted]) {
        let mut inside = self.link().lock();
        let at_work: BTreeSet<u32> = workers.iter().map(|w| w.id.agent).collect();
        let in_lockstep = matches!(order.clock, Clock::Virtual { .. });
        let ready = inside.unsaid.drain(..).map(Arrival::Said).collect();
        inside.stage = Some(known::StageUnderway {
            index: order.index,
            grid_ns: order.grid_ns,
            in_lockstep,
            stop: false,
            abort: false,
            aborted: None,
            ends_ns: lower::planned_ns(order.stage).map(|planned| at_ns.saturating_add(planned)),
            stopped: None,
            told_ahead: false,
            may_block: order
                .stage
                .workloads
                .iter()
                .any(|w| self.plan.target_of(w).is_ok_and(|(_, t)| t.is_on_files())),
            epoch_ns: order.epoch_ns,
            ready,
        });
        for (number, agent) in (0u32..).zip(&mut inside.agents) {
            agent.part = None;
            if agent.lost.is_none() {
                let its = workers.iter().filter(|w| w.id.agent == number).map(|w| w.id.worker).collect();
                let part = StagePart::new(Incoming::new(number), its, at_ns);
                agent.part = Some(part.among(at_work.len()));
            }
        }
    }
}

impl Crew for FleetCrew {
    fn roll(&self) -> &[Rolled] {
        &self.roll
    }

    fn hosts(&self) -> Vec<AgentHost> {
        let inside = self.link().lock();
        let now_ns = monotonic_ns();
        let with_clock =
            |(h, a): (&AgentHost, &known::KnownAgent)| AgentHost { clock: a.fit.at(now_ns), ..h.clone() };
        self.hosts.iter().zip(&inside.agents).map(with_clock).collect()
    }

    fn remarks(&self) -> Vec<Finding> {
        self.remarks.clone()
    }

    fn errands(&self, mark: &str) -> Option<Box<dyn Errands>> {
        Some(Box::new(FleetErrands::new(&self.open.link, mark)))
    }

    fn muster(&mut self, claims: BTreeMap<String, Reach>) -> Result<(), CrewError> {
        for (name, _) in claims.iter().filter(|(_, reach)| reach.is_here) {
            for agent in &mut self.roll {
                agent.beside.insert(name.clone());
            }
        }
        let told: BTreeMap<_, _> = claims.iter().map(|(name, reach)| (name.clone(), reach.told())).collect();
        let roll = PackedRoll::of(&self.roll);
        let Common { apart, shared } = self.compare_ground()?;
        let groups: BTreeMap<String, Vec<Vec<usize>>> =
            shared.iter().map(|(target, kind)| (target.clone(), self.who_could_hold(*kind))).collect();
        self.link().lock().shared = self.shared_things(&groups);
        let job = |n: usize| {
            let (roll, claims) = (roll.clone(), told.clone());
            let holds = |of: &Vec<Vec<usize>>| of.iter().any(|group| group.first() == Some(&n));
            let shared = groups.iter().map(|(target, of)| (target.clone(), holds(of))).collect();
            Assignment::Muster { roll, seat: n as u32, claims, apart: apart.clone(), shared }
        };
        let mustered = self.all("reaching the storage", job, &mut |_| {})?;
        if let Some(WorkDone::Mustered { describes }) = mustered.into_values().next() {
            self.describes = describes;
        }
        Ok(())
    }

    fn describe(&self, target: &str) -> BTreeMap<String, String> {
        self.describes.get(target).cloned().unwrap_or_default()
    }

    fn watch(&mut self, since_ns: u64, sink: Box<dyn FnMut(Sample) + Send>) -> Result<(), CrewError> {
        let epoch_ns = monotonic_ns().saturating_sub(since_ns);
        self.link().lock().sink = Some(sink);
        // One of each host.
        let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
        for (number, agent) in self.roll.iter().enumerate() {
            hosts.entry(&agent.host).or_insert(number);
        }
        let its_epoch = |n| epoch_ns.saturating_add_signed(self.ahead_ns(n, |a| &mut a.watched_ahead_ns));
        let job = |n: usize| (n, Assignment::Watch { epoch_ns: its_epoch(n) });
        let jobs = hosts.into_values().map(job).collect();
        let mut quiet = |_| {};
        self.link().ask_each(jobs, Barrier::new("taking samples", &self.interrupt, &mut quiet))?;
        Ok(())
    }

    fn make_ready(&mut self, stage: &Stage, tell: &mut dyn FnMut(Event)) -> Result<Vec<Finding>, CrewError> {
        let job = |number| (number, Assignment::MakeReady { stage: Box::new(stage.clone()) });
        let jobs = self.there().into_iter().map(job).collect();
        let asked = Barrier::new("making devices and files ready", &self.interrupt, tell);
        let came = self.link().ask(jobs, asked)?;
        let mut all: Vec<Finding> = std::mem::take(&mut self.findings);
        for (number, done) in self.of_those_left(came)? {
            let WorkDone::Ready { findings } = done else { continue };
            let name = &self.roll[number].name;
            all.extend(findings.into_iter().map(|f| Finding {
                text: format!("Agent {name}: {}", f.text),
                agent: Some(name.clone()),
                ..f
            }));
        }
        Ok(all)
    }

    fn fill(&mut self, fill: &Fill<'_>, tell: &mut dyn FnMut(Event)) -> Result<(), CrewError> {
        let job = |_| Assignment::Fill {
            what: fill.what.to_owned(),
            workload: Box::new(fill.workload.clone()),
            first: fill.first,
            count: fill.count,
        };
        self.all(fill.what, job, tell)?;
        Ok(())
    }

    fn start(&mut self, order: &StageOrder<'_>) -> Result<Box<dyn Load>, CrewError> {
        let (ready, earliest_ns, workers) = self.arm(order)?;
        if ready.is_empty() {
            return Err(CrewError::input(
                "all agents are lost",
                "Look at them with: plimsoll fleet status, and run again",
            ));
        }
        // Who was lost until here was lost before there is load.
        self.link().await_holds(&self.interrupt)?;
        let at_ns = self.start_ns(order, earliest_ns);
        self.tell_idle(order.stage, &workers);
        self.open_stage(order, at_ns, &workers);
        let jobs = ready.iter().map(|n| (*n, Assignment::Go { at_ns })).collect();
        let mut quiet = |_| {};
        // Load begins here: an interrupt from now on stops it, and what it did is recorded.
        let asked = Barrier {
            again: GO_AGAIN,
            interrupt: None,
            ..Barrier::new("starting", &self.interrupt, &mut quiet)
        };
        let came = self.link().ask(jobs, asked)?;
        for (number, came) in came {
            if let Came::Answer(Err(refusal)) = came {
                self.link().lock().stage = None;
                return Err(refusal.of_agent(&self.roll[number].name));
            }
        }
        self.has_started = true;
        Ok(Box::new(FleetLoad::new(&self.open.link, order, at_ns, workers)))
    }

    fn rest(&mut self) {
        let jobs = self.there().into_iter().map(|n| (n, Assignment::Rest)).collect();
        let mut quiet = |_| {};
        let asked = Barrier { interrupt: None, ..Barrier::new("resting", &self.interrupt, &mut quiet) };
        // Who does not rest now does when it is let go.
        let _ = self.link().ask(jobs, asked);
        self.link().lock().sink = None;
    }

    fn disband(&mut self, keep: bool) -> Result<Vec<String>, CrewError> {
        let there = self.there();
        let jobs = there.into_iter().map(|n| (n, Assignment::Disband { keep })).collect();
        let mut quiet = |_| {};
        let asked = Barrier { interrupt: None, ..Barrier::new("cleaning up", &self.interrupt, &mut quiet) };
        let came = self.link().ask(jobs, asked)?;
        let mut left = Vec::new();
        for (number, came) in came {
            let name = &self.roll[number].name;
            match came {
                Came::Answer(Ok(WorkDone::Gone { left: its })) => {
                    left.extend(its.into_iter().map(|text| format!("{text} (agent {name})")));
                }
                Came::Answer(Err(refusal)) if !refusal.interrupted => {
                    left.push(format!("what agent {name} made: {}", refusal.problem));
                }
                _ => {}
            }
        }
        if self.plan.targets.values().any(TargetSpec::is_on_files) && !keep {
            let inside = self.link().lock();
            let lost = inside.agents.iter().filter(|a| a.lost.is_some());
            let run = &self.link().run;
            left.extend(lost.map(|a| {
                let name = &a.name;
                format!("what agent {name} made, which was lost (on its machine: `plimsoll cleanup agents/{run}.{name}`)")
            }));
        }
        self.link().dismiss();
        Ok(left)
    }
}
