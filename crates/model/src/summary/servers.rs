//! What the servers did while they were measured, as far as it was observed: part of a run's summary.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{format_line_rate, significant};

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
    /// Work of the servers' own, and lack of redundancy, before, in and after the windows: in order of time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<BackgroundSpan>,
    /// Pools at their last reading, the fullest first. Empty: no source tells of pools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PoolUse>,
}

/// What lies in a pool, whoever put it there.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PoolUse {
    /// Its name.
    pub name: String,
    /// As the servers say it: `ec:2+2`, `replica:3`.
    pub redundancy: String,
    /// Payload.
    pub stored_bytes: f64,
    /// What that takes of the drives.
    pub used_bytes: f64,
    /// Of the drives for each byte stored. Null: too little is stored to tell.
    pub per_byte: Option<f64>,
    /// The same by its redundancy. Null: of a kind that is not known.
    pub expected: Option<f64>,
}

/// A stretch of time in which sources told of one kind of work in the background, or of something that was down.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BackgroundSpan {
    /// In words, with the most that was seen: `1 drive(s) healing`.
    pub what: String,
    /// Seconds since the run's start: of the first reading that told of it.
    pub start_s: f64,
    /// Of the first reading that no longer did, or of the last of all.
    pub end_s: f64,
    /// Some of it was in a measured window.
    pub in_window: bool,
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
    /// Where the clients' bytes went beside, and what redundancy makes of them by arithmetic.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<TrafficUse>,
    /// What clients other than ours moved: bytes at the servers less ours, a second. Null: the servers do not count bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others_per_s: Option<f64>,
    /// Which of the resources was the limit, as far as that was seen. Null: no ceiling is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<ServersLimit>,
}

/// One way that bytes go, beside what clients move.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TrafficUse {
    /// `written to drives`, `read from drives`, `between servers` or `with clients`.
    pub what: String,
    /// Bytes a second.
    pub per_s: f64,
    /// For each byte that clients wrote, read, or moved. Null: not all nodes were observed.
    pub per_byte: Option<f64>,
    /// The same by arithmetic (`cluster.toml`). Null: the redundancy is not known.
    pub expected: Option<f64>,
    /// The least that it may be: servers that read their own shards first.
    pub expected_least: Option<f64>,
    /// Who counted: `drives`, `daemons`, `servers' own counters`, `interfaces of their own network`, `interfaces, less payload`.
    pub counted_by: String,
}

/// What was at its ceiling, and what was not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServersLimit {
    /// `one`, `several`, `none`.
    pub verdict: String,
    /// Kinds at their ceilings, each with the names of those that were: `network in: eth0 of s1 and 3 more: 4 of 4`.
    pub at_ceiling: Vec<String>,
    /// The resource kind that binds, where it is one: `cpu`, `network in`, `network out`, `drive`.
    pub resource: String,
    /// Mean part of the ceiling of those of that kind that were at it; where none was, of all of the fullest kind.
    pub share: f64,
    /// How many were at their ceilings.
    pub full: u64,
    /// How many of that kind there are.
    pub of: u64,
    /// What one of those can give, in `unit`; the mean.
    pub ceiling: f64,
    /// As of the resource.
    pub unit: String,
    /// For a person.
    pub text: String,
    /// Where none was at its ceiling: where to look next. Empty of a rate that was offered and met.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub next: String,
}

impl ServersLimit {
    /// In a few words, for a sentence that goes on: `the servers' network in at its ceiling (96 % of 200Mbit/s)`.
    pub fn in_short(&self) -> String {
        let kinds = || -> Vec<&str> {
            self.at_ceiling.iter().map(|t| t.split(':').next().unwrap_or(t.as_str())).collect()
        };
        match self.verdict.as_str() {
            "one" => {
                let share = format!("{} %", significant(100.0 * self.share, 2));
                let of = match ceiling_words(&self.resource, &self.unit, self.ceiling) {
                    Some(ceiling) => format!("{share} of {ceiling}"),
                    None => format!("busy {share} of the time"),
                };
                // That all were needs no count.
                let few = if self.full < self.of {
                    format!("{} of {}: ", self.full, self.of)
                } else {
                    String::new()
                };
                format!("the servers' {} at its ceiling ({few}{of})", self.resource)
            }
            "several" => {
                format!("several of the servers' resources at their ceilings ({})", kinds().join(", "))
            }
            _ if !self.at_ceiling.is_empty() => format!("{} at its ceiling", kinds().join(", ")),
            _ => "none of the servers' resources that were observed at its ceiling".into(),
        }
    }
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
    /// Who says what the ceiling is: empty, the exporter; else `cluster.toml`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ceiling_of: String,
    /// Mean part of the ceiling, 0 to 1.
    pub share: Option<f64>,
    /// Share of the time in which it was at or above the threshold.
    pub time_above: Option<f64>,
    /// Of the share.
    pub threshold: f64,
    /// Mean time of a drive's requests, those that waited included, seconds. Null: not told, or there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_s: Option<f64>,
    /// Of a drive at its ceiling at which requests take twice as long as at half of the drives with the same work, or longer: theirs, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peers_request_s: Option<f64>,
    /// What it gives by `cluster.toml`, where it was found to give less: B/s; of a drive at the mix of reads and writes that it had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<f64>,
    /// Whether something waited for it, where that is known: more than one request at a drive, tasks for a CPU.
    pub waited_for: Option<bool>,
    /// `at its ceiling`, `busy, nothing waited for it`, `below its ceiling`, `ceiling not known`, or `above what it is said to give`: then the
    /// ceiling or the count is wrong, and there is no share.
    pub verdict: String,
}

impl ResourceUse {
    /// `eth0 of s1`.
    pub fn name(&self) -> String {
        match self.device.as_str() {
            "" => self.host.clone(),
            device => format!("{device} of {}", self.host),
        }
    }
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

/// What a resource gives at most, in the unit it is known by: `25Gbit/s`, `200 MB/s`, `8 cores`. `None`: it is known by its time, of which there
/// is all.
pub fn ceiling_words(resource: &str, unit: &str, ceiling: f64) -> Option<String> {
    match (resource, unit) {
        (_, "busy") => None,
        ("drive", _) => Some(format!("{} MB/s", significant(ceiling / 1e6, 3))),
        (_, "B/s") => Some(format_line_rate(ceiling)),
        _ => Some(format!("{} cores", significant(ceiling, 2))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_said_in_a_few_words() {
        let one = ServersLimit {
            verdict: "one".into(),
            at_ceiling: vec!["network in: eth0 of s1 and 3 more: 4 of 4".into()],
            resource: "network in".into(),
            share: 0.957,
            full: 4,
            of: 4,
            ceiling: 25e6,
            unit: "B/s".into(),
            ..ServersLimit::default()
        };
        assert_eq!(one.in_short(), "the servers' network in at its ceiling (96 % of 200Mbit/s)");
        let drive = ServersLimit { resource: "drive".into(), unit: "busy".into(), ..one.clone() };
        assert_eq!(drive.in_short(), "the servers' drive at its ceiling (busy 96 % of the time)");
        let slow = ServersLimit { full: 1, ..one.clone() };
        assert_eq!(slow.in_short(), "the servers' network in at its ceiling (1 of 4: 96 % of 200Mbit/s)");
        let at_ceiling = vec!["network in: eth0 of s1: 1 of 4".into(), "cpu: s1: 1 of 4".into()];
        let several = ServersLimit { verdict: "several".into(), at_ceiling, ..one.clone() };
        assert_eq!(
            several.in_short(),
            "several of the servers' resources at their ceilings (network in, cpu)"
        );
        let at_ceiling = vec!["cpu shared with the client: s1".into()];
        let shared = ServersLimit { verdict: "none".into(), at_ceiling, ..one.clone() };
        assert_eq!(shared.in_short(), "cpu shared with the client at its ceiling");
        let none = ServersLimit { verdict: "none".into(), at_ceiling: Vec::new(), ..one };
        assert!(none.in_short().starts_with("none of the servers' resources that were observed"));
    }
}
