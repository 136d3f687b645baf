//! One row per line of results, for spreadsheets and scripts. Plain numbers in base units; heads never change meaning.

use std::collections::BTreeSet;

use plimsoll_model::summary::{LatencySummary, WorkloadSummary};
use plimsoll_model::{Estimate, Outcome};
use plimsoll_stats::validity;

use crate::run::RunReport;

const FIXED: [&str; 12] = [
    "run",
    "valid",
    "invalid_codes",
    "workload",
    "op",
    "size_bytes",
    "concurrency",
    "window_s",
    "horizon_s",
    "warmup_s",
    "tail_s",
    "repeats",
];
const RATES: [&str; 9] = [
    "ops_per_s",
    "ops_per_s_low",
    "ops_per_s_high",
    "ops_n_eff",
    "bytes_per_s",
    "bytes_per_s_low",
    "bytes_per_s_high",
    "bytes_n_eff",
    "attempts_per_s",
];
const CLOCKS: [&str; 4] = ["response", "service", "ttfb", "submission"];
const LATENCIES: [&str; 9] =
    ["count", "mean_ns", "min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "p9999_ns", "max_ns"];
/// 95 % intervals of percentiles; behind all else, since heads keep their places.
const BOUNDS: [&str; 8] = [
    "p50_low_ns",
    "p50_high_ns",
    "p90_low_ns",
    "p90_high_ns",
    "p99_low_ns",
    "p99_high_ns",
    "p999_low_ns",
    "p999_high_ns",
];
const CLIENT: [&str; 4] =
    ["client_busy_fraction", "client_cpu_s", "client_cpu_s_per_gib", "client_rss_bytes"];

/// RFC 4180. Numbers that are not known are empty. One table: agents and servers, which are no lines, have theirs in [`crate::export`].
pub fn csv(runs: &[RunReport]) -> String {
    let (heads, rows) = lines_rows(runs, &label_names(runs));
    let text: Vec<bool> = heads.iter().map(|h| h == "workload" || h.starts_with("label:")).collect();
    let safe = |cells: Vec<String>| {
        cells.into_iter().zip(&text).map(|(c, text)| if *text { words(&c) } else { c }).collect()
    };
    let rows: String = rows.into_iter().map(|cells| row(safe(cells))).collect();
    row(heads) + &rows
}

/// Of all runs.
pub fn label_names(runs: &[RunReport]) -> BTreeSet<String> {
    runs.iter().flat_map(|r| r.summary.labels.keys().cloned()).collect()
}

/// Heads, but for those of labels, whose cells are words.
pub fn text_heads() -> [&'static str; 5] {
    ["run", "invalid_codes", "workload", "op", "notes"]
}

/// Heads, and a row for each line of results, as its figures and words are.
pub fn lines_rows(runs: &[RunReport], labels: &BTreeSet<String>) -> (Vec<String>, Vec<Vec<String>>) {
    let mut heads: Vec<String> = FIXED.iter().chain(&RATES).map(|s| (*s).to_string()).collect();
    for clock in CLOCKS {
        heads.extend(LATENCIES.iter().map(|l| format!("{clock}_{l}")));
    }
    heads.extend(Outcome::ALL.iter().map(|o| o.name().to_string()));
    heads.extend(CLIENT.iter().chain(&["notes"]).map(|s| (*s).to_string()));
    heads.extend(labels.iter().map(|l| format!("label:{l}")));
    for clock in CLOCKS {
        heads.extend(BOUNDS.iter().map(|b| format!("{clock}_{b}")));
    }
    let mut rows = Vec::new();
    for r in runs {
        for w in &r.summary.workloads {
            let mut cells = fixed(r, w);
            cells.extend(rates(w));
            let l = &w.latency_ns;
            for clock in [&l.response, &l.service, &l.ttfb, &l.submission] {
                cells.extend(latency(clock.as_ref()));
            }
            cells.extend(
                Outcome::ALL.iter().map(|o| w.outcomes.get(o.name()).copied().unwrap_or(0).to_string()),
            );
            let c = &w.client;
            cells.extend([number(c.busy_fraction), number(c.cpu_s)]);
            cells.extend([c.cpu_s_per_gib.map_or(String::new(), number), c.rss_bytes.to_string()]);
            cells.push(w.notes.join("; "));
            cells.extend(labels.iter().map(|l| r.summary.labels.get(l).cloned().unwrap_or_default()));
            for clock in [&l.response, &l.service, &l.ttfb, &l.submission] {
                cells.extend(bounds(clock.as_ref()));
            }
            rows.push(cells);
        }
    }
    (heads, rows)
}

fn fixed(r: &RunReport, w: &WorkloadSummary) -> Vec<String> {
    // What is wrong with another line is no fault of this one; what is wrong with the run is each one's.
    let codes = r.summary.codes_of(w);
    vec![
        r.summary.id.clone(),
        validity::is_line_valid(&r.summary, w).to_string(),
        codes.join(" "),
        w.name.clone(),
        w.op.clone(),
        w.size_bytes.to_string(),
        w.concurrency.to_string(),
        number(w.window_s),
        number(w.horizon_s),
        number(w.warmup_s),
        number(w.tail_s),
        w.repeats.to_string(),
    ]
}

fn rates(w: &WorkloadSummary) -> Vec<String> {
    // A wide interval reaches below zero; a rate does not.
    let estimate = |e: &Option<Estimate>| {
        e.map_or([const { String::new() }; 4], |e| [e.value, e.low.max(0.0), e.high, e.n_eff].map(number))
    };
    let mut out = estimate(&w.ops_per_s).to_vec();
    out.extend(estimate(&w.bytes_per_s));
    out.push(number(w.attempts_per_s));
    out
}

fn bounds(l: Option<&LatencySummary>) -> Vec<String> {
    let all = l.map(|l| &l.intervals).map_or([None; 4], |i| [i.p50, i.p90, i.p99, i.p999]);
    all.iter()
        .flat_map(|e| e.map_or([const { String::new() }; 2], |e| [number(e.low), number(e.high)]))
        .collect()
}

fn latency(l: Option<&LatencySummary>) -> [String; 9] {
    let Some(l) = l else { return [const { String::new() }; 9] };
    let known = |n: Option<u64>| n.map_or(String::new(), |n| n.to_string());
    [
        l.count.to_string(),
        number(l.mean),
        l.min.to_string(),
        known(l.p50),
        known(l.p90),
        known(l.p99),
        known(l.p999),
        known(l.p9999),
        l.max.to_string(),
    ]
}

/// A cell of words. A spreadsheet would run one that begins as a formula does.
pub fn words(text: &str) -> String {
    let formula = text.starts_with(['=', '@', '+', '-']) && text.parse::<f64>().is_err();
    if formula { format!("'{text}") } else { text.to_owned() }
}

/// No exponent, no infinity: an exact value's sample size is left empty.
pub fn number(x: f64) -> String {
    if !x.is_finite() { String::new() } else { format!("{x}") }
}

pub fn row(cells: Vec<String>) -> String {
    let quote = |c: &String| match c.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", c.replace('"', "\"\"")),
        false => c.clone(),
    };
    cells.iter().map(quote).collect::<Vec<_>>().join(",") + "\r\n"
}
