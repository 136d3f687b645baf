//! A table as it is printed: names of columns, and cells, each with the line it is on.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

/// Where something stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CellPlace {
    pub line: usize,
    pub column: String,
}

impl fmt::Display for CellPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column '{}'", self.line, self.column)
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableRow {
    /// In the file, from 1.
    pub line: usize,
    /// The heading above its table.
    pub title: String,
    pub cells: Vec<String>,
}

/// A table, its text clean and otherwise as it is printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedTable {
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<TableRow>,
}

impl PrintedTable {
    /// Rows below the header.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn place(&self, row: usize, column: usize) -> CellPlace {
        CellPlace { line: self.rows[row].line, column: self.header[column].clone() }
    }

    pub(crate) fn cell(&self, row: usize, column: usize) -> &str {
        #[cfg(test)]
        LOOKS.with(|n| n.set(n.get() + 1));
        self.rows[row].cells.get(column).map_or("", String::as_str)
    }
}

#[cfg(test)]
thread_local! {
    /// Cells that were looked at: a rule that looks at each of them for each row is not for tables of this size.
    pub(crate) static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// The same as above, in a cell that was merged with the one above it.
pub(crate) fn is_as_above(cell: &str) -> bool {
    matches!(cell.trim(), "" | "\"" | "''" | "\u{3003}" | "^" | "^^")
}

/// Tables with the same header are one, whose rows know their headings: what stands in all of them is then one cause, told once.
pub(crate) fn joined(tables: &[PrintedTable]) -> Vec<PrintedTable> {
    let mut out: Vec<PrintedTable> = Vec::new();
    let mut places: HashMap<&[String], usize> = HashMap::new();
    for table in tables {
        match places.entry(&table.header) {
            Entry::Occupied(at) => out[*at.get()].rows.extend(table.rows.iter().cloned()),
            Entry::Vacant(new) => {
                new.insert(out.len());
                out.push(table.clone());
            }
        }
    }
    out
}
