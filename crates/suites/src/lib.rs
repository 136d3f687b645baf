//! Series of measurements that are made for one purpose: each makes plans, and has them run as any other.
//!
//! [`fio_job`] reads fio's job files; [`filebench`] is the file benchmark; [`drives`] measures drives alone and together;
//! [`calibrate()`] measures this machine's own ceiling.

mod calibrate;
pub mod drives;
pub mod filebench;
pub mod fio_job;

pub use calibrate::calibrate;
