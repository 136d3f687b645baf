//! The outside world as credentials are looked for in it: this process's environment, files, programs, servers and the clock.

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plimsoll_model::units::Span;
use plimsoll_s3::credentials::{Sources, WEB_MOST_BYTES, WebAnswer, WebRequest, WebTrouble};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// No file of credentials is longer; what is, is something else.
const MOST_BYTES: u64 = 4 << 20;

/// A program may ask somebody else first; it is not waited for longer. (A choice: AWS's tools have no limit.)
const PROGRAM: Duration = Duration::from_secs(60);
/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// This machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThisMachine;

impl Sources for ThisMachine {
    fn env(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|v| !v.is_empty())
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let mut text = String::new();
        File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
        if text.len() as u64 > MOST_BYTES {
            return Err(io::Error::other("it is longer than any such file"));
        }
        Ok(text)
    }

    fn run(&self, command: &str) -> io::Result<Vec<u8>> {
        output_of(command, PROGRAM)
    }

    fn web(&self, request: &WebRequest) -> Result<WebAnswer, WebTrouble> {
        // As the AWS tools have it: who else is trusted than the system's authorities.
        plimsoll_engine::admin::fetch(request, self.env("AWS_CA_BUNDLE").as_deref())
    }

    fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok((host, 0).to_socket_addrs()?.map(|a| a.ip()).collect())
    }

    fn now_unix_s(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// What a program printed. It has a process group of its own, which ends with it, with too much output, or at the limit.
fn output_of(command: &str, limit: Duration) -> io::Result<Vec<u8>> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .process_group(0)
        .spawn()?;
    let pipe = child.stdout.take().expect("it is piped");
    let (done, come) = sync_channel(1);
    let reads = std::thread::Builder::new().name("reads-keys".into()).spawn(move || {
        let mut out = Vec::new();
        let read = pipe.take(WEB_MOST_BYTES as u64 + 1).read_to_end(&mut out);
        let _ = done.send(read.map(|_| out));
    });
    let ended = reads.and_then(|_| until_it_ends(&child, &come, limit));
    // Before it is waited for: until then its number is no other's.
    if let Some(group) = pid_of(&child) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let status = child.wait()?;
    let early = ended?;
    if !status.success() {
        return Err(io::Error::other(format!("it ended with {status}")));
    }
    let out = match early {
        Some(out) => out,
        // All who could print have ended.
        None => come.recv_timeout(LOOK * 100).map_err(|_| io::Error::other("its output did not end"))??,
    };
    if out.len() > WEB_MOST_BYTES { Err(too_long()) } else { Ok(out) }
}

/// Returns when the program has ended, with what it printed where that ended before.
fn until_it_ends(
    child: &Child,
    come: &Receiver<io::Result<Vec<u8>>>,
    limit: Duration,
) -> io::Result<Option<Vec<u8>>> {
    let (begun, mut out) = (Instant::now(), None);
    let has_ended = || {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let pid = pid_of(child).ok_or(io::ErrorKind::InvalidInput)?;
        Ok::<_, io::Error>(waitid(WaitId::Pid(pid), look)?.is_some())
    };
    while !has_ended()? {
        if begun.elapsed() >= limit {
            return Err(io::Error::other(format!("it did not end within {}", Span(limit))));
        }
        match come.recv_timeout(LOOK) {
            Ok(read) => out = Some(read?),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
        }
        if out.as_ref().is_some_and(|out| out.len() > WEB_MOST_BYTES) {
            return Err(too_long());
        }
    }
    Ok(out)
}

fn pid_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

fn too_long() -> io::Error {
    io::Error::other(format!("it printed more than {WEB_MOST_BYTES} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Far beyond every limit below.
    const NEVER: Duration = Duration::from_secs(20);

    /// What became of a program; it is not waited for longer than that.
    fn ran(command: &str, limit: Duration) -> Result<String, String> {
        let command = command.to_owned();
        let (done, come) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(output_of(&command, limit)));
        let result = come.recv_timeout(NEVER).expect("it is bounded");
        result.map(|out| String::from_utf8(out).unwrap()).map_err(|e| e.to_string())
    }

    /// The process with the number in this file has ended, soon.
    fn has_ended(file: &Path) -> bool {
        let pid = std::fs::read_to_string(file).unwrap();
        let begun = Instant::now();
        // What nobody waits for is dead, and still there.
        let lives = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        while lives() && begun.elapsed() < NEVER {
            std::thread::sleep(Duration::from_millis(20));
        }
        !lives()
    }

    #[test]
    fn a_program_gives_what_it_prints_if_it_ends_well() {
        assert_eq!(ran("echo keys; echo words >&2", NEVER).unwrap(), "keys\n");
        assert!(ran("echo keys; exit 3", NEVER).unwrap_err().contains("exit status: 3"));
        let most = format!("head -c {WEB_MOST_BYTES} /dev/zero");
        assert_eq!(ran(&most, NEVER).unwrap().len(), WEB_MOST_BYTES);
    }

    #[test]
    fn a_program_that_prints_without_end_is_ended() {
        // Not in a shell's builtin: it is a child of its own that goes on.
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let problem = ran(&format!("yes & echo $! > {}; wait", file.display()), NEVER * 3).unwrap_err();
        assert!(problem.contains("more than 65536 bytes"), "{problem}");
        assert!(has_ended(&file));
    }

    #[test]
    fn a_program_that_does_not_end_is_ended_with_all_that_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        for after in ["wait", "exec >&-; wait"] {
            let command = format!("sleep 1000 & echo $! > {}; {after}", file.display());
            let problem = ran(&command, Duration::from_secs(2)).unwrap_err();
            assert!(problem.contains("did not end within 2s"), "{problem}");
            assert!(has_ended(&file));
        }
    }

    #[test]
    fn what_a_program_leaves_behind_with_its_output_open_ends_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let command = format!("sleep 1000 & echo $! > {}; echo keys", file.display());
        assert_eq!(ran(&command, NEVER * 3).unwrap(), "keys\n");
        assert!(has_ended(&file));
    }
}
