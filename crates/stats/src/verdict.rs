//! The paragraph that a person reads, from a run's summary, in fixed order: validity, sustained, burst and horizon,
//! which limit, confidence, what to do next.

use plimsoll_model::summary::{BucketSummary, LimitSummary, RunSummary, WorkloadSummary};
use plimsoll_model::{Analysis, Finding, Level, OpKind};

use crate::{validity, words};

/// Workloads that the paragraph names; the table has the others.
const NAMED: usize = 3;

/// How long a load has to be seen before its rate may be called sustained, where the user names no horizon, seconds.
pub const DEFAULT_GOAL_S: f64 = 600.0;

/// The paragraph. Reads workloads, limits, findings and the analysis; whatever is absent is left out, never guessed.
/// `goal_s`: the horizon that the user needs.
pub fn paragraph(s: &RunSummary, a: &Analysis, goal_s: Option<f64>) -> String {
    let mut out = vec![validity_sentence(s)];
    let goal_s = goal_s.unwrap_or(DEFAULT_GOAL_S);
    out.extend(a.size_models.iter().flat_map(sizes::sentences));
    if let Some(found) = a.saturations.first() {
        out.extend(search::sentences(s, found, &a.load_points, goal_s));
    } else if s.limits.is_empty() {
        out.extend(measured(s, a, goal_s));
        out.extend(horizon(s, goal_s));
    } else {
        for l in &s.limits {
            out.extend(limit_sentences(l, longest(s)));
        }
        out.extend(kinds(&s.findings));
    }
    out.extend(confidence(&s.findings));
    out.extend(next(s));
    out.retain(|t| !t.is_empty());
    out.join(" ")
}

fn validity_sentence(s: &RunSummary) -> String {
    let notes = s.findings.iter().filter(|f| f.level == Level::Qualified).count();
    let mut bad = s.findings.iter().filter(|f| f.level == Level::Invalid);
    if !s.valid {
        return format!("{} {}", validity::mark(&s.findings), bad.next().map_or("", |f| f.text.as_str()));
    }
    let cells = spoiled(s);
    let but = match cells.as_slice() {
        [] => String::new(),
        [one] => format!(", but not {one}"),
        [first, rest @ ..] => format!(", but not {first} and {} more", rest.len()),
    };
    let because = bad.next().filter(|_| !but.is_empty()).map_or(String::new(), |f| format!(" {}", f.text));
    match notes {
        0 => format!("VALID{but}.{because}"),
        1 => format!("VALID (1 note){but}.{because}"),
        n => format!("VALID ({n} notes){but}.{because}"),
    }
}

/// Cells of a valid run that are not: name and mark, each once.
fn spoiled(s: &RunSummary) -> Vec<String> {
    let cell = |w: &WorkloadSummary| {
        let bad: Vec<Finding> = validity::spoiled_by(s, w).cloned().collect();
        (!bad.is_empty()).then(|| format!("{} {}", w.name, validity::mark(&bad)))
    };
    let mut out: Vec<String> = s.workloads.iter().filter_map(cell).collect();
    out.dedup();
    out
}

fn longest(s: &RunSummary) -> f64 {
    s.workloads.iter().map(|w| w.horizon_s).fold(0.0, f64::max)
}

fn place(w: &WorkloadSummary) -> String {
    if w.size_bytes == 0 {
        return w.op.to_uppercase();
    }
    format!("{} {}", plimsoll_model::units::format_size(w.size_bytes), w.op.to_uppercase())
}

/// "Sustained" is kept for what held one level for as long as the user needs; all else was only measured.
fn measured(s: &RunSummary, a: &Analysis, goal_s: f64) -> Vec<String> {
    let held = |line: usize, w: &WorkloadSummary| {
        w.horizon_s >= goal_s && a.holds.iter().any(|h| h.line == line && h.verdict == "steady")
    };
    let mut out: Vec<String> = s
        .workloads
        .iter()
        .enumerate()
        // Syncs that belong to writes have no rate of their own, and need none.
        .filter(|(_, w)| w.op != "fsync" || w.ops_per_s.is_some())
        // What jobs did together stands for each of them.
        .filter(|(_, w)| w.together > 0 || s.workloads.iter().all(|o| o.together == 0 || o.op != w.op))
        .take(NAMED)
        .map(|(i, w)| match &w.ops_per_s {
            None => format!("**Undetermined**: the rate of {} (the findings say why).", place(w)),
            Some(ops) => {
                let bytes =
                    w.bytes_per_s.filter(|b| b.value > 0.0).map(|b| format!(", {}", words::bytes_rate(&b)));
                let runs = if w.repeats > 1 { format!(", {} runs", w.repeats) } else { String::new() };
                let jobs = if w.together > 0 {
                    format!(" from {} jobs together", w.together)
                } else {
                    String::new()
                };
                let word = if held(i, w) { "Sustained" } else { "Measured" };
                format!(
                    "{word} {} of {}{} at {} in flight{jobs} (95 %{runs}, {} window).",
                    words::ops_rate(ops),
                    place(w),
                    bytes.unwrap_or_default(),
                    w.concurrency,
                    words::span(w.window_s)
                )
            }
        })
        .collect();
    let more = s.workloads.len() - out.len();
    if s.workloads.len() > NAMED {
        out.push(format!("{more} more in the table."));
    }
    out
}

/// No rate without its horizon: which bucket this does not exclude.
fn horizon(s: &RunSummary, goal_s: f64) -> Option<String> {
    let w = s.workloads.iter().max_by(|a, b| a.horizon_s.total_cmp(&b.horizon_s))?;
    let ops = w.ops_per_s.filter(|e| e.value > 0.0)?;
    let mut out = format!(
        "Seen for {}: a burst that ends later is not excluded (a bucket of more than {} ops, if the sustained rate were half of this).",
        words::span(w.horizon_s),
        words::about(ops.value / 2.0 * w.horizon_s, 2)
    );
    if w.horizon_s < goal_s {
        out += &format!(" To call it sustained for {}, it has to be seen that long.", words::span(goal_s));
    }
    Some(out)
}

fn limit_sentences(l: &LimitSummary, horizon_s: f64) -> Vec<String> {
    let mut out = Vec::new();
    let op = l.op_class.to_uppercase();
    for (bucket, is_ops) in [(&l.ops_per_s, true), (&l.bytes_per_s, false)] {
        if let Some(b) = bucket {
            out.push(bucket_sentence(b, &op, is_ops));
        }
    }
    let knee = l.knee_bytes.as_ref().map(|k| {
        let (unit, f) = words::bytes_unit(k.value);
        let n = |x: f64| plimsoll_model::units::significant(x / f, 3);
        format!(
            "Objects below **{} {unit}** ({} to {}) are limited by operations, larger ones by bytes.",
            n(k.value),
            n(k.low),
            n(k.high)
        )
    });
    out.push(knee.unwrap_or_else(|| match l.binding.as_str() {
        "ops" => "The limit is on operations.".into(),
        "bytes" => "The limit is on bytes.".into(),
        "latency" => "Latency and concurrency set the rate; no limit was reached.".into(),
        "client" => "The client set the rate; the storage's limit was not reached.".into(),
        "none" => "No limiter was found: no burst that ends, no refusals, and no rate that is held more exactly than storage \
                   does by itself. These are rates of the storage, or of the client."
            .into(),
        _ => "Which limit binds is undetermined.".into(),
    }));
    if horizon_s > 0.0 {
        out.push(format!(
            "Seen for {} at most: a bucket whose cliff comes later is not excluded.",
            words::span(horizon_s)
        ));
    }
    let is_object = OpKind::parse(&l.op_class).is_some_and(|k| {
        !matches!(k, OpKind::Read | OpKind::Write | OpKind::Fsync | OpKind::Trim | OpKind::Null)
    });
    match l.scope.as_str() {
        "unknown" if is_object && l.binding != "none" => {
            out.push(
                "Unknown: whether the limit is per connection, bucket, key or client: --probe-scope tells."
                    .into(),
            );
        }
        "unknown" => {}
        "server" => out.push("All that was tried shares the limit.".into()),
        scope => out.push(format!("The limit is per {scope}.")),
    }
    out
}

/// What kind of limit it is, as far as that was found out.
fn kinds(findings: &[Finding]) -> Vec<String> {
    const SAID: [&str; 7] = [
        "limit_cause",
        "limit_window",
        "limit_tiers",
        "limit_burst_law",
        "limit_penalty",
        "limit_cost",
        "limit_shared",
    ];
    let said = SAID.iter().flat_map(|name| findings.iter().filter(move |f| f.name == *name));
    said.map(|f| f.text.clone()).collect()
}

fn bucket_sentence(b: &BucketSummary, op: &str, is_ops: bool) -> String {
    let rate = |e: &plimsoll_model::Estimate| if is_ops { words::ops_rate(e) } else { words::bytes_rate(e) };
    let amount = |e: &plimsoll_model::Estimate| {
        if e.high >= f64::MAX {
            // A bound: the upper end is open.
            let (unit, f) = if is_ops { ("ops", 1.0) } else { words::bytes_unit(e.value) };
            return format!("at least {} {unit}", words::about(e.value / f, 2));
        }
        if is_ops { format!("{} ops", words::plus_minus(e)) } else { words::bytes(e) }
    };
    let Some(s) = &b.sustained else {
        return format!(
            "**Undetermined**: the sustained rate of {op} in {}.",
            if is_ops { "operations" } else { "bytes" }
        );
    };
    let mut out = format!("Sustained **{}** of {op} (95 %).", rate(s));
    if let Some(c) = &b.capacity {
        let burst = b
            .burst
            .as_ref()
            .map(|p| format!("It first runs at {}, then falls to the sustained rate: ", rate(p)));
        let lead = burst.unwrap_or_else(|| "Above it lies ".into());
        out += &format!(" {lead}a token bucket of **{}**", amount(c));
        let r = b.refill.as_ref().unwrap_or(s);
        if r.value > 0.0 {
            let how =
                if b.refill.is_some() { "refilling at" } else { "refilled (if at the sustained rate) at" };
            out +=
                &format!(", {how} {} (full again after {} of rest)", rate(r), words::span(c.value / r.value));
        }
        out.push('.');
    }
    out
}

/// The notes, by name: the table explains them.
fn confidence(findings: &[Finding]) -> Option<String> {
    let mut notes: Vec<String> = findings
        .iter()
        .filter(|f| f.level == Level::Qualified)
        .map(|f| format!("{} {}", f.code, f.name.replace('_', " ")))
        .collect();
    notes.sort();
    notes.dedup();
    (!notes.is_empty()).then(|| format!("Notes: {}.", notes.join(", ")))
}

/// What to do next: the remedy of the first thing that is wrong, else of what was found out.
fn next(s: &RunSummary) -> Option<String> {
    let says_it = ["open_question", "concurrency_bound", "still_gaining", "client_limited"];
    let open = s.findings.iter().find(|f| says_it.contains(&f.name.as_str()))?;
    Some(format!("Next: {}", open.text))
}

mod search;
mod sizes;
#[cfg(test)]
mod tests;
