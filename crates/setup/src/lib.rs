//! What is touched outside of this process and put back: devices, files, buckets, servers.
//!
//! [`safety`] says no to what is not ours and knows what is by its mark; [`block`] and [`objects`] make files, devices and prefixes
//! ready; [`s3`] claims and reaches a bucket; [`server`] starts the embedded servers; [`group`] makes control groups, which [`control_groups`] finds; [`influx`] hands results to a database; [`network`] makes namespaces and links; [`removal`] takes away what a
//! run made, [`cleanup()`] what a killed one left.

#![warn(missing_docs)]

pub mod block;
mod cleanup;
pub mod control_groups;
mod error;
pub mod group;
pub mod identity;
pub mod influx;
pub mod interrupt;
mod mounted;
pub mod network;
pub mod objects;
pub mod observe;
pub mod removal;
pub mod s3;
pub mod safety;
pub mod server;

pub use cleanup::{FindErrands, cleanup, cleanup_by};
pub use error::SetupError;
pub use interrupt::{Interrupt, RemovalEnd};
pub use server::{EmbeddedServer, start_disk, start_volume};
