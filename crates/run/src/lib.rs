//! One Run, from Plan to sealed run directory: stages, controllers, collector, sampler, cleanup, analysis.
//!
//! [`execute`] runs a plan, [`resume`] goes on with a killed run, [`cleanup`] removes what one left,
//! [`analyze()`] judges a stored run again, [`calibrate()`] measures this machine's own ceiling.

mod analyze;
pub mod block;
mod calibrate;
mod ceiling;
mod cleanup;
pub mod drives;
mod environment;
mod error;
mod execute;
pub mod filebench;
pub mod fio_job;
pub mod interrupt;
mod lost;
mod lower;
mod memory;
pub mod objects;
mod options;
mod prepare;
pub mod remark;
pub mod safety;
pub mod sample;
mod server;
mod session;
mod stage;
mod target;
mod trace;

pub use analyze::analyze;
pub use calibrate::calibrate;
pub use ceiling::{Calibration, ceiling};
pub use cleanup::cleanup;
pub use error::RunError;
pub use execute::{Finished, check, execute, resume};
pub use interrupt::Interrupt;
pub use lower::prepared_objects;
pub use options::Options;
pub use target::configured_endpoint;
