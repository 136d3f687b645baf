//! What carries messages between the machines of a fleet, and who may speak there.
//!
//! [`Bus`] is all that a conductor and its agents know of the transport: publish, subscribe, and what became of the
//! connection. [`NatsBus`] is a connection to a broker, [`MemoryBus`] a bus in this process, with the
//! faults of a network drawn from a seed. There is no request and reply:
//! an answer goes to a subject that names its receiver, so that what may be read and said follows from the subject alone.

#![warn(missing_docs)]

pub mod enrol;
mod error;
pub mod keeper;
mod key;
mod login;
mod memory;
mod nats;
mod pattern;
mod queue;
pub mod sealed;
mod speaks;
pub mod subjects;
pub mod token;
mod weather;

use std::fmt::Debug;

pub use error::BusError;
pub use key::{Identity, random as random_bytes, signed_by};
pub use login::Login;
pub use memory::MemoryBus;
pub use nats::{Broker, Caller, NatsBus};
pub use queue::{Events, Subscription};
pub use speaks::Speaks;
pub use weather::Weather;

/// The longest message that may be published anywhere: brokers take a megabyte by default, and one long message delays the short
/// ones behind it.
pub const LARGEST_BYTES: usize = 512 * 1024;

/// What was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Where, without wildcards.
    pub subject: String,
    /// What; of any form.
    pub payload: Vec<u8>,
}

/// What became of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusEvent {
    /// It is there, or there again.
    Connected,
    /// It is gone; what is published meanwhile may be lost.
    Disconnected,
    /// So many messages came faster than they were taken, and are lost.
    Dropped(u64),
}

/// Carries messages to whoever subscribed, at most once, and perhaps not at all: who needs more numbers them and asks again.
/// Callers are threads, so nothing here is asynchronous. Messages of one publisher come in their order where the network is kind.
pub trait Bus: Send + Sync + Debug {
    /// Hands a message over. That it was taken says nothing of its arrival.
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError>;

    /// What is published from now on under `subject`, in which `*` stands for one part and a last `>` for all that follow.
    /// When this returns, the other side knows of it: an answer to what is published next is not missed.
    fn subscribe(&self, subject: &str) -> Result<Subscription, BusError>;

    /// The longest payload that it takes, in bytes.
    fn largest(&self) -> usize;

    /// What becomes of the connection from now on.
    fn events(&self) -> Events;
}
