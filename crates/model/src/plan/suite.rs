//! The label by which a run tells which fixed series of measurements made its plan: judgement and reports name that
//! command's own options.

/// Name of the label.
pub const LABEL: &str = "suite";
/// `plimsoll file`.
pub const FILE: &str = "file";
/// `plimsoll drive`.
pub const DRIVE: &str = "drive";
