//! What a path of a job file is at present: the lowering asks, so that it can be tested without disks.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use plimsoll_setup::safety::marker::{self, Maker};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    Missing,
    /// A regular file; `ours` when Plimsoll made it.
    File {
        size: u64,
        ours: bool,
    },
    BlockDevice {
        size: u64,
    },
    Directory,
    Other,
}

/// Looks paths up.
pub trait PathProbe {
    fn kind(&self, path: &Path) -> PathKind;
}

/// The real file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiskProbe;

impl PathProbe for DiskProbe {
    fn kind(&self, path: &Path) -> PathKind {
        let Ok(meta) = std::fs::metadata(path) else { return PathKind::Missing };
        let t = meta.file_type();
        if t.is_file() {
            PathKind::File { size: meta.len(), ours: matches!(marker::maker_at(path), Maker::Run(_)) }
        } else if t.is_block_device() {
            PathKind::BlockDevice { size: plimsoll_setup::safety::device::size_bytes(path).unwrap_or(0) }
        } else if t.is_dir() {
            PathKind::Directory
        } else {
            PathKind::Other
        }
    }
}
