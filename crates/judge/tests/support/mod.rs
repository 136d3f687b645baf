//! Runs of one stage, written slice by slice, and judged.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_judge::{judge, windows_of};
use plimsoll_model::interval::{ClientCounts, SeriesShape};
use plimsoll_model::plan::Stage;
use plimsoll_model::sample::Role;
use plimsoll_model::{
    AgentHost, Analysis, Environment, Finding, HostFacts, Interval, OpKind, Outcome, Plan, RunSummary,
    Sample, Series, SeriesId,
};
use plimsoll_store::mark::{LoadTimes, StageReport};
use plimsoll_store::{EnvFile, LoadOptions, Mark, RunDir, StreamWriter, rundir::ENV_FORMAT};

pub const GRID_NS: u64 = 100_000_000;
const WARM: u64 = 20;
pub const SLOTS: u64 = 16;

/// What ended in a slice.
#[derive(Clone, Copy, Default)]
pub struct Slice {
    pub ok: u64,
    pub refused: u64,
    pub started: u64,
    /// What those that ended took, summed.
    pub in_system_ns: u64,
    /// Bytes on the wire; those of the ops that ended where it is not said.
    pub moved: Option<u64>,
    /// In flight when somebody ended the load.
    pub cancelled: u64,
    /// Refusals are 503, and not 429.
    pub is_503: bool,
    /// Slots that pause after a refusal: the others have an op in flight.
    pub paused: u64,
}

/// A run whose load stops after `n` slices; what ends later was in flight then. `others`: its machine was looked at, and from a second on
/// others used this share of each processor.
fn written(dir: &Path, slices: &[Slice], n: usize, others: Option<(u64, f64)>) -> RunDir {
    let n = n as u64;
    let plan = format!(
        "version = 1\n[targets.s3]\nkind = \"s3\"\nendpoints = [\"http://10.0.0.9:9000\"]\nbucket = \"bench\"\n[[stage]]\n\
         warmup = \"2s\"\n[[stage.workload]]\nname = \"get\"\nmix = {{ get = 1 }}\nsize = \"4KiB\"\nconcurrency = {SLOTS}\n\
         stop = {{ duration = \"{}s\" }}\n",
        (n - WARM) / 10
    );
    let plan = Plan::from_toml(&plan).unwrap();
    let spec = plan.stages[0].clone();
    written_as(dir, (&plan, spec), slices, n, others)
}

/// The same of one stage of any plan.
pub fn written_as(
    dir: &Path,
    (plan, spec): (&Plan, Stage),
    slices: &[Slice],
    n: u64,
    others: Option<(u64, f64)>,
) -> RunDir {
    let run = RunDir::create(dir).unwrap();
    run.write_plan(plan).unwrap();
    let machine = HostFacts { host: "node1".into(), cpu_count: 4, ..HostFacts::default() };
    let agents = vec![AgentHost { agent: "local".into(), number: 0, machine: machine.clone(), clock: None }];
    let env = EnvFile {
        format: ENV_FORMAT.into(),
        id: "levels".into(),
        environment: Environment { machine, agents, ..Default::default() },
        rerun: "plimsoll run levels.toml".into(),
        clock_offsets_ns: BTreeMap::new(),
    };
    run.write_env(&env).unwrap();
    let mut w = run.create_intervals("local", GRID_NS).unwrap();
    let spec = Box::new(spec);
    let start = Mark::StageStart {
        stage: 0,
        at_ns: 0,
        spec,
        endpoints: vec![vec!["http://10.0.0.9:9000".into()]],
        workers: 2,
        ring: "epoll".into(),
        slots: SLOTS as u32,
    };
    w.mark(&start).unwrap();
    let stop = |w: &mut StreamWriter| {
        w.mark(&Mark::StopRequested { stage: 0, at_ns: n * GRID_NS, reason: "duration".into() }).unwrap();
    };
    let mut slice = Interval::empty(0);
    let id = SeriesId { stage: 0, workload: 0, kind: OpKind::Get };
    slice.series.push(Series::new(id, SeriesShape::default()));
    for (i, at) in (0..).zip(slices) {
        if i == WARM {
            w.mark(&Mark::WarmupEnd { stage: 0, at_ns: WARM * GRID_NS }).unwrap();
        }
        if i == n {
            stop(&mut w);
        }
        slice.reset(i);
        let in_flight_ns = (SLOTS - at.paused) * GRID_NS;
        let s = &mut slice.series[0];
        for _ in 0..at.ok {
            s.response.record(at.in_system_ns / (at.ok + at.refused));
        }
        s.counts.started = at.started;
        s.counts.outcomes[Outcome::Ok.index()] = at.ok;
        let refusal = if at.is_503 { Outcome::Http503SlowDown } else { Outcome::Http429 };
        s.counts.outcomes[refusal.index()] = at.refused;
        s.counts.outcomes[Outcome::Cancelled.index()] = at.cancelled;
        s.counts.bytes_ok = at.ok * 4096;
        s.counts.bytes_moved = at.moved.unwrap_or(at.ok * 4096);
        s.counts.in_system_ns = u128::from(at.in_system_ns);
        slice.client = ClientCounts {
            workers: 2,
            alive_ns: 2 * GRID_NS,
            waited_ns: 19 * GRID_NS / 10,
            cpu_ns: GRID_NS / 20,
            in_flight_ns: u128::from(in_flight_ns),
            paused_ns: u128::from(at.paused * GRID_NS),
            ..ClientCounts::default()
        };
        w.interval(0, &slice).unwrap();
    }
    if slices.len() as u64 <= n {
        stop(&mut w);
    }
    let at_ns = slices.len() as u64 * GRID_NS;
    let times = LoadTimes { began_ns: 0, finished_ns: at_ns };
    let report = Box::new(StageReport { times: Some(times), ..StageReport::default() });
    w.mark(&Mark::StageReport { stage: 0, at_ns, report }).unwrap();
    w.mark(&Mark::StageEnd { stage: 0, at_ns }).unwrap();
    w.finish().unwrap();
    if let Some(others) = others {
        samples(&run, slices.len() as u64 / 10, others);
    }
    run.seal("done").unwrap();
    run
}

const CORES: u64 = 4;

/// The load uses 40 % of the machine, and what is left where others use more.
fn samples(run: &RunDir, seconds: u64, (from_s, share): (u64, f64)) {
    let mut w = run.create_samples("node1").unwrap();
    for s in 0..=seconds {
        let (alone, beside) = (s.min(from_s) as f64, s.saturating_sub(from_s) as f64);
        let own = 1e9 * (0.4 * alone + 0.4f64.min(1.0 - share) * beside);
        let used = (own + 1e9 * share * beside) as u64;
        let sample = Sample {
            host: "node1".into(),
            role: Role::Client,
            at_ns: s * 1_000_000_000,
            cpus: vec![[used, 0, 0, 0, 0, (s * 1_000_000_000).saturating_sub(used)]; CORES as usize],
            process_cpu_ns: (CORES as f64 * own) as u64,
            process_rss_bytes: 50 << 20,
            process_usage: Default::default(),
            memory_available_bytes: 1 << 30,
            process_io: Default::default(),
            nics: BTreeMap::new(),
            tcp_out: 0,
            tcp_retransmits: 0,
            disks: BTreeMap::new(),
            psi_ns: [0; 3],
            cpu_quotas: Vec::new(),
        };
        w.sample(&sample).unwrap();
    }
    w.finish().unwrap();
}

/// Ops that end well in each slice, and those that are refused.
pub fn judged(slices: &[(u64, u64)]) -> (RunSummary, Analysis) {
    let slice = |&(ok, refused)| Slice {
        ok,
        refused,
        started: ok + refused,
        in_system_ns: SLOTS * GRID_NS,
        ..Slice::default()
    };
    judged_slices(&slices.iter().map(slice).collect::<Vec<_>>(), slices.len())
}

pub fn judged_slices(slices: &[Slice], n: usize) -> (RunSummary, Analysis) {
    judged_beside(slices, n, None)
}

pub fn judged_beside(slices: &[Slice], n: usize, others: Option<(u64, f64)>) -> (RunSummary, Analysis) {
    let dir = tempfile::tempdir().unwrap();
    judged_run(&written(dir.path(), slices, n, others))
}

pub fn judged_run(run: &RunDir) -> (RunSummary, Analysis) {
    let data = run.load(&LoadOptions::default()).unwrap();
    let windows = windows_of(&data);
    let totals = run.totals(&windows.measured, windows.measured.len()).unwrap();
    let whole = run.totals(&windows.whole, 0).unwrap();
    judge(&data, &totals, &whole, &run.altered_files().unwrap())
}

pub fn finding<'a>(s: &'a RunSummary, code: &str) -> &'a Finding {
    s.findings.iter().find(|f| f.code == code).unwrap_or_else(|| panic!("no {code}: {:?}", s.findings))
}
