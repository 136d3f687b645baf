//! What the data answers, in sentences: each is made only where its condition holds, and says where none does.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_campaign::{CampaignResult, CampaignRow, IntervalOf};
use plimsoll_model::Estimate;
use plimsoll_model::count::{are, counted};
use plimsoll_model::text::clean;
use plimsoll_report::number;

use crate::promise::{OPEN, promises};
use crate::tables::{bound, mib, missing};

/// The answer: first the one sentence, then what belongs to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CampaignAnswer {
    /// Stands largest.
    pub lead: String,
    /// What limits, what is kept, what is reserved.
    pub more: Vec<String>,
    /// Figures beside it: name, value, of what.
    pub tiles: Vec<[String; 3]>,
    /// Cells with a figure, cells in all.
    pub cells: (usize, usize),
}

/// Subjects or workloads named in one sentence.
const MOST_NAMED: usize = 4;

/// Of the whole campaign.
pub fn answer(result: &CampaignResult) -> CampaignAnswer {
    let with = result.rows.iter().filter(|r| r.rate().is_some()).count();
    let mut out = CampaignAnswer { cells: (with, result.rows.len()), ..CampaignAnswer::default() };
    if with == 0 {
        out.lead = "Inconclusive: no cell has a valid run.".into();
        return out;
    }
    let groups = groups(result);
    let compared: Vec<(&str, Standing<'_>)> =
        groups.iter().filter(|(_, rows)| rows.len() > 1).map(|((w, _), rows)| (*w, standing(rows))).collect();
    out.lead = if compared.is_empty() { alone(result) } else { fastest(&compared, kind_of_lines(&compared)) };
    let subjects: BTreeSet<&str> = result.rows.iter().map(|r| r.subject.as_str()).collect();
    if groups.iter().any(|(_, rows)| rows.len() > 1 && rows.len() < subjects.len()) {
        out.lead += " Where a subject has no valid figure, the others alone are compared.";
    }
    out.more.extend(limited(result));
    out.more.extend(kept(result));
    out.more.extend(reserved(result));
    out.tiles = tiles(result);
    out
}

type Groups<'a> = Vec<((&'a str, &'a str), Vec<&'a CampaignRow>)>;

/// Rows that can be held against each other: the same workload and line, of several subjects. In the order of the file.
fn groups(result: &CampaignResult) -> Groups<'_> {
    let mut out: Groups<'_> = Vec::new();
    for r in result.rows.iter().filter(|r| r.rate().is_some()) {
        let key = (r.workload.as_str(), r.line_name());
        match out.iter_mut().find(|(k, _)| *k == key) {
            Some((_, rows)) => rows.push(r),
            None => out.push((key, vec![r])),
        }
    }
    out
}

struct Standing<'a> {
    first: &'a CampaignRow,
    second: &'a CampaignRow,
    /// Their intervals do not meet.
    is_told_apart: bool,
}

fn standing<'a>(rows: &[&'a CampaignRow]) -> Standing<'a> {
    // Op/s of one and payload of the other cannot be compared.
    let of = |r: &CampaignRow| {
        if rows.iter().all(|r| r.ops_per_s.is_some()) { r.ops_per_s } else { r.bytes_per_s }
    };
    let value = |r: &CampaignRow| of(r).map_or(f64::MIN, |e| e.value);
    let mut sorted: Vec<&CampaignRow> = rows.to_vec();
    sorted.sort_by(|a, b| value(b).total_cmp(&value(a)));
    // One run says nothing of the next one: its interval is of the time within it.
    let is_repeated = |r: &CampaignRow| r.interval_of.is_some_and(IntervalOf::is_repeated);
    let is_below = |a: &Estimate, r: &CampaignRow| of(r).is_some_and(|b| a.low > b.high);
    let apart = sorted.iter().all(|r| is_repeated(r))
        && of(sorted[0]).is_some_and(|a| sorted[1..].iter().all(|r| is_below(&a, r)));
    Standing { first: sorted[0], second: sorted[1], is_told_apart: apart }
}

fn named(r: &CampaignRow) -> String {
    let e = match (&r.ops_per_s, &r.bytes_per_s) {
        (Some(e), _) => format!("{} op/s", number::estimate(e)),
        (None, Some(b)) => format!("{} MiB/s", number::estimate(&mib(b))),
        (None, None) => number::MISSING.into(),
    };
    glued(&e)
}

/// A number and its unit stay on one line.
fn glued(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

fn name(text: &str) -> String {
    clean(text).into_owned()
}

/// A mix has lines for its ops, and one for them together.
fn kind_of_lines(compared: &[(&str, Standing<'_>)]) -> &'static str {
    let names: BTreeSet<&str> = compared.iter().map(|(w, _)| *w).collect();
    if names.len() == compared.len() { "workloads" } else { "lines of workloads" }
}

fn fastest(compared: &[(&str, Standing<'_>)], of_what: &str) -> String {
    if let [(workload, s)] = compared {
        let (a, b) = (name(&s.first.subject), name(&s.second.subject));
        let w = name(workload);
        if !s.is_told_apart {
            return format!(
                "No difference is shown at {w}: {a} has {}, {b} {}.",
                named(s.first),
                named(s.second)
            );
        }
        return format!("{a} is fastest at {w}: {}, where {b} has {}.", named(s.first), named(s.second));
    }
    let mut wins: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, s) in compared.iter().filter(|(_, s)| s.is_told_apart) {
        *wins.entry(&s.first.subject).or_default() += 1;
    }
    let open = compared.iter().filter(|(_, s)| !s.is_told_apart).count();
    let mut order: Vec<(&str, usize)> = wins.into_iter().collect();
    order.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let n = compared.len();
    let Some((first, won)) = order.first() else {
        return format!(
            "No difference is shown between subjects in any of {n} {of_what}: intervals meet, or are of one run."
        );
    };
    let how = if *won == n { format!("all {n}") } else { format!("{won} of {n}") };
    let mut out = format!("{} is fastest in {how} {of_what}", name(first));
    for (subject, won) in order.iter().skip(1).take(MOST_NAMED) {
        out += &format!(", {} in {won}", name(subject));
    }
    if open > 0 {
        out += &format!("; in {open} no difference is shown: intervals meet, or are of one run");
    }
    out + "."
}

/// One subject: what it does.
fn alone(result: &CampaignResult) -> String {
    let mut rows: Vec<&CampaignRow> = result.rows.iter().filter(|r| r.ops_per_s.is_some()).collect();
    if rows.is_empty() {
        rows = result.rows.iter().filter(|r| r.rate().is_some()).collect();
    }
    let value = |r: &&CampaignRow| r.rate().map_or(0.0, |e| e.value);
    let most = rows.iter().copied().reduce(|a, b| if value(&b) > value(&a) { b } else { a });
    let least = rows.iter().copied().reduce(|a, b| if value(&b) < value(&a) { b } else { a });
    match (most, least) {
        (Some(a), Some(b)) if rows.len() > 1 => format!(
            "{} has {} at {}, and {} at {}.",
            name(&a.subject),
            named(a),
            name(&a.workload),
            if a.subject == b.subject { named(b) } else { format!("{} {}", name(&b.subject), named(b)) },
            name(&b.workload)
        ),
        (Some(a), _) => format!("{} has {} at {}.", name(&a.subject), named(a), name(&a.workload)),
        _ => "Inconclusive: no cell has a valid run.".into(),
    }
}

/// What binds at which size, subject by subject.
fn limited(result: &CampaignResult) -> Vec<String> {
    let mut by: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for r in result.rows.iter().filter(|r| r.rate().is_some()) {
        if let Some(word) = r.bound.as_deref() {
            let all = by.entry((r.subject.as_str(), word)).or_default();
            if !all.contains(&r.workload.as_str()) {
                all.push(&r.workload);
            }
        }
    }
    let mut subjects: Vec<&str> = result.rows.iter().map(|r| r.subject.as_str()).collect();
    let mut seen = BTreeSet::new();
    subjects.retain(|s| seen.insert(*s));
    let mut out = Vec::new();
    for subject in &subjects {
        let of: Vec<String> = by
            .iter()
            .filter(|((s, _), _)| s == subject)
            .map(|((_, word), workloads)| format!("{} at {}", limiter(word), list(workloads)))
            .collect();
        if !of.is_empty() && out.len() < MOST_NAMED {
            out.push(format!("What limits {}: {}.", name(subject), of.join("; ")));
        }
    }
    match (out.is_empty(), by.is_empty()) {
        (true, true) => vec!["What limits is not known: no run looked for it.".into()],
        _ => {
            if subjects.len() > MOST_NAMED {
                out.push("What limits the others is in the table.".into());
            }
            out
        }
    }
}

fn limiter(word: &str) -> String {
    match word {
        "ops" => "its limit of ops a second".into(),
        "bytes" => "its limit of throughput".into(),
        "both" => "its limits of ops and of throughput alike".into(),
        "none" => "no limit was found".into(),
        "undetermined" => "not known".into(),
        "mixed" => "runs do not agree".into(),
        "client" => "the client, not the storage,".into(),
        other => bound(other).replace('_', " "),
    }
}

fn list(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(MOST_NAMED).map(|n| name(n)).collect();
    let rest = names.len().saturating_sub(MOST_NAMED);
    if rest > 0 { format!("{} and {rest} more", shown.join(", ")) } else { shown.join(", ") }
}

fn kept(result: &CampaignResult) -> Option<String> {
    let all: Vec<_> = promises(result).into_iter().filter(|p| p.measured.is_some()).collect();
    if all.is_empty() {
        return None;
    }
    let missed: Vec<String> = all
        .iter()
        .filter(|p| p.verdict() == "not reached")
        .map(|p| {
            format!(
                "{} ({} of {})",
                name(&p.subject),
                glued(&format!("{} {}", p.measured_text(), p.what)),
                glued(&p.promised)
            )
        })
        .collect();
    let n = all.len();
    let open: Vec<String> = all.iter().filter(|p| p.verdict() == OPEN).map(|p| name(&p.subject)).collect();
    let reached = n - missed.len() - open.len();
    let mut out = format!("What is promised was reached: {reached} of {n}");
    if !missed.is_empty() {
        let named = missed.into_iter().take(MOST_NAMED).collect::<Vec<_>>().join(", ");
        out += &format!("; the most that any workload here had is less for {named}");
    }
    if !open.is_empty() {
        let named = open.into_iter().take(MOST_NAMED).collect::<Vec<_>>().join(", ");
        out += &format!("; open, as the interval has both in it: {named}");
    }
    Some(out + ".")
}

fn reserved(result: &CampaignResult) -> Vec<String> {
    let mut out = Vec::new();
    let without = result.rows.iter().filter(|r| missing(r).is_some()).count();
    if without > 0 {
        let n = result.rows.len();
        out.push(format!(
            "{without} of {} {} no valid run; nothing is said of {}.",
            counted(n, "cell"),
            if without == 1 { "has" } else { "have" },
            if without == 1 { "it" } else { "them" }
        ));
    }
    let single = result.rows.iter().filter(|r| r.interval_of == Some(IntervalOf::OneRun)).count();
    if single > 0 {
        out.push(format!(
            "{} {} of one run each: another run may differ by more than its interval says.",
            counted(single, "cell"),
            are(single)
        ));
    }
    if result.to_go > 0 {
        out.push(format!("{} {} to go.", counted(result.to_go, "run"), are(result.to_go)));
    }
    out
}

fn tiles(result: &CampaignResult) -> Vec<[String; 3]> {
    let most = |of: fn(&CampaignRow) -> Option<Estimate>| {
        let known = result.rows.iter().filter_map(|r| Some((r, of(r)?)));
        known.reduce(|a, b| if b.1.value > a.1.value { b } else { a })
    };
    let place = |r: &CampaignRow| format!("{}, {}", name(&r.subject), name(&r.workload));
    let mut out = Vec::new();
    if let Some((r, e)) = most(|r| r.ops_per_s) {
        out.push(["Most ops a second".into(), glued(&format!("{} op/s", number::estimate(&e))), place(r)]);
    }
    if let Some((r, e)) = most(|r| r.bytes_per_s) {
        out.push([
            "Most throughput".into(),
            glued(&format!("{} MiB/s", number::estimate(&mib(&e)))),
            place(r),
        ]);
    }
    let promises: Vec<_> = promises(result).into_iter().filter(|p| p.measured.is_some()).collect();
    if !promises.is_empty() {
        let reached = promises.iter().filter(|p| p.verdict() == "reached").count();
        out.push([
            "Promises reached".into(),
            glued(&format!("{reached} of {}", promises.len())),
            "by the workload that had most".into(),
        ]);
    }
    out
}
