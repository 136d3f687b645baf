//! A table that leaves the program: as CSV, or as JSON Lines with the same names.

use std::fmt::Write as _;

use crate::csv;

/// What the cells below a head are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadKind {
    /// Words.
    Text,
    /// A plain number without exponent, in the unit that the head names; empty: not known.
    Number,
    /// `true` or `false`; empty: not known.
    Flag,
}

/// Rows of cells, each as text; what a cell is says its head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportTable {
    heads: Vec<(String, HeadKind)>,
    rows: Vec<Vec<String>>,
}

impl ExportTable {
    /// Without a row.
    pub fn new(heads: Vec<(String, HeadKind)>) -> Self {
        Self { heads, rows: Vec::new() }
    }

    /// One cell for each head.
    pub fn push(&mut self, row: Vec<String>) {
        debug_assert_eq!(row.len(), self.heads.len());
        self.rows.push(row);
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The first line of its CSV.
    pub fn csv_heads(&self) -> String {
        csv::row(self.heads.iter().map(|(head, _)| csv::words(head)).collect())
    }

    /// RFC 4180, without heads. A text that a spreadsheet would run as a formula is quoted with an apostrophe.
    pub fn csv_rows(&self) -> String {
        let cell = |(text, (_, kind)): (&String, &(String, HeadKind))| match kind {
            HeadKind::Text => csv::words(text),
            _ => text.clone(),
        };
        self.rows.iter().map(|row| csv::row(row.iter().zip(&self.heads).map(cell).collect())).collect()
    }

    /// An object in a line for each row; what is not known is null.
    pub fn json_lines(&self) -> String {
        let mut out = String::new();
        for row in &self.rows {
            out.push('{');
            for (i, (text, (head, kind))) in row.iter().zip(&self.heads).enumerate() {
                let comma = if i == 0 { "" } else { "," };
                let value = match kind {
                    HeadKind::Text => quoted(text),
                    _ if text.is_empty() => "null".into(),
                    _ => text.clone(),
                };
                let _ = write!(out, "{comma}{}:{value}", quoted(head));
            }
            out.push_str("}\n");
        }
        out
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_say_the_same_and_no_spreadsheet_runs_a_cell() {
        let heads = [("run", HeadKind::Text), ("ops_per_s", HeadKind::Number), ("valid", HeadKind::Flag)];
        let mut t = ExportTable::new(heads.map(|(h, k)| (h.to_owned(), k)).to_vec());
        t.push(vec!["=cmd(\"x\")".into(), "-1.5".into(), "true".into()]);
        t.push(vec!["a,b\n".into(), String::new(), String::new()]);
        assert_eq!(t.csv_heads(), "run,ops_per_s,valid\r\n");
        assert_eq!(t.csv_rows(), "\"'=cmd(\"\"x\"\")\",-1.5,true\r\n\"a,b\n\",,\r\n");
        let lines: Vec<serde_json::Value> =
            t.json_lines().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(lines[0], serde_json::json!({"run": "=cmd(\"x\")", "ops_per_s": -1.5, "valid": true}));
        assert_eq!(lines[1], serde_json::json!({"run": "a,b\n", "ops_per_s": null, "valid": null}));
    }
}
