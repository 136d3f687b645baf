//! A run at a glance: what it is called, one sentence that answers, and a few named facts. Every form of the report begins with it.
//!
//! The sentence is made of claims, so that it says nothing that the verdict does not; no figure of a line that is void is in it.

use std::collections::BTreeSet;

use plimsoll_model::claim::{
    Amount, Burst, Cap, CapBound, Claim, ClaimKind, Rate, RateWord, Refusing, SizeCaps, Unit,
};
use plimsoll_model::finding::Level;
use plimsoll_model::plan::suite;
use plimsoll_model::summary::{Expectation, WorkloadSummary};
use plimsoll_model::text::clean;
use plimsoll_model::units::format_size;
use plimsoll_model::{Estimate, Finding, RunStatus, RunSummary};
use plimsoll_stats::words;
use serde::{Deserialize, Serialize};

use crate::number;
use crate::run::RunReport;
use crate::table::Table;
use crate::tables;

mod facts;
mod searches;
mod short;
mod suites;

use facts::{add_generators, facts};
pub(crate) use short::{ALL, Body};

/// What is said first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Glance {
    /// What was measured; never the id of the run.
    pub title: String,
    /// `VALID`, `VALID !` (something qualifies it), `PARTLY VALID`, `INVALID V07 V13`.
    pub mark: String,
    /// What, how much, for how long, and what limits it.
    pub sentence: String,
    /// In the order in which they are asked for.
    pub facts: Vec<GlanceFact>,
    /// What stands against the result, the worst first: each in a line.
    pub reservations: Vec<GlanceFact>,
    /// How many more there are.
    pub more_reservations: usize,
}

/// A name, and what is to be said of it in a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlanceFact {
    /// `rate`, `response`, or a code.
    pub name: String,
    /// Plain text.
    pub text: String,
}

/// Facts that one look takes in, and reservations beside them.
const MOST_FACTS: usize = 6;
const MOST_RESERVATIONS: usize = 2;
const MOST_PROMISES: usize = 3;
/// Columns of a fact's name on a terminal.
const NAME: usize = 12;

impl Glance {
    /// Of one run.
    pub fn of(r: &RunReport) -> Self {
        let s = &r.summary;
        let promises = promises(&s.expectations);
        let mut facts = facts(r);
        let known: Vec<String> = not_known(s);
        if !known.is_empty() && s.answered {
            facts.push(fact("not known", known.join("; ")));
        }
        let room = MOST_FACTS - promises.len();
        if facts.len() < room {
            add_generators(&mut facts, r);
        }
        facts.truncate(room);
        // Beside those of any run: who it was that measured.
        facts.extend(crate::agents::in_a_line(s).map(|text| fact("agents", text)));
        if s.answered {
            facts.extend(crate::servers::in_a_line(s).map(|text| fact("servers", text)));
            facts.extend(crate::servers::bytes_in_a_line(s).map(|text| fact("traffic", text)));
        }
        facts.extend(crate::servers::silent_in_a_line(s).map(|text| fact("no answer", text)));
        facts.extend(crate::cost::in_a_line(s).map(|text| fact("cost", text)));
        facts.extend(promises);
        let sentence = sentence(r);
        let all = crate::terminal::grouped(&s.findings);
        // What the sentence says is told once: the worst of an invalid run, what voids a search, and the same of another line.
        let is_said = |f: &Finding| sentence.contains(&first_sentence(&f.text));
        let said: BTreeSet<(&str, &str)> =
            s.findings.iter().filter(|f| is_said(f)).map(|f| (f.code.as_str(), f.name.as_str())).collect();
        let told: Vec<_> = all.iter().filter(|(f, _)| f.level != Level::Info && !is_said(f)).collect();
        let shown: Vec<GlanceFact> = told
            .iter()
            .filter(|(f, _)| !said.contains(&(f.code.as_str(), f.name.as_str())))
            .take(MOST_RESERVATIONS)
            .map(|(f, others)| reservation(s, f, *others))
            .collect();
        Self {
            title: title(r),
            mark: mark(s),
            more_reservations: told.len() - shown.len(),
            reservations: shown,
            sentence,
            facts,
        }
    }
}

/// Cut at a word, with a sign that it was.
fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.trim_end().to_owned();
    }
    let cut: String = text.chars().take(width.saturating_sub(2)).collect();
    let end = cut.rfind(' ').unwrap_or(cut.len());
    format!("{} …", cut[..end].trim_end_matches([',', ';', ':', ' ']))
}

/// Up to the first full stop that ends a sentence.
pub(crate) fn first_sentence(text: &str) -> String {
    let end = text.match_indices(". ").find(|(i, _)| text[i + 2..].starts_with(char::is_uppercase));
    end.map_or(text, |(i, _)| &text[..i]).trim_end_matches('.').to_owned()
}

pub(crate) fn fact(name: &str, text: String) -> GlanceFact {
    GlanceFact { name: name.into(), text }
}

/// What one of several lines shows is said of that one: its figure is not that of the others.
fn reservation(s: &RunSummary, f: &Finding, others: usize) -> GlanceFact {
    let text = first_sentence(&f.text);
    let line = s.workloads.iter().find(|w| f.workload.as_deref() == Some(&w.label()));
    let name = line.map(|w| crate::lines::label(w, &s.workloads)).or_else(|| f.workload.clone());
    let text = match name.filter(|_| s.workloads.len() > 1) {
        None => text,
        Some(name) if others > 0 => format!("{name} (and {others} more): {text}"),
        Some(name) => format!("{name}: {text}"),
    };
    fact(&f.code, text)
}

/// What was not met first; of many the rest as a number.
pub(crate) fn promises(all: &[Expectation]) -> Vec<GlanceFact> {
    let mut all: Vec<_> = all.iter().collect();
    all.sort_by_key(|e| e.met.map_or(1, |m| if m { 2 } else { 0 }));
    let word = |met: Option<bool>| met.map_or("undetermined", |m| if m { "met" } else { "NOT met" });
    let shown = if all.len() > MOST_PROMISES { MOST_PROMISES - 1 } else { all.len() };
    let mut out: Vec<GlanceFact> =
        all[..shown].iter().map(|e| fact("promise", format!("{}: {}", word(e.met), e.text))).collect();
    if let [next, ..] = &all[shown..] {
        out.push(fact(
            "promise",
            format!("{} more; the worst of them: {}", all.len() - shown, word(next.met)),
        ));
    }
    out
}

/// How far the result may be used, in a word.
pub fn mark(s: &RunSummary) -> String {
    let codes = s.codes_of_the_answer().join(" ");
    let noted = s.findings.iter().any(|f| f.level == Level::Qualified);
    match (s.answered, s.status) {
        (false, _) => format!("INVALID {codes}").trim_end().to_owned(),
        (true, RunStatus::Partly) => "PARTLY VALID".into(),
        _ if noted => "VALID !".into(),
        _ => "VALID".into(),
    }
}

fn upper(op: &str) -> String {
    if op == "total" { "all ops combined".into() } else { op.to_uppercase() }
}

fn sized(op: &str, bytes: u64) -> String {
    if bytes == 0 { upper(op) } else { format!("{} {}", format_size(bytes), upper(op)) }
}

pub(crate) fn listed<'a>(all: impl IntoIterator<Item = &'a str>) -> String {
    let set: BTreeSet<&str> = all.into_iter().filter(|o| *o != "total").collect();
    let names: Vec<String> = set.into_iter().map(str::to_uppercase).collect();
    match names.as_slice() {
        [] => "all ops combined".into(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// What was measured, in a few words: the name that it was given, else what was done.
pub fn title(r: &RunReport) -> String {
    let s = &r.summary;
    // The plan of a run that came from elsewhere is text from outside, too.
    if let Some(name) = r.series.as_ref().and_then(|x| x.data.plan.name.as_deref()) {
        return clean(name).into_owned();
    }
    if let Some(title) = suites::title(s) {
        return title;
    }
    let ops = || listed(s.workloads.iter().map(|w| w.op.as_str()));
    if is_probed(s) {
        return format!("Limits of {}", listed(s.limits.iter().map(|l| l.op_class.as_str())));
    }
    if !r.analysis.saturations.is_empty() || kinds(s).any(|k| matches!(k, ClaimKind::BestConcurrency(_))) {
        return format!("Best concurrency of {}", ops());
    }
    match s.workloads.as_slice() {
        [] => "Nothing measured".into(),
        [w] => {
            let what = if tables::moves_bytes(w) { sized(&w.op, w.size_bytes) } else { upper(&w.op) };
            let most = if w.offered_per_s.is_some() { "at most " } else { "" };
            format!("{what}, {most}{} in flight", w.concurrency)
        }
        all => {
            let sizes: BTreeSet<u64> =
                all.iter().filter(|w| tables::moves_bytes(w)).map(|w| w.size_bytes).collect();
            let loads: BTreeSet<u32> = all.iter().map(|w| w.concurrency).collect();
            let mix =
                if all.iter().any(|w| w.op == "total") && !tables::is_sweep(s) { "Mix of " } else { "" };
            let of = match (sizes.len(), loads.len()) {
                (2.., _) => format!(" at {} sizes", sizes.len()),
                (_, 2..) if mix.is_empty() => format!(" at {} concurrencies", loads.len()),
                _ => String::new(),
            };
            format!("{mix}{}{of}", ops())
        }
    }
}

/// Whether limits were looked for; those of a plain run fell to it, and each is of one line.
fn is_probed(s: &RunSummary) -> bool {
    s.limits.iter().any(|l| l.evidence.iter().all(|(name, _)| name != "line"))
}

/// The limits are the answer: they were looked for, or the only line shows them.
fn is_of_limits(s: &RunSummary) -> bool {
    is_probed(s) || !s.limits.is_empty() && s.workloads.len() == 1
}

/// The figure of the result's first line, for a list of runs: `3,459 ± 5 op/s of 64KiB GET`. Of several lines none stands for all.
pub fn result(s: &RunSummary) -> String {
    let rates = kinds(s).filter(|k| matches!(k, ClaimKind::Rate(_))).count();
    if suites::is(s, suite::FILE) || rates > 1 {
        return sentence(&RunReport::of(s.clone()));
    }
    let figure = kinds(s).find_map(|k| match k {
        ClaimKind::Rate(x) => Some(ops_of(&x.place.op, x.place.size_bytes, &x.ops_per_s)),
        ClaimKind::Cap(c) if c.proved => Some(format!("{} of {}", per_s(c.unit, &c.per_s), upper(&c.op))),
        ClaimKind::BestConcurrency(_) => {
            let all: Vec<String> =
                searches::bests(s).map(|b| ops_of(&b.op, b.size_bytes, &b.ops_per_s)).collect();
            Some(all.join(", "))
        }
        _ => None,
    });
    figure.filter(|_| s.answered).unwrap_or_else(|| sentence(&RunReport::of(s.clone())))
}

fn per_s(unit: Unit, e: &Estimate) -> String {
    match unit {
        Unit::Ops => words::ops_rate(e),
        Unit::Bytes => words::bytes_rate(e),
    }
}

fn ops_of(op: &str, size_bytes: u64, e: &Estimate) -> String {
    format!("{} of {}", words::ops_rate(e), sized(op, size_bytes))
}

fn kinds(s: &RunSummary) -> impl Iterator<Item = &ClaimKind> {
    s.claims.iter().map(|c| &c.kind)
}

fn sentence(r: &RunReport) -> String {
    let s = &r.summary;
    if !s.answered {
        let worst = s.findings.iter().find(|f| f.level == Level::Invalid);
        // With what to do about it; of several lines, of which it is said.
        let said = |f: &Finding| {
            let line = f.workload.as_ref().filter(|_| s.workloads.len() > 1);
            line.map_or(String::new(), |w| format!("{w}: ")) + f.text.trim_end_matches('.')
        };
        return worst.map_or_else(|| "no usable result".into(), said);
    }
    if kinds(s).all(|k| matches!(k, ClaimKind::Status(_))) {
        // A summary of an older version has its verdict only.
        let text = s.verdict.replace("**", "");
        return first_sentence(text.split_once(". ").map_or(text.as_str(), |(_, rest)| rest));
    }
    if let Some(phases) = suites::sentence(s) {
        return phases;
    }
    let caps: Vec<&Cap> =
        kinds(s).filter_map(|k| if let ClaimKind::Cap(c) = k { Some(c) } else { None }).collect();
    if is_of_limits(s) {
        return limits(s, &caps);
    }
    if let Some(found) = searches::sentence(r) {
        return found;
    }
    let sizes: Vec<String> = kinds(s)
        .filter_map(|k| if let ClaimKind::SizeCaps(c) = k { Some(size_caps(c)) } else { None })
        .collect();
    if !sizes.is_empty() {
        return sizes.join("; ");
    }
    let rates: Vec<&Rate> =
        kinds(s).filter_map(|k| if let ClaimKind::Rate(x) = k { Some(x) } else { None }).collect();
    match rates.as_slice() {
        [] => no_rate(s),
        [one] => rate(one) + &bound(r),
        // Of a mix: all ops together.
        all => match all.iter().find(|x| x.place.op == "total").filter(|_| !tables::is_sweep(s)) {
            Some(total) => rate(total) + &bound(r),
            None => extremes(&highest(s)),
        },
    }
}

fn rate(r: &Rate) -> String {
    let bytes = r.bytes_per_s.as_ref().map_or(String::new(), |b| format!(", {}", words::bytes_rate(b)));
    let seen = match r.word {
        RateWord::Sustained => "sustained",
        RateWord::Measured => "seen",
    };
    format!(
        "{}{bytes}, {seen} for {}",
        ops_of(&r.place.op, r.place.size_bytes, &r.ops_per_s),
        words::span(r.place.window_s / f64::from(r.place.repeats.max(1)))
    )
}

/// What limits it, where that was proved, or is likely.
fn bound(r: &RunReport) -> String {
    let refused = kinds(&r.summary)
        .find_map(|k| if let ClaimKind::Refusing(x) = k { Some(x) } else { None })
        .map(|x| {
            let held = if x.held_back >= 0.01 { " (the load held back)" } else { "" };
            format!("; {}{held}", refuses(x))
        });
    let with = |verdict: &str| r.analysis.bottlenecks.iter().find(|b| b.verdict == verdict);
    refused
        .or_else(|| with("proved").map(|b| format!("; limited by the {}", b.candidate)))
        .or_else(|| with("likely").map(|b| format!("; probably limited by the {}", b.candidate)))
        .or_else(|| crate::servers::bound(&r.summary))
        .unwrap_or_default()
}

/// Where all is refused, a limiter is not the only reason that there can be.
/// Pauses that are less of a load's time took no part of its rate to speak of. (A choice.)
const HELD: f64 = 0.01;

fn refuses(x: &Refusing) -> String {
    match x.refused == x.attempts {
        true if x.attempts == 1 => format!("the only attempt of {} was refused (429 or 503)", upper(&x.op)),
        true => format!(
            "all {} attempts of {} were refused (429 or 503)",
            number::count(x.attempts),
            upper(&x.op)
        ),
        false => format!("a rate limiter refuses {} of {}", number::percent(x.share()), upper(&x.op)),
    }
}

/// The rates of several lines, each with its name: of a mix of a pattern all ops together, by the pattern's name.
fn highest(s: &RunSummary) -> Vec<(&Rate, String)> {
    let line = |c: &Claim| s.workloads.iter().find(|w| c.subject.as_deref() == Some(&w.label()));
    let mixed = |w: &&WorkloadSummary| {
        !w.is_total()
            && s.workloads.iter().any(|t| t.is_total() && (&t.load, t.size_bytes) == (&w.load, w.size_bytes))
    };
    let block = tables::is_block(s);
    let rates = s.claims.iter().filter_map(|c| match &c.kind {
        ClaimKind::Rate(r) => Some((r, line(c))),
        _ => None,
    });
    let own = rates.filter(|(_, w)| !w.as_ref().is_some_and(mixed));
    own.map(|(r, w)| match w.filter(|w| block && !w.load.is_empty()) {
        Some(w) => (r, sized(&w.load, r.place.size_bytes)),
        None => (r, sized(&r.place.op, r.place.size_bytes)),
    })
    .collect()
}

/// The most ops of the sizes, and the most bytes.
fn extremes(all: &[(&Rate, String)]) -> String {
    let most = |of: &dyn Fn(&Rate) -> f64| all.iter().max_by(|(a, _), (b, _)| of(a).total_cmp(&of(b)));
    let ops = most(&|r| r.ops_per_s.value);
    let bytes = most(&|r| r.bytes_per_s.map_or(0.0, |b| b.value));
    let ops = ops.map(|(r, name)| format!("up to {} ({name})", words::ops_rate(&r.ops_per_s)));
    let bytes = bytes
        .and_then(|(r, name)| Some(format!("up to {} ({name})", words::bytes_rate(r.bytes_per_s.as_ref()?))));
    ops.into_iter().chain(bytes).collect::<Vec<_>>().join(", ")
}

fn size_caps(c: &SizeCaps) -> String {
    let of = |bound: &CapBound, unit| match bound {
        CapBound::AtMost(e) => Some(format!("at most {}", per_s(unit, e))),
        CapBound::AtLeast(_) | CapBound::Unknown => None,
    };
    let parts: Vec<String> =
        [of(&c.ops_per_s, Unit::Ops), of(&c.bytes_per_s, Unit::Bytes)].into_iter().flatten().collect();
    let with = c.in_flight.map_or(String::new(), |n| format!(" with {n} in flight"));
    match parts.is_empty() {
        true => format!("{}: no cap found over these sizes{with}", upper(&c.op)),
        false => format!("{}{with}: {}", upper(&c.op), parts.join(" and ")),
    }
}

/// Why there is none: a step that no mean may hide, or what the data does not carry.
fn no_rate(s: &RunSummary) -> String {
    let said = kinds(s).find_map(|k| match k {
        ClaimKind::Fact(f) => Some(first_sentence(&f.said.replace("**", ""))),
        ClaimKind::Undetermined(u) => {
            Some(format!("{} is undetermined: {}", u.what, u.why.trim_end_matches('.')))
        }
        _ => None,
    });
    said.unwrap_or_else(|| "the data does not support a rate".into())
}

fn limits(s: &RunSummary, caps: &[&Cap]) -> String {
    let binding =
        kinds(s).find_map(|k| if let ClaimKind::Binding(b) = k { Some(b.binding.as_str()) } else { None });
    let no_rate_limit = match binding {
        Some("in_flight") => "limit_at_once",
        Some("share") => "refused_at_any_rate",
        _ => "",
    };
    let said = |f: &&Finding| f.name == no_rate_limit || f.name == "nothing_passes";
    if let Some(f) = s.findings.iter().find(said) {
        return first_sentence(&f.text);
    }
    let refusing = kinds(s).find_map(|k| if let ClaimKind::Refusing(x) = k { Some(x) } else { None });
    let proved: Vec<&&Cap> = caps.iter().filter(|c| c.proved).collect();
    if proved.is_empty() {
        if let Some(x) = refusing {
            let pass = match &x.passing_per_s {
                Some(e) => format!("{} get through", words::ops_rate(e)),
                None if x.passed_per_s <= 0.0 => "nothing gets through".into(),
                None => format!("about {} op/s get through", words::about(x.passed_per_s, 2)),
            };
            let held = if x.held_back >= HELD { " (the load held back)" } else { "" };
            return format!("{}; {pass}{held}", refuses(x));
        }
        let Some(any) = caps.first() else { return no_rate(s) };
        let seen: Vec<String> = caps.iter().map(|c| per_s(c.unit, &c.per_s)).collect();
        let why = match binding {
            Some("client") => "the client limited the rate",
            Some("latency") => "latency and concurrency determined the rate; no limit was reached",
            _ => "no limit found",
        };
        return format!("{} of {}; {why}", seen.join(", then "), upper(&any.op));
    }
    let of = |c: &Cap| match c.held_for_s {
        Some(t) => format!("{} of {} (held for {})", per_s(c.unit, &c.per_s), upper(&c.op), words::span(t)),
        None => format!("{} of {} sustained", per_s(c.unit, &c.per_s), upper(&c.op)),
    };
    let mut out = vec![proved.iter().map(|c| of(c)).collect::<Vec<_>>().join(", ")];
    out.extend(
        kinds(s).filter_map(|k| if let ClaimKind::Burst(b) = k { burst(b, caps) } else { None }).take(1),
    );
    out.join("; ")
}

/// How long the burst lasts from a full bucket: its tokens run out at the burst's rate less the refill.
fn burst(b: &Burst, caps: &[&Cap]) -> Option<String> {
    let rate = caps.iter().find(|c| c.op == b.op && c.unit == b.unit)?.per_s.value;
    let above = b.burst_per_s.as_ref()?;
    let Amount::Measured(capacity) = &b.capacity else { return None };
    let lasts = (above.value > rate).then(|| capacity.value / (above.value - rate))?;
    Some(format!("{} for {} from a full bucket", per_s(b.unit, above), words::span(lasts)))
}

/// What the data does not carry, by name only.
fn not_known(s: &RunSummary) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for k in kinds(s) {
        let what = match k {
            ClaimKind::Undetermined(u) => u.what.clone(),
            ClaimKind::Horizon(h) => {
                let of = match h.unit {
                    Some(Unit::Ops) => " of ops",
                    Some(Unit::Bytes) => " of bytes",
                    None => "",
                };
                format!("whether a burst{of} lasts longer than {}", words::span(h.seen_s))
            }
            _ => continue,
        };
        if !out.contains(&what) {
            out.push(what);
        }
    }
    out
}

/// Columns that go first where a table is too wide.
const LEAST_OF_LINES: [&str; 5] = ["MB/s", "p99.9", "p50", "MiB/s", "p99"];
const LEAST_OF_SIZES: [&str; 6] = ["Mean", "p50", "Step", "p99", "In flight", "Throughput (MiB/s)"];

/// Of a sweep of several ops a table of sizes by ops; of other lines a row each.
fn table(r: &RunReport, width: usize) -> Option<Table> {
    let s = &r.summary;
    if let Some(t) = crate::limits::searches(&r.analysis).filter(|_| s.answered) {
        return Some(t);
    }
    let searched = is_probed(s) || tables::is_search(r);
    // The file benchmark has a table of its own.
    let own = suites::is(s, suite::FILE);
    (!searched && !own && s.workloads.len() > 1).then(|| match tables::is_sweep(s) {
        true => {
            crate::pivot::pivot(s, width).unwrap_or_else(|| tables::sweep(s).fitted(width, &LEAST_OF_SIZES))
        }
        false => tables::overview(s).fitted(width, &LEAST_OF_LINES),
    })
}

#[cfg(test)]
mod tests;
