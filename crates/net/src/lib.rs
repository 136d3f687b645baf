//! What the network between hosts carries: streams of TCP between them, measured where they arrive, and what bound them.
//!
//! A [`NetNode`] carries out orders ([`wire`]) on one host; [`conduct()`] gives them to hosts that are reached over a fleet's bus or, of
//! two machines, over one connection ([`NetPair`], [`NetServer`]). The data plane ([`plane`]) is threads and sockets, and no more.

#![warn(missing_docs)]

mod address;
mod conclude;
mod conduct;
mod control;
mod door;
mod error;
mod hello;
mod host;
mod judge;
mod limit;
mod load;
mod node;
mod pair;
mod pattern;
mod ping;
mod plane;
mod secret;
mod tcp_info;
pub mod wire;
pub mod words;

pub use address::{AllowedNetworks, Network, is_private};
pub use conduct::{NetHosts, NetWish, SHORTEST, conduct, new_record};
pub use error::NetError;
pub use hello::{HELLO, Hello};
pub use host::this_host;
pub use node::NetNode;
pub use pair::{NetPair, NetServer};
pub use pattern::{NetPattern, PlannedStage, stages};
pub use secret::NetKey;
pub use tcp_info::parse as parse_tcp_info;
