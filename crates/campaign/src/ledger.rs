//! The ledger: what was begun and what came of it, a line of JSON each, only ever appended, and on the disk before the next step is
//! taken. Killed at any moment, what is in it is enough to go on.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use plimsoll_model::cost::Money;
use plimsoll_model::credentials::{toml_without_credentials, without_credentials};
use plimsoll_model::text::clean;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::cells::CampaignCell;
use crate::check::{CampaignError, wrong};
use crate::figures::CellRun;
use crate::file::CampaignFile;
use crate::lock::CampaignLock;
use crate::place::{self, own};
use crate::schedule::RunTime;
use crate::unseen::dangers_hash;

/// Of the first line.
pub const LEDGER_FORMAT: &str = "plimsoll.ledger/1";
/// Beside the runs: a directory for each campaign is in it.
const CAMPAIGNS: &str = "campaigns";
pub(crate) const LEDGER: &str = "ledger.jsonl";
const COPY: &str = "campaign.toml";
const LOCK: &str = "lock";
const HOOKS: &str = "hooks.log";
const SHOWN: &str = "shown";
const HOOK_NOTE: &str = "hook.json";

/// A line of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum LedgerEntry {
    /// The first.
    Begun {
        /// [`LEDGER_FORMAT`].
        format: String,
        /// Of the campaign.
        name: String,
        /// Drawn once: what the runs of this campaign write, no other campaign of the same file writes.
        fresh: u64,
        /// RFC 3339.
        at: String,
    },
    /// A process took it up. What stands torn before it was being written when the one before was killed.
    Opened {
        /// Of the program.
        version: String,
        /// The budget of money that was given beside the file: it holds until another is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_cost: Option<Money>,
        /// The flags of the fleet that it measures over: who takes it up again does so, too. Empty: this machine alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fleet: Vec<String>,
        /// RFC 3339.
        at: String,
    },
    /// The file as it holds from here on.
    File {
        /// Of its text.
        hash: String,
        /// Of each cell.
        cells: BTreeMap<String, String>,
        /// Of the copy that is kept of it, where secrets are left out of that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        copy: Option<String>,
        /// Then of its commands and devices, too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dangers: Option<String>,
        /// RFC 3339.
        at: String,
    },
    /// A run of a cell begins.
    Under(UnderWay),
    /// It has ended, and counts.
    Done {
        /// Its key.
        cell: String,
        /// As it was measured.
        hash: String,
        /// What came of it.
        run: Box<CellRun>,
        /// RFC 3339.
        at: String,
    },
    /// It was begun, and does not count: it was killed or interrupted, and will be made again.
    Dropped {
        /// Its key.
        cell: String,
        /// Name of the run.
        run: String,
        /// In words.
        why: String,
        /// On it.
        #[serde(flatten)]
        spent: RunSpent,
        /// RFC 3339.
        at: String,
    },
    /// It could not be measured.
    Failed {
        /// Its key.
        cell: String,
        /// In words, with the remedy.
        problem: String,
        /// On it.
        #[serde(flatten)]
        spent: RunSpent,
        /// RFC 3339.
        at: String,
    },
    /// A command before a subject's cells was run, or all of those after them were. The first of a subject, which took nothing, is from before any
    /// of them began.
    Hook {
        /// Whose.
        subject: String,
        /// Which of its commands.
        when: HookTime,
        /// What it took, seconds.
        took_s: f64,
        /// Why it does not count as done.
        problem: Option<String>,
        /// RFC 3339.
        at: String,
    },
    /// A session ended in order.
    Ended {
        /// In words.
        how: String,
        /// RFC 3339.
        at: String,
    },
}

/// A run that was begun.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct UnderWay {
    /// Key of its cell.
    pub cell: String,
    /// Of the cell as it was then.
    pub hash: String,
    /// From 0.
    pub repeat: u32,
    /// Name of the run's directory, chosen before it is made.
    pub run: String,
    /// Seconds that the machine was waited for, until it was at rest.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waited_s: f64,
    /// What is to be known of how it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// Of a campaign with times of day the one that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<RunTime>,
    /// RFC 3339.
    pub at: String,
}

/// What a run that does not count has taken: budgets hold it all the same.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunSpent {
    /// From its begin to its end, or to the last that is known of it, seconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub took_s: f64,
    /// Payload; of a run that was killed with what it may have moved after its record ends.
    #[serde(default, skip_serializing_if = "is_none")]
    pub bytes: u64,
    /// Ops, as above.
    #[serde(default, skip_serializing_if = "is_none")]
    pub requests: u64,
    /// Where it had prices, as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
}

impl LedgerEntry {
    /// What is said in it in words, without credentials: a command, or a server, may have said one.
    pub(crate) fn without_credentials(mut self) -> Self {
        let words = match &mut self {
            Self::Dropped { why: words, .. }
            | Self::Failed { problem: words, .. }
            | Self::Hook { problem: Some(words), .. }
            | Self::Ended { how: words, .. } => words,
            _ => return self,
        };
        *words = without_credentials(words).into_owned();
        self
    }
}

impl UnderWay {
    /// Its run, with what is known of how it began.
    pub(crate) fn begun(&self, run: CellRun) -> CellRun {
        CellRun { remark: self.remark.clone(), time: self.time.as_ref().map(|t| t.of.clone()), ..run }
    }
}

fn is_zero(s: &f64) -> bool {
    *s == 0.0
}

fn is_none(n: &u64) -> bool {
    *n == 0
}

/// Before a subject's cells, or after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookTime {
    /// Before its cells.
    Before,
    /// After them.
    After,
}

impl HookTime {
    /// As the file names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// Why a ledger cannot be read, written or taken.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message has all fields in it")]
pub enum LedgerError {
    #[error("{}: {problem}", path.display())]
    Io { path: PathBuf, problem: io::Error },
    #[error("{} line {line}: {problem}", path.display())]
    Damaged { path: PathBuf, line: usize, problem: String },
    #[error("another plimsoll works on campaign '{0}' just now")]
    Locked(String),
    #[error("{} is no directory of a campaign ({why}), so nothing in it is touched", path.display())]
    NotOurs { path: PathBuf, why: String },
}

impl LedgerError {
    /// What to do, as a sentence.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Io { problem, .. } if is_full(problem) => {
                "Free some space, then go on with `plimsoll campaign resume`: what was measured is kept."
            }
            Self::Io { .. } => {
                "Check the path and its permissions, or choose another directory with --runs-dir."
            }
            Self::Damaged { .. } => {
                "It was changed by something else than plimsoll. Restore it; or begin anew under another name in the file: the runs are kept."
            }
            Self::Locked(_) => {
                "Wait until it ends (`plimsoll campaign status` shows how far it is), or stop it."
            }
            Self::NotOurs { .. } => {
                "Give the campaign another name in the file, or choose another directory with --runs-dir."
            }
        }
    }
}

/// Whether there was no room for it.
pub fn is_full(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Takes entries; the ledger's file, or a list of a test's.
pub trait LedgerSink {
    /// Returns when it is on the disk.
    fn append(&mut self, entry: &LedgerEntry) -> Result<(), LedgerError>;
}

/// The directory of a campaign beside the runs. One process at a time writes in it.
#[derive(Debug)]
pub struct CampaignDir {
    path: PathBuf,
    name: String,
}

impl CampaignDir {
    /// Of the campaign of this name; it need not be there.
    pub fn of(runs: &Path, name: &str) -> Self {
        Self { path: runs.join(CAMPAIGNS).join(name), name: name.to_owned() }
    }

    /// Whether a campaign of this name was begun here.
    pub fn is_begun(&self) -> bool {
        fs::metadata(self.path.join(LEDGER)).is_ok_and(|m| m.len() > 0)
    }

    /// Of the directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What commands of subjects said.
    pub fn hooks_log(&self) -> PathBuf {
        self.path.join(HOOKS)
    }

    /// The command of a subject that runs now, or that outlived whoever began it.
    pub fn hook_note(&self) -> PathBuf {
        self.path.join(HOOK_NOTE)
    }

    /// All entries. Lines that a kill tore are passed over.
    pub fn read(&self) -> Result<Vec<LedgerEntry>, LedgerError> {
        place::refuse_others(&self.path)?;
        let path = self.path.join(LEDGER);
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(problem) => return Err(LedgerError::Io { path, problem }),
        };
        entries(&text).map_err(|(line, problem)| LedgerError::Damaged { path, line, problem })
    }

    /// The text of the file as it was taken last, without credentials.
    pub fn copy(&self) -> Option<String> {
        String::from_utf8(place::text(&self.path, COPY)?).ok()
    }

    /// The same, where it is that of the last file of these entries.
    pub fn copy_of(&self, entries: &[LedgerEntry]) -> Option<String> {
        let taken = entries.iter().rev().find_map(|e| match e {
            LedgerEntry::File { hash, copy, .. } => Some(copy.as_ref().unwrap_or(hash)),
            _ => None,
        })?;
        self.copy().filter(|copy| text_hash(copy) == *taken)
    }

    /// Of the commands and devices that were shown last, a hash.
    pub(crate) fn shown(&self) -> Option<String> {
        String::from_utf8(place::text(&self.path, SHOWN)?).ok()
    }

    /// These were shown.
    pub(crate) fn keep_shown(&self, hash: &str) -> Result<(), LedgerError> {
        place::claim(&self.path)?;
        let path = self.path.join(SHOWN);
        let is_hash = |old: &[u8]| old.len() == hash.len() && old.iter().all(u8::is_ascii_hexdigit);
        place::replace(&path, hash.as_bytes(), is_hash).map_err(|problem| LedgerError::Io { path, problem })
    }

    /// Takes the campaign for this process: refused where another has it, and where the directory is somebody else's. Makes the directory.
    pub fn take(&self) -> Result<CampaignLedger, LedgerError> {
        let io = |path: PathBuf| move |problem| LedgerError::Io { path, problem };
        place::claim(&self.path)?;
        let path = self.path.join(LOCK);
        let lock = CampaignLock::take(&path).map_err(io(path))?;
        let lock = lock.ok_or_else(|| LedgerError::Locked(self.name.clone()))?;
        let path = self.path.join(LEDGER);
        let mut file = own().read(true).append(true).open(&path).map_err(io(path.clone()))?;
        let mut all = Vec::new();
        file.read_to_end(&mut all).map_err(io(path.clone()))?;
        let is_torn = all.last().is_some_and(|b| *b != b'\n');
        if is_torn {
            file.write_all(b"\n").map_err(io(path.clone()))?;
        }
        Ok(CampaignLedger { path, copy: self.path.join(COPY), file, _lock: lock })
    }
}

/// The ledger of a campaign that this process has.
#[derive(Debug)]
pub struct CampaignLedger {
    path: PathBuf,
    copy: PathBuf,
    file: File,
    _lock: CampaignLock,
}

impl CampaignLedger {
    /// Keeps the text of the file beside the ledger, whole but for credentials. One that was edited there is not replaced.
    pub fn keep_copy(&self, text: &str) -> Result<(), LedgerError> {
        let io = |path: &PathBuf| {
            let path = path.clone();
            move |problem| LedgerError::Io { path, problem }
        };
        let all = fs::read(&self.path).map_err(io(&self.path))?;
        let known = entries(&String::from_utf8_lossy(&all)).unwrap_or_default();
        let was_taken = |old: &[u8]| {
            let old = text_hash(&String::from_utf8_lossy(old));
            known.iter().any(|e| matches!(e, LedgerEntry::File { hash, copy, .. } if *copy.as_ref().unwrap_or(hash) == old))
        };
        let text = toml_without_credentials(text);
        place::replace(&self.copy, text.as_bytes(), was_taken).map_err(io(&self.copy))
    }
}

impl LedgerSink for CampaignLedger {
    fn append(&mut self, entry: &LedgerEntry) -> Result<(), LedgerError> {
        let mut line = serde_json::to_string(entry).expect("plain data is always JSON");
        line.push('\n');
        let write = |file: &mut File| file.write_all(line.as_bytes()).and_then(|()| file.sync_data());
        write(&mut self.file).map_err(|problem| LedgerError::Io { path: self.path.clone(), problem })
    }
}

/// The entries of a text. A line that is none is what a kill tore: nothing but a new session comes after it.
pub fn entries(text: &str) -> Result<Vec<LedgerEntry>, (usize, String)> {
    let mut out: Vec<LedgerEntry> = Vec::new();
    let mut torn: Option<(usize, String)> = None;
    for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        match serde_json::from_str::<LedgerEntry>(line) {
            Ok(entry) => {
                if let Some(run) = run_of(&entry).filter(|run| !is_run_name(run)) {
                    return Err((i + 1, format!("'{}' names no run", clean(run))));
                }
                let is_taken_up = matches!(entry, LedgerEntry::Opened { .. } | LedgerEntry::Begun { .. });
                if let Some(torn) = torn.take().filter(|_| !is_taken_up) {
                    return Err(torn);
                }
                out.push(entry);
            }
            // Who took it up may have been killed in the line that says so: several can be torn in a row.
            Err(e) => torn = torn.or_else(|| Some((i + 1, format!("it is no entry: {e}")))),
        }
    }
    match out.first() {
        Some(LedgerEntry::Begun { format, .. }) if format != LEDGER_FORMAT => {
            Err((1, format!("'{format}' is not a format that this program reads ({LEDGER_FORMAT})")))
        }
        Some(LedgerEntry::Begun { .. }) | None => Ok(out),
        Some(_) => Err((1, "it does not begin as a ledger does".into())),
    }
}

/// The directory that an entry names: of a run that is looked at, cleaned up or shown by it.
fn run_of(entry: &LedgerEntry) -> Option<&str> {
    match entry {
        LedgerEntry::Under(under) => Some(&under.run),
        LedgerEntry::Dropped { run, .. } => Some(run),
        // What ended without a name has no directory.
        LedgerEntry::Done { run, .. } => Some(run.run.as_str()).filter(|run| !run.is_empty()),
        _ => None,
    }
}

/// A directory right among the runs, and no other: of what names of runs are made of.
fn is_run_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// The wall clock, RFC 3339.
pub fn now() -> String {
    stamp(Timestamp::now())
}

/// To the millisecond, RFC 3339.
pub(crate) fn stamp(at: Timestamp) -> String {
    at.round(jiff::Unit::Millisecond).unwrap_or(at).to_string()
}

/// Of a file's text.
pub fn text_hash(text: &str) -> String {
    format!("{:032x}", xxh3_128(text.as_bytes()))
}

/// The file entry for these cells.
pub fn file_entry(text: &str, cells: &[CampaignCell], at: String) -> LedgerEntry {
    let cells = cells.iter().map(|c| (c.key.clone(), c.hash.clone())).collect();
    let kept = toml_without_credentials(text);
    let (mut copy, mut dangers) = (None, None);
    if kept != text {
        // The copy no longer says what was allowed: one secret for another is another command.
        copy = Some(text_hash(&kept));
        dangers = CampaignFile::from_toml(text).ok().map(|f| dangers_hash(&f.dangers()));
    }
    LedgerEntry::File { hash: text_hash(text), cells, copy, dangers, at }
}

/// The campaign of a ledger has this name, and no other.
pub fn check_name(entries: &[LedgerEntry], name: &str) -> Result<(), CampaignError> {
    match entries.first() {
        Some(LedgerEntry::Begun { name: own, .. }) if own != name => Err(wrong(
            format!("campaign '{name}'"),
            format!("its ledger is that of '{own}'"),
            "Give the campaign another name.",
        )),
        _ => Ok(()),
    }
}
