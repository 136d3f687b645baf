//! What is said of regions whose reads would not come from the storage.

use plimsoll_model::{Finding, Level};

/// A file of a file system that lives in memory.
pub fn in_memory(workload: &str, path: &str) -> Finding {
    let text = format!(
        "{path} is in memory (tmpfs or ramfs), so these figures are those of memory and kernel, not of storage. Name \
         a file on the storage to measure."
    );
    Finding::new("V08", "memory_file_system", Level::Qualified, text).on(workload)
}

/// Reads of a region that was never written.
pub fn unwritten(workload: &str, path: &str, unwritten: u64, length: u64) -> Finding {
    let share = unwritten as f64 / length.max(1) as f64;
    let text = format!(
        "{unwritten} of {length} bytes of {path} were never written (holes or unwritten extents). Reading them \
         measures memory, not storage. Write the region in full first, or let plimsoll do so."
    );
    Finding::new("V09", "unwritten_reads", Level::Invalid, text).measured(share, 0.0).on(workload)
}

/// A device whose sampled blocks are zeros or repeat each other.
pub fn hollow_device(workload: &str, path: &str, blocks: u32, zeros: u32, repeats: u32) -> Finding {
    let text = format!(
        "Of {blocks} sampled blocks of {path}, {zeros} contain only zeros and {repeats} are duplicates: the device \
         is trimmed, thin-provisioned or filled with a pattern, and may answer reads without accessing its media. \
         Write it in full with random data first."
    );
    let share = f64::from(zeros + repeats) / f64::from(blocks.max(1));
    Finding::new("V09", "unwritten_reads", Level::Invalid, text).measured(share, 0.1).on(workload)
}
