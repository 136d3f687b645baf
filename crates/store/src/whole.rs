//! Files that are replaced whole: whoever reads finds the old or the new one, also after a kill or a power cut.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Puts `content` in the place of a file, by way of `temporary`, which must not be there and is made with these permissions. Whether what
/// is at `path` may go is for the caller to know. On an error nothing half made is left.
pub fn replace_whole(path: &Path, temporary: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create_new(true).write(true).mode(mode).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let mut file = options.open(temporary)?;
    let put =
        file.write_all(content).and_then(|()| file.sync_all()).and_then(|()| fs::rename(temporary, path));
    put.inspect_err(|_| {
        // Half of it is of no use.
        let _ = fs::remove_file(temporary);
    })
}

/// A name beside a file that nobody else uses.
pub fn beside(path: &Path) -> io::Result<PathBuf> {
    let mut random = [0u8; 8];
    rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(path.with_file_name(format!("{name}.{:016x}.new", u64::from_le_bytes(random))))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_new_one_takes_the_place_and_nothing_else_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shown");
        for content in [b"one", b"two"] {
            replace_whole(&path, &beside(&path).unwrap(), content, 0o600).unwrap();
            assert_eq!(fs::read(&path).unwrap(), content);
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_ne!(beside(&path).unwrap(), beside(&path).unwrap());
        // Somebody's, under the name that was to be used; and a place that cannot be taken.
        let theirs = dir.path().join("shown.new");
        fs::write(&theirs, "theirs").unwrap();
        assert!(replace_whole(&path, &theirs, b"three", 0o600).is_err());
        assert_eq!(
            (fs::read(&theirs).unwrap(), fs::read(&path).unwrap()),
            (b"theirs".to_vec(), b"two".to_vec())
        );
        fs::create_dir_all(dir.path().join("taken/by")).unwrap();
        assert!(replace_whole(&dir.path().join("taken"), &dir.path().join("x"), b"three", 0o600).is_err());
        assert!(!dir.path().join("x").exists());
    }
}
