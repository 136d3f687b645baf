//! `analysis.json`: what was worked out from a run's raw data beside the summary. It says where each line's
//! data and measured window lie, and holds the evidence behind the report's plots and tables.
//!
//! Everything but `schema` may be empty: a report shows what is there. Times are seconds since the run's start.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::PayloadCeiling;
use crate::{Estimate, OpKind};

/// Of `analysis.json`; within it names are added, none changes.
pub const SCHEMA: &str = "plimsoll.analysis/1";

/// What was worked out from a run's raw data beside its summary: the evidence behind plots and tables. Times are seconds since the
/// run's start; everything but `schema` may be empty.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Analysis {
    /// `plimsoll.analysis/1`.
    pub schema: String,
    /// Where each line of the summary lies in the series; one entry per repeat.
    pub spans: Vec<LineSpan>,
    /// Does it hold? Levels, cliffs and horizon per line.
    pub holds: Vec<Hold>,
    /// Spans in which storage that was being asked answered next to nothing.
    pub outages: Vec<crate::claim::Outage>,
    /// Stretches in which everything that was asked for was refused, or the load paused because it had been.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub throttled: Vec<ThrottledSpan>,
    /// What persons noted while the run went on, or had planned.
    pub remarks: Vec<Remark>,
    /// Token buckets, with their drains.
    pub buckets: Vec<BucketFit>,
    /// Which cap binds at which size and concurrency.
    pub size_models: Vec<SizeModel>,
    /// How many in flight are enough.
    pub saturations: Vec<Saturation>,
    /// What more nodes bring.
    pub scalings: Vec<Scaling>,
    /// What the servers of two configurations used, side by side.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub server_comparisons: Vec<ServerComparison>,
    /// A against B.
    pub comparisons: Vec<Comparison>,
    /// Latency at fractions of the sustained limit.
    pub load_points: Vec<LoadPoint>,
    /// Candidates for the bottleneck, the likeliest first.
    pub bottlenecks: Vec<Bottleneck>,
    /// Every validity check that was made, passed or not.
    pub checks: Vec<Check>,
    /// What to do with the figures, in the units of the tools that people use. One sentence each.
    pub advice: Vec<String>,
}

/// A stretch in which everything that was asked for was refused (429, 503): storage that answers so is throttled, and not out. Times are
/// seconds since the run's start.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ThrottledSpan {
    /// Index of the stage, in the order in which stages ran, from 0.
    pub stage: u32,
    /// The endpoint, device or directory.
    pub at: String,
    /// Begin of the first step of time in which nothing got through.
    pub from_s: f64,
    /// Null: it had not ended when the load did.
    pub to_s: Option<f64>,
    /// When the load ended.
    pub seen_until_s: f64,
    /// Attempts that were refused in it.
    pub refused: u64,
    /// It came alone, with 503: a proxy before storage that is down answers so, too.
    pub may_be_down: bool,
}

impl ThrottledSpan {
    /// Until it was last seen, where it had not ended.
    pub fn length_s(&self) -> f64 {
        self.to_s.unwrap_or(self.seen_until_s) - self.from_s
    }
}

/// An event on the run's time axis that a person put there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Remark {
    /// Seconds since the run's start.
    pub at_s: f64,
    /// In the person's own words.
    pub text: String,
    /// By `--mark-at`, and not by `plimsoll mark`.
    pub planned: bool,
}

/// One stage's part of a line of the summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineSpan {
    /// Index into `workloads` of the summary.
    pub line: usize,
    /// Index of the stage, in the order in which stages ran, from 0.
    pub stage: u32,
    /// Index of the workload in the stage.
    pub workload: u16,
    /// The ops that the line counts.
    pub kind: OpKind,
    /// Which repeat of the cell, from 0.
    pub repeat: u32,
    /// From the first submission to the last completion.
    pub start_s: f64,
    /// The last completion.
    pub end_s: f64,
    /// The measured window. Equal ends: there was none.
    pub window_start_s: f64,
    /// End of the last whole slice before the load stopped.
    pub window_end_s: f64,
}

/// Result of the steady-state analysis of one line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Hold {
    /// Index into `workloads` of the summary.
    pub line: usize,
    /// `ops` or `bytes`: what the levels count.
    pub unit: String,
    /// `steady`, `growing` (level after level), `sawtooth`, `drifting`, `unstable`, `throttled` or `undetermined`.
    pub verdict: String,
    /// What is missing, when undetermined.
    pub reason: String,
    /// Stretches in which the rate held, in order of time.
    pub levels: Vec<MeasuredLevel>,
    /// Downward steps that are sharp, and clear of slow variation.
    pub cliffs: Vec<Cliff>,
    /// Short dips and catch-up spikes that are no levels: (start, end).
    pub events: Vec<(f64, f64)>,
    /// End of what was seen; later is unknown.
    pub horizon_s: f64,
}

/// A stretch of time in which a rate held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Level")]
pub struct MeasuredLevel {
    /// Since the run's start.
    pub start_s: f64,
    /// Since the run's start; where it is the last, the end of what was seen.
    pub end_s: f64,
    /// Mean rate in it, of the `unit` that stands beside the levels.
    pub per_s: Estimate,
}

/// A step down from one level to the next, and what it is taken for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cliff {
    /// Since the run's start.
    pub at_s: f64,
    /// Mean rate before it, of the `unit` that stands beside the cliffs.
    pub from_per_s: f64,
    /// Mean rate after it.
    pub to_per_s: f64,
    /// `throttle-proved`, `throttle-likely`, `cliff, cause open`, `gradual decline`, ...
    pub verdict: String,
    /// One row for each test that was made or could not be made.
    pub evidence: Vec<Evidence>,
}

/// One row of an evidence table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Evidence {
    /// E1 to E7 of the methods.
    pub code: String,
    /// What was tested, with what was seen.
    pub text: String,
    /// Null: could not be tested.
    pub holds: Option<bool>,
    /// `decisive`, `needed` or `supports`.
    pub weight: String,
}

/// A token bucket: fitted to a passive series or measured by the probe.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BucketFit {
    /// Its name in the plan.
    pub target: String,
    /// `get`, ...; `total`: all kinds of a mix.
    pub op_class: String,
    /// `ops`, `bytes`, or `undetermined` when one size cannot tell them apart.
    pub unit: String,
    /// What passes once the bucket is empty, per second.
    pub sustained_per_s: Option<Estimate>,
    /// What passes while there are tokens, per second.
    pub burst_per_s: Option<Estimate>,
    /// Tokens of a full bucket: ops or bytes.
    pub capacity: Option<Estimate>,
    /// Tokens that come back per second of rest.
    pub refill_per_s: Option<Estimate>,
    /// Seconds of idleness after which it is full again.
    pub full_again_s: Option<Estimate>,
    /// `measured`, `bound` or `undetermined`.
    pub status: String,
    /// Cumulative work of the drains.
    pub drains: Vec<Drain>,
    /// Tokens that came back, by idle time.
    pub recoveries: Vec<Recovery>,
    /// Smallest capacity that any limiter with this sustained rate must have: (rate, capacity).
    pub frontier: Vec<(f64, f64)>,
}

/// Cumulative work from a drain's start: at most a few hundred points.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Drain {
    /// When it began in the run.
    pub start_s: f64,
    /// (seconds since its start, ops or bytes done since).
    pub work: Vec<(f64, f64)>,
    /// When the bucket was empty, seconds since the drain's start. Null: not seen.
    pub cliff_s: Option<f64>,
}

/// What an idle time brought back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recovery {
    /// Seconds without load.
    pub idle_s: f64,
    /// Tokens recovered beyond what the sustained rate gave.
    pub tokens: Estimate,
    /// The bucket was full again before the idle time ended.
    pub saturated: bool,
}

/// The limit model `X(s, c) = (O^-p + (W/s)^-p + (c/(L0 + s/v))^-p)^(-1/p)`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SizeModel {
    /// Its name in the plan.
    pub target: String,
    /// `get`, ...; `total`: all kinds of a mix.
    pub op_class: String,
    /// O; null with `ops_at_least` when only bounded.
    pub ops_per_s: Option<Estimate>,
    /// The most that was seen, ops per second; null where O is known.
    pub ops_at_least: Option<f64>,
    /// W.
    pub bytes_per_s: Option<Estimate>,
    /// The most that was seen, bytes per second; null where W is known.
    pub bytes_at_least: Option<f64>,
    /// s* = W/O.
    pub knee_bytes: Option<Estimate>,
    /// L0.
    pub base_ns: Option<Estimate>,
    /// v.
    pub stream_bytes_per_s: Option<Estimate>,
    /// How sharply one cap takes over from the other: the larger, the sharper. Null: the cells do not tell.
    pub p: Option<f64>,
    /// What p says: two independent limiters, one shared resource, or open; `neither cap binds`; `not monotone`;
    /// `undetermined: REASON` where the cells carry no model.
    pub reading: String,
    /// Where all cells were made with so many in flight, and nothing was made with more: what they come to is said for that.
    pub in_flight: Option<u32>,
    /// Runs of each cell. From one, how much runs differ is assumed, not measured.
    pub repeats: u32,
    /// One for each size and concurrency that was measured.
    pub cells: Vec<SizeModelCell>,
}

impl SizeModel {
    /// How the reading begins where the cells carry no model.
    pub const UNDETERMINED: &str = "undetermined: ";
}

/// One size at one concurrency, all of its repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Cell")]
pub struct SizeModelCell {
    /// Of each op.
    pub size_bytes: u64,
    /// Ops in flight.
    pub concurrency: u32,
    /// Measured.
    pub ops_per_s: Estimate,
    /// What the model says for this cell.
    pub predicted: Option<f64>,
    /// `ops`, `bytes`, `latency`, `mixed`, `client` or `undetermined`.
    pub binding: String,
    /// How far the next cap lies above, as a ratio (1.15: 15 %).
    pub room: Option<f64>,
}

/// A search for the concurrency beyond which the rate no longer grows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Saturation {
    /// `get`, ...; `total`: all kinds of a mix.
    pub op_class: String,
    /// Of each op; the mean where sizes differ.
    pub size_bytes: u64,
    /// One for each concurrency, ascending, repeats merged.
    pub points: Vec<SaturationPoint>,
    /// Smallest concurrency that reaches 95 % of the plateau.
    pub c95: Option<Estimate>,
    /// Mean of the highest points, ops per second: what more in flight does not raise, where the verdict is `saturated`.
    pub plateau_per_s: Option<Estimate>,
    /// The next lower concurrency surely (95 %) does not reach 95 % of the plateau.
    pub fewer_fall_short: bool,
    /// `saturated`, `client limited`, `state changed during search`, ...
    pub verdict: String,
    /// Seconds of a budget (`--budget`) with which each search of the run would be answered; null where this one is.
    pub budget_needed_s: Option<f64>,
    /// Codes of what makes this search void, where it is one of several: the others may stand.
    pub invalid: Vec<String>,
    /// What the servers let through by `cluster.toml` and what redundancy makes of the bytes, the least first; absent: not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ceilings: Vec<PayloadCeiling>,
    /// What observed servers had at its ceiling with the concurrency that was found, where all of its repeats agree; absent: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<String>,
}

impl Saturation {
    /// What part of the ceilings of a network, or of drives, a rate of ops comes to. `None`: none is known.
    pub fn part_of(&self, resource: &str, ops_per_s: f64) -> Option<f64> {
        let own = self.ceilings.iter().find(|c| c.resource.starts_with(resource) && c.per_s > 0.0)?;
        // Then the description is wrong, and a finding says so.
        Some(ops_per_s * self.size_bytes as f64 / own.per_s)
            .filter(|part| *part <= crate::observed::NO_CEILING)
    }

    /// Begin of the verdict on a search in which a limiter refused attempts; from how many in flight on may follow.
    pub const REFUSED: &'static str = "a limiter refused attempts";
    /// Name of the finding (F20) of a search that its budget kept from an answer.
    pub const BUDGET_TOO_SHORT: &'static str = "budget_too_short";

    /// How it ended, with the budget that would do where it was too short.
    pub fn result(&self) -> String {
        match self.budget_needed_s {
            Some(s) => format!("undetermined: {}; {}", self.verdict, Self::would_do(s)),
            None => self.verdict.clone(),
        }
    }

    /// `--budget 3m would do`.
    pub fn would_do(needed_s: f64) -> String {
        let budget = crate::units::Span(std::time::Duration::from_secs_f64(needed_s.clamp(0.0, 1e9)));
        format!("--budget {budget} would do")
    }
}

/// One concurrency of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SaturationPoint {
    /// Ops in flight.
    pub concurrency: u32,
    /// Mean of its repeats.
    pub ops_per_s: Estimate,
    /// Median response, nanoseconds. Null: too few ops.
    pub p50_ns: Option<u64>,
    /// 99th percentile of the response, nanoseconds. Null: too few ops.
    pub p99_ns: Option<u64>,
}

/// How the rate grows with the number of nodes, for one line that all runs have.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Scaling {
    /// Op and size of the line: `get 4 MiB`.
    pub name: String,
    /// Of all rates here: `ops/s` or `bytes/s`.
    pub unit: String,
    /// One for each number of nodes, ascending.
    pub points: Vec<ScalingPoint>,
    /// Predictions; speculative beyond 1.5 times what was measured.
    pub predictions: Vec<ScalingPrediction>,
    /// Number of nodes with the greatest rate, where crosstalk is surely there.
    pub peak_nodes: Option<f64>,
    /// What was found, in words.
    pub verdict: String,
}

/// One number of nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingPoint {
    /// How many there were.
    pub nodes: u32,
    /// Mean of its runs, in `unit`.
    pub per_s: Estimate,
    /// Against the smallest number of nodes; 1 is linear.
    pub efficiency: Option<Estimate>,
    /// Which of the servers' resources was at its ceiling in most of the runs: `network in`. Absent: not seen, or none alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<String>,
    /// What that resource would let through at this size, in `unit`: the rate by the mean part of its ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_per_s: Option<f64>,
}

/// One thing that servers used, of the runs of two configurations: less is better.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerComparison {
    /// `servers' CPU`, `bytes to drives`, `bytes between servers`.
    pub measure: String,
    /// `s/GiB`, or `B/B`: for each byte of the clients.
    pub unit: String,
    /// Of each run.
    pub a: Vec<f64>,
    /// Likewise of B.
    pub b: Vec<f64>,
    /// A over B, with the interval between runs. Null: too few of them.
    pub ratio: Option<Estimate>,
}

/// What a number of nodes that was not measured would give.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingPrediction {
    /// How many there would be.
    pub nodes: u32,
    /// In `unit`; the interval covers both the fit and how much runs differ.
    pub per_s: Estimate,
    /// Against the smallest number of nodes that was measured; 1 is linear.
    pub efficiency: Option<Estimate>,
    /// More than 1.5 times the most that was measured.
    pub speculative: bool,
}

/// One line that both sides have, compared in one measure.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Comparison {
    /// What is compared: `put 64KiB ops/s`.
    pub name: String,
    /// Of `a` and `b`: `op/s` or `ns`.
    pub unit: String,
    /// `rate`, `mean response` or `p99 response`.
    pub measure: String,
    /// `get`, ...; `total`: all kinds of a mix.
    pub op: String,
    /// Of each op.
    pub size_bytes: u64,
    /// Ops in flight.
    pub concurrency: u32,
    /// What A is called: the side that the outcome speaks of.
    pub a_name: String,
    /// What B is called: the other side.
    pub b_name: String,
    /// Run means in the order in which they were made; paired by index when `paired`.
    pub a: Vec<f64>,
    /// Likewise of B.
    pub b: Vec<f64>,
    /// Runs of A and B took turns: what both had in common cancels out.
    pub paired: bool,
    /// A over B.
    pub ratio: Option<Estimate>,
    /// Smallest ratio minus one that this campaign could have seen with 80 % power.
    pub detectable: Option<f64>,
    /// `faster` (A is better), `slower`, `none seen` or `undetermined`.
    pub outcome: String,
    /// Whether the difference holds among all that were tested (Holm); null where none was seen.
    pub holds_among_all: Option<bool>,
    /// The outcome as a sentence.
    pub verdict: String,
}

/// Latency in open loop at a fraction of what the storage sustains.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LoadPoint {
    /// `get`, ...; `total`: all kinds of a mix.
    pub op_class: String,
    /// Of the sustained limit's lower bound.
    pub fraction: f64,
    /// Ops per second that were intended to start.
    pub offered_per_s: f64,
    /// Ops per second that ended well. Null: the data does not carry it.
    pub achieved_per_s: Option<Estimate>,
    /// What was offered came through, and no backlog grew.
    pub sustainable: bool,
    /// Codes of what makes this point invalid; the others stand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<String>,
    /// From the intended start: the waiting is in it.
    pub response: Option<crate::summary::LatencySummary>,
    /// From submission.
    pub service: Option<crate::summary::LatencySummary>,
    /// (quantile, nanoseconds) for the percentile spectrum.
    pub response_spectrum: Vec<(f64, f64)>,
    /// The same of the service time.
    pub service_spectrum: Vec<(f64, f64)>,
}

/// Something that may hold the rate down, with what speaks for it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Bottleneck {
    /// What it is, and which one of its kind.
    pub candidate: String,
    /// With unit, as text.
    pub measured: String,
    /// Above it, it counts as in use to the full. With unit, as text.
    pub threshold: String,
    /// Share of the window in which it was above the threshold.
    pub time_fraction: Option<f64>,
    /// `proved`, `consistent with`, `clear`, `the offered rate was met` or `the limiter sets the rate`.
    pub verdict: String,
    /// The cheapest experiment that would settle it.
    pub next: String,
}

/// One validity check and how it went.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Check {
    /// `V07`, ...: see METHODOLOGY.md.
    pub code: String,
    /// For a person: `client_bound`.
    pub name: String,
    /// `pass`, `fail`, `note` or `not tested`.
    pub result: String,
    /// The worst that was seen, with unit, as text; empty where nothing was.
    pub measured: String,
    /// What is allowed, with unit, as text.
    pub threshold: String,
    /// What to change.
    pub remedy: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_file_with_fewer_names_is_read() {
        let a: Analysis =
            serde_json::from_str(r#"{"schema":"plimsoll.analysis/1","holds":[{"line":1}]}"#).unwrap();
        assert_eq!(a.holds[0].line, 1);
        assert!(a.buckets.is_empty());
    }
}
