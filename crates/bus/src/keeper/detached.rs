//! A measurement that goes on without the command that asked for it: who conducts it, where its log is, and how it ended. It is noted
//! beside the lease, by the process that has it.

use std::fs::File;
use std::path::PathBuf;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::ProcessNote;
use super::home::{Home, OpenFleet};
use super::place::{LEASE, Place};
use crate::BusError;

/// The note itself.
pub(super) const NOTE: &str = "detached.json";
/// What the conductor says, as it would on a terminal.
pub(super) const LOG: &str = "detached.log";
/// What it would print as its result.
pub(super) const OUT: &str = "detached.out";

/// One measurement of that kind: the last one of the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetachedNote {
    /// Of this note.
    pub version: u32,
    /// The process that conducts it.
    #[serde(flatten)]
    pub process: ProcessNote,
    /// The command, in few words: `plimsoll object get`.
    pub command: String,
    /// The run that was under load when it was left alone; a command may make more of them.
    pub run: String,
    /// Its directory.
    pub directory: PathBuf,
    /// In seconds since 1970.
    pub since_s: u64,
    /// How it ended; absent: it goes on, or was killed.
    pub ended: Option<DetachedEnd>,
}

/// The end of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetachedEnd {
    /// As the command would have given it.
    pub exit_code: u8,
    /// In seconds since 1970.
    pub at_s: u64,
}

/// The conductor's own side: the note, and where it says what it says. Of this directory, whatever else comes to be under its name.
#[derive(Debug)]
pub struct Detached {
    place: Place,
    note: DetachedNote,
    /// In place of standard error.
    pub log: File,
    /// In place of standard output.
    pub out: File,
}

impl Detached {
    /// The measurement has ended.
    pub fn ended(mut self, exit_code: u8, at_s: u64) -> Result<(), BusError> {
        self.note.ended = Some(DetachedEnd { exit_code, at_s });
        write(&self.place, &self.note)
    }
}

fn write(place: &Place, note: &DetachedNote) -> Result<(), BusError> {
    // Plain data: nothing in it can fail.
    place.write(NOTE, &serde_json::to_string(note).expect("a note is plain data"))
}

impl OpenFleet {
    /// From now on the measurement of this process, which has the lease, goes on by itself. What was noted of the one before is replaced.
    pub fn detach(
        &self,
        command: &str,
        run: &str,
        directory: PathBuf,
        since_s: u64,
    ) -> Result<Detached, BusError> {
        let place = self.home().here()?;
        let note = DetachedNote {
            version: 1,
            process: ProcessNote::own(),
            command: command.to_owned(),
            run: run.to_owned(),
            directory,
            since_s,
            ended: None,
        };
        let cannot = |e: std::io::Error| place.failed("cannot be written", &e);
        let (log, out) = (place.empty(LOG).map_err(cannot)?, place.empty(OUT).map_err(cannot)?);
        write(&place, &note)?;
        Ok(Detached { place, note, log, out })
    }
}

impl Home {
    /// The last measurement that was left alone; `None`: none was, or the fleet's state is gone.
    pub fn detached(&self) -> Option<DetachedNote> {
        self.read_json(NOTE)
    }

    /// Where its log is.
    pub fn detached_log(&self) -> PathBuf {
        self.file(LOG)
    }

    /// What it printed by now, and what it said.
    pub fn detached_words(&self) -> (String, String) {
        let read = |name| self.here().and_then(|p| p.read(name).map_err(|e| p.failed("cannot be read", &e)));
        (read(OUT).unwrap_or_default(), read(LOG).unwrap_or_default())
    }

    /// Asks the conductor to end its measurement in order. False: it is gone already. Nobody else is signalled, whoever has its number.
    pub fn stop_detached(&self, note: &DetachedNote) -> bool {
        let has_it = || self.here().is_ok_and(|place| place.is_locked(LEASE));
        note.process.signal(Signal::INT, || has_it() && self.goes_on(note))
    }

    /// Whether its conductor lives.
    pub fn goes_on(&self, note: &DetachedNote) -> bool {
        note.ended.is_none() && note.process.lives()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_that_process_goes_on_and_only_who_has_the_fleet_is_stopped() {
        let base = tempfile::tempdir().unwrap();
        let home = Home::below(base.path(), "demo").unwrap();
        home.make().unwrap();
        let place = home.here().unwrap();
        let mut note = DetachedNote {
            version: 1,
            process: ProcessNote::own(),
            command: "plimsoll block".into(),
            run: "r".into(),
            directory: "/runs/r".into(),
            since_s: 1,
            ended: None,
        };
        write(&place, &note).unwrap();
        assert_eq!(home.detached().as_ref(), Some(&note));
        assert!(home.goes_on(&note) && !home.stop_detached(&note), "nobody has the lease");
        let other = ProcessNote { start_ticks: note.process.start_ticks + 1, ..note.process.clone() };
        assert!(
            !home.goes_on(&DetachedNote { process: other, ..note.clone() }),
            "its number was given again"
        );
        note.ended = Some(DetachedEnd { exit_code: 0, at_s: 2 });
        assert!(!home.goes_on(&note) && !home.stop_detached(&note));
        // It goes with the fleet, and is nobody's who is told of by name.
        home.remove().unwrap();
        assert!(home.detached().is_none() && !home.dir().exists());
    }
}
