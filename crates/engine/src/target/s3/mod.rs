//! The S3 target: HTTP/1.1 exchanges on the ring.

pub mod keys;
pub mod tls;
