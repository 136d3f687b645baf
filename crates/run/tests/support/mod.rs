//! What the tests of whole runs share.

use std::path::Path;

use plimsoll_model::Plan;
use plimsoll_run::{Finished, Options, execute};

/// Runs under `root`, with no ceiling on record, so that no verdict depends on the machine's own calibration.
pub fn options(root: &Path) -> Options {
    Options { root: root.to_owned(), ceiling: Default::default(), ..Options::default() }
}

pub fn run(root: &Path, plan: &str) -> Finished {
    execute(&Plan::from_toml(plan).unwrap(), &options(root), |_| {}).unwrap()
}
