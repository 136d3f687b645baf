//! Operations times size are bytes: within the digits printed, row by row, under the units and the base that the table as a whole has.

use std::collections::BTreeMap;

use super::of_table;
use super::slip;
use super::view::{PrintedSize, SeriesColumns, TableView, gap, product};
use crate::column::ReadCell;
use crate::remark::{AuditRemark, AuditReport, percent_off, short};
use crate::unit::{Base, RATES};

/// Two columns that were taken over slightly different times differ by as much, beyond their digits.
const NEAR: f64 = 0.005;
/// A reading of the units has to fit so much of the rows to be the table's.
const MOST_OF: f64 = 0.6;

/// One row in which all three are there.
pub(super) struct BytesRow<'a> {
    pub row: usize,
    pub size: PrintedSize,
    pub ops: &'a ReadCell,
    pub rate: &'a ReadCell,
    pub mean: Option<&'a ReadCell>,
}

/// How the units of a table are read.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Reading {
    is_size_in_other_base: bool,
    rate: RateReading,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum RateReading {
    Printed,
    OtherBase,
    /// Another unit, by its place in [`RATES`].
    Unit(usize),
    /// Each column has the other's numbers.
    Swapped,
}

impl Reading {
    const PRINTED: Self = Self { is_size_in_other_base: false, rate: RateReading::Printed };

    /// As printed first, what is least unlikely next.
    fn all() -> Vec<Self> {
        let with = |is_size_in_other_base, rate| Self { is_size_in_other_base, rate };
        let mut out = vec![
            Self::PRINTED,
            with(true, RateReading::Printed),
            with(false, RateReading::OtherBase),
            with(true, RateReading::OtherBase),
            with(false, RateReading::Swapped),
        ];
        out.extend((0..RATES.len()).map(|i| with(false, RateReading::Unit(i))));
        out
    }

    /// How far a row is from fitting; none where the reading says nothing of it.
    fn gap(self, r: &BytesRow<'_>) -> Option<f64> {
        let other = if self.is_size_in_other_base { r.size.unit.in_other_base()? } else { r.size.unit.scale };
        let size = r.size.count * other;
        let (ops, rate) = match self.rate {
            RateReading::Swapped => {
                ((r.rate.low, r.rate.high), (r.ops.low * r.rate.unit.scale, r.ops.high * r.rate.unit.scale))
            }
            RateReading::Printed => (r.ops.bounds(), r.rate.bounds()),
            RateReading::OtherBase => {
                let scale = r.rate.unit.in_other_base()?;
                (r.ops.bounds(), (r.rate.low * scale, r.rate.high * scale))
            }
            RateReading::Unit(i) => {
                let scale = RATES[i].1;
                (r.ops.bounds(), (r.rate.low * scale, r.rate.high * scale))
            }
        };
        Some(gap((ops.0 * size, ops.1 * size), rate))
    }

    fn fits(self, r: &BytesRow<'_>) -> bool {
        self.gap(r).is_some_and(|g| g <= NEAR)
    }
}

pub(super) fn rows<'a>(view: &'a TableView<'_>, s: SeriesColumns<'a>) -> Vec<BytesRow<'a>> {
    let row = |row: usize| {
        let (ops, rate) = (s.ops?.cells[row].as_ref()?, s.rate?.cells[row].as_ref()?);
        let size = view.size(row)?;
        let is_there = ops.value() > 0.0 && rate.value() > 0.0 && size.bytes() > 0.0;
        let mean = s.mean.and_then(|m| m.cells[row].as_ref());
        is_there.then_some(BytesRow { row, size, ops, rate, mean })
    };
    (0..view.table.rows.len()).filter_map(row).collect()
}

pub(super) fn check(view: &TableView<'_>, report: &mut AuditReport) {
    for series in view.series() {
        let rows = rows(view, series);
        report.checked("bytes", rows.len());
        if rows.is_empty() {
            continue;
        }
        let reading = table_reading(&rows);
        if reading != Reading::PRINTED {
            told(view, &rows, reading, report);
        }
        let sizes = odd_sizes(&rows, reading);
        report.remarks.extend(remark_of_sizes(&rows, &sizes));
        let of_row = |r: &BytesRow<'_>| match sizes.get(&key(&r.size)) {
            Some(bytes) => {
                let scaled = PrintedSize { count: *bytes / r.size.unit.scale, ..r.size.clone() };
                let plain = BytesRow { size: scaled, ..*r };
                Reading::PRINTED.gap(&plain)
            }
            None => reading.gap(r),
        };
        let gaps: Vec<f64> = rows.iter().map(|r| of_row(r).unwrap_or(0.0)).collect();
        row_remarks(view, &rows, &gaps, reading, &sizes, report);
    }
}

/// The reading that most rows fit; as printed where nothing is better.
fn table_reading(rows: &[BytesRow<'_>]) -> Reading {
    let count = |reading: Reading| rows.iter().filter(|r| reading.fits(r)).count();
    let printed = count(Reading::PRINTED);
    let mut best = (Reading::PRINTED, printed);
    for reading in Reading::all() {
        if count(reading) > best.1 {
            best = (reading, count(reading));
        }
    }
    let carries = best.1 >= 2 && best.1 as f64 >= MOST_OF * rows.len() as f64;
    if carries || rows.len() == 1 && printed == 0 && best.1 == 1 { best.0 } else { Reading::PRINTED }
}

/// What another reading than the printed one means.
fn told(view: &TableView<'_>, rows: &[BytesRow<'_>], reading: Reading, report: &mut AuditReport) {
    let first = &rows[0];
    let (size, rate) = (&first.size.unit, &first.rate.unit);
    let count = rows.iter().filter(|r| reading.fits(r) && !Reading::PRINTED.fits(r)).count();
    let printed = format!("sizes in {}, throughput in {}", size.name, rate.name);
    let carried = format!("{count} of {} rows fit only so", rows.len());
    let (rule, expected, why) = match reading {
        Reading { is_size_in_other_base: true, rate: RateReading::Printed } if size.base == Base::Either => {
            return;
        }
        Reading { is_size_in_other_base: true, rate: RateReading::Printed } => {
            let both_old = size.base == Base::Decimal && !view.has_binary() && rate.base != Base::Decimal;
            if both_old {
                report.notes.push(format!(
                    "{} is taken as {} bytes.",
                    size.name,
                    short(size.in_other_base().unwrap_or(0.0))
                ));
                return;
            }
            let why = format!("the sizes are {}, called {}", size.other_name(), size.name);
            ("base", format!("sizes in {}", size.other_name()), why)
        }
        Reading { is_size_in_other_base: false, rate: RateReading::OtherBase } => {
            let why = format!("the throughput is in {}, called {}", rate.other_name(), rate.name);
            ("base", format!("throughput in {}", rate.other_name()), why)
        }
        Reading { is_size_in_other_base: true, rate: RateReading::OtherBase } => {
            if size.base == Base::Decimal && rate.base == Base::Decimal {
                report.notes.push(format!("{} and {} are taken as powers of 1,024.", size.name, rate.name));
                return;
            }
            let why = "both are in the other base than they are called".to_owned();
            ("base", format!("sizes in {}, throughput in {}", size.other_name(), rate.other_name()), why)
        }
        Reading { rate: RateReading::Swapped, .. } => {
            let why = "the two columns have each other's numbers".to_owned();
            ("unit", "operations a second and throughput the other way round".to_owned(), why)
        }
        Reading { rate: RateReading::Unit(i), .. } => {
            let why = format!("the throughput is in {}, called {}", RATES[i].0, rate.name);
            ("unit", format!("throughput in {}", RATES[i].0), why)
        }
        _ => return,
    };
    report.remarks.push(of_table(
        rule,
        "the table as a whole",
        printed,
        format!("{expected}: {carried}"),
        why,
    ));
}

fn key(size: &PrintedSize) -> String {
    size.text.clone()
}

/// Sizes that are something else than they are called wherever they stand: `1024 KB` for 1,000,000 bytes.
fn odd_sizes(rows: &[BytesRow<'_>], reading: Reading) -> BTreeMap<String, f64> {
    let mut by_size: BTreeMap<String, Vec<&BytesRow<'_>>> = BTreeMap::new();
    for r in rows {
        by_size.entry(key(&r.size)).or_default().push(r);
    }
    if by_size.len() < 2 {
        return BTreeMap::new();
    }
    let mut out = BTreeMap::new();
    for (text, of_size) in by_size.into_iter().filter(|(_, rows)| rows.len() >= 2) {
        let fitting = of_size.iter().filter(|r| reading.fits(r)).count();
        for bytes in other_bytes(&of_size[0].size) {
            let fits = |r: &&&BytesRow<'_>| {
                let size = PrintedSize { count: bytes / r.size.unit.scale, ..r.size.clone() };
                Reading::PRINTED.fits(&BytesRow { size, ..***r })
            };
            let count = of_size.iter().filter(fits).count();
            if count >= 2 && 2 * count > of_size.len() && count > fitting {
                out.insert(text.clone(), bytes);
                break;
            }
        }
    }
    out
}

/// What else a size of this name may be in bytes.
fn other_bytes(size: &PrintedSize) -> Vec<f64> {
    let mut out: Vec<f64> = size.unit.in_other_base().map(|s| s * size.count).into_iter().collect();
    // 1024 KB: a MB, which is 1,000,000 bytes.
    if size.unit.base == Base::Decimal && size.count % 1024.0 == 0.0 {
        out.insert(0, size.count / 1024.0 * size.unit.scale * 1000.0);
    }
    out
}

fn remark_of_sizes(rows: &[BytesRow<'_>], sizes: &BTreeMap<String, f64>) -> Option<AuditRemark> {
    if sizes.is_empty() {
        return None;
    }
    let mut odd: Vec<(&String, f64)> = sizes.iter().map(|(t, b)| (t, *b)).collect();
    odd.sort_by(|a, b| a.1.total_cmp(&b.1));
    let as_named = rows.iter().map(|r| &r.size).filter(|s| !sizes.contains_key(&key(s)));
    let other = as_named.max_by(|a, b| a.bytes().total_cmp(&b.bytes()));
    let list = |f: &dyn Fn(&(&String, f64)) -> String| odd.iter().map(f).collect::<Vec<_>>().join(", ");
    let beside =
        other.map(|s| format!(", while {} is {} bytes", s.text, whole(s.bytes()))).unwrap_or_default();
    Some(of_table(
        "base",
        "the table as a whole",
        list(&|(t, _)| (*t).clone()),
        format!("{}{beside}", list(&|(t, b)| format!("{t} is {} bytes", whole(*b)))),
        "two bases in one column: the letters mean 1,000 in some sizes and something else in others".into(),
    ))
}

/// All of its digits.
fn whole(value: f64) -> String {
    let plain = format!("{value:.0}");
    let grouped = plain.char_indices().map(|(i, c)| {
        let comma = i > 0 && (plain.len() - i) % 3 == 0;
        if comma { format!(",{c}") } else { c.to_string() }
    });
    grouped.collect()
}

fn row_remarks(
    view: &TableView<'_>,
    rows: &[BytesRow<'_>],
    gaps: &[f64],
    reading: Reading,
    sizes: &BTreeMap<String, f64>,
    report: &mut AuditReport,
) {
    let off: Vec<usize> = (0..rows.len()).filter(|i| gaps[*i] > 0.0).collect();
    let large: Vec<usize> = off.iter().copied().filter(|i| gaps[*i] > NEAR).collect();
    let small: Vec<usize> = off.iter().copied().filter(|i| gaps[*i] <= NEAR).collect();
    if large.len() > 2 && large.len() * 5 > rows.len() * 3 {
        let i = large[0];
        let printed =
            format!("{}: {} and {}", view.name(rows[i].row), rows[i].ops.text(), rows[i].rate.text());
        let expected = format!(
            "{} in that row; {} of {} rows do not fit",
            expected(&rows[i], reading, sizes),
            large.len(),
            rows.len()
        );
        let why = slip::common(&large.iter().map(|i| &rows[*i]).collect::<Vec<_>>(), rows);
        report.remarks.push(of_table("bytes", "the table as a whole", printed, expected, why));
        return;
    }
    let each = if small.len() <= 2 { off.clone() } else { large };
    for i in each {
        let r = &rows[i];
        let printed = format!("{} and {}", r.ops.text(), r.rate.text());
        let bytes = sizes.get(&key(&r.size)).copied();
        report.remarks.push(view.remark(
            r.row,
            "bytes",
            printed,
            expected(r, reading, sizes),
            slip::of_row(r, bytes),
        ));
    }
    if small.len() > 2 {
        let worst = small.iter().map(|i| gaps[*i]).fold(0.0, f64::max);
        let text = format!(
            "{} of {} rows are off by up to {:.2} % beyond their digits",
            small.len(),
            rows.len(),
            100.0 * worst
        );
        if small.len() * 2 > rows.len() {
            report.notes.push(format!("{text}: both columns were not taken over the same time."));
        } else {
            let lines: Vec<String> =
                small.iter().map(|i| view.table.rows[rows[*i].row].line.to_string()).collect();
            let printed = format!("lines {}", lines.join(", "));
            let why =
                "operations and throughput were not taken over the same time, or rounded twice".to_owned();
            report.remarks.push(of_table("bytes", "small differences", printed, text, why));
        }
    }
}

/// The throughput that follows from the rest of the row, in its unit.
fn expected(r: &BytesRow<'_>, reading: Reading, sizes: &BTreeMap<String, f64>) -> String {
    let other = reading.is_size_in_other_base.then(|| r.size.unit.in_other_base()).flatten();
    let bytes =
        sizes.get(&key(&r.size)).copied().unwrap_or(r.size.count * other.unwrap_or(r.size.unit.scale));
    let scale = match reading.rate {
        RateReading::OtherBase if !sizes.contains_key(&key(&r.size)) => {
            r.rate.unit.in_other_base().unwrap_or(1.0)
        }
        RateReading::Unit(i) => RATES[i].1,
        _ => r.rate.unit.scale,
    };
    let value = r.ops.value() * bytes / scale;
    let (low, high) = product(r.ops.bounds(), (bytes, bytes));
    let digits = if high > low * 1.001 {
        format!(" ({} to {})", short(low / scale), short(high / scale))
    } else {
        String::new()
    };
    format!(
        "{} {}{digits}: {} printed",
        short(value),
        r.rate.unit.name,
        percent_off(r.rate.number.value, value)
    )
}
