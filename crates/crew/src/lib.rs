//! Who carries a stage out. [`Crew`] is what a conductor knows of them: it makes ready, starts a [`Load`] and goes. [`LocalCrew`] is this
//! process, [`SimCrew`] any number of simulated agents on the virtual clock, with a network between them that is as bad as a test
//! wants it.
//!
//! What is claimed (a bucket's prefix, a run directory) is the conductor's; agents reach it. Files and devices are claimed by the agent
//! that has them, in a journal of its own.

#![warn(missing_docs)]

mod allowance;
mod error;
mod fill;
mod frames;
mod local;
mod memory;
mod order;
pub mod sample;
mod sim;
mod target;

pub use error::CrewError;
pub use frames::{BeyondWindow, Inbox, WINDOW};
pub use local::{LocalArmed, LocalCrew};
pub use memory::check_all as check_memory;
pub use order::{Arrival, Crew, Enlisted, Fill, FromAgent, Load, StageOrder};
pub use sim::{Partition, SimCrew, SimNetwork};
pub use target::{cores, key_names};
