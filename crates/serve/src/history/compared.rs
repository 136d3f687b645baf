//! Runs that somebody chose, beside each other; and two sides of them, held against each other as `plimsoll compare` does it.

use std::collections::BTreeMap;

use plimsoll_index::IndexedLine;
use plimsoll_judge::alike::{self, Member};
use plimsoll_model::text::clean;
use plimsoll_model::{Estimate, Finding, Level, RunStatus, Verdict};
use plimsoll_report::number;
use plimsoll_stats::compare::{self, Difference};
use plimsoll_store::{RunDir, StoreError};
use serde::Serialize;

use super::pivoted::figure_of;
use super::query::HistoryFigure;
use super::{BadQuery, History, HistoryQuery, HistoryRun};

/// Op, part of which load, size, in flight: what has to be the same. Where a run has several such lines, their names, too.
type LineKey = (String, String, u64, u32, String);

/// A run that was chosen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedRun {
    pub id: String,
    /// `a` or `b`.
    pub side: &'static str,
    pub started_at: String,
    pub what: String,
    pub mark: String,
    pub labels: BTreeMap<String, String>,
}

/// A figure of one run; the interval is that within the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedFigure {
    pub figure: Option<Estimate>,
    pub valid: bool,
}

/// One line and figure, run by run, and the difference of the sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedRow {
    pub line: String,
    pub figure: &'static str,
    /// In the order of the runs; null: the run has no such line.
    pub each: Vec<Option<ComparedFigure>>,
    /// A over B: geometric means, 95 % over runs. Null where it is not known.
    pub ratio: Option<Estimate>,
    /// `greater`, `less`, `none seen`, `undetermined`: of A.
    pub outcome: &'static str,
    /// It holds among all of this table, too (Holm, 5 %). Null: there is no difference to hold.
    pub holds_among_all: Option<bool>,
    /// In a sentence, with the reason where nothing can be said.
    pub said: String,
}

/// As `plimsoll compare` has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedFinding {
    pub code: String,
    pub level: Level,
    pub text: String,
}

/// What is known of the runs that were chosen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompareAnswer {
    pub schema: &'static str,
    pub runs: Vec<ComparedRun>,
    pub rows: Vec<ComparedRow>,
    /// Whether plans and machines are alike but for what is compared; the worst first.
    pub findings: Vec<ComparedFinding>,
    /// Why there are none, where runs could not be read.
    pub not_known: Option<String>,
    /// Run i of A was made next to run i of B: they are compared in pairs.
    pub paired: bool,
    /// The same on a command line.
    pub command: String,
}

/// The lines of a run, each with what it has in common with those of others.
fn lines_of<'a>(history: &'a History, r: &HistoryRun) -> Vec<(LineKey, &'a IndexedLine)> {
    let all: Vec<&IndexedLine> = history.lines[r.lines.clone()].iter().filter(|l| l.together == 0).collect();
    let of = |l: &IndexedLine| (l.op.clone(), l.load.clone(), l.size_bytes, l.concurrency);
    let key = |l: &IndexedLine| {
        let alone = all.iter().filter(|other| of(other) == of(l)).count() == 1;
        let (op, load, size, concurrency) = of(l);
        (op, load, size, concurrency, if alone { String::new() } else { l.workload.clone() })
    };
    all.iter().map(|l| (key(l), *l)).collect()
}

fn name((op, load, size, concurrency, own): &LineKey) -> String {
    let load = if load.is_empty() || load == op { String::new() } else { format!(" ({load})") };
    let size = if *size > 0 { format!(" {}", number::size(*size)) } else { String::new() };
    let own = if own.is_empty() { String::new() } else { format!(" ({own})") };
    format!("{op}{load}{size}, {concurrency} in flight{own}")
}

fn chosen<'a>(history: &'a History, ids: &[String]) -> Result<Vec<&'a HistoryRun>, BadQuery> {
    let gone = |id: &String| BadQuery(format!("There is no run {} here.", clean(id)));
    ids.iter().map(|id| history.find(id).ok_or_else(|| gone(id))).collect()
}

/// Compares what was chosen.
pub fn compare(history: &History, query: &HistoryQuery) -> Result<CompareAnswer, BadQuery> {
    let (a, b) = (chosen(history, &query.a)?, chosen(history, &query.b)?);
    let all: Vec<&HistoryRun> = a.iter().chain(&b).copied().collect();
    let ids: Vec<&str> = all.iter().map(|r| r.run.entry.id.as_str()).collect();
    if let Some(twice) = ids.iter().enumerate().find(|(i, id)| ids[..*i].contains(id)).map(|(_, id)| id) {
        return Err(BadQuery(format!("Run {twice} is chosen twice.")));
    }
    let starts =
        |side: &[&HistoryRun]| side.iter().map(|r| r.run.entry.started_at.clone()).collect::<Vec<_>>();
    let paired = compare::made_in_turn(&starts(&a), &starts(&b));
    // The order in which lines first come.
    let mut keys: Vec<LineKey> = Vec::new();
    for r in &all {
        for (key, _) in lines_of(history, r) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    let mut rows = Vec::new();
    let mut p = Vec::new();
    for key in &keys {
        for figure in
            [HistoryFigure::OpsPerS, HistoryFigure::BytesPerS, HistoryFigure::P50, HistoryFigure::P99]
        {
            let (row, chance) = row(history, (&a, &b), key, figure, paired);
            // Bytes are ops times their size: the same difference again, but for lines that count bytes only.
            let again = figure == HistoryFigure::BytesPerS
                && rows.last().is_some_and(|r: &ComparedRow| r.line == row.line && r.figure == "ops_per_s");
            if row.each.iter().flatten().any(|e| e.figure.is_some()) && !again {
                rows.push(row);
                p.push(chance);
            }
        }
    }
    let known: Vec<f64> = p.iter().flatten().copied().collect();
    let mut holds = compare::holm(&known).into_iter();
    for (row, p) in rows.iter_mut().zip(&p) {
        let held = p.and_then(|_| holds.next());
        row.holds_among_all = held.filter(|_| matches!(row.outcome, "greater" | "less"));
    }
    let of_side = |side: &'static str| {
        move |r: &&HistoryRun| ComparedRun {
            id: r.run.entry.id.clone(),
            side,
            started_at: r.run.entry.started_at.clone(),
            what: r.run.what.clone(),
            mark: r.run.mark.clone(),
            labels: r.run.entry.labels.clone(),
        }
    };
    let runs = a.iter().map(of_side("a")).chain(b.iter().map(of_side("b"))).collect();
    let (findings, not_known) = match findings(&a, &b) {
        Ok(found) => (found, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let command = format!("plimsoll compare {} -- {}", query.a.join(" "), query.b.join(" "));
    Ok(CompareAnswer { schema: "plimsoll.compare/1", runs, rows, findings, not_known, paired, command })
}

/// The index does not know plans and machines: of the few runs that were chosen they are read.
fn findings(a: &[&HistoryRun], b: &[&HistoryRun]) -> Result<Vec<ComparedFinding>, String> {
    if a.is_empty() || b.is_empty() {
        return Ok(Vec::new());
    }
    let read = |r: &&HistoryRun| -> Result<Member, String> {
        let of =
            |why: StoreError| clean(&format!("run {} cannot be read: {why}", r.run.entry.id)).into_owned();
        let dir = RunDir::open(&r.run.entry.path).map_err(of)?;
        let summary = match crate::look::has_result(&dir) {
            true => dir.summary().map_err(of)?,
            false => crate::look::judged(&dir).map_err(of)?.0,
        };
        Ok(Member::of(summary, dir.plan().map_err(of)?))
    };
    let side = |side: &[&HistoryRun]| side.iter().map(read).collect::<Result<Vec<_>, _>>();
    let (mut a, mut b) = (side(a)?, side(b)?);
    // What is void is in no mean, and what it was is no matter.
    [&mut a, &mut b].into_iter().for_each(|side| side.retain(|m| m.summary.status != RunStatus::None));
    if a.is_empty() || b.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = alike::findings((&a, "A"), (&b, "B"));
    found.sort_by(|a, b| b.level.cmp(&a.level).then(a.code.cmp(&b.code)));
    let shown =
        |f: Finding| ComparedFinding { code: f.code, level: f.level, text: clean(&f.text).into_owned() };
    Ok(found.into_iter().map(shown).collect())
}

fn row(
    history: &History,
    (a, b): (&[&HistoryRun], &[&HistoryRun]),
    of: &LineKey,
    figure: HistoryFigure,
    paired: bool,
) -> (ComparedRow, Option<f64>) {
    let one = |r: &&HistoryRun| {
        let (_, line) = lines_of(history, r).into_iter().find(|(key, _)| key == of)?;
        Some(ComparedFigure { figure: figure_of(line, figure), valid: line.valid })
    };
    let side = |side: &[&HistoryRun]| side.iter().map(one).collect::<Vec<_>>();
    let (of_a, of_b) = (side(a), side(b));
    // What is void is in no mean, as everywhere.
    let values = |side: &[Option<ComparedFigure>]| -> Vec<f64> {
        let usable = side.iter().flatten().filter(|f| f.valid).filter_map(|f| f.figure);
        usable.map(|e| e.value).collect()
    };
    let (va, vb) = (values(&of_a), values(&of_b));
    let whole = va.len() == a.len() && vb.len() == b.len();
    let judged = match (va.len(), vb.len()) {
        (0, _) | (_, 0) => Verdict::Inconclusive("one side has no valid line of it".into()),
        _ => compare::compare(&va, &vb, paired && whole),
    };
    let p = judged.known().map(|c| c.p);
    let (ratio, outcome, said) = match judged {
        Verdict::Known(c) => {
            let outcome = match c.difference {
                Difference::Greater => "greater",
                Difference::Less => "less",
                Difference::NoneSeen => "none seen",
            };
            (Some(c.ratio), outcome, c.text())
        }
        Verdict::Inconclusive(why) => (None, "undetermined", format!("Undetermined: {why}.")),
    };
    let each = of_a.into_iter().chain(of_b).collect();
    let row = ComparedRow {
        line: name(of),
        figure: figure.name(),
        each,
        ratio,
        outcome,
        holds_among_all: None,
        said,
    };
    (row, p)
}
