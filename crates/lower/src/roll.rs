//! Who is there to carry a run out: all that dividing a stage needs to know of each agent.

use std::collections::BTreeSet;

use plimsoll_model::WorkerId;
use plimsoll_model::plan::{Plan, PlanError, TargetSpec, Workload};

use crate::division::{Division, divide, divide_jobs};
use crate::workers::{threads_for, worker_number};

/// One agent of a run. Its number is its place in the roll, which is the same for the whole run and for all who ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// What its records are called.
    pub name: String,
    /// The machine that it runs on, as its samples call it.
    pub host: String,
    /// CPUs that it may use.
    pub cores: u32,
    /// Targets whose storage runs on the same machine: half of the CPUs are left to it.
    pub beside: BTreeSet<String>,
}

/// Parts of a workload on `target`, over all agents of the roll.
pub fn parts(plan: &Plan, w: &Workload, target: (&str, &TargetSpec), roll: &[Agent]) -> Vec<Division> {
    let agents = roll.len() as u32;
    let (name, spec) = target;
    match spec {
        TargetSpec::Block(_) | TargetSpec::Files(_) => divide_jobs(w.jobs.unwrap_or(1), agents),
        // A simulation runs in one thread in any case.
        TargetSpec::Sim(_) => divide(w.in_flight(), agents, |_, _| 1),
        TargetSpec::Null | TargetSpec::S3(_) => divide(w.in_flight(), agents, threads_of(plan, name, roll)),
    }
}

/// How many threads an agent has for so many ops in flight on a target.
fn threads_of(plan: &Plan, target: &str, roll: &[Agent]) -> impl Fn(u32, u32) -> u32 {
    move |agent, slots| {
        let agent = &roll[agent as usize];
        threads_for(plan.options.threads, slots, agent.cores, agent.beside.contains(target))
    }
}

/// Who is to do this part, where each agent's workers of this workload are numbered from `first` on.
pub fn worker_of(part: &Division, first: u16) -> WorkerId {
    WorkerId { agent: part.agent, worker: worker_number(first, part.thread) }
}

/// Ops in flight that fill a data set, at the least and at the most: nothing is measured, so few would take long and many hurt.
const FILLING: (u32, u32) = (16, 64);

/// Parts of the work of putting `count` objects of a workload there before its stage.
pub fn fill_parts(plan: &Plan, w: &Workload, count: u64, roll: &[Agent]) -> Result<Vec<Division>, PlanError> {
    let (name, _) = plan.target_of(w)?;
    let slots =
        w.concurrency.clamp(FILLING.0, FILLING.1).min(u32::try_from(count).unwrap_or(u32::MAX)).max(1);
    Ok(divide(slots, roll.len() as u32, threads_of(plan, name, roll)))
}
