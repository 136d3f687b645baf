//! What our judgement of a run adds to a document in a foreign form: whoever reads only that document must see as well that its
//! figures are not to be used.

use plimsoll_model::{Finding, Level, RunStatus, RunSummary};
use plimsoll_store::RunDir;
use serde::Serialize;

use crate::outside::cleaned;

/// As `summary.json` has it: see there for the meaning of each.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// How much of the run is valid.
    pub status: RunStatus,
    /// Nothing is void.
    pub valid: bool,
    /// What was asked for is answered.
    pub answered: bool,
    /// All, notes included.
    pub findings: Vec<Finding>,
}

impl Judged {
    /// Its texts are cleaned: they come from a file.
    pub fn of(s: RunSummary) -> Self {
        let s = cleaned(s);
        Self { status: s.status, valid: s.valid, answered: s.answered, findings: s.findings }
    }

    /// `None`: the run is not judged yet (it still goes on, or was killed).
    pub fn read(dir: &RunDir) -> Option<Self> {
        dir.summary().ok().map(Self::of)
    }

    /// What takes something away from the figures, a line each, worst first.
    pub fn lines(&self) -> Vec<String> {
        self.lines_from(Level::Qualified)
    }

    /// Of those, what makes figures void: whoever takes only the document is told this beside it.
    pub fn invalid(&self) -> Vec<String> {
        self.lines_from(Level::Invalid)
    }

    fn lines_from(&self, least: Level) -> Vec<String> {
        let mut all: Vec<&Finding> = self.findings.iter().filter(|f| f.level >= least).collect();
        all.sort_by_key(|f| std::cmp::Reverse(f.level));
        let line = |f: &&Finding| {
            let mark = if f.level == Level::Invalid { "INVALID " } else { "" };
            let on = f.workload.as_ref().map_or(String::new(), |w| format!(" {w}:"));
            format!("[{mark}{}]{on} {}", f.code, f.text)
        };
        all.iter().map(line).collect()
    }
}
