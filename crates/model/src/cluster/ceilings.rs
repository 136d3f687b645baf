//! What clients can have of a cluster at most, by its ceilings and by what redundancy makes of their bytes: before anything is measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ClientPlace, Cluster, ClusterDrive, ClusterNic, ClusterNode, NicTraffic};

/// The clients' payload with which one kind of resource is full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PayloadCeiling {
    /// `network in`, `network out` or `drive`.
    pub resource: String,
    /// Bytes a second, of all clients together. Heads of frames are not taken off: of a line some 5 % are theirs.
    pub per_s: f64,
}

impl Cluster {
    /// Of objects of a storage class that are read, or written: what each kind of resource lets through, the least first. Requests go to all
    /// nodes alike, so that the slowest node stands for each. What is not in the file has no ceiling.
    pub fn payload_ceilings(&self, class: Option<&str>, is_read: bool) -> Vec<PayloadCeiling> {
        let Some(spread) = self.spread(class) else { return Vec::new() };
        let all = if is_read { spread.get() } else { spread.put() };
        // At the best: servers read their own shards first.
        let between = all.between_least;
        let with_clients = if self.clients == ClientPlace::InServers { 0.0 } else { 1.0 };
        let (wrote, read) = if is_read { (0.0, with_clients) } else { (with_clients, 0.0) };
        let network = |clients: f64, most: fn(&ClusterNic) -> Option<f64>| {
            if !self.is_east_west_apart() {
                return self
                    .least_of_nodes(most, |_| true)
                    .map(|rate| (clients + between, rate))
                    .into_iter()
                    .collect();
            }
            let of = |part: f64, own: NicTraffic| {
                let rate = self.least_of_nodes(most, |n| n.network == own || n.network == NicTraffic::All)?;
                Some((part, rate))
            };
            [of(clients, NicTraffic::Clients), of(between, NicTraffic::Servers)]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
        };
        let nodes = self.node_count() as f64;
        let let_through = |parts: Vec<(f64, f64)>| {
            let each = parts.into_iter().filter(|(part, _)| *part > 0.0);
            each.map(|(part, rate)| nodes * rate / part).reduce(f64::min)
        };
        let drives = self.least_drive(is_read).map(|rate| rate * self.drive_count() as f64 / all.drives);
        let mut out: Vec<PayloadCeiling> = [
            ("network in", let_through(network(wrote, ClusterNic::most_in))),
            ("network out", let_through(network(read, ClusterNic::most_out))),
            ("drive", drives),
        ]
        .into_iter()
        .filter_map(|(resource, per_s)| Some(PayloadCeiling { resource: resource.into(), per_s: per_s? }))
        .collect();
        out.sort_by(|a, b| a.per_s.total_cmp(&b.per_s));
        out
    }

    /// Of the interfaces of a node together, where all are known; of all nodes the least. `None`: not known of each.
    fn least_of_nodes(
        &self,
        most: fn(&ClusterNic) -> Option<f64>,
        of: impl Fn(&ClusterNic) -> bool,
    ) -> Option<f64> {
        let of_node = |n: &ClusterNode| {
            let rates: Option<Vec<f64>> = n.nics.iter().filter(|n| of(n)).map(most).collect();
            rates.filter(|r| !r.is_empty()).map(|r| r.iter().sum::<f64>())
        };
        let all: Option<Vec<f64>> = self.nodes.iter().map(of_node).collect();
        all?.into_iter().reduce(f64::min)
    }

    /// Shards go to all drives alike: the slowest stands for each.
    fn least_drive(&self, is_read: bool) -> Option<f64> {
        let rate = |d: &ClusterDrive| if is_read { d.read } else { d.write };
        let all: Option<Vec<f64>> =
            self.nodes.iter().flat_map(|n| &n.drives).map(|d| rate(d).map(|r| r.0)).collect();
        all?.into_iter().reduce(f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: &str = "version = 1\nsoftware = \"minio\"\nredundancy = \"ec:6+2\"\n[[node]]\nname = \"s{1...4}\"\n\
        drive = [{ count = 2, read = \"50MB/s\", write = \"10MB/s\" }]\nnic = [{ rate = \"200mbit\" }]\n";

    fn of(text: &str, is_read: bool) -> Vec<(String, f64)> {
        let all = Cluster::from_toml(text).unwrap().payload_ceilings(None, is_read);
        all.into_iter().map(|c| (c.resource, (c.per_s / 1e5).round() / 10.0)).collect()
    }

    #[test]
    fn four_nodes_by_their_links_and_drives() {
        // 400 and 480 Mbit/s by the links, and eight drives of 10 MB/s of which 6/8 are payload.
        let (drive, inward, outward) =
            ("drive".to_owned(), "network in".to_owned(), "network out".to_owned());
        assert_eq!(of(BOX, false), [(inward.clone(), 50.0), (drive.clone(), 60.0), (outward.clone(), 100.0)]);
        assert_eq!(of(BOX, true), [(outward.clone(), 60.0), (inward.clone(), 150.0), (drive, 400.0)]);
        // A network of the servers' own carries what they say to each other, and the clients have theirs.
        let apart = BOX.replace(
            "{ rate = \"200mbit\" }",
            "{ name = \"c\", rate = \"200mbit\", network = \"clients\" }, { name = \"s\", rate = \"800mbit\", network = \"servers\" }",
        );
        assert_eq!(of(&apart, true)[0], (outward, 100.0));
        assert_eq!(of(&apart, false).iter().find(|c| c.0 == inward).unwrap().1, 100.0);
    }

    #[test]
    fn what_is_not_known_of_each_node_is_no_ceiling() {
        let one_slow = format!("{BOX}[[node]]\nname = \"s5\"\n");
        assert_eq!(of(&one_slow, false), [("drive".to_owned(), 60.0)]);
        assert_eq!(of(&BOX.replace("redundancy = \"ec:6+2\"\n", ""), false), []);
        let slow = format!(
            "{BOX}[[node]]\nname = \"s5\"\ndrive = [{{ count = 2, read = \"50MB/s\", write = \"10MB/s\" }}]\nnic = [{{ rate = \"20mbit\" }}]\n"
        );
        assert_eq!(of(&slow, true)[0].0, "network out");
        assert!(of(&slow, true)[0].1 < 10.0, "the slowest node stands for each: {:?}", of(&slow, true));
    }
}
