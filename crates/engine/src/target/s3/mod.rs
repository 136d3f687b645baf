//! The S3 target: HTTP/1.1 exchanges on the ring.
//!
//! From outside in: [`machine`] turns ops into exchanges, [`lane`] drives one [`exchange`] over one [`conn`]ection,
//! [`outgoing`] is what it sends, [`request`] writes it, [`judge`] says what the answer means.

pub mod config;
mod conn;
pub mod content;
mod exchange;
mod gone;
mod judge;
pub mod keys;
mod lane;
mod machine;
mod outgoing;
mod redirect;
pub mod renewal;
mod request;
pub mod tls;
mod waits;
mod water;
mod worker;

pub use config::{ClientOptions, Config, ResolvedEndpoint, Setup};
pub use content::{Layout, ObjectContent};
pub use keys::KeyNames;
pub use lane::bytes_of as connection_bytes;
pub use renewal::LiveKeys;
pub use worker::{REDIRECTED, S3Worker};

#[cfg(test)]
mod tests;
