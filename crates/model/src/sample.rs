//! Resources of a host at a time: a stream of its own beside the intervals.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Which part a host plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Client,
    Server,
}

/// Counters and gauges at one time. Counters are cumulative since boot, so that any two samples subtract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub host: String,
    pub role: Role,
    /// Nanoseconds since the run's start, on the host's monotonic clock.
    pub at_ns: u64,
    /// Per CPU: [user, system, iowait, irq, steal, idle] in nanoseconds, cumulative.
    pub cpus: Vec<[u64; 6]>,
    /// CPU time of the measuring process, cumulative.
    pub process_cpu_ns: u64,
    pub process_rss_bytes: u64,
    /// The same CPU time told apart, with context switches and page faults (getrusage).
    #[serde(default)]
    pub process_usage: ProcessUsage,
    pub memory_available_bytes: u64,
    /// /proc/self/io: bytes that read and write calls moved, and bytes fetched from or sent to storage.
    pub process_io: ProcessIo,
    /// Per network interface: [rx bytes, tx bytes, drops], cumulative.
    pub nics: BTreeMap<String, [u64; 3]>,
    /// TCP segments sent and retransmitted, cumulative.
    pub tcp_out: u64,
    pub tcp_retransmits: u64,
    /// Per block device under test, as /proc/diskstats has it.
    pub disks: BTreeMap<String, DiskCounters>,
    /// Pressure stall totals (some), nanoseconds: cpu, io, memory.
    pub psi_ns: [u64; 3],
    /// CPU quotas of the control groups that the measuring process is in, its own group's first; groups without one are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_quotas: Vec<CpuQuota>,
}

/// A control group's CPU quota, and how often it stopped the group; counters are cumulative.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuQuota {
    /// The group's directory.
    pub group: String,
    /// CPU time that it may use, over time: 0.1 is a tenth of one core.
    pub cores: f64,
    /// The quota is given out anew this often.
    pub period_ns: u64,
    /// Periods in which it ran out before their end.
    pub throttled_periods: u64,
    /// Time for which its CPUs were stopped, summed over them.
    pub throttled_ns: u64,
}

/// What getrusage(RUSAGE_SELF) says; cumulative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProcessUsage {
    pub user_ns: u64,
    pub system_ns: u64,
    /// Voluntary and involuntary context switches.
    pub context_switches: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProcessIo {
    pub rchar: u64,
    pub wchar: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiskCounters {
    pub reads: u64,
    pub reads_merged: u64,
    pub read_bytes: u64,
    pub read_ns: u64,
    pub writes: u64,
    pub writes_merged: u64,
    pub write_bytes: u64,
    pub write_ns: u64,
    pub in_flight: u64,
    pub busy_ns: u64,
    pub queue_ns: u64,
}
