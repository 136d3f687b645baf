//! The mark on files that Plimsoll made: a user extended attribute, or a sidecar file where there are none.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::XattrFlags;

const ATTRIBUTE: &str = "user.plimsoll";
const SIDECAR: &str = ".plimsoll";

/// Whether we made this file.
pub fn is_ours(path: &Path) -> bool {
    let mut value = [0u8; 256];
    match rustix::fs::getxattr(path, ATTRIBUTE, &mut value) {
        Ok(n) => value[..n].starts_with(b"1 "),
        Err(_) => sidecar_says_so(path),
    }
}

/// Marks a file that we have just created; `run` is the id of the run. Synced by the caller's layout.
pub fn mark(path: &Path, run: &str) -> std::io::Result<()> {
    let text = format!("1 {run}");
    match rustix::fs::setxattr(path, ATTRIBUTE, text.as_bytes(), XattrFlags::empty()) {
        Ok(()) => Ok(()),
        // No user attributes on this file system (older tmpfs, some FUSE and network ones).
        Err(_) => write_sidecar(path, run),
    }
}

/// Removes the file and its sidecar. A file that is not there is fine.
pub fn remove(path: &Path) -> std::io::Result<()> {
    for p in [path.to_owned(), sidecar(path)] {
        match fs::remove_file(&p) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

/// Where the sidecar of a file would be.
pub fn sidecar(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(SIDECAR);
    path.with_file_name(name)
}

/// The sidecar names the inode, so that a file which took our file's name is not taken for ours.
fn write_sidecar(path: &Path, run: &str) -> std::io::Result<()> {
    let inode = fs::metadata(path)?.ino();
    let mut file = fs::File::create(sidecar(path))?;
    file.write_all(format!("plimsoll 1 {inode} {run}\n").as_bytes())?;
    file.sync_all()
}

fn sidecar_says_so(path: &Path) -> bool {
    let Ok(text) = fs::read_to_string(sidecar(path)) else { return false };
    let Ok(meta) = fs::metadata(path) else { return false };
    let mut words = text.split_whitespace();
    words.next() == Some("plimsoll")
        && words.next() == Some("1")
        && words.next().and_then(|n| n.parse::<u64>().ok()) == Some(meta.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_file_is_ours_and_a_plain_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, b"x").unwrap();
        assert!(!is_ours(&path));
        mark(&path, "run-1").unwrap();
        assert!(is_ours(&path));
        remove(&path).unwrap();
        assert!(!path.exists() && !is_ours(&path));
        remove(&path).unwrap();
    }

    #[test]
    fn a_sidecar_speaks_for_one_inode_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, b"x").unwrap();
        write_sidecar(&path, "run-1").unwrap();
        assert!(sidecar_says_so(&path));
        // Another file takes the name.
        let other = dir.path().join("g");
        fs::write(&other, b"precious").unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(!sidecar_says_so(&path));
    }
}
