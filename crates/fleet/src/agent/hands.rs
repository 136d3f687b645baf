//! Does what was ordered, one thing after the other, in a thread of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_bus::sealed::SealingKey;
use plimsoll_bus::subjects::check_name;
use plimsoll_crew::{Arrival, Crew, CrewError, Fill, Load, LocalArmed, LocalCrew, StageOrder};
use plimsoll_engine::{Clock, Output};
use plimsoll_lower::Agent as Rolled;
use plimsoll_model::plan::{Stage, TargetSpec, Workload};
use plimsoll_model::{Event, Plan};
use plimsoll_net::NetNode;
use plimsoll_net::wire::NetOrder;
use plimsoll_run::RunError;
use plimsoll_setup::Interrupt;
use plimsoll_setup::objects::{FoundObjects, Guarded};
use plimsoll_setup::s3::{AdminStore, Reach, ReachTold};
use plimsoll_setup::safety::survey::survey;
use plimsoll_store::StoreError;

use super::engagement::{Engagement, Wishes};
use super::slew::Slew;
use super::{AgentOptions, AgentTime, records};
use crate::error::AgentRefusal;
use crate::frame::own::OwnRecord;
use crate::wire::ends::EndTold;
use crate::wire::entrusted::Entrusted;
use crate::wire::errand::Errand;
use crate::wire::order::{Arm, Assignment};
use crate::wire::tell::{State, Tell, WorkDone, WorkerTold};

/// The load is looked after so often: that it is to stop is known within it.
const LOOK: Duration = Duration::from_millis(50);

pub struct Hands {
    options: AgentOptions,
    time: AgentTime,
    engagement: Arc<Engagement>,
    /// What keys for the storage are sealed to; absent: it takes none.
    sealing: Option<Arc<SealingKey>>,
    work: Option<Work>,
    /// Its part of a network test, from the first order of one on.
    net: Option<NetNode>,
}

/// What there is once the plan was accepted.
struct Work {
    plan: Plan,
    crew: LocalCrew,
    own: OwnRecord,
    host: String,
    armed: Option<Armed>,
    /// Keys of the storage that the conductor sent: here, and nowhere else on this machine.
    entrusted: Entrusted,
    /// Buckets that it asks for its conductor, by target and endpoint.
    errands: BTreeMap<(String, usize), Guarded<AdminStore>>,
    disbanded: bool,
}

/// Workers that are ready.
struct Armed {
    workers: LocalArmed,
    /// On the virtual clock: each slice waits for the conductor.
    in_lockstep: bool,
    /// The run's start on this machine's clock, and the grid's step.
    epoch_ns: u64,
    grid_ns: u64,
}

impl Hands {
    pub fn new(
        options: AgentOptions,
        time: AgentTime,
        engagement: Arc<Engagement>,
        sealing: Option<Arc<SealingKey>>,
    ) -> Self {
        Self { options, time, engagement, sealing, work: None, net: None }
    }

    /// Until nothing more can be ordered; then it cleans up what nobody ordered to be cleaned up.
    pub fn serve(mut self, jobs: &Receiver<(u64, Assignment)>) {
        while let Ok((task, job)) = jobs.recv() {
            self.engagement.enter(state_of(&job));
            let result = self.does(task, job);
            self.engagement.enter(self.rests());
            if let Some(result) = result {
                self.engagement.answer(task, result);
            }
        }
        self.leave();
    }

    fn rests(&self) -> State {
        let armed = self.work.as_ref().is_some_and(|w| w.armed.is_some());
        if armed { State::Armed } else { State::Waiting }
    }

    /// `None`: it has been answered already.
    fn does(&mut self, task: u64, job: Assignment) -> Option<Result<WorkDone, AgentRefusal>> {
        Some(match job {
            Assignment::Hire { plan, .. } => self.hire(&plan),
            Assignment::Entrust { sealed } => self.entrust(&sealed),
            Assignment::Errand(errand) => self.errand(&errand),
            Assignment::Calibrate { duration_ns } => self.calibrate(task, Duration::from_nanos(duration_ns)),
            Assignment::Survey => self.with(|work| Ok(WorkDone::Surveyed(survey(&work.plan)))),
            Assignment::Muster { roll, seat, claims, apart, shared } => {
                let roll = roll.open();
                let no_roll = || AgentRefusal::new("it was told no roll of agents", "Use the same version");
                roll.ok_or_else(no_roll).and_then(|roll| self.muster(roll, seat, (&claims, &apart, shared)))
            }
            Assignment::Watch { epoch_ns } => self.watch(epoch_ns),
            Assignment::MakeReady { stage } => self.make_ready(task, &stage),
            Assignment::Fill { what, workload, first, count } => {
                self.fill(task, &what, &workload, first, count)
            }
            Assignment::Arm(arm) => self.arm(&arm),
            Assignment::Go { at_ns } => return self.go(task, at_ns).err().map(Err),
            Assignment::Net(order) => Ok(self.net(*order)),
            Assignment::Rest => self.with(|work| {
                work.crew.rest();
                Ok(WorkDone::Well)
            }),
            Assignment::Disband { keep } => self.disband(keep),
        })
    }

    fn with(
        &mut self,
        does: impl FnOnce(&mut Work) -> Result<WorkDone, AgentRefusal>,
    ) -> Result<WorkDone, AgentRefusal> {
        does(self.work.as_mut().ok_or_else(|| AgentRefusal::new("it was not hired", ""))?)
    }

    /// A network test bounds itself: to the networks that are allowed here.
    fn net(&mut self, order: NetOrder) -> WorkDone {
        let (bounds, stop) = (&self.options.bounds, self.engagement.interrupt.asked_flag());
        let ahead_ns = self.options.clock_ahead_ns;
        let node = self.net.get_or_insert_with(|| NetNode::new(bounds.nets.clone(), stop).ahead_by(ahead_ns));
        WorkDone::Net(Box::new(node.obey(order)))
    }

    /// The plan inside of our bounds, and a directory of our own.
    fn hire(&mut self, plan: &str) -> Result<WorkDone, AgentRefusal> {
        if plan.is_empty() {
            return Ok(WorkDone::Well);
        }
        self.options.bounds.load()?;
        let plan = Plan::from_toml(plan).map_err(|e| {
            AgentRefusal::new(format!("the plan cannot be read: {e}"), "Use the same version")
        })?;
        self.options.bounds.check(&plan)?;
        records::prune(&self.options);
        let (journal, own) = records::create(&self.options, &self.engagement.run, &plan).map_err(disk)?;
        let journal = Arc::new(Mutex::new(journal));
        let interrupt = self.engagement.interrupt.clone();
        let crew = LocalCrew::new(&plan, &self.options.runs, journal, interrupt);
        self.work = Some(Work {
            plan,
            crew,
            own,
            host: String::new(),
            armed: None,
            entrusted: Entrusted::default(),
            errands: BTreeMap::new(),
            disbanded: false,
        });
        Ok(WorkDone::Well)
    }

    /// Keys of the storage, in place of its own.
    fn entrust(&mut self, sealed: &str) -> Result<WorkDone, AgentRefusal> {
        let Some(key) = self.sealing.clone() else {
            return Err(AgentRefusal::new("it takes no credentials", "Leave --send-credentials out"));
        };
        let engagement = Arc::clone(&self.engagement);
        self.with(|work| {
            let opened = Entrusted::open(sealed, &key, &engagement.run, engagement.session());
            work.entrusted = opened.ok_or_else(|| {
                AgentRefusal::new("the credentials that it was sent are not sealed to it", "Run again")
            })?;
            Ok(WorkDone::Well)
        })
    }

    fn calibrate(&mut self, task: u64, duration: Duration) -> Result<WorkDone, AgentRefusal> {
        self.options.bounds.calibration(duration)?;
        let Some(calibrate) = self.options.calibrate else {
            return Err(AgentRefusal::new("it cannot be calibrated", "Run `plimsoll calibrate` there"));
        };
        let engagement = Arc::clone(&self.engagement);
        let mut tell = |event: Event| {
            if matches!(event, Event::Doing(_)) {
                engagement.say(Tell::Event { task, event });
            }
        };
        let runs = records::base(&self.options);
        match calibrate(duration, &runs, &self.engagement.interrupt, &mut tell) {
            Ok(made) => Ok(WorkDone::Calibrated(Box::new(made))),
            Err(RunError::Interrupted) => {
                Err(AgentRefusal { interrupted: true, ..AgentRefusal::new("interrupted", "") })
            }
            Err(RunError::Input { problem, remedy }) => Err(AgentRefusal::new(problem, remedy)),
            Err(e) => Err(AgentRefusal::new(e.to_string().trim_end_matches('.'), "")),
        }
    }

    /// One call on a bucket of the plan: inside of our bounds, and of what the run may do there.
    fn errand(&mut self, errand: &Errand) -> Result<WorkDone, AgentRefusal> {
        self.options.bounds.check_claims(std::iter::once(&errand.told))?;
        let run = self.engagement.run.clone();
        self.with(|work| {
            let Some(TargetSpec::S3(target)) = work.plan.targets.get(&errand.target) else {
                return Err(AgentRefusal::new(format!("the plan has no bucket '{}'", errand.target), ""));
            };
            if errand.mark.rsplit_once('.').map(|(id, _)| id) != Some(run.as_str()) {
                return Err(AgentRefusal::new("it is asked to act for another run than its own", ""));
            }
            let at = (errand.target.clone(), errand.endpoint);
            if !work.errands.contains_key(&at) {
                // Not the run's own interrupt: what it made is removed after that, too.
                let store = errand.told.bucket(
                    target,
                    errand.endpoint,
                    work.entrusted.keys(&errand.target).as_ref(),
                    &Interrupt::default(),
                );
                let store = store.map_err(CrewError::from)?;
                let guarded = Guarded::new(store, &errand.mark, target.create_bucket);
                work.errands.insert(at.clone(), guarded);
            }
            Ok(WorkDone::Errand(Box::new(errand.run(&work.errands[&at], target))))
        })
    }

    fn muster(
        &mut self,
        roll: Vec<Rolled>,
        seat: u32,
        (claims, apart, shared): (&BTreeMap<String, ReachTold>, &BTreeSet<String>, BTreeMap<String, bool>),
    ) -> Result<WorkDone, AgentRefusal> {
        self.options.bounds.check_claims(claims.values())?;
        // They become names of directories.
        for agent in &roll {
            check_name("agent", &agent.name).map_err(|e| {
                AgentRefusal::new(
                    format!(
                        "one of the roll has no name of an agent: {}",
                        e.to_string().trim_end_matches('.')
                    ),
                    "Use the same version on all machines",
                )
            })?;
        }
        let (bounds, name) = (self.options.bounds.clone(), self.options.name.clone());
        let engagement = Arc::clone(&self.engagement);
        let interrupt = self.engagement.interrupt.clone();
        self.with(|work| {
            let me = roll.get(seat as usize).ok_or_else(|| AgentRefusal::new("it is not in the roll", ""))?;
            work.host.clone_from(&me.host);
            let agents = roll.len() as u64;
            let next = roll[plimsoll_lower::whose_files(&roll, seat) as usize].name.clone();
            work.crew.take_seat(roll, seat);
            work.crew.shares(shared);
            engagement.holds_by(work.crew.shared_hold());
            for target in apart {
                let Some(TargetSpec::Files(files)) = work.plan.targets.get_mut(target) else { continue };
                let common = PathBuf::from(&files.directory);
                let own = own_directory(&common, &name);
                bounds.dir(&own)?;
                work.crew.keeps_files_at(target, &own);
                if work.plan.options.shared {
                    let next = own_directory(&common, &next);
                    bounds.dir(&next)?;
                    work.crew.reads_files_at(target, &next);
                }
                files.directory = own.display().to_string();
            }
            let mut reaches = BTreeMap::new();
            for (name, spec) in &work.plan.targets {
                if let (TargetSpec::S3(s3), Some(told)) = (spec, claims.get(name)) {
                    let reach = {
                        let given = work.entrusted.keys(name);
                        Reach::of_agent(&work.plan, s3, told, given.as_ref(), agents, &interrupt)
                    };
                    reaches.insert(name.clone(), reach.map_err(CrewError::from)?);
                }
            }
            work.crew.muster(reaches)?;
            let names = work.plan.targets.keys();
            let describes = names.map(|name| (name.clone(), work.crew.describe(name))).collect();
            Ok(WorkDone::Mustered { describes })
        })
    }

    /// The run's start on this machine's clock.
    fn epoch_ns(&self, told_ns: u64) -> Result<u64, AgentRefusal> {
        let start = self.time.of_machine(told_ns).filter(|at| *at > 0);
        start.ok_or_else(|| AgentRefusal::new("its machine was started after the run", "Start a new run"))
    }

    fn watch(&mut self, epoch_ns: u64) -> Result<WorkDone, AgentRefusal> {
        let epoch_ns = self.epoch_ns(epoch_ns)?;
        let since_ns = plimsoll_engine::ring::monotonic_ns().saturating_sub(epoch_ns);
        let engagement = Arc::clone(&self.engagement);
        self.with(|work| {
            let host = work.host.clone();
            let sink = move |mut sample: plimsoll_model::Sample| {
                sample.host.clone_from(&host);
                engagement.say(Tell::Sample(Box::new(sample)));
            };
            work.crew.watch(since_ns, Box::new(sink))?;
            Ok(WorkDone::Well)
        })
    }

    fn make_ready(&mut self, task: u64, stage: &Stage) -> Result<WorkDone, AgentRefusal> {
        let engagement = Arc::clone(&self.engagement);
        let mut tell = |event: Event| engagement.say(Tell::Event { task, event });
        self.with(|work| Ok(WorkDone::Ready { findings: work.crew.make_ready(stage, &mut tell)? }))
    }

    fn fill(
        &mut self,
        task: u64,
        what: &str,
        workload: &Workload,
        first: u64,
        count: u64,
    ) -> Result<WorkDone, AgentRefusal> {
        let engagement = Arc::clone(&self.engagement);
        let mut tell = |event: Event| engagement.say(Tell::Event { task, event });
        let fill = Fill { what, workload, first, count };
        self.with(|work| {
            work.crew.fill(&fill, &mut tell)?;
            Ok(WorkDone::Well)
        })
    }

    fn arm(&mut self, arm: &Arm) -> Result<WorkDone, AgentRefusal> {
        let (epoch_ns, clock) = match arm.virtual_ns {
            Some(start_ns) => (0, Clock::Virtual { start_ns }),
            None => (self.epoch_ns(arm.epoch_ns)?, Clock::Real),
        };
        if let Some(why) = self.engagement.hold().taken() {
            return Err(AgentRefusal::new(why, "Look at it there before anything else is written to it"));
        }
        self.engagement.open_stream(arm.index, Duration::from_nanos(arm.frame_ns));
        let found: Vec<Option<FoundObjects>> =
            arm.found.iter().map(|f| f.as_ref().map(FoundObjects::from)).collect();
        let order = StageOrder {
            index: arm.index,
            stage: &arm.stage,
            epoch_ns,
            grid_ns: arm.grid_ns,
            clock,
            found: &found,
        };
        self.with(|work| {
            // One that was not started is not wanted any more.
            work.armed = None;
            let armed = work.crew.arm(&order)?;
            let (earliest_ns, workers) = (armed.earliest_ns(), armed.workers());
            let workers = workers.iter().map(WorkerTold::of).collect();
            let (in_lockstep, grid_ns) = (arm.virtual_ns.is_some(), arm.grid_ns);
            work.armed = Some(Armed { workers: armed, in_lockstep, epoch_ns, grid_ns });
            Ok(WorkDone::Armed { earliest_ns, workers })
        })
    }

    /// Load, from its start to its end.
    fn go(&mut self, task: u64, at_ns: u64) -> Result<(), AgentRefusal> {
        let work = self.work.as_mut().ok_or_else(|| AgentRefusal::new("it was not hired", ""))?;
        let armed =
            work.armed.take().ok_or_else(|| AgentRefusal::new("it has no workers that are ready", ""))?;
        let (in_lockstep, epoch_ns, grid_ns) = (armed.in_lockstep, armed.epoch_ns, armed.grid_ns);
        let load = armed.workers.go(at_ns)?;
        let started_ns = load.started_ns();
        if let Some(grid) = load.grid().filter(|_| !in_lockstep) {
            self.engagement.follow_clock(Slew::new(grid, grid_ns), epoch_ns);
        }
        self.engagement.answer(task, Ok(WorkDone::Going { started_ns }));
        let mut ends = follow(load, &self.engagement, &mut work.own, in_lockstep);
        if let (late_ns @ 1.., Some(first)) = (started_ns.saturating_sub(at_ns), ends.first_mut()) {
            first.note("start", &format!("{:.1} ms later than it was ordered", late_ns as f64 / 1e6));
        }
        self.engagement.stream(|stream| stream.end(ends, &mut work.own));
        Ok(())
    }

    fn disband(&mut self, keep: bool) -> Result<WorkDone, AgentRefusal> {
        self.with(|work| {
            work.armed = None;
            work.disbanded = true;
            Ok(WorkDone::Gone { left: work.crew.disband(keep)? })
        })
    }

    fn leave(&mut self) {
        self.engagement.enter(State::Leaving);
        let keep = self.work.as_ref().is_some_and(|w| w.plan.options.keep);
        if self.work.as_ref().is_some_and(|w| !w.disbanded) {
            // What stays is in the journal, for a cleanup.
            let _ = self.disband(keep);
        }
    }
}

/// An agent's place where others see the same directory: in it, or beside it where it is to be made.
fn own_directory(shared: &Path, agent: &str) -> PathBuf {
    if shared.is_dir() {
        return shared.join(format!("plimsoll.{agent}"));
    }
    let mut name = shared.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{agent}"));
    shared.with_file_name(name)
}

fn disk(e: StoreError) -> AgentRefusal {
    AgentRefusal::new(
        e.to_string().trim_end_matches('.'),
        "Correct that, or start it with another --runs-dir",
    )
}

fn state_of(job: &Assignment) -> State {
    match job {
        Assignment::Hire { .. } => State::Planning,
        Assignment::Entrust { .. }
        | Assignment::Errand(_)
        | Assignment::Survey
        | Assignment::Muster { .. }
        | Assignment::Watch { .. } => State::Mustering,
        Assignment::Calibrate { .. } => State::Running,
        Assignment::MakeReady { .. } | Assignment::Fill { .. } => State::Preparing,
        Assignment::Arm(_) => State::Arming,
        Assignment::Go { .. } => State::Running,
        Assignment::Net(order) if matches!(**order, NetOrder::Run(_)) => State::Running,
        Assignment::Net(_) => State::Preparing,
        Assignment::Rest | Assignment::Disband { .. } => State::Leaving,
    }
}

/// Takes what the workers hand over, until they have ended. On the virtual clock each slice waits until the conductor has taken it:
/// a stop comes at the slice that asked for it, as where there is no network between. Gives how they ended.
fn follow(
    mut load: Box<dyn Load>,
    engagement: &Engagement,
    own: &mut OwnRecord,
    in_lockstep: bool,
) -> Vec<EndTold> {
    let mut told = Told { stop: false, abort: false };
    let mut outputs = 0u64;
    // Who waits for a channel tries again and again before it sleeps: agents by the hundred on one machine would do nothing else. So slices, of
    // which there are few, wait a while, and a wish of the conductor's does not. Traces come by the thousand.
    let mut at_once = in_lockstep;
    while let Some(arrival) = load.next(if at_once { LOOK } else { Duration::ZERO }) {
        let is_all = matches!(arrival, Arrival::Nothing);
        if let Arrival::Output(mut output) = arrival {
            outputs += 1;
            at_once |= matches!(output, Output::Trace(_));
            engagement.date(|slew| slew.date(&mut output));
            let is_slice = matches!(output, Output::Interval { .. });
            engagement.stream(|stream| {
                stream.put(&output, own);
                if in_lockstep && is_slice {
                    stream.cut_now(own);
                }
            });
            if in_lockstep && is_slice {
                engagement.wait_until_taken(outputs);
            }
            told.pass_on(engagement, load.as_mut());
            load.recycle(Arrival::Output(output));
        }
        told.pass_on(engagement, load.as_mut());
        engagement.stream(|stream| stream.cut_if_due(own));
        if is_all && !at_once {
            engagement.wait_for_wish(told.wishes(), LOOK);
        }
    }
    let mut ends = load.join();
    engagement.date(|slew| ends.iter_mut().for_each(|e| slew.date_end(e)));
    ends.iter().map(EndTold::from).collect()
}

/// What a load was told already.
struct Told {
    stop: bool,
    abort: bool,
}

impl Told {
    fn wishes(&self) -> Wishes {
        Wishes { stop: self.stop, abort: self.abort }
    }

    fn pass_on(&mut self, engagement: &Engagement, load: &mut dyn Load) {
        let wishes = engagement.wishes();
        if wishes.stop && !std::mem::replace(&mut self.stop, true) {
            load.stop();
        }
        if wishes.abort && !std::mem::replace(&mut self.abort, true) {
            load.abort();
        }
    }
}
