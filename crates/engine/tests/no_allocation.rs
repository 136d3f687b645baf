//! After its start the loop does not allocate, and makes no system call but the ring's.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use common::{MIB, file, run, stage, total, worker};
use plimsoll_engine::{Clock, Dist, StopRule, TargetConfig};
use plimsoll_model::OpKind;
use plimsoll_model::plan::RingChoice;

/// Counts what threads named `worker-N` allocate.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_WORKER: Cell<Option<bool>> = const { Cell::new(None) };
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

fn in_worker() -> bool {
    IS_WORKER
        .try_with(|w| {
            if let Some(known) = w.get() {
                return known;
            }
            if ASKING.replace(true) {
                return false;
            }
            let is = std::thread::current().name().is_some_and(|n| n.starts_with("worker-"));
            w.set(Some(is));
            ASKING.set(false);
            is
        })
        .unwrap_or(false)
}

// SAFETY: hands everything to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if in_worker() {
            ALLOCATIONS.fetch_add(1, Relaxed);
        }
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

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
