//! Opens files of a run directory. It may come from somebody else: what looks like its journal can be a link to any file
//! of ours, and writing to it would write there.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file with one name, and nothing else: no link is followed, and no pipe waited for.
pub(crate) fn open(path: &Path, options: &mut std::fs::OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = options.custom_flags(flags.bits() as i32).open(path).map_err(|e| {
        if e.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
            return io::Error::other("it is a symbolic link, which no file of a run is");
        }
        e
    })?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    if meta.nlink() > 1 {
        return Err(io::Error::other("it has several names (hard links), which no file of a run has"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(open(&hard, &mut appending).unwrap_err().to_string().contains("several names"));
        assert!(open(Path::new("/dev/null"), &mut appending).is_err());
        assert!(open(dir.path(), File::options().read(true)).is_err());
    }
}
