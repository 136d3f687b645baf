//! The directory of a cluster: what is made is noted in its journal before, so that whoever comes after a kill finds it.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll_setup::SetupError;
use plimsoll_setup::removal::local_things;
use plimsoll_setup::safety::marker::Content;
use plimsoll_setup::safety::trees;
use plimsoll_store::process::ProcessNote;
use plimsoll_store::{Journal, journal};
use rustix::process::Signal;

use crate::spec::check_name;

const PREFIX: &str = "plimsoll-cluster-";
const JOURNAL: &str = "journal";
/// The process that runs it.
const PROCESS: &str = "process.json";
/// How long a cluster may take to be taken down by its own process.
const DOWN: Duration = Duration::from_secs(60);

/// A cluster's directory, whether there is one or not.
#[derive(Debug, Clone)]
pub struct BoxHome {
    name: String,
    dir: PathBuf,
}

/// One that is this process's.
#[derive(Debug)]
pub(crate) struct OwnHome {
    pub dir: PathBuf,
    pub journal: Journal,
}

/// What is found at a place.
enum Found {
    Nothing,
    /// Somebody runs it.
    Running,
    /// What a killed one left, and its mark.
    Left,
    /// Nothing but what comes before its mark: one is being made just now, or was killed then.
    Bare,
    /// Not ours, and why.
    Foreign(String),
}

impl BoxHome {
    /// Of a cluster of this name: in TMPDIR where that is set, else in /var/tmp, which is on a disk.
    pub fn of(name: &str) -> Result<Self, SetupError> {
        check_name(name)?;
        Ok(Self { name: name.to_owned(), dir: base().join(format!("{PREFIX}{name}")) })
    }

    /// The directory itself.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes it; what a killed cluster of this name left is taken down before. One that runs, or is somebody else's, is refused.
    pub(crate) fn claim(&self) -> Result<OwnHome, SetupError> {
        match look_settled(&self.dir) {
            Found::Nothing => {}
            Found::Bare => remove_bare(&self.dir)?,
            Found::Left => take_down(&self.dir)?,
            Found::Running => {
                return Err(SetupError::input(
                    format!("a cluster named '{}' is running", self.name),
                    format!(
                        "Stop it (plimsoll target cluster stop --name {}), or choose another --name",
                        self.name
                    ),
                ));
            }
            Found::Foreign(why) => return Err(foreign(&self.dir, &why)),
        }
        let cannot = |e: io::Error| {
            SetupError::input(
                format!("{} cannot be made: {e}", self.dir.display()),
                "Set TMPDIR to a directory on a disk, with a short path",
            )
        };
        fs::DirBuilder::new().mode(0o700).create(&self.dir).map_err(cannot)?;
        let journal = Journal::open(&self.dir.join(JOURNAL))?;
        trees::mark_made(&self.dir, journal.mark()).map_err(cannot)?;
        let note = serde_json::to_string(&ProcessNote::own()).expect("a note is plain data");
        fs::write(self.dir.join(PROCESS), note).map_err(cannot)?;
        Ok(OwnHome { dir: self.dir.clone(), journal })
    }

    /// Whether one runs.
    pub fn is_running(&self) -> bool {
        matches!(look(&self.dir), Found::Running)
    }

    /// Ends one that runs, and takes down what a killed one left. False: there is nothing.
    pub fn stop(&self) -> Result<bool, SetupError> {
        match look_settled(&self.dir) {
            Found::Nothing => Ok(false),
            Found::Bare => remove_bare(&self.dir).map(|()| true),
            Found::Foreign(why) => Err(foreign(&self.dir, &why)),
            Found::Left => take_down(&self.dir).map(|()| true),
            Found::Running => self.end().map(|()| true),
        }
    }

    /// Asks the process that runs it to end, and waits until it has.
    fn end(&self) -> Result<(), SetupError> {
        let note = fs::read_to_string(self.dir.join(PROCESS)).ok();
        let note =
            note.and_then(|text| serde_json::from_str::<ProcessNote>(&text).ok()).filter(ProcessNote::lives);
        let Some(note) = note else {
            return Err(SetupError::input(
                "the cluster is being started or taken down just now",
                "Call it again in a moment",
            ));
        };
        // Where nobody was signalled it is gone.
        note.signal(Signal::TERM, || matches!(look(&self.dir), Found::Running));
        let began = Instant::now();
        while note.lives() && began.elapsed() < DOWN {
            std::thread::sleep(Duration::from_millis(50));
        }
        match look(&self.dir) {
            Found::Nothing => Ok(()),
            Found::Left => take_down(&self.dir),
            _ => Err(SetupError::input(
                format!("process {} does not end", note.pid),
                format!("Kill it (kill -9 {}), and call this again", note.pid),
            )),
        }
    }
}

impl OwnHome {
    /// Removes all that the journal lists, and the directory. What stays is told, and found again by the next.
    pub fn remove(mut self) -> Result<(), SetupError> {
        remove(&self.dir, &mut self.journal)
    }
}

fn base() -> PathBuf {
    std::env::var_os("TMPDIR").filter(|v| !v.is_empty()).map_or_else(|| "/var/tmp".into(), PathBuf::from)
}

/// Takes down what killed clusters of this user left, whatever their names. What cannot be taken down is told, and stays.
pub fn sweep(tell: &mut dyn FnMut(String)) {
    for entry in fs::read_dir(base()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().is_none_or(|n| !n.starts_with(PREFIX)) || !matches!(look(&entry.path()), Found::Left)
        {
            continue;
        }
        match take_down(&entry.path()) {
            Ok(()) => {
                tell(format!("{} was left by a killed cluster, and is taken down", entry.path().display()))
            }
            Err(e) => tell(e.to_string()),
        }
    }
}

/// Whose it is: its mark and journal have to be of this directory and this user, and nobody else may look into it.
fn look(dir: &Path) -> Found {
    let facts = match fs::symlink_metadata(dir) {
        Ok(facts) => facts,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Found::Nothing,
        Err(e) => return Found::Foreign(e.to_string()),
    };
    if !facts.is_dir() || facts.uid() != rustix::process::geteuid().as_raw() || facts.mode() & 0o077 != 0 {
        return Found::Foreign("it is no directory of this user alone".into());
    }
    let path = dir.join(JOURNAL);
    match journal::mark_of(&path) {
        Some(mark) if trees::is_made(dir, &mark) => {
            if journal::is_locked(&path) {
                Found::Running
            } else {
                Found::Left
            }
        }
        _ if is_bare(dir) => Found::Bare,
        _ => Found::Foreign("no cluster's mark is in it".into()),
    }
}

/// One that is being made has its mark within a moment.
const MAKING: Duration = Duration::from_secs(1);

fn look_settled(dir: &Path) -> Found {
    let began = Instant::now();
    loop {
        match look(dir) {
            Found::Bare if began.elapsed() < MAKING => std::thread::sleep(Duration::from_millis(50)),
            found => return found,
        }
    }
}

/// Nobody loses anything by it: it is empty, or has a journal that lists nothing.
fn is_bare(dir: &Path) -> bool {
    let Ok(entries) = fs::read_dir(dir) else { return false };
    let path = dir.join(JOURNAL);
    let lists_nothing = || {
        let is_empty = fs::symlink_metadata(&path).is_ok_and(|f| f.is_file() && f.len() == 0);
        is_empty || Journal::is_one(&path) && journal::pending(&path).is_ok_and(|all| all.is_empty())
    };
    entries.flatten().all(|e| e.path() == path && lists_nothing())
}

fn remove_bare(dir: &Path) -> Result<(), SetupError> {
    let path = dir.join(JOURNAL);
    // Whoever is making it holds its lock; who had it since the look has made something of it.
    let held = path.exists().then(|| Journal::open(&path)).transpose()?;
    if !is_bare(dir) {
        return Err(foreign(dir, "something was made in it just now"));
    }
    let journal = if held.is_some() { fs::remove_file(&path) } else { Ok(()) };
    journal.and_then(|()| fs::remove_dir(dir)).map_err(|e| {
        SetupError::input(format!("{} cannot be removed: {e}", dir.display()), "Remove it manually")
    })
}

fn foreign(dir: &Path, why: &str) -> SetupError {
    SetupError::input(
        format!("{} is there and was not made by `plimsoll target cluster`: {why}", dir.display()),
        "Nothing in it was touched. Choose another --name, or move it away",
    )
}

fn take_down(dir: &Path) -> Result<(), SetupError> {
    let mut journal = Journal::open(&dir.join(JOURNAL))?;
    remove(dir, &mut journal)
}

fn remove(dir: &Path, journal: &mut Journal) -> Result<(), SetupError> {
    let left = local_things(journal, false, Content::Unknown)?;
    let gone = match left.is_empty() {
        true => {
            trees::remove_mounted(dir, journal.mark()).map_err(|e| vec![format!("{}: {e}", dir.display())])
        }
        false => Err(left),
    };
    gone.map_err(|left| {
        SetupError::input(
            format!("not all of a cluster could be taken down: {}", left.join("; ")),
            "Call `plimsoll target cluster stop` once more, or remove it manually",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(base: &Path) -> BoxHome {
        BoxHome { name: "box".into(), dir: base.join("plimsoll-cluster-box") }
    }

    #[test]
    fn what_is_not_ours_is_refused_and_not_touched() {
        let base = tempfile::tempdir().unwrap();
        let home = home(base.path());
        assert!(!home.stop().unwrap(), "there is nothing");
        fs::DirBuilder::new().mode(0o700).create(home.dir()).unwrap();
        fs::write(home.dir().join("thesis"), "mine").unwrap();
        for e in [home.claim().unwrap_err(), home.stop().unwrap_err()] {
            assert!(e.to_string().contains("Nothing in it was touched"), "{e}");
        }
        // A journal that somebody put there proves nothing: the directory's own mark is missing.
        drop(Journal::open(&home.dir().join(JOURNAL)).unwrap());
        assert!(home.claim().is_err());
        assert_eq!(fs::read_to_string(home.dir().join("thesis")).unwrap(), "mine");
        fs::remove_dir_all(home.dir()).unwrap();
        let elsewhere = base.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, home.dir()).unwrap();
        assert!(home.claim().is_err() && elsewhere.exists());
    }

    #[test]
    fn one_that_runs_is_refused_and_what_a_killed_one_left_is_taken_over() {
        let base = tempfile::tempdir().unwrap();
        let home = home(base.path());
        let own = home.claim().unwrap();
        assert!(home.is_running() && home.claim().unwrap_err().to_string().contains("is running"));
        fs::create_dir(own.dir.join("n1-d1")).unwrap();
        fs::write(own.dir.join("n1-d1/object"), "data").unwrap();
        // Killed: its lock goes with it, and its things stay.
        drop(own);
        assert!(!home.is_running());
        let own = home.claim().unwrap();
        assert!(!own.dir.join("n1-d1").exists());
        own.remove().unwrap();
        assert!(!home.dir().exists());
    }

    /// Killed before its mark was made, at each step.
    #[test]
    fn one_that_was_killed_before_its_mark_is_removed() {
        let base = tempfile::tempdir().unwrap();
        let home = home(base.path());
        let make = || fs::DirBuilder::new().mode(0o700).create(home.dir()).unwrap();
        make();
        assert!(home.stop().unwrap() && !home.dir().exists());
        make();
        fs::write(home.dir().join(JOURNAL), "").unwrap();
        assert!(home.stop().unwrap() && !home.dir().exists());
        make();
        drop(Journal::open(&home.dir().join(JOURNAL)).unwrap());
        home.claim().unwrap().remove().unwrap();
        // One that is being made is not taken away from whoever makes it.
        make();
        let held = Journal::open(&home.dir().join(JOURNAL)).unwrap();
        assert!(home.stop().is_err() && home.dir().join(JOURNAL).exists());
        drop(held);
        // Nor is what somebody keeps beside it, or what was made since it was looked at; and a file of that name need be no journal.
        fs::write(home.dir().join("thesis"), "mine").unwrap();
        assert!(home.stop().is_err() && remove_bare(home.dir()).is_err());
        assert!(home.dir().join("thesis").exists() && home.dir().join(JOURNAL).exists());
        fs::remove_file(home.dir().join("thesis")).unwrap();
        fs::write(home.dir().join(JOURNAL), "dear diary").unwrap();
        assert!(home.stop().is_err() && home.claim().is_err());
        assert_eq!(fs::read_to_string(home.dir().join(JOURNAL)).unwrap(), "dear diary");
    }
}
