//! Writes synthetic run directories: what each stage does is a small law over time.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_model::interval::{ClientCounts, SeriesShape};
use plimsoll_model::plan::{Plan, Stage};
use plimsoll_model::sample::{DiskCounters, ProcessIo, Role};
use plimsoll_model::{Analysis, Interval, OpKind, Outcome, RunSummary, Sample, Series, SeriesId};
use plimsoll_store::{EnvFile, Mark, RunDir};

use super::{BURST, CLIFF_S, GRID_NS, Rng, SUSTAINED, TIER};

/// What one stage does, second by second.
pub struct Script {
    pub stage: Stage,
    pub seconds: f64,
    /// (kind, bytes per op, ok/s at t, throttled/s at t, failed/s at t).
    #[allow(clippy::type_complexity, reason = "a test's own little law")]
    pub load: Vec<(OpKind, u64, Box<dyn Fn(f64) -> (f64, f64, f64)>)>,
    pub latency_ns: f64,
}

pub(super) fn stage_toml(plan: &str) -> Stage {
    Plan::from_toml(&format!("version = 1\n[targets.s3]\nkind = \"null\"\n{plan}"))
        .expect("the test's plan is right")
        .stages
        .remove(0)
}

pub fn sweep_script(seconds: f64) -> Vec<Script> {
    let mut out = Vec::new();
    for repeat in 0..2u32 {
        for (i, (op, size, rate)) in TIER.iter().enumerate() {
            let plan = format!(
                "[[stage]]\nname = \"{op} {size} B, repeat {repeat}\"\nwarmup = \"1s\"\ncell = {{ index = {i}, repeat = {repeat} }}\n[[stage.workload]]\nname = \"{op}-{size}\"\nmix = {{ {op} = 1 }}\nsize = {size}\nconcurrency = 16\n"
            );
            let (rate, noisy) = (*rate, i == 1);
            out.push(Script {
                stage: stage_toml(&plan),
                seconds,
                load: vec![(
                    *op,
                    *size,
                    Box::new(move |t| (rate * (1.0 - 0.4 * (-t).exp()), if noisy { 7.0 } else { 0.0 }, 0.0)),
                )],
                latency_ns: 16.0 / rate * 0.9e9,
            });
        }
    }
    out
}

pub fn limited_script(seconds: f64) -> Vec<Script> {
    let plan = "[[stage]]\nname = \"put until it falls\"\nwarmup = \"2s\"\n[[stage.workload]]\nname = \"put\"\nmix = { put = 1 }\nsize = \"4KiB\"\nconcurrency = 16\n";
    let law = |t: f64| match t {
        t if (71.0..73.0).contains(&t) => (300.0, 0.0, 2.0),
        t if t < CLIFF_S => (BURST, 0.0, 0.0),
        _ => (SUSTAINED, 602.0, 0.0),
    };
    vec![Script {
        stage: stage_toml(plan),
        seconds,
        load: vec![(OpKind::Put, 4096, Box::new(law))],
        latency_ns: 5.2e6,
    }]
}

pub fn refused_script(seconds: f64) -> Vec<Script> {
    let mut script = limited_script(seconds);
    script[0].load[0].2 = Box::new(|_| (0.0, 0.0, 900.0));
    script
}

/// Writes a whole run directory: raw series, samples, summary and analysis.
pub fn write_run(path: &Path, summary: &RunSummary, analysis: &Analysis, script: &[Script]) -> RunDir {
    let dir = RunDir::create_at(path).expect("a fresh directory");
    let plan = Plan::from_toml(
        "version = 1\nname = \"fixture\"\n[targets.s3]\nkind = \"null\"\n[[stage]]\n[[stage.workload]]\nname = \"put\"\nmix = { put = 1 }\n",
    )
    .expect("the test's plan is right");
    dir.write_plan(&plan).expect("writable");
    let env = EnvFile {
        format: plimsoll_store::rundir::ENV_FORMAT.into(),
        id: summary.id.clone(),
        environment: summary.environment.clone(),
        rerun: summary.rerun.clone(),
        clock_offsets_ns: BTreeMap::new(),
    };
    dir.write_env(&env).expect("writable");
    let end_s = intervals(&dir, script);
    samples(&dir, end_s);
    dir.write_summary(summary).expect("writable");
    dir.write_analysis(analysis).expect("writable");
    dir.seal("done").expect("writable");
    dir
}

fn intervals(dir: &RunDir, script: &[Script]) -> f64 {
    let mut out = dir.create_intervals("bench-1", GRID_NS).expect("writable");
    let mut rng = Rng(11);
    let mut index = 3u64;
    for (n, s) in script.iter().enumerate() {
        let stage = n as u32;
        let start_ns = index * GRID_NS;
        let start = Mark::StageStart {
            stage,
            at_ns: start_ns,
            spec: Box::new(s.stage.clone()),
            endpoints: vec![vec!["http://node1:9000".into()]],
            workers: 2,
            ring: "io_uring".into(),
            slots: 0,
        };
        out.mark(&start).expect("writable");
        let warm = start_ns + s.stage.warmup.as_ns();
        let slices = (s.seconds * 1e9) as u64 / GRID_NS;
        let mut interval = Interval::empty(index);
        for (kind, ..) in &s.load {
            let shape = SeriesShape { first_byte: *kind == OpKind::Get, ..SeriesShape::default() };
            interval.series.push(Series::new(SeriesId { stage, workload: 0, kind: *kind }, shape));
        }
        for i in 0..slices {
            if index * GRID_NS >= warm && (index - 1) * GRID_NS < warm {
                out.mark(&Mark::WarmupEnd { stage, at_ns: warm }).expect("writable");
            }
            interval.reset(index);
            fill(&mut interval, s, i as f64 * GRID_NS as f64 / 1e9, &mut rng);
            out.interval(stage, &interval).expect("writable");
            index += 1;
        }
        let at_ns = index * GRID_NS;
        out.mark(&Mark::StopRequested { stage, at_ns, reason: "duration".into() }).expect("writable");
        out.mark(&Mark::StageEnd { stage, at_ns: at_ns + 40_000_000 }).expect("writable");
        index += 4;
    }
    out.finish().expect("writable");
    index as f64 * GRID_NS as f64 / 1e9
}

fn fill(interval: &mut Interval, s: &Script, t: f64, rng: &mut Rng) {
    let dt = GRID_NS as f64 / 1e9;
    for (series, (_, size, law)) in interval.series.iter_mut().zip(&s.load) {
        let (ok, throttled, failed) = law(t);
        let noisy = (ok * dt * (1.0 + 0.03 * rng.normal())).max(0.0);
        let ops = if ok == 0.0 { 0 } else { (noisy + rng.uniform()) as u64 };
        series.counts.outcomes[Outcome::Ok.index()] = ops;
        series.counts.outcomes[Outcome::Http429.index()] = (throttled * dt + rng.uniform() * 0.99) as u64;
        series.counts.outcomes[Outcome::Reset.index()] = (failed * dt + rng.uniform() * 0.99) as u64;
        if throttled == 0.0 {
            series.counts.outcomes[Outcome::Http429.index()] = 0;
        }
        series.counts.started = ops;
        series.counts.bytes_ok = ops * size;
        series.counts.bytes_moved = (noisy * *size as f64) as u64;
        for _ in 0..ops.min(60) {
            let slow = if rng.uniform() < 0.004 { 9.0 } else { 1.0 };
            let ns = s.latency_ns * slow * (0.4 * rng.normal()).exp();
            series.response.record(ns as u64);
            if let Some(h) = &mut series.first_byte {
                h.record((ns * 0.5) as u64);
            }
        }
        series.counts.in_system_ns = (ops as f64 * s.latency_ns) as u128;
    }
    interval.client = ClientCounts {
        workers: 2,
        alive_ns: 2 * GRID_NS,
        waited_ns: (2.0 * GRID_NS as f64 * (0.85 + 0.03 * rng.normal()).clamp(0.0, 1.0)) as u64,
        cpu_ns: GRID_NS / 4,
        in_flight_ns: 16 * u128::from(GRID_NS),
        late_ops: 0,
        reconnects: 0,
        ..ClientCounts::default()
    };
}

fn samples(dir: &RunDir, end_s: f64) {
    let mut out = dir.create_samples("bench-1").expect("writable");
    let mut rng = Rng(5);
    let mut cpus = vec![[0u64; 6]; 8];
    let (mut rx, mut tx, mut busy, mut disk_bytes, mut process) = (0u64, 0u64, 0u64, 0u64, 0u64);
    for second in 0..end_s as u64 {
        for (i, c) in cpus.iter_mut().enumerate() {
            let user = if i == 0 { 0.5 } else { 0.06 } * (1.0 + 0.2 * rng.normal()).clamp(0.1, 1.9);
            let share = [user, user * 0.4, 0.01, 0.01, 0.002];
            for (x, s) in c.iter_mut().zip(share) {
                *x += (s * 1e9) as u64;
            }
            c[5] += ((1.0 - share.iter().sum::<f64>()).max(0.0) * 1e9) as u64;
        }
        rx += (30e6 * (1.0 + 0.1 * rng.normal())) as u64;
        tx += (90e6 * (1.0 + 0.1 * rng.normal())) as u64;
        busy += 220_000_000;
        disk_bytes += 40_000_000;
        process += 400_000_000;
        let sample = Sample {
            host: "bench-1".into(),
            role: Role::Client,
            at_ns: second * 1_000_000_000,
            cpus: cpus.clone(),
            process_cpu_ns: process,
            process_rss_bytes: 61_000_000,
            process_usage: Default::default(),
            memory_available_bytes: 20_000_000_000,
            process_io: ProcessIo::default(),
            nics: BTreeMap::from([("eth0".into(), [rx, tx, 0])]),
            tcp_out: second * 50_000,
            tcp_retransmits: second * 3,
            disks: BTreeMap::from([(
                "nvme0n1".into(),
                DiskCounters {
                    writes: second * 900,
                    write_bytes: disk_bytes,
                    busy_ns: busy,
                    queue_ns: busy * 3,
                    ..DiskCounters::default()
                },
            )]),
            psi_ns: [second * 3_000_000, second * 9_000_000, 0],
            cpu_quotas: Vec::new(),
        };
        out.sample(&sample).expect("writable");
    }
    out.finish().expect("writable");
}
