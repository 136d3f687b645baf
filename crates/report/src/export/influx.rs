//! InfluxDB's line protocol: rates of lines, counts of slices, latencies as cumulative buckets. No percentile leaves: whoever draws means over
//! time, as every dashboard does, would average them.

use std::fmt::Write as _;

use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::{Estimate, Outcome};
use plimsoll_store::RunData;

use super::buckets::{BUCKET_BOUNDS_NS, LineBuckets};
use crate::{RunReport, lines};

/// The first line of a file of points: a comment, as the protocol has them.
pub const INFLUX_MARK: &str = "# made by plimsoll\n";

/// The points of a run; times are nanoseconds since 1970 by the wall clock of the run's start. Written again they replace themselves.
/// `started_ns`: of the run. Without its raw data (`data`) a run has lines only.
pub fn influx(run: &RunReport, data: Option<&RunData>, buckets: &[LineBuckets], started_ns: i64) -> String {
    let mut out = String::new();
    let labels: Vec<(String, String)> =
        run.summary.labels.iter().map(|(k, v)| (format!("label_{k}"), v.clone())).collect();
    for (i, w) in run.summary.workloads.iter().enumerate() {
        let tags = line_tags(run, w, i, &labels);
        line(&mut out, &tags, run, w, started_ns);
        for b in buckets.iter().filter(|b| b.line == i) {
            latency(&mut out, &tags, b, started_ns);
        }
    }
    if let Some(data) = data {
        slices(&mut out, run, data, &labels, started_ns);
    }
    out
}

type Tags = Vec<(String, String)>;

fn line_tags(run: &RunReport, w: &WorkloadSummary, at: usize, labels: &[(String, String)]) -> Tags {
    let mut tags: Tags = vec![
        ("run".into(), run.summary.id.clone()),
        ("line".into(), at.to_string()),
        ("workload".into(), w.name.clone()),
        ("op".into(), w.op.clone()),
        ("size_bytes".into(), w.size_bytes.to_string()),
        ("concurrency".into(), w.concurrency.to_string()),
        ("valid".into(), plimsoll_stats::validity::is_line_valid(&run.summary, w).to_string()),
    ];
    tags.extend(labels.iter().cloned());
    tags
}

/// Of a void line there are counts, and no rate.
fn line(out: &mut String, tags: &Tags, run: &RunReport, w: &WorkloadSummary, at_ns: i64) {
    let mut fields = vec![float("window_s", w.window_s)];
    let known = |pick: &dyn Fn(Outcome) -> bool| {
        let counted =
            Outcome::ALL.iter().filter(|o| pick(**o)).map(|o| w.outcomes.get(o.name()).copied().unwrap_or(0));
        counted.fold(0, u64::saturating_add)
    };
    fields.push(count("ok_ops", known(&Outcome::is_ok)));
    fields.push(count("throttled_ops", known(&Outcome::is_throttled)));
    fields.push(count("failed_ops", known(&Outcome::is_failure)));
    if plimsoll_stats::validity::is_line_valid(&run.summary, w) {
        fields.extend(estimate("ops_per_s", w.ops_per_s));
        fields.extend(estimate("bytes_per_s", w.bytes_per_s));
    }
    point(out, "plimsoll_line", tags, fields, at_ns);
}

fn latency(out: &mut String, tags: &Tags, b: &LineBuckets, at_ns: i64) {
    let bounds = BUCKET_BOUNDS_NS.iter().map(u64::to_string).chain(["+Inf".into()]);
    for (bound, ops) in bounds.zip(b.at_most.iter().chain([&b.count])) {
        let mut tags = tags.clone();
        tags.extend([("clock".into(), b.clock.into()), ("le_ns".into(), bound)]);
        point(out, "plimsoll_latency", &tags, vec![count("ops", *ops)], at_ns);
    }
    let mut tags = tags.clone();
    tags.push(("clock".into(), b.clock.into()));
    point(
        out,
        "plimsoll_latency_sum",
        &tags,
        vec![count("ops", b.count), float("sum_s", b.sum_ns as f64 / 1e9)],
        at_ns,
    );
}

fn slices(out: &mut String, run: &RunReport, data: &RunData, labels: &[(String, String)], started_ns: i64) {
    for line in lines::of(&run.summary, &run.analysis, data) {
        let Some(stage) = data.stages.iter().find(|s| s.index == line.id.stage) else { continue };
        let workload = stage.spec.workloads.get(usize::from(line.id.workload));
        let mut tags: Tags = vec![
            ("run".into(), run.summary.id.clone()),
            ("stage".into(), line.id.stage.to_string()),
            ("workload".into(), workload.map(|w| w.name.clone()).unwrap_or_default()),
            ("op".into(), line.id.kind.name().into()),
        ];
        tags.extend(line.line.map(|l| ("line".into(), l.to_string())));
        tags.extend(labels.iter().cloned());
        for (i, p) in stage.series.get(&line.id).into_iter().flatten().enumerate() {
            let at = (stage.first_point + i as u64).saturating_mul(data.step_ns);
            let c = &p.counts;
            let fields = vec![
                float("length_s", data.step_ns as f64 / 1e9),
                count("started_ops", c.started),
                count("ok_ops", c.ok()),
                count("throttled_ops", c.throttled()),
                count("failed_ops", c.failed()),
                count("moved_bytes", c.bytes_moved),
                count("ok_bytes", c.bytes_ok),
            ];
            point(out, "plimsoll_slice", &tags, fields, started_ns.saturating_add_unsigned(at));
        }
    }
}

/// Signed: InfluxDB 1 knows no other whole numbers.
fn count(name: &str, n: u64) -> String {
    format!("{name}={}i", i64::try_from(n).unwrap_or(i64::MAX))
}

fn float(name: &str, x: f64) -> String {
    format!("{name}={x}")
}

/// An end that is not bounded is left out: the protocol has no infinity.
fn estimate(name: &str, e: Option<Estimate>) -> Vec<String> {
    let Some(e) = e else { return Vec::new() };
    let parts = [
        (name.to_owned(), e.value),
        (format!("{name}_low"), e.low.max(0.0)),
        (format!("{name}_high"), e.high),
    ];
    parts.into_iter().filter(|(_, x)| x.is_finite()).map(|(n, x)| float(&n, x)).collect()
}

fn point(out: &mut String, name: &str, tags: &Tags, fields: Vec<String>, at_ns: i64) {
    let mut sorted: Vec<&(String, String)> = tags.iter().filter(|(_, value)| !value.is_empty()).collect();
    sorted.sort();
    out.push_str(name);
    for (key, value) in sorted {
        let _ = write!(out, ",{}={}", escaped(key), escaped(value));
    }
    let _ = writeln!(out, " {} {at_ns}", fields.join(","));
}

/// Of tags. A line end cannot be escaped and a backslash at the end would escape what follows: both become visible words instead.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ',' | '=' | ' ' => out.extend(['\\', c]),
            '\\' => out.push('/'),
            c if c.is_control() => out.push('_'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support;

    #[test]
    fn a_void_line_has_counts_and_no_rate_and_names_stay_one_tag() {
        let mut summary = support::sweep();
        summary.workloads.truncate(1);
        summary.labels.insert("tier".into(), "a b,c=d\\\n".into());
        let valid = influx(&RunReport::of(summary.clone()), None, &[], 1_000);
        assert!(valid.contains("label_tier=a\\ b\\,c\\=d/_"), "{valid}");
        assert!(valid.contains("ops_per_s=2462.2,") && valid.ends_with(" 1000\n"), "{valid}");
        assert_eq!(valid.lines().count(), 1);
        summary.workloads[0].valid = false;
        summary.status = plimsoll_model::RunStatus::None;
        summary.findings =
            vec![plimsoll_model::Finding::new("V07", "x", plimsoll_model::Level::Invalid, "busy")];
        let void = influx(&RunReport::of(summary), None, &[], 1_000);
        assert!(void.contains("valid=false") && !void.contains("per_s"), "{void}");
        assert!(void.contains("ok_ops="), "{void}");
    }

    #[test]
    fn buckets_leave_whole_and_no_percentile_does() {
        let mut summary = support::sweep();
        summary.workloads.truncate(1);
        let mut at_most = [3; BUCKET_BOUNDS_NS.len()];
        at_most[0] = 1;
        let b = LineBuckets { line: 0, clock: "response", at_most, count: 4, sum_ns: 5_000_000_000 };
        let text = influx(&RunReport::of(summary), None, &[b], 7);
        assert!(text.contains("le_ns=1000,") && text.contains("le_ns=+Inf,"), "{text}");
        assert!(text.contains(" ops=4i,sum_s=5 7"), "{text}");
        assert!(!text.contains("p99") && !text.contains("p50"), "{text}");
    }
}
