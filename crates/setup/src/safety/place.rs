//! A name in a directory that is held open: what is judged under it and what is removed are then in one directory, whatever
//! is done to the path meanwhile.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, openat, statat, statx, unlinkat};

/// A directory and a name in it.
#[derive(Debug)]
pub struct PlaceInDir {
    /// Held: renaming the path above it changes nothing.
    pub dir: OwnedFd,
    /// One part, without slashes.
    pub name: OsString,
}

impl PlaceInDir {
    /// The directory of a path, and its last part. `None`: the directory is not there, so that nothing under it is.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        let Some(name) = path.file_name() else {
            return Err(io::Error::other("it does not name a file"));
        };
        let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(dir, flags, Mode::empty()) {
            Ok(dir) => Ok(Some(Self { dir, name: name.to_owned() })),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Opens what is there for reading, following no link. `None`: nothing is there.
    pub fn open(&self, more: OFlags) -> io::Result<Option<File>> {
        self.open_as(&self.name, OFlags::RDONLY | more)
    }

    /// Another name in the same directory.
    pub fn open_as(&self, name: &OsStr, flags: OFlags) -> io::Result<Option<File>> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat(&self.dir, name, flags, Mode::from_raw_mode(0o600)) {
            Ok(fd) => Ok(Some(File::from(fd))),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(rustix::io::Errno::LOOP) => Err(io::Error::other("it is a symbolic link")),
            Err(e) => Err(e.into()),
        }
    }

    /// Removes the name, if it still leads to what was judged.
    pub fn unlink(&self, judged: &File, flags: AtFlags) -> io::Result<()> {
        self.unlink_as(&self.name, judged, flags)
    }

    /// Another name in the same directory, if it still leads to what was judged.
    pub fn unlink_as(&self, name: &OsStr, judged: &File, flags: AtFlags) -> io::Result<()> {
        let meta = judged.metadata()?;
        let now = statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if (now.st_dev, now.st_ino) != (meta.dev(), meta.ino()) {
            return Err(io::Error::other("something else now has its name"));
        }
        Ok(unlinkat(&self.dir, name, flags)?)
    }
}

/// Removes a file that was made here by its name, if that still leads to it: somebody may have put another thing in its place.
pub fn remove_made(path: &Path, made: &File) -> io::Result<()> {
    let gone = || io::Error::other("its directory no longer exists");
    PlaceInDir::of(path)?.ok_or_else(gone)?.unlink(made, AtFlags::empty())
}

/// Whether this user may make files in a directory.
pub fn may_write_in(dir: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(dir, rustix::fs::Access::WRITE_OK)?)
}

/// What tells a file or directory from every other: a copy of it, with all its attributes, differs in the number or in
/// the time of its making (0 where the file system does not keep that), and a copy of the whole file system in the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    /// Of the file system.
    pub device: u64,
    /// Of the file; used again after it is gone.
    pub inode: u64,
    /// Unix time of its making, nanoseconds; 0: not kept.
    pub born_ns: u64,
}

impl FileId {
    /// Of what is open, whatever its name leads to by now.
    pub fn of(file: &impl AsFd) -> io::Result<Self> {
        let s = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::INO | StatxFlags::BTIME)?;
        let born = if s.stx_mask & StatxFlags::BTIME.bits() == 0 {
            0
        } else {
            (s.stx_btime.tv_sec as u64)
                .wrapping_mul(1_000_000_000)
                .wrapping_add(u64::from(s.stx_btime.tv_nsec))
        };
        let device = u64::from(s.stx_dev_major) << 32 | u64::from(s.stx_dev_minor);
        Ok(Self { device, inode: s.stx_ino, born_ns: born })
    }
}

impl std::fmt::Display for FileId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.device, self.inode, self.born_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_took_the_name_of_a_file_that_was_made_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, moved) = (dir.path().join("new"), dir.path().join("moved"));
        let made = File::create_new(&ours).unwrap();
        fs::rename(&ours, &moved).unwrap();
        fs::write(&ours, "theirs").unwrap();
        assert!(remove_made(&ours, &made).unwrap_err().to_string().contains("now has its name"));
        assert_eq!(fs::read(&ours).unwrap(), b"theirs");
        remove_made(&moved, &made).unwrap();
        assert!(!moved.exists() && remove_made(&moved, &made).is_err());
    }
}
