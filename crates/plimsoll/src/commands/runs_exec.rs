//! What `report`, `runs` and their kin do.

use std::fmt::Write as _;

use plimsoll_model::plan::Workload;
use plimsoll_report::GroupKey;
use plimsoll_store::RunDir;
use plimsoll_store::journal::{self, Thing};
use plimsoll_store::rundir::{self, RunEntry, RunState};

use super::runs::{
    AnalyzeCommand, CleanupCommand, ListRunsArgs, OneRunArgs, RemoveRunsArgs, ReportCommand, RunsCommand,
};
use crate::fault::{Exit, Fault};
use crate::progress::Progress;
use crate::{output, runs_dir, signals};

pub fn report(c: &ReportCommand) -> Result<Exit, Fault> {
    let root = c.output.runs_dir.as_deref();
    let dirs = c.runs.iter().map(|r| runs_dir::find(root, r)).collect::<Result<Vec<_>, _>>()?;
    dirs.iter().try_for_each(runs_dir::judged)?;
    let by = c.by.iter().map(|k| k.parse()).collect::<Result<Vec<GroupKey>, _>>()?;
    let mut out = c.output.clone();
    if let Some(file) = &c.html_file {
        out.html = Some(file.to_string_lossy().into_owned());
    }
    output::print_runs(&dirs, &by, &out)?;
    Ok(Exit::Valid)
}

pub fn runs(c: &RunsCommand) -> Result<Exit, Fault> {
    match c {
        RunsCommand::List(a) => list(a),
        RunsCommand::Show(a) => show(a),
        RunsCommand::Rm(a) => remove(a),
    }
}

fn list(a: &ListRunsArgs) -> Result<Exit, Fault> {
    let root = runs_dir::root(a.runs_dir.as_deref());
    let mut runs = rundir::list(&root)?;
    runs.reverse();
    if a.json {
        let json = serde_json::to_string_pretty(&runs).expect("entries are plain data");
        output::print(&(json + "\n"))?;
        return Ok(Exit::Valid);
    }
    if runs.is_empty() {
        output::tell(format_args!("plimsoll: no runs in {}", root.display()));
        return Ok(Exit::Valid);
    }
    output::print(&table(&runs))?;
    Ok(Exit::Valid)
}

fn table(runs: &[RunEntry]) -> String {
    let wide = runs.iter().map(|r| r.id.len()).max().unwrap_or(0);
    let mut out = String::new();
    for r in runs {
        let state = match r.state {
            RunState::Running => "running",
            RunState::Sealed => "done",
            RunState::Unfinished => "killed",
        };
        let mut about: Vec<String> = r.name.iter().cloned().collect();
        about.extend(r.labels.iter().map(|(k, v)| format!("{k}={v}")));
        if r.cleanup_due > 0 && r.state != RunState::Running {
            about.push(format!("{} to clean up", r.cleanup_due));
        }
        about.extend(r.verdict.as_deref().map(in_a_line));
        let _ = writeln!(out, "{:wide$}  {state:7}  {}", r.id, about.join("  "));
    }
    out
}

/// Things for a person: what is in a bucket by its place, files by their path.
fn words(things: &[Thing]) -> String {
    let one = |thing: &Thing| match thing {
        Thing::Bucket { bucket, .. } => format!("bucket '{bucket}'"),
        Thing::Prefix { bucket, prefix, .. } => format!("'{prefix}' in bucket '{bucket}'"),
        Thing::Upload { bucket, key, .. } => format!("an upload of '{key}' in bucket '{bucket}'"),
        Thing::File { path } | Thing::Directory { path } | Thing::Tree { path } => path.display().to_string(),
        Thing::Process { pid, .. } => format!("process {pid}"),
    };
    things.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What a run keeps, whose wish that was, and how it goes.
pub fn kept_words(dir: &RunDir, kept: &[Thing]) -> String {
    // Files of a job file stay because fio leaves them, without a word of whoever runs it.
    let of_fio = |w: &Workload| w.block.as_ref().is_some_and(|b| b.fio.is_some());
    let is_fio = dir.plan().is_ok_and(|p| p.stages.iter().flat_map(|s| &s.workloads).any(of_fio));
    let why = if is_fio { "as fio does" } else { "by wish" };
    format!("kept, {why}: {}; `plimsoll cleanup {} --kept` removes it", words(kept), dir.id())
}

/// Of a verdict: whether it is valid, and the first figure; where there is none, what is wrong.
fn in_a_line(text: &str) -> String {
    let parts = if text.starts_with('[') { text.split_once("] ") } else { text.split_once(". ") };
    let Some((status, rest)) = parts else { return text.chars().take(LINE).collect() };
    let close = if text.starts_with('[') { "]" } else { "" };
    let sentences: Vec<&str> = rest.split(". ").collect();
    let figure =
        |s: &&&str| ["Measured ", "Sustained ", "Held at ", "Seen **"].iter().any(|w| s.starts_with(w));
    let told = sentences.iter().find(figure).or(sentences.first()).copied().unwrap_or_default();
    let told = told.split(" (95 %").next().unwrap_or(told).trim_end_matches('.');
    // Marks are of Markdown: a list has none.
    format!("{status}{close}  {told}").replace("**", "").chars().take(LINE).collect()
}

/// Characters of a verdict in a list.
const LINE: usize = 120;

fn show(a: &OneRunArgs) -> Result<Exit, Fault> {
    let dir = runs_dir::find(a.output.runs_dir.as_deref(), &a.run)?;
    runs_dir::judged(&dir)?;
    output::print_runs(&[dir], &[], &a.output)?;
    Ok(Exit::Valid)
}

fn remove(a: &RemoveRunsArgs) -> Result<Exit, Fault> {
    for name in &a.runs {
        let dir = runs_dir::find(a.runs_dir.as_deref(), name)?;
        let id = dir.id();
        dir.remove()?;
        output::tell(format_args!("plimsoll: run {id} removed"));
    }
    Ok(Exit::Valid)
}

/// Judges runs again, with the methods of this program; the raw data stays as it is.
pub fn analyze(c: &AnalyzeCommand) -> Result<Exit, Fault> {
    let root = c.output.runs_dir.as_deref();
    let dirs = c.runs.iter().map(|r| runs_dir::find(root, r)).collect::<Result<Vec<_>, _>>()?;
    let mut exit = Exit::Valid;
    for dir in &dirs {
        let summary = plimsoll_run::analyze(dir)?;
        // Of several runs the worst decides.
        let this = Exit::of_code(plimsoll_judge::exit_code(&summary, false));
        exit = [exit, this].into_iter().max_by_key(|e| badness(*e)).unwrap_or(exit);
    }
    output::print_runs(&dirs, &[], &c.output)?;
    Ok(exit)
}

fn badness(exit: Exit) -> u8 {
    match exit {
        Exit::Valid => 0,
        Exit::LeftBehind => 1,
        Exit::Undetermined => 2,
        Exit::ExpectationMissed => 3,
        Exit::Damaged => 5,
        _ => 4,
    }
}

/// Finishes what a killed run left, and with `--kept` what a run was told to keep.
pub fn cleanup(c: &CleanupCommand) -> Result<Exit, Fault> {
    let dir = runs_dir::find(c.runs_dir.as_deref(), &c.run)?;
    let mut things: Vec<Thing> =
        journal::pending(&dir.journal_path())?.into_iter().map(|(_, thing)| thing).collect();
    let kept = journal::kept(&dir.journal_path())?;
    if c.kept {
        things.extend(kept);
    } else if !kept.is_empty() {
        output::tell(format_args!("plimsoll: {}", kept_words(&dir, &kept)));
        if things.is_empty() {
            return Ok(Exit::Valid);
        }
    }
    if things.is_empty() {
        output::tell(format_args!("plimsoll: run {} left nothing behind", dir.id()));
        return Ok(Exit::Valid);
    }
    if c.dry_run {
        for thing in &things {
            output::print(&format!("{}\n", words(std::slice::from_ref(thing))))?;
        }
        return Ok(Exit::Valid);
    }
    if c.kept {
        dir.journal()?.take_back_kept()?;
    }
    signals::install(signals::Role::Run);
    let progress = Progress::new(false);
    let left = plimsoll_setup::cleanup(dir.path(), &c.endpoint, signals::interrupt(), |e| progress.show(&e));
    progress.finish();
    let left = left?;
    if left.is_empty() {
        output::tell(format_args!("plimsoll: all that run {} made is gone", dir.id()));
        return Ok(Exit::Valid);
    }
    Err(Fault {
        what: format!("not removed: {}", left.join("; ")),
        remedy: "Correct what is named, and run this again.".into(),
        exit: Exit::LeftBehind,
    })
}

#[cfg(test)]
mod tests {
    use super::in_a_line;

    #[test]
    fn a_list_says_what_was_measured() {
        let valid = "VALID (2 notes). Measured 320 ± 150 op/s of 4KiB PUT, 1.3 ± 0.6 MB/s at 16 in flight (95 %, 1.9 s window). Seen for 2.5 s.";
        assert_eq!(
            in_a_line(valid),
            "VALID (2 notes)  Measured 320 ± 150 op/s of 4KiB PUT, 1.3 ± 0.6 MB/s at 16 in flight"
        );
        let invalid = "[INVALID V13] Little's law is off by 8.3 %: 3.99 against 4.33. Either one. Measured 4 ± 1 op/s of 4KB PUT at 4 in flight (95 %).";
        assert_eq!(in_a_line(invalid), "[INVALID V13]  Measured 4 ± 1 op/s of 4KB PUT at 4 in flight");
        assert_eq!(in_a_line("[INVALID V04] None succeeded. Run longer."), "[INVALID V04]  None succeeded");
        assert_eq!(in_a_line("UNDETERMINED"), "UNDETERMINED");
        let probed = "VALID. A limiter refuses **91.2 %** of GET (9 of 10 attempts answered 429 or 503); nothing passes. Held at **750.0 ± 0.8 op/s** of GET (95 %) for the 20.0 s that it was seen. Seen in operations for 20 s at most.";
        assert_eq!(in_a_line(probed), "VALID  Held at 750.0 ± 0.8 op/s of GET");
    }
}
