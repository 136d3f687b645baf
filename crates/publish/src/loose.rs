//! Runs that no campaign made, published as they are: a cell for what did the same on the same storage.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use plimsoll_campaign::{CampaignResult, Campaigned, CellRun, LooseRun, of_runs};
use plimsoll_model::RunSummary;
use plimsoll_model::plan::{Plan, TargetSpec};
use plimsoll_model::text::clean;
use plimsoll_report::RunReport;
use plimsoll_store::RunDir;

use crate::gather::{PublishedRun, gather};
use crate::publication::{
    Publication, PublishError, PublishOptions, SourceFiles, measured_when, put_together, refuse_copies,
    refuse_secrets,
};
use crate::redact::Redactor;

/// Puts single runs together. `exit_of`: the exit code of a run, by its summary.
pub fn publication_of_runs(
    dirs: &[RunDir],
    options: &PublishOptions,
    exit_of: impl Fn(&RunSummary) -> u8,
) -> Result<Publication, PublishError> {
    refuse_copies(options)?;
    let mut read = Vec::new();
    for dir in dirs {
        read.push(read_run(dir, &exit_of)?);
    }
    let title = title(&read);
    let loose: Vec<LooseRun> = read.iter().map(|r| r.loose.clone()).collect();
    let c = of_runs(&title, &loose, Path::new(""));
    let mut redactor = Redactor::new(&options.redact);
    let places: BTreeMap<&str, &Path> =
        read.iter().zip(dirs).map(|(r, dir)| (r.loose.run.run.as_str(), dir.path())).collect();
    let dir_of = |name: &str| places.get(name).map_or_else(PathBuf::new, |p| p.to_path_buf());
    let runs = gather(&c, &dir_of, &mut redactor);
    refuse_secrets(&runs, options)?;
    let sources = sources(&c, &read, &mut redactor);
    let verdict = match read.as_slice() {
        [one] if !one.verdict.is_empty() => Some(clean(&redactor.text(&one.verdict)).into_owned()),
        _ => None,
    };
    let mut out = put_together(&c, runs, sources, method, redactor, options);
    // Of one run its own verdict says more than a comparison of nothing.
    if let Some(verdict) = verdict {
        out.answer.more = vec![verdict];
    }
    Ok(out)
}

struct ReadRun {
    loose: LooseRun,
    plan: Plan,
    is_ours: bool,
    verdict: String,
}

fn read_run(dir: &RunDir, exit_of: &impl Fn(&RunSummary) -> u8) -> Result<ReadRun, PublishError> {
    let refused = |problem: String| PublishError::Run { run: dir.id().to_owned(), problem };
    let report = plimsoll_report::read(dir, usize::MAX).map_err(|e| refused(e.to_string()))?;
    let plan = dir.plan().map_err(|e| refused(e.to_string()))?;
    let s = &report.summary;
    let mut run = CellRun::of_summary(s, 0, exit_of(s));
    run.run = dir.id().to_owned();
    if run.figures.is_empty() {
        return Err(refused("it measured nothing".into()));
    }
    let workload = workload(&report, &run);
    let loose =
        LooseRun { run, labels: s.labels.clone(), storage: storage(&plan, s), workload, did: did(&plan, s) };
    Ok(ReadRun {
        loose,
        is_ours: s.environment.imported.is_none(),
        verdict: s.verdict.replace("**", ""),
        plan,
    })
}

/// What was done: as a campaign called it, else as a report does. A plan's own name is one of the whole, storage and all.
fn workload(report: &RunReport, run: &CellRun) -> String {
    if let Some(name) = report.summary.labels.get("workload") {
        return name.clone();
    }
    let bare = RunReport { series: None, ..report.clone() };
    let title = plimsoll_report::glance::title(&bare);
    if title.is_empty() { run.figures[0].line.clone() } else { title }
}

/// What was measured, in words.
fn storage(plan: &Plan, s: &RunSummary) -> String {
    if let Some(from) = &s.environment.imported {
        return format!("measured by {}", from.who());
    }
    let of = |t: &TargetSpec| match t {
        TargetSpec::S3(s3) => {
            let first = s3.endpoints.first().map_or("", String::as_str);
            let more = if s3.endpoints.len() > 1 { " and others" } else { "" };
            format!("{} at {}{more}", s3.bucket, first.split("://").last().unwrap_or_default())
        }
        TargetSpec::Block(b) => b.path.clone(),
        TargetSpec::Files(f) => f.directory.clone(),
        TargetSpec::Sim(_) => "a simulated storage".into(),
        TargetSpec::Null => "nothing (the null target)".into(),
    };
    let all: BTreeSet<String> = plan.targets.values().map(of).collect();
    if all.is_empty() { "its storage".into() } else { all.into_iter().collect::<Vec<_>>().join(", ") }
}

/// The plan without what may differ between repeats, and without what was measured.
fn did(plan: &Plan, s: &RunSummary) -> String {
    let mut value = serde_json::to_value(plan).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        ["name", "seed", "labels", "expect", "targets"].iter().for_each(|k| drop(object.remove(*k)));
    }
    // A file that was imported has no plan of its own: its lines say what was done.
    if s.environment.imported.is_some() {
        let lines = s.workloads.iter().map(|w| format!("{} {} {}", w.op, w.size_bytes, w.concurrency));
        return lines.collect::<Vec<_>>().join("; ");
    }
    value.to_string()
}

/// Of one run what it did; of several what the first did.
fn title(runs: &[ReadRun]) -> String {
    let names: BTreeSet<&str> = runs.iter().map(|r| r.loose.workload.as_str()).collect();
    let first = runs.first().map_or("", |r| r.loose.workload.as_str());
    if names.len() > 1 { format!("{first} and {} more", names.len() - 1) } else { first.to_owned() }
}

/// The plan of the first run of each cell.
fn sources(c: &Campaigned, read: &[ReadRun], redactor: &mut Redactor) -> SourceFiles {
    let mut out = SourceFiles { files: Vec::new(), commands: Vec::new() };
    let firsts = c.state.cells.iter().filter_map(|cell| cell.runs.first());
    for run in firsts.filter_map(|first| read.iter().find(|r| r.loose.run.run == first.run)) {
        // What another tool measured is no plan that this program carries out.
        if !run.is_ours {
            continue;
        }
        let text = redactor.toml(&run.plan.to_toml());
        let path = format!("plans/{}.toml", redactor.text(&run.loose.run.run));
        if out.commands.len() < MOST_COMMANDS && Plan::from_toml(&text).is_ok() {
            out.commands.push(format!("plimsoll run {path}"));
        }
        out.files.push((path, text));
    }
    out
}

/// Cells whose command stands on the first page; all have theirs on that of the runs.
const MOST_COMMANDS: usize = 4;

fn method(c: &Campaigned, runs: &[PublishedRun], result: &CampaignResult) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut say = |name: &str, what: String| out.push((name.to_owned(), clean(&what).into_owned()));
    measured_when(runs).into_iter().for_each(|when| say("Measured", when));
    let void = c.state.cells.iter().flat_map(|s| &s.runs).filter(|r| !r.answered).count();
    say("Runs", format!("{}, of these {void} void", runs.len()));
    if runs.len() > 1 {
        say(
            "Put together",
            "from single runs, not measured as one campaign: runs of the same plan on the same storage are repeats; order and rest between them are as they came".into(),
        );
    }
    let gone = runs.iter().filter(|r| r.gap.is_some()).count();
    if gone > 0 {
        say("Runs without a hash", gone.to_string());
    }
    let without = result.rows.iter().filter(|r| r.rate().is_none()).count();
    say("Void or missing cells", without.to_string());
    say("Failed ops", "are counted, and never part of a rate".into());
    out
}
