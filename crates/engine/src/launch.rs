//! Makes a worker: chooses its ring, builds its target, and brings both into the loop. Here the choices
//! that are data in a spec become types, once, before the first op.

use std::sync::Arc;

use plimsoll_model::plan::RingChoice;

use crate::api::{RingUse, StopCause, TargetConfig, WorkerEnd, WorkerSpec};
use crate::error::EngineError;
use crate::grid::SliceGrid;
use crate::recorder::{Outlet, Recorder};
use crate::ring::epoll::EpollRing;
use crate::ring::libaio::LibaioRing;
use crate::ring::psync::PsyncRing;
use crate::ring::simulated::{MemoryRing, VirtualRing};
use crate::ring::uring::UringRing;
use crate::ring::{Ring, RingError, RingSpec};
use crate::stage::StartLine;
use crate::target::file::FileTarget;
use crate::target::null::NullTarget;
use crate::target::s3::S3Worker;
use crate::target::sim::SimWorker;
use crate::target::{Built, Target};
use crate::underway::Underway;
use crate::worker::{Control, Worker};

/// What the workers of a stage share.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub epoch_ns: u64,
    pub grid: Arc<SliceGrid>,
    pub late_tolerance_ns: u64,
    pub control: Arc<Control>,
    /// Where reads are verified while somebody writes.
    pub underway: Option<Arc<Underway>>,
}

pub(crate) fn is_virtual(target: &TargetConfig) -> bool {
    matches!(target, TargetConfig::Sim(_))
}

/// Runs one worker on a real clock, from its target's making to its end.
pub(crate) fn run(spec: WorkerSpec, setting: Setting, outlet: Outlet, line: &StartLine) -> WorkerEnd {
    let worker = spec.worker;
    if let Err(e) = prepare_thread(&spec) {
        return WorkerEnd::failed(worker, give_up(line, e)).of(&spec);
    }
    let end = match &spec.target {
        TargetConfig::Null => null(&spec, &setting, outlet, line),
        TargetConfig::Block(c) | TargetConfig::Files(c) => {
            match FileTarget::build(&spec, c, setting.underway.clone()) {
                Ok(built) => on_files(&spec, &setting, outlet, line, built),
                Err(e) => Err(give_up(line, e)),
            }
        }
        TargetConfig::S3(c) => match S3Worker::build(&spec, c, setting.epoch_ns) {
            Ok(built) => on_sockets(&spec, &setting, outlet, line, built),
            Err(e) => Err(give_up(line, e)),
        },
        TargetConfig::Sim(_) => unreachable!("simulated targets run on the virtual clock"),
    };
    end.unwrap_or_else(|e| WorkerEnd::failed(worker, e)).of(&spec)
}

/// A worker that cannot start must not keep the others from it.
fn give_up(line: &StartLine, e: EngineError) -> EngineError {
    line.wait();
    e
}

/// Pins the thread where asked, and sets its timer slack to the least: timed waits end on time.
fn prepare_thread(spec: &WorkerSpec) -> Result<(), EngineError> {
    // SAFETY: a plain system call on the calling thread; a refusal only costs precision.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize, 0usize, 0usize, 0usize) };
    let Some(cpu) = spec.cpu else { return Ok(()) };
    let refused =
        |why: String| EngineError::BadSpec(format!("worker {} cannot run on CPU {cpu}: {why}", spec.worker));
    if cpu >= libc::CPU_SETSIZE as u32 {
        return Err(refused(format!("the highest CPU number is {}", libc::CPU_SETSIZE - 1)));
    }
    // SAFETY: a set of all zeros is valid; the number was checked; the set lives through the call.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if result < 0 {
        let why = std::io::Error::last_os_error();
        return Err(refused(format!(
            "{why}; give CPUs that this process is allowed to use (taskset -p shows them)"
        )));
    }
    Ok(())
}

type Ended = Result<WorkerEnd, EngineError>;

fn null(spec: &WorkerSpec, setting: &Setting, outlet: Outlet, line: &StartLine) -> Ended {
    let built = NullTarget::build(spec.slots);
    match spec.ring {
        RingChoice::Auto => with::<MemoryRing, _>(
            spec,
            setting,
            outlet,
            line,
            built,
            ("memory", "the null target needs no kernel"),
        ),
        _ => on_files(spec, setting, outlet, line, built),
    }
}

/// Rings for files, in the order in which `auto` tries them.
fn on_files<T>(
    spec: &WorkerSpec,
    setting: &Setting,
    outlet: Outlet,
    line: &StartLine,
    built: Built<T>,
) -> Ended
where
    T: Target<UringRing> + Target<LibaioRing> + Target<PsyncRing> + Target<EpollRing>,
{
    let asked = "asked for";
    match spec.ring {
        RingChoice::IoUring => with::<UringRing, T>(spec, setting, outlet, line, built, ("io_uring", asked)),
        RingChoice::Libaio => with::<LibaioRing, T>(spec, setting, outlet, line, built, ("libaio", asked)),
        RingChoice::Psync => with::<PsyncRing, T>(spec, setting, outlet, line, built, ("psync", asked)),
        RingChoice::Epoll => with::<EpollRing, T>(spec, setting, outlet, line, built, ("epoll", asked)),
        RingChoice::Auto => match probe::<UringRing>() {
            Ok(()) => with::<UringRing, T>(
                spec,
                setting,
                outlet,
                line,
                built,
                ("io_uring", "the fastest that this kernel supports"),
            ),
            Err(e) if spec.slots == 1 => with::<PsyncRing, T>(
                spec,
                setting,
                outlet,
                line,
                built,
                ("psync", &format!("no io_uring ({e}), and one op at a time")),
            ),
            Err(e) => with::<LibaioRing, T>(
                spec,
                setting,
                outlet,
                line,
                built,
                ("libaio", &format!("no io_uring ({e})")),
            ),
        },
    }
}

/// Why sockets are not on io_uring unless it is asked for. Linux 6.18, loopback, 4 KiB GET, medians of three: epoll made 12 %
/// more ops at one in flight (p50 27 us, not 31), 19 % at 4, 7 % at 64 and 13 % at 256, for 2 to 17 % less CPU time an op;
/// at 16 in flight, and at 1 MiB, neither was more than 6 % ahead, now the one and now the other. Why is a guess: an op on a
/// socket waits for its data in any case, so that io_uring saves system calls, and arms and fires a poll for each.
const AUTO_FOR_SOCKETS: &str =
    "for sockets as fast as io_uring, faster with few or many in flight, and allowed everywhere";

fn on_sockets<T>(
    spec: &WorkerSpec,
    setting: &Setting,
    outlet: Outlet,
    line: &StartLine,
    built: Built<T>,
) -> Ended
where
    T: Target<UringRing> + Target<EpollRing>,
{
    match spec.ring {
        RingChoice::IoUring => {
            with::<UringRing, T>(spec, setting, outlet, line, built, ("io_uring", "asked for"))
        }
        RingChoice::Epoll => with::<EpollRing, T>(spec, setting, outlet, line, built, ("epoll", "asked for")),
        RingChoice::Auto => {
            with::<EpollRing, T>(spec, setting, outlet, line, built, ("epoll", AUTO_FOR_SOCKETS))
        }
        other => Err(give_up(
            line,
            RingError::Unfit(format!("the {} ring is for files: use io_uring or epoll for S3", other.name()))
                .into(),
        )),
    }
}

/// Whether the ring can be made here at all.
fn probe<R: Ring>() -> Result<(), RingError> {
    R::open(&RingSpec { entries: 8, ..RingSpec::default() }).map(drop)
}

/// The worker's life on ring `R`.
fn with<R: Ring, T: Target<R>>(
    spec: &WorkerSpec,
    setting: &Setting,
    outlet: Outlet,
    line: &StartLine,
    built: Built<T>,
    (name, why): (&str, &str),
) -> Ended {
    let ring_spec = RingSpec { epoch_ns: setting.epoch_ns, ..built.ring };
    let ring = match R::open(&ring_spec) {
        Ok(ring) => ring,
        Err(e) => return Err(give_up(line, e.into())),
    };
    let ring_use = RingUse { name: name.into(), why: why.into(), detail: ring.describe() };
    let recorder = Recorder::new(spec, Arc::clone(&setting.grid), Some(outlet));
    let mut w = Worker::new(spec, ring, built.target, recorder, &setting.control, setting.late_tolerance_ns);
    let start_ns = line.wait() + spec.start_delay_ns;
    w.start(start_ns, spec.stop.after_ns);
    let mut error = w.wait_for_start().err();
    let began_ns = w.now_ns();
    if error.is_none() {
        error = w.drive().err();
    }
    if error.is_none() && w.in_flight() == 0 {
        error = w.close().err();
    }
    let end = WorkerEnd { began_ns, ..end_of(&w, spec, ring_use, error) };
    if w.in_flight() > 0 || end.error.is_some() {
        // The kernel may still write into the target's memory: it is leaked, and the end says so.
        std::mem::forget(w);
    }
    Ok(end)
}

fn end_of<R: Ring, T: Target<R>>(
    w: &Worker<'_, R, T>,
    spec: &WorkerSpec,
    ring: RingUse,
    error: Option<std::io::Error>,
) -> WorkerEnd {
    let failed = error.map(|e| EngineError::Worker {
        worker: spec.worker,
        what: format!("the {} ring failed: {e}", ring.name),
    });
    WorkerEnd {
        worker: spec.worker,
        stage: spec.stage,
        workload: spec.workload,
        ring: Some(ring),
        cause: if failed.is_some() { StopCause::Failed } else { w.cause.unwrap_or(StopCause::Asked) },
        error: failed,
        started_ns: w.started_ns(),
        began_ns: w.started_ns(),
        stopped_ns: w.stopped_ns,
        last_submit_ns: w.last_submit_ns,
        finished_ns: w.now_ns(),
        ops: w.begun_ops,
        abandoned: w.in_flight(),
        mismatches: w.recorder.mismatches,
        crossed_reads: w.target.crossed_reads(),
        unchecked_bodies: w.target.unchecked_bodies(),
        unconfirmed_uploads: w.target.unconfirmed_uploads(),
        first_mismatches: w.recorder.first_mismatches.clone(),
        errors: w.recorder.errors.clone(),
        synced_through: w.synced_through(),
        notes: w.target.notes().into_iter().chain(w.recorder.mute_note()).collect(),
        ring_syscalls: w.ring.syscalls(),
        starved_slices: w.recorder.starved,
    }
}

/// Runs all workers of a stage in this thread, in the order of their events.
pub(crate) fn run_virtual(
    specs: &[WorkerSpec],
    settings: &[Setting],
    start_ns: u64,
    outlets: Vec<Outlet>,
) -> Vec<WorkerEnd> {
    let mut workers = Vec::with_capacity(specs.len());
    let mut worlds = Vec::with_capacity(specs.len());
    for ((spec, setting), outlet) in specs.iter().zip(settings).zip(outlets) {
        let TargetConfig::Sim(world) = &spec.target else { continue };
        let built = SimWorker::build(world.clone(), spec.slots);
        let mut ring = VirtualRing::open(&built.ring).expect("a virtual ring is always to be had");
        ring.advance_to(start_ns);
        let recorder = Recorder::new(spec, Arc::clone(&setting.grid), Some(outlet));
        let mut w =
            Worker::new(spec, ring, built.target, recorder, &setting.control, setting.late_tolerance_ns)
                .without_cpu_clock();
        w.start(start_ns + spec.start_delay_ns, spec.stop.after_ns);
        workers.push(w);
        worlds.push(world);
    }
    let mut live: Vec<usize> = (0..workers.len()).collect();
    while !live.is_empty() {
        let next = |w: &Worker<'_, VirtualRing, SimWorker>| {
            w.ring.next_event_ns().unwrap_or(u64::MAX).min(w.wake_or_start_ns())
        };
        // Ties go to the lowest worker: the order is part of what is reproduced. Clocks of agents may differ; what happens
        // first is said by the world's.
        let first = |i: &&usize| (worlds[**i].true_ns(next(&workers[**i])), **i);
        let Some(&i) = live.iter().min_by_key(first) else { break };
        let at_ns = next(&workers[i]);
        let w = &mut workers[i];
        w.ring.advance_to(at_ns);
        w.wake();
        w.reap();
        if w.has_started() {
            w.begin_due();
        }
        if w.is_over() {
            let _ = w.close();
            live.retain(|j| *j != i);
        }
    }
    let ring =
        RingUse { name: "virtual".into(), why: "simulated target".into(), detail: "virtual clock".into() };
    workers.iter().zip(specs).map(|(w, spec)| end_of(w, spec, ring.clone(), None)).collect()
}
