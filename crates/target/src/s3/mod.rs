//! `plimsoll target s3`: an embedded S3 server over a directory.
//!
//! s3s speaks the protocol and checks signatures; the store, the limiter and everything about memory and durability
//! are ours. Server-side encryption AES256 is accepted and given back as a header; nothing is encrypted.

mod backend;
mod buckets;
mod convert;
mod error;
mod front;
mod index;
mod multipart;
mod object;
mod own;
mod paced;
mod server;
mod socket;
mod spans;
mod store;
mod stream;
mod timer;

pub use server::{Credentials, S3Options, S3ServerError, ServerHandle, spawn};
