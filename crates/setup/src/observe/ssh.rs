//! A host that is read over ssh: one process stays there for the run, a shell's loop that prints files of /proc for each line it is sent. Nothing is
//! installed, and it ends with its input, whatever became of us.

use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_model::text::said;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::ObservedPlace;

/// A host that says more than this at once is not listened to.
const MOST_BYTES: usize = 4 << 20;
/// Of what ssh says of itself, so much is read.
const MOST_SAID: usize = 4096;
/// At the end it has this long to end by itself, then to be killed, and then for what it said.
const END_STEP: Duration = Duration::from_millis(300);
/// What ends an answer.
const END: &[u8] = b"\n==end\n";
/// For any POSIX shell. Daemons of these names are read by themselves: reading names costs no process there.
const LOOP: &str = r#"while read -r go; do
echo ==units; getconf CLK_TCK; getconf PAGESIZE
echo ==clock; date +%s.%N
for f in stat meminfo net/dev diskstats pressure/cpu pressure/io pressure/memory; do echo "==$f"; cat /proc/$f 2>/dev/null; done
echo ==speeds; for i in /sys/class/net/*; do s=; read -r s 2>/dev/null < $i/speed; echo "${i##*/} $s"; done
for p in /proc/[0-9]*; do c=; read -r c 2>/dev/null < $p/comm; case $c in
minio|radosgw|ceph-osd|ceph-mon|ceph-mgr|garage|weed|rustfs|versitygw) echo "==pid $c"; cat $p/stat $p/statm $p/io 2>/dev/null;;
esac; done
echo ==end; done"#;

/// The process on a host, and what it takes to start it again.
#[derive(Debug)]
pub(super) struct SshHost {
    login: String,
    config: Option<String>,
    child: Option<Child>,
}

impl SshHost {
    /// Nobody is asked yet.
    pub fn new(place: &ObservedPlace) -> Self {
        Self { login: place.login.clone(), config: place.ssh_config.clone(), child: None }
    }

    /// One answer. A process that does not give it in time is given up, and another is started the next time.
    pub fn ask(&mut self, limit: Duration) -> Result<String, String> {
        let until = Instant::now() + limit;
        let mut child = match self.child.take() {
            Some(child) => child,
            None => self.start()?,
        };
        match answer(&mut child, until) {
            Ok(text) => {
                self.child = Some(child);
                Ok(text)
            }
            Err(why) => {
                let why = end(child, why);
                Err(format!("{}: {why}", self.login))
            }
        }
    }

    /// A password that is asked for is an error, and no wait without an end.
    fn start(&self) -> Result<Child, String> {
        let (login, port) = match self.login.rsplit_once(':') {
            Some((login, port)) if port.parse::<u16>().is_ok() => (login, Some(port)),
            _ => (self.login.as_str(), None),
        };
        let mut ssh = Command::new("ssh");
        // Ctrl-C is for whoever measures, who asks once more at the end.
        ssh.process_group(0);
        ssh.args([
            "-T",
            "-oBatchMode=yes",
            "-oConnectTimeout=5",
            "-oLogLevel=ERROR",
            "-oForwardAgent=no",
            "-oClearAllForwardings=yes",
            "-oPermitLocalCommand=no",
            "-oServerAliveInterval=5",
            "-oServerAliveCountMax=2",
        ]);
        ssh.args(self.config.iter().flat_map(|c| ["-F", c]));
        ssh.args(port.into_iter().flat_map(|p| ["-p", p]));
        // Whatever shell the login has, the loop is read by `sh`.
        ssh.args(["--", login]).arg(format!("exec sh -c '{LOOP}'"));
        ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        ssh.spawn().map_err(|e| format!("ssh cannot be started: {e}"))
    }
}

impl Drop for SshHost {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            end(child, String::new());
        }
    }
}

/// Sends a line and reads up to the end of what it brings.
fn answer(child: &mut Child, until: Instant) -> Result<String, String> {
    let (Some(to), Some(from)) = (child.stdin.as_mut(), child.stdout.as_mut()) else {
        return Err("it has no pipes".into());
    };
    to.write_all(b"go\n").and_then(|()| to.flush()).map_err(|_| "the connection broke".to_owned())?;
    let (mut text, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    while !text.ends_with(END) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("it did not answer in time".into());
        }
        let mut fds = [PollFd::from_borrowed_fd(from.as_fd(), PollFlags::IN)];
        let wait = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut fds, Some(&wait)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(e) => return Err(e.to_string()),
        }
        match from.read(&mut piece) {
            Ok(0) => return Err("the connection broke".into()),
            Ok(n) => text.extend_from_slice(&piece[..n]),
            Err(e) => return Err(e.to_string()),
        }
        if text.len() > MOST_BYTES {
            return Err(format!("its answer is longer than {MOST_BYTES} bytes"));
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Ends the process and all of its group; what ssh itself said last is the better reason.
fn end(mut child: Child, why: String) -> String {
    drop(child.stdin.take());
    within(END_STEP, || has_ended(&child));
    // A ProxyCommand may outlive it. Until the leader is waited for, the group's number is no other's.
    if let Some(group) = Pid::from_raw(child.id() as i32) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    // What hangs in the kernel is left behind.
    within(END_STEP, || child.try_wait().is_ok_and(|status| status.is_some()));
    let told = child.stderr.take().map_or_else(Vec::new, |err| said_by(err, Instant::now() + END_STEP));
    let told = String::from_utf8_lossy(&told).into_owned();
    let last = told.lines().rev().find(|l| !l.trim().is_empty()).map(said);
    match last {
        Some(last) if last.contains("ermission denied") => {
            format!("{last} (no password is asked for: use a key, ssh-agent, or ssh_config)")
        }
        Some(last) => last,
        None => why,
    }
}

/// Waits until it is so, and no longer than that.
fn within(limit: Duration, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + limit;
    while !is_so() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Without waiting for it: its number stays taken.
fn has_ended(child: &Child) -> bool {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let Some(pid) = Pid::from_raw(child.id() as i32) else { return true };
    !matches!(waitid(WaitId::Pid(pid), how), Ok(None))
}

/// What is there by then: a process that nobody can end may hold the pipe open for good.
fn said_by(mut err: ChildStderr, until: Instant) -> Vec<u8> {
    let (mut told, mut piece) = (Vec::new(), [0; 4096]);
    while told.len() < MOST_SAID {
        let wait = until.saturating_duration_since(Instant::now());
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        match poll(&mut [PollFd::from_borrowed_fd(err.as_fd(), PollFlags::IN)], Some(&wait)) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        match err.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(n) => told.extend_from_slice(&piece[..n]),
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loop itself, by this machine's shell.
    #[test]
    fn the_loop_prints_what_is_read() {
        let mut child = Command::new("sh")
            .args(["-c", LOOP])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        assert!(!LOOP.contains('\''), "it is put in quotes");
        for _ in 0..2 {
            let text = answer(&mut child, Instant::now() + Duration::from_secs(30)).unwrap();
            let all = plimsoll_observe::proc::hosts_files(&text, "here");
            use plimsoll_model::observed::ServerQuantity as Q;
            for q in [Q::CpuIdleS, Q::MemoryTotalBytes, Q::NicRxBytes, Q::ClockUnixS] {
                assert!(all[0].readings.iter().any(|r| r.quantity == q), "{q:?}");
            }
        }
        end(child, String::new());
        let mut gone = Command::new("true").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        assert!(answer(&mut gone, Instant::now() + Duration::from_secs(30)).unwrap_err().contains("broke"));
        end(gone, String::new());
    }

    /// A process that `script` leaves behind, and how long it took to end the script.
    fn ended(script: &str) -> (Pid, String, Duration) {
        let mut sh = Command::new("sh");
        sh.args(["-c", script]).process_group(0);
        sh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = sh.spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
            .unwrap();
        let left = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
        let began = Instant::now();
        let told = end(child, "why".into());
        (left, told, began.elapsed())
    }

    /// A ProxyCommand is in ssh's group, and holds what ssh says open.
    #[test]
    fn what_ssh_started_ends_with_it() {
        for script in [
            "sleep 20 >/dev/null & echo $!; wait",
            // It ended by itself, and what it had started did not.
            "sleep 20 >/dev/null & echo $!; echo refused >&2",
        ] {
            let (left, told, took) = ended(script);
            assert!(took < Duration::from_secs(2), "{took:?}");
            assert_eq!(told, if script.contains("refused") { "refused" } else { "why" });
            let until = Instant::now() + Duration::from_secs(5);
            let lives = || {
                std::fs::read_to_string(format!("/proc/{}/stat", left.as_raw_nonzero()))
                    .is_ok_and(|stat| !stat.contains(") Z "))
            };
            while lives() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
            assert!(!lives(), "it goes on");
        }
    }

    #[test]
    fn who_left_the_group_is_not_waited_for() {
        let (left, told, took) = ended("setsid sleep 20 >/dev/null & echo $!; echo refused >&2; wait");
        assert!(took < Duration::from_secs(2), "{took:?}");
        assert_eq!(told, "refused");
        // In a shell without job control it is the process that was named.
        let _ = rustix::process::kill_process(left, Signal::KILL);
    }
}
