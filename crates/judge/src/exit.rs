//! Exit codes of the program: how a run came out, for scripts.

pub const VALID: u8 = 0;
pub const BUG: u8 = 1;
/// Bad input or environment.
pub const INPUT: u8 = 2;
/// Measured, but invalid.
pub const INVALID: u8 = 3;
/// An expectation was not met.
pub const NOT_MET: u8 = 4;
pub const UNDETERMINED: u8 = 5;
/// Measured and valid, but something that the run made is still there, or its report could not be written.
pub const LEFT_BEHIND: u8 = 6;
/// The storage returned other data than what was written to it.
pub const DAMAGED: u8 = 7;
/// Stopped by a guard. No guard stops a run yet: reserved.
pub const STOPPED: u8 = 8;
pub const INTERRUPTED: u8 = 130;
