//! `GET /metrics`: the figures of runs as Prometheus text (format 0.0.4). Latencies are histograms: whoever stores them can merge them over
//! series and time. There are no quantile gauges, because an average of them is no quantile of anything.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use plimsoll_judge::nominal_size;
use plimsoll_model::text::clean;
use plimsoll_model::{Estimate, Histogram, Outcome, RunSummary};
use plimsoll_store::{Mark, RunData, Totals};

use crate::families::{self, MetricFamily};

/// Bounds of the buckets, nanoseconds: ten to each power of ten from 10 us to 100 s (Renard's numbers, ISO 3). Whoever reads a quantile off
/// them is at most an eighth off; with three to a power it was a half.
const BOUNDS_NS: [u64; 71] = [
    10_000,
    12_500,
    16_000,
    20_000,
    25_000,
    31_500,
    40_000,
    50_000,
    63_000,
    80_000,
    100_000,
    125_000,
    160_000,
    200_000,
    250_000,
    315_000,
    400_000,
    500_000,
    630_000,
    800_000,
    1_000_000,
    1_250_000,
    1_600_000,
    2_000_000,
    2_500_000,
    3_150_000,
    4_000_000,
    5_000_000,
    6_300_000,
    8_000_000,
    10_000_000,
    12_500_000,
    16_000_000,
    20_000_000,
    25_000_000,
    31_500_000,
    40_000_000,
    50_000_000,
    63_000_000,
    80_000_000,
    100_000_000,
    125_000_000,
    160_000_000,
    200_000_000,
    250_000_000,
    315_000_000,
    400_000_000,
    500_000_000,
    630_000_000,
    800_000_000,
    1_000_000_000,
    1_250_000_000,
    1_600_000_000,
    2_000_000_000,
    2_500_000_000,
    3_150_000_000,
    4_000_000_000,
    5_000_000_000,
    6_300_000_000,
    8_000_000_000,
    10_000_000_000,
    12_500_000_000,
    16_000_000_000,
    20_000_000_000,
    25_000_000_000,
    31_500_000_000,
    40_000_000_000,
    50_000_000_000,
    63_000_000_000,
    80_000_000_000,
    100_000_000_000,
];
/// Lines of one run's result that are given out: a sweep of a thousand cells is for its report.
const MOST_LINES: usize = 100;

/// Labels of a run that are given out: each is one of a metric.
const MOST_LABELS: usize = 32;
/// Less of a value is the last digits of a sum.
const LAST_DIGITS: f64 = 1e-9;

/// Labels, in their order.
type Labels = Vec<(Cow<'static, str>, String)>;

/// A value, and the ends of its interval where it is bounded.
type Bounded = (f64, Option<f64>, Option<f64>);

/// What is given out of one run.
#[derive(Debug, Clone, Default)]
pub struct RunMetrics {
    id: String,
    /// Of the run, by names that a metric's label may have.
    labels: Labels,
    is_running: bool,
    /// Counters of each series of the last stages, since the first op of its stage.
    series: Vec<SeriesMetrics>,
    in_flight: Option<f64>,
    /// Ops per second of each of several agents.
    agents: Vec<(String, f64)>,
    lost: Option<u64>,
    /// Of a line: value and the ends of its interval, ops per second; valid.
    lines: Vec<LineMetrics>,
}

#[derive(Debug, Clone)]
struct SeriesMetrics {
    labels: Labels,
    outcomes: BTreeMap<&'static str, u64>,
    bytes: Option<u64>,
    response: HistogramMetrics,
}

#[derive(Debug, Clone)]
struct HistogramMetrics {
    /// Ops at or below each of [`BOUNDS_NS`].
    upto: Vec<u64>,
    count: u64,
    sum_s: f64,
}

#[derive(Debug, Clone)]
struct LineMetrics {
    labels: Labels,
    ops_per_s: Option<Bounded>,
    bytes_per_s: Option<Bounded>,
    sustained_per_s: Option<f64>,
    is_valid: bool,
}

impl HistogramMetrics {
    fn of(h: &Histogram) -> Self {
        let mut upto = vec![0; BOUNDS_NS.len()];
        for (_, high, n) in h.buckets() {
            // A bucket that reaches over a bound counts for the next: three digits of resolution.
            if let Some(first) = BOUNDS_NS.iter().position(|b| high <= *b) {
                upto[first..].iter_mut().for_each(|c| *c += n);
            }
        }
        Self { upto, count: h.count(), sum_s: h.sum_ns() as f64 / 1e9 }
    }
}

impl RunMetrics {
    /// The same without counters and histograms: those of a run that ended long ago are of no use to whoever scrapes.
    pub fn without_counters(mut self) -> Self {
        self.series.clear();
        self
    }

    /// `recorded`: what the run holds, and the totals of its last stages.
    pub fn of(summary: &RunSummary, is_running: bool, recorded: Option<(&RunData, &[Totals])>) -> Self {
        let run = clean(&summary.id).into_owned();
        let labels = labels_of(&summary.labels);
        let mut out = Self { id: run.clone(), labels, is_running, ..Self::default() };
        if let Some((data, totals)) = recorded {
            out.series = totals.iter().flat_map(|t| series_of(&run, data, t)).collect();
            let lost = data.marks.iter().filter(|m| matches!(m, Mark::AgentLost { .. })).count();
            out.lost = data.is_several().then_some(lost as u64);
            out.in_flight = is_running.then(|| in_flight(data)).flatten();
        }
        out.agents = summary.agents.iter().map(|a| (clean(&a.agent).into_owned(), a.ops_per_s)).collect();
        let line = |w: &plimsoll_model::summary::WorkloadSummary| LineMetrics {
            labels: vec![
                ("run".into(), run.clone()),
                ("workload".into(), clean(&w.name).into_owned()),
                ("op".into(), clean(&w.op).into_owned()),
                ("size".into(), size(w.size_bytes)),
            ],
            ops_per_s: w.ops_per_s.map(bounded),
            bytes_per_s: w.bytes_per_s.map(bounded),
            sustained_per_s: plimsoll_report::export::sustained(summary, w).map(|e| e.value),
            is_valid: w.valid,
        };
        out.lines = summary.workloads.iter().take(MOST_LINES).map(line).collect();
        out
    }
}

fn bounded(e: Estimate) -> Bounded {
    let low = if e.low < LAST_DIGITS * e.value { 0.0 } else { e.low };
    (e.value, e.low.is_finite().then_some(low), e.high.is_finite().then_some(e.high))
}

/// `label_tier` of `tier`: with whatever a metric's label may not have as `_`. Of names that are the same then, the first.
fn labels_of(labels: &BTreeMap<String, String>) -> Labels {
    let mut out = Labels::new();
    for (name, value) in labels {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name: Cow<'static, str> = format!("label_{}", name.chars().map(plain).collect::<String>()).into();
        if out.len() < MOST_LABELS && out.iter().all(|(n, _)| *n != name) {
            out.push((name, clean(value).into_owned()));
        }
    }
    out
}

/// Nominal, bytes; of what has none, nothing.
fn size(bytes: u64) -> String {
    if bytes > 0 { bytes.to_string() } else { String::new() }
}

fn series_of(run: &str, data: &RunData, totals: &Totals) -> Vec<SeriesMetrics> {
    let stage = data.stages.iter().find(|s| s.index == totals.window.stage);
    let of = |s: &plimsoll_model::Series| {
        let workload = stage.and_then(|d| d.spec.workloads.get(usize::from(s.id.workload)));
        let some = |o: &Outcome| s.counts.outcomes[o.index()] > 0 || o.is_ok();
        let name = workload.map_or("", |w| w.name.as_str());
        SeriesMetrics {
            labels: vec![
                ("run".into(), run.to_owned()),
                ("stage".into(), (s.id.stage + 1).to_string()),
                ("workload".into(), clean(name).into_owned()),
                ("op".into(), s.id.kind.name().to_owned()),
                ("size".into(), size(workload.map_or(0, |w| nominal_size(w, Some(s.id.kind))))),
            ],
            outcomes: Outcome::ALL
                .into_iter()
                .filter(some)
                .map(|o| (o.name(), s.counts.outcomes[o.index()]))
                .collect(),
            bytes: s.id.kind.moves_bytes().then_some(s.counts.bytes_ok),
            response: HistogramMetrics::of(&s.response),
        }
    };
    totals.series.iter().map(of).collect()
}

/// Mean ops in flight over the last whole second of the stage that runs.
fn in_flight(data: &RunData) -> Option<f64> {
    let stage = data.stages.last().filter(|s| s.end_ns.is_none())?;
    let points = (1_000_000_000 / data.step_ns.max(1)).max(1) as usize;
    let tail = stage.client.len().checked_sub(points)?;
    let sum: u128 = stage.client[tail..].iter().map(|c| c.in_flight_ns).sum();
    Some(sum as f64 / (points as f64 * data.step_ns as f64))
}

/// All of them as one document.
pub fn text(runs: &[RunMetrics]) -> String {
    let mut out = String::new();
    let run = |r: &RunMetrics| -> Labels { vec![("run".into(), r.id.clone())] };
    let mut family = |of: &MetricFamily, samples: Vec<(String, Labels, f64)>| {
        let MetricFamily { name, kind, help, .. } = of;
        if samples.is_empty() {
            return;
        }
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (suffix, labels, value) in samples {
            let _ = writeln!(out, "{name}{suffix}{} {}", labelled(&labels), number(value));
        }
    };
    let of = |f: &dyn Fn(&RunMetrics) -> Vec<(Labels, f64)>| -> Vec<(String, Labels, f64)> {
        runs.iter().flat_map(f).map(|(l, v)| (String::new(), l, v)).collect()
    };
    family(&families::RUN_INFO, of(&|r| vec![([run(r), r.labels.clone()].concat(), 1.0)]));
    family(&families::RUN_RUNNING, of(&|r| vec![(run(r), f64::from(u8::from(r.is_running)))]));
    family(
        &families::OPS,
        of(&|r| {
            let each = r
                .series
                .iter()
                .flat_map(|s| s.outcomes.iter().map(|(o, n)| (with(&s.labels, "outcome", o), *n as f64)));
            each.collect()
        }),
    );
    family(
        &families::PAYLOAD,
        of(&|r| r.series.iter().filter_map(|s| Some((s.labels.clone(), s.bytes? as f64))).collect()),
    );
    family(
        &families::RESPONSE,
        runs.iter().flat_map(|r| &r.series).flat_map(|s| buckets(&s.labels, &s.response)).collect(),
    );
    family(&families::IN_FLIGHT, of(&|r| r.in_flight.map(|v| (run(r), v)).into_iter().collect()));
    family(
        &families::AGENT_RATE,
        of(&|r| r.agents.iter().map(|(a, v)| (with(&run(r), "agent", a), *v)).collect()),
    );
    family(&families::AGENTS_LOST, of(&|r| r.lost.map(|n| (run(r), n as f64)).into_iter().collect()));
    family(
        &families::RESULT_RATE,
        of(&|r| r.lines.iter().filter_map(|l| Some((l.labels.clone(), l.ops_per_s?.0))).collect()),
    );
    family(
        &families::RESULT_RATE_LOW,
        of(&|r| r.lines.iter().filter_map(|l| Some((l.labels.clone(), l.ops_per_s?.1?))).collect()),
    );
    family(
        &families::RESULT_RATE_HIGH,
        of(&|r| r.lines.iter().filter_map(|l| Some((l.labels.clone(), l.ops_per_s?.2?))).collect()),
    );
    family(
        &families::RESULT_SUSTAINED,
        of(&|r| r.lines.iter().filter_map(|l| Some((l.labels.clone(), l.sustained_per_s?))).collect()),
    );
    for (metric, end) in [
        (&families::RESULT_BYTES, (|b: Bounded| Some(b.0)) as fn(Bounded) -> Option<f64>),
        (&families::RESULT_BYTES_LOW, |b| b.1),
        (&families::RESULT_BYTES_HIGH, |b| b.2),
    ] {
        family(
            metric,
            of(&|r| r.lines.iter().filter_map(|l| Some((l.labels.clone(), end(l.bytes_per_s?)?))).collect()),
        );
    }
    family(
        &families::RESULT_VALID,
        of(&|r| r.lines.iter().map(|l| (l.labels.clone(), f64::from(u8::from(l.is_valid)))).collect()),
    );
    out
}

fn buckets(labels: &Labels, h: &HistogramMetrics) -> Vec<(String, Labels, f64)> {
    let bound = |ns: u64| format!("{}", ns as f64 / 1e9);
    let each = BOUNDS_NS.iter().zip(&h.upto);
    let mut out: Vec<(String, Labels, f64)> =
        each.map(|(b, n)| ("_bucket".into(), with(labels, "le", &bound(*b)), *n as f64)).collect();
    out.push(("_bucket".into(), with(labels, "le", "+Inf"), h.count as f64));
    out.push(("_sum".into(), labels.clone(), h.sum_s));
    out.push(("_count".into(), labels.clone(), h.count as f64));
    out
}

fn with(labels: &Labels, name: &'static str, value: &str) -> Labels {
    let mut out = labels.clone();
    out.push((name.into(), value.to_owned()));
    out
}

fn labelled(labels: &Labels) -> String {
    let escaped = |v: &str| v.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    // An empty one is none.
    let given = labels.iter().filter(|(_, v)| !v.is_empty());
    let each: Vec<String> = given.map(|(n, v)| format!("{n}=\"{}\"", escaped(v))).collect();
    format!("{{{}}}", each.join(","))
}

/// Whole numbers without a fraction; a double otherwise, as short as it can be read back.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 9e15 { format!("{value:.0}") } else { format!("{value}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics() -> RunMetrics {
        let mut h = Histogram::new();
        [5_000, 1_500_000, 1_600_000, 400_000_000_000].into_iter().for_each(|ns| h.record(ns));
        let labels: Labels = vec![
            ("run".into(), "20261124-150000-ab12".into()),
            ("stage".into(), "1".into()),
            ("workload".into(), "a \"b\"\\\nc".into()),
            ("op".into(), "get".into()),
            ("size".into(), "4096".into()),
        ];
        let own = [("tier", "gold \"1\""), ("a-b", "x"), ("a.b", "y")];
        RunMetrics {
            id: "20261124-150000-ab12".into(),
            labels: labels_of(&own.map(|(k, v)| (k.to_owned(), v.to_owned())).into()),
            is_running: true,
            series: vec![SeriesMetrics {
                labels: labels.clone(),
                outcomes: [("ok", 4), ("http_429", 17)].into(),
                bytes: Some(16_384),
                response: HistogramMetrics::of(&h),
            }],
            in_flight: Some(15.9375),
            agents: vec![("lg-1".into(), 100.5)],
            lost: Some(0),
            lines: vec![LineMetrics {
                labels,
                ops_per_s: Some((798.2, Some(796.6), None)),
                bytes_per_s: Some(bounded(Estimate { value: 3.2e6, low: -2.0, high: 3.3e6, n_eff: 9.0 })),
                sustained_per_s: Some(700.0),
                is_valid: true,
            }],
        }
    }

    #[test]
    fn the_document_is_as_it_was() {
        insta::assert_snapshot!(text(&[metrics()]));
    }

    #[test]
    fn buckets_are_cumulative_and_the_last_has_all() {
        let m = metrics();
        let h = &m.series[0].response;
        assert!(h.upto.is_sorted());
        assert_eq!((h.upto[0], h.upto[22], h.upto[70], h.count), (1, 2, 3, 4));
    }

    /// The reference page is made of the list of families: it says what the document has.
    #[test]
    fn every_family_has_the_labels_that_it_lists() {
        let mut all = metrics();
        all.lines[0].ops_per_s = Some((798.2, Some(796.6), Some(799.8)));
        // The page's name for whatever a run's labels are called.
        let document = text(&[all]).replace("label_tier=", "label_NAME=");
        for f in families::METRIC_FAMILIES {
            let own = |l: &&str| {
                l.strip_prefix(f.name)
                    .is_some_and(|rest| rest.starts_with('{') || rest.starts_with("_bucket{"))
            };
            // A test's line has the labels of a series, its stage among them.
            let shown = document.lines().find(own).unwrap_or_else(|| panic!("{} is not given out", f.name));
            for label in f.labels {
                assert!(shown.contains(&format!("{label}=\"")), "{label}: {shown}");
            }
            assert!(document.contains(&format!("# TYPE {} {}\n", f.name, f.kind)), "{}", f.name);
        }
        let told = document.lines().filter(|l| l.starts_with("# TYPE ")).count();
        assert_eq!(told, families::METRIC_FAMILIES.len());
    }

    #[test]
    fn of_nothing_nothing_is_said() {
        assert_eq!(text(&[]), "");
        assert!(!text(&[metrics()]).contains("quantile"));
    }
}
