//! How much of a run may be used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Refusal;

/// Of a run's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// All of them.
    Valid,
    /// Some: `workloads[].valid` says which.
    Partly,
    /// None, or the answer that a search was asked for is void.
    #[default]
    None,
}

/// The first claim of each run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Status {
    /// All lines, some or none.
    pub status: RunStatus,
    /// What was asked for is answered, though lines may be void (exit code 3 otherwise).
    pub answered: bool,
    /// Codes of what is wrong, sorted.
    pub codes: Vec<String>,
    /// How many there are.
    pub lines: u32,
    /// Labels of those that are void.
    pub void: Vec<String>,
    /// Findings that qualify the result.
    pub notes: u32,
    /// The first thing that is wrong.
    pub because: String,
}

impl Status {
    /// Valid with nothing wrong, or not valid for a reason.
    pub fn new(
        status: RunStatus,
        answered: bool,
        codes: Vec<String>,
        lines: (u32, Vec<String>),
        notes: u32,
        because: String,
    ) -> Result<Self, Refusal> {
        let (lines, void) = lines;
        if (status == RunStatus::Valid) != (codes.is_empty() && void.is_empty()) {
            return Refusal::new("its status and its findings say two things");
        }
        Ok(Self { status, answered, codes, lines, void, notes, because })
    }
}
