//! Whether a stage's reads came from the device: what the workload read against what the kernel counted.

use plimsoll_model::plan::TargetSpec;
use plimsoll_model::{Finding, Level, OpKind, Sample};
use plimsoll_store::{RunData, StageData};

use super::agents::{is_sampled, machines};

/// One finding at most: the kernel's counts do not tell the workloads of a stage apart.
pub fn judge_reads(data: &RunData, stage: &StageData) -> Option<Finding> {
    let mut read = 0;
    let mut buffered = false;
    let mut name = None;
    let mut uncounted = false;
    for (id, points) in stage.series.iter().filter(|(id, _)| id.kind == OpKind::Read) {
        let workload = stage.spec.workloads.get(usize::from(id.workload))?;
        let (through_cache, path) = match data.plan.target_of(workload).ok()?.1 {
            TargetSpec::Block(b) => (b.buffered, &b.path),
            TargetSpec::Files(f) => (f.buffered, &f.directory),
            _ => continue,
        };
        buffered |= through_cache;
        let facts = data.environment.devices.get(path);
        uncounted |= facts.and_then(|d| d.get("file_system")).is_some_and(|kind| is_uncounted(kind));
        // Warm-up and tail included: samples cannot leave them out.
        read += points.iter().map(|p| p.counts.bytes_moved).sum::<u64>();
        name.get_or_insert_with(|| workload.name.clone());
    }
    let (process, device) = fetched(data, stage)?;
    cached_reads(&name?, ReadCounts { read, process, device, buffered, uncounted })
}

/// What all machines that agents are on fetched while the stage ran: for their processes, and from the devices below, where each of
/// them has one. Each machine's counters are subtracted by themselves; `None` where one of them was not sampled.
fn fetched(data: &RunData, stage: &StageData) -> Option<(u64, Option<u64>)> {
    if !is_sampled(data, stage) {
        return None;
    }
    let (from_ns, to_ns) = (stage.start_ns, stage.end_ns.unwrap_or(stage.last_ns));
    let each = machines(data, stage).into_iter().map(|(_, host)| fetched_by(&host.samples, from_ns, to_ns));
    let all = each.collect::<Option<Vec<_>>>()?;
    all.into_iter().reduce(|a, b| (a.0.saturating_add(b.0), a.1.zip(b.1).map(|(a, b)| a.saturating_add(b))))
}

/// By one host's samples: the last before the stage and the first after it. Counts may be too high by what others read, never too
/// low.
fn fetched_by(samples: &[Sample], from_ns: u64, to_ns: u64) -> Option<(u64, Option<u64>)> {
    let a = samples.iter().rfind(|s| s.at_ns <= from_ns)?;
    let b = samples.iter().find(|s| s.at_ns >= to_ns)?;
    let device = (!b.disks.is_empty()).then(|| {
        let fetched = |(n, d): (&String, &plimsoll_model::sample::DiskCounters)| {
            d.read_bytes.saturating_sub(a.disks.get(n).map_or(0, |x| x.read_bytes))
        };
        b.disks.iter().map(fetched).sum()
    });
    Some((b.process_io.read_bytes.saturating_sub(a.process_io.read_bytes), device))
}

/// What was read in the measured time, by different counts, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct ReadCounts {
    /// By the workload.
    read: u64,
    /// By /proc/self/io: fetched from storage on behalf of this process.
    process: u64,
    /// By /proc/diskstats of the device below; `None` where there is none (network and FUSE file systems).
    device: Option<u64>,
    /// The workload went through the page cache on purpose.
    buffered: bool,
    /// The file system's reads are not in the process' count: what is there are page-ins of other files, this program's own.
    uncounted: bool,
}

/// Share of reads above which "from the page cache" is said.
const SHARE: f64 = 0.01;

/// Names reads that no device saw. Read-ahead may make the kernel's counts larger than ours; that is fine.
///
/// With direct I/O it makes the result invalid (something in between answered); through the page cache it is
/// what was asked for, and qualifies the result: the figure is that of memory.
fn cached_reads(workload: &str, c: ReadCounts) -> Option<Finding> {
    // The process' own count may miss what kernel threads fetch for it, the device's has others' reads in it. Before
    // a result is called invalid the larger one counts; for a mere qualification the process' own is the better.
    let device = c.device.unwrap_or(0);
    let fetched = if c.buffered && c.process > 0 { c.process } else { c.process.max(device) };
    if c.read == 0 || (c.device.is_none() && (c.process == 0 || c.uncounted)) {
        return None;
    }
    let share = 1.0 - (fetched as f64 / c.read as f64).min(1.0);
    if share <= SHARE {
        return None;
    }
    let (level, advice) = if c.buffered {
        (Level::Qualified, "The figure is that of a cache. Use direct I/O, or more data than memory.")
    } else {
        (
            Level::Invalid,
            "Direct reads were served from memory at a lower layer: look for a cache or a loop device.",
        )
    };
    let text = format!(
        "{:.1} % of the bytes read came from the page cache, not from the device (by the kernel's counters, {} of {} \
         bytes were fetched). {advice}",
        share * 100.0,
        fetched,
        c.read
    );
    Some(Finding::new("V08", "page_cache_reads", level, text).measured(share, SHARE).on(workload))
}

/// Whether the kernel leaves a file system's reads out of /proc/PID/io: those that fetch by themselves, over a network or by a
/// process, and not through the block layer; and those that fetch nothing, being in memory, which is said where they are found. `described`: its type, with options in parentheses.
fn is_uncounted(described: &str) -> bool {
    const NOT_BY_BLOCKS: [&str; 13] = [
        "fuse", "virtiofs", "9p", "cifs", "smb3", "ceph", "afs", "lustre", "beegfs", "gpfs", "orangefs",
        "tmpfs", "ramfs",
    ];
    let kind = described.split([' ', '.']).next().unwrap_or("");
    // A FUSE file system over a block device has the device's counts.
    NOT_BY_BLOCKS.contains(&kind) || kind.starts_with("nfs")
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: u64 = 1 << 30;

    #[test]
    fn reads_that_no_device_saw_are_named() {
        let c = ReadCounts { read: G, process: 0, device: Some(G / 4), buffered: true, uncounted: false };
        let f = cached_reads("w", c).unwrap();
        assert_eq!((f.level, f.measured), (Level::Qualified, Some(0.75)));
        let f = cached_reads("w", ReadCounts { buffered: false, ..c }).unwrap();
        assert_eq!(f.level, Level::Invalid);
    }

    #[test]
    fn reads_of_other_programs_hide_no_cached_ones() {
        let c = ReadCounts { read: G, process: G / 4, device: Some(G), buffered: true, uncounted: false };
        assert_eq!(cached_reads("w", c).unwrap().measured, Some(0.75));
    }

    #[test]
    fn page_ins_of_the_program_itself_are_no_count_of_a_fuse_file() {
        // 268 KB were paged in of the binary while a gigabyte was read through FUSE.
        let c = ReadCounts { read: G, process: 268 << 10, device: None, buffered: false, uncounted: true };
        assert_eq!(cached_reads("w", c), None);
        // An overlay's reads are counted, by the file system below it.
        let counted = ReadCounts { uncounted: false, ..c };
        assert!(cached_reads("w", counted).is_some());
        for kind in [
            "tmpfs (rw,size=24684092k)",
            "fuse.sshfs (rw)",
            "fuse (rw)",
            "nfs4 (rw,vers=4.2)",
            "9p (rw)",
            "virtiofs (rw)",
        ] {
            assert!(is_uncounted(kind), "{kind}");
        }
        for kind in ["ext4 (rw)", "overlay (rw)", "btrfs (rw)", "fuseblk (rw)", ""] {
            assert!(!is_uncounted(kind), "{kind}");
        }
    }

    #[test]
    fn what_came_from_the_device_is_fine() {
        for c in [
            ReadCounts { read: G, process: G, device: Some(0), buffered: false, uncounted: false },
            ReadCounts { read: G, process: 0, device: Some(2 * G), buffered: true, uncounted: false },
            ReadCounts { read: 0, process: 0, device: Some(0), buffered: true, uncounted: false },
            // Nothing counts on this file system: no claim.
            ReadCounts { read: G, process: 0, device: None, buffered: false, uncounted: false },
        ] {
            assert_eq!(cached_reads("w", c), None, "{c:?}");
        }
    }
}
