//! Judges tables and claims that somebody else printed: text in, remarks out. No file is touched here.
//!
//! An audit says what is inconsistent, not who is wrong: each remark has what is printed, what the rest of the same table makes of it,
//! and what would explain the difference. What is inside of the printed digits is never remarked upon.

#![warn(missing_docs)]

mod column;
mod error;
mod facts;
mod formula;
mod number;
mod quantity;
mod read;
mod remark;
mod rules;
mod table;
mod unit;

pub use error::AuditError;
pub use facts::AuditFacts;
pub use read::{read_csv, read_markdown};
pub use remark::{AuditRemark, AuditReport, RuleTally};
pub use table::PrintedTable;

/// Holds tables and claims against themselves and each other.
///
/// # Errors
/// Where a cell, a unit, a column or a formula cannot be understood, and where nothing could be checked at all: no remark would then
/// say nothing.
pub fn audit(tables: &[PrintedTable], facts: &AuditFacts) -> Result<AuditReport, AuditError> {
    rules::all(tables, facts)
}
