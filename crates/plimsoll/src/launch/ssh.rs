//! Agents over ssh: the binary is copied where it is not there yet, the agent is started away from the session, and what was started is
//! ended with the fleet. Hosts are worked on a few at a time; one that fails is named with ssh's own words.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_lc_rs::digest::{SHA256, digest};
use plimsoll_bus::keeper::Home;
use plimsoll_bus::token::Token;
use serde::{Deserialize, Serialize};

use super::hosts;
use super::ssh_host::{SshHost, Started};
use crate::fault::Fault;
use crate::output;

/// So many sessions at once: a jump host takes no more than ten that are not yet let in (sshd's MaxStartups).
const AT_ONCE: usize = 8;

/// What to start, and where.
#[derive(Debug)]
pub struct SshWish<'a> {
    /// As they were written.
    pub hosts: &'a [String],
    /// Of ssh; none: its own.
    pub config: Option<PathBuf>,
    /// More flags of the agents.
    pub flags: Vec<String>,
}

/// What was started, as the fleet's state directory keeps it.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Launched {
    config: Option<PathBuf>,
    started: Vec<Started>,
}

/// How ssh is called, with one connection for each host.
#[derive(Debug)]
pub struct Ssh {
    config: Option<PathBuf>,
    /// Sockets of the shared connections; a short path, which is all that a socket's may have.
    sockets: PathBuf,
}

impl Ssh {
    fn new(config: Option<PathBuf>) -> Result<Self, Fault> {
        let word: [u8; 6] = plimsoll_bus::random_bytes()?;
        let sockets =
            std::env::temp_dir().join(format!("plimsoll-{}", word.map(|b| format!("{b:02x}")).concat()));
        use std::os::unix::fs::DirBuilderExt as _;
        std::fs::DirBuilder::new().mode(0o700).create(&sockets).map_err(|e| {
            Fault::input(
                format!("{} cannot be made: {e}", sockets.display()),
                "Set TMPDIR to a directory of yours.",
            )
        })?;
        Ok(Self { config, sockets })
    }

    /// `ssh HOST SCRIPT`, without a question to anybody.
    pub fn command(&self, host: &str, script: &str) -> Command {
        let mut command = Command::new("ssh");
        if let Some(config) = &self.config {
            command.arg("-F").arg(config);
        }
        for option in [
            "BatchMode=yes",
            "ConnectTimeout=20",
            "ControlMaster=auto",
            "ControlPersist=30",
            "ForwardAgent=no",
        ] {
            command.args(["-o", option]);
        }
        command.arg("-o").arg(format!("ControlPath={}/%C", self.sockets.display()));
        command.args(["-T", "--", host, script]);
        command
    }

    fn hang_up(&self, host: &str) {
        let mut command = self.command(host, "");
        // The connection ends by itself otherwise.
        let _ = command.args(["-O", "exit"]).output();
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        // A connection that still ends has its socket here for a moment more: it removes it itself.
        let _ = std::fs::remove_dir_all(&self.sockets);
    }
}

/// Starts an agent on each host. An error means that none came.
pub fn launch(home: &Home, token: &Token, wish: &SshWish<'_>) -> Result<(), Fault> {
    let all = hosts::expand(wish.hosts).map_err(|why| {
        Fault::input(format!("--ssh: {why}"), "Write hosts as ssh takes them: me@node{1...8},other.")
    })?;
    if all.is_empty() {
        return Err(Fault::input(
            "--ssh names no host",
            "Write hosts as ssh takes them: me@node{1...8},other.",
        ));
    }
    let config = wish.config.as_ref().map(|c| std::path::absolute(c).unwrap_or_else(|_| c.clone()));
    let ssh = Ssh::new(config.clone())?;
    let binary = Binary::own()?;
    let text = token.text()?;
    let names = hosts::agent_names(&all);
    let outcomes = each(&all, |number, host| {
        let host = SshHost { ssh: &ssh, host, name: &names[number], fleet: home.fleet() };
        host.start(&binary, &text, &wish.flags, number)
    });
    let (mut started, mut failed) = (Vec::new(), Vec::new());
    for (host, outcome) in all.iter().zip(outcomes) {
        match outcome {
            Ok(one) => started.push(one),
            Err(why) => failed.push(format!("{host}: {why}")),
        }
    }
    all.iter().for_each(|host| ssh.hang_up(host));
    let launched = Launched { config, started };
    // Plain texts and numbers: nothing in them can fail.
    home.note_launched(&serde_json::to_string(&launched).expect("a note is plain data"))?;
    for why in &failed {
        output::tell(format_args!("plimsoll: no agent on {why}"));
    }
    if launched.started.is_empty() {
        return Err(Fault::input(
            format!("no agent came up on any of {} hosts: {}", all.len(), failed.first().map_or("", |f| f)),
            "Try `ssh -o BatchMode=yes HOST true`: it has to work without a question.",
        ));
    }
    output::tell(format_args!(
        "plimsoll: agents are up on {} of {} hosts",
        launched.started.len(),
        all.len()
    ));
    Ok(())
}

/// Ends what [`launch`] started and is still there, and removes what it left but the binary, which serves again. `text`: the note.
pub fn end(text: &str) {
    let Ok(launched) = serde_json::from_str::<Launched>(text) else { return };
    let Ok(ssh) = Ssh::new(launched.config.clone()) else { return };
    let hosts: Vec<String> = launched.started.iter().map(|s| s.host.clone()).collect();
    let outcomes = each(&hosts, |number, host| {
        let started = &launched.started[number];
        started.end(&ssh).inspect_err(|why| {
            output::tell(format_args!("plimsoll: agent {} on {host}: {why}", started.name))
        })
    });
    let ended = outcomes.iter().filter(|o| o.is_ok()).count();
    hosts.iter().for_each(|host| ssh.hang_up(host));
    output::tell(format_args!("plimsoll: agents on {ended} of {} hosts have ended", hosts.len()));
}

/// Does something with each host, a few at a time; what came of it, in their order.
fn each<T: Send>(hosts: &[String], does: impl Fn(usize, &str) -> T + Sync) -> Vec<T> {
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(hosts.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(host) = hosts.get(number) else { return };
                    let outcome = does(number, host);
                    outcomes
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .push((number, outcome));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    outcomes.sort_by_key(|(number, _)| *number);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// This program, as it is copied.
#[derive(Debug)]
pub struct Binary {
    pub path: PathBuf,
    /// SHA-256, in hexadecimal.
    pub hash: String,
}

impl Binary {
    fn own() -> Result<Self, Fault> {
        let cannot = |e: std::io::Error| {
            Fault::input(format!("this program cannot be read: {e}"), "Is the plimsoll binary still there?")
        };
        let path = std::env::current_exe().map_err(cannot)?;
        Ok(Self { hash: hash_of(&path).map_err(cannot)?, path })
    }
}

fn hash_of(path: &Path) -> std::io::Result<String> {
    let bytes = std::fs::read(path)?;
    Ok(digest(&SHA256, &bytes).as_ref().iter().map(|b| format!("{b:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_of_many_is_in_their_order() {
        let hosts: Vec<String> = (0..50).map(|n| format!("n{n}")).collect();
        let (busy, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let came = each(&hosts, |number, host| {
            most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            busy.fetch_sub(1, Ordering::SeqCst);
            format!("{number} {host}")
        });
        assert_eq!(came[37], "37 n37");
        assert!(came.len() == 50 && most.into_inner() <= AT_ONCE);
    }

    #[test]
    fn a_host_is_never_taken_for_a_flag() {
        let ssh = Ssh { config: Some("c".into()), sockets: "/nowhere/plimsoll-test".into() };
        let command = ssh.command("me@n1", "true");
        let words: Vec<String> = command.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
        assert!(words.ends_with(&["-T", "--", "me@n1", "true"].map(str::to_owned)), "{words:?}");
        assert!(
            words.contains(&"BatchMode=yes".to_owned())
                && words.starts_with(&["-F".to_owned(), "c".to_owned()])
        );
    }
}
