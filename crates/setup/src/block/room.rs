//! Room for files: made as long as they are to be, without filling the file system of others.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use plimsoll_model::units::{about_size, format_size};

use super::holds::Holds;
use super::layout::LayoutJob;
use super::need::Need;
use crate::error::SetupError;
use crate::safety;

/// Bytes of a device or file that is there.
pub fn known_size(path: &Path) -> Option<u64> {
    safety::device::size_bytes(path).or_else(|| fs::metadata(path).ok().map(|m| m.len()))
}

/// In the tree of device nodes, where a new file would lie in memory: a mistyped device, not a place for a file. Shared
/// memory below it is one.
pub(super) fn in_device_tree(path: &Path) -> bool {
    path.parent().is_some_and(|p| p.starts_with("/dev") && !p.starts_with("/dev/shm"))
}

/// Makes the file as long as this. `allocate`: its space is reserved at once, as fio's `fallocate=native` does, so that a
/// random write is one to a block of the file's own, and not the file system's search for one. What is written in
/// order to a new file (the suites) has that search in its figure, as those that it is compared with do.
/// `through` leads to the file of that name.
pub(super) fn extend(path: &Path, through: &Path, end: u64, allocate: bool) -> Result<(), SetupError> {
    use rustix::fs::{FallocateFlags, fallocate};
    // Asked first: to find out by trying would fill the file system of others, if only for a moment.
    if allocate {
        let more = end.saturating_sub(occupied(through));
        if let Some(free) = free_bytes(through).filter(|free| more > *free) {
            return Err(too_full(path, more, free));
        }
    }
    let grow = || {
        let file = File::options().write(true).open(through)?;
        let have = file.metadata()?.len();
        if have >= end {
            return Ok(());
        }
        if !allocate {
            return file.set_len(end);
        }
        match fallocate(&file, FallocateFlags::empty(), have, end - have) {
            // Not every file system can; the file is then a hole up to its end.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => file.set_len(end),
            // Others took it meanwhile, or a quota is smaller: what was got of it is given back before it is counted.
            Err(e) => {
                file.set_len(have)?;
                Err(e.into())
            }
            Ok(()) => Ok(()),
        }
    };
    grow().map_err(|e: std::io::Error| {
        if e.raw_os_error() == Some(libc::ENOSPC) {
            return too_full(path, end.saturating_sub(occupied(through)), free_bytes(through).unwrap_or(0));
        }
        SetupError::input(
            format!("{} cannot grow to {}: {e}", path.display(), format_size(end)),
            "Choose a smaller size, or a file system that allows such files",
        )
    })
}

pub(super) fn open_direct(path: &Path, through: &Path, writes: bool) -> Result<(), SetupError> {
    let opened =
        File::options().read(true).write(writes).custom_flags(libc::O_DIRECT | libc::O_CLOEXEC).open(through);
    opened.map(drop).map_err(|e| match e.raw_os_error() {
        Some(libc::EINVAL) => SetupError::input(
            format!("{}: the file system refuses direct I/O", path.display()),
            "Use --buffered (direct=0); the page cache is then part of what is measured",
        ),
        _ => SetupError::input(format!("{} cannot be opened: {e}", path.display()), "Check its permissions"),
    })
}

/// Bytes that a file takes up; one that is not there takes none.
fn occupied(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |m| std::os::unix::fs::MetadataExt::blocks(&m) * 512)
}

/// The same as [`check_space`], before any file is made: what is not there yet is counted where it will be.
pub(super) fn check_room(needs: &[Need]) -> Result<(), SetupError> {
    use std::os::unix::fs::MetadataExt;
    let mut wanted: BTreeMap<u64, (u64, PathBuf, PathBuf)> = BTreeMap::new();
    for need in needs {
        let there = fs::metadata(&need.path).ok();
        // Without a file, a read needs one to be made.
        let grows = need.writes || need.layout && need.reads && there.is_none();
        // A mistyped device is told as that.
        if !grows || in_device_tree(&need.path) || there.as_ref().is_some_and(|m| !m.is_file()) {
            continue;
        }
        let absolute = std::path::absolute(&need.path).unwrap_or_else(|_| need.path.clone());
        let Some((place, meta)) =
            absolute.ancestors().find_map(|p| Some((p.to_owned(), fs::metadata(p).ok()?)))
        else {
            continue;
        };
        let more = (need.offset + need.length.unwrap_or(0)).saturating_sub(occupied(&need.path));
        wanted.entry(meta.dev()).or_insert((0, need.path.clone(), place)).0 += more;
    }
    for (bytes, path, place) in wanted.into_values() {
        if let Some(free) = free_bytes(&place).filter(|free| bytes > *free) {
            return Err(too_full(&path, bytes, free));
        }
    }
    Ok(())
}

/// Files that will be written must have room: a benchmark that fills a file system hurts whoever else is on it.
pub(super) fn check_space(jobs: &[LayoutJob], needs: &[Need], holds: &Holds) -> Result<(), SetupError> {
    use std::os::unix::fs::MetadataExt;
    let laid_out = |p: &Path| jobs.iter().any(|j| j.path == p);
    let mut wanted: BTreeMap<u64, (u64, PathBuf)> = BTreeMap::new();
    for need in needs.iter().filter(|n| n.writes || laid_out(&n.path)) {
        let Ok(meta) = fs::metadata(holds.through(&need.path)) else { continue };
        if !meta.is_file() {
            continue;
        }
        let more = (need.offset + need.length.unwrap_or(0)).saturating_sub(meta.blocks() * 512);
        wanted.entry(meta.dev()).or_insert((0, need.path.clone())).0 += more;
    }
    for (bytes, path) in wanted.into_values() {
        let free = free_bytes(&path);
        if free.is_some_and(|f| bytes > f) {
            return Err(too_full(&path, bytes, free.unwrap_or(0)));
        }
    }
    Ok(())
}

fn too_full(path: &Path, needed: u64, free: u64) -> SetupError {
    SetupError::input(
        format!("{}: {} are needed, {} are free", path.display(), about_size(needed), about_size(free)),
        "Free some space, or choose a smaller size",
    )
}

/// tmpfs and ramfs: the page cache is the file, and direct I/O is no more than a word there.
pub(super) fn lies_in_memory(path: &Path) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    let is_file = fs::metadata(path).is_ok_and(|m| m.is_file());
    is_file && rustix::fs::statfs(path).is_ok_and(|s| [TMPFS, RAMFS].contains(&(s.f_type as u64)))
}

/// Bytes that this user may still write to the file system of `path` (which must exist); `None` where it does not say.
pub fn free_bytes(path: &Path) -> Option<u64> {
    // One that has no blocks at all (ramfs, some FUSE ones) does not count them.
    let counted = rustix::fs::statvfs(path).ok().filter(|s| s.f_blocks > 0)?;
    Some(counted.f_bavail.saturating_mul(counted.f_frsize))
}

/// The directory of the file, if it is missing and may be made.
pub(super) fn missing_directory(need: &Need) -> Result<Option<&Path>, SetupError> {
    let present = |p: &Path| p.as_os_str().is_empty() || p.exists();
    let Some(dir) = need.path.parent().filter(|p| !present(p)) else { return Ok(None) };
    let above = dir.parent().is_none_or(present);
    if need.own_directory && above {
        return Ok(Some(dir));
    }
    let missing = dir.ancestors().take_while(|p| !present(p)).last().unwrap_or(dir);
    Err(SetupError::input(
        format!("{}: there is no directory {}", need.path.display(), missing.display()),
        format!(
            "Create it first (mkdir -p {}), or correct the path",
            if need.own_directory { dir.parent().unwrap_or(dir) } else { dir }.display()
        ),
    ))
}
