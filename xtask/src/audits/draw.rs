//! Tables as people publish them, drawn from rows that were measured; and what goes wrong in them.
//!
//! This was written before the rules of the audit, and knows none of them: a fault is drawn from a list (unit, base, swapped columns,
//! impossible latency, transposed digits; later ones: bits for bytes, every row, two rows), and whether it exceeds the printed rounding is
//! arithmetic on the printed numbers.

use super::printed::{Dice, Locale, Number, Rounding};

/// A line of a run of ours.
#[derive(Debug, Clone)]
pub struct MeasuredRow {
    pub run: u32,
    pub op: String,
    /// `size_bytes`, `concurrency`, `ops_per_s`, `bytes_per_s`, then mean, p50, p90, p99, p99.9 and max in nanoseconds.
    pub figures: [f64; 10],
}

/// Rows that the rules of the audit were corrected on.
pub const ROWS: &str = include_str!("../../data/measured.csv");
/// Rows that they were only looked at with.
pub const HELD_OUT_ROWS: &str = include_str!("../../data/measured-held-out.csv");

pub fn measured(text: &str) -> Vec<MeasuredRow> {
    let row = |line: &str| {
        let mut words = line.split(',');
        let run = words.next()?.parse().ok()?;
        let op = words.next()?.to_owned();
        let figures: Vec<f64> = words.filter_map(|w| w.parse().ok()).collect();
        Some(MeasuredRow { run, op, figures: figures.try_into().ok()? })
    };
    text.lines().skip(1).map(|l| row(l).expect("a row of our own")).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Size,
    Concurrency,
    Ops,
    Rate,
    Mean,
    P50,
    P90,
    P99,
    P999,
    Max,
}

const SIZE_UNITS: &[(&str, f64)] =
    &[("KiB", 1024.0), ("MiB", 1_048_576.0), ("KB", 1e3), ("MB", 1e6), ("bytes", 1.0)];
const RATE_UNITS: &[(&str, f64)] = &[
    ("MB/s", 1e6),
    ("MiB/s", 1_048_576.0),
    ("GB/s", 1e9),
    ("GiB/s", 1_073_741_824.0),
    ("Mbit/s", 1.25e5),
    ("Gbps", 1.25e8),
    ("KiB/s", 1024.0),
    ("kB/s", 1e3),
];
const TIME_UNITS: &[(&str, f64)] = &[("ms", 1e6), ("us", 1e3), ("\u{b5}s", 1e3), ("s", 1e9)];
const PLAIN: &[(&str, f64)] = &[("", 1.0)];

impl Kind {
    fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Size => SIZE_UNITS,
            Self::Rate => RATE_UNITS,
            Self::Ops | Self::Concurrency => PLAIN,
            _ => TIME_UNITS,
        }
    }

    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Size => &["Object Size", "Block Size", "Size", "Object size"],
            Self::Concurrency => &["Concurrency", "Threads", "Clients", "Queue depth", "In flight"],
            Self::Ops => &["IOPS", "Ops/s", "Objects/s", "Requests/s", "op/s"],
            Self::Rate => &["Throughput", "Bandwidth", "Mean Throughput", "Data rate"],
            Self::Mean => &["Mean Latency", "Avg latency", "Average response time", "Latency mean"],
            Self::P50 => &["p50", "P50 latency", "Median", "50th percentile"],
            Self::P90 => &["p90", "P90 latency", "90th percentile"],
            Self::P99 => &["p99", "P99 latency", "99th percentile"],
            Self::P999 => &["p99.9", "P99.9 latency"],
            Self::Max => &["Max latency", "max"],
        }
    }
}

#[derive(Debug, Clone)]
pub struct Column {
    pub kind: Kind,
    name: &'static str,
    unit: &'static str,
    /// One of the unit, in bytes or nanoseconds.
    pub scale: f64,
    rounding: Rounding,
    unit_in_cells: bool,
    mark: &'static str,
    pub cells: Vec<Number>,
}

#[derive(Debug, Clone)]
pub struct DrawnTable {
    locale: Locale,
    labels: Vec<(&'static str, Vec<String>)>,
    pub columns: Vec<Column>,
    /// Told beside the table, where no column has it.
    pub told_concurrency: Option<f64>,
    is_markdown: bool,
    merged: bool,
}

pub const FAULTS: [&str; 8] = [
    "unit",
    "base",
    "swapped columns",
    "impossible latency",
    "transposed digits",
    "bits for bytes",
    "every row",
    "two rows",
];

/// What was done to a table.
#[derive(Debug, Clone)]
pub struct PlantedFault {
    pub told: String,
    /// Rows that it is in, from 0; none: a column as a whole.
    pub rows: Vec<usize>,
}

impl PlantedFault {
    fn of_row(row: usize, told: String) -> Self {
        Self { told, rows: vec![row] }
    }

    fn of_column(told: String) -> Self {
        Self { told, rows: Vec::new() }
    }
}

fn draw_unit(kind: Kind, values: &[f64], dice: &mut Dice) -> (&'static str, f64) {
    let top = values.iter().copied().fold(0.0, f64::max);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let fits = |scale: f64| match kind {
        Kind::Size => values.iter().all(|v| (v / scale).fract() == 0.0),
        Kind::Rate => top / scale >= 1.0 && top / scale < 1e6 && least / scale > 0.01,
        Kind::Ops | Kind::Concurrency => true,
        _ => top / scale >= 0.5 && least / scale > 0.001 && top / scale < 1e6,
    };
    let fitting: Vec<_> = kind.units().iter().filter(|(_, s)| fits(*s)).collect();
    // Of sizes the largest that fits is what people print, mostly.
    match fitting.as_slice() {
        [] => kind.units()[0],
        all => **dice.pick(all),
    }
}

fn draw_column(kind: Kind, values: &[f64], dice: &mut Dice) -> Column {
    let (unit, scale) = draw_unit(kind, values, dice);
    let values: Vec<f64> = values.iter().map(|v| v / scale).collect();
    let rounding = Rounding::draw(dice, &values);
    let nominal = matches!(kind, Kind::Size | Kind::Concurrency);
    let number = |v: &f64| if nominal { Number::exact(*v) } else { Number::of(*v, rounding) };
    Column {
        kind,
        name: dice.pick::<&str>(kind.names()),
        unit,
        scale,
        rounding,
        unit_in_cells: kind == Kind::Size && dice.chance(0.7) || dice.chance(0.15),
        mark: if !nominal && dice.chance(0.07) { dice.pick::<&str>(&["~", "\u{2248}"]) } else { "" },
        cells: values.iter().map(number).collect(),
    }
}

/// A sound table: of what was measured, rounded.
pub fn sound(rows: &[MeasuredRow], dice: &mut Dice) -> DrawnTable {
    let count = 3 + dice.below(7);
    let start = dice.below(rows.len());
    let mut chosen: Vec<&MeasuredRow> = if dice.chance(0.5) {
        // What stands together was measured together, mostly.
        rows.iter().cycle().skip(start).take(count).collect()
    } else {
        // No row twice: a published table has none.
        let mut all: Vec<&MeasuredRow> = rows.iter().collect();
        (0..count).map(|_| all.swap_remove(dice.below(all.len()))).collect()
    };
    if dice.chance(0.5) {
        chosen.sort_by(|a, b| a.op.cmp(&b.op).then(a.figures[0].total_cmp(&b.figures[0])));
    }
    let values = |i: usize| chosen.iter().map(|r| r.figures[i]).collect::<Vec<f64>>();
    let mut labels = vec![
        ("System", chosen.iter().map(|r| format!("lab {}", r.run)).collect()),
        ("Operation", chosen.iter().map(|r| r.op.to_uppercase()).collect::<Vec<String>>()),
    ];
    if dice.chance(0.3) {
        labels.swap(0, 1);
    }
    let mut kinds = vec![(Kind::Size, 0)];
    let same = chosen.iter().all(|r| r.figures[1] == chosen[0].figures[1]);
    let mut told_concurrency = None;
    let with_latency = dice.chance(0.75);
    if same && dice.chance(0.5) {
        told_concurrency = Some(chosen[0].figures[1]);
    } else if dice.chance(0.85) {
        kinds.push((Kind::Concurrency, 1));
    }
    let mut figures = vec![(Kind::Ops, 2), (Kind::Rate, 3)];
    if dice.chance(0.3) {
        figures.swap(0, 1);
    }
    if with_latency {
        figures.push((Kind::Mean, 4));
        let more = [(Kind::P50, 5), (Kind::P90, 6), (Kind::P99, 7), (Kind::P999, 8), (Kind::Max, 9)];
        if dice.chance(0.5) {
            figures.extend(more.into_iter().filter(|_| dice.chance(0.6)));
        }
    }
    kinds.extend(figures);
    let columns: Vec<Column> = kinds.into_iter().map(|(k, i)| draw_column(k, &values(i), dice)).collect();
    let mut table = DrawnTable {
        locale: Locale::draw(dice),
        labels,
        columns,
        told_concurrency,
        is_markdown: dice.chance(0.6),
        merged: dice.chance(0.2),
    };
    if dice.chance(0.5) {
        table.one_time_unit();
    }
    table
}

impl DrawnTable {
    /// One unit for all latencies, as in most tables.
    fn one_time_unit(&mut self) {
        let times: Vec<usize> =
            (0..self.columns.len()).filter(|i| self.columns[*i].kind.units() == TIME_UNITS).collect();
        let Some(first) = times.first().map(|i| (self.columns[*i].unit, self.columns[*i].scale)) else {
            return;
        };
        for i in times {
            let c = &mut self.columns[i];
            let by = c.scale / first.1;
            let values: Vec<f64> = c.cells.iter().map(|n| n.value * by).collect();
            c.rounding = match c.rounding {
                Rounding::Significant(n) => Rounding::Significant(n),
                Rounding::Decimals(_) => Rounding::Significant(3),
            };
            c.cells = values.iter().map(|v| Number::of(*v, c.rounding)).collect();
            (c.unit, c.scale) = first;
        }
    }

    fn column(&self, kind: Kind) -> Option<&Column> {
        self.columns.iter().find(|c| c.kind == kind)
    }

    fn index(&self, kind: Kind) -> Option<usize> {
        self.columns.iter().position(|c| c.kind == kind)
    }

    /// What is printed, low and high, in bytes or nanoseconds.
    fn said(&self, kind: Kind, row: usize) -> Option<(f64, f64)> {
        let c = self.column(kind)?;
        let n = c.cells.get(row)?;
        Some((n.low() * c.scale, n.high() * c.scale))
    }

    /// Whether what is printed contradicts itself by more than its rounding.
    pub fn shows(&self) -> bool {
        (0..self.rows()).any(|r| self.shows_in(r))
    }

    pub fn rows(&self) -> usize {
        self.columns[0].cells.len()
    }

    /// The line of the file that a row is on.
    pub fn line(&self, row: usize) -> usize {
        row + if self.is_markdown { 3 } else { 2 }
    }

    /// The same of one row: what a reader with a pocket calculator can see. Of latency beside concurrency 15 % are left to the client:
    /// that much the rows as measured differ.
    pub fn shows_in(&self, r: usize) -> bool {
        let order = [Kind::P50, Kind::P90, Kind::P99, Kind::P999, Kind::Max];
        let product = self.said(Kind::Size, r).zip(self.said(Kind::Ops, r));
        let bytes = product.zip(self.said(Kind::Rate, r)).is_some_and(|((s, o), b)| {
            let slack = 1.0 + 1e-9;
            s.1 * o.1 * slack < b.0 || s.0 * o.0 > b.1 * slack
        });
        let told = self.told_concurrency.map(|c| (c, c)).or_else(|| self.said(Kind::Concurrency, r));
        let flight = self.said(Kind::Ops, r).zip(self.said(Kind::Mean, r)).zip(told);
        let little =
            flight.is_some_and(|((o, l), c)| o.1 * l.1 / 1e9 < 0.85 * c.0 || o.0 * l.0 / 1e9 > 1.15 * c.1);
        let seen: Vec<(f64, f64)> = order.iter().filter_map(|k| self.said(*k, r)).collect();
        let falls = seen.windows(2).any(|w| w[1].1 < w[0].0);
        let above_max = self.said(Kind::Mean, r).zip(self.said(Kind::Max, r)).is_some_and(|(m, x)| x.1 < m.0);
        bytes || little || falls || above_max
    }

    /// The table with one fault of this kind, and what was done; none where it has no place for one.
    pub fn with_fault(&self, fault: usize, dice: &mut Dice) -> Option<(Self, PlantedFault)> {
        let mut t = self.clone();
        let told = match fault {
            0 => t.wrong_unit(dice)?,
            1 => t.wrong_base(dice)?,
            2 => t.swapped(dice)?,
            3 => t.impossible_latency(dice)?,
            4 => t.transposed(dice)?,
            5 => t.bits_for_bytes(dice)?,
            6 => t.every_row(dice)?,
            _ => t.two_rows(dice)?,
        };
        Some((t, told))
    }

    /// A column under another unit's name, or one number in another unit than its column.
    fn wrong_unit(&mut self, dice: &mut Dice) -> Option<PlantedFault> {
        let kinds = [Kind::Rate, Kind::Mean, Kind::Rate];
        let at = self.index(*dice.pick(&kinds))?;
        let c = &mut self.columns[at];
        let others: Vec<_> = c
            .kind
            .units()
            .iter()
            .filter(|(_, s)| *s / c.scale >= 4.0 || c.scale / *s >= 4.0)
            .copied()
            .collect();
        let (unit, scale) = *dice.pick(&others);
        if dice.chance(0.5) {
            let told = format!("{} in {} is called {unit}", c.name, c.unit);
            (c.unit, c.scale) = (unit, scale);
            return Some(PlantedFault::of_column(told));
        }
        let row = dice.below(c.cells.len());
        let value = c.cells[row].value * c.scale / scale;
        c.cells[row] = Number::of(value, Rounding::Significant(3));
        Some(PlantedFault::of_row(row, format!("{} of row {} is in {unit}", c.name, row + 1)))
    }

    /// MB called MiB, or the other way.
    fn wrong_base(&mut self, dice: &mut Dice) -> Option<PlantedFault> {
        let at = self.index(if dice.chance(0.6) { Kind::Rate } else { Kind::Size })?;
        let pairs = [("MB/s", "MiB/s"), ("GB/s", "GiB/s"), ("kB/s", "KiB/s"), ("KB", "KiB"), ("MB", "MiB")];
        let c = &mut self.columns[at];
        let (a, b) = *pairs.iter().find(|(a, b)| *a == c.unit || *b == c.unit)?;
        let other = if c.unit == a { b } else { a };
        let told = format!("{} in {} is called {other}", c.name, c.unit);
        let (unit, scale) = *c.kind.units().iter().find(|(u, _)| *u == other)?;
        (c.unit, c.scale) = (unit, scale);
        Some(PlantedFault::of_column(told))
    }

    /// Two columns under each other's names, or two cells of a row in each other's place.
    fn swapped(&mut self, dice: &mut Dice) -> Option<PlantedFault> {
        let pairs = [
            (Kind::Ops, Kind::Rate),
            (Kind::Ops, Kind::Mean),
            (Kind::Rate, Kind::Mean),
            (Kind::P50, Kind::P99),
            (Kind::P90, Kind::P99),
        ];
        let there: Vec<_> =
            pairs.iter().filter_map(|(a, b)| Some((self.index(*a)?, self.index(*b)?))).collect();
        let (a, b) = *there.get(dice.below(there.len()))?;
        let names = format!("{} and {}", self.columns[a].name, self.columns[b].name);
        if dice.chance(0.5) {
            let cells = std::mem::take(&mut self.columns[a].cells);
            let theirs = std::mem::replace(&mut self.columns[b].cells, cells);
            self.columns[a].cells = theirs;
            return Some(PlantedFault::of_column(format!("{names} have each other's numbers")));
        }
        let row = dice.below(self.columns[a].cells.len());
        let cell = self.columns[a].cells[row].clone();
        let other = std::mem::replace(&mut self.columns[b].cells[row], cell);
        self.columns[a].cells[row] = other;
        Some(PlantedFault::of_row(row, format!("{names} of row {} have each other's numbers", row + 1)))
    }

    /// A latency with which the row cannot be, or out of order.
    fn impossible_latency(&mut self, dice: &mut Dice) -> Option<PlantedFault> {
        let row = dice.below(self.columns[0].cells.len());
        let knows = self.told_concurrency.is_some() || self.index(Kind::Concurrency).is_some();
        if let Some(at) = self.index(Kind::Mean).filter(|_| knows) {
            let by = if dice.chance(0.5) { dice.between(0.1, 0.7) } else { dice.between(1.4, 8.0) };
            let c = &mut self.columns[at];
            c.cells[row] = Number::of(c.cells[row].value * by, c.rounding);
            let told = format!("{} of row {} is {by:.2} times what it was", c.name, row + 1);
            return Some(PlantedFault::of_row(row, told));
        }
        let (low, high) = (self.index(Kind::P50)?, self.index(Kind::P99)?);
        let value = self.columns[low].cells[row].value * self.columns[low].scale * dice.between(0.3, 0.9);
        let c = &mut self.columns[high];
        c.cells[row] = Number::of(value / c.scale, Rounding::Significant(3));
        Some(PlantedFault::of_row(row, format!("{} of row {} is below the median", c.name, row + 1)))
    }

    fn transposed(&mut self, dice: &mut Dice) -> Option<PlantedFault> {
        let kinds = [Kind::Ops, Kind::Rate, Kind::Ops, Kind::Rate, Kind::Mean];
        let at = self.index(*dice.pick(&kinds))?;
        let row = dice.below(self.columns[at].cells.len());
        let c = &mut self.columns[at];
        let was = c.cells[row].text(self.locale);
        c.cells[row] = c.cells[row].transposed(dice)?;
        let told = format!("{} of row {}: {was} is {}", c.name, row + 1, c.cells[row].text(self.locale));
        Some(PlantedFault::of_row(row, told))
    }

    /// A rate in bytes called bits, or the other way: all of a column, or one number of it.
    fn bits_for_bytes(&mut self, dice: &mut Dice) -> Option<PlantedFault> {
        const PAIRS: &[(&str, &str, f64)] = &[
            ("MB/s", "Mbit/s", 1.25e5),
            ("MB/s", "Mb/s", 1.25e5),
            ("MiB/s", "Mbit/s", 1.25e5),
            ("GB/s", "Gbps", 1.25e8),
            ("GB/s", "Gb/s", 1.25e8),
            ("Mbit/s", "MB/s", 1e6),
            ("Gbps", "GB/s", 1e9),
        ];
        let at = self.index(Kind::Rate)?;
        let row = dice.below(self.rows());
        let c = &mut self.columns[at];
        if dice.chance(0.5) {
            let by = if dice.chance(0.5) { 8.0 } else { 0.125 };
            c.cells[row] = Number::of(c.cells[row].value * by, c.rounding);
            return Some(PlantedFault::of_row(row, format!("{} of row {} times {by}", c.name, row + 1)));
        }
        let fitting: Vec<_> = PAIRS.iter().filter(|(from, _, _)| *from == c.unit).collect();
        let (_, unit, scale) = *fitting.get(dice.below(fitting.len()))?;
        let told = format!("{} in {} is called {unit}", c.name, c.unit);
        (c.unit, c.scale) = (unit, *scale);
        Some(PlantedFault::of_column(told))
    }

    /// One column is off in all of its rows alike, or stands a row too low.
    fn every_row(&mut self, dice: &mut Dice) -> Option<PlantedFault> {
        let kinds = [Kind::Ops, Kind::Rate, Kind::Mean, Kind::Concurrency];
        let kind = *dice.pick(&kinds);
        let by = *dice.pick(&[2.0, 3.0, 4.0, 12.0, 0.5, 0.25, 10.0, 0.1]);
        if kind == Kind::Concurrency && self.told_concurrency.is_some() {
            self.told_concurrency = self.told_concurrency.map(|c| c * by);
            return Some(PlantedFault::of_column(format!("what is told to be in flight times {by}")));
        }
        let at = self.index(kind)?;
        let c = &mut self.columns[at];
        if kind != Kind::Concurrency && dice.chance(0.3) {
            c.cells.rotate_right(1);
            return Some(PlantedFault::of_column(format!("{} stands a row too low", c.name)));
        }
        if kind == Kind::Concurrency {
            c.cells = c.cells.iter().map(|n| Number::exact(n.value * by)).collect();
        } else {
            c.cells = c.cells.iter().map(|n| Number::of(n.value * by, c.rounding)).collect();
        }
        Some(PlantedFault::of_column(format!("{} times {by}", c.name)))
    }

    /// Two rows, each with a fault of its own, that shows.
    fn two_rows(&mut self, dice: &mut Dice) -> Option<PlantedFault> {
        let mut out = PlantedFault::of_column(String::new());
        while out.rows.len() < 2 {
            let kind = *dice.pick(&[0, 2, 3, 4, 5]);
            let (next, fault) = self.with_fault(kind, dice)?;
            let row = *fault.rows.first()?;
            if out.rows.contains(&row) || !next.shows_in(row) {
                return None;
            }
            *self = next;
            out.rows.push(row);
            out.told = format!("{}; {}", out.told, fault.told).trim_start_matches("; ").to_owned();
        }
        Some(out)
    }

    /// The name of the file, its text, and what is told beside it.
    pub fn file(&self) -> (&'static str, String, String) {
        let mut header: Vec<String> = self.labels.iter().map(|(n, _)| (*n).to_owned()).collect();
        header.extend(self.columns.iter().map(Column::heading));
        let mut lines = vec![header];
        for row in 0..self.columns[0].cells.len() {
            let label = |l: &Vec<String>| {
                let repeats = self.merged && row > 0 && l[row] == l[row - 1];
                if repeats { String::new() } else { l[row].clone() }
            };
            let mut line: Vec<String> = self.labels.iter().map(|(_, l)| label(l)).collect();
            line.extend(self.columns.iter().map(|c| c.cell(row, self.locale)));
            lines.push(line);
        }
        let told = self.told_concurrency.map(|c| format!("[given]\nconcurrency = {c}\n")).unwrap_or_default();
        if self.is_markdown { ("table.md", markdown(&lines), told) } else { ("table.csv", csv(&lines), told) }
    }
}

impl Column {
    fn heading(&self) -> String {
        if self.unit.is_empty() || self.unit_in_cells {
            self.name.to_owned()
        } else {
            format!("{} ({})", self.name, self.unit)
        }
    }

    fn cell(&self, row: usize, locale: Locale) -> String {
        let number = self.cells[row].text(locale);
        let unit = if self.unit_in_cells && !self.unit.is_empty() {
            format!(" {}", self.unit)
        } else {
            String::new()
        };
        format!("{}{number}{unit}", self.mark)
    }
}

fn markdown(lines: &[Vec<String>]) -> String {
    let row = |cells: &Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(lines[0].len()));
    lines.iter().enumerate().map(|(i, l)| if i == 0 { row(l) + &rule } else { row(l) }).collect()
}

fn csv(lines: &[Vec<String>]) -> String {
    let quoted = |c: &String| if c.contains([',', '"']) { format!("\"{c}\"") } else { c.clone() };
    lines.iter().map(|l| l.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n").collect()
}
