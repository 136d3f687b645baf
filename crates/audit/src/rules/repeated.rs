//! The same digits in two cells: measured figures of four digits and more do not often repeat.

use std::collections::BTreeMap;

use super::of_table;
use super::view::TableView;
use crate::column::ColumnRole;
use crate::remark::AuditReport;

/// Digits that count from which a repetition is none by chance: one in ten thousand and less for a pair.
const DIGITS: usize = 4;
/// Neighbours so near are a plateau (a limit), where digits repeat.
const PLATEAU: f64 = 0.005;

pub(super) fn check(view: &TableView<'_>, report: &mut AuditReport) {
    // Where operations stand, throughput says the same again; and what is limited in bytes repeats them over sizes.
    let ops = view.of_role(ColumnRole::Ops);
    for column in if ops.is_empty() { view.of_role(ColumnRole::Rate) } else { ops } {
        let cells: Vec<_> =
            column.cells.iter().enumerate().filter_map(|(r, c)| Some((r, c.as_ref()?))).collect();
        let mut seen: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let counted = cells.iter().filter(|(_, c)| c.number.bare_digits() >= DIGITS && c.is_own);
        counted.for_each(|(r, c)| seen.entry(c.number.text.as_str()).or_default().push(*r));
        report.checked("repeated", seen.len());
        let mut values: Vec<f64> = cells.iter().map(|(_, c)| c.value()).collect();
        values.sort_by(f64::total_cmp);
        let mut told = Vec::new();
        for (text, rows) in seen.into_iter().filter(|(_, rows)| rows.len() == 2) {
            let value = column.cells[rows[0]].as_ref().map_or(0.0, |c| c.value());
            // Both of them are among those.
            let has_neighbours = near(&values, value) > rows.len();
            // At the same size the same limit gives the same figure.
            let sizes = (view.size(rows[0]), view.size(rows[1]));
            let is_one_size = matches!(sizes, (Some(a), Some(b)) if a.bytes() == b.bytes());
            if is_one_size || has_neighbours || is_cap(view, column.role, value) {
                continue;
            }
            let lines = rows.iter().map(|r| format!("line {} ({})", view.table.rows[*r].line, view.name(*r)));
            told.push(format!("{text} in {}", lines.collect::<Vec<_>>().join(" and ")));
        }
        if !told.is_empty() {
            report.remarks.push(of_table(
                "repeated",
                &column.name,
                told.join("; "),
                "different digits: figures that were measured rarely agree in all of four".into(),
                "copied from one row into the other".into(),
            ));
        }
    }
}

/// How many of these, from the least to the most, are on one plateau with a value.
fn near(sorted: &[f64], value: f64) -> usize {
    let off = |v: &f64| v / value - 1.0;
    if value > 0.0 {
        sorted.partition_point(|v| off(v) <= PLATEAU) - sorted.partition_point(|v| off(v) < -PLATEAU)
    } else if value < 0.0 {
        sorted.partition_point(|v| off(v) >= -PLATEAU) - sorted.partition_point(|v| off(v) > PLATEAU)
    } else {
        0
    }
}

/// At a limit figures are all alike.
fn is_cap(view: &TableView<'_>, role: ColumnRole, value: f64) -> bool {
    view.facts.caps.iter().any(|cap| {
        let text = if role == ColumnRole::Ops { &cap.ops } else { &cap.throughput };
        let cap = text.as_ref().and_then(|t| crate::quantity::Quantity::printed(t));
        cap.is_some_and(|(q, _)| (value / q.value - 1.0).abs() <= PLATEAU)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn neighbours_are_those_that_a_look_at_each_finds(
            mut all in proptest::collection::vec(-3000i32..3000, 1..80), at in 0usize..80,
        ) {
            all.sort_unstable();
            let all: Vec<f64> = all.into_iter().map(|v| f64::from(v) / 8.0).collect();
            let value = all[at % all.len()];
            let slow = all.iter().filter(|v| (*v / value - 1.0).abs() <= PLATEAU).count();
            proptest::prop_assert_eq!(near(&all, value), slow);
        }
    }
}
