//! Lines of results as other tools' figures make them: points, unless there is data for more.

use std::collections::BTreeMap;

use plimsoll_model::Estimate;
use plimsoll_model::summary::{LatencySummary, PercentileIntervals, WorkloadSummary};
use plimsoll_stats::student;

/// A figure without an interval.
pub(crate) fn point(value: f64) -> Option<Estimate> {
    (value.is_finite() && value >= 0.0).then_some(Estimate {
        value,
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
        n_eff: 1.0,
    })
}

/// The figures of repeats of one test: with three or more there is an interval, between them (Student's t over the logs).
pub(crate) fn of_repeats(values: &[f64]) -> Option<Estimate> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 3 || values.iter().any(|v| !(v.is_finite() && *v > 0.0)) {
        return point(mean);
    }
    let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    let m = logs.iter().sum::<f64>() / n;
    let sd = (logs.iter().map(|l| (l - m).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let half = student::t95(n - 1.0) * sd / n.sqrt();
    Some(Estimate { value: m.exp(), low: (m - half).exp(), high: (m + half).exp(), n_eff: n })
}

/// What all lines have in common: measured once, in a window of which nothing was left out that is known.
pub(crate) fn line(
    name: &str,
    op: &str,
    size_bytes: u64,
    concurrency: u32,
    window_s: f64,
) -> WorkloadSummary {
    WorkloadSummary {
        name: name.to_owned(),
        op: op.to_owned(),
        valid: true,
        load: op.to_owned(),
        size_bytes,
        size: serde_json::Value::String(plimsoll_model::units::Size(size_bytes).to_string()),
        concurrency,
        window_s,
        horizon_s: window_s,
        repeats: 1,
        outcomes: BTreeMap::from([("ok".to_owned(), 0)]),
        ..WorkloadSummary::default()
    }
}

/// Latencies of a tool in nanoseconds. `at` knows percentiles by their share, 0 to 1; those with fewer than ten ops beyond them are
/// left out, as ours are.
pub(crate) fn latency(
    count: u64,
    mean: f64,
    (min, max): (f64, f64),
    at: impl Fn(f64) -> Option<f64>,
) -> Option<LatencySummary> {
    let sound = |x: f64| x.is_finite() && (0.0..1e18).contains(&x);
    if count == 0 || !sound(mean) || !sound(min) || !sound(max) {
        return None;
    }
    let quantile = |q: f64| {
        let enough = q <= 0.5 || count as f64 * (1.0 - q) >= LatencySummary::TAIL - 1e-6;
        at(q).filter(|v| enough && sound(*v)).map(|v| v.round() as u64)
    };
    Some(LatencySummary {
        count,
        mean,
        min: min.round() as u64,
        p50: quantile(0.5),
        p90: quantile(0.9),
        p99: quantile(0.99),
        p999: quantile(0.999),
        p9999: quantile(0.9999),
        max: max.round() as u64,
        intervals: PercentileIntervals::default(),
    })
}

/// A text of a file, for a name or a note: short, and without what a terminal would obey.
pub(crate) fn word(text: &str) -> String {
    let text = plimsoll_model::text::clean(text.trim());
    text.chars().take(120).collect()
}

/// Lines of one name and op are told apart by a number.
pub(crate) fn make_names_unique(lines: &mut [WorkloadSummary]) {
    let mut seen: BTreeMap<(String, String), u32> = BTreeMap::new();
    for line in lines {
        let n = seen.entry((line.name.clone(), line.op.clone())).or_default();
        *n += 1;
        if *n > 1 {
            line.name = format!("{} ({n})", line.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_repeats_have_an_interval() {
        for few in [&[5.0][..], &[5.0, 6.0]] {
            let e = of_repeats(few).unwrap();
            assert!(e.low == f64::NEG_INFINITY && e.high == f64::INFINITY && e.n_eff == 1.0);
        }
        let e = of_repeats(&[98.0, 100.0, 102.0]).unwrap();
        assert!(e.low > 94.0 && e.low < 96.0 && e.high > 104.0 && e.high < 106.0, "{e:?}");
        assert_eq!(point(f64::NAN), None);
    }

    #[test]
    fn a_percentile_needs_ops_beyond_it() {
        let l = latency(1000, 5.0, (1.0, 9.0), |q| Some(q * 10.0)).unwrap();
        assert_eq!((l.p50, l.p99, l.p999), (Some(5), Some(10), None));
        assert_eq!(latency(0, 5.0, (1.0, 9.0), |_| None), None);
    }
}
