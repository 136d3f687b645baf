//! Claims on limits: what a resource gives, how much it saves up, which of them sets the rate, and whose it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Amount, Refusal, figure};
use crate::Estimate;

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
    /// `ops`, `bytes`, `both`, `in_flight`, `share` (of the requests, at any rate), `latency` or `client`.
    pub binding: String,
}

impl Binding {
    /// Refused for any other word: the rates do not say it then.
    pub fn new(op: &str, binding: &str) -> Result<Self, Refusal> {
        if !["ops", "bytes", "both", "in_flight", "share", "latency", "client"].contains(&binding) {
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
