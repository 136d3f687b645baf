//! A process that cannot be taken for another: numbers are given again, and a file that names one may be old, or anybody's.

use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// One process, for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessNote {
    /// Its number.
    pub pid: u32,
    /// When it began, in the kernel's ticks since the machine did.
    pub start_ticks: u64,
    /// The machine's own start.
    pub boot_id: String,
}

impl ProcessNote {
    /// This process.
    pub fn own() -> Self {
        Self::of(std::process::id())
    }

    /// The process that has this number now. One of which nothing can be known is never found again.
    pub fn of(pid: u32) -> Self {
        Self { pid, start_ticks: start_ticks(pid).unwrap_or(0), boot_id: boot_id() }
    }

    /// Whether it lives: a zombie does not.
    pub fn lives(&self) -> bool {
        self.boot_id == boot_id() && start_ticks(self.pid) == Some(self.start_ticks)
    }

    /// Signals it, if it lives and `still` holds. The handle comes first: what is found of the number then is of the process that gets the
    /// signal, or that one is gone. False: nobody was signalled.
    pub fn signal(&self, signal: Signal, still: impl FnOnce() -> bool) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let Some(handle) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
            return false;
        };
        self.lives() && still() && pidfd_send_signal(handle, signal).is_ok()
    }

    /// Whether it lives, and is one of this environment: `NAME=value`, as it was started.
    pub fn lives_with(&self, variable: &str) -> bool {
        self.lives()
            && fs::read(format!("/proc/{}/environ", self.pid))
                .is_ok_and(|all| all.split(|b| *b == 0).any(|v| v == variable.as_bytes()))
    }
}

/// The machine's present life; empty where it does not say.
pub fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// Start of a process in clock ticks since boot. `None`: gone, or waited for by nobody.
pub fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold spaces and parentheses itself.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let is_dead = fields.first() == Some(&"Z");
    if is_dead { None } else { fields.get(19)?.parse().ok() }
}

/// Whether any process of this group lives, its zombies aside.
pub fn group_lives(group: u32) -> bool {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.any(|pid| {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
        let Some((_, rest)) = stat.rsplit_once(')') else { return false };
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        fields.first() != Some(&"Z") && fields.get(2).and_then(|g| g.parse().ok()) == Some(group)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_number_alone_names_nobody() {
        assert!(ProcessNote::own().lives());
        let mut other = Command::new("sh")
            .args(["-c", "read x"])
            .env("PLIMSOLL_NOTE_TEST", "a")
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let note = ProcessNote::of(other.id());
        assert!(note.lives() && group_lives(other.id()));
        let began = std::time::Instant::now();
        // Its environment is empty for the moment in which the program is being loaded.
        while !note.lives_with("PLIMSOLL_NOTE_TEST=a") && began.elapsed().as_secs() < 60 {
            std::thread::yield_now();
        }
        assert!(note.lives_with("PLIMSOLL_NOTE_TEST=a") && !note.lives_with("PLIMSOLL_NOTE_TEST=b"));
        assert!(!ProcessNote { start_ticks: note.start_ticks + 1, ..note.clone() }.lives(), "given again");
        assert!(!ProcessNote { boot_id: "another".into(), ..note.clone() }.lives());
        let given_again = ProcessNote { start_ticks: note.start_ticks + 1, ..note.clone() };
        assert!(!given_again.signal(Signal::KILL, || true) && !note.signal(Signal::KILL, || false));
        assert!(note.lives() && note.signal(Signal::CONT, || true));
        other.kill().unwrap();
        // It is a zombie until it is waited for.
        while note.lives() && began.elapsed().as_secs() < 60 {
            std::thread::yield_now();
        }
        assert!(!note.lives() && !group_lives(other.id()));
        other.wait().unwrap();
        assert!(!note.lives());
    }
}
