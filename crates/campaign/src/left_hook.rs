//! A command of a subject's that outlived whoever began it: known by a note that was on the disk before the command began.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_store::process::ProcessNote;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use serde::{Deserialize, Serialize};

use crate::place;

/// Asked to end, a group has this long before it is killed.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A command that was begun. Numbers are given again, and the note may be anybody's: start and boot tell one process from all others, and
/// its environment says whose command it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HookNote {
    /// Of the campaign.
    campaign: String,
    /// Of the subject.
    subject: String,
    /// For people.
    command: String,
    /// Its number is its group's.
    #[serde(flatten)]
    process: ProcessNote,
}

impl HookNote {
    /// Of a process that was just begun.
    pub(crate) fn of(campaign: &str, subject: &str, command: &str, pid: u32) -> Self {
        Self {
            campaign: campaign.to_owned(),
            subject: subject.to_owned(),
            command: command.to_owned(),
            process: ProcessNote::of(pid),
        }
    }

    /// Writes it, whole, onto the disk.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(self).expect("plain data is always JSON");
        place::replace(path, &text, |old| serde_json::from_slice::<Self>(old).is_ok())?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    }

    fn group(&self) -> Option<Pid> {
        i32::try_from(self.process.pid).ok().filter(|n| *n > 1).and_then(Pid::from_raw)
    }

    /// Whether it is still there, and a command of this campaign's.
    fn lives(&self, campaign: &str) -> bool {
        self.campaign == campaign && self.process.lives_with(&format!("PLIMSOLL_CAMPAIGN={campaign}"))
    }
}

/// Ends the command that a killed session of this campaign left behind, with all that it started, before anybody runs one beside it.
/// Gives what was done, in words; `None`: there is none, or it has ended by itself. An error: it is still there.
pub fn end_left_hook(note: &Path, campaign: &str) -> Result<Option<String>, String> {
    let name = note.file_name().map(|n| n.to_string_lossy()).unwrap_or_default();
    let Some(text) = note.parent().and_then(|dir| place::text(dir, &name)) else { return Ok(None) };
    // One that cannot be read is of no command: it is whole before its command begins.
    let left = serde_json::from_slice::<HookNote>(&text).ok().filter(|n| n.lives(campaign));
    let said = match left.as_ref().and_then(|n| Some((n, n.group()?))) {
        None => None,
        Some((n, group)) => {
            end_group(group, || n.lives(campaign));
            let what =
                format!("subject '{}': its command '{}' (process {})", n.subject, n.command, n.process.pid);
            if n.lives(campaign) {
                return Err(format!("{what} of a session that was killed still runs, and cannot be ended"));
            }
            Some(format!("{what} still ran from a session that was killed, and was ended"))
        }
    };
    let _ = fs::remove_file(note);
    Ok(said)
}

/// A group whose leader nobody here waits for: asked first, then killed. It is killed only while its leader is known to be there, or while
/// some of it have been there all along: as long as one is left, the group's number is not given again.
fn end_group(group: Pid, is_led: impl Fn() -> bool) {
    if !is_led() || kill_process_group(group, Signal::TERM).is_err() {
        return;
    }
    let began = Instant::now();
    while began.elapsed() < GRACE {
        if test_kill_process_group(group).is_err() {
            return;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let _ = kill_process_group(group, Signal::KILL);
    let began = Instant::now();
    while is_led() && began.elapsed() < GRACE {
        std::thread::sleep(LOOK_EVERY);
    }
}
