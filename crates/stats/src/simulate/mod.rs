//! Systems whose truth is known: what the methods are validated on. Seeded, on a virtual clock, no threads.
//!
//! [`fluid`] is a rate-flow model (fast, for statistics), [`events`] a discrete-event model with whole requests,
//! real 429s and real queues (slow, for realism). Both keep their limiter's state between runs.

pub mod drive;
pub mod events;
pub mod fluid;

/// What a token bucket charges for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Charges {
    /// One token an op.
    Ops,
    /// One token a byte.
    Bytes,
    /// One token for each started unit of this many bytes.
    Units(f64),
}

impl Charges {
    /// Tokens for one op of `size` bytes.
    pub fn cost(self, size: f64) -> f64 {
        match self {
            Self::Ops => 1.0,
            Self::Bytes => size,
            Self::Units(unit) => (size / unit).ceil(),
        }
    }
}

/// A token bucket with its present level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// What a token pays for.
    pub charges: Charges,
    /// Tokens that come back per second.
    pub rate_per_s: f64,
    /// Tokens of a full bucket.
    pub capacity: f64,
    /// Tokens now.
    pub level: f64,
}

impl Bucket {
    /// Full.
    pub fn new(charges: Charges, rate_per_s: f64, capacity: f64) -> Self {
        Self { charges, rate_per_s, capacity, level: capacity }
    }

    /// `share`: of the capacity, 0 to 1.
    pub fn filled(self, share: f64) -> Self {
        Self { level: self.capacity * share, ..self }
    }
}

/// A stretch of load at one size and concurrency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Of one op.
    pub size_bytes: f64,
    /// Ops in flight.
    pub concurrency: u32,
    /// Virtual time.
    pub duration_s: f64,
    /// Slice of the series that comes back.
    pub dt_s: f64,
    /// Open loop: ops per second offered; `None`: closed loop.
    pub offered_per_s: Option<f64>,
}

/// Rates per slice.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RatesSeen {
    /// Length of a slice, seconds.
    pub dt_s: f64,
    /// Of ops that ended well.
    pub ops_per_s: Vec<f64>,
    /// Of their payload.
    pub bytes_per_s: Vec<f64>,
    /// Answers of 429.
    pub rejected_per_s: Vec<f64>,
    /// Mean latency of the slice, seconds.
    pub latency_s: Vec<f64>,
}

/// What both simulators can do.
pub trait System {
    /// Applies load and returns what a client sees. Work in flight goes on into the next run of the same shape.
    fn run(&mut self, load: &Load) -> RatesSeen;
    /// Lets every request in flight end.
    fn quiesce(&mut self);
    /// Leaves it alone.
    fn idle(&mut self, seconds: f64);
    /// Virtual time since the start, seconds.
    fn now_s(&self) -> f64;
}
