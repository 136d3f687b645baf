//! Bencher's Metric Format (<https://bencher.dev/docs/reference/bencher-metric-format>), for gates against regressions.

use std::collections::BTreeMap;

use plimsoll_model::summary::{LimitSummary, WorkloadSummary};
use plimsoll_model::text::clean;
use plimsoll_model::{Estimate, RunSummary};
use serde::Serialize;

use crate::{RunReport, lines};

/// A figure with the ends of its 95 % interval, where it has them.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct BmfMetric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// What is handed to `bencher run --adapter json --file`.
#[derive(Debug, Clone, PartialEq)]
pub struct Bmf {
    /// The document.
    pub json: String,
    /// Lines that are in it.
    pub lines: usize,
    /// What was left out, and why: a void line holds no gate.
    pub left_out: Vec<String>,
}

/// The valid lines of the runs, by names that are the same from run to run: the run's own name, where it was given one, and op, size and
/// concurrency. Measures are `throughput` (op/s, the mean of the window), `sustained` (op/s, where that mixes a burst and what held after it), `bytes-per-second`, `latency-p50` and `latency-p99` (response, ns). Of two runs with a line
/// of the same name the later counts.
pub fn bmf(runs: &[RunReport]) -> Bmf {
    let mut all: BTreeMap<String, BTreeMap<&'static str, BmfMetric>> = BTreeMap::new();
    let mut left_out = Vec::new();
    for r in runs {
        let given = r.series.as_ref().and_then(|s| s.data.plan.name.as_deref());
        let given = given.map(|name| clean(name).into_owned());
        for w in &r.summary.workloads {
            let line = lines::label(w, &r.summary.workloads);
            let name = given.as_ref().map_or(line.clone(), |given| format!("{given}: {line}"));
            if !plimsoll_stats::validity::is_line_valid(&r.summary, w) {
                let codes = r.summary.codes_of(w).join(" ");
                left_out.push(format!("{name} of run {} is void ({codes})", r.summary.id));
                continue;
            }
            let measures = measures(w, sustained(&r.summary, w));
            if measures.is_empty() {
                left_out.push(format!("{name} of run {} has no figure", r.summary.id));
                continue;
            }
            if all.insert(name.clone(), measures).is_some() {
                left_out.push(format!("{name} is in several runs; that of {} counts", r.summary.id));
            }
        }
    }
    let lines = all.len();
    let mut json = serde_json::to_string_pretty(&all).expect("figures are plain data");
    json.push('\n');
    Bmf { json, lines, left_out }
}

/// The rate that held after a burst, where the run states one: the mean over both is the rate of neither.
pub fn sustained(s: &RunSummary, w: &WorkloadSummary) -> Option<Estimate> {
    let fell = s.findings.iter().any(|f| f.code == "F30" && f.workload.as_deref() == Some(&w.label()));
    let of_line = |l: &&LimitSummary| {
        l.op_class == w.op && l.evidence.iter().any(|(name, line)| name == "line" && *line == w.label())
    };
    s.limits.iter().find(of_line).filter(|_| fell)?.ops_per_s.as_ref()?.sustained
}

fn measures(w: &WorkloadSummary, sustained: Option<Estimate>) -> BTreeMap<&'static str, BmfMetric> {
    let mut out = BTreeMap::new();
    let mut add = |name, value: Option<f64>, interval: Option<Estimate>| {
        let finite = |x: f64| x.is_finite().then_some(x);
        if let Some(value) = value.and_then(finite) {
            // A wide interval reaches below zero; a rate or a time does not.
            let lower_value = interval.and_then(|e| finite(e.low)).map(|x| x.max(0.0));
            out.insert(
                name,
                BmfMetric { value, lower_value, upper_value: interval.and_then(|e| finite(e.high)) },
            );
        }
    };
    add("throughput", w.ops_per_s.map(|e| e.value), w.ops_per_s);
    add("sustained", sustained.map(|e| e.value), sustained);
    add("bytes-per-second", w.bytes_per_s.map(|e| e.value), w.bytes_per_s);
    if let Some(l) = &w.latency_ns.response {
        add("latency-p50", l.p50.map(|n| n as f64), l.intervals.p50);
        add("latency-p99", l.p99.map(|n| n as f64), l.intervals.p99);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support;

    #[test]
    fn a_line_has_its_figures_with_their_intervals_and_a_void_one_none() {
        let mut summary = support::sweep();
        summary.workloads.truncate(2);
        let first = summary.workloads[0].clone();
        summary.workloads[1].valid = false;
        summary.findings = vec![
            plimsoll_model::Finding::new("V07", "client_bound", plimsoll_model::Level::Invalid, "busy")
                .on(&summary.workloads[1].name),
        ];
        summary.status = plimsoll_model::RunStatus::Partly;
        let made = bmf(&[RunReport::of(summary)]);
        let json: serde_json::Value = serde_json::from_str(&made.json).unwrap();
        let rate = first.ops_per_s.unwrap();
        let throughput = &json["put 4 KB"]["throughput"];
        assert_eq!(throughput["value"], serde_json::json!(rate.value));
        assert_eq!(throughput["lower_value"], serde_json::json!(rate.low));
        assert_eq!(made.lines, 1, "{}", made.json);
        assert!(made.left_out[0].contains("V07"), "{:?}", made.left_out);
    }

    /// A gate on the mean of a burst and of what held after it tracks what the report disowns.
    #[test]
    fn what_held_after_a_burst_stands_beside_the_mean() {
        let mut summary = support::sweep();
        summary.workloads.truncate(1);
        let label = summary.workloads[0].label();
        let op = summary.workloads[0].op.clone();
        let held = Estimate::symmetric(1000.0, 20.0, 9.0);
        summary.limits = vec![LimitSummary {
            target: String::new(),
            op_class: op,
            scope: "unknown".into(),
            ops_per_s: Some(plimsoll_model::summary::BucketSummary {
                sustained: Some(held),
                ..Default::default()
            }),
            bytes_per_s: None,
            knee_bytes: None,
            binding: "undetermined".into(),
            refused: None,
            evidence: vec![("line".into(), label.clone())],
        }];
        let of = |s: &RunSummary| -> serde_json::Value {
            serde_json::from_str(&bmf(&[RunReport::of(s.clone())]).json).unwrap()
        };
        assert!(of(&summary)["put 4 KB"]["sustained"].is_null(), "the mean is the rate");
        summary.findings = vec![
            plimsoll_model::Finding::new("F30", "cliff", plimsoll_model::Level::Qualified, "fell").on(label),
        ];
        let told = of(&summary);
        assert_eq!(told["put 4 KB"]["sustained"]["value"], 1000.0, "{told}");
        assert!(told["put 4 KB"]["throughput"]["value"].is_number());
    }
}
