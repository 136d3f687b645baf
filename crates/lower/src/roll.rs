//! Who is there to carry a run out: all that dividing a stage needs to know of each agent.

use std::collections::BTreeSet;

use plimsoll_model::WorkerId;
use plimsoll_model::plan::{MachinesPart, Plan, PlanError, TargetSpec, Workload};

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

/// Parts of a workload on `target`, over the agents of the roll that it is for.
pub fn parts(plan: &Plan, w: &Workload, target: (&str, &TargetSpec), roll: &[Agent]) -> Vec<Division> {
    let for_it = on_machines(w.machines, roll);
    let agents = for_it.len() as u32;
    let (name, spec) = target;
    let threads = threads_of(plan, name, roll);
    let mut all = match spec {
        TargetSpec::Block(_) | TargetSpec::Files(_) => divide_jobs(w.jobs.unwrap_or(1), agents),
        // A simulation runs in one thread in any case.
        TargetSpec::Sim(_) => divide(w.in_flight(), agents, |_, _| 1),
        TargetSpec::Null | TargetSpec::S3(_) => {
            divide(w.in_flight(), agents, |place, slots| threads(for_it[place as usize], slots))
        }
    };
    all.iter_mut().for_each(|d| d.agent = for_it[d.agent as usize]);
    all
}

/// Numbers of the agents that are on a part of the machines, in order.
fn on_machines(part: Option<MachinesPart>, roll: &[Agent]) -> Vec<u32> {
    let Some(part) = part else { return (0..roll.len() as u32).collect() };
    let mut hosts: Vec<&str> = Vec::new();
    for a in roll {
        if !hosts.contains(&a.host.as_str()) {
            hosts.push(&a.host);
        }
    }
    let half = (hosts.len() / 2).max(1);
    let kept = match part {
        MachinesPart::Half => half,
        MachinesPart::BothHalves => (2 * half).min(hosts.len()),
    };
    hosts.truncate(kept);
    (0..).zip(roll).filter(|(_, a)| hosts.contains(&a.host.as_str())).map(|(n, _)| n).collect()
}

/// Whose files an agent reads where what is read is shared: those of the next one that is on another machine, so that none reads from its
/// own machine's cache; where all are on one, of the next.
pub fn whose_files(roll: &[Agent], seat: u32) -> u32 {
    let agents = roll.len() as u32;
    let host = |n: u32| roll.get(n as usize).map(|a| a.host.as_str());
    let after = |by: u32| (seat + by) % agents.max(1);
    (1..agents).map(after).find(|n| host(*n) != host(seat)).unwrap_or_else(|| after(1))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn on(hosts: &[&str]) -> Vec<Agent> {
        let agent = |(i, host): (usize, &&str)| Agent {
            name: format!("a{i}"),
            host: (*host).into(),
            cores: 4,
            beside: BTreeSet::new(),
        };
        hosts.iter().enumerate().map(agent).collect()
    }

    #[test]
    fn half_of_the_machines_and_twice_as_many() {
        use MachinesPart::{BothHalves, Half};
        let roll = on(&["x", "x", "y", "z", "w", "v"]);
        assert_eq!(on_machines(None, &roll), [0, 1, 2, 3, 4, 5]);
        assert_eq!(on_machines(Some(Half), &roll), [0, 1, 2]);
        assert_eq!(on_machines(Some(BothHalves), &roll), [0, 1, 2, 3, 4], "of five, four");
        assert_eq!(on_machines(Some(Half), &on(&["x", "x"])), [0, 1], "one machine is no half");
    }

    #[test]
    fn files_of_another_machine_are_read_where_there_is_one() {
        let of =
            |hosts: &[&str]| (0..hosts.len() as u32).map(|n| whose_files(&on(hosts), n)).collect::<Vec<_>>();
        assert_eq!(of(&["x", "x", "y", "y"]), [2, 2, 0, 0]);
        assert_eq!(of(&["x", "y", "z"]), [1, 2, 0]);
        assert_eq!(of(&["x", "x"]), [1, 0], "there is no other machine");
        assert_eq!(of(&["x"]), [0]);
    }

    /// As much in flight as from all of them, by the agents' own numbers, and each op once.
    #[test]
    fn a_part_of_the_machines_does_all_of_the_work() {
        let plan = Plan::from_toml(
            "version = 1\n[targets.s]\nkind = \"null\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\n\
             mix = { read = 1 }\nconcurrency = 10\n",
        )
        .unwrap();
        let mut w = plan.stages[0].workloads[0].clone();
        w.machines = Some(MachinesPart::Half);
        let target = plan.target_of(&w).unwrap();
        let parts = parts(&plan, &w, target, &on(&["a", "b", "a", "c", "d"]));
        assert_eq!(parts.iter().map(|d| d.slots).sum::<u32>(), 10);
        assert!(parts.iter().all(|d| d.of == parts.len() as u32));
        assert_eq!(parts.iter().map(|d| d.agent).collect::<BTreeSet<_>>(), [0, 1, 2].into());
    }
}
