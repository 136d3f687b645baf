//! The rules, each in a file of its own, and in which order they are told.

mod bytes;
mod caps;
mod claims;
mod cliff;
mod little;
mod order;
mod repeated;
mod slip;
mod traffic;
mod view;

use crate::facts::AuditFacts;
use crate::number::Mark;
use crate::remark::{AuditRemark, AuditReport};
use crate::table::{PrintedTable, joined};
use crate::{AuditError, column};
use view::TableView;

/// Everything that can be held against something else. `1.234` alone may be either number: where no cell of a table tells, points are
/// before decimals, unless the table fits itself better the other way.
pub(crate) fn all(tables: &[PrintedTable], facts: &AuditFacts) -> Result<AuditReport, AuditError> {
    let report = under(tables, facts, Mark::Point)?;
    if report.remarks.is_empty() || facts.decimal.is_some() {
        return Ok(report);
    }
    match under(tables, facts, Mark::Comma) {
        Ok(mut other) if other.remarks.len() < report.remarks.len() => {
            other.notes.push("Commas are taken to stand before decimals, points between thousands.".into());
            Ok(other)
        }
        _ => Ok(report),
    }
}

fn under(tables: &[PrintedTable], facts: &AuditFacts, otherwise: Mark) -> Result<AuditReport, AuditError> {
    let mut report = AuditReport {
        tables: tables.len(),
        rows: tables.iter().map(|t| t.rows.len()).sum(),
        ..AuditReport::default()
    };
    let joined = joined(tables);
    let mut views = Vec::new();
    for table in &joined {
        views.push(TableView::new(table, column::read_columns(table, facts, otherwise)?, facts));
    }
    for name in facts.columns.keys() {
        if !tables.is_empty() && !tables.iter().any(|t| t.header.contains(name)) {
            return Err(AuditError::new(
                format!("map, [columns] '{name}'"),
                "no table has such a column",
                format!("Columns are: {}.", names(tables)),
            ));
        }
    }
    for view in &views {
        bytes::check(view, &mut report);
        little::check(view, &mut report)?;
        order::check(view, &mut report);
        repeated::check(view, &mut report);
    }
    caps::check(&views, facts, &mut report)?;
    traffic::check(facts, &mut report)?;
    cliff::check(facts, &mut report)?;
    claims::check(&views, facts, &mut report)?;
    if report.checks.iter().all(|c| c.checked == 0) {
        return Err(AuditError::new(
            "the table",
            format!("nothing in it can be held against anything else; its columns are: {}", names(tables)),
            "Say what the columns are, or what holds for all rows, in the map: [columns], [given] concurrency, size.",
        ));
    }
    // Of the whole first, then line by line.
    report.remarks.sort_by_key(|r| r.line.unwrap_or(0));
    Ok(report)
}

/// What the columns are called, for a message: the first of them where there are many.
fn names(tables: &[PrintedTable]) -> String {
    const MOST: usize = 40;
    let all = || tables.iter().flat_map(|t| &t.header).map(String::as_str);
    let more = match all().count().saturating_sub(MOST) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    all().take(MOST).collect::<Vec<_>>().join(", ") + &more
}

/// Of a table as a whole.
fn of_table(
    rule: &'static str,
    what: &str,
    printed: String,
    expected: String,
    explanation: String,
) -> AuditRemark {
    AuditRemark {
        table: String::new(),
        line: None,
        row: what.to_owned(),
        rule,
        printed,
        expected,
        explanation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::LOOKS;

    /// Labels that were merged from the first row on, sizes that rise, figures that do not fit and that repeat.
    fn long(rows: usize) -> String {
        let row = |i: usize| {
            let label = if i == 0 { "PUT" } else { "" };
            format!("{label},,{} KiB,{}.25,{},{}\n", i + 1, 1000 + i / 2, 3 * i + 7, i % 9 + 1)
        };
        "Op,Tier,Size,op/s,MiB/s,Threads\n".to_owned() + &(0..rows).map(row).collect::<String>()
    }

    #[test]
    fn each_cell_is_looked_at_a_few_times_however_long_a_table_is() {
        let facts = AuditFacts::from_toml(
            "[[cap]]\nwhen = { Op = \"PUT\" }\nops = \"800 /s\"\nthroughput = \"600 MiB/s\"\n",
        )
        .unwrap();
        let looks = |rows: usize| {
            let tables = crate::read_csv(&long(rows)).unwrap();
            LOOKS.set(0);
            let report = all(&tables, &facts).unwrap();
            assert!(report.remarks.iter().any(|r| r.rule == "caps" && r.row.starts_with("PUT, ")));
            LOOKS.get() as f64 / (6 * rows) as f64
        };
        let (short, long) = (looks(50), looks(1000));
        assert!(long < short * 1.5, "{short} looks at each cell became {long}");
    }
}
