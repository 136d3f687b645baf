//! Little's law: what is in flight is the rate times the mean time, for each row and for the table as a whole.

use super::of_table;
use super::slip;
use super::view::{TableView, gap, median, product};
use crate::AuditError;
use crate::column::{ColumnRole, ReadCell, ReadColumn};
use crate::remark::{AuditReport, short};

/// What clients leave of their concurrency (between one answer and the next request), or count more: nothing is remarked upon inside.
const CLIENT: f64 = 0.15;
/// And of that much the digits alone have to speak.
const DIGITS: f64 = 0.05;

/// One row: operations a second, the mean time, and what is in flight by them.
struct FlightRow<'a> {
    row: usize,
    ops: (f64, f64),
    mean: &'a ReadCell,
    low: f64,
    value: f64,
    high: f64,
}

pub(super) fn check(view: &TableView<'_>, report: &mut AuditReport) -> Result<(), AuditError> {
    if view.facts.given.concurrency.all().iter().any(|n| !(*n > 0.0 && n.is_finite())) {
        return Err(AuditError::new(
            "map, [given] concurrency",
            "what is in flight has to be more than 0",
            "Write a number such as 16, or several: [16, 64].",
        ));
    }
    for series in view.series() {
        if let (Some(ops), Some(mean)) = (series.ops, series.mean) {
            of_series(view, ops, mean, report);
        }
    }
    changes(view, report);
    Ok(())
}

fn rows<'a>(view: &TableView<'_>, ops: &'a ReadColumn, mean: &'a ReadColumn) -> Vec<FlightRow<'a>> {
    let row = |row: usize| {
        let (o, m) = (ops.cells[row].as_ref()?, mean.cells[row].as_ref()?);
        let (low, high) = product(o.bounds(), m.bounds());
        let is_there = o.value() > 0.0 && m.value() > 0.0;
        is_there.then_some(FlightRow {
            row,
            ops: o.bounds(),
            mean: m,
            low,
            value: o.value() * m.value(),
            high,
        })
    };
    (0..view.table.rows.len()).filter_map(row).collect()
}

fn of_series(view: &TableView<'_>, ops: &ReadColumn, mean: &ReadColumn, report: &mut AuditReport) {
    let rows = rows(view, ops, mean);
    let told: Vec<Vec<f64>> = rows.iter().map(|r| view.in_flight(r.row)).collect();
    let known = told.iter().filter(|t| !t.is_empty()).count();
    report.checked("little", known);
    if known == 0 {
        return;
    }
    let off: Vec<usize> = (0..rows.len())
        .filter(|i| !told[*i].is_empty() && told[*i].iter().all(|n| is_off(&rows[*i], *n)))
        .collect();
    let ratios = || rows.iter().zip(&told).filter_map(|(r, t)| Some(r.value / nearest(t, r.value)?));
    let usual = median(ratios().collect()).unwrap_or(1.0);
    let common = median(rows.iter().map(|r| r.value).collect()).unwrap_or(1.0);
    let is_same = told.iter().all(|t| *t == told[0]);
    let is_common = off.len() >= 2 && 4 * off.len() >= 3 * known;
    // What is common is told once; a row that is off from the others has a cause of its own.
    let strays = |i: &usize| {
        let r = &rows[*i];
        let middle = if is_same { common } else { usual * nearest(&told[*i], r.value).unwrap_or(r.value) };
        gap((r.low, r.high), (middle * (1.0 - CLIENT), middle * (1.0 + CLIENT))) > DIGITS
    };
    let mut each = off.clone();
    if is_common {
        each.retain(strays);
        // Where most are off each by another factor, they are of other rows or runs: that, too, is one cause.
        let is_mixed = 2 * each.len() > off.len();
        let of_all: Vec<(&FlightRow<'_>, &[f64])> =
            off.iter().map(|i| (&rows[*i], told[*i].as_slice())).collect();
        report.remarks.push(whole_table(view, &of_all, known, (!is_mixed).then_some(usual)));
        if is_mixed {
            return;
        }
    }
    for i in each {
        let r = &rows[i];
        let n = nearest(&told[i], r.value).unwrap_or(r.value);
        let printed = format!(
            "{} and {}, {} in flight",
            ops.cells[r.row].as_ref().map_or(String::new(), ReadCell::text),
            r.mean.text(),
            short(n)
        );
        let wants = short(n / r.ops.1 / r.mean.unit.scale);
        let expected = format!(
            "{} in flight by these two ({} to {}), or a mean of about {wants} {}",
            short(r.value),
            short(r.low),
            short(r.high),
            r.mean.unit.name
        );
        report.remarks.push(view.remark(r.row, "little", printed, expected, why(r, n)));
    }
}

fn nearest(all: &[f64], to: f64) -> Option<f64> {
    all.iter().copied().min_by(|a, b| (a / to).ln().abs().total_cmp(&(b / to).ln().abs()))
}

/// Whether so many in flight are ruled out, by the digits and by more than clients account for.
fn is_off(r: &FlightRow<'_>, n: f64) -> bool {
    let beyond = r.value / n < 1.0 - CLIENT || r.value / n > 1.0 + CLIENT;
    beyond && gap((r.low, r.high), (n * (1.0 - DIGITS), n * (1.0 + DIGITS))) > 0.0
}

fn why(r: &FlightRow<'_>, n: f64) -> String {
    let wanted = (n * (1.0 - DIGITS) / r.ops.1, n * (1.0 + DIGITS) / r.ops.0);
    if let Some(unit) = slip::span_that_fits(r.mean, wanted) {
        return format!("the latency of this row is in {unit}");
    }
    let exchanged = r.mean.number.transpositions().into_iter().map(|v| v * r.mean.unit.scale);
    if exchanged.into_iter().any(|v| v >= wanted.0 && v <= wanted.1) {
        return "digits of the latency, exchanged".into();
    }
    if r.value > n {
        "more than there is cannot be in flight: the latency or the rate is of another run, or the latency is a percentile".into()
    } else {
        "clients were idle or the rate was limited, or the latency is a median and no mean".into()
    }
}

/// `usual`: the factor that all are off by; none where each has its own.
fn whole_table(
    view: &TableView<'_>,
    off: &[(&FlightRow<'_>, &[f64])],
    known: usize,
    usual: Option<f64>,
) -> crate::AuditRemark {
    let low = off.iter().map(|(r, _)| r.low).fold(f64::INFINITY, f64::min);
    let high = off.iter().map(|(r, _)| r.high).fold(0.0, f64::max);
    let mut told: Vec<f64> = off.iter().flat_map(|(_, t)| t.iter().copied()).collect();
    told.sort_by(f64::total_cmp);
    told.dedup();
    let is_same = off.iter().all(|(_, t)| *t == off[0].1);
    let list = told.iter().map(|n| short(*n)).collect::<Vec<_>>().join(" and ");
    let middle = median(off.iter().map(|(r, _)| r.value).collect()).unwrap_or(0.0);
    let printed = if is_same { format!("{list} in flight") } else { "what each row has in flight".into() };
    let expected = if is_same {
        let power = 2_f64.powf(middle.log2().round());
        let at =
            if power >= low && power <= high { format!(", such as {}", short(power)) } else { String::new() };
        format!(
            "about {} in flight ({} to {}{at}): {} of {known} rows",
            short(middle),
            short(low),
            short(high),
            off.len()
        )
    } else if let Some(usual) = usual {
        format!("{} times as many: {} of {known} rows", short(usual), off.len())
    } else {
        let ratio = |(r, t): &(&FlightRow<'_>, &[f64])| Some(r.value / nearest(t, r.value)?);
        let mut all: Vec<f64> = off.iter().filter_map(ratio).collect();
        all.sort_by(f64::total_cmp);
        let (least, most) = (all.first().copied().unwrap_or(0.0), all.last().copied().unwrap_or(0.0));
        format!("{} to {} times as many: {} of {known} rows", short(least), short(most), off.len())
    };
    let Some(usual) = usual else {
        let why = "the latencies or the rates are of other rows, or of other runs".to_owned();
        return of_table("little", "the table as a whole", printed, expected, why);
    };
    let first = off[0].0;
    let wanted = nearest(off[0].1, first.value).map(|n| (n * 0.95 / first.ops.1, n * 1.05 / first.ops.0));
    let unit = wanted.and_then(|w| slip::span_that_fits(first.mean, w));
    let by_unit = |u: &str| format!("the latencies are in {u}, called {}", first.mean.unit.name);
    let columns = view.of_role(ColumnRole::Concurrency).len();
    let why = unit.map_or_else(
        || match usual {
            u if u > 1.0 && columns > 0 => {
                "the concurrency is per client or per job, or the latency is no mean".to_owned()
            }
            _ => "another concurrency than is printed, in all of these rows".to_owned(),
        },
        by_unit,
    );
    of_table("little", "the table as a whole", printed, expected, why)
}

/// With fixed threads, x more throughput is x/(1+x) less latency.
fn changes(view: &TableView<'_>, report: &mut AuditReport) {
    /// Points beyond the digits that a closed loop may differ by.
    const POINT: f64 = 0.01;
    let latencies = view.of_role(ColumnRole::LatencyChange);
    for rate in view.of_role(ColumnRole::RateChange) {
        let Some(latency) =
            latencies.iter().find(|l| l.of.contains(rate.of.as_str()) || rate.of.contains(l.of.as_str()))
        else {
            continue;
        };
        for row in 0..view.table.rows.len() {
            let (Some(x), Some(l)) = (&rate.cells[row], &latency.cells[row]) else { continue };
            report.checked("threads", 1);
            // Percent, whether the column says so or not; -x/(1+x), however the sign is printed.
            let less = |v: f64| 100.0 * (v / 100.0) / (1.0 + v / 100.0);
            let (low, high) = (less(x.low), less(x.high));
            // Printed as an improvement (+) or as a change (-): what is asked is how large it is.
            let sign = if x.number.value * l.number.value < 0.0 { -1.0 } else { 1.0 };
            let (a, b) = (sign * l.low, sign * l.high);
            let (a, b) = (a.min(b), a.max(b));
            if a > high + 100.0 * POINT || b < low - 100.0 * POINT {
                let printed = format!("throughput {}, latency {}", x.number.text, l.number.text);
                let expected =
                    format!("a latency of {:.1} % less: x/(1+x) of {}", less(x.number.value), x.number.text);
                let why = "the threads were not all busy, their number was not the same, or the percentage is of the other one (a throughput of \
                           +x % is no latency of -x %)";
                report.remarks.push(view.remark(row, "threads", printed, expected, why.into()));
            }
        }
    }
}
