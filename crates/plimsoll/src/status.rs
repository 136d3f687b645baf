//! `--status-interval`: what has been measured so far, in fio's formats, again and again while the run goes on.
//!
//! The run's own directory is read: what is in it is whole up to its last frame (a second old at most).

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_report::fio::{self, Format};
use plimsoll_store::RunDir;

use crate::fault::Fault;
use crate::output;

/// Where documents go: stdout, or a file that grows.
#[derive(Debug, Clone)]
pub struct Documents {
    pub formats: Vec<Format>,
    pub file: Option<PathBuf>,
}

impl Documents {
    /// Empties the file that is to be written to, so that it holds this run's documents only.
    pub fn begin(&self) -> Result<(), Fault> {
        let Some(file) = &self.file else { return Ok(()) };
        std::fs::write(file, "").map_err(|e| cannot_write(file, &e))
    }

    pub fn write(&self, text: &str) -> Result<(), Fault> {
        let Some(file) = &self.file else { return output::print(text) };
        let append =
            || std::fs::File::options().append(true).create(true).open(file)?.write_all(text.as_bytes());
        append().map_err(|e| cannot_write(file, &e))
    }

    /// The run as far as it is recorded; `None` before there is anything.
    fn so_far(&self, run: &Path) -> Option<String> {
        let report = fio::read(&RunDir::open(run).ok()?).ok()?;
        let any = report.jobs.iter().any(|j| j.read.total_ios + j.write.total_ios > 0);
        any.then(|| fio::render(&report, &self.formats))
    }
}

fn cannot_write(file: &Path, e: &std::io::Error) -> Fault {
    Fault::input(format!("{} cannot be written: {e}", file.display()), "Choose another --output.")
}

/// Writes a document at this distance, until it is dropped.
#[derive(Debug)]
pub struct Status {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Status {
    pub fn start(every: Duration, documents: Documents, run: Arc<OnceLock<PathBuf>>) -> Self {
        let (stop, stopped) = channel::<()>();
        let every = every.max(Duration::from_millis(100));
        let body = move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let text = run.get().and_then(|dir| documents.so_far(dir));
                // A reader that went away is told at the end, with the result.
                if text.is_some_and(|t| documents.write(&t).is_err()) {
                    return;
                }
            }
        };
        // Without a thread there is no status; the result comes all the same.
        let thread = std::thread::Builder::new().name("status".into()).spawn(body).ok();
        Self { stop: Some(stop), thread }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
