//! Files of /proc on a Linux host, as texts, to readings: for hosts on which nothing is installed.

use std::collections::BTreeMap;

use plimsoll_model::observed::{ReadSubject, ServerQuantity as Q, ServerReading};
use plimsoll_model::text::clean;

/// /proc/diskstats counts sectors of this size on every device.
const SECTOR_BYTES: f64 = 512.0;
/// Rows of one file that are read: CPUs, interfaces, devices.
const MOST_ROWS: usize = 10_000;

/// What numbers of /proc are in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProcUnits {
    /// `getconf CLK_TCK`: ticks of a second; 100 almost everywhere.
    pub ticks_per_s: f64,
    /// `getconf PAGESIZE`.
    pub page_bytes: f64,
}

impl Default for ProcUnits {
    fn default() -> Self {
        Self { ticks_per_s: 100.0, page_bytes: 4096.0 }
    }
}

/// All numbers there are whole: what is none (`inf`, `1e9`) is not the kernel's.
fn number(field: &str) -> Option<f64> {
    field.parse::<u64>().ok().map(|n| n as f64)
}

fn reading(quantity: Q, label: &str, value: f64) -> ServerReading {
    ServerReading { quantity, label: clean(label).into_owned(), value }
}

/// /proc/stat: each CPU, and when the host was started.
pub fn stat(text: &str, units: ProcUnits) -> Vec<ServerReading> {
    let mut out = Vec::new();
    for line in text.lines().take(MOST_ROWS) {
        let mut fields = line.split_ascii_whitespace();
        let name = fields.next().unwrap_or("");
        let values: Vec<f64> = fields.filter_map(number).collect();
        if let (Some(started), "btime") = (values.first(), name) {
            out.push(reading(Q::BootUnixS, "", *started));
        }
        let Some(cpu) =
            name.strip_prefix("cpu").filter(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        else {
            continue;
        };
        let at = |i: usize| values.get(i).copied().unwrap_or(0.0) / units.ticks_per_s;
        // user nice system idle iowait irq softirq steal; guest time is in user already.
        let by_mode = [
            (Q::CpuUserS, at(0) + at(1)),
            (Q::CpuSystemS, at(2)),
            (Q::CpuIdleS, at(3)),
            (Q::CpuIowaitS, at(4)),
            (Q::CpuIrqS, at(5) + at(6)),
            (Q::CpuStealS, at(7)),
        ];
        out.extend(by_mode.map(|(q, v)| reading(q, cpu, v)));
    }
    out
}

/// /proc/meminfo, in KiB.
pub fn meminfo(text: &str) -> Vec<ServerReading> {
    let wanted = [("MemTotal", Q::MemoryTotalBytes), ("MemAvailable", Q::MemoryAvailableBytes)];
    let value = |name: &str| {
        let line = text.lines().find(|l| l.split(':').next() == Some(name))?;
        number(line.split_ascii_whitespace().nth(1)?)
    };
    wanted.into_iter().filter_map(|(name, q)| Some(reading(q, "", value(name)? * 1024.0))).collect()
}

/// /proc/net/dev.
pub fn net_dev(text: &str) -> Vec<ServerReading> {
    let mut out = Vec::new();
    for line in text.lines().take(MOST_ROWS) {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let v: Vec<f64> = rest.split_ascii_whitespace().filter_map(number).collect();
        let &[rx, _, _, rx_drops, _, _, _, _, tx, _, _, tx_drops, ..] = v.as_slice() else { continue };
        let name = name.trim();
        out.push(reading(Q::NicRxBytes, name, rx));
        out.push(reading(Q::NicTxBytes, name, tx));
        out.push(reading(Q::NicDrops, name, rx_drops + tx_drops));
    }
    out
}

/// /proc/diskstats: times are in milliseconds. Partitions are left out: their disks have them.
pub fn diskstats(text: &str) -> Vec<ServerReading> {
    let rows = || text.lines().take(MOST_ROWS).map(|l| l.split_ascii_whitespace().collect::<Vec<&str>>());
    let names: Vec<&str> = rows().filter_map(|f| f.get(2).copied()).collect();
    let mut out = Vec::new();
    for fields in rows() {
        let Some(name) = fields.get(2).filter(|n| !is_partition(n, &names)) else { continue };
        let v: Vec<f64> = fields.iter().skip(3).filter_map(|f| number(f)).collect();
        let &[reads, _, read, read_ms, writes, _, written, write_ms, in_flight, busy_ms, queue_ms, ..] =
            v.as_slice()
        else {
            continue;
        };
        let all = [
            (Q::DiskReads, reads),
            (Q::DiskReadBytes, read * SECTOR_BYTES),
            (Q::DiskReadS, read_ms / 1000.0),
            (Q::DiskWrites, writes),
            (Q::DiskWriteBytes, written * SECTOR_BYTES),
            (Q::DiskWriteS, write_ms / 1000.0),
            (Q::DiskInFlight, in_flight),
            (Q::DiskBusyS, busy_ms / 1000.0),
            (Q::DiskQueueS, queue_ms / 1000.0),
        ];
        out.extend(all.map(|(q, v)| reading(q, name, v)));
    }
    out
}

/// `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`.
fn is_partition(name: &str, all: &[&str]) -> bool {
    let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let disk_p = disk.strip_suffix('p').filter(|d| d.ends_with(|c: char| c.is_ascii_digit()));
    disk != name && (all.contains(&disk) || disk_p.is_some_and(|d| all.contains(&d)))
}

/// /proc/pressure/cpu and its like, microseconds: how long at least one task waited.
pub fn pressure(text: &str, quantity: Q) -> Option<ServerReading> {
    let line = text.lines().find(|l| l.starts_with("some "))?;
    let total = line.split_ascii_whitespace().find_map(|f| f.strip_prefix("total="))?;
    Some(reading(quantity, "", number(total)? / 1e6))
}

/// Before each part of [`hosts_files`].
const MARK: &str = "==";

/// What one host says of itself in one go: texts of files, each behind a line `==NAME`. `clock`: seconds since 1970; `units`: ticks of a second and
/// bytes of a page; `speeds`: interfaces with Mbit/s; `pid COMMAND`: stat, statm and io of a process.
pub fn hosts_files(text: &str, host: &str) -> Vec<ReadSubject> {
    let mut parts: Vec<(&str, String)> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix(MARK) {
            if parts.len() >= MOST_ROWS {
                break;
            }
            parts.push((name.trim(), String::new()));
        } else if let Some((_, text)) = parts.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    let part = |name: &str| parts.iter().find(|(n, _)| *n == name).map_or("", |(_, t)| t.as_str());
    let of_units: Vec<f64> =
        part("units").split_ascii_whitespace().filter_map(number).filter(|n| *n > 0.0).collect();
    let units = match of_units[..] {
        [ticks_per_s, page_bytes, ..] => ProcUnits { ticks_per_s, page_bytes },
        _ => ProcUnits::default(),
    };
    let mut readings = stat(part("stat"), units);
    readings.extend(meminfo(part("meminfo")));
    readings.extend(net_dev(part("net/dev")));
    readings.extend(diskstats(part("diskstats")));
    let pressures = [("cpu", Q::PsiCpuS), ("io", Q::PsiIoS), ("memory", Q::PsiMemoryS)];
    readings.extend(pressures.into_iter().filter_map(|(n, q)| pressure(part(&format!("pressure/{n}")), q)));
    let clock = part("clock").trim().parse::<f64>().ok().filter(|t| t.is_finite() && *t > 1e9);
    readings.extend(clock.map(|t| reading(Q::ClockUnixS, "", t)));
    for line in part("speeds").lines().take(MOST_ROWS) {
        // A virtual interface says -1, or nothing.
        if let Some((nic, speed)) = line.split_once(' ').and_then(|(n, v)| Some((n, number(v.trim())?))) {
            readings.push(reading(Q::NicSpeedBytesPerS, nic, speed * 125_000.0));
        }
    }
    let own = ReadSubject { host: host.to_owned(), daemon: String::new(), readings };
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let daemon = |(name, text): &(&str, String)| {
        let command = clean(name.strip_prefix("pid ")?.trim()).into_owned();
        let n = seen.entry(command.clone()).or_default();
        *n += 1;
        // Several of one name are told apart in the order of their numbers, which stays while they run.
        let daemon = if *n == 1 { command } else { format!("{command}.{n}") };
        let (stat, rest) = text.split_once('\n').unwrap_or((text, ""));
        let (statm, io) = rest.split_once('\n').unwrap_or((rest, ""));
        Some(ReadSubject { host: host.to_owned(), daemon, readings: process(stat, statm, io, units) })
    };
    std::iter::once(own).chain(parts.iter().filter_map(daemon).collect::<Vec<_>>()).collect()
}

/// /proc/PID/stat (ticks), /proc/PID/statm (pages) and /proc/PID/io (bytes; empty where it may not be read) of one process.
pub fn process(stat: &str, statm: &str, io: &str, units: ProcUnits) -> Vec<ServerReading> {
    let mut out = Vec::new();
    // The name in parentheses may hold anything, parentheses and spaces included.
    let after: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, a)| a).split_ascii_whitespace().collect();
    let ticks = |i: usize| after.get(i).and_then(|f| number(f));
    // Fields 14 and 15 of the whole; the first after the name is field 3.
    if let (Some(user), Some(system)) = (ticks(11), ticks(12)) {
        out.push(reading(Q::ProcessCpuS, "", (user + system) / units.ticks_per_s));
    }
    let resident = statm.split_ascii_whitespace().nth(1).and_then(number);
    out.extend(resident.map(|pages| reading(Q::ProcessRssBytes, "", pages * units.page_bytes)));
    for (name, q) in [("read_bytes", Q::ProcessReadBytes), ("write_bytes", Q::ProcessWriteBytes)] {
        let line = io.lines().filter_map(|l| l.split_once(':')).find(|(n, _)| n.trim() == name);
        let value = line.and_then(|(_, v)| number(v.trim()));
        out.extend(value.map(|v| reading(q, "", v)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(all: &[ServerReading], q: Q, label: &str) -> Option<f64> {
        all.iter().find(|r| r.quantity == q && r.label == label).map(|r| r.value)
    }

    #[test]
    fn ticks_pages_sectors_and_kib_become_seconds_and_bytes() {
        let cpu = stat("cpu  9 9\ncpu1 100 50 30 1000 7 2 3 4 0 0\nbtime 1700000000\n", ProcUnits::default());
        assert_eq!((value(&cpu, Q::CpuUserS, "1"), value(&cpu, Q::CpuIrqS, "1")), (Some(1.5), Some(0.05)));
        assert!(
            stat("cpu0 inf 1e400 NaN\nbtime 1e999\n", ProcUnits::default()).iter().all(|r| r.value == 0.0)
        );
        assert_eq!((value(&cpu, Q::BootUnixS, ""), cpu.len()), (Some(1.7e9), 7));
        let memory = meminfo("MemTotal:  100 kB\nMemAvailable:   50 kB\n");
        assert_eq!(value(&memory, Q::MemoryAvailableBytes, ""), Some(51_200.0));
        let net =
            net_dev("Inter-|\n face |bytes\n  eth0: 1000 10 0 1 0 0 0 0 2000 20 0 2 0 0 0 0\n lo: 1 2\n");
        assert_eq!(
            (value(&net, Q::NicTxBytes, "eth0"), value(&net, Q::NicDrops, "eth0")),
            (Some(2000.0), Some(3.0))
        );
        assert_eq!(net.len(), 3);
        let disks = " 8 0 sda 100 5 2000 30 40 2 80 9 1 33 44 0 0 0 0\n 8 1 sda1 1 1 1 1 1 1 1 1 1 1 1\n \
                     259 0 nvme0n1 1 0 2 0 0 0 0 0 0 0 0\n 259 1 nvme0n1p1 1 0 2 0 0 0 0 0 0 0 0\n 253 0 dm-0 1 0 2 0 0 0 0 0 0 0 0\n";
        let disks = diskstats(disks);
        assert_eq!(value(&disks, Q::DiskReadBytes, "sda"), Some(1_024_000.0));
        assert_eq!(
            (value(&disks, Q::DiskBusyS, "sda"), value(&disks, Q::DiskReads, "sda1")),
            (Some(0.033), None)
        );
        assert_eq!(value(&disks, Q::DiskReads, "nvme0n1p1"), None);
        assert_eq!(
            (value(&disks, Q::DiskReads, "nvme0n1"), value(&disks, Q::DiskReads, "dm-0")),
            (Some(1.0), Some(1.0))
        );
    }

    #[test]
    fn a_process_whose_name_is_hostile() {
        let line = "7 (a) 9 (b) S 1 1 1 0 -1 0 1 2 3 4 250 50 0 0 20 0 1 0 5 6 7";
        let found =
            process(line, "10 7 3", "rchar: 5\nread_bytes: 4096\nwrite_bytes: x\n", ProcUnits::default());
        assert_eq!(value(&found, Q::ProcessCpuS, ""), Some(3.0));
        assert_eq!(value(&found, Q::ProcessRssBytes, ""), Some(28_672.0));
        assert_eq!(
            (value(&found, Q::ProcessReadBytes, ""), value(&found, Q::ProcessWriteBytes, "")),
            (Some(4096.0), None)
        );
        assert!(process("", "", "", ProcUnits::default()).is_empty());
    }

    #[test]
    fn a_host_in_one_go() {
        let text = "motd\n==units\n1000 16384\n==clock\n1700000000.5\n==stat\ncpu0 1000 0 0 5000 0 0 0 0\n==pressure/cpu\nsome avg10=0.00 total=2500000\n\
                    ==speeds\neth0 25000\nlo \nveth1 -1\n==pid minio\n7 (minio) S 1 1 1 0 -1 0 1 2 3 4 2500 500 0\n10 7 3\nread_bytes: 9\n\
                    ==pid minio\n8 (minio) S 1 1 1 0 -1 0 1 2 3 4 0 0 0\n1 1 1\n";
        let all = hosts_files(text, "s1");
        let names: Vec<&str> = all.iter().map(|s| s.daemon.as_str()).collect();
        assert_eq!(names, ["", "minio", "minio.2"]);
        let of = |i: usize, q, label: &str| value(&all[i].readings, q, label);
        assert_eq!((of(0, Q::CpuUserS, "0"), of(0, Q::PsiCpuS, "")), (Some(1.0), Some(2.5)));
        assert_eq!(
            (of(0, Q::ClockUnixS, ""), of(0, Q::NicSpeedBytesPerS, "eth0")),
            (Some(1_700_000_000.5), Some(3.125e9))
        );
        assert_eq!((of(0, Q::NicSpeedBytesPerS, "veth1"), of(0, Q::NicSpeedBytesPerS, "lo")), (None, None));
        assert_eq!(
            (of(1, Q::ProcessCpuS, ""), of(1, Q::ProcessRssBytes, "")),
            (Some(3.0), Some(7.0 * 16384.0))
        );
        assert_eq!(of(1, Q::ProcessReadBytes, ""), Some(9.0));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(?s).{0,200}") {
            let _ = hosts_files(&text, "s");
            let units = ProcUnits::default();
            let _ = (stat(&text, units), meminfo(&text), net_dev(&text), diskstats(&text));
            let _ = process(&text, &text, &text, units);
        }
    }
}
