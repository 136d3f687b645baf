//! Limits that were published, against rows, against each other, and against how long somebody looked.

use super::of_table;
use super::view::TableView;
use crate::AuditError;
use crate::column::{ColumnRole, ReadCell};
use crate::facts::{AuditFacts, BurstFact, CapFact, figure};
use crate::quantity::Quantity;
use crate::remark::{AuditReport, percent_off, short};
use crate::unit::Dimension;

/// A cap counts as reached from here.
const REACHED: f64 = 0.95;
/// Buckets and windows let a figure be above its cap by as much.
const ABOVE: f64 = 1.01;

/// A cap, read.
struct ReadCap<'a> {
    fact: &'a CapFact,
    ops: Option<Quantity>,
    rate: Option<Quantity>,
}

impl ReadCap<'_> {
    /// The size from which the throughput binds.
    fn knee(&self) -> Option<Quantity> {
        self.rate?.over(self.ops?)
    }
}

pub(super) fn check(
    views: &[TableView<'_>],
    facts: &AuditFacts,
    report: &mut AuditReport,
) -> Result<(), AuditError> {
    let mut unreached = Vec::new();
    let mut reachable = 0;
    for (i, fact) in facts.caps.iter().enumerate() {
        let place = format!("map, cap {}", i + 1);
        let read = |text: &Option<String>, d| text.as_ref().map(|t| figure(&place, t, d)).transpose();
        let cap = ReadCap {
            fact,
            ops: ops_of(&place, fact)?,
            rate: read(&fact.throughput, Dimension::BYTES_PER_S)?,
        };
        knee(&cap, &place, report)?;
        if views.is_empty() {
            continue;
        }
        let mut best: Option<(f64, String)> = None;
        let mut found = false;
        for view in views {
            found |= of_view(view, &cap, &mut best, report);
        }
        if !found {
            return Err(AuditError::new(
                place,
                format!(
                    "no row has {}",
                    fact.when.iter().map(|(k, v)| format!("{k} = '{v}'")).collect::<Vec<_>>().join(", ")
                ),
                "Name label columns and their text as printed, or table = \"HEADING\".",
            ));
        }
        if let Some((share, text)) = best {
            reachable += 1;
            if share < REACHED {
                unreached.push(format!(
                    "{} of {} ({text})",
                    percent(share),
                    fact.ops.clone().unwrap_or_default()
                ));
            }
        }
    }
    if !unreached.is_empty() {
        let none = unreached.len() == reachable;
        let what =
            if none { "no operations limit is reached" } else { "operations limits that no row reaches" };
        report.remarks.push(of_table(
            "caps",
            what,
            unreached.join("; "),
            "rows below the knee at their operations limit".into(),
            "the load was too small for the limit (concurrency, clients), other operations used it up, or the limit is not what is published".into(),
        ));
    }
    for (i, burst) in facts.bursts.iter().enumerate() {
        of_burst(burst, &format!("map, burst {}", i + 1), report)?;
    }
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// `800 /s`, `800 IOPS`, `800`.
fn ops_of(place: &str, fact: &CapFact) -> Result<Option<Quantity>, AuditError> {
    let Some(text) = &fact.ops else { return Ok(None) };
    let plain = Quantity::printed(text).map(|(q, _)| q).filter(|q| q.dimension == Dimension::ONE);
    Ok(Some(match plain {
        Some(q) => Quantity { dimension: Dimension::PER_S, ..q },
        None => figure(place, text, Dimension::PER_S)?,
    }))
}

/// The knee that is printed, against the one that follows from both limits.
fn knee(cap: &ReadCap<'_>, place: &str, report: &mut AuditReport) -> Result<(), AuditError> {
    let (Some(text), Some(follows)) = (&cap.fact.knee, cap.knee()) else { return Ok(()) };
    let printed = figure(place, text, Dimension::BYTES)?;
    report.checked("knee", 1);
    // Limits are round numbers: they are exact.
    if gap_to(printed, follows.value) {
        let (ops, rate) =
            (cap.fact.ops.clone().unwrap_or_default(), cap.fact.throughput.clone().unwrap_or_default());
        let binary = follows.value * 1.024_f64.powi(2);
        let why = if gap_to(printed, binary) { "" } else { "the limit was taken in MiB and is in MB" };
        report.remarks.push(of_table(
            "knee",
            &format!("{rate} at {ops}"),
            text.clone(),
            format!(
                "{} KB (1,000): {}",
                short(follows.value / 1e3),
                percent_off(printed.value, follows.value)
            ),
            why.to_owned(),
        ));
    }
    Ok(())
}

fn gap_to(printed: Quantity, value: f64) -> bool {
    !printed.meets(Quantity::exact(value, printed.dimension))
}

/// Rows that the cap holds for: none above it; the best share of the operations limit below the knee is kept.
fn of_view(
    view: &TableView<'_>,
    cap: &ReadCap<'_>,
    best: &mut Option<(f64, String)>,
    report: &mut AuditReport,
) -> bool {
    let mut found = false;
    for row in (0..view.table.rows.len()).filter(|r| holds(view, *r, cap.fact)) {
        found = true;
        for (role, limit) in [(ColumnRole::Ops, cap.ops), (ColumnRole::Rate, cap.rate)] {
            let Some(limit) = limit else { continue };
            for cell in view.of_role(role).iter().filter_map(|c| c.cells[row].as_ref()) {
                report.checked("caps", 1);
                if cell.bounds().0 > limit.high * ABOVE {
                    let expected = format!(
                        "at most {}",
                        if role == ColumnRole::Ops {
                            cap.fact.ops.clone()
                        } else {
                            cap.fact.throughput.clone()
                        }
                        .unwrap_or_default()
                    );
                    let why =
                        "a burst, a limit that does not hold for this operation, or another unit".to_owned();
                    report.remarks.push(view.remark(row, "caps", cell.text(), expected, why));
                }
                if role == ColumnRole::Ops {
                    share(view, row, cell, cap, limit, best);
                }
            }
        }
    }
    found
}

fn share(
    view: &TableView<'_>,
    row: usize,
    cell: &ReadCell,
    cap: &ReadCap<'_>,
    limit: Quantity,
    best: &mut Option<(f64, String)>,
) {
    let is_below = match (cap.knee(), view.size(row)) {
        (Some(knee), Some(size)) => size.bytes() < knee.value,
        _ => false,
    };
    let share = cell.bounds().1 / limit.value;
    if is_below && best.as_ref().is_none_or(|(b, _)| share > *b) {
        *best = Some((share, format!("{}, {}", cell.number.text, view.name(row))));
    }
}

fn holds(view: &TableView<'_>, row: usize, cap: &CapFact) -> bool {
    cap.when.iter().all(|(column, text)| {
        if column == "table" {
            return view.table.rows[row].title == *text;
        }
        let found = view.columns.iter().find(|c| c.name == *column);
        found.and_then(|c| view.text(row, c.index)).is_some_and(|t| t == text)
    })
}

/// A burst that lasts longer than somebody looked is all that they saw.
fn of_burst(burst: &BurstFact, place: &str, report: &mut AuditReport) -> Result<(), AuditError> {
    let (lasts, run) =
        (figure(place, &burst.lasts, Dimension::SECONDS)?, figure(place, &burst.run, Dimension::SECONDS)?);
    report.checked("burst", 1);
    if lasts.value >= run.value {
        report.remarks.push(of_table(
            "burst",
            &burst.name,
            format!("{}, measured for {}", burst.printed, burst.run),
            format!(
                "what holds after the burst of {}: a longer run, or the figure called a burst's",
                burst.lasts
            ),
            "the run ended before the burst did, so it shows nothing of what is sustained".into(),
        ));
    }
    Ok(())
}
