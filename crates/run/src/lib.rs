//! One Run, from Plan to sealed run directory: stages, controllers, collector, sampler, cleanup, analysis.

pub mod analyze;
pub mod control;
mod environment;
mod error;
mod event;
pub mod fio_job;
pub mod objects;
pub mod safety;
pub mod sample;
mod stage;
mod trace;

pub use error::{RunError, exit};
pub use event::{Event, Live, Phase};
