//! Random reads of a file as fast as the loop can: for measuring the loop itself, without the rest of the
//! program around it. `random_read FILE [seconds] [depth] [block] [io_uring|libaio|psync] [direct] [split]`

use std::path::PathBuf;

use plimsoll_engine::api::FileConfig;
use plimsoll_engine::ring::monotonic_ns;
use plimsoll_engine::{
    Clock, DataSeed, Dist, FileOrder, KindSpec, OpPlace, OpSource, Pacer, SeriesSpec, Share, SizeSpec,
    StageSpec, StopRule, SyncRule, TargetConfig, WorkerSpec, start,
};
use plimsoll_model::OpKind;
use plimsoll_model::interval::SeriesShape;
use plimsoll_model::plan::RingChoice;

fn stage(path: PathBuf, args: &[String]) -> Result<StageSpec, Box<dyn std::error::Error>> {
    let number = |i: usize, default: u64| args.get(i).map_or(Ok(default), |s| s.parse());
    let (seconds, depth, block) = (number(0, 3)?, number(1, 32)?, number(2, 4096)?);
    let ring = match args.get(3).map(String::as_str) {
        Some("libaio") => RingChoice::Libaio,
        Some("psync") => RingChoice::Psync,
        _ => RingChoice::IoUring,
    };
    let has = |word: &str| args.iter().any(|a| a == word);
    let shape = SeriesShape { submission: has("split"), ..SeriesShape::default() };
    let place = OpPlace::Region {
        files: 1,
        order: FileOrder::Serial,
        offset_bytes: 0,
        length_bytes: std::fs::metadata(&path)?.len(),
        align_bytes: block,
        dist: Dist::Uniform,
    };
    let worker = WorkerSpec {
        worker: plimsoll_model::WorkerId::here(0),
        stage: 0,
        workload: 0,
        series: vec![SeriesSpec { kind: OpKind::Read, shape, trace_series: 0 }],
        cpu: None,
        ring,
        source: OpSource {
            seed: 1,
            kinds: vec![KindSpec { kind: OpKind::Read, weight: 1, size: SizeSpec::Fixed(block), place }],
            sync: SyncRule::default(),
        },
        share: Share::WHOLE,
        pacer: Pacer::Closed,
        pace_share: Share::WHOLE,
        target: TargetConfig::Block(FileConfig {
            paths: vec![path],
            through: Vec::new(),
            buffered: !has("direct"),
            create: false,
            first_object: 0,
            written: Vec::new(),
        }),
        slots: u32::try_from(depth)?,
        stop: StopRule { after_ns: Some(seconds * 1_000_000_000), ..StopRule::default() },
        start_delay_ns: 0,
        trace: false,
        verify: false,
        data: DataSeed::default(),
    };
    Ok(StageSpec {
        epoch_ns: monotonic_ns(),
        grid_ns: 100_000_000,
        clock: Clock::Real,
        late_tolerance_ns: 10_000_000,
        workers: vec![worker],
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (path, rest) =
        args.split_first().ok_or("usage: random_read FILE [seconds] [depth] [block] [ring]")?;
    let running = start(stage(path.into(), rest)?)?;
    let all = running.merged();
    for end in running.join() {
        if let Some(e) = end.error {
            return Err(e.into());
        }
        let Some(reads) = all.series.first() else { continue };
        let (ops, seconds) = (reads.ok() as f64, (end.finished_ns - end.started_ns) as f64 / 1e9);
        println!(
            "{{\"iops\": {:.0}, \"cpu_ns_per_op\": {:.0}, \"p50_ns\": {}, \"p99_ns\": {}, \"ring_calls_per_op\": {:.3}, \"ring\": \"{}\"}}",
            ops / seconds,
            all.client.cpu_ns as f64 / ops,
            reads.response.quantile(0.5),
            reads.response.quantile(0.99),
            end.ring_syscalls as f64 / ops,
            end.ring.map_or(String::new(), |r| format!("{}: {}", r.name, r.detail)),
        );
    }
    Ok(())
}
