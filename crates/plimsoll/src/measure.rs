//! A plan is run, watched and shown: what every measuring command does in the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_model::{Event, Plan};
use plimsoll_run::{Finished, Options, RunError};
use plimsoll_setup::SetupError;
use plimsoll_store::RunDir;

use crate::args::{IdentityArgs, OutputArgs};
use crate::fault::{Exit, Fault, sentence};
use crate::progress::Progress;
use crate::{
    ceiling, defaults, detach, dry_run, fleet_use, hand_out, live, out_file, output, rerun, runs_dir, signals,
};

/// Runs the plan (or prints it, for `--dry-run`) and prints the result.
pub fn planned(plan: &Plan, dry: bool, out: &OutputArgs) -> Result<Exit, Fault> {
    if dry {
        return show_plan(plan);
    }
    let finished = run(plan, out, &Progress::new(out.quiet))?;
    show(&finished, out)
}

pub fn show_plan(plan: &Plan) -> Result<Exit, Fault> {
    let plan = fleet_use::for_each(fleet_use::with_losses(plan))?;
    plimsoll_run::check(&plan)?;
    plan.check_kept_texts()?;
    plimsoll_run::check_memory(&plan)?;
    output::print(&dry_run::text(&plan))?;
    Ok(Exit::Valid)
}

/// Runs the plan; whoever calls shows the result.
pub fn run(plan: &Plan, out: &OutputArgs, progress: &Progress) -> Result<Finished, Fault> {
    run_for(plan, out, progress, None)
}

/// The same, ended in order after a time: no new cell of stages begins after it.
pub fn run_for(
    plan: &Plan,
    out: &OutputArgs,
    progress: &Progress,
    stop_after: Option<Duration>,
) -> Result<Finished, Fault> {
    run_and_tell(plan, out, progress, stop_after, |_| None)
}

/// The same, with a line of one's own after the events that have one.
pub fn run_and_tell(
    plan: &Plan,
    out: &OutputArgs,
    progress: &Progress,
    stop_after: Option<Duration>,
    mut line: impl FnMut(&Event) -> Option<String>,
) -> Result<Finished, Fault> {
    // A campaign's labels are its file's: what is published of them is left out there.
    plan.check_kept_texts().map_err(RunError::from)?;
    let typed = defaults::typed();
    let options = Options { stop_after, ..options(out, rerun::command(&typed, plan))? };
    let plan = fleet_use::for_each(fleet_use::with_losses(&ceiling::resolved(plan, out)?))?;
    place_for(out)?;
    watched(out, progress, |events| {
        plimsoll_run::execute(&plan, &options, |event| {
            let more = line(&event);
            events(event);
            if let Some(text) = more {
                events(Event::Message(text));
            }
        })
    })
}

/// Goes on with a killed run.
pub fn resume(name: &str, out: &OutputArgs) -> Result<Exit, Fault> {
    let dir = runs_dir::find(out.runs_dir.as_deref(), name)?;
    place_for(out)?;
    if let Some(deadman) = dir.env().ok().and_then(|e| fleet_use::go_on_as(&e.rerun)) {
        output::tell(format_args!("plimsoll: --deadman={deadman}, as the run was begun"));
    }
    let options = options(out, String::new())?;
    let progress = Progress::new(out.quiet);
    let finished = watched(out, &progress, |events| plimsoll_run::resume(dir.path(), &options, events))?;
    show(&finished, out)
}

/// Said before anything is measured.
fn place_for(out: &OutputArgs) -> Result<(), Fault> {
    out.html.as_deref().map_or(Ok(()), |file| out_file::check(std::path::Path::new(file)))?;
    hand_out::check(&out.hand_out)
}

/// The machine is not to say whose it is.
static NO_IDENTITY: AtomicBool = AtomicBool::new(false);

/// What the command line says of that.
pub fn note_identity(args: IdentityArgs) {
    NO_IDENTITY.store(args.no_identity, Ordering::Relaxed);
}

/// Whether it is found out which machine this is.
pub fn is_identified() -> bool {
    !NO_IDENTITY.load(Ordering::Relaxed)
}

/// What a run is told; with the fleet, where one is used.
pub fn options(out: &OutputArgs, rerun: String) -> Result<Options, Fault> {
    Ok(Options {
        root: runs_dir::root(out.runs_dir.as_deref()),
        rerun,
        commit: env!("PLIMSOLL_COMMIT").into(),
        interrupt: signals::interrupt(),
        crew: fleet_use::crew()?,
        claim_by: fleet_use::claim_by(),
        identity: is_identified(),
        ..Options::default()
    })
}

fn watched(
    out: &OutputArgs,
    progress: &Progress,
    work: impl FnOnce(&mut dyn FnMut(Event)) -> Result<Finished, RunError>,
) -> Result<Finished, Fault> {
    signals::install(signals::ProcessRole::Run);
    live::begin(out.runs_dir.as_deref())?;
    let result = work(&mut |event| {
        detach::saw(&event);
        progress.show(&event);
        live::saw(&event);
    });
    progress.finish();
    live::ended();
    let finished = result?;
    for left in &finished.left {
        output::tell(format_args!(
            "plimsoll: left behind: {left}; run `plimsoll cleanup {}` to try again",
            finished.id
        ));
    }
    if !out.quiet {
        output::tell(format_args!("plimsoll: stored in {}", finished.path.display()));
    }
    Ok(finished)
}

/// Prints a finished run in the form that was asked for.
pub fn show(finished: &Finished, out: &OutputArgs) -> Result<Exit, Fault> {
    reported(finished, output::print_glance(&RunDir::open(&finished.path)?, out))
}

/// A run whose result is printed in a form of its own; its report file is written beside that, where one was asked for.
pub fn show_as(finished: &Finished, out: &OutputArgs, text: &str) -> Result<Exit, Fault> {
    shown_as(finished, out, output::print(text))
}

/// The same of what was shown by other means.
pub fn shown_as(finished: &Finished, out: &OutputArgs, shown: Result<(), Fault>) -> Result<Exit, Fault> {
    let written = || output::write_beside(&RunDir::open(&finished.path)?, out);
    reported(finished, shown.and_then(|()| written()))
}

/// The end of a run whose result was shown, or could not be: what was measured is kept, and its code is never that of a run
/// that measured nothing.
pub fn reported(finished: &Finished, shown: Result<(), Fault>) -> Result<Exit, Fault> {
    let exit = Exit::of_code(finished.exit_code);
    shown.map(|()| exit).map_err(|e| e.after_a_run(exit, &finished.id))
}

impl From<SetupError> for Fault {
    fn from(e: SetupError) -> Self {
        RunError::from(e).into()
    }
}

impl From<RunError> for Fault {
    fn from(e: RunError) -> Self {
        match e {
            RunError::Input { problem, remedy } | RunError::OutOfTime { problem, remedy } => {
                Fault::input(problem, sentence(&remedy))
            }
            RunError::Plan(e) => e.into(),
            RunError::Store(e) => e.into(),
            RunError::Interrupted => Fault {
                what: "interrupted before anything was measured".into(),
                remedy: String::new(),
                exit: Exit::Interrupted,
            },
            // The engine's messages say themselves what to do.
            e @ RunError::Engine(_) => Fault::input(e.to_string(), String::new()),
            RunError::Bug(what) => Fault::bug(what),
        }
    }
}
