//! Who took part in a run: its agents by name, what each did in each stage, and what of each is in a window.
//!
//! An agent whose workers are full is hidden in the sum over eight: what is judged of a client is judged of these.

use std::borrow::Cow;
use std::collections::HashMap;

use plimsoll_model::interval::ClientCounts;
use plimsoll_model::{AgentHost, Environment, OpKind, SeriesCounts, SeriesId, environment::LOCAL_AGENT};

use super::{RunData, StageData};
use crate::codec::{SparseInterval, SparseSeries};
use crate::mark::LoadTimes;
use crate::sparse::SparseHistogram;

/// One agent of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunAgent {
    /// Its name, number and machine. Of one that is not `listed` only the name is known.
    pub host: AgentHost,
    /// The environment tells of it.
    pub listed: bool,
    /// Interval files that name it: 1, unless it never came (0), or somebody put a second one there.
    pub files: u32,
    /// One of them cannot be read to its end.
    pub damaged: bool,
    /// Index into [`super::RunData::hosts`]: the samples of its machine. `None`: there are none.
    pub samples: Option<usize>,
}

/// What one agent did in one stage, as far as its own file says. Times are nanoseconds since the run's start.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StageAgent {
    /// Index into [`super::RunData::agents`].
    pub agent: usize,
    /// Threads that it served the stage with.
    pub workers: u32,
    /// Ops in flight that it keeps at most; 0: not recorded.
    pub slots: u32,
    /// Its load began. Absent: its file says nothing of the stage.
    pub start_ns: Option<u64>,
    /// Its last op has ended. Absent: its file ends before that.
    pub end_ns: Option<u64>,
    /// End of its last slice.
    pub last_ns: Option<u64>,
    /// The run lost it: of what it did after this not all is known. Absent: it was not lost, or the record does not say so.
    pub lost_ns: Option<u64>,
    /// When its load began and ended in truth. Absent: it was lost, had no workers, or the record is older.
    pub times: Option<LoadTimes>,
    /// End of the first slice in which an op of it ended.
    pub first_done_ns: Option<u64>,
    /// Its workers' own counts, point by point as [`StageData::client`]; empty in a run of one agent, where they are the same.
    pub(crate) client: Vec<ClientCounts>,
}

impl StageAgent {
    /// Until when it was there: it ended in order, or was lost, or its last slice.
    pub fn seen_until_ns(&self) -> u64 {
        self.lost_ns.or(self.end_ns.max(self.last_ns)).or(self.start_ns).unwrap_or(0)
    }

    /// Whether it was given a part of the load: the start of a stage is recorded of all agents.
    fn has_work(&self) -> bool {
        self.workers > 0 || self.start_ns.is_none() || self.last_ns.is_some()
    }

    /// Whether nothing of it is known from some time before `at_ns` on: its file has no end of the stage, and no slice so late. One
    /// without work has nothing to be lost.
    pub fn is_lost_before(&self, at_ns: u64) -> bool {
        self.has_work() && self.end_ns.is_none() && self.seen_until_ns() < at_ns
    }
}

/// Where a stage was cut, so that it ends with the time in which all agents were there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageCut {
    /// The first of them was lost: nothing after that is looked at.
    pub at_ns: u64,
    /// When its load was stopped in truth, or was to end, where nobody was left to stop.
    pub stop_ns: u64,
}

impl StageData {
    /// Whether every agent that had a part in its load was lost while it ran: of how it ended nobody is left to tell.
    pub fn is_all_lost(&self) -> bool {
        let mut at_work = self.agents.iter().filter(|a| a.has_work()).peekable();
        at_work.peek().is_some() && at_work.all(|a| a.lost_ns.is_some() && a.end_ns.is_none())
    }

    /// Whether no agent that had a part in its load was lost before `at_ns`. What was cut off where one was lost has them all.
    pub fn has_all_before(&self, at_ns: u64) -> bool {
        let is_known = |a: &StageAgent| self.stop_ns.is_some() || a.lost_ns.is_some();
        self.cut.is_some() || !self.agents.iter().any(|a| is_known(a) && a.is_lost_before(at_ns))
    }

    /// Until when there was to be load: until it was stopped, or until its planned end, where nobody was left to stop.
    fn asked_until_ns(&self) -> u64 {
        let planned_ns = self.planned_ns.filter(|_| self.is_all_lost());
        self.stop_ns.or(planned_ns).unwrap_or(self.last_ns)
    }

    /// When the first agent was lost, where that was before the load was stopped. In a run that was killed all of them end somewhere: there
    /// only what was noticed while it ran is a loss. So it is of one that is alone.
    fn first_loss_ns(&self, grid_ns: u64) -> Option<u64> {
        let is_known = self.stop_ns.is_some() && self.agents.len() > 1;
        let stop_ns = self.asked_until_ns() / grid_ns * grid_ns;
        let known = |a: &&StageAgent| is_known || a.lost_ns.is_some();
        let lost = self.agents.iter().filter(known).filter(|a| a.is_lost_before(stop_ns));
        lost.map(StageAgent::seen_until_ns).min()
    }

    /// The end of the time in which all agents were there, where it ends with a loss in the measured window: what is after that is of
    /// fewer than were asked. `None`: there was no loss, or not one measured slice before it.
    pub fn all_until_ns(&self, grid_ns: u64) -> Option<u64> {
        let warm = self.warmup_end_ns?.div_ceil(grid_ns);
        self.first_loss_ns(grid_ns).filter(|at| warm < at / grid_ns)
    }

    /// The stage as if it had ended where the first agent was lost. `None`: there is nothing to cut off, or nothing would be left.
    fn up_to_a_loss(&self, grid_ns: u64) -> Option<Self> {
        let at_ns = self.all_until_ns(grid_ns)?;
        let mut cut = self.clone();
        cut.cut = Some(StageCut { at_ns, stop_ns: self.asked_until_ns() });
        cut.stop_ns = Some(at_ns);
        cut.stop_reason = Some("agent_lost".into());
        cut.last_ns = self.last_ns.min(at_ns);
        cut.end_ns = self.end_ns.map(|end| end.min(at_ns));
        Some(cut)
    }
}

impl RunData {
    /// The run as far as figures may go: each stage in which an agent was lost ends there. Series keep what was recorded after it.
    pub fn while_all_were_there(&self) -> Cow<'_, Self> {
        let cuts: Vec<Option<StageData>> = self.stages.iter().map(|s| s.up_to_a_loss(self.grid_ns)).collect();
        if cuts.iter().all(Option::is_none) {
            return Cow::Borrowed(self);
        }
        let mut cut = self.clone();
        for (stage, shorter) in cut.stages.iter_mut().zip(cuts) {
            if let Some(shorter) = shorter {
                *stage = shorter;
            }
        }
        Cow::Owned(cut)
    }
}

impl StageData {
    /// One agent's own counts of the points that lie wholly inside `[from_ns, to_ns)`.
    pub fn agent_points<'a>(
        &'a self,
        agent: &'a StageAgent,
        step_ns: u64,
        from_ns: u64,
        to_ns: u64,
    ) -> &'a [ClientCounts] {
        if self.agents.len() < 2 {
            return self.client_points(step_ns, from_ns, to_ns);
        }
        &agent.client[self.range(agent.client.len(), step_ns, from_ns, to_ns)]
    }

    /// The entry of an agent, made where there is none yet.
    pub(super) fn agent_mut(&mut self, agent: usize) -> &mut StageAgent {
        let at = self.agents.binary_search_by_key(&agent, |a| a.agent).unwrap_or_else(|at| {
            self.agents.insert(at, StageAgent { agent, ..StageAgent::default() });
            at
        });
        &mut self.agents[at]
    }
}

/// What one agent of several did in a window.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentTotals {
    /// Index into [`super::RunData::agents`].
    pub agent: usize,
    /// What its workers themselves did.
    pub client: ClientCounts,
    /// In order of their ids.
    pub series: Vec<AgentSeries>,
}

/// One agent's part of a series: its counts, and of the times only those of the response.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSeries {
    /// Whose part it is.
    pub id: SeriesId,
    /// Of the whole window.
    pub counts: SeriesCounts,
    /// `None`: there are too many agents, and windows that are kept by agent, to keep them (see [`Roll::keeps_times`]).
    pub response: Option<SparseHistogram>,
}

impl AgentSeries {
    fn new(id: SeriesId, with_times: bool) -> Self {
        let response = with_times.then(SparseHistogram::default);
        Self { id, counts: SeriesCounts::default(), response }
    }

    fn add(&mut self, s: &SparseSeries) {
        self.counts.merge(&s.counts);
        if let Some(all) = &mut self.response {
            all.merge(&s.response);
        }
    }
}

impl AgentTotals {
    pub(super) fn new(agent: usize) -> Self {
        Self { agent, ..Self::default() }
    }

    /// Adds a slice of this agent.
    pub(super) fn add(&mut self, interval: &SparseInterval, with_times: bool) {
        self.client.merge(&interval.client);
        for s in &interval.series {
            let at = self.series.binary_search_by_key(&s.id, |x| x.id).unwrap_or_else(|at| {
                // Parts are inside their upload: nobody asks for their times.
                let with_times = with_times && s.id.kind != OpKind::UploadPart;
                self.series.insert(at, AgentSeries::new(s.id, with_times));
                at
            });
            self.series[at].add(s);
        }
    }
}

/// The agents of a run, and which of them each interval file is of.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Roll {
    pub agents: Vec<RunAgent>,
    /// By the number of the file.
    of_file: Vec<usize>,
}

/// Histograms of single agents that are kept at most: some 60 MB of them.
const MOST_HISTOGRAMS: usize = 8192;
/// A name from a file is outside input: more of it is not repeated.
const MOST_NAME: usize = 64;

impl Roll {
    /// `sources`: the agent that each file names. One that the environment does not tell of follows those that it does.
    pub fn call(environment: &Environment, sources: &[String]) -> Self {
        let mut hosts = environment.agent_hosts();
        hosts.sort_by_key(|h| h.number);
        if environment.agents.is_empty() {
            match sources {
                // The one agent of a run without a table is on the one machine that is told of, whatever it is called.
                [one] => hosts[0].agent.clone_from(one),
                [] => {}
                several if several.iter().any(|s| s == LOCAL_AGENT) => {}
                _ => hosts.clear(),
            }
        }
        let mut agents: Vec<RunAgent> =
            hosts.into_iter().map(|host| RunAgent { host, listed: true, ..RunAgent::default() }).collect();
        let mut by_name: HashMap<String, usize> = HashMap::new();
        for (i, a) in agents.iter().enumerate() {
            by_name.entry(a.host.agent.clone()).or_insert(i);
        }
        let mut of_file = Vec::new();
        for source in sources {
            let i = *by_name.entry(source.clone()).or_insert_with(|| {
                let agent = source.chars().take(MOST_NAME).collect();
                let number = agents.len() as u32;
                let host = AgentHost { agent, number, ..AgentHost::default() };
                agents.push(RunAgent { host, ..RunAgent::default() });
                agents.len() - 1
            });
            agents[i].files += 1;
            of_file.push(i);
        }
        Self { agents, of_file }
    }

    /// Which of them has this name.
    pub fn number_of(&self, name: &str) -> Option<usize> {
        self.agents.iter().position(|a| a.host.agent == name)
    }

    pub fn note_damage(&mut self, file: usize) {
        let agent = self.of_file[file];
        self.agents[agent].damaged = true;
    }

    pub fn agent_of(&self, file: usize) -> usize {
        self.of_file[file]
    }

    /// Whether what each agent did has to be kept beside what all did.
    pub fn is_several(&self) -> bool {
        self.agents.len() > 1
    }

    /// Whether each agent's times can be kept of so many windows.
    pub fn keeps_times(&self, windows: usize) -> bool {
        self.agents.len().saturating_mul(windows) <= MOST_HISTOGRAMS
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::HostFacts;

    use super::*;

    fn roll(table: &[&str], files: &[&str]) -> Vec<(String, String, bool, u32)> {
        let of = |(number, agent): (usize, &&str)| AgentHost {
            agent: (*agent).into(),
            number: number as u32,
            machine: HostFacts { host: format!("host of {agent}"), ..HostFacts::default() },
            clock: None,
        };
        let agents = table.iter().enumerate().map(of).collect();
        let environment = Environment {
            machine: HostFacts { host: "here".into(), ..HostFacts::default() },
            agents,
            ..Environment::default()
        };
        let files: Vec<String> = files.iter().map(|f| (*f).to_owned()).collect();
        let all = Roll::call(&environment, &files).agents;
        all.into_iter().map(|a| (a.host.agent, a.host.machine.host, a.listed, a.files)).collect()
    }

    fn entry(agent: &str, host: &str, listed: bool, files: u32) -> (String, String, bool, u32) {
        (agent.into(), host.into(), listed, files)
    }

    #[test]
    fn one_file_without_a_table_is_of_this_machine() {
        assert_eq!(roll(&[], &["local"]), [entry("local", "here", true, 1)]);
        assert_eq!(roll(&[], &["bench-1"]), [entry("bench-1", "here", true, 1)]);
        assert_eq!(roll(&[], &[]), [entry("local", "here", true, 0)]);
    }

    #[test]
    fn whoever_the_table_has_not_is_kept_and_told_apart() {
        let two = [entry("a", "host of a", true, 1), entry("b", "host of b", true, 0)];
        assert_eq!(roll(&["a", "b"], &["a"]), two);
        assert_eq!(
            roll(&["a"], &["a", "x", "x"]),
            [entry("a", "host of a", true, 1), entry("x", "", false, 2)]
        );
        assert_eq!(roll(&[], &["a", "b"]), [entry("a", "", false, 1), entry("b", "", false, 1)]);
        assert_eq!(roll(&[], &["a", "local"]), [entry("local", "here", true, 1), entry("a", "", false, 1)]);
    }
}
