//! The paragraph for a person: validity, then what was sustained and for how long it was seen, then what to know.

use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::units::{format_latency_ns, format_size, significant};
use plimsoll_model::{Estimate, Level, RunSummary};

/// Lines that are spelt out; the table has them all.
const SPELT_OUT: usize = 3;

/// In fixed order: validity, rates, horizon, the weightiest findings, promises.
pub fn paragraph(s: &RunSummary) -> String {
    let mut parts = vec![validity(s)];
    parts.extend(s.workloads.iter().take(SPELT_OUT).map(line));
    if s.workloads.len() > SPELT_OUT {
        parts.push(format!("{} more lines are in the table.", s.workloads.len() - SPELT_OUT));
    }
    parts.extend(horizon(s));
    // What makes it invalid comes with the reason; the one fact that helps most comes with it, too.
    let invalid = s.findings.iter().filter(|f| f.level == Level::Invalid).take(3);
    let helpful =
        s.findings.iter().filter(|f| matches!(f.name.as_str(), "concurrency_bound" | "throttled")).take(1);
    for f in invalid.chain(helpful) {
        match &f.workload {
            Some(w) if s.workloads.len() > 1 => parts.push(format!("[{} {w}] {}", f.code, f.text)),
            _ => parts.push(format!("[{}] {}", f.code, f.text)),
        }
    }
    let broken: Vec<&str> =
        s.expectations.iter().filter(|e| e.met == Some(false)).map(|e| e.text.as_str()).collect();
    if !broken.is_empty() {
        parts.push(format!("Not met: {}.", broken.join("; ")));
    }
    parts.join(" ")
}

fn validity(s: &RunSummary) -> String {
    let mut codes: Vec<&str> =
        s.findings.iter().filter(|f| f.level == Level::Invalid).map(|f| f.code.as_str()).collect();
    codes.dedup();
    let notes = s.findings.iter().filter(|f| f.level == Level::Qualified).count();
    match (codes.is_empty(), notes) {
        (true, 0) => "VALID.".into(),
        (true, 1) => "VALID (1 note).".into(),
        (true, n) => format!("VALID ({n} notes)."),
        (false, _) => format!("[INVALID {}].", codes.join(" ")),
    }
}

fn line(w: &WorkloadSummary) -> String {
    let what = match (w.bytes_per_s.is_some(), w.op.as_str()) {
        (true, op) if w.size.is_string() => format!("{op} of {}", format_size(w.size_bytes)),
        (true, op) => format!("{op} of {} on average", format_size(w.size_bytes)),
        (false, op) => op.to_owned(),
    };
    let name = if w.name.contains(&w.op) { String::new() } else { format!("{}: ", w.name) };
    let Some(ops) = &w.ops_per_s else {
        return format!("{name}{what}: no rate can be stated.");
    };
    let mut text = format!("{name}{what}: {} ops/s", with_interval(ops));
    if let Some(bytes) = &w.bytes_per_s {
        text += &format!(" ({} MB/s)", significant(bytes.value / 1e6, 4));
    }
    text += &format!(" with {} in flight", w.concurrency);
    if let Some(l) = &w.latency_ns.response {
        let tail = l.p99.map(|p| format!(", p99 {}", format_latency_ns(p as f64))).unwrap_or_default();
        text += &format!("; response time mean {}{tail}", format_latency_ns(l.mean));
    }
    let runs = if w.repeats > 1 { format!("{} runs, ", w.repeats) } else { String::new() };
    text + &format!(" ({runs}{} s measured).", significant(w.window_s, 3))
}

/// Digits as the interval carries them.
fn with_interval(e: &Estimate) -> String {
    let half = e.half_width();
    if e.value <= 0.0 || !half.is_finite() {
        return significant(e.value, 4);
    }
    if half == 0.0 {
        return significant(e.value, 6);
    }
    let digits = ((e.value / half).log10().floor() as i32 + 2).clamp(2, 6);
    format!("{} \u{b1} {}", significant(e.value, digits), significant(half, 2))
}

/// What a run of this length does not exclude.
fn horizon(s: &RunSummary) -> Option<String> {
    let longest = s.workloads.iter().max_by(|a, b| a.horizon_s.total_cmp(&b.horizon_s))?;
    let ops = longest.ops_per_s.filter(|e| e.value > 0.0)?;
    Some(format!(
        "Seen for {} s: a burst credit of more than {} ops that would end later is not excluded.",
        significant(longest.horizon_s, 3),
        significant(ops.value * longest.horizon_s, 2)
    ))
}
