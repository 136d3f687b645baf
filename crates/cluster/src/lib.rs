//! A cluster in a box: real storage servers in network namespaces of one machine, with links, drives and processors of known limits,
//! so that what is said of servers can be held against a truth.
//!
//! [`spec`] is what is asked for; [`BoxHome`] the directory in which all of it is noted before it is made, and by which it is
//! taken down after a kill; [`RunningCluster`] is one that runs. Everything is known by its mark, as a run's things are (`setup`).

#![warn(missing_docs)]

mod certificates;
mod cluster;
mod control;
mod drives;
mod exporter;
mod fault;
mod home;
mod minio;
mod network;
pub mod spec;

pub use cluster::{Keys, RunningCluster};
pub use control::ask;
pub use fault::BoxFault;
pub use home::{BoxHome, sweep};
pub use spec::ClusterSpec;
