//! What a cluster is made of (`cluster.toml`): found by `plimsoll describe cluster` where it can be, and edited by hand. It is part of each
//! run that is given it: source of labels, of ceilings that no exporter tells, and of what redundancy makes of the clients' bytes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{BytesRate, LineRate, Size};

mod ceilings;
mod check;
mod redundancy;
pub mod traffic;

pub use ceilings::PayloadCeiling;
pub use check::{ClusterError, MOST_NODES, MOST_PARTS};
pub use redundancy::Redundancy;
use traffic::{ClusterEngine, DataSpread};

/// The version of the cluster file's format that this program reads.
pub const CLUSTER_VERSION: u32 = 1;

/// What a cluster is made of. Written as TOML; an unknown key is an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Format version: 1.
    pub version: u32,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `minio` and `ceph` have arithmetic of their own; others are named.
    pub software: String,
    /// As it calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub software_version: Option<String>,
    /// Of the objects that are measured: `ec:6+2`, `replica:3`, `none`. Absent: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redundancy: Option<Redundancy>,
    /// Drives of an erasure set. Absent: as many as an object has shards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_size: Option<u32>,
    /// What may fail as a whole: `host`, `osd`, `rack`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
    /// Clients speak TLS with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<bool>,
    /// Where those who generate load are. Default: `apart`.
    #[serde(default, skip_serializing_if = "ClientPlace::is_default")]
    pub clients: ClientPlace,
    /// Where gateways are, of a system that has them. Default: `on-nodes`.
    #[serde(default, skip_serializing_if = "GatewayPlace::is_default")]
    pub gateways: GatewayPlace,
    /// Redundancy of other storage classes and pools, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, Redundancy>,
    /// One at least; several that are alike with one pattern.
    #[serde(rename = "node")]
    pub nodes: Vec<ClusterNode>,
}

/// Where those who generate load are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClientPlace {
    /// On machines of their own: their bytes cross the nodes' links.
    #[default]
    Apart,
    /// On the nodes, and spread over them: their bytes share the nodes' processors, and most of them the links.
    OnNodes,
    /// In the servers, as MinIO's own speedtest has it: their bytes cross no link.
    InServers,
}

impl ClientPlace {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Where gateways are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GatewayPlace {
    /// On the nodes that have the drives.
    #[default]
    OnNodes,
    /// On nodes without drives.
    Apart,
}

impl GatewayPlace {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// One node, or several that are alike.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterNode {
    /// As exporters and servers call it; `s{1...4}` stands for four.
    pub name: String,
    /// Other names of it, and addresses; a pattern in order of the nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// CPUs that the servers may use; of a quota, a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// Of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Those that hold data.
    #[serde(default, rename = "drive", skip_serializing_if = "Vec::is_empty")]
    pub drives: Vec<ClusterDrive>,
    /// Those that data goes over.
    #[serde(default, rename = "nic", skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<ClusterNic>,
}

/// A drive of a node, or several that are alike.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterDrive {
    /// As the kernel names it: `nvme0n1`, `nvme{0...7}n1`. Absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Where it is mounted, as the server names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How many, where `device` and `path` are no patterns. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// As it calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// It has platters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
    /// What one gives at most, reading: of `plimsoll drive`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<BytesRate>,
    /// What one takes at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<BytesRate>,
    /// Whose figures `read` and `write` are: a run, a data sheet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// An interface of a node.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterNic {
    /// As the kernel names it: `eth0`. Absent: the node's only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the line carries each way: `25Gbit/s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<LineRate>,
    /// What was measured to come in at most, of `plimsoll net`; in place of `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receives: Option<LineRate>,
    /// What was measured to go out at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sends: Option<LineRate>,
    /// Whose figures these are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Whose traffic goes over it. Default: `all`.
    #[serde(default, skip_serializing_if = "NicTraffic::is_default")]
    pub network: NicTraffic,
}

impl ClusterNic {
    /// What it takes in at most, bytes a second.
    pub fn most_in(&self) -> Option<f64> {
        self.receives.or(self.rate).map(|r| r.0)
    }

    /// What it gives out at most, bytes a second.
    pub fn most_out(&self) -> Option<f64> {
        self.sends.or(self.rate).map(|r| r.0)
    }
}

/// Whose traffic goes over an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NicTraffic {
    /// Clients' and servers'.
    #[default]
    All,
    /// Clients' alone: the servers have a network of their own.
    Clients,
    /// The servers' among themselves.
    Servers,
}

impl NicTraffic {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Cluster {
    /// How many nodes it has, patterns counted out.
    pub fn node_count(&self) -> usize {
        self.nodes.iter().map(|n| n.names().len()).sum()
    }

    /// Drives of all nodes.
    pub fn drive_count(&self) -> usize {
        self.nodes.iter().map(|n| n.names().len() * n.drive_count()).sum()
    }

    /// The node that a source calls `host`: by its name, an address, or either without a port.
    pub fn node_of(&self, host: &str) -> Option<&ClusterNode> {
        Some(&self.nodes[self.node_index_of(host)?])
    }

    /// The name that the description has for the node that `host` is a name or an address of.
    pub fn name_of(&self, host: &str) -> Option<String> {
        let node = self.node_of(host)?;
        let bare = host.rsplit_once(':').filter(|(h, _)| !h.contains(':')).map_or(host, |(h, _)| h);
        let place = |all: &[String]| all.iter().position(|name| name == host || name == bare);
        let names = node.names();
        // A pattern's addresses are in the order of its names.
        let at = place(&names).or_else(|| node.addresses.iter().find_map(|a| place(&expanded(a))));
        names.get(at.unwrap_or(0)).cloned()
    }

    /// Its place among `nodes`.
    pub fn node_index_of(&self, host: &str) -> Option<usize> {
        let bare = host.rsplit_once(':').filter(|(h, p)| !h.contains(':') && p.parse::<u16>().is_ok());
        let is = |name: &str| name == host || bare.is_some_and(|(h, _)| h == name);
        self.nodes.iter().position(|n| {
            n.names().iter().any(|name| is(name))
                || n.addresses.iter().any(|a| expanded(a).iter().any(|name| is(name)))
        })
    }

    /// Whose arithmetic it has.
    pub fn engine(&self) -> Option<ClusterEngine> {
        match self.software.to_ascii_lowercase().as_str() {
            "minio" => Some(ClusterEngine::Minio),
            "ceph" => Some(ClusterEngine::Ceph),
            _ => None,
        }
    }

    /// How objects of a storage class lie on it (`None`: of none that is named). `None`: not known, or gateways are not where the
    /// arithmetic has them.
    pub fn spread(&self, class: Option<&str>) -> Option<DataSpread> {
        if self.gateways == GatewayPlace::Apart {
            return None;
        }
        let named = class.and_then(|c| self.classes.get(c)).copied();
        DataSpread::of(self.engine()?, named.or(self.redundancy)?, self.node_count() as f64)
    }

    /// Whether servers have interfaces of their own for what they say to each other.
    pub fn is_east_west_apart(&self) -> bool {
        self.nodes.iter().flat_map(|n| &n.nics).any(|n| n.network == NicTraffic::Servers)
    }

    /// Labels by which runs are compared: `nodes`, and `ec` or `replicas`.
    pub fn labels(&self) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::from([("nodes".to_owned(), self.node_count().to_string())]);
        match self.redundancy {
            Some(Redundancy::Erasure { data, parity }) => {
                labels.insert("ec".into(), format!("{data}+{parity}"));
            }
            Some(Redundancy::Replicas(n)) => {
                labels.insert("replicas".into(), n.to_string());
            }
            Some(Redundancy::None) | None => {}
        }
        labels
    }
}

impl ClusterNode {
    /// Each node that it stands for.
    pub fn names(&self) -> Vec<String> {
        expanded(&self.name)
    }

    /// Drives of one node.
    pub fn drive_count(&self) -> usize {
        self.drives.iter().map(ClusterDrive::how_many).sum()
    }

    /// The drive that the kernel calls so, or the only kind of drives that the node has.
    pub fn drive(&self, device: &str) -> Option<&ClusterDrive> {
        let named =
            |d: &&ClusterDrive| d.device.as_ref().is_some_and(|p| expanded(p).iter().any(|n| n == device));
        let only = || match &self.drives[..] {
            [one] if one.device.is_none() => Some(one),
            _ => None,
        };
        self.drives.iter().find(named).or_else(only)
    }

    /// The interface that the kernel calls so, where it is named.
    pub fn nic(&self, name: &str) -> Option<&ClusterNic> {
        self.nics.iter().find(|n| n.name.as_deref() == Some(name))
    }

    /// The interface of a node that has one, whatever it is called.
    pub fn only_nic(&self) -> Option<&ClusterNic> {
        match &self.nics[..] {
            [one] => Some(one),
            _ => None,
        }
    }
}

impl ClusterDrive {
    /// How many it stands for.
    pub fn how_many(&self) -> usize {
        let pattern = self.device.as_ref().or(self.path.as_ref()).map_or(1, |p| expanded(p).len());
        self.count.map_or(pattern, |n| n as usize)
    }
}

/// A pattern that was checked: what it stands for, or itself.
fn expanded(pattern: &str) -> Vec<String> {
    crate::pattern::expand_ranges(pattern).unwrap_or_else(|_| vec![pattern.to_owned()])
}

#[cfg(test)]
mod tests;
