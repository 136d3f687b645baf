//! What an active controller found, worked out again from the stored data: the controller is deterministic, so
//! feeding it what it saw leads it to what it concluded.

use plimsoll_control::{Conclusion, Observation, Slice, Step};
use plimsoll_model::plan::{ControllerSpec, Stage, Workload};
use plimsoll_store::{Point, RunData, StageData, Totals};

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
                Step::Idle(_) => {}
                Step::Run(wanted) => break Some(wanted),
                Step::Done => break None,
            }
        };
        // A newer method may want to go another way than the one that was run: from there on its figures are not its own.
        if !wanted.is_some_and(|w| is_same_load(&w, &stage.spec)) {
            return controller.conclude();
        }
        let observation = observe(data, stage, totals);
        for slice in &observation.slices {
            if !controller.slice(slice) {
                break;
            }
        }
        seen.push(observation);
    }
    // The last look: what follows is of no interest, only what was concluded.
    while let Step::Idle(_) = controller.next(&seen) {}
    controller.conclude()
}

/// Whether two stages load in the same way, whatever they are called.
fn is_same_load(a: &Stage, b: &Stage) -> bool {
    let like = |(x, y): (&Workload, &Workload)| {
        x.mix == y.mix && x.size == y.size && x.concurrency == y.concurrency && x.target == y.target
    };
    a.workloads.len() == b.workloads.len() && a.workloads.iter().zip(&b.workloads).all(like)
}

fn observe(data: &RunData, stage: &StageData, totals: &[Totals]) -> Observation {
    let s = |ns: u64| ns as f64 / 1e9;
    let mine = totals.iter().find(|t| t.window.stage == stage.index);
    let client = mine.map(|t| t.client).unwrap_or_default();
    let alive = client.alive_ns as f64;
    let warm = stage.warmup_end_ns.unwrap_or(stage.start_ns);
    let mut slices = vec![Slice::default(); stage.client.len()];
    for (c, slice) in stage.client.iter().zip(&mut slices) {
        slice.in_flight_ns = c.in_flight_ns;
    }
    for points in stage.series.values() {
        points.iter().zip(&mut slices).for_each(|(p, s)| add(s, p));
    }
    Observation {
        stage: stage.spec.clone(),
        window_s: mine.map_or(0.0, |t| t.window.seconds(data.grid_ns)),
        series: mine.map(|t| t.series.clone()).unwrap_or_default(),
        start_s: s(stage.start_ns),
        end_s: s(stage.end_ns.unwrap_or(stage.last_ns)),
        window_start_s: s(warm),
        slice_s: s(data.step_ns),
        slices,
        busy_fraction: if alive > 0.0 {
            (1.0 - client.waited_ns as f64 / alive).clamp(0.0, 1.0)
        } else {
            0.0
        },
    }
}

fn add(s: &mut Slice, p: &Point) {
    s.ok += p.ok();
    s.throttled += p.throttled();
    s.failed += p.failed();
    s.bytes_moved += p.bytes_moved;
    s.bytes_ok += p.bytes_ok;
    s.in_system_ns += p.in_system_ns;
}
