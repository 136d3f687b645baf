//! Claims of searches: the best concurrency, and the open-loop load that was held.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Refusal, figure};
use crate::Estimate;

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
    /// What observed servers had at its ceiling there. Absent: nobody looked, or repeats do not agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<String>,
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
            limited_by: None,
        })
    }

    /// With what the servers were limited by, as far as that was seen.
    pub fn limited_by(mut self, what: Option<String>) -> Self {
        self.limited_by = what;
        self
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
