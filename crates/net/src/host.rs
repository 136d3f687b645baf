//! What the kernel counts on this host: CPUs, packets that it gave up, interfaces.

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::net::IpAddr;

use plimsoll_model::net::{NetHost, NetInterface};
use serde::{Deserialize, Serialize};

use crate::address::interfaces;

/// linux/ethtool.h: whether segmentation and merging are on.
const ETHTOOL_GTSO: u32 = 0x1e;
const ETHTOOL_GGRO: u32 = 0x2b;

/// All of it at one time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostCounters {
    /// This host's monotonic clock.
    pub at_ns: u64,
    /// Seconds of CPU that our process took.
    pub process_s: f64,
    /// By core: ticks in use, stolen, all, and of those in use the kernel's work on packets and the like (softirq).
    pub cores: Vec<[u64; 4]>,
    /// Packets dropped, and times squeezed, of all cores.
    pub softnet: [u64; 2],
    /// By interface: bytes received and sent, packets dropped, errors.
    pub interfaces: BTreeMap<String, [u64; 4]>,
}

impl HostCounters {
    /// As they are now. A file that cannot be read counts nothing.
    pub fn now() -> Self {
        let text = |path: &str| read_to_string(path).unwrap_or_default();
        Self {
            at_ns: now_ns(),
            process_s: process_s(),
            cores: cores(&text("/proc/stat")),
            softnet: softnet(&text("/proc/net/softnet_stat")),
            interfaces: counted(),
        }
    }
}

/// CLOCK_MONOTONIC.
pub fn now_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives through the call; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

fn process_s() -> f64 {
    // SAFETY: a structure of plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives through the call.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    let of = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    of(usage.ru_utime) + of(usage.ru_stime)
}

/// In use, stolen, all and softirq, of each core: proc(5), the first eight figures (guests' time is in the first two).
fn cores(stat: &str) -> Vec<[u64; 4]> {
    let line = |l: &str| -> Option<[u64; 4]> {
        let mut words = l.split_whitespace();
        let is_core = words.next()?.strip_prefix("cpu").is_some_and(|n| !n.is_empty());
        let ticks: Vec<u64> = words.take(8).filter_map(|w| w.parse().ok()).collect();
        let [user, nice, system, idle, iowait, irq, softirq, stolen] = ticks[..] else { return None };
        let busy = user + nice + system + irq + softirq;
        is_core.then_some([busy, stolen, busy + stolen + idle + iowait, softirq])
    };
    stat.lines().filter_map(line).collect()
}

/// Dropped and squeezed, of all cores: the second and third figure of each line, in hexadecimal digits.
fn softnet(stat: &str) -> [u64; 2] {
    let figure = |l: &str, n: usize| {
        l.split_whitespace().nth(n).and_then(|w| u64::from_str_radix(w, 16).ok()).unwrap_or(0)
    };
    let add = |[dropped, squeezed]: [u64; 2], l: &str| [dropped + figure(l, 1), squeezed + figure(l, 2)];
    stat.lines().fold([0, 0], add)
}

fn counted() -> BTreeMap<String, [u64; 4]> {
    let Ok(all) = std::fs::read_dir("/sys/class/net") else { return BTreeMap::new() };
    let one = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let of = |file: &str| -> u64 {
            let text = read_to_string(entry.path().join("statistics").join(file)).unwrap_or_default();
            text.trim().parse().unwrap_or(0)
        };
        let dropped = of("rx_dropped") + of("tx_dropped") + of("rx_missed_errors");
        let counts = [of("rx_bytes"), of("tx_bytes"), dropped, of("rx_errors") + of("tx_errors")];
        Some((entry.file_name().to_string_lossy().into_owned(), counts))
    };
    all.filter_map(one).collect()
}

/// An interface as its driver describes it.
pub fn interface(name: &str, address: IpAddr) -> NetInterface {
    let of = |file: &str| read_to_string(format!("/sys/class/net/{name}/{file}")).unwrap_or_default();
    // A driver that knows no speed says -1, or nothing; veth says 10000, which nothing holds it to.
    let is_virtual = !std::path::Path::new(&format!("/sys/class/net/{name}/device")).exists();
    let speed = of("speed").trim().parse::<u64>().ok().filter(|s| *s > 0 && !is_virtual);
    NetInterface {
        name: name.to_owned(),
        address: address.to_string(),
        mtu_bytes: of("mtu").trim().parse().unwrap_or(0),
        speed_mbit_per_s: speed,
        tso: offload(name, ETHTOOL_GTSO),
        gro: offload(name, ETHTOOL_GGRO),
    }
}

/// Whether an offload is on, where the driver tells.
fn offload(name: &str, command: u32) -> Option<bool> {
    let mut value = [command, 0u32];
    // SAFETY: a structure of plain numbers, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    // SAFETY: the request and the value that it names live through the calls; the socket is closed once.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return None;
        }
        let result = libc::ioctl(fd, libc::SIOCETHTOOL as _, &mut request);
        libc::close(fd);
        (result == 0).then(|| value[1] != 0)
    }
}

/// This host, for the record.
pub fn this_host() -> NetHost {
    let text = |path: &str| {
        let words = read_to_string(path).unwrap_or_default();
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    NetHost {
        host: text("/proc/sys/kernel/hostname"),
        kernel: text("/proc/sys/kernel/osrelease"),
        cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        boot_id: text("/proc/sys/kernel/random/boot_id"),
        receive_buffer: text("/proc/sys/net/ipv4/tcp_rmem"),
        send_buffer: text("/proc/sys/net/ipv4/tcp_wmem"),
        interfaces: interfaces(),
        ..NetHost::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_as_the_kernel_writes_them() {
        let stat = "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 10 1 20 100 5 2 3 4 0 0\ncpu1 1\nintr 5\n";
        assert_eq!(cores(stat), [[36, 4, 145, 3]]);
        assert_eq!(softnet("00aa 00000001 0000000f 0\n00bb 00000002 00000001 0\n"), [3, 16]);
        assert_eq!((softnet(""), softnet("x")), ([0, 0], [0, 0]));
    }

    #[test]
    fn this_host_counts() {
        let now = HostCounters::now();
        assert!(!now.cores.is_empty() && now.interfaces.contains_key("lo") && now.process_s > 0.0);
        assert!(this_host().cores >= 1 && offload("no-such-interface", ETHTOOL_GTSO).is_none());
    }
}
