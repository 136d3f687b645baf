//! A small file that a directory is tried with. It has no name: whatever becomes of this process, nothing is left behind.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};

use super::handle;
use super::place::PlaceInDir;

/// The file; gone when this is.
#[derive(Debug)]
pub struct Probe {
    file: File,
}

impl Probe {
    /// Writes 64 KiB.
    pub fn make(directory: &Path) -> io::Result<Self> {
        let mut file = nameless(directory)?;
        file.write_all(&[0x5a; 64 << 10])?;
        Ok(Self { file })
    }

    /// A path that leads to it as long as it lives.
    pub fn path(&self) -> PathBuf {
        handle::through(&self.file)
    }
}

/// Some file systems make no files without a name (NFS, older FUSE): there it has one, that nobody can guess, for the moment
/// until it is removed.
fn nameless(directory: &Path) -> io::Result<File> {
    let mode = Mode::from_raw_mode(0o600);
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    match rustix::fs::open(directory, flags, mode) {
        Ok(fd) => return Ok(File::from(fd)),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR | rustix::io::Errno::INVAL) => {}
        Err(e) => return Err(e.into()),
    }
    named(directory)
}

fn named(directory: &Path) -> io::Result<File> {
    let gone = || io::Error::other("the directory no longer exists");
    let mut random = [0u8; 8];
    rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty())?;
    let name = format!(".plimsoll-probe-{:016x}", u64::from_le_bytes(random));
    let place = PlaceInDir::of(&directory.join(name))?.ok_or_else(gone)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let file = place.open_as(&place.name, flags)?.ok_or_else(gone)?;
    place.unlink(&file, AtFlags::empty())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_tried_and_nothing_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let entries = || std::fs::read_dir(dir.path()).unwrap().count();
        let probe = Probe::make(dir.path()).unwrap();
        assert_eq!((std::fs::read(probe.path()).unwrap().len(), entries()), (64 << 10, 0));
        let mut other = named(dir.path()).unwrap();
        other.write_all(b"x").unwrap();
        assert_eq!(entries(), 0);
        assert!(Probe::make(&dir.path().join("missing")).is_err());
    }
}
