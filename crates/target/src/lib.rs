//! The embedded servers that Plimsoll measures itself against.
//!
//! - [`canned`]: the leanest HTTP/1.1 responder, for calibration, benchmarks and faults that are counted exactly;
//! - [`s3`]: an S3 server over a directory, durable, with signatures checked;
//! - [`block`]: a disk of a tier, by QEMU's storage daemon;
//! - [`disk`]: a mounted directory on a disk with limits, credit included;
//! - [`limiter`]: the rate limits and latencies of tiers, in front of the first two.
//!
//! Nothing here shares protocol code with the client side (`plimsoll-s3`): client and server are independent
//! witnesses of signatures, chunking and XML.

pub mod block;
pub mod canned;
pub mod clock;
pub mod data_dir;
pub mod disk;
pub mod limiter;
pub mod ready;
pub mod s3;
pub mod tls;
