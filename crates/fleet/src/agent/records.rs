//! Records of an agent's own: one directory for each run that it worked for, below `agents` in its directory of runs. Each has a note of
//! whose run it was, and a mark; what lacks either is not touched.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::SystemTime;

use plimsoll_model::Plan;
use plimsoll_model::units::parse_size;
use plimsoll_setup::safety::trees::{self, Extent};
use plimsoll_store::{Journal, RunDir, StoreError, journal};
use serde::{Deserialize, Serialize};

use super::AgentOptions;
use crate::frame::own::OwnRecord;

/// Directory of agents' own records, among the runs.
const RECORDS: &str = "agents";
/// What an agent measured, in its own directory.
const OWN_RECORD: &str = "frames";
/// Whose it is.
const NOTE: &str = "record.json";
const NOTE_FORMAT: &str = "plimsoll.agent-record/1";
/// All that is ever in such a directory.
const CONTENT: [&str; 7] = [OWN_RECORD, NOTE, "plan.toml", "journal", "intervals", "samples", trees::MARKER];

/// How much of its own records an agent keeps. The oldest go first, when it is hired for another run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepRecords {
    /// So many runs.
    Runs(usize),
    /// So many bytes.
    Bytes(u64),
}

impl Default for KeepRecords {
    fn default() -> Self {
        Self::Bytes(4 << 30)
    }
}

impl FromStr for KeepRecords {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(runs) = text.parse() {
            return Ok(Self::Runs(runs));
        }
        parse_size(text)
            .map(Self::Bytes)
            .map_err(|_| format!("'{text}' is neither a number of runs (20) nor a size (4GiB)"))
    }
}

/// The note in a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    format: String,
    run: String,
    agent: String,
    /// The public key of the conductor that ordered it: nobody else is given any of it.
    conductor: String,
}

/// Where all of them are.
pub fn base(options: &AgentOptions) -> PathBuf {
    options.runs.join(RECORDS)
}

/// A new record of a run; one that goes on has others from before.
pub fn create(options: &AgentOptions, run: &str, plan: &Plan) -> Result<(Journal, OwnRecord), StoreError> {
    let base = base(options);
    let name = format!("{run}.{}", options.name);
    let numbered = (1..).map(|n| if n == 1 { base.join(&name) } else { base.join(format!("{name}.{n}")) });
    let free: PathBuf = numbered.into_iter().find(|p| !p.exists()).unwrap_or_default();
    let dir = RunDir::create_at(&free)?;
    dir.write_plan(plan)?;
    let journal = dir.journal()?;
    let note = Note {
        format: NOTE_FORMAT.into(),
        run: run.to_owned(),
        agent: options.name.clone(),
        conductor: options.conductor.clone(),
    };
    let path = free.join(NOTE);
    let text = serde_json::to_vec(&note).expect("plain data is always JSON");
    let mut made = std::fs::File::create_new(&path).map_err(StoreError::io("create", &path))?;
    made.write_all(&text).map_err(StoreError::io("write", &path))?;
    // Where it cannot be marked (a file system without times of making) it is never removed, either.
    let _ = trees::mark_made(&free, journal.mark());
    Ok((journal, OwnRecord::create(&free.join(OWN_RECORD))?))
}

fn note(dir: &Path) -> Option<Note> {
    let path = dir.join(NOTE);
    let is_file = path.symlink_metadata().is_ok_and(|m| m.is_file());
    let note: Note = is_file.then(|| serde_json::from_slice(&std::fs::read(path).ok()?).ok()).flatten()?;
    (note.format == NOTE_FORMAT).then_some(note)
}

/// What was kept of a run that `conductor` ordered: files of frames, the oldest first.
pub fn of_run(options: &AgentOptions, run: &str) -> Vec<PathBuf> {
    let prefix = format!("{run}.{}", options.name);
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for path in directories(&base(options)) {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let number = match name.strip_prefix(&prefix) {
            Some("") => Some(1),
            Some(rest) => rest.strip_prefix('.').and_then(|n| n.parse().ok()),
            None => None,
        };
        let is_its = |n: Note| n.run == run && n.agent == options.name && n.conductor == options.conductor;
        if let Some(number) = number
            && note(&path).is_some_and(is_its)
        {
            found.push((number, path.join(OWN_RECORD)));
        }
    }
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

fn directories(base: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(base) else { return Vec::new() };
    let dirs = entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
    dirs.map(|e| e.path()).collect()
}

/// One that may go.
struct Old {
    made: SystemTime,
    path: PathBuf,
    mark: String,
    bytes: u64,
}

/// Removes the oldest records of this agent beyond what it keeps: by their marks alone, and none of which something is still to be
/// cleaned up, in which there is anything else, or that a process works on.
pub fn prune(options: &AgentOptions) {
    let mut all: Vec<Old> = directories(&base(options)).into_iter().filter_map(|p| old(options, p)).collect();
    all.sort_by_key(|o| std::cmp::Reverse((o.made, o.path.clone())));
    let (mut runs, mut bytes) = (0usize, 0u64);
    for old in all {
        (runs, bytes) = (runs + 1, bytes.saturating_add(old.bytes));
        let is_kept = match options.keep {
            KeepRecords::Runs(most) => runs <= most,
            KeepRecords::Bytes(most) => bytes <= most,
        };
        if !is_kept {
            // What stays is looked at again with the next run.
            let _ = trees::remove(&old.path, &old.mark, Extent::Whole);
        }
    }
}

/// A record of this agent that is whole, over, marked, and has nothing else in it.
fn old(options: &AgentOptions, path: PathBuf) -> Option<Old> {
    let note = note(&path).filter(|n| n.agent == options.name)?;
    let name = path.file_name()?.to_str()?.to_owned();
    let is_named = name.strip_prefix(&format!("{}.{}", note.run, note.agent))?;
    let is_numbered = is_named.strip_prefix('.').is_some_and(|n| n.parse::<u32>().is_ok());
    let mut bytes = 0u64;
    for entry in std::fs::read_dir(&path).ok()? {
        let entry = entry.ok()?;
        let is_known = entry.file_name().to_str().is_some_and(|n| CONTENT.contains(&n));
        let kind = entry.metadata().ok()?;
        let is_empty = !kind.is_dir() || std::fs::read_dir(entry.path()).ok()?.next().is_none();
        if !is_known || !is_empty {
            return None;
        }
        bytes = bytes.saturating_add(kind.len());
    }
    let journal_path = path.join("journal");
    let nothing_waits = journal::pending(&journal_path).is_ok_and(|all| all.is_empty());
    if !(is_named.is_empty() || is_numbered) || !nothing_waits || journal::is_locked(&journal_path) {
        return None;
    }
    let mark = journal::mark_of(&journal_path)?;
    let made = path.join(NOTE).metadata().and_then(|m| m.modified()).ok()?;
    trees::is_made(&path, &mark).then_some(Old { made, path, mark, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Bounds;

    fn options(dir: &Path, keep: KeepRecords) -> AgentOptions {
        AgentOptions {
            name: "a".into(),
            labels: Default::default(),
            runs: dir.to_owned(),
            bounds: Bounds::default(),
            conductor: "K".into(),
            keep,
            takes_keys_by: None,
            identity: Default::default(),
            calibrate: None,
            clock_ahead_ns: 0,
            clock_jump: None,
        }
    }

    fn plan() -> Plan {
        Plan::from_toml(
            "version = 1\n[targets.n]\nkind = \"null\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { null = 1 }\n",
        )
        .unwrap()
    }

    #[test]
    fn bounds_are_read() {
        assert_eq!("20".parse(), Ok(KeepRecords::Runs(20)));
        assert_eq!("4GiB".parse(), Ok(KeepRecords::Bytes(4 << 30)));
        assert!("much".parse::<KeepRecords>().unwrap_err().contains("4GiB"));
    }

    #[test]
    fn the_oldest_go_and_nothing_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let all = options(dir.path(), KeepRecords::Runs(1));
        for run in ["r1", "r2", "r3", "r4"] {
            drop(create(&all, run, &plan()).unwrap());
            std::thread::sleep(std::time::Duration::from_millis(15));
        }
        let base = dir.path().join(RECORDS);
        // What somebody put there, another agent's record, and one that is written to.
        std::fs::create_dir(base.join("r0.a")).unwrap();
        std::fs::write(base.join("r0.a/frames"), "mine").unwrap();
        std::fs::write(base.join("r2.a/notes.txt"), "mine").unwrap();
        drop(create(&AgentOptions { name: "b".into(), ..all.clone() }, "r1", &plan()).unwrap());
        let busy = create(&all, "r1", &plan()).unwrap();
        prune(&all);
        let mut left: Vec<String> = directories(&base)
            .iter()
            .map(|p| p.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        left.sort();
        assert_eq!(left, ["r0.a", "r1.a.2", "r1.b", "r2.a", "r4.a"]);
        drop(busy);
        prune(&options(dir.path(), KeepRecords::Bytes(0)));
        let left = directories(&base).len();
        assert_eq!(left, 3, "the stranger's, the one with a stranger's file, and another agent's");
    }

    #[test]
    fn only_its_conductor_is_given_what_was_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mine = options(dir.path(), KeepRecords::default());
        drop(create(&mine, "r1", &plan()).unwrap());
        drop(create(&mine, "r1", &plan()).unwrap());
        assert_eq!(of_run(&mine, "r1").len(), 2);
        assert_eq!(of_run(&mine, "r").len(), 0);
        assert_eq!(of_run(&AgentOptions { conductor: "L".into(), ..mine }, "r1").len(), 0);
    }
}
