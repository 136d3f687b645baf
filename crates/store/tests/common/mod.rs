//! Runs made up for the tests of the store.

use plimsoll_model::interval::{ClientCounts, EndpointCounts, SeriesShape};
use plimsoll_model::{Environment, Interval, OpKind, Outcome, Plan, Series, SeriesId};
use plimsoll_store::{EnvFile, Mark, RunDir};

pub const GRID_NS: u64 = 100_000_000;

pub const PLAN: &str = r#"
version = 1
[targets.n]
kind = "null"
[[stage]]
[[stage.workload]]
name = "w"
mix = { null = 1 }
"#;

pub fn id(stage: u32, kind: OpKind) -> SeriesId {
    SeriesId { stage, workload: 0, kind }
}

/// A slice with `n` ops, whose latencies follow from `seed`.
pub fn slice(stage: u32, index: u64, n: u64, seed: u64) -> Interval {
    let shape = SeriesShape {
        service: true,
        first_byte: seed.is_multiple_of(2),
        endpoints: 2,
        ..SeriesShape::default()
    };
    let mut s = Series::new(id(stage, OpKind::Get), shape);
    for i in 0..n {
        let ns = (seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i * 7919)) % 50_000_000;
        s.response.record(ns);
        if let Some(h) = &mut s.service {
            h.record(ns / 2);
        }
        s.counts.in_system_ns += u128::from(ns);
    }
    s.counts.failed_in_system_ns = u128::from(seed % 7) << 40;
    s.counts.started = n + 1;
    s.counts.outcomes[Outcome::Ok.index()] = n;
    s.counts.outcomes[Outcome::Http429.index()] = seed % 3;
    s.counts.bytes_ok = n * 4096;
    s.counts.bytes_moved = n * 4096 + 17;
    s.endpoints[1] = EndpointCounts { ok: n, bytes_ok: n * 4096, ..EndpointCounts::default() };
    let client = ClientCounts {
        workers: 1,
        alive_ns: GRID_NS,
        waited_ns: seed % GRID_NS,
        run_wait_ns: seed % 977,
        cpu_turns: n,
        paused_ns: u128::from(seed % 11) << 36,
        ..ClientCounts::default()
    };
    Interval { index, series: vec![s], client }
}

pub fn new_run(root: &std::path::Path) -> RunDir {
    let run = RunDir::create(root).unwrap();
    run.write_plan(&Plan::from_toml(PLAN).unwrap()).unwrap();
    run.write_env(&EnvFile {
        format: "plimsoll.env/1".into(),
        id: run.id(),
        environment: Environment::default(),
        rerun: "plimsoll run plan.toml".into(),
        clock_offsets_ns: Default::default(),
    })
    .unwrap();
    run
}

pub fn stage_start(stage: u32, at_ns: u64) -> Mark {
    let spec = Box::new(Plan::from_toml(PLAN).unwrap().stages[0].clone());
    Mark::StageStart {
        stage,
        at_ns,
        spec,
        endpoints: vec![vec![]],
        workers: 1,
        ring: "none".into(),
        slots: 0,
    }
}

/// One stage of `slices` slices: five of warm-up, two of tail.
pub fn write_stage(run: &RunDir, slices: u64) {
    let mut w = run.create_intervals("local", GRID_NS).unwrap();
    w.mark(&stage_start(0, 0)).unwrap();
    for i in 0..slices {
        if i == 5 {
            w.mark(&Mark::WarmupEnd { stage: 0, at_ns: 5 * GRID_NS }).unwrap();
        }
        if i + 2 == slices {
            w.mark(&Mark::StopRequested { stage: 0, at_ns: i * GRID_NS, reason: "duration".into() }).unwrap();
        }
        w.interval(0, &slice(0, i, 10 + i % 3, i)).unwrap();
    }
    w.mark(&Mark::StageEnd { stage: 0, at_ns: slices * GRID_NS }).unwrap();
    w.finish().unwrap();
}

/// Adds a record to a file as it stands, in a good frame of its own.
pub fn append_record(path: &std::path::Path, tag: u8, body: &[u8]) {
    let mut record = vec![tag];
    plimsoll_store::varint::put_u64(&mut record, body.len() as u64);
    record.extend_from_slice(body);
    plimsoll_store::frame::FrameWriter::resume(path).unwrap().append(&record).unwrap();
}
