//! A bucket as a target: how it is reached, what is asked of it, and the place of our own that is claimed in it.

mod access;
mod admin;
mod asked;
mod bucket;
mod connect;
mod held;
mod outside;
mod uploads;

pub use access::{Access, GivenKeys, configured_endpoint};
pub use admin::AdminStore;
pub use bucket::{Bucket, ClaimBy, Errands};
pub use connect::{
    BucketClaim, CANNED, EMBEDDED, ForRun, Reach, ReachTold, admin_for, bucket_for, claim, embedded_admin,
};
pub use held::{EXPIRED_KEYS, HeldKeys};
pub(crate) use outside::ThisMachine;
pub use plimsoll_s3::xml::{ListPage, ListedObject};
pub use uploads::await_uploads;
