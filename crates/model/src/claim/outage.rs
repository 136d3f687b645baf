//! An outage as it is claimed: from when to when, at what, and what the rate was before, in and after it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Refusal, figure};
use crate::Estimate;

/// Most of the rate before or after it that may come through in it. (A choice: what gives half is slow, and not out.)
const MOST_IN_IT: f64 = 0.5;

/// What came instead of successes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutageKind {
    /// Nothing, or next to nothing.
    Silent,
    /// Attempts failed.
    Failing,
    /// 429 and 503. (In older runs: what answers so is not out, and is told as throttled.)
    Throttled,
}

/// When it was, and at what. Times are seconds since the run's start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutageSpan {
    /// Index of the stage, in the order in which stages ran, from 0.
    pub stage: u32,
    /// When the load of the stage began; sentences count from it.
    #[serde(default)]
    pub load_s: f64,
    /// The endpoint, device or directory.
    pub at: String,
    /// Begin of the first step of time in which next to nothing came through.
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
    /// When, and at what.
    #[serde(flatten)]
    pub span: OutageSpan,
    /// What came instead of successes.
    pub kind: OutageKind,
    /// How more than half of the attempts that ended in it did; null: none ended, no outcome has so many, or it is not known
    /// (of one endpoint among several only classes are counted).
    pub outcome: Option<String>,
    /// Attempts that ended in it without success.
    pub ended: u64,
    /// Mean number of ops that waited for an answer.
    pub in_flight: f64,
    /// Successes before it. Null: too little was seen of it.
    pub before_per_s: Option<Estimate>,
    /// Successes in it, over its length.
    pub during_per_s: f64,
    /// Successes after it. Null: too little was seen of it, or it had not ended.
    pub after_per_s: Option<Estimate>,
    /// From its end until nine tenths of the rate before were there again; null: not seen.
    pub recover_s: Option<f64>,
    /// Successes over the whole load. Null, as `without_per_s`: not known, or the load was not faster without them.
    pub with_per_s: Option<Estimate>,
    /// Over the load without its outages.
    pub without_per_s: Option<Estimate>,
}

impl Outage {
    /// `ended`: attempts that ended in it without success; `during_per_s`: what succeeded in it, over its time.
    pub fn new(span: OutageSpan, kind: OutageKind, during_per_s: f64, ended: u64) -> Result<Self, Refusal> {
        let end_s = span.to_s.unwrap_or(span.seen_until_s);
        let times = [span.from_s, end_s, span.seen_until_s, during_per_s];
        if times.iter().any(|t| !t.is_finite() || *t < 0.0)
            || span.from_s >= end_s
            || end_s > span.seen_until_s
        {
            return Refusal::new("it does not lie within the load");
        }
        if kind != OutageKind::Silent && ended == 0 {
            return Refusal::new("nothing failed and nothing was refused in it");
        }
        Ok(Self {
            span,
            kind,
            outcome: None,
            ended,
            in_flight: 0.0,
            before_per_s: None,
            during_per_s,
            after_per_s: None,
            recover_s: None,
            with_per_s: None,
            without_per_s: None,
        })
    }

    /// Rates before and after, and of the whole load with and without outages. What is no figure is left out (and so are the
    /// last two where the load was not faster without them); where about as much came through in it as around it, it is none.
    pub fn rates(
        mut self,
        around: [Option<Estimate>; 2],
        whole: [Option<Estimate>; 2],
    ) -> Result<Self, Refusal> {
        let sound = |e: Option<Estimate>| e.and_then(|e| figure(e, None).ok());
        [self.before_per_s, self.after_per_s] = around.map(sound);
        self.after_per_s = self.after_per_s.filter(|_| self.span.to_s.is_some());
        let [with, without] = whole.map(sound);
        if !with.zip(without).is_some_and(|(a, b)| a.value > b.value) {
            (self.with_per_s, self.without_per_s) = (with, without);
        }
        if self.is_a_rate() {
            return Refusal::new("about as much came through in it as around it");
        }
        Ok(self)
    }

    /// Whether what came through in it is about what came through before or after it.
    pub fn is_a_rate(&self) -> bool {
        let around = [self.before_per_s, self.after_per_s].into_iter().flatten();
        around.into_iter().any(|e| self.during_per_s > MOST_IN_IT * e.value)
    }

    /// How most of what ended in it did, where that is known, and what was in flight.
    pub fn attempts(mut self, outcome: Option<String>, in_flight: f64) -> Self {
        self.outcome = outcome.filter(|_| self.ended > 0);
        self.in_flight = in_flight;
        self
    }

    /// From its end until the rate was back, where it was seen to end.
    pub fn recovered(mut self, after_s: Option<f64>) -> Self {
        let seen = |s: &f64| self.span.to_s.is_some_and(|to| to + s <= self.span.seen_until_s * (1.0 + 1e-9));
        self.recover_s = after_s.filter(|s| *s >= 0.0).filter(seen);
        self
    }

    /// Until it was last seen, where it had not ended.
    pub fn length_s(&self) -> f64 {
        self.span.to_s.unwrap_or(self.span.seen_until_s) - self.span.from_s
    }
}
