//! Runs a command of a subject's: in a process group of its own, with a time limit, and ended with all that it started.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Asked to end, a group has this long before it is killed.
const GRACE: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Of what a command that failed said, the last so many bytes are shown.
const SHOWN: u64 = 2000;

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

/// Runs `sh -c command`; what it says goes to the end of `log`. Gives why it does not count as done: it failed, it took longer than
/// `limit`, or `is_ended` says that somebody wants an end. In the last two cases its whole process group is ended.
pub fn run_hook(
    command: &str,
    of: HookOf<'_>,
    limit: Duration,
    log: &Path,
    is_ended: impl Fn() -> bool,
) -> Result<(), String> {
    let cannot = |e: io::Error| format!("could not be started: {e}");
    let mut options = OpenOptions::new();
    let mut said = options.create(true).append(true).read(true).mode(0o600).open(log).map_err(cannot)?;
    writeln!(said, "# {} {}: {command}", of.subject, of.when).map_err(cannot)?;
    let from = said.metadata().map_err(cannot)?.len();
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env("PLIMSOLL_CAMPAIGN", of.campaign)
        .env("PLIMSOLL_SUBJECT", of.subject)
        .env("PLIMSOLL_HOOK", of.when)
        .stdin(Stdio::null())
        .stdout(said.try_clone().map_err(cannot)?)
        .stderr(said.try_clone().map_err(cannot)?)
        .process_group(0)
        .spawn()
        .map_err(cannot)?;
    let problem = watch(&mut child, limit, is_ended)?;
    let Some(problem) = problem else { return Ok(()) };
    let tail = tail(log, from);
    Err(if tail.is_empty() { problem } else { format!("{problem}; it said: {tail}") })
}

/// Waits for it. Why it does not count as done, where it does not.
fn watch(child: &mut Child, limit: Duration, is_ended: impl Fn() -> bool) -> Result<Option<String>, String> {
    let began = Instant::now();
    loop {
        match child.try_wait().map_err(|e| format!("cannot be waited for: {e}"))? {
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
                return Ok(Some(format!("took longer than {} s, and was ended", limit.as_secs_f64())));
            }
            None if is_ended() => {
                end_group(child);
                return Ok(Some("was interrupted".into()));
            }
            None => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// The command and all of its group: asked first, then killed.
fn end_group(child: &mut Child) {
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    // Until it is waited for, its number is no other's.
    let _ = kill_process_group(group, Signal::TERM);
    let began = Instant::now();
    let mut has_ended = false;
    while !has_ended && began.elapsed() < GRACE {
        std::thread::sleep(LOOK_EVERY);
        // Not `try_wait`: the group keeps its number as long as its leader is not waited for.
        has_ended = rustix::process::test_kill_process_group(group).is_err();
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

fn tail(log: &Path, from: u64) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let from = from.max((text.len() as u64).saturating_sub(SHOWN)) as usize;
    String::from_utf8_lossy(text.get(from..).unwrap_or_default()).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: HookOf<'_> = HookOf { campaign: "c", subject: "s", when: "before" };

    fn run(command: &str, limit: Duration, is_ended: bool) -> Result<(), String> {
        let dir = tempfile::tempdir().unwrap();
        run_hook(command, OF, limit, &dir.path().join("log"), || is_ended)
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
        let pid: i32 = std::fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
        let gone = || {
            // Where nobody reaps it, an orphan stays as a zombie.
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        };
        let began = Instant::now();
        while !gone() && began.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(LOOK_EVERY);
        }
        assert!(gone());
    }

    #[test]
    fn an_end_that_somebody_wants_comes_at_once() {
        let problem = run("sleep 1000", Duration::from_secs(600), true).unwrap_err();
        assert!(problem.contains("interrupted"), "{problem}");
    }
}
