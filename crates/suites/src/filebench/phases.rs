//! What the phases of a cycle are.

/// Block size of the write and read phases, bytes.
pub const BLOCK_BYTES: u64 = 64 << 10;
/// Names of the stages, in order.
pub const STAGES: [&str; 3] = ["write", "read", "iops"];
