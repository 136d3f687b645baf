//! The embedded servers that Plimsoll measures itself against.
//!
//! `canned` is the leanest HTTP/1.1 responder for calibration, benchmarks and fault tests. Nothing here shares
//! protocol code with the client side (`plimsoll-s3`): client and server are independent witnesses.

pub mod block;
pub mod canned;
pub mod clock;
pub mod limiter;
pub mod ready;
pub mod s3;
pub mod tls;
