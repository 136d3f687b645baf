//! What servers and exporters say of themselves, to readings in our quantities and units. Without I/O: text in, readings out.
//!
//! [`text`] reads the Prometheus text format and OpenMetrics, [`rules`] knows which series means what for each make, [`page`] puts the
//! two together, [`answer`] reads an existing Prometheus, [`admin`] the administrators' JSON of MinIO, [`proc`] the files of a Linux host;
//! [`cluster`] reads from the same pages what a cluster is made of.
//! All of it is outside input: bounded in size, cleaned, and never the end of a run.

#![warn(missing_docs)]

pub mod admin;
pub mod answer;
pub mod cluster;
pub mod page;
pub mod proc;
pub mod rules;
pub mod text;

pub use page::{Make, PageReadings, readings};
pub use text::NotMetrics;
