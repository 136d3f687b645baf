//! The end of a stage: its marks, and what the controller gets of it.

use plimsoll_control::{Observation, machines};
use plimsoll_crew::CrewError;
use plimsoll_engine::WorkerEnd;
use plimsoll_model::Series;
use plimsoll_model::event::Event;
use plimsoll_model::interval::ClientCounts;
use plimsoll_store::Mark;

use super::{Collector, Sinks, StageEnd, report, title};
use crate::error::RunError;

impl Collector<'_> {
    /// The marks of the end, and what the controller gets.
    pub(super) fn finish(
        mut self,
        ends: Vec<WorkerEnd>,
        sinks: &mut Sinks<'_>,
    ) -> Result<StageEnd, RunError> {
        let early = match (&self.unheld, self.ended_by_loss, self.ended_by_cost, self.stopped_early) {
            (Some(_), ..) => Some("unheld"),
            (_, true, ..) => Some("agent_lost"),
            (_, _, true, _) => Some("cost_budget"),
            _ if self.ended_by_guard => Some("guard"),
            (.., true) => Some("controller"),
            _ => None,
        };
        let (stop_ns, reason) = report::stop_of(&ends, early);
        // What is known of a lost agent is of this stage, too: the next one begins behind it.
        let known_ns = ends.iter().map(|e| e.finished_ns).chain(self.lost.values().copied());
        let end_ns = known_ns.max().unwrap_or(self.start_ns).max(stop_ns);
        let stage = self.s.order.index;
        if stop_ns > self.warm_ns {
            let due =
                |agent| self.of_agent(agent, self.warm()).filter(|_| !self.warm_marked.contains(&agent));
            sinks.streams.mark_each(due)?;
        }
        let workloads = self.s.order.stage.workloads.len();
        let reports = (0..self.s.roll.len() as u32).map(|agent| {
            let own: Vec<&WorkerEnd> = ends.iter().filter(|e| e.worker.agent == agent).collect();
            let mut report = report::of(&own, workloads);
            if agent == 0 {
                report.findings.clone_from(&self.s.findings);
            }
            report
        });
        let reports: Vec<_> = reports.collect();
        let ring = reports.iter().map(|r| &r.ring).find(|r| !r.is_empty()).cloned().unwrap_or_default();
        let facts = report::facts(&ends);
        let asked = Mark::StopRequested { stage, at_ns: stop_ns, reason };
        sinks.streams.mark_each(|agent| self.of_agent(agent, asked.clone()))?;
        let reported = |agent: u32| Mark::StageReport {
            stage,
            at_ns: end_ns,
            report: Box::new(reports[agent as usize].clone()),
        };
        sinks.streams.mark_each(|agent| self.of_agent(agent, reported(agent)))?;
        if let Some(error) = ends.iter().find_map(|e| e.error.clone()) {
            let reason = error.to_string();
            sinks.streams.mark(&Mark::StageVoid { stage, at_ns: end_ns, reason: reason.clone() })?;
            return Err(CrewError::from(error).into());
        }
        sinks.streams.mark_each(|agent| self.of_agent(agent, Mark::StageEnd { stage, at_ns: end_ns }))?;
        let series = std::mem::take(&mut self.window.series);
        let sum = |f: fn(&Series) -> u64| series.iter().map(f).sum::<u64>();
        // What the series cover: the slices at the edges are not whole.
        let window_s = (self.window_slices * self.s.order.grid_ns) as f64 / 1e9;
        (sinks.events)(Event::StageDone {
            stage: stage - self.s.again,
            of: self.s.of,
            title: title(self.s.order.stage),
            ok: sum(Series::ok),
            throttled: sum(Series::throttled),
            failed: sum(Series::failed),
            seconds: window_s,
        });
        let ended_by_loss = self.ended_by_loss || self.is_all_lost();
        let observation = Observation {
            stage: self.s.order.stage.clone(),
            window_s,
            // Of the busiest: one agent at its end is hidden in the mean of many.
            busy_fraction: self.clients.iter().map(busy_fraction).fold(0.0, f64::max),
            held_back: ClientCounts::held_back(&self.clients),
            series,
            start_s: self.start_ns as f64 / 1e9,
            end_s: end_ns as f64 / 1e9,
            window_start_s: self.warm_ns as f64 / 1e9,
            slice_s: self.s.order.grid_ns as f64 / 1e9,
            slices: self.slices,
            machines: machines(self.s.roll.iter().map(|a| a.host.as_str())),
        };
        Ok(StageEnd {
            observation,
            interrupted: self.interrupted,
            ended_by_loss,
            unheld: self.unheld,
            ended_by_cost: self.ended_by_cost,
            ended_by_guard: self.ended_by_guard,
            end_ns,
            facts,
            ring,
            lost: !self.lost.is_empty(),
        })
    }
}

/// Share of their time in which workers did not wait.
fn busy_fraction(client: &ClientCounts) -> f64 {
    let alive = client.alive_ns as f64;
    if alive > 0.0 { (1.0 - client.waited_ns as f64 / alive).clamp(0.0, 1.0) } else { 0.0 }
}
