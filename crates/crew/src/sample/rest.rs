//! Whether this machine is at rest: what others than this process do on it between two samples.

use std::path::Path;

use plimsoll_model::Sample;
use plimsoll_model::units::significant;

use super::devices::Device;

/// Share of all CPUs that others may use, stolen time included: what a machine's own services take. (A choice.)
pub const QUIET_CPU: f64 = 0.05;
/// Requests that a disk may have in flight on average: a journal's commit now and then. (A choice.)
pub const QUIET_DISK: f64 = 0.1;

/// Every disk of this machine that is a disk of its own: no partition, no loop or RAM device, and nothing that is made of others (md, dm),
/// whose requests these have, too.
pub fn whole_disks() -> Vec<Device> {
    disks_in(Path::new("/sys/block"))
}

fn disks_in(block: &Path) -> Vec<Device> {
    let made_of_others = ["loop", "ram", "zram", "dm-", "md", "sr", "fd"];
    let device = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        if made_of_others.iter().any(|kind| name.starts_with(kind)) {
            return None;
        }
        let text = std::fs::read_to_string(entry.path().join("dev")).ok()?;
        let (major, minor) = text.trim().split_once(':')?;
        Some(Device { name, number: (major.parse().ok()?, minor.parse().ok()?) })
    };
    let mut all: Vec<Device> =
        std::fs::read_dir(block).into_iter().flatten().flatten().filter_map(device).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// What was not at rest between two samples of one machine, a reason each; none: it was.
pub fn unrest(before: &Sample, after: &Sample) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(share) = others_cpu(before, after).filter(|share| *share > QUIET_CPU) {
        out.push(format!("others use {} % of the CPUs", significant(share * 100.0, 2)));
    }
    let elapsed_ns = after.at_ns.saturating_sub(before.at_ns).max(1) as f64;
    for (name, now) in &after.disks {
        let Some(then) = before.disks.get(name) else { continue };
        let in_flight = now.queue_ns.saturating_sub(then.queue_ns) as f64 / elapsed_ns;
        if in_flight > QUIET_DISK {
            out.push(format!("{name} has {} requests in flight", significant(in_flight, 2)));
        }
    }
    out
}

/// Share of the time of all CPUs that went neither to this process nor to nobody. `None`: /proc does not say.
fn others_cpu(before: &Sample, after: &Sample) -> Option<f64> {
    let sum =
        |s: &Sample, of: &[usize]| -> u64 { s.cpus.iter().flat_map(|cpu| of.iter().map(|i| cpu[*i])).sum() };
    // user, system, irq, steal; of iowait nothing runs.
    let busy = |s: &Sample| sum(s, &[0, 1, 3, 4]);
    let all = |s: &Sample| sum(s, &[0, 1, 2, 3, 4, 5]);
    let passed = all(after).checked_sub(all(before)).filter(|n| *n > 0)?;
    let own = after.process_cpu_ns.saturating_sub(before.process_cpu_ns);
    let others = busy(after).saturating_sub(busy(before)).saturating_sub(own);
    Some(others as f64 / passed as f64)
}

#[cfg(test)]
mod tests {
    use plimsoll_model::sample::DiskCounters;

    use super::*;

    fn sample(at_s: u64, busy_s: u64, own_s: u64, queued_ms: u64) -> Sample {
        let s = 1_000_000_000;
        let disk = DiskCounters { queue_ns: queued_ms * 1_000_000, ..DiskCounters::default() };
        Sample {
            at_ns: at_s * s,
            cpus: vec![
                [busy_s * s, 0, 0, 0, 0, (at_s - busy_s) * s],
                [0, 0, at_s * s / 2, 0, 0, at_s * s / 2],
            ],
            process_cpu_ns: own_s * s,
            disks: [("sda".to_owned(), disk)].into(),
            ..super::super::Source::new(Vec::new()).take(0)
        }
    }

    #[test]
    fn what_others_do_is_unrest_and_what_we_do_or_wait_for_is_none() {
        let before = sample(100, 50, 10, 0);
        assert_eq!(unrest(&before, &sample(110, 50, 10, 900)), Vec::<String>::new(), "0.09 in flight");
        assert_eq!(unrest(&before, &sample(110, 56, 16, 0)), Vec::<String>::new(), "all of it is ours");
        let others = unrest(&before, &sample(110, 56, 12, 0));
        assert_eq!(others, ["others use 20 % of the CPUs"], "4 of 20 s");
        assert_eq!(unrest(&before, &sample(110, 50, 10, 15_000)), ["sda has 1.5 requests in flight"]);
    }

    #[test]
    fn disks_are_those_that_are_made_of_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        for (name, dev) in
            [("vda", "254:0\n"), ("loop0", "7:0\n"), ("dm-0", "253:0\n"), ("nvme0n1", "259:1\n")]
        {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            std::fs::write(dir.path().join(name).join("dev"), dev).unwrap();
        }
        let all = disks_in(dir.path());
        let names: Vec<(&str, (u32, u32))> = all.iter().map(|d| (d.name.as_str(), d.number)).collect();
        assert_eq!(names, [("nvme0n1", (259, 1)), ("vda", (254, 0))]);
    }
}
