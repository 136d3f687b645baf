//! Resources of a host at a time: a stream of its own beside the intervals.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Which part a host plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Puts load on.
    Client,
    /// Is measured.
    Server,
}

/// Counters and gauges at one time. Counters are cumulative since boot, so that any two samples subtract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// As it calls itself.
    pub host: String,
    /// Of that machine in the measurement.
    pub role: Role,
    /// Nanoseconds since the run's start, on the host's monotonic clock.
    pub at_ns: u64,
    /// Per CPU: [user, system, iowait, irq, steal, idle] in nanoseconds, cumulative.
    pub cpus: Vec<[u64; 6]>,
    /// CPU time of the measuring process, cumulative.
    pub process_cpu_ns: u64,
    /// Resident now.
    pub process_rss_bytes: u64,
    /// The same CPU time told apart, with context switches and page faults (getrusage).
    #[serde(default)]
    pub process_usage: ProcessUsage,
    /// MemAvailable of /proc/meminfo, now.
    pub memory_available_bytes: u64,
    /// /proc/self/io: bytes that read and write calls moved, and bytes fetched from or sent to storage.
    pub process_io: ProcessIo,
    /// Per network interface: [rx bytes, tx bytes, drops], cumulative.
    pub nics: BTreeMap<String, [u64; 3]>,
    /// TCP segments sent and retransmitted, cumulative.
    pub tcp_out: u64,
    /// Segments sent again.
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
    /// CPU time outside of the kernel.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// Voluntary and involuntary context switches.
    pub context_switches: u64,
    /// Pages that needed no storage.
    pub minor_faults: u64,
    /// Pages that were read in.
    pub major_faults: u64,
}

/// /proc/self/io; cumulative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProcessIo {
    /// Bytes that read calls returned, from whatever they read.
    pub rchar: u64,
    /// Bytes that write calls took, whatever they wrote to.
    pub wchar: u64,
    /// Bytes fetched from storage.
    pub read_bytes: u64,
    /// Bytes sent to storage.
    pub write_bytes: u64,
}

/// One device, as /proc/diskstats counts; cumulative but for `in_flight`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiskCounters {
    /// Completed.
    pub reads: u64,
    /// Joined to a neighbour before they were issued.
    pub reads_merged: u64,
    /// Of 512-byte sectors.
    pub read_bytes: u64,
    /// Added up over reads: more than the time where several run at once.
    pub read_ns: u64,
    /// Completed.
    pub writes: u64,
    /// Joined to a neighbour before they were issued.
    pub writes_merged: u64,
    /// Of 512-byte sectors.
    pub write_bytes: u64,
    /// Added up over writes.
    pub write_ns: u64,
    /// Now.
    pub in_flight: u64,
    /// In which at least one was in flight.
    pub busy_ns: u64,
    /// In flight, added up over all.
    pub queue_ns: u64,
}
