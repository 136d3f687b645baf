//! What the load generator may use of its machine: storage is measured as a small client would see it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{PlanError, invalid};
use crate::units::{Size, about_size};

/// Less memory than this is no load generator's.
const LEAST_MEMORY: u64 = 64 << 20;
/// A quota below this stops it for most of the time.
const LEAST_CORES: f64 = 0.01;
/// No machine has more.
const MOST_CPUS: usize = 4096;

/// Bounds of the process that makes the load: a control group is made for the run, and removed after it. Page cache that the run fills
/// counts as its memory, so that files larger than `memory` are read from storage. Embedded servers and disks are outside of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientBounds {
    /// Memory and page cache together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// CPU time: 1.5 is one and a half CPUs' worth, on whichever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<f64>,
    /// Only these CPUs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
}

impl ClientBounds {
    /// Whether nothing is bounded.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// In words: `512 MiB of memory, CPU 0`.
    pub fn words(&self) -> String {
        let memory = self.memory.map(|m| format!("{} of memory", about_size(m.0)));
        let cores = self.cores.map(|c| format!("{c} core{} of CPU time", if c == 1.0 { "" } else { "s" }));
        let list = |all: &[u32]| all.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let cpus = match &self.cpus[..] {
            [] => None,
            [one] => Some(format!("CPU {one}")),
            many => Some(format!("CPUs {}", list(many))),
        };
        [memory, cores, cpus].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// What no syntax can say.
    pub(super) fn check(&self) -> Result<(), PlanError> {
        let wrong = |key: &str, problem: String, remedy: &str| {
            Err(invalid(format!("options.client.{key}"), problem, remedy))
        };
        if let Some(m) = self.memory.filter(|m| m.0 < LEAST_MEMORY) {
            return wrong("memory", format!("{m} is less than plimsoll itself takes"), "Give 64MiB or more.");
        }
        if let Some(c) = self.cores.filter(|c| !(*c >= LEAST_CORES && *c <= MOST_CPUS as f64)) {
            return wrong(
                "cores",
                format!("{c} is no share of a machine"),
                "Write 1 for one core, 0.5 for half of one.",
            );
        }
        let twice = (1..self.cpus.len()).any(|i| self.cpus[..i].contains(&self.cpus[i]));
        if twice || self.cpus.len() > MOST_CPUS || self.cpus.iter().any(|c| *c as usize >= MOST_CPUS) {
            return wrong(
                "cpus",
                "a CPU stands twice, or is none".into(),
                "Write [0, 1] for the first two; lscpu shows them.",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_said_and_checked() {
        let of = |text: &str| toml::from_str::<ClientBounds>(text).unwrap();
        let all = of("memory = \"512MiB\"\ncores = 1.5\ncpus = [0, 2]\n");
        assert_eq!(all.words(), "512 MiB of memory, 1.5 cores of CPU time, CPUs 0, 2");
        assert_eq!(all.check(), Ok(()));
        assert!(of("").is_empty() && !all.is_empty());
        for (text, place) in
            [("memory = \"1MiB\"", "memory"), ("cores = 0", "cores"), ("cpus = [1, 1]", "cpus")]
        {
            let e = of(text).check().unwrap_err().to_string();
            assert!(e.contains(&format!("options.client.{place}")), "{e}");
        }
    }
}
