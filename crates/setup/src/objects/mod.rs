//! What a run makes in a bucket, and how it goes away again: prefix, marker, data sets, cleanup.
//!
//! Safety in one sentence: only keys that a run can have written, under a prefix that holds its marker with the content that
//! the journal remembers, are ever deleted; and only a bucket that this run created is ever removed, when it is empty.

mod area;
mod cleanup;
mod dataset;
mod existing;
mod guard;
#[cfg(test)]
pub(crate) mod memory;
mod patience;
mod proof;
mod store;
mod sweep;

pub use area::{
    Area, NoArea, bucket_error, check_prefix, nothing_is_allowed, open_area, still_ours, with_slash,
};
pub use cleanup::{Cleaned, clean};
pub use dataset::{
    DATASET_FORMAT, Dataset, Manifest, claim_dataset, dataset_prefix, finish_dataset, kept_as,
};
pub use existing::{FoundObjects, WantedObjects, find_existing, listing_error, none_found};
pub use guard::Guarded;
pub use patience::{PatientClock, Waiting};
pub use proof::MARKER;
pub use store::{Held, Item, ItemPage, KeyPage, ObjectStore, StoreFault, Told, Upload, Versioning};
pub use sweep::STOPPED;
