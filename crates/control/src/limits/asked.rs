//! What is asked of a probe beside the limits, and what of its time that may take.

use std::collections::BTreeMap;

/// The probe itself keeps so much of the budget, whatever is asked beside it (guess): without a limit there is nothing to ask.
pub const PROBES_SHARE: f64 = 0.4;

/// What the user asked for beside the figures.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Whether other ops draw on the same bucket.
    pub shared: bool,
    /// What the limit is per: connection, prefix, bucket, key or client.
    pub scope: bool,
    /// Targets that differ in one thing, by that thing.
    pub scope_targets: BTreeMap<String, String>,
}
