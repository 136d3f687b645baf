//! A cluster that Plimsoll makes on one machine: servers in network namespaces, with links, drives and CPUs of known limits.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Plan, TargetSpec};
use crate::cluster::{CLUSTER_VERSION, Cluster, ClusterDrive, ClusterNic, ClusterNode, Redundancy};
use crate::count::{are, counted};
use crate::pattern::expand_ranges;
use crate::units::{BytesRate, LineRate, LinkRate, Size};

/// One erasure set of MinIO's: with more drives there would be several, and the traffic's arithmetic would be another.
const MOST_DRIVES: u32 = 16;
/// MinIO takes no drive with less than that.
const LEAST_DRIVE_BYTES: u64 = 1 << 30;
/// Far beyond any machine that has all of them.
const MOST_DRIVE_BYTES: u64 = 1 << 50;
/// Below it no disk answers in any time.
const LEAST_DRIVE_RATE: f64 = 1e4;
/// Cores of a node: with less no server starts in time.
const CPU_BOUNDS: (f64, f64) = (0.05, 4096.0);

/// MinIO servers on this machine (`plimsoll target cluster`), each in a network namespace of its own, with what they have of network, drives
/// and CPUs. Needs root, and MinIO in PATH.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EmbeddedCluster {
    /// Servers. Default: 4.
    pub nodes: u32,
    /// Of each server; 2 to 16 in all. Default: 2.
    pub drives: u32,
    /// Parity drives of an object. Absent: MinIO's own choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ec: Option<u32>,
    /// Of each server's link, each way, headers included. Absent: as fast as the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkRate>,
    /// Of each drive, for writes; and for reads, where `drive_read_limit` is absent. Absent: directories, as fast as what they are on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive_limit: Option<BytesRate>,
    /// Of each drive, for reads; with `drive_limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive_read_limit: Option<BytesRate>,
    /// Of each drive with a limit. Default: 4 GiB.
    pub drive_size: Size,
    /// Cores of each server. Absent: those of the machine, shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// With a certificate that is made for it: between clients and servers, and among these.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tls: bool,
}

impl Default for EmbeddedCluster {
    fn default() -> Self {
        let drive_size = Size(4 << 30);
        Self {
            nodes: 4,
            drives: 2,
            ec: None,
            link: None,
            drive_limit: None,
            drive_read_limit: None,
            drive_size,
            cpu: None,
            tls: false,
        }
    }
}

/// What no cluster can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterProblem {
    /// Of [`EmbeddedCluster`].
    pub field: &'static str,
    /// In words.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl EmbeddedCluster {
    /// What the interface of each node is called in its namespace.
    pub const NIC: &str = "eth0";

    /// All drives.
    pub fn drive_count(&self) -> u32 {
        self.nodes.saturating_mul(self.drives)
    }

    /// Parity drives, MinIO's choice where none were asked for.
    pub fn parity(&self) -> u32 {
        self.ec.unwrap_or(match self.drive_count() {
            0..=1 => 0,
            2..=3 => 1,
            4..=5 => 2,
            6..=7 => 3,
            _ => 4,
        })
    }

    /// Of its servers' addresses.
    pub fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    /// In words: `4 nodes with 8 drives, EC:2, links of 200mbit`.
    pub fn words(&self) -> String {
        let (nodes, drives) = (counted(self.nodes, "node"), counted(self.drive_count(), "drive"));
        let head = format!("{nodes} with {drives}, EC:{}", self.parity());
        let link = self.link.map(|l| format!("links of {l}"));
        let reads = self.drive_read_limit.map(|d| format!(" and {d} for reads")).unwrap_or_default();
        let drive = self.drive_limit.map(|d| format!("drives of {d}{reads}"));
        let cpu = self.cpu.map(|c| format!("{c} cores each"));
        let tls = self.tls.then(|| "TLS".to_owned());
        [Some(head), link, drive, cpu, tls].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// What it is made of, for `--cluster`: its nodes by this name (a pattern), each with an interface of that name.
    pub fn described(&self, nodes: &str, nic: &str) -> Cluster {
        let source = |flag: &str| Some(format!("--{flag}"));
        let drive = ClusterDrive {
            count: Some(self.drives),
            size: self.drive_limit.map(|_| self.drive_size),
            read: self.drive_read_limit.or(self.drive_limit),
            write: self.drive_limit,
            source: self.drive_limit.and_then(|_| source("drive-limit")),
            ..ClusterDrive::default()
        };
        let nic = ClusterNic {
            name: Some(nic.to_owned()),
            rate: self.link.map(|l| LineRate(l.0 / 8.0)),
            source: self.link.and_then(|_| source("link")),
            ..ClusterNic::default()
        };
        let node = ClusterNode {
            name: nodes.to_owned(),
            // Without a quota all nodes share the machine's.
            cpus: self.cpu,
            drives: vec![drive],
            nics: vec![nic],
            ..ClusterNode::default()
        };
        let (all, parity) = (self.drive_count(), self.parity());
        Cluster {
            version: CLUSTER_VERSION,
            name: None,
            software: "minio".into(),
            software_version: None,
            redundancy: Some(match parity {
                0 => Redundancy::None,
                parity => Redundancy::Erasure { data: all - parity, parity },
            }),
            set_size: Some(all),
            failure_domain: None,
            tls: Some(self.tls),
            clients: Default::default(),
            gateways: Default::default(),
            classes: Default::default(),
            nodes: vec![node],
        }
    }

    /// The same, of servers that were started at these hosts, in order of the nodes. `None`: they are not as many, or follow no pattern.
    pub fn described_at(&self, hosts: &[&str]) -> Option<Cluster> {
        let [first, ..] = hosts else { return None };
        let nodes = match hosts.len() {
            1 => (*first).to_owned(),
            n => format!("{}{{1...{n}}}", first.strip_suffix('1')?),
        };
        let is_all = hosts.len() == self.nodes as usize
            && expand_ranges(&nodes).is_ok_and(|named| named.iter().eq(hosts.iter()));
        is_all.then(|| self.described(&nodes, Self::NIC))
    }

    /// Labels by which runs are compared, as a description of it has them; wherever it will be.
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.described(&format!("embedded{{1...{}}}", self.nodes), Self::NIC).labels()
    }

    /// Whether a description says no more than is said here, at some addresses.
    pub fn is_described_by(&self, cluster: &Cluster) -> bool {
        matches!(&cluster.nodes[..], [node] if self.described(&node.name, Self::NIC) == *cluster)
    }

    /// What no syntax can say.
    pub fn check(&self) -> Result<(), ClusterProblem> {
        let wrong = |field, problem: String, remedy: String| Err(ClusterProblem { field, problem, remedy });
        let (all, most) = (self.drive_count(), self.drive_count() / 2);
        if !(2..=MOST_DRIVES).contains(&all) {
            let (nodes, each) = (counted(self.nodes, "node"), counted(self.drives, "drive"));
            let problem = format!("{nodes} with {each} each {} {}", are(all), counted(all, "drive"));
            return wrong(
                "nodes",
                problem,
                format!("Take 2 to {MOST_DRIVES} drives in all: they make one erasure set."),
            );
        }
        if self.parity() > most {
            let problem = format!("{} of {all} drives cannot be parity: half of them can", self.parity());
            return wrong("ec", problem, format!("Give 0 to {most}."));
        }
        if let Some(cpu) = self.cpu.filter(|c| !(CPU_BOUNDS.0..=CPU_BOUNDS.1).contains(c)) {
            let remedy = format!("Give {} or more, for example 0.3.", CPU_BOUNDS.0);
            return wrong("cpu", format!("{cpu} is not a number of cores that a node can have"), remedy);
        }
        if !(LEAST_DRIVE_BYTES..=MOST_DRIVE_BYTES).contains(&self.drive_size.0) {
            let problem = format!("{} is no size of a drive: MinIO needs 1 GiB of each", self.drive_size);
            return wrong("drive_size", problem, "Give 1GiB or more.".into());
        }
        if self.drive_read_limit.is_some() && self.drive_limit.is_none() {
            let problem = "drives without a limit have none for reads".into();
            return wrong("drive_read_limit", problem, "Give drive_limit, too.".into());
        }
        let limits = [self.drive_limit, self.drive_read_limit];
        match limits.into_iter().flatten().find(|d| d.0 < LEAST_DRIVE_RATE) {
            Some(d) => {
                wrong("drive_limit", format!("{d} is too slow for a drive"), "Give 10KB/s or more.".into())
            }
            None => Ok(()),
        }
    }
}

impl TargetSpec {
    /// Of a target that brings a cluster along.
    pub fn embedded_cluster(&self) -> Option<&EmbeddedCluster> {
        let Self::S3(s3) = self else { return None };
        s3.embedded.as_ref()?.cluster.as_deref()
    }
}

impl Plan {
    /// The cluster that a run of this plan brings along. `None`: none, or several, which no one description is true of.
    pub fn embedded_cluster(&self) -> Option<&EmbeddedCluster> {
        let mut all = self.targets.values().filter_map(TargetSpec::embedded_cluster);
        all.next().filter(|_| all.next().is_none())
    }

    /// Whether what it knows of the servers is what it asks for, and no more: written by a run that has started them.
    pub fn describes_its_own_cluster(&self) -> bool {
        let own = self.embedded_cluster().zip(self.options.cluster.as_deref());
        own.is_some_and(|(asked, described)| asked.is_described_by(described))
    }

    /// Describes the cluster that it brings along, whose servers are at these hosts; gives whether there is something new in it. Labels that
    /// it lacks come from there. What somebody else said of the servers stays.
    pub fn describe_own_cluster(&mut self, hosts: &[&str]) -> bool {
        let Some(found) = self.embedded_cluster().and_then(|c| c.described_at(hosts)) else { return false };
        let is_ours = self.options.cluster.is_none() || self.describes_its_own_cluster();
        if !is_ours || self.options.cluster.as_deref() == Some(&found) {
            return false;
        }
        for (name, value) in found.labels() {
            self.labels.entry(name).or_insert(value);
        }
        self.options.cluster = Some(Box::new(found));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_with_its_field() {
        let cluster = EmbeddedCluster::default;
        cluster().check().unwrap();
        let field = |c: EmbeddedCluster| c.check().unwrap_err().field;
        assert_eq!(field(EmbeddedCluster { nodes: 9, ..cluster() }), "nodes");
        assert_eq!(field(EmbeddedCluster { nodes: u32::MAX, drives: u32::MAX, ..cluster() }), "nodes");
        assert_eq!(field(EmbeddedCluster { nodes: 1, drives: 1, ..cluster() }), "nodes");
        assert_eq!(field(EmbeddedCluster { ec: Some(5), ..cluster() }), "ec");
        assert_eq!(field(EmbeddedCluster { cpu: Some(0.0), ..cluster() }), "cpu");
        assert_eq!(field(EmbeddedCluster { cpu: Some(f64::NAN), ..cluster() }), "cpu");
        assert_eq!(field(EmbeddedCluster { drive_size: Size(1 << 20), ..cluster() }), "drive_size");
        assert_eq!(field(EmbeddedCluster { drive_limit: Some(BytesRate(1.0)), ..cluster() }), "drive_limit");
        let only_reads = EmbeddedCluster { drive_read_limit: Some(BytesRate(1e6)), ..cluster() };
        assert_eq!(field(only_reads), "drive_read_limit");
    }

    #[test]
    fn parity_is_minios_own_where_none_is_asked_for() {
        let of = |nodes, drives| EmbeddedCluster { nodes, drives, ..EmbeddedCluster::default() }.parity();
        assert_eq!([of(2, 1), of(4, 1), of(3, 2), of(4, 2), of(4, 4)], [1, 2, 3, 4, 4]);
    }

    #[test]
    fn what_it_is_made_of_is_a_cluster_file_with_its_ceilings() {
        let c = EmbeddedCluster {
            ec: Some(2),
            link: Some("200mbit".parse().unwrap()),
            drive_limit: Some("40MB/s".parse().unwrap()),
            drive_read_limit: Some("50MB/s".parse().unwrap()),
            cpu: Some(0.3),
            ..EmbeddedCluster::default()
        };
        let made = c.described("10.213.0.{1...4}", "eth0");
        made.check().unwrap();
        assert_eq!(Cluster::from_toml(&made.to_toml()).unwrap(), made);
        let node = made.node_of("10.213.0.3:9000").unwrap();
        assert_eq!(node.nic("eth0").and_then(ClusterNic::most_in), Some(25e6));
        let drive = node.drive("drive6").unwrap();
        assert_eq!((drive.read.map(|r| r.0), drive.write.map(|r| r.0)), (Some(50e6), Some(40e6)));
        assert_eq!((made.drive_count(), node.cpus), (8, Some(0.3)));
        assert_eq!(made.spread(None).unwrap().put().drives, 8.0 / 6.0);
        // What has no limit has none there; a single server keeps what it is given once.
        let plain = EmbeddedCluster { nodes: 1, drives: 2, ec: Some(0), ..EmbeddedCluster::default() };
        let made = plain.described("10.213.0.1", "eth0");
        made.check().unwrap();
        let node = made.node_of("10.213.0.1").unwrap();
        assert_eq!((node.nics[0].rate, node.drives[0].read, node.cpus), (None, None, None));
        assert_eq!(made.redundancy, Some(Redundancy::None));
    }

    /// A plan whose run has a cluster of its own.
    fn with_a_cluster() -> Plan {
        let text = "version = 1\n[targets.t]\nkind = \"s3\"\nendpoints = [\"embedded\"]\nbucket = \"b\"\n\
            embedded = { cluster = { nodes = 2, drives = 2, ec = 2, link = \"200mbit\" } }\n\
            [[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { put = 1 }\n";
        Plan::from_toml(text).unwrap()
    }

    #[test]
    fn a_run_with_a_cluster_of_its_own_knows_it_once_it_runs() {
        let mut plan = with_a_cluster();
        assert!(!plan.describes_its_own_cluster());
        assert!(plan.describe_own_cluster(&["10.213.0.1", "10.213.0.2"]));
        let known = plan.options.cluster.clone().unwrap();
        assert_eq!((known.node_count(), known.drive_count()), (2, 4));
        assert_eq!(known.spread(None).unwrap().put().drives, 2.0);
        let node = known.node_of("10.213.0.2").unwrap();
        assert_eq!(node.nic(EmbeddedCluster::NIC).and_then(ClusterNic::most_in), Some(25e6));
        assert_eq!((plan.labels["nodes"].as_str(), plan.labels["ec"].as_str()), ("2", "2+2"));
        assert_eq!(plan.embedded_cluster().unwrap().labels(), plan.labels);
        plan.validate().unwrap();
        // As it is stored, read back, and run again: at other addresses.
        let mut again = Plan::from_toml(&plan.to_toml()).unwrap();
        assert!(again.describes_its_own_cluster());
        assert!(!again.describe_own_cluster(&["10.213.0.1", "10.213.0.2"]), "nothing is new");
        assert!(again.describe_own_cluster(&["10.213.7.1", "10.213.7.2"]));
        assert!(again.options.cluster.unwrap().node_of("10.213.7.2").is_some());
    }

    #[test]
    fn what_somebody_else_said_of_the_servers_and_their_labels_stays() {
        let hosts = ["10.213.0.1", "10.213.0.2"];
        let mut plan = with_a_cluster();
        plan.labels.insert("ec".into(), "2".into());
        assert!(plan.describe_own_cluster(&hosts));
        assert_eq!((plan.labels["nodes"].as_str(), plan.labels["ec"].as_str()), ("2", "2"));
        let mut told = plan.options.cluster.unwrap();
        told.name = Some("theirs".into());
        let mut plan = Plan {
            options: crate::plan::RunOptions { cluster: Some(told.clone()), ..Default::default() },
            ..with_a_cluster()
        };
        assert!(!plan.describes_its_own_cluster() && !plan.describe_own_cluster(&hosts));
        assert_eq!(plan.options.cluster, Some(told));
        // Not those that were asked for.
        for others in [&["10.213.0.1"][..], &["10.213.0.1", "10.213.0.4"], &["a", "b"], &[]] {
            assert!(!with_a_cluster().describe_own_cluster(others), "{others:?}");
        }
    }

    #[test]
    fn it_is_said_in_words() {
        let link = Some("200mbit".parse().unwrap());
        let c = EmbeddedCluster { link, ec: Some(2), cpu: Some(0.3), ..EmbeddedCluster::default() };
        assert_eq!(c.words(), "4 nodes with 8 drives, EC:2, links of 200mbit, 0.3 cores each");
        let one = EmbeddedCluster { nodes: 1, drives: 4, ..EmbeddedCluster::default() };
        assert_eq!(one.words(), "1 node with 4 drives, EC:2");
        let one = EmbeddedCluster { drives: 1, ..one };
        assert!(one.check().unwrap_err().problem.starts_with("1 node with 1 drive each is 1 drive"));
        let c = EmbeddedCluster { tls: true, ..c };
        assert_eq!(c.words(), "4 nodes with 8 drives, EC:2, links of 200mbit, 0.3 cores each, TLS");
    }
}
