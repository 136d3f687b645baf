//! The paragraph keeps its order, carries every interval, and says the horizon.

use std::collections::BTreeMap;

use plimsoll_model::summary::*;
use plimsoll_model::{Environment, Estimate};

use super::*;

fn summary() -> RunSummary {
    let ops = Estimate::symmetric(1004.0, 5.5, 40.0);
    RunSummary {
        schema: SCHEMA.into(),
        id: "r".into(),
        valid: true,
        verdict: String::new(),
        findings: vec![],
        workloads: vec![WorkloadSummary {
            name: "put".into(),
            op: "put".into(),
            size_bytes: 4096,
            size: "4KiB".into(),
            concurrency: 16,
            window_s: 300.0,
            horizon_s: 1200.0,
            warmup_s: 2.0,
            tail_s: 0.0,
            repeats: 5,
            ops_per_s: Some(ops),
            bytes_per_s: Some(ops.scaled(4096.0)),
            attempts_per_s: 1004.0,
            latency_ns: Latencies::default(),
            outcomes: BTreeMap::new(),
            littles_law: None,
            client: ClientSummary::default(),
            per_endpoint: vec![],
            notes: vec![],
        }],
        limits: vec![],
        expectations: vec![],
        labels: BTreeMap::new(),
        rerun: String::new(),
        environment: Environment::default(),
    }
}

#[test]
fn a_plain_run() {
    let t = paragraph(&summary(), &Analysis::default(), None);
    assert!(t.starts_with("VALID. Measured 1,004 ± 6 op/s of 4KiB PUT, 4.112 ± 0.023 MB/s at 16 in flight (95 %, 5 runs, 5 min window)."), "{t}");
    assert!(t.contains("Seen for 20 min: a burst that ends later is not excluded"), "{t}");
}

#[test]
fn an_invalid_run_says_so_first() {
    let mut s = summary();
    s.findings = vec![
        Finding::new("V07", "client_bound", Level::Invalid, "Client-bound: x."),
        Finding::new("Q01", "horizon", Level::Qualified, "y."),
    ];
    let t = paragraph(&s, &Analysis::default(), None);
    assert!(t.starts_with("[INVALID V07] Client-bound: x."), "{t}");
    assert!(t.contains("Notes: Q01 horizon."), "{t}");
    s.workloads[0].ops_per_s = None;
    assert!(paragraph(&s, &Analysis::default(), None).contains("**Undetermined**: the rate of 4KiB PUT"));
}

#[test]
fn a_limiter_in_the_order_of_the_methods() {
    let mut s = summary();
    let e = |v: f64, h: f64| Some(Estimate::symmetric(v, h, 5.0));
    s.limits = vec![LimitSummary {
        target: "s3".into(),
        op_class: "put".into(),
        scope: "unknown".into(),
        ops_per_s: Some(BucketSummary {
            sustained: e(1000.0, 6.0),
            burst: e(2970.0, 40.0),
            capacity: e(60_000.0, 1000.0),
            refill: e(1000.0, 20.0),
        }),
        bytes_per_s: Some(BucketSummary { sustained: e(210e6, 4e6), ..BucketSummary::default() }),
        knee_bytes: Some(Estimate { value: 205e3, low: 190e3, high: 222e3, n_eff: 4.0 }),
        binding: "both".into(),
        evidence: vec![],
    }];
    let t = paragraph(&s, &Analysis::default(), None);
    let order = [
        "VALID",
        "Sustained **1,000 ± 6 op/s**",
        "It first runs at 2,970",
        "60,000 ± 1,000 ops",
        "full again after 60.0 s",
        "210 ± 4 MB/s",
        "205 KB",
        "Seen for 20 min",
        "per connection, bucket, key or client",
    ];
    let at: Vec<usize> =
        order.iter().map(|w| t.find(w).unwrap_or_else(|| panic!("{w} is not in: {t}"))).collect();
    assert!(at.is_sorted(), "{t}");
    let ops = s.limits[0].ops_per_s.as_mut().unwrap();
    ops.capacity = Some(Estimate { value: 51_234.0, low: 51_234.0, high: f64::MAX, n_eff: 1.0 });
    assert!(
        paragraph(&s, &Analysis::default(), None).contains("a token bucket of **at least 51,000 ops**"),
        "{}",
        paragraph(&s, &Analysis::default(), None)
    );
}
