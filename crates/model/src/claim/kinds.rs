//! The evidence of each claim, and the condition without which it is not made.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Amount, Refusal, figure};
use crate::Estimate;

/// What a rate is a rate of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// `get`, ...; `total`: all kinds of a mix.
    pub op: String,
    /// 0: the op has no size.
    pub size_bytes: u64,
    /// Ops in flight at most, of all jobs.
    pub concurrency: u32,
    /// Ops a second that were offered; null in a closed loop.
    #[serde(default)]
    pub offered_per_s: Option<f64>,
    /// Workloads that are summed up; 0: the line is no sum.
    pub jobs: u32,
    /// Runs of it that are merged; 1: it was measured once.
    pub repeats: u32,
    /// Length of the measured window, seconds, of all repeats together.
    pub window_s: f64,
}

/// How much a rate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RateWord {
    /// In the window.
    Measured,
    /// Held one level for as long as the user needs.
    Sustained,
}

/// A rate of a valid line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Rate {
    /// How it may be called.
    pub word: RateWord,
    /// What was done for it.
    #[serde(flatten)]
    pub place: Place,
    /// Ops that ended well.
    pub ops_per_s: Estimate,
    /// Payload of the same ops. Null: it cannot be stated, or the op has no size.
    pub bytes_per_s: Option<Estimate>,
}

/// What a line was given to do, and did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attempted {
    /// Ops that ended `Ok`.
    pub ok: u64,
    /// Attempts per second: no rate of successes is above it.
    pub per_s: f64,
}

impl Rate {
    /// Where something succeeded; no rate of successes lies above that of attempts. Repeats are a mean of means, which may lie
    /// above the mean of all, but not above what all runs did in the time of one.
    pub fn new(
        word: RateWord,
        place: Place,
        ops: Estimate,
        bytes: Option<Estimate>,
        of: Attempted,
    ) -> Result<Self, Refusal> {
        if of.ok == 0 {
            return Refusal::new("nothing succeeded");
        }
        let ops_per_s = figure(ops, Some(of.per_s * f64::from(place.repeats.max(1))))?;
        let bytes_per_s = bytes.and_then(|b| figure(b, None).ok());
        Ok(Self { word, place, ops_per_s, bytes_per_s })
    }
}

/// A line whose figures may not be used, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct VoidLine {
    /// What was done for it.
    #[serde(flatten)]
    pub place: Place,
    /// Of the findings that void it.
    pub codes: Vec<String>,
    /// What was read off, for the record.
    pub ops_per_s: Option<Estimate>,
}

impl VoidLine {
    /// Refused where `codes` is empty.
    pub fn new(place: Place, codes: Vec<String>, seen: Option<Estimate>) -> Result<Self, Refusal> {
        if codes.is_empty() {
            return Refusal::new("no finding says what is wrong with it");
        }
        Ok(Self { place, codes, ops_per_s: seen.and_then(|e| figure(e, None).ok()) })
    }
}

/// A limiter refuses: attempts by what became of them, and the rate that passes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Refusing {
    /// `get`, ...; `total`: all kinds of a mix.
    pub op: String,
    /// All that ended, whatever became of them.
    pub attempts: u64,
    /// 429 and 503.
    pub refused: u64,
    /// Of the line with the most refusals. Null: too little passed for an interval; `passed_per_s` is the plain mean.
    pub passing_per_s: Option<Estimate>,
    /// Ops per second that ended well: the plain mean of the window.
    pub passed_per_s: f64,
    /// What passes once the burst is over, where a cap was proved and its burst was seen to end: the two above are then means over
    /// both. Null: no such cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_burst_per_s: Option<Estimate>,
    /// Which stretch of load all of this is of.
    #[serde(default, skip_serializing_if = "Stretch::is_all")]
    pub on: Stretch,
}

/// A line of a run, where there are others of the same op, and what ran beside it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Stretch {
    /// Empty: the only one of its op.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub line: String,
    /// Ops of other workloads at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
}

impl Stretch {
    /// All that there was of the op, by itself.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }
}

impl Refusing {
    /// Refused where nothing was refused.
    pub fn new(
        op: &str,
        attempts: u64,
        refused: u64,
        passing: Option<Estimate>,
        passed_per_s: f64,
    ) -> Result<Self, Refusal> {
        if refused == 0 || refused > attempts || !passed_per_s.is_finite() {
            return Refusal::new("nothing was refused");
        }
        let passing_per_s = passing.and_then(|e| figure(e, None).ok());
        Ok(Self {
            op: op.into(),
            attempts,
            refused,
            passing_per_s,
            passed_per_s,
            after_burst_per_s: None,
            on: Stretch::default(),
        })
    }

    /// Says of which stretch the figures are.
    pub fn on(self, on: Stretch) -> Self {
        Self { on, ..self }
    }

    /// The cap of the same ops after its burst: what passed in the mean was no less than that.
    pub fn after_burst(self, cap: Option<Estimate>) -> Self {
        let after_burst_per_s = cap.and_then(|e| figure(e, None).ok()).filter(|e| self.passed_per_s >= e.low);
        Self { after_burst_per_s, ..self }
    }

    /// Share of attempts, 0 to 1.
    pub fn share(&self) -> f64 {
        self.refused as f64 / self.attempts as f64
    }
}

/// Shares of a mix, 0 to 1, by op.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct MixNotDelivered {
    /// As the plan has it.
    pub asked: BTreeMap<String, f64>,
    /// Of the ops that ended well.
    pub delivered: BTreeMap<String, f64>,
}

impl MixNotDelivered {
    /// Share of all ops by which one kind has to be off. (A choice: what is smaller changes no total by much.)
    pub const OFF: f64 = 0.05;
    /// Fewer ops do not show their shares: the standard error of a share of one half is 0.016 here.
    pub const LEAST_OPS: u64 = 1000;

    /// `weights` as in the plan, `ok` ops that succeeded.
    pub fn new(weights: &BTreeMap<String, f64>, ok: &BTreeMap<String, u64>) -> Result<Self, Refusal> {
        let (all, done) = (weights.values().sum::<f64>(), ok.values().sum::<u64>());
        if weights.len() < 2 || all <= 0.0 || done < Self::LEAST_OPS {
            return Refusal::new("it is not a mix, or has too few ops to judge its shares");
        }
        let asked: BTreeMap<String, f64> = weights.iter().map(|(k, w)| (k.clone(), w / all)).collect();
        let share = |k: &String| ok.get(k).copied().unwrap_or(0) as f64 / done as f64;
        let delivered: BTreeMap<String, f64> = asked.keys().map(|k| (k.clone(), share(k))).collect();
        let off = asked.iter().any(|(k, a)| (a - delivered[k]).abs() > Self::OFF);
        if off { Ok(Self { asked, delivered }) } else { Refusal::new("the mix was delivered as requested") }
    }
}

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Operations, whatever their size.
    Ops,
    /// Payload.
    Bytes,
}

/// What one resource gives in the long run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Cap {
    /// `get`, ...; `total`: all kinds of a mix.
    pub op: String,
    /// What `per_s` counts.
    pub unit: Unit,
    /// A limiter holds it. Otherwise it is a speed that was seen.
    pub proved: bool,
    /// The rate of its plateau.
    pub per_s: Estimate,
    /// Seconds for which it was held, where no burst above it was seen to end: it may itself be that of a longer burst. Null:
    /// one was, and this is what follows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_for_s: Option<f64>,
}

impl Cap {
    /// Refused where the estimate cannot be stated (see `figure`).
    pub fn new(op: &str, unit: Unit, proved: bool, per_s: Estimate) -> Result<Self, Refusal> {
        Ok(Self { op: op.into(), unit, proved, per_s: figure(per_s, None)?, held_for_s: None })
    }

    /// The same, as far as it was seen: `Some` where no burst ended.
    pub fn held_for(self, seconds: Option<f64>) -> Self {
        Self { held_for_s: seconds.filter(|s| s.is_finite()), ..self }
    }
}

/// A token bucket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Burst {
    /// `get`, ...; `total`: all kinds of a mix.
    pub op: String,
    /// What its tokens are.
    pub unit: Unit,
    /// Tokens when it is full.
    pub capacity: Amount,
    /// The rate while there are tokens; always above the cap. Null: it cannot be stated.
    pub burst_per_s: Option<Estimate>,
    /// Tokens that come back per second of rest. Null: it cannot be stated.
    pub refill_per_s: Option<Estimate>,
    /// Seconds of rest until it is full. Null: the capacity or the refill is a bound only.
    pub full_again_s: Option<f64>,
}

impl Burst {
    /// Above a proved cap alone.
    pub fn new(
        cap: &Cap,
        capacity: Estimate,
        burst: Option<Estimate>,
        refill: Option<Estimate>,
        full_again: Option<Estimate>,
    ) -> Result<Self, Refusal> {
        if !cap.proved {
            return Refusal::new("no limiter was proved");
        }
        let capacity = Amount::of(capacity)?;
        let refill_per_s = refill.and_then(|r| figure(r, None).ok());
        let burst_per_s = burst.and_then(|b| figure(b, None).ok()).filter(|b| b.value > cap.per_s.value);
        let measured = matches!(capacity, Amount::Measured(_));
        let full_again_s =
            full_again.filter(|_| measured).and_then(|t| figure(t, None).ok()).map(|t| t.value);
        Ok(Self { op: cap.op.clone(), unit: cap.unit, capacity, burst_per_s, refill_per_s, full_again_s })
    }
}

/// Below this size operations bind, above it bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Knee {
    /// `get`, ...; `total`: all kinds of a mix.
    pub op: String,
    /// Size of an op: the cap on bytes over the cap on operations.
    pub bytes: Estimate,
}

impl Knee {
    /// Refused where the estimate cannot be stated (see `figure`).
    pub fn new(op: &str, bytes: Estimate) -> Result<Self, Refusal> {
        Ok(Self { op: op.into(), bytes: figure(bytes, None)? })
    }
}

/// What sets the rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Binding {
    /// `get`, ...; `total`: all kinds of a mix.
    pub op: String,
    /// `ops`, `bytes`, `both`, `in_flight`, `latency` or `client`.
    pub binding: String,
}

impl Binding {
    /// Refused for any other word: the rates do not say it then.
    pub fn new(op: &str, binding: &str) -> Result<Self, Refusal> {
        if !["ops", "bytes", "both", "in_flight", "latency", "client"].contains(&binding) {
            return Refusal::new(
                "no limit was proved, and the rates are not known well enough to exclude one",
            );
        }
        Ok(Self { op: op.into(), binding: binding.into() })
    }
}

/// No burst that ends, no refusals, and no rate that is held more exactly than storage does by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct NoLimiter {
    /// `get`, ...; `total`: all kinds of a mix.
    pub op: String,
    /// All that ended.
    pub attempts: u64,
    /// 0: it is the condition.
    pub refused: u64,
}

impl NoLimiter {
    /// Refused where attempts were, or where there were none.
    pub fn new(op: &str, attempts: u64, refused: u64) -> Result<Self, Refusal> {
        if refused > 0 {
            return Refusal::new(format!(
                "{refused} attempts were refused, and the limit behind that was not identified"
            ));
        }
        if attempts == 0 {
            return Refusal::new("nothing was attempted");
        }
        Ok(Self { op: op.into(), attempts, refused })
    }
}

/// Whose limit it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Scope {
    /// `connection`, `prefix`, `bucket`, `key`, `client`, `volume` or `server`.
    pub scope: String,
}

impl Scope {
    /// Refused where the probe could not tell.
    pub fn new(scope: &str) -> Result<Self, Refusal> {
        if matches!(scope, "" | "unknown") {
            return Refusal::new("nothing told");
        }
        Ok(Self { scope: scope.into() })
    }
}

/// How long it was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Horizon {
    /// Seconds of load, warm-up included.
    pub seen_s: f64,
    /// How long the user needs it.
    pub goal_s: f64,
    /// What it was seen of, where it is said by resource.
    pub unit: Option<Unit>,
    /// A bucket of more ops than these is not excluded, if the sustained rate were half of what was seen.
    pub bucket_ops: Option<f64>,
}

impl Horizon {
    /// Refused where nothing was seen.
    pub fn new(
        seen_s: f64,
        goal_s: f64,
        unit: Option<Unit>,
        bucket_ops: Option<f64>,
    ) -> Result<Self, Refusal> {
        if !(seen_s.is_finite() && seen_s > 0.0) {
            return Refusal::new("nothing was seen");
        }
        Ok(Self { seen_s, goal_s, unit, bucket_ops: bucket_ops.filter(|n| n.is_finite()) })
    }
}

/// What is known of a cap of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CapBound {
    /// The cap itself, with its interval: no rate is above it.
    AtMost(Estimate),
    /// The most that was seen, per second: the cap, if there is one, lies above.
    AtLeast(f64),
    /// Nothing can be stated.
    Unknown,
}

impl CapBound {
    /// A bound where the estimate cannot be stated, or is none.
    pub fn of(known: Option<Estimate>, least: Option<f64>) -> Self {
        match (known.map(|e| figure(e, None)), least) {
            (Some(Ok(e)), _) => Self::AtMost(e),
            (_, Some(v)) if v.is_finite() && v > 0.0 => Self::AtLeast(v),
            _ => Self::Unknown,
        }
    }
}

/// Caps over sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SizeCaps {
    /// `get`, ...; `total`: all kinds of a mix.
    pub op: String,
    /// Where small ops end.
    pub ops_per_s: CapBound,
    /// Where large ops end.
    pub bytes_per_s: CapBound,
    /// Runs of each cell.
    pub repeats: u32,
    /// What all cells had in flight, where they had the same: whether more would bring more is not known then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u32>,
}

impl SizeCaps {
    /// Refused where neither cap can be stated.
    pub fn new(
        op: &str,
        ops: CapBound,
        bytes: CapBound,
        repeats: u32,
        in_flight: Option<u32>,
    ) -> Result<Self, Refusal> {
        if matches!((ops, bytes), (CapBound::Unknown, CapBound::Unknown)) {
            return Refusal::new("no cell reached a cap that can be stated");
        }
        Ok(Self { op: op.into(), ops_per_s: ops, bytes_per_s: bytes, repeats, in_flight })
    }
}

/// What a search for the best concurrency found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct BestConcurrency {
    /// `get`, ...; `total`: all kinds of a mix.
    pub op: String,
    /// Of each op; the mean where sizes differ.
    pub size_bytes: u64,
    /// The smallest that reaches 95 % of the plateau, or of the most that was seen.
    pub concurrency: u32,
    /// Measured at it.
    pub ops_per_s: Estimate,
    /// The most that was seen; present where the search ended because nothing gave more.
    pub plateau_per_s: Option<Estimate>,
    /// The next lower concurrency surely (95 %) gives less than 95 % of it.
    pub fewer_fall_short: bool,
    /// How the search ended: `saturated`, `client limited`, ...
    pub ended: String,
    /// The median response there, nanoseconds. Null: too few ops.
    pub p50_ns: Option<u64>,
    /// The 99th percentile there. Null: too few ops.
    pub p99_ns: Option<u64>,
    /// The most in flight that was tried, and the median response there, nanoseconds.
    pub most: Option<(u32, u64)>,
}

impl BestConcurrency {
    /// Refused where the rate cannot be stated.
    pub fn new(
        place: (&str, u64),
        concurrency: u32,
        ops: Estimate,
        plateau: Option<Estimate>,
        ended: &str,
    ) -> Result<Self, Refusal> {
        let plateau_per_s = plateau.and_then(|e| figure(e, None).ok());
        Ok(Self {
            op: place.0.into(),
            size_bytes: place.1,
            concurrency,
            ops_per_s: figure(ops, None)?,
            plateau_per_s,
            fewer_fall_short: false,
            ended: ended.into(),
            p50_ns: None,
            p99_ns: None,
            most: None,
        })
    }

    /// With whether it is clear that fewer in flight give less.
    pub fn against_fewer(mut self, fall_short: bool) -> Self {
        self.fewer_fall_short = fall_short && self.plateau_per_s.is_some();
        self
    }

    /// With what it costs in time.
    pub fn costing(mut self, p50: Option<u64>, p99: Option<u64>, most: Option<(u32, u64)>) -> Self {
        (self.p50_ns, self.p99_ns, self.most) = (p50, p99, most);
        self
    }
}

/// The highest open-loop load that held, and those that did not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct LoadHeld {
    /// Of the rate found; null: none held.
    pub fraction: Option<f64>,
    /// Ops per second that were intended to start, where it held; 0: none held.
    pub offered_per_s: f64,
    /// Medians there, nanoseconds: (response, service). Null: none held, or too few ops.
    pub p50_ns: Option<(u64, u64)>,
    /// The same of the 99th percentiles: (response, service).
    pub p99_ns: Option<(u64, u64)>,
    /// Fractions of the rate found at which a backlog grew, or not all came through.
    pub not_held: Vec<f64>,
    /// Points that are invalid, and say nothing.
    pub void: u32,
}

impl LoadHeld {
    /// Refused where no point was tried.
    pub fn new(
        held: Option<(f64, f64)>,
        p50_ns: Option<(u64, u64)>,
        p99_ns: Option<(u64, u64)>,
        not_held: Vec<f64>,
        void: u32,
    ) -> Result<Self, Refusal> {
        if held.is_none() && not_held.is_empty() && void == 0 {
            return Refusal::new("no load point was tried");
        }
        let (fraction, offered_per_s) = held.map_or((None, 0.0), |(f, r)| (Some(f), r));
        Ok(Self { fraction, offered_per_s, p50_ns, p99_ns, not_held, void })
    }
}

/// How long each step of a search was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SearchHorizon {
    /// Seconds of the longest step, warm-up included.
    pub seen_s: f64,
    /// How long the user needs it.
    pub goal_s: f64,
    /// The one that the search recommends.
    pub concurrency: u32,
}

impl SearchHorizon {
    /// Refused where nothing was seen.
    pub fn new(seen_s: f64, goal_s: f64, concurrency: u32) -> Result<Self, Refusal> {
        if !(seen_s.is_finite() && seen_s > 0.0) {
            return Refusal::new("nothing was seen");
        }
        Ok(Self { seen_s, goal_s, concurrency })
    }
}

/// What the data does not carry, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Undetermined {
    /// The claim that could not be made.
    pub what: String,
    /// What is missing, as the end of a sentence.
    pub why: String,
}

impl Undetermined {
    /// Needs nothing: it is the claim of last resort.
    pub fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into() }
    }
}

/// A finding of the run, as it is said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Fact {
    /// Codes of the findings that it rests on.
    pub codes: Vec<String>,
    /// The finding's words, fit for the paragraph.
    pub said: String,
}

impl Fact {
    /// Refused without the code of a finding.
    pub fn new(codes: Vec<String>, said: impl Into<String>) -> Result<Self, Refusal> {
        if codes.is_empty() {
            return Refusal::new("no finding says so");
        }
        Ok(Self { codes, said: said.into() })
    }
}
