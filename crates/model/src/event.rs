//! What a run tells whoever watches it: plain data, four times a second.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Something happened. Handed to whoever runs a plan, in the thread that runs it; as data, to whoever watches from elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", content = "of", rename_all = "snake_case")]
pub enum Event {
    /// The run directory exists.
    Started {
        /// Of the run.
        id: String,
        /// Of its directory.
        path: PathBuf,
    },
    /// A sentence that the user has to know: a warning, or what was found.
    Message(String),
    /// What is being done, as a sentence: for whoever follows.
    Doing(String),
    /// Data set being made or checked: `done` of `total` objects or bytes (see `unit`).
    Preparing {
        /// For a sentence: `objects of put`.
        what: String,
        /// What it is counted in.
        unit: Counted,
        /// In `unit`.
        done: u64,
        /// In `unit`.
        total: u64,
        /// Since it began.
        elapsed: Duration,
        /// Attempts that the storage refused (429, 503): they are made again.
        #[serde(default)]
        refused: u64,
    },
    /// The state of the stage that runs now.
    Live(Box<Live>),
    /// A stage has ended (its drain included).
    StageDone {
        /// From 0.
        stage: u32,
        /// How many there will be, where that is known.
        of: Option<u32>,
        /// As the plan or the controller calls it.
        title: String,
        /// Ops of the measured window.
        ok: u64,
        /// Refused attempts of the window.
        throttled: u64,
        /// Ops of the window that ended otherwise.
        failed: u64,
        /// From the start of load to the end of the last op.
        seconds: f64,
    },
    /// Cleaning up: `done` of `total` things (objects, when known).
    Cleaning {
        /// So far.
        done: u64,
        /// `None`: not known yet.
        total: Option<u64>,
    },
}

/// What the making of a data set is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Of a bucket.
    Objects,
    /// Of devices and files.
    Bytes,
}

impl Counted {
    /// For a sentence, in the plural.
    pub fn name(self) -> &'static str {
        match self {
            Self::Objects => "objects",
            Self::Bytes => "bytes",
        }
    }
}

/// Where a stage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Load is on, and does not count yet.
    Warmup,
    /// What happens counts.
    Measuring,
    /// No op is started any more; those in flight end.
    Draining,
}

impl Phase {
    /// For a person: `warm-up`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warmup => "warm-up",
            Self::Measuring => "measuring",
            Self::Draining => "draining",
        }
    }
}

/// The state of a stage, for the progress display.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Live {
    /// Where the stage is now.
    pub phase: Phase,
    /// Number of the stage from 0, and how many there will be, where that is known.
    pub stage: u32,
    /// `None`: the controller decides as it goes.
    pub stages: Option<u32>,
    /// As the plan or the controller calls it.
    pub title: String,
    /// In this phase.
    pub elapsed: Duration,
    /// Until the phase ends, where the stop rule is a time.
    pub remaining: Option<Duration>,
    /// Empty until the first slice is merged.
    pub figures: Figures,
    /// Workers that have handed over nothing for longer than the display waits, and how many there are: the figures lack what
    /// those did.
    pub late: usize,
    /// All of the stage.
    pub workers: usize,
    /// Agents that are lost, and how many there are in the run.
    #[serde(default)]
    pub lost: usize,
    /// All of the run.
    #[serde(default)]
    pub agents: usize,
}

/// Rates and busy share are of the last second; latencies and counts of the phase so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Of ops that ended `Ok`.
    pub ops_per_s: f64,
    /// Payload as it moves.
    pub bytes_per_s: f64,
    /// Median response.
    pub p50_ns: u64,
    /// Response.
    pub p99_ns: u64,
    /// Response.
    pub p999_ns: u64,
    /// The longest response.
    pub max_ns: u64,
    /// Ops that ended `Ok`.
    pub ok: u64,
    /// Refused attempts.
    pub throttled: u64,
    /// Ops that ended otherwise.
    pub failed: u64,
    /// Failures that occurred, by name. Refusals are no errors: they are `throttled`.
    pub errors: BTreeMap<String, u64>,
    /// Refused attempts per second.
    pub throttled_per_s: f64,
    /// Share of time in which the workers did not wait.
    pub busy_fraction: f64,
    /// Mean ops in flight.
    pub in_flight: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_travel_as_data() {
        let figures = Figures { errors: [("timeout".to_owned(), 3)].into(), ..Figures::default() };
        let events = [
            Event::Started { id: "run-1".into(), path: "/runs/run-1".into() },
            Event::Message("a warning".into()),
            Event::Preparing {
                what: "data set".into(),
                unit: Counted::Objects,
                done: 1,
                total: 2,
                elapsed: Duration::from_millis(1500),
                refused: 3,
            },
            Event::Live(Box::new(Live {
                phase: Phase::Measuring,
                stage: 0,
                stages: Some(2),
                title: "get".into(),
                elapsed: Duration::from_nanos(1),
                remaining: None,
                figures,
                late: 0,
                workers: 4,
                lost: 0,
                agents: 1,
            })),
            Event::Cleaning { done: 3, total: None },
        ];
        for e in events {
            let text = serde_json::to_string(&e).unwrap();
            assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), e, "{text}");
        }
    }
}
