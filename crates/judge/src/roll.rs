//! The roll of a run with several agents: who was there, who was not, and what each of them did.

use plimsoll_model::summary::{AgentSummary, LatencySummary};
use plimsoll_model::{Finding, Level};
use plimsoll_stats::judge::AGENT_LOST;
use plimsoll_store::{AgentTotals, Mark, RunAgent, RunData, SparseHistogram, StageAgent, StageData, Totals};

use super::agents::{is_load, resources_of};

/// Of an agent that was killed: it cuts a frame of its own record after a quarter of a second, and a slice is a tenth.
const TAIL_S: u32 = 1;
/// Names that are told at the most.
const MOST_NAMED: usize = 8;

/// Who is missing, and who is there though nobody told of it.
pub fn findings(data: &RunData, totals: &[Totals]) -> Vec<Finding> {
    if !data.is_several() {
        return Vec::new();
    }
    let names = |pick: fn(&RunAgent) -> bool| -> Vec<&str> {
        data.agents.iter().filter(|a| pick(a)).map(|a| a.host.agent.as_str()).collect()
    };
    let mut out = Vec::new();
    let absent = names(|a| a.files == 0);
    if !absent.is_empty() {
        let text = format!(
            "Of {} agents, {} left no record ({}), so their share is missing from the run. Measure again, with all \
             agents or without these.",
            data.agents.len(),
            absent.len(),
            list(&absent)
        );
        let missing = absent.len() as f64 / data.agents.len() as f64;
        out.push(Finding::new("V24", "agent_absent", Level::Invalid, text).measured(missing, 0.0));
    }
    let unlisted = names(|a| !a.listed);
    if !unlisted.is_empty() {
        let text = format!(
            "The run's table of agents does not list {} that left a record ({}). Their ops count, but their machine \
             is not known, so its CPU and network could not be checked.",
            unlisted.len(),
            list(&unlisted)
        );
        out.push(Finding::new("F17", "unlisted_agents", Level::Qualified, text));
    }
    let doubled = names(|a| a.files > 1);
    if !doubled.is_empty() {
        let text = format!(
            "{} agent(s) have more than one file of intervals ({}). The files were added up, but their sum is not \
             what the agents did: a run has one file per agent.",
            doubled.len(),
            list(&doubled)
        );
        out.push(Finding::new("F17", "doubled_agents", Level::Invalid, text));
    }
    out.extend(delivered(data));
    out.extend(table_of(data, totals));
    let strangers: Vec<&str> = data
        .clients()
        .filter(|h| data.agents.iter().all(|a| a.listed && a.host.machine.host != h.host))
        .map(|h| h.host.as_str())
        .collect();
    if !strangers.is_empty() {
        let text = format!(
            "Samples of {} machine(s) without an agent of the run ({}) were not used.",
            strangers.len(),
            list(&strangers)
        );
        out.push(Finding::new("F17", "unlisted_hosts", Level::Info, text));
    }
    out
}

/// A stage of which nobody was left to see the end: its time is not what was asked for, whatever a loss is taken for.
pub fn all_lost(stage: &StageData) -> Option<Finding> {
    if !stage.is_all_lost() {
        return None;
    }
    let lost = stage.agents.iter().filter_map(|a| a.lost_ns);
    let (agents, until_ns) = (lost.clone().count(), lost.max().unwrap_or(stage.start_ns));
    let after_s = |ns: u64| ns.saturating_sub(stage.start_ns) as f64 / 1e9;
    let who = if agents == 1 { "The only agent" } else { "All agents" };
    let were = if agents == 1 { "was" } else { "were" };
    let asked = stage
        .planned_ns
        .map_or(String::new(), |end_ns| format!(", and the load was to last {:.1} s", after_s(end_ns)));
    let text = format!(
        "{who} of stage {} {were} lost: its record ends {:.1} s after the load began{asked}. Look at why, and measure again.",
        stage.index + 1,
        after_s(until_ns)
    );
    let missing =
        stage.planned_ns.map(|end_ns| 1.0 - after_s(until_ns) / after_s(end_ns).max(f64::MIN_POSITIVE));
    Some(Finding::new("V24", AGENT_LOST, Level::Invalid, text).measured(missing.unwrap_or(1.0).max(0.0), 0.0))
}

/// What agents had kept, and what was fetched of it after they, or their conductor, had been lost: one for each agent and stage.
fn delivered(data: &RunData) -> Vec<Finding> {
    let mut out = Vec::new();
    for mark in &data.marks {
        let Mark::Delivered { stage, at_ns, until_ns, agent, slices, whole, went_down, .. } = mark else {
            continue;
        };
        let Some(of) = data.stages.iter().find(|s| s.index == *stage) else { continue };
        let after_s = |ns: u64| ns.saturating_sub(of.start_ns) as f64 / 1e9;
        let number = data.agents.iter().position(|a| &a.host.agent == agent);
        let was_lost = of.agents.iter().any(|a| Some(a.agent) == number && a.lost_ns.is_some());
        let (who, then) = if was_lost {
            ("it", " It counts only for the time in which all agents were there.")
        } else {
            ("the conductor", "")
        };
        let tail = if *whole {
            "It is whole.".to_owned()
        } else if *went_down == Some(true) {
            "It has no end: the agent's machine went down, and what had not reached its disk by then is lost; how much that is nobody \
             knows."
                .to_owned()
        } else {
            let or_down = if went_down.is_none() { " or its machine went down" } else { "" };
            format!(
                "It has no end: the agent was killed (then at most {TAIL_S} s of its load is not in it), or its disk was full{or_down} \
                 (then it may be more)."
            )
        };
        let text = format!(
            "After {who} was lost, its own record of stage {} was fetched: {slices} slice(s) that had not come while it \
             ran, from {:.1} s to {:.1} s of load. {tail}{then}",
            stage + 1,
            after_s(*at_ns),
            after_s(*until_ns)
        );
        let finding = Finding::new("F25", "delivered_late", Level::Info, text);
        out.push(finding.measured(*slices as f64, 0.0).of_agent(Some(agent)));
    }
    out
}

fn list(names: &[&str]) -> String {
    let more = names.len().saturating_sub(MOST_NAMED);
    let shown = names[..names.len() - more].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// Of the windows that count, those in which all agents were there that had a part in the load: only of these are shares of one time. All of
/// them, where there is none of that kind.
fn comparable<'a>(data: &RunData, totals: &'a [Totals]) -> Vec<&'a Totals> {
    let has_all = |t: &&Totals| {
        let stage = data.stages.iter().find(|s| s.index == t.window.stage);
        stage.is_none_or(|s| s.has_all_before(t.window.to * data.grid_ns))
    };
    let with_all: Vec<&Totals> = totals.iter().filter(has_all).collect();
    if with_all.is_empty() { totals.iter().collect() } else { with_all }
}

/// Which windows the table of agents is of, where it is not of all.
fn table_of(data: &RunData, totals: &[Totals]) -> Option<Finding> {
    let of = comparable(data, totals);
    if of.len() == totals.len() {
        return None;
    }
    let stages: Vec<String> = of.iter().map(|t| (t.window.stage + 1).to_string()).collect();
    let stages: Vec<&str> = stages.iter().map(String::as_str).collect();
    let text = format!(
        "The table of agents is of {} of {} stages ({}): in the others an agent was missing, and shares over unlike times do \
         not compare.",
        of.len(),
        totals.len(),
        list(&stages)
    );
    Some(Finding::new("F17", "agents_of_some_stages", Level::Info, text).measured(of.len() as f64, 0.0))
}

/// What each of several agents did, over all windows that count and had all of them in it.
pub fn summaries(data: &RunData, totals: &[Totals]) -> Vec<AgentSummary> {
    if !data.is_several() {
        return Vec::new();
    }
    let mut sums: Vec<Sum> = data.agents.iter().map(|_| Sum::default()).collect();
    for t in comparable(data, totals) {
        let Some(stage) = data.stages.iter().find(|s| s.index == t.window.stage) else { continue };
        for own in &t.agents {
            let Some(sum) = sums.get_mut(own.agent) else { continue };
            sum.seconds += t.window.seconds(data.grid_ns);
            sum.client.merge(&own.client);
            sum.saw(data, stage, t, own);
            for s in own.series.iter().filter(|s| is_load(stage, s.id)) {
                sum.ok = sum.ok.saturating_add(s.counts.ok());
                sum.bytes = sum.bytes.saturating_add(s.counts.bytes_ok);
                match &s.response {
                    Some(times) => sum.times.merge(times),
                    None => sum.without_times = true,
                }
            }
        }
    }
    for own in data.stages.iter().flat_map(|s| s.agents.iter().map(move |a| (s, a))) {
        let (stage, own) = own;
        if let Some(sum) = sums.get_mut(own.agent) {
            sum.timed(stage, own);
        }
    }
    let load_ns = data.stages.first().map_or(0, |s| s.start_ns);
    let all: f64 = sums.iter().map(|s| s.ok as f64).sum();
    data.agents.iter().zip(&sums).map(|(agent, sum)| sum.summary(agent, all, load_ns)).collect()
}

#[derive(Default)]
struct Sum {
    seconds: f64,
    ok: u64,
    bytes: u64,
    client: plimsoll_model::interval::ClientCounts,
    times: SparseHistogram,
    /// Some were not kept: what there is of them is not all.
    without_times: bool,
    /// Shares of its machine's CPU time and of its interface's speed: the sum of each share times the seconds that it was seen for, and of
    /// these seconds.
    cpu: (f64, f64),
    nic: (f64, f64),
    skew_ns: Option<i64>,
    first_ns: Option<u64>,
    last_ns: Option<u64>,
}

impl Sum {
    /// What its machine's counters say of a window.
    fn saw(&mut self, data: &RunData, stage: &StageData, t: &Totals, own: &AgentTotals) {
        let Some(agent) = data.agents.get(own.agent) else { return };
        let r = resources_of(data, t, agent, &own.client);
        // A simulated client costs what the simulation costs.
        let virtual_time = stage.spec.workloads.iter().any(|w| {
            data.plan.target_of(w).is_ok_and(|(_, t)| matches!(t, plimsoll_model::plan::TargetSpec::Sim(_)))
        });
        let seconds = t.window.seconds(data.grid_ns);
        for (share, sum) in [(r.own_cpu, &mut self.cpu), (r.nic_share, &mut self.nic)] {
            if let Some(share) = share.filter(|_| !virtual_time) {
                *sum = (sum.0 + share * seconds, sum.1 + seconds);
            }
        }
    }

    /// When its load began and ended in a stage.
    fn timed(&mut self, stage: &StageData, own: &StageAgent) {
        if let Some(skew) = start_skew_ns(stage, own) {
            self.skew_ns = Some(self.skew_ns.filter(|most| most.abs() >= skew.abs()).unwrap_or(skew));
        }
        let first = own.first_done_ns;
        self.first_ns = [self.first_ns, first].into_iter().flatten().min();
        let last = own.lost_ns.or(own.times.map(|t| t.finished_ns)).filter(|_| first.is_some());
        self.last_ns = self.last_ns.max(last);
    }

    fn summary(&self, agent: &RunAgent, all: f64, load_ns: u64) -> AgentSummary {
        let mean = |(sum, seconds): (f64, f64)| (seconds > 0.0).then(|| sum / seconds);
        let since = |at: Option<u64>| at.map(|at| at.saturating_sub(load_ns) as f64 / 1e9);
        let per = |x: f64, of: f64| if of > 0.0 { x / of } else { 0.0 };
        let times = LatencySummary::of(&self.times.to_dense()).filter(|_| !self.without_times);
        AgentSummary {
            agent: agent.host.agent.clone(),
            host: agent.host.machine.host.clone(),
            ops_per_s: per(self.ok as f64, self.seconds),
            bytes_per_s: (self.bytes > 0).then(|| per(self.bytes as f64, self.seconds)),
            share: per(self.ok as f64, all),
            busy_fraction: self.client.busy_fraction().unwrap_or(0.0),
            p50_ns: times.as_ref().and_then(|t| t.p50),
            p99_ns: times.as_ref().and_then(|t| t.p99),
            clock_offset_ns: agent.host.clock.map(|c| c.offset_ns),
            clock_bound_ns: agent.host.clock.map(|c| c.bound_ns),
            cpu_fraction: mean(self.cpu),
            nic_fraction: mean(self.nic),
            start_skew_ns: self.skew_ns,
            first_op_s: since(self.first_ns),
            last_op_s: since(self.last_ns),
        }
    }
}

/// How much later than all were told an agent's load began in a stage.
pub fn start_skew_ns(stage: &StageData, own: &StageAgent) -> Option<i64> {
    let (began_ns, told_ns) = (own.times?.began_ns, own.start_ns?.max(stage.start_ns));
    Some((i128::from(began_ns) - i128::from(told_ns)).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
}
