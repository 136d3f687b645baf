//! What a run makes in a bucket, and how it goes away again: prefix, marker, data sets, cleanup.
//!
//! Safety in one sentence: only keys under a prefix that holds our marker, with the content that the journal
//! remembers, are ever deleted; and only a bucket that this run created is ever removed, when it is empty.

mod area;
mod cleanup;
mod dataset;
#[cfg(test)]
mod memory;
mod store;

pub use area::{Area, open_area};
pub use cleanup::{Cleaned, clean};
pub use dataset::{DATASET_FORMAT, Dataset, Manifest, claim_dataset, dataset_prefix, finish_dataset};
pub use store::{ListPage, ObjectStore, StoreFault, Upload};

/// Name of the object that says whose a prefix is.
pub const MARKER: &str = ".plimsoll";
