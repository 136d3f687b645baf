//! The data directory of a server: one that is new, empty, or carries the server's own mark. Anything else is somebody's,
//! and is refused before a byte of it is touched.
//!
//! A file in it is ours when the mark names it, by number and time of making: somebody may have put one of their own there since,
//! or a link, under whatever name.

use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, StatxFlags, flock, fstat, openat, renameat, statx, unlinkat,
};
use rustix::io::Errno;
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
    #[error(
        "{0} was not made by this server (or by a version that kept no note of it), and is left as it is; move it away, \
         or choose a new or empty directory"
    )]
    Theirs(PathBuf),
}

/// What of its mark is read: a line for each file that was ever made.
const MOST_BYTES: u64 = 1 << 20;

/// A directory that is ours for as long as this lives.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    handle: File,
    marker: File,
    /// What was made in it.
    made: Vec<FileId>,
}

/// A file by its number and its time of making, which no other has in the same directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId {
    inode: u64,
    born_ns: u64,
}

impl FileId {
    /// Of what has this name in a directory (a link: of the link itself), or, without a name, of what is open. 0 where
    /// the file system tells no time of making.
    fn of(at: &File, name: &str) -> rustix::io::Result<Self> {
        let flags = if name.is_empty() { AtFlags::EMPTY_PATH } else { AtFlags::SYMLINK_NOFOLLOW };
        let s = statx(at, name, flags, StatxFlags::INO | StatxFlags::BTIME)?;
        let is_told = s.stx_mask & StatxFlags::BTIME.bits() != 0;
        let born_ns = (s.stx_btime.tv_sec as u64)
            .wrapping_mul(1_000_000_000)
            .wrapping_add(u64::from(s.stx_btime.tv_nsec));
        Ok(Self { inode: s.stx_ino, born_ns: if is_told { born_ns } else { 0 } })
    }

    fn parse(line: &str) -> Option<Self> {
        let (inode, born_ns) = line.split_once(' ')?;
        Some(Self { inode: inode.parse().ok()?, born_ns: born_ns.parse().ok()? })
    }
}

/// Closing is not enough: a child that another thread is starting has the file, too, until it becomes its program, and the lock
/// lasts as long as one of them has it.
impl Drop for DataDir {
    fn drop(&mut self) {
        let _ = flock(&self.marker, FlockOperation::Unlock);
    }
}

impl DataDir {
    /// Makes the directory if need be, and marks and locks it. `format` names the server and the version of its data.
    pub fn claim(dir: &Path, format: &'static str) -> Result<Self, DataDirError> {
        let at = |e: io::Error| DataDirError::Io(dir.to_owned(), e);
        fs::create_dir_all(dir).map_err(at)?;
        let handle = File::open(dir).map_err(at)?;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let marker = match openat(&handle, MARKER, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => {
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
        flock(&marker, FlockOperation::NonBlockingLockExclusive).map_err(|e| match e {
            Errno::WOULDBLOCK => DataDirError::InUse(dir.to_owned()),
            e => at(e.into()),
        })?;
        let mut held = Self { path: dir.to_owned(), handle, marker, made: Vec::new() };
        let mut text = Vec::new();
        (&mut held.marker).take(MOST_BYTES).read_to_end(&mut text).map_err(at)?;
        if text.is_empty() && foreign(dir).map_err(at)?.is_none() {
            // New, or of a server that was killed before it had written it.
            held.marker
                .write_all(format!("{format}\n").as_bytes())
                .and_then(|()| held.marker.sync_all())
                .map_err(at)?;
        } else {
            let text = String::from_utf8_lossy(&text);
            let mut lines = text.lines();
            let first = lines.next().unwrap_or_default();
            if first.trim() != format {
                let line: String = first.chars().take(40).collect();
                return Err(not_ours(dir, &format!("it says {line:?}, not {format:?}")));
            }
            held.made.extend(lines.filter_map(FileId::parse));
            if !text.ends_with('\n') {
                // Written by hand, or cut off by a kill: what is noted next has a line of its own.
                held.marker.write_all(b"\n").map_err(at)?;
            }
        }
        Ok(held)
    }

    /// Whether there is something of ours under this name; what is somebody else's, a link among it, is refused.
    pub fn has(&self, name: &str) -> Result<bool, DataDirError> {
        match FileId::of(&self.handle, name) {
            Ok(id) if self.made.contains(&id) => Ok(true),
            Ok(_) => Err(DataDirError::Theirs(self.path.join(name))),
            Err(Errno::NOENT) => Ok(false),
            Err(e) => Err(self.failed(name, e)),
        }
    }

    /// Makes a file of ours, in the place of an earlier one of ours.
    pub fn make(&mut self, name: &str) -> Result<File, DataDirError> {
        self.remove(name)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(&self.handle, name, flags, Mode::from_raw_mode(0o644));
        let file = File::from(made.map_err(|e| self.failed(name, e))?);
        let id = FileId::of(&file, "").map_err(|e| self.failed(name, e))?;
        self.note(name, id)?;
        Ok(file)
    }

    /// A file that only this process has: its name is gone at once, and all of it when nobody has it open any more.
    pub fn make_unnamed(&self) -> Result<File, DataDirError> {
        let mut random = [0u8; 8];
        let drawn = rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty());
        drawn.map_err(|e| self.failed("", e))?;
        let name = format!("{:016x}.new", u64::from_le_bytes(random));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(&self.handle, &name, flags, Mode::from_raw_mode(0o600));
        let file = File::from(made.map_err(|e| self.failed(&name, e))?);
        unlinkat(&self.handle, &name, AtFlags::empty()).map_err(|e| self.failed(&name, e))?;
        Ok(file)
    }

    /// Takes for ours what a program of ours made under this name.
    pub fn adopt(&mut self, name: &str) -> Result<(), DataDirError> {
        let id = FileId::of(&self.handle, name).map_err(|e| self.failed(name, e))?;
        self.note(name, id)
    }

    /// Removes what is ours under this name.
    pub fn remove(&self, name: &str) -> Result<(), DataDirError> {
        if self.has(name)? {
            unlinkat(&self.handle, name, AtFlags::empty()).map_err(|e| self.failed(name, e))?;
        }
        Ok(())
    }

    /// Gives a file of ours another name, in the place of one of ours.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), DataDirError> {
        self.has(to)?;
        if !self.has(from)? {
            return Err(self.failed(from, Errno::NOENT));
        }
        renameat(&self.handle, from, &self.handle, to).map_err(|e| self.failed(to, e))
    }

    /// Before anything is in it: a kill leaves an empty file that is not ours, never one with our data.
    fn note(&mut self, name: &str, id: FileId) -> Result<(), DataDirError> {
        if self.made.contains(&id) {
            return Ok(());
        }
        let line = format!("{} {}\n", id.inode, id.born_ns);
        let written = self.marker.write_all(line.as_bytes()).and_then(|()| self.marker.sync_all());
        written.map_err(|e| DataDirError::Io(self.path.join(name), e))?;
        self.made.push(id);
        Ok(())
    }

    fn failed(&self, name: &str, e: Errno) -> DataDirError {
        DataDirError::Io(self.path.join(name), e.into())
    }
}

/// What to do with buckets of a version that made no marks; for anything else there is nothing to be done: a disk of such a
/// version is refused for want of a note even where its directory is marked.
fn remedy(dir: &Path, format: &str) -> String {
    if !["buckets", "lock", "tmp"].iter().all(|n| dir.join(n).exists()) {
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

    /// A child that another thread starts has all that is open until it becomes its program.
    #[test]
    fn who_is_being_started_meanwhile_does_not_keep_it() {
        let dir = tempfile::tempdir().unwrap();
        let held = claim(dir.path()).unwrap();
        let of_a_child = held.marker.try_clone().unwrap();
        drop(held);
        claim(dir.path()).unwrap();
        drop(of_a_child);
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
        assert!(!claim(dir.path()).unwrap_err().contains(FORMAT), "it would be refused all the same");
        fs::create_dir(dir.path().join("buckets")).unwrap();
        fs::write(dir.path().join("lock"), b"").unwrap();
        assert!(claim(dir.path()).unwrap_err().contains(FORMAT));
        assert!(!dir.path().join(MARKER).exists());
    }

    #[test]
    fn what_others_put_there_since_is_refused_and_what_we_made_is_known_again() {
        let dir = tempfile::tempdir().unwrap();
        let (data, precious) = (dir.path().join("data"), dir.path().join("precious"));
        fs::write(&precious, b"p").unwrap();
        let mut held = claim(&data).unwrap();
        held.make("ours").unwrap().write_all(b"1").unwrap();
        for way in ["file", "link", "hard link"] {
            let name = data.join("disk");
            match way {
                "file" => drop(fs::copy(&precious, &name).unwrap()),
                "link" => std::os::unix::fs::symlink(&precious, &name).unwrap(),
                _ => fs::hard_link(&precious, &name).unwrap(),
            }
            for told in [
                held.make("disk").map(drop).unwrap_err(),
                held.remove("disk").unwrap_err(),
                held.rename("ours", "disk").unwrap_err(),
                held.rename("disk", "ours").unwrap_err(),
            ] {
                assert!(told.to_string().contains("was not made by this server"), "{way}: {told}");
            }
            assert_eq!(fs::read(&name).unwrap(), b"p", "{way}");
            fs::remove_file(&name).unwrap();
        }
        assert_eq!(fs::read(&precious).unwrap(), b"p");
        held.rename("ours", "disk").unwrap();
        drop(held);
        // A server that was killed, and comes back.
        let mut held = claim(&data).unwrap();
        assert!(held.has("disk").unwrap() && !held.has("ours").unwrap());
        held.make("disk").unwrap();
        assert_eq!(fs::read(data.join("disk")).unwrap(), b"");
        let mut file = held.make_unnamed().unwrap();
        file.write_all(b"x").unwrap();
        assert_eq!(fs::read_dir(&data).unwrap().count(), 2, "the mark and the disk");
        // Replaced by one of theirs under its name.
        fs::remove_file(data.join("disk")).unwrap();
        fs::copy(&precious, data.join("disk")).unwrap();
        assert!(held.has("disk").is_err());
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
