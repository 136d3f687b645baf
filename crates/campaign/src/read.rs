//! A campaign read back: the file, its cells, how far they are, and what their runs say together.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use plimsoll_model::RunSummary;
use plimsoll_model::cost::Money;
use plimsoll_store::{RunDir, StoreError};

use crate::brought;
use crate::cells::{self, CampaignCell};
use crate::check::{CampaignError, wrong};
use crate::file::CampaignFile;
use crate::ledger::{CampaignDir, LedgerEntry, LedgerError, check_name};
use crate::money::CampaignPrices;
use crate::result::{CampaignResult, result};
use crate::schedule::{RunDue, RunTime};
use crate::state::CampaignState;

/// All of it.
#[derive(Debug)]
pub struct Campaigned {
    /// As it stands in its file.
    pub file: CampaignFile,
    /// Of the file.
    pub cells: Vec<CampaignCell>,
    /// How far they are.
    pub state: CampaignState,
    /// As the ledger has them.
    pub entries: Vec<LedgerEntry>,
    /// Beside the runs.
    pub dir: CampaignDir,
    /// Directory of the runs.
    pub runs: PathBuf,
    /// Prices of its subjects, by whoever reads them.
    pub prices: Option<CampaignPrices>,
    /// The budget of money that was given beside the file, now or to the session before: it holds until another is given.
    pub budget_beside: Option<Money>,
    /// Runs that were brought along and are of no cell.
    pub strangers: Vec<String>,
}

/// Why it cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each is an error of its own")]
pub enum ReadError {
    #[error(transparent)]
    File(#[from] CampaignError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads a campaign: `text` of its file, `beside` which paths of runs brought along are looked for, and the directory of runs. Nothing
/// is made or changed. `exit_of`: the exit code of a run that was brought along, by its summary.
pub fn read_campaign(
    text: &str,
    beside: &Path,
    runs: &Path,
    exit_of: impl Fn(&RunSummary) -> u8,
) -> Result<Campaigned, ReadError> {
    let file = CampaignFile::from_toml(text)?;
    let cells = cells::expand(&file)?;
    let dir = CampaignDir::of(runs, &file.name);
    let entries = dir.read()?;
    check_name(&entries, &file.name)?;
    let mut state = CampaignState::of(&file, &cells, &entries);
    let mut strangers = Vec::new();
    for subject in file.subjects.iter().filter(|s| s.is_brought()) {
        let read: Result<Vec<_>, ReadError> =
            subject.runs.iter().map(|r| brought_run(&subject.name, r, beside, runs, &exit_of)).collect();
        let (merged, others) = brought::merged(&cells, &subject.name, &read?);
        merged.into_iter().for_each(|(i, runs)| state.bring(i, runs));
        strangers.extend(others);
    }
    Ok(Campaigned {
        file,
        cells,
        state,
        entries,
        dir,
        runs: runs.to_owned(),
        prices: None,
        budget_beside: None,
        strangers,
    })
}

/// A run by its path (from where the file is), or by its name among the runs.
fn brought_run(
    subject: &str,
    name: &str,
    beside: &Path,
    runs: &Path,
    exit_of: impl Fn(&RunSummary) -> u8,
) -> Result<(String, RunSummary, u8), ReadError> {
    let direct = beside.join(name);
    let found = if direct.is_dir() { RunDir::open(&direct) } else { RunDir::find(runs, name) };
    let summary = found.and_then(|dir| dir.summary());
    let summary = summary.map_err(|e| {
        wrong(
            format!("subject '{subject}'"),
            format!("run '{name}' cannot be read: {e}"),
            "Give the path of a run directory that ended, from where the campaign's file is.",
        )
    })?;
    let exit = exit_of(&summary);
    Ok((name.to_owned(), summary, exit))
}

impl Campaigned {
    /// The flags of the fleet that the last session measured over; empty: it was this machine alone.
    pub fn fleet_before(&self) -> &[String] {
        let last = self.entries.iter().rev().find_map(|e| match e {
            LedgerEntry::Opened { fleet, .. } => Some(fleet.as_slice()),
            _ => None,
        });
        last.unwrap_or_default()
    }

    /// What its runs say together.
    pub fn result(&self) -> CampaignResult {
        result(&self.file, &self.cells, &self.state)
    }

    /// When the next run is due, in words, for a campaign with times of day; `None`: at once, or nothing is to go.
    pub fn next_due(&self, now: Timestamp) -> Option<String> {
        let times = self.file.times_of_day()?;
        let (_, block) = self.state.next(&self.file, &self.cells, |_| false)?;
        let of = |t: &RunTime| format!("block {} of its repeats, at {}", block + 1, t.of);
        Some(match self.state.due(Some(&times), block, now)? {
            RunDue::Now(time) => format!("now: {}", of(&time)),
            RunDue::At(time) => {
                let minutes = (time.from.as_second() - now.as_second()).max(0) / 60;
                let (h, m) = (minutes / 60, minutes % 60);
                format!("{} (in {h} h {m} min): {}", times.shown(time.from), of(&time))
            }
        })
    }

    /// The directory of a run of it. Of runs that were brought along: as the file names them.
    pub fn run_dir(&self, run: &str) -> PathBuf {
        self.runs.join(run)
    }
}
