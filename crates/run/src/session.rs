//! A run while it goes on: its targets, its files, its clock.

mod claims;
mod closing;
mod existing;
mod own_cluster;
mod preparation;
mod roll;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plimsoll_control::Controller;
use plimsoll_cost::MoneyMeter;
use plimsoll_crew::{Crew, StageOrder, key_names};
use plimsoll_engine::Clock;
use plimsoll_engine::target::s3::REDIRECTED;
use plimsoll_lower as lower;
use plimsoll_model::plan::{FilesTarget, Stage, TargetSpec};
use plimsoll_model::{Environment, Event, Finding, HostFacts, Level, Plan};
use plimsoll_setup::Interrupt;
use plimsoll_setup::objects::FoundObjects;
use plimsoll_setup::observe::{ObserveSetting, ObservedPlace, Observers, ScrapeSink, places_with};
use plimsoll_setup::s3::BucketClaim;
use plimsoll_store::{Journal, Mark, RunDir};

use crate::environment::monotonic_ns;
use crate::error::RunError;
use crate::guard::RunGuard;
use crate::lost::Acknowledged;
use crate::options::{CrewChoice, Options, Recruit};
use crate::peak::Crowd;
use crate::samples::{ObservedFiles, Samples};
use crate::stage::{self, Sinks, StageEnd, StageSetting};
use crate::streams::Streams;
use crate::trace::{self, Names, StageNames, TraceWriter};
use crate::virtual_time;
use crate::volumes::Volumes;
use roll::{are_so_many, same_roll};

/// A shorter rest is over before it is read of. (A choice: it would be told as 0 s.)
const TOLD_IDLE: Duration = Duration::from_secs(1);

/// An open run, and those who carry it out.
pub struct Session {
    run: RunDir,
    plan: Plan,
    /// Of what is made in buckets; a local crew has it, too, for what it makes.
    journal: Arc<Mutex<Journal>>,
    /// Those that are the run's own.
    volumes: Volumes,
    environment: Environment,
    crew: Box<dyn Crew>,
    /// Places in buckets that are the run's, by target.
    claims: BTreeMap<String, BucketClaim>,
    streams: Streams,
    samples: Option<Samples>,
    /// Who asks what the servers do, and where that goes.
    observers: Option<(Observers, ObservedFiles)>,
    trace: Option<TraceWriter>,
    interrupt: Interrupt,
    /// CLOCK_MONOTONIC at the run's start; 0 on the simulated clock.
    epoch_ns: u64,
    /// Where the simulated clock stands.
    virtual_ns: u64,
    next_stage: u32,
    /// Of a resumed run: stages that were cut off and are run again, and how many stages there are in all.
    again: u32,
    planned: Option<u32>,
    /// What the load is at most was said.
    peak_told: bool,
    /// Redirects that were followed: from and to, and how many.
    redirected: BTreeMap<String, u64>,
    acknowledged: Acknowledged,
    /// Asked at the end for what agents kept that were lost.
    recruit: Option<Arc<dyn Recruit>>,
    /// There are such agents.
    lost: bool,
    /// What was spent, where there is a budget of money.
    spent: Option<MoneyMeter>,
    guard: RunGuard,
    /// Key prefixes (with how many they are spread over) and ranges whose objects are there.
    prepared: BTreeSet<(String, u64, u64)>,
    /// How many objects it made ready.
    filled: u64,
}

/// What a session begins with: of a new run, or of one that goes on.
struct Beginning {
    journal: Arc<Mutex<Journal>>,
    volumes: Volumes,
    environment: Environment,
    crew: Box<dyn Crew>,
    streams: Streams,
    epoch_ns: u64,
    virtual_ns: u64,
    next_stage: u32,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("run", &self.run)
            .field("next_stage", &self.next_stage)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub fn create(
        run: &RunDir,
        plan: &Plan,
        options: &Options,
        events: &mut dyn FnMut(Event),
    ) -> Result<Self, RunError> {
        let grid_ns = plan.options.grid.as_ns();
        let journal = Arc::new(Mutex::new(run.journal()?));
        let mut env = run.env()?;
        let (volumes, plan) = Volumes::start(plan, options, &journal, &mut env.environment)?;
        let plan = &plan;
        let crew = options.crew.crew(run, plan, &journal, &options.interrupt, events)?;
        are_so_many(plan, crew.roll().len())?;
        // Before their records: whoever reads them asks here whose they are.
        let hosts = crew.hosts();
        if !hosts.is_empty() {
            env.environment.agents = hosts;
            run.write_env(&env)?;
        }
        let environment = env.environment;
        let streams = Streams::create(run, crew.roll(), grid_ns)?;
        // Where it cannot be marked (a file system without second names or times), a later cleanup asks for the endpoint.
        let _ = plimsoll_setup::safety::trees::mark_made(run.path(), Journal::locked(&journal).mark());
        let epoch_ns = environment.started_monotonic_ns;
        let begins = Beginning {
            journal,
            volumes,
            environment,
            crew,
            streams,
            epoch_ns,
            virtual_ns: 0,
            next_stage: 0,
        };
        let mut session = Self::new(run, plan, options, begins);
        if let Some(each) = plan.each_in_words() {
            events(Event::Message(each.clone()));
            session.found(Finding::new("F22", "asked_for_each", Level::Info, format!("{each}.")));
        }
        session.open(options, None, events)?;
        Ok(session)
    }

    /// `cut`: stages that the kill cut off. `planned`: how many the whole plan has.
    pub fn resume(
        run: &RunDir,
        plan: &Plan,
        options: &Options,
        last_ns: u64,
        next_stage: u32,
        (cut, planned): (&[u32], Option<u32>),
        events: &mut dyn FnMut(Event),
    ) -> Result<Self, RunError> {
        let journal = Arc::new(Mutex::new(run.journal()?));
        let mut environment = run.env()?.environment;
        let (volumes, plan) = Volumes::start(plan, options, &journal, &mut environment)?;
        let plan = &plan;
        let crew = options.crew.crew(run, plan, &journal, &options.interrupt, events)?;
        same_roll(&environment, crew.as_ref())?;
        are_so_many(plan, crew.roll().len())?;
        let mut streams = Streams::resume(run, crew.roll())?;
        // Times go on from the wall clock's distance to the start, and never run back.
        let wall_ns = environment
            .started_at
            .parse::<jiff::Timestamp>()
            .ok()
            .and_then(|t| u64::try_from(jiff::Timestamp::now().duration_since(t).as_nanos()).ok())
            .unwrap_or(0);
        let now_ns = wall_ns.max(last_ns + 2 * plan.options.grid.as_ns());
        let epoch_ns = monotonic_ns().checked_sub(now_ns).ok_or_else(|| {
            RunError::input("the machine was restarted after the run began", "Start a new run")
        })?;
        for stage in cut {
            let reason = "cut off when the run was killed".to_owned();
            streams.mark(&Mark::StageVoid { stage: *stage, at_ns: last_ns, reason })?;
        }
        streams.mark(&Mark::Resumed { at_ns: now_ns })?;
        let begins = Beginning {
            journal,
            volumes,
            environment,
            crew,
            streams,
            epoch_ns,
            virtual_ns: now_ns,
            next_stage,
        };
        let mut session = Self::new(run, plan, options, begins);
        session.again = cut.len() as u32;
        session.planned = planned;
        session.open(options, Some(()), events)?;
        Ok(session)
    }

    fn new(run: &RunDir, plan: &Plan, options: &Options, begins: Beginning) -> Self {
        Self {
            run: run.clone(),
            plan: plan.clone(),
            journal: begins.journal,
            volumes: begins.volumes,
            environment: begins.environment,
            crew: begins.crew,
            claims: BTreeMap::new(),
            streams: begins.streams,
            samples: None,
            observers: None,
            trace: None,
            interrupt: options.interrupt.clone(),
            epoch_ns: begins.epoch_ns,
            virtual_ns: begins.virtual_ns,
            next_stage: begins.next_stage,
            again: 0,
            peak_told: false,
            planned: None,
            redirected: BTreeMap::new(),
            acknowledged: Acknowledged::default(),
            recruit: match &options.crew {
                CrewChoice::Fleet(recruit) => Some(Arc::clone(recruit)),
                CrewChoice::Local | CrewChoice::Simulated(_) => None,
            },
            lost: false,
            spent: crate::money::meter(plan),
            guard: RunGuard::of(plan),
            prepared: BTreeSet::new(),
            filled: 0,
        }
    }

    /// Claims, crew, what it has, samples and trace. What a failure leaves half made is taken down here.
    fn open(
        &mut self,
        options: &Options,
        resumed: Option<()>,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), RunError> {
        let opened = self.open_all(options, resumed, events);
        if opened.is_err() {
            let left = self.take_down(events)?;
            left.into_iter().for_each(|text| events(Event::Message(format!("left behind: {text}"))));
        }
        for why in self.claims.values().filter_map(BucketClaim::refused) {
            events(Event::Message(format!("everything is refused, and measured as such: {why}")));
        }
        opened
    }

    fn open_all(
        &mut self,
        options: &Options,
        resumed: Option<()>,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), RunError> {
        self.crew.remarks().into_iter().for_each(|f| self.found(f));
        self.make_claims(options, events)?;
        self.describe_own_cluster()?;
        let reaches = self.claims.iter().map(|(name, c)| (name.clone(), c.reach())).collect();
        self.crew.muster(reaches)?;
        self.describe_client();
        for (name, _) in self.plan.targets.iter().filter(|(_, spec)| spec.is_on_files()) {
            let facts = self.crew.describe(name);
            // Whoever judges a workload looks for its directory, as the plan has it.
            if let TargetSpec::Files(FilesTarget { embedded: Some(_), directory, .. }) =
                &self.plan.targets[name]
            {
                self.environment.devices.insert(directory.clone(), facts.clone());
            }
            self.environment.devices.insert(name.clone(), facts);
        }
        if virtual_time::lives_by(&self.plan) {
            self.epoch_ns = 0;
        } else {
            self.watch(resumed.is_some())?;
            self.observe(events)?;
        }
        if let Some(file) = &self.plan.options.trace {
            let start = self.environment.started_at.parse().unwrap_or(jiff::Timestamp::UNIX_EPOCH);
            self.trace =
                Some(TraceWriter::create(&trace::path_for(file, resumed.is_some(), self.next_stage), start)?);
        }
        Ok(())
    }

    /// Something of the run as a whole. A resumed run may find the same again.
    fn found(&mut self, finding: Finding) {
        if !self.environment.findings.contains(&finding) {
            self.environment.findings.push(finding);
        }
    }

    fn watch(&mut self, resumed: bool) -> Result<(), RunError> {
        let samples = Samples::open(&self.run, self.crew.roll(), resumed)?;
        self.samples = Some(samples.clone());
        let since_ns = monotonic_ns().saturating_sub(self.epoch_ns);
        let sink = move |sample| samples.take(&sample);
        Ok(self.crew.watch(since_ns, Box::new(sink))?)
    }

    /// Asks what the servers do, from here on. What is wrong with a source is told now, and is no reason to stop.
    fn observe(&mut self, events: &mut dyn FnMut(Event)) -> Result<(), RunError> {
        let own = self
            .claims
            .values()
            .find_map(|c| Some((c.own_servers()?, c.access().target.tls.ca_file.as_deref())));
        let (own, made_ca) = own.unwrap_or_default();
        let places = places_with(&self.plan, &own, made_ca)?;
        if places.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = places.iter().map(ObservedPlace::name).collect();
        let files = ObservedFiles::open(&self.run, &names)?;
        let sink = files.clone();
        let setting = ObserveSetting {
            every: self.plan.observe_every(),
            keys: self.claims.values().next().map(|c| c.access().keys.clone()),
            epoch_ns: self.epoch_ns,
        };
        let guard = self.guard.clone();
        let take: ScrapeSink = Arc::new(move |number, scrape| {
            guard.scrape(number, &scrape);
            sink.take(number, &scrape);
        });
        let observers = Observers::start(places, &setting, &take).map_err(|e| {
            RunError::input(format!("cannot start a thread for --observe: {e}"), "Observe fewer")
        })?;
        for (number, why) in observers.first_troubles() {
            let text = format!("--observe {}: {why}; the run goes on without it", names[number]);
            events(Event::Message(text));
        }
        self.observers = Some((observers, files));
        self.guard.can_see()
    }

    /// Nanoseconds since the run's start.
    fn now_ns(&self) -> u64 {
        if self.epoch_ns == 0 { self.virtual_ns } else { monotonic_ns().saturating_sub(self.epoch_ns) }
    }

    /// Runs one stage: its data first, then the load.
    pub fn stage(
        &mut self,
        stage: &Stage,
        controller: &mut dyn Controller,
        events: &mut dyn FnMut(Event),
    ) -> Result<StageEnd, RunError> {
        let index = self.next_stage;
        let found = self.find_objects(stage, events)?;
        let stage = &existing::as_found(stage, &found);
        let simulated = virtual_time::lives_by_stage(&self.plan, stage)?;
        let clock = if simulated { Clock::Virtual { start_ns: self.virtual_ns } } else { Clock::Real };
        let grid_ns = self.plan.options.grid.as_ns();
        let order = StageOrder { index, stage, epoch_ns: self.epoch_ns, grid_ns, clock, found: &found };
        // Before anything is put there, too: to fill a data set is a load.
        if !std::mem::replace(&mut self.peak_told, true) {
            self.peak(stage).map(Event::Message).into_iter().for_each(&mut *events);
        }
        let findings = self.prepare_files(index, stage, events)?;
        self.prepare_objects(index, stage, events)?;
        let mut endpoints = Vec::new();
        for w in &stage.workloads {
            let (name, _) = self.plan.target_of(w)?;
            endpoints.push(self.claims.get(name).map_or_else(Vec::new, BucketClaim::endpoint_names));
        }
        let names = self.names(stage, &found)?;
        let setting = StageSetting {
            order,
            roll: self.crew.roll().to_vec(),
            endpoints,
            findings,
            warmup_ns: lower::warmup_ns(stage),
            planned_ns: lower::planned_ns(stage).filter(|_| !controller.ends_stages()),
            of: self.planned.or_else(|| controller.total()).map(|t| t.max(index + 1 - self.again)),
            again: self.again,
            on_agent_loss: self.plan.options.on_agent_loss,
        };
        let mut sinks = Sinks {
            streams: &mut self.streams,
            trace: self.trace.as_mut().map(|t| (t, &names as &dyn Names)),
            events,
            interrupt: self.interrupt.clone(),
            spent: self.spent.as_mut(),
            guard: &self.guard,
        };
        self.next_stage += 1;
        let begun_ns = plimsoll_engine::ring::monotonic_ns().saturating_sub(self.epoch_ns);
        let end = stage::run(setting, self.crew.as_mut(), &mut sinks, controller)?;
        let took_ns = end.end_ns.saturating_sub(begun_ns);
        if !simulated && !end.interrupted && !controller.ends_stages() {
            lower::used_up(stage, took_ns).into_iter().for_each(|text| (sinks.events)(Event::Message(text)));
        }
        if simulated {
            self.virtual_ns = end.end_ns.div_ceil(1_000_000_000) * 1_000_000_000;
        }
        self.note(&end);
        if end.ended_by_cost
            && let Some(spent) = &self.spent
        {
            let f = crate::money::reached(spent, end.end_ns as f64 / 1e9);
            events(Event::Message(f.text.clone()));
            self.found(f);
        }
        if let Some(tripped) = self.guard.tripped().filter(|_| end.ended_by_guard) {
            self.found(crate::guard::reached(&tripped));
        }
        Ok(end)
    }

    /// What the load is at most, where it leaves this machine. `first`: the stage that comes now.
    fn peak(&self, first: &Stage) -> Option<String> {
        let reached = self.claims.iter().map(|(name, c)| (name.clone(), c.endpoint_names())).collect();
        let hosts = self.crew.hosts();
        let machines: Vec<&HostFacts> = hosts.iter().map(|h| &h.machine).collect();
        let alone = machines.is_empty();
        let machines = if alone { vec![&self.environment.machine] } else { machines };
        let crowd = Crowd { machines: &machines, roll: self.crew.roll(), alone };
        crate::peak::peak(&self.plan, first, &reached, crowd)
    }

    /// What the workers found out about themselves and the servers.
    fn note(&mut self, end: &StageEnd) {
        self.lost |= end.lost;
        self.acknowledged.add(&end.observation.series);
        if self.environment.ring.is_empty() {
            self.environment.ring.clone_from(&end.ring);
        }
        for (name, value) in &end.facts {
            if let Some(endpoint) = name.strip_prefix("server ") {
                self.environment.servers.insert(endpoint.to_owned(), value.clone());
            }
            if let Some(way) = name.strip_prefix(REDIRECTED) {
                *self.redirected.entry(way.to_owned()).or_default() += value.parse().unwrap_or(0);
            }
        }
    }

    fn names(&self, stage: &Stage, found: &[Option<FoundObjects>]) -> Result<StageNames, RunError> {
        let agents = self.crew.roll().iter().map(|a| a.name.clone()).collect();
        let mut names = StageNames { agents, ..StageNames::default() };
        for (w, found) in stage.workloads.iter().zip(found) {
            let (name, _) = self.plan.target_of(w)?;
            if let Some(claim) = self.claims.get(name) {
                names.endpoints.extend(claim.endpoint_names());
                names.keys = Some(key_names(claim.prefix(), w, found.as_ref()));
            }
        }
        Ok(names)
    }

    /// Leaves the targets alone for a while.
    pub fn idle(&mut self, time: Duration, events: &mut dyn FnMut(Event)) {
        if virtual_time::lives_by(&self.plan) {
            self.virtual_ns += time.as_nanos() as u64;
            return;
        }
        if time >= TOLD_IDLE {
            events(Event::Doing(format!("idle for {:.0} s", time.as_secs_f64())));
        }
        let until = Instant::now() + time;
        while Instant::now() < until && !self.interrupt.is_requested() && self.guard.tripped().is_none() {
            std::thread::sleep(
                Duration::from_millis(50).min(until.saturating_duration_since(Instant::now())),
            );
        }
    }

    /// What was sent before the run was killed is of its budget, too.
    pub fn spent_before(&mut self, sent: &[plimsoll_cost::Sent]) {
        if let Some(spent) = &mut self.spent {
            spent.sent_before(sent);
        }
    }

    /// Whether a stage was begun.
    pub fn has_data(&self) -> bool {
        self.next_stage > 0
    }
}
