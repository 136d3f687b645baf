//! Opens files of a run directory. It may come from somebody else: what looks like its journal can be a link to any file
//! of ours, and writing to it would write there.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::{StoreError, bounds};

/// Opens a regular file with one name, and nothing else: no link is followed, and no pipe waited for.
pub(crate) fn open(path: &Path, options: &mut std::fs::OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = options.custom_flags(flags.bits() as i32).open(path).map_err(|e| {
        if e.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
            return io::Error::other("it is a symbolic link; files of a run never are");
        }
        e
    })?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if meta.nlink() > 1 {
        return Err(io::Error::other("it has several hard links; files of a run never have"));
    }
    Ok(file)
}

/// Opens a file of a run directory that is only read. Links are followed; a pipe is not waited for: it is no file of a run.
pub(crate) fn open_to_read(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::options().read(true).custom_flags(flags.bits() as i32).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// The whole of a document that has at most so many bytes, and no more parts than one of that length can have.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, StoreError> {
    let file = open_to_read(path).map_err(StoreError::io("read", path))?;
    let text = bounds::read(&file, path, most)?;
    bounds::check_parts(&text, path, most)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("env.json");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
        assert!(read(&pipe, 1).unwrap_err().to_string().contains("not a regular file"));
    }

    #[test]
    fn links_and_devices_are_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (file, soft, hard) = (dir.path().join("file"), dir.path().join("soft"), dir.path().join("hard"));
        std::fs::write(&file, "theirs").unwrap();
        assert!(open(&file, File::options().read(true)).is_ok());
        std::os::unix::fs::symlink(&file, &soft).unwrap();
        let mut appending = File::options();
        appending.append(true).create(true);
        assert!(open(&soft, &mut appending).unwrap_err().to_string().contains("symbolic link"));
        std::fs::hard_link(&file, &hard).unwrap();
        assert!(open(&hard, &mut appending).unwrap_err().to_string().contains("several hard links"));
        assert!(open(Path::new("/dev/null"), &mut appending).is_err());
        assert!(open(dir.path(), File::options().read(true)).is_err());
    }
}
