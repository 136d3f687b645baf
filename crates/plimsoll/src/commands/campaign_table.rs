//! The table of a campaign, and under it what is to be known of its figures.

use std::collections::BTreeSet;

use plimsoll_campaign::{
    BurstFigures, CampaignResult, CampaignRow, IntervalOf, OURS, SeenFall, axes_of, pivot,
};
use plimsoll_model::Estimate;
use plimsoll_model::count::{are, counted};
use plimsoll_model::text::clean;
use plimsoll_model::units::{format_latency_ns, significant};
use plimsoll_publish::{axis_table, servers_notes, servers_table};
use plimsoll_report::Style;
use plimsoll_report::number;
use plimsoll_report::table::Table;
use plimsoll_stats::words;

use super::campaign_words::percent;

/// Subjects by workloads, and under it what is to be known of the figures.
pub fn table(result: &CampaignResult, by: Option<&str>, is_markdown: bool) -> String {
    let columns = [
        "subject",
        "workload",
        "op",
        ">op/s",
        ">MiB/s",
        ">promised",
        ">p50",
        ">p99",
        ">refused",
        "limited by",
        ">runs",
        "interval",
        "measured by",
    ];
    let mut table = Table::new(&clean(&result.name), 2, &columns);
    let is_by_tool = result.rows.iter().any(|r| !r.tools.is_empty());
    for r in &result.rows {
        table.push(row(r, is_by_tool).map(|cell| clean(&cell).into_owned()).to_vec());
    }
    let mut tables = vec![table.without_empty_columns()];
    tables.extend(by.and_then(|by| pivot(result, by)).map(|p| axis_table(&p, number::MISSING)));
    tables.extend(limits(result));
    tables.extend(servers_table(result));
    let notes = notes(result);
    if is_markdown {
        let tables: Vec<String> = tables.iter().map(|t| t.markdown() + "\n").collect();
        let notes: Vec<String> = notes.iter().map(|n| format!("- {n}\n")).collect();
        return format!("{}{}", tables.concat(), notes.concat());
    }
    let width = Style::for_stdout().width;
    let plain = |(i, t): (usize, &Table)| {
        let title = if i == 0 { String::new() } else { format!("{}\n\n", t.title) };
        title + &t.plain(width) + "\n"
    };
    let tables: Vec<String> = tables.iter().enumerate().map(plain).collect();
    let notes: Vec<String> =
        notes.iter().map(|n| plimsoll_report::table::wrap(n, width, "  ", "    ") + "\n").collect();
    format!("{}{}", tables.concat(), notes.concat())
}

/// Whether the campaign has such an axis; else what it has.
pub fn has_axis(result: &CampaignResult, by: &str) -> Result<(), String> {
    match axes_of(result) {
        axes if axes.iter().any(|a| a == by) => Ok(()),
        axes if axes.is_empty() => Err("no subject and no workload of it takes several values".into()),
        axes => Err(format!("it has {}", axes.join(", "))),
    }
}

/// What is known of limits beside their rates.
fn limits(result: &CampaignResult) -> Option<Table> {
    let columns = [
        "subject",
        "workload",
        "op",
        "limit on",
        ">sustained",
        ">of promised",
        ">burst",
        ">lasts",
        ">full again after",
        ">knee",
    ];
    let mut table = Table::new("Limits", 3, &columns);
    for r in &result.rows {
        let Some(l) = &r.limit else { continue };
        let mib = |e: Option<Estimate>| e.map(|e| e.scaled(1.0 / number::MIB));
        let ops = (r.ops_per_s, r.promised.ops_per_s.map(|p| p.0), l.ops, "op/s");
        let promised = r.promised.bytes_per_s.map(|p| p.0 / number::MIB);
        let bytes =
            l.bytes.map(|b| BurstFigures { per_s: mib(b.per_s), refill_per_s: mib(b.refill_per_s), ..b });
        let sustained = r.line.ends_with(" sustained");
        for (rate, promised, burst, unit) in [ops, (mib(r.bytes_per_s), promised, bytes, "MiB/s")] {
            // What a burst left of one is the other's as well, by the size of the ops.
            if rate.is_none() || (sustained && burst.is_none()) {
                continue;
            }
            let share = rate.zip(promised.filter(|p| *p > 0.0)).map(|(e, p)| e.scaled(100.0 / p));
            let show = |e: Option<Estimate>| e.map(|e| at_least(&e, 1.0)).unwrap_or_default();
            let b = burst.unwrap_or_default();
            table.push(vec![
                clean(&r.subject).into_owned(),
                clean(&r.workload).into_owned(),
                clean(&r.op).into_owned(),
                unit.into(),
                show(rate),
                share.map(|e| format!("{} %", number::estimate(&e))).unwrap_or_default(),
                show(b.per_s),
                b.lasts_s.map(|e| format!("{} s", at_least(&e, 1.0))).unwrap_or_default(),
                b.full_again_s.map(|e| format!("{} s", at_least(&e, 1.0))).unwrap_or_default(),
                l.knee_bytes.as_ref().map(number::size_estimate).unwrap_or_default(),
            ]);
        }
    }
    (!table.rows.is_empty()).then(|| table.without_empty_columns())
}

/// A bound is an interval without an upper end.
fn at_least(e: &Estimate, factor: f64) -> String {
    if e.high >= f64::MAX {
        return format!("at least {}", significant(e.value * factor, 3));
    }
    number::estimate(&e.scaled(factor))
}

fn row(r: &CampaignRow, is_by_tool: bool) -> [String; 13] {
    let latency = |ns: Option<u64>| ns.map(|n| format_latency_ns(n as f64)).unwrap_or_default();
    let rate =
        r.missing(number::MISSING).unwrap_or_else(|| number::estimate_or_missing(r.ops_per_s.as_ref()));
    let mib = |e: &Estimate| number::estimate(&e.scaled(1.0 / number::MIB));
    let promised = match (r.promised.ops_per_s, r.promised.bytes_per_s) {
        (None, None) => String::new(),
        (Some(o), None) => o.to_string(),
        (None, Some(b)) => b.to_string(),
        (Some(o), Some(b)) => format!("{o}, {b}"),
    };
    let promised = if r.may_be_burst() { format!("{promised} (burst?)") } else { promised };
    let all = r.runs.len() + r.void.len();
    let runs = match (r.void.len(), r.to_go) {
        (0, 0) => all.to_string(),
        (0, n) => format!("{all} of {}", all + n as usize),
        (v, 0) => format!("{all}, {v} void"),
        (v, n) => format!("{all} of {}, {v} void", all + n as usize),
    };
    let of = match r.interval_of {
        None if r.rate().is_some() => "none".into(),
        None => String::new(),
        Some(IntervalOf::Instances) => format!("{} instances", r.instances),
        Some(IntervalOf::Runs) => "over runs".into(),
        Some(IntervalOf::Rounds) => "over rounds".into(),
        Some(IntervalOf::OneRun) => "within one run".into(),
    };
    let by = match &r.tools[..] {
        _ if !is_by_tool || (r.runs.is_empty() && r.void.is_empty()) => String::new(),
        [] => OURS.into(),
        tools => tools.join(", "),
    };
    [
        r.subject.clone(),
        r.workload.clone(),
        r.line_name().to_owned(),
        rate,
        r.bytes_per_s.as_ref().map(mib).unwrap_or_default(),
        promised,
        latency(r.p50_ns),
        latency(r.p99_ns),
        number::refused(r.refused, r.refused_ops),
        r.bound.as_deref().map(bound).unwrap_or_default().into(),
        runs,
        of,
        by,
    ]
}

/// As a sweep's table has it.
fn bound(word: &str) -> &str {
    match word {
        "none" => "not found",
        "undetermined" => "not known",
        other => other,
    }
}

/// What a reader of the table has to know.
fn notes(result: &CampaignResult) -> Vec<String> {
    let mut out = Vec::new();
    if result.rows.iter().any(|r| r.interval_of == Some(IntervalOf::OneRun)) {
        out.push("within one run: another run may differ by more than the interval says".to_owned());
    }
    if result.rows.iter().any(|r| r.interval_of == Some(IntervalOf::Rounds)) {
        out.push(
            "over rounds: of one run, which measured each of its lines so many times in succession"
                .to_owned(),
        );
    }
    out.extend(servers_notes(result));
    out.extend(tools(result));
    if result.rows.iter().any(CampaignRow::may_be_burst) {
        out.push(
            "burst?: above what is promised to be kept up, as long as it was measured; whether it lasts these runs do not say (`limits` of a \
             workload finds out)"
                .to_owned(),
        );
    }
    if result.rows.iter().any(|r| r.instances > 1) {
        out.push("p50 and p99 are of one instance: where there are several, `plimsoll runs show` has those of each run".into());
    }
    for r in &result.rows {
        let lead = format!("{}, {}", clean(&r.subject), clean(&r.workload));
        out.extend(of_row(r, result.until_wide).into_iter().map(|note| format!("{lead}: {note}")));
    }
    if result.to_go > 0 {
        out.push(format!(
            "{} {} to go: figures may still change",
            counted(result.to_go, "run"),
            are(result.to_go)
        ));
    }
    for (cell, why) in &result.failed {
        out.push(format!("not measured: {}: {}", clean(cell), clean(why)));
    }
    out
}

fn of_row(r: &CampaignRow, asked: Option<f64>) -> Vec<String> {
    let mut out = Vec::new();
    let main = r.ops_per_s.as_ref().or(r.bytes_per_s.as_ref());
    if let (Some(within), Some(between), Some(e)) = (r.sd_within, r.sd_between, main) {
        let share = |sd: f64| number::percent(sd / e.value.abs());
        out.push(format!(
            "runs on one instance differ by {} (standard deviation), instances by {}",
            share(within),
            share(between)
        ));
    }
    let line = clean(r.line_name()).into_owned();
    if let (Some(wide), Some(asked)) = (r.wider_than_asked, asked) {
        out.push(match r.interval_of {
            Some(IntervalOf::Instances) => format!(
                "{line}: the interval between instances is {} wide; the {} that were asked for are of the runs of each instance",
                number::percent(wide),
                percent(asked)
            ),
            _ => format!(
                "{line}: the interval is {} wide after {}, where {} were asked for",
                number::percent(wide),
                counted(r.runs.len(), "valid run"),
                percent(asked)
            ),
        });
    }
    out.extend(remarks(&r.remarks));
    out.extend(falls(&line, &r.falls));
    if let Some((least, most)) = r.best_at {
        let at = if least == most { least.to_string() } else { format!("{least} to {most}") };
        out.push(format!("{line}: with {at} in flight"));
    }
    if let Some(s) = r.held_for_s.filter(|_| r.rate().is_some()) {
        let held = words::span(s);
        out.push(format!(
            "{line}: held for {held}, as long as it was seen; a burst that lasts longer is not excluded"
        ));
    }
    if r.ops_runs > 0 && r.bytes_runs > 0 && r.ops_runs != r.bytes_runs {
        let (ops, bytes) = (r.ops_runs, r.bytes_runs);
        out.push(format!(
            "{line}: op/s are of {}, MiB/s of {bytes}: the others have none that is proved",
            counted(ops, "run")
        ));
    }
    out
}

/// Remarks named in full; of more only how many there are.
const MOST_REMARKS: usize = 3;

/// Runs that began otherwise than was asked.
fn remarks(seen: &[(String, String)]) -> Vec<String> {
    let one = |(run, what): &(String, String)| format!("run {}: {}", clean(run), clean(what));
    let mut out: Vec<String> = seen.iter().take(MOST_REMARKS).map(one).collect();
    if seen.len() > MOST_REMARKS {
        out.push(format!("{} began without rest", counted(seen.len() - MOST_REMARKS, "more run")));
    }
    out
}

/// Falls named in full; of more only how many there are.
const MOST_FALLS: usize = 3;

/// Where a rate fell, in which run and when.
fn falls(line: &str, seen: &[(String, SeenFall)]) -> Vec<String> {
    let one = |(run, f): &(String, SeenFall)| {
        let (factor, unit) = if f.unit == "bytes" { (1.0 / number::MIB, "MiB/s") } else { (1.0, "op/s") };
        format!(
            "{line}: fell at {} of run {}, from {} to {} {unit} ({})",
            words::span(f.at_s),
            clean(run),
            significant(f.from_per_s * factor, 3),
            significant(f.to_per_s * factor, 3),
            clean(&f.verdict)
        )
    };
    let mut out: Vec<String> = seen.iter().take(MOST_FALLS).map(one).collect();
    if seen.len() > MOST_FALLS {
        out.push(format!("{line}: {} more falls", seen.len() - MOST_FALLS));
    }
    out
}

/// Other tools than this program measured, some or all.
fn tools(result: &CampaignResult) -> Option<String> {
    let rows = || result.rows.iter().filter(|r| !r.runs.is_empty() || !r.void.is_empty());
    let of = |r: &CampaignRow| if r.tools.is_empty() { vec![OURS.to_owned()] } else { r.tools.clone() };
    let all: BTreeSet<String> = rows().flat_map(of).collect();
    (all.len() > 1).then(|| {
        let all: Vec<String> = all.iter().map(|t| clean(t).into_owned()).collect();
        format!(
            "measured by different tools ({}): a difference may be theirs, in what they count and time as well as in what they cost",
            all.join(", ")
        )
    })
}
