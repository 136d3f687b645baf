//! The label by which a run tells which fixed series of measurements made its plan: judgement and reports name that
//! command's own options.

use std::collections::BTreeMap;

/// Name of the label.
pub const LABEL: &str = "suite";
/// `plimsoll file`.
pub const FILE: &str = "file";
/// `plimsoll check`.
pub const CHECK: &str = "check";
/// `plimsoll drive`.
pub const DRIVE: &str = "drive";

/// Labels that `file` gives its run: what it corrects of the original, and what became of the cache.
const FILE_LABELS: [&str; 2] = ["corrections", "cache"];
/// What the names of labels begin with that a command gives: what a run was held against, which drives failed.
const PREFIXES: [&str; 3] = ["check.", "ceiling.", "drive.failed."];
/// The ceiling as it was named.
const CEILING: &str = "ceiling";

/// Whether a command gave the run this label of its, and no person.
pub fn is_own_label(labels: &BTreeMap<String, String>, name: &str) -> bool {
    let of_file = labels.get(LABEL).is_some_and(|l| l == FILE) && FILE_LABELS.contains(&name);
    of_file || name == LABEL || name == CEILING || PREFIXES.iter().any(|p| name.starts_with(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_s_label_is_told_from_a_command_s() {
        let labels = |suite: &str| BTreeMap::from([(LABEL.to_owned(), suite.to_owned())]);
        assert!(is_own_label(&labels(FILE), "cache") && is_own_label(&labels(CHECK), "check.against"));
        assert!(is_own_label(&BTreeMap::new(), "ceiling.run") && is_own_label(&labels(DRIVE), LABEL));
        assert!(!is_own_label(&BTreeMap::new(), "cache") && !is_own_label(&labels(FILE), "tier"));
    }
}
