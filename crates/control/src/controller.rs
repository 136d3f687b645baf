//! What a controller is shown, and what it answers.

use std::time::Duration;

use plimsoll_model::plan::Stage;
use plimsoll_model::summary::LimitSummary;
use plimsoll_model::{Finding, Series, SeriesCounts, analysis};

use crate::error::ControlError;

/// What one stage gave. Controllers look at nothing else, so a run on many machines can use them as they are.
#[derive(Debug, Clone)]
pub struct Observation {
    /// What was asked for.
    pub stage: Stage,
    /// Length of the measured window, seconds.
    pub window_s: f64,
    /// All series of the measured window, merged.
    pub series: Vec<Series>,
    /// Start of load and end of the last op, seconds since the run's start.
    pub start_s: f64,
    /// End of the last op, on the same clock.
    pub end_s: f64,
    /// Start of the measured window, seconds since the run's start.
    pub window_start_s: f64,
    /// Length of a slice, seconds.
    pub slice_s: f64,
    /// Slices from the start of load to its stop.
    pub slices: Vec<Slice>,
    /// Share of time in which the workers did not wait, in the window.
    pub busy_fraction: f64,
    /// Share of the slots' time, of those that had an op or paused, in which they paused after refusals, in the window.
    pub held_back: f64,
    /// How many machines the run's agents are on.
    pub machines: u32,
}

/// How many machines agents are on, by the names of the hosts of each.
pub fn machines<'a>(hosts: impl Iterator<Item = &'a str>) -> u32 {
    hosts.collect::<std::collections::BTreeSet<_>>().len() as u32
}

/// More refusals than this, and bytes that moved say nothing: bodies of refused uploads move, too. (A few weigh less than counting
/// bytes only when an op has ended.)
pub(crate) const REFUSED: f64 = 0.1;
/// Share of attempts in vain from which on the bytes that they moved would be seen in a rate: failed ops are never throughput. (A
/// choice: the digits of a display.)
pub const IN_VAIN: f64 = 0.01;

/// Counts of all workloads in one slice of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Slice {
    /// Ops that ended `Ok`.
    pub ok: u64,
    /// Ops refused with 429, or 503 as throttling.
    pub throttled: u64,
    /// Ops that ended in any other way.
    pub failed: u64,
    /// Payload, as it moved, of all attempts.
    pub bytes_moved: u64,
    /// Payload of the ops that ended `Ok`.
    pub bytes_ok: u64,
    /// Sum of the time in system of what ended.
    pub in_system_ns: u128,
    /// Op-nanoseconds in flight.
    pub in_flight_ns: u128,
}

impl From<&SeriesCounts> for Slice {
    /// What is in flight is no series' own: it is counted of the workers.
    fn from(c: &SeriesCounts) -> Self {
        Self {
            ok: c.ok(),
            throttled: c.throttled(),
            failed: c.failed(),
            bytes_moved: c.bytes_moved,
            bytes_ok: c.bytes_ok,
            in_system_ns: c.in_system_ns,
            in_flight_ns: 0,
        }
    }
}

impl std::ops::AddAssign for Slice {
    fn add_assign(&mut self, other: Self) {
        self.ok = self.ok.saturating_add(other.ok);
        self.throttled = self.throttled.saturating_add(other.throttled);
        self.failed = self.failed.saturating_add(other.failed);
        self.bytes_moved = self.bytes_moved.saturating_add(other.bytes_moved);
        self.bytes_ok = self.bytes_ok.saturating_add(other.bytes_ok);
        self.in_system_ns = self.in_system_ns.saturating_add(other.in_system_ns);
        self.in_flight_ns = self.in_flight_ns.saturating_add(other.in_flight_ns);
    }
}

/// What an active controller found.
#[derive(Debug, Clone, Default)]
pub struct Conclusion {
    /// In the order in which they were found.
    pub findings: Vec<Finding>,
    /// A line for each op whose limit was looked for.
    pub limits: Vec<LimitSummary>,
    /// What the drains of each add up to.
    pub buckets: Vec<analysis::BucketFit>,
    /// A search of each op and size.
    pub saturations: Vec<analysis::Saturation>,
    /// What to do with the figures, a sentence each.
    pub advice: Vec<String>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum ControlStep {
    /// To its end, or until the controller stops it.
    Run(Box<Stage>),
    /// Leave the target alone for this long: a limiter's tokens come back.
    Idle(Duration),
    /// Nothing is left to be measured.
    Done,
}

/// A sentence about what was just seen.
#[derive(Debug, Clone, PartialEq)]
pub struct ControlRemark {
    /// Whole sentences, for a person.
    pub text: String,
    /// Seconds from the start of load to what it is about: who follows the run is told the time of day of that, too.
    pub about_s: Option<f64>,
    /// What is being done, for whoever follows; nothing to be known of the result.
    pub is_progress: bool,
}

impl From<String> for ControlRemark {
    fn from(text: String) -> Self {
        Self { text, about_s: None, is_progress: false }
    }
}

/// Decides stages as the run goes on.
pub trait Controller: Send {
    /// The next step, given everything that was seen, in order.
    fn next(&mut self, seen: &[Observation]) -> ControlStep;

    /// A slice of the running stage is complete. False: enough is seen, the stage may end.
    fn slice(&mut self, _slice: &Slice) -> bool {
        true
    }

    /// Its stages have no end of their own: it ends them.
    fn ends_stages(&self) -> bool {
        false
    }

    /// A sentence about what was just seen, once; asked for until there is none.
    fn remark(&mut self) -> Option<ControlRemark> {
        None
    }

    /// How many stages there will be, where that is known.
    fn total(&self) -> Option<u32> {
        None
    }

    /// What it found, where it looked for something. A pure function of what it saw: analysis replays it.
    fn conclude(&self) -> Option<Conclusion> {
        None
    }

    /// A killed run goes on: these stages were completed before. An error says why this controller cannot.
    fn resume(&mut self, completed: &[Stage]) -> Result<(), ControlError>;
}
