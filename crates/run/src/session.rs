//! A run while it goes on: its targets, its files, its clock.

mod preparation;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plimsoll_control::Controller;
use plimsoll_engine::Clock;
use plimsoll_engine::target::s3::REDIRECTED;
use plimsoll_model::plan::{ControllerSpec, Stage, TargetSpec, Workload};
use plimsoll_model::{Environment, Event, Finding, Level, Plan};
use plimsoll_setup::Interrupt;
use plimsoll_setup::block::Ground;
use plimsoll_setup::removal::{self, How};
use plimsoll_setup::s3::{ForRun, connect};
use plimsoll_setup::safety::marker::Content;
use plimsoll_store::{Journal, Mark, RunDir, StreamWriter};

use crate::environment::monotonic_ns;
use crate::error::RunError;
use crate::lost::Acknowledged;
use crate::lower;
use crate::options::Options;
use crate::sample::{Sampler, Source};
use crate::stage::{self, Setting, Sinks, StageEnd};
use crate::target::{self, FilesTarget, Place, Ready, S3Ready};
use crate::trace::{self, Names, StageNames, TraceWriter};

/// Name of the one agent of a run on one machine.
const AGENT: &str = "local";
/// A shorter rest is over before it is read of. (A choice: it would be told as 0 s.)
const TOLD_IDLE: Duration = Duration::from_secs(1);

/// An open run.
pub struct Session {
    run: RunDir,
    plan: Plan,
    journal: Journal,
    environment: Environment,
    targets: BTreeMap<String, Ready>,
    ground: Ground,
    intervals: StreamWriter,
    samples: Option<Arc<Mutex<StreamWriter>>>,
    sampler: Option<Sampler>,
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
    /// Redirects that were followed: from and to, and how many.
    redirected: BTreeMap<String, u64>,
    acknowledged: Acknowledged,
    /// Key prefixes (with how many they are spread over) and ranges whose objects are there.
    prepared: BTreeSet<(String, u64, u64)>,
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
        let intervals = run.create_intervals(AGENT, grid_ns)?;
        let journal = run.journal()?;
        // Where it cannot be marked (a file system without second names or times), a later cleanup asks for the endpoint.
        let _ = plimsoll_setup::safety::trees::mark_made(run.path(), journal.mark());
        let epoch_ns = run.env()?.environment.started_monotonic_ns;
        let mut session = Self::new(run, plan, options, (journal, intervals, epoch_ns), 0, 0)?;
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
        let mut intervals = run.resume_intervals(AGENT)?;
        let journal = run.journal()?;
        let started_at = run.env()?.environment.started_at;
        // Times go on from the wall clock's distance to the start, and never run back.
        let wall_ns = started_at
            .parse::<jiff::Timestamp>()
            .ok()
            .and_then(|t| u64::try_from(jiff::Timestamp::now().duration_since(t).as_nanos()).ok())
            .unwrap_or(0);
        let now_ns = wall_ns.max(last_ns + 2 * plan.options.grid.as_ns());
        let epoch_ns = monotonic_ns().checked_sub(now_ns).ok_or_else(|| {
            RunError::input("the machine was restarted since the run began", "Start a new run")
        })?;
        for stage in cut {
            let reason = "cut off when the run was killed".to_owned();
            intervals.mark(&Mark::StageVoid { stage: *stage, at_ns: last_ns, reason })?;
        }
        intervals.mark(&Mark::Resumed { at_ns: now_ns })?;
        let mut session = Self::new(run, plan, options, (journal, intervals, epoch_ns), next_stage, now_ns)?;
        session.again = cut.len() as u32;
        session.planned = planned;
        session.open(options, Some(()), events)?;
        Ok(session)
    }

    fn new(
        run: &RunDir,
        plan: &Plan,
        options: &Options,
        (journal, intervals, epoch_ns): (Journal, StreamWriter, u64),
        next_stage: u32,
        virtual_ns: u64,
    ) -> Result<Self, RunError> {
        Ok(Self {
            run: run.clone(),
            plan: plan.clone(),
            ground: Ground::new(journal.mark(), run.path().parent().unwrap_or(std::path::Path::new("."))),
            journal,
            environment: run.env()?.environment,
            targets: BTreeMap::new(),
            intervals,
            samples: None,
            sampler: None,
            trace: None,
            interrupt: options.interrupt,
            epoch_ns,
            virtual_ns,
            next_stage,
            again: 0,
            planned: None,
            redirected: BTreeMap::new(),
            acknowledged: Acknowledged::default(),
            prepared: BTreeSet::new(),
        })
    }

    /// Targets, sampler and trace. What a failure leaves half made is taken down here.
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
        for t in self.targets.values() {
            if let Ready::S3(s3) = t
                && let Some(why) = s3.storage.refused()
            {
                events(Event::Message(format!("everything is refused, and measured as that: {why}")));
            }
        }
        opened
    }

    fn open_all(
        &mut self,
        options: &Options,
        resumed: Option<()>,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), RunError> {
        self.make_targets(options, events)?;
        let simulated = self.targets.values().all(Ready::is_virtual);
        if simulated {
            self.epoch_ns = 0;
        } else {
            self.start_sampler(resumed.is_some())?;
        }
        if let Some(file) = &self.plan.options.trace {
            let start = self.environment.started_at.parse().unwrap_or(jiff::Timestamp::UNIX_EPOCH);
            self.trace =
                Some(TraceWriter::create(&trace::path_for(file, resumed.is_some(), self.next_stage), start)?);
        }
        Ok(self.ground.check_all(&self.plan)?)
    }

    fn make_targets(&mut self, options: &Options, events: &mut dyn FnMut(Event)) -> Result<(), RunError> {
        let plan = self.plan.clone();
        let id = self.run.id();
        for (name, spec) in &plan.targets {
            let ready = match spec {
                TargetSpec::Null => Ready::Null,
                TargetSpec::Sim(sim) => Ready::sim(sim, plan.seed),
                TargetSpec::S3(s3) => {
                    // A resumed run has a prefix of its own: the one before was cleaned up.
                    let id =
                        if self.next_stage > 0 { format!("{id}-{}", self.next_stage) } else { id.clone() };
                    // Two targets in one bucket have a prefix each.
                    let id = if beside(&plan, name) { format!("{id}-{name}") } else { id };
                    let run = ForRun { id: &id, exe: &options.exe, interrupt: self.interrupt };
                    let storage = connect(&plan, name, s3, run, &mut self.journal, events)?;
                    let ready = S3Ready::new(storage);
                    self.describe_s3(name, &ready);
                    Ready::S3(Box::new(ready))
                }
                TargetSpec::Block(_) | TargetSpec::Files(_) => {
                    let files = FilesTarget::new(name, spec);
                    self.environment.devices.insert(name.clone(), files.describe());
                    Ready::Files(Box::new(files))
                }
            };
            self.targets.insert(name.clone(), ready);
        }
        Ok(())
    }

    fn describe_s3(&mut self, name: &str, ready: &S3Ready) {
        if let Some(header) = ready.storage.server_header() {
            self.environment.servers.insert(name.to_owned(), header);
        }
        let signing = serde_json::to_value(ready.storage.access().target.signing).unwrap_or_default();
        let signing = signing.as_str().unwrap_or_default().to_owned();
        self.environment.notes.insert("payload signing".into(), signing);
        if let Some(area) = ready.storage.area()
            && let Some(text) = area.versioning.words(&area.bucket)
        {
            let stays = area.versioning.retention.is_some() || area.versioning.hidden;
            let level = if stays { Level::Qualified } else { Level::Info };
            let mut chars = text.chars();
            let text =
                chars.next().map(|c| c.to_uppercase().chain(chars).collect::<String>()).unwrap_or_default();
            self.found(Finding::new("F15", "versioned_bucket", level, format!("{text}.")));
        }
        if ready.storage.is_unchecked() {
            let text = format!(
                "The certificates of '{name}' were not checked (--insecure): that it is the server which was named is not known."
            );
            self.found(Finding::new("Q13", "certificate_unchecked", Level::Qualified, text));
        }
        if !ready.storage.unconfirmed().is_empty() {
            let text = ready.storage.unconfirmed().join(" ");
            self.found(Finding::new("Q11", "unconfirmed", Level::Qualified, text));
        }
    }

    /// Something of the run as a whole. A resumed run may find the same again.
    fn found(&mut self, finding: Finding) {
        if !self.environment.findings.contains(&finding) {
            self.environment.findings.push(finding);
        }
    }

    fn start_sampler(&mut self, resumed: bool) -> Result<(), RunError> {
        let mut devices: Vec<_> = Vec::new();
        for t in self.targets.values() {
            if let Ready::Files(f) = t {
                devices.extend(f.devices());
            }
        }
        let source = Source::new(devices);
        let host = source.host().to_owned();
        let writer =
            if resumed { self.run.resume_samples(&host)? } else { self.run.create_samples(&host)? };
        let writer = Arc::new(Mutex::new(writer));
        self.samples = Some(Arc::clone(&writer));
        let since_ns = monotonic_ns().saturating_sub(self.epoch_ns);
        let sink = move |sample| {
            // Samples are a help, not the measurement: a full disk is told by the intervals.
            if let Ok(mut w) = writer.lock() {
                let _ = w.sample(&sample);
            }
        };
        let sampler = Sampler::start(source, Instant::now(), since_ns, sink).map_err(|e| {
            RunError::input(format!("cannot start a thread: {e}"), "Raise the limit on threads")
        })?;
        self.sampler = Some(sampler);
        Ok(())
    }

    /// Nanoseconds since the run's start.
    fn now_ns(&self) -> u64 {
        if self.epoch_ns == 0 { self.virtual_ns } else { monotonic_ns().saturating_sub(self.epoch_ns) }
    }

    fn target(&self, w: &Workload) -> Result<&Ready, RunError> {
        let (name, _) = self.plan.target_of(w)?;
        self.targets.get(name).ok_or_else(|| RunError::Bug(format!("target '{name}' was not made ready")))
    }

    /// Runs one stage: its data first, then the load.
    pub fn stage(
        &mut self,
        stage: &Stage,
        controller: &mut dyn Controller,
        events: &mut dyn FnMut(Event),
    ) -> Result<StageEnd, RunError> {
        let index = self.next_stage;
        crate::memory::check(&self.plan, stage)?;
        let findings = self.prepare_files(index, stage, events)?;
        self.prepare_stage(index, stage, events)?;
        let warmup_ns = lower::warmup_ns(stage);
        let mut workers = Vec::new();
        let mut endpoints = Vec::new();
        for (i, w) in stage.workloads.iter().enumerate() {
            let ready = self.target(w)?;
            let place = Place { stage: index, workload: i as u16, warmup_ns };
            let mut own = ready.workers(&self.plan, w, place, workers.len() as u16)?;
            target::with_records(&mut own, &self.ground)?;
            workers.extend(own);
            endpoints.push(ready.endpoints());
        }
        let simulated = target::is_virtual(&self.plan, stage)?;
        let clock = if simulated { Clock::Virtual { start_ns: self.virtual_ns } } else { Clock::Real };
        let names = self.names(stage)?;
        let setting = Setting {
            index,
            stage,
            workers,
            endpoints,
            findings,
            epoch_ns: self.epoch_ns,
            grid_ns: self.plan.options.grid.as_ns(),
            clock,
            warmup_ns,
            planned_ns: lower::planned_ns(stage).filter(|_| !controller.ends_stages()),
            of: self.planned.or_else(|| controller.total()).map(|t| t.max(index + 1 - self.again)),
            again: self.again,
        };
        let mut sinks = Sinks {
            intervals: &mut self.intervals,
            trace: self.trace.as_mut().map(|t| (t, &names as &dyn Names)),
            events,
            interrupt: self.interrupt,
        };
        self.next_stage += 1;
        let begun_ns = plimsoll_engine::ring::monotonic_ns().saturating_sub(self.epoch_ns);
        let end = stage::run(setting, &mut sinks, controller)?;
        let took_ns = end.end_ns.saturating_sub(begun_ns);
        if !simulated && !end.interrupted && !controller.ends_stages() {
            lower::used_up(stage, took_ns).into_iter().for_each(|text| (sinks.events)(Event::Message(text)));
        }
        if simulated {
            self.virtual_ns = end.end_ns.div_ceil(1_000_000_000) * 1_000_000_000;
        }
        self.note(&end);
        Ok(end)
    }

    /// What the workers found out about themselves and the servers.
    fn note(&mut self, end: &StageEnd) {
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

    fn names(&self, stage: &Stage) -> Result<StageNames, RunError> {
        let mut names = StageNames::default();
        for w in &stage.workloads {
            match self.target(w)? {
                Ready::S3(s3) => {
                    names.endpoints.extend(s3.storage.endpoint_names());
                    names.keys = Some(s3.key_names(w));
                }
                Ready::Null | Ready::Sim(_) | Ready::Files(_) => {}
            }
        }
        Ok(names)
    }

    /// Leaves the targets alone for a while.
    pub fn idle(&mut self, time: Duration, events: &mut dyn FnMut(Event)) {
        if self.targets.values().all(Ready::is_virtual) {
            self.virtual_ns += time.as_nanos() as u64;
            return;
        }
        if time >= TOLD_IDLE {
            events(Event::Doing(format!("idle for {:.0} s", time.as_secs_f64())));
        }
        let until = Instant::now() + time;
        while Instant::now() < until && !self.interrupt.is_requested() {
            std::thread::sleep(
                Duration::from_millis(50).min(until.saturating_duration_since(Instant::now())),
            );
        }
    }

    /// Whether a stage was begun.
    pub fn has_data(&self) -> bool {
        self.next_stage > 0
    }

    /// Cleans up, closes the files and seals the run. Gives what could not be removed.
    pub fn close(mut self, end: &str, events: &mut dyn FnMut(Event)) -> Result<Vec<String>, RunError> {
        drop(self.sampler.take());
        if let Some(problem) = self.trace.take().and_then(TraceWriter::finish) {
            let text = format!("The trace is not complete: {problem}. The figures do not depend on it.");
            events(Event::Message(text.clone()));
            self.found(Finding::new("F13", "trace_incomplete", Level::Qualified, text));
        }
        self.tell_redirects();
        let left = self.take_down(events)?;
        if !left.is_empty() {
            self.found(left_behind(&left, &self.run.id()));
        }
        let mut env = self.run.env()?;
        env.environment = self.environment;
        self.run.write_env(&env)?;
        self.intervals.finish()?;
        if let Some(samples) = self.samples.take()
            && let Some(samples) = Arc::into_inner(samples)
        {
            samples.into_inner().map_err(|_| RunError::Bug("the sampler died".into()))?.finish()?;
        }
        if self.next_stage > 0 {
            self.run.seal(end)?;
        }
        Ok(left)
    }

    /// Figures of requests that went elsewhere are told as that.
    fn tell_redirects(&mut self) {
        for (way, count) in std::mem::take(&mut self.redirected) {
            let text = format!(
                "{count} requests were redirected from {way}, and followed: their time includes both answers. \
                 Measure the server that they end at by naming it as the endpoint."
            );
            self.found(Finding {
                measured: Some(count as f64),
                ..Finding::new("Q12", "redirected", Level::Qualified, text)
            });
        }
    }

    /// Removes what the run made, unless it is to be kept.
    fn take_down(&mut self, events: &mut dyn FnMut(Event)) -> Result<Vec<String>, RunError> {
        let keep = self.plan.options.keep;
        let how = How { keep, uploads: removal::has_uploads(&self.plan), interrupt: self.interrupt };
        let mut left = Vec::new();
        // Of a run in one bucket alone it is known what was to be there.
        let mut removed = (self.targets.len() == 1 && !keep).then_some(0);
        for t in self.targets.values_mut() {
            if let Ready::S3(s3) = t {
                if s3.storage.is_thrown_away() && !keep {
                    removed = None;
                    removal::forget_embedded(&mut self.journal, s3.storage.target_name())?;
                } else if let Some(area) = s3.storage.area() {
                    left.extend(removal::bucket_things(
                        s3.storage.store(),
                        &mut self.journal,
                        &area.target,
                        &how,
                        &mut removed,
                        events,
                    )?);
                } else {
                    removed = None;
                }
                s3.storage.stop_server(&mut self.journal)?;
            }
        }
        if self.targets.values().all(|t| matches!(t, Ready::S3(_)))
            && let Some(f) = self.acknowledged.finding(removed)
        {
            self.found(f);
        }
        // Permits on devices end here.
        self.targets.clear();
        self.ground.release();
        left.extend(removal::local_things(&mut self.journal, keep, Content::Ours)?);
        Ok(left)
    }
}

/// What the run could not remove is in its result: it may cost money, or stand in somebody's way.
fn left_behind(left: &[String], id: &str) -> Finding {
    let text = format!("Left behind: {}. `plimsoll cleanup {id}` tries again.", left.join("; "));
    let evidence = left.iter().map(|l| ("left behind".to_owned(), l.clone())).collect();
    Finding {
        measured: Some(left.len() as f64),
        evidence,
        ..Finding::new("F14", "left_behind", Level::Qualified, text)
    }
}

/// Whether this target is measured beside another one.
fn beside(plan: &Plan, name: &str) -> bool {
    match &plan.controller {
        Some(ControllerSpec::Limits { scope_targets, .. }) => scope_targets.values().any(|t| t == name),
        _ => false,
    }
}
