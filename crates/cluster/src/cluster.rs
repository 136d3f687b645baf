//! A cluster that runs: made in one order, taken down in the other.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_setup::SetupError;
use plimsoll_setup::control_groups::{ControlGroups, GroupController};
use plimsoll_setup::group::{cpu_setting, delegates, path_in};
use plimsoll_setup::network::program;
use plimsoll_store::{Journal, Thing};
use plimsoll_target::ready::Ready;

use crate::certificates::ClusterTrust;
use crate::control::BoxControl;
use crate::drives::BoxDrive;
use crate::exporter::{self, BoxFacts, SharedFacts};
use crate::fault::{Becomes, BoxFault};
use crate::home::{BoxHome, OwnHome};
use crate::minio::{self, MinioNode, MinioPlan};
use crate::network::{BoxNetwork, NODE_INTERFACE};
use crate::spec::ClusterSpec;

/// Of the cluster's administrator.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// At least 3 characters.
    pub access_key: String,
    /// At least 8 characters.
    pub secret_key: String,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

/// One that runs in this process' keeping.
#[derive(Debug)]
pub struct RunningCluster {
    spec: ClusterSpec,
    network: BoxNetwork,
    /// `None` once it is taken down.
    home: Option<OwnHome>,
    plan: MinioPlan,
    nodes: Vec<MinioNode>,
    hosts: Vec<SharedFacts>,
    drives: Vec<BoxDrive>,
    control: BoxControl,
}

impl RunningCluster {
    /// Makes all of it, and waits until it can be written to. What was made is taken down again where that fails. `stopped`: whoever
    /// waits has had enough.
    pub fn start(spec: &ClusterSpec, keys: Keys, stopped: &dyn Fn() -> bool) -> Result<Self, SetupError> {
        spec.check()?;
        let program = check_machine(spec)?;
        let home = BoxHome::of(&spec.name)?;
        // Names are looked at after what a killed one left is gone, and before anything is made.
        let mut own = home.claim()?;
        let begun = begin(spec, &mut own);
        let (network, control) = match begun {
            Ok(both) => both,
            Err(e) => {
                // What stays is told by the next.
                let _ = own.remove();
                return Err(e);
            }
        };
        let (dir, parity) = (own.dir.clone(), spec.made.parity());
        let plan = MinioPlan { program, drives: Vec::new(), parity, keys, dir, trust: None };
        let (nodes, hosts, drives) = (Vec::new(), Vec::new(), Vec::new());
        let mut made =
            Self { spec: spec.clone(), network, home: Some(own), plan, nodes, hosts, drives, control };
        match made.make().and_then(|()| minio::await_cluster(&mut made.nodes, &made.plan, stopped)) {
            Ok(()) => Ok(made),
            Err(e) => {
                // The reason is more than what could not be taken down, which the next start takes down.
                let _ = made.take_down();
                Err(e)
            }
        }
    }

    fn make(&mut self) -> Result<(), SetupError> {
        let home = self.home.as_mut().expect("it was just made");
        let journal = &mut home.journal;
        if self.spec.made.tls {
            let addresses = (1..=self.spec.made.nodes).map(|n| self.network.address(n)).collect();
            self.plan.trust = Some(ClusterTrust::make(&home.dir, addresses)?);
        }
        let scheme = self.spec.made.scheme();
        let groups =
            self.spec.made.cpu.map(|cores| make_groups(cores, self.spec.made.nodes, journal)).transpose()?;
        for n in 1..=self.spec.made.nodes {
            self.network.make_node(n, journal)?;
            for d in 1..=self.spec.made.drives {
                let drive = BoxDrive::make(&self.spec, &home.dir, (n, d), journal)?;
                self.plan.drives.push(format!(
                    "{scheme}://{}:{}{}",
                    self.network.address(n),
                    minio::PORT,
                    drive.path.display()
                ));
                self.drives.push(drive);
            }
            let place = (self.network.address(n), self.network.namespace(n));
            let group = groups.as_ref().map(|all| all.join(n.to_string()));
            self.nodes.push(MinioNode::new(n, place, group, &home.dir));
        }
        for node in &mut self.nodes {
            node.start(&self.plan, journal)?;
        }
        self.export()
    }

    /// What each host counts, for whoever asks.
    fn export(&mut self) -> Result<(), SetupError> {
        for node in &self.nodes {
            let own = (node.number - 1) * self.spec.made.drives;
            let drives = (own..own + self.spec.made.drives).filter_map(|d| {
                Some((format!("drive{}", d + 1), self.drives[d as usize].device()?.to_owned()))
            });
            let facts = Arc::new(Mutex::new(BoxFacts {
                pid: node.pid(),
                link_bits_per_s: self.spec.made.link.map(|l| l.0),
                quota: self.spec.made.cpu.zip(node.group.clone()),
                drives: drives.collect(),
            }));
            exporter::serve(&node.namespace, &node.address, Arc::clone(&facts)).map_err(|e| {
                SetupError::input(
                    format!("metrics of node {} cannot be served: {e}", node.number),
                    "Run it as root",
                )
            })?;
            self.hosts.push(facts);
        }
        Ok(())
    }

    /// For one line on stdout; `keys`: made for it, and so to be told.
    pub fn ready(&self, keys: bool) -> Ready {
        let keys = keys.then_some(&self.plan.keys);
        Ready {
            kind: "cluster",
            address: format!("{}:{}", self.network.address(1), minio::PORT),
            endpoint: self.servers(),
            access_key: keys.map(|k| k.access_key.clone()),
            secret_key: keys.map(|k| k.secret_key.clone()),
            region: Some("us-east-1".into()),
            ca_file: self.plan.trust.as_ref().map(|t| t.ca_file.clone()),
            path: Some(self.plan.dir.clone()),
            limits: None,
            pid: std::process::id(),
        }
    }

    /// All servers at once: `http://10.213.0.{1...4}:9000`.
    fn servers(&self) -> String {
        format!("{}://{}:{}", self.spec.made.scheme(), self.names(), minio::PORT)
    }

    /// `10.213.0.{1...4}`.
    fn names(&self) -> String {
        match self.spec.made.nodes {
            1 => self.network.address(1),
            n => format!("{}.{{1...{n}}}", self.network.subnet),
        }
    }

    /// What it is made of, in a file that goes with it: for `--cluster`.
    pub fn describe(&self) -> Result<PathBuf, SetupError> {
        let nodes = self.names();
        let made = self.spec.made.described(&nodes, NODE_INTERFACE);
        let text = format!(
            "# What this cluster is made of and held to (plimsoll target cluster), for --cluster. It goes with the cluster.\n{}",
            made.to_toml()
        );
        let file = self.plan.dir.join("cluster.toml");
        let cannot = |e: io::Error| {
            SetupError::input(
                format!("{} cannot be written: {e}", file.display()),
                "Set TMPDIR to a directory on a disk",
            )
        };
        // Its directory was empty before.
        File::create_new(&file).and_then(|mut f| f.write_all(text.as_bytes())).map_err(cannot)?;
        Ok(file)
    }

    /// Where `--observe` finds the servers and their hosts.
    pub fn observed(&self) -> [String; 2] {
        let hosts = format!("http://{}:{}", self.names(), exporter::PORT);
        [format!("minio={}", self.servers()), format!("node={hosts}")]
    }

    /// A line for each node: where it is, and its drives.
    pub fn nodes_in_words(&self) -> Vec<String> {
        let line = |node: &MinioNode| {
            let first = (node.number - 1) * self.spec.made.drives + 1;
            let numbers: Vec<String> =
                (first..first + self.spec.made.drives).map(|d| d.to_string()).collect();
            format!(
                "node {}: {}://{}:{}, namespace {}, interface {}, drives {}",
                node.number,
                self.spec.made.scheme(),
                node.address,
                minio::PORT,
                node.namespace,
                self.network.host_end(node.number),
                numbers.join(" and ")
            )
        };
        self.nodes.iter().map(line).collect()
    }

    /// What happens meanwhile: whoever asks is answered, and servers that ended are told. To be called often, from the main thread.
    pub fn tend(&mut self, tell: &mut dyn FnMut(String)) {
        let Self { spec, network, home, plan, nodes, hosts, drives, control } = self;
        let Some(home) = home else { return };
        control.answer(|fault| {
            let mut parts = Parts { spec, network, journal: &mut home.journal, plan, nodes, hosts, drives };
            parts.fault(fault)?;
            tell(fault.to_string());
            Ok(fault.to_string())
        });
        for node in nodes.iter_mut() {
            if let Some(why) = node.ended() {
                tell(format!(
                    "{why}; `plimsoll target cluster fault node:{}=good` starts it again",
                    node.number
                ));
            }
        }
    }

    /// Ends all of it. What could not be taken down is told, and found again.
    pub fn take_down(&mut self) -> Result<(), SetupError> {
        self.nodes.iter_mut().for_each(MinioNode::kill);
        self.drives.clear();
        self.home.take().map_or(Ok(()), OwnHome::remove)
    }
}

impl Drop for RunningCluster {
    fn drop(&mut self) {
        // What stays is in the journal, and the next start takes it down.
        let _ = self.take_down();
    }
}

/// What a fault is about.
struct Parts<'a> {
    spec: &'a ClusterSpec,
    network: &'a BoxNetwork,
    journal: &'a mut Journal,
    plan: &'a MinioPlan,
    nodes: &'a mut Vec<MinioNode>,
    hosts: &'a mut Vec<SharedFacts>,
    drives: &'a mut Vec<BoxDrive>,
}

impl Parts<'_> {
    fn fault(&mut self, fault: BoxFault) -> Result<(), String> {
        let (number, all, what) = match fault {
            BoxFault::Drive(n, _) => (n, self.drives.len(), "drives"),
            BoxFault::Link(n, _) => (n, self.nodes.len(), "links"),
            BoxFault::Node(n, _) => (n, self.nodes.len(), "nodes"),
        };
        let at = number as usize - 1;
        if at >= all {
            return Err(format!("there are {all} {what}: name one of 1 to {all}"));
        }
        match fault {
            BoxFault::Drive(_, becomes) => self.drives[at].fault(becomes),
            BoxFault::Link(_, becomes) => {
                self.network.fault(number, becomes)?;
                let rate = if let Becomes::Rate(rate) = becomes { Some(rate) } else { self.spec.made.link };
                self.host(at, |h| h.link_bits_per_s = rate.map(|r| r.0));
                Ok(())
            }
            BoxFault::Node(_, becomes) => self.node(at, matches!(becomes, Becomes::Down)),
        }
    }

    fn node(&mut self, at: usize, is_down: bool) -> Result<(), String> {
        let node = &mut self.nodes[at];
        if is_down {
            node.kill();
        } else if node.pid().is_none() {
            node.start(self.plan, self.journal).map_err(|e| e.to_string())?;
        }
        let pid = node.pid();
        self.host(at, |h| h.pid = pid);
        Ok(())
    }

    fn host(&mut self, at: usize, change: impl FnOnce(&mut BoxFacts)) {
        change(&mut self.hosts[at].lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A subnet that is free, and the bridge by which it is taken: by one cluster at a time.
fn begin(spec: &ClusterSpec, own: &mut OwnHome) -> Result<(BoxNetwork, BoxControl), SetupError> {
    let control = BoxControl::open(&own.dir).map_err(|e| no_socket(&e))?;
    // A directory that every machine has, and that needs no file of ours in it. Without it two that begin at once may take one subnet.
    let turn = File::open("/run").and_then(|dir| {
        rustix::fs::flock(&dir, rustix::fs::FlockOperation::LockExclusive)?;
        Ok(dir)
    });
    let network = BoxNetwork::plan(spec)?;
    network.make_bridge(&mut own.journal)?;
    drop(turn);
    Ok((network, control))
}

/// What it takes, before anything is made; the server's program.
fn check_machine(spec: &ClusterSpec) -> Result<PathBuf, SetupError> {
    if !rustix::process::geteuid().is_root() {
        return Err(SetupError::input(
            "network namespaces take root",
            "Run it as root; or measure a cluster that is there, with --endpoint",
        ));
    }
    for tool in ["ip", "tc"] {
        if program(tool).is_none() {
            return Err(SetupError::input(
                format!("{tool} is not installed"),
                "On Debian and Ubuntu: apt-get install iproute2",
            ));
        }
    }
    if spec.made.drive_limit.is_some() && program("mkfs.ext4").is_none() {
        return Err(SetupError::input(
            "mkfs.ext4 is not installed, and drives with a limit need a file system",
            "On Debian and Ubuntu: apt-get install e2fsprogs; or leave --drive-limit out",
        ));
    }
    minio::find()
}

/// A control group with one for each node, which is held to so many cores. Gives the one above them.
fn make_groups(cores: f64, nodes: u32, journal: &mut Journal) -> Result<PathBuf, SetupError> {
    let groups = ControlGroups::of_self();
    let (levels, is_v2) = groups.levels_of(GroupController::Cpu);
    let above = if is_v2 { levels.iter().find(|d| delegates(d, &["cpu"])) } else { levels.first() };
    let refused = |e: io::Error| {
        SetupError::input(
            format!("no control group with {cores} cores can be made: {e}"),
            "Leave --cpu out, or run it where control groups can be made",
        )
    };
    let above = above.ok_or_else(|| refused(io::Error::other("this machine offers none")))?;
    let path = path_in(above, journal.mark());
    let fill = || {
        if is_v2 {
            fs::write(path.join("cgroup.subtree_control"), "+cpu")?;
        }
        let (file, value) = cpu_setting(cores, is_v2);
        for node in 1..=nodes {
            let own = path.join(node.to_string());
            fs::create_dir(&own)?;
            fs::write(own.join(file), &value)?;
        }
        Ok(())
    };
    make_group(&path, fill, journal)?.map_err(refused)?;
    Ok(path)
}

/// A control group, noted before, and struck out again where there is none of ours. What could not be filled is taken down with the cluster.
fn make_group(
    path: &Path,
    fill: impl FnOnce() -> io::Result<()>,
    journal: &mut Journal,
) -> Result<io::Result<()>, SetupError> {
    let id = journal.creating(Thing::Group { path: path.to_owned() })?;
    if let Err(e) = fs::create_dir(path) {
        journal.removed(id)?;
        return Ok(Err(e));
    }
    Ok(fill())
}

fn no_socket(e: &io::Error) -> SetupError {
    SetupError::input(
        format!("the cluster cannot be reached by other commands: {e}"),
        "Set TMPDIR to a directory on a disk",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_group_that_could_not_be_made_is_struck_out() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&dir.path().join("journal")).unwrap();
        let mut made = |path: &str, is_filled: bool| {
            let fill = || if is_filled { Ok(()) } else { Err(io::Error::other("no such controller")) };
            let told = make_group(&dir.path().join(path), fill, &mut journal).unwrap();
            (told.is_ok(), journal.pending().len())
        };
        assert_eq!(made("none/group", true), (false, 0));
        assert_eq!(made("group", true), (true, 1));
        assert_eq!(made("group", true), (false, 1), "one that is there is not ours");
        assert_eq!(made("other", false), (false, 2), "it is there, and has to go");
    }
}
