//! The S3 wire protocol without I/O: endpoints, credentials, signatures, request heads, the response parser,
//! XML, checksums, and what an answer means. Nothing here opens a socket or reads a clock; the engine does.

#![warn(missing_docs)]

pub mod checksum;
pub mod classify;
pub mod credentials;
pub mod date;
pub mod endpoint;
pub mod head;
pub mod metrics_token;
pub mod response;
pub mod sign;
pub mod uri;
pub mod xml;

pub use checksum::{Crc, CrcKind};
pub use endpoint::{Endpoint, EndpointError};
pub use head::{Action, Body, HeadOptions, HeaderError, Heads, PayloadHash};
pub use response::{BodyLeft, Malformed, ResponseEvent, ResponseHead, ResponseParser};
pub use sign::{Credentials, Signer};
