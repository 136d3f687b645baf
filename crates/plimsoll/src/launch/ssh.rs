//! Agents over ssh: the binary is copied where it is not there yet, the agent is started away from the session, and what was started is
//! ended with the fleet. Each is noted as it starts, and its note goes when it has ended. Hosts are worked on a few at a time; one that
//! fails is named with ssh's own words.

use plimsoll_model::count::counted;
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::digest::{SHA256, digest};
use plimsoll_bus::keeper::Home;
use plimsoll_bus::token::Token;
use serde::{Deserialize, Serialize};

use super::hosts;
use super::ssh_host::{SshHost, Started};
use crate::fault::{Exit, Fault};
use crate::{output, signals};

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
    started: Vec<Started>,
}

impl Launched {
    fn parse(text: &str) -> Result<Self, Fault> {
        serde_json::from_str(text).map_err(|e| {
            Fault::input(
                format!("the note of the agents that were started over ssh cannot be read: {e}"),
                "End them by hand; `plimsoll fleet down --force` forgets them.",
            )
        })
    }

    fn keep(&self, home: &Home) -> Result<(), Fault> {
        // Plain texts and numbers: nothing in them can fail.
        Ok(home.note_launched(&serde_json::to_string(self).expect("a note is plain data"))?)
    }
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

    /// Of a host as it was named. Two names may be one address (that is ssh's own `%C`): a session of one that ends must not end the other's.
    fn socket(&self, host: &str) -> PathBuf {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hash = DefaultHasher::new();
        host.hash(&mut hash);
        self.sockets.join(format!("{:016x}", hash.finish()))
    }

    /// ssh, with what all its calls have.
    fn program(&self, host: &str) -> Command {
        let mut command = Command::new("ssh");
        // Ctrl-C is for this program, which then ends in order what it has begun.
        command.process_group(0);
        if let Some(config) = &self.config {
            command.arg("-F").arg(config);
        }
        command.arg("-o").arg(format!("ControlPath={}", self.socket(host).display()));
        command
    }

    /// `ssh HOST SCRIPT`, without a question to anybody.
    pub fn command(&self, host: &str, script: &str) -> Command {
        let mut command = self.program(host);
        for option in [
            "BatchMode=yes",
            "ConnectTimeout=20",
            "ControlMaster=auto",
            "ControlPersist=30",
            // A host that is gone in the middle of it is told within a minute.
            "ServerAliveInterval=15",
            "ServerAliveCountMax=4",
            // What the user's configuration has for sessions of a person is not for these.
            "ForwardAgent=no",
            "ClearAllForwardings=yes",
            "PermitLocalCommand=no",
        ] {
            command.args(["-o", option]);
        }
        command.args(["-T", "--", host, script]);
        command
    }

    /// Ends the shared connection to a host. It connects to nobody where there is none.
    fn hanging_up(&self, host: &str) -> Command {
        let mut command = self.program(host);
        command.args(["-O", "exit", "--", host]);
        command
    }

    fn hang_up(&self, host: &str) {
        // The connection ends by itself otherwise.
        let _ = self.hanging_up(host).output();
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        // A connection that still ends has its socket here for a moment more: it removes it itself.
        let _ = std::fs::remove_dir_all(&self.sockets);
    }
}

/// Starts an agent on each host, and notes each as it is up. An error means that none came, or that it was interrupted: what has come
/// is noted, and the fleet is to be ended.
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
    let ssh = Ssh::new(config)?;
    let binary = Binary::own()?;
    let text = token.text()?;
    let names = hosts::agent_names(&all);
    // With those of an earlier fleet of this name that could not be ended.
    let launched = Mutex::new(home.launched().map_or(Ok(Launched::default()), |t| Launched::parse(&t))?);
    let outcomes = each(&all, |number, host| {
        if signals::was_asked_to_stop() {
            return Err("it was not asked any more".to_owned());
        }
        let one = SshHost { ssh: &ssh, host, name: &names[number], fleet: home.fleet() };
        let mut started =
            one.start(&binary, &text, &wish.flags, number).inspect_err(|_| ssh.hang_up(host))?;
        started.config.clone_from(&ssh.config);
        note(home, &launched, &started, &ssh)?;
        ssh.hang_up(host);
        Ok(())
    });
    let came = outcomes.iter().filter(|o| o.is_ok()).count();
    let failed: Vec<String> = all
        .iter()
        .zip(outcomes)
        .filter_map(|(host, outcome)| outcome.err().map(|why| format!("{host}: {why}")))
        .collect();
    for why in &failed {
        output::tell(format_args!("plimsoll: no agent on {why}"));
    }
    if signals::was_asked_to_stop() {
        return Err(Fault {
            what: format!("interrupted when {came} of {} agents had started", all.len()),
            remedy: "The fleet is ended, and they with it.".into(),
            exit: Exit::Interrupted,
        });
    }
    if came == 0 {
        return Err(Fault::input(
            format!(
                "no agent came up on any of {}: {}",
                counted(all.len(), "host"),
                failed.first().map_or("", |f| f)
            ),
            "Try `ssh -o BatchMode=yes HOST true`: it has to work without a question.",
        ));
    }
    output::tell(format_args!("plimsoll: agents are up on {came} of {}", counted(all.len(), "host")));
    Ok(())
}

/// Notes an agent that is up; one that cannot be noted is ended, because nobody would.
fn note(home: &Home, launched: &Mutex<Launched>, started: &Started, ssh: &Ssh) -> Result<(), String> {
    let mut launched = launched.lock().unwrap_or_else(PoisonError::into_inner);
    launched.started.push(started.clone());
    launched.keep(home).map_err(|e| {
        launched.started.pop();
        let ended = match started.end(ssh) {
            Ok(()) => "it is ended".to_owned(),
            Err(why) => format!("process {} may still run: {why}", started.pid()),
        };
        format!("it could not be noted ({}); {ended}", e.what)
    })
}

/// Ends what [`launch`] started and is still there, and removes what it left but the binary, which serves again. What could not be
/// ended is named, stays noted, and is counted here. `text`: the note.
pub fn end(home: &Home, text: &str) -> Result<usize, Fault> {
    let started = Launched::parse(text)?.started;
    // Noted as long as this goes on: it may be interrupted.
    home.note_launched(text)?;
    let mut sessions = BTreeMap::new();
    for one in &started {
        if !sessions.contains_key(&one.config) {
            sessions.insert(one.config.clone(), Ssh::new(one.config.clone())?);
        }
    }
    let hosts: Vec<String> = started.iter().map(|s| s.host.clone()).collect();
    let outcomes = each(&hosts, |number, host| {
        let (one, ssh) = (&started[number], &sessions[&started[number].config]);
        one.end(ssh).map(|()| ssh.hang_up(host)).inspect_err(|why| {
            output::tell(format_args!(
                "plimsoll: agent {} (process {}) on {host} may still run: {why}",
                one.name,
                one.pid()
            ))
        })
    });
    let left: Vec<Started> =
        started.into_iter().zip(outcomes).filter(|(_, o)| o.is_err()).map(|(s, _)| s).collect();
    output::tell(format_args!(
        "plimsoll: agents on {} of {} have ended",
        hosts.len() - left.len(),
        counted(hosts.len(), "host")
    ));
    let left = Launched { started: left };
    if left.started.is_empty() {
        home.forget_launched()?
    } else {
        left.keep(home)?
    }
    Ok(left.started.len())
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
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push((number, outcome));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
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

    /// A file of the note's name is anybody's where no fleet's directory is, and where one is, beside it.
    #[test]
    fn a_file_of_the_notes_name_that_is_somebody_elses_is_left_as_it_is() {
        let base = tempfile::tempdir().unwrap();
        let fleets = base.path().join("plimsoll/fleets");
        let theirs =
            [fleets.join("theirs/launched.json"), fleets.join("launched.json"), fleets.join("link.json")];
        std::fs::create_dir_all(fleets.join("theirs")).unwrap();
        theirs.iter().for_each(|file| std::fs::write(file, "mine").unwrap());
        let are_as_they_were =
            || theirs.iter().all(|file| std::fs::read_to_string(file).is_ok_and(|text| text == "mine"));
        // In a directory that no keeper made.
        let home = Home::below(base.path(), "theirs").unwrap();
        for refused in [Launched::default().keep(&home), home.forget_launched().map_err(Fault::from)] {
            let e = refused.unwrap_err();
            assert!(e.what.contains("is not the directory of a fleet") && e.exit == Exit::Input, "{e:?}");
        }
        assert!(end(&home, "{\"started\":[]}").is_err() && home.launched().is_none());
        assert!(are_as_they_were() && std::fs::read_dir(fleets.join("theirs")).unwrap().count() == 1);
        // Beside a fleet's, and behind a link under the name in it.
        let home = Home::below(base.path(), "ours").unwrap();
        Launched::default().keep(&home).unwrap();
        std::fs::remove_file(home.dir().join("launched.json")).unwrap();
        std::os::unix::fs::symlink(&theirs[2], home.dir().join("launched.json")).unwrap();
        assert_eq!(home.launched(), None, "what is behind a link is not read for ours");
        Launched::default().keep(&home).unwrap();
        assert_eq!(home.launched().as_deref(), Some("{\"started\":[]}"));
        home.forget_launched().unwrap();
        assert!(!home.dir().exists() && are_as_they_were());
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
        for set in ["ServerAliveInterval=15", "ClearAllForwardings=yes", "PermitLocalCommand=no"] {
            assert!(words.contains(&set.to_owned()), "{set}: {words:?}");
        }
    }

    #[test]
    fn hanging_up_is_a_word_to_the_connection_and_no_command_there() {
        let ssh = Ssh { config: None, sockets: "/nowhere/plimsoll-test".into() };
        let words: Vec<String> =
            ssh.hanging_up("me@n1").get_args().map(|a| a.to_string_lossy().into_owned()).collect();
        let path = format!("ControlPath={}", ssh.socket("me@n1").display());
        assert!(path.starts_with("ControlPath=/nowhere/plimsoll-test/"), "{path}");
        assert_eq!(words, ["-o", &path, "-O", "exit", "--", "me@n1"]);
        assert_ne!(
            ssh.socket("me@n1"),
            ssh.socket("me@n2"),
            "two names of one machine have a connection each"
        );
    }
}
