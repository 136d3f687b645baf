//! One Run, from Plan to sealed run directory: stages, controllers, collector, sampler, cleanup, analysis.
//!
//! [`execute`] runs a plan, [`resume`] goes on with a killed run, [`cleanup`] removes what one left,
//! [`analyze::analyze`] judges a stored run again, [`calibrate()`] measures this machine's own ceiling.

pub mod analyze;
pub mod block;
mod calibrate;
mod cleanup;
pub mod control;
pub mod drives;
mod environment;
mod error;
mod event;
mod execute;
pub mod filebench;
pub mod fio_job;
pub mod interrupt;
mod lost;
mod lower;
mod memory;
pub mod objects;
mod prepare;
pub mod remark;
pub mod safety;
pub mod sample;
mod server;
mod session;
mod stage;
mod target;
mod trace;

pub use calibrate::{Calibration, calibrate, ceiling};
pub use cleanup::cleanup;
pub use error::{RunError, exit};
pub use event::{Event, Figures, Live, Phase};
pub use execute::{Finished, Options, check, execute, resume};
pub use interrupt::Interrupt;
pub use lower::prepared_objects;
pub use target::configured_endpoint;
