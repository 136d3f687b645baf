//! `summary.json`: the contract with whoever reads our results. Names may be added, not changed,
//! within a schema number.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Claim, Environment, Estimate, Finding, Histogram, RunStatus};

pub mod servers;
mod validity;

/// Of `summary.json`; within it names are added, none changes.
pub const SCHEMA: &str = "plimsoll.run/2";
/// What came before: `valid` was true with void lines in it, and lines did not say whether they are. Still read.
pub const SCHEMA_1: &str = "plimsoll.run/1";

/// What is said of a run: a verdict in words, the claims that it is made of, and a line of figures for each workload and op.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// `plimsoll.run/2`.
    pub schema: String,
    /// Name of the run, and of its directory.
    pub id: String,
    /// Every line is.
    pub valid: bool,
    /// How much of it may be used: `valid`, `partly` or `none`.
    #[serde(default)]
    pub status: RunStatus,
    /// What was asked for is answered, though lines may be void. Exit code 3 otherwise.
    #[serde(default)]
    pub answered: bool,
    /// One paragraph for a person: the words of the claims.
    pub verdict: String,
    /// What is said, each with its evidence.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// What voids or qualifies the result, and what else was found.
    pub findings: Vec<Finding>,
    /// What persons noted while the run went on, or had planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<crate::analysis::Remark>,
    /// One line for each workload and op, and totals of mixes and of workloads that ran together.
    pub workloads: Vec<WorkloadSummary>,
    /// Of a run with several agents: what each of them did. Empty: there is one, and the lines are its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentSummary>,
    /// Limiters that were found, or looked for.
    pub limits: Vec<LimitSummary>,
    /// The promises of the plan's `expect`, and of `--expect`.
    pub expectations: Vec<Expectation>,
    /// What it costs, where the run was given prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<crate::cost::CostSummary>,
    /// What the servers did meanwhile, where they were observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<servers::ServersSummary>,
    /// Free marks of the plan, such as `tier = "standard"`.
    pub labels: BTreeMap<String, String>,
    /// The command that repeats this run.
    pub rerun: String,
    /// Where and with what it was made.
    pub environment: Environment,
}

/// One line of results: one op of one workload (of one cell of a sweep, repeats merged).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadSummary {
    /// The workload's, with that of its stage where several have the same.
    pub name: String,
    /// `get`, ...; `total`: all kinds of a mix.
    pub op: String,
    /// Its figures may be used.
    #[serde(default)]
    pub valid: bool,
    /// Of the total of a mix: the share of each kind that was asked for, as weights.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mix: BTreeMap<String, f64>,
    /// The line is the sum of so many workloads of one stage, which have lines of their own; 0: it is no such sum.
    #[serde(default)]
    pub together: u32,
    /// Nominal size: the fixed one, or the mean of the distribution.
    pub size_bytes: u64,
    /// The size distribution as in the plan.
    pub size: serde_json::Value,
    /// Ops in flight at most, of all jobs.
    pub concurrency: u32,
    /// Ops a second that were offered (open loop), whatever came of them. Null: `concurrency` ops were kept in flight, or a ramp.
    #[serde(default)]
    pub offered_per_s: Option<f64>,
    /// Length of the measured window, seconds, of all repeats together.
    pub window_s: f64,
    /// How long the load was seen, seconds (warm-up included): larger buckets are not excluded.
    pub horizon_s: f64,
    /// Seconds before the window that were left out.
    pub warmup_s: f64,
    /// Seconds after the window that were left out.
    pub tail_s: f64,
    /// Runs of it that are merged; 1: it was measured once.
    pub repeats: u32,
    /// The load that the line is of: `randrw` for the reads of one, `mix` for one kind of a mix, else the op or pattern itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub load: String,
    /// Of several repeats each one's own rate, with the interval within it; the line's own is over the repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each_ops_per_s: Vec<Estimate>,
    /// Null when the data does not carry it; a finding says why.
    pub ops_per_s: Option<Estimate>,
    /// Payload of the same ops. Null: it cannot be said, or the op has no size.
    pub bytes_per_s: Option<Estimate>,
    /// All attempts, throttled and failed ones included, per second.
    pub attempts_per_s: f64,
    /// Of ops that ended well.
    pub latency_ns: Latencies,
    /// Attempts by outcome; only `ok` is throughput. Outcomes that did not occur are left out, but for `ok`.
    pub outcomes: BTreeMap<String, u64>,
    /// Little's law: mean in flight as measured against rate times mean time.
    pub littles_law: Option<LittlesLaw>,
    /// Of the machine that put the load on, in the window.
    pub client: ClientSummary,
    /// Where there are several: what each did in the window.
    pub per_endpoint: Vec<EndpointSummary>,
    /// What is special about how it was done: `body discarded in kernel`, `payload unsigned`, ...
    pub notes: Vec<String>,
}

/// Times of an op, each from a start of its own. Null: not recorded, or nothing ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Latencies {
    /// From the intended start (equals service in a closed loop).
    pub response: Option<LatencySummary>,
    /// From submission.
    pub service: Option<LatencySummary>,
    /// From submission to the first byte.
    pub ttfb: Option<LatencySummary>,
    /// Duration of the submission (files).
    pub submission: Option<LatencySummary>,
}

/// Nanoseconds. A percentile with fewer than ten ops beyond it is null (V21).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    /// Ops that they are of.
    pub count: u64,
    /// Exact.
    pub mean: f64,
    /// The shortest, to three digits.
    pub min: u64,
    /// Median. Known of few ops, too.
    pub p50: Option<u64>,
    /// Nine in ten ops took no longer.
    pub p90: Option<u64>,
    /// 99 in 100 took no longer.
    pub p99: Option<u64>,
    /// 999 in 1000 took no longer.
    pub p999: Option<u64>,
    /// 9999 in 10,000 took no longer.
    pub p9999: Option<u64>,
    /// The longest, to three digits.
    pub max: u64,
    /// 95 % intervals of the percentiles; absent where the data carries none of them.
    #[serde(default, skip_serializing_if = "PercentileIntervals::is_empty")]
    pub intervals: PercentileIntervals,
}

/// 95 % intervals of percentiles, nanoseconds. Null where the data does not carry one; an upper end beyond all that was seen is null.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PercentileIntervals {
    /// Of the median.
    pub p50: Option<Estimate>,
    /// Of the 90th percentile.
    pub p90: Option<Estimate>,
    /// Of the 99th percentile.
    pub p99: Option<Estimate>,
    /// Of the 99.9th percentile.
    pub p999: Option<Estimate>,
}

impl PercentileIntervals {
    /// None of them could be made.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl LatencySummary {
    /// Ops that must lie beyond a percentile before it is reported.
    pub const TAIL: f64 = 10.0;

    /// `None` for an empty histogram.
    pub fn of(h: &Histogram) -> Option<Self> {
        if h.is_empty() {
            return None;
        }
        let at = |q: f64| {
            // The median of few ops is still the median; only tails need a tail.
            let enough = q <= 0.5 || h.count() as f64 * (1.0 - q) >= Self::TAIL - 1e-6;
            enough.then(|| h.quantile(q))
        };
        Some(Self {
            count: h.count(),
            mean: h.mean(),
            min: h.min(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: h.max(),
            intervals: PercentileIntervals::default(),
        })
    }
}

/// Ops in flight are rate times time in system, whatever the storage: where they are not, the measurement is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LittlesLaw {
    /// Mean ops in flight, measured by integration.
    pub in_flight: f64,
    /// Rate times mean time in system.
    pub rate_times_time: f64,
    /// Relative difference.
    pub error: f64,
}

/// What the load cost the machine that put it on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClientSummary {
    /// Share of time in which workers did not wait; of several agents that of the busiest.
    pub busy_fraction: f64,
    /// CPU time of the process, seconds; of several agents the sum.
    pub cpu_s: f64,
    /// CPU seconds per GiB of payload. Null: no payload.
    pub cpu_s_per_gib: Option<f64>,
    /// Resident memory of the process, at the most.
    pub rss_bytes: u64,
    /// Share of the machine's CPU time that was used, by whatever, 0 to 1; of several machines their mean.
    pub system_cpu: f64,
    /// Share of the machine's CPU time that the hypervisor gave to others, 0 to 1.
    pub steal: f64,
    /// Connections opened after the first on their slot.
    pub reconnects: u64,
    /// Ops sent late because the client was busy (open loop).
    pub late_ops: u64,
    /// Time that slots paused after refused attempts (`--on-throttle`), summed over them, seconds: of the whole load, where several
    /// workloads ran at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub paused_s: f64,
    /// Of a load that backs off (`--on-throttle backoff`) those pauses as a share of the time of all slots that had an op or paused,
    /// 0 to 1: the limiter may let more through than was asked for. The pauses of `pause` are short against a limiter's time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held_back: f64,
}

pub(crate) fn is_zero(x: &f64) -> bool {
    *x == 0.0
}

/// What one agent of several did in the measured windows of all stages, all ops of the loads together (no parts of uploads, and no
/// syncs that belong to writes).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentSummary {
    /// Its name.
    pub agent: String,
    /// The machine that it is on; empty: not known.
    pub host: String,
    /// Ops that ended `ok`, over the time of the windows that it had a part in.
    pub ops_per_s: f64,
    /// Payload of the same ops, over the same time. Absent: they have no size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<f64>,
    /// Its part of the `ok` ops of all agents, 0 to 1.
    pub share: f64,
    /// Share of time in which its workers did not wait, 0 to 1.
    pub busy_fraction: f64,
    /// Median response time of its `ok` ops, nanoseconds. Null: not one ended, or too many agents to keep them apart.
    pub p50_ns: Option<u64>,
    /// The same at 99 %; null where too few ended for a tail, too.
    pub p99_ns: Option<u64>,
    /// What its monotonic clock shows beyond the conductor's at the same instant, nanoseconds. Absent: it is the conductor's, or not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset_ns: Option<i64>,
    /// That offset is off by this at the most. Absent: as the offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_bound_ns: Option<u64>,
    /// Share of its machine's CPU time that it used, 0 to 1, in the windows that it had a part in. Absent: there are no samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_fraction: Option<f64>,
    /// Share of the speed of its machine's fastest interface that was used, 0 to 1. Absent: no samples, or no known speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic_fraction: Option<f64>,
    /// How much later than it was told its load began, nanoseconds, on the conductor's clock as far as its own is known: negative where
    /// that bound is more than the truth. Of several stages the one that is furthest off. Absent: not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_skew_ns: Option<i64>,
    /// Its first op had ended by then (to a slice), seconds since the run's first load began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_op_s: Option<f64>,
    /// Its last op had ended then; of one that was lost: the last that is known of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_op_s: Option<f64>,
}

/// What one of several endpoints did in the window. Plain means: they have no intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointSummary {
    /// Its URL.
    pub endpoint: String,
    /// Ops that ended well.
    pub ops_per_s: f64,
    /// Payload of the same ops.
    pub bytes_per_s: f64,
    /// Mean response of ops that ended well, nanoseconds; 0: there were none.
    pub mean_response_ns: f64,
    /// The longest of them, nanoseconds.
    pub max_response_ns: u64,
    /// Ops that ended well.
    pub ok: u64,
    /// Attempts that were refused: 429 and 503.
    pub throttled: u64,
    /// Ops that ended in any other way.
    pub failed: u64,
}

/// A limiter that was found, or bounds on one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitSummary {
    /// Its name in the plan.
    pub target: String,
    /// `get`, ...; `total`: all kinds of a mix.
    pub op_class: String,
    /// `bucket`, `key`, `client`, `volume` or `unknown`.
    pub scope: String,
    /// On operations. Null: nothing is known of one.
    pub ops_per_s: Option<BucketSummary>,
    /// On payload. Null: nothing is known of one.
    pub bytes_per_s: Option<BucketSummary>,
    /// Size below which operations bind and above which bytes bind.
    pub knee_bytes: Option<Estimate>,
    /// `ops`, `bytes`, `both` (the knee says where), `in_flight` (how many there are at once, and no rate), `share` (the same share is refused at any rate), `latency`, `client`, `none` or `undetermined`.
    pub binding: String,
    /// Share of attempts that were refused (429, 503 SlowDown) on the plateau where most were. Null: not looked at.
    #[serde(default)]
    pub refused: Option<f64>,
    /// What speaks for it: (name, value with unit).
    pub evidence: Vec<(String, String)>,
}

impl LimitSummary {
    /// From this share of refused attempts on there is a limiter, whatever else is known of it.
    pub const REFUSES: f64 = 0.01;

    /// Its shape is a limiter's, and nothing that was refused or came back proves that it is one.
    pub fn is_likely_only(&self) -> bool {
        self.evidence.iter().any(|(name, said)| name == "verdict" && said == "throttle likely")
    }

    /// How long the rates were seen, where no burst that ended shows that they last: the shorter of both.
    pub fn held_for_s(&self) -> Option<f64> {
        let open = |b: &Option<BucketSummary>| {
            b.as_ref().filter(|b| b.proved && b.capacity.is_none()).and_then(|b| b.horizon_s)
        };
        [open(&self.ops_per_s), open(&self.bytes_per_s)].into_iter().flatten().reduce(f64::min)
    }
}

/// Rates per second, capacity in tokens (ops or bytes). Null: undetermined; a finding says what would settle it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BucketSummary {
    /// The rate of the plateau: a cap where `proved`, else a speed that was seen.
    pub sustained: Option<Estimate>,
    /// The rate while there are tokens.
    pub burst: Option<Estimate>,
    /// Tokens of a full bucket.
    pub capacity: Option<Estimate>,
    /// Tokens that come back per second of rest.
    pub refill: Option<Estimate>,
    /// Something shows that the rate is a limiter's: a burst that comes back, refusals, or how exactly it is held.
    #[serde(default)]
    pub proved: bool,
    /// How long this resource's rate was seen at a stretch, seconds: a cliff that comes later is not excluded.
    #[serde(default)]
    pub horizon_s: Option<f64>,
    /// Seconds of rest after which it is full again. Null where the capacity is unknown or a bound.
    #[serde(default)]
    pub full_again_s: Option<Estimate>,
}

/// A promise that was checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expectation {
    /// As it was written: `get.ops_per_s >= 800 +-1%`.
    pub text: String,
    /// Null: the data does not carry an answer.
    pub met: Option<bool>,
    /// It was held against lines that are invalid: it has no answer.
    #[serde(default)]
    pub void: bool,
    /// Of the line that does worst: nanoseconds for times, 0 to 1 for shares, else per second. Null: nothing was measured.
    pub measured: Option<f64>,
    /// Why it was met, was not, or has no answer.
    pub reason: String,
}
