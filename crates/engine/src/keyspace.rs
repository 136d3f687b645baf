//! Numbers of objects: which exist before the run, which it creates, which it deletes. A number is
//! turned into a key string by the S3 target; stamps carry the number.

/// Prepared objects have numbers from 0; those that are only there to be deleted begin here.
pub const VICTIM_BASE: u64 = 1 << 40;
/// Objects that the run creates have numbers from here on, in the order of their creation in the plan.
pub const CREATED_BASE: u64 = 1 << 41;

/// The objects of one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeySpace {
    /// Prepared objects that are read, and never deleted: numbers 0 to `prepared`.
    pub prepared: u64,
    /// Prepared objects that are deleted first: `VICTIM_BASE` on.
    pub victims: u64,
}

impl KeySpace {
    /// The object that the `i`-th single delete removes: the prepared victims first, then what the run
    /// itself created `victims` deletes earlier.
    pub fn victim(&self, i: u64) -> u64 {
        if i < self.victims { VICTIM_BASE + i } else { CREATED_BASE + (i - self.victims) }
    }
}
