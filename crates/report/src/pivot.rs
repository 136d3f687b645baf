//! A sweep as a table of sizes by ops, short enough for a terminal: the full table of its lines is for who asks.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::{Estimate, RunSummary};
use plimsoll_stats::validity::is_line_valid;

use crate::number::{self, MIB};
use crate::table::Table;
use crate::tables::{bound_by, failed, is_block, moves_bytes, throttled};

/// A half width above this share of a rate makes a bare number say too much.
const ROUGH: f64 = 0.1;

/// How much of a cell is shown: less where the terminal is narrow.
#[derive(Debug, Clone, Copy)]
struct Detail {
    intervals: bool,
    throughput: bool,
}

const DETAILS: [Detail; 3] = [
    Detail { intervals: true, throughput: true },
    Detail { intervals: false, throughput: true },
    Detail { intervals: false, throughput: false },
];

/// An op, or a pattern, at so many in flight: a column. `None` in flight: it is the same everywhere.
type Column = (usize, String, Option<u32>);

/// The line that stands for each op and size.
struct Cells<'a> {
    columns: Vec<Column>,
    sizes: Vec<u64>,
    lines: BTreeMap<(Column, u64), &'a WorkloadSummary>,
}

/// Sizes by ops, in `width` columns if it can be; nothing where there are not two of each, or where two lines are of one cell.
pub fn pivot(s: &RunSummary, width: usize) -> Option<Table> {
    let cells = Cells::of(s)?;
    let mut all = DETAILS.iter().map(|d| cells.table(s, *d));
    let first = all.next()?;
    let narrower = |t: &Table| t.width() <= width;
    if narrower(&first) {
        return Some(first);
    }
    let rest: Vec<Table> = all.collect();
    let fitting = rest.iter().position(narrower).unwrap_or(rest.len() - 1);
    rest.into_iter().nth(fitting)
}

/// Cells with refusals or failures, which have a mark in the table: `PUT 64 KB: 412 refused, 3 failed`.
pub fn troubled(s: &RunSummary) -> Option<String> {
    let all: Vec<(&WorkloadSummary, u64, u64)> = s
        .workloads
        .iter()
        .filter(|w| w.op != "total" && w.together == 0)
        .map(|w| (w, throttled(w), failed(w)))
        .filter(|(_, refused, failed)| refused + failed > 0)
        .collect();
    let (w, refused, failed) = all.iter().max_by_key(|(_, refused, failed)| refused + failed)?;
    let parts = [(*refused, "refused"), (*failed, "failed")];
    let parts: Vec<String> =
        parts.iter().filter(|p| p.0 > 0).map(|(n, what)| format!("{} {what}", number::count(*n))).collect();
    let more = match all.len() - 1 {
        0 => String::new(),
        n => format!("; fewer at {n} more"),
    };
    Some(format!("{}: {}{more}", crate::lines::label(w, &s.workloads), parts.join(", ")))
}

impl<'a> Cells<'a> {
    fn of(s: &'a RunSummary) -> Option<Self> {
        let loads: BTreeSet<u32> =
            s.workloads.iter().filter(|w| w.together == 0).map(|w| w.concurrency).collect();
        let mut names: Vec<&str> = Vec::new();
        let mut groups: BTreeMap<(Column, u64), Vec<&WorkloadSummary>> = BTreeMap::new();
        // The sync at the end of a file is part of the writes' time.
        for w in s.workloads.iter().filter(|w| w.op != "fsync" && w.together == 0) {
            let name = if w.load.is_empty() { w.op.as_str() } else { w.load.as_str() };
            let at = names.iter().position(|n| *n == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            let column = (at, name.to_uppercase(), Some(w.concurrency).filter(|_| loads.len() > 1));
            groups.entry((column, w.size_bytes)).or_default().push(w);
        }
        let mut lines = BTreeMap::new();
        for (place, all) in groups {
            // Of a mix all ops together.
            let line = match &all[..] {
                [one] => one,
                _ => {
                    let mut totals = all.iter().filter(|w| w.is_total());
                    totals.next().filter(|_| totals.next().is_none())?
                }
            };
            lines.insert(place, *line);
        }
        let columns: Vec<Column> =
            lines.keys().map(|(c, _)| c.clone()).collect::<BTreeSet<_>>().into_iter().collect();
        let sizes: Vec<u64> =
            lines.keys().map(|(_, size)| *size).collect::<BTreeSet<_>>().into_iter().collect();
        let grid = columns.len() > 1 && sizes.len() > 1 && sizes[0] > 0;
        // A table that is mostly holes is no pivot.
        (grid && 2 * lines.len() > columns.len() * sizes.len()).then_some(Self { columns, sizes, lines })
    }

    fn table(&self, s: &RunSummary, detail: Detail) -> Table {
        let mut heads = vec!["size".to_owned()];
        let unit = if is_block(s) { "IOPS" } else { "op/s" };
        for (_, name, in_flight) in &self.columns {
            let load = in_flight.map_or(String::new(), |n| format!(" x{n}"));
            heads.push(format!(">{name}{load} {unit}"));
            heads.extend([">MiB/s".to_owned(), "bound".to_owned()]);
        }
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let mut t = Table::new("Rate and throughput by size", 1, &heads);
        let decimal = number::is_decimal(self.sizes.iter().copied());
        for size in &self.sizes {
            let mut row = vec![number::size_among(*size, decimal)];
            for c in &self.columns {
                let line = self.lines.get(&(c.clone(), *size));
                row.extend(line.map_or([const { String::new() }; 3], |w| cell(s, w, detail)));
            }
            t.push(row);
        }
        t.without_columns(|i, cells| i > 0 && i % 3 != 1 && cells.iter().all(|c| c.is_empty()))
    }
}

/// Rate, throughput, and what binds it. Of a line that is void its codes, and no figure.
fn cell(s: &RunSummary, w: &WorkloadSummary, detail: Detail) -> [String; 3] {
    let none = String::new;
    if !is_line_valid(s, w) {
        let codes = s.codes_of(w);
        let codes = if codes.is_empty() { s.codes_of_the_answer() } else { codes };
        return [format!("void {}", codes.join(" ")).trim_end().to_owned(), none(), none()];
    }
    let Some(rate) = &w.ops_per_s else { return [number::MISSING.into(), none(), none()] };
    let mark = if throttled(w) + failed(w) > 0 { " !" } else { "" };
    let shown = if detail.intervals { number::estimate(rate) } else { bare(rate) };
    let bytes = w.bytes_per_s.filter(|_| detail.throughput && moves_bytes(w));
    let bound = match bound_by(s, w) {
        "ops or latency" => "ops/lat",
        "ops and bytes" => "both",
        other => other,
    };
    [shown + mark, bytes.map_or_else(none, |b| bare(&b.scaled(1.0 / MIB))), bound.into()]
}

/// The digits that the interval carries; `~` where it is wide.
fn bare(e: &Estimate) -> String {
    let rough = e.half_width() > ROUGH * e.value.abs();
    format!("{}{}", if rough { "~" } else { "" }, number::value(e))
}

#[cfg(test)]
mod tests {
    use plimsoll_model::claim::{CapBound, Claim, ClaimKind, SizeCaps};
    use plimsoll_model::{Finding, Level};

    use super::*;
    use crate::support;

    fn lines(t: &Table, width: usize) -> Vec<String> {
        t.plain(width).lines().map(str::to_owned).collect()
    }

    #[test]
    fn sizes_are_rows_and_ops_are_columns() {
        let s = support::sweep();
        let t = pivot(&s, 100).unwrap();
        let text = lines(&t, 100);
        assert_eq!(text.len(), 2 + 5, "{text:#?}");
        assert!(text[0].starts_with("size") && text[0].contains("PUT op/s") && text[0].contains("GET op/s"));
        assert!(text[2].contains("2,462 ± 15") && text[2].contains("2,873 ± 18"), "{text:#?}");
        // What was refused is marked, and told.
        assert!(text[3].contains("2,818 ± 17 !"), "{text:#?}");
        assert_eq!(troubled(&s).unwrap(), "put 64 KB: 412 refused, 3 failed");
    }

    #[test]
    fn a_void_cell_has_its_code_and_no_figure() {
        let mut s = support::sweep();
        let mut f = Finding::new("V04", "no_rate", Level::Invalid, "Too few. Run longer.");
        f.workload = Some(s.workloads[0].label());
        s.findings.push(f);
        s.settle(true, false);
        let text = lines(&pivot(&s, 100).unwrap(), 100);
        assert!(text[2].contains("void V04") && !text[2].contains("2,462"), "{text:#?}");
        let mut s = support::sweep();
        (s.workloads[0].ops_per_s, s.workloads[0].bytes_per_s) = (None, None);
        let text = lines(&pivot(&s, 100).unwrap(), 100);
        assert!(text[2].contains("n/a"), "{text:#?}");
    }

    #[test]
    fn what_binds_a_cell_stands_beside_it() {
        let mut s = support::sweep();
        let cap = |w: &WorkloadSummary, bytes: bool| {
            CapBound::AtMost(if bytes { w.bytes_per_s.unwrap() } else { w.ops_per_s.unwrap() })
        };
        let puts: Vec<&WorkloadSummary> = s.workloads.iter().filter(|w| w.op == "put").collect();
        let caps = SizeCaps::new("put", cap(puts[1], false), cap(puts[4], true), 2, None).unwrap();
        s.claims = vec![Claim { subject: None, kind: ClaimKind::SizeCaps(caps), text: String::new() }];
        let text = lines(&pivot(&s, 100).unwrap(), 100);
        assert_eq!(text[0].matches("bound").count(), 1, "{text:#?}");
        assert!(text[3].contains(" ops") && text[6].contains(" bytes"), "{text:#?}");
    }

    /// Reads and writes of one mix are one column, that of all its ops; what is narrow says less and stays a table.
    #[test]
    fn a_mix_is_one_column_and_a_narrow_terminal_has_less() {
        let mut s = support::sweep();
        let mixed: Vec<WorkloadSummary> = s
            .workloads
            .iter()
            .filter(|w| w.op == "put")
            .flat_map(|w| {
                ["read", "write", "total"].map(|op| WorkloadSummary {
                    op: op.into(),
                    load: "randrw".into(),
                    ..w.clone()
                })
            })
            .collect();
        s.workloads.extend(mixed);
        let text = lines(&pivot(&s, 100).unwrap(), 100);
        assert_eq!(text[0].matches("RANDRW").count(), 1, "{text:#?}");
        for width in [100, 80, 60] {
            let text = lines(&pivot(&s, width).unwrap(), width);
            assert!(text.len() == 7 && text.iter().all(|l| l.chars().count() <= width), "{text:#?}");
        }
    }

    #[test]
    fn one_op_is_no_pivot() {
        let mut s = support::sweep();
        s.workloads.retain(|w| w.op == "put");
        assert_eq!(pivot(&s, 100), None);
    }
}
