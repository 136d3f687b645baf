//! The index as its users have it: opened or made anew, brought up to date, asked.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll_store::RunDir;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::course::RunCourse;
use crate::entry::{IndexedLine, IndexedRun};
use crate::filter::RunFilter;
use crate::{IndexError, RunStanding, entry, fingerprint, place, tables};

/// So many runs are read before what is known is put down: a kill costs no more.
const CHUNK: usize = 500;
/// To make an index anew a few files are removed and made. (A choice: longer than a busy disk takes for that.)
const OTHERS_MOMENT: Duration = Duration::from_secs(5);

/// An index over the runs below one directory.
#[derive(Debug)]
pub struct RunIndex {
    root: PathBuf,
    db: Connection,
    /// Where it is; `None`: in memory, for this process alone.
    file: Option<PathBuf>,
    /// Held shared while the file is open: nobody removes it under us.
    lock: Option<File>,
    note: Option<String>,
    /// SQLite's own number of the file's content, as other connections left it when it was last asked for.
    version: Option<i64>,
}

/// What bringing an index up to date came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Runs that there are.
    pub runs: usize,
    /// Of these, read because they were new, had changed, or are still going on.
    pub read: usize,
    /// Known before, and there no more.
    pub gone: usize,
}

impl RunIndex {
    /// The index over `root` in the user's cache (`XDG_CACHE_HOME`, else `~/.cache`). Where that cannot be used it is made in memory;
    /// [`Self::note`] says why.
    pub fn open(root: &Path) -> Result<Self, IndexError> {
        match place::index_file(root) {
            Some(file) => Self::open_at(root, &file),
            None => Self::in_memory(root, None),
        }
    }

    /// The same in a file of one's own. A damaged one, or one of another version, is made anew.
    pub fn open_at(root: &Path, file: &Path) -> Result<Self, IndexError> {
        match Self::on_disk(root, file) {
            Ok(index) => Ok(index),
            Err(why) => Self::in_memory(root, Some(format!("{} is not used: {why}", file.display()))),
        }
    }

    fn on_disk(root: &Path, file: &Path) -> Result<Self, String> {
        let (dir, name) = file.parent().zip(file.file_name()).ok_or("it is no file name")?;
        std::fs::create_dir_all(dir).map_err(|e| e.to_string())?;
        // Links on the way to the cache are its owner's; one in place of the file is not followed.
        let file = &std::fs::canonicalize(dir).map_err(|e| e.to_string())?.join(name);
        let lock = lock_file(file).map_err(|e| format!("its lock cannot be had: {e}"))?;
        hold(&lock)?;
        let db = match connect(file) {
            Ok(db) => db,
            Err(IndexError::Damaged(_)) => remade(file, &lock)?,
            Err(e) => return Err(e.to_string()),
        };
        Ok(Self {
            root: root.into(),
            db,
            file: Some(file.into()),
            lock: Some(lock),
            note: None,
            version: None,
        })
    }

    fn in_memory(root: &Path, note: Option<String>) -> Result<Self, IndexError> {
        let db = Connection::open_in_memory()?;
        tables::prepare(&db)?;
        Ok(Self { root: root.into(), db, file: None, lock: None, note, version: None })
    }

    /// Why the index is in memory, in words, where it was to be in a file: all runs are read each time.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Reads what is new or has changed since, and forgets what is gone.
    pub fn refresh(&mut self) -> Result<Refreshed, IndexError> {
        self.sound(|index| index.brought_up_to_date())
    }

    /// Whether another process wrote into the index since this was last asked: what it found there, a [`Self::refresh`] of ours no longer
    /// finds to be new.
    pub fn changed_elsewhere(&mut self) -> Result<bool, IndexError> {
        let version: i64 = self.db.pragma_query_value(None, "data_version", |row| row.get(0))?;
        let before = self.version.replace(version);
        Ok(before != Some(version))
    }

    /// The runs that are wanted, oldest first, as of the last [`Self::refresh`].
    pub fn runs(&mut self, filter: &RunFilter) -> Result<Vec<IndexedRun>, IndexError> {
        let found = self.sound(|index| tables::runs(&index.db, filter))?;
        let at_home = |(dir, mut run): (String, IndexedRun)| {
            run.entry.path = self.root.join(dir);
            run
        };
        Ok(found.into_iter().map(at_home).collect())
    }

    /// The lines of the runs that are wanted, oldest first, in the order of each summary.
    pub fn lines(&mut self, filter: &RunFilter) -> Result<Vec<IndexedLine>, IndexError> {
        self.sound(|index| tables::lines(&index.db, filter))
    }

    /// How the rates of the runs went, by the names of their directories, as far as [`Self::read_courses`] has come. A run without a rate has
    /// none.
    pub fn courses(&mut self) -> Result<HashMap<String, RunCourse>, IndexError> {
        self.sound(|index| tables::courses(&index.db))
    }

    /// Reads the courses of runs that have come to their end since, the newest first, for about so long: a record of hours is a matter of
    /// seconds, and ten thousand of them are nothing that a list waits for. How many were read; 0: there are no more.
    pub fn read_courses(&mut self, time: Duration) -> Result<usize, IndexError> {
        self.sound(|index| index.courses_for(time))
    }

    fn courses_for(&mut self, time: Duration) -> Result<usize, IndexError> {
        let until = Instant::now() + time;
        let mut read = Vec::new();
        for run in tables::without_course(&self.db)? {
            if !read.is_empty() && Instant::now() >= until {
                break;
            }
            let course = RunDir::open(&self.root.join(&run.0)).ok().and_then(|dir| RunCourse::of(&dir));
            read.push((run, course));
        }
        if read.is_empty() {
            return Ok(0);
        }
        let all = self.db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        read.iter().try_for_each(|(run, course)| tables::put_course(&all, run, course.as_ref()))?;
        all.commit()?;
        Ok(read.len())
    }

    /// Does what is asked; where the file turns out to be damaged, once more with one that is made anew.
    fn sound<T>(&mut self, ask: impl Fn(&mut Self) -> Result<T, IndexError>) -> Result<T, IndexError> {
        match ask(self) {
            Err(IndexError::Damaged(why)) => {
                self.make_anew(&why)?;
                self.brought_up_to_date()?;
                ask(self)
            }
            done => done,
        }
    }

    fn make_anew(&mut self, why: &str) -> Result<(), IndexError> {
        let memory = || -> Result<Connection, IndexError> {
            let db = Connection::open_in_memory()?;
            tables::prepare(&db)?;
            Ok(db)
        };
        // The damaged file is closed before it goes.
        self.db = memory()?;
        let (Some(file), Some(lock)) = (self.file.take(), &self.lock) else { return Ok(()) };
        match remade(&file, lock) {
            Ok(db) => (self.db, self.file) = (db, Some(file)),
            Err(e) => {
                self.note =
                    Some(format!("{} is damaged ({why}) and cannot be made anew: {e}", file.display()));
            }
        }
        Ok(())
    }

    fn brought_up_to_date(&mut self) -> Result<Refreshed, IndexError> {
        let known = tables::known(&self.db)?;
        let mut seen: HashSet<String> = HashSet::with_capacity(known.len());
        let mut stale = Vec::new();
        let mut done = Refreshed::default();
        for dir in directories(&self.root)? {
            let path = self.root.join(&dir);
            let Some(print) = fingerprint::of(&path) else { continue };
            let current = known.get(&dir).is_some_and(|k| {
                k.print == print.hash
                    && (k.settled || is_running(&path) == (k.standing == RunStanding::Running.name()))
            });
            if !current {
                let Ok(run) = RunDir::open(&path) else { continue };
                stale.push((dir.clone(), print, run));
            }
            done.runs += 1;
            seen.insert(dir);
        }
        for chunk in stale.chunks(CHUNK) {
            // Reading takes long, and nobody waits for it.
            let read: Vec<_> = chunk.iter().map(|(dir, print, run)| (dir, print, entry::read(run))).collect();
            let all = self.db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            read.iter().try_for_each(|(dir, print, entry)| tables::put(&all, dir, print, entry))?;
            all.commit()?;
            done.read += chunk.len();
        }
        let gone: Vec<&String> = known.keys().filter(|dir| !seen.contains(*dir)).collect();
        done.gone = gone.len();
        if !gone.is_empty() {
            let all = self.db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            gone.iter().try_for_each(|dir| tables::remove(&all, dir))?;
            all.commit()?;
        }
        Ok(done)
    }
}

/// Whether a process works on the run in this directory now.
fn is_running(path: &Path) -> bool {
    plimsoll_store::journal::is_locked(&path.join("journal"))
}

/// Names of the directories below `root`; none where there is no such directory. A name that is no UTF-8 is none that a run has.
fn directories(root: &Path) -> Result<Vec<String>, IndexError> {
    let broken = |source| IndexError::Root { path: root.to_owned(), source };
    let entries = match std::fs::read_dir(root) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(broken(e)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(broken)?;
        let is_file = entry.file_type().is_ok_and(|t| t.is_file());
        if let Ok(name) = entry.file_name().into_string()
            && !is_file
        {
            names.push(name);
        }
    }
    Ok(names)
}

/// A file beside the index, whose lock says that the index is open.
fn lock_file(file: &Path) -> std::io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).open(file.with_extension("lock"))
}

/// Holds the index open. Whoever makes it anew holds it alone for a moment; a process that was stopped in that moment may hold it for ever.
fn hold(lock: &File) -> Result<(), String> {
    let until = Instant::now() + OTHERS_MOMENT;
    loop {
        match flock(lock, FlockOperation::NonBlockingLockShared) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            Err(Errno::WOULDBLOCK) => return Err("another process does not let it go".into()),
            Err(e) => return Err(e.to_string()),
        }
    }
}

fn connect(file: &Path) -> Result<Connection, IndexError> {
    // A link in the cache leads to somebody else's file.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let db = Connection::open_with_flags(file, flags)?;
    tables::prepare(&db)?;
    Ok(db)
}

/// Removes the file, by its name in our cache, and makes it anew; not while another process has it open.
fn remade(file: &Path, lock: &File) -> Result<Connection, String> {
    if flock(lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        // What was asked for in vain may have cost what was held.
        hold(lock)?;
        return Err("another process has it open, and it cannot be made anew meanwhile".into());
    }
    let made = || -> Result<Connection, String> {
        // Somebody else may have made it anew while we waited to.
        if let Ok(db) = connect(file)
            && tables::are_sound(&db)
        {
            return Ok(db);
        }
        for suffix in ["", "-journal"] {
            let mut name = file.as_os_str().to_owned();
            name.push(suffix);
            match std::fs::remove_file(&name) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.to_string()),
                _ => {}
            }
        }
        connect(file).map_err(|e| e.to_string())
    };
    let db = made();
    hold(lock)?;
    db
}
