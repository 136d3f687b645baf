//! One stage: workers start, their slices are merged and stored, live figures go out, and it ends in order.

mod grid;
mod meter;
mod port;
mod report;

use std::time::{Duration, Instant};

use grid::GridMerge;
use meter::Meter;
use plimsoll_control::{Controller, Observation, Remark, Slice};
use plimsoll_engine::{Clock, Output, RunningStage, StageSpec, WorkerEnd, WorkerSpec};
use plimsoll_model::event::{Event, Live, Phase};
use plimsoll_model::plan::Stage;
use plimsoll_model::{Finding, Interval, Series};
use plimsoll_setup::Interrupt;
use plimsoll_store::{Mark, StreamWriter};

use crate::error::RunError;
use crate::remark::clock_time;
use crate::trace::{Names, TraceWriter};

pub use port::{Port, Step};

/// Live figures go out this often.
const LIVE_EVERY: Duration = Duration::from_millis(250);
/// After the stop, ops in flight may take this long until they are cancelled.
const DRAIN_LIMIT: Duration = Duration::from_secs(60);
/// And this long when the user is waiting for the end.
const INTERRUPTED_DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// Whoever ends a run is told what is still waited for, once it is more than a moment.
const TELL_AFTER: Duration = Duration::from_millis(500);

/// What a stage is run with.
pub struct Setting<'a> {
    pub index: u32,
    pub stage: &'a Stage,
    pub workers: Vec<WorkerSpec>,
    /// Names of the endpoints, per workload.
    pub endpoints: Vec<Vec<String>>,
    /// What was found out while the targets were made ready.
    pub findings: Vec<Finding>,
    pub epoch_ns: u64,
    pub grid_ns: u64,
    pub clock: Clock,
    pub warmup_ns: u64,
    /// Planned length of the load, warm-up included.
    pub planned_ns: Option<u64>,
    /// How many stages there will be.
    pub of: Option<u32>,
    /// Stages of a killed run that count again: what is shown is the place among those that are kept.
    pub again: u32,
}

/// Where a stage's data goes.
pub struct Sinks<'a> {
    pub intervals: &'a mut StreamWriter,
    pub trace: Option<(&'a mut TraceWriter, &'a dyn Names)>,
    pub events: &'a mut dyn FnMut(Event),
    pub interrupt: Interrupt,
}

/// How a stage ended.
#[derive(Debug)]
pub struct StageEnd {
    pub observation: Observation,
    pub interrupted: bool,
    /// Of the last op, nanoseconds since the epoch.
    pub end_ns: u64,
    /// `Server` headers and other facts, name to value, as the workers found them.
    pub facts: Vec<(String, String)>,
    pub ring: String,
}

/// Runs one stage to its end. The controller may end it early.
pub fn run(
    s: Setting<'_>,
    sinks: &mut Sinks<'_>,
    controller: &mut dyn Controller,
) -> Result<StageEnd, RunError> {
    let mut workers = s.workers.clone();
    let count = workers.len();
    workers.iter_mut().for_each(|w| w.stage = s.index);
    let spec = StageSpec {
        epoch_ns: s.epoch_ns,
        grid_ns: s.grid_ns,
        clock: s.clock,
        late_tolerance_ns: 10_000_000,
        workers,
    };
    let interrupt = sinks.interrupt;
    let running = plimsoll_engine::start_unless(spec, &|| interrupt.is_requested()).map_err(engine_error)?;
    let start_ns = running.started_ns();
    sinks.intervals.mark(&Mark::StageStart {
        stage: s.index,
        at_ns: start_ns,
        spec: Box::new(s.stage.clone()),
        endpoints: s.endpoints.clone(),
        workers: count as u32,
        ring: String::new(),
    })?;
    let mut collector = Collector::new(&s, start_ns, count);
    let ends = collector.collect(running, sinks, controller)?;
    collector.finish(ends, sinks)
}

pub fn engine_error(e: plimsoll_engine::EngineError) -> RunError {
    // Most of its messages end with what to use instead: that is the remedy.
    let text = e.to_string();
    let split = ["; use ", ": use "].into_iter().find_map(|at| text.rsplit_once(at));
    match split {
        Some((problem, other)) => RunError::input(problem, format!("Use {other}")),
        None => RunError::Engine(text),
    }
}

/// Follows a running stage.
struct Collector<'a> {
    s: &'a Setting<'a>,
    start_ns: u64,
    warm_ns: u64,
    merge: GridMerge,
    meter: Meter,
    /// Slices of the measured window, merged, for the controller.
    window: Interval,
    /// How many they are.
    window_slices: u64,
    slices: Vec<Slice>,
    warm_marked: bool,
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
    fn new(s: &'a Setting<'a>, start_ns: u64, workers: usize) -> Self {
        let first_slice = start_ns / s.grid_ns;
        Self {
            s,
            start_ns,
            warm_ns: start_ns + s.warmup_ns,
            merge: GridMerge::new(workers, first_slice),
            meter: Meter::new(s.grid_ns),
            window: Interval::empty(0),
            window_slices: 0,
            slices: Vec::new(),
            warm_marked: false,
            first_slice,
            next_slice: first_slice,
            phase_since: Instant::now(),
            last_live: Instant::now(),
            stopping: None,
            cut: u64::MAX,
            behind: Slice::default(),
            interrupted: false,
            told_of_wait: false,
            most_in_flight: s.workers.iter().map(|w| u64::from(w.slots)).sum(),
            stopped_early: false,
        }
    }

    fn collect(
        &mut self,
        running: RunningStage,
        sinks: &mut Sinks<'_>,
        controller: &mut dyn Controller,
    ) -> Result<Vec<WorkerEnd>, RunError> {
        let ids: Vec<u16> = self.s.workers.iter().map(|w| w.worker).collect();
        assert!(ids.is_sorted(), "workers are numbered as they come");
        let at = |worker: u16| ids.binary_search(&worker).expect("a slice is of a worker of this stage");
        let mut port = Port::new(running);
        while let Some(step) = port.next(Duration::from_millis(50)) {
            if let Step::Output(output) = &step {
                self.take(output, at, sinks)?;
            }
            let go_on = self.store(sinks, controller)?;
            if !go_on && self.stopping.is_none() {
                port.stop();
                self.stopping = Some((Instant::now(), false));
                self.cut = self.cut.min(self.next_slice);
                self.stopped_early = true;
            }
            self.obey(sinks, &mut port);
            // Only now: simulated workers wait for it, and so a stop comes at the slice that asked for it.
            if let Step::Output(output) = step {
                port.recycle(output);
            }
            self.show(sinks);
        }
        let ends = port.join();
        (0..ids.len()).for_each(|i| self.merge.ended(i));
        self.store(sinks, controller)?;
        sinks.intervals.flush()?;
        Ok(ends)
    }

    fn take(
        &mut self,
        output: &Output,
        at: impl Fn(u16) -> usize,
        sinks: &mut Sinks<'_>,
    ) -> Result<(), RunError> {
        match output {
            Output::Interval { worker, interval } => self.merge.offer(at(*worker), interval),
            Output::Trace(chunk) => {
                if let Some((writer, names)) = &mut sinks.trace {
                    for record in chunk.records.iter().filter(|r| self.is_measured(r.done_ns)) {
                        writer.record(record, *names);
                    }
                }
            }
        }
        Ok(())
    }

    /// Stores the slices that are complete. False: the controller has seen enough.
    fn store(&mut self, sinks: &mut Sinks<'_>, controller: &mut dyn Controller) -> Result<bool, RunError> {
        let mut go_on = true;
        while let Some(slice) = self.merge.take_complete() {
            let (begin_ns, end_ns) = (slice.index * self.s.grid_ns, (slice.index + 1) * self.s.grid_ns);
            if !self.warm_marked && begin_ns >= self.warm_ns {
                sinks.intervals.mark(&Mark::WarmupEnd { stage: self.s.index, at_ns: self.warm_ns })?;
                self.warm_marked = true;
                self.enter(Phase::Measuring);
            }
            sinks.intervals.interval(self.s.index, &slice)?;
            if slice.index < self.next_slice {
                self.take_late(slice);
                continue;
            }
            // Workers that all wait through a slice hand over nothing for it: time passed all the same.
            for index in self.next_slice..slice.index {
                self.meter.pass();
                self.window_slices += u64::from(self.in_window(index));
                go_on &= controller.slice(&Slice::default());
            }
            self.meter.add(&slice);
            if self.in_window(slice.index) {
                self.window.merge(&slice);
                self.window_slices += 1;
            }
            if self.stopping.is_none() && begin_ns >= self.planned_end_ns() {
                self.enter(Phase::Draining);
            }
            let counts = counts_of(&slice);
            self.next_slice = slice.index + 1;
            self.put(slice.index, counts);
            go_on &= controller.slice(&plus(std::mem::take(&mut self.behind), &counts));
            while let Some(r) = controller.remark() {
                sinks.intervals.mark(&Mark::Note { at_ns: end_ns, text: r.text.clone() })?;
                let event = if r.is_progress { Event::Doing } else { Event::Message };
                (sinks.events)(event(self.on_the_wall(r, end_ns)));
            }
            self.merge.recycle(slice);
        }
        Ok(go_on)
    }

    /// A part of a slice that was given out already: its counts belong to that slice, whose time is counted.
    fn take_late(&mut self, slice: Interval) {
        let counts = counts_of(&slice);
        self.meter.add_late(&slice);
        if self.in_window(slice.index) {
            self.window.merge(&slice);
        }
        self.put(slice.index, counts);
        self.behind = plus(self.behind, &counts);
        self.merge.recycle(slice);
    }

    /// The remark with the time of day of what it is about, where that has one. It is told and not recorded: a simulated run is the same
    /// whenever it is made, and has no such time.
    fn on_the_wall(&self, r: Remark, now_ns: u64) -> String {
        let about = r.about_s.filter(|_| self.s.clock == Clock::Real);
        let Some(about_s) = about else { return r.text };
        let ago_s = now_ns as f64 / 1e9 - (self.start_ns as f64 / 1e9 + about_s);
        format!("{} (at {})", r.text, clock_time(Duration::from_secs_f64(ago_s.max(0.0))))
    }

    fn planned_end_ns(&self) -> u64 {
        self.s.planned_ns.map_or(u64::MAX, |p| self.start_ns + p)
    }

    /// Whether a slice counts: all of it lies behind the warm-up and before the end, however late it comes.
    fn in_window(&self, index: u64) -> bool {
        let (begin_ns, end_ns) = (index * self.s.grid_ns, (index + 1) * self.s.grid_ns);
        begin_ns >= self.warm_ns && end_ns <= self.planned_end_ns() && index < self.cut
    }

    /// Whether what ended then is in the figures, as far as that is known before the end: not in the warm-up, and not in the drain
    /// after a planned end.
    fn is_measured(&self, done_ns: u64) -> bool {
        let begin_ns = done_ns / self.s.grid_ns * self.s.grid_ns;
        begin_ns >= self.warm_ns && begin_ns + self.s.grid_ns <= self.planned_end_ns()
    }

    /// Slices have their place by number: one in which nothing was seen is empty, not missing.
    fn put(&mut self, index: u64, counts: Slice) {
        let at = index.saturating_sub(self.first_slice) as usize;
        if self.slices.len() <= at {
            self.slices.resize(at + 1, Slice::default());
        }
        self.slices[at] = plus(self.slices[at], &counts);
    }

    fn enter(&mut self, phase: Phase) {
        if self.meter.phase() != phase {
            self.meter.enter(phase);
            self.phase_since = Instant::now();
        }
    }

    /// An interrupt ends the stage in order; a drain without end cancels what is in flight.
    fn obey(&mut self, sinks: &mut Sinks<'_>, port: &mut Port) {
        if sinks.interrupt.is_requested() && !self.interrupted {
            self.interrupted = true;
            // A simulated stage is interrupted where it is; a real one now.
            self.cut = self.cut.min(match self.s.clock {
                Clock::Real => self.now_ns() / self.s.grid_ns,
                _ => self.next_slice,
            });
            port.stop();
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
                port.abort();
                *aborted = true;
            } else if self.interrupted && !self.told_of_wait && since.elapsed() > TELL_AFTER {
                self.told_of_wait = true;
                (sinks.events)(Event::Message(format!(
                    "ops in flight (up to {}) are waited for, {} s at most; Ctrl-C again gives them up now",
                    self.most_in_flight,
                    limit.as_secs()
                )));
            }
        }
    }

    /// The planned end is past: from now on the limit of the drain counts.
    fn overdue(&self) -> bool {
        self.s.clock == Clock::Real && self.s.planned_ns.is_some_and(|p| self.now_ns() > self.start_ns + p)
    }

    /// Nanoseconds since the run's epoch.
    fn now_ns(&self) -> u64 {
        plimsoll_engine::ring::monotonic_ns().saturating_sub(self.s.epoch_ns)
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
            stage: self.s.index - self.s.again,
            stages: self.s.of,
            title: title(self.s.stage),
            elapsed,
            remaining: length.map(|l| Duration::from_nanos(l).saturating_sub(elapsed)),
            figures: self.meter.figures(),
            late: self.merge.late(),
            workers: self.s.workers.len(),
        })));
    }

    /// The marks of the end, and what the controller gets.
    fn finish(mut self, ends: Vec<WorkerEnd>, sinks: &mut Sinks<'_>) -> Result<StageEnd, RunError> {
        let (stop_ns, reason) = report::stop_of(&ends, self.stopped_early);
        let end_ns = ends.iter().map(|e| e.finished_ns).max().unwrap_or(self.start_ns).max(stop_ns);
        let stage = self.s.index;
        if !self.warm_marked && stop_ns > self.warm_ns {
            sinks.intervals.mark(&Mark::WarmupEnd { stage, at_ns: self.warm_ns })?;
        }
        let mut report = report::of(&ends, self.s.stage.workloads.len());
        report.findings.clone_from(&self.s.findings);
        let (ring, facts) = (report.ring.clone(), report::facts(&ends));
        sinks.intervals.mark(&Mark::StopRequested { stage, at_ns: stop_ns, reason })?;
        sinks.intervals.mark(&Mark::StageReport { stage, at_ns: end_ns, report: Box::new(report) })?;
        if let Some(error) = ends.iter().find_map(|e| e.error.clone()) {
            let reason = error.to_string();
            sinks.intervals.mark(&Mark::StageVoid { stage, at_ns: end_ns, reason: reason.clone() })?;
            return Err(engine_error(error));
        }
        sinks.intervals.mark(&Mark::StageEnd { stage, at_ns: end_ns })?;
        let series = std::mem::take(&mut self.window.series);
        let sum = |f: fn(&Series) -> u64| series.iter().map(f).sum::<u64>();
        // What the series cover: the slices at the edges are not whole.
        let window_s = (self.window_slices * self.s.grid_ns) as f64 / 1e9;
        (sinks.events)(Event::StageDone {
            stage: stage - self.s.again,
            of: self.s.of,
            title: title(self.s.stage),
            ok: sum(Series::ok),
            throttled: sum(Series::throttled),
            failed: sum(Series::failed),
            seconds: window_s,
        });
        let client = &self.window.client;
        let alive = client.alive_ns as f64;
        let observation = Observation {
            stage: self.s.stage.clone(),
            window_s,
            busy_fraction: if alive > 0.0 {
                (1.0 - client.waited_ns as f64 / alive).clamp(0.0, 1.0)
            } else {
                0.0
            },
            series,
            start_s: self.start_ns as f64 / 1e9,
            end_s: end_ns as f64 / 1e9,
            window_start_s: self.warm_ns as f64 / 1e9,
            slice_s: self.s.grid_ns as f64 / 1e9,
            slices: self.slices,
        };
        Ok(StageEnd { observation, interrupted: self.interrupted, end_ns, facts, ring })
    }
}

fn counts_of(slice: &Interval) -> Slice {
    let mut c = Slice { in_flight_ns: slice.client.in_flight_ns, ..Slice::default() };
    for s in &slice.series {
        c.ok += s.ok();
        c.throttled += s.throttled();
        c.failed += s.failed();
        c.bytes_moved += s.bytes_moved;
        c.bytes_ok += s.bytes_ok;
        c.in_system_ns += s.in_system_ns;
    }
    c
}

fn plus(a: Slice, b: &Slice) -> Slice {
    Slice {
        ok: a.ok + b.ok,
        throttled: a.throttled + b.throttled,
        failed: a.failed + b.failed,
        bytes_moved: a.bytes_moved + b.bytes_moved,
        bytes_ok: a.bytes_ok + b.bytes_ok,
        in_system_ns: a.in_system_ns + b.in_system_ns,
        in_flight_ns: a.in_flight_ns + b.in_flight_ns,
    }
}

/// A stage in few words.
pub fn title(stage: &Stage) -> String {
    stage
        .name
        .clone()
        .unwrap_or_else(|| stage.workloads.iter().map(|w| w.name.as_str()).collect::<Vec<_>>().join(" + "))
}
