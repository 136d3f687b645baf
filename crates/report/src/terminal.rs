//! The result on a terminal: verdict, a table per workload, findings. Colour only repeats what words say.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::IsTerminal as _;

use plimsoll_model::finding::{Finding, Level};
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::{Analysis, RunSummary};

use crate::layout::Layout;
use crate::number::{self, MB, MIB};
use crate::run::RunReport;
use crate::table::wrap;
use crate::verdict::{status, verdict};
use crate::{lines, tables};

/// How text is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns; lines are broken to stay within.
    pub width: usize,
    /// Escape sequences for levels and headings.
    pub colour: bool,
}

impl Style {
    /// For files and pipes.
    pub const PLAIN: Self = Self { width: 100, colour: false };

    /// For standard output: colour on a terminal, unless `NO_COLOR` is set (to anything) or the terminal is dumb.
    pub fn for_stdout() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        let width = std::env::var("COLUMNS").ok().and_then(|c| c.parse::<usize>().ok());
        Self {
            width: width.unwrap_or(100).clamp(40, 120),
            colour: std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb,
        }
    }

    pub(crate) fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.into() }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Above a table: some have a reason in them, and are longer than a line.
    fn title(self, text: &str) -> String {
        self.bold(wrap(text, self.width, "", "  ").trim_end())
    }
}

/// One or several runs.
pub fn terminal(runs: &[RunReport], layout: Layout<'_>, style: Style) -> String {
    let mut out = String::new();
    if runs.len() > 1 {
        let _ = writeln!(out, "{}\n", style.title(&format!("{} side by side", layout.title_of(runs))));
        out.push_str(&layout.side_by_side(runs).plain(style.width));
        out.push('\n');
        for r in runs {
            let name = format!("{}: {}", r.summary.id, status(&r.summary));
            out.push_str(&wrap(&name, style.width, "", "  "));
        }
        return out;
    }
    if layout.title.is_some() {
        let _ = writeln!(out, "{}\n", style.title(&layout.title_of(runs)));
    }
    for r in runs {
        run(&mut out, r, style);
    }
    out
}

fn run(out: &mut String, r: &RunReport, style: Style) {
    let s = &r.summary;
    let text = wrap(&verdict(s).replace("**", ""), style.width, "", "");
    let painted = text.lines().map(|l| style.paint(if s.answered { "1" } else { "1;31" }, l));
    for line in painted {
        let _ = writeln!(out, "{line}");
    }
    out.push('\n');
    // A search is read for what it found; its steps are the evidence and come after.
    let found_first = !s.limits.is_empty() || !r.analysis.saturations.is_empty();
    if found_first {
        analysis(out, s, &r.analysis, style);
    }
    if tables::is_search(r) {
        // The steps are in the search's own tables; JSON and the HTML report have each in full.
        shared_notes(out, s, style);
        out.push('\n');
    } else if tables::is_sweep(s) {
        out.push_str(&tables::sweep(s).plain(style.width));
        each_run(out, s, style);
        shared_notes(out, s, style);
        out.push('\n');
    } else {
        if s.workloads.len() > 1 {
            out.push_str(&tables::overview(s).plain(style.width));
            out.push('\n');
        }
        let same = Same::of(&s.workloads);
        for w in &s.workloads {
            workload(out, s, w, &same, style);
        }
        each_run(out, s, style);
        if same != Same::default() {
            let _ = writeln!(out, "{}", style.bold("All of them combined"));
            same.write(out, &s.workloads[0], style);
            out.push('\n');
        }
    }
    if !found_first {
        analysis(out, s, &r.analysis, style);
    }
    agents(out, s, style);
    servers(out, s, style);
    if let Some(c) = &s.cost {
        out.push_str(&(crate::cost::cost_terminal(c, false, style) + "\n"));
    }
    remarks(out, s, style);
    findings(out, &s.findings, style);
    for gap in &r.gaps {
        out.push_str(&wrap(gap, style.width, "", "  "));
    }
    out.push_str(&wrap(&labels(s), style.width, "", "  "));
    if !s.rerun.is_empty() {
        let _ = writeln!(out, "Again: {}", s.rerun);
    }
}

/// Of a run with several: what each of them did.
fn agents(out: &mut String, s: &RunSummary, style: Style) {
    let t = crate::agents::table(s);
    if !t.rows.is_empty() {
        let _ = writeln!(out, "{}\n{}", style.title(&t.title), t.plain(style.width));
    }
}

fn servers(out: &mut String, s: &RunSummary, style: Style) {
    for t in crate::servers::tables(s) {
        let _ = writeln!(out, "{}\n{}", style.title(&t.title), t.plain(style.width));
    }
}

/// What persons put on the time axis.
fn remarks(out: &mut String, s: &RunSummary, style: Style) {
    for r in &s.remarks {
        let kind = if r.planned { "planned" } else { "noted" };
        out.push_str(&wrap(&format!("Event at {:.1} s ({kind}): {}", r.at_s, r.text), style.width, "", "  "));
    }
    if !s.remarks.is_empty() {
        out.push('\n');
    }
}

fn labels(s: &RunSummary) -> String {
    let labels: Vec<String> = s.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let marks = if labels.is_empty() { String::new() } else { format!(" ({})", labels.join(", ")) };
    format!("Run {}{marks}", s.id)
}

/// What is the same for each line of a result (the ops of a mix share slots, workers and connections), and is said once.
#[derive(Debug, Default, PartialEq, Eq)]
struct Same<'a> {
    load: bool,
    law: bool,
    client: bool,
    notes: Vec<&'a str>,
}

fn each_run(out: &mut String, s: &RunSummary, style: Style) {
    let each = tables::each_run(s);
    if !each.rows.is_empty() {
        let _ = writeln!(out, "\n{}", each.plain(style.width).trim_end());
    }
}

impl<'a> Same<'a> {
    fn of(all: &'a [WorkloadSummary]) -> Self {
        let [first, rest @ ..] = all else { return Self::default() };
        let each = |equal: &dyn Fn(&WorkloadSummary) -> bool| !rest.is_empty() && rest.iter().all(equal);
        let shared = |n: &&String| each(&|w| w.notes.contains(n));
        Self {
            load: each(&|w| tables::conditions(w) == tables::conditions(first)),
            law: first.littles_law.is_some() && each(&|w| law(w) == law(first)),
            client: each(&|w| tables::client(w) == tables::client(first)),
            notes: first.notes.iter().filter(shared).map(String::as_str).collect(),
        }
    }

    /// What all lines share.
    fn write(&self, out: &mut String, any: &WorkloadSummary, style: Style) {
        if self.load {
            line(out, style, "load", &tables::conditions(any));
        }
        if self.law {
            law(any).iter().for_each(|text| line(out, style, "Little", text));
        }
        if self.client {
            line(out, style, "client", &tables::client(any));
        }
        self.notes.iter().for_each(|text| line(out, style, "note", text));
    }
}

fn law(w: &WorkloadSummary) -> Option<String> {
    w.littles_law.as_ref().map(|l| {
        format!(
            "{} in flight, rate x time gives {} (off by {})",
            plimsoll_model::units::significant(l.in_flight, 4),
            plimsoll_model::units::significant(l.rate_times_time, 4),
            number::percent(l.error.abs())
        )
    })
}

fn line(out: &mut String, style: Style, name: &str, text: &str) {
    out.push_str(&wrap(text, style.width, &format!("  {name:<11}"), &" ".repeat(13)));
}

fn workload(out: &mut String, s: &RunSummary, w: &WorkloadSummary, same: &Same<'_>, style: Style) {
    let _ = writeln!(out, "{}", style.bold(&lines::label(w, &s.workloads)));
    let body = style.width.saturating_sub(2);
    let rate = w.ops_per_s.as_ref().map_or("not known; see the findings".into(), |e| {
        format!("{} {}", number::estimate(e), if tables::is_block(s) { "IOPS" } else { "op/s" })
    });
    line(out, style, "rate", &rate);
    if tables::moves_bytes(w)
        && let Some(b) = &w.bytes_per_s
    {
        let (mib, mb) = (number::estimate(&b.scaled(1.0 / MIB)), number::value(&b.scaled(1.0 / MB)));
        line(out, style, "throughput", &format!("{mib} MiB/s ({mb} MB/s)"));
    }
    if !same.load {
        line(out, style, "load", &tables::conditions(w));
    }
    line(out, style, "ops", &tables::outcomes(w));
    if !same.law {
        law(w).iter().for_each(|text| line(out, style, "Little", text));
    }
    if !same.client {
        line(out, style, "client", &tables::client(w));
    }
    for note in w.notes.iter().filter(|n| !same.notes.contains(&n.as_str())) {
        line(out, style, "note", note);
    }
    for table in [tables::latencies(w), tables::endpoints(w)] {
        let few = table.title == "By endpoint" && table.rows.len() < 2;
        if table.rows.is_empty() || few {
            continue;
        }
        for l in table.plain(body).lines() {
            let _ = writeln!(out, "  {l}");
        }
    }
    out.push('\n');
}

/// A note without the share that it names as `(N %)`, and that share.
fn without_share(note: &str) -> (String, Option<u32>) {
    let found = note.split_once('(').and_then(|(before, rest)| {
        let (share, after) = rest.split_once(" %)")?;
        Some((format!("{before}({SHARE}){after}"), share.parse().ok()?))
    });
    found.map_or_else(|| (note.to_owned(), None), |(kind, share)| (kind, Some(share)))
}

const SHARE: &str = "share";

/// The note again, with the range of its shares.
fn with_shares(kind: &str, shares: &BTreeSet<u32>) -> String {
    let range = match (shares.first(), shares.last()) {
        (Some(low), Some(high)) if low == high => format!("({low} %)"),
        (Some(low), Some(high)) => format!("({low} % to {high} %)"),
        _ => return kind.to_owned(),
    };
    kind.replace(&format!("({SHARE})"), &range)
}

/// Notes that hold for a whole sweep are said once; others name their line.
fn shared_notes(out: &mut String, s: &RunSummary, style: Style) {
    let mut said: Vec<String> = Vec::new();
    for w in &s.workloads {
        for note in &w.notes {
            let (kind, _) = without_share(note);
            if said.contains(&kind) {
                continue;
            }
            let alike = |n: &&String| without_share(n).0 == kind;
            let having: Vec<&WorkloadSummary> =
                s.workloads.iter().filter(|o| o.notes.iter().any(|n| alike(&n))).collect();
            let shares =
                having.iter().flat_map(|o| o.notes.iter().filter(alike)).filter_map(|n| without_share(n).1);
            let note = with_shares(&kind, &shares.collect());
            said.push(kind);
            // Of an op that has it at some of its sizes only, these.
            let all_of = |op: &str| s.workloads.iter().filter(|w| w.op == op).count();
            let named = |w: &&WorkloadSummary| match having.iter().filter(|o| o.op == w.op).count() {
                n if n == all_of(&w.op) => w.op.clone(),
                _ => format!("{} {}", w.op, number::size(w.size_bytes)),
            };
            let mut ops: Vec<String> = having.iter().map(named).collect();
            ops.dedup();
            let whom = if having.len() == s.workloads.len() {
                String::new()
            } else {
                format!(" ({})", ops.join(", "))
            };
            out.push_str(&wrap(&format!("{note}{whom}"), style.width, "Note: ", "  "));
        }
    }
    let range = |pick: fn(&WorkloadSummary) -> f64| {
        let all = s.workloads.iter().map(pick);
        let (low, high) = all.fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
        if low == high {
            number::seconds(low)
        } else {
            format!("{} to {}", number::seconds(low), number::seconds(high))
        }
    };
    let text = format!(
        "Each line was measured for {}; left out: warm-up {}, tail {}.",
        range(|w| w.window_s),
        range(|w| w.warmup_s),
        range(|w| w.tail_s)
    );
    out.push_str(&wrap(&text, style.width, "", "  "));
}

fn analysis(out: &mut String, s: &RunSummary, a: &Analysis, style: Style) {
    let mut all = crate::limits::tables(s, a);
    // The full list of passed checks is for the file; here only what did not pass, which the findings say.
    all.retain(|t| t.title != "Validity checks");
    let expected = tables::expectations(&s.expectations);
    if !expected.rows.is_empty() {
        all.push(expected);
    }
    for mut t in all {
        // An experiment is a sentence: in a column of its own it would push the table apart.
        let next = t.columns.iter().position(|(name, _)| name == tables::NEXT_EXPERIMENT);
        let sentences = next.map_or_else(Vec::new, |i| t.take_column(i));
        let _ = writeln!(out, "{}", style.title(&t.title));
        out.push_str(&t.plain(style.width));
        for (candidate, text) in sentences.iter().filter(|(_, text)| !text.is_empty()) {
            out.push_str(&wrap(&format!("{candidate}: {text}."), style.width, "To find out: ", "  "));
        }
        out.push('\n');
    }
    for l in &s.limits {
        if let Some(knee) = &l.knee_bytes {
            let text = format!(
                "{}: below {} limited by operations, above by bytes.",
                l.op_class,
                number::size_estimate(knee)
            );
            out.push_str(&wrap(&text, style.width, "", "  "));
        }
    }
    for line in &a.advice {
        out.push_str(&wrap(line, style.width, "Advice: ", "  "));
    }
    if !a.advice.is_empty() || s.limits.iter().any(|l| l.knee_bytes.is_some()) {
        out.push('\n');
    }
}

/// Findings by level; of one check that found something on several lines only the worst, with the number of others.
/// JSON and the HTML report have them all.
pub fn grouped(all: &[Finding]) -> Vec<(&Finding, usize)> {
    let mut out: Vec<(&Finding, usize)> = Vec::new();
    for f in all {
        let same =
            |g: &Finding| g.workload.is_some() && (&g.code, &g.name, g.level) == (&f.code, &f.name, f.level);
        match out.iter_mut().find(|(g, _)| f.workload.is_some() && same(g)) {
            Some((g, others)) => {
                *others += 1;
                if f.off_by() > g.off_by() {
                    *g = f;
                }
            }
            None => out.push((f, 0)),
        }
    }
    out.sort_by_key(|(f, _)| std::cmp::Reverse(f.level));
    out
}

/// By level; of one check on several lines only the worst is shown, with the number of others.
pub fn findings(out: &mut String, all: &[Finding], style: Style) {
    let sorted = grouped(all);
    for (f, others) in &sorted {
        let (word, code) = match f.level {
            Level::Invalid => ("INVALID", "1;31"),
            Level::Qualified => ("note", "33"),
            Level::Info => ("info", "2"),
        };
        let head = format!("{word} {} {}", f.code, f.name);
        let more = if *others > 0 { format!("; similar on {others} more") } else { String::new() };
        let on = f.workload.as_ref().map_or(String::new(), |w| format!(" [{w}{more}]"));
        let text = wrap(&format!("{head}{on}: {}", f.text), style.width, "", "  ");
        out.push_str(&text.replacen(&head, &style.paint(code, &head), 1));
    }
    if !sorted.is_empty() {
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_title_stays_within_the_line() {
        let title = "Rate over concurrency, 1MiB GET, undetermined: the budget ended before the rate did; --budget 3m would do";
        let broken = Style { width: 100, colour: false }.title(title);
        assert!(broken.lines().all(|l| l.chars().count() <= 100), "{broken}");
        assert_eq!(
            broken.split_whitespace().collect::<Vec<_>>(),
            title.split_whitespace().collect::<Vec<_>>()
        );
    }
}
