//! Whether what was read came from the storage: judged from what the kernel counted. Pure.

use plimsoll_model::{Finding, Level};

/// What was read in the measured time, by different counts, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadCounts {
    /// By the workload.
    pub read: u64,
    /// By /proc/self/io: fetched from storage on behalf of this process.
    pub process: u64,
    /// By /proc/diskstats of the device below; `None` where there is none (network and FUSE file systems).
    pub device: Option<u64>,
    /// The workload went through the page cache on purpose.
    pub buffered: bool,
    /// The file system's reads are not in the process' count: what is there are page-ins of other files, this program's own.
    pub uncounted: bool,
}

/// Share of reads above which "from the page cache" is said.
const SHARE: f64 = 0.01;

/// Names reads that no device saw. Read-ahead may make the kernel's counts larger than ours; that is fine.
///
/// With direct I/O it makes the result invalid (something in between answered); through the page cache it is
/// what was asked for, and qualifies the result: the figure is that of memory.
pub fn cached_reads(workload: &str, c: ReadCounts) -> Option<Finding> {
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
        (Level::Qualified, "The figure is a cached one. Use direct I/O, or more data than memory.")
    } else {
        (Level::Invalid, "Direct reads were answered from memory below: look for a cache or loop device.")
    };
    let text = format!(
        "{:.1} % of the bytes read did not come from the device but from the page cache ({} of {} bytes were \
         fetched, as the kernel counts). {advice}",
        share * 100.0,
        fetched,
        c.read
    );
    Some(Finding::new("V08", "page_cache_reads", level, text).measured(share, SHARE).on(workload))
}

/// Whether the kernel leaves a file system's reads out of /proc/PID/io: those that fetch by themselves, over a network or by a
/// process, and not through the block layer. `described`: its type, with options in parentheses.
pub fn is_uncounted(described: &str) -> bool {
    const FETCHED_BY_ITSELF: [&str; 11] =
        ["fuse", "virtiofs", "9p", "cifs", "smb3", "ceph", "afs", "lustre", "beegfs", "gpfs", "orangefs"];
    let kind = described.split([' ', '.']).next().unwrap_or("");
    // A FUSE file system over a block device has the device's counts.
    FETCHED_BY_ITSELF.contains(&kind) || kind.starts_with("nfs")
}

/// A file of a file system that lives in memory.
pub fn in_memory(workload: &str, path: &str) -> Finding {
    let text = format!(
        "{path} lies in memory (tmpfs or ramfs): these figures are those of memory and kernel, not of storage. \
         Name a file on the storage that is meant."
    );
    Finding::new("V08", "memory_file_system", Level::Qualified, text).on(workload)
}

/// Reads of a region that was never written.
pub fn unwritten(workload: &str, path: &str, unwritten: u64, length: u64) -> Finding {
    let share = unwritten as f64 / length.max(1) as f64;
    let text = format!(
        "{unwritten} of {length} bytes of {path} were never written (holes or unwritten extents). Reading them \
         measures memory, not storage. Let the region be laid out, or write it in full first."
    );
    Finding::new("V09", "unwritten_reads", Level::Invalid, text).measured(share, 0.0).on(workload)
}

/// A device whose sampled blocks are zeros or repeat each other.
pub fn hollow_device(workload: &str, path: &str, blocks: u32, zeros: u32, repeats: u32) -> Finding {
    let text = format!(
        "Of {blocks} sampled blocks of {path}, {zeros} hold only zeros and {repeats} repeat another: the device is \
         trimmed, thinly provisioned or filled with a pattern, and may answer reads without its media. Write it \
         in full with random data first."
    );
    let share = f64::from(zeros + repeats) / f64::from(blocks.max(1));
    Finding::new("V09", "unwritten_reads", Level::Invalid, text).measured(share, 0.1).on(workload)
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
        for kind in ["fuse.sshfs (rw)", "fuse (rw)", "nfs4 (rw,vers=4.2)", "9p (rw)", "virtiofs (rw)"] {
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
