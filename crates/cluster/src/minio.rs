//! A node: MinIO's server in its namespace, and in its control group where it has a quota.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_setup::SetupError;
use plimsoll_setup::network::{namespace_file, program};
use plimsoll_setup::server::{RUN_VARIABLE, noted};
use plimsoll_store::Journal;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::certificates::{ClusterTrust, certificates_of};
use crate::cluster::Keys;

/// Where each node answers.
pub const PORT: u16 = 9000;
/// How long all nodes may take until they are one cluster: on a slow link, with a small quota.
const START: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// What is shown of a log.
const LAST_LINES: usize = 6;

/// How servers are started.
#[derive(Debug)]
pub struct MinioPlan {
    /// The program.
    pub program: PathBuf,
    /// All drives of all nodes, as URLs.
    pub drives: Vec<String>,
    /// Parity drives.
    pub parity: u32,
    /// Of the administrator.
    pub keys: Keys,
    /// The cluster's directory.
    pub dir: PathBuf,
    /// Where servers have a certificate: whom to trust.
    pub trust: Option<ClusterTrust>,
}

/// MinIO's program.
pub fn find() -> Result<PathBuf, SetupError> {
    program("minio").ok_or_else(|| {
        SetupError::input(
            "minio is not in PATH",
            "Install it: `go install github.com/minio/minio@latest` builds it (its makers no longer hand out binaries), and add \
             ~/go/bin to PATH",
        )
    })
}

/// The server of one node.
#[derive(Debug)]
pub struct MinioNode {
    /// From 1.
    pub number: u32,
    /// In the cluster's subnet.
    pub address: String,
    /// Its network namespace.
    pub namespace: String,
    /// Its control group, where it has a quota.
    pub group: Option<PathBuf>,
    /// While it runs.
    child: Option<Child>,
    log: PathBuf,
}

impl MinioNode {
    /// One that is not started yet.
    pub fn new(
        number: u32,
        (address, namespace): (String, String),
        group: Option<PathBuf>,
        dir: &Path,
    ) -> Self {
        Self { number, address, namespace, group, child: None, log: dir.join(format!("node{number}.log")) }
    }

    /// Its process, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Starts it. From the main thread: a server ends with the thread that started it.
    pub fn start(&mut self, plan: &MinioPlan, journal: &mut Journal) -> Result<(), SetupError> {
        let cannot = |e: io::Error| {
            SetupError::input(format!("node {} does not start: {e}", self.number), "See its log")
        };
        let log = File::options().create(true).append(true).open(&self.log).map_err(cannot)?;
        let mut command = Command::new(&plan.program);
        command
            .args(["server", "--quiet", "--address", &format!("{}:{PORT}", self.address), "--certs-dir"])
            .arg(certificates_of(&plan.dir))
            .args(&plan.drives)
            // What is set for another server of MinIO's on this machine is not meant for this one.
            .env_clear()
            .env("HOME", &plan.dir)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env(RUN_VARIABLE, journal.mark())
            .env("MINIO_ROOT_USER", &plan.keys.access_key)
            .env("MINIO_ROOT_PASSWORD", &plan.keys.secret_key)
            .env("MINIO_STORAGE_CLASS_STANDARD", format!("EC:{}", plan.parity))
            .env("MINIO_BROWSER", "off")
            .env("MINIO_UPDATE", "off")
            // Whoever reaches the servers may look at their metrics: they are of this machine alone.
            .env("MINIO_PROMETHEUS_AUTH_TYPE", "public")
            // It lets it use directories of one file system.
            .env("MINIO_CI_CD", "1")
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(cannot)?)
            .stderr(log)
            // A terminal's Ctrl-C is for whoever runs the cluster.
            .process_group(0);
        let space = File::open(namespace_file(&self.namespace)).map_err(cannot)?;
        let group = self.group.as_ref().map(|g| File::options().write(true).open(g.join("cgroup.procs")));
        let group = group.transpose().map_err(cannot)?;
        // SAFETY: the closure makes system calls only, with descriptors that are open until the command was started.
        unsafe {
            command.pre_exec(move || {
                if let Some(mut group) = group.as_ref() {
                    group.write_all(b"0")?;
                }
                if libc::setns(space.as_raw_fd(), libc::CLONE_NEWNET) != 0 {
                    return Err(io::Error::last_os_error());
                }
                set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)
            });
        }
        let child = command.spawn().map_err(cannot)?;
        journal.creating(noted(child.id()))?;
        self.child = Some(child);
        Ok(())
    }

    /// Ends it at once: what it holds goes with it, or comes back as after a crash.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// How it ended, if it did by itself: told once.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.child.as_mut()?.try_wait().ok().flatten()?;
        self.child = None;
        Some(format!(
            "the server of node {} ended ({status}); its log ends with: {}",
            self.number,
            self.last_lines()
        ))
    }

    /// The end of its log.
    pub fn last_lines(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        plimsoll_model::text::clean(&last.join(" | ")).chars().take(1000).collect()
    }
}

/// Waits until each node says that the cluster can be written to; `stopped`: whoever waits has had enough.
pub fn await_cluster(
    nodes: &mut [MinioNode],
    plan: &MinioPlan,
    stopped: &dyn Fn() -> bool,
) -> Result<(), SetupError> {
    let began = Instant::now();
    loop {
        if stopped() {
            return Err(SetupError::Interrupted);
        }
        if let Some(why) = nodes.iter_mut().find_map(MinioNode::ended) {
            return Err(SetupError::input(why, "Correct what it says"));
        }
        let Some(waits) = nodes.iter().find(|n| !is_healthy(&n.address, plan.trust.as_ref())) else {
            return Ok(());
        };
        if began.elapsed() > START {
            return Err(SetupError::input(
                format!(
                    "node {} is no part of a cluster after {} s; its log ends with: {}",
                    waits.number,
                    START.as_secs(),
                    waits.last_lines()
                ),
                "If nodes do not reach each other: does this machine's firewall hold back what is bridged (br_netfilter)?",
            ));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Whether a node says that the cluster has its quorum for writing.
fn is_healthy(address: &str, trust: Option<&ClusterTrust>) -> bool {
    let ask = || {
        let to = format!("{address}:{PORT}").parse().map_err(io::Error::other)?;
        let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        match trust {
            None => is_answered_well(&mut stream, address),
            Some(trust) => is_answered_well(&mut trust.over(stream, address)?, address),
        }
    };
    ask().unwrap_or(false)
}

fn is_answered_well(stream: &mut (impl io::Read + io::Write), address: &str) -> io::Result<bool> {
    write!(
        stream,
        "GET /minio/health/cluster HTTP/1.1\r\nHost: {address}:{PORT}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer)?;
    Ok(&answer[..] == b"HTTP/1.1 200")
}
