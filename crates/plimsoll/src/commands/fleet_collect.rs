//! `fleet collect`: what agents kept of a run that lost them, or its conductor, reaches its record, and the run is judged.

use plimsoll_fleet::FleetOptions;
use plimsoll_model::count::counted;
use plimsoll_model::text::clean;
use plimsoll_run::{AgentCollected, Finished};

use super::fleet::CollectArgs;
use crate::fault::{Exit, Fault};
use crate::progress::Progress;
use crate::signals::{self, ProcessRole};
use crate::{fleet_use, measure, output, runs_dir};

pub fn collect(a: &CollectArgs) -> Result<Exit, Fault> {
    let dir = runs_dir::find(a.output.runs_dir.as_deref(), &a.run)?;
    let id = dir.id();
    if dir.is_running() {
        return Err(Fault::input(
            format!("run {id} is still in progress"),
            "Wait until it ends: it asks its agents itself for what it lacks.",
        ));
    }
    if dir.env()?.environment.agents.is_empty() {
        return Err(Fault::input(
            format!("run {id} is of this machine alone: no agent has anything of it"),
            "Give a run that was made with --fleet: `plimsoll runs list`.",
        ));
    }
    signals::install(ProcessRole::Run);
    let fleet = fleet_use::held(&a.fleet.name, FleetOptions::default())?;
    let progress = Progress::new(a.output.quiet);
    let interrupt = signals::interrupt();
    let result = plimsoll_run::collect(dir.path(), &fleet, &interrupt, |event| progress.show(&event));
    progress.finish();
    let collected = result?;
    tell(&id, &collected.agents);
    let waiting = plimsoll_store::journal::pending(&dir.journal_path())?.len();
    if waiting > 0 {
        output::tell(format_args!(
            "plimsoll: {waiting} thing(s) that the run made are still there; `plimsoll cleanup {id}` removes them"
        ));
    }
    let exit_code = plimsoll_judge::exit_code(&collected.summary, false);
    let path = dir.path().to_owned();
    measure::show(&Finished { id, path, summary: collected.summary, exit_code, left: Vec::new() }, &a.output)
}

/// A line for each agent of which something lacked.
fn tell(id: &str, agents: &[AgentCollected]) {
    if agents.is_empty() {
        return output::tell(format_args!("plimsoll: run {id} has all that its agents kept"));
    }
    for a in agents {
        let missing = if a.missing.is_empty() {
            "nothing is missing".to_owned()
        } else {
            format!("missing: {}", clean(&a.missing))
        };
        output::tell(format_args!(
            "plimsoll: agent {}: {} with {} came that the run did not have; {missing}",
            a.agent,
            counted(a.slices, "slice"),
            counted(a.ops, "op")
        ));
    }
}
