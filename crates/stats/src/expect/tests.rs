//! Promises are read as written, refused with a remedy, and judged with their interval.

use std::collections::BTreeMap;

use plimsoll_model::Estimate;
use plimsoll_model::summary::*;

use super::*;

fn workload(op: &str, rate: Estimate) -> WorkloadSummary {
    let latency = LatencySummary {
        count: 5000,
        mean: 5e6,
        min: 1_000_000,
        p50: Some(4_000_000),
        p90: Some(8_000_000),
        p99: Some(20_000_000),
        p999: None,
        p9999: None,
        max: 90_000_000,
        intervals: Default::default(),
    };
    WorkloadSummary {
        name: op.into(),
        op: op.into(),
        size_bytes: 4096,
        size: "4KiB".into(),
        concurrency: 16,
        window_s: 28.0,
        horizon_s: 30.0,
        warmup_s: 2.0,
        tail_s: 0.0,
        repeats: 1,
        ops_per_s: Some(rate),
        bytes_per_s: Some(rate.scaled(4096.0)),
        attempts_per_s: rate.value,
        latency_ns: Latencies { response: Some(latency), ..Latencies::default() },
        outcomes: BTreeMap::from([("ok".into(), 9990), ("http_429".into(), 500), ("timeout".into(), 10)]),
        valid: true,
        ..WorkloadSummary::default()
    }
}

fn summary(rate: Estimate) -> RunSummary {
    RunSummary {
        schema: SCHEMA.into(),
        id: "x".into(),
        valid: true,
        status: plimsoll_model::RunStatus::Valid,
        workloads: vec![workload("get", rate), workload("put", rate.scaled(0.5))],
        ..RunSummary::default()
    }
}

fn met(text: &str, rate: Estimate) -> Option<bool> {
    text.parse::<Expect>().unwrap().check(&summary(rate)).met
}

#[test]
fn rates_are_judged_with_their_interval() {
    let e = Estimate::symmetric(800.1, 3.0, 50.0);
    assert_eq!(met("get.ops_per_s >= 800 +-1%", e), Some(true));
    assert_eq!(met("get.ops_per_s >= 800", e), None);
    assert_eq!(met("get.ops_per_s >= 810/s", e), Some(false));
    assert_eq!(met("get.ops_per_s == 800 +-1%", e), Some(true));
    assert_eq!(met("get.ops_per_s = 800 ± 1", e), None);
    assert_eq!(met("get.ops_per_s < 803.1", e), None);
    assert_eq!(met("get.ops_per_s < 803.2", e), Some(true));
    assert_eq!(met("get.bytes_per_s >= 3MB/s", e), Some(true));
    // Without a selector all have to keep it, and the worst one answers.
    assert_eq!(met("ops_per_s >= 500", e), Some(false));
    assert_eq!(met("list.ops_per_s >= 1", e), None);
}

#[test]
fn latencies_and_shares() {
    let e = Estimate::exact(800.0);
    assert_eq!(met("get.p99 <= 20ms", e), Some(true));
    assert_eq!(met("get.response.p99 <= 19ms", e), Some(false));
    assert_eq!(met("get.p999 <= 1s", e), None);
    assert_eq!(met("get.ttfb.p50 <= 1s", e), None);
    assert_eq!(met("error_rate <= 0.1%", e), Some(true));
    assert_eq!(met("error_rate <= 0.05%", e), Some(false));
    assert_eq!(met("throttled_rate > 1%", e), Some(true));
}

#[test]
fn an_invalid_result_keeps_no_promise() {
    let mut s = summary(Estimate::exact(900.0));
    s.status = plimsoll_model::RunStatus::None;
    let x = "get.ops_per_s >= 800".parse::<Expect>().unwrap().check(&s);
    assert_eq!((x.met, x.void), (None, true));
    assert!(x.reason.contains("invalid"));
}

#[test]
fn what_can_not_be_read_is_refused_with_the_form() {
    for bad in [
        "",
        "get.ops_per_s",
        "get.speed >= 1",
        "get.ops_per_s >= fast",
        "get.p99 <= 20",
        "get.p99 <= 20ms +-x",
    ] {
        let e = bad.parse::<Expect>().unwrap_err();
        assert!(e.to_string().contains("get.ops_per_s >= 800 +-1%"), "{bad}: {e}");
    }
}
