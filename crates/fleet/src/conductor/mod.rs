//! Agents as the crew of a run: found by roll call, hired, conducted, and let go.

mod ask;
mod attendance;
mod choice;
mod clocks;
mod collect;
mod crew;
mod entrust;
mod errands;
mod ground;
mod holds;
mod known;
#[cfg(test)]
mod liars;
mod link;
mod listen;
mod load;
#[cfg(test)]
mod many;
#[cfg(test)]
mod masters;
mod net;
mod recruit;
mod roll_call;
mod rounds;

pub use choice::Choice;
pub use clocks::clocks;
pub use net::FleetNet;
pub use recruit::{Cleaners, Fleet, FleetOptions, OthersBroker};
pub use roll_call::{Present, ROLE, SERVER, roll_call};
