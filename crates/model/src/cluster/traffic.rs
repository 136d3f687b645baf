//! What redundancy makes of the clients' bytes, on drives and between servers, where all services are on the same nodes and requests go to
//! all of them alike. Payload only: heads of frames come on top.
//!
//! | engine | PUT | GET |
//! |---|---|---|
//! | drives | (k+m)/k, or r | 1 |
//! | MinIO, between nodes | (k+m)/k x (N-1)/N | (k - local)/k with a node's own shards first; (N-1)/N without |
//! | Ceph, between nodes | EC: (N-1)/N + (k+m-1)/k; replicas: (N-1)/N + (r-1) | EC: (N-1)/N + (k-1)/k; replicas: (N-1)/N |
//!
//! Ceph's are of shards that lie on a node each. On fewer nodes than shards (a failure domain of drives) a node has several, and of
//! those that the primary sends or asks for only the (N-1)/N of them that lie elsewhere cross a wire: on one node nothing does.

use super::Redundancy;

/// Who keeps the data: the way of a request through the servers is not the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterEngine {
    /// The server that is asked reads and writes all shards itself.
    Minio,
    /// A gateway asks the primary, which asks the others.
    Ceph,
}

/// How objects lie on a cluster. Numbers need not be whole: a published mean may be of several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataSpread {
    /// Who keeps the data.
    pub engine: ClusterEngine,
    /// N.
    pub nodes: f64,
    /// k, or 1 of copies.
    pub data: f64,
    /// m, or the copies beyond the first.
    pub parity: f64,
    /// Whole copies, and not shards.
    pub is_copies: bool,
}

/// Bytes for each byte of the clients' payload, of the cluster as a whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Amplification {
    /// Written to drives, or read from them.
    pub drives: f64,
    /// From server to server.
    pub between: f64,
    /// The least that this may be: where servers read their own shards first.
    pub between_least: f64,
}

/// What each node sends and receives, bytes a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeLoad {
    /// Received.
    pub inward: f64,
    /// Sent.
    pub outward: f64,
}

impl DataSpread {
    /// Of data that is kept as `redundancy` says. `None`: this engine does not keep it so.
    pub fn of(engine: ClusterEngine, redundancy: Redundancy, nodes: f64) -> Option<Self> {
        let (data, parity, is_copies) = match redundancy {
            Redundancy::None => (1.0, 0.0, true),
            Redundancy::Erasure { data, parity } => (f64::from(data), f64::from(parity), false),
            Redundancy::Replicas(r) => (1.0, f64::from(r) - 1.0, true),
        };
        let one = Self { engine, nodes, data, parity, is_copies };
        // MinIO keeps copies only where there is one drive.
        (nodes >= 1.0 && !(engine == ClusterEngine::Minio && is_copies && parity > 0.0)).then_some(one)
    }

    /// Part of anything that lies on another node than the one that is asked.
    fn elsewhere(&self) -> f64 {
        (self.nodes - 1.0) / self.nodes
    }

    /// Of so many shards, or copies, those on other nodes than the primary's.
    fn beside_the_primary(&self, shards: f64) -> f64 {
        if self.nodes < self.data + self.parity { shards * self.elsewhere() } else { shards - 1.0 }
    }

    /// Of bytes that are written.
    pub fn put(&self) -> Amplification {
        let drives = (self.data + self.parity) / self.data;
        let between = match (self.engine, self.is_copies) {
            (ClusterEngine::Minio, _) => drives * self.elsewhere(),
            (ClusterEngine::Ceph, _) => {
                self.elsewhere() + self.beside_the_primary(self.data + self.parity) / self.data
            }
        };
        Amplification { drives, between, between_least: between }
    }

    /// Of bytes that are read.
    pub fn get(&self) -> Amplification {
        let (between, between_least) = match (self.engine, self.is_copies) {
            (ClusterEngine::Minio, _) => {
                // Shards of an object that the node that is asked has itself, on average.
                let local = (self.data + self.parity) / self.nodes;
                (self.elsewhere(), ((self.data - local) / self.data).max(0.0))
            }
            (ClusterEngine::Ceph, true) => (self.elsewhere(), self.elsewhere()),
            (ClusterEngine::Ceph, false) => {
                let all = self.elsewhere() + self.beside_the_primary(self.data) / self.data;
                (all, all)
            }
        };
        Amplification { drives: 1.0, between, between_least }
    }
}

/// What each of `nodes` sends and receives while clients write and read so many bytes a second of payload and servers send each other
/// `between`. `clients_inside`: they run in the servers, and their bytes cross no wire.
pub fn node_load(nodes: f64, wrote: f64, read: f64, between: f64, clients_inside: bool) -> NodeLoad {
    let clients = if clients_inside { 0.0 } else { 1.0 };
    NodeLoad { inward: (between + clients * wrote) / nodes, outward: (between + clients * read) / nodes }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: f64 = 1_073_741_824.0;
    const GBIT: f64 = 1.25e8;

    fn of(engine: ClusterEngine, redundancy: &str, nodes: f64) -> DataSpread {
        DataSpread::of(engine, redundancy.parse().unwrap(), nodes).unwrap()
    }

    fn near(measured: f64, printed: f64) {
        assert!((measured - printed).abs() < 0.05, "{measured} is not {printed}");
    }

    /// 32 nodes, 8 drives each, sets of 16, the speedtest's client in each server.
    #[test]
    fn a_speedtest_of_32_nodes() {
        let rate = 325.0 * GIB;
        near(rate / 32.0 / GBIT, 87.2);
        for ec in ["ec:14+2", "ec:13+3", "ec:12+4"] {
            let get = of(ClusterEngine::Minio, ec, 32.0).get();
            let inside = node_load(32.0, 0.0, rate, rate * get.between, true);
            near(inside.inward / GBIT, 84.52);
            // Clients on the wire would need more than the link of 100.
            let outside = node_load(32.0, 0.0, rate, rate * get.between, false);
            near(outside.outward / GBIT, 171.8);
            assert!(get.between_least < get.between);
        }
        // PUT: rates as published for EC:2, 3 and 4.
        for (ec, gib, drives_gib, gbit) in [
            ("ec:14+2", 197.0, 225.1, 58.5),
            ("ec:13+3", 181.0, 222.8, 57.9),
            ("ec:12+4", 165.0, 220.0, 57.2),
        ] {
            let put = of(ClusterEngine::Minio, ec, 32.0).put();
            near(gib * put.drives, drives_gib);
            near(gib * GIB * put.between / 32.0 / GBIT, gbit);
        }
    }

    /// 12 nodes, EC 2+2, gateways on the same nodes: 111 GiB/s read and 65.8 GiB/s written.
    #[test]
    fn gateways_beside_their_disks() {
        let ceph = of(ClusterEngine::Ceph, "ec:2+2", 12.0);
        let (read, wrote) = (111.0 * GIB, 65.8 * GIB);
        let get = node_load(12.0, 0.0, read, read * ceph.get().between, false);
        near((get.outward / GBIT).round(), 192.0);
        let put = node_load(12.0, wrote, 0.0, wrote * ceph.put().between, false);
        near((put.inward / GBIT).round(), 161.0);
        assert_eq!(ceph.put().drives, 2.0);
        let three = of(ClusterEngine::Ceph, "replica:3", 4.0);
        assert_eq!((three.put().drives, three.put().between, three.get().between), (3.0, 2.75, 0.75));
    }

    /// Four nodes of two drives with links of 200 Mbit/s: what clients can have at most, with the network as the ceiling.
    #[test]
    fn links_of_a_small_cluster() {
        for (ec, put, get) in [("ec:6+2", 400.0, 480.0), ("ec:5+3", 363.6, 500.0), ("ec:4+4", 320.0, 533.3)] {
            let s = of(ClusterEngine::Minio, ec, 4.0);
            // Of one byte of payload a node receives, or sends, this part.
            let inward = node_load(4.0, 1.0, 0.0, s.put().between, false).inward;
            let outward = node_load(4.0, 0.0, 1.0, s.get().between_least, false).outward;
            near(200.0 / inward, put);
            near(200.0 / outward, get);
            near(200.0 / node_load(4.0, 0.0, 1.0, s.get().between, false).outward, 457.1);
        }
    }

    #[test]
    fn what_is_on_one_node_crosses_nothing() {
        let one = of(ClusterEngine::Minio, "ec:2+2", 1.0);
        assert_eq!((one.put().between, one.get().between, one.get().between_least), (0.0, 0.0, 0.0));
        for kept in ["ec:2+2", "replica:3"] {
            let one = of(ClusterEngine::Ceph, kept, 1.0);
            assert_eq!(
                (one.put().between, one.get().between, one.get().between_least),
                (0.0, 0.0, 0.0),
                "{kept}"
            );
        }
        // Two nodes, two shards on each: one of the three others lies beside the primary.
        let two = of(ClusterEngine::Ceph, "ec:2+2", 2.0);
        assert_eq!((two.put().between, two.get().between), (0.5 + 1.0, 0.5 + 0.5));
        assert_eq!(DataSpread::of(ClusterEngine::Minio, Redundancy::Replicas(3), 4.0), None);
        assert_eq!(of(ClusterEngine::Minio, "none", 1.0).put().drives, 1.0);
    }
}
