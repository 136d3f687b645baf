//! Result files of other tools, read as what our own runs hold: fio, warp, elbencho, GoBonnieGo and iperf3.
//!
//! Nothing is opened here: a file comes as a reader, and is read once, front to back, in bounded memory. [`Source::open`] says
//! what it is; [`Source::lines`] reads the figures of a file that has no more than figures, and [`warp::survey`] and
//! [`warp::replay`] the requests of a file that has them all.
//!
//! The rules: units are those of the tool's source, not of its labels; a figure is a point without an interval unless the file
//! has the data for one; what a file does not say is absent, not zero; figures that do not agree with each other are told; a
//! version that nobody has looked at is refused by its name.

#![warn(missing_docs)]

mod checks;
mod document;
mod elbencho;
mod error;
mod fio;
mod gobonniego;
mod iperf3;
mod line;
mod rows;
mod source;
pub mod warp;

pub use error::ImportError;
pub use source::{ImportedRun, MOST_DOCUMENT, Source, SourceForm};
