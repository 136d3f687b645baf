//! Bridge, namespaces and links: each node has a namespace with one interface, whose other end is at a bridge; this machine has an
//! address at the bridge itself, so that its own way is not the narrow one. A token bucket at both ends of each pair holds what a
//! node sends and what it gets.

use plimsoll_model::observed::BOX_LINK;
use plimsoll_model::plan::EmbeddedCluster;
use plimsoll_model::units::LinkRate;
use plimsoll_setup::SetupError;
use plimsoll_setup::network::{call, is_link, make_link, make_namespace, namespace_file};
use plimsoll_store::Journal;

use crate::fault::Becomes;
use crate::spec::ClusterSpec;

/// The interface in a node's namespace.
pub const NODE_INTERFACE: &str = EmbeddedCluster::NIC;
/// Last byte of this machine's address.
const HOST: u32 = 254;
/// What waits for its tokens before it is dropped: of fast links so much time of their rate, and as much as a port of a switch holds of slow ones.
/// 50 ms of 20 Mbit/s (125 KB) are two packets as large as a sender hands over.
const QUEUE_S: f64 = 0.05;
const LEAST_QUEUE_BYTES: f64 = 1_048_576.0;
/// A bucket holds this much time of the rate, and at the least one packet of the largest size that a sender hands over, 64 KiB and its heads: tbf cuts up
/// what is larger when it comes, and a packet that waits already when the bucket is made smaller than that never gets its tokens. The link passes nothing
/// any more (measured: from 200 to 50 Mbit/s under load, with a bucket of 65,536 bytes).
const BUCKET_S: f64 = 0.003;
const LEAST_BUCKET_BYTES: f64 = 75_000.0;
/// Frames as on a wire, whatever this machine's bridges have by default.
const MTU: &str = "1500";

/// The network of a cluster.
#[derive(Debug, Clone)]
pub struct BoxNetwork {
    name: String,
    /// `10.213.0`.
    pub subnet: String,
    link: Option<LinkRate>,
}

impl BoxNetwork {
    /// Names that are free, in a subnet that nothing here leads to. Nothing is made.
    pub fn plan(spec: &ClusterSpec) -> Result<Self, SetupError> {
        let shown = call("ip", &["-j", "-4", "route", "show", "table", "all"]).map_err(no_network)?;
        let subnet = free_subnet(&shown).ok_or_else(|| {
            SetupError::input(
                "no subnet 10.213.N.0/24 or 198.18.N.0/24 is free on this machine",
                "Take down other clusters: plimsoll target cluster stop --name NAME",
            )
        })?;
        let net = Self { name: spec.name.clone(), subnet, link: spec.made.link };
        let links = (1..=spec.made.nodes).map(|n| net.host_end(n)).chain([net.bridge()]);
        let links = links.filter(|l| is_link(l)).map(|l| format!("interface {l}"));
        let spaces = (1..=spec.made.nodes).map(|n| net.namespace(n)).filter(|n| namespace_file(n).exists());
        let taken: Vec<String> = links.chain(spaces.map(|n| format!("network namespace {n}"))).collect();
        if taken.is_empty() {
            return Ok(net);
        }
        Err(SetupError::input(
            format!("{} is there and is not of this cluster", taken.join(", ")),
            "Nothing of it was touched. Choose another --name, or remove it",
        ))
    }

    /// Of this machine, at the bridge.
    pub fn bridge(&self) -> String {
        format!("{BOX_LINK}{}", self.name)
    }

    /// The end of a node's link that is at the bridge.
    pub fn host_end(&self, node: u32) -> String {
        format!("{BOX_LINK}{}-{node}", self.name)
    }

    /// Where a node is.
    pub fn namespace(&self, node: u32) -> String {
        format!("plimsoll-{}-{node}", self.name)
    }

    /// A node's address.
    pub fn address(&self, node: u32) -> String {
        format!("{}.{node}", self.subnet)
    }

    /// The bridge, with this machine's address.
    pub fn make_bridge(&self, journal: &mut Journal) -> Result<(), SetupError> {
        let bridge = self.bridge();
        make_link(&bridge, &["type", "bridge"], journal)?;
        let address = format!("{}/24", self.address(HOST));
        call("ip", &["addr", "add", &address, "dev", &bridge]).map_err(no_network)?;
        call("ip", &["link", "set", "dev", &bridge, "mtu", MTU, "up"]).map(drop).map_err(no_network)
    }

    /// A node's namespace and link.
    pub fn make_node(&self, node: u32, journal: &mut Journal) -> Result<(), SetupError> {
        let (space, end) = (self.namespace(node), self.host_end(node));
        make_namespace(&space, journal)?;
        make_link(&end, &["type", "veth", "peer", "name", NODE_INTERFACE, "netns", &space], journal)?;
        let steps = || {
            call("ip", &["link", "set", "dev", &end, "mtu", MTU, "master", &self.bridge(), "up"])?;
            let address = format!("{}/24", self.address(node));
            call("ip", &["-n", &space, "addr", "add", &address, "dev", NODE_INTERFACE])?;
            call("ip", &["-n", &space, "link", "set", "dev", NODE_INTERFACE, "mtu", MTU, "up"])?;
            self.shape(node, self.link)
        };
        steps().map_err(no_network)
    }

    /// What becomes of a node's link.
    pub fn fault(&self, node: u32, becomes: Becomes<LinkRate>) -> Result<(), String> {
        let end = self.host_end(node);
        let state = if matches!(becomes, Becomes::Down) { "down" } else { "up" };
        call("ip", &["link", "set", "dev", &end, state])?;
        match becomes {
            Becomes::Down => Ok(()),
            Becomes::Good => self.shape(node, self.link),
            Becomes::Rate(rate) => self.shape(node, Some(rate)),
        }
    }

    /// Token buckets at both ends, or none.
    fn shape(&self, node: u32, rate: Option<LinkRate>) -> Result<(), String> {
        let (space, end) = (self.namespace(node), self.host_end(node));
        let ends: [(Vec<&str>, &str); 2] = [(vec!["-n", &space], NODE_INTERFACE), (vec![], &end)];
        for (place, device) in ends {
            let Some(rate) = rate else {
                // Where none is, there is nothing to remove.
                let _ = call("tc", &[&place[..], &["qdisc", "del", "dev", device, "root"]].concat());
                continue;
            };
            let bytes = |n: f64| format!("{n:.0}b");
            let (bits, bucket) = (format!("{:.0}bit", rate.0), bytes(bucket_bytes(rate)));
            let limit = bytes(limit_bytes(rate));
            let words = [
                "qdisc", "replace", "dev", device, "root", "tbf", "rate", &bits, "burst", &bucket, "limit",
                &limit,
            ];
            call("tc", &[&place[..], &words].concat())?;
        }
        Ok(())
    }
}

fn bucket_bytes(rate: LinkRate) -> f64 {
    (rate.0 / 8.0 * BUCKET_S).max(LEAST_BUCKET_BYTES)
}

/// As tbf has it: what waits, and what the bucket lets through at once.
fn limit_bytes(rate: LinkRate) -> f64 {
    (rate.0 / 8.0 * QUEUE_S).max(LEAST_QUEUE_BYTES) + bucket_bytes(rate)
}

fn no_network(e: String) -> SetupError {
    SetupError::input(
        e,
        "It needs root, iproute2, and a kernel with bridges, veth and tbf, as a container often has not",
    )
}

/// The first that no route of this machine is about, its default routes aside.
fn free_subnet(routes: &str) -> Option<String> {
    let shown: serde_json::Value = serde_json::from_str(routes).ok()?;
    let taken: Vec<(u32, u32)> =
        shown.as_array()?.iter().filter_map(|r| prefix(r["dst"].as_str()?)).collect();
    let all = ["10.213", "198.18"].into_iter().flat_map(|net| (0..=255).map(move |n| format!("{net}.{n}")));
    all.into_iter().find(|subnet| {
        let (address, length) = prefix(&format!("{subnet}.0/24")).expect("it is one");
        !taken.iter().any(|(other, other_length)| {
            let mask = u32::MAX << (32 - length.min(*other_length));
            address & mask == other & mask
        })
    })
}

/// Address and length; `None` of `default`.
fn prefix(text: &str) -> Option<(u32, u32)> {
    let (address, length) = text.split_once('/').unwrap_or((text, "32"));
    let length = length.parse::<u32>().ok().filter(|l| (1..=32).contains(l))?;
    Some((address.parse::<std::net::Ipv4Addr>().ok()?.to_bits(), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_is_taken_that_nothing_leads_to() {
        let routes = |dst: &[&str]| {
            let rows: Vec<String> = dst.iter().map(|d| format!("{{\"dst\":\"{d}\"}}")).collect();
            format!("[{}]", rows.join(","))
        };
        let free = |dst: &[&str]| free_subnet(&routes(dst));
        assert_eq!(free(&["default", "192.0.2.0/24", "127.0.0.1"]).unwrap(), "10.213.0");
        assert_eq!(free(&["10.213.0.0/24", "10.213.1.7"]).unwrap(), "10.213.2");
        assert_eq!(free(&["10.0.0.0/8", "198.18.0.254"]).unwrap(), "198.18.1");
        assert_eq!(free(&["10.0.0.0/8", "198.18.0.0/15"]), None);
        assert_eq!(free_subnet("no JSON"), None);
    }

    #[test]
    fn names_fit_the_kernel() {
        let net = BoxNetwork { name: "longname".into(), subnet: "10.213.0".into(), link: None };
        assert!(net.host_end(16).len() <= 15 && net.bridge().len() <= 15);
        assert_eq!(net.address(4), "10.213.0.4");
    }

    #[test]
    fn a_bucket_holds_one_packet_and_milliseconds_of_the_rate() {
        assert_eq!([5e7, 1e9].map(|bits| bucket_bytes(LinkRate(bits))), [75_000.0, 375_000.0]);
        // 50 ms of a fast link, as its queue always was; a slow one has a switch's.
        assert_eq!([2e7, 1e9].map(|bits| limit_bytes(LinkRate(bits))), [1_123_576.0, 6_625_000.0]);
    }
}
