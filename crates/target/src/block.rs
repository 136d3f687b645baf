//! `plimsoll target block`: a file that behaves as a disk of a tier, by QEMU's storage daemon.
//!
//! A raw file of real data, behind a throttle group, is exported as one file (FUSE) or as an NBD socket. The file is
//! filled first: holes would be answered without passing the throttle (136,000 "IOPS" were seen under a limit of 500).
//! Open the export with direct I/O: read-ahead of buffered reads passes the limit too.

use crate::data_dir::{DataDir, DataDirError};
use crate::limiter::{LimitSet, LimitSpec, MICRO, TierKind, Unit};
use crate::ready::Ready;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const DAEMON: &str = "qemu-storage-daemon";
/// How long the daemon may take until its export is there.
const START: Duration = Duration::from_secs(20);

/// How the disk is offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Export {
    /// A regular file, `disk.img` in the data directory; needs /dev/fuse.
    #[default]
    Fuse,
    /// A unix socket, `nbd.sock` in the data directory, export name `disk`.
    Nbd,
}

/// What disk to make.
#[derive(Clone, Debug)]
pub struct BlockOptions {
    /// Limits of a block tier (vultr-hdd, vultr-nvme) or of a file with `kind = "block"`.
    pub limits: LimitSet,
    /// Directory for the disk and its export: new, empty, or one of an earlier disk, which is used again where it has this
    /// size.
    pub data: PathBuf,
    /// Size of the disk, in bytes: a multiple of 4,096.
    pub size_bytes: u64,
    /// A file by FUSE, or an NBD socket.
    pub export: Export,
}

#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    #[error(
        "{DAEMON}, which limits the disk, is not installed; on Debian and Ubuntu: apt-get install qemu-system-common \
         fuse3"
    )]
    NotInstalled,
    #[error(
        "tier {0} is an object tier: use it with `plimsoll target s3`; block tiers are vultr-hdd and vultr-nvme"
    )]
    NotBlock(String),
    #[error("this limit cannot be set in {DAEMON}: {0}")]
    Limit(String),
    #[error("the size of the disk must be a positive multiple of 4,096 bytes; it is {0}")]
    Size(u64),
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error("{DAEMON} exports nothing: {0}")]
    Daemon(String),
}

/// A running disk; the daemon ends when this is dropped.
#[derive(Debug)]
pub struct DiskHandle {
    daemon: Child,
    path: PathBuf,
    export: Export,
    throttle: String,
    /// Ours until the daemon has ended.
    dir: DataDir,
}

/// What the mark of a data directory says.
const DATA_FORMAT: &str = "plimsoll.block/1";
/// The disk's data, and what it is called until it is whole.
const DISK: &str = "disk.raw";
const PART: &str = "disk.part";

impl DiskHandle {
    /// The file to measure, or the socket of the NBD server.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The limits in QEMU's own words, as JSON.
    pub fn throttle(&self) -> &str {
        &self.throttle
    }

    /// Whether the daemon has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.daemon.try_wait(), Ok(None))
    }

    /// For one line on stdout.
    pub fn ready(&self) -> Ready {
        let endpoint = match self.export {
            Export::Fuse => String::new(),
            Export::Nbd => format!("nbd+unix:///disk?socket={}", self.path.display()),
        };
        Ready {
            kind: "block",
            address: String::new(),
            endpoint,
            access_key: None,
            secret_key: None,
            region: None,
            ca_file: None,
            path: Some(self.path.clone()),
            limits: Some(self.throttle.clone()),
            pid: self.daemon.id(),
        }
    }

    /// Ends the daemon and its export.
    pub fn stop(self) {}
}

impl Drop for DiskHandle {
    fn drop(&mut self) {
        end(&mut self.daemon);
    }
}

/// Makes the disk and exports it; the answer comes when it can be opened.
pub fn start(options: &BlockOptions) -> Result<DiskHandle, BlockError> {
    let throttle = throttle_group(&options.limits)?;
    if options.size_bytes == 0 || !options.size_bytes.is_multiple_of(4_096) {
        return Err(BlockError::Size(options.size_bytes));
    }
    // Before the disk is filled: that takes minutes for a large one.
    installed(DAEMON)?;
    let at = |path: &Path| {
        let path = path.to_owned();
        move |e| BlockError::File(path, e)
    };
    let mut dir = DataDir::claim(&options.data, DATA_FORMAT)?;
    let name = match options.export {
        Export::Fuse => "disk.img",
        Export::Nbd => "nbd.sock",
    };
    // The daemon would mount over what is there, or replace it.
    dir.has(name)?;
    let disk = options.data.join(DISK);
    let is_there = dir.has(DISK)? && fs::metadata(&disk).map_err(at(&disk))?.len() == options.size_bytes;
    if !is_there {
        // Under another name until it is whole: a fill that was broken off must not be taken for a disk.
        fill(dir.make(PART)?, options.size_bytes).map_err(at(&disk))?;
        dir.rename(PART, DISK)?;
    }
    match options.export {
        Export::Fuse if dir.has(name)? => {}
        Export::Fuse => drop(dir.make(name)?),
        Export::Nbd => dir.remove(name)?,
    }
    let path = options.data.join(name);
    let daemon = spawn(&disk, &path, options.export, &throttle)?;
    let mut handle = DiskHandle { daemon, path, export: options.export, throttle, dir };
    await_export(&mut handle, options.size_bytes)?;
    if options.export == Export::Nbd {
        handle.dir.adopt(name)?;
    }
    Ok(handle)
}

fn installed(program: &str) -> Result<(), BlockError> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(BlockError::NotInstalled),
        _ => Ok(()),
    }
}

/// The limits as QEMU's throttle group takes them.
///
/// Its bucket holds max x length and leaks at the base rate, so that a burst at max lasts
/// max x length / (max - base) seconds. For a burst of T seconds: length = T x (max - base) / max. 500, 750 and 60 s
/// give a length of 20; a length of 60 would burst for 180 s.
pub fn throttle_group(set: &LimitSet) -> Result<String, BlockError> {
    if set.kind != TierKind::Block {
        return Err(BlockError::NotBlock(set.name.clone()));
    }
    if set.credit.is_some() || set.limits.iter().any(|l| l.directions.is_some()) {
        let text = format!("{} has credit, or limits of one direction: use `plimsoll target disk`", set.name);
        return Err(BlockError::Limit(text));
    }
    let mut group = serde_json::Map::new();
    for l in &set.limits {
        let name = match l.unit {
            Unit::Ops => "iops-total",
            Unit::Bytes => "bps-total",
        };
        let base = whole(l.rate_per_s.0, "rate_per_s")?;
        if group.insert(name.into(), base.into()).is_some() {
            return Err(BlockError::Limit(format!("two limits of the same unit ({:?}); keep one", l.unit)));
        }
        if let Some((max, length)) = burst(l, base)? {
            group.insert(format!("{name}-max"), max.into());
            group.insert(format!("{name}-max-length"), length.into());
        }
    }
    serde_json::to_string(&group).map_err(|e| BlockError::Limit(e.to_string()))
}

/// (max, length) of QEMU's burst, where there is one.
fn burst(l: &LimitSpec, base: u64) -> Result<Option<(u64, u64)>, BlockError> {
    let capacity = l.capacity_micro() / MICRO;
    match l.burst_per_s {
        None if l.capacity.is_none() => Ok(None),
        // Of any rate, until the bucket is full: QEMU's length of one second.
        None if capacity >= base => Ok(Some((capacity, 1))),
        None => Err(BlockError::Limit(format!(
            "a capacity of {capacity} is less than one second of its rate, {base}"
        ))),
        Some(max) => {
            let max = whole(max.0, "burst_per_s")?;
            let length = (capacity as f64 / max as f64).round() as u64;
            if length == 0 {
                let text =
                    format!("a capacity of {capacity} is less than half a second of its burst rate, {max}");
                return Err(BlockError::Limit(text));
            }
            Ok(Some((max, length)))
        }
    }
}

fn whole(micro: u64, what: &str) -> Result<u64, BlockError> {
    match micro / MICRO {
        0 => Err(BlockError::Limit(format!("{what} is below 1 per second; use a larger rate or scale"))),
        n => Ok(n),
    }
}

/// Writes real, incompressible data.
fn fill(mut file: File, bytes: u64) -> io::Result<()> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut block = vec![0u8; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        for word in block.chunks_exact_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        let n = left.min(block.len() as u64) as usize;
        file.write_all(&block[..n])?;
        left -= n as u64;
    }
    file.sync_all()
}

/// A comma separates options in QEMU's syntax, and is doubled in a value.
fn quoted(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

fn spawn(disk: &Path, path: &Path, export: Export, throttle: &str) -> Result<Child, BlockError> {
    let (disk, path) = (quoted(disk), quoted(path));
    let mut command = Command::new(DAEMON);
    command
        .args([
            "--object",
            &format!("{{\"qom-type\":\"throttle-group\",\"id\":\"tg0\",\"limits\":{throttle}}}"),
        ])
        .args([
            "--blockdev",
            &format!("driver=file,filename={disk},node-name=file0,aio=threads,cache.direct=on"),
        ])
        .args(["--blockdev", "driver=raw,node-name=raw0,file=file0"])
        .args(["--blockdev", "driver=throttle,node-name=thr0,throttle-group=tg0,file=raw0"]);
    match export {
        Export::Fuse => {
            command
                .args(["--export", &format!("type=fuse,id=e0,node-name=thr0,mountpoint={path},writable=on")]);
        }
        Export::Nbd => {
            command.args(["--nbd-server", &format!("addr.type=unix,addr.path={path},max-connections=64")]);
            command.args(["--export", "type=nbd,id=e0,node-name=thr0,name=disk,writable=on"]);
        }
    }
    // A killed server takes its daemon, and the mount, with it.
    // SAFETY: the closure makes one prctl call, which is async-signal-safe, and touches no memory of the parent.
    unsafe {
        command.pre_exec(|| {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))
                .map_err(io::Error::from)
        });
    }
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    spawned.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => BlockError::NotInstalled,
        _ => BlockError::Daemon(e.to_string()),
    })
}

/// Waits for the export: a file of the disk's size, or a socket.
fn await_export(handle: &mut DiskHandle, bytes: u64) -> Result<(), BlockError> {
    use std::os::unix::fs::FileTypeExt;
    let deadline = Instant::now() + START;
    while Instant::now() < deadline && !handle.has_ended() {
        let is_there = fs::metadata(&handle.path).is_ok_and(|m| match handle.export {
            Export::Fuse => m.len() == bytes,
            Export::Nbd => m.file_type().is_socket(),
        });
        if is_there {
            pass_on_messages(&mut handle.daemon);
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    end(&mut handle.daemon);
    let mut said = String::new();
    if let Some(mut e) = handle.daemon.stderr.take() {
        // What cannot be read is not said.
        let _ = e.read_to_string(&mut said);
    }
    let said = said.trim();
    let why = if said.is_empty() { "it gave no reason; FUSE exports need /dev/fuse" } else { said };
    Err(BlockError::Daemon(why.to_owned()))
}

/// What the daemon says later goes to our own stderr; a full pipe would stop it.
fn pass_on_messages(daemon: &mut Child) {
    if let Some(stderr) = daemon.stderr.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                eprintln!("{line}");
            }
        });
    }
}

fn end(daemon: &mut Child) {
    if let Ok(None) = daemon.try_wait()
        && let Some(pid) = i32::try_from(daemon.id()).ok().and_then(rustix::process::Pid::from_raw)
    {
        // It is not reaped yet, so that the number is still its own. SIGTERM lets it unmount.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let deadline = Instant::now() + Duration::from_secs(5);
        while matches!(daemon.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    // It may have ended meanwhile; then there is nothing to kill.
    let _ = daemon.kill();
    let _ = daemon.wait();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn group(limits: &str) -> Result<String, BlockError> {
        let text = format!("name = \"t\"\nkind = \"block\"\n{limits}");
        throttle_group(&LimitSet::parse(&text, "test").unwrap())
    }

    #[test]
    fn the_burst_law_gives_a_length_of_twenty() {
        let hdd = throttle_group(&LimitSet::tier("vultr-hdd").unwrap()).unwrap();
        let want = serde_json::json!({
            "iops-total": 500, "iops-total-max": 750, "iops-total-max-length": 20,
            "bps-total": 100_000_000, "bps-total-max": 150_000_000, "bps-total-max-length": 20,
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&hdd).unwrap(), want);
        let plain = group("[[limit]]\nunit='ops'\nrate_per_s=100\n").unwrap();
        assert_eq!(plain, r#"{"iops-total":100}"#);
    }

    #[test]
    fn limits_that_qemu_cannot_hold_are_refused_with_a_reason() {
        let e = |limits: &str| group(limits).unwrap_err().to_string();
        assert!(e("[[limit]]\nunit='ops'\nrate_per_s=100\ncapacity=5\n").contains("less than one second"));
        assert!(e("[[limit]]\nunit='ops'\nrate_per_s=0.5\n").contains("below 1 per second"));
        assert!(
            e("[[limit]]\nunit='ops'\nrate_per_s=5\n[[limit]]\nunit='ops'\nrate_per_s=6\n")
                .contains("same unit")
        );
        let object = throttle_group(&LimitSet::tier("vultr-standard").unwrap()).unwrap_err();
        assert!(object.to_string().contains("plimsoll target s3"));
    }

    /// Refused before the daemon is begun, which would mount over what is there, write to it, or replace it.
    #[test]
    fn what_others_put_under_the_names_of_a_disk_survives() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        if installed(DAEMON).is_err() {
            return;
        }
        let (data, precious) = (dir.path().join("d"), dir.path().join("precious"));
        drop(DataDir::claim(&data, DATA_FORMAT).unwrap());
        let content = vec![b'p'; 1 << 20];
        fs::write(&precious, &content).unwrap();
        for (name, export) in [
            ("disk.raw", Export::Fuse),
            ("disk.part", Export::Fuse),
            ("disk.img", Export::Fuse),
            ("nbd.sock", Export::Nbd),
        ] {
            for is_link in [false, true] {
                let at = data.join(name);
                match is_link {
                    true => std::os::unix::fs::symlink(&precious, &at).unwrap(),
                    false => drop(fs::copy(&precious, &at).unwrap()),
                }
                let limits = LimitSet::tier("vultr-hdd").unwrap();
                let o = BlockOptions { limits, data: data.clone(), size_bytes: 1 << 20, export };
                let told = start(&o).unwrap_err().to_string();
                assert!(told.contains(name) && told.contains("was not made by this server"), "{told}");
                assert!(fs::read(&at).unwrap() == content, "{name}, {is_link}");
                fs::remove_file(&at).unwrap();
            }
        }
    }

    #[test]
    fn a_missing_daemon_is_told_with_its_package() {
        let e = installed("no-such-program-of-plimsoll").unwrap_err().to_string();
        assert!(e.contains("apt-get install qemu-system-common"), "{e}");
    }

    /// With the daemon installed: data comes through the export. Without: the message says what to install.
    #[test]
    fn a_disk_of_a_tier_can_be_read_through_its_export() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let options = BlockOptions {
            limits: LimitSet::tier("vultr-hdd").unwrap(),
            data: dir.path().to_owned(),
            size_bytes: 8 << 20,
            export: if Path::new("/dev/fuse").exists() { Export::Fuse } else { Export::Nbd },
        };
        let mut handle = match start(&options) {
            Err(BlockError::NotInstalled) => return,
            other => other.unwrap(),
        };
        assert!(!handle.has_ended());
        if options.export == Export::Fuse {
            let (mut got, mut want) = ([0u8; 4_096], [0u8; 4_096]);
            File::open(handle.path()).unwrap().read_exact_at(&mut got, 5 << 20).unwrap();
            File::open(dir.path().join("disk.raw")).unwrap().read_exact_at(&mut want, 5 << 20).unwrap();
            assert_eq!(got, want);
            assert!(got.iter().any(|&b| b != 0));
        }
        assert!(handle.ready().line().contains("\"kind\":\"block\""));
        let path = handle.path().to_owned();
        handle.stop();
        assert!(options.export == Export::Nbd || fs::metadata(path).unwrap().len() == 0, "it is unmounted");
    }
}
