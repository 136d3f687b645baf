//! Paths of what is open, from its handle.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// A path that leads to what is open, whatever has become of the name under which it was opened.
pub fn through(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Where a file lies, as the kernel knows it; not a way to open it.
pub fn path_of(file: &File) -> Option<PathBuf> {
    std::fs::read_link(through(file)).ok()
}
