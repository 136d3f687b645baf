//! The runs below a directory, for `plimsoll runs list`: what each says of itself, without its raw data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_model::RunSummary;
use serde::{Deserialize, Serialize};

use super::{RunDir, list_dirs};
use crate::StoreError;
use crate::journal;

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Somebody holds its lock.
    Running,
    /// Its end is on record.
    Sealed,
    /// Killed before its end: readable up to its last frame, resumable, and its cleanup may be due.
    Unfinished,
}

/// A line of `plimsoll runs list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunEntry {
    /// The name of its directory.
    pub id: String,
    /// Of its directory.
    pub path: PathBuf,
    /// Of the plan, where it has one.
    pub name: Option<String>,
    /// RFC 3339.
    pub started_at: String,
    /// Seen now: a run may end meanwhile.
    pub state: RunState,
    /// As they were given with the run.
    pub labels: BTreeMap<String, String>,
    /// First sentences of the summary, where there is one, and a seal that knows it.
    pub verdict: Option<String>,
    /// Absent without such a summary.
    pub valid: Option<bool>,
    /// Absent without such a summary.
    pub status: Option<plimsoll_model::RunStatus>,
    /// Things that `plimsoll cleanup` would remove.
    pub cleanup_due: usize,
    /// Of its files.
    pub bytes: u64,
    /// All of it, for whoever shows more.
    #[serde(skip)]
    pub summary: Option<RunSummary>,
}

/// The runs under `root`, oldest first. Directories that are no runs are passed over.
pub fn list(root: &Path) -> Result<Vec<RunEntry>, StoreError> {
    Ok(list_dirs(root)?.iter().map(RunEntry::of).collect())
}

/// So many of them, the newest first, after `skip` newer ones; and how many there are in all. Only those that are given are read.
pub fn newest(root: &Path, skip: usize, most: usize) -> Result<(Vec<RunEntry>, usize), StoreError> {
    let dirs = list_dirs(root)?;
    Ok((dirs.iter().rev().skip(skip).take(most).map(RunEntry::of).collect(), dirs.len()))
}

impl RunEntry {
    /// Reads what one run says of itself.
    pub fn of(run: &RunDir) -> Self {
        let plan = run.plan().ok();
        let is_sealed = matches!(run.sealed(), Ok(Some(_)));
        // Without a seal nothing vouches for it: it is a file that anybody may have edited, or of before the run was resumed.
        let summary = is_sealed.then(|| run.summary().ok()).flatten();
        let state = match (run.is_running(), is_sealed) {
            (true, _) => RunState::Running,
            (false, true) => RunState::Sealed,
            (false, false) => RunState::Unfinished,
        };
        let files = [run.interval_files(), run.sample_files()].into_iter().flatten().flatten();
        Self {
            id: run.id(),
            path: run.path().to_owned(),
            name: plan.as_ref().and_then(|p| p.name.clone()),
            started_at: run.env().map(|e| e.environment.started_at).unwrap_or_default(),
            state,
            labels: plan.map(|p| p.labels).unwrap_or_default(),
            valid: summary.as_ref().map(|s| s.valid),
            status: summary.as_ref().map(|s| s.status),
            verdict: summary.as_ref().map(|s| s.verdict.clone()),
            cleanup_due: journal::pending(&run.journal_path()).map_or(0, |p| p.len()),
            bytes: files.filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum(),
            summary,
        }
    }
}
