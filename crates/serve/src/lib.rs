//! Runs in a browser: `plimsoll serve` and `--live`. One page, two feeds: the report's own page, fed while a run goes on.
//!
//! All figures come from the run directory, which a run fills whether anybody looks or not: the run's own threads do nothing for a
//! page. [`follow`] reads what is there so far at most once a second, and for a small share of one CPU; [`look`] has it judged by the same
//! code as a finished run; [`changes`] says what is new; [`feed`] numbers that, and keeps the last of it for pages that were cut off.
//! [`access`] says who may ask, before anything else is done; [`connections`], how many may be connected, and for how long without a word.
//! [`history`] is all runs of the directory, by the index: listed, filtered, as a pivot, compared, over time; [`api`] gives it to the page.

#![warn(missing_docs)]

mod access;
mod address;
mod api;
mod changes;
mod connections;
mod families;
mod feed;
mod follow;
mod history;
mod list;
mod look;
mod metrics;
mod now;
mod routes;
mod server;
mod tls;

pub use address::ListenAddress;
pub use families::{METRIC_FAMILIES, MetricFamily};
pub use now::LiveHints;
pub use server::{LiveServer, ServeError, ServeOptions};
