//! A process that cannot be taken for another: numbers are given again, and a file that names one may be old, or anybody's.

use std::fs;

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
        let pid = std::process::id();
        // Of itself each process may know this; what stays unknown is never found again.
        Self { pid, start_ticks: start_ticks(pid).unwrap_or(0), boot_id: boot_id() }
    }

    /// Whether it lives.
    pub fn lives(&self) -> bool {
        self.boot_id == boot_id() && start_ticks(self.pid) == Some(self.start_ticks)
    }

    /// Whether it lives, and was started as the keeper of this fleet.
    pub fn is_keeper_of(&self, fleet: &str) -> bool {
        self.lives()
            && fs::read(format!("/proc/{}/cmdline", self.pid)).is_ok_and(|line| is_keep(&line, fleet))
    }
}

/// Whether a command line is that of our hidden `fleet keep`, as `fleet up` begins it. The program's own name counts for nothing.
fn is_keep(line: &[u8], fleet: &str) -> bool {
    let mut words = line.split(|b| *b == 0).skip(1);
    ["fleet", "keep", "--name", fleet].iter().all(|word| words.next() == Some(word.as_bytes()))
}

fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// `None`: gone, or waited for by nobody.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold spaces and parentheses itself.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let dead = fields.first() == Some(&"Z");
    if dead { None } else { fields.get(19)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_keeper_is_known_by_how_it_was_started() {
        let line = |words: &[&str]| words.join("\0").into_bytes();
        let keep = ["/usr/bin/plimsoll", "fleet", "keep", "--name", "demo", "--listen", "0.0.0.0:0"];
        assert!(is_keep(&line(&keep), "demo"));
        assert!(!is_keep(&line(&keep), "dem") && !is_keep(&line(&keep), "other"));
        assert!(!is_keep(&line(&["plimsoll", "fleet", "up", "--name", "demo"]), "demo"));
        assert!(!is_keep(b"", "demo"));
    }

    #[test]
    fn a_number_alone_names_nobody() {
        assert!(!ProcessNote::own().is_keeper_of("demo"), "this is no keeper");
        // A shell that runs a script called `fleet`, with a keeper's words.
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("fleet"), "echo up; read x; true").unwrap();
        let mut command = Command::new("sh");
        command.args(["fleet", "keep", "--name", "demo"]).current_dir(dir.path());
        let mut other = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // `spawn` returns when exec has closed the parent's pipe, which is before the kernel has laid the new command line down.
        other.stdout.take().unwrap().read_exact(&mut [0; 3]).unwrap();
        let of = |start_ticks| ProcessNote { pid: other.id(), start_ticks, ..ProcessNote::own() };
        let note = of(start_ticks(other.id()).unwrap());
        assert!(note.is_keeper_of("demo"), "all agrees");
        assert!(!note.is_keeper_of("other"));
        assert!(!of(note.start_ticks + 1).is_keeper_of("demo"), "its number was given again");
        assert!(!ProcessNote { boot_id: "another".into(), ..note.clone() }.is_keeper_of("demo"));
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(!note.is_keeper_of("demo"));
    }
}
