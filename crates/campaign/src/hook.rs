//! Runs a command of a subject's: in a process group of its own, with a time limit. However it ends, what is left of its group ends with it: a
//! service is begun by who looks after services, or in a session of its own (`setsid`), and ended by a command after. Before it begins a
//! note of it is on the disk, by which a later session finds it where whoever began it is killed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use plimsoll_model::credentials::{credentials_in, without_credentials};
use plimsoll_model::text::keep_secret;
use plimsoll_store::process::group_lives;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::left_hook::{GRACE, HookNote, LOOK_EVERY};
use crate::place::flags;

/// Waits for a line before it becomes the command: where whoever began it is killed before the note is on the disk, it reads an end
/// instead, and nothing is run.
const WAITS: &str = "read -r go || exit 125; exec sh -c \"$1\" </dev/null";
/// Of what a command that failed said, the last so many bytes are shown.
const SHOWN: u64 = 2000;
/// Of what one command says so much is kept, and the last that it said.
const MOST_SAID: u64 = 16 << 20;
/// A log that is longer is put aside when the next command begins, in place of the one before.
const MOST_LOG: u64 = 64 << 20;

/// Where a command's traces are.
#[derive(Debug, Clone, Copy)]
pub struct HookFiles<'a> {
    /// What commands said; this one's comes to its end.
    pub log: &'a Path,
    /// The note of the command that runs. Gone when it has ended.
    pub note: &'a Path,
}

/// What a command is told, beside the environment of this process.
#[derive(Debug, Clone, Copy)]
pub struct HookOf<'a> {
    /// PLIMSOLL_CAMPAIGN.
    pub campaign: &'a str,
    /// PLIMSOLL_SUBJECT.
    pub subject: &'a str,
    /// PLIMSOLL_HOOK: `before` or `after`.
    pub when: &'a str,
}

/// Runs `sh -c command`. Gives why it does not count as done: it failed, it took longer than `limit`, or `is_ended` says that somebody
/// wants an end. In each case, and where it ends well, nothing of its process group is left.
pub fn run_hook(
    command: &str,
    of: HookOf<'_>,
    limit: Duration,
    files: HookFiles<'_>,
    is_ended: impl Fn() -> bool,
) -> Result<(), String> {
    let cannot = |e: io::Error| format!("could not be started: {e}");
    keep_secrets(command);
    let named = without_credentials(command);
    let mut said = HookLog::open(files.log).map_err(cannot)?;
    said.begin(&format!("# {} {}: {named}", of.subject, of.when)).map_err(cannot)?;
    let mut child = Command::new("sh")
        .args(["-c", WAITS, "sh", command])
        .env("PLIMSOLL_CAMPAIGN", of.campaign)
        .env("PLIMSOLL_SUBJECT", of.subject)
        .env("PLIMSOLL_HOOK", of.when)
        .stdin(Stdio::piped())
        .stdout(said.file.try_clone().map_err(cannot)?)
        .stderr(said.file.try_clone().map_err(cannot)?)
        .process_group(0)
        .spawn()
        .map_err(cannot)?;
    let noted = HookNote::of(of.campaign, of.subject, &named, child.id()).write(files.note);
    let go = child.stdin.take();
    if let Err(e) = noted {
        // It reads an end, and runs nothing.
        drop(go);
        let _ = child.wait();
        return Err(cannot(e));
    }
    // One that does not take it has ended, which is seen below.
    let _ = go.map(|mut go| go.write_all(b"go\n"));
    let problem = watch(&mut child, limit, &mut said, is_ended)?;
    let _ = fs::remove_file(files.note);
    said.leave_out_secrets();
    let Some(problem) = problem else { return Ok(()) };
    let tail = said.tail().unwrap_or_default();
    let tail = String::from_utf8_lossy(&tail);
    Err(if tail.trim().is_empty() { problem } else { format!("{problem}; it said: {}", tail.trim()) })
}

/// What a command is given on its line it may say again, in any form.
fn keep_secrets(command: &str) {
    for value in credentials_in(command) {
        keep_secret(value);
        value.split_once(':').into_iter().for_each(|(_, password)| keep_secret(password));
    }
}

/// Waits for it. Why it does not count as done, where it does not.
fn watch(
    child: &mut Child,
    limit: Duration,
    said: &mut HookLog,
    is_ended: impl Fn() -> bool,
) -> Result<Option<String>, String> {
    let began = Instant::now();
    loop {
        let status = end_of(child).map_err(|e| format!("cannot be waited for: {e}"))?;
        match status {
            None => said.give_back(),
            // After the last look at it, so that all that it said is there.
            Some(_) => said.shorten(),
        }
        match status {
            Some(status) if status.success() => return Ok(None),
            Some(status) => {
                return Ok(Some(match (status.code(), status.signal()) {
                    (Some(code), _) => format!("failed with exit code {code}"),
                    (None, Some(signal)) => format!("was ended by signal {signal}"),
                    (None, None) => "failed".into(),
                }));
            }
            None if began.elapsed() >= limit => {
                end_group(child);
                said.shorten();
                return Ok(Some(format!("took longer than {} s, and was ended", limit.as_secs_f64())));
            }
            None if is_ended() => {
                end_group(child);
                said.shorten();
                return Ok(Some("was interrupted".into()));
            }
            None => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// Its status, once it has ended, and with it all that it left in its group: how long that would go on beside what is measured nobody knows.
fn end_of(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let Some(group) = group_of(child) else { return child.try_wait() };
    // Not `try_wait`: the group keeps its number as long as its leader is not waited for.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if waitid(WaitId::Pid(group), options)?.is_none() {
        return Ok(None);
    }
    if group_lives(child.id()) {
        end_group(child);
    }
    child.wait().map(Some)
}

fn group_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// What commands said. They write into the file itself, not through this process: what one leaves running in a session of its own keeps its
/// output when this process ends.
struct HookLog {
    file: File,
    /// Where this command's begins.
    from: u64,
}

impl HookLog {
    fn open(path: &Path) -> io::Result<Self> {
        if fs::metadata(path).is_ok_and(|m| m.len() > MOST_LOG) {
            fs::rename(path, path.with_extension("log.old"))?;
        }
        let mut options = OpenOptions::new();
        let options = options.create(true).append(true).read(true).mode(0o600).custom_flags(flags());
        let file = options.open(path)?;
        Ok(Self { file, from: 0 })
    }

    fn begin(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.file, "{line}")?;
        self.from = self.file.metadata()?.len();
        Ok(())
    }

    /// While the command runs: the room beyond the bound is given back, but for the last of it. The file keeps its length, so that nothing
    /// that is being written just now is lost.
    fn give_back(&mut self) {
        let cut = self.from + MOST_SAID;
        let len = self.file.metadata().map_or(0, |m| m.len());
        if len <= cut + 2 * SHOWN {
            return;
        }
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if fallocate(&self.file, hole, cut, len - SHOWN - cut).is_err() {
            // A file system without holes: what is written in this moment may go with the rest.
            self.shorten();
        }
    }

    /// What is beyond the bound goes, but for the last of it. Who writes at the end of a file goes on at its new end.
    fn shorten(&mut self) {
        let cut = self.from + MOST_SAID;
        let is_long = self.file.metadata().is_ok_and(|m| m.len() > cut + 2 * SHOWN);
        if is_long && let Ok(last) = self.tail() {
            // A log that cannot be shortened is no reason to end a campaign.
            let _ = self.file.set_len(cut);
            let _ = self.file.write_all(b"\n# more than 16 MiB; the last of it:\n");
            let _ = self.file.write_all(&last);
        }
    }

    /// What this command said, without what looks like a credential (`set -x` shows all that is run).
    fn leave_out_secrets(&mut self) {
        let mut all = Vec::new();
        let read = self.file.seek(SeekFrom::Start(self.from)).and_then(|_| self.file.read_to_end(&mut all));
        let text = String::from_utf8_lossy(&all);
        let clean = without_credentials(&text);
        if read.is_ok() && clean != text {
            // A log that cannot be written anew is no reason to end a campaign; what had a secret in it goes in any case.
            let _ = self.file.set_len(self.from);
            let _ = self.file.write_all(clean.as_bytes());
        }
    }

    /// The last that this command said.
    fn tail(&mut self) -> io::Result<Vec<u8>> {
        let len = self.file.metadata()?.len();
        self.file.seek(SeekFrom::Start(self.from.max(len.saturating_sub(SHOWN))))?;
        let mut out = Vec::new();
        (&mut self.file).take(SHOWN).read_to_end(&mut out)?;
        Ok(out)
    }
}

/// The command and all of its group: asked first, then killed. Its leader is waited for afterwards, and may be again.
fn end_group(child: &mut Child) {
    let Some(group) = group_of(child) else { return };
    // Until it is waited for, its number is no other's.
    let _ = kill_process_group(group, Signal::TERM);
    let began = Instant::now();
    while group_lives(child.id()) && began.elapsed() < GRACE {
        std::thread::sleep(LOOK_EVERY);
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::left_hook::end_left_hook;

    const OF: HookOf<'_> = HookOf { campaign: "c", subject: "s", when: "before" };

    fn run(command: &str, limit: Duration, is_ended: bool) -> Result<(), String> {
        let dir = tempfile::tempdir().unwrap();
        run_in(dir.path(), command, limit, is_ended)
    }

    fn run_in(dir: &Path, command: &str, limit: Duration, is_ended: bool) -> Result<(), String> {
        let (log, note) = (dir.join("hooks.log"), dir.join("hook.json"));
        run_hook(command, OF, limit, HookFiles { log: &log, note: &note }, || is_ended)
    }

    fn is_gone(pid: u32) -> bool {
        // Where nobody reaps it, an orphan stays as a zombie.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    }

    fn wait_for(what: impl Fn() -> bool) {
        let began = Instant::now();
        while !what() && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(LOOK_EVERY);
        }
        assert!(what());
    }

    #[test]
    fn what_ends_well_is_done_and_what_fails_says_why() {
        assert_eq!(run("test \"$PLIMSOLL_SUBJECT\" = s", Duration::from_secs(60), false), Ok(()));
        let problem = run("echo no such disk >&2; exit 3", Duration::from_secs(60), false).unwrap_err();
        assert!(problem.contains("exit code 3") && problem.contains("no such disk"), "{problem}");
    }

    /// What it started goes with it.
    #[test]
    fn what_hangs_is_ended_with_all_that_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        let command = format!("sleep 1000 & echo $! > {}; wait", pid.display());
        let problem = run(&command, Duration::from_millis(500), false).unwrap_err();
        assert!(problem.contains("took longer than 0.5 s"), "{problem}");
        let pid: u32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
        wait_for(|| is_gone(pid));
    }

    /// Ended well or not; what has a session of its own was begun to stay.
    #[test]
    fn what_it_leaves_in_the_background_ends_with_it() {
        for (end, is_done) in [("exit 0", true), ("exit 3", false)] {
            let dir = tempfile::tempdir().unwrap();
            let (left, kept) = (dir.path().join("left"), dir.path().join("kept"));
            let command = format!(
                "sleep 1000 & echo $! > {}; setsid sh -c 'echo $$ > {}.new; mv {1}.new {1}; exec sleep 1000' & while ! test -e {1}; do sleep 0.01; done; {end}",
                left.display(),
                kept.display(),
            );
            assert_eq!(run_in(dir.path(), &command, Duration::from_secs(60), false).is_ok(), is_done);
            let pid = |path: &Path| fs::read_to_string(path).unwrap().trim().parse::<i32>().unwrap();
            let (left, kept) = (pid(&left), pid(&kept));
            assert!(!is_gone(kept as u32));
            rustix::process::kill_process(Pid::from_raw(kept).unwrap(), Signal::KILL).unwrap();
            assert!(is_gone(left as u32));
        }
    }

    /// A log that leads elsewhere is not written, and a command that was not noted does not begin.
    #[test]
    fn a_log_that_is_a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let precious = dir.path().join("precious");
        fs::write(&precious, "p").unwrap();
        std::os::unix::fs::symlink(&precious, dir.path().join("hooks.log")).unwrap();
        assert!(run_in(dir.path(), "echo hi", Duration::from_secs(60), false).is_err());
        assert_eq!(fs::read_to_string(&precious).unwrap(), "p");
    }

    /// 40 MB of output, and the log keeps 16 MiB with the last of it; what is shown is the last.
    #[test]
    fn of_what_is_said_a_bounded_part_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let command = "head -c 40000000 /dev/zero | tr '\\0' x; echo the end; exit 3";
        let problem = run_in(dir.path(), command, Duration::from_secs(300), false).unwrap_err();
        assert!(problem.ends_with("the end") && problem.len() < 3000, "{}", problem.len());
        let len = fs::metadata(dir.path().join("hooks.log")).unwrap().len();
        assert!(len > MOST_SAID && len < MOST_SAID + 8000, "{len}");
    }

    /// Neither the command nor what it says again: not in the log, the note or the problem.
    #[test]
    fn a_secret_of_a_command_is_in_no_trace_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("note");
        let command = format!(
            "set -x; true --password hunter22; cp {} {}; echo said: hunter22; echo sig: 'http://h/c?sig=abcdef'; exit 3",
            dir.path().join("hook.json").display(),
            copy.display(),
        );
        let problem = run_in(dir.path(), &command, Duration::from_secs(60), false).unwrap_err();
        let log = fs::read_to_string(dir.path().join("hooks.log")).unwrap();
        let note = fs::read_to_string(copy).unwrap();
        for trace in [&problem, &log, &note] {
            assert!(!trace.contains("hunter22") && !trace.contains("sig=abcdef"), "{trace}");
            assert!(trace.contains("secret left out"), "{trace}");
        }
        assert!(log.contains("said: (secret left out)") && log.contains("true --password"), "{log}");
    }

    #[test]
    fn a_long_log_is_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("hooks.log");
        File::create(&log).unwrap().set_len(MOST_LOG + 1).unwrap();
        assert_eq!(run_in(dir.path(), "echo hi", Duration::from_secs(60), false), Ok(()));
        assert_eq!(fs::read_to_string(&log).unwrap(), "# s before: echo hi\nhi\n");
        assert_eq!(fs::metadata(dir.path().join("hooks.log.old")).unwrap().len(), MOST_LOG + 1);
    }

    /// Its conductor is gone, and it still runs: found by its note, and ended with all that it started before anything runs beside it.
    #[test]
    fn what_outlived_its_conductor_is_found_and_ended() {
        let dir = tempfile::tempdir().unwrap();
        let (note, pid) = (dir.path().join("hook.json"), dir.path().join("pid"));
        let command = format!("sleep 1000 & echo $! > {}.new; mv {0}.new {0}; wait", pid.display());
        let (at, went) = (dir.path().to_owned(), command.clone());
        // Stands for the conductor that is no more: it only reaps what the test ends.
        let conductor = std::thread::spawn(move || run_in(&at, &went, Duration::from_secs(600), false));
        wait_for(|| pid.exists());
        let started: u32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
        let text = fs::read_to_string(&note).unwrap();

        // Of another campaign, of another start of the machine, or with its number given again: not touched.
        let is_left_alone = |text: String| {
            let other = dir.path().join("other.json");
            fs::write(&other, text).unwrap();
            assert_eq!(end_left_hook(&other, "c"), Ok(None));
            assert!(!other.exists() && !is_gone(started));
        };
        let v: serde_json::Value = serde_json::from_str(&text).unwrap();
        let with = |key: &str, value: serde_json::Value| {
            let mut v = v.clone();
            v[key] = value;
            v.to_string()
        };
        is_left_alone(with("start_ticks", (v["start_ticks"].as_u64().unwrap() + 1).into()));
        is_left_alone(with("boot_id", "another".into()));
        is_left_alone(with("campaign", "d".into()));
        is_left_alone("{".into());
        fs::write(&note, &text).unwrap();
        assert_eq!(end_left_hook(&note, "d"), Ok(None), "its environment says whose it is");
        fs::write(&note, &text).unwrap();

        let said = end_left_hook(&note, "c").unwrap().unwrap();
        assert!(said.contains("subject 's'") && said.contains("was ended"), "{said}");
        wait_for(|| is_gone(started));
        assert!(!note.exists());
        assert!(conductor.join().unwrap().unwrap_err().contains("ended by signal"));
        assert_eq!(end_left_hook(&note, "c"), Ok(None));
    }

    /// Killed between its start and its note, the command must never begin.
    #[test]
    fn what_is_not_noted_is_not_run() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("mark");
        let (log, note) = (dir.path().join("hooks.log"), dir.path().join("gone/hook.json"));
        let files = HookFiles { log: &log, note: &note };
        let problem =
            run_hook(&format!("touch {}", mark.display()), OF, Duration::from_secs(60), files, || false);
        assert!(problem.unwrap_err().contains("could not be started"));
        assert!(!mark.exists());
    }

    #[test]
    fn an_end_that_somebody_wants_comes_at_once() {
        let problem = run("sleep 1000", Duration::from_secs(600), true).unwrap_err();
        assert!(problem.contains("interrupted"), "{problem}");
    }
}
