//! What a cluster is made of, from what its servers and exporters say: nodes, drives, interfaces, redundancy. What nobody says is left out,
//! and named, for whoever edits the file.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::Cluster;
use plimsoll_model::cluster::{
    CLUSTER_VERSION, ClusterDrive, ClusterNic, ClusterNode, MOST_NODES, MOST_PARTS, NicTraffic, Redundancy,
};
use plimsoll_model::observed::{FASTEST_LINE, is_nic};
use plimsoll_model::text::clean;
use plimsoll_model::units::{LineRate, Size};
use serde_json::Value;

use crate::page::{PARTIAL_PAGE, host_part};
use crate::text::{self, MetricSeries, NotMetrics};

/// What was found, source by source.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundCluster {
    software: Option<(String, Option<String>)>,
    redundancy: Option<Redundancy>,
    classes: BTreeMap<String, Redundancy>,
    set_size: Option<u32>,
    failure_domain: Option<String>,
    tls: Option<bool>,
    nodes: BTreeMap<String, ClusterNode>,
    /// Nodes whose processors are their machine's, which they share: what a server there counts is of all of them.
    shared_cpus: BTreeSet<String>,
    /// What has to be looked at by a person, in sentences.
    pub remarks: Vec<String>,
}

fn word(v: &Value) -> Option<String> {
    v.as_str().map(|t| clean(t.trim()).chars().take(200).collect()).filter(|t: &String| !t.is_empty())
}

fn number(v: &Value) -> Option<u32> {
    v.as_u64().and_then(|n| u32::try_from(n).ok())
}

impl FoundCluster {
    /// MinIO's `GET /minio/admin/v3/info`.
    pub fn add_minio(&mut self, answer: &str, tls: bool) -> Result<(), NotMetrics> {
        let answer: Value = serde_json::from_str(answer).map_err(|e| NotMetrics::Answer(e.to_string()))?;
        let (backend, servers) = (&answer["backend"], answer["servers"].as_array());
        let servers = servers.ok_or_else(|| NotMetrics::Answer("there are no 'servers' in it".into()))?;
        let versions: BTreeSet<String> = servers.iter().filter_map(|s| word(&s["version"])).collect();
        if versions.len() > 1 {
            let all = versions.iter().cloned().collect::<Vec<_>>().join(", ");
            self.remarks.push(format!("the servers are of several versions: {all}"));
        }
        self.software = Some(("minio".into(), versions.into_iter().next()));
        self.tls = Some(tls);
        self.failure_domain.get_or_insert_with(|| "drive".into());
        self.minio_sets(backend);
        let hosts: Vec<String> = servers.iter().filter_map(|s| word(&s["endpoint"])).collect();
        for (server, endpoint) in
            servers.iter().filter_map(|s| Some((s, word(&s["endpoint"])?))).take(MOST_NODES)
        {
            // Two servers of one host are told apart by their ports.
            let host = host_part(&endpoint).to_owned();
            let alone = hosts.iter().filter(|h| host_part(h) == host).count() == 1;
            let node = self.node(if alone { &host } else { &endpoint });
            node.cpus = node.cpus.or(number(&server["num_cpu"]).map(f64::from));
            let drives = server["drives"].as_array().into_iter().flatten().take(MOST_PARTS);
            let found: Vec<ClusterDrive> = drives.filter_map(minio_drive).collect();
            let known: BTreeSet<Option<String>> = node.drives.iter().map(|d| d.path.clone()).collect();
            node.drives.extend(found.into_iter().filter(|d| !known.contains(&d.path)));
            let state = word(&server["state"]).unwrap_or_default();
            if state != "online" {
                self.remarks.push(format!("server {endpoint} is {state}: what it has is not known"));
            }
        }
        Ok(())
    }

    fn minio_sets(&mut self, backend: &Value) {
        let sets: Vec<u32> =
            backend["totalDrivesPerSet"].as_array().into_iter().flatten().filter_map(number).collect();
        let Some(set) = sets.first().copied() else { return };
        if sets.iter().any(|s| *s != set) {
            self.remarks.push(format!("pools have sets of different sizes ({sets:?}): the first is written"));
        }
        self.set_size = Some(set);
        let of = |parity: &Value| {
            let parity = number(parity).filter(|p| *p < set)?;
            Some(match set {
                1 => Redundancy::None,
                _ => Redundancy::Erasure { data: set - parity, parity },
            })
        };
        self.redundancy = of(&backend["standardSCParity"]);
        let reduced = of(&backend["rrSCParity"]).filter(|r| Some(*r) != self.redundancy);
        self.classes.extend(reduced.map(|r| ("REDUCED_REDUNDANCY".to_owned(), r)));
    }

    /// A page of node_exporter, of the host that is called so.
    pub fn add_node(&mut self, page: &str, host: &str) -> Result<(), NotMetrics> {
        const WANTED: [&str; 9] = [
            "node_cpu_seconds_total",
            "node_memory_MemTotal_bytes",
            "node_network_speed_bytes",
            "node_network_receive_bytes_total",
            "node_network_up",
            "node_disk_info",
            "container_spec_cpu_quota",
            "container_spec_cpu_period",
            PARTIAL_PAGE,
        ];
        let page = text::parse(page, |name| WANTED.contains(&name))?;
        let of = |name: &'static str| page.series.iter().filter(move |s| s.name == name);
        let cpus: BTreeSet<&str> = of(WANTED[0]).map(|s| s.label("cpu")).collect();
        let quota = quota(&page.series);
        // A cluster in a box says no processors of a node that shares its machine's, and no speed of a link without a rate.
        let has_speeds = of("node_network_speed_bytes").any(|s| is_nic(s.label("device")));
        let of_nics =
            if has_speeds { "node_network_speed_bytes" } else { "node_network_receive_bytes_total" };
        if cpus.is_empty() && quota.is_none() && of(of_nics).next().is_none() {
            return Err(NotMetrics::NothingKnown("node_exporter"));
        }
        let down: BTreeSet<&str> =
            of("node_network_up").filter(|s| s.value == 0.0).map(|s| s.label("device")).collect();
        let nics: Vec<&MetricSeries> = of(of_nics)
            .filter(|s| is_nic(s.label("device")) && !down.contains(s.label("device")))
            .take(MOST_PARTS)
            .collect();
        let mut remarks = Vec::new();
        if of(PARTIAL_PAGE).next().is_some() && cpus.is_empty() && quota.is_none() {
            self.shared_cpus.insert(host.to_owned());
        }
        let node = self.node(host);
        let counted = (!cpus.is_empty()).then_some(cpus.len() as f64);
        node.cpus = quota.or(counted).or(node.cpus);
        node.memory =
            of("node_memory_MemTotal_bytes").map(|s| Size(s.value.max(0.0) as u64)).next().or(node.memory);
        for s in nics {
            let name = s.label("device").to_owned();
            // A virtual one says -1 or 0.
            let is_speed = has_speeds && s.value > 0.0 && s.value <= FASTEST_LINE;
            let rate = is_speed.then_some(LineRate(s.value));
            if rate.is_none() {
                remarks
                    .push(format!("{name} of {host} does not say its line rate: write rate = \"25Gbit/s\""));
            }
            if node.nic(&name).is_none() {
                node.nics.push(ClusterNic { name: Some(name), rate, ..ClusterNic::default() });
            }
        }
        for s in of("node_disk_info") {
            let Some(drive) = node.drives.iter_mut().find(|d| d.device.as_deref() == Some(s.label("device")))
            else {
                continue;
            };
            drive.model = Some(s.label("model").to_owned()).filter(|m| !m.is_empty()).or(drive.model.take());
            drive.rotational = s.label("rotational").parse::<u8>().ok().map(|r| r == 1).or(drive.rotational);
        }
        self.remarks.extend(remarks);
        Ok(())
    }

    /// The page of Ceph's manager: pools, and OSDs with their hosts.
    pub fn add_ceph(&mut self, page: &str) -> Result<(), NotMetrics> {
        const WANTED: [&str; 3] = ["ceph_pool_metadata", "ceph_osd_metadata", "ceph_disk_occupation"];
        let page = text::parse(page, |name| WANTED.contains(&name))?;
        let of = |name: &'static str| page.series.iter().filter(move |s| s.name == name);
        if of("ceph_osd_metadata").next().is_none() {
            return Err(NotMetrics::NothingKnown("a Ceph manager"));
        }
        // `ceph version 18.2.0 (hash) reef (stable)`
        let version = of("ceph_osd_metadata").find_map(|s| s.label("ceph_version").split(' ').nth(2));
        self.software = Some(("ceph".into(), version.map(str::to_owned)));
        for s in of("ceph_pool_metadata").take(MOST_PARTS) {
            if let Ok(r) = s.label("description").parse() {
                self.classes.insert(s.label("name").to_owned(), r);
            }
        }
        let device_of = |osd: &str| {
            of("ceph_disk_occupation").find(|s| s.label("ceph_daemon") == osd).map(|s| s.label("device"))
        };
        let mut apart = false;
        for s in of("ceph_osd_metadata").filter(|s| !s.label("hostname").is_empty()).take(MOST_NODES) {
            let (public, cluster) = (s.label("public_addr"), s.label("cluster_addr"));
            apart |= !public.is_empty() && !cluster.is_empty() && public != cluster;
            let device = device_of(s.label("ceph_daemon")).map(|d| plain(d.trim_start_matches("/dev/")));
            let node = self.node(s.label("hostname"));
            for address in [public, cluster].into_iter().filter(|a| !a.is_empty()) {
                if !node.addresses.iter().any(|a| a == address) {
                    node.addresses.push(plain(address));
                }
            }
            let rotational = Some(s.label("device_class")).filter(|c| !c.is_empty()).map(|c| c == "hdd");
            if node.drives.len() < MOST_PARTS {
                node.drives.push(ClusterDrive { device, rotational, ..ClusterDrive::default() });
            }
        }
        if apart {
            self.remarks.push(
                "OSDs have a network of their own: mark its interfaces with network = \"servers\", the others with network = \"clients\""
                    .into(),
            );
        }
        self.remarks
            .push("write redundancy = that of the pool that is measured (classes has them all)".into());
        Ok(())
    }

    fn node(&mut self, name: &str) -> &mut ClusterNode {
        self.nodes
            .entry(plain(name))
            .or_insert_with_key(|n| ClusterNode { name: n.clone(), ..ClusterNode::default() })
    }

    /// All of it, nodes and drives that are alike folded into patterns. `None`: no node was found.
    pub fn cluster(mut self) -> Option<(Cluster, Vec<String>)> {
        let (software, software_version) = self.software.unwrap_or_else(|| ("other".into(), None));
        if self.nodes.is_empty() {
            return None;
        }
        if !self.shared_cpus.is_empty() {
            self.remarks.push(format!(
                "{} nodes share the processors of the machine that they are on: no node has cpus of its own",
                self.shared_cpus.len()
            ));
        }
        for (host, node) in &mut self.nodes {
            if self.shared_cpus.contains(host) {
                node.cpus = None;
            }
        }
        let nodes: Vec<ClusterNode> = self.nodes.into_values().map(with_drives_folded).collect();
        if nodes.iter().all(|n| n.nics.is_empty()) {
            self.remarks.push(
                "no line rate was found: add nic = [{ name = \"eth0\", rate = \"25Gbit/s\" }] to the nodes"
                    .into(),
            );
        }
        let cluster = Cluster {
            version: CLUSTER_VERSION,
            name: None,
            software,
            software_version,
            redundancy: self.redundancy,
            set_size: self.set_size,
            failure_domain: self.failure_domain,
            tls: self.tls,
            clients: Default::default(),
            gateways: Default::default(),
            classes: self.classes,
            nodes: folded(nodes),
        };
        Some((cluster, self.remarks))
    }
}

/// CPUs that the one control group of a page is held to. Of several nobody says which is the server's, and a period without a limit has
/// a quota below 0, or none.
fn quota(series: &[MetricSeries]) -> Option<f64> {
    let only = |name: &str| {
        let mut all = series.iter().filter(|s| s.name == name).map(|s| s.value);
        all.next().filter(|_| all.next().is_none())
    };
    let cores = only("container_spec_cpu_quota")? / only("container_spec_cpu_period")?;
    (cores.is_finite() && cores > 0.0).then_some(cores)
}

/// A name as it is, which is no pattern.
fn plain(name: &str) -> String {
    clean(name).replace(['{', '}'], "_")
}

fn minio_drive(d: &Value) -> Option<ClusterDrive> {
    Some(ClusterDrive {
        path: Some(plain(&word(&d["path"])?)),
        size: d["totalspace"].as_u64().filter(|n| *n > 0).map(Size),
        model: word(&d["model"]),
        ..ClusterDrive::default()
    })
}

/// A name as text before its last number, the number as written, and what comes after.
fn parts(name: &str) -> Option<(&str, &str, &str)> {
    let end = name.rfind(|c: char| c.is_ascii_digit())? + 1;
    let start = name[..end].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |i| i + 1);
    Some((&name[..start], &name[start..end], &name[end..]))
}

/// `s1`, `s2`, `s3` to `s{1...3}`, where they follow each other. `None`: they do not.
fn pattern(names: &[&str]) -> Option<String> {
    let (head, first, tail) = parts(names.first()?)?;
    let from: u64 = first.parse().ok()?;
    let follows = |(i, name): (usize, &&str)| {
        let wanted = format!("{head}{:0width$}{tail}", from + i as u64, width = first.len());
        wanted == **name
    };
    // `s9`, `s10` are of one pattern only without zeros in front.
    let grows = !first.starts_with('0') || first.len() == 1;
    let plain = |(i, name): (usize, &&str)| grows && format!("{head}{}{tail}", from + i as u64) == **name;
    let all = names.iter().enumerate().all(follows) || names.iter().enumerate().all(plain);
    (all && names.len() > 1).then(|| {
        let last = parts(names[names.len() - 1]).map_or("", |p| p.1);
        format!("{head}{{{first}...{last}}}{tail}")
    })
}

/// Groups of neighbours that are the same but for their names, in order of the numbers in these.
fn runs<T>(all: &[T], same: impl Fn(&T, &T) -> bool, names: impl Fn(&[T]) -> bool) -> Vec<usize> {
    let (mut lengths, mut at) = (Vec::new(), 0);
    while at < all.len() {
        let mut n = 1;
        while at + n < all.len() && same(&all[at], &all[at + n]) && names(&all[at..=at + n]) {
            n += 1;
        }
        lengths.push(n);
        at += n;
    }
    lengths
}

fn by_number(name: &str) -> (String, u64, String) {
    match parts(name) {
        Some((head, n, tail)) => (head.to_owned(), n.parse().unwrap_or(u64::MAX), tail.to_owned()),
        None => (name.to_owned(), 0, String::new()),
    }
}

fn folded(mut nodes: Vec<ClusterNode>) -> Vec<ClusterNode> {
    nodes.sort_by_cached_key(|n| by_number(&n.name));
    let bare = |n: &ClusterNode| ClusterNode { name: String::new(), addresses: Vec::new(), ..n.clone() };
    let addresses = |group: &[ClusterNode], i: usize| -> Option<String> {
        pattern(&group.iter().map(|n| n.addresses.get(i).map(String::as_str)).collect::<Option<Vec<_>>>()?)
    };
    let alike = |group: &[ClusterNode]| {
        let n = group[0].addresses.len();
        pattern(&group.iter().map(|n| n.name.as_str()).collect::<Vec<_>>()).is_some()
            && group.iter().all(|g| g.addresses.len() == n)
            && (0..n).all(|i| addresses(group, i).is_some())
    };
    let mut out = Vec::new();
    let mut rest = &nodes[..];
    for length in runs(&nodes, |a, b| bare(a) == bare(b), alike) {
        let (group, after) = rest.split_at(length);
        rest = after;
        let mut one = group[0].clone();
        if let Some(name) = pattern(&group.iter().map(|n| n.name.as_str()).collect::<Vec<_>>()) {
            one.name = name;
            one.addresses = (0..one.addresses.len()).filter_map(|i| addresses(group, i)).collect();
        }
        out.push(one);
    }
    out
}

fn with_drives_folded(mut node: ClusterNode) -> ClusterNode {
    let name = |d: &ClusterDrive| d.device.clone().or_else(|| d.path.clone()).unwrap_or_default();
    node.drives.sort_by_cached_key(|d| by_number(&name(d)));
    node.nics.iter_mut().for_each(|n| n.network = NicTraffic::All);
    let bare = |d: &ClusterDrive| ClusterDrive { device: None, path: None, ..d.clone() };
    let one_kind = |a: &ClusterDrive, b: &ClusterDrive| {
        bare(a) == bare(b) && (a.device.is_some(), a.path.is_some()) == (b.device.is_some(), b.path.is_some())
    };
    let by_one_name = |group: &[ClusterDrive]| {
        let names: Vec<String> = group.iter().map(name).collect();
        let nameless = names.iter().all(String::is_empty);
        // Of two names only one can be a pattern.
        let two = group.iter().any(|d| d.device.is_some() && d.path.is_some());
        nameless || !two && pattern(&names.iter().map(String::as_str).collect::<Vec<_>>()).is_some()
    };
    let mut out = Vec::new();
    let mut rest = &node.drives[..];
    for length in runs(&node.drives, one_kind, by_one_name) {
        let (group, after) = rest.split_at(length);
        rest = after;
        let mut one = group[0].clone();
        let names: Vec<String> = group.iter().map(name).collect();
        let folded = pattern(&names.iter().map(String::as_str).collect::<Vec<_>>());
        match (folded, one.device.is_some()) {
            (Some(p), true) => one.device = Some(p),
            (Some(p), false) => one.path = Some(p),
            (None, _) if length > 1 => one.count = Some(length as u32),
            (None, _) => {}
        }
        out.push(one);
    }
    node.drives = out;
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = include_str!("../tests/pages/minio-admin-info.json");
    const NODE: &str = include_str!("../tests/pages/node-exporter-1.5.0.txt");

    /// What is made is what is read.
    fn checked(found: FoundCluster) -> (Cluster, Vec<String>) {
        let (cluster, remarks) = found.cluster().unwrap();
        assert_eq!(Cluster::from_toml(&cluster.to_toml()).unwrap(), cluster, "{}", cluster.to_toml());
        (cluster, remarks)
    }

    #[test]
    fn minio_and_its_host() {
        let mut found = FoundCluster::default();
        found.add_minio(INFO, true).unwrap();
        found.add_node(&NODE.replace("-125000", "3.125e+09"), "s1").unwrap();
        let (c, remarks) = checked(found);
        assert_eq!(
            (c.software.as_str(), c.software_version.as_deref()),
            ("minio", Some("DEVELOPMENT.GOGET"))
        );
        assert_eq!(
            (c.redundancy, c.set_size, c.tls),
            (Some(Redundancy::Erasure { data: 2, parity: 2 }), Some(4), Some(true))
        );
        assert_eq!(c.classes["REDUCED_REDUNDANCY"], Redundancy::Erasure { data: 3, parity: 1 });
        let [node] = &c.nodes[..] else { panic!("{c:?}") };
        assert_eq!((node.name.as_str(), node.cpus, c.drive_count()), ("s1", Some(2.0), 4));
        assert_eq!(node.drives[0].path.as_deref(), Some("/srv/m/d{1...4}"));
        assert_eq!(node.nic("eth0").and_then(ClusterNic::most_out), Some(3.125e9));
        assert_eq!((node.nics.len(), remarks.len()), (1, 0), "{remarks:?}");
    }

    /// What a node of `plimsoll target cluster` serves, beside what its server says.
    #[test]
    fn a_cluster_in_a_box_with_its_links_and_quotas() {
        let page = |rest: &str| format!("node_network_receive_bytes_total{{device=\"eth0\"}} 1000\n{rest}");
        let quota = "container_spec_cpu_period 100000\ncontainer_spec_cpu_quota 30000\n\
            node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 1\n";
        let speed = "node_network_speed_bytes{device=\"eth0\"} 25000000\n";
        let of = |text: String, minio_first: bool| {
            let mut found = FoundCluster::default();
            let minio = |f: &mut FoundCluster| f.add_minio(INFO, false).unwrap();
            if minio_first {
                minio(&mut found);
            }
            found.add_node(&text, "s1").unwrap();
            if !minio_first {
                minio(&mut found);
            }
            checked(found)
        };
        for minio_first in [true, false] {
            let (c, remarks) = of(page(&format!("{speed}{quota}")), minio_first);
            let node = &c.nodes[0];
            assert_eq!((node.cpus, c.drive_count()), (Some(0.3), 4));
            assert_eq!(node.nic("eth0").and_then(ClusterNic::most_in), Some(25e6));
            assert!(remarks.is_empty(), "{remarks:?}");
        }
        // Without a quota, and on links as fast as the machine: what the server says of its processors stays.
        let (c, remarks) = of(page(""), true);
        assert_eq!((c.nodes[0].cpus, c.nodes[0].nic("eth0").unwrap().rate), (Some(2.0), None));
        assert!(remarks[0].contains("eth0 of s1 does not say its line rate"), "{remarks:?}");
        // Nodes in a box share the processors of their machine: each was said to have all of them.
        for minio_first in [true, false] {
            let (c, remarks) = of(page(&format!("{speed}{PARTIAL_PAGE} 1\n")), minio_first);
            assert_eq!(c.nodes[0].cpus, None);
            assert!(remarks.iter().any(|r| r.contains("share the processors")), "{remarks:?}");
            assert_eq!(
                of(page(&format!("{speed}{quota}{PARTIAL_PAGE} 1\n")), minio_first).0.nodes[0].cpus,
                Some(0.3)
            );
        }
        // Of several groups none is the server's, as far as is known; and none is no limit.
        for odd in [format!("{quota}container_spec_cpu_quota{{id=\"/\"}} 1\n"), quota.replace("30000", "-1")]
        {
            assert_eq!(of(page(&odd), true).0.nodes[0].cpus, Some(1.0), "{odd}");
        }
    }

    #[test]
    fn what_is_not_known_is_asked_for() {
        let mut found = FoundCluster::default();
        found.add_node(NODE, "s1").unwrap();
        let (c, remarks) = checked(found);
        assert_eq!((c.software.as_str(), c.redundancy), ("other", None));
        assert!(remarks[0].contains("eth0 of s1 does not say its line rate"), "{remarks:?}");
        assert!(FoundCluster::default().cluster().is_none());
        let mut none = FoundCluster::default();
        assert!(none.add_node("up 1\n", "s1").is_err() && none.add_minio("{}", false).is_err());
        assert!(none.add_minio("<html>", false).is_err() && none.add_ceph("up 1\n").is_err());
    }

    #[test]
    fn servers_that_are_alike_are_one_pattern_and_a_hostile_name_is_harmless() {
        let server = |host: &str| {
            INFO.split_once("\"servers\":[")
                .unwrap()
                .1
                .split_once("],\"pools\"")
                .unwrap()
                .0
                .replace("s1:9000", host)
        };
        let info = |hosts: &[&str]| {
            let all: Vec<String> = hosts.iter().map(|h| server(h)).collect();
            let (head, rest) = INFO.split_once("\"servers\":[").unwrap();
            let tail = rest.split_once("],\"pools\"").unwrap().1;
            format!("{head}\"servers\":[{}],\"pools\"{tail}", all.join(","))
        };
        let of = |hosts: &[&str]| {
            let mut found = FoundCluster::default();
            found.add_minio(&info(hosts), false).unwrap();
            checked(found).0
        };
        let names = |c: &Cluster| c.nodes.iter().map(|n| n.name.clone()).collect::<Vec<_>>();
        let c = of(&["s9:9000", "s10:9000", "s11:9000", "s13:9000"]);
        assert_eq!(names(&c), ["s{9...11}", "s13"]);
        assert_eq!((c.node_count(), c.drive_count()), (4, 16));
        assert_eq!(names(&of(&["n08:9000", "n09:9000", "n10:9000"])), ["n{08...10}"]);
        assert_eq!(names(&of(&["127.0.0.1:9001", "127.0.0.1:9002"])), ["127.0.0.1:{9001...9002}"]);
        assert!(!names(&of(&["s\\u001b[31m1:9000"]))[0].contains('\u{1b}'));
    }

    #[test]
    fn a_ceph_cluster() {
        let mut found = FoundCluster::default();
        found.add_ceph(include_str!("../tests/pages/ceph-mgr.txt")).unwrap();
        let (c, remarks) = checked(found);
        assert_eq!((c.software.as_str(), c.software_version.as_deref()), ("ceph", Some("18.2.0")));
        assert_eq!(c.classes["data"], Redundancy::Erasure { data: 2, parity: 2 });
        assert_eq!(c.classes[".mgr"], Redundancy::Replicas(3));
        assert_eq!((c.nodes[0].name.as_str(), c.nodes[0].drives[0].rotational), ("ceph-1", Some(false)));
        assert!(remarks.iter().any(|r| r.contains("redundancy =")), "{remarks:?}");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in "(?s).{0,200}") {
            let mut found = FoundCluster::default();
            let _ = (found.add_minio(&text, false), found.add_node(&text, "s"), found.add_ceph(&text));
            let _ = found.cluster();
        }
    }
}
