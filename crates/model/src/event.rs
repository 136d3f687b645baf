//! What a run tells whoever watches it: plain data, four times a second.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Something happened. Handed to whoever runs a plan, in the thread that runs it.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The run directory exists.
    Started { id: String, path: PathBuf },
    /// A sentence that the user has to know: a warning, or what was found.
    Message(String),
    /// What is being done, as a sentence: for whoever follows.
    Doing(String),
    /// Data set being made or checked: `done` of `total` objects or bytes (see `unit`).
    Preparing { what: String, unit: &'static str, done: u64, total: u64, elapsed: Duration },
    /// The state of the stage that runs now.
    Live(Box<Live>),
    /// A stage has ended (its drain included).
    StageDone {
        stage: u32,
        of: Option<u32>,
        title: String,
        ok: u64,
        throttled: u64,
        failed: u64,
        seconds: f64,
    },
    /// Cleaning up: `done` of `total` things (objects, when known).
    Cleaning { done: u64, total: Option<u64> },
}

/// Where a stage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Warmup,
    Measuring,
    /// No op is started any more; those in flight end.
    Draining,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Self::Warmup => "warm-up",
            Self::Measuring => "measuring",
            Self::Draining => "draining",
        }
    }
}

/// The state of a stage, for the progress display.
#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    pub phase: Phase,
    /// Number of the stage from 0, and how many there will be, where that is known.
    pub stage: u32,
    pub stages: Option<u32>,
    pub title: String,
    /// In this phase.
    pub elapsed: Duration,
    /// Until the phase ends, where the stop rule is a time.
    pub remaining: Option<Duration>,
    pub figures: Figures,
    /// Workers that have handed over nothing for longer than the display waits, and how many there are: the figures lack what
    /// those did.
    pub late: usize,
    pub workers: usize,
}

/// Rates and busy share are of the last second; latencies and counts of the phase so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures {
    pub ops_per_s: f64,
    pub bytes_per_s: f64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub max_ns: u64,
    pub ok: u64,
    pub throttled: u64,
    pub failed: u64,
    /// Failures that occurred, by name. Refusals are no errors: they are `throttled`.
    pub errors: BTreeMap<&'static str, u64>,
    /// Refused attempts per second.
    pub throttled_per_s: f64,
    /// Share of time in which the workers did not wait.
    pub busy_fraction: f64,
    pub in_flight: f64,
}
