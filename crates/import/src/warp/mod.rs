//! warp's files: each request (`csv.zst`), read twice, and its own figures (`json.zst`).
//!
//! A file of requests becomes a whole run. The first pass ([`survey`]) finds out what there is: stages, threads, sizes, endpoints.
//! The second ([`replay`]) gives slices of the grid in order, with what is in flight at once and no more of the file in memory.

mod fault;
mod plan;
mod replay;
mod request;
mod stages;
mod summary;
mod survey;

pub use replay::{Replayed, replay};
pub use stages::StageSpan;
pub(crate) use summary::read as read_json;
pub(crate) use survey::without_keys;
pub use survey::{KindCounts, Survey, survey};

/// Slice of the grid, nanoseconds: that of our own runs.
pub const GRID_NS: u64 = 100_000_000;
