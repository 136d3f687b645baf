//! The tables of a run, built once for terminal, Markdown and HTML.

use std::collections::BTreeSet;

use plimsoll_model::claim::{CapBound, ClaimKind};
use plimsoll_model::plan::suite;
use plimsoll_model::summary::{Expectation, LatencySummary, WorkloadSummary};
use plimsoll_model::units::format_latency_ns;
use plimsoll_model::{OpKind, Outcome, RunSummary};
use plimsoll_stats::validity::is_line_valid;

use crate::group::{Group, GroupKey};
use crate::number::{self, MIB};
use crate::run::RunReport;
use crate::table::Table;

/// Head of the column that says what would settle a question.
pub const NEXT_EXPERIMENT: &str = "next experiment";

/// Whether the run is a sweep, best shown as one table of sizes by ops.
pub fn is_sweep(s: &RunSummary) -> bool {
    let sizes: BTreeSet<u64> = s.workloads.iter().map(|w| w.size_bytes).collect();
    s.workloads.len() > 1 && (sizes.len() > 1 || s.workloads.len() > 6)
}

/// Whether the lines are steps of a search, which its own tables show.
pub fn is_search(r: &RunReport) -> bool {
    !r.analysis.saturations.is_empty() && r.summary.workloads.len() > 1
}

/// Objects or blocks: what the words in a table should be.
pub fn is_block(s: &RunSummary) -> bool {
    // The total of a mix says nothing about what was mixed.
    let mut named = s.workloads.iter().filter_map(|w| OpKind::parse(&w.op)).peekable();
    named.peek().is_some() && named.all(OpKind::is_block)
}

pub fn rate_unit(s: &RunSummary) -> &'static str {
    if is_block(s) { "IOPS" } else { "objects/s" }
}

/// Size by op in the manner of published tables: operation, size, rate, throughput; and what they hide.
pub fn sweep(s: &RunSummary) -> Table {
    let (op, size, rate) = if is_block(s) {
        ("IO type", "Block size", ">IOPS")
    } else {
        ("Operation", "Object size", ">Objects/s")
    };
    let mut t = Table::new(
        "Rate and throughput by operation and size",
        2,
        &[
            op,
            size,
            ">In flight",
            rate,
            ">Throughput (MiB/s)",
            ">Mean",
            ">p50",
            ">p99",
            ">Throttled",
            ">Failed",
            "Bound by",
            "Step",
            "Validity",
        ],
    );
    let steps = has_steps(s);
    let single = s.workloads.iter().filter(|w| w.together == 0);
    let concurrencies: BTreeSet<u32> = single.map(|w| w.concurrency).collect();
    // One sync at the end of a file is part of the writes' time, and has no rate of its own.
    let rows = sorted(s).into_iter().filter(|w| w.op != "fsync" || w.ops_per_s.is_some());
    for w in rows {
        let moves = moves_bytes(w);
        let response = w.latency_ns.response.as_ref();
        let (throttled, failed) = (throttled(w), failed(w));
        t.push(vec![
            w.op.to_uppercase(),
            if moves { crate::lines::size(w, &s.workloads) } else { "-".into() },
            if concurrencies.len() > 1 { w.concurrency.to_string() } else { String::new() },
            w.ops_per_s.as_ref().map_or(number::MISSING.into(), rate_with_interval),
            match (&w.bytes_per_s, moves) {
                (_, false) => "-".into(),
                (b, true) => b.map_or(number::MISSING.into(), |b| rate_with_interval(&b.scaled(1.0 / MIB))),
            },
            // As the published tables of block storage have it: there it is what concurrency and rate come to.
            response.filter(|_| is_block(s)).map_or(String::new(), |l| format_latency_ns(l.mean)),
            latency(response.and_then(|l| l.p50)),
            latency(response.and_then(|l| l.p99)),
            if throttled > 0 { number::count(throttled) } else { String::new() },
            if failed > 0 { number::count(failed) } else { String::new() },
            bound_by(s, w).into(),
            if steps { crate::lines::name(w) } else { String::new() },
            spoiled(s, w),
        ]);
    }
    t.without_empty_columns()
}

/// A rate so near to what a cap allows is the cap's (a choice: the caps of a few sizes are known no better).
const AT_THE_CAP: f64 = 0.05;

/// Which cap over the sizes a line has reached: `ops`, `bytes`, or both where they meet; nothing where none is known, or the line
/// lies below them.
pub(crate) fn bound_by(s: &RunSummary, w: &WorkloadSummary) -> &'static str {
    let caps = s.claims.iter().find_map(|c| match &c.kind {
        ClaimKind::SizeCaps(x) if x.op == w.op => Some(x),
        _ => None,
    });
    // Caps are of loads alone: half of a mix is below them.
    let alone = !["rw", "randrw", "mix"].contains(&w.load.as_str());
    let (Some(caps), Some(rate)) = (caps, w.ops_per_s.filter(|_| alone && w.valid && w.size_bytes > 0))
    else {
        return "";
    };
    let at = |bound: &CapBound, per_op: f64| match bound {
        CapBound::AtMost(cap) => rate.value * per_op >= (1.0 - AT_THE_CAP) * cap.value,
        _ => false,
    };
    // One concurrency does not tell a cap on operations from what latency allows so many.
    let ops = if caps.in_flight.is_some() { "ops or latency" } else { "ops" };
    match (at(&caps.ops_per_s, 1.0), at(&caps.bytes_per_s, w.size_bytes as f64)) {
        (true, true) => "ops and bytes",
        (true, false) => ops,
        (false, true) => "bytes",
        (false, false) => "",
    }
}

/// What makes this line invalid, as a mark.
pub(crate) fn spoiled(s: &RunSummary, w: &WorkloadSummary) -> String {
    let codes = s.codes_of(w);
    match (is_line_valid(s, w), codes.is_empty()) {
        (true, _) => String::new(),
        // A search has one answer: what is wrong with another step of it is wrong with all.
        (false, true) => match s.codes_of_the_answer()[..] {
            [] => "[INVALID]".into(),
            ref codes => format!("[INVALID, by {} of another line]", codes.join(" ")),
        },
        (false, false) => format!("[INVALID {}]", codes.join(" ")),
    }
}

/// Whether lines are told apart by their names only: the steps of a search, which are read in their own order.
pub fn has_steps(s: &RunSummary) -> bool {
    let cells: BTreeSet<_> = s.workloads.iter().map(|w| (&w.op, w.size_bytes, w.concurrency)).collect();
    cells.len() < s.workloads.len()
}

/// One row per line, for runs that are no sweep.
pub fn overview(s: &RunSummary) -> Table {
    let rate = if is_block(s) { ">IOPS" } else { ">op/s" };
    let heads =
        &["workload", rate, ">MiB/s", ">MB/s", ">p50", ">p99", ">p99.9", ">throttled", ">failed", "validity"];
    let mut t = Table::new("Results", 1, heads);
    for w in &s.workloads {
        let response = w.latency_ns.response.as_ref();
        let bytes = |unit: f64| {
            let b = w.bytes_per_s.filter(|_| moves_bytes(w));
            b.map_or(String::new(), |b| number::estimate(&b.scaled(1.0 / unit)))
        };
        let shown = |n: u64| if n > 0 { number::count(n) } else { String::new() };
        t.push(vec![
            crate::lines::label(w, &s.workloads),
            number::estimate_or_missing(w.ops_per_s.as_ref()),
            bytes(MIB),
            bytes(number::MB),
            latency(response.and_then(|l| l.p50)),
            latency(response.and_then(|l| l.p99)),
            latency(response.and_then(|l| l.p999)),
            shown(throttled(w)),
            shown(failed(w)),
            spoiled(s, w),
        ]);
    }
    t.without_empty_columns()
}

/// Repeats from which on the spread over them says what a list of them would.
const MANY_REPEATS: usize = 5;

/// Each repeat's own rate, where they are so few that the line's interval says little of them; without rows: there are none, or many.
pub fn each_run(s: &RunSummary) -> Table {
    let few = |w: &&WorkloadSummary| (2..MANY_REPEATS).contains(&w.each_ops_per_s.len());
    let all: Vec<&WorkloadSummary> = sorted(s).into_iter().filter(few).collect();
    let most = all.iter().map(|w| w.each_ops_per_s.len()).max().unwrap_or(0);
    let unit = if is_block(s) { "IOPS" } else { "op/s" };
    let heads: Vec<String> = (1..=most).map(|i| format!(">Run {i}, {unit}")).collect();
    let mut columns = vec!["Each run's own"];
    columns.extend(heads.iter().map(String::as_str));
    let mut t = Table::new("Each run's own rate", 1, &columns);
    for w in all {
        let mut row = vec![crate::lines::label(w, &s.workloads)];
        row.extend(w.each_ops_per_s.iter().map(number::estimate));
        row.resize(columns.len(), String::new());
        t.push(row);
    }
    t
}

fn rate_with_interval(e: &plimsoll_model::Estimate) -> String {
    number::estimate(e)
}

/// Totals of mixes, then PUT before GET before the rest, as published tables have it; then by size and concurrency.
fn sorted(s: &RunSummary) -> Vec<&WorkloadSummary> {
    let mut all: Vec<&WorkloadSummary> = s.workloads.iter().collect();
    let rank = |w: &WorkloadSummary| OpKind::parse(&w.op).map(|k| k as usize);
    if has_steps(s) {
        return all;
    }
    all.sort_by(|a, b| {
        (rank(a), a.size_bytes, a.concurrency, &a.name).cmp(&(rank(b), b.size_bytes, b.concurrency, &b.name))
    });
    all
}

pub fn moves_bytes(w: &WorkloadSummary) -> bool {
    OpKind::parse(&w.op).is_none_or(OpKind::moves_bytes)
}

pub fn latency(ns: Option<u64>) -> String {
    ns.map_or_else(|| number::MISSING.into(), |n| format_latency_ns(n as f64))
}

/// Latencies of one line: a row per clock.
pub fn latencies(w: &WorkloadSummary) -> Table {
    let mut t =
        Table::new("Latency", 1, &["latency", ">mean", ">p50", ">p90", ">p99", ">p99.9", ">p99.99", ">max"]);
    let l = &w.latency_ns;
    // In a closed loop both clocks are one, and its name is service.
    let open = l.service.is_some() && l.service != l.response;
    let rows = [
        (if open { "response" } else { "service" }, l.response.as_ref()),
        ("service", l.service.as_ref().filter(|_| open)),
        ("first byte", l.ttfb.as_ref()),
        ("submission", l.submission.as_ref()),
    ];
    for (name, l) in rows {
        let Some(l) = l else { continue };
        t.push(row(name, l));
        bounds(l).into_iter().for_each(|row| t.push(row));
    }
    t
}

/// How far the interval of each percentile reaches below and above it: `-1.2/+1.5 %`; nothing where none is known.
fn bounds(l: &LatencySummary) -> Option<Vec<String>> {
    let i = &l.intervals;
    let all = [&i.p50, &i.p90, &i.p99, &i.p999];
    let cell = |e: &Option<plimsoll_model::Estimate>| {
        let Some(e) = e.filter(|e| e.value > 0.0) else { return String::new() };
        let reach = |end: f64| 100.0 * (end / e.value - 1.0).abs();
        // An upper end beyond all that was seen is none.
        let up = if e.high.is_finite() { digits(reach(e.high)) } else { "?".into() };
        format!("-{}/+{up} %", digits(reach(e.low)))
    };
    all.iter().any(|e| e.is_some()).then(|| {
        let mut row = vec!["  95 %".to_owned(), String::new()];
        row.extend(all.map(cell));
        row.resize(8, String::new());
        row
    })
}

fn digits(percent: f64) -> String {
    if percent >= 9.95 { format!("{percent:.0}") } else { format!("{percent:.1}") }
}

fn row(name: &str, l: &LatencySummary) -> Vec<String> {
    let mut row = vec![name.into(), format_latency_ns(l.mean)];
    row.extend([l.p50, l.p90, l.p99, l.p999, l.p9999].map(latency));
    row.push(format_latency_ns(l.max as f64));
    row
}

pub fn throttled(w: &WorkloadSummary) -> u64 {
    w.count(Outcome::is_throttled)
}

pub fn failed(w: &WorkloadSummary) -> u64 {
    w.count(Outcome::is_failure)
}

/// `ok 1,853,600; throttled 12 (http_503 12); failed 3 (timeout 3)`.
pub fn outcomes(w: &WorkloadSummary) -> String {
    let class = |name: &str, pick: fn(Outcome) -> bool| {
        let total = w.count(pick);
        let each = Outcome::ALL.into_iter().filter(|o| pick(*o));
        let parts: Vec<String> = each
            .filter_map(|o| w.outcomes.get(o.name()).filter(|n| **n > 0).map(|n| (o, n)))
            .map(|(o, n)| format!("{} {}", o.name(), number::count(*n)))
            .collect();
        match total {
            0 => format!("{name} 0"),
            _ => format!("{name} {} ({})", number::count(total), parts.join(", ")),
        }
    };
    let mut out = vec![
        format!("ok {}", number::count(w.count(Outcome::is_ok))),
        class("throttled", Outcome::is_throttled),
        class("failed", Outcome::is_failure),
    ];
    if let Some(n) = w.outcomes.get(Outcome::Cancelled.name()).filter(|n| **n > 0) {
        out.push(format!("unfinished at the end {}", number::count(*n)));
    }
    out.join("; ")
}

/// What the load was and how long it was measured, in one line.
pub fn conditions(w: &WorkloadSummary) -> String {
    let load = match w.offered_per_s {
        Some(offered) => {
            format!("{} op/s offered, at most {}", plimsoll_stats::words::about(offered, 4), w.concurrency)
        }
        None => w.concurrency.to_string(),
    };
    let mut out = format!("{load} in flight, measured for {}", number::seconds(w.window_s));
    if w.repeats > 1 {
        out.push_str(&format!(" in {} repeats", w.repeats));
    }
    out.push_str(&format!(
        " (left out: warm-up {}, tail {}); seen for {}",
        number::seconds(w.warmup_s),
        number::seconds(w.tail_s),
        number::seconds(w.horizon_s)
    ));
    out
}

/// The tool's own part in it.
pub fn client(w: &WorkloadSummary) -> String {
    let c = &w.client;
    if c.busy_fraction == 0.0 && c.cpu_s == 0.0 && c.rss_bytes == 0 {
        return "not recorded".into();
    }
    let mut out = vec![format!("busy {}", number::percent(c.busy_fraction))];
    let per_gib = c.cpu_s_per_gib.map_or(String::new(), |x| format!(" ({x:.2} s/GiB)"));
    out.push(format!("CPU {:.1} s{per_gib}", c.cpu_s));
    out.push(format!("machine's CPU {}", number::percent(c.system_cpu)));
    if c.steal > 0.001 {
        out.push(format!("stolen {}", number::percent(c.steal)));
    }
    if c.rss_bytes > 0 {
        out.push(format!("memory {:.0} MiB", c.rss_bytes as f64 / MIB));
    }
    if c.reconnects > 0 {
        out.push(format!("{} reconnects", number::count(c.reconnects)));
    }
    if c.paused_s > 0.0 {
        out.push(format!("paused after refusals for {:.1} s, all slots together", c.paused_s));
    }
    if c.late_ops > 0 {
        out.push(format!("{} ops sent late", number::count(c.late_ops)));
    }
    out.join(", ")
}

pub fn endpoints(w: &WorkloadSummary) -> Table {
    let mut t = Table::new(
        "By endpoint",
        1,
        &["endpoint", ">op/s", ">MiB/s", ">mean", ">max", ">ok", ">throttled", ">failed"],
    );
    for e in &w.per_endpoint {
        t.push(vec![
            e.endpoint.clone(),
            plimsoll_model::units::significant(e.ops_per_s, 4),
            plimsoll_model::units::significant(e.bytes_per_s / MIB, 4),
            format_latency_ns(e.mean_response_ns),
            format_latency_ns(e.max_response_ns as f64),
            number::count(e.ok),
            number::count(e.throttled),
            number::count(e.failed),
        ]);
    }
    t
}

pub fn expectations(all: &[Expectation]) -> Table {
    let mut t = Table::new("Expectations", 1, &["expected", "met", ">measured", "reason"]);
    for e in all {
        let met = e.met.map_or("undetermined", |m| if m { "yes" } else { "NO" });
        let measured =
            e.measured.map_or(number::MISSING.into(), |m| plimsoll_model::units::significant(m, 4));
        t.push(vec![e.text.clone(), met.into(), measured, e.reason.clone()]);
    }
    t
}

/// Heads of the table of several runs, after its keys.
pub const GROUP_HEADS: [&str; 6] = [">op/s", ">MiB/s", ">p50", ">p99", ">Lines", "Left out"];

/// One row per group of `--by`.
pub fn groups(all: &[Group], by: &[GroupKey]) -> Table {
    let mut heads: Vec<String> = by.iter().map(GroupKey::name).collect();
    heads.extend(GROUP_HEADS.map(String::from));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut t = Table::new("Runs side by side", by.len(), &heads);
    let several = all.iter().any(|g| g.lines > 1);
    for g in all {
        let mut row = g.keys.clone();
        row.extend([
            number::estimate_or_missing(g.ops_per_s.as_ref()),
            g.bytes_per_s.map_or(number::MISSING.into(), |b| number::estimate(&b.scaled(1.0 / MIB))),
            latency(g.p50_ns),
            latency(g.p99_ns),
            // Where each row is one line, its number says nothing.
            if several { g.lines.to_string() } else { String::new() },
            if g.left_out > 0 { format!("{} invalid", g.left_out) } else { String::new() },
        ]);
        t.push(row);
    }
    t.without_empty_columns()
}

/// What differs between the runs: keys to group by when the user names none.
pub fn default_keys(runs: &[RunReport]) -> Vec<GroupKey> {
    let lines = || runs.iter().flat_map(|r| &r.summary.workloads);
    let mut keys = vec![GroupKey::Op];
    if lines().map(|w| w.size_bytes).collect::<BTreeSet<_>>().len() > 1 {
        keys.push(GroupKey::Size);
    }
    if lines().map(|w| w.concurrency).collect::<BTreeSet<_>>().len() > 1 {
        keys.push(GroupKey::Concurrency);
    }
    // Labels that a command gives its runs say what made them, not what is compared.
    let given = |r: &'_ RunReport, n: &String| !suite::is_own_label(&r.summary.labels, n);
    let names: BTreeSet<&String> =
        runs.iter().flat_map(|r| r.summary.labels.keys().filter(move |n| given(r, n))).collect();
    let differs =
        |n: &&&String| runs.iter().map(|r| r.summary.labels.get(**n)).collect::<BTreeSet<_>>().len() > 1;
    let labels: Vec<GroupKey> = names.iter().filter(differs).map(|n| GroupKey::Label((*n).clone())).collect();
    if labels.is_empty() {
        keys.push(GroupKey::Run);
    }
    keys.extend(labels);
    keys
}

/// The keys that were asked for, or the default ones. Ops are never summed up over: what PUT and GET do together is no rate of either.
pub fn keys(asked: &[GroupKey], runs: &[RunReport]) -> Vec<GroupKey> {
    if asked.is_empty() {
        return default_keys(runs);
    }
    let mut keys = asked.to_vec();
    let lines = runs.iter().flat_map(|r| r.summary.workloads.iter().map(move |w| (r, w)));
    let ops: BTreeSet<_> = lines.map(|(r, w)| GroupKey::Op.of(r, w, false)).collect();
    if !keys.contains(&GroupKey::Op) && ops.len() > 1 {
        keys.push(GroupKey::Op);
    }
    keys
}
