//! One record per request, for `--trace`: the interchange format of other tools.

use crate::{OpKind, Outcome, WorkerId};

/// A request as it happened. Times are nanoseconds since the run's start on its monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpRecord {
    /// Index into the stage's series.
    pub series: u16,
    /// Who did it.
    pub worker: WorkerId,
    /// Place among the worker's ops in flight.
    pub slot: u32,
    /// Index of the endpoint that did it.
    pub endpoint: u16,
    /// What was done.
    pub kind: OpKind,
    /// How it ended.
    pub outcome: Outcome,
    /// Index of the object or file.
    pub key: u64,
    /// Payload that counts if it ended `Ok`.
    pub bytes: u64,
    /// Response counts from here.
    pub intended_ns: u64,
    /// Service counts from here.
    pub submitted_ns: u64,
    /// Zero when there was no first byte.
    pub first_byte_ns: u64,
    /// When the op was over.
    pub done_ns: u64,
}
