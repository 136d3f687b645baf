//! A campaign as a publication: a folder of static files that stands by itself, without network, server or this program.
//!
//! [`publication()`] reads a campaign and its runs and leaves out what must not leave the house, [`Publication::files`] makes the pages,
//! tables and data, and [`site::write`] puts them in place in one step. The figures are those of `plimsoll campaign status`; every
//! sentence is made from them, and only where its condition holds.

#![warn(missing_docs)]

mod answer;
mod axis_tables;
mod chart;
mod gather;
mod loose;
mod page;
mod promise;
mod publication;
mod redact;
mod search;
mod served;
mod sheet;
pub mod site;
mod tables;

pub use answer::CampaignAnswer;
pub use axis_tables::axis_table;
pub use chart::{
    Bar, BarChart, CHART_SCHEMA, ChartData, CliffChart, CostPoint, CurveChart, CurveLine, LatencyPoint,
    LoadChart,
};
pub use gather::{FallenSeries, HashedFile, PublishedRun};
pub use loose::publication_of_runs;
pub use page::{HAS_CHARTS, MOST_OF_PAGE};
pub use publication::{Publication, PublishError, PublishOptions, publication};
pub use redact::{RedactKind, Redactor};
pub use served::{notes as servers_notes, servers_table};
pub use tables::SiteTable;
