//! What an active controller found, worked out again from the stored data: the controller is deterministic, so
//! feeding it what it saw leads it to what it concluded.

use plimsoll_control::{Conclusion, ControlStep, Observation, Slice, machines};
use plimsoll_model::interval::ClientCounts;
use plimsoll_model::plan::{ControllerSpec, Stage, Workload};
use plimsoll_model::{Finding, SeriesCounts};
use plimsoll_store::{RunData, StageData, Totals};

use super::agents::busiest;

/// `None` where the plan has no active controller.
pub fn conclude(data: &RunData, totals: &[Totals]) -> Option<Conclusion> {
    match &data.plan.controller {
        Some(ControllerSpec::Saturation { .. } | ControllerSpec::Limits { .. }) => {}
        None | Some(ControllerSpec::Sweep { .. } | ControllerSpec::Watch { .. }) => return None,
    }
    let mut controller = plimsoll_control::of_plan(&data.plan).ok()?;
    let mut seen: Vec<Observation> = Vec::new();
    for stage in data.stages.iter().filter(|s| s.void.is_none()) {
        // Idle steps took their time; the next stage is what was run after them.
        let wanted = loop {
            match controller.next(&seen) {
                ControlStep::Idle(_) => {}
                ControlStep::Run(wanted) => break Some(wanted),
                ControlStep::Done => break None,
            }
        };
        // A newer method may want to go another way than the one that was run: from there on its figures are not its own.
        if !wanted.is_some_and(|w| is_same_load(&w, &stage.spec)) {
            return controller.conclude();
        }
        let observation = observe(data, stage, totals);
        // All of them, as it saw them: also in the drain of a stage that was told to end the storage may be silent for too long.
        for slice in &observation.slices {
            controller.slice(slice);
        }
        seen.push(observation);
    }
    // The last look: what follows is of no interest, only what was concluded.
    while let ControlStep::Idle(_) = controller.next(&seen) {}
    controller.conclude()
}

/// Of a watch, what it told of drops while it went on.
pub fn drops(data: &RunData, totals: &[Totals]) -> Option<Finding> {
    let Some(ControllerSpec::Watch { .. }) = &data.plan.controller else { return None };
    let stage = data.stages.iter().rfind(|s| s.void.is_none())?;
    let seen = observe(data, stage, totals);
    plimsoll_control::drops_of(&seen.slices, seen.slice_s)
}

/// Whether two stages load in the same way, whatever they are called.
fn is_same_load(a: &Stage, b: &Stage) -> bool {
    let like = |(x, y): (&Workload, &Workload)| {
        x.mix == y.mix
            && x.size == y.size
            && x.concurrency == y.concurrency
            && x.target == y.target
            && x.machines == y.machines
    };
    a.workloads.len() == b.workloads.len() && a.workloads.iter().zip(&b.workloads).all(like)
}

fn observe(data: &RunData, stage: &StageData, totals: &[Totals]) -> Observation {
    let s = |ns: u64| ns as f64 / 1e9;
    let mine = totals.iter().find(|t| t.window.stage == stage.index);
    let warm = stage.warmup_end_ns.unwrap_or(stage.start_ns);
    let mut counts = stage.counts(stage.series.keys().copied(), data.step_ns, 0, u64::MAX);
    counts.resize(stage.client.len(), SeriesCounts::default());
    let slice = |(c, client): (&SeriesCounts, &ClientCounts)| Slice {
        in_flight_ns: client.in_flight_ns,
        ..Slice::from(c)
    };
    let slices = counts.iter().zip(&stage.client).map(slice).collect();
    Observation {
        stage: stage.spec.clone(),
        window_s: mine.map_or(0.0, |t| t.window.seconds(data.grid_ns)),
        series: mine.map(|t| t.series.clone()).unwrap_or_default(),
        start_s: s(stage.start_ns),
        end_s: s(stage.end_ns.unwrap_or(stage.last_ns)),
        window_start_s: s(warm),
        slice_s: s(data.step_ns),
        slices,
        busy_fraction: mine.map_or(0.0, busiest),
        held_back: mine.map_or(0.0, |t| ClientCounts::held_back([&t.client])),
        machines: machines(data.environment.agent_hosts().iter().map(|h| h.machine.host.as_str())),
    }
}
