//! The run directory: append, seal, read back, recover. What a run saw, in files that outlive a kill.
//!
//! Writing: [`RunDir::create`], then [`RunDir::create_intervals`] and [`RunDir::create_samples`] for the streams,
//! [`RunDir::journal`] for what has to be cleaned up, [`RunDir::seal`] at the end.
//! Reading: [`RunDir::load`] for series over time in bounded memory, [`RunDir::totals`] for merged windows.

#![warn(missing_docs)]

pub mod bounds;
pub mod codec;
pub mod data;
mod error;
pub mod frame;
pub mod journal;
pub mod mark;
mod merge;
pub mod net;

mod plain;
pub mod process;
mod remarks;
mod removal;
pub mod rundir;
pub mod sparse;
pub mod stream;
pub mod unknown;
pub mod varint;
pub mod whole;

pub use codec::{SparseInterval, SparseSeries};
pub use data::{
    AgentSeries, AgentTotals, GrowingRun, HostSamples, LoadOptions, ObservedSource, Point, Quantiles,
    RunAgent, RunData, RunRecords, ServerStep, StageAgent, StageCut, StageData, SubjectSteps, Totals, Window,
    server_steps,
};
pub use error::StoreError;
pub use frame::Damage;
pub use journal::{Journal, Thing};
pub use mark::{Mark, StageReport};
pub use merge::MergedReader;
pub use rundir::{EnvFile, ImportedLines, RunDir, RunEntry, RunState, Seal};
pub use sparse::SparseHistogram;
pub use stream::{Record, SliceCounts, StreamReader, StreamWriter};
pub use unknown::{Skipped, Unknown};
