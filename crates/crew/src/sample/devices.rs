//! Which block device lies under a path.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A block device as /proc/diskstats knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// `nvme0n1`; of a partition its own, `nvme0n1p1`.
    pub name: String,
    /// Major and minor number.
    pub number: (u32, u32),
}

/// The device itself, or the one that a file or directory lies on. `None` where there is none (tmpfs, NFS).
pub fn device_of(path: &Path) -> Option<Device> {
    let meta = existing(path)?;
    let dev = if meta.file_type().is_block_device() { meta.rdev() } else { meta.dev() };
    let number = (libc::major(dev), libc::minor(dev));
    let link = std::fs::read_link(format!("/sys/dev/block/{}:{}", number.0, number.1)).ok()?;
    Some(Device { name: link.file_name()?.to_string_lossy().into_owned(), number })
}

/// The path's own metadata, or that of the nearest directory above it that exists.
fn existing(path: &Path) -> Option<std::fs::Metadata> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from("/"));
    absolute.ancestors().find_map(|p| std::fs::metadata(p).ok())
}
