//! What `compare` and `scale` have in common: runs read together, and a result in the same forms as a run's.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_index::RunFilter;
use plimsoll_judge::alike::Member;
use plimsoll_model::finding::Level;
use plimsoll_model::summary::{SCHEMA, WorkloadSummary};
use plimsoll_model::{Analysis, Finding, RunStatus, RunSummary};
use plimsoll_report::{RunReport, Style};
use plimsoll_stats::validity;
use plimsoll_store::{RunDir, RunState};

use super::runs_filter;
use crate::args::OutputArgs;
use crate::fault::{Exit, Fault};
use crate::{hand_out, output, plim, runs_dir};

/// Which lines of different runs are the same thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineKey {
    pub op: String,
    pub size_bytes: u64,
    pub concurrency: u32,
    /// The line's name, where its run has several of this op, size and concurrency; else empty: names are chosen freely.
    pub name: String,
}

/// The lines of a run, each with what it has in common with those of others.
pub fn lines_of(s: &RunSummary) -> impl Iterator<Item = (LineKey, &WorkloadSummary)> {
    let same = |a: &WorkloadSummary, b: &WorkloadSummary| {
        a.op == b.op && a.size_bytes == b.size_bytes && a.concurrency == b.concurrency
    };
    s.workloads.iter().map(move |w| {
        let alone = s.workloads.iter().filter(|other| same(w, other)).count() == 1;
        let name = if alone { String::new() } else { w.name.clone() };
        (LineKey { op: w.op.clone(), size_bytes: w.size_bytes, concurrency: w.concurrency, name }, w)
    })
}

/// That line of a run.
pub fn line<'a>(s: &'a RunSummary, key: &LineKey) -> Option<&'a WorkloadSummary> {
    lines_of(s).find(|(k, _)| k == key).map(|(_, w)| w)
}

pub fn read(names: &[String], output: &OutputArgs) -> Result<Vec<Member>, Fault> {
    if let Some(option) = names.iter().find(|n| n.starts_with('-')) {
        return Err(Fault::input(
            format!("'{option}' is given where a run is expected"),
            "Put options before the runs: plimsoll compare --json A... -- B...",
        ));
    }
    let mut dirs = Vec::new();
    for name in names {
        dirs.extend(of_name(name, output.runs_dir.as_deref())?);
    }
    distinct(&dirs)?;
    let members: Result<Vec<Member>, Fault> = dirs
        .into_iter()
        .map(|dir| {
            let plan = dir.plan()?;
            Ok(Member::of(dir.summary()?, plan))
        })
        .collect();
    let members = members?;
    not_of_one_file(members.iter())?;
    Ok(members)
}

/// A file that was imported twice is one test, and no repeat of itself.
pub fn not_of_one_file<'a>(runs: impl Iterator<Item = &'a Member>) -> Result<(), Fault> {
    let mut seen: BTreeMap<(String, String), &str> = BTreeMap::new();
    for summary in runs.map(|m| &m.summary) {
        let Some(from) = &summary.environment.imported else { continue };
        // A file may hold several tests.
        let lines = serde_json::to_string(&summary.workloads).unwrap_or_default();
        if let Some(first) = seen.insert((from.sha256.clone(), lines), &summary.id) {
            return Err(Fault::input(
                format!("runs {first} and {} were imported from the same file, {}", summary.id, from.file),
                "Give each file once: a repeat is a test of its own.",
            ));
        }
    }
    Ok(())
}

/// Why single figures of other tools do not tell; empty where all runs are ours.
pub fn points<'a>(mut runs: impl Iterator<Item = &'a Member>) -> String {
    match runs.find_map(|m| m.summary.environment.imported.as_ref()) {
        Some(from) => format!(" (figures imported from {} have no interval of their own)", from.tool),
        None => String::new(),
    }
}

/// A run, or with `name=value` all runs with that label.
pub fn of_name(name: &str, root: Option<&Path>) -> Result<Vec<RunDir>, Fault> {
    let label = name.split_once('=').filter(|_| !Path::new(name).exists());
    let Some((key, value)) = label else { return Ok(vec![plim::find(root, name)?]) };
    let filter = RunFilter { labels: vec![(key.into(), value.into())], ..RunFilter::default() };
    let runs = runs_filter::found(&runs_dir::root(root), &filter)?;
    let sealed = runs.iter().filter(|r| r.entry.state == RunState::Sealed);
    let found: Vec<RunDir> = sealed.map(|r| RunDir::open(&r.entry.path)).collect::<Result<_, _>>()?;
    if found.is_empty() {
        return Err(Fault::input(
            format!("no run here has the label {key}={value}"),
            "`plimsoll runs list` shows the labels; runs are given one with --label NAME=VALUE.",
        ));
    }
    Ok(found)
}

/// A run counts once: given again, itself or a copy of its directory, it would look like a repeat that agrees to the last digit.
pub fn distinct(dirs: &[RunDir]) -> Result<(), Fault> {
    if dirs.len() < 2 {
        return Ok(());
    }
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for dir in dirs {
        let path = dir.path().display().to_string();
        if let Some(first) = seen.insert(dir.born_as()?, path.clone()) {
            let what = if first == path {
                format!("run {} is given twice", dir.id())
            } else {
                format!("{first} and {path} are the same run")
            };
            return Err(Fault::input(what, "Give each run once: a repeat is a run of its own."));
        }
    }
    Ok(())
}

/// Lines that every run has, in the order of the first.
pub fn common_lines<'a>(runs: impl Iterator<Item = &'a Member>) -> Vec<LineKey> {
    let all: Vec<Vec<LineKey>> = runs.map(usable_lines).collect();
    let Some(first) = all.first() else { return Vec::new() };
    let mut lines: Vec<LineKey> =
        first.iter().filter(|l| all.iter().all(|run| run.contains(l))).cloned().collect();
    lines.dedup();
    lines
}

fn usable_lines(r: &Member) -> Vec<LineKey> {
    // A cell that is invalid in one run has nothing to be compared with.
    let usable = |w: &WorkloadSummary| r.summary.status == RunStatus::None || w.valid;
    lines_of(&r.summary).filter(|(_, w)| usable(w)).map(|(key, _)| key).collect()
}

/// Lines named at most; of more it is said how many there are.
const MOST_NAMED: usize = 5;

/// What is told of lines that some of the runs have and others have not: nothing is said of them.
pub fn lines_left_out<'a>(runs: impl Iterator<Item = &'a Member> + Clone) -> Option<Finding> {
    let common = common_lines(runs.clone());
    let mut left: Vec<LineKey> = Vec::new();
    for key in runs.flat_map(|r| lines_of(&r.summary).map(|(key, _)| key)) {
        if !common.contains(&key) && !left.contains(&key) {
            left.push(key);
        }
    }
    if left.is_empty() {
        return None;
    }
    let named: Vec<String> = left.iter().take(MOST_NAMED).map(line_name).collect();
    let more = match left.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let text = format!(
        "Nothing is said of {} line(s) that not every run has, or that are void in one: {}{more}.",
        left.len(),
        named.join("; ")
    );
    Some(Finding::new("F43", "lines_left_out", Level::Qualified, text))
}

pub fn line_name(key: &LineKey) -> String {
    let size = match key.size_bytes {
        0 => String::new(),
        bytes => format!(" {}", plimsoll_report::number::size(bytes)),
    };
    let name = if key.name.is_empty() { String::new() } else { format!(" ({})", key.name) };
    format!("{}{size}, {} in flight{name}", key.op, key.concurrency)
}

/// Runs without a line that may be used: id, and codes of what is wrong.
fn void<'a>(runs: impl Iterator<Item = &'a Member>) -> Vec<(String, String)> {
    runs.map(|r| &r.summary)
        .filter(|s| s.status == RunStatus::None)
        .map(|s| (s.id.clone(), s.codes_of_the_answer().join(", ")))
        .collect()
}

/// The runs whose figures may be used, and what is told of the others; none left is no result. `whose`: ` of A`, or nothing.
pub fn usable(runs: Vec<Member>, whose: &str) -> Result<(Vec<Member>, Vec<Finding>), Fault> {
    let void = void(runs.iter());
    let told = |(id, codes): &(String, String)| {
        let text = format!("Run {id}{whose} is invalid ({codes}) and was left out of every mean.");
        Finding::new("F40", "invalid_run", Level::Qualified, text)
    };
    let findings = void.iter().map(told).collect();
    let left: Vec<Member> =
        runs.into_iter().filter(|m| !void.iter().any(|(id, _)| *id == m.summary.id)).collect();
    if left.is_empty() {
        let which: Vec<String> = void.iter().map(|(id, codes)| format!("{id} ({codes})")).collect();
        return Err(Fault {
            exit: Exit::Invalid,
            ..Fault::input(
                format!("no run{whose} is usable: {}", which.join(", ")),
                "Repeat them; `plimsoll runs show RUN` says what was wrong.",
            )
        });
    }
    Ok((left, findings))
}

/// What several runs say together, printed in the form that was asked for.
pub struct JointReport {
    /// `compare` or `scale`.
    pub what: &'static str,
    /// Head of the report.
    pub title: String,
    pub verdict: String,
    pub findings: Vec<Finding>,
    pub analysis: Analysis,
    /// Which runs, by side or number of nodes.
    pub runs: BTreeMap<String, Vec<String>>,
    pub rerun: String,
}

impl JointReport {
    /// Prints it; the exit says whether it may be believed, then whether anything was `decided`.
    pub fn print(self, o: &OutputArgs, decided: bool) -> Result<Exit, Fault> {
        let mark = validity::mark(&self.findings);
        let notes = self.findings.iter().filter(|f| f.level == Level::Qualified).count();
        let head = match notes {
            _ if !mark.is_empty() => mark,
            0 => "VALID.".to_owned(),
            1 => "VALID (1 note).".to_owned(),
            n => format!("VALID ({n} notes)."),
        };
        let valid = validity::is_valid(&self.findings);
        let summary = RunSummary {
            schema: SCHEMA.into(),
            id: self.title,
            valid,
            status: if valid { RunStatus::Valid } else { RunStatus::None },
            answered: valid,
            verdict: format!("{head} {}", self.verdict),
            findings: self.findings,
            rerun: self.rerun,
            ..RunSummary::default()
        };
        let report = RunReport { analysis: self.analysis, ..RunReport::of(summary) };
        if let Some(file) = &o.html {
            // It is of several runs: its id says what was compared.
            let layout = plimsoll_report::Layout { title: Some(&report.summary.id), ..Default::default() };
            output::write_html(Path::new(file), std::slice::from_ref(&report), layout)?;
        }
        let (summary, analysis) = (&report.summary, &report.analysis);
        if o.json {
            let json = serde_json::json!({
                "schema": format!("plimsoll.{}/1", self.what), "valid": valid, "verdict": summary.verdict,
                "findings": summary.findings, "runs": self.runs,
                "comparisons": analysis.comparisons, "scalings": analysis.scalings, "servers": analysis.server_comparisons,
            });
            output::print(&format!("{json:#}\n"))?;
        } else {
            output::print(&Self::text(o, summary, analysis))?;
        }
        hand_out::write_text(&plimsoll_report::together::markdown(summary, analysis), &o.hand_out)?;
        Ok(match (valid, decided) {
            (false, _) => Exit::Invalid,
            (true, false) => Exit::Undetermined,
            (true, true) => Exit::Valid,
        })
    }

    fn text(o: &OutputArgs, summary: &RunSummary, analysis: &Analysis) -> String {
        if o.csv {
            plimsoll_report::together::csv(analysis)
        } else if o.oneline {
            format!("{}\n", summary.verdict.replace('\n', " "))
        } else if o.markdown {
            plimsoll_report::together::markdown(summary, analysis)
        } else {
            plimsoll_report::together::terminal(summary, analysis, Style::for_stdout())
        }
    }
}
