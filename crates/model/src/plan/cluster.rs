//! A cluster that Plimsoll makes on one machine: servers in network namespaces, with links, drives and CPUs of known limits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::{CLUSTER_VERSION, Cluster, ClusterDrive, ClusterNic, ClusterNode, Redundancy};
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
        let head = format!("{} nodes with {} drives, EC:{}", self.nodes, self.drive_count(), self.parity());
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

    /// What no syntax can say.
    pub fn check(&self) -> Result<(), ClusterProblem> {
        let wrong = |field, problem: String, remedy: String| Err(ClusterProblem { field, problem, remedy });
        let (all, most) = (self.drive_count(), self.drive_count() / 2);
        if !(2..=MOST_DRIVES).contains(&all) {
            let problem = format!("{} nodes with {} drives each are {all} drives", self.nodes, self.drives);
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

    #[test]
    fn it_is_said_in_words() {
        let link = Some("200mbit".parse().unwrap());
        let c = EmbeddedCluster { link, ec: Some(2), cpu: Some(0.3), ..EmbeddedCluster::default() };
        assert_eq!(c.words(), "4 nodes with 8 drives, EC:2, links of 200mbit, 0.3 cores each");
        let c = EmbeddedCluster { tls: true, ..c };
        assert_eq!(c.words(), "4 nodes with 8 drives, EC:2, links of 200mbit, 0.3 cores each, TLS");
    }
}
