//! Where a run is: the figures of its last second and of its stage so far, from what it has recorded.

use std::collections::BTreeMap;

use plimsoll_model::event::Phase;
use plimsoll_model::text::clean;
use plimsoll_model::{Histogram, Outcome, RunSummary};
use plimsoll_store::{Mark, RunData, StageData, Totals};
use serde::Serialize;

/// Agents that are shown by themselves while a run goes on: the slowest. The others are one sentence.
const AGENTS_SHOWN: usize = 12;

/// A percentile is told once so many ops lie beyond it: of fewer it is one op's chance.
const BEYOND: u64 = 10;

/// What only the process that conducts a run knows of it, and no record has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveHints {
    /// What it is doing, in its own words: making a data set, cleaning up.
    pub doing: Option<String>,
    /// Workers that have handed over nothing for longer than is waited for.
    pub late: usize,
}

/// `now` of `web/src/feed.ts`. Rates, ops in flight and busy share are of the last whole second on record; latencies and outcomes of the
/// stage's measured part so far, or of its warm-up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LiveNow {
    /// `warm-up`, `measuring`, `draining`; `between stages` where there is no load.
    pub phase: String,
    /// Of the stage, as the plan or the controller calls it; empty: none has begun.
    pub stage: String,
    /// From 1; 0: none has begun.
    pub stage_number: u32,
    /// Load on record in this stage, warm-up included, seconds.
    pub elapsed_s: f64,
    /// Until the planned end of its load; null: it ends by its work, or when a search has seen enough.
    pub remaining_s: Option<f64>,
    /// Of ops that ended well.
    pub ops_per_s: Option<f64>,
    /// Their payload.
    pub bytes_per_s: Option<f64>,
    /// Response; from the merged histograms of all that ended well. Null, as those below, while fewer than ten ops took longer.
    pub p50_ns: Option<u64>,
    /// Likewise.
    pub p99_ns: Option<u64>,
    /// Likewise.
    pub p999_ns: Option<u64>,
    /// Mean over the second.
    pub in_flight: Option<f64>,
    /// Share of time in which the workers did not wait, 0 to 1.
    pub busy_fraction: Option<f64>,
    /// Ops by how they ended; only what occurred.
    pub outcomes: BTreeMap<String, u64>,
    /// What these figures lack, a sentence each.
    pub missing: Vec<String>,
    /// What the run is doing beside its load.
    pub doing: Option<String>,
    /// Agents that are not shown by themselves, in a sentence.
    pub other_agents: Option<String>,
}

impl LiveNow {
    /// Of a run that has recorded nothing yet.
    pub fn before(hints: &LiveHints) -> Self {
        Self {
            phase: "between stages".into(),
            stage: String::new(),
            stage_number: 0,
            elapsed_s: 0.0,
            remaining_s: None,
            ops_per_s: None,
            bytes_per_s: None,
            p50_ns: None,
            p99_ns: None,
            p999_ns: None,
            in_flight: None,
            busy_fraction: None,
            outcomes: BTreeMap::new(),
            missing: Vec::new(),
            doing: hints.doing.as_deref().map(|t| clean(t).into_owned()),
            other_agents: None,
        }
    }

    /// Of the stage that came last. `totals`: of its measured part, or of all of it.
    pub fn of(data: &RunData, totals: Option<&Totals>, hints: &LiveHints) -> Self {
        let mut now = Self::before(hints);
        now.missing = missing(data, hints);
        let Some(stage) = data.stages.last() else { return now };
        now.stage = stage.spec.name.clone().unwrap_or_else(|| {
            stage.spec.workloads.iter().map(|w| w.name.as_str()).collect::<Vec<_>>().join(" + ")
        });
        now.stage = clean(&now.stage).into_owned();
        now.stage_number = stage.index + 1;
        let ended = stage.end_ns.is_some();
        now.phase = match stage {
            _ if ended => "between stages".into(),
            s if s.stop_ns.is_some() => Phase::Draining.name().into(),
            s if s.warmup_end_ns.is_some() => Phase::Measuring.name().into(),
            _ => Phase::Warmup.name().into(),
        };
        let load_ns = stage.last_ns.saturating_sub(stage.start_ns);
        now.elapsed_s = load_ns as f64 / 1e9;
        let left_s = |planned_ns: u64| planned_ns.saturating_sub(stage.last_ns) as f64 / 1e9;
        now.remaining_s = stage.planned_ns.filter(|_| !ended).map(left_s);
        if !ended {
            now.last_second(data, stage);
        }
        if let Some(totals) = totals {
            now.so_far(totals);
        }
        now
    }

    fn last_second(&mut self, data: &RunData, stage: &StageData) {
        let step_ns = data.step_ns.max(1);
        let points = (1_000_000_000 / step_ns).max(1) as usize;
        let there = stage.client.len().min(points);
        let seconds = there as f64 * step_ns as f64 / 1e9;
        if there < points {
            return;
        }
        let tail = stage.series.values().flat_map(|p| &p[p.len().saturating_sub(there)..]);
        let (ok, bytes) = tail.fold((0, 0), |(n, b), p| (n + p.counts.ok(), b + p.counts.bytes_ok));
        self.ops_per_s = Some(ok as f64 / seconds);
        let moves_bytes = stage.series.keys().any(|id| id.kind.moves_bytes());
        self.bytes_per_s = moves_bytes.then_some(bytes as f64 / seconds);
        let clients = &stage.client[stage.client.len() - there..];
        let in_flight_ns: u128 = clients.iter().map(|c| c.in_flight_ns).sum();
        self.in_flight = Some(in_flight_ns as f64 / (seconds * 1e9));
        let sum = |f: fn(&plimsoll_model::interval::ClientCounts) -> u64| clients.iter().map(f).sum::<u64>();
        let (alive, waited) = (sum(|c| c.alive_ns), sum(|c| c.waited_ns));
        self.busy_fraction = (alive > 0).then(|| (1.0 - waited as f64 / alive as f64).clamp(0.0, 1.0));
    }

    fn so_far(&mut self, totals: &Totals) {
        let mut all = Histogram::new();
        totals.series.iter().for_each(|s| all.merge(&s.response));
        let known = |least: u64, q: f64| (all.count() >= least).then(|| all.quantile(q));
        (self.p50_ns, self.p99_ns, self.p999_ns) =
            (known(2 * BEYOND, 0.5), known(100 * BEYOND, 0.99), known(1000 * BEYOND, 0.999));
        for o in Outcome::ALL {
            let n: u64 = totals.series.iter().map(|s| s.counts.outcomes[o.index()]).sum();
            if n > 0 {
                self.outcomes.insert(o.name().to_owned(), n);
            }
        }
    }
}

/// Whatever is not in the figures is said, one sentence each.
fn missing(data: &RunData, hints: &LiveHints) -> Vec<String> {
    let mut out = Vec::new();
    for mark in &data.marks {
        if let Mark::AgentLost { agent, at_ns, .. } = mark {
            out.push(format!(
                "Agent {agent} is lost: nothing of it is known after {:.1} s.",
                *at_ns as f64 / 1e9
            ));
        }
    }
    if hints.late > 0 {
        let s = if hints.late == 1 { "worker is" } else { "workers are" };
        out.push(format!("{} {s} late: what they did last is not in these figures yet.", hints.late));
    }
    for source in &data.observed {
        match source.scrapes.last() {
            None => out.push(format!("{} has said nothing yet.", source.observes)),
            Some(s) => {
                out.extend(s.gap.as_ref().map(|why| format!("{} does not answer: {why}.", source.observes)));
            }
        }
    }
    if !data.skipped.is_empty() {
        out.push(format!("Records unknown to this version: {}.", data.skipped));
    }
    out.iter().map(|text| clean(text).into_owned()).collect()
}

/// Leaves the slowest agents in the summary, slowest first; gives the sentence about the others.
pub fn slowest_first(summary: &mut RunSummary) -> Option<String> {
    let agents = &mut summary.agents;
    agents.sort_by(|a, b| a.ops_per_s.total_cmp(&b.ops_per_s).then_with(|| a.agent.cmp(&b.agent)));
    if agents.len() <= AGENTS_SHOWN {
        return None;
    }
    let others = agents.split_off(AGENTS_SHOWN);
    let (low, high) = (others.first()?.ops_per_s, others.last()?.ops_per_s);
    Some(format!(
        "The slowest {AGENTS_SHOWN} agents; {} more did {low:.1} to {high:.1} op/s each.",
        others.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::summary::AgentSummary;

    #[test]
    fn of_a_thousand_agents_the_slowest_are_shown_and_the_others_are_a_sentence() {
        let agent = |n: u32| AgentSummary {
            agent: format!("lg-{n}"),
            ops_per_s: if n == 500 { 1.0 } else { 100.0 + f64::from(n) },
            ..AgentSummary::default()
        };
        let mut summary = RunSummary { agents: (0..1000).map(agent).collect(), ..RunSummary::default() };
        let others = slowest_first(&mut summary).unwrap();
        assert_eq!((summary.agents.len(), summary.agents[0].agent.as_str()), (AGENTS_SHOWN, "lg-500"));
        assert_eq!(others, "The slowest 12 agents; 988 more did 111.0 to 1099.0 op/s each.");
        assert_eq!(slowest_first(&mut RunSummary::default()), None);
    }

    #[test]
    fn what_a_run_does_before_its_first_load_is_said_and_is_clean() {
        let hints = LiveHints { doing: Some("filling \u{1b}[2J".into()), late: 0 };
        let now = LiveNow::before(&hints);
        assert_eq!((now.stage_number, now.ops_per_s), (0, None));
        assert!(!now.doing.unwrap().contains('\u{1b}'));
    }
}
