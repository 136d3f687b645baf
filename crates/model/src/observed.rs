//! What servers say of themselves while they are measured: a stream of its own beside the samples of the machines that measure.
//!
//! A [`Scrape`] is what one source said at one time, in our quantities and units: whatever it calls them. Counters stay counters, so
//! that any two subtract, and what it did not say is absent, and not zero. A server's own averages are in no quantity.

use serde::{Deserialize, Serialize};

/// What a value counts or gauges. Seconds and bytes throughout; what the label of each says stands beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerQuantity {
    // A host; label: the CPU's number.
    /// Counter: outside of the kernel, `nice` included.
    CpuUserS,
    /// Counter: in the kernel.
    CpuSystemS,
    /// Counter: idle, with I/O outstanding.
    CpuIowaitS,
    /// Counter: interrupts, soft ones included.
    CpuIrqS,
    /// Counter: what the hypervisor gave to others.
    CpuStealS,
    /// Counter: idle.
    CpuIdleS,
    // A host, without a label.
    /// Gauge.
    MemoryTotalBytes,
    /// Gauge.
    MemoryAvailableBytes,
    /// Counter: segments sent.
    TcpOutSegments,
    /// Counter: segments sent again.
    TcpRetransmits,
    /// Counter: pressure stall, some.
    PsiCpuS,
    /// Counter: pressure stall, some.
    PsiIoS,
    /// Counter: pressure stall, some.
    PsiMemoryS,
    /// Gauge: its own clock, seconds since 1970.
    ClockUnixS,
    /// Gauge: when it was started, seconds since 1970.
    BootUnixS,
    // A host; label: the interface.
    /// Counter.
    NicRxBytes,
    /// Counter.
    NicTxBytes,
    /// Counter: both directions.
    NicDrops,
    /// Gauge: line rate.
    NicSpeedBytesPerS,
    // A host; label: the block device.
    /// Counter: completed.
    DiskReads,
    /// Counter.
    DiskReadBytes,
    /// Counter: added up over reads.
    DiskReadS,
    /// Counter: completed.
    DiskWrites,
    /// Counter.
    DiskWriteBytes,
    /// Counter: added up over writes.
    DiskWriteS,
    /// Counter: with at least one in flight.
    DiskBusyS,
    /// Counter: in flight, added up over all.
    DiskQueueS,
    /// Gauge: now.
    DiskInFlight,
    // A daemon.
    /// Counter; no label.
    ProcessCpuS,
    /// Gauge; no label.
    ProcessRssBytes,
    /// Counter: fetched from storage; no label.
    ProcessReadBytes,
    /// Counter: sent to storage; no label.
    ProcessWriteBytes,
    /// Counter; label: the server's own name of the op.
    Requests,
    /// Counter: answered with an error; label: the op, where it says which.
    RequestErrors,
    /// Counter: to clients; label: the op, where it says which.
    SentBytes,
    /// Counter: from clients; label: the op, where it says which.
    ReceivedBytes,
    /// Counter: to its peers.
    InternodeSentBytes,
    /// Counter: from its peers.
    InternodeReceivedBytes,
    // The cluster as a whole, or a daemon's view of it.
    /// Gauge.
    DrivesTotal,
    /// Gauge.
    DrivesOnline,
    /// Gauge.
    DrivesOffline,
    /// Gauge; label: the set.
    DrivesHealing,
    /// Gauge.
    NodesOffline,
    /// Counter: looked at by a scanner in the background.
    ScannedObjects,
    /// Gauge: shards of an object that may be lost (EC:n).
    ParityDrives,
    /// Gauge: 0 well, 1 warning, 2 error; label: empty, or the warning's name with 1 while it holds.
    HealthStatus,
    /// Gauge: 1 or 0; label: the daemon.
    OsdUp,
    /// Gauge: placement groups; label: the state, `total` for all.
    PlacementGroups,
    /// Gauge; label: `degraded`, `misplaced`, `unfound`.
    ObjectsNotInPlace,
    /// Gauge; label: the pool's number.
    RecoveringBytesPerS,
    /// Gauge: what clients stored; label: the pool's number.
    PoolStoredBytes,
    /// Gauge: what that takes of the drives; label: the pool's number.
    PoolUsedBytes,
    /// Gauge, 1; label: `NUMBER NAME REDUNDANCY` of a pool, such as `3 data ec:2+2`.
    PoolRedundancy,
}

impl ServerQuantity {
    /// Whether values grow, so that two of them subtract; the others are of their moment.
    pub fn is_counter(self) -> bool {
        use ServerQuantity as Q;
        !matches!(
            self,
            Q::MemoryTotalBytes
                | Q::MemoryAvailableBytes
                | Q::ClockUnixS
                | Q::BootUnixS
                | Q::NicSpeedBytesPerS
                | Q::DiskInFlight
                | Q::ProcessRssBytes
                | Q::DrivesTotal
                | Q::DrivesOnline
                | Q::DrivesOffline
                | Q::DrivesHealing
                | Q::NodesOffline
                | Q::ParityDrives
                | Q::HealthStatus
                | Q::OsdUp
                | Q::PlacementGroups
                | Q::ObjectsNotInPlace
                | Q::RecoveringBytesPerS
                | Q::PoolStoredBytes
                | Q::PoolUsedBytes
                | Q::PoolRedundancy
        )
    }
}

/// A speed above this is none that a line has, bytes a second (100 Tbit/s): a page tells fancies.
pub const FASTEST_LINE: f64 = 1.25e13;
/// Mean share of a ceiling from which on it is none: an interface that tells another speed than its line has, a slip in `cluster.toml`, a page
/// that tells fancies. A guess: bursts and caches that a short window holds stay below.
pub const NO_CEILING: f64 = 1.5;
/// What the links of a cluster in a box begin with, at the machine that it is on.
pub const BOX_LINK: &str = "pl-";
/// Interfaces that carry nothing by themselves: what goes through them is counted again where it goes out.
const NO_NICS: [&str; 13] = [
    "lo", "veth", "br-", "virbr", "docker", "cni", "flannel", "cali", "ifb", "dummy", "tun", "tap", BOX_LINK,
];
/// Devices whose work their members count again, or that are none.
const NO_DRIVES: [&str; 7] = ["dm-", "md", "loop", "ram", "zram", "sr", "fd"];

/// Whether an interface of this name has a line of its own. A port of a bond is one; the bond itself has their sum and no line of its own.
pub fn is_nic(name: &str) -> bool {
    !NO_NICS.iter().any(|n| name.starts_with(n)) && !name.contains('.')
}

/// Whether a block device of this name is a drive.
pub fn is_drive(device: &str) -> bool {
    !NO_DRIVES.iter().any(|n| device.starts_with(n))
}

/// One value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerReading {
    /// What is counted.
    pub quantity: ServerQuantity,
    /// Of what: a CPU, an interface, a device, an op. Empty: of the subject as a whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// In the quantity's unit; always finite.
    pub value: f64,
}

/// A host, one of its daemons, or the cluster, as a source sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadSubject {
    /// As the source's address or the source itself calls it; empty: the cluster as a whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// `osd.3`, `minio`; empty: the host itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub daemon: String,
    /// What it said of it, by quantity and label.
    pub readings: Vec<ServerReading>,
}

/// What one source said at one time, or why it said nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Scrape {
    /// Nanoseconds since the run's start, at the middle of the request.
    pub at_ns: u64,
    /// From the request to the last byte of the answer.
    pub took_ns: u64,
    /// Of the answer.
    pub bytes: u64,
    /// CPU time that asking and reading it took here.
    pub client_cpu_ns: u64,
    /// The source makes its counters anew no more often than this; 0: with each request.
    pub resolution_ns: u64,
    /// What the source's clock was ahead of ours, where it says its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_ahead_ns: Option<i64>,
    /// Empty where it said nothing.
    pub subjects: Vec<ReadSubject>,
    /// Why there are no figures, in words: a gap, and not zeros.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
    /// Metrics that are needed of such a source, and that are not on its page under any name that is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Series that were beyond what is taken of one page.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scrape_survives_its_own_json_and_an_older_reader_of_it() {
        let reading =
            ServerReading { quantity: ServerQuantity::NicTxBytes, label: "eth0".into(), value: 1e15 };
        let subject = ReadSubject { host: "s1".into(), daemon: String::new(), readings: vec![reading] };
        let scrape = Scrape { at_ns: 7, subjects: vec![subject], ..Scrape::default() };
        let text = serde_json::to_string(&scrape).unwrap();
        assert!(text.contains("nic_tx_bytes") && !text.contains("gap"), "{text}");
        assert_eq!(serde_json::from_str::<Scrape>(&text).unwrap(), scrape);
        assert_eq!(serde_json::from_str::<Scrape>(r#"{"at_ns":7,"later":1}"#).unwrap().at_ns, 7);
        assert!(ServerQuantity::CpuIdleS.is_counter() && !ServerQuantity::DiskInFlight.is_counter());
    }
}
