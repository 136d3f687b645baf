//! This process as the one agent of a run.

mod armed;
mod bounds;
mod load;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plimsoll_engine::{DataSeed, Pacer, StopRule, TargetConfig, WorkerSpec, arm_unless};
use plimsoll_lower::{self as lower, Agent};
use plimsoll_model::environment::LOCAL_AGENT;
use plimsoll_model::event::{Counted, Event};
use plimsoll_model::plan::{FilesTarget, OnThrottle, Stage, TargetSpec, Workload};
use plimsoll_model::{AgentHost, Finding, Level, Plan, Sample};
use plimsoll_setup::block::{Ground, LayoutJob, SharedHold, layout_workers};
use plimsoll_setup::removal;
use plimsoll_setup::s3::{HeldKeys, Reach};
use plimsoll_setup::safety::marker::Content;
use plimsoll_setup::{EmbeddedServer, Interrupt};
use plimsoll_store::Journal;

use crate::allowance::Allowance;
use crate::error::CrewError;
use crate::fill;
use crate::order::{Crew, Enlisted, Fill, Load, StageOrder};
use crate::sample::{Sampler, Source, host_name};
use crate::target::{FilesReady, Ready, S3Ready, cores, stage_workers, with_records};
pub use armed::LocalArmed;

/// This process as an agent: the one of a run on one machine, or one of many, whose conductor is elsewhere.
pub struct LocalCrew {
    plan: Plan,
    /// All agents of the run.
    roll: Vec<Agent>,
    /// The number in it that is this process.
    seat: u32,
    targets: BTreeMap<String, Ready>,
    ground: Ground,
    /// Of what this agent makes; it is the run's, too, where agent and conductor are one process.
    journal: Arc<Mutex<Journal>>,
    sampler: Option<Sampler>,
    interrupt: Interrupt,
    /// By target: where the next agent's files lie, for those who read them.
    next_directories: BTreeMap<String, String>,
    /// Where the plan bounds what the load may use.
    bounds: Option<bounds::InGroups>,
    /// Disks that were made for the run.
    disks: Vec<EmbeddedServer>,
    /// The run's budget counts from then.
    begun: Instant,
    /// For which anything was made ready.
    stages: u32,
}

impl std::fmt::Debug for LocalCrew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalCrew").field("roll", &self.roll).finish_non_exhaustive()
    }
}

impl LocalCrew {
    /// `runs`: the directory in which runs are made, where records of what was written are kept beside them.
    pub fn new(plan: &Plan, runs: &Path, journal: Arc<Mutex<Journal>>, interrupt: Interrupt) -> Self {
        let mark = Journal::locked(&journal).mark().to_owned();
        let me =
            Agent { name: LOCAL_AGENT.into(), host: host_name(), cores: cores(), beside: Default::default() };
        Self {
            plan: plan.clone(),
            roll: vec![me],
            seat: 0,
            targets: BTreeMap::new(),
            ground: Ground::new(&mark, runs),
            journal,
            sampler: None,
            interrupt,
            next_directories: BTreeMap::new(),
            bounds: None,
            disks: Vec::new(),
            begun: Instant::now(),
            stages: 0,
        }
    }

    /// From now on one of many: `roll` is all of them, and this process has the number `seat` in it. Of each stage and each filling it
    /// does its own part. Where storage is beside an agent, the roll says so.
    pub fn take_seat(&mut self, roll: Vec<Agent>, seat: u32) {
        assert!((seat as usize) < roll.len(), "an agent is one of its roll");
        self.ground.take_seat(seat, roll.len() as u32);
        (self.roll, self.seat) = (roll, seat);
    }

    /// Devices and images of these targets are every agent's: each works in a range of its own. True: this process holds them.
    pub fn shares(&mut self, targets: BTreeMap<String, bool>) {
        self.ground.shares(targets);
    }

    /// What of them this process holds at present, for whoever asks while there is load.
    pub fn shared_hold(&self) -> Arc<SharedHold> {
        self.ground.shared_hold()
    }

    /// Who only reads files of a target reads those of the next agent, which lie there.
    pub fn reads_files_at(&mut self, target: &str, directory: &Path) {
        self.next_directories.insert(target.to_owned(), directory.display().to_string());
    }

    /// A set of files lies there, and not where the plan says: beside those of others who see the same directory.
    pub fn keeps_files_at(&mut self, target: &str, directory: &Path) {
        if let Some(TargetSpec::Files(files)) = self.plan.targets.get_mut(target) {
            files.directory = directory.display().to_string();
        }
    }

    /// Makes this agent's workers of a stage, and waits until the last is ready; when they start is told later. With more agents than
    /// there are ops in flight, some have none.
    pub fn arm(&self, order: &StageOrder<'_>) -> Result<LocalArmed, CrewError> {
        let mut workers = stage_workers(&self.plan, order, &self.roll, &self.targets)?;
        workers.retain(|w| w.worker.agent == self.seat);
        with_records(&mut workers, &self.ground)?;
        if workers.is_empty() {
            return Ok(LocalArmed::without_workers());
        }
        let enlisted = Enlisted::all(&workers);
        let armed = arm_unless(order.spec(workers), &|| self.interrupt.is_requested())?;
        Ok(LocalArmed::new(armed, enlisted, self.keys().cloned().collect()))
    }

    /// Keys of the storage, as far as there is something to be known of them.
    fn keys(&self) -> impl Iterator<Item = &Arc<HeldKeys>> {
        self.targets.values().filter_map(|ready| match ready {
            Ready::S3(s3) => s3.reach.access.held.as_ref(),
            _ => None,
        })
    }

    /// Keys that expire in the middle of a stage, and that nobody renews.
    fn short_keys(&self, stage: &Stage, tell: &mut dyn FnMut(Event)) -> Vec<Finding> {
        let Some(planned_ns) = lower::planned_ns(stage) else { return Vec::new() };
        let mut texts: Vec<String> =
            self.keys().filter_map(|k| k.too_short_for(Duration::from_nanos(planned_ns))).collect();
        texts.dedup();
        let found = |text: String| {
            // The one agent's keys are its conductor's, who told of them before.
            if self.roll.len() > 1 {
                tell(Event::Message(text.clone()));
            }
            Finding::new("Q18", "credentials_expire", Level::Qualified, format!("Before the load: {text}."))
        };
        texts.into_iter().map(found).collect()
    }

    /// Embedded disks of the plan: from here on their files have a place.
    fn make_disks(&mut self) -> Result<(), CrewError> {
        for spec in self.plan.targets.values_mut() {
            let TargetSpec::Files(files) = spec else { continue };
            let Some(disk) = &files.embedded else { continue };
            let exe = std::env::current_exe().map_err(|e| CrewError::bug(format!("this program: {e}")))?;
            let server = plimsoll_setup::start_disk(&exe, disk, &mut Journal::locked(&self.journal))?;
            let place = std::path::PathBuf::from(server.ready.path.clone().unwrap_or_default());
            self.disks.push(server);
            if !place.is_absolute() {
                return Err(CrewError::bug("an embedded disk says no place"));
            }
            let below = Path::new(&files.directory).components().skip(1);
            files.directory = place.join(below.collect::<std::path::PathBuf>()).display().to_string();
        }
        Ok(())
    }

    fn s3(&self, w: &Workload) -> Result<&S3Ready, CrewError> {
        let (name, _) = self.plan.target_of(w)?;
        match self.targets.get(name) {
            Some(Ready::S3(s3)) => Ok(s3),
            _ => Err(CrewError::bug(format!("target '{name}' holds no objects"))),
        }
    }

    /// Workers that put objects `first..first + count`.
    fn fillers(&self, w: &Workload, first: u64, count: u64) -> Result<Vec<WorkerSpec>, CrewError> {
        let s3 = self.s3(w)?;
        let mut parts = lower::fill_parts(&self.plan, w, count, &self.roll)?;
        parts.retain(|part| part.agent == self.seat);
        let mut config = s3.config(&self.plan, w, first, None)?;
        // Nothing is measured here: a limiter's wish is obeyed.
        Arc::make_mut(&mut config).on_throttle = OnThrottle::Backoff;
        let series = lower::prepare_series(s3.reach.access.endpoints.len());
        let source = lower::prepare_source(w, first, lower::size_seed(self.plan.seed, w));
        let one = |part: lower::Division| WorkerSpec {
            worker: lower::worker_of(&part, 0),
            stage: 0,
            workload: 0,
            series: series.clone(),
            cpu: None,
            ring: self.plan.options.ring,
            source: source.clone(),
            share: part.share(),
            pacer: Pacer::Closed,
            pace_share: part.share(),
            target: TargetConfig::S3(Arc::clone(&config)),
            slots: part.slots,
            stop: StopRule { ops: Some(part.part_of(count)), ..StopRule::default() },
            start_delay_ns: 0,
            trace: false,
            verify: false,
            data: DataSeed { spec: w.data, seed: lower::data_seed(self.plan.seed, w) },
        };
        Ok(parts.into_iter().map(one).collect())
    }
}

impl Crew for LocalCrew {
    fn roll(&self) -> &[Agent] {
        &self.roll
    }

    fn hosts(&self) -> Vec<AgentHost> {
        Vec::new()
    }

    fn muster(&mut self, mut claims: BTreeMap<String, Reach>) -> Result<(), CrewError> {
        self.make_disks()?;
        // Servers and disks were begun before, and are outside.
        if let Some(client) = self.plan.options.client.as_ref().filter(|c| !c.is_empty()) {
            self.bounds = Some(bounds::InGroups::enter(client, &mut Journal::locked(&self.journal))?);
        }
        for (name, spec) in &self.plan.targets {
            let ready = match spec {
                TargetSpec::Null => Ready::Null,
                TargetSpec::Sim(sim) => Ready::sim(sim, self.plan.seed),
                TargetSpec::S3(_) => {
                    let reach = claims
                        .remove(name)
                        .ok_or_else(|| CrewError::bug(format!("target '{name}' was not claimed")))?;
                    if reach.is_here {
                        self.roll[self.seat as usize].beside.insert(name.clone());
                    }
                    Ready::S3(Box::new(S3Ready::new(reach)))
                }
                TargetSpec::Block(_) | TargetSpec::Files(_) => {
                    let whose = plimsoll_lower::whose_files(&self.roll, self.seat);
                    let next = self.next_directories.get(name).map(|d| (whose, d.as_str()));
                    let shared = self.ground.is_shared(name);
                    Ready::Files(Box::new(FilesReady::new(name, spec).among(self.seat, shared, next)))
                }
            };
            self.targets.insert(name.clone(), ready);
        }
        Ok(self.ground.check_all(&self.plan)?)
    }

    fn describe(&self, target: &str) -> BTreeMap<String, String> {
        match self.targets.get(target) {
            Some(Ready::Files(files)) => {
                let mut facts = files.describe();
                if let Some(TargetSpec::Files(FilesTarget { embedded: Some(disk), .. })) =
                    self.plan.targets.get(target)
                {
                    facts.insert("embedded".into(), disk.words());
                }
                facts
            }
            _ => BTreeMap::new(),
        }
    }

    fn watch(&mut self, since_ns: u64, sink: Box<dyn FnMut(Sample) + Send>) -> Result<(), CrewError> {
        let of_files = |ready: &Ready| match ready {
            Ready::Files(files) => files.devices(),
            _ => Vec::new(),
        };
        let devices = self.targets.values().flat_map(of_files).collect();
        let sampler = Sampler::start(Source::new(devices), Instant::now(), since_ns, sink).map_err(|e| {
            CrewError::input(format!("cannot start a thread: {e}"), "Raise the limit on threads")
        })?;
        self.sampler = Some(sampler);
        Ok(())
    }

    fn make_ready(&mut self, stage: &Stage, tell: &mut dyn FnMut(Event)) -> Result<Vec<Finding>, CrewError> {
        crate::memory::check_part(&self.plan, stage, self.roll.len() as u64)?;
        self.stages += 1;
        let found = self.short_keys(stage, tell);
        if !self.targets.values().any(|t| matches!(t, Ready::Files(_))) {
            return Ok(found);
        }
        let (seed, interrupt) = (self.plan.seed, &self.interrupt);
        let (plan, begun, is_later) = (&self.plan, self.begun, self.stages > 1);
        let mut layout = |jobs: &[LayoutJob]| -> Result<(), CrewError> {
            for round in layout_workers(jobs, cores() as usize) {
                let total = round.iter().filter_map(|w| w.stop.ops.map(|n| n * w.source.max_bytes())).sum();
                let allowed = Allowance::of(plan, begun.elapsed(), is_later);
                let job = fill::Job { what: "files", unit: Counted::Bytes, total, allowed };
                fill::run(round, job, tell, interrupt)?;
            }
            Ok(())
        };
        let seeds = |w: &Workload| lower::data_seed(seed, w);
        let mut journal = Journal::locked(&self.journal);
        let more = self.ground.prepare(&self.plan, stage, &seeds, &mut journal, &mut layout)?;
        Ok(found.into_iter().chain(more).collect())
    }

    fn fill(&mut self, f: &Fill<'_>, tell: &mut dyn FnMut(Event)) -> Result<(), CrewError> {
        let workers = self.fillers(f.workload, f.first, f.count)?;
        // An agent too many has no part.
        if workers.is_empty() {
            return Ok(());
        }
        let total = workers.iter().filter_map(|w| w.stop.ops).sum();
        let allowed = Allowance::of(&self.plan, self.begun.elapsed(), self.stages > 1);
        let job = fill::Job { what: f.what, unit: Counted::Objects, total, allowed };
        fill::run(workers, job, tell, &self.interrupt)
    }

    fn start(&mut self, order: &StageOrder<'_>) -> Result<Box<dyn Load>, CrewError> {
        // As soon as the last worker is ready.
        self.arm(order)?.go(0)
    }

    fn rest(&mut self) {
        drop(self.sampler.take());
    }

    fn disband(&mut self, keep: bool) -> Result<Vec<String>, CrewError> {
        self.rest();
        // Permits on devices end here.
        self.targets.clear();
        self.ground.release();
        let mut journal = Journal::locked(&self.journal);
        self.bounds.take().into_iter().for_each(|b| b.leave(&mut journal));
        let left = removal::local_things(&mut journal, keep, Content::Ours)?;
        // Ended by now, with what was on them.
        self.disks.clear();
        Ok(left)
    }
}
