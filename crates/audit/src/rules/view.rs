//! A table as the rules look at it: which columns belong together, and what a row is called.

use crate::column::{ColumnRole, ReadCell, ReadColumn};
use crate::facts::AuditFacts;
use crate::quantity::Quantity;
use crate::remark::AuditRemark;
use crate::table::{PrintedTable, is_as_above};
use crate::unit::{Base, Dimension, NamedUnit};

/// A table with its columns.
pub(super) struct TableView<'a> {
    pub table: &'a PrintedTable,
    pub columns: Vec<ReadColumn>,
    pub facts: &'a AuditFacts,
    /// By column and row: the row whose text holds there, itself or above, where cells were merged.
    above: Vec<Vec<Option<u32>>>,
    has_one_title: bool,
    /// Of `columns`.
    size_column: Option<usize>,
}

/// Columns of one thing that was measured.
#[derive(Clone, Copy)]
pub(super) struct SeriesColumns<'a> {
    pub ops: Option<&'a ReadColumn>,
    pub rate: Option<&'a ReadColumn>,
    pub mean: Option<&'a ReadColumn>,
}

/// A size: how many of which unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PrintedSize {
    pub text: String,
    pub count: f64,
    pub unit: NamedUnit,
}

impl PrintedSize {
    pub fn bytes(&self) -> f64 {
        self.count * self.unit.scale
    }
}

impl<'a> TableView<'a> {
    /// What every row asks for is looked up once.
    pub fn new(table: &'a PrintedTable, columns: Vec<ReadColumn>, facts: &'a AuditFacts) -> Self {
        let above = |column: usize| {
            let mut last = None;
            let at = |row: usize| {
                if !is_as_above(table.cell(row, column)) {
                    last = Some(row as u32);
                }
                last
            };
            (0..table.rows.len()).map(at).collect()
        };
        let above = (0..table.header.len()).map(above).collect();
        let has_one_title = table.rows.windows(2).all(|r| r[0].title == r[1].title);
        let size_column = columns.iter().position(|c| c.role == ColumnRole::Size);
        Self { table, columns, facts, above, has_one_title, size_column }
    }

    /// The text of a cell, or of the one above that it was merged with.
    pub fn text(&self, row: usize, column: usize) -> Option<&str> {
        let at = (*self.above.get(column)?.get(row)?)?;
        Some(self.table.cell(at as usize, column))
    }

    pub fn of_role(&self, role: ColumnRole) -> Vec<&ReadColumn> {
        self.columns.iter().filter(|c| c.role == role && !c.is_per_node).collect()
    }

    /// Ops, throughput and mean latency of the same subject; where there is one of each, they belong together whatever they are called.
    pub fn series(&self) -> Vec<SeriesColumns<'_>> {
        let (ops, rates, means) =
            (self.of_role(ColumnRole::Ops), self.of_role(ColumnRole::Rate), self.of_role(ColumnRole::Mean));
        fn partner<'c>(of: &str, there: &[&'c ReadColumn], alone: bool) -> Option<&'c ReadColumn> {
            let same = there.iter().find(|c| c.of == of).copied();
            same.or_else(|| (there.len() == 1 && alone).then(|| there[0]))
        }
        if ops.is_empty() {
            let alone = rates.len() == 1;
            let of = |c: &&'_ ReadColumn| partner(&c.of, &means, alone);
            return rates.iter().map(|r| SeriesColumns { ops: None, rate: Some(r), mean: of(r) }).collect();
        }
        let alone = ops.len() == 1;
        ops.iter()
            .map(|o| SeriesColumns {
                ops: Some(o),
                rate: partner(&o.of, &rates, alone),
                mean: partner(&o.of, &means, alone),
            })
            .collect()
    }

    pub fn size(&self, row: usize) -> Option<PrintedSize> {
        if let Some(c) = self.size_column {
            let cell = self.columns[c].cells[row].as_ref()?;
            return Some(PrintedSize {
                text: cell.text(),
                count: cell.number.value,
                unit: cell.unit.clone(),
            });
        }
        let text = self.facts.given.size.as_ref()?;
        let (q, unit) = Quantity::printed(text).filter(|(q, _)| q.dimension == Dimension::BYTES)?;
        Some(PrintedSize { text: text.clone(), count: q.value / unit.scale, unit })
    }

    /// What is in flight: of the row, else what is told of all; several where several are told.
    pub fn in_flight(&self, row: usize) -> Vec<f64> {
        let of = |role| self.columns.iter().filter(move |c| c.role == role);
        let columns: Vec<_> = of(ColumnRole::Concurrency).collect();
        if columns.is_empty() {
            return self.facts.given.concurrency.all();
        }
        // Two columns that could be it: which one is not guessed.
        if columns.len() > 1 {
            return Vec::new();
        }
        let jobs =
            of(ColumnRole::Jobs).next().map_or(Some(1.0), |c| c.cells[row].as_ref().map(ReadCell::value));
        let depth = columns[0].cells[row].as_ref().map(ReadCell::value);
        depth.zip(jobs).map(|(d, j)| d * j).into_iter().filter(|n| *n > 0.0).collect()
    }

    /// Text cells of a row, those that were merged filled in.
    pub fn labels(&self, row: usize) -> Vec<String> {
        let labels = self.columns.iter().filter(|c| c.role == ColumnRole::Label);
        let text = |c: &ReadColumn| self.text(row, c.index).unwrap_or_default().to_owned();
        labels.map(text).filter(|t| !t.is_empty()).collect()
    }

    /// What a person calls the row.
    pub fn name(&self, row: usize) -> String {
        let title = &self.table.rows[row].title;
        let mut words = if self.has_one_title { Vec::new() } else { vec![title.clone()] };
        words.extend(self.labels(row));
        if self.size_column.is_some() {
            words.extend(self.size(row).map(|s| s.text));
        }
        for c in self.columns.iter().filter(|c| c.role == ColumnRole::Concurrency) {
            words.extend(c.cells[row].as_ref().map(|v| format!("{} {}", c.name, v.number.text)));
        }
        words.retain(|w| !w.is_empty());
        words.join(", ")
    }

    /// A remark on one row.
    pub fn remark(
        &self,
        row: usize,
        rule: &'static str,
        printed: String,
        expected: String,
        explanation: String,
    ) -> AuditRemark {
        let at = &self.table.rows[row];
        AuditRemark {
            table: at.title.clone(),
            line: Some(at.line),
            row: self.name(row),
            rule,
            printed,
            expected,
            explanation,
        }
    }

    /// `name` with more than one base for the same letter is worth a remark; what has none is not.
    pub fn has_binary(&self) -> bool {
        self.columns.iter().flat_map(|c| c.cells.iter().flatten()).any(|c| c.unit.base == Base::Binary)
    }
}

/// Whether a row's bounds can hold a value, and by how much not (relative; 0: they can).
pub(super) fn gap(a: (f64, f64), b: (f64, f64)) -> f64 {
    let slack = 1.0 + 1e-9;
    if a.1 * slack < b.0 {
        b.0 / a.1 - 1.0
    } else if a.0 > b.1 * slack {
        a.0 / b.1 - 1.0
    } else {
        0.0
    }
}

pub(super) fn product(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0 * b.0, a.1 * b.1)
}

pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
