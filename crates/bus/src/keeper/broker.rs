//! The broker as a child process: found, started, told to read its configuration again, ended. It ends with its keeper, however
//! the keeper ends.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};

use super::home::Home;
use crate::BusError;

/// Names another `nats-server` than the one in PATH.
const VARIABLE: &str = "PLIMSOLL_NATS_SERVER";
/// Where packages and `go install` leave it, where PATH does not say so.
const PLACES: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin"];
/// How long it may take until it listens.
const START: Duration = Duration::from_secs(20);
/// And to end, before it is killed.
const STOP: Duration = Duration::from_secs(5);

/// A program that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
    /// What it calls itself.
    pub version: String,
}

/// A running broker; killed when dropped. It has to be started by a thread that lives as long as the process: the kernel takes
/// that thread's end for the parent's.
#[derive(Debug)]
pub struct BrokerProcess {
    child: Child,
    /// Where it listens.
    pub port: u16,
}

impl Program {
    /// Finds it.
    pub fn find() -> Result<Self, BusError> {
        let named = std::env::var_os(VARIABLE).filter(|v| !v.is_empty()).map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let home = std::env::var_os("HOME").map(|h| PathBuf::from(h).join("go/bin"));
        let places = std::env::split_paths(&path).chain(PLACES.map(PathBuf::from)).chain(home);
        match named {
            Some(named) => Self::at(&named),
            None => {
                places.map(|dir| dir.join("nats-server")).find_map(|p| Self::at(&p).ok()).ok_or_else(missing)
            }
        }
    }

    fn at(path: &Path) -> Result<Self, BusError> {
        let asked = Command::new(path).arg("--version").stdin(Stdio::null()).output();
        let answer = asked.ok().filter(|o| o.status.success()).ok_or_else(missing)?;
        let version = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        Ok(Self { path: path.to_owned(), version })
    }
}

fn missing() -> BusError {
    BusError::refused(
        "a fleet needs the broker nats-server, and there is none here",
        "Install it: apt-get install nats-server, or go install github.com/nats-io/nats-server/v2@latest",
    )
}

impl BrokerProcess {
    /// Starts it with the configuration in `home` and waits until it listens.
    pub fn start(program: &Program, home: &Home) -> Result<Self, BusError> {
        let mut command = Command::new(&program.path);
        command.arg("-c").arg(home.file("broker.conf"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let keeper = std::process::id();
        // A terminal's Ctrl-C goes to the whole group: the broker ends after its keeper.
        command.process_group(0);
        // SAFETY: the closure makes two system calls, which are async-signal-safe, and touches no memory of the parent.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(Signal::KILL))?;
                // The keeper may have ended before the kernel knew of our wish.
                let parent = getppid().map(|p| p.as_raw_nonzero().get());
                let lives = parent == i32::try_from(keeper).ok();
                if lives { Ok(()) } else { Err(std::io::Error::other("the keeper is gone")) }
            });
        }
        let mut child = command.spawn().map_err(|_| missing())?;
        match await_port(&mut child, home) {
            Ok(port) => Ok(Self { child, port }),
            Err(why) => {
                // It may have ended already.
                let _ = child.kill();
                let _ = child.wait();
                Err(BusError::unreachable(
                    format!("the broker did not start: {why}"),
                    "Choose another --listen if the address is taken",
                ))
            }
        }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has it read its configuration again.
    pub fn reload(&self) {
        self.signal(Signal::HUP);
    }

    /// Whether it still runs.
    pub fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // An error means that it is gone, which `lives` finds.
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for BrokerProcess {
    fn drop(&mut self) {
        self.signal(Signal::TERM);
        let until = Instant::now() + STOP;
        while self.lives() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        // It may have ended meanwhile; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The port that it says it listens on, in the file that it writes then.
fn await_port(child: &mut Child, home: &Home) -> Result<u16, String> {
    let file = home.file(&format!("nats-server_{}.ports", child.id()));
    let until = Instant::now() + START;
    loop {
        if let Some(port) = std::fs::read_to_string(&file).ok().as_deref().and_then(port_in) {
            return Ok(port);
        }
        match child.try_wait() {
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
            Ok(None) => return Err(format!("it does not listen after {} s", START.as_secs())),
            _ => return Err(last_words(child, home)),
        }
    }
}

/// The port for clients in the broker's file of ports.
fn port_in(text: &str) -> Option<u16> {
    let ports: serde_json::Value = serde_json::from_str(text).ok()?;
    let url = ports.get("nats")?.get(0)?.as_str()?;
    url.rsplit_once(':')?.1.parse().ok()
}

/// What it said before it ended: on stderr, or in its log.
fn last_words(child: &mut Child, home: &Home) -> String {
    use std::io::Read as _;
    let mut said = String::new();
    if let Some(stderr) = &mut child.stderr {
        // What cannot be read is not told.
        let _ = stderr.read_to_string(&mut said);
    }
    said.push_str(&std::fs::read_to_string(home.file("broker.log")).unwrap_or_default());
    let told = said.lines().rev().find(|l| l.contains("[FTL]") || l.contains("[ERR]") || l.contains("error"));
    told.map_or("it ended at once".to_owned(), |l| l.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_what_the_broker_writes() {
        assert_eq!(port_in(r#"{"nats":["tls://0.0.0.0:41234","tls://[::]:41234"]}"#), Some(41234));
        for other in ["", "{}", r#"{"nats":[]}"#, r#"{"nats":["x"]}"#, r#"{"nats":["tls://h:99999"]}"#] {
            assert_eq!(port_in(other), None, "{other}");
        }
    }

    #[test]
    fn without_a_broker_it_says_what_to_install() {
        let e = Program::at(Path::new("/nowhere/nats-server")).unwrap_err().to_string();
        assert!(e.contains("apt-get install nats-server"), "{e}");
        assert!(Program::at(Path::new("/bin/false")).is_err());
    }
}
