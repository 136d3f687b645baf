//! S3 exchanges as fast as the loop can: for measuring the loop itself, without the rest of the program around it.
//! `s3_loop ENDPOINT get|put [bytes] [seconds] [concurrency] [io_uring|epoll] [insecure] [full]`: one worker, unsigned
//! payload (`full`: signed), keys `loop/...` of the bucket `bench`; the canned server answers whatever is asked. With
//! `PLIMSOLL_BENCH_NO_RECORD=1` in the environment nothing is recorded, for the cost of recording: ops are those begun.

use std::sync::Arc;

use plimsoll_engine::ring::monotonic_ns;
use plimsoll_engine::target::s3::{ClientOptions, Config, KeyNames, Layout, ObjectContent, Setup};
use plimsoll_engine::{
    Clock, DataSeed, Dist, KindSpec, OpPlace, OpSource, Pacer, SeriesSpec, Share, SizeSpec, StageSpec,
    StopRule, SyncRule, TargetConfig, WorkerSpec, start,
};
use plimsoll_model::OpKind;
use plimsoll_model::interval::SeriesShape;
use plimsoll_model::plan::{DataSpec, PayloadSigning, Plan, RingChoice, S3Target, TargetSpec};
use plimsoll_s3::{Credentials, Endpoint};

type Failed = Box<dyn std::error::Error>;

/// A target as a plan has it, with its defaults.
fn target(insecure: bool, signing: PayloadSigning) -> Result<S3Target, Failed> {
    let text = "version = 1\n[targets.t]\nkind = \"s3\"\nendpoints = [\"http://x\"]\nbucket = \"bench\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\ntarget = \"t\"\nmix = { get = 1 }\n";
    match Plan::from_toml(text)?.targets.into_values().next() {
        Some(TargetSpec::S3(mut t)) => {
            t.signing = signing;
            t.tls.insecure = insecure;
            Ok(t)
        }
        other => Err(format!("{other:?} is no S3 target").into()),
    }
}

fn config(endpoint: &str, has: impl Fn(&str) -> bool) -> Result<TargetConfig, Failed> {
    let setup = Setup {
        endpoints: vec![Endpoint::parse(endpoint)?],
        redirects: Vec::new(),
        keys_in_use: Credentials {
            access_key: "canned".into(),
            secret_key: "secret".into(),
            session_token: None,
        }
        .into(),
        region: "us-east-1".into(),
        target: target(
            has("insecure"),
            if has("full") { PayloadSigning::Full } else { PayloadSigning::Unsigned },
        )?,
        keys: KeyNames { prefix: "loop/".into(), prefixes: 1, dataset: None, existing: None },
        content: Arc::new(ObjectContent::new(1, DataSpec::default(), Layout::Stamped, &[])),
        object: ClientOptions::default(),
    };
    Ok(TargetConfig::S3(Arc::new(Config::new(setup)?)))
}

fn stage(endpoint: &str, args: &[String]) -> Result<(StageSpec, OpKind), Failed> {
    let number = |i: usize, default: u64| args.get(i).map_or(Ok(default), |s| s.parse());
    let (bytes, seconds, slots) = (number(1, 4096)?, number(2, 3)?, number(3, 16)?);
    let has = |word: &str| args.iter().any(|a| a == word);
    let kind = if has("put") { OpKind::Put } else { OpKind::Get };
    let place = OpPlace::Keys {
        first: 0,
        count: 1 << 20,
        stride: 1,
        dist: Dist::Uniform,
        size_seed: 1,
        within: None,
    };
    let shape = SeriesShape { first_byte: kind == OpKind::Get, ..SeriesShape::default() };
    let worker = WorkerSpec {
        worker: plimsoll_model::WorkerId::here(0),
        stage: 0,
        workload: 0,
        series: vec![SeriesSpec { kind, shape, trace_series: 0 }],
        cpu: None,
        ring: if has("epoll") { RingChoice::Epoll } else { RingChoice::IoUring },
        source: OpSource {
            seed: 1,
            kinds: vec![KindSpec { kind, weight: 1, size: SizeSpec::Fixed(bytes), place }],
            sync: SyncRule::default(),
        },
        share: Share::WHOLE,
        pacer: Pacer::Closed,
        pace_share: Share::WHOLE,
        target: config(endpoint, has)?,
        slots: u32::try_from(slots)?,
        stop: StopRule { after_ns: Some(seconds * 1_000_000_000), ..StopRule::default() },
        start_delay_ns: 0,
        trace: false,
        verify: false,
        data: DataSeed::default(),
    };
    let clock = Clock::Real;
    let (grid_ns, late_tolerance_ns) = (100_000_000, 10_000_000);
    let stage =
        StageSpec { epoch_ns: monotonic_ns(), grid_ns, clock, late_tolerance_ns, workers: vec![worker] };
    Ok((stage, kind))
}

fn main() -> Result<(), Failed> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (endpoint, rest) =
        args.split_first().ok_or("usage: s3_loop ENDPOINT get|put [bytes] [seconds] [concurrency] [ring]")?;
    let (stage, kind) = stage(endpoint, rest)?;
    let running = start(stage)?;
    let all = running.merged();
    for end in running.join() {
        if let Some(e) = end.error {
            return Err(e.into());
        }
        let Some(series) = all.series.iter().find(|s| s.id.kind == kind) else { continue };
        let bytes = rest.get(1).map_or(Ok(4096), |s| s.parse::<u64>())?;
        let (ops, seconds) = (end.ops as f64, (end.finished_ns - end.started_ns) as f64 / 1e9);
        println!(
            "{{\"op\": \"{kind}\", \"ops_per_s\": {:.0}, \"mib_per_s\": {:.0}, \"cpu_ns_per_op\": {:.0}, \"busy\": {:.2}, \"p50_ns\": {}, \"p99_ns\": {}, \"ring_calls_per_op\": {:.3}, \"ring\": \"{}\", \"failed\": {:?}}}",
            ops / seconds,
            ops * bytes as f64 / seconds / f64::from(1 << 20),
            all.client.cpu_ns as f64 / ops,
            all.client.cpu_ns as f64 / 1e9 / seconds,
            series.response.quantile(0.5),
            series.response.quantile(0.99),
            end.ring_syscalls as f64 / ops,
            end.ring.map_or(String::new(), |r| format!("{}: {}", r.name, r.detail)),
            end.errors,
        );
    }
    Ok(())
}
