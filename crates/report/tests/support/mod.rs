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
mod record;
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
            settings: BTreeMap::new(),
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

pub const BURST: f64 = 2970.0;
pub const SUSTAINED: f64 = 1000.0;
pub const CLIFF_S: f64 = 30.5;

/// One PUT workload that runs into a token bucket.
pub fn limited() -> RunSummary {
    let mut w = line(OpKind::Put, 4096, 1004.0, 3);
    w.name = "put".into();
    w.repeats = 1;
    w.window_s = 85.0;
    w.horizon_s = 120.0;
    w.outcomes = BTreeMap::from([("ok".into(), 85_340), ("http_429".into(), 51_204), ("reset".into(), 7)]);
    w.attempts_per_s = 1606.0;
    w.latency_ns.service = LatencySummary::of(&histogram(5.1e6, 0.5, 100_000, 5));
    w.latency_ns.response = LatencySummary::of(&histogram(9.4e6, 0.9, 100_000, 6));
    w.per_endpoint = ["http://node1:9000", "http://node2:9000"]
        .iter()
        .enumerate()
        .map(|(i, e)| EndpointSummary {
            endpoint: (*e).into(),
            ops_per_s: 502.0 + i as f64,
            bytes_per_s: 2_056_192.0,
            mean_response_ns: 15.9e6,
            max_response_ns: 221_000_000,
            ok: 42_670,
            throttled: 25_602,
            failed: 3 + i as u64,
        })
        .collect();
    let mut s = summary(
        "20260214-1011-limit",
        "VALID (2 notes). Sustained **1,004 ± 6 op/s** of 4 KiB PUT (95 %, 85 s window). It first runs at 2,970 op/s for 30 s, then falls sharply to the sustained rate: a token bucket of 60,000 ± 1,000 ops, refilling at 1,000/s (full again after 60 s idle). The cap is operations/s: objects below 205 KiB (190 to 222) are ops-limited, above it bytes-limited at 210 ± 4 MB/s. Cause: limiter (429s start at the cliff; client CPU 31 %). Seen for 2 min: a second bucket larger than 120,000 ops at this rate is not excluded.",
        vec![w],
    );
    s.rerun = "plimsoll limits object --endpoint https://s3.example.net --bucket bench --budget 10m".into();
    s.limits = vec![LimitSummary {
        target: "s3".into(),
        op_class: "put".into(),
        scope: "unknown".into(),
        ops_per_s: Some(BucketSummary {
            sustained: Some(Estimate::symmetric(1004.0, 6.0, 20.0)),
            burst: Some(Estimate::symmetric(2970.0, 20.0, 8.0)),
            capacity: Some(Estimate::symmetric(60_000.0, 1_000.0, 4.0)),
            refill: Some(Estimate::symmetric(1001.0, 11.0, 4.0)),
            proved: true,
            horizon_s: Some(280.0),
            full_again_s: None,
        }),
        bytes_per_s: Some(BucketSummary {
            sustained: Some(Estimate::symmetric(210e6, 4e6, 12.0)),
            proved: true,
            ..BucketSummary::default()
        }),
        knee_bytes: Some(Estimate { value: 209_920.0, low: 194_560.0, high: 227_328.0, n_eff: 6.0 }),
        binding: "ops".into(),
        refused: Some(0.37),
        evidence: vec![("429s after the cliff".into(), "37 %".into())],
    }];
    s.expectations = vec![Expectation {
        text: "put.ops_per_s >= 800 +-1%".into(),
        met: Some(true),
        void: false,
        measured: Some(1004.0),
        reason: "the lower bound 998 is above 792".into(),
    }];
    s.findings = vec![
        Finding::new(
            "Q02",
            "repeats",
            Level::Qualified,
            "One run: how much the rate differs between runs is unknown. Use --repeat 5.",
        )
        .measured(1.0, 3.0)
        .on("put"),
        Finding::new(
            "Q05",
            "one_client",
            Level::Qualified,
            "One client address: the limit may be per client. Run --probe-scope (4 min).",
        ),
    ];
    s
}

pub fn limited_analysis() -> Analysis {
    let model = |s: f64| (1004.0f64.powi(-8) + (210e6 / s).powi(-8)).powf(-0.125);
    let sizes = [1024u64, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304];
    let cells = sizes.iter().enumerate().flat_map(|(i, s)| {
        [4u32, 32].map(move |c| {
            let latency_cap = f64::from(c) / (0.008 + *s as f64 / 4e8);
            let x = model(*s as f64).min(latency_cap) * (1.0 + 0.02 * (i as f64 - 3.0) / 3.0);
            SizeModelCell {
                size_bytes: *s,
                concurrency: c,
                ops_per_s: Estimate::symmetric(x, x * 0.03, 4.0),
                predicted: Some(x * 1.01),
                binding: match () {
                    () if latency_cap < model(*s as f64) => "latency".into(),
                    () if *s < 209_920 => "ops".into(),
                    () => "bytes".into(),
                },
                room: Some(1.2),
            }
        })
    });
    let drain = |start_s: f64, b: f64| {
        let work = (0..=120).map(|i| {
            let t = f64::from(i) * 0.75;
            (t, (BURST * t).min(b + SUSTAINED * t))
        });
        Drain { start_s, work: work.collect(), cliff_s: Some(b / (BURST - SUSTAINED)) }
    };
    let recover = |idle: f64| Recovery {
        idle_s: idle,
        tokens: Estimate::symmetric((SUSTAINED * idle).min(60_000.0), 900.0, 3.0),
        saturated: idle > 60.0,
    };
    let curve =
        [(4, 420.0), (8, 810.0), (16, 1480.0), (32, 2310.0), (64, 2820.0), (128, 2950.0), (256, 2960.0)];
    let load = |fraction: f64| {
        let rho: f64 = fraction.min(0.99);
        let response =
            histogram(4e6 / (1.0 - rho).sqrt(), 0.6 + rho / 2.0, 60_000, (fraction * 100.0) as u64);
        let service = histogram(4.2e6, 0.5, 60_000, 9);
        let spectrum = |h: &Histogram| {
            [0.5, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9998].map(|q| (q, h.quantile(q) as f64)).to_vec()
        };
        LoadPoint {
            op_class: "put".into(),
            fraction,
            offered_per_s: 998.0 * fraction,
            achieved_per_s: Some(Estimate::symmetric(998.0 * fraction, 3.0, 30.0)),
            sustainable: fraction < 0.95,
            invalid: vec![],
            response: LatencySummary::of(&response),
            service: LatencySummary::of(&service),
            response_spectrum: spectrum(&response),
            service_spectrum: spectrum(&service),
        }
    };
    Analysis {
        outages: Vec::new(),
        throttled: Vec::new(),
        remarks: Vec::new(),
        schema: SCHEMA.into(),
        holds: vec![Hold {
            line: 0,
            unit: "ops".into(),
            verdict: "throttled".into(),
            levels: vec![
                MeasuredLevel { start_s: 2.0, end_s: CLIFF_S, per_s: Estimate::symmetric(BURST, 20.0, 9.0) },
                MeasuredLevel {
                    start_s: CLIFF_S,
                    end_s: 120.0,
                    per_s: Estimate::symmetric(1004.0, 6.0, 20.0),
                },
            ],
            cliffs: vec![Cliff {
                at_s: CLIFF_S,
                from_per_s: BURST,
                to_per_s: 1004.0,
                verdict: "throttle-proved".into(),
                evidence: [
                    ("E1", "429s: 37 % of attempts after, 0 % before", Some(true), "decisive"),
                    ("E2", "fell within 0.4 s", Some(true), "needed"),
                    ("E3", "14 standard deviations apart", Some(true), "needed"),
                    ("E4", "flat after: 1.1 % spread", Some(true), "supports"),
                    ("E7", "not repeated after idle", None, "decisive"),
                ]
                .map(|(code, text, holds, weight)| Evidence {
                    code: code.into(),
                    text: text.into(),
                    holds,
                    weight: weight.into(),
                })
                .to_vec(),
            }],
            events: vec![(71.0, 73.0)],
            horizon_s: 120.0,
            ..Hold::default()
        }],
        buckets: vec![BucketFit {
            target: "s3".into(),
            op_class: "put".into(),
            unit: "ops".into(),
            sustained_per_s: Some(Estimate::symmetric(1004.0, 6.0, 20.0)),
            burst_per_s: Some(Estimate::symmetric(BURST, 20.0, 8.0)),
            capacity: Some(Estimate::symmetric(60_000.0, 1_000.0, 4.0)),
            refill_per_s: Some(Estimate::symmetric(1001.0, 11.0, 4.0)),
            full_again_s: Some(Estimate::symmetric(60.0, 1.2, 4.0)),
            status: "measured".into(),
            drains: vec![drain(0.0, 60_000.0), drain(300.0, 24_000.0)],
            recoveries: [10.0, 24.0, 45.0, 80.0, 110.0].map(recover).to_vec(),
            frontier: (0..30)
                .map(|i| (900.0 + 70.0 * f64::from(i), (2970.0 - 900.0 - 70.0 * f64::from(i)) * 30.0))
                .collect(),
        }],
        size_models: vec![SizeModel {
            target: "s3".into(),
            op_class: "put".into(),
            ops_per_s: Some(Estimate::symmetric(1004.0, 6.0, 9.0)),
            bytes_per_s: Some(Estimate::symmetric(210e6, 4e6, 9.0)),
            knee_bytes: Some(Estimate { value: 209_920.0, low: 194_560.0, high: 227_328.0, n_eff: 6.0 }),
            base_ns: Some(Estimate::symmetric(8e6, 2e5, 9.0)),
            stream_bytes_per_s: Some(Estimate::symmetric(4e8, 2e7, 9.0)),
            p: Some(8.0),
            reading: "two independent limiters".into(),
            cells: cells.collect(),
            ..SizeModel::default()
        }],
        saturations: vec![Saturation {
            op_class: "put".into(),
            size_bytes: 4096,
            points: curve
                .iter()
                .map(|(c, x)| SaturationPoint {
                    concurrency: *c,
                    ops_per_s: Estimate::symmetric(*x, x * 0.02, 10.0),
                    p50_ns: Some((f64::from(*c) / x * 0.9e9) as u64),
                    p99_ns: Some((f64::from(*c) / x * 2.6e9) as u64),
                })
                .collect(),
            c95: Some(Estimate { value: 64.0, low: 48.0, high: 96.0, n_eff: 6.0 }),
            plateau_per_s: Some(Estimate::symmetric(2955.0, 25.0, 6.0)),
            fewer_fall_short: true,
            verdict: "saturated".into(),
            budget_needed_s: None,
            invalid: Vec::new(),
            ceilings: Vec::new(),
            limited_by: None,
        }],
        server_comparisons: Vec::new(),
        scalings: vec![Scaling {
            name: "get 4 MiB".into(),
            unit: "bytes/s".into(),
            points: [(4u32, 41.9e9, 1.0), (8, 81.2e9, 0.969), (12, 118.0e9, 0.939)]
                .map(|(nodes, x, e)| ScalingPoint {
                    nodes,
                    per_s: Estimate::symmetric(x, x * 0.02, 5.0),
                    efficiency: Some(Estimate::symmetric(e, 0.025, 5.0)),
                    limited_by: None,
                    ceiling_per_s: None,
                })
                .to_vec(),
            predictions: [(18u32, 170.0e9, 0.90, 0.1, false), (24, 218.0e9, 0.868, 0.2, true)]
                .map(|(nodes, x, e, w, speculative)| ScalingPrediction {
                    nodes,
                    per_s: Estimate::symmetric(x, x * w, 5.0),
                    efficiency: Some(Estimate::symmetric(e, e * w, 5.0)),
                    speculative,
                })
                .to_vec(),
            peak_nodes: None,
            verdict: "close to linear".into(),
        }],
        comparisons: vec![Comparison {
            name: "put 64 KiB".into(),
            measure: "rate".into(),
            op: "put".into(),
            size_bytes: 65_536,
            concurrency: 512,
            outcome: "faster".into(),
            holds_among_all: Some(true),
            unit: "op/s".into(),
            a_name: "replica 3".into(),
            b_name: "EC 2+2".into(),
            a: vec![87_100.0, 86_400.0, 88_000.0, 86_900.0, 87_600.0],
            b: vec![74_200.0, 73_100.0, 75_000.0, 73_700.0, 74_800.0],
            paired: true,
            ratio: Some(Estimate { value: 1.176, low: 1.166, high: 1.187, n_eff: 5.0 }),
            detectable: Some(0.021),
            verdict: "A faster".into(),
        }],
        load_points: [0.25, 0.5, 0.7, 0.8, 0.9, 0.95].map(load).to_vec(),
        bottlenecks: vec![
            Bottleneck {
                candidate: "limiter".into(),
                measured: "429: 37 %".into(),
                threshold: "1 %".into(),
                time_fraction: Some(0.74),
                verdict: "is".into(),
                next: "Repeat after 60 s idle".into(),
            },
            Bottleneck {
                candidate: "client CPU".into(),
                measured: "31 %".into(),
                threshold: "90 %".into(),
                time_fraction: Some(0.0),
                verdict: "clear".into(),
                next: String::new(),
            },
        ],
        checks: vec![
            Check {
                code: "V01".into(),
                name: "error rate".into(),
                result: "pass".into(),
                measured: "0.005 %".into(),
                threshold: "0.1 %".into(),
                remedy: String::new(),
            },
            Check {
                code: "V07".into(),
                name: "client saturated".into(),
                result: "pass".into(),
                measured: "31 %".into(),
                threshold: "85 %".into(),
                remedy: String::new(),
            },
            Check {
                code: "Q02".into(),
                name: "repeats".into(),
                result: "note".into(),
                measured: "1".into(),
                threshold: "3".into(),
                remedy: "--repeat 5".into(),
            },
        ],
        advice: vec![
            "To stay below the limit with 8 clients: warp --rps-limit 125, rclone --tpslimit 125 on each."
                .into(),
            "Load generators, on each: vegeta -rate=125/1s, wrk2 -R125, k6 rate: 125, timeUnit: '1s'.".into(),
        ],
        spans: Vec::new(),
    }
}
