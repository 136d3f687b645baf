//! What may be written to: refusal of unsafe targets, recognition of devices and of what is on them.
//!
//! Nothing here writes to a target. [`permit`] and [`prepare_file`] decide, and what they return is the device or file itself,
//! open: it is what the run uses. [`marker`] and [`trees`] remove what a run made, by the run's mark on the thing itself: a
//! journal or a name proves nothing.

pub mod claim;
pub mod content;
pub mod device;
pub mod facts;
pub mod files;
pub mod handle;
pub mod held;
pub mod judge;
pub mod marker;
pub mod mounts;
pub mod place;
pub mod probe;
pub mod reads;
pub mod signature;
pub mod survey;
pub mod trees;

pub use claim::{Permit, permit, permit_beside, permit_to_look};
pub use device::DeviceInfo;
pub use facts::{DeviceUse, UseOf};
pub use files::{FileFate, HeldFile, prepare_file, refuse_no_storage};
pub use judge::{Request, TargetRefusal, judge};
pub use signature::{Signature, detect};
