//! Small stages for the engine's tests.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::Path;
use std::time::Duration;

use plimsoll_engine::api::FileConfig;
use plimsoll_engine::ring::monotonic_ns;
use plimsoll_engine::{
    Clock, DataSeed, Dist, FileOrder, KindSpec, Next, OpPlace, OpSource, Output, Pacer, SeriesSpec, Share,
    SizeSpec, StageSpec, StopRule, SyncRule, TargetConfig, WorkerEnd, WorkerSpec, start,
};
use plimsoll_model::interval::SeriesShape;
use plimsoll_model::plan::RingChoice;
use plimsoll_model::{Interval, OpKind};

pub const MIB: u64 = 1 << 20;

/// One worker with one kind of 4 KiB op over a region.
pub fn worker(kind: OpKind, target: TargetConfig, region_bytes: u64, dist: Dist) -> WorkerSpec {
    let series = |kind| SeriesSpec { kind, shape: SeriesShape::default(), trace_series: 0 };
    WorkerSpec {
        worker: plimsoll_model::WorkerId::here(0),
        stage: 0,
        workload: 0,
        series: vec![series(kind), series(OpKind::Fsync)],
        cpu: None,
        ring: RingChoice::Auto,
        source: OpSource {
            seed: 1,
            kinds: vec![KindSpec {
                kind,
                weight: 1,
                size: SizeSpec::Fixed(4096),
                place: OpPlace::Region {
                    files: 1,
                    order: FileOrder::Serial,
                    offset_bytes: 0,
                    length_bytes: region_bytes,
                    align_bytes: 4096,
                    dist,
                },
            }],
            sync: SyncRule::default(),
        },
        share: Share::WHOLE,
        pacer: Pacer::Closed,
        pace_share: Share::WHOLE,
        target,
        slots: 4,
        stop: StopRule { ops: Some(region_bytes / 4096), ..StopRule::default() },
        start_delay_ns: 0,
        trace: false,
        verify: false,
        data: DataSeed { seed: 5, ..DataSeed::default() },
    }
}

pub fn file(path: &Path, buffered: bool) -> TargetConfig {
    TargetConfig::Block(FileConfig {
        paths: vec![path.into()],
        through: Vec::new(),
        buffered,
        create: true,
        first_object: 9,
        written: Vec::new(),
    })
}

pub fn stage(clock: Clock, workers: Vec<WorkerSpec>) -> StageSpec {
    let epoch_ns = monotonic_ns();
    StageSpec { epoch_ns, grid_ns: 100_000_000, clock, late_tolerance_ns: 10_000_000, workers }
}

/// Runs a stage to its end; all of its slices, and how its workers ended.
pub fn run(spec: StageSpec) -> (Vec<Interval>, Vec<WorkerEnd>) {
    let running = start(spec).expect("the stage starts");
    let mut slices = Vec::new();
    loop {
        match running.next(Duration::from_secs(5)) {
            Next::Output(output) => {
                if let Output::Interval { interval, .. } = &output {
                    slices.push(Interval::clone(interval));
                }
                running.recycle(output);
            }
            Next::Nothing => {}
            Next::Ended => break,
        }
    }
    (slices, running.join())
}

/// All slices of one kind merged.
pub fn total(slices: &[Interval], kind: OpKind) -> plimsoll_model::Series {
    let mut all = Interval::empty(0);
    slices.iter().for_each(|s| all.merge(s));
    all.series.into_iter().find(|s| s.id.kind == kind).expect("the series is there")
}
