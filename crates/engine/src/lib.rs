//! The hot path: worker threads, rings, pacer, recorder, payload and targets.
//!
//! [`start`] takes a [`StageSpec`] and gives a [`RunningStage`], from which slices of results come
//! while it runs. Everything is allocated before the first op.

#![warn(missing_docs)]

pub mod admin;
pub mod api;
pub mod error;
mod grid;
mod launch;
pub mod pacer;
pub mod payload;
pub mod recorder;
pub mod ring;
pub mod rng;
pub mod source;
mod stage;
pub mod target;
mod underway;
mod worker;
pub mod written;

pub use api::{
    Clock, DataSeed, Output, RingUse, SeriesSpec, StageSpec, StopCause, StopRule, TargetConfig, TraceChunk,
    WorkerEnd, WorkerSpec,
};
pub use error::EngineError;
pub use grid::{GridLine, SliceGrid};
pub use pacer::Pacer;
pub use recorder::{FirstError, Mismatch};
pub use source::{Dist, FileOrder, KindSpec, OpPlace, OpSource, Share, SizeSpec, SyncRule};
pub use stage::{ArmedStage, Next, RunningStage, arm_unless, spare_slices, start, start_unless};
