//! Resources of this machine while it measures: a [`plimsoll_model::Sample`] each second, from /proc and /sys.
//!
//! The parsers are pure functions over the files' text; a file that this kernel does not have gives zeros.

mod cgroup;
mod devices;
pub(crate) mod parse;
pub mod rest;
mod source;
mod thread;

pub use cgroup::ControlGroups;
pub(crate) use cgroup::GroupController;
pub use devices::{Device, device_of};
pub use source::{Source, host_name};
pub use thread::Sampler;
