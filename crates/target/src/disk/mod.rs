//! `plimsoll target disk`: a mounted directory on a disk with known limits, credit included, for whoever measures files.
//!
//! From below: a file without a name, which nobody else's can be taken for; a FUSE file in front of it that answers when the tier's law says so; a loop device over that, without a page
//! cache of its own unless one is asked for; ext4 on it, mounted. Only the last has a name that stays: with it, all of it goes.

mod fuse;
mod law;
mod loop_device;

pub use law::{DiskLaw, DiskRounds};

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fuser::{Config, Session, SessionACL};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::clock::now_ns;
use crate::data_dir::{DataDir, DataDirError};
use crate::limiter::{LimitSet, TierKind};
use crate::ready::Ready;
use fuse::{DiskFile, DiskQueue, NAME};

const MKFS: &str = "mkfs.ext4";
/// What the mark of a data directory says.
const DATA_FORMAT: &str = "plimsoll.disk/1";
/// ext4 needs some room of its own.
const LEAST_BYTES: u64 = 16 << 20;

/// What disk to make.
#[derive(Clone, Debug)]
pub struct DiskOptions {
    /// Limits of a block tier, or of a file with `kind = "block"`.
    pub limits: LimitSet,
    /// Seconds of credit that are left, where the tier has such; absent: all of it.
    pub credit_s: Option<f64>,
    /// Directory for its file and the place where it is mounted: new, empty, or of an earlier disk.
    pub data: PathBuf,
    /// Of the disk, in bytes: a multiple of 4,096.
    pub size_bytes: u64,
    /// Keep what is read and written in the page cache, in front of the limits: as a host that caches its guests' disks.
    pub is_cached: bool,
}

/// Why there is no disk.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    #[error("a disk is mounted, which takes root")]
    NotRoot,
    #[error(
        "{MKFS}, which makes its file system, is not installed; on Debian and Ubuntu: apt-get install e2fsprogs"
    )]
    NotInstalled,
    #[error("tier {0} is an object tier: use it with `plimsoll target s3`")]
    NotBlock(String),
    #[error("the size of the disk must be a multiple of 4,096 bytes, and 16 MiB or more; it is {0}")]
    Size(u64),
    #[error("{0} has {1} MiB free, less than the disk takes")]
    NoSpace(PathBuf, u64),
    #[error("tier {0} has no credit")]
    NoCredit(String),
    #[error("{0}: {1}")]
    Step(String, io::Error),
    #[error("{MKFS}: {0}")]
    Mkfs(String),
    #[error(transparent)]
    DataDir(#[from] DataDirError),
}

/// A disk that is mounted; it is taken down when this is dropped.
pub struct MountedDisk {
    queue: Arc<DiskQueue>,
    mounted: PathBuf,
    device: PathBuf,
    /// Ours until all of it is gone.
    _dir: DataDir,
}

impl std::fmt::Debug for MountedDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MountedDisk").field("mounted", &self.mounted).finish_non_exhaustive()
    }
}

impl MountedDisk {
    /// The directory to measure.
    pub fn path(&self) -> &Path {
        &self.mounted
    }

    /// The device that it is mounted from.
    pub fn device(&self) -> &Path {
        &self.device
    }

    /// Seconds of credit that are left.
    pub fn credit_s(&self) -> Option<f64> {
        self.queue.credit_s()
    }

    /// Other limits from now on, their buckets full.
    pub fn limit(&self, limits: &LimitSet) {
        self.queue.obey(DiskLaw::new(limits, None, now_ns()));
    }

    /// As a broken drive from now on: each request to it fails. Or as before.
    pub fn fail(&self, is_failing: bool) {
        self.queue.fail(is_failing);
    }

    /// For one line on stdout.
    pub fn ready(&self) -> Ready {
        Ready {
            kind: "disk",
            address: String::new(),
            endpoint: String::new(),
            access_key: None,
            secret_key: None,
            region: None,
            ca_file: None,
            path: Some(self.mounted.clone()),
            limits: None,
            pid: std::process::id(),
        }
    }
}

impl Drop for MountedDisk {
    fn drop(&mut self) {
        // What is still to be written out is not held back: nobody measures it. A broken drive would keep it for ever.
        self.queue.fail(false);
        self.queue.open_wide();
        // Whoever still looks into it keeps it until this process ends, and nobody else finds it.
        let _ = take_down(&self.mounted);
        let _ = fs::remove_dir(&self.mounted);
    }
}

/// Makes the disk and mounts it.
pub fn start(o: &DiskOptions) -> Result<MountedDisk, DiskError> {
    check(o)?;
    let dir = DataDir::claim(&o.data, DATA_FORMAT)?;
    let (front, mounted) = (o.data.join("front"), o.data.join("mnt"));
    // Of one that was killed here.
    for place in [&mounted, &front] {
        if !is_free_or_ours(place, &o.data)? {
            return Err(DataDirError::Theirs(place.clone()).into());
        }
        take_down(place).map_err(|e| step(&format!("{} cannot be unmounted", place.display()), e))?;
        make_empty(place)?;
    }
    let backing = dir.make_unnamed()?;
    furnish(&backing, o.size_bytes)?;
    let queue = DiskQueue::new(DiskLaw::new(&o.limits, o.credit_s, now_ns()), backing);
    let file = serve(&queue, &front, o)?;
    let device = loop_device::attach(&file, !o.is_cached);
    // The device holds the file; its name is of no more use.
    let hidden = take_down(&front);
    let _ = fs::remove_dir(&front);
    hidden.map_err(|e| step("the FUSE file cannot be hidden", e))?;
    let device = device.map_err(|e| step("no loop device can be had", e))?;
    let flags = MountFlags::NOATIME | MountFlags::NODEV | MountFlags::NOSUID;
    mount(&device.path, &mounted, "ext4", flags, None)
        .map_err(|e| step(&format!("{} cannot be mounted", device.path.display()), e.into()))?;
    Ok(MountedDisk { queue, mounted, device: device.path.clone(), _dir: dir })
}

/// By this name FUSE's mount of ours is known in the table of mounts.
const SOURCE: &str = "plimsoll-disk";

fn check(o: &DiskOptions) -> Result<(), DiskError> {
    if !rustix::process::geteuid().is_root() {
        return Err(DiskError::NotRoot);
    }
    if o.limits.kind != TierKind::Block {
        return Err(DiskError::NotBlock(o.limits.name.clone()));
    }
    if o.size_bytes < LEAST_BYTES || !o.size_bytes.is_multiple_of(4_096) {
        return Err(DiskError::Size(o.size_bytes));
    }
    if o.credit_s.is_some() && o.limits.credit.is_none() {
        return Err(DiskError::NoCredit(o.limits.name.clone()));
    }
    let there = o.data.ancestors().find(|d| d.exists()).unwrap_or(Path::new("/"));
    match rustix::fs::statvfs(there) {
        Ok(fs) if fs.f_bavail.saturating_mul(fs.f_frsize) < o.size_bytes => {
            Err(DiskError::NoSpace(there.to_owned(), fs.f_bavail.saturating_mul(fs.f_frsize) >> 20))
        }
        _ => Ok(()),
    }
}

fn step(what: &str, e: io::Error) -> DiskError {
    DiskError::Step(what.to_owned(), e)
}

/// A place to mount at: an empty directory. What is in any other would be hidden, and what a link leads to is not ours.
fn make_empty(place: &Path) -> Result<(), DiskError> {
    let at = |e| step(&place.display().to_string(), e);
    match fs::create_dir(place) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.map_err(at),
    }
    let is_empty = fs::symlink_metadata(place).map_err(at)?.is_dir()
        && fs::read_dir(place).map_err(at)?.next().is_none();
    if is_empty { Ok(()) } else { Err(DataDirError::Theirs(place.to_owned()).into()) }
}

/// A file system in the file behind it: made before there is a limit in front.
fn furnish(file: &File, bytes: u64) -> Result<(), DiskError> {
    file.set_len(bytes).map_err(|e| step("the file of the disk", e))?;
    // No journal, and nothing left to be done later: what is written is what is measured.
    let options = "lazy_itable_init=0,nodiscard";
    let made = Command::new(MKFS)
        .args(["-q", "-F", "-b", "4096", "-m", "0", "-O", "^has_journal", "-E", options])
        .arg(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
        .stdin(Stdio::null())
        .output();
    match made {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(DiskError::NotInstalled),
        Err(e) => Err(step(MKFS, e)),
        Ok(out) if !out.status.success() => {
            let said = String::from_utf8_lossy(&out.stderr);
            Err(DiskError::Mkfs(said.trim().chars().take(400).collect()))
        }
        Ok(_) => Ok(()),
    }
}

/// Answers for the file from now on, and opens it.
fn serve(queue: &Arc<DiskQueue>, front: &Path, o: &DiskOptions) -> Result<File, DiskError> {
    let fuse = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    let fuse = fuse.map_err(|e| step("/dev/fuse cannot be opened", e))?;
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", fuse.as_raw_fd());
    let options = std::ffi::CString::new(options).expect("no zero is in it");
    mount(SOURCE, front, "fuse", MountFlags::NODEV | MountFlags::NOSUID, options.as_c_str())
        .map_err(|e| step("FUSE cannot be mounted", e.into()))?;
    let disk = DiskFile { queue: Arc::clone(queue), size_bytes: o.size_bytes, is_direct: !o.is_cached };
    let session = Session::from_fd(disk, OwnedFd::from(fuse), SessionACL::All, Config::default())
        .map_err(|e| step("the kernel's FUSE does not answer", e))?;
    let answering = Arc::clone(queue);
    // Both end with the process: a disk that is taken down is still asked for what its file system writes last.
    let begun = std::thread::Builder::new().name("disk-answers".into()).spawn(move || answering.serve());
    begun.map_err(|e| step("no thread can be started", e))?;
    let begun = std::thread::Builder::new().name("disk-requests".into()).spawn(move || session.run());
    begun.map_err(|e| step("no thread can be started", e))?;
    let file = OpenOptions::new().read(true).write(true).open(front.join(NAME));
    file.map_err(|e| step("the FUSE file cannot be opened", e))
}

/// Whether nothing is mounted there, or what a server of this kind mounts: FUSE by its name, or a loop device on its file.
fn is_free_or_ours(place: &Path, data: &Path) -> Result<bool, DiskError> {
    let asked = |e| step(&format!("what is mounted at {} cannot be told", place.display()), e);
    let Some(mount) = mount_id(place).map_err(asked)? else { return Ok(true) };
    if mount_id(data).map_err(asked)? == Some(mount.clone()) {
        return Ok(true);
    }
    let table = fs::read_to_string("/proc/self/mountinfo").map_err(asked)?;
    let line = table.lines().find(|l| l.split(' ').next() == Some(mount.as_str()));
    let mut what = line.and_then(|l| l.split_once(" - ")).map_or("", |(_, what)| what).split(' ');
    Ok(match (what.next(), what.next()) {
        (Some("fuse"), Some(SOURCE)) => true,
        (Some("ext4"), Some(device)) => {
            let number = device.strip_prefix("/dev/loop").filter(|n| n.parse::<u32>().is_ok());
            let behind = number.map(|n| format!("/sys/block/loop{n}/loop/backing_file"));
            let behind = behind.and_then(|f| fs::read_to_string(f).ok()).unwrap_or_default();
            // The FUSE file system is hidden by then, so that the path is the one inside it.
            behind.trim_end() == format!("/{NAME}")
        }
        _ => false,
    })
}

/// Number of the mount in which a directory is; `None` where there is no such directory (a link is none). The file system itself is
/// not asked: one whose server was killed does not answer.
fn mount_id(dir: &Path) -> io::Result<Option<String>> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = match rustix::fs::open(dir, flags, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        fd => fd?,
    };
    let told = fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()))?;
    let id = told.lines().find_map(|l| l.strip_prefix("mnt_id:"));
    id.map(|id| Some(id.trim().to_owned())).ok_or_else(|| io::Error::other("the kernel does not tell"))
}

/// Unmounts what is there, at once where nobody uses it. Nothing there is fine.
fn take_down(place: &Path) -> io::Result<()> {
    const WAIT: Duration = Duration::from_millis(20);
    for _ in 0..50 {
        match unmount(place, UnmountFlags::NOFOLLOW) {
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => return Ok(()),
            Err(Errno::BUSY) => std::thread::sleep(WAIT),
            Err(_) => break,
        }
    }
    match unmount(place, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(data: &Path, tier: &str) -> DiskOptions {
        DiskOptions {
            limits: LimitSet::tier(tier).unwrap(),
            credit_s: None,
            data: data.join("d"),
            size_bytes: 64 << 20,
            is_cached: false,
        }
    }

    #[test]
    fn what_cannot_be_made_is_told_before_anything_is() {
        let dir = tempfile::tempdir().unwrap();
        let e = |o: DiskOptions| start(&o).unwrap_err().to_string();
        if !rustix::process::geteuid().is_root() {
            assert!(e(options(dir.path(), "azure-premium-256")).contains("takes root"));
            return;
        }
        let small = DiskOptions { size_bytes: 4096, ..options(dir.path(), "azure-premium-256") };
        assert!(e(small).contains("16 MiB or more"));
        assert!(e(options(dir.path(), "vultr-standard")).contains("object tier"));
        let credit = DiskOptions { credit_s: Some(3.0), ..options(dir.path(), "azure-premium-256") };
        assert!(e(credit).contains("no credit"));
        assert!(!dir.path().join("d").exists());
    }

    /// What somebody put under a name of ours since is not touched: neither what such a link leads to, nor what mounting would hide.
    #[test]
    fn what_others_put_into_its_directory_survives() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let o = options(dir.path(), "vultr-nvme");
        drop(DataDir::claim(&o.data, DATA_FORMAT).unwrap());
        let theirs = dir.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        for (file, at) in [("precious", theirs.join("precious")), ("raw", o.data.join("disk.raw"))] {
            fs::write(at, file).unwrap();
        }
        for name in ["mnt", "front"] {
            std::os::unix::fs::symlink(&theirs, o.data.join(name)).unwrap();
            let told = start(&o).unwrap_err().to_string();
            assert!(told.contains(name) && told.contains("was not made by this server"), "{told}");
            fs::remove_file(o.data.join(name)).unwrap();
        }
        assert!(fs::read(theirs.join("precious")).unwrap() == b"precious");
        if Path::new("/dev/fuse").exists() {
            drop(start(&o).unwrap());
        }
        assert!(fs::read(o.data.join("disk.raw")).unwrap() == b"raw");
    }

    #[test]
    fn what_others_mounted_at_a_name_of_ours_stays_mounted() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let o = options(dir.path(), "vultr-nvme");
        drop(DataDir::claim(&o.data, DATA_FORMAT).unwrap());
        for name in ["mnt", "front"] {
            let place = o.data.join(name);
            fs::create_dir(&place).unwrap();
            mount("theirs", &place, "tmpfs", MountFlags::empty(), None).unwrap();
            let told = start(&o).map(drop).unwrap_err().to_string();
            let id = mount_id(&place).unwrap();
            // Before anything can fail: a mount outlives the test.
            let is_there = unmount(&place, UnmountFlags::empty()).is_ok();
            assert!(is_there && id.is_some(), "{name}");
            assert!(told.contains(name) && told.contains("was not made by this server"), "{told}");
            fs::remove_dir(&place).unwrap();
        }
    }

    /// Where it can be mounted (root, with FUSE and loop devices), what is written through it comes back, in any order of requests.
    #[test]
    fn what_is_written_to_a_disk_is_read_from_it() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
            return;
        }
        for is_cached in [false, true] {
            let o = DiskOptions { is_cached, ..options(dir.path(), "vultr-nvme") };
            let disk = start(&o).unwrap();
            let place = disk.path().to_owned();
            let write = |n: u8| {
                let file = place.join(n.to_string());
                fs::write(&file, vec![n; 3 << 20]).unwrap();
                File::open(&file).unwrap().sync_all().unwrap();
            };
            std::thread::scope(|s| (0..4).for_each(|n| drop(s.spawn(move || write(n)))));
            // From the device again, not from the cache of its files.
            fs::write("/proc/sys/vm/drop_caches", "1").unwrap();
            for n in 0..4u8 {
                assert!(fs::read(place.join(n.to_string())).unwrap() == vec![n; 3 << 20], "{n}");
            }
            drop(disk);
            let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
            assert!(!mounts.contains(place.to_str().unwrap()), "{mounts}");
            assert!(!place.exists());
        }
    }
}
