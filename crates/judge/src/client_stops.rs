//! When the client itself stood still (stopped, suspended, a virtual machine that was paused): what came then says nothing of
//! the storage.

use plimsoll_model::interval::ClientCounts;
use plimsoll_model::plan::TargetSpec;
use plimsoll_model::sample::Role;
use plimsoll_model::{Finding, Level};
use plimsoll_stats::client_time::{self, HandedOver};
use plimsoll_stats::outage::SHORTEST_S;
use plimsoll_stats::words;
use plimsoll_store::{RunData, StageData};

/// Of the load's time; more of it makes the stage's rates those of an outage, or of a client that stood still (the width that an
/// interval may have, Q03).
pub const MOST_OF_THE_LOAD: f64 = 0.1;

/// The sampler's period, seconds (`sample/thread.rs`).
const SAMPLE_EVERY_S: f64 = 1.0;

/// One step of what the workers handed over.
pub fn handed_over(c: &ClientCounts) -> HandedOver {
    HandedOver {
        slices: c.workers,
        alive_s: c.alive_ns as f64 / 1e9,
        in_flight_op_s: c.in_flight_ns as f64 / 1e9,
    }
}

/// What the plan allows in flight at once.
pub fn most_in_flight(stage: &StageData) -> f64 {
    stage.spec.workloads.iter().map(|w| f64::from(w.in_flight())).sum()
}

/// Steps `[from, to)` in which the client stood still: no worker ran, and neither did the sampler. A worker that waits for
/// sockets never waits longer than to the grid's edge; one that reads and writes files may be held up by them, so that there the
/// sampler has to bear witness.
pub fn client_stops(
    data: &RunData,
    stage: &StageData,
    silent: &[bool],
    start_s: f64,
    dt_s: f64,
) -> Vec<(usize, usize)> {
    let targets: Vec<&TargetSpec> =
        stage.spec.workloads.iter().filter_map(|w| data.plan.target_of(w).ok()).map(|(_, t)| t).collect();
    if targets.iter().any(|t| matches!(t, TargetSpec::Sim(_))) {
        return Vec::new();
    }
    let sockets = targets.iter().all(|t| matches!(t, TargetSpec::S3(_)));
    let samples: Vec<f64> =
        data.samples.iter().filter(|s| s.role == Role::Client).map(|s| s.at_ns as f64 / 1e9).collect();
    let stood_still = |s: &(usize, usize)| {
        let (from_s, to_s) = (start_s + s.0 as f64 * dt_s, start_s + s.1 as f64 * dt_s);
        to_s - from_s >= SHORTEST_S - 1e-9
            && client_time::sampler_stood_still(&samples, SAMPLE_EVERY_S, from_s, to_s).unwrap_or(sockets)
    };
    client_time::silences(silent).into_iter().filter(stood_still).collect()
}

/// Of all stages, as (stage, from, to) in seconds since the load of the stage began.
fn of_run(data: &RunData) -> Vec<(u32, f64, f64)> {
    let dt_s = data.step_ns as f64 / 1e9;
    let mut out = Vec::new();
    for stage in data.stages.iter().filter(|s| s.void.is_none()) {
        let (from_ns, to_ns) = (stage.start_ns, stage.stop_ns.unwrap_or(stage.last_ns));
        let handed: Vec<HandedOver> =
            stage.client_points(data.step_ns, from_ns, to_ns).iter().map(handed_over).collect();
        let silent = client_time::spread(&handed, stage.workers, most_in_flight(stage), dt_s).silent;
        let start_s = from_ns.div_ceil(data.step_ns) as f64 * dt_s;
        let since = start_s - from_ns as f64 / 1e9;
        let stops = client_stops(data, stage, &silent, start_s, dt_s);
        out.extend(stops.iter().map(|s| (stage.index, since + s.0 as f64 * dt_s, since + s.1 as f64 * dt_s)));
    }
    out
}

/// Says so.
pub fn finding(data: &RunData) -> Option<Finding> {
    let stops = of_run(data);
    let longest = stops.iter().max_by(|a, b| (a.2 - a.1).total_cmp(&(b.2 - b.1)))?;
    let share = |stage: &StageData| {
        let load_s = stage.stop_ns.unwrap_or(stage.last_ns).saturating_sub(stage.start_ns) as f64 / 1e9;
        let stood_s: f64 = stops.iter().filter(|s| s.0 == stage.index).map(|s| s.2 - s.1).sum();
        stood_s / load_s.max(f64::MIN_POSITIVE)
    };
    let worst = data.stages.iter().map(share).fold(0.0, f64::max);
    let level = if worst > MOST_OF_THE_LOAD { Level::Invalid } else { Level::Qualified };
    let more = match stops.len() {
        1 => String::new(),
        n => format!(" ({n} times in all, this is the longest)"),
    };
    let text = format!(
        "The client itself stood still for {}, from {} to {} s into the load{more}: neither its workers nor its sampler ran \
         (it was stopped or suspended, or its virtual machine was paused). What the storage did then is not known, and the ops \
         in flight took that long. Measure again.",
        words::span(longest.2 - longest.1),
        words::fixed(longest.1, 1),
        words::fixed(longest.2, 1),
    );
    let mut f = Finding::new("V22", "client_stopped", level, text).measured(worst, MOST_OF_THE_LOAD);
    let said = |s: &(u32, f64, f64)| {
        (format!("stage {}", s.0 + 1), format!("{} to {} s", words::fixed(s.1, 1), words::fixed(s.2, 1)))
    };
    f.evidence = stops.iter().take(8).map(said).collect();
    Some(f)
}
