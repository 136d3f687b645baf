//! The embedded servers, each in a process of its own: so that what is measured has its own CPU time, and a crash
//! of one is not a crash of the other.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_model::plan::{EmbeddedCluster, EmbeddedDisk, EmbeddedSpec, EmbeddedVolume};
use plimsoll_store::process::{ProcessNote, start_ticks};
use plimsoll_store::{Journal, Thing};
use rustix::process::Signal;
use serde::Deserialize;

use crate::error::SetupError;
use crate::objects::STOPPED;
use crate::safety::trees;

/// What is asked of a server that is started.
#[derive(Debug, Clone, Copy)]
struct Manner {
    /// How long it may take until it says that it is ready.
    start: Duration,
    /// And to end after SIGTERM, before it is killed.
    stop: Duration,
    /// What it is sent when this process is gone before it.
    orphaned: Signal,
}

/// A server that keeps nothing outside of what is removed by others.
const PLAIN: Manner =
    Manner { start: Duration::from_secs(20), stop: Duration::from_secs(5), orphaned: Signal::KILL };
/// One that has something to take down itself.
const TIDY: Manner = Manner { orphaned: Signal::TERM, ..PLAIN };
/// Several servers, which have to find each other: over a slow link, with a small part of a CPU.
const MANY: Manner =
    Manner { start: Duration::from_secs(150), stop: Duration::from_secs(60), orphaned: Signal::TERM };

/// The manner of a leftover, by its command line (words with a zero byte behind each): what no longer has a parent is waited for as the
/// parent would have done. What is not known is given the longest.
fn manner_of(command_line: &[u8]) -> Manner {
    let mut words = command_line.split(|b| *b == 0).skip(1);
    match (words.next(), words.next()) {
        (Some(b"target"), Some(b"s3" | b"block" | b"canned")) => PLAIN,
        (Some(b"target"), Some(b"disk")) => TIDY,
        _ => MANY,
    }
}

/// The line that a server prints on its standard output when it accepts connections.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct ReadyLine {
    /// URL such as `http://127.0.0.1:34567`; empty for a volume.
    pub endpoint: String,
    /// Made for it.
    #[serde(default)]
    pub access_key: String,
    /// Made for it.
    #[serde(default)]
    pub secret_key: String,
    /// Of the certificate that it made for this run.
    #[serde(default)]
    pub ca_file: Option<String>,
    /// Of a volume: the file to measure; of a disk the directory where it is mounted.
    #[serde(default)]
    pub path: Option<String>,
    /// Of a volume: its limits, in the words of who keeps them.
    #[serde(default)]
    pub limits: Option<String>,
}

/// A running server; ended when dropped.
#[derive(Debug)]
pub struct EmbeddedServer {
    child: Child,
    /// What it said of itself.
    pub ready: ReadyLine,
    /// Journal entry of the process.
    entry: Option<u64>,
    /// Its data, where they go with it.
    temporary: Option<Temporary>,
    manner: Manner,
}

/// A directory that this run made for a server.
#[derive(Debug)]
struct Temporary {
    path: PathBuf,
    /// The run's mark, which is on it.
    run: String,
    /// Its entry in the journal.
    entry: u64,
    /// Its removal was, and is not tried again.
    tried: bool,
}

impl Temporary {
    /// Its entry in the journal, when it is gone; what stays, and why.
    fn remove(mut self, go_on: &mut dyn FnMut(u64) -> bool) -> Result<u64, String> {
        self.tried = true;
        trees::remove_watched(&self.path, &self.run, trees::Extent::Whole, go_on)
            .map(|()| self.entry)
            .map_err(|why| format!("{}: {why}", self.path.display()))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Also of a server that did not start. What is gone is gone; what stays is in the journal.
        if !self.tried {
            let _ = trees::remove(&self.path, &self.run, trees::Extent::Whole);
        }
    }
}

/// A directory with the run's mark on it, and in its journal.
fn make_temporary(journal: &mut Journal) -> Result<Temporary, SetupError> {
    let path = temporary_dir();
    let entry = journal.creating(Thing::Tree { path: path.clone() })?;
    let run = journal.mark().to_owned();
    trees::make(&path, 0o700, &run).map_err(|e| {
        SetupError::input(
            format!("cannot create {}: {e}", path.display()),
            "Set TMPDIR to a writable directory",
        )
    })?;
    Ok(Temporary { path, run, entry, tried: false })
}

/// Starts the embedded S3 server with a bucket in it.
pub fn start_s3(
    exe: &Path,
    spec: &EmbeddedSpec,
    bucket: &str,
    journal: &mut Journal,
) -> Result<EmbeddedServer, SetupError> {
    if let Some(cluster) = &spec.cluster {
        return start_cluster(exe, cluster, journal);
    }
    // A certificate is the run's, wherever the data are.
    let temporary = if spec.data.is_none() || spec.tls { Some(make_temporary(journal)?) } else { None };
    let own = |name: &str| temporary.as_ref().map(|t| t.path.join(name)).unwrap_or_default();
    let data = spec.data.as_ref().map_or_else(|| own("data"), PathBuf::from);
    let mut command = Command::new(exe);
    command.args(["target", "s3", "--listen", "127.0.0.1:0", "--bucket", bucket, "--data"]).arg(&data);
    if let Some(tier) = &spec.tier {
        command.args(["--tier", tier]);
    }
    if let Some(limits) = &spec.limits {
        command.args(["--limits", limits]);
    }
    if let Some(scale) = spec.scale {
        command.arg("--scale").arg(scale.to_string());
    }
    if spec.no_sync {
        command.arg("--no-sync");
    }
    if spec.tls {
        command.arg("--tls-self-signed").arg(own("ca.pem"));
    }
    start(command, temporary, Some(journal), PLAIN)
}

/// Starts servers that are one cluster. It takes itself down when this process is gone; what it leaves when it is killed itself goes
/// when the next cluster is started.
fn start_cluster(
    exe: &Path,
    cluster: &EmbeddedCluster,
    journal: &mut Journal,
) -> Result<EmbeddedServer, SetupError> {
    let mut command = Command::new(exe);
    command.args(["target", "cluster", "--quiet", "--name", &format!("r{:07x}", random() & 0xfff_ffff)]);
    let mut flag = |name: &str, value: Option<String>| {
        value.iter().for_each(|v| {
            command.args([name, v]);
        });
    };
    flag("--nodes", Some(cluster.nodes.to_string()));
    flag("--drives", Some(cluster.drives.to_string()));
    flag("--ec", cluster.ec.map(|n| n.to_string()));
    flag("--link", cluster.link.map(|l| l.to_string()));
    flag("--drive-limit", cluster.drive_limit.map(|d| d.to_string()));
    flag("--drive-read-limit", cluster.drive_read_limit.map(|d| d.to_string()));
    flag("--drive-size", cluster.drive_limit.map(|_| cluster.drive_size.to_string()));
    flag("--cpu", cluster.cpu.map(|c| c.to_string()));
    if cluster.tls {
        command.arg("--tls");
    }
    start(command, None, Some(journal), MANY)
}

/// Starts an embedded disk: a mounted directory, whose place is in its ready line. It takes itself down when this process is gone.
pub fn start_disk(
    exe: &Path,
    disk: &EmbeddedDisk,
    journal: &mut Journal,
) -> Result<EmbeddedServer, SetupError> {
    let temporary = if disk.data.is_none() { Some(make_temporary(journal)?) } else { None };
    let own = || temporary.as_ref().map(|t| t.path.join("data")).unwrap_or_default();
    let data = disk.data.as_ref().map_or_else(own, PathBuf::from);
    if temporary.is_some() {
        // After its directory, before its process: things are removed the latest first.
        journal.creating(Thing::Mount { path: data.join("mnt") })?;
    }
    let mut command = Command::new(exe);
    command.args(["target", "disk", "--data"]).arg(&data).arg("--size").arg(disk.size.to_string());
    let flags = [("--tier", &disk.tier), ("--limits", &disk.limits)];
    for (flag, value) in flags.into_iter().filter_map(|(f, v)| Some((f, v.as_ref()?))) {
        command.args([flag, value]);
    }
    if let Some(scale) = disk.scale {
        command.arg("--scale").arg(scale.to_string());
    }
    if let Some(credit) = disk.credit {
        command.arg("--credit").arg(credit.to_string());
    }
    if disk.cached {
        command.arg("--cached");
    }
    start(command, temporary, Some(journal), TIDY)
}

/// Starts an embedded volume of this size.
pub fn start_volume(
    exe: &Path,
    volume: &EmbeddedVolume,
    size_bytes: u64,
    journal: &mut Journal,
) -> Result<EmbeddedServer, SetupError> {
    let temporary = make_temporary(journal)?;
    let mut command = Command::new(exe);
    // Beside the mark: a disk wants a directory that is empty.
    command.args(["target", "block", "--quiet", "--data"]).arg(temporary.path.join("disk"));
    command.arg("--size").arg(format!("{size_bytes}B"));
    for (flag, value) in [("--tier", &volume.tier), ("--limits", &volume.limits)] {
        value.iter().for_each(|v| {
            command.args([flag, v]);
        });
    }
    for (flag, factor) in [("--scale", volume.scale), ("--burst-scale", volume.burst_scale)] {
        factor.iter().for_each(|f| {
            command.arg(flag).arg(f.to_string());
        });
    }
    start(command, Some(temporary), Some(journal), PLAIN)
}

/// Starts the canned server. It keeps nothing, so it needs no journal.
pub fn start_canned(exe: &Path, body_bytes: u64) -> Result<EmbeddedServer, SetupError> {
    let mut command = Command::new(exe);
    command.args(["target", "canned", "--listen", "127.0.0.1:0", "--body"]).arg(body_bytes.to_string());
    start(command, None, None, PLAIN)
}

fn start(
    mut command: Command,
    temporary: Option<Temporary>,
    journal: Option<&mut Journal>,
    manner: Manner,
) -> Result<EmbeddedServer, SetupError> {
    // Made for this run, known to it alone, and never on a command line.
    let access_key = format!("plimsoll{:016x}", random());
    let secret_key = format!("{:016x}{:016x}{:016x}", random(), random(), random());
    command.env("AWS_ACCESS_KEY_ID", &access_key).env("AWS_SECRET_ACCESS_KEY", &secret_key);
    if let Some(journal) = &journal {
        // By this a later cleanup knows it.
        command.env(RUN_VARIABLE, journal.mark());
    }
    command
        .env_remove("AWS_SESSION_TOKEN")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    // A terminal's Ctrl-C goes to the whole group: the server must outlive our own cleanup.
    command.process_group(0);
    // SAFETY: the closure makes one prctl call, which is async-signal-safe, and touches no memory of the parent.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(manner.orphaned))
                .map_err(std::io::Error::from)
        });
    }
    let mut child = command.spawn().map_err(|e| {
        SetupError::input(
            format!("cannot start the embedded server: {e}"),
            "Is the plimsoll binary still where it was started from?",
        )
    })?;
    let mut entry = None;
    if let Some(journal) = journal {
        entry = Some(journal.creating(noted(child.id()))?);
    }
    match await_ready(&mut child, manner.start) {
        // A server prints only keys that it made itself; these are ours.
        Ok(ready) => Ok(EmbeddedServer {
            child,
            ready: ReadyLine { access_key, secret_key, ..ready },
            entry,
            temporary,
            manner,
        }),
        Err(problem) => {
            end(&mut child, manner.stop);
            Err(SetupError::input(
                format!("the embedded server did not start: {problem}"),
                "Its own message is above",
            ))
        }
    }
}

/// Reads the ready line in a thread, so that a silent server ends in a message and not in waiting.
fn await_ready(child: &mut Child, within: Duration) -> Result<ReadyLine, String> {
    let stdout = child.stdout.take().ok_or("it has no output")?;
    let (send, line) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stdout);
        let mut text = String::new();
        while matches!(reader.read_line(&mut text), Ok(n) if n > 0) {
            if let Ok(ready) = serde_json::from_str::<ReadyLine>(&text) {
                // The receiver is gone when we gave up waiting.
                let _ = send.send(ready);
                break;
            }
            text.clear();
        }
        drop(send);
        // The pipe stays open: a server that prints more must not die of it.
        let _ = std::io::copy(&mut reader, &mut std::io::sink());
    });
    line.recv_timeout(within).map_err(|e| match e {
        std::sync::mpsc::RecvTimeoutError::Timeout => {
            format!("it printed nothing for {} s", within.as_secs())
        }
        std::sync::mpsc::RecvTimeoutError::Disconnected => "it ended at once".into(),
    })
}

impl EmbeddedServer {
    /// Ends the server and removes its temporary data, and strikes both out of the journal.
    pub fn stop(self, journal: &mut Journal) -> Result<(), SetupError> {
        self.stop_watched(journal, &mut |_| true).map(drop)
    }

    /// The same; `go_on` is told how many files of its data are gone. Gives what it left because it was told to stop.
    pub fn stop_watched(
        mut self,
        journal: &mut Journal,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Option<String>, SetupError> {
        self.end();
        if let Some(id) = self.entry.take() {
            journal.removed(id)?;
        }
        let Some(data) = self.temporary.take() else { return Ok(None) };
        match data.remove(go_on) {
            Ok(id) => journal.removed(id).map(|()| None).map_err(Into::into),
            // What stays is in the journal, and `plimsoll cleanup` tries again.
            Err(why) => Ok((why.contains(STOPPED)).then_some(why)),
        }
    }

    fn end(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            end(&mut self.child, self.manner.stop);
        }
    }
}

/// Asks it to end, and kills it where it does not within that time.
fn end(child: &mut Child, within: Duration) {
    if matches!(child.try_wait(), Ok(None)) {
        terminate(child.id());
    }
    let deadline = Instant::now() + within;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    // It may have ended meanwhile; then there is nothing to kill.
    let _ = child.kill();
    let _ = child.wait();
}

impl Drop for EmbeddedServer {
    fn drop(&mut self) {
        self.end();
    }
}

/// Holds the run's mark in the environment of a server.
pub const RUN_VARIABLE: &str = "PLIMSOLL_RUN_MARK";

/// A process that was just started, for the journal.
pub fn noted(pid: u32) -> Thing {
    let note = ProcessNote::of(pid);
    Thing::Process { pid, start_ticks: note.start_ticks, boot_id: note.boot_id }
}

/// Whether a directory carries the mark of the embedded S3 server.
pub fn is_data_directory(dir: &Path) -> bool {
    dir.join(".plimsoll-data").is_file()
}

/// Ends a process that a killed run left, if it is still there and carries the run's mark. What a journal says of a process
/// would fit any other, too.
pub fn end_leftover(pid: u32, started: u64, boot_id: &str, run: &str) -> Result<(), String> {
    // Before it is gone, and used only if it is ours.
    let within = manner_of(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).stop;
    end_within(ProcessNote { pid, start_ticks: started, boot_id: boot_id.to_owned() }, run, within)
}

fn end_within(process: ProcessNote, run: &str, within: Duration) -> Result<(), String> {
    let pid = process.pid;
    let marked = format!("{RUN_VARIABLE}={run}");
    let mut is_marked = None;
    // Where nobody was signalled it is gone, or of somebody else.
    process.signal(Signal::TERM, || {
        *is_marked.insert(environment_of(pid).split(|b| *b == 0).any(|v| v == marked.as_bytes()))
    });
    if is_marked == Some(false) {
        return Err("it does not carry this run's mark".into());
    }
    let deadline = Instant::now() + within;
    while process.lives() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    if process.lives() { Err(format!("it did not stop within {} s", within.as_secs())) } else { Ok(()) }
}

/// The environment that a process was started with. It is empty for the moment in which the program is being loaded.
fn environment_of(pid: u32) -> Vec<u8> {
    let deadline = Instant::now() + Duration::from_secs(1);
    loop {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        if !environment.is_empty() || start_ticks(pid).is_none() || Instant::now() > deadline {
            return environment;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn terminate(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        // An error means that it is gone.
        let _ = rustix::process::kill_process(pid, Signal::TERM);
    }
}

fn temporary_dir() -> PathBuf {
    std::env::temp_dir().join(format!("plimsoll-{:016x}", random()))
}

fn random() -> u64 {
    let mut bytes = [0u8; 8];
    // Without the kernel's randomness (very early in boot) the clock has to do.
    match rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()) {
        Ok(_) => u64::from_le_bytes(bytes),
        Err(_) => plimsoll_engine::ring::monotonic_ns(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Command {
        let mut c = Command::new("/bin/sh");
        c.args(["-c", text]);
        c
    }

    #[test]
    fn a_server_is_awaited_and_ended() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&dir.path().join("journal")).unwrap();
        let say = "echo starting; echo '{\"endpoint\":\"http://127.0.0.1:1\",\"access_key\":\"'$AWS_ACCESS_KEY_ID'\"}'; exec sleep 100";
        let server = start(script(say), None, Some(&mut journal), PLAIN).unwrap();
        assert_eq!(server.ready.endpoint, "http://127.0.0.1:1");
        assert!(server.ready.access_key.starts_with("plimsoll"));
        let pid = server.child.id();
        assert!(matches!(journal.pending()[..], [(_, Thing::Process { pid: p, .. })] if p == pid));
        server.stop(&mut journal).unwrap();
        assert!(start_ticks(pid).is_none());
        assert!(journal.pending().is_empty());
    }

    #[test]
    fn one_that_dies_is_named() {
        let e = start(script("exit 3"), None, None, PLAIN).unwrap_err().to_string();
        assert!(e.contains("ended at once"), "{e}");
    }

    #[test]
    fn a_leftover_is_waited_for_as_its_kind_needs() {
        let stop = |words: &[&str]| manner_of(words.join("\0").as_bytes()).stop;
        assert_eq!(stop(&["/usr/bin/plimsoll", "target", "s3", "--listen", "127.0.0.1:0"]), PLAIN.stop);
        assert_eq!(stop(&["plimsoll", "target", "disk", "--data", "/x"]), TIDY.stop);
        assert_eq!(stop(&["plimsoll", "target", "cluster", "--quiet"]), MANY.stop);
        assert_eq!(stop(&["minio", "server"]), MANY.stop);
        let mark = "run.0123456789abcdef0123456789abcdef";
        let deaf = "trap '' TERM; echo; while :; do sleep 0.05; done";
        let mut child = Command::new("/bin/sh")
            .args(["-c", deaf])
            .env(RUN_VARIABLE, mark)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It does not listen from here on.
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        let told = end_within(ProcessNote::of(child.id()), mark, Duration::ZERO);
        assert_eq!(told, Err("it did not stop within 0 s".into()));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_leftover_is_ended_and_a_stranger_is_not() {
        let mark = "run.0123456789abcdef0123456789abcdef";
        let mut child = Command::new("/bin/sleep").arg("100").env(RUN_VARIABLE, mark).spawn().unwrap();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let ticks = start_ticks(child.id()).unwrap();
        let end = |ticks, boot: &str, run| end_leftover(child.id(), ticks, boot, run);
        assert_eq!(end(ticks + 1, boot.trim(), mark), Ok(()), "another process with its number");
        assert_eq!(end(ticks, "another boot", mark), Ok(()));
        assert!(end(ticks, boot.trim(), "run.0").unwrap_err().contains("does not carry"));
        assert!(start_ticks(child.id()).is_some());
        assert_eq!(end(ticks, boot.trim(), mark), Ok(()));
        child.wait().unwrap();
    }
}
