//! `--status-interval`: what has been measured so far, in fio's formats, again and again while the run goes on.
//!
//! The run's own directory is read: what is in it is whole up to its last frame (a second old at most). A document shows the
//! run up to its due time, and so it is written when that has been recorded: somewhat later, and complete.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_report::fio::{self, Format};
use plimsoll_store::RunDir;

use crate::fault::Fault;
use crate::{out_file, output};

/// Where documents go: stdout, or a file that grows.
#[derive(Debug, Clone)]
pub struct Documents {
    pub formats: Vec<Format>,
    file: Option<PathBuf>,
    /// Whether this run has written to the file: before that, it still holds what it held.
    begun: Arc<AtomicBool>,
}

impl Documents {
    /// An error: there is no place for them.
    pub fn new(formats: Vec<Format>, file: Option<PathBuf>) -> Result<Self, Fault> {
        file.as_deref().map_or(Ok(()), out_file::check)?;
        Ok(Self { formats, file, begun: Arc::default() })
    }

    pub fn write(&self, text: &str) -> Result<(), Fault> {
        let Some(file) = &self.file else { return output::print(text) };
        // The first one empties the file, so that it holds this run's documents only.
        if !self.begun.swap(true, Ordering::Relaxed) {
            return out_file::write(file, text.as_bytes());
        }
        let append =
            || std::fs::File::options().append(true).create(true).open(file)?.write_all(text.as_bytes());
        append().map_err(|e| out_file::cannot(file, &e.to_string()))
    }

    /// The run up to a time since its start; `None` before there is anything.
    fn until(&self, run: &Path, time: Duration) -> Option<String> {
        let until_ns = u64::try_from(time.as_nanos()).ok();
        let report = fio::read_until(&RunDir::open(run).ok()?, until_ns).ok()?;
        let any = report.jobs.iter().any(|j| j.read.total_ios + j.write.total_ios > 0);
        any.then(|| fio::render(&report, &self.formats))
    }
}

/// After this, what was measured is on disk: a frame holds a second at most, and slices wait for the slowest worker.
const RECORDED_AFTER: Duration = Duration::from_millis(1300);
/// How often it is looked whether the run has begun.
const LOOK: Duration = Duration::from_millis(20);

/// Writes a document at this distance, until it is dropped.
#[derive(Debug)]
pub struct StatusWriter {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl StatusWriter {
    pub fn start(every: Duration, documents: Documents, run: Arc<OnceLock<PathBuf>>) -> Self {
        let (stop, stopped) = channel::<()>();
        let every = every.max(Duration::from_millis(100));
        let body = move || {
            let ended = |wait| stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout);
            let dir = loop {
                match run.get() {
                    Some(dir) => break dir,
                    None if ended(LOOK) => return,
                    None => {}
                }
            };
            let began = Instant::now();
            // A reader that went away is told at the end, with the result.
            let write = |time| documents.until(dir, time).is_none_or(|text| documents.write(&text).is_ok());
            let mut due = every;
            loop {
                if ended((due + RECORDED_AFTER).saturating_sub(began.elapsed())) {
                    break;
                }
                if !write(due) {
                    return;
                }
                due += every;
            }
            // The run has ended: those that were due before that, and are recorded now. The last is the result itself.
            let at = |report: Result<fio::FioReport, _>| report.map_or(0, |r| r.timestamp_ms);
            let Ok(run) = RunDir::open(dir) else { return };
            let end_ms = at(fio::read(&run));
            let before_the_end = |due: Duration| {
                u64::try_from(due.as_nanos()).is_ok_and(|ns| at(fio::read_until(&run, Some(ns))) < end_ms)
            };
            while due < began.elapsed() && before_the_end(due) && write(due) {
                due += every;
            }
        };
        // Without a thread there is no status; the result comes all the same.
        let thread = std::thread::Builder::new().name("status".into()).spawn(body).ok();
        Self { stop: Some(stop), thread }
    }
}

impl Drop for StatusWriter {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
