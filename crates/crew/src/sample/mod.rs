//! Resources of this machine while it measures: a [`plimsoll_model::Sample`] each second, from /proc and /sys.
//!
//! The parsers are pure functions over the files' text; a file that this kernel does not have gives zeros.

mod devices;
pub(crate) mod parse;
pub mod rest;
mod source;
mod thread;

pub use devices::{Device, device_of};
pub use plimsoll_setup::control_groups::ControlGroups;
pub use source::{Source, host_name};
pub use thread::Sampler;
