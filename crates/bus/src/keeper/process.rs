//! Whether a process is the keeper of a fleet: one that cannot be taken for another, by how it was started.

use std::fs;

use plimsoll_store::process::ProcessNote;

/// Whether it lives, and was started as the keeper of this fleet.
pub(super) fn is_keeper_of(note: &ProcessNote, fleet: &str) -> bool {
    note.lives() && fs::read(format!("/proc/{}/cmdline", note.pid)).is_ok_and(|line| is_keep(&line, fleet))
}

/// Whether a command line is that of our hidden `fleet keep`, as `fleet up` begins it. The program's own name counts for nothing.
fn is_keep(line: &[u8], fleet: &str) -> bool {
    let mut words = line.split(|b| *b == 0).skip(1);
    ["fleet", "keep", "--name", fleet].iter().all(|word| words.next() == Some(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use plimsoll_store::process::start_ticks;

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
        assert!(!is_keeper_of(&ProcessNote::own(), "demo"), "this is no keeper");
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
        assert!(is_keeper_of(&note, "demo"), "all agrees");
        assert!(!is_keeper_of(&note, "other"));
        assert!(!is_keeper_of(&of(note.start_ticks + 1), "demo"), "its number was given again");
        assert!(!is_keeper_of(&ProcessNote { boot_id: "another".into(), ..note.clone() }, "demo"));
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(!is_keeper_of(&note, "demo"));
    }
}
