//! One stage: workers start, their slices are merged and stored, live figures go out, and it ends in order.

mod end;
pub(crate) mod grid;
mod meter;
pub(crate) mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use grid::{GridMerge, joined};
use meter::Meter;
use plimsoll_control::{ControlRemark, Controller, Observation, Slice};
use plimsoll_cost::{MoneyMeter, size_of};
use plimsoll_crew::{Arrival, Crew, Enlisted, FromAgent, Load, StageOrder};
use plimsoll_engine::{Clock, Output, TraceChunk, WorkerEnd};
use plimsoll_lower::Agent;
use plimsoll_model::event::{Event, Live, Phase};
use plimsoll_model::interval::ClientCounts;
use plimsoll_model::plan::{AgentLoss, Stage};
use plimsoll_model::{Finding, Interval, WorkerId};
use plimsoll_setup::Interrupt;
use plimsoll_store::{Mark, SparseInterval};

use crate::error::RunError;
use crate::guard::RunGuard;
use crate::remark::clock_time;
use crate::streams::Streams;
use crate::trace::{Names, TraceWriter};

/// Live figures go out this often.
const LIVE_EVERY: Duration = Duration::from_millis(250);
/// After the stop, ops in flight may take this long until they are cancelled.
const DRAIN_LIMIT: Duration = Duration::from_secs(60);
/// And this long when the user is waiting for the end.
const INTERRUPTED_DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// Whoever ends a run is told what is still waited for, once it is more than a moment.
const TELL_AFTER: Duration = Duration::from_millis(500);

/// What a stage is run with.
pub struct StageSetting<'a> {
    pub order: StageOrder<'a>,
    /// Who carries it out.
    pub roll: Vec<Agent>,
    /// Names of the endpoints, per workload.
    pub endpoints: Vec<Vec<String>>,
    /// What was found out while the targets were made ready.
    pub findings: Vec<Finding>,
    pub warmup_ns: u64,
    /// Planned length of the load, warm-up included.
    pub planned_ns: Option<u64>,
    /// How many stages there will be.
    pub of: Option<u32>,
    /// Stages of a killed run that count again: what is shown is the place among those that are kept.
    pub again: u32,
    pub on_agent_loss: AgentLoss,
}

/// Where a stage's data goes.
pub struct Sinks<'a> {
    pub streams: &'a mut Streams,
    pub trace: Option<(&'a mut TraceWriter, &'a dyn Names)>,
    pub events: &'a mut dyn FnMut(Event),
    pub interrupt: Interrupt,
    /// What was spent, where there is a budget of money.
    pub spent: Option<&'a mut MoneyMeter>,
    /// What ends it for the sake of others.
    pub guard: &'a RunGuard,
}

/// How a stage ended.
#[derive(Debug)]
pub struct StageEnd {
    pub observation: Observation,
    pub interrupted: bool,
    /// An agent was lost, and the run is to end at that, or it was the last.
    pub ended_by_loss: bool,
    /// Nobody kept others away any more from what the load was on: the run ends, for this reason.
    pub unheld: Option<String>,
    /// What was sent came to the budget of money.
    pub ended_by_cost: bool,
    /// A guard wanted the end.
    pub ended_by_guard: bool,
    /// Of the last op, nanoseconds since the epoch.
    pub end_ns: u64,
    /// `Server` headers and other facts, name to value, as the workers found them.
    pub facts: Vec<(String, String)>,
    pub ring: String,
    /// Agents were lost in it.
    pub lost: bool,
}

/// Runs one stage to its end. The controller may end it early.
pub fn run(
    s: StageSetting<'_>,
    crew: &mut dyn Crew,
    sinks: &mut Sinks<'_>,
    controller: &mut dyn Controller,
) -> Result<StageEnd, RunError> {
    let load = crew.start(&s.order)?;
    let start_ns = load.started_ns();
    let workers = load.workers().to_vec();
    let start = |agent| Mark::StageStart {
        stage: s.order.index,
        at_ns: start_ns,
        spec: Box::new(s.order.stage.clone()),
        endpoints: s.endpoints.clone(),
        workers: workers.iter().filter(|w| w.id.agent == agent).count() as u32,
        ring: String::new(),
        slots: workers.iter().filter(|w| w.id.agent == agent).map(|w| w.slots).sum(),
    };
    sinks.streams.mark_each(|agent| Some(start(agent)))?;
    let mut collector = Collector::new(&s, start_ns, workers);
    sinks.guard.begin_stage();
    let ends = collector.collect(load, sinks, controller)?;
    collector.finish(ends, sinks)
}

/// Follows a running stage.
struct Collector<'a> {
    s: &'a StageSetting<'a>,
    start_ns: u64,
    warm_ns: u64,
    workers: Vec<Enlisted>,
    merge: GridMerge,
    /// Agents that were lost, and the end of the last slice that came from all workers of each.
    lost: BTreeMap<u32, u64>,
    ended_by_loss: bool,
    /// In words: nobody kept others away any more from what the load was on.
    unheld: Option<String>,
    ended_by_cost: bool,
    ended_by_guard: bool,
    meter: Meter,
    /// Slices of the measured window, merged, for the controller.
    window: Interval,
    /// What each agent's workers did in them.
    clients: Vec<ClientCounts>,
    /// How many they are.
    window_slices: u64,
    slices: Vec<Slice>,
    /// Agents whose record has the end of the warm-up.
    warm_marked: BTreeSet<u32>,
    first_slice: u64,
    /// The first slice that the controller has not seen.
    next_slice: u64,
    phase_since: Instant,
    last_live: Instant,
    stopping: Option<(Instant, bool)>,
    /// Slices from here on are not of the window: the stage was ended there, by the controller or an interrupt.
    cut: u64,
    /// What came late for slices that the controller has seen: it gets it with the next one.
    behind: Slice,
    interrupted: bool,
    /// Whoever interrupted it knows what is waited for.
    told_of_wait: bool,
    most_in_flight: u64,
    stopped_early: bool,
}

impl<'a> Collector<'a> {
    fn new(s: &'a StageSetting<'a>, start_ns: u64, workers: Vec<Enlisted>) -> Self {
        let first_slice = start_ns / s.order.grid_ns;
        let most_in_flight = workers.iter().map(|w| u64::from(w.slots)).sum();
        Self {
            s,
            start_ns,
            warm_ns: start_ns + s.warmup_ns,
            merge: GridMerge::new(workers.iter().map(|w| w.id.agent).collect(), first_slice),
            lost: BTreeMap::new(),
            ended_by_loss: false,
            unheld: None,
            ended_by_cost: false,
            ended_by_guard: false,
            meter: Meter::new(s.order.grid_ns),
            window: Interval::empty(0),
            clients: vec![ClientCounts::default(); s.roll.len()],
            workers,
            window_slices: 0,
            slices: Vec::new(),
            warm_marked: BTreeSet::new(),
            first_slice,
            next_slice: first_slice,
            phase_since: Instant::now(),
            last_live: Instant::now(),
            stopping: None,
            cut: u64::MAX,
            behind: Slice::default(),
            interrupted: false,
            told_of_wait: false,
            most_in_flight,
            stopped_early: false,
        }
    }

    fn collect(
        &mut self,
        mut load: Box<dyn Load>,
        sinks: &mut Sinks<'_>,
        controller: &mut dyn Controller,
    ) -> Result<Vec<WorkerEnd>, RunError> {
        while let Some(arrival) = load.next(Duration::from_millis(50)) {
            match &arrival {
                Arrival::Output(Output::Interval { worker, interval }) => {
                    self.take_slice(*worker, &interval.to_form());
                }
                Arrival::FromAgent(FromAgent::Interval { worker, interval }) => {
                    self.take_slice(*worker, interval)
                }
                Arrival::Output(Output::Trace(chunk)) | Arrival::FromAgent(FromAgent::Trace(chunk)) => {
                    self.take_trace(chunk, sinks)
                }
                Arrival::Lost { agent, seen_until_ns, why } => {
                    self.lost(*agent, *seen_until_ns, why, sinks)?
                }
                Arrival::Said(text) => self.note(text, sinks)?,
                Arrival::Unheld(why) => {
                    self.note(&format!("{why}: the run ends"), sinks)?;
                    self.unheld.get_or_insert_with(|| why.clone());
                }
                Arrival::Nothing => {}
            }
            let go_on = self.store(sinks, controller)?;
            self.mind_others(sinks)?;
            let is_ended = self.ended_by_loss || self.ended_by_cost || self.ended_by_guard;
            let is_enough = !go_on || is_ended || self.unheld.is_some();
            if is_enough && self.stopping.is_none() {
                load.stop();
                self.stopping = Some((Instant::now(), false));
                self.cut = self.cut.min(self.next_slice);
                self.stopped_early = true;
            }
            // Each op of it may be a loss for somebody.
            if self.unheld.is_some() && !self.stopping.is_some_and(|(_, aborted)| aborted) {
                load.abort();
                self.stopping = Some((Instant::now(), true));
            }
            self.obey(sinks, load.as_mut());
            // Only now: simulated workers wait for it, and so a stop comes at the slice that asked for it.
            load.recycle(arrival);
            self.show(sinks);
        }
        let ends = load.join();
        (0..self.workers.len()).for_each(|i| self.merge.ended(i));
        self.store(sinks, controller)?;
        sinks.streams.flush()?;
        Ok(ends)
    }

    fn take_slice(&mut self, worker: WorkerId, slice: &SparseInterval) {
        let at = self
            .workers
            .binary_search_by_key(&worker, |w| w.id)
            .expect("a slice is of a worker of this stage");
        self.merge.offer(at, slice);
    }

    fn take_trace(&mut self, chunk: &TraceChunk, sinks: &mut Sinks<'_>) {
        if let Some((writer, names)) = &mut sinks.trace {
            for record in chunk.records.iter().filter(|r| self.is_measured(r.done_ns)) {
                writer.record(record, *names);
            }
        }
    }

    /// Nobody waits for an agent that is lost, and the record says from when on it is missing.
    fn lost(
        &mut self,
        agent: u32,
        seen_until_ns: u64,
        why: &str,
        sinks: &mut Sinks<'_>,
    ) -> Result<(), RunError> {
        let its = self.workers.iter().enumerate().filter(|(_, w)| w.id.agent == agent);
        let its: Vec<usize> = its.map(|(i, _)| i).collect();
        // Its last frame may have a slice of one worker and not of the next: until then there is all of it.
        let whole = its.iter().filter_map(|i| self.merge.next_of(*i)).min();
        let whole_ns = whole.map_or(seen_until_ns, |index| index * self.s.order.grid_ns);
        let seen_until_ns = seen_until_ns.min(whole_ns.max(self.start_ns));
        its.into_iter().for_each(|i| self.merge.ended(i));
        self.lost.insert(agent, seen_until_ns);
        let name = self.s.roll[agent as usize].name.clone();
        sinks.streams.mark(&Mark::AgentLost {
            stage: self.s.order.index,
            at_ns: seen_until_ns,
            agent: name.clone(),
        })?;
        let after_s = seen_until_ns.saturating_sub(self.start_ns) as f64 / 1e9;
        let then = match self.s.on_agent_loss {
            AgentLoss::Stop => "the run ends",
            _ if self.is_all_lost() => "it was the last, and the run ends",
            _ => "the others go on with their own part of the load",
        };
        let text =
            format!("agent {name} is lost: no data from it after {after_s:.1} s of load ({why}); {then}");
        (sinks.events)(Event::Message(text));
        self.ended_by_loss |= self.s.on_agent_loss == AgentLoss::Stop;
        Ok(())
    }

    /// On the time axis, and for whoever watches.
    fn note(&self, text: &str, sinks: &mut Sinks<'_>) -> Result<(), RunError> {
        let at_ns = match self.s.order.clock {
            Clock::Real => self.now_ns(),
            Clock::Virtual { .. } => self.next_slice * self.s.order.grid_ns,
        };
        sinks.streams.mark(&Mark::Note { at_ns, text: text.to_owned() })?;
        (sinks.events)(Event::Message(text.to_owned()));
        Ok(())
    }

    /// Nobody is left of those who had a part in the load; and who is lost is lost to all of the run.
    fn is_all_lost(&self) -> bool {
        !self.lost.is_empty() && self.workers.iter().all(|w| self.lost.contains_key(&w.id.agent))
    }

    /// Stores the slices that are complete. False: the controller has seen enough.
    fn store(&mut self, sinks: &mut Sinks<'_>, controller: &mut dyn Controller) -> Result<bool, RunError> {
        let mut go_on = true;
        while let Some(parts) = self.merge.take_complete() {
            let index = parts[0].1.index;
            let (begin_ns, end_ns) = (index * self.s.order.grid_ns, (index + 1) * self.s.order.grid_ns);
            if begin_ns >= self.warm_ns {
                self.enter_window();
            }
            for (agent, part) in &parts {
                // Each agent's record has it where its own slices pass it, however late they come.
                if begin_ns >= self.warm_ns && self.warm_marked.insert(*agent) {
                    sinks.streams.mark_of(*agent, &self.warm())?;
                }
                sinks.streams.interval(*agent, self.s.order.index, part)?;
                if self.in_window(index) {
                    self.clients[*agent as usize].merge(&part.client);
                }
            }
            let slice = joined(parts);
            self.pay(&slice, end_ns, sinks);
            sinks.guard.slice(self.s.order.stage, &slice, begin_ns, end_ns);
            if index < self.next_slice {
                self.take_late(slice);
                continue;
            }
            // Workers that all wait through a slice hand over nothing for it: time passed all the same.
            for index in self.next_slice..index {
                self.meter.pass();
                self.window_slices += u64::from(self.in_window(index));
                go_on &= controller.slice(&Slice::default());
            }
            self.meter.add(&slice);
            if self.in_window(index) {
                self.window.merge(&slice);
                self.window_slices += 1;
            }
            if self.stopping.is_none() && begin_ns >= self.planned_end_ns() {
                self.enter(Phase::Draining);
            }
            let counts = counts_of(&slice);
            self.next_slice = index + 1;
            self.put(index, counts);
            self.behind += counts;
            go_on &= controller.slice(&std::mem::take(&mut self.behind));
            while let Some(r) = controller.remark() {
                sinks.streams.mark(&Mark::Note { at_ns: end_ns, text: r.text.clone() })?;
                let event = if r.is_progress { Event::Doing } else { Event::Message };
                (sinks.events)(event(self.on_the_wall(r, end_ns)));
            }
        }
        Ok(go_on)
    }

    /// What a slice sent is paid, whatever became of it. The stage ends where that comes to the budget.
    fn pay(&mut self, slice: &Interval, end_ns: u64, sinks: &mut Sinks<'_>) {
        let Some(money) = &mut sinks.spent else { return };
        for s in &slice.series {
            let Some(w) = self.s.order.stage.workloads.get(usize::from(s.id.workload)) else { continue };
            let law = u64::from(self.s.order.index) << 16 | u64::from(s.id.workload);
            money.sent(s.id.kind, law, &size_of(s.id.kind, w), s.counts.started, s.counts.bytes_moved);
        }
        if self.ended_by_cost {
            return;
        }
        if let Some(spent) = money.over(end_ns as f64 / 1e9) {
            self.ended_by_cost = true;
            (sinks.events)(Event::Message(format!("the budget is used up: {spent}; the run ends")));
        }
    }

    /// A guard that saw what it was to see ends the stage, and the run.
    fn mind_others(&mut self, sinks: &mut Sinks<'_>) -> Result<(), RunError> {
        match sinks.guard.tripped().filter(|_| !self.ended_by_guard) {
            Some(tripped) => {
                self.ended_by_guard = true;
                self.note(&format!("stopped by {}: the run ends", tripped.words()), sinks)
            }
            None => Ok(()),
        }
    }

    /// A mark for an agent's record. That of one that is lost ends where it was lost: what its workers did after that is not known.
    fn of_agent(&self, agent: u32, mark: Mark) -> Option<Mark> {
        (!self.lost.contains_key(&agent)).then_some(mark)
    }

    /// The measured window has begun.
    fn enter_window(&mut self) {
        if self.meter.phase() == Phase::Warmup {
            self.enter(Phase::Measuring);
        }
    }

    fn warm(&self) -> Mark {
        Mark::WarmupEnd { stage: self.s.order.index, at_ns: self.warm_ns }
    }

    /// A part of a slice that was given out already: its counts belong to that slice, whose time is counted.
    fn take_late(&mut self, slice: Interval) {
        let counts = counts_of(&slice);
        self.meter.add_late(&slice);
        if self.in_window(slice.index) {
            self.window.merge(&slice);
        }
        self.put(slice.index, counts);
        self.behind += counts;
    }

    /// The remark with the time of day of what it is about, where that has one. It is told and not recorded: a simulated run is the same
    /// whenever it is made, and has no such time.
    fn on_the_wall(&self, r: ControlRemark, now_ns: u64) -> String {
        let about = r.about_s.filter(|_| self.s.order.clock == Clock::Real);
        let Some(about_s) = about else { return r.text };
        let ago_s = now_ns as f64 / 1e9 - (self.start_ns as f64 / 1e9 + about_s);
        format!("{} (at {})", r.text, clock_time(Duration::from_secs_f64(ago_s.max(0.0))))
    }

    fn planned_end_ns(&self) -> u64 {
        self.s.planned_ns.map_or(u64::MAX, |p| self.start_ns + p)
    }

    /// Whether a slice counts: all of it lies behind the warm-up and before the end, however late it comes.
    fn in_window(&self, index: u64) -> bool {
        let (begin_ns, end_ns) = (index * self.s.order.grid_ns, (index + 1) * self.s.order.grid_ns);
        begin_ns >= self.warm_ns && end_ns <= self.planned_end_ns() && index < self.cut
    }

    /// Whether what ended then is in the figures, as far as that is known before the end: not in the warm-up, and not in the drain
    /// after a planned end.
    fn is_measured(&self, done_ns: u64) -> bool {
        let begin_ns = done_ns / self.s.order.grid_ns * self.s.order.grid_ns;
        begin_ns >= self.warm_ns && begin_ns + self.s.order.grid_ns <= self.planned_end_ns()
    }

    /// Slices have their place by number: one in which nothing was seen is empty, not missing.
    fn put(&mut self, index: u64, counts: Slice) {
        let at = index.saturating_sub(self.first_slice) as usize;
        if self.slices.len() <= at {
            self.slices.resize(at + 1, Slice::default());
        }
        self.slices[at] += counts;
    }

    fn enter(&mut self, phase: Phase) {
        if self.meter.phase() != phase {
            self.meter.enter(phase);
            self.phase_since = Instant::now();
        }
    }

    /// An interrupt ends the stage in order; a drain without end cancels what is in flight.
    fn obey(&mut self, sinks: &mut Sinks<'_>, load: &mut dyn Load) {
        if sinks.interrupt.is_requested() && !self.interrupted {
            self.interrupted = true;
            // A simulated stage is interrupted where it is; a real one now.
            self.cut = self.cut.min(match self.s.order.clock {
                Clock::Real => self.now_ns() / self.s.order.grid_ns,
                _ => self.next_slice,
            });
            load.stop();
            self.stopping.get_or_insert((Instant::now(), false));
            self.enter(Phase::Draining);
        }
        if self.stopping.is_none() && self.overdue() {
            self.stopping = Some((Instant::now(), false));
        }
        let limit = if self.interrupted { INTERRUPTED_DRAIN_LIMIT } else { DRAIN_LIMIT };
        if let Some((since, aborted)) = &mut self.stopping
            && !*aborted
        {
            if since.elapsed() > limit || sinks.interrupt.is_enough() {
                load.abort();
                *aborted = true;
            } else if self.interrupted && !self.told_of_wait && since.elapsed() > TELL_AFTER {
                self.told_of_wait = true;
                (sinks.events)(Event::Message(format!(
                    "waiting for ops in flight (up to {}), for at most {} s; press Ctrl-C again to abandon them",
                    self.most_in_flight,
                    limit.as_secs()
                )));
            }
        }
    }

    /// The planned end is past: from now on the limit of the drain counts.
    fn overdue(&self) -> bool {
        self.s.order.clock == Clock::Real
            && self.s.planned_ns.is_some_and(|p| self.now_ns() > self.start_ns + p)
    }

    /// Nanoseconds since the run's epoch.
    fn now_ns(&self) -> u64 {
        plimsoll_engine::ring::monotonic_ns().saturating_sub(self.s.order.epoch_ns)
    }

    fn show(&mut self, sinks: &mut Sinks<'_>) {
        if self.last_live.elapsed() < LIVE_EVERY {
            return;
        }
        self.last_live = Instant::now();
        let elapsed = self.phase_since.elapsed();
        let length = match self.meter.phase() {
            Phase::Warmup => Some(self.s.warmup_ns),
            Phase::Measuring => self.s.planned_ns.map(|p| p.saturating_sub(self.s.warmup_ns)),
            Phase::Draining => None,
        };
        (sinks.events)(Event::Live(Box::new(Live {
            phase: self.meter.phase(),
            stage: self.s.order.index - self.s.again,
            stages: self.s.of,
            title: title(self.s.order.stage),
            elapsed,
            remaining: length.map(|l| Duration::from_nanos(l).saturating_sub(elapsed)),
            figures: self.meter.figures(),
            late: self.merge.late(),
            workers: self.workers.len(),
            lost: self.lost.len(),
            agents: self.s.roll.len(),
        })));
    }
}

fn counts_of(slice: &Interval) -> Slice {
    let mut c = Slice { in_flight_ns: slice.client.in_flight_ns, ..Slice::default() };
    for s in &slice.series {
        c += Slice::from(&s.counts);
    }
    c
}

/// A stage in few words.
pub fn title(stage: &Stage) -> String {
    stage
        .name
        .clone()
        .unwrap_or_else(|| stage.workloads.iter().map(|w| w.name.as_str()).collect::<Vec<_>>().join(" + "))
}
