//! An outage as it is claimed: from when to when, at what, and what the rate was before, in and after it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Refusal, figure};
use crate::Estimate;

/// What came instead of successes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutageKind {
    /// Nothing, or next to nothing.
    Silent,
    /// Attempts failed.
    Failing,
    /// 429 and 503.
    Throttled,
}

/// When it was, and at what. Times are seconds since the run's start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutageSpan {
    pub stage: u32,
    /// The endpoint, device or directory.
    pub at: String,
    pub from_s: f64,
    /// Null: it had not ended when the load did.
    pub to_s: Option<f64>,
    /// When the load ended.
    pub seen_until_s: f64,
}

/// A span in which storage that was being asked answered next to nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Outage {
    #[serde(flatten)]
    pub span: OutageSpan,
    pub kind: OutageKind,
    /// The outcome that most attempts in it had; null: none ended.
    pub outcome: Option<String>,
    /// Attempts that ended in it without success.
    pub ended: u64,
    pub in_flight: f64,
    /// Null: too little was seen of it.
    pub before_per_s: Option<Estimate>,
    pub during_per_s: f64,
    pub after_per_s: Option<Estimate>,
    /// From its end until nine tenths of the rate before were there again; null: not seen.
    pub recover_s: Option<f64>,
    /// Rate over the whole load, and over the load without its outages.
    pub with_per_s: Option<Estimate>,
    pub without_per_s: Option<Estimate>,
}

impl Outage {
    pub fn new(span: OutageSpan, kind: OutageKind, during_per_s: f64) -> Result<Self, Refusal> {
        let end_s = span.to_s.unwrap_or(span.seen_until_s);
        let times = [span.from_s, end_s, span.seen_until_s, during_per_s];
        if times.iter().any(|t| !t.is_finite() || *t < 0.0)
            || span.from_s >= end_s
            || end_s > span.seen_until_s
        {
            return Refusal::new("it does not lie within the load");
        }
        Ok(Self {
            span,
            kind,
            outcome: None,
            ended: 0,
            in_flight: 0.0,
            before_per_s: None,
            during_per_s,
            after_per_s: None,
            recover_s: None,
            with_per_s: None,
            without_per_s: None,
        })
    }

    /// Rates before and after, and of the whole load with and without it. What is no figure is left out.
    pub fn rates(mut self, around: [Option<Estimate>; 2], whole: [Option<Estimate>; 2]) -> Self {
        let sound = |e: Option<Estimate>| e.and_then(|e| figure(e, None).ok());
        [self.before_per_s, self.after_per_s] = around.map(sound);
        [self.with_per_s, self.without_per_s] = whole.map(sound);
        self
    }

    /// What ended in it, most of it how, and what was in flight.
    pub fn attempts(mut self, ended: u64, outcome: Option<String>, in_flight: f64) -> Self {
        (self.ended, self.outcome, self.in_flight) = (ended, outcome, in_flight);
        self
    }

    pub fn recovered(mut self, after_s: Option<f64>) -> Self {
        self.recover_s = after_s.filter(|s| s.is_finite());
        self
    }

    pub fn length_s(&self) -> f64 {
        self.span.to_s.unwrap_or(self.span.seen_until_s) - self.span.from_s
    }
}
