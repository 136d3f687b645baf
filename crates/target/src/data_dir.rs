//! The data directory of a server: one that is new, empty, or carries the server's own mark. Anything else is somebody's,
//! and is refused before a byte of it is touched.

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, openat};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Name of the mark in the directory. It is also the lock: one server per directory.
pub const MARKER: &str = ".plimsoll-data";

/// Why a directory is not used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    #[error("{0} is in use by another server: stop it, or choose another directory")]
    InUse(PathBuf),
    #[error(
        "{dir} is not empty (it contains '{holds}') and has no mark of `plimsoll target`, so nothing in it is \
         touched; choose a new or empty directory{remedy}"
    )]
    Foreign { dir: String, holds: String, remedy: String },
    #[error(
        "{marker} is not the mark of this server ({what}), so nothing in its directory is touched; choose a new or \
         empty directory"
    )]
    NotOurs { marker: String, what: String },
}

/// A directory that is ours for as long as this lives.
#[derive(Debug)]
pub struct DataDir {
    _marker: File,
}

impl DataDir {
    /// Makes the directory if need be, and marks and locks it. `format` names the server and the version of its data.
    pub fn claim(dir: &Path, format: &'static str) -> Result<Self, DataDirError> {
        let at = |e: io::Error| DataDirError::Io(dir.to_owned(), e);
        fs::create_dir_all(dir).map_err(at)?;
        let handle = File::open(dir).map_err(at)?;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let mut marker = match openat(&handle, MARKER, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(rustix::io::Errno::NOENT) => {
                if let Some(holds) = foreign(dir).map_err(at)? {
                    let remedy = remedy(dir, format);
                    return Err(DataDirError::Foreign { dir: dir.display().to_string(), holds, remedy });
                }
                let made = openat(&handle, MARKER, flags | OFlags::CREATE, Mode::from_raw_mode(0o644));
                File::from(made.map_err(|e| at(e.into()))?)
            }
            Err(e) => return Err(not_ours(dir, &io::Error::from(e).to_string())),
        };
        plain(&handle, &marker).map_err(at)?.map_or(Ok(()), |what| Err(not_ours(dir, what)))?;
        flock(&marker, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| DataDirError::InUse(dir.to_owned()))?;
        let mut text = Vec::new();
        (&mut marker).take(4096).read_to_end(&mut text).map_err(at)?;
        if text.is_empty() && foreign(dir).map_err(at)?.is_none() {
            // New, or of a server that was killed before it had written it.
            marker
                .write_all(format!("{format}\n").as_bytes())
                .and_then(|()| marker.sync_all())
                .map_err(at)?;
        } else if text.trim_ascii() != format.as_bytes() {
            let text = String::from_utf8_lossy(&text);
            let line: String = text.lines().next().unwrap_or_default().chars().take(40).collect();
            return Err(not_ours(dir, &format!("it says {line:?}, not {format:?}")));
        }
        Ok(Self { _marker: marker })
    }
}

/// What to do with data of a version that made no marks; for anything else there is nothing to be done.
fn remedy(dir: &Path, format: &str) -> String {
    let old = |names: &[&str]| names.iter().all(|n| dir.join(n).exists());
    if !old(&["buckets", "lock", "tmp"]) && !old(&["disk.raw"]) {
        return String::new();
    }
    let marker = dir.join(MARKER);
    format!(". If it is data of an earlier version, take it over: write {format} into {}", marker.display())
}

fn not_ours(dir: &Path, what: &str) -> DataDirError {
    DataDirError::NotOurs { marker: dir.join(MARKER).display().to_string(), what: what.to_owned() }
}

/// The first entry of a directory that is neither the mark nor what a new file system brings along.
fn foreign(dir: &Path) -> io::Result<Option<String>> {
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        if name != MARKER && name != "lost+found" {
            return Ok(Some(name.to_string_lossy().into_owned()));
        }
    }
    Ok(None)
}

/// Why a mark is not believed: it is no plain file, has another name somewhere, or is of somebody who neither runs this
/// server nor owns the directory (in a directory that all may write to, anybody can leave one).
fn plain(dir: &File, marker: &File) -> io::Result<Option<&'static str>> {
    let (d, m) = (fstat(dir)?, fstat(marker)?);
    if m.st_mode & libc_kind::MASK != libc_kind::REGULAR {
        return Ok(Some("it is not a regular file"));
    }
    if m.st_nlink != 1 {
        return Ok(Some("it has several names"));
    }
    if m.st_uid != d.st_uid && m.st_uid != rustix::process::geteuid().as_raw() {
        return Ok(Some("it belongs to another user"));
    }
    Ok(None)
}

/// The kind of a file in `st_mode`.
mod libc_kind {
    pub const MASK: u32 = 0o170_000;
    pub const REGULAR: u32 = 0o100_000;
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "plimsoll.test/1";

    fn claim(dir: &Path) -> Result<DataDir, String> {
        DataDir::claim(dir, FORMAT).map_err(|e| e.to_string())
    }

    #[test]
    fn new_empty_and_marked_directories_are_ours_one_server_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let new = dir.path().join("a/b");
        let held = claim(&new).unwrap();
        assert!(claim(&new).unwrap_err().contains("in use by another server"));
        drop(held);
        fs::write(new.join("data"), b"of the server").unwrap();
        claim(&new).unwrap();
        let empty = dir.path().join("empty");
        fs::create_dir_all(empty.join("lost+found")).unwrap();
        claim(&empty).unwrap();
        assert!(DataDir::claim(&empty, "plimsoll.other/1").unwrap_err().to_string().contains("not the mark"));
    }

    #[test]
    fn what_is_there_already_is_refused_by_name_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("tmp")).unwrap();
        fs::write(dir.path().join("tmp/precious"), b"p").unwrap();
        let told = claim(dir.path()).unwrap_err();
        assert!(told.contains("it contains 'tmp'") && !told.contains(FORMAT), "{told}");
        assert_eq!(fs::read(dir.path().join("tmp/precious")).unwrap(), b"p");
        fs::write(dir.path().join("disk.raw"), b"of an older version").unwrap();
        assert!(claim(dir.path()).unwrap_err().contains(FORMAT));
        assert!(!dir.path().join(MARKER).exists());
    }

    #[test]
    fn a_mark_that_is_not_plain_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let precious = dir.path().join("precious");
        fs::write(&precious, format!("{FORMAT}\n")).unwrap();
        for link in [true, false] {
            let data = dir.path().join(format!("data-{link}"));
            fs::create_dir(&data).unwrap();
            match link {
                true => std::os::unix::fs::symlink(&precious, data.join(MARKER)).unwrap(),
                false => fs::hard_link(&precious, data.join(MARKER)).unwrap(),
            }
            assert!(claim(&data).unwrap_err().contains("not the mark"));
        }
        let data = dir.path().join("other");
        fs::create_dir(&data).unwrap();
        fs::write(data.join(MARKER), b"notes of mine").unwrap();
        assert!(claim(&data).unwrap_err().contains("notes of mine"));
        assert_eq!(fs::read(data.join(MARKER)).unwrap(), b"notes of mine");
    }
}
