//! The journal: what a run created outside its own directory, and has to clean up.
//!
//! Each thing is written and synced *before* it is created, and struck out after it is gone. So whatever
//! a killed run left behind is in the journal of its run directory. One JSON object a line; a torn last line
//! is a thing that was never created.
//!
//! A journal is a claim, and may be anybody's. It proves nothing: whoever removes what it lists looks for the run's mark
//! (in the journal's head, the run's id and a random part) on the thing itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::{StoreError, bounds};

/// Of the journal's head; with a mark, by which its things are ours.
pub const JOURNAL_FORMAT: &str = "plimsoll.journal/2";
/// Without a mark in its head: read, and what it lists has to be removed by hand, for nothing of it carries a mark.
const UNMARKED_FORMAT: &str = "plimsoll.journal/1";

/// Something that exists outside the run directory because of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "thing", rename_all = "snake_case")]
#[allow(missing_docs, reason = "names and paths as the run used them; `target` is the name in the plan")]
pub enum Thing {
    /// A bucket that this run made: removed when it is empty.
    Bucket { target: String, bucket: String },
    /// Everything under a prefix of ours. Deleted only while the marker object is there with this content.
    Prefix { target: String, bucket: String, prefix: String, marker: String, content: String },
    /// A multipart upload that was begun apart from the measured ones.
    Upload { target: String, bucket: String, key: String, upload_id: String },
    /// A file that the run made.
    File { path: PathBuf },
    /// A directory that the run made: removed when it is empty.
    Directory { path: PathBuf },
    /// A directory that is ours with all that is in it (data of the embedded server).
    Tree { path: PathBuf },
    /// A process that the run started, with its start time in clock ticks since boot (as /proc/PID/stat has it), so that no other is mistaken for it.
    Process { pid: u32, start_ticks: u64, boot_id: String },
    /// A control group that the run's process is in. Its name holds the run's mark.
    Group { path: PathBuf },
    /// A file system that is mounted in a directory that the run made.
    Mount { path: PathBuf },
    /// A network namespace. The alias of its loopback holds the run's mark.
    Namespace { name: String },
    /// A network interface. Its alias holds the run's mark.
    Link { name: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
enum Line {
    Header {
        format: String,
        /// See [`Journal::mark`].
        #[serde(default)]
        mark: String,
    },
    /// Once more with the same id where more came to be known of it.
    Created {
        id: u64,
        #[serde(flatten)]
        thing: Thing,
        /// See [`Journal::put_there`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        objects: Option<u64>,
    },
    Removed {
        id: u64,
    },
    /// Left in place because the user said so.
    Kept {
        id: u64,
    },
}

/// Writer of the journal. Holds a lock on the file as long as it lives: a locked journal is a run in progress.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    next_id: u64,
    open: BTreeMap<u64, Thing>,
    objects: BTreeMap<u64, u64>,
    mark: String,
}

impl Journal {
    /// Opens or creates it, and locks it. An error names a run that is still going on.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let mut file = crate::plain::open(path, File::options().create(true).read(true).append(true))
            .map_err(StoreError::io("open", path))?;
        lock(&file, path)?;
        let text = text_of(&file, path)?;
        let Replayed { open, last, mark, objects } = replay(path, &text)?;
        if !text.is_empty() && !text.ends_with('\n') {
            // A torn line must not swallow the next one.
            file.write_all(b"\n").map_err(StoreError::io("write", path))?;
        }
        let unmarked = mark.is_empty();
        let mark = if unmarked { new_mark(path) } else { mark };
        let mut journal =
            Self { file, path: path.to_owned(), next_id: last.map_or(0, |id| id + 1), open, objects, mark };
        if unmarked {
            // New, or of a version that made no marks: what is made from here on carries this one.
            let mark = journal.mark.clone();
            journal.write(&Line::Header { format: JOURNAL_FORMAT.into(), mark })?;
        }
        Ok(journal)
    }

    /// One that several write to. If one of them panicked it is as it was: each entry is written whole.
    pub fn locked(shared: &Mutex<Self>) -> MutexGuard<'_, Self> {
        shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What everything that this run makes is marked with: the run's id and a random part, `ID.32 HEX DIGITS`.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Notes that `thing` is about to be created; on disk when this returns.
    pub fn creating(&mut self, thing: Thing) -> Result<u64, StoreError> {
        let id = self.next_id;
        self.write(&Line::Created { id, thing: thing.clone(), objects: None })?;
        self.next_id += 1;
        self.open.insert(id, thing);
        Ok(id)
    }

    /// Notes how many objects the run sent to a prefix: the most that can be there.
    pub fn put_there(&mut self, id: u64, objects: u64) -> Result<(), StoreError> {
        let Some(thing) = self.open.get(&id).cloned() else { return Ok(()) };
        self.write(&Line::Created { id, thing, objects: Some(objects) })?;
        self.objects.insert(id, objects);
        Ok(())
    }

    /// How many objects were sent to a prefix; `None`: that is not known (a run that was killed).
    pub fn objects(&self, id: u64) -> Option<u64> {
        self.objects.get(&id).copied()
    }

    /// Notes that it is gone (or was never there).
    pub fn removed(&mut self, id: u64) -> Result<(), StoreError> {
        self.open.remove(&id);
        self.write(&Line::Removed { id })
    }

    /// Notes that it stays, by the user's wish.
    pub fn kept(&mut self, id: u64) -> Result<(), StoreError> {
        self.open.remove(&id);
        self.write(&Line::Kept { id })
    }

    /// Whether a file is a journal of a run: it begins with the header of one.
    pub fn is_one(path: &Path) -> bool {
        let Ok(text) = read_text(path) else { return false };
        let first = text.lines().next().and_then(|l| serde_json::from_str::<Line>(l).ok());
        matches!(first, Some(Line::Header { .. })) && replay(path, &text).is_ok()
    }

    /// What was kept by the user's wish is to go now: it is pending again. How many things there are.
    pub fn take_back_kept(&mut self) -> Result<usize, StoreError> {
        let things = kept(&self.path)?;
        let count = things.len();
        for thing in things {
            self.creating(thing)?;
        }
        Ok(count)
    }

    /// What is still there, the latest first: the order in which to clean up.
    pub fn pending(&self) -> Vec<(u64, Thing)> {
        self.open.iter().rev().map(|(id, t)| (*id, t.clone())).collect()
    }

    fn write(&mut self, line: &Line) -> Result<(), StoreError> {
        let mut text = serde_json::to_string(line).expect("plain data is always JSON");
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(StoreError::io("write", &self.path))?;
        self.file.sync_data().map_err(StoreError::io("sync", &self.path))
    }
}

/// A kill may tear a line in the middle of a character.
fn text_of(file: &File, path: &Path) -> Result<String, StoreError> {
    let bytes = bounds::read(file, path, bounds::JOURNAL)?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

/// The text of a journal; empty when there is none.
fn read_text(path: &Path) -> Result<String, StoreError> {
    match crate::plain::open(path, File::options().read(true)) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        file => text_of(&file.map_err(StoreError::io("read", path))?, path),
    }
}

/// The id is the name of the directory that the journal lies in; with the random part it is no other run's, wherever
/// that one lies.
fn new_mark(path: &Path) -> String {
    let dir = path.parent().and_then(|p| std::fs::canonicalize(p).ok()).unwrap_or_default();
    let id: String = dir.file_name().map_or_else(|| "run".into(), |n| n.to_string_lossy().into_owned());
    let id: String = id.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).take(64).collect();
    let mut random = [0u8; RANDOM_BYTES];
    // Early in boot there may be none: then the time has to tell runs apart.
    if rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty()).is_err() {
        let now = jiff::Timestamp::now().as_nanosecond() as u128;
        random = now.to_le_bytes();
    }
    format!("{id}.{:032x}", u128::from_le_bytes(random))
}

const RANDOM_BYTES: usize = 16;

/// Whether this can be a mark: anything else in a journal's head is not one of ours.
fn is_mark(text: &str) -> bool {
    let Some((id, random)) = text.rsplit_once('.') else { return false };
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    id.chars().all(fits) && random.len() == 2 * RANDOM_BYTES && random.chars().all(|c| c.is_ascii_hexdigit())
}

/// What a journal says is still there, without locking it. Empty when there is no journal.
pub fn pending(path: &Path) -> Result<Vec<(u64, Thing)>, StoreError> {
    let text = read_text(path)?;
    Ok(replay(path, &text)?.open.into_iter().rev().collect())
}

/// What was kept by the user's wish, in the order in which it was made.
pub fn kept(path: &Path) -> Result<Vec<Thing>, StoreError> {
    let text = read_text(path)?;
    let mut created = BTreeMap::new();
    let mut kept: BTreeMap<u64, Thing> = BTreeMap::new();
    for line in text.lines().filter_map(|l| serde_json::from_str::<Line>(l).ok()) {
        match line {
            Line::Created { id, thing, .. } => {
                // Taken back: from here on it is kept no more.
                kept.retain(|_, k| *k != thing);
                created.insert(id, thing);
            }
            Line::Kept { id } => kept.extend(created.remove(&id).map(|thing| (id, thing))),
            Line::Header { .. } | Line::Removed { .. } => {}
        }
    }
    Ok(kept.into_values().collect())
}

/// The mark in a journal's head; `None` where there is none.
pub fn mark_of(path: &Path) -> Option<String> {
    let text = read_text(path).ok()?;
    replay(path, &text).ok().map(|r| r.mark).filter(|m| !m.is_empty())
}

/// Whether a process holds the journal: the run is going on.
pub fn is_locked(path: &Path) -> bool {
    crate::plain::open(path, File::options().read(true)).is_ok_and(|f| {
        let held = rustix::fs::flock(&f, rustix::fs::FlockOperation::NonBlockingLockShared).is_err();
        unlock(&f);
        held
    })
}

/// Gives a lock back at once. Closing is not enough: a child that another thread is starting has the file, too, until
/// it becomes its program, and the lock lasts as long as one of them has it.
pub fn unlock(file: &File) {
    let _ = rustix::fs::flock(file, rustix::fs::FlockOperation::Unlock);
}

impl Drop for Journal {
    fn drop(&mut self) {
        unlock(&self.file);
    }
}

fn lock(file: &File, path: &Path) -> Result<(), StoreError> {
    rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        StoreError::Dir {
            path: path.to_owned(),
            problem: "another plimsoll is working on this run".into(),
            remedy: "Wait until it has ended, or stop it",
        }
    })
}

type Open = BTreeMap<u64, Thing>;

/// What the lines of a journal amount to.
struct Replayed {
    /// Things that are still there.
    open: Open,
    /// The last id given.
    last: Option<u64>,
    /// Empty where there is none.
    mark: String,
    /// Of prefixes of which it is known.
    objects: BTreeMap<u64, u64>,
}

fn replay(path: &Path, text: &str) -> Result<Replayed, StoreError> {
    let damaged = |n: usize, what: String| StoreError::Content {
        path: path.to_owned(),
        problem: format!("line {} is damaged: {what}", n + 1),
    };
    let mut all = Replayed { open: Open::new(), last: None, mark: String::new(), objects: BTreeMap::new() };
    for (n, text) in text.lines().enumerate() {
        match serde_json::from_str::<Line>(text) {
            Ok(Line::Header { format, .. }) if format == UNMARKED_FORMAT => {}
            Ok(Line::Header { format, mark }) if format == JOURNAL_FORMAT => {
                if !is_mark(&mark) || !all.mark.is_empty() {
                    return Err(damaged(n, "it has no mark of a run, or another one".into()));
                }
                all.mark = mark;
            }
            Ok(Line::Header { format, .. }) => {
                return Err(StoreError::Format {
                    path: path.to_owned(),
                    found: format,
                    wanted: JOURNAL_FORMAT,
                });
            }
            Ok(Line::Created { id, thing, objects }) => {
                all.last = all.last.max(Some(id));
                all.objects.extend(objects.map(|n| (id, n)));
                all.open.insert(id, thing);
            }
            Ok(Line::Removed { id } | Line::Kept { id }) => drop(all.open.remove(&id)),
            // A line without its end was being written when the run was killed: nothing followed from it.
            Err(_) if torn(text) => {}
            Err(e) => return Err(damaged(n, e.to_string())),
        }
    }
    Ok(all)
}

/// A prefix of a line: it lacks its closing brace.
fn torn(line: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(line).is_err_and(|e| e.is_eof()) || line.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_objects_were_sent_is_known_to_who_opens_it_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let mut j = Journal::open(&path).unwrap();
        let (one, other) = (j.creating(things().remove(0)).unwrap(), j.creating(things().remove(1)).unwrap());
        j.put_there(one, 7).unwrap();
        let before = j.pending();
        drop(j);
        let mut again = Journal::open(&path).unwrap();
        assert_eq!((again.objects(one), again.objects(other)), (Some(7), None));
        assert_eq!(again.pending(), before, "it is still one thing");
        again.removed(one).unwrap();
        again.put_there(one, 8).unwrap();
        assert_eq!(pending(&path).unwrap().len(), 1, "what is gone does not come back");
    }

    #[test]
    fn what_was_kept_can_be_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        assert!(kept(&path).unwrap().is_empty());
        let mut j = Journal::open(&path).unwrap();
        for thing in things() {
            let id = j.creating(thing).unwrap();
            if id == 0 {
                j.removed(id).unwrap();
            }
        }
        // The latest first, as at the end of a run.
        for (id, _) in j.pending() {
            j.kept(id).unwrap();
        }
        assert_eq!(kept(&path).unwrap(), things()[1..]);
        assert_eq!(j.take_back_kept().unwrap(), 2);
        let pending: Vec<Thing> = j.pending().into_iter().rev().map(|(_, t)| t).collect();
        assert_eq!((pending, kept(&path).unwrap()), (things()[1..].to_vec(), Vec::new()));
        let (id, _) = j.pending()[0];
        j.removed(id).unwrap();
        assert_eq!(j.take_back_kept().unwrap(), 0, "gone is gone");
        assert_eq!(super::pending(&path).unwrap().len(), 1);
    }

    fn things() -> Vec<Thing> {
        vec![
            Thing::Bucket { target: "t".into(), bucket: "b".into() },
            Thing::File { path: "/tmp/x".into() },
            Thing::Process { pid: 7, start_ticks: 8, boot_id: "z".into() },
        ]
    }

    #[test]
    fn remembers_what_is_open_over_a_kill() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let mut j = Journal::open(&path).unwrap();
        let ids: Vec<_> = things().into_iter().map(|t| j.creating(t).unwrap()).collect();
        j.removed(ids[1]).unwrap();
        drop(j);
        let mut j = Journal::open(&path).unwrap();
        let all = things();
        assert_eq!(j.pending(), vec![(ids[2], all[2].clone()), (ids[0], all[0].clone())]);
        assert_eq!(pending(&path).unwrap(), j.pending());
        j.kept(ids[0]).unwrap();
        assert_eq!(kept(&path).unwrap(), vec![all[0].clone()]);
    }

    #[test]
    fn a_run_that_has_ended_is_not_held_by_a_child_that_has_its_file_still() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let j = Journal::open(&path).unwrap();
        // What a child has between its start and its program.
        let childs = j.file.try_clone().unwrap();
        assert!(is_locked(&path));
        drop(j);
        assert!(!is_locked(&path));
        Journal::open(&path).unwrap();
        drop(childs);
    }

    #[test]
    fn every_truncation_is_readable_and_a_prefix_of_the_truth() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let mut j = Journal::open(&path).unwrap();
        for t in things() {
            j.creating(t).unwrap();
        }
        drop(j);
        let text = std::fs::read(&path).unwrap();
        let whole = std::str::from_utf8(&text).unwrap().lines().count();
        for cut in 0..=text.len() {
            std::fs::write(&path, &text[..cut]).unwrap();
            let complete = text[..cut].iter().filter(|b| **b == b'\n').count();
            let mut j = Journal::open(&path).unwrap();
            // A line whose newline alone is missing is complete.
            let open = j.pending().len();
            assert!(open + 1 == complete.max(1) || open == complete, "{cut}: {open} of {complete}/{whole}");
            let id = j.creating(Thing::File { path: "/y".into() }).unwrap();
            drop(j);
            assert!(pending(&path).unwrap().iter().any(|(i, _)| *i == id));
        }
    }

    #[test]
    fn a_run_keeps_its_mark_and_no_other_run_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let mark = Journal::open(&path).unwrap().mark().to_owned();
        assert!(is_mark(&mark), "{mark}");
        assert_eq!(Journal::open(&path).unwrap().mark(), mark);
        std::fs::remove_file(&path).unwrap();
        assert_ne!(Journal::open(&path).unwrap().mark(), mark);
        for not in ["", ".", "x", "id.0123", "a b.0123456789abcdef0123456789abcdef"] {
            std::fs::write(
                &path,
                format!("{{\"entry\":\"header\",\"format\":\"{JOURNAL_FORMAT}\",\"mark\":\"{not}\"}}\n"),
            )
            .unwrap();
            assert!(Journal::open(&path).unwrap_err().to_string().contains("no mark"), "{not}");
        }
    }

    #[test]
    fn an_old_journal_is_read_and_gets_a_mark_for_what_follows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let old = r#"{"entry":"header","format":"plimsoll.journal/1"}
{"entry":"created","id":0,"thing":"file","path":"/tmp/x"}
"#;
        std::fs::write(&path, old).unwrap();
        assert_eq!(pending(&path).unwrap().len(), 1);
        let mut j = Journal::open(&path).unwrap();
        let mark = j.mark().to_owned();
        j.creating(Thing::File { path: "/tmp/y".into() }).unwrap();
        drop(j);
        let j = Journal::open(&path).unwrap();
        assert_eq!((j.mark(), j.pending().len()), (mark.as_str(), 2));
    }

    #[test]
    fn a_journal_that_is_a_link_is_neither_read_nor_written() {
        let dir = tempfile::tempdir().unwrap();
        let (path, theirs) = (dir.path().join("journal"), dir.path().join("theirs"));
        std::fs::write(&theirs, "no newline").unwrap();
        std::os::unix::fs::symlink(&theirs, &path).unwrap();
        assert!(Journal::open(&path).unwrap_err().to_string().contains("symbolic link"));
        assert!(pending(&path).is_err() && kept(&path).is_err() && !is_locked(&path));
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "no newline");
    }

    #[test]
    fn one_run_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let j = Journal::open(&path).unwrap();
        assert!(is_locked(&path));
        assert!(Journal::open(&path).unwrap_err().to_string().contains("another plimsoll"));
        drop(j);
        assert!(!is_locked(&path));
    }
}
