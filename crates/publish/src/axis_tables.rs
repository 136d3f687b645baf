//! Tables by an axis of the campaign's file: a column for each of its values.

use plimsoll_campaign::{AxisPivot, CampaignResult, CampaignRow, axes_of, pivot};
use plimsoll_report::number;
use plimsoll_report::table::Table;

use crate::tables::{SiteTable, mib, text};

/// A table for each axis that some rows differ in alone.
pub(crate) fn by_axis(result: &CampaignResult) -> Vec<SiteTable> {
    let of = |by: String| {
        let table = axis_table(&pivot(result, &by)?, "missing");
        Some(SiteTable::new(&format!("by-{by}"), table))
    };
    axes_of(result).into_iter().filter_map(of).collect()
}

/// Op/s, or payload where an op has no rate of its own. `none`: stands where no run was made.
pub fn axis_table(p: &AxisPivot<'_>, none: &str) -> Table {
    let heads: Vec<String> = p.values.iter().map(|v| format!(">{}", text(v))).collect();
    let mut columns = vec!["subject", "workload", "op", "unit"];
    columns.extend(heads.iter().map(String::as_str));
    let mut table = Table::new(&format!("By {}", text(&p.by)), 4, &columns);
    for r in &p.rows {
        let is_ops = r.cells.iter().flatten().any(|c| c.ops_per_s.is_some());
        let cell = |c: &Option<&CampaignRow>| {
            let Some(c) = c else { return String::new() };
            let rate = if is_ops { c.ops_per_s } else { c.bytes_per_s.as_ref().map(mib) };
            rate.map(|e| number::estimate(&e)).or_else(|| c.missing(none)).unwrap_or_default()
        };
        let line = r.cells.iter().flatten().next().map_or("", |c| c.line_name());
        let unit = if is_ops { "op/s" } else { "MiB/s" };
        let mut cells = vec![r.subject.clone(), r.workload.clone(), line.to_owned(), unit.to_owned()];
        cells.extend(r.cells.iter().map(cell));
        table.push(cells.iter().map(|c| text(c)).collect());
    }
    table
}
