//! The directory of a fleet's state, by its handle. It is ours where the mark is in it that we left when we made it, and then only
//! names that we know are removed, one by one: what else somebody keeps under such a path, or in it, is not ours to touch.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::detached;
use super::home::LAUNCHED;
use crate::BusError;
use crate::key::random;

/// The file that says whose the directory is.
const MARK: &str = "plimsoll-fleet";
/// Of the mark; another one is another format.
const FORMAT: &str = "plimsoll.fleet/1";
/// Held by the keeper as long as it lives; goes last.
pub(super) const LOCK: &str = "lock";
/// Held by a command as long as it uses the fleet.
pub(super) const LEASE: &str = "lease";
/// What the keeper says of itself.
pub(super) const NOTE: &str = "keeper.json";
/// What a keeper leaves, its note first: an old one is nobody's. Each may be there as `.new`, too.
const NAMES: [&str; 12] = [
    NOTE,
    "conductor.seed",
    "system.seed",
    "door.json",
    "roster.json",
    "certificate.key",
    "certificate.pem",
    "broker.conf",
    "broker.log",
    detached::NOTE,
    detached::LOG,
    detached::OUT,
];
const MODE: Mode = Mode::from_raw_mode(0o600);
/// Notes are short; the roster of ten thousand agents has two megabytes.
const LONGEST_BYTES: u64 = 16 << 20;
/// One that is just being made or removed is without a mark for a moment.
const LOOKS: u32 = 15;
const PAUSE: Duration = Duration::from_millis(20);

/// Whose a directory is: this one's of this fleet, and no copy's.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    format: String,
    fleet: String,
    inode: u64,
    id: String,
}

/// A lock in it, held until this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub(super) struct PlaceLock(pub File);

impl Drop for PlaceLock {
    fn drop(&mut self) {
        plimsoll_store::journal::unlock(&self.0);
    }
}

/// A directory that is ours, opened.
#[derive(Debug)]
pub(super) struct Place {
    dir: OwnedFd,
    inode: u64,
    path: PathBuf,
}

impl Place {
    /// The one at `path`, if there is anything. What is not ours is refused by name; a link is not followed.
    pub fn open(path: &Path, fleet: &str) -> Result<Option<Self>, BusError> {
        for look in 1.. {
            let Some(place) = Self::handle(path)? else { return Ok(None) };
            if place.is_of(fleet) {
                return place.private().map(Some);
            }
            if look == LOOKS {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        Err(not_ours(path, "no fleet's keeper made it"))
    }

    /// The same, made where there is nothing, for this user alone. A keeper that ends meanwhile takes with it what is empty then: its
    /// directory, and those above it.
    pub fn make(path: &Path, fleet: &str) -> Result<Self, BusError> {
        for _ in 1..LOOKS {
            if let Some(place) = Self::try_make(path, fleet)? {
                return Ok(place);
            }
        }
        Self::try_make(path, fleet)?.ok_or_else(|| failed(path, "cannot be made", &Errno::NOENT.into()))
    }

    /// `None`: what it was made in, or itself, was removed meanwhile.
    fn try_make(path: &Path, fleet: &str) -> Result<Option<Self>, BusError> {
        use std::io::ErrorKind;
        use std::os::unix::fs::DirBuilderExt as _;
        let mut builder = std::fs::DirBuilder::new();
        builder.mode(0o700);
        let failed = |e: std::io::Error| failed(path, "cannot be made", &e);
        if let Some(above) = path.parent() {
            match builder.recursive(true).create(above) {
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
                // It was there when it was to be made, and gone when it was looked at: only what is there and no directory is in the way.
                Err(e) if e.kind() == ErrorKind::AlreadyExists && !is_in_the_way(above) => return Ok(None),
                made => made.map_err(failed)?,
            }
        }
        match builder.recursive(false).create(path) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return Self::open(path, fleet),
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed(e)),
        }
        let Some(place) = Self::handle(path)? else { return Ok(None) };
        let place = place.private()?;
        let id = random::<16>()?.map(|b| format!("{b:02x}")).concat();
        let mark = Mark { format: FORMAT.into(), fleet: fleet.into(), inode: place.inode, id };
        // Plain texts and a number: nothing in them can fail.
        place.write(MARK, &serde_json::to_string(&mark).expect("a mark is plain data"))?;
        Ok(Some(place))
    }

    fn handle(path: &Path) -> Result<Option<Self>, BusError> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let dir = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(not_ours(path, "it is a link or a file")),
            Err(e) => return Err(failed(path, "cannot be opened", &e.into())),
        };
        let stat = rustix::fs::fstat(&dir).map_err(|e| failed(path, "cannot be opened", &e.into()))?;
        Ok(Some(Self { dir, inode: stat.st_ino, path: path.to_owned() }))
    }

    /// Whether the mark is in it, of this fleet and this directory.
    fn is_of(&self, fleet: &str) -> bool {
        let mark = self.read(MARK).ok().and_then(|text| serde_json::from_str::<Mark>(&text).ok());
        mark.is_some_and(|m| m.format == FORMAT && m.fleet == fleet && m.inode == self.inode)
    }

    /// One that others can look into is refused: it holds keys.
    fn private(self) -> Result<Self, BusError> {
        let found = rustix::fs::fstat(&self.dir).map_err(|e| self.failed("cannot be opened", &e.into()))?;
        if found.st_uid == rustix::process::geteuid().as_raw() && found.st_mode & 0o077 == 0 {
            return Ok(self);
        }
        Err(BusError::refused(
            format!("{} is open to others", self.path.display()),
            "It holds keys: make it yours, with mode 0700, or remove it",
        ))
    }

    /// A file in it, never one that a link leads to.
    fn file(&self, name: &str, flags: OFlags) -> std::io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.dir, name, flags, MODE)?))
    }

    /// What is in a file.
    pub fn read(&self, name: &str) -> std::io::Result<String> {
        let mut text = String::new();
        self.file(name, OFlags::RDONLY)?.take(LONGEST_BYTES).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Replaces a file as a whole, so that nobody reads half of it.
    pub fn write(&self, name: &str, text: &str) -> Result<(), BusError> {
        let new = format!("{name}.new");
        let write = || {
            let mut file = self.file(&new, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
            file.write_all(text.as_bytes())?;
            Ok(rustix::fs::renameat(&self.dir, &new, &self.dir, name)?)
        };
        write().map_err(|e| self.failed("cannot be written", &e))
    }

    /// A file to be written from its beginning.
    pub fn empty(&self, name: &str) -> std::io::Result<File> {
        self.file(name, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::APPEND)
    }

    /// A lock. `None`: somebody holds it.
    pub fn lock(&self, name: &str) -> Result<Option<PlaceLock>, BusError> {
        self.lock_with(name, OFlags::CREATE)
    }

    /// Whether somebody holds it. Nothing is made.
    pub fn is_locked(&self, name: &str) -> bool {
        matches!(self.lock_with(name, OFlags::empty()), Ok(None))
    }

    fn lock_with(&self, name: &str, flags: OFlags) -> Result<Option<PlaceLock>, BusError> {
        let cannot = |e: std::io::Error| self.failed("cannot be locked", &e);
        let file = self.file(name, OFlags::RDWR | flags).map_err(cannot)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(e) => return Err(cannot(e.into())),
        }
        let lock = PlaceLock(file);
        // One that was removed meanwhile is a lock on nothing.
        if rustix::fs::fstat(&lock.0).is_ok_and(|s| s.st_nlink == 0) {
            return Err(cannot(Errno::NOENT.into()));
        }
        Ok(Some(lock))
    }

    /// Removes what a keeper left that was killed. The files of locks stay: somebody may hold one. So does the note of what was started
    /// on other machines, which runs on whatever became of the keeper.
    pub fn forget(&self) -> Result<(), BusError> {
        let others = self.listed()?;
        let others = others.iter().map(String::as_str).filter(|name| is_of_broker(name));
        for name in NAMES.into_iter().chain(others) {
            self.unlink(name)?;
            self.unlink(&format!("{name}.new"))?;
        }
        Ok(())
    }

    /// Removes the note of what was started on other machines.
    pub fn forget_launched(&self) -> Result<(), BusError> {
        self.unlink(LAUNCHED)?;
        self.unlink(&format!("{LAUNCHED}.new"))
    }

    /// Removes what is ours in it, and the directory where nothing else is. What else there is, is named, and stays.
    pub fn remove(&self) -> Result<(), BusError> {
        self.forget()?;
        self.forget_launched()?;
        self.unlink(LEASE)?;
        let left = self.listed()?.into_iter().filter(|n| ![MARK, LOCK].contains(&n.as_str()));
        let left: Vec<String> = left.take(4).map(|name| format!("{name:?}")).collect();
        if !left.is_empty() {
            return Err(BusError::refused(
                format!(
                    "{} stays: what a keeper left is removed, {} is not its",
                    self.path.display(),
                    left.join(", ")
                ),
                "Look what that is, and move it away; then call `plimsoll fleet down` again",
            ));
        }
        for name in [MARK, LOCK] {
            self.unlink(name)?;
        }
        // By its path, so only while that is still this one; one that somebody put something into stays.
        let same = rustix::fs::lstat(&self.path).is_ok_and(|s| s.st_ino == self.inode);
        match if same { rustix::fs::rmdir(&self.path) } else { Ok(()) } {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(self.failed("cannot be removed", &e.into())),
        }
    }

    fn unlink(&self, name: &str) -> Result<(), BusError> {
        match rustix::fs::unlinkat(&self.dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(self.failed(&format!("cannot be cleared of {name}"), &e.into())),
        }
    }

    fn listed(&self) -> Result<Vec<String>, BusError> {
        let failed = |e: Errno| self.failed("cannot be read", &e.into());
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.dir).map_err(failed)? {
            let entry = match entry {
                Ok(entry) => entry,
                // It was removed meanwhile.
                Err(Errno::NOENT) => break,
                Err(e) => return Err(failed(e)),
            };
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    pub fn failed(&self, what: &str, e: &std::io::Error) -> BusError {
        failed(&self.path, what, e)
    }
}

/// Names that the broker makes up: its file of ports, and logs that grew too long.
fn is_of_broker(name: &str) -> bool {
    let ports = name.strip_prefix("nats-server_").and_then(|rest| rest.strip_suffix(".ports"));
    let log = name.strip_prefix("broker.log.");
    let is_made_of = |text: &str, fits: fn(char) -> bool| !text.is_empty() && text.chars().all(fits);
    ports.is_some_and(|pid| is_made_of(pid, |c| c.is_ascii_digit()))
        || log.is_some_and(|time| is_made_of(time, |c| c.is_ascii_digit() || c == '.'))
}

/// Whether something is at `path` in which nothing can be made; a link that leads nowhere is.
fn is_in_the_way(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok() && !path.is_dir()
}

fn not_ours(path: &Path, why: &str) -> BusError {
    BusError::refused(
        format!("{} is not the directory of a fleet: {why}", path.display()),
        "Nothing in it was touched. Give the fleet another --name, or move that away",
    )
}

fn failed(path: &Path, what: &str, e: &std::io::Error) -> BusError {
    BusError::refused(format!("{} {what}: {e}", path.display()), "Check its directory and the space there")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn base() -> (tempfile::TempDir, PathBuf) {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("fleets/demo");
        (base, path)
    }

    /// A keeper that ended removed the empty directories between the two steps of the next one: `cannot be made: No such file`.
    #[test]
    fn what_is_removed_above_meanwhile_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let above = dir.path().join("plimsoll").join("fleets");
        let path = above.join("demo");
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = fs::remove_dir(&above);
                    let _ = fs::remove_dir(above.parent().unwrap());
                    std::thread::sleep(Duration::from_micros(500));
                }
            });
            let all = (0..300).try_for_each(|_| Place::make(&path, "demo")?.remove());
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            all.unwrap();
        });
    }

    /// Not taken for one that another removes meanwhile: said at once, and what it is.
    #[test]
    fn a_file_and_a_link_to_nothing_are_in_the_way() {
        let (base, path) = base();
        let above = base.path().join("fleets");
        fs::write(&above, "mine").unwrap();
        let e = Place::make(&path, "demo").unwrap_err().to_string();
        assert!(e.contains("cannot be made: File exists"), "{e}");
        assert_eq!(fs::read_to_string(&above).unwrap(), "mine");
        fs::remove_file(&above).unwrap();
        std::os::unix::fs::symlink(base.path().join("nothing"), &above).unwrap();
        let e = Place::make(&path, "demo").unwrap_err().to_string();
        assert!(e.contains("cannot be made: File exists"), "{e}");
        assert!(!base.path().join("nothing").exists());
    }

    #[test]
    fn what_no_keeper_made_is_refused_and_not_touched() {
        let (_base, path) = base();
        fs::create_dir_all(path.join("thesis")).unwrap();
        fs::write(path.join(NOTE), "mine").unwrap();
        for e in [Place::open(&path, "demo").map(|_| ()), Place::make(&path, "demo").map(|_| ())] {
            let e = e.unwrap_err().to_string();
            assert!(e.contains("fleets/demo is not the directory of a fleet"), "{e}");
        }
        assert_eq!(fs::read_to_string(path.join(NOTE)).unwrap(), "mine");
        assert_eq!(fs::read_dir(&path).unwrap().count(), 2);
    }

    #[test]
    fn a_link_is_not_followed_and_a_copy_is_no_fleets() {
        let (base, path) = base();
        Place::make(&path, "demo").unwrap();
        let other = base.path().join("fleets/other");
        std::os::unix::fs::symlink(&path, &other).unwrap();
        let e = Place::open(&other, "other").unwrap_err().to_string();
        assert!(e.contains("it is a link or a file"), "{e}");
        assert!(Place::make(&other, "demo").is_err());
        let copy = base.path().join("copy");
        fs::create_dir(&copy).unwrap();
        fs::copy(path.join(MARK), copy.join(MARK)).unwrap();
        assert!(Place::open(&copy, "demo").is_err());
        assert!(Place::open(&path, "other").is_err());
        assert!(Place::open(&path, "demo").unwrap().is_some());
    }

    #[test]
    fn only_what_a_keeper_leaves_is_removed() {
        let (_base, path) = base();
        let place = Place::make(&path, "demo").unwrap();
        let ours =
            ["nats-server_17.ports", "broker.log.2026.11.23.09.16.55.1", "roster.json.new", LEASE, LOCK];
        let theirs = ["thesis", "nats-server_x.ports", "broker.log.mine"];
        ours.iter().chain(&theirs).chain(&NAMES).for_each(|n| fs::write(path.join(n), "x").unwrap());
        let e = place.remove().unwrap_err().to_string();
        assert!(e.contains("\"thesis\"") && e.contains("\"broker.log.mine\""), "{e}");
        let mut left: Vec<String> =
            fs::read_dir(&path).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, ["broker.log.mine", LOCK, "nats-server_x.ports", MARK, "thesis"]);
        theirs.iter().for_each(|n| fs::remove_file(path.join(n)).unwrap());
        place.remove().unwrap();
        place.remove().unwrap();
        assert!(!path.exists() && Place::open(&path, "demo").unwrap().is_none());
    }

    #[test]
    fn looking_at_a_lock_makes_nothing() {
        let (_base, path) = base();
        let place = Place::make(&path, "demo").unwrap();
        assert!(!place.is_locked(LOCK) && !path.join(LOCK).exists());
        let lock = place.lock(LOCK).unwrap().unwrap();
        assert!(place.is_locked(LOCK));
        // A child that another thread starts has all that is open until it becomes its program.
        let of_a_child = lock.0.try_clone().unwrap();
        drop(lock);
        assert!(!place.is_locked(LOCK));
        drop(of_a_child);
    }
}
