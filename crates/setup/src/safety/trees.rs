//! Directories that a run made: marked by a file inside, and removed by that mark alone.
//!
//! Nothing is removed by a path twice: the directory is opened once, looked at through that handle, and emptied through
//! it. No link is followed, and where another file system is mounted anywhere below, nothing is removed at all.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, StatxFlags, flock, openat, statx, unlinkat,
};

use super::place::{FileId, PlaceInDir};
use crate::objects::STOPPED;

/// Name of the mark: `plimsoll 2 DEVICE INODE BORN MARK`, where the numbers are the directory's.
pub const MARKER: &str = ".plimsoll-made";

/// Makes a directory and marks it with the run's mark. It must not be there.
pub fn make(path: &Path, mode: u32, run: &str) -> io::Result<()> {
    let gone = || io::Error::other("its directory no longer exists");
    let place = PlaceInDir::of(path)?.ok_or_else(gone)?;
    rustix::fs::mkdirat(&place.dir, &place.name, Mode::from_raw_mode(mode))?;
    let dir = place.open(OFlags::DIRECTORY)?.ok_or_else(gone)?;
    if dir.metadata()?.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("something else now has its name"));
    }
    mark(&dir, run).inspect_err(|_| {
        // Made a moment ago, empty, and of no use without a mark.
        let _ = unlinkat(&dir, MARKER, AtFlags::empty());
        let _ = place.unlink(&dir, AtFlags::REMOVEDIR);
    })
}

/// Marks a directory that is there with a run's mark, so that it is known for the one that was made then and here: a copy,
/// or what came in an archive, has another number or time of making.
pub fn mark_made(path: &Path, run: &str) -> io::Result<()> {
    mark(&open_directory(path)?, run)
}

/// Whether a directory is the one that was marked with a run's mark, and no copy of it.
pub fn is_made(path: &Path, run: &str) -> bool {
    open_directory(path).is_ok_and(|dir| marker_of(&dir, run).is_ok())
}

fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

fn mark(dir: &File, run: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut marker = File::from(openat(dir, MARKER, flags, Mode::from_raw_mode(0o600))?);
    marker.write_all(format!("plimsoll 2 {} {run}\n", FileId::of(dir)?).as_bytes())?;
    marker.sync_all()
}

/// A new directory under the temporary one, for this user alone, under a name that nobody can guess.
fn temporary(kind: &str) -> io::Result<PathBuf> {
    let mut random = [0u8; 8];
    rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty())?;
    let path = std::env::temp_dir().join(format!("plimsoll-{kind}-{:016x}", u64::from_le_bytes(random)));
    std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(&path)?;
    Ok(path)
}

/// What stands for a run in the mark of a temporary directory.
const TEMPORARY: &str = "temporary";

/// A temporary directory of this process, marked and locked. It goes with this; what a killed process left goes when the next
/// of its kind is made: its lock is free then, and the mark in it says that it was made for no longer than that.
#[derive(Debug)]
pub struct Temporary {
    /// Under the system's directory for such things.
    pub path: PathBuf,
    _lock: File,
}

impl Temporary {
    /// One that is empty but for its mark; what is to be in it goes into a directory below.
    pub fn make(kind: &str) -> io::Result<Self> {
        sweep(&std::env::temp_dir(), kind);
        let path = temporary(kind)?;
        let lock = open_own(&path)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        mark(&lock, TEMPORARY)?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next that is made.
        let _ = remove(&self.path, TEMPORARY, Extent::Whole);
    }
}

/// Removes the directories of this kind that processes of this user left when they were killed.
fn sweep(temporary: &Path, kind: &str) {
    let prefix = format!("plimsoll-{kind}-");
    let Ok(all) = std::fs::read_dir(temporary) else { return };
    for entry in all.filter_map(Result::ok) {
        let name = entry.file_name();
        let digits = name.to_str().and_then(|n| n.strip_prefix(&prefix));
        if !digits.is_some_and(|d| d.len() == 16 && d.bytes().all(|b| b.is_ascii_hexdigit())) {
            continue;
        }
        let Ok(dir) = open_own(&entry.path()) else { continue };
        if flock(&dir, FlockOperation::NonBlockingLockExclusive).is_ok() {
            if marker_of(&dir, TEMPORARY).is_ok() {
                crate::mounted::below(&entry.path());
            }
            // One without our mark stays, whatever its name.
            let _ = remove(&entry.path(), TEMPORARY, Extent::Whole);
        }
    }
}

/// A directory of this user.
fn open_own(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if dir.metadata()?.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to somebody else"));
    }
    Ok(dir)
}

/// The same of all that is in a directory of the run with this mark, after what is mounted in it is unmounted.
pub fn remove_mounted(path: &Path, run: &str) -> Result<(), String> {
    if is_made(path, run) {
        crate::mounted::below(path);
    }
    remove(path, run, Extent::Whole)
}

/// What of a directory is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// The directory itself, if there is nothing in it but the mark.
    Empty,
}

/// Removes a directory that the run with this mark made. One that is not there is fine; any other stays, and the reason is
/// given.
pub fn remove(path: &Path, run: &str, extent: Extent) -> Result<(), String> {
    remove_watched(path, run, extent, &mut |_| true)
}

/// The same, and `go_on` is asked after each hundred files, with how many are gone: there may be a million. What is left stays under its mark.
pub fn remove_watched(
    path: &Path,
    run: &str,
    extent: Extent,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), String> {
    let told = |e: io::Error| e.to_string();
    let Some(place) = PlaceInDir::of(path).map_err(told)? else { return Ok(()) };
    let Some(dir) = place.open(OFlags::DIRECTORY).map_err(told)? else { return Ok(()) };
    let marker = marker_of(&dir, run)?;
    let mount = mount_of(dir.as_fd()).map_err(told)?;
    let entries = entries(dir.as_fd()).map_err(told)?;
    let others = || entries.iter().filter(|(name, _)| name.as_bytes() != MARKER.as_bytes());
    match extent {
        Extent::Empty => {
            if let Some((name, _)) = others().next() {
                return Err(format!("it contains '{}'", name.to_string_lossy()));
            }
        }
        Extent::Whole => {
            check_mounts(dir.as_fd(), mount, path)?;
            let mut watch = RemovalWatch { gone: 0, go_on };
            others().try_for_each(|e| remove_entry(dir.as_fd(), e, mount, &mut watch)).map_err(told)?;
        }
    }
    // The mark goes last: until then a removal that was broken off can be taken up again.
    let inside = PlaceInDir { dir: dir.try_clone().map_err(told)?.into(), name: MARKER.into() };
    inside.unlink(&marker, AtFlags::empty()).map_err(told)?;
    drop(marker);
    last(&place, &dir, run).map_err(told)
}

/// Waits before the directory is tried again, milliseconds (a choice: FUSE gives a file free some time after its last user closed it).
const HIDDEN_FILE_WAITS_MS: [u64; 6] = [0, 10, 30, 100, 300, 600];

/// Removes the directory, whose mark is gone. File systems of FUSE and NFS keep a file that was open when it was unlinked under another
/// name in the directory until it is closed; what stays longer is somebody's, and the mark comes back for another try.
fn last(place: &PlaceInDir, dir: &File, run: &str) -> io::Result<()> {
    let mut full = None;
    for wait_ms in HIDDEN_FILE_WAITS_MS {
        std::thread::sleep(std::time::Duration::from_millis(wait_ms));
        match place.unlink(dir, AtFlags::REMOVEDIR) {
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => full = Some(e),
            done => return done,
        }
    }
    mark(dir, run)?;
    full.map_or(Ok(()), Err)
}

/// The mark in a directory, if it is this run's: of the directory's owner, plain, and for this directory.
fn marker_of(dir: &File, run: &str) -> Result<File, String> {
    let missing = || "it does not carry this run's mark".to_owned();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut marker = File::from(openat(dir, MARKER, flags, Mode::empty()).map_err(|_| missing())?);
    let (m, d) = (marker.metadata().map_err(|e| e.to_string())?, dir.metadata().map_err(|e| e.to_string())?);
    if !m.is_file() || m.nlink() != 1 || m.uid() != d.uid() {
        return Err("the mark in it was not made by its owner".into());
    }
    let mut text = String::new();
    let read = Read::by_ref(&mut marker).take(512).read_to_string(&mut text);
    let id = FileId::of(dir).map_err(|e| e.to_string())?;
    match read {
        Ok(_) if text.trim_end() == format!("plimsoll 2 {id} {run}") => Ok(marker),
        Ok(_) if text.trim_end().ends_with(run) => Err("the mark in it names another directory".into()),
        _ => Err(missing()),
    }
}

/// What tells one mount from another, also of the same file system: kernel 5.8 and later; before, the device.
fn mount_of(dir: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let s = statx(dir, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID | StatxFlags::BASIC_STATS)?;
    let id = if s.stx_mask & StatxFlags::MNT_ID.bits() == 0 { 0 } else { s.stx_mnt_id };
    Ok((id, u64::from(s.stx_dev_major) << 32 | u64::from(s.stx_dev_minor)))
}

type Entry = (CString, FileType);

fn entries(dir: BorrowedFd<'_>) -> io::Result<Vec<Entry>> {
    let mut all = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if [&b"."[..], b".."].contains(&name.to_bytes()) {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not tell in the listing.
            FileType::Unknown => {
                FileType::from_raw_mode(rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
            }
            kind => kind,
        };
        all.push((name.to_owned(), kind));
    }
    Ok(all)
}

fn open_below(dir: BorrowedFd<'_>, name: &CString) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(dir, name, flags, Mode::empty())?))
}

/// Refuses a tree with another file system in it, before anything of it is gone.
fn check_mounts(dir: BorrowedFd<'_>, mount: (u64, u64), path: &Path) -> Result<(), String> {
    for (name, kind) in entries(dir).map_err(|e| e.to_string())? {
        if kind != FileType::Directory {
            continue;
        }
        let path = path.join(std::ffi::OsStr::new(&*name.to_string_lossy()));
        let sub = open_below(dir, &name).map_err(|e| format!("{}: {e}", path.display()))?;
        if mount_of(sub.as_fd()).map_err(|e| e.to_string())? != mount {
            return Err(format!("a file system is mounted on {}", path.display()));
        }
        check_mounts(sub.as_fd(), mount, &path)?;
    }
    Ok(())
}

/// How far a removal is, and who may stop it.
struct RemovalWatch<'a> {
    gone: u64,
    go_on: &'a mut dyn FnMut(u64) -> bool,
}

impl RemovalWatch<'_> {
    const EACH: u64 = 100;

    fn removed_one(&mut self) -> io::Result<()> {
        self.gone += 1;
        match self.gone.is_multiple_of(Self::EACH) && !(self.go_on)(self.gone) {
            true => Err(io::Error::other(STOPPED)),
            false => Ok(()),
        }
    }
}

fn remove_entry(
    dir: BorrowedFd<'_>,
    (name, kind): &Entry,
    mount: (u64, u64),
    watch: &mut RemovalWatch<'_>,
) -> io::Result<()> {
    if *kind != FileType::Directory {
        unlinkat(dir, name, AtFlags::empty())?;
        return watch.removed_one();
    }
    let sub = open_below(dir, name)?;
    if mount_of(sub.as_fd())? != mount {
        return Err(io::Error::other(format!("a file system is mounted on '{}'", name.to_string_lossy())));
    }
    entries(sub.as_fd())?.iter().try_for_each(|e| remove_entry(sub.as_fd(), e, mount, watch))?;
    Ok(unlinkat(dir, name, AtFlags::REMOVEDIR)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const RUN: &str = "run-1.0123456789abcdef0123456789abcdef";

    fn tree() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tree");
        make(&path, 0o700, RUN).unwrap();
        (dir, path)
    }

    /// A server's data, a file for each object, were removed for ten minutes without a word, and no signal ended that.
    #[test]
    fn a_removal_tells_how_far_it_is_and_stops_when_told() {
        let (_dir, path) = tree();
        fs::create_dir(path.join("bucket")).unwrap();
        (0..450).for_each(|i| fs::write(path.join(format!("bucket/{i}")), "x").unwrap());
        // Another run's is not begun with.
        let theirs = RUN.replace("run-1", "run-2");
        remove_watched(&path, &theirs, Extent::Whole, &mut |_| unreachable!("nothing of it goes"))
            .unwrap_err();
        assert_eq!(fs::read_dir(path.join("bucket")).unwrap().count(), 450);
        let mut told = Vec::new();
        let stopped = remove_watched(&path, RUN, Extent::Whole, &mut |n| {
            told.push(n);
            n < 200
        });
        assert_eq!((stopped, told), (Err(STOPPED.to_owned()), vec![100, 200]));
        assert_eq!(fs::read_dir(path.join("bucket")).unwrap().count(), 250);
        remove(&path, RUN, Extent::Whole).unwrap();
        assert!(!path.exists());
    }

    /// As a FUSE file system does it: the file that was open is in the directory for a while, under another name.
    #[test]
    fn a_file_that_hides_for_a_while_is_waited_for_and_the_mark_comes_back_for_one_that_stays() {
        let (_keep, path) = tree();
        let (place, dir) = (PlaceInDir::of(&path).unwrap().unwrap(), open_directory(&path).unwrap());
        let hidden = path.join(".fuse_hidden0001");
        fs::write(&hidden, "").unwrap();
        fs::remove_file(path.join(MARKER)).unwrap();
        assert_eq!(last(&place, &dir, RUN).unwrap_err().kind(), io::ErrorKind::DirectoryNotEmpty);
        assert!(is_made(&path, RUN), "cleanup could not find it again");
        fs::remove_file(path.join(MARKER)).unwrap();
        std::thread::scope(|s| {
            s.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                fs::remove_file(&hidden).unwrap();
            });
            last(&place, &dir, RUN).unwrap();
        });
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_process_left_goes_and_nothing_else() {
        let top = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let dir = |n: u64| {
            let path = top.path().join(format!("plimsoll-block-{n:016x}"));
            fs::create_dir_all(path.join("disk")).unwrap();
            fs::write(path.join("disk/disk.raw"), b"data").unwrap();
            path
        };
        let left: Vec<PathBuf> = (0..3).map(dir).collect();
        mark(&open_own(&left[0]).unwrap(), TEMPORARY).unwrap();
        // One that is in use, one of somebody's own, and a copy of one, whose mark is another directory's.
        mark(&open_own(&left[1]).unwrap(), TEMPORARY).unwrap();
        let used = open_own(&left[1]).unwrap();
        flock(&used, FlockOperation::NonBlockingLockExclusive).unwrap();
        let copied = dir(3);
        fs::copy(left[1].join(MARKER), copied.join(MARKER)).unwrap();
        std::os::unix::fs::symlink(&left[2], top.path().join("plimsoll-block-00000000000000ff")).unwrap();
        sweep(top.path(), "block");
        assert_eq!([0, 1, 2].map(|i| left[i].exists()), [false, true, true]);
        assert!(copied.join("disk/disk.raw").exists());
        drop(used);
        sweep(top.path(), "other");
        sweep(top.path(), "block");
        assert_eq!([1, 2].map(|i| left[i].exists()), [false, true]);
    }

    #[test]
    fn a_tree_of_the_run_goes_and_what_its_links_lead_to_stays() {
        let (dir, path) = tree();
        let theirs = dir.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("precious"), b"p").unwrap();
        fs::create_dir_all(path.join("a/b\nc/'d'")).unwrap();
        fs::write(path.join("a/f"), b"x").unwrap();
        std::os::unix::fs::symlink(&theirs, path.join("a/link")).unwrap();
        remove(&path, RUN, Extent::Whole).unwrap();
        assert!(!path.exists() && theirs.join("precious").exists());
        remove(&path, RUN, Extent::Whole).unwrap();
    }

    #[test]
    fn without_this_runs_mark_nothing_goes() {
        let (dir, path) = tree();
        fs::write(path.join("f"), b"x").unwrap();
        assert!(remove(&path, "run-2.0", Extent::Whole).unwrap_err().contains("does not carry"));
        // The mark of another directory, put into one that is not the run's.
        let theirs = dir.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        fs::copy(path.join(MARKER), theirs.join(MARKER)).unwrap();
        assert!(remove(&theirs, RUN, Extent::Whole).unwrap_err().contains("another directory"));
        fs::remove_file(theirs.join(MARKER)).unwrap();
        std::os::unix::fs::symlink(path.join(MARKER), theirs.join(MARKER)).unwrap();
        assert!(remove(&theirs, RUN, Extent::Whole).is_err());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(remove(&link, RUN, Extent::Whole).is_err());
        assert!(remove(&dir.path().join("theirs"), RUN, Extent::Empty).is_err());
        assert!(path.join("f").exists() && theirs.exists() && link.exists());
    }

    #[test]
    fn a_directory_goes_when_it_is_empty() {
        let (_dir, path) = tree();
        fs::write(path.join("f"), b"x").unwrap();
        assert!(remove(&path, RUN, Extent::Empty).unwrap_err().contains("it contains 'f'"));
        fs::remove_file(path.join("f")).unwrap();
        remove(&path, RUN, Extent::Empty).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_that_is_there_is_not_made_ours() {
        let (_dir, path) = tree();
        let before = fs::read(path.join(MARKER)).unwrap();
        assert_eq!(make(&path, 0o700, "run-2.0").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(path.join(MARKER)).unwrap(), before);
    }

    #[test]
    fn temporary_directories_have_names_that_nobody_can_guess() {
        let (a, b) = (temporary("test").unwrap(), temporary("test").unwrap());
        assert_ne!(a, b);
        assert_eq!(fs::metadata(&a).unwrap().mode() & 0o777, 0o700);
        fs::remove_dir(a).unwrap();
        fs::remove_dir(b).unwrap();
    }
}
