//! `analysis.json`: what was worked out from a run's raw data beside the summary. It says where each line's
//! data and measured window lie, and holds the evidence behind the report's plots and tables.
//!
//! Everything but `schema` may be empty: a report shows what is there. Times are seconds since the run's start.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Estimate, OpKind};

pub const SCHEMA: &str = "plimsoll.analysis/1";

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Analysis {
    pub schema: String,
    /// Where each line of the summary lies in the series; one entry per repeat.
    pub spans: Vec<LineSpan>,
    /// Does it hold? Levels, cliffs and horizon per line.
    pub holds: Vec<Hold>,
    /// Spans in which storage that was being asked answered next to nothing.
    pub outages: Vec<crate::claim::Outage>,
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

/// An event on the run's time axis that a person put there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Remark {
    /// Seconds since the run's start.
    pub at_s: f64,
    pub text: String,
    /// By `--mark-at`, and not by `plimsoll mark`.
    pub planned: bool,
}

/// One stage's part of a line of the summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineSpan {
    /// Index into `RunSummary::workloads`.
    pub line: usize,
    pub stage: u32,
    /// Index of the workload in the stage.
    pub workload: u16,
    pub kind: OpKind,
    /// Which repeat of the cell, from 0.
    pub repeat: u32,
    /// From the first submission to the last completion.
    pub start_s: f64,
    pub end_s: f64,
    /// The measured window. Equal ends: there was none.
    pub window_start_s: f64,
    pub window_end_s: f64,
}

/// Result of the steady-state analysis of one line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Hold {
    pub line: usize,
    /// `ops` or `bytes`: what the levels count.
    pub unit: String,
    /// `steady`, `drifting`, `unstable`, `throttled` or `undetermined`.
    pub verdict: String,
    /// What is missing, when undetermined.
    pub reason: String,
    pub levels: Vec<Level>,
    /// Downward steps that were judged.
    pub cliffs: Vec<Cliff>,
    /// Short dips and catch-up spikes that are no levels: (start, end).
    pub events: Vec<(f64, f64)>,
    /// End of what was seen; later is unknown.
    pub horizon_s: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    pub start_s: f64,
    pub end_s: f64,
    pub per_s: Estimate,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cliff {
    pub at_s: f64,
    pub from_per_s: f64,
    pub to_per_s: f64,
    /// `throttle-proved`, `throttle-likely`, `cliff, cause open`, `gradual decline`, ...
    pub verdict: String,
    pub evidence: Vec<Evidence>,
}

/// One row of an evidence table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Evidence {
    /// E1 to E7 of the methods.
    pub code: String,
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
    pub target: String,
    pub op_class: String,
    /// `ops`, `bytes`, or `undetermined` when one size cannot tell them apart.
    pub unit: String,
    pub sustained_per_s: Option<Estimate>,
    pub burst_per_s: Option<Estimate>,
    pub capacity: Option<Estimate>,
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
    pub cliff_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recovery {
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
    pub target: String,
    pub op_class: String,
    /// O; null with `ops_at_least` when only bounded.
    pub ops_per_s: Option<Estimate>,
    pub ops_at_least: Option<f64>,
    /// W.
    pub bytes_per_s: Option<Estimate>,
    pub bytes_at_least: Option<f64>,
    /// s* = W/O.
    pub knee_bytes: Option<Estimate>,
    /// L0.
    pub base_ns: Option<Estimate>,
    /// v.
    pub stream_bytes_per_s: Option<Estimate>,
    pub p: Option<f64>,
    /// What p says: two independent limiters, one shared resource, or open; `neither cap binds`; `not monotone`;
    /// `undetermined: REASON` where the cells carry no model.
    pub reading: String,
    /// Where all cells were made with so many in flight, and nothing was made with more: what they come to is said for that.
    pub in_flight: Option<u32>,
    /// Runs of each cell. From one, how much runs differ is assumed, not measured.
    pub repeats: u32,
    pub cells: Vec<Cell>,
}

impl SizeModel {
    /// How the reading begins where the cells carry no model.
    pub const UNDETERMINED: &str = "undetermined: ";
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    pub size_bytes: u64,
    pub concurrency: u32,
    pub ops_per_s: Estimate,
    /// What the model says for this cell.
    pub predicted: Option<f64>,
    /// `ops`, `bytes`, `latency`, `mixed`, `client` or `undetermined`.
    pub binding: String,
    /// How far the next cap lies above, as a ratio (1.15: 15 %).
    pub room: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Saturation {
    pub op_class: String,
    pub size_bytes: u64,
    pub points: Vec<SaturationPoint>,
    /// Smallest concurrency that reaches 95 % of the plateau.
    pub c95: Option<Estimate>,
    pub plateau_per_s: Option<Estimate>,
    /// The next lower concurrency surely (95 %) does not reach 95 % of the plateau.
    pub fewer_fall_short: bool,
    /// `saturated`, `client limited`, `state changed during search`, ...
    pub verdict: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SaturationPoint {
    pub concurrency: u32,
    pub ops_per_s: Estimate,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Scaling {
    pub name: String,
    /// `ops/s` or `bytes/s`.
    pub unit: String,
    pub points: Vec<ScalingPoint>,
    /// Predictions; speculative beyond 1.5 times what was measured.
    pub predictions: Vec<ScalingPrediction>,
    /// Number of nodes with the greatest rate, where crosstalk is surely there.
    pub peak_nodes: Option<f64>,
    pub verdict: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingPoint {
    pub nodes: u32,
    pub per_s: Estimate,
    /// Against the smallest number of nodes; 1 is linear.
    pub efficiency: Option<Estimate>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingPrediction {
    pub nodes: u32,
    pub per_s: Estimate,
    pub efficiency: Option<Estimate>,
    pub speculative: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Comparison {
    /// What is compared: `put 64KiB ops/s`.
    pub name: String,
    pub unit: String,
    /// `rate`, `mean response` or `p99 response`.
    pub measure: String,
    pub op: String,
    pub size_bytes: u64,
    pub concurrency: u32,
    pub a_name: String,
    pub b_name: String,
    /// Run means in the order in which they were made; paired by index when `paired`.
    pub a: Vec<f64>,
    pub b: Vec<f64>,
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

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LoadPoint {
    pub op_class: String,
    /// Of the sustained limit's lower bound.
    pub fraction: f64,
    pub offered_per_s: f64,
    pub achieved_per_s: Option<Estimate>,
    pub sustainable: bool,
    /// Codes of what makes this point invalid; the others stand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<String>,
    pub response: Option<crate::summary::LatencySummary>,
    pub service: Option<crate::summary::LatencySummary>,
    /// (quantile, nanoseconds) for the percentile spectrum.
    pub response_spectrum: Vec<(f64, f64)>,
    pub service_spectrum: Vec<(f64, f64)>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Bottleneck {
    pub candidate: String,
    /// With unit, as text.
    pub measured: String,
    pub threshold: String,
    /// Share of the window in which it was above the threshold.
    pub time_fraction: Option<f64>,
    /// `is`, `consistent with`, `clear` or `unknown`.
    pub verdict: String,
    /// The cheapest experiment that would settle it.
    pub next: String,
}

/// One validity check and how it went.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Check {
    pub code: String,
    pub name: String,
    /// `pass`, `fail`, `note` or `not tested`.
    pub result: String,
    pub measured: String,
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
