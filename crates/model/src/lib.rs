//! The nouns of Plimsoll: plain data that every other crate agrees on. No I/O, no threads, no clocks.
//!
//! Start at [`plan::Plan`] (what is asked for), [`interval::Interval`] (what was seen) and
//! [`summary::RunSummary`] (what is said about it).

#![warn(missing_docs)]

pub mod analysis;
pub mod claim;
pub mod cluster;
pub mod cost;
pub mod count;
pub mod credentials;
pub mod environment;
pub mod estimate;
pub mod event;
pub mod finding;
pub mod histogram;
pub mod interval;
pub mod net;
pub mod observed;
pub mod op;
pub mod outcome;
pub mod pattern;
pub mod plan;
pub mod sample;
pub mod summary;
pub mod text;
pub mod trace;
pub mod units;
pub mod worker;

pub use analysis::Analysis;
pub use claim::{Claim, ClaimKind, RunStatus};
pub use cluster::Cluster;
pub use environment::{AgentClock, AgentHost, Environment, HostFacts, ImportSource};
pub use estimate::Estimate;
pub use event::Event;
pub use finding::{Finding, Level, Verdict};
pub use histogram::Histogram;
pub use interval::{Interval, Series, SeriesCounts, SeriesId};
pub use observed::Scrape;
pub use op::{Op, OpKind};
pub use outcome::Outcome;
pub use plan::Plan;
pub use sample::Sample;
pub use summary::RunSummary;
pub use worker::WorkerId;
