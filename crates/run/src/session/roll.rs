//! Whether those who carry out a run are those that it is for.

use std::collections::BTreeSet;

use plimsoll_crew::Crew;
use plimsoll_model::count::{are, counted};
use plimsoll_model::{AgentHost, Environment, Plan};

use crate::error::RunError;

/// A run goes on with the agents that it began with: each has its record, and its share of what is there.
pub(super) fn same_roll(environment: &Environment, crew: &dyn Crew) -> Result<(), RunError> {
    let hosts = crew.hosts();
    let names = |hosts: &[AgentHost]| hosts.iter().map(|h| h.agent.clone()).collect::<BTreeSet<String>>();
    let (had, has) = (names(&environment.agents), names(&hosts));
    let list = |of: Vec<&String>| of.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    if had == has {
        return Ok(());
    }
    if has.is_empty() {
        return Err(RunError::input(
            format!(
                "the run is of {} of a fleet ({})",
                counted(had.len(), "agent"),
                list(had.iter().collect())
            ),
            "Continue it with --fleet",
        ));
    }
    if had.is_empty() {
        return Err(RunError::input(
            "the run is of one machine, not of a fleet",
            "Continue it without --fleet",
        ));
    }
    let (gone, new) = (list(had.difference(&has).collect()), list(has.difference(&had).collect()));
    let mut differs = Vec::new();
    if !gone.is_empty() {
        differs.push(format!("{gone} took part in it and cannot now"));
    }
    if !new.is_empty() {
        differs.push(format!("{new} did not"));
    }
    Err(RunError::input(
        format!("other agents than those of the run: {}", differs.join(", and ")),
        "Start the missing ones again under their names (plimsoll agent --name), choose with --agents, or start a new run",
    ))
}

/// A plan that was made for so many agents asks too much of fewer, and too little of more.
pub(super) fn are_so_many(plan: &Plan, there: usize) -> Result<(), RunError> {
    match plan.options.each {
        Some(agents) if agents as usize != there => Err(RunError::input(
            format!(
                "the plan was made for what {} together (--each), and there {} {there}",
                if agents == 1 { "1 agent does".into() } else { format!("{agents} agents do") },
                are(there)
            ),
            format!("Use so many (--fleet --agents {agents}), or remove options.each and what it multiplied"),
        )),
        _ => Ok(()),
    }
}
