//! A run that meets a token bucket, with its analysis.

use super::*;

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
        }],
        scalings: vec![Scaling {
            name: "get 4 MiB".into(),
            unit: "bytes/s".into(),
            points: [(4u32, 41.9e9, 1.0), (8, 81.2e9, 0.969), (12, 118.0e9, 0.939)]
                .map(|(nodes, x, e)| ScalingPoint {
                    nodes,
                    per_s: Estimate::symmetric(x, x * 0.02, 5.0),
                    efficiency: Some(Estimate::symmetric(e, 0.025, 5.0)),
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
            "16 requests in flight are enough at 5 ms (Little's law); more only wait.".into(),
            "8 clients: warp --rps-limit 125 each; rclone --transfers 2; s5cmd --numworkers 2.".into(),
        ],
        spans: Vec::new(),
    }
}
