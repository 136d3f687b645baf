//! One sample of this machine.

use std::collections::BTreeMap;
use std::fs::read_to_string;

use plimsoll_model::Sample;
use plimsoll_model::sample::{ProcessIo, ProcessUsage, Role};

use super::devices::Device;
use super::parse;
use plimsoll_setup::control_groups::ControlGroups;

/// Takes samples of this host in the role of the client.
#[derive(Debug)]
pub struct Source {
    /// What its samples call it.
    host: String,
    tick_ns: u64,
    page_bytes: u64,
    devices: Vec<Device>,
    groups: ControlGroups,
}

impl Source {
    /// `devices`: the block devices under test.
    pub fn new(devices: Vec<Device>) -> Self {
        Self {
            host: host_name(),
            tick_ns: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
            page_bytes: rustix::param::page_size() as u64,
            devices,
            groups: ControlGroups::of_self(),
        }
    }

    /// One sample; `at_ns` is the time since the run's start.
    pub fn take(&self, at_ns: u64) -> Sample {
        let text = |path: &str| read_to_string(path).unwrap_or_default();
        let usage = usage();
        let (tcp_out, tcp_retransmits) = parse::tcp(&text("/proc/net/snmp"));
        Sample {
            host: self.host.clone(),
            role: Role::Client,
            at_ns,
            cpus: parse::cpus(&text("/proc/stat"), self.tick_ns),
            process_cpu_ns: usage.user_ns + usage.system_ns,
            process_rss_bytes: parse::resident_pages(&text("/proc/self/statm")) * self.page_bytes,
            process_usage: usage,
            memory_available_bytes: parse::memory_available(&text("/proc/meminfo")),
            process_io: process_io(&text("/proc/self/io")),
            nics: parse::nics(&text("/proc/net/dev")),
            tcp_out,
            tcp_retransmits,
            disks: parse::disks(&text("/proc/diskstats"), &self.devices),
            psi_ns: ["cpu", "io", "memory"]
                .map(|what| parse::pressure(&text(&format!("/proc/pressure/{what}")))),
            cpu_quotas: self.groups.cpu_quotas(),
        }
    }
}

/// The node's name, as uname has it.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn process_io(text: &str) -> ProcessIo {
    let fields: BTreeMap<&str, u64> = parse::colon_fields(text);
    let get = |name| fields.get(name).copied().unwrap_or(0);
    ProcessIo {
        rchar: get("rchar"),
        wchar: get("wchar"),
        read_bytes: get("read_bytes"),
        write_bytes: get("write_bytes"),
    }
}

/// getrusage of this process, all its threads included.
fn usage() -> ProcessUsage {
    // SAFETY: a rusage is plain integers, for which all zeros is a value.
    let mut u: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `u` is a valid rusage that outlives the call.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut u) } != 0 {
        return ProcessUsage::default();
    }
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
    ProcessUsage {
        user_ns: ns(u.ru_utime),
        system_ns: ns(u.ru_stime),
        context_switches: (u.ru_nvcsw + u.ru_nivcsw) as u64,
        minor_faults: u.ru_minflt as u64,
        major_faults: u.ru_majflt as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_sampled() {
        let source = Source::new(Vec::new());
        let (a, b) = (source.take(0), source.take(1));
        assert!(!a.cpus.is_empty());
        assert!(a.process_rss_bytes > 0);
        assert!(b.process_cpu_ns >= a.process_cpu_ns);
        assert!(a.nics.contains_key("lo"));
    }
}
