//! A crew of many machines. A [`FleetAgent`] waits on each of them and carries out what its conductor orders, inside its own bounds; the
//! [`Fleet`] recruits agents for a run and conducts them, as [`plimsoll_crew::Crew`] asks for it.
//!
//! What is ordered is signed, numbered and said until it is answered ([`wire`]). What was measured is a stream in numbered frames, kept
//! until it was taken ([`frame`]), and in a file of the agent's own. A start is a time ([`clock`]), never the arrival of a message.

#![warn(missing_docs)]

mod agent;
mod clock;
mod conductor;
mod error;
mod frame;
mod wire;

#[doc(hidden)]
pub mod from_outside;
#[doc(hidden)]
pub mod levels;

pub use agent::{AgentOptions, Bounds, Calibrate, FleetAgent, KeepRecords};
pub use clock::{ClockFit, Echo};
pub use conductor::{
    Choice, Cleaners, Fleet, FleetNet, FleetOptions, OthersBroker, Present, ROLE, SERVER, clocks, roll_call,
};
pub use frame::own::read_own_record;
pub use plimsoll_crew::FromAgent;
pub use wire::speaks;
