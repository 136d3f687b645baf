//! A run directory as one file, `.plim`: packed for whoever is to have it, and unpacked where it came from anybody.
//!
//! A `.plim` is a tar of one directory, named by the run's id, compressed with zstd: `tar --zstd -xf` opens it. Its first entry, `plim.json`, says
//! of each file that follows how long it is and what its hash is ([`PlimManifest`]); the run's own `seal.json` says the same of the raw data as
//! it was when the run ended, and is checked, too.
//!
//! [`pack`] writes one; [`unpack`] makes a run directory of it, or nothing. What is read is not trusted: names are compared with those that a run
//! directory can have, and every length is bounded before it is believed.

#![warn(missing_docs)]

mod error;
mod manifest;
mod pack;
mod staging;
mod unpack;

pub use error::PlimError;
pub use manifest::{PLIM_FORMAT, PackedFile, PlimManifest};
pub use pack::pack;
pub use unpack::{MOST_BYTES, Unpacked, is_plim, read_plim, unpack};
