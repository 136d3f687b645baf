//! The evidence of each claim, and the condition without which it is not made. Those on limits are in limits.rs, those of searches and
//! load points in searches.rs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Refusal, Unit, figure};
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
    /// Share of the time of its slots, 0 to 1, for which the load paused after refused attempts, as the answers ask or by its
    /// back-off: the limiter may let more through than passed. 0: it did not hold back.
    #[serde(default, skip_serializing_if = "crate::summary::is_zero")]
    pub held_back: f64,
    /// It was 503, and nearly all of it while nothing got through: a limiter's, or a proxy's whose storage was down.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_down: bool,
    /// Most were 429, which is no answer of a proxy whose storage is down.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_429: bool,
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
            held_back: 0.0,
            may_be_down: false,
            is_429: false,
            on: Stretch::default(),
        })
    }

    /// Says of which stretch the figures are.
    pub fn on(self, on: Stretch) -> Self {
        Self { on, ..self }
    }

    /// The same of a load that held back for so much of its time.
    pub fn held_back(self, share: f64) -> Self {
        let held_back = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        Self { held_back, ..self }
    }

    /// The same of refusals that may be those of a proxy whose storage was down.
    pub fn may_be_down(self, may_be_down: bool) -> Self {
        Self { may_be_down, ..self }
    }

    /// The same where so many were 429.
    pub fn of_429(self, n: u64) -> Self {
        let is_429 = n > self.refused / 2;
        Self { is_429, ..self }
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
