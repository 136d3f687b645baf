//! Synthetic runs with known figures: what the report's tests and its browser test are made from.
//!
//! The sweep has the published figures of a real tier (operation, size, objects/s); the limit run is a token
//! bucket of 60,000 ops at 1,000/s, first seen at 2,970/s.
#![allow(dead_code, reason = "each test uses its own part")]

use std::collections::BTreeMap;

use plimsoll_model::analysis::*;
use plimsoll_model::finding::{Finding, Level};
use plimsoll_model::summary::{
    AgentSummary, BucketSummary, ClientSummary, EndpointSummary, Expectation, Latencies, LatencySummary,
    LimitSummary, LittlesLaw, SCHEMA as RUN_SCHEMA, WorkloadSummary,
};
use plimsoll_model::{Environment, Estimate, Histogram, HostFacts, OpKind, RunSummary};
pub mod kinds;
mod limited;
mod record;
#[allow(unused_imports, reason = "each test uses its own part")]
pub use limited::*;
#[allow(unused_imports, reason = "each test uses its own part")]
pub use record::*;

pub const GRID_NS: u64 = 100_000_000;

/// (op, size, objects/s) of the performance tier in the published table.
pub const TIER: [(OpKind, u64, f64); 10] = [
    (OpKind::Put, 4_000, 2462.2),
    (OpKind::Put, 64_000, 2817.8),
    (OpKind::Put, 512_000, 1973.8),
    (OpKind::Put, 1_000_000, 1010.5),
    (OpKind::Put, 10_000_000, 101.7),
    (OpKind::Get, 4_000, 2872.9),
    (OpKind::Get, 64_000, 2376.4),
    (OpKind::Get, 512_000, 1974.3),
    (OpKind::Get, 1_000_000, 1010.6),
    (OpKind::Get, 10_000_000, 101.1),
];

fn environment() -> Environment {
    Environment {
        plimsoll_version: "0.1.0".into(),
        commit: "0123456789ab".into(),
        machine: HostFacts {
            kernel: "6.1.0-44-amd64".into(),
            host: "bench-1".into(),
            cpu_model: "AMD EPYC 9354".into(),
            cpu_count: 8,
            memory_bytes: 34_359_738_368,
            memory_limit_bytes: None,
            cpu_quota_cores: None,
            nics: BTreeMap::from([("eth0".into(), Some(10_000))]),
            boot_id: "5c0f1b6a-46b7-4ffa-9e2d-6b2744dda3a1".into(),
            identity: BTreeMap::new(),
            ceiling: BTreeMap::from([("get_4KiB_ops_per_s".into(), 66_800.0)]),
        },
        started_at: "2026-02-14T09:30:00Z".into(),
        started_monotonic_ns: 1_000_000_000,
        ring: "io_uring (kernel 6.1 has single issuer and deferred task run)".into(),
        seed: 7,
        servers: BTreeMap::from([("https://s3.example.net".into(), "gateway/18.2".into())]),
        notes: BTreeMap::from([("payload".into(), "unsigned, random, unique per block".into())]),
        devices: BTreeMap::new(),
        findings: Vec::new(),
        agents: Vec::new(),
        imported: None,
    }
}

/// Latencies with their percentiles, from a histogram of `n` log-normal-like values around `median_ns`.
pub fn histogram(median_ns: f64, sigma: f64, n: usize, seed: u64) -> Histogram {
    let mut h = Histogram::new();
    let mut rng = Rng(seed);
    for _ in 0..n {
        h.record((median_ns * (sigma * rng.normal()).exp()) as u64);
    }
    h
}

pub struct Rng(pub u64);

impl Rng {
    pub fn uniform(&mut self) -> f64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform().max(1e-12), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

fn line(op: OpKind, size: u64, rate: f64, seed: u64) -> WorkloadSummary {
    let concurrency = 16;
    let latency = f64::from(concurrency) / rate * 1e9;
    let response = LatencySummary::of(&histogram(latency * 0.9, 0.4, 20_000, seed));
    let ops = Estimate::symmetric(rate, rate * 0.006, 24.0);
    WorkloadSummary {
        name: format!("{op}-{size}"),
        op: op.name().into(),
        valid: true,
        size_bytes: size,
        size: serde_json::json!(size),
        concurrency,
        window_s: 30.0,
        horizon_s: 36.0,
        warmup_s: 2.0,
        tail_s: 0.2,
        repeats: 2,
        ops_per_s: Some(ops),
        bytes_per_s: Some(ops.scaled(size as f64)),
        attempts_per_s: rate,
        latency_ns: Latencies {
            ttfb: (op == OpKind::Get)
                .then(|| LatencySummary::of(&histogram(latency * 0.5, 0.3, 20_000, seed + 1)))
                .flatten(),
            response,
            service: None,
            submission: None,
        },
        outcomes: BTreeMap::from([("ok".into(), (rate * 30.0) as u64)]),
        littles_law: Some(LittlesLaw { in_flight: 15.98, rate_times_time: 15.96, error: 0.0013 }),
        client: ClientSummary {
            busy_fraction: 0.11,
            cpu_s: 3.4,
            cpu_s_per_gib: Some(0.12),
            rss_bytes: 61_000_000,
            system_cpu: 0.09,
            ..ClientSummary::default()
        },
        per_endpoint: Vec::new(),
        notes: match op {
            OpKind::Get => vec!["GET bodies are discarded in the kernel (not copied, not checked)".into()],
            _ => vec!["payload unsigned (UNSIGNED-PAYLOAD)".into()],
        },
        ..WorkloadSummary::default()
    }
}

fn summary(id: &str, verdict: &str, workloads: Vec<WorkloadSummary>) -> RunSummary {
    RunSummary {
        schema: RUN_SCHEMA.into(),
        id: id.into(),
        valid: true,
        status: plimsoll_model::RunStatus::Valid,
        answered: true,
        verdict: verdict.into(),
        workloads,
        labels: BTreeMap::from([("tier".into(), "performance".into())]),
        rerun: "plimsoll object sweep --endpoint https://s3.example.net --bucket bench --ops put,get --sizes 4KB,64KB,512KB,1MB,10MB --repeat 2".into(),
        environment: environment(),
        ..RunSummary::default()
    }
}

/// The summary of a sweep: ten cells, one of them throttled, one note.
pub fn sweep() -> RunSummary {
    let lines =
        TIER.iter().enumerate().map(|(i, (op, size, rate))| line(*op, *size, *rate, i as u64)).collect();
    let mut s = summary(
        "20260214-0930-sweep",
        "VALID (1 note). PUT peaks at 2,818 ± 17 objects/s (64 KB) and 970 ± 6 MiB/s (10 MB), GET at 2,873 ± 17 objects/s (4 KB). No fall was seen in 36 s at any size: larger buckets are not excluded.",
        lines,
    );
    let throttled = &mut s.workloads[1];
    throttled.outcomes.insert("http_503".into(), 412);
    throttled.outcomes.insert("timeout".into(), 3);
    let mut f = Finding::new(
        "Q01",
        "horizon",
        Level::Qualified,
        "Each cell was seen for 36 s; the goal was 1 h. A bucket that lasts longer than that is not excluded: run with --goal 36s, or longer.",
    )
    .measured(36.0, 3600.0);
    f.evidence = vec![("seen".into(), "36 s".into()), ("goal".into(), "1 h".into())];
    s.findings.push(f);
    s.findings.push(Finding::new("F02", "ring", Level::Info, "io_uring was used: the kernel offers it."));
    s
}

/// Four operations mixed, one of them without a payload.
pub fn mixed() -> RunSummary {
    let lines = [(OpKind::Get, 450.0), (OpKind::Stat, 300.0), (OpKind::Put, 150.0), (OpKind::Delete, 100.0)];
    let mut s = summary(
        "20260214-1200-mixed",
        "VALID. 1,000 ± 4 op/s in all: 45 % GET, 30 % stat, 15 % PUT, 10 % DELETE of 64 KiB objects.",
        lines.iter().enumerate().map(|(i, (op, rate))| line(*op, 65_536, *rate, 40 + i as u64)).collect(),
    );
    for w in &mut s.workloads {
        w.name = "mix".into();
        if !OpKind::parse(&w.op).is_some_and(OpKind::moves_bytes) {
            w.bytes_per_s = None;
        }
    }
    s
}

/// Three agents with the same work, one of them behind an interface that is full.
pub fn fleet() -> RunSummary {
    let mut w = line(OpKind::Get, 1_048_576, 2600.0, 9);
    w.name = "get".into();
    let mut s = summary("20260214-1400-fleet", "VALID (1 note). 2,600 ± 16 op/s of 1 MiB GET.", vec![w]);
    let agent = |n: u64, rate: f64, clock: Option<(i64, u64)>| AgentSummary {
        agent: format!("lg-{n}"),
        host: format!("node{n}"),
        ops_per_s: rate,
        bytes_per_s: Some(rate * 1_048_576.0),
        share: rate / 2600.0,
        busy_fraction: 0.1 + 0.01 * n as f64,
        p50_ns: Some(5_500_000 + n * 10_000),
        p99_ns: (n != 2).then_some(14_000_000 + n * 100_000),
        clock_offset_ns: clock.map(|c| c.0),
        clock_bound_ns: clock.map(|c| c.1),
        cpu_fraction: Some(0.05 + 0.01 * n as f64),
        nic_fraction: (n == 3).then_some(0.97),
        start_skew_ns: Some(-20_000 + 30_000 * n as i64),
        first_op_s: Some(0.1),
        last_op_s: Some(60.0 + 0.1 * n as f64),
    };
    let (near, far) = ((-1_234_567, 310_000), (90_061_250_000_000, 960_000));
    s.agents = vec![agent(1, 1000.0, None), agent(2, 1000.0, Some(near)), agent(3, 600.0, Some(far))];
    let text = "60.0 % of the median; likely cause: its network interface ran at 97.0 % of its speed (V07 client_bound). \
                It did 18000 ops in the measured window, the median of the 3 agents with the same share of the work is \
                30000, and at least 80.0 % of that is expected.";
    let f = Finding::new("Q14", "straggler", Level::Qualified, text).measured(0.6, 0.8);
    s.findings = vec![f.of_agent(Some("lg-3"))];
    s
}

/// A run in which every op was refused: no rate, no latency, no window.
pub fn refused() -> RunSummary {
    let mut s = limited();
    s.id = "20260214-1300-refused".into();
    s.verdict = "[INVALID V01] Every operation failed with 403: no throughput. Check the credentials.".into();
    s.limits.clear();
    s.expectations.clear();
    s.findings = vec![
        Finding::new(
            "V01",
            "error_rate",
            Level::Invalid,
            "100 % of operations failed (http_403). Check the credentials.",
        )
        .measured(1.0, 0.001),
    ];
    let w = &mut s.workloads[0];
    w.ops_per_s = None;
    w.bytes_per_s = None;
    w.latency_ns = Latencies::default();
    w.outcomes = BTreeMap::from([("ok".into(), 0), ("http_403".into(), 9_311)]);
    w.littles_law = None;
    (w.window_s, w.client.cpu_s_per_gib) = (0.0, None);
    w.per_endpoint.clear();
    s.settle(false, false);
    s
}

/// Evidence for the sweep: the size model with its knee.
pub fn sweep_analysis() -> Analysis {
    let cell = |(op, size_bytes, rate): &(OpKind, u64, f64)| {
        (*op == OpKind::Put).then(|| SizeModelCell {
            size_bytes: *size_bytes,
            concurrency: 16,
            ops_per_s: Estimate::symmetric(*rate, rate * 0.03, 5.0),
            predicted: Some((2700.0f64.powi(-5) + (1.02e9 / *size_bytes as f64).powi(-5)).powf(-0.2)),
            binding: if *size_bytes < 400_000 { "ops".into() } else { "bytes".into() },
            room: Some(1.3),
        })
    };
    Analysis {
        schema: SCHEMA.into(),
        size_models: vec![SizeModel {
            target: "s3".into(),
            op_class: "put".into(),
            ops_per_s: Some(Estimate::symmetric(2700.0, 80.0, 4.0)),
            bytes_per_s: Some(Estimate::symmetric(1.02e9, 1.1e7, 4.0)),
            knee_bytes: Some(Estimate { value: 378_000.0, low: 352_000.0, high: 405_000.0, n_eff: 4.0 }),
            p: Some(5.0),
            reading: "two independent limiters".into(),
            cells: TIER.iter().filter_map(cell).collect(),
            ..SizeModel::default()
        }],
        advice: vec![
            "Prefer objects above 378 KB: below that the operations limit keeps throughput down.".into(),
            "8 clients: warp --rps-limit 340 each.".into(),
        ],
        ..Analysis::default()
    }
}
