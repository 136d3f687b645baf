//! What a column holds, from its name, its cells, or the map.

use crate::AuditError;
use crate::facts::{AuditFacts, ColumnFact};
use crate::number::{Mark, PrintedNumber, column_digits, is_missing, mark_of};
use crate::table::{PrintedTable, is_as_above};
use crate::unit::{Base, Dimension, NamedUnit, multiple, parse_unit};

/// What the numbers of a column are.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) enum ColumnRole {
    /// Text that tells rows apart.
    Label,
    /// A number of no concern here.
    Other,
    Size,
    Concurrency,
    /// Jobs, each with a queue of its own: times concurrency.
    Jobs,
    Nodes,
    Ops,
    Rate,
    /// The mean of response or completion times.
    Mean,
    /// Of response times: 0.5, 0.99; 0 is the least and 1 the most.
    Quantile(f64),
    /// A share of what is there.
    Percent,
    RateChange,
    LatencyChange,
}

/// A column whose cells are understood.
#[derive(Debug, Clone)]
pub(crate) struct ReadColumn {
    pub index: usize,
    pub name: String,
    pub role: ColumnRole,
    /// What the name has beside role and unit: `PUT` of `PUT MiB/s`.
    pub of: String,
    pub is_per_node: bool,
    /// Of the name or the map; cells may have their own.
    pub cells: Vec<Option<ReadCell>>,
}

/// One number, in its own unit.
#[derive(Debug, Clone)]
pub(crate) struct ReadCell {
    pub number: PrintedNumber,
    pub unit: NamedUnit,
    /// Before rounding, in the unit.
    pub low: f64,
    pub high: f64,
    /// Whether the cell itself has it; else it stands above, in a cell that was merged.
    pub is_own: bool,
}

impl ReadCell {
    pub fn value(&self) -> f64 {
        self.number.value * self.unit.scale
    }

    pub fn bounds(&self) -> (f64, f64) {
        (self.low * self.unit.scale, self.high * self.unit.scale)
    }

    /// As it is printed, with the unit that is meant.
    pub fn text(&self) -> String {
        if self.number.unit.is_empty() && !self.unit.name.is_empty() {
            format!("{} {}", self.number.text, self.unit.name)
        } else {
            self.number.text.clone()
        }
    }
}

const PLAIN: fn() -> NamedUnit =
    || NamedUnit { name: String::new(), scale: 1.0, dimension: Dimension::ONE, base: Base::None, power: 0 };

/// The name in small letters, with one spelling of what is often written; and the unit that it names.
fn parts(name: &str) -> (String, Option<NamedUnit>) {
    let open = name.rfind(['(', '[']);
    let inside = open.and_then(|i| Some((i, name[i + 1..].split([')', ']']).next()?)));
    if let Some((i, unit)) = inside.and_then(|(i, text)| Some((i, parse_unit(text)?))) {
        return (name[..i].trim().to_lowercase(), Some(unit));
    }
    if let Some((before, unit)) = name.rsplit_once(',').and_then(|(b, u)| Some((b, parse_unit(u)?))) {
        return (before.trim().to_lowercase(), Some(unit));
    }
    let words: Vec<&str> = name.split([' ', '_']).filter(|w| !w.is_empty()).collect();
    for n in [3, 2, 1] {
        if words.len() >= n
            && let Some(unit) = parse_unit(&words[words.len() - n..].join(" "))
            && unit.dimension != Dimension::ONE
        {
            return (words[..words.len() - n].join(" ").to_lowercase(), Some(unit));
        }
    }
    (name.replace('_', " ").to_lowercase(), parse_unit(name).filter(|u| u.dimension != Dimension::ONE))
}

/// The share in `p99`, `p99.9`, `99th percentile`, `median`.
fn quantile(name: &str) -> Option<f64> {
    for word in name.split([' ', '-', '(']) {
        let digits =
            word.strip_prefix('p').or_else(|| word.strip_suffix("th")).or_else(|| word.strip_suffix('%'));
        let Some(digits) = digits.map(|d| d.replace(',', ".")) else { continue };
        let Ok(p) = digits.parse::<f64>() else { continue };
        return match p {
            p if p <= 100.0 => Some(p / 100.0),
            // p999, p9999.
            p => Some(p / 10_f64.powi(digits.len() as i32)),
        };
    }
    name.contains("median").then_some(0.5)
}

fn has(name: &str, words: &[&str]) -> bool {
    words.iter().any(|w| {
        name == *w
            || name.split([' ', '-', '/', '(', ')']).any(|part| part == *w)
            || (w.contains(' ') && name.contains(w))
    })
}

/// What a column is by its name.
fn role_by_name(name: &str, unit: Option<&NamedUnit>) -> ColumnRole {
    let dimension = unit.map(|u| u.dimension);
    let is_time = dimension == Some(Dimension::SECONDS);
    let says_latency = has(name, &["latency", "lat", "response", "clat", "ttfb", "service time", "delay"]);
    let says_rate = has(name, &["throughput", "bandwidth", "bw", "rate", "speed"]);
    let is_change =
        has(name, &["increase", "improvement", "change", "gain", "difference", "reduction", "decrease"]);
    if is_change && says_rate {
        return ColumnRole::RateChange;
    }
    if is_change {
        return if says_latency { ColumnRole::LatencyChange } else { ColumnRole::Other };
    }
    if is_time || says_latency || quantile(name).is_some() && dimension.is_none() {
        let others = has(
            name,
            &["stddev", "sd", "std", "stdev", "duration", "runtime", "elapsed", "ttfb", "run time"],
        );
        return match quantile(name) {
            _ if others => ColumnRole::Other,
            Some(q) => ColumnRole::Quantile(q),
            None if has(name, &["max", "maximum", "worst"]) => ColumnRole::Quantile(1.0),
            None if has(name, &["min", "minimum", "best"]) => ColumnRole::Quantile(0.0),
            None if says_latency || name.is_empty() || has(name, &["avg", "mean", "average"]) => {
                ColumnRole::Mean
            }
            None => ColumnRole::Other,
        };
    }
    if has(name, &["max", "maximum"]) && dimension.is_none() && name.split(' ').count() == 1 {
        return ColumnRole::Quantile(1.0);
    }
    if has(name, &["limit", "cap", "promised", "expected", "price", "cost"]) {
        return ColumnRole::Other;
    }
    match dimension {
        Some(Dimension::BYTES_PER_S) => return ColumnRole::Rate,
        Some(Dimension::PER_S) => return ColumnRole::Ops,
        _ => {}
    }
    role_by_words(name, says_rate, unit)
}

fn role_by_words(name: &str, says_rate: bool, unit: Option<&NamedUnit>) -> ColumnRole {
    let ops = [
        "iops",
        "ops",
        "ops/s",
        "op/s",
        "objects/s",
        "objs/s",
        "obj/s",
        "requests/s",
        "req/s",
        "rps",
        "qps",
        "tps",
    ];
    if has(name, &ops) || ops.contains(&name) {
        return ColumnRole::Ops;
    }
    if unit.is_some_and(|u| u.name == "%")
        && has(name, &["utilization", "utilisation", "util", "busy", "link", "ceiling", "cpu", "line"])
    {
        return ColumnRole::Percent;
    }
    if says_rate {
        return ColumnRole::Rate;
    }
    let is_other_size =
        has(name, &["disk", "volume", "drive", "data", "dataset", "file", "total", "memory", "ram"]);
    if has(name, &["size", "bs", "blocksize", "blocksizes", "objectsize"]) && !is_other_size {
        return ColumnRole::Size;
    }
    if has(name, &["jobs", "numjobs"]) {
        return ColumnRole::Jobs;
    }
    let flight = [
        "concurrency",
        "threads",
        "clients",
        "queue depth",
        "in flight",
        "qd",
        "iodepth",
        "workers",
        "connections",
        "outstanding",
    ];
    if has(name, &flight) {
        return ColumnRole::Concurrency;
    }
    if has(name, &["nodes", "servers", "hosts"]) { ColumnRole::Nodes } else { ColumnRole::Label }
}

/// Words that say the role, and not of what.
const ROLE_WORDS: &[&str] = &[
    "mean",
    "avg",
    "average",
    "throughput",
    "bandwidth",
    "bw",
    "rate",
    "speed",
    "iops",
    "ops",
    "ops/s",
    "op/s",
    "objects/s",
    "objs/s",
    "obj/s",
    "requests/s",
    "req/s",
    "rps",
    "latency",
    "lat",
    "response",
    "time",
    "data",
    "max",
    "min",
    "median",
    "percentile",
    "increase",
    "improvement",
    "change",
    "gain",
    "per",
    "node",
    "total",
    "aggregate",
    "sustained",
    "clat",
    "",
];

fn subject_of(name: &str) -> String {
    let is_own = |w: &&str| !ROLE_WORDS.contains(w) && quantile(w).is_none();
    name.split(' ').filter(is_own).collect::<Vec<_>>().join(" ")
}

fn role_of_map(name: &str) -> Option<ColumnRole> {
    Some(match name {
        "label" => ColumnRole::Label,
        "other" => ColumnRole::Other,
        "size" => ColumnRole::Size,
        "concurrency" => ColumnRole::Concurrency,
        "jobs" => ColumnRole::Jobs,
        "nodes" => ColumnRole::Nodes,
        "ops" => ColumnRole::Ops,
        "throughput" => ColumnRole::Rate,
        "mean" => ColumnRole::Mean,
        "min" => ColumnRole::Quantile(0.0),
        "max" => ColumnRole::Quantile(1.0),
        "percent" => ColumnRole::Percent,
        "throughput change" => ColumnRole::RateChange,
        "latency change" => ColumnRole::LatencyChange,
        other => ColumnRole::Quantile(quantile(other)?),
    })
}

/// Roles of the map, for messages.
const MAP_ROLES: &str = "label, other, size, concurrency, jobs, nodes, ops, throughput, mean, min, max, p50 (p99, ...), percent, throughput change, latency change";

/// All columns of a table; `otherwise` stands before decimals where neither the map nor the table tells.
pub(crate) fn read_columns(
    table: &PrintedTable,
    facts: &AuditFacts,
    otherwise: Mark,
) -> Result<Vec<ReadColumn>, AuditError> {
    let mut named = Vec::new();
    for (index, name) in table.header.iter().enumerate() {
        let fact = facts.columns.get(name);
        let (plain, unit) = parts(name);
        let mut role = role_by_name(&plain, unit.as_ref());
        if role == ColumnRole::Label && unit.is_none() {
            role = role_by_cells(table, index);
        }
        let (role, unit) = mapped(name, fact, role, unit)?;
        let of = fact.and_then(|f| f.of.clone()).unwrap_or_else(|| subject_of(&plain));
        named.push((index, name, role, unit, of, has(&plain, &["per node", "a node", "each", "node"])));
    }
    let is_numeric = |r: ColumnRole| !matches!(r, ColumnRole::Label | ColumnRole::Other);
    let numeric: Vec<usize> = named.iter().filter(|n| is_numeric(n.2)).map(|n| n.0).collect();
    let mark = match facts.decimal {
        Some(mark) => mark.into(),
        None => mark_of(cells_of(table, &numeric))?.unwrap_or(otherwise),
    };
    let read = |(index, name, role, unit, of, is_per_node): (
        usize,
        &String,
        ColumnRole,
        Option<NamedUnit>,
        String,
        bool,
    )| {
        let cells = if is_numeric(role) {
            read_cells(table, index, role, unit.as_ref(), mark)?
        } else {
            vec![None; table.rows.len()]
        };
        Ok(ReadColumn { index, name: name.clone(), role, of, is_per_node, cells })
    };
    named.into_iter().map(read).collect()
}

fn cells_of<'a>(
    table: &'a PrintedTable,
    columns: &[usize],
) -> impl Iterator<Item = (crate::table::CellPlace, &'a str)> {
    let columns = columns.to_vec();
    (0..table.rows.len())
        .flat_map(move |r| columns.clone().into_iter().map(move |c| (table.place(r, c), table.cell(r, c))))
}

/// A column with a name that says nothing, whose cells have units that do.
fn role_by_cells(table: &PrintedTable, index: usize) -> ColumnRole {
    let unit_of = |r: usize| {
        let n = PrintedNumber::parse(table.cell(r, index), Mark::Point)?;
        parse_unit(&n.unit).map(|u| u.dimension)
    };
    let all: Vec<_> = (0..table.rows.len()).filter_map(unit_of).collect();
    match all.first().copied() {
        Some(Dimension::BYTES_PER_S) if all.len() == table.rows.len() => ColumnRole::Rate,
        Some(Dimension::PER_S) if all.len() == table.rows.len() => ColumnRole::Ops,
        _ => ColumnRole::Label,
    }
}

fn mapped(
    name: &str,
    fact: Option<&ColumnFact>,
    role: ColumnRole,
    unit: Option<NamedUnit>,
) -> Result<(ColumnRole, Option<NamedUnit>), AuditError> {
    let Some(fact) = fact else { return Ok((role, unit)) };
    let place = || format!("[columns] '{name}'");
    let role = match &fact.role {
        Some(r) => role_of_map(r).ok_or_else(|| {
            AuditError::new(place(), format!("'{r}' is no role"), format!("Use one of: {MAP_ROLES}."))
        })?,
        None => role,
    };
    let unit = match &fact.unit {
        Some(u) => Some(parse_unit(u).ok_or_else(|| {
            AuditError::new(
                place(),
                format!("'{u}' is no unit"),
                "Use one such as MB/s, MiB/s, Gbit/s, ms, us, KiB, /s.",
            )
        })?),
        None => unit,
    };
    Ok((role, unit))
}

/// What a number of this role has to be of.
fn dimension_of(role: ColumnRole) -> Option<Dimension> {
    match role {
        ColumnRole::Size => Some(Dimension::BYTES),
        ColumnRole::Rate => Some(Dimension::BYTES_PER_S),
        ColumnRole::Mean | ColumnRole::Quantile(_) => Some(Dimension::SECONDS),
        _ => None,
    }
}

/// Whether a row is the sum or the mean of others, by what it is called.
fn is_summary(table: &PrintedTable, row: usize) -> bool {
    const WORDS: &[&str] =
        &["total", "sum", "average", "avg", "avg.", "mean", "median", "overall", "all", "geomean", "\u{3a3}"];
    table.rows[row].cells.iter().any(|c| WORDS.contains(&c.trim_end_matches(':').to_lowercase().as_str()))
}

fn read_cells(
    table: &PrintedTable,
    index: usize,
    role: ColumnRole,
    unit: Option<&NamedUnit>,
    mark: Mark,
) -> Result<Vec<Option<ReadCell>>, AuditError> {
    let nominal =
        matches!(role, ColumnRole::Size | ColumnRole::Concurrency | ColumnRole::Jobs | ColumnRole::Nodes);
    let mut out: Vec<Option<ReadCell>> = Vec::new();
    for row in 0..table.rows.len() {
        let text = table.cell(row, index);
        // A row that sums others up is of no size, and one of several sizes of none that is known.
        let is_of_none = nominal && is_as_above(text) && is_summary(table, row);
        if is_of_none || nominal && PrintedNumber::parse(text, mark).is_some_and(|n| n.is_range()) {
            out.push(None);
            continue;
        }
        if nominal && is_as_above(text) {
            let above = out.last().cloned().flatten();
            out.push(above.map(|c: ReadCell| ReadCell { is_own: false, ..c }));
            continue;
        }
        if is_missing(text) || is_as_above(text) || text.starts_with(['<', '>', '\u{2264}', '\u{2265}']) {
            out.push(None);
            continue;
        }
        let wrong = |problem: String, remedy: &str| {
            AuditError::new(table.place(row, index).to_string(), problem, remedy)
        };
        let number = PrintedNumber::parse(text, mark).ok_or_else(|| {
            wrong(
                format!("'{text}' is no number"),
                "Write one number and its unit, n/a where nothing was measured, or say what the column is in the map: \
                 [columns] \"NAME\" = { role = \"label\" }.",
            )
        })?;
        let (number, unit) =
            with_unit(number, role, unit).map_err(|(problem, remedy)| wrong(problem, &remedy))?;
        out.push(Some(ReadCell { low: number.value, high: number.value, number, unit, is_own: true }));
    }
    let digits = column_digits(out.iter().flatten().map(|c| &c.number));
    for cell in out.iter_mut().flatten() {
        if !nominal {
            (cell.low, cell.high) = cell.number.bounds(digits);
        }
    }
    Ok(out)
}

/// The unit of a cell: its own, else its column's.
fn with_unit(
    number: PrintedNumber,
    role: ColumnRole,
    of_column: Option<&NamedUnit>,
) -> Result<(PrintedNumber, NamedUnit), (String, String)> {
    let own = number.unit.clone();
    let needed = dimension_of(role);
    if own.is_empty() {
        let unit = match (needed, of_column) {
            (Some(d), Some(u)) if u.dimension == d => u.clone(),
            (None, Some(u)) => u.clone(),
            (None, None) => PLAIN(),
            (Some(d), _) => {
                return Err((
                    format!(
                        "'{}' has no unit, and neither has its column: it should be {}",
                        number.text,
                        d.words()
                    ),
                    "Name the unit in the header, or in the map: [columns] \"NAME\" = { unit = \"MB/s\" }."
                        .to_owned(),
                ));
            }
        };
        return Ok((number, unit));
    }
    if let Some((factor, rest)) = multiple(&own) {
        let counted = needed.is_none() && (rest.is_empty() || parse_unit(rest).is_some());
        if counted {
            return Ok((number.times(factor), of_column.cloned().unwrap_or_else(PLAIN)));
        }
        if needed == Some(Dimension::BYTES) && rest.is_empty() {
            // As fio and warp take it.
            let power = (factor.log10() / 3.0).round() as i32;
            let scale = 1024_f64.powi(power);
            return Ok((
                number,
                NamedUnit { name: own, scale, dimension: Dimension::BYTES, base: Base::Either, power },
            ));
        }
    }
    match parse_unit(&own) {
        Some(unit) if needed.is_none() || needed == Some(unit.dimension) => Ok((number, unit)),
        Some(unit) => Err((
            format!("'{}' is {}, but the column should be {}", number.text, unit.dimension.words(), needed.map_or("", Dimension::words)),
            "Correct the unit, or say what the column is in the map: [columns] \"NAME\" = { role = \"label\" }.".to_owned(),
        )),
        None => Err((
            format!("'{own}' is no unit that is known"),
            "Use one such as MB/s, MiB/s, Gbit/s, ms, us, KiB, /s; or say what the column is in the map: role = \"label\".".to_owned(),
        )),
    }
}
