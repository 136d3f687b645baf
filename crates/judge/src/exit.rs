//! Exit codes of the program: how a run came out, for scripts.

/// Answered, and nothing stands against it.
pub const VALID: u8 = 0;
/// Of this program: a panic, or an invariant that does not hold.
pub const BUG: u8 = 1;
/// Bad input or environment.
pub const INPUT: u8 = 2;
/// Measured, but invalid.
pub const INVALID: u8 = 3;
/// An expectation was not met.
pub const NOT_MET: u8 = 4;
/// Measured without fault; what was asked for is open all the same.
pub const UNDETERMINED: u8 = 5;
/// Measured and valid, but something that the run made is still there, or its report could not be written.
pub const LEFT_BEHIND: u8 = 6;
/// The storage returned other data than what was written to it.
pub const DAMAGED: u8 = 7;
/// Stopped by a guard: what was sent came to the budget of money (`--budget-cost`), or others were to be left alone (`--abort-if`).
pub const STOPPED: u8 = 8;
/// Ctrl-C, as shells have it (128 and the signal's number).
pub const INTERRUPTED: u8 = 130;
