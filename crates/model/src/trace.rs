//! One record per request, for `--trace`: the interchange format of other tools.

use crate::{OpKind, Outcome};

/// A request as it happened. Times are nanoseconds since the run's start on its monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpRecord {
    /// Index into the stage's series.
    pub series: u16,
    pub worker: u16,
    pub slot: u32,
    pub endpoint: u16,
    pub kind: OpKind,
    pub outcome: Outcome,
    pub key: u64,
    pub bytes: u64,
    pub intended_ns: u64,
    pub submitted_ns: u64,
    /// Zero when there was no first byte.
    pub first_byte_ns: u64,
    pub done_ns: u64,
}
