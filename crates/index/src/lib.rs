//! An index over run directories, so that ten thousand of them are listed, filtered and drawn over time at once.
//!
//! The directories are the data; the index is a cache of what each says of itself, in SQLite, remade at will and never asked for anything that
//! a directory does not say. [`RunIndex::open`] finds its place, [`RunIndex::refresh`] reads what is new or changed, [`RunIndex::runs`] and
//! [`RunIndex::lines`] answer. How the rate of each run went is read apart ([`RunIndex::read_courses`]), by whoever draws it. Losing it, or its file being damaged, costs the time to read the runs again.

#![warn(missing_docs)]

mod course;
mod entry;
mod error;
mod filter;
mod fingerprint;
mod place;
mod run_index;
mod tables;

pub use course::RunCourse;
pub use entry::{IndexedLine, IndexedRun};
pub use error::IndexError;
pub use filter::{RunFilter, RunStanding};
pub use run_index::{Refreshed, RunIndex};
