//! After its start the loop does not allocate, and makes no system call but the ring's.

mod common;
mod counting;

use std::sync::atomic::Ordering::Relaxed;

use common::{MIB, file, run, stage, total, worker};
use counting::ALLOCATIONS;
use plimsoll_engine::{Clock, Dist, StopRule, TargetConfig};
use plimsoll_model::OpKind;
use plimsoll_model::plan::RingChoice;

/// Allocations and ring calls of a run of `ops` ops.
fn cost(target: TargetConfig, kind: OpKind, ring: RingChoice, slots: u32, ops: u64) -> (u64, u64) {
    let mut w = worker(kind, target, MIB, Dist::Uniform);
    (w.ring, w.slots) = (ring, slots);
    w.stop = StopRule { ops: Some(ops), ..StopRule::default() };
    let before = ALLOCATIONS.load(Relaxed);
    let (slices, ends) = run(stage(Clock::Real, vec![w]));
    assert_eq!(ends[0].error, None);
    assert_eq!(ends[0].starved_slices, 0);
    assert_eq!(total(&slices, kind).ok(), ops);
    (ALLOCATIONS.load(Relaxed) - before, ends[0].ring_syscalls)
}

/// What a run costs must not depend on how many ops it makes.
#[test]
fn more_ops_allocate_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    std::fs::write(&path, vec![1; MIB as usize]).unwrap();
    let cases = [
        (TargetConfig::Null, OpKind::Null, RingChoice::Auto, 8),
        (TargetConfig::Null, OpKind::Null, RingChoice::IoUring, 8),
        (file(&path, true), OpKind::Read, RingChoice::IoUring, 8),
        (file(&path, true), OpKind::Write, RingChoice::IoUring, 8),
        (file(&path, true), OpKind::Read, RingChoice::Psync, 1),
        (file(&path, true), OpKind::Read, RingChoice::Libaio, 8),
    ];
    // What the process allocates once (the list of pools of bytes) is no cost of any run.
    cost(file(&path, true), OpKind::Read, RingChoice::Psync, 1, 200);
    for (target, kind, ring, slots) in cases {
        let (few, few_calls) = cost(target.clone(), kind, ring, slots, 200);
        let (many, many_calls) = cost(target, kind, ring, slots, 20_000);
        assert_eq!(few, many, "{kind:?} on {ring:?}");
        // One call for each op at most; a few more for the grid's edges and the start.
        let per_op = if ring == RingChoice::Libaio { 2 } else { 1 };
        assert!(
            many_calls - few_calls <= per_op * 19_800 + 500,
            "{kind:?} on {ring:?}: {few_calls}, {many_calls}"
        );
    }
}
