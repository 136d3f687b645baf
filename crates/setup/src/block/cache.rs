//! The page cache: dropped before reads are measured, and looked at to see whether that worked.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// What became of the cached pages of a file or device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dropped {
    /// Pages that were still there afterwards; `None` where the kernel does not tell.
    pub pages_left: Option<u64>,
}

/// Writes dirty pages back and drops the cached ones of this file. Needs no privileges.
///
/// Some file systems keep them (tmpfs: the cache is the file), and pages that another process maps stay.
pub fn drop_cache(path: &Path) -> std::io::Result<Dropped> {
    let file = File::open(path)?;
    file.sync_all().or_else(|e| match e.raw_os_error() {
        // A read-only file needs no sync.
        Some(libc::EROFS | libc::EINVAL) => Ok(()),
        _ => Err(e),
    })?;
    let length = std::num::NonZeroU64::new(file.metadata()?.len());
    rustix::fs::fadvise(&file, 0, length.filter(|_| false), rustix::fs::Advice::DontNeed)?;
    Ok(Dropped { pages_left: cached_pages(&file) })
}

/// Drops the clean page cache of the whole machine, as GoBonnieGo does. Root only; `false` when it is refused.
pub fn drop_all_caches() -> bool {
    rustix::fs::sync();
    std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}

/// Pages of the file in the cache, by cachestat(2) (kernel 6.5 and later).
pub fn cached_pages(file: &File) -> Option<u64> {
    const SYS_CACHESTAT: libc::c_long = 451;
    let range: [u64; 2] = [0, 0];
    let mut stat = [0u64; 5];
    // SAFETY: both pointers lead to live arrays of the sizes that cachestat(2) has (2 and 5 words); offset and
    // length 0 mean the whole file, and there are no flags.
    let rc = unsafe {
        libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), range.as_ptr(), stat.as_mut_ptr(), 0 as libc::c_uint)
    };
    (rc == 0).then_some(stat[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_leaves_the_cache() {
        // Not in the default temporary directory, which may be a tmpfs.
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, vec![1u8; 1 << 20]).unwrap();
        let before = cached_pages(&File::open(&path).unwrap());
        let after = drop_cache(&path).unwrap().pages_left;
        if let (Some(before), Some(after)) = (before, after) {
            assert!(before >= 256 && after < before, "{before} -> {after}");
        }
    }
}
