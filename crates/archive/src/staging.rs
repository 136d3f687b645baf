//! The directory beside the runs in which one is unpacked: nobody lists it, and it is gone when the run has its name. Its process may be
//! killed; the next unpacking removes what that left, where it is sure whose it was.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

use crate::PlimError;
use crate::manifest::{is_id, is_of_a_run};

const PREFIX: &str = ".unpacking-";
/// In the directory: that it is ours, and which one it is, so that no copy is taken for it. Its maker holds a lock on it as long as it lives,
/// which says more than a number of a process: that may be of another machine, or given again.
const MARK: &str = ".plimsoll-unpacking";
const MARK_TEXT: &str = "plimsoll unpacks a run here";
/// A mark is shorter.
const MOST_MARK_BYTES: u64 = 200;

/// One's own, removed with this.
#[derive(Debug)]
pub(crate) struct Staging {
    pub path: PathBuf,
    /// Locked.
    _mark: File,
}

impl Staging {
    pub fn begin(root: &Path) -> Result<Self, PlimError> {
        clear_left(root);
        for attempt in 0..100u32 {
            let path = root.join(format!("{PREFIX}{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let made = |e: io::Error| {
                        let _ = fs::remove_dir(&path);
                        PlimError::io(&format!("mark {}", path.display()), &e)
                    };
                    let mark = marked(&path).map_err(made)?;
                    return Ok(Self { path, _mark: mark });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(PlimError::io(&format!("make {}", path.display()), &e)),
            }
        }
        Err(PlimError::new(
            format!("{} holds a hundred directories of killed unpackings", root.display()),
            "Remove those whose names begin with .unpacking-",
        ))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Made by us a moment ago, and nobody else knows its name.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The lock comes first: who finds a mark without its text does not know yet whose it is, and leaves it.
fn marked(dir: &Path) -> io::Result<File> {
    let mut mark = File::create_new(dir.join(MARK))?;
    let written = flock(&mark, FlockOperation::LockExclusive)
        .map_err(io::Error::from)
        .and_then(|()| mark.write_all(text_of(dir)?.as_bytes()));
    match written {
        Ok(()) => Ok(mark),
        Err(e) => {
            let _ = fs::remove_file(dir.join(MARK));
            Err(e)
        }
    }
}

/// Of this directory, wherever it is.
fn text_of(dir: &Path) -> io::Result<String> {
    let meta = fs::symlink_metadata(dir)?;
    Ok(format!("{MARK_TEXT}: {} {}\n", meta.dev(), meta.ino()))
}

/// Removes what killed unpackings left under `root`. What is not surely one of them, or is still in use, stays, and so does what cannot be
/// removed: it is in nobody's way.
fn clear_left(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if is_named && entry.file_type().is_ok_and(|t| t.is_dir()) {
            let dir = entry.path();
            // Held until it is gone: whoever else comes to clear it waits for nothing, and leaves it.
            if let Some(_mark) = abandoned(&dir)
                && holds_only_a_run(&dir).unwrap_or(false)
            {
                let _ = fs::remove_dir_all(&dir);
            }
        }
    }
}

/// Its mark, locked, where it is one of ours and nobody holds it.
fn abandoned(dir: &Path) -> Option<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let mark = OpenOptions::new().read(true).custom_flags(flags).open(dir.join(MARK)).ok()?;
    if !mark.metadata().ok()?.is_file() {
        return None;
    }
    flock(&mark, FlockOperation::NonBlockingLockExclusive).ok()?;
    let mut text = String::new();
    io::Read::take(&mark, MOST_MARK_BYTES).read_to_string(&mut text).ok()?;
    (text == text_of(dir).ok()?).then_some(mark)
}

/// Nothing that an unpacking does not make: files of one run, on the file system that the directory is on.
fn holds_only_a_run(dir: &Path) -> io::Result<bool> {
    let device = fs::symlink_metadata(dir)?.dev();
    let mut open = vec![(dir.to_owned(), String::new())];
    while let Some((path, within)) = open.pop() {
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            let meta = fs::symlink_metadata(entry.path())?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let inside = if within.is_empty() { name.clone() } else { format!("{within}/{name}") };
            let of_run = inside.split_once('/').map(|(_, of_run)| of_run);
            let is_known = match of_run {
                None if meta.is_dir() => is_id(&name),
                None => name == MARK,
                // The streams have directories of their own.
                Some(of_run) if meta.is_dir() => is_of_a_run(&format!("{of_run}/any.zst")),
                Some(of_run) => is_of_a_run(of_run),
            };
            if !is_known || meta.dev() != device || !(meta.is_dir() || meta.is_file()) {
                return Ok(false);
            }
            if meta.is_dir() {
                open.push((entry.path(), inside));
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a killed process leaves one: its lock went with it.
    fn left(root: &Path, name: &str) -> PathBuf {
        let dir = root.join(name);
        fs::create_dir_all(dir.join("20261127-010203-abcd/intervals")).unwrap();
        fs::write(dir.join("20261127-010203-abcd/plan.toml"), "version = 1").unwrap();
        fs::write(dir.join("20261127-010203-abcd/intervals/local.zst"), "half").unwrap();
        drop(marked(&dir).unwrap());
        dir
    }

    #[test]
    fn what_a_killed_unpacking_left_goes_with_the_next() {
        let root = tempfile::tempdir().unwrap();
        let (dir, other) = (left(root.path(), ".unpacking-1-0"), left(root.path(), ".unpacking-77-3"));
        let staging = Staging::begin(root.path()).unwrap();
        assert!(!dir.exists() && !other.exists() && staging.path.exists());
        let path = staging.path.clone();
        drop(staging);
        assert!(!path.exists());
    }

    #[test]
    fn one_that_is_in_use_stays() {
        let root = tempfile::tempdir().unwrap();
        let first = Staging::begin(root.path()).unwrap();
        let second = Staging::begin(root.path()).unwrap();
        assert!(first.path.exists() && second.path.exists() && first.path != second.path);
    }

    #[test]
    fn what_is_not_surely_ours_stays() {
        let root = tempfile::tempdir().unwrap();
        let strangers = root.path().join(".unpacking-5-0");
        fs::create_dir_all(strangers.join("20261127-010203-abcd")).unwrap();
        // A copy of one of ours names another directory.
        let copied = root.path().join(".unpacking-6-0");
        fs::create_dir(&copied).unwrap();
        let ours = left(root.path(), ".unpacking-7-0");
        fs::copy(ours.join(MARK), copied.join(MARK)).unwrap();
        // Somebody put something of his own into it.
        let more = left(root.path(), ".unpacking-8-0");
        fs::write(more.join("20261127-010203-abcd/notes.txt"), "mine").unwrap();
        let linked = left(root.path(), ".unpacking-9-0");
        std::os::unix::fs::symlink("/etc", linked.join("20261127-010203-abcd/samples")).unwrap();
        // Begun, and not marked yet.
        let fresh = root.path().join(".unpacking-10-0");
        fs::create_dir(&fresh).unwrap();
        fs::write(fresh.join(MARK), "").unwrap();
        let elsewhere = root.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let link = root.path().join(".unpacking-11-0");
        std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
        clear_left(root.path());
        for stays in [&strangers, &copied, &more, &linked, &fresh, &elsewhere] {
            assert!(stays.exists(), "{}", stays.display());
        }
        assert!(link.symlink_metadata().is_ok() && !ours.exists());
    }
}
