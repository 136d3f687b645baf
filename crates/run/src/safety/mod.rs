//! What may be written to: refusal of unsafe targets, recognition of devices and of what is on them.
//!
//! Nothing here writes to a target. [`permit`] decides, and what it returns holds the device for the run.

pub mod claim;
pub mod device;
pub mod facts;
pub mod files;
pub mod judge;
pub mod marker;
pub mod place;
pub mod reads;
pub mod signature;
pub mod trees;

pub use claim::{Permit, permit};
pub use device::DeviceInfo;
pub use facts::{DeviceUse, UseOf};
pub use files::{FileFate, prepare_file};
pub use judge::{Refusal, Request, judge};
pub use signature::{Signature, detect};
