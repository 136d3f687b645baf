//! Promises: `get.ops_per_s >= 800 +-1%` is parsed here and checked against a run's summary.
//!
//! Form: `[SELECTOR.]METRIC COMPARISON VALUE [+-TOLERANCE]`. The selector is an op (`get`), a workload's name, or
//! both (`NAME/get`); without one every workload has to keep the promise. Metrics are rates (`ops_per_s`,
//! `bytes_per_s`, `attempts_per_s`), shares (`error_rate`, `throttled_rate`, `client_busy`), and latencies
//! (`p50` ... `p9999`, `mean`, `max`, each also as `response.p99`, `service.p99`, `ttfb.p99`, `submission.p99`).
//! A rate is met when its whole 95 % interval is on the right side, missed when the whole interval is on the wrong
//! one, and undetermined when the (widened) threshold lies inside.

use std::fmt;

use plimsoll_model::summary::{Expectation, LatencySummary, RunSummary, WorkloadSummary};
use plimsoll_model::units;

use crate::validity;

const FORM: &str = "write it like 'get.ops_per_s >= 800 +-1%', 'put.p99 <= 20ms' or 'error_rate <= 0.1%'";

/// Why a promise can't be read, and how to write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectError {
    /// As it was written.
    pub input: String,
    /// What cannot be read in it.
    pub reason: String,
}

impl fmt::Display for ExpectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}': {}; {FORM}", self.input, self.reason)
    }
}

impl std::error::Error for ExpectError {}

/// How a figure has to stand to the bound of a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `<`
    Below,
    /// `=`
    Equal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Response,
    Service,
    Ttfb,
    Submission,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stat {
    Mean,
    P50,
    P90,
    P99,
    P999,
    P9999,
    Max,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Metric {
    OpsPerS,
    BytesPerS,
    AttemptsPerS,
    ErrorRate,
    ThrottledRate,
    ClientBusy,
    Latency(Which, Stat),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Tolerance {
    Relative(f64),
    Absolute(f64),
}

/// A parsed promise.
#[derive(Debug, Clone, PartialEq)]
pub struct Expect {
    /// As it was written.
    pub text: String,
    selector: Option<String>,
    metric: Metric,
    comparison: Relation,
    /// In the metric's unit: per second, share, or nanoseconds.
    value: f64,
    tolerance: Tolerance,
}

impl std::str::FromStr for Expect {
    type Err = ExpectError;

    fn from_str(s: &str) -> Result<Self, ExpectError> {
        let fail = |reason: String| ExpectError { input: s.trim().to_owned(), reason };
        let (left, comparison, right) =
            split_comparison(s).ok_or_else(|| fail("it has no comparison operator".into()))?;
        let (selector, metric) = parse_left(left).ok_or_else(|| {
            fail(format!("'{left}' is not a metric (ops_per_s, bytes_per_s, p99, error_rate, ...)"))
        })?;
        let (value, tolerance) = split_tolerance(right);
        let value = parse_value(metric, value).map_err(&fail)?;
        let tolerance = match tolerance {
            None => Tolerance::Relative(0.0),
            Some(t) => parse_tolerance(metric, t).map_err(&fail)?,
        };
        Ok(Self { text: s.trim().to_owned(), selector, metric, comparison, value, tolerance })
    }
}

fn split_comparison(s: &str) -> Option<(&str, Relation, &str)> {
    const FORMS: [(&str, Relation); 8] = [
        (">=", Relation::AtLeast),
        ("≥", Relation::AtLeast),
        ("<=", Relation::AtMost),
        ("≤", Relation::AtMost),
        ("==", Relation::Equal),
        (">", Relation::Above),
        ("<", Relation::Below),
        ("=", Relation::Equal),
    ];
    let (at, form, comparison) = FORMS
        .iter()
        .filter_map(|(f, c)| s.find(f).map(|at| (at, *f, *c)))
        .min_by_key(|(at, f, _)| (*at, 9 - f.len()))?;
    Some((s[..at].trim(), comparison, s[at + form.len()..].trim()))
}

/// Selector and metric: the longest tail of dotted words that names a metric is the metric.
fn parse_left(left: &str) -> Option<(Option<String>, Metric)> {
    for (at, _) in std::iter::once((0, "")).chain(left.match_indices('.')) {
        let (selector, metric) = if at == 0 { (None, left) } else { (Some(&left[..at]), &left[at + 1..]) };
        if let Some(m) = parse_metric(metric) {
            return Some((selector.map(str::to_owned), m));
        }
    }
    None
}

fn parse_metric(name: &str) -> Option<Metric> {
    Some(match name {
        "ops_per_s" => Metric::OpsPerS,
        "bytes_per_s" => Metric::BytesPerS,
        "attempts_per_s" => Metric::AttemptsPerS,
        "error_rate" => Metric::ErrorRate,
        "throttled_rate" => Metric::ThrottledRate,
        "client_busy" => Metric::ClientBusy,
        _ => {
            let (which, stat) = name.split_once('.').unwrap_or(("response", name));
            let which = match which {
                "response" => Which::Response,
                "service" => Which::Service,
                "ttfb" => Which::Ttfb,
                "submission" => Which::Submission,
                _ => return None,
            };
            let stat = match stat {
                "mean" => Stat::Mean,
                "p50" => Stat::P50,
                "p90" => Stat::P90,
                "p99" => Stat::P99,
                "p999" | "p99.9" => Stat::P999,
                "p9999" | "p99.99" => Stat::P9999,
                "max" => Stat::Max,
                _ => return None,
            };
            Metric::Latency(which, stat)
        }
    })
}

fn split_tolerance(right: &str) -> (&str, Option<&str>) {
    for form in ["+/-", "+-", "±"] {
        if let Some((v, t)) = right.split_once(form) {
            return (v.trim(), Some(t.trim()));
        }
    }
    (right, None)
}

fn parse_share(s: &str) -> Option<f64> {
    let (number, factor) = s.strip_suffix('%').map_or((s, 1.0), |n| (n, 0.01));
    number.trim().parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0).map(|v| v * factor)
}

fn parse_value(metric: Metric, s: &str) -> Result<f64, String> {
    match metric {
        Metric::OpsPerS | Metric::AttemptsPerS => units::parse_ops_rate(s).map_err(|e| e.to_string()),
        // `ops_per_s` says its unit; so does `bytes_per_s`: the `/s` may be left out.
        Metric::BytesPerS => units::parse_bytes_rate(s)
            .or_else(|e| units::parse_size(s).map(|b| b as f64).map_err(|_| e))
            .map_err(|e| e.to_string()),
        Metric::Latency(..) => {
            units::parse_duration(s).map(|d| d.as_nanos() as f64).map_err(|e| e.to_string())
        }
        Metric::ErrorRate | Metric::ThrottledRate | Metric::ClientBusy => {
            parse_share(s).ok_or_else(|| format!("'{s}' is not a share: write 0.1% or 0.001"))
        }
    }
}

fn parse_tolerance(metric: Metric, s: &str) -> Result<Tolerance, String> {
    if s.ends_with('%') {
        return parse_share(s)
            .map(Tolerance::Relative)
            .ok_or_else(|| format!("'{s}' is not a tolerance: write +-1%"));
    }
    parse_value(metric, s).map(Tolerance::Absolute)
}

/// The measured value with the interval around it.
#[derive(Debug, Clone, Copy)]
struct Measured {
    value: f64,
    low: f64,
    high: f64,
}

impl Measured {
    fn with_interval(self, unit: &str, of: f64) -> String {
        let n = |v: f64| units::significant(v / of, 4);
        // What is known exactly has none.
        let interval = if self.low < self.high {
            format!(" ({} to {})", n(self.low), n(self.high))
        } else {
            String::new()
        };
        format!("{} {unit}{interval}", n(self.value))
    }

    fn point(value: f64) -> Self {
        Self { value, low: value, high: value }
    }
}

impl Expect {
    /// Checks every workload that the selector names.
    pub fn check(&self, summary: &RunSummary) -> Expectation {
        let chosen: Vec<&WorkloadSummary> = summary.workloads.iter().filter(|w| self.selects(w)).collect();
        if chosen.is_empty() {
            let named = self.selector.as_deref().unwrap_or("any op");
            return self.answer(None, None, format!("no workload of this run is {named}"));
        }
        let mut worst: Option<(Option<bool>, Option<f64>, String)> = None;
        for w in &chosen {
            let (met, measured, reason) = self.check_one(w);
            // Missed beats undetermined beats met.
            let rank = |m: Option<bool>| match m {
                Some(false) => 2,
                None => 1,
                Some(true) => 0,
            };
            if worst.as_ref().is_none_or(|b| rank(met) > rank(b.0)) {
                worst = Some((met, measured, reason));
            }
        }
        let (met, measured, reason) = worst.unwrap_or((None, None, "nothing was measured".into()));
        let valid = chosen.iter().all(|w| validity::is_line_valid(summary, w));
        if !valid && met == Some(true) {
            let reason = format!("{reason}, but the result is invalid");
            return Expectation { void: true, ..self.answer(None, measured, reason) };
        }
        self.answer(met, measured, reason)
    }

    /// The op or workload that is meant; none: all of them.
    pub fn selector(&self) -> Option<&str> {
        self.selector.as_deref()
    }

    fn answer(&self, met: Option<bool>, measured: Option<f64>, reason: String) -> Expectation {
        Expectation { text: self.text.clone(), met, void: false, measured, reason }
    }

    fn selects(&self, w: &WorkloadSummary) -> bool {
        match self.selector.as_deref() {
            None => w.together == 0,
            Some(s) => {
                s == w.op && w.together == 0
                    || s == w.name
                    || s.split_once('/').is_some_and(|(n, o)| n == w.name && o == w.op)
            }
        }
    }

    fn check_one(&self, w: &WorkloadSummary) -> (Option<bool>, Option<f64>, String) {
        let place = if w.name == w.op { w.op.clone() } else { format!("{}/{}", w.name, w.op) };
        let m = match self.measured(w) {
            Ok(m) => m,
            Err(why) => return (None, None, format!("{place}: {why}")),
        };
        let slack = match self.tolerance {
            Tolerance::Relative(r) => r * self.value.abs(),
            Tolerance::Absolute(a) => a,
        };
        let (floor, ceiling) = (self.value - slack, self.value + slack);
        let met = match self.comparison {
            Relation::AtLeast => side(m.low >= floor, m.high < floor),
            Relation::Above => side(m.low > floor, m.high <= floor),
            Relation::AtMost => side(m.high <= ceiling, m.low > ceiling),
            Relation::Below => side(m.high < ceiling, m.low >= ceiling),
            Relation::Equal => side(m.low >= floor && m.high <= ceiling, m.high < floor || m.low > ceiling),
        };
        let shown = self.show(m);
        let reason = match met {
            Some(true) => format!("{place}: {shown}"),
            Some(false) => format!("{place}: {shown} does not meet it"),
            None => format!("{place}: {shown} includes the threshold; run longer, or widen the tolerance"),
        };
        (met, Some(m.value), reason)
    }

    fn measured(&self, w: &WorkloadSummary) -> Result<Measured, String> {
        let interval = |e: Option<plimsoll_model::Estimate>| {
            e.map(|e| Measured { value: e.value, low: e.low, high: e.high })
                .ok_or_else(|| "the rate is undetermined; the findings say why".to_owned())
        };
        let count = |pick: fn(&str) -> bool| -> f64 {
            w.outcomes.iter().filter(|(n, _)| pick(n)).map(|(_, c)| *c as f64).sum()
        };
        let throttled: fn(&str) -> bool = |n| n == "http_429" || n == "http_503";
        let failed: fn(&str) -> bool = |n| !matches!(n, "ok" | "http_429" | "http_503" | "cancelled");
        let all = count(|n| n != "cancelled");
        let share = |part: f64| {
            if all > 0.0 { Ok(Measured::point(part / all)) } else { Err("no op ended".to_owned()) }
        };
        match self.metric {
            Metric::OpsPerS => interval(w.ops_per_s),
            Metric::BytesPerS => interval(w.bytes_per_s),
            Metric::AttemptsPerS => Ok(Measured::point(w.attempts_per_s)),
            Metric::ErrorRate => share(count(failed)),
            Metric::ThrottledRate => share(count(throttled)),
            Metric::ClientBusy => Ok(Measured::point(w.client.busy_fraction)),
            Metric::Latency(which, stat) => {
                let l = &w.latency_ns;
                let l = match which {
                    Which::Response => l.response.as_ref(),
                    // In a closed loop response and service are one.
                    Which::Service => l.service.as_ref().or(l.response.as_ref()),
                    Which::Ttfb => l.ttfb.as_ref(),
                    Which::Submission => l.submission.as_ref(),
                };
                let l = l.ok_or_else(|| "this latency was not measured".to_owned())?;
                latency(l, stat)
                    .map(Measured::point)
                    .ok_or_else(|| "fewer than 10 ops are beyond this percentile; run longer".to_owned())
            }
        }
    }

    fn show(&self, m: Measured) -> String {
        let n = |v: f64| units::significant(v, 4);
        match self.metric {
            Metric::OpsPerS => m.with_interval("ops/s", 1.0),
            Metric::BytesPerS => m.with_interval("MB/s", 1e6),
            Metric::AttemptsPerS => format!("{} attempts/s", n(m.value)),
            Metric::ErrorRate | Metric::ThrottledRate | Metric::ClientBusy => {
                format!("{} %", n(100.0 * m.value))
            }
            Metric::Latency(..) => units::format_latency_ns(m.value),
        }
    }
}

fn side(met: bool, missed: bool) -> Option<bool> {
    match (met, missed) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

fn latency(l: &LatencySummary, stat: Stat) -> Option<f64> {
    Some(match stat {
        Stat::Mean => l.mean,
        Stat::P50 => l.p50? as f64,
        Stat::P90 => l.p90? as f64,
        Stat::P99 => l.p99? as f64,
        Stat::P999 => l.p999? as f64,
        Stat::P9999 => l.p9999? as f64,
        Stat::Max => l.max as f64,
    })
}

#[cfg(test)]
mod tests;
