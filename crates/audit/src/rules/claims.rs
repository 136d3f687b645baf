//! Figures of the text, recomputed.

use super::of_table;
use super::slip::ten;
use super::view::TableView;
use crate::AuditError;
use crate::column::{ColumnRole, ReadCell, ReadColumn};
use crate::facts::{AuditFacts, ClaimFact, ClaimedRelation};
use crate::formula::evaluate;
use crate::quantity::Quantity;
use crate::remark::{AuditReport, percent_off, short};
use crate::unit::{Dimension, NamedUnit, RATES};

pub(super) fn check(
    views: &[TableView<'_>],
    facts: &AuditFacts,
    report: &mut AuditReport,
) -> Result<(), AuditError> {
    for (i, claim) in facts.claims.iter().enumerate() {
        of_claim(views, claim, &format!("map, claim {} ('{}')", i + 1, claim.says), report)?;
    }
    Ok(())
}

fn of_claim(
    views: &[TableView<'_>],
    claim: &ClaimFact,
    place: &str,
    report: &mut AuditReport,
) -> Result<(), AuditError> {
    let cells = |row: &str, column: &str, rank: bool| cell(views, row, column, rank);
    let value = evaluate(&claim.formula, &cells).map_err(|e| {
        AuditError::new(
            format!("{place}, formula"),
            e,
            "Quote what is printed with its unit: '391K IOPS' * '2 ms'.",
        )
    })?;
    let (printed, unit) = Quantity::printed(&claim.printed).ok_or_else(|| {
        AuditError::new(
            format!("{place}, printed"),
            format!("'{}' is no number with a unit", claim.printed),
            "Write one such as '24.4 GB/s'.",
        )
    })?;
    let counts = [Dimension::ONE, Dimension::PER_S];
    let alike = printed.dimension == value.dimension
        || printed.dimension == Dimension::ONE && unit.name.is_empty() && counts.contains(&value.dimension);
    // What has no unit is what its number says: "$0.0005 / 10000" is money all the same.
    let alike = alike || printed.dimension == Dimension::MONEY && value.dimension == Dimension::ONE;
    if !alike {
        return Err(AuditError::new(
            place,
            format!(
                "the formula gives {}, and printed is {}",
                value.dimension.words(),
                printed.dimension.words()
            ),
            "Correct a unit in the formula.",
        ));
    }
    report.checked("claim", 1);
    let printed = Quantity { dimension: value.dimension, ..printed };
    let slack = 1e-9 * printed.value.abs();
    let holds = match claim.is {
        ClaimedRelation::Equal => value.meets(printed),
        ClaimedRelation::AtMost => value.low <= printed.value + slack,
        ClaimedRelation::AtLeast => value.high >= printed.value - slack,
    };
    if holds {
        return Ok(());
    }
    report.remarks.push(of_table(
        "claim",
        &claim.says,
        said(claim),
        expected(value, printed, &unit),
        why(claim, value, printed, &unit),
    ));
    Ok(())
}

fn said(claim: &ClaimFact) -> String {
    match claim.is {
        ClaimedRelation::Equal => claim.printed.clone(),
        ClaimedRelation::AtMost => format!("at most {}", claim.printed),
        ClaimedRelation::AtLeast => format!("at least {}", claim.printed),
    }
}

/// In the unit that is printed.
fn expected(value: Quantity, printed: Quantity, unit: &NamedUnit) -> String {
    let by = |v: f64| short(v / unit.scale);
    let spread = value.high - value.low > 2e-3 * value.value.abs();
    let digits = if spread { format!(" ({} to {})", by(value.low), by(value.high)) } else { String::new() };
    let amount = match unit.name.as_str() {
        "$" | "\u{20ac}" => format!("{}{}", unit.name, by(value.value)),
        name => format!("{} {name}", by(value.value)).trim_end().to_owned(),
    };
    format!("{amount}{digits}: {} printed", percent_off(printed.value, value.value))
}

fn why(claim: &ClaimFact, value: Quantity, printed: Quantity, unit: &NamedUnit) -> String {
    let mut out = Vec::new();
    if !claim.explanation.is_empty() {
        out.push(claim.explanation.clone());
    } else if claim.is == ClaimedRelation::Equal {
        let raw = (printed.low / unit.scale, printed.high / unit.scale);
        let rate = RATES.iter().filter(|_| value.dimension == Dimension::BYTES_PER_S).find(|(_, s)| {
            (s / unit.scale - 1.0).abs() > 1e-9 && raw.0 * s <= value.high && raw.1 * s >= value.low
        });
        let power = ten((value.low, value.high), (printed.low, printed.high));
        if let Some((name, _)) = rate {
            out.push(format!("it is {name}, called {}", unit.name));
        } else if let Some(p) = power {
            out.push(format!("off by a factor of {}", short(10_f64.powi(p.abs()))));
        } else if value.value > printed.value
            && value.value < printed.value + 1.99 * (printed.high - printed.value)
        {
            out.push("cut off, where it should be rounded".into());
        }
    }
    if !claim.basis.is_empty() {
        out.push(format!("by {}", claim.basis));
    }
    out.join("; ")
}

/// A cell by the labels of its row and the name of its column.
fn cell(views: &[TableView<'_>], row: &str, column: &str, rank: bool) -> Result<Quantity, String> {
    for view in views {
        let Some(found) = view.columns.iter().find(|c| c.name == column && c.role != ColumnRole::Label)
        else {
            continue;
        };
        let is_row = |r: &usize| {
            let mut labels = view.labels(*r);
            labels.extend(view.size(*r).map(|s| s.text));
            view.name(*r) == row || labels.join(" ") == row || labels.iter().any(|l| l == row)
        };
        let rows: Vec<usize> = (0..view.table.rows.len()).filter(is_row).collect();
        match rows.as_slice() {
            [] => {}
            [r] => return of_cell(found, *r, rank).ok_or_else(|| format!("'{row}: {column}' has no number")),
            many => {
                return Err(format!(
                    "{} rows are called '{row}'; name more of the labels, with a space between",
                    many.len()
                ));
            }
        }
    }
    Err(format!("no table has a row '{row}' with a column '{column}'"))
}

fn of_cell(column: &ReadColumn, row: usize, rank: bool) -> Option<Quantity> {
    let cell = column.cells[row].as_ref()?;
    if rank {
        let less = column.cells.iter().flatten().filter(|c| c.value() < cell.value()).count();
        return Some(Quantity::exact(less as f64 + 1.0, Dimension::ONE));
    }
    let (low, high) = cell.bounds();
    let dimension = match column.role {
        ColumnRole::Ops => Dimension::PER_S,
        _ => cell.unit.dimension,
    };
    let own: &ReadCell = cell;
    Some(Quantity { low, value: own.value(), high, dimension })
}
