//! `imported.json`: lines of results that another tool printed. A run has it in place of intervals.

use plimsoll_model::Finding;
use plimsoll_model::summary::WorkloadSummary;
use serde::{Deserialize, Serialize};

use super::{IMPORTED, RunDir, check_format, read_json, write_json};
use crate::StoreError;

/// Of `imported.json`.
pub const IMPORTED_FORMAT: &str = "plimsoll.imported/1";

/// What a file of another tool says, in our names and units. It is raw data: sealed, and judged again at any time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedLines {
    /// [`IMPORTED_FORMAT`].
    pub format: String,
    /// In the order of the file.
    pub lines: Vec<WorkloadSummary>,
    /// What the file's own figures do not agree on, and how they are to be read.
    pub findings: Vec<Finding>,
}

impl ImportedLines {
    /// In today's format.
    pub fn new(lines: Vec<WorkloadSummary>, findings: Vec<Finding>) -> Self {
        Self { format: IMPORTED_FORMAT.into(), lines, findings }
    }
}

impl RunDir {
    /// Replaces `imported.json` whole.
    pub fn write_imported(&self, lines: &ImportedLines) -> Result<(), StoreError> {
        write_json(&self.path.join(IMPORTED), lines)
    }

    /// The lines of an imported run; `None`: it has none, or is no such run. An error where the format is another.
    pub fn imported(&self) -> Result<Option<ImportedLines>, StoreError> {
        let path = self.path.join(IMPORTED);
        if !path.exists() {
            return Ok(None);
        }
        let lines: ImportedLines = read_json(&path)?;
        check_format(&path, &lines.format, IMPORTED_FORMAT)?;
        Ok(Some(lines))
    }
}
