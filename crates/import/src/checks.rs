//! Figures of one file against each other: what does not agree is a finding.

use plimsoll_model::finding::Level;
use plimsoll_model::summary::{LatencySummary, WorkloadSummary};
use plimsoll_model::text::clean;
use plimsoll_model::units::{format_latency_ns, format_size};
use plimsoll_model::{Estimate, Finding};

use crate::error::ImportError;
use crate::line::{make_names_unique, word};
use crate::source::ImportedRun;

/// Most that two figures of one file may differ before it is told: tools round to three digits. (A choice.)
const ROUNDING: f64 = 0.02;
/// More in flight than there were slots, by this share: means and rates are of slightly different times. (A choice.)
const TOO_MANY: f64 = 0.05;

/// Ops of one line: what a number of JSON holds exactly. Counts are added up wherever a run is read.
const MOST_OPS: u64 = 1 << 53;

/// Refuses counts that are none.
pub(crate) fn countable(w: &WorkloadSummary) -> Result<(), ImportError> {
    let of_times = [&w.latency_ns.response, &w.latency_ns.service, &w.latency_ns.submission];
    let times = of_times.into_iter().flatten().map(|l| l.count);
    match w.outcomes.values().copied().chain(times).find(|n| *n > MOST_OPS) {
        Some(n) => Err(ImportError::new(
            format!("{} has {n} operations, more than any test", word(&w.label())),
            "The file is damaged, or was changed: import it as the tool wrote it.",
        )),
        None => Ok(()),
    }
}

/// What holds for every file, whatever the tool.
pub(crate) fn finish(run: &mut ImportedRun) {
    make_names_unique(&mut run.lines);
    let found: Vec<Finding> = run.lines.iter().flat_map(of_line).collect();
    run.findings.extend(found);
    let tidy = |text: &mut String| *text = clean(text).chars().take(2000).collect();
    run.lines.iter_mut().flat_map(|l| &mut l.notes).for_each(tidy);
    run.findings.iter_mut().for_each(|f| tidy(&mut f.text));
    run.facts.values_mut().for_each(tidy);
    tidy(&mut run.title);
    tidy(&mut run.tool_version);
}

fn of_line(w: &WorkloadSummary) -> Vec<Finding> {
    let found = [little(w), bytes(w), percentiles(w)];
    found.into_iter().flatten().map(|f| f.on(w.label())).collect()
}

/// Rate times mean time is what was in flight: never more than there were slots.
fn little(w: &WorkloadSummary) -> Option<Finding> {
    let rate = w.ops_per_s?.value;
    let mean = w.latency_ns.response.as_ref()?.mean;
    let in_flight = rate * mean / 1e9;
    let most = f64::from(w.concurrency);
    if w.concurrency == 0 || in_flight <= most * (1.0 + TOO_MANY) || in_flight - most < 0.5 {
        return None;
    }
    let text = format!(
        "{rate:.0} op/s that take {} on average are {in_flight:.1} in flight, and there were at most {most:.0}: rate, \
         latency and concurrency in the file are not of the same load, or not of the same time (Little's law).",
        format_latency_ns(mean)
    );
    Some(Finding::new("F81", "imported_little", Level::Qualified, text).measured(in_flight, most))
}

/// Ops times their size are the bytes.
fn bytes(w: &WorkloadSummary) -> Option<Finding> {
    let (ops, bytes) = (w.ops_per_s?.value, w.bytes_per_s?.value);
    let size = w.size_bytes as f64;
    if ops * size <= 0.0 || bytes <= 0.0 || w.op == "total" || agree(ops * size, bytes) {
        return None;
    }
    let text = format!(
        "{ops:.1} op/s of {} are {:.2} MiB/s, and the file has {:.2} MiB/s: size or unit is not what it seems, or ops were of \
         several sizes.",
        format_size(w.size_bytes),
        ops * size / f64::from(1 << 20),
        bytes / f64::from(1 << 20)
    );
    Some(Finding::new("F82", "imported_bytes", Level::Qualified, text).measured(bytes, ops * size))
}

/// Each percentile is no less than the one below it.
fn percentiles(w: &WorkloadSummary) -> Option<Finding> {
    let l = &w.latency_ns;
    let all = [
        ("response", &l.response),
        ("service", &l.service),
        ("ttfb", &l.ttfb),
        ("submission", &l.submission),
    ];
    let (name, low, high) = all.into_iter().find_map(|(name, l)| {
        let (low, high) = disorder(l.as_ref()?)?;
        Some((name, low, high))
    })?;
    let text = format!(
        "Of the {name} times {} is {}, and {} is {}: they are not in order, so that at least one of them is wrong.",
        low.0,
        format_latency_ns(low.1),
        high.0,
        format_latency_ns(high.1)
    );
    Some(Finding::new("F83", "imported_percentiles", Level::Qualified, text))
}

type Named = (&'static str, f64);

/// The first two that are the wrong way round. Percentiles of tools are of buckets: a maximum may lie a bucket's width below one.
fn disorder(l: &LatencySummary) -> Option<(Named, Named)> {
    let known = [
        ("the minimum", Some(l.min)),
        ("p50", l.p50),
        ("p90", l.p90),
        ("p99", l.p99),
        ("p99.9", l.p999),
        ("p99.99", l.p9999),
        ("the maximum", Some(l.max)),
    ];
    let known: Vec<Named> = known.into_iter().filter_map(|(n, v)| Some((n, v? as f64))).collect();
    let wrong = known.windows(2).find(|p| p[0].1 > p[1].1 * (1.0 + ROUNDING) + 1000.0).map(|p| (p[0], p[1]));
    let mean = ("the mean", l.mean);
    let outside =
        |low: Named, high: Named| (low.1 > high.1 * (1.0 + ROUNDING) + 1000.0).then_some((low, high));
    let first = ("the minimum", l.min as f64);
    wrong.or_else(|| outside(first, mean)).or_else(|| outside(mean, ("the maximum", l.max as f64)))
}

/// Parts that are told one by one against the whole that is told beside them. `what`: `hosts`, `streams`.
pub(crate) fn sum(what: &str, of: &str, parts: &[f64], whole: Option<Estimate>, on: &str) -> Option<Finding> {
    let (sum, whole) = (parts.iter().sum::<f64>(), whole?.value);
    if parts.is_empty() || agree(sum, whole) {
        return None;
    }
    let text = format!(
        "The {} {what} of the file have {sum:.1} {of} together, and its total is {whole:.1}: one of both is wrong.",
        parts.len()
    );
    Some(Finding::new("F84", "imported_sum", Level::Qualified, text).measured(sum, whole).on(on))
}

fn agree(a: f64, b: f64) -> bool {
    (a - b).abs() <= ROUNDING * a.abs().max(b.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{latency, line, point};

    fn sound() -> WorkloadSummary {
        let mut w = line("w", "read", 4096, 4, 10.0);
        w.ops_per_s = point(1000.0);
        w.bytes_per_s = point(4096.0 * 1000.0);
        w.latency_ns.response = latency(10_000, 4e6, (1e6, 9e6), |q| Some(3e6 + q * 5e6));
        w
    }

    fn codes(w: &WorkloadSummary) -> Vec<String> {
        of_line(w).into_iter().map(|f| f.code).collect()
    }

    #[test]
    fn sound_figures_are_not_remarked_upon() {
        assert_eq!(codes(&sound()), Vec::<String>::new());
    }

    #[test]
    fn each_contradiction_is_found() {
        let mut w = sound();
        w.ops_per_s = point(1500.0);
        w.bytes_per_s = point(1500.0 * 4096.0);
        assert_eq!(codes(&w), ["F81"]);
        let mut w = sound();
        w.bytes_per_s = point(4000.0 * 1000.0);
        assert_eq!(codes(&w), ["F82"]);
        let mut w = sound();
        w.latency_ns.response.as_mut().unwrap().p50 = Some(9_000_000);
        assert_eq!(codes(&w), ["F83"]);
        let mut w = sound();
        w.latency_ns.response.as_mut().unwrap().max = 3_000_000;
        assert_eq!(codes(&w), ["F83"]);
        assert!(sum("hosts", "op/s", &[10.0, 10.0], point(20.1), "w").is_none());
        assert!(sum("hosts", "op/s", &[10.0, 10.0], point(30.0), "w").is_some());
    }
}
