//! The paragraph's part on a search for the best concurrency: what it found, what that costs in time, how long each step
//! was seen.

use plimsoll_model::analysis::{LoadPoint, Saturation, SaturationPoint};
use plimsoll_model::summary::RunSummary;
use plimsoll_model::units::{format_latency_ns, format_size};

use super::place;
use crate::words;

pub(super) fn sentences(s: &RunSummary, found: &Saturation, load: &[LoadPoint], goal_s: f64) -> Vec<String> {
    let what = match s.workloads.iter().find(|w| w.op == found.op_class) {
        Some(w) => place(w),
        None => format!("{} {}", format_size(found.size_bytes), found.op_class.to_uppercase()),
    };
    let best = found.c95.and_then(|c| {
        let at = c.value as u32;
        found.points.iter().find(|p| p.concurrency == at)
    });
    let Some(best) = best.filter(|_| found.verdict != "state changed during search") else {
        return vec![format!("**Undetermined**: the best concurrency for {what} ({}).", found.verdict)];
    };
    let mut out = vec![rate(found, best, &what)];
    out.extend(cost(found, best));
    out.extend(points(load));
    let longest = s.workloads.iter().map(|w| w.horizon_s).fold(0.0, f64::max);
    out.push(format!(
        "Each step was seen for {} at most: a burst that outlasts the search is not excluded. To know, hold {} in flight for \
         {} (plimsoll watch).",
        words::span(longest),
        best.concurrency,
        words::span(goal_s)
    ));
    out
}

fn rate(found: &Saturation, best: &SaturationPoint, what: &str) -> String {
    let rate = &best.ops_per_s;
    let bytes = if found.size_bytes > 0 && !matches!(found.op_class.as_str(), "stat" | "list" | "delete") {
        format!(", {}", words::bytes_rate(&rate.scaled(found.size_bytes as f64)))
    } else {
        String::new()
    };
    let head = format!(
        "Best concurrency: **{} in flight**, which give **{}** of {what}{bytes} (95 %)",
        best.concurrency,
        words::ops_rate(rate)
    );
    match (found.verdict.as_str(), &found.plateau_per_s) {
        ("saturated", Some(p)) => format!(
            "{head}; the most that was seen is {}, and fewer do not reach 95 % of it.",
            words::ops_rate(p)
        ),
        ("saturated", None) => format!("{head}."),
        (other, _) => format!("{head}. It is not shown to be the storage's: {other}."),
    }
}

/// What the best costs in time, and what more would.
fn cost(found: &Saturation, best: &SaturationPoint) -> Option<String> {
    let time = |ns: u64| format_latency_ns(ns as f64);
    let mut out = format!("Median latency there {}", time(best.p50_ns?));
    if let Some(p99) = best.p99_ns {
        out += &format!(", 99th percentile {}", time(p99));
    }
    let most = found.points.last().filter(|p| p.concurrency > best.concurrency && p.p50_ns.is_some());
    if let Some(m) = most {
        out += &format!("; {} with {} in flight", time(m.p50_ns?), m.concurrency);
    }
    Some(out + ".")
}

/// The highest load that held, with what it costs beyond service.
fn points(load: &[LoadPoint]) -> Option<String> {
    let share = |p: &LoadPoint| {
        let text = words::about(100.0 * p.fraction, 3);
        format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
    };
    let Some(p) = load
        .iter()
        .filter(|p| p.sustainable && p.invalid.is_empty())
        .max_by(|a, b| a.fraction.total_cmp(&b.fraction))
    else {
        let text = if load.iter().all(|p| p.invalid.is_empty()) {
            "In open loop none of the load points held."
        } else {
            "In open loop no load point that is valid held."
        };
        return (!load.is_empty()).then(|| text.into());
    };
    let (response, service) = (p.response.as_ref()?, p.service.as_ref()?);
    let mut out = format!(
        "In open loop {} of that ({} op/s) held: median response {} (service {})",
        share(p),
        words::about(p.offered_per_s, 3),
        format_latency_ns(response.p50? as f64),
        format_latency_ns(service.p50? as f64)
    );
    if let (Some(r), Some(s)) = (response.p99, service.p99) {
        out +=
            &format!(", 99th percentile {} ({})", format_latency_ns(r as f64), format_latency_ns(s as f64));
    }
    let failed: Vec<String> =
        load.iter().filter(|p| !p.sustainable && p.invalid.is_empty()).map(share).collect();
    if !failed.is_empty() {
        out += &format!("; {} did not hold", failed.join(" and "));
    }
    Some(out + ".")
}
