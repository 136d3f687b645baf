//! One Run, from Plan to sealed run directory: stages, controllers, collector, sampler, cleanup, analysis.
//!
//! [`execute`] runs a plan, [`resume`] goes on with a killed run,
//! [`analyze()`] judges a stored run again.

mod analyze;
pub mod ceiling;
mod environment;
mod error;
mod execute;
mod lost;
mod lower;
mod memory;
mod options;
mod prepare;
pub mod remark;
pub mod sample;
mod session;
mod stage;
mod target;
mod trace;

pub use analyze::analyze;
pub use environment::{Machine, machine};
pub use error::RunError;
pub use execute::{Finished, check, execute, resume};
pub use lower::prepared_objects;
pub use memory::check_all as check_memory;
pub use options::Options;
