//! What has an order: percentiles, the mean among them, rates over sizes, shares of a whole, a sum and its parts.

use std::collections::BTreeMap;

use super::of_table;
use super::view::{TableView, gap};
use crate::column::{ColumnRole, ReadCell, ReadColumn};
use crate::remark::{AuditReport, short};

/// Rates differ by as much from run to run; a rise against the trend of so many sizes is remarked upon from here.
const NOISE: f64 = 1.25;
const TREND: usize = 4;
/// Fewer sizes have no trend: two runs of the same machine on a bad day differ by half.
const NOISE_OF_FEW: f64 = 2.0;

pub(super) fn check(view: &TableView<'_>, report: &mut AuditReport) {
    percentiles(view, report);
    monotone(view, report);
    nodes(view, report);
    percent(view, report);
}

fn subjects(view: &TableView<'_>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for c in view.columns.iter().filter(|c| matches!(c.role, ColumnRole::Quantile(_))) {
        if !all.contains(&c.of) {
            all.push(c.of.clone());
        }
    }
    all
}

fn percentiles(view: &TableView<'_>, report: &mut AuditReport) {
    for of in subjects(view) {
        let mut columns: Vec<(f64, &ReadColumn)> = view
            .columns
            .iter()
            .filter(|c| c.of == of)
            .filter_map(|c| match c.role {
                ColumnRole::Quantile(q) => Some((q, c)),
                _ => None,
            })
            .collect();
        columns.sort_by(|a, b| a.0.total_cmp(&b.0));
        for pair in columns.windows(2) {
            in_order(view, pair[0].1, pair[1].1, report);
        }
        let means: Vec<&ReadColumn> =
            view.of_role(ColumnRole::Mean).into_iter().filter(|c| c.of == of).collect();
        if let (Some(mean), Some((q, most))) = (means.first(), columns.last())
            && *q == 1.0
        {
            in_order(view, mean, most, report);
        }
        if let (Some(mean), Some((q, least))) = (means.first(), columns.first())
            && *q == 0.0
        {
            in_order(view, least, mean, report);
        }
    }
}

/// The one is never more than the other.
fn in_order(view: &TableView<'_>, less: &ReadColumn, more: &ReadColumn, report: &mut AuditReport) {
    let mut off: Vec<(usize, &ReadCell, &ReadCell)> = Vec::new();
    let mut checked = 0;
    for row in 0..view.table.rows.len() {
        let (Some(a), Some(b)) = (&less.cells[row], &more.cells[row]) else { continue };
        checked += 1;
        if a.bounds().0 > b.bounds().1 * (1.0 + 1e-9) {
            off.push((row, a, b));
        }
    }
    report.checked("order", checked);
    let names = format!("{} above {}", less.name, more.name);
    if off.len() > 1 && 2 * off.len() > checked {
        let expected =
            format!("{} is never more than {}: {} of {checked} rows", less.name, more.name, off.len());
        let why = "the columns have each other's numbers, or are in different units".to_owned();
        report.remarks.push(of_table("order", "the table as a whole", names, expected, why));
        return;
    }
    for (row, a, b) in off {
        let printed = format!("{} {}, {} {}", less.name, a.text(), more.name, b.text());
        let expected = format!("{} is never more than {}", less.name, more.name);
        let why = if gap(
            (a.low * a.unit.scale, a.high * a.unit.scale),
            (b.low * 1e3 * b.unit.scale, b.high * 1e3 * b.unit.scale),
        ) < 10.0
        {
            "the two are exchanged, or one is in another unit or of another run"
        } else {
            "one is in another unit, or of another run"
        };
        report.remarks.push(view.remark(row, "order", printed, expected, why.into()));
    }
}

/// Operations a second do not grow with the size of what is moved, all else the same.
fn monotone(view: &TableView<'_>, report: &mut AuditReport) {
    if !view.columns.iter().any(|c| c.role == ColumnRole::Size) {
        return;
    }
    let name = |row: usize| {
        let flight = view.in_flight(row).iter().map(|n| short(*n)).collect::<Vec<_>>().join("/");
        let mut name = vec![view.table.rows[row].title.clone()];
        name.extend(view.labels(row));
        name.retain(|n| !n.is_empty());
        format!("{}\u{1}{flight}", name.join(", "))
    };
    let series: Vec<_> = view.series().into_iter().filter_map(|s| s.ops).collect();
    let of_rows = if series.is_empty() { 0 } else { view.table.rows.len() };
    let names: Vec<String> = (0..of_rows).map(name).collect();
    for ops in series {
        let mut groups: BTreeMap<&str, Vec<(f64, String, &ReadCell, usize)>> = BTreeMap::new();
        for (row, name) in names.iter().enumerate() {
            let Some((size, cell)) = view.size(row).zip(ops.cells[row].as_ref()) else { continue };
            groups.entry(name).or_default().push((size.bytes(), size.text, cell, row));
        }
        let mut told = Vec::new();
        for (name, mut rows) in groups {
            rows.sort_by(|a, b| a.0.total_cmp(&b.0));
            // The same size twice is no series over sizes.
            if rows.windows(2).any(|w| w[0].0 == w[1].0) {
                continue;
            }
            report.checked("monotone", rows.len().saturating_sub(1));
            let noise = if rows.len() >= TREND { NOISE } else { NOISE_OF_FEW };
            let rises: Vec<_> =
                rows.windows(2).filter(|w| w[1].2.bounds().0 > w[0].2.bounds().1 * noise).collect();
            if rises.is_empty() {
                continue;
            }
            let list = rises.iter().map(|w| {
                format!("{} at {} and {} at {}", w[0].2.number.text, w[0].1, w[1].2.number.text, w[1].1)
            });
            let name = name.split('\u{1}').next().unwrap_or_default().to_owned();
            let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
            told.push(format!("{name}{}", list.collect::<Vec<_>>().join(", ")));
        }
        if !told.is_empty() {
            report.remarks.push(of_table(
                "monotone",
                &ops.name,
                told.join("; "),
                "larger ones are not more a second".into(),
                "the rows were measured at other times or loads, or what limits the small ones is not the storage".into(),
            ));
        }
    }
}

/// The whole is the number of nodes times what each has.
fn nodes(view: &TableView<'_>, report: &mut AuditReport) {
    let count = |row: usize| {
        let column = view.columns.iter().find(|c| c.role == ColumnRole::Nodes);
        column.map_or(view.facts.given.nodes, |c| c.cells[row].as_ref().map(ReadCell::value))
    };
    for each in
        view.columns.iter().filter(|c| c.is_per_node && matches!(c.role, ColumnRole::Rate | ColumnRole::Ops))
    {
        let whole = view.columns.iter().find(|c| !c.is_per_node && c.role == each.role && c.of == each.of);
        let Some(whole) = whole else { continue };
        for row in 0..view.table.rows.len() {
            let (Some(n), Some(a), Some(e)) = (count(row), &whole.cells[row], &each.cells[row]) else {
                continue;
            };
            report.checked("nodes", 1);
            let product = (e.bounds().0 * n, e.bounds().1 * n);
            if gap(product, a.bounds()) > 0.005 {
                let printed = format!("{} over {} nodes, {} each", a.text(), short(n), e.text());
                let expected = format!("{} {} together", short(n * e.value() / a.unit.scale), a.unit.name);
                let why = "another number of nodes, or a mean over other nodes than the sum".to_owned();
                report.remarks.push(view.remark(row, "nodes", printed, expected, why));
            }
        }
    }
}

/// Nothing is used by more than all of it.
fn percent(view: &TableView<'_>, report: &mut AuditReport) {
    for c in view.of_role(ColumnRole::Percent) {
        for (row, cell) in c.cells.iter().enumerate() {
            let Some(cell) = cell else { continue };
            report.checked("percent", 1);
            let of_one = c.name.to_lowercase().contains("cpu");
            if cell.low > 100.0 && !of_one {
                let why = "the ceiling is higher than is said, or more crosses it than is counted".to_owned();
                report.remarks.push(view.remark(row, "percent", cell.text(), "at most 100 %".into(), why));
            }
        }
    }
}
