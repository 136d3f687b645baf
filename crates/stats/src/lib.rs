//! Pure functions from what was seen to what may be said about it: no I/O, no clocks, no threads.
//!
//! Start at [`judge`] (a measured stage to findings), [`rate`] (a series to an estimate with an honest
//! interval) and [`expect`] (promises). The limit methods are one file each; METHODOLOGY.md says where each
//! formula comes from and how well it was seen to work.

#![warn(missing_docs)]

pub mod advice;
pub mod attribution;
pub mod bucket;
pub mod check;
pub mod claims;
pub mod client_time;
pub mod compare;
pub mod cycles;
pub mod expect;
pub mod fall;
pub mod guard;
pub mod judge;
pub mod laws;
pub mod least_squares;
pub mod limit_model;
pub mod littles_law;
pub mod load_points;
pub mod math;
pub mod outage;
pub mod percentile;
pub mod probe;
pub mod products;
pub mod progress;
pub mod rate;
pub mod rng;
pub mod saturation;
pub mod scale;
pub mod segment;
pub mod shape;
mod silence;
pub mod simulate;
pub mod steady;
pub mod student;
pub mod throttle;
pub mod trend;
pub mod validity;
pub mod words;
