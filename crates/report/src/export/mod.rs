//! Results for other programs: tables for notebooks and databases, points for InfluxDB, metrics for Bencher, a summary for a CI system.
//!
//! Units are in the names. Latencies of more than one slice leave here as counts in buckets, never as percentiles that somebody would average.

mod bmf;
mod buckets;
mod ci;
mod export_table;
mod influx;
mod parts;
mod slices;

pub use bmf::{Bmf, bmf, sustained};
pub use buckets::{BUCKET_BOUNDS_NS, LineBuckets, buckets_table, line_buckets};
pub use ci::{MARKDOWN_MARK, one_line, summary_markdown};
pub use export_table::{ExportTable, HeadKind};
pub use influx::{INFLUX_MARK, influx};
pub use parts::{agents_table, servers_table};
pub use slices::slices_table;

use std::collections::BTreeSet;

use crate::RunReport;
use crate::csv::{lines_rows, text_heads};

/// A row for each line of results, as [`crate::csv`] has them, and when its run began. Without the rows of agents, which are no lines.
/// `labels`: names of labels that have a column, whether these runs have them or not.
pub fn lines_table(runs: &[RunReport], labels: &BTreeSet<String>) -> ExportTable {
    let (heads, rows) = lines_rows(runs, labels);
    let text = text_heads();
    let kind = |head: &String| match head.as_str() {
        "valid" => HeadKind::Flag,
        h if text.contains(&h) || h.starts_with("label:") => HeadKind::Text,
        _ => HeadKind::Number,
    };
    let mut typed: Vec<(String, HeadKind)> = heads.into_iter().map(|h| (h.clone(), kind(&h))).collect();
    typed.push(("started_at".into(), HeadKind::Text));
    let mut table = ExportTable::new(typed);
    let starts = runs
        .iter()
        .flat_map(|r| r.summary.workloads.iter().map(|_| r.summary.environment.started_at.clone()));
    for (mut row, started) in rows.into_iter().zip(starts) {
        row.push(started);
        table.push(row);
    }
    table
}
