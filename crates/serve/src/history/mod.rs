//! The history of a directory: its runs and their lines, by the index, held in memory so that a page's filter is a matter of milliseconds.
//!
//! It is read when somebody asks, in a thread that gives way, and then rests for many times as long as that took: a machine that measures
//! is not kept busy by a page that is left open. Who asks meanwhile is answered from what was read last.

mod compared;
mod listed;
mod pivoted;
mod query;
mod trended;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_index::{IndexedLine, IndexedRun, RunCourse, RunIndex};
use plimsoll_model::text::clean;
use plimsoll_store::net;

#[cfg(test)]
use compared::CompareAnswer;
pub use compared::compare;
pub use listed::{FilterOffers, ListAnswer, ListedRun, RUNS_SHOWN, list};
pub use pivoted::pivot;
pub use query::{BadQuery, HistoryQuery};
pub use trended::trend;

use crate::follow::give_way;

/// What is older is read again when somebody asks.
const LEAST_REST: Duration = Duration::from_secs(1);
/// A reading is followed by so many times its own length of rest: 5 % of one CPU at the most, as for a run that is followed.
const REST_PER_READING: u32 = 19;
/// What is older is not shown without waiting for what is newer: somebody comes back to a page after a while.
const STALE: Duration = Duration::from_secs(10);
/// The rates of runs are drawn beside the list, and read in parts of this time, the newest runs first, once there is a list. (A choice:
/// those of a page or two.)
const FOR_COURSES: Duration = Duration::from_millis(500);
/// Network tests that are listed, the newest.
const MOST_TESTS: usize = 100;

/// A run with its lines' place among all.
#[derive(Debug)]
pub struct HistoryRun {
    pub run: IndexedRun,
    pub lines: Range<usize>,
    /// `None`: it has no rate, or its record was not read yet.
    pub course: Option<RunCourse>,
}

/// A network test, in a list.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct HistoryTest {
    pub id: String,
    pub started_at: String,
    pub hosts: usize,
    pub result: String,
    pub status: String,
}

/// All that was known at one time. Texts are clean.
#[derive(Debug, Default)]
pub struct History {
    /// Newest first.
    pub runs: Vec<HistoryRun>,
    pub lines: Vec<IndexedLine>,
    /// Newest first.
    pub tests: Vec<HistoryTest>,
    /// What there is to filter by.
    pub offers: FilterOffers,
    /// Why every run was read anew, where it was.
    pub note: Option<String>,
}

#[derive(Debug, Default)]
struct Reading {
    history: Option<(Arc<History>, Instant)>,
    under_way: bool,
    rests_until: Option<Instant>,
    problem: Option<String>,
}

/// What there is to answer with.
#[derive(Debug)]
pub enum HistoryState {
    Read(Arc<History>),
    /// Nothing yet: ten thousand runs are read for the first time.
    Reading,
    Failed(String),
}

/// The history of one directory.
#[derive(Debug)]
pub struct RunHistory {
    root: PathBuf,
    reading: Mutex<Reading>,
    read: Condvar,
    index: Mutex<Option<RunIndex>>,
    /// Where the index is; `None`: in the user's cache.
    file: Option<PathBuf>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RunHistory {
    /// Nothing is read before somebody asks.
    pub fn new(root: PathBuf, file: Option<PathBuf>) -> Arc<Self> {
        Arc::new(Self {
            root,
            reading: Mutex::default(),
            read: Condvar::new(),
            index: Mutex::default(),
            file,
        })
    }

    /// What is known. What is not fresh is read again; where nothing is known, or it is stale, that is waited for, at most so long.
    pub fn look(self: &Arc<Self>, patience: Duration) -> HistoryState {
        let mut reading = held(&self.reading);
        let rests = reading.rests_until.is_some_and(|until| Instant::now() < until);
        if !reading.under_way && !rests {
            let of_thread = Arc::clone(self);
            let read = move || {
                give_way();
                of_thread.read_all();
            };
            match std::thread::Builder::new().name("reads-history".into()).spawn(read) {
                Ok(_) => reading.under_way = true,
                Err(e) => reading.problem = Some(format!("no thread can be had: {e}")),
            }
        }
        let is_stale = |r: &Reading| r.history.as_ref().is_none_or(|(_, at)| at.elapsed() > STALE);
        if is_stale(&reading) {
            let waited = self.read.wait_timeout_while(reading, patience, |r| r.under_way && is_stale(r));
            reading = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        match (&reading.history, &reading.problem) {
            (Some((history, _)), _) => HistoryState::Read(Arc::clone(history)),
            (None, Some(why)) => HistoryState::Failed(why.clone()),
            (None, None) => HistoryState::Reading,
        }
    }

    fn read_all(&self) {
        let begun = Instant::now();
        let before = held(&self.reading).history.as_ref().map(|(h, _)| Arc::clone(h));
        let list = guarded(|| self.history(before.as_deref()))
            .map(|changed| changed.map(Arc::new).or(before).unwrap_or_default());
        {
            let mut reading = held(&self.reading);
            match &list {
                Ok(history) => {
                    reading.history = Some((Arc::clone(history), Instant::now()));
                    reading.problem = None;
                }
                Err(why) => reading.problem = Some(why.clone()),
            }
        }
        // What is drawn beside the list keeps nobody from it.
        self.read.notify_all();
        let drawn = list.and_then(|history| guarded(|| self.with_more_courses(&history)));
        let ended = Instant::now();
        let mut reading = held(&self.reading);
        reading.under_way = false;
        reading.rests_until = Some(ended + LEAST_REST.max((ended - begun) * REST_PER_READING));
        if let Ok(Some(history)) = drawn {
            reading.history = Some((Arc::new(history), ended));
        }
        drop(reading);
        self.read.notify_all();
    }

    /// `None`: there are no more.
    fn with_more_courses(&self, history: &History) -> Result<Option<History>, String> {
        let mut held = held(&self.index);
        let Some(index) = held.as_mut() else { return Ok(None) };
        if index.read_courses(FOR_COURSES).map_err(|e| e.to_string())? == 0 {
            return Ok(None);
        }
        let mut more = History { tests: history.tests.clone(), ..history.again() };
        more.draw(index.courses().map_err(|e| e.to_string())?);
        Ok(Some(more))
    }

    /// All there is; `None`: as it was before.
    fn history(&self, before: Option<&History>) -> Result<Option<History>, String> {
        let tests = self.tests(before);
        if !self.root.is_dir() {
            return Ok(Some(History { tests, ..History::default() }));
        }
        let mut held = held(&self.index);
        let index = match held.take() {
            Some(index) => held.insert(index),
            None => {
                let opened = match &self.file {
                    Some(file) => RunIndex::open_at(&self.root, file),
                    None => RunIndex::open(&self.root),
                };
                held.insert(opened.map_err(|e| e.to_string())?)
            }
        };
        let found = index.refresh().map_err(|e| e.to_string())?;
        // Asked in any case: the answer is since the last time.
        let elsewhere = index.changed_elsewhere().map_err(|e| e.to_string())?;
        let same = |b: &&History| found.read == 0 && found.gone == 0 && b.runs.len() == found.runs;
        if let Some(b) = before.filter(same).filter(|_| !elsewhere) {
            return Ok((b.tests != tests).then(|| History { tests, ..b.again() }));
        }
        let all = Default::default();
        let runs = index.runs(&all).map_err(|e| e.to_string())?;
        let lines = index.lines(&all).map_err(|e| e.to_string())?;
        let courses = index.courses().map_err(|e| e.to_string())?;
        let note = index.note().map(str::to_owned);
        let mut found = History { tests, note, ..History::of(runs, lines) };
        found.draw(courses);
        Ok(Some(found))
    }

    /// A record is never changed: what is known is not read again.
    fn tests(&self, before: Option<&History>) -> Vec<HistoryTest> {
        let known = |id: &str| before.and_then(|b| b.tests.iter().find(|t| t.id == id)).cloned();
        let text = |t: &str| clean(t).into_owned();
        let read = |id: &String| {
            known(id).unwrap_or_else(|| match net::find(&self.root, id).and_then(|path| net::read(&path)) {
                Ok(r) => HistoryTest {
                    id: text(id),
                    started_at: text(&r.made_at),
                    hosts: r.hosts.len(),
                    result: text(&plimsoll_report::net_result(&r)),
                    status: plimsoll_report::net_status(&r).into(),
                },
                Err(e) => HistoryTest {
                    id: text(id),
                    started_at: String::new(),
                    hosts: 0,
                    result: text(&e.to_string()),
                    status: "cannot be read".into(),
                },
            })
        };
        net::ids(&self.root).iter().rev().take(MOST_TESTS).map(read).collect()
    }
}

/// A bug in what is done must not leave its readers waiting for ever.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    caught.unwrap_or_else(|_| Err("a bug in plimsoll".into()))
}

fn clean_labels(labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    labels.iter().map(|(k, v)| (clean(k).into_owned(), clean(v).into_owned())).collect()
}

impl History {
    /// Both oldest first, lines in the order of their runs.
    pub fn of(runs: Vec<IndexedRun>, mut lines: Vec<IndexedLine>) -> Self {
        let mut at = 0;
        let mut all: Vec<HistoryRun> = Vec::with_capacity(runs.len());
        for mut run in runs {
            let from = at;
            while lines.get(at).is_some_and(|l| l.run == run.entry.id) {
                at += 1;
            }
            for text in [&mut run.what, &mut run.result, &mut run.mark].into_iter().chain(&mut run.targets) {
                *text = clean(text).into_owned();
            }
            run.entry.labels = clean_labels(&run.entry.labels);
            all.push(HistoryRun { run, lines: from..at, course: None });
        }
        for line in &mut lines {
            line.labels = clean_labels(&line.labels);
            line.workload = clean(&line.workload).into_owned();
            line.op = clean(&line.op).into_owned();
        }
        all.reverse();
        let offers = FilterOffers::of(all.iter().map(|r| &r.run));
        Self { runs: all, lines, offers, ..Self::default() }
    }

    /// By the names of the runs' directories.
    fn draw(&mut self, mut courses: HashMap<String, RunCourse>) {
        for r in &mut self.runs {
            let dir = r.run.entry.path.file_name().and_then(|name| name.to_str());
            r.course = dir.and_then(|dir| courses.remove(dir));
        }
    }

    fn again(&self) -> Self {
        let run = |r: &HistoryRun| HistoryRun {
            run: r.run.clone(),
            lines: r.lines.clone(),
            course: r.course.clone(),
        };
        Self {
            runs: self.runs.iter().map(run).collect(),
            lines: self.lines.clone(),
            tests: Vec::new(),
            offers: self.offers.clone(),
            note: self.note.clone(),
        }
    }

    /// The lines of the runs that are wanted, newest run first. Sums of workloads that ran together are no line of a load.
    fn lines_of<'a>(
        &'a self,
        query: &'a HistoryQuery,
    ) -> impl Iterator<Item = (&'a HistoryRun, &'a IndexedLine)> {
        let runs = self.runs.iter().filter(|r| query.filter.takes(&r.run));
        runs.flat_map(|r| self.lines[r.lines.clone()].iter().map(move |l| (r, l)))
            .filter(|(_, l)| l.together == 0)
            .filter(|(_, l)| query.filter.ops.is_empty() || query.filter.ops.contains(&l.op))
    }

    fn find(&self, id: &str) -> Option<&HistoryRun> {
        self.runs.iter().find(|r| r.run.entry.id == id)
    }
}

#[cfg(test)]
pub(crate) mod support;
#[cfg(test)]
mod tests;
