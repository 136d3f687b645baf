//! What decides stages as a run goes on, as a plan asks for it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Stage, one};
use crate::OpKind;
use crate::units::{Size, Span};

/// What decides stages as the run goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ControllerSpec {
    /// Every op at every size (and concurrency), each `repeat` times, in random order.
    Sweep {
        /// What all cells have in common; its ops, sizes and concurrency are replaced.
        template: Box<Stage>,
        /// One cell at least for each.
        ops: Vec<OpKind>,
        /// Empty: a pilot looks where the caps are, and chooses sizes around the knee and concurrencies that saturate.
        sizes: Vec<Size>,
        /// Empty, with `sizes`: the template's own.
        #[serde(default)]
        concurrencies: Vec<u32>,
        /// How often each cell is measured. Default: 1.
        #[serde(default = "one")]
        repeat: u32,
    },
    /// Finds the concurrency beyond which throughput no longer grows.
    Saturation {
        /// The stage whose one workload is tried at one concurrency after the other. A duration in it is that of each step.
        template: Box<Stage>,
        /// Searches that come after it, one after the other, each of a stage of its own with another op. What one of them writes the
        /// others read.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        then: Vec<Stage>,
        /// The search goes no higher. Default: 4096.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_concurrency: Option<u32>,
        /// A 99th percentile of the response above it ends the search.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        p99_ceiling: Option<Span>,
        /// Saturate this long first, so that the search does not follow a bucket that empties.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        drain: Option<Span>,
        /// Then latency in open loop at these fractions (0 to 1) of the rate that was found.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        load_points: Vec<f64>,
        /// All of it, from the preparation of data to cleaning up, takes about this long; absent: as many steps as each search needs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<Span>,
    },
    /// Finds ops and bytes limits, bursts, capacities and refill.
    Limits {
        /// The stage of whose load the limits are looked for.
        template: Box<Stage>,
        /// Time that the probe may take.
        budget: Span,
        /// Also find out which ops draw on the same bucket (objects only).
        #[serde(default)]
        probe_shared: bool,
        /// Also find out whether the limit is per connection, prefix, bucket, key or client (objects only): `true`, or a list of
        /// these. Bucket and key take a target in `scope_targets`, client takes agents on two machines or more.
        #[serde(default)]
        probe_scope: ScopeWish,
        /// Targets that differ from the template's in one thing, by that thing: `bucket` or `key`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        scope_targets: BTreeMap<String, String>,
    },
    /// Runs on for `duration`, whatever duration the template names, and reports cliffs as they come.
    Watch {
        /// The stage whose load is watched.
        template: Box<Stage>,
        /// Of the load, from the end of its warm-up.
        duration: Span,
    },
}

/// Whose a limit may be: what is asked of a probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ScopeWish {
    /// Whatever can be tried on one machine; or nothing.
    All(bool),
    /// These: `connection`, `prefix`, `bucket`, `key`, `client`.
    Only(Vec<String>),
}

impl Default for ScopeWish {
    fn default() -> Self {
        Self::All(false)
    }
}

impl ControllerSpec {
    /// The stages that its own are made from, in the order in which it takes them.
    pub fn templates(&self) -> impl Iterator<Item = &Stage> {
        let (first, then): (&Stage, &[Stage]) = match self {
            Self::Saturation { template, then, .. } => (template, then),
            Self::Sweep { template, .. } | Self::Limits { template, .. } | Self::Watch { template, .. } => {
                (template, &[])
            }
        };
        std::iter::once(first).chain(then)
    }

    /// The time that all of it may take, from the preparation of data to cleaning up; `None`: as long as it takes.
    pub fn budget(&self) -> Option<Span> {
        match self {
            Self::Limits { budget, .. } => Some(*budget),
            Self::Saturation { budget, .. } => *budget,
            Self::Sweep { .. } | Self::Watch { .. } => None,
        }
    }
}
