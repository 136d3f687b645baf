//! What `report`, `runs` and their kin do.

use std::fs::File;
use std::path::PathBuf;

use plimsoll_model::Plan;
use plimsoll_model::count::counted;
use plimsoll_model::plan::Workload;
use plimsoll_model::text::clean;
use plimsoll_report::{GroupKey, Layout};
use plimsoll_setup::FindErrands;
use plimsoll_setup::safety::place::remove_made;
use plimsoll_store::RunDir;
use plimsoll_store::journal::{self, Thing};

use super::runs::{
    AnalyzeCommand, CleanupCommand, OneRunArgs, PackRunArgs, RemoveRunsArgs, ReportCommand, RunsCommand,
    UnpackRunArgs,
};
use super::{net_exec, runs_export, runs_list, several};
use crate::args::OutputArgs;
use crate::fault::{Exit, Fault};
use crate::progress::Progress;
use crate::{fleet_use, out_file, output, plim, runs_dir, signals};

pub fn report(c: &ReportCommand) -> Result<Exit, Fault> {
    let root = c.output.runs_dir.as_deref();
    if let [one] = &c.runs[..]
        && let Some(record) = net_exec::stored(&runs_dir::root(root), one)?
    {
        let html = c.html_file.as_ref().map(|f| f.to_string_lossy().into_owned()).or(c.output.html.clone());
        return net_exec::show(&record, &OutputArgs { html, ..c.output.clone() }).map(|()| Exit::Valid);
    }
    let dirs = c.runs.iter().map(|r| plim::find(root, r)).collect::<Result<Vec<_>, _>>()?;
    dirs.iter().try_for_each(runs_dir::judged)?;
    several::distinct(&dirs)?;
    let by = c.by.iter().map(|k| k.parse()).collect::<Result<Vec<GroupKey>, _>>()?;
    let mut out = c.output.clone();
    if let Some(file) = &c.html_file {
        is_html(file)?;
        out.html = Some(file.to_string_lossy().into_owned());
    }
    let layout = Layout { by: &by, title: c.title.as_deref(), columns: &c.columns };
    layout.check()?;
    output::print_runs(&dirs, layout, &out)?;
    Ok(Exit::Valid)
}

/// A name of another form asks for another form.
fn is_html(file: &std::path::Path) -> Result<(), Fault> {
    let form = match file.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
        Some("md" | "markdown") => "--markdown",
        Some("csv") => "--csv",
        _ => return Ok(()),
    };
    Err(Fault::input(
        format!("-o writes HTML, but {} is not the name of a page", file.display()),
        format!("Name it .html; or use {form}, which goes to stdout."),
    ))
}

pub fn runs(c: &RunsCommand) -> Result<Exit, Fault> {
    match c {
        RunsCommand::List(a) => runs_list::list(a),
        RunsCommand::Show(a) => show(a),
        RunsCommand::Export(a) => runs_export::export(a),
        RunsCommand::Pack(a) => pack(a),
        RunsCommand::Unpack(a) => unpack(a),
        RunsCommand::Rm(a) => remove(a),
    }
}

/// Things for a person: what is in a bucket by its place, files by their path.
fn words(things: &[Thing]) -> String {
    let one = |thing: &Thing| match thing {
        Thing::Bucket { bucket, .. } => format!("bucket '{bucket}'"),
        Thing::Prefix { bucket, prefix, .. } => format!("'{prefix}' in bucket '{bucket}'"),
        Thing::Upload { bucket, key, .. } => format!("an upload of '{key}' in bucket '{bucket}'"),
        Thing::File { path } | Thing::Directory { path } | Thing::Tree { path } => path.display().to_string(),
        Thing::Process { pid, .. } => format!("process {pid}"),
        Thing::Group { path } => format!("control group {}", path.display()),
        Thing::Mount { path } => format!("what is mounted at {}", path.display()),
        Thing::Namespace { name } => format!("network namespace {name}"),
        Thing::Link { name } => format!("network interface {name}"),
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

fn show(a: &OneRunArgs) -> Result<Exit, Fault> {
    if let Some(record) = net_exec::stored(&runs_dir::root(a.output.runs_dir.as_deref()), &a.run)? {
        return net_exec::show(&record, &a.output).map(|()| Exit::Valid);
    }
    let dir = plim::find(a.output.runs_dir.as_deref(), &a.run)?;
    runs_dir::judged(&dir)?;
    output::print_runs(&[dir], Layout::default(), &a.output)?;
    Ok(Exit::Valid)
}

fn pack(a: &PackRunArgs) -> Result<Exit, Fault> {
    let dir = runs_dir::find(a.runs_dir.as_deref(), &a.run)?;
    let file = a.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.plim", dir.id())));
    if file.extension().is_none_or(|e| e != "plim") {
        return Err(Fault::input(
            format!("{} is not the name of a packed run", file.display()),
            "Name it .plim: by that it is known again.",
        ));
    }
    plim::end_in_order();
    let mut open = File::create_new(&file).map_err(|e| out_file::cannot(&file, &e.to_string()))?;
    match plimsoll_archive::pack(&dir, &mut open, &signals::was_asked_to_stop) {
        Ok(manifest) => {
            let bytes = open.metadata().map_or(0, |m| m.len());
            output::tell(format_args!(
                "plimsoll: run {} with its {} is packed in {} ({})",
                manifest.id,
                counted(manifest.files.len(), "file"),
                file.display(),
                plimsoll_report::number::size(bytes)
            ));
            if !manifest.files.contains_key("seal.json") {
                output::tell(format_args!(
                    "plimsoll: run {} has no seal: it did not end in order, and nothing vouches for what it holds. It is packed without a \
                     result, and judged by its record where it is shown",
                    manifest.id
                ));
            }
            Ok(Exit::Valid)
        }
        Err(e) => {
            // A part of a run is none.
            let _ = remove_made(&file, &open);
            Err(plim::told(&format!("run {}", dir.id()), e))
        }
    }
}

fn unpack(a: &UnpackRunArgs) -> Result<Exit, Fault> {
    for file in &a.files {
        let dir = plim::kept(file, a.runs_dir.as_deref())?;
        output::tell(format_args!("plimsoll: {} is run {}", file.display(), dir.id()));
    }
    Ok(Exit::Valid)
}

fn remove(a: &RemoveRunsArgs) -> Result<Exit, Fault> {
    for name in &a.runs {
        if plimsoll_store::net::is_name(name) {
            let id = plimsoll_store::net::remove(&runs_dir::root(a.runs_dir.as_deref()), name)?;
            output::tell(format_args!("plimsoll: network test {id} removed"));
            continue;
        }
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
        exit = exit.worse_of(Exit::of_code(plimsoll_judge::exit_code(&summary, false)));
    }
    output::print_runs(&dirs, Layout::default(), &c.output)?;
    Ok(exit)
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
        let (id, apart) = (dir.id(), made_by_agents(&dir)?);
        let Some(apart) = apart else {
            output::tell(format_args!("plimsoll: run {id} left nothing behind"));
            return Ok(Exit::Valid);
        };
        output::tell(format_args!(
            "plimsoll: run {id} left nothing behind that this machine knows of. {apart}"
        ));
        return Ok(Exit::LeftBehind);
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
    signals::install(signals::ProcessRole::Run);
    let progress = Progress::new(false);
    let left = removed(&dir, &c.endpoint, &progress);
    progress.finish();
    let left = left?;
    if left.is_empty() {
        output::tell(format_args!("plimsoll: everything that run {} created is removed", dir.id()));
        return Ok(Exit::Valid);
    }
    Err(Fault {
        what: format!("not removed: {}", left.join("; ")),
        remedy: "Fix what is named above, and run this again.".into(),
        exit: Exit::LeftBehind,
    })
}

/// What a run over a fleet may have left on its agents' machines, and how it is removed there: each agent has the journal of its own
/// files. `None`: they were all there at its end, and removed what they had made.
fn made_by_agents(dir: &RunDir) -> Result<Option<String>, Fault> {
    let agents = dir.env()?.environment.agents;
    let is_theirs = dir.plan()?.targets.values().any(|t| t.is_on_files());
    let saw_the_end = dir.sealed()?.is_some_and(|_| {
        dir.summary().is_ok_and(|s| s.findings.iter().all(|f| f.name != "left_behind" && f.code != "V24"))
    });
    if agents.is_empty() || !is_theirs || saw_the_end {
        return Ok(None);
    }
    let id = dir.id();
    let names = agents.iter().map(|a| clean(&a.agent).into_owned()).collect::<Vec<_>>().join(", ");
    Ok(Some(format!(
        "Files that its agents made are on their machines, and their journals, too: where one was lost, call \
         `plimsoll cleanup agents/{id}.NAME` there, in the directory in which it was started or with its --runs-dir (agents: {names})."
    )))
}

/// Removes what a run left, by agents of a fleet where one is used and this machine does not reach the storage.
pub fn removed(dir: &RunDir, endpoints: &[String], progress: &Progress) -> Result<Vec<String>, Fault> {
    let interrupt = signals::interrupt();
    let fleet = fleet_use::fleet()?;
    let (id, mut cleaners) = (dir.id(), None);
    let mut find = |plan: &Plan, mark: &str| {
        let Some(fleet) = &fleet else { return Ok(None) };
        if cleaners.is_none() {
            cleaners = Some(fleet.cleaners(&id, plan, &interrupt)?);
        }
        Ok(cleaners.as_ref().map(|agents| agents.errands(mark)))
    };
    let by = (fleet_use::claim_by(), &mut find as &mut FindErrands<'_>);
    Ok(plimsoll_setup::cleanup_by(dir.path(), endpoints, interrupt.clone(), by, |e| progress.show(&e))?)
}
