//! A second set of systems whose truth is known: limiters of real products, each written from its product's description, and
//! before whoever wrote them had read the estimators of [`crate::probe`]. README.md beside this file says what each law is.
//!
//! [`chassis`] puts a law between clients and a storage; the laws are pure ([`ProductLaw`]): a time and a request in, an answer out.

pub mod at_once;
pub mod buckets;
pub mod chassis;
pub mod counted;
pub mod delays;
pub mod draw;
pub mod penalties;
pub mod storage;
#[cfg(test)]
mod tests;

use std::fmt;

/// A request, as it comes to the limiter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LawRequest {
    /// When, seconds.
    pub at_s: f64,
    /// Payload.
    pub size_bytes: f64,
    /// Which of the connections it came on.
    pub connection: u32,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LawAnswer {
    /// The storage has it at this time: now, or after a delay.
    At(f64),
    /// Refused at this time: at once, or after it was kept waiting.
    RefusedAt(f64),
}

/// Requests in service at once, beside or instead of a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServiceSlots {
    /// In service.
    pub most: usize,
    /// Waiting for a slot; more are refused.
    pub queue: usize,
    /// Who has waited for so long is refused.
    pub deadline_s: f64,
}

/// A limiter's law. Times never go back.
pub trait ProductLaw: fmt::Debug + Send {
    /// A request comes. Of a law of [`slots`](Self::slots) alone each passes.
    fn ask(&mut self, request: LawRequest) -> LawAnswer {
        LawAnswer::At(request.at_s)
    }

    /// How many may be in service now; `None`: any number.
    fn slots(&self) -> Option<ServiceSlots> {
        None
    }

    /// A request that was in service ended, after so long in it.
    fn ended(&mut self, _at_s: f64, _took_s: f64) {}

    /// Bytes per second that one connection gets, if that is limited.
    fn connection_bytes_per_s(&self) -> Option<f64> {
        None
    }
}

/// Kinds of laws, as a user would tell them apart: by what is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LawFamily {
    /// No limiter at all.
    Free,
    /// A token bucket, or several in series, refusing or delaying.
    Bucket,
    /// A count that starts anew at fixed times.
    Calendar,
    /// A sliding count in which refused requests are counted, or a bucket that refusals draw on: pushing lowers the rate.
    RefusalsCount,
    /// A sliding count of what was let through.
    Sliding,
    /// So many in service.
    InService,
    /// A rate that is kept by delay, without a burst worth naming.
    KeepsRate,
    /// Each connection has a rate.
    PerConnection,
    /// All is refused for a while after an excess.
    Ban,
    /// A lower rate after an excess, until it is calm.
    Hysteresis,
    /// A limit that follows what it sees and comes to no rest.
    Adaptive,
    /// A limit that grows while it is asked.
    Grows,
}

/// What is true of a system.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProductTruth {
    /// Product and law, as in README.md.
    pub name: &'static str,
    /// Of which kind.
    pub family: LawFamily,
    /// The highest rate of evenly spaced requests that is never refused, and never waits for the limiter. `None`: there is none
    /// that lasts, or it is not the requests that are counted.
    pub holds_per_s: Option<f64>,
    /// Requests that may be in flight (in service, or in its queue), where that is the law.
    pub in_service: Option<f64>,
    /// Bytes per second of each connection, where that is the law.
    pub connection_bytes_per_s: Option<f64>,
}
