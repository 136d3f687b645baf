//! A stage's window agent by agent: each one's workers, what they did, and the samples of the machine that they were on.
//!
//! Whether there is one agent or a thousand, what is judged of a client is judged of these, before anything is summed up: one of
//! eight that is full is an eighth busy in the sum.

use std::collections::BTreeSet;

use plimsoll_model::interval::ClientCounts;
use plimsoll_model::{OpKind, Sample, SeriesCounts, SeriesId};
use plimsoll_store::{HostSamples, RunAgent, RunData, StageAgent, StageData, Totals};

use super::resources::Resources;

/// One agent in a stage's window.
#[derive(Debug)]
pub struct AgentPart<'a> {
    pub agent: &'a RunAgent,
    /// As findings name it; `None` in a run of one agent, where nobody asks which.
    pub name: Option<&'a str>,
    /// Its own record of the stage.
    pub stage: &'a StageAgent,
    pub workers: u32,
    /// Ops in flight that it keeps at most; 0: not recorded.
    pub slots: u32,
    /// Its workers' counts, step by step.
    pub points: &'a [ClientCounts],
    /// The same over the whole window.
    pub client: ClientCounts,
    pub done: Vec<Done>,
}

/// What an agent did of one series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Done {
    pub id: SeriesId,
    pub counts: SeriesCounts,
}

/// The agents that have a part in the window, in order of their numbers.
pub fn of_window<'a>(data: &'a RunData, stage: &'a StageData, totals: &Totals) -> Vec<AgentPart<'a>> {
    let (from, to) = (totals.window.from * data.grid_ns, totals.window.to * data.grid_ns);
    let part = |own: &'a StageAgent| {
        let agent = data.agents.get(own.agent)?;
        let (client, done) = part_of(data, totals, own.agent);
        Some(AgentPart {
            agent,
            name: data.name_of(agent),
            stage: own,
            workers: own.workers,
            slots: own.slots,
            points: stage.agent_points(own, data.step_ns, from, to),
            client,
            done,
        })
    };
    stage.agents.iter().filter_map(part).collect()
}

/// What an agent did of the totals: all of it, where it is the only one.
fn part_of(data: &RunData, totals: &Totals, agent: usize) -> (ClientCounts, Vec<Done>) {
    if !data.is_several() {
        let done = totals.series.iter().map(|s| Done { id: s.id, counts: s.counts });
        return (totals.client, done.collect());
    }
    let Ok(at) = totals.agents.binary_search_by_key(&agent, |t| t.agent) else { return Default::default() };
    let own = &totals.agents[at];
    (own.client, own.series.iter().map(|s| Done { id: s.id, counts: s.counts }).collect())
}

/// Whether a series is a load of its own: parts are inside their upload, and syncs that belong to writes come with them.
pub fn is_load(stage: &StageData, id: SeriesId) -> bool {
    let mix = stage.spec.workloads.get(usize::from(id.workload)).map(|w| &w.mix);
    id.kind != OpKind::UploadPart && mix.is_some_and(|m| m.contains_key(&id.kind))
}

pub fn samples_of<'a>(data: &'a RunData, agent: &RunAgent) -> &'a [Sample] {
    data.samples_of(agent).map_or(&[], |h| &h.samples)
}

/// Whether other agents of the run are on the same machine, whose samples hold the counters of one process only.
pub fn shares_machine(data: &RunData, agent: &RunAgent) -> bool {
    agent.samples.is_some() && data.agents.iter().filter(|a| a.samples == agent.samples).count() > 1
}

/// What its machine's counters say of one agent in a window.
pub fn resources_of(data: &RunData, totals: &Totals, agent: &RunAgent, client: &ClientCounts) -> Resources {
    let (samples, nics) = (samples_of(data, agent), &agent.host.machine.nics);
    let (from, to) = (totals.window.from * data.grid_ns, totals.window.to * data.grid_ns);
    if !shares_machine(data, agent) {
        return Resources::of(samples, nics, from, to);
    }
    let own_cpu_s = (client.cpu_ns > 0).then(|| client.cpu_ns as f64 / 1e9);
    Resources::beside_others(samples, nics, (from, to), own_cpu_s)
}

/// Whether there are samples of each agent's process in the stage, and not of one of several on a machine.
pub fn is_each_sampled(data: &RunData, stage: &StageData) -> bool {
    let mut agents = stage.agents.iter().filter_map(|a| data.agents.get(a.agent));
    is_sampled(data, stage) && !agents.any(|a| shares_machine(data, a))
}

/// Whether there are samples of each machine that the stage's agents are on.
pub fn is_sampled(data: &RunData, stage: &StageData) -> bool {
    let sampled = |a: &StageAgent| data.agents.get(a.agent).is_some_and(|a| data.samples_of(a).is_some());
    stage.agents.iter().all(sampled)
}

/// The machines that the stage's agents are on, each once, with one of its agents.
pub fn machines<'a>(data: &'a RunData, stage: &StageData) -> Vec<(&'a RunAgent, &'a HostSamples)> {
    let mut known = BTreeSet::new();
    let of = |agent: &'a RunAgent| {
        let host = data.samples_of(agent)?;
        known.insert(agent.samples).then_some((agent, host))
    };
    stage.agents.iter().filter_map(|a| data.agents.get(a.agent)).filter_map(of).collect()
}

/// The same of the busiest agent of a window: the client is as near to its limit as that one.
pub fn busiest(totals: &Totals) -> f64 {
    let own = totals.agents.iter().filter_map(|a| a.client.busy_fraction()).reduce(f64::max);
    own.or_else(|| totals.client.busy_fraction()).unwrap_or(0.0)
}
