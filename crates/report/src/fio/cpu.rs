//! CPU time, context switches and page faults of a stage's workers, as fio reports them per job.

use plimsoll_model::Sample;
use plimsoll_model::interval::ClientCounts;
use plimsoll_model::sample::ProcessUsage;
use plimsoll_store::HostSamples;

/// Shares are of one CPU, per job.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cpu {
    pub user_percent: f64,
    pub system_percent: f64,
    pub context_switches: u64,
    pub major_faults: u64,
    pub minor_faults: u64,
}

/// The usage of the process between two times, from the samples next to them.
fn usage(samples: &[Sample], from_ns: u64, to_ns: u64) -> Option<ProcessUsage> {
    let first = samples.iter().rev().find(|s| s.at_ns <= from_ns).or(samples.first())?;
    let last = samples.iter().find(|s| s.at_ns >= to_ns).or(samples.last())?;
    let (a, b) = (first.process_usage, last.process_usage);
    Some(ProcessUsage {
        user_ns: b.user_ns.saturating_sub(a.user_ns),
        system_ns: b.system_ns.saturating_sub(a.system_ns),
        context_switches: b.context_switches.saturating_sub(a.context_switches),
        minor_faults: b.minor_faults.saturating_sub(a.minor_faults),
        major_faults: b.major_faults.saturating_sub(a.major_faults),
    })
}

/// Of all machines that samples are of, each one's own difference.
fn usage_of_all<'a>(
    hosts: impl Iterator<Item = &'a HostSamples>,
    from_ns: u64,
    to_ns: u64,
) -> Option<ProcessUsage> {
    let add = |a: ProcessUsage, b: ProcessUsage| ProcessUsage {
        user_ns: a.user_ns.saturating_add(b.user_ns),
        system_ns: a.system_ns.saturating_add(b.system_ns),
        context_switches: a.context_switches.saturating_add(b.context_switches),
        minor_faults: a.minor_faults.saturating_add(b.minor_faults),
        major_faults: a.major_faults.saturating_add(b.major_faults),
    };
    hosts.filter_map(|h| usage(&h.samples, from_ns, to_ns)).reduce(add)
}

/// The workers' CPU time is measured per thread; its split into user and system is the process's. `share` is the
/// part of the stage's jobs that this job is.
pub fn of<'a>(
    hosts: impl Iterator<Item = &'a HostSamples>,
    client: &ClientCounts,
    from_ns: u64,
    to_ns: u64,
    share: f64,
) -> Cpu {
    let Some(u) = usage_of_all(hosts, from_ns, to_ns) else { return Cpu::default() };
    let split = u.user_ns as f64 / ((u.user_ns + u.system_ns) as f64).max(1.0);
    let busy = 100.0 * client.cpu_ns as f64 / (client.alive_ns as f64).max(1.0);
    let part = |n: u64| (n as f64 * share).round() as u64;
    Cpu {
        user_percent: busy * split,
        system_percent: busy * (1.0 - split),
        context_switches: part(u.context_switches),
        major_faults: part(u.major_faults),
        minor_faults: part(u.minor_faults),
    }
}
