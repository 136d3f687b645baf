//! The simulated target is exact: the same stage gives the same slices, and its law is what is recorded.

mod common;

use std::time::Duration;

use common::{run, stage, total, worker};
use plimsoll_engine::target::sim::SimWorld;
use plimsoll_engine::{Clock, Dist, Next, Output, Pacer, Share, StopRule, TargetConfig, WorkerSpec, start};
use plimsoll_model::OpKind;
use plimsoll_model::plan::{SimBucket, SimTarget};
use plimsoll_model::units::Span;

const CLOCK: Clock = Clock::Virtual { start_ns: 1_000_000_000 };

fn sim(spec: SimTarget) -> WorkerSpec {
    let mut w = worker(OpKind::Read, TargetConfig::Sim(SimWorld::new(spec, 3)), 1 << 20, Dist::Uniform);
    w.stop = StopRule { after_ns: Some(10_000_000_000), ..StopRule::default() };
    w
}

fn two(spec: SimTarget) -> Vec<WorkerSpec> {
    let first = sim(spec);
    let mut second = first.clone();
    second.worker = plimsoll_model::WorkerId::here(1);
    vec![first, second]
}

#[test]
fn the_same_stage_gives_the_same_slices() {
    let spec = SimTarget { spread: 0.7, servers: Some(3), error_rate: 0.05, ..SimTarget::default() };
    let (a, ends) = run(stage(CLOCK, two(spec.clone())));
    let (b, _) = run(stage(CLOCK, two(spec)));
    assert_eq!(a, b);
    assert!(ends.iter().all(|e| e.error.is_none() && e.abandoned == 0));
    assert!(total(&a, OpKind::Read).failed() > 0);
}

/// On the virtual clock a slice that does not find back to its worker would be waited for for ever.
#[test]
fn workers_out_of_order_are_refused() {
    let sorted = two(SimTarget::default());
    let (reversed, doubled) = (sorted.iter().rev().cloned().collect(), vec![sorted[0].clone(); 2]);
    for workers in [reversed, doubled] {
        let told = start(stage(CLOCK, workers)).map(|_| ()).unwrap_err().to_string();
        assert!(told.contains("in order of their numbers"), "{told}");
    }
    assert!(start(stage(CLOCK, sorted)).is_ok());
}

#[test]
fn a_closed_loop_makes_slots_over_time() {
    let (slices, ends) = run(stage(CLOCK, vec![sim(SimTarget::default())]));
    let reads = total(&slices, OpKind::Read);
    // Four slots, 1 ms each, 10 s.
    assert_eq!(reads.ok(), 40_000);
    assert_eq!((reads.response.min(), reads.response.count()), (999_936, 40_000));
    assert_eq!(reads.response.mean(), 1e6);
    assert_eq!(ends[0].stopped_ns, 11_000_000_000);
    let in_flight: u128 = slices.iter().map(|s| s.client.in_flight_ns).sum();
    assert_eq!(in_flight, reads.counts.in_system_ns, "Little's law is exact on a virtual clock");
}

#[test]
fn an_open_loop_counts_from_the_intended_start() {
    // One server that takes 2 ms, offered 1,000 a second: the queue grows, and so must the response.
    let spec = SimTarget { base: Span(Duration::from_millis(2)), servers: Some(1), ..SimTarget::default() };
    let mut w = sim(spec);
    w.pacer = Pacer::Constant { per_s: 1000.0 };
    w.slots = 1;
    w.stop = StopRule { ops: Some(100), ..StopRule::default() };
    w.series[0].shape.service = true;
    let (slices, ends) = run(stage(CLOCK, vec![w]));
    let reads = total(&slices, OpKind::Read);
    assert_eq!(reads.ok(), 100);
    assert_eq!(reads.service.as_ref().unwrap().mean(), 2e6);
    // The last is intended at 99 ms and ends at 200 ms.
    assert_eq!(reads.response.max() / 1_000_000, 101);
    assert_eq!(ends[0].finished_ns, 1_200_000_000);
}

#[test]
fn a_bucket_bursts_and_then_sustains() {
    let ops =
        SimBucket { sustained_per_s: 100.0, burst_per_s: Some(1000.0), capacity: 900.0, initial_fill: 1.0 };
    let spec = SimTarget { ops: Some(ops), ..SimTarget::default() };
    let (slices, _) = run(stage(CLOCK, vec![sim(spec)]));
    // The bucket of 900, drained at 1,000 - 100 a second, lasts a second; then 100 a second.
    let ok = total(&slices, OpKind::Read).ok();
    assert!((1890..=1910).contains(&ok), "{ok}");
}

#[test]
fn workers_share_a_schedule() {
    let mut both = two(SimTarget::default());
    for (i, w) in both.iter_mut().enumerate() {
        w.pacer = Pacer::Poisson { per_s: 500.0, seed: 8 };
        w.share = Share { index: i as u32, of: 2 };
        w.pace_share = w.share;
    }
    let (slices, _) = run(stage(CLOCK, both));
    let ok = total(&slices, OpKind::Read).ok() as f64;
    assert!((ok - 5000.0).abs() < 4.0 * 5000f64.sqrt(), "{ok}");
}

/// Slices that follow another clock: each keeps its number and its true length, and none is left out or doubled.
#[test]
fn a_grid_that_bends_moves_edges_and_loses_nothing() {
    let spec = stage(CLOCK, vec![sim(SimTarget::default())]);
    let step_ns = spec.grid_ns;
    let (straight, _) = run(stage(CLOCK, vec![sim(SimTarget::default())]));
    let running = start(spec).unwrap();
    let line = running.grid().newest();
    let (first, bend) = (1_000_000_000 / step_ns, 1_000_000_000 / step_ns + 30);
    // 1/2,000 longer from there on.
    let bent = line.bent(bend, 20, line.edge_ns(bend + 20) + step_ns / 100, 2000);
    running.grid().follow(bent);
    let mut slices = Vec::new();
    loop {
        match running.next(Duration::from_secs(20)) {
            Next::Output(output) => {
                if let Output::Interval { interval, .. } = &output {
                    slices.push((**interval).clone());
                }
                running.recycle(output);
            }
            Next::Nothing => panic!("no slice within 20 s"),
            Next::Ended => break,
        }
    }
    running.join();
    let last = slices.last().unwrap().index;
    assert_eq!(slices.iter().map(|s| s.index).collect::<Vec<_>>(), (first..=last).collect::<Vec<_>>());
    for s in slices.iter().filter(|s| s.index < last) {
        let want_ns = if s.index < bend { step_ns } else { step_ns + step_ns / 2000 };
        assert!(s.client.alive_ns.abs_diff(want_ns) <= 1, "slice {}: {} ns", s.index, s.client.alive_ns);
    }
    assert_eq!(total(&slices, OpKind::Read).ok(), total(&straight, OpKind::Read).ok());
}
