//! Starts a stage's workers, each in a thread of its own, and lets them be followed.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded, never};
use plimsoll_model::{Interval, OpKind, WorkerId};

use crate::api::{Clock, Output, StageSpec, StopCause, TargetConfig, WorkerEnd, WorkerSpec};
use crate::error::EngineError;
use crate::grid::SliceGrid;
use crate::launch::{self, Setting};
use crate::recorder::{Outlet, SPARE_SLICES, spares};
use crate::ring::monotonic_ns;
use crate::underway::Underway;
use crate::worker::Control;

/// From the last worker's being ready to the first op: all threads are awake by then.
const HEAD_START_NS: u64 = 2_000_000;
/// Full slices and trace chunks that can wait for the collector, per worker.
const BACKLOG: usize = 256;
/// And of all workers, as long as there is room for the slices that each has: a gigabyte or so where latencies are as usual (guess).
const MOST_BACKLOG: usize = 1 << 14;
/// Slices in advance of all workers: with few, each has [`SPARE_SLICES`], with many, two.
const ALL_SPARES: usize = 256;
/// How often a stage that musters asks whether it is still wanted.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// Empty slices that each of so many workers starts with: half a megabyte and more each.
pub fn spare_slices(workers: usize) -> usize {
    (ALL_SPARES / workers.max(1)).clamp(2, SPARE_SLICES)
}

/// A stage at work. Take its output until it ends, give each piece back, then `join`. One that is dropped before is cancelled: a load
/// must not go on behind the back of who started it, into the cleanup.
#[derive(Debug)]
pub struct RunningStage {
    started_ns: u64,
    grid: Arc<SliceGrid>,
    controls: Controls,
    full: Receiver<Output>,
    /// In order of the workers.
    empties: Vec<(WorkerId, Sender<Output>)>,
    threads: Vec<JoinHandle<Vec<WorkerEnd>>>,
}

/// What the workers of each agent are told: one of them may be stopped by itself, where a simulation runs several in one process.
type Controls = BTreeMap<u32, Arc<Control>>;

/// A stage whose workers are ready and wait for the time at which they start. One that is dropped ends without an op.
#[derive(Debug)]
pub struct ArmedStage {
    /// Taken when it starts.
    running: Option<RunningStage>,
    waiting: Waiting,
}

#[derive(Debug)]
enum Waiting {
    /// Threads at their start line.
    Real { line: Arc<StartLine>, epoch_ns: u64 },
    /// Workers of the virtual clock, which has no time to wait for.
    Virtual(Option<Box<VirtualStage>>),
}

#[derive(Debug)]
struct VirtualStage {
    spec: StageSpec,
    grid: Arc<SliceGrid>,
    stands_at_ns: u64,
    outlets: Vec<Outlet>,
}

/// What came next.
#[derive(Debug)]
pub enum Next {
    /// To be given back with [`RunningStage::recycle`].
    Output(Output),
    /// Nothing yet.
    Nothing,
    /// All workers have ended, and all of their output was taken.
    Ended,
}

/// When the workers start: once all are ready, or once the stage is not wanted any more.
#[derive(Debug)]
pub(crate) struct StartLine {
    state: Mutex<Muster>,
    /// Who starts waits for this; the workers wait for `gone`: each that is ready wakes one thread, not all.
    readied: Condvar,
    gone: Condvar,
    grid_ns: u64,
}

#[derive(Debug, Default)]
struct Muster {
    ready: usize,
    /// Since the epoch.
    start_ns: Option<u64>,
}

impl StartLine {
    fn new(grid_ns: u64) -> Self {
        Self { state: Mutex::default(), readied: Condvar::new(), gone: Condvar::new(), grid_ns }
    }

    fn state(&self) -> MutexGuard<'_, Muster> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker is ready: waits for the start, and gives its time since the epoch.
    pub(crate) fn wait(&self) -> u64 {
        let mut state = self.state();
        state.ready += 1;
        self.readied.notify_one();
        loop {
            if let Some(start_ns) = state.start_ns {
                return start_ns;
            }
            state = self.gone.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until `workers` are ready or `unwanted` says so.
    fn muster(&self, workers: usize, unwanted: &dyn Fn() -> bool) {
        let mut state = self.state();
        while state.ready < workers && !unwanted() {
            state = self.readied.wait_timeout(state, ASK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The earliest time at which workers that are told of it now are all awake. It is an edge of the grid: a first slice in which the
    /// load is on for a part only would count as a whole one, and a bucket seem smaller by what it refills in the rest.
    fn earliest_ns(&self, epoch_ns: u64) -> u64 {
        (monotonic_ns() - epoch_ns + HEAD_START_NS).next_multiple_of(self.grid_ns)
    }

    /// Tells the workers when to start.
    fn go(&self, start_ns: u64) {
        self.state().start_ns = Some(start_ns);
        self.gone.notify_all();
    }
}

/// Starts the stage. What can be checked is checked before a thread is made; what a worker finds only in
/// its own thread (a device that refuses) is in its [`WorkerEnd::error`].
pub fn start(spec: StageSpec) -> Result<RunningStage, EngineError> {
    start_unless(spec, &|| false)
}

/// Starts the stage as soon as all workers are ready, unless it becomes unwanted before: then it ends without an op, and those
/// that were not made yet are not made.
pub fn start_unless(spec: StageSpec, unwanted: &dyn Fn() -> bool) -> Result<RunningStage, EngineError> {
    arm_unless(spec, unwanted)?.go(0)
}

/// Makes the workers of a stage and waits until all are ready, or until it is not wanted any more.
pub fn arm_unless(spec: StageSpec, unwanted: &dyn Fn() -> bool) -> Result<ArmedStage, EngineError> {
    check(&spec)?;
    let controls: Controls = spec.workers.iter().map(|w| (w.worker.agent, Arc::default())).collect();
    let count = spec.workers.len();
    let own_slices = spare_slices(count);
    let (full, collected) = bounded((BACKLOG * count).min(MOST_BACKLOG.max(4 * SPARE_SLICES * count)));
    let mut empties = Vec::with_capacity(spec.workers.len());
    let mut outlets = Vec::with_capacity(spec.workers.len());
    for w in &spec.workers {
        // Making them takes a while where they are thousands.
        if unwanted() {
            stop_all(&controls);
        }
        // Room for all that a worker began with. Slices that were added while the collector lagged go when they come back: they would
        // be carried along for the rest of the run.
        let (back, empty) = bounded(2 * own_slices);
        let lockstep = matches!(spec.clock, Clock::Virtual { .. });
        // In lockstep one slice is out at a time, and the first that is handed over needs one to go on in.
        for spare in spares(w, if lockstep { 1 } else { own_slices }) {
            let _ = back.try_send(spare);
        }
        empties.push((w.worker, back));
        outlets.push(Outlet { full: full.clone(), empty, lockstep });
    }
    drop(full);
    let grid = Arc::new(SliceGrid::new(spec.grid_ns));
    let (threads, waiting) = match spec.clock {
        Clock::Virtual { start_ns } => {
            let stage = VirtualStage { spec, grid: Arc::clone(&grid), stands_at_ns: start_ns, outlets };
            (Vec::new(), Waiting::Virtual(Some(Box::new(stage))))
        }
        Clock::Real => {
            let line = Arc::new(StartLine::new(spec.grid_ns));
            let threads = spawn_real(&spec, &grid, outlets, &controls, &line, unwanted)?;
            (threads, Waiting::Real { line, epoch_ns: spec.epoch_ns })
        }
    };
    let running = RunningStage { started_ns: 0, grid, controls, full: collected, empties, threads };
    Ok(ArmedStage { running: Some(running), waiting })
}

fn stop_all(controls: &Controls) {
    controls.values().for_each(|c| c.stop.store(true, Relaxed));
}

impl ArmedStage {
    /// The earliest time since the epoch at which it can start, if it is told of it now.
    pub fn earliest_ns(&self) -> u64 {
        match &self.waiting {
            Waiting::Real { line, epoch_ns } => line.earliest_ns(*epoch_ns),
            Waiting::Virtual(stage) => stage.as_ref().map_or(0, |s| s.stands_at_ns),
        }
    }

    /// Starts it at a time since the epoch, an edge of the grid, or as early as it can where that is later.
    pub fn go(mut self, at_ns: u64) -> Result<RunningStage, EngineError> {
        let start_ns = self.earliest_ns().max(at_ns);
        let mut running = self.running.take().expect("an armed stage starts once");
        match &mut self.waiting {
            Waiting::Real { line, .. } => line.go(start_ns),
            Waiting::Virtual(stage) => {
                let stage = stage.take().expect("an armed stage starts once");
                running.threads.push(spawn_virtual(*stage, start_ns, &running.controls)?);
            }
        }
        running.started_ns = start_ns;
        Ok(running)
    }
}

impl Drop for ArmedStage {
    /// Threads at a start line that nobody opens would wait for ever.
    fn drop(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.stop();
        if let Waiting::Real { line, epoch_ns } = &self.waiting {
            line.go(line.earliest_ns(*epoch_ns));
        }
        running.join();
    }
}

fn check(spec: &StageSpec) -> Result<(), EngineError> {
    let bad = |what: String| Err(EngineError::BadSpec(what));
    if spec.workers.is_empty() {
        return bad("a stage without workers does nothing".into());
    }
    if spec.grid_ns == 0 {
        return bad("the grid's step is zero".into());
    }
    // What comes back is given to its worker by its number.
    if let Some(pair) = spec.workers.windows(2).find(|pair| pair[0].worker >= pair[1].worker) {
        let (a, b) = (pair[0].worker, pair[1].worker);
        return bad(format!(
            "worker {b} comes after worker {a}: workers are in order of their numbers, each once"
        ));
    }
    for w in &spec.workers {
        if w.slots == 0 {
            return bad(format!("worker {} has no slots: ops in flight must be at least 1", w.worker));
        }
        w.source.check().map_err(EngineError::BadSpec)?;
        w.pacer.check().map_err(EngineError::BadSpec)?;
        if launch::is_virtual(&w.target) != matches!(spec.clock, Clock::Virtual { .. }) {
            return bad(
                "simulated and real targets live on different clocks: put them in different stages".into()
            );
        }
    }
    Ok(())
}

/// Needed where files are verified while somebody writes to files, and where several workers write what is recorded; who
/// does not verify does not pay for it.
fn underway(spec: &StageSpec) -> Option<Arc<Underway>> {
    let does = |w: &WorkerSpec, kinds: &[OpKind]| w.source.kinds.iter().any(|k| kinds.contains(&k.kind));
    let on_files = |w: &&WorkerSpec| matches!(w.target, TargetConfig::Block(_) | TargetConfig::Files(_));
    let workers = spec.workers.iter().filter(on_files);
    let reads = workers.clone().any(|w| w.verify && does(w, &[OpKind::Read]));
    let writes = workers.clone().any(|w| does(w, &[OpKind::Write, OpKind::Trim]));
    let recorded = |w: &&WorkerSpec| match &w.target {
        TargetConfig::Block(c) | TargetConfig::Files(c) => !c.written.is_empty() && does(w, &[OpKind::Write]),
        _ => false,
    };
    (reads && writes || workers.filter(recorded).count() > 1).then(Underway::new)
}

fn setting(
    spec: &StageSpec,
    grid: &Arc<SliceGrid>,
    controls: &Controls,
    of: WorkerId,
    underway: &Option<Arc<Underway>>,
) -> Setting {
    Setting {
        underway: underway.clone(),
        epoch_ns: spec.epoch_ns,
        grid: Arc::clone(grid),
        late_tolerance_ns: spec.late_tolerance_ns,
        control: Arc::clone(&controls[&of.agent]),
    }
}

type Threads = Vec<JoinHandle<Vec<WorkerEnd>>>;

fn spawn_real(
    spec: &StageSpec,
    grid: &Arc<SliceGrid>,
    outlets: Vec<Outlet>,
    controls: &Controls,
    line: &Arc<StartLine>,
    unwanted: &dyn Fn() -> bool,
) -> Result<Threads, EngineError> {
    let mut threads = Vec::with_capacity(spec.workers.len());
    let underway = underway(spec);
    for (w, outlet) in spec.workers.iter().zip(outlets) {
        // One is made in any case: it says how the stage ended.
        if !threads.is_empty() && unwanted() {
            break;
        }
        let worker = w.worker;
        let (w, setting, its_line) =
            (w.clone(), setting(spec, grid, controls, worker, &underway), Arc::clone(line));
        let body = move || vec![launch::run(w, setting, outlet, &its_line)];
        match Builder::new().name(format!("worker-{}", worker.worker)).spawn(body) {
            Ok(thread) => threads.push(thread),
            Err(e) => {
                stop_all(controls);
                line.go(line.earliest_ns(spec.epoch_ns));
                threads.into_iter().for_each(|t| drop(t.join()));
                let what = format!(
                    "no thread for it: {e}; raise the limit of processes (ulimit -u) or use fewer jobs"
                );
                return Err(EngineError::Worker { worker, what });
            }
        }
    }
    line.muster(threads.len(), unwanted);
    if unwanted() {
        stop_all(controls);
    }
    Ok(threads)
}

fn spawn_virtual(
    stage: VirtualStage,
    start_ns: u64,
    controls: &Controls,
) -> Result<JoinHandle<Vec<WorkerEnd>>, EngineError> {
    let VirtualStage { spec, grid, outlets, .. } = stage;
    let settings: Vec<Setting> =
        spec.workers.iter().map(|w| setting(&spec, &grid, controls, w.worker, &None)).collect();
    Builder::new()
        .name("virtual-clock".into())
        .spawn(move || launch::run_virtual(&spec.workers, &settings, start_ns, outlets))
        .map_err(|e| EngineError::Worker {
            worker: WorkerId::default(),
            what: format!("no thread for it: {e}"),
        })
}

impl RunningStage {
    /// When op 0 is intended, nanoseconds since the epoch.
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// Where its slices end: it may be bent while the stage runs.
    pub fn grid(&self) -> &Arc<SliceGrid> {
        &self.grid
    }

    /// The next piece of output, waited for at most so long. Without a wait it only looks: the channel's own wait gives the CPU away
    /// several times before it sees that there is no time to sleep, and an agent asks often.
    pub fn next(&self, wait: Duration) -> Next {
        if wait.is_zero() {
            return match self.full.try_recv() {
                Ok(output) => Next::Output(output),
                Err(TryRecvError::Empty) => Next::Nothing,
                Err(TryRecvError::Disconnected) => Next::Ended,
            };
        }
        match self.full.recv_timeout(wait) {
            Ok(output) => Next::Output(output),
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            Err(RecvTimeoutError::Disconnected) => Next::Ended,
        }
    }

    /// Gives a piece back, to be filled again.
    pub fn recycle(&self, output: Output) {
        if let Output::Interval { worker, .. } = &output
            && let Ok(i) = self.empties.binary_search_by_key(worker, |(w, _)| *w)
        {
            let back = &self.empties[i].1;
            // Full, or its worker is gone: then it is not needed.
            let _ = back.try_send(output);
        }
    }

    /// Takes all output until the workers end: their slices merged into one.
    pub fn merged(&self) -> Interval {
        let mut all = Interval::empty(0);
        loop {
            match self.next(Duration::MAX) {
                Next::Output(output) => {
                    if let Output::Interval { interval, .. } = &output {
                        all.merge(interval);
                    }
                    self.recycle(output);
                }
                Next::Nothing => {}
                Next::Ended => return all,
            }
        }
    }

    /// No new ops; what is in flight ends by itself.
    pub fn stop(&self) {
        stop_all(&self.controls);
    }

    /// The same of one agent's workers.
    pub fn stop_agent(&self, agent: u32) {
        if let Some(c) = self.controls.get(&agent) {
            c.stop.store(true, Relaxed);
        }
    }

    /// No new ops, and what is in flight is cancelled.
    pub fn abort(&self) {
        self.controls.values().for_each(|c| c.abort.store(true, Relaxed));
    }

    /// The same of one agent's workers.
    pub fn abort_agent(&self, agent: u32) {
        if let Some(c) = self.controls.get(&agent) {
            c.abort.store(true, Relaxed);
        }
    }

    /// Waits for the workers. Output that was not taken is lost.
    pub fn join(mut self) -> Vec<WorkerEnd> {
        self.await_workers()
    }

    fn await_workers(&mut self) -> Vec<WorkerEnd> {
        drop(std::mem::replace(&mut self.full, never()));
        // Who waits for a slice to come back, waits no longer.
        let ids: Vec<WorkerId> = self.empties.drain(..).map(|(w, _)| w).collect();
        let mut ends: Vec<WorkerEnd> = Vec::with_capacity(ids.len());
        let (mut ids, mut broken) = (ids.into_iter(), Vec::new());
        for t in self.threads.drain(..) {
            match t.join() {
                Ok(list) => ends.extend(list),
                Err(panic) => broken.push(panic),
            }
        }
        for panic in broken {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            let worker = ids.find(|id| ends.iter().all(|e| e.worker != *id)).unwrap_or_default();
            ends.push(broken_end(worker, text));
        }
        ends.sort_by_key(|e| e.worker);
        ends
    }
}

impl Drop for RunningStage {
    fn drop(&mut self) {
        self.abort();
        self.await_workers();
    }
}

/// The end of a worker that panicked: our bug, said as such.
fn broken_end(worker: WorkerId, text: &str) -> WorkerEnd {
    let what =
        format!("its thread broke an invariant: {text}. This is a bug of Plimsoll's; please report it");
    WorkerEnd { cause: StopCause::Failed, ..WorkerEnd::failed(worker, EngineError::Worker { worker, what }) }
}

impl WorkerEnd {
    /// The end of a worker that could not start.
    pub(crate) fn failed(worker: WorkerId, error: EngineError) -> Self {
        Self {
            worker,
            stage: 0,
            workload: 0,
            ring: None,
            error: Some(error),
            cause: StopCause::Failed,
            started_ns: 0,
            began_ns: 0,
            stopped_ns: 0,
            last_submit_ns: 0,
            finished_ns: 0,
            ops: 0,
            abandoned: 0,
            mismatches: 0,
            crossed_reads: 0,
            unchecked_bodies: 0,
            unconfirmed_uploads: 0,
            first_mismatches: Vec::new(),
            errors: Vec::new(),
            synced_through: 0,
            notes: Vec::new(),
            ring_syscalls: 0,
            starved_slices: 0,
        }
    }

    pub(crate) fn of(mut self, spec: &WorkerSpec) -> Self {
        self.stage = spec.stage;
        self.workload = spec.workload;
        self
    }
}
