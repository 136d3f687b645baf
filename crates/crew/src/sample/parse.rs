//! Text of /proc files to numbers. Lines that do not parse are passed over: a newer kernel may add some.

use std::collections::BTreeMap;

use plimsoll_model::sample::DiskCounters;

use super::devices::Device;

/// Per CPU [user, system, iowait, irq, steal, idle] in nanoseconds, from /proc/stat.
pub fn cpus(text: &str, tick_ns: u64) -> Vec<[u64; 6]> {
    let rows = text
        .lines()
        .filter(|l| l.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())));
    rows.map(|line| {
        let v: Vec<u64> = line.split_ascii_whitespace().skip(1).map(|f| f.parse().unwrap_or(0)).collect();
        let at = |i: usize| v.get(i).copied().unwrap_or(0) * tick_ns;
        // user nice system idle iowait irq softirq steal guest guest_nice; guest time is in user already.
        [at(0) + at(1), at(2), at(4), at(5) + at(6), at(7), at(3)]
    })
    .collect()
}

/// Second field of /proc/self/statm.
pub fn resident_pages(text: &str) -> u64 {
    text.split_ascii_whitespace().nth(1).and_then(|f| f.parse().ok()).unwrap_or(0)
}

/// `MemAvailable` of /proc/meminfo, bytes.
pub fn memory_available(text: &str) -> u64 {
    meminfo(text, "MemAvailable")
}

/// A line of /proc/meminfo, bytes.
pub fn meminfo(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|l| l.split(':').next() == Some(name));
    let kib = line.and_then(|l| l.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// `name: number` lines.
pub fn colon_fields(text: &str) -> BTreeMap<&str, u64> {
    text.lines()
        .filter_map(|l| {
            let (name, value) = l.split_once(':')?;
            Some((name.trim(), value.trim().parse().ok()?))
        })
        .collect()
}

/// Per interface [rx bytes, tx bytes, drops of both], from /proc/net/dev.
pub fn nics(text: &str) -> BTreeMap<String, [u64; 3]> {
    text.lines()
        .skip(2)
        .filter_map(|l| {
            let (name, rest) = l.split_once(':')?;
            let v: Vec<u64> = rest.split_ascii_whitespace().map(|f| f.parse().unwrap_or(0)).collect();
            Some((name.trim().to_owned(), [*v.first()?, *v.get(8)?, v.get(3)? + v.get(11)?]))
        })
        .collect()
}

/// (segments sent, segments sent again), from /proc/net/snmp.
pub fn tcp(text: &str) -> (u64, u64) {
    let mut rows = text.lines().filter(|l| l.starts_with("Tcp:"));
    let (Some(names), Some(values)) = (rows.next(), rows.next()) else { return (0, 0) };
    let get = |wanted: &str| {
        names
            .split_ascii_whitespace()
            .zip(values.split_ascii_whitespace())
            .find(|(n, _)| *n == wanted)
            .and_then(|(_, v)| v.parse().ok())
            .unwrap_or(0)
    };
    (get("OutSegs"), get("RetransSegs"))
}

/// Counters of the devices under test, from /proc/diskstats. Its sectors are 512 bytes on every device.
pub fn disks(text: &str, devices: &[Device]) -> BTreeMap<String, DiskCounters> {
    const SECTOR: u64 = 512;
    const MS: u64 = 1_000_000;
    text.lines()
        .filter_map(|l| {
            let f: Vec<&str> = l.split_ascii_whitespace().collect();
            let number = (f.first()?.parse().ok()?, f.get(1)?.parse().ok()?);
            let device = devices.iter().find(|d| d.number == number)?;
            let v: Vec<u64> = f.get(3..)?.iter().map(|x| x.parse().unwrap_or(0)).collect();
            let at = |i: usize| v.get(i).copied().unwrap_or(0);
            let counters = DiskCounters {
                reads: at(0),
                reads_merged: at(1),
                read_bytes: at(2) * SECTOR,
                read_ns: at(3) * MS,
                writes: at(4),
                writes_merged: at(5),
                write_bytes: at(6) * SECTOR,
                write_ns: at(7) * MS,
                in_flight: at(8),
                busy_ns: at(9) * MS,
                queue_ns: at(10) * MS,
            };
            Some((device.name.clone(), counters))
        })
        .collect()
}

/// Total stall time of a /proc/pressure file's `some` line, nanoseconds.
pub fn pressure(text: &str) -> u64 {
    let some = text.lines().find(|l| l.starts_with("some"));
    let total = some.and_then(|l| l.split("total=").nth(1)?.trim().parse::<u64>().ok());
    total.unwrap_or(0) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_rows() {
        let text = "cpu  9 9 9 9\ncpu0 100 5 30 1000 7 2 3 4 0 0\ncpu1 1 0 0 0 0 0 0 0 0 0\nintr 5\n";
        assert_eq!(cpus(text, 10), [[1050, 300, 70, 50, 40, 10_000], [10, 0, 0, 0, 0, 0]]);
        assert!(cpus("garbage\ncpu\n", 10).is_empty());
    }

    #[test]
    fn network() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 1000 10 0 1 0 0 0 0 2000 20 0 2 0 0 0 0\n";
        assert_eq!(nics(text)["lo"], [1000, 2000, 3]);
        let snmp = "Ip: a\nIp: 1\nTcp: RtoMin OutSegs RetransSegs\nTcp: 200 55 3\n";
        assert_eq!(tcp(snmp), (55, 3));
        assert_eq!(tcp(""), (0, 0));
    }

    #[test]
    fn disk_rows() {
        let text = " 7 0 loop0 1 0 8 0 0 0 0 0 0 0 0\n 254 0 vda 100 5 2000 30 40 2 80 9 1 33 44 0 0 0 0\n";
        let vda = Device { name: "vda".into(), number: (254, 0) };
        let d = disks(text, &[vda]);
        assert_eq!(d.len(), 1);
        let d = d["vda"];
        assert_eq!((d.reads, d.reads_merged, d.read_bytes, d.read_ns), (100, 5, 1_024_000, 30_000_000));
        assert_eq!((d.writes, d.write_bytes, d.in_flight, d.busy_ns), (40, 40_960, 1, 33_000_000));
    }

    #[test]
    fn small_files() {
        assert_eq!(pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=123\nfull total=7\n"), 123_000);
        assert_eq!(meminfo("MemTotal:  100 kB\nMemAvailable:   50 kB\n", "MemAvailable"), 51_200);
        assert_eq!(colon_fields("rchar: 5\nbad\nwchar: x\n"), BTreeMap::from([("rchar", 5)]));
        assert_eq!(resident_pages("10 7 3"), 7);
    }
}
