//! What the servers did while they were measured, as far as it was observed: part of a run's summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the servers did meanwhile, by the sources that were asked (`--observe`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServersSummary {
    /// Who was asked, and what that cost.
    pub sources: Vec<SourceSummary>,
    /// For each measured window in which a difference could be made, in order of time.
    pub windows: Vec<ServersWindow>,
    /// Kinds of resources, and hosts of the endpoints, of which nothing was seen.
    pub not_observed: Vec<String>,
}

/// One source.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SourceSummary {
    /// Make and address.
    pub source: String,
    /// Requests for it.
    pub asked: u64,
    /// Of these, without figures.
    pub gaps: u64,
    /// Its counters are made anew no more often than this, seconds; 0: with each request.
    pub resolution_s: f64,
    /// Mean time of a request, seconds.
    pub took_s: f64,
    /// Of all answers.
    pub bytes: u64,
    /// CPU time that asking and reading took on this machine, seconds.
    pub client_cpu_s: f64,
    /// What its clock was ahead of ours, seconds: the median. Null: it does not say.
    pub clock_ahead_s: Option<f64>,
    /// Hosts that it tells of.
    pub hosts: Vec<String>,
}

/// One measured window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServersWindow {
    /// Index of the stage.
    pub stage: u32,
    /// Seconds since the run's start: from the first reading in the window on.
    pub start_s: f64,
    /// To the last.
    pub end_s: f64,
    /// Resources of hosts, the fullest first; those without a known ceiling at the end.
    pub resources: Vec<ResourceUse>,
    /// What each kind of daemon used.
    pub daemons: Vec<DaemonUse>,
    /// What servers counted beside what we did in the same time.
    pub requests: Vec<RequestCount>,
    /// Payload that clients read, bytes a second, between the first and the last reading.
    pub clients_read_per_s: f64,
    /// Payload that clients wrote.
    pub clients_wrote_per_s: f64,
    /// What the observed hosts' drives read, bytes a second. Null: no drives were seen.
    pub drives_read_per_s: Option<f64>,
    /// What they wrote.
    pub drives_wrote_per_s: Option<f64>,
    /// What servers sent to each other. Null: none says so.
    pub internode_per_s: Option<f64>,
}

/// How much of a resource was used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ResourceUse {
    /// `cpu`, `network in`, `network out` or `drive`.
    pub resource: String,
    /// Whose.
    pub host: String,
    /// Which interface or drive; empty: all CPUs.
    pub device: String,
    /// Mean over the window, in `unit`.
    pub reached: f64,
    /// What it can give, in the same unit. Null: not known.
    pub ceiling: Option<f64>,
    /// `cores`, `B/s`, or `busy` (share of the time).
    pub unit: String,
    /// Mean part of the ceiling, 0 to 1.
    pub share: Option<f64>,
    /// Share of the time in which it was at or above the threshold.
    pub time_above: Option<f64>,
    /// Of the share.
    pub threshold: f64,
    /// Whether something waited for it, where that is known: more than one request at a drive, tasks for a CPU.
    pub waited_for: Option<bool>,
    /// `at its ceiling`, `busy, nothing waited for it`, `below its ceiling` or `ceiling not known`.
    pub verdict: String,
}

/// What all daemons of a kind used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DaemonUse {
    /// `osd`, `rgw`, `minio`, ...
    pub kind: String,
    /// How many were seen.
    pub daemons: u64,
    /// Mean, of all together.
    pub cores: f64,
    /// CPU seconds for each GiB that clients moved. Null: nothing was moved.
    pub cpu_s_per_gib: Option<f64>,
    /// CPU seconds for each op that succeeded. Null: none did.
    pub cpu_s_per_op: Option<f64>,
    /// The most that one of them had in memory. Null: not seen.
    pub rss_bytes: Option<f64>,
}

/// Requests of one op.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RequestCount {
    /// Our name of the op.
    pub op: String,
    /// What the observed servers counted.
    pub servers: f64,
    /// What we did between the same readings, all attempts.
    pub ours: f64,
    /// How far these may be apart for no reason: what was in flight at both ends, and slices that were cut there.
    pub uncertain_by: f64,
}
