//! Counts the allocations of worker threads.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts what threads named `worker-N` allocate.
pub struct Counting;

pub static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

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
