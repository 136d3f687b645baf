//! `target block`: a file that is a disk with a known limit, exported by QEMU's storage daemon over FUSE.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_target::limiter::{Amount, LimitSet, MICRO, TierKind, Unit};
use plimsoll_target::ready::Ready;

use super::target::BlockServerArgs;
use crate::fault::{Exit, Fault};
use crate::{output, signals};

const DAEMON: &str = "qemu-storage-daemon";
const START: Duration = Duration::from_secs(20);

pub fn serve(a: &BlockServerArgs) -> Result<Exit, Fault> {
    let limits = throttle_group(&tier(&a.tier, a.scale)?)?;
    let dir = Directory::make(a.data.as_deref())?;
    let (disk, export) = (dir.path.join("disk.raw"), dir.path.join("disk.img"));
    fill(&disk, a.size.0)?;
    std::fs::write(&export, b"").map_err(|e| cannot(&export, &e))?;
    signals::install(signals::Role::Server);
    let mut daemon = start(&disk, &export, &limits)?;
    await_export(&mut daemon, &export, a.size.0)?;
    let ready = Ready {
        kind: "block",
        address: String::new(),
        endpoint: String::new(),
        access_key: None,
        secret_key: None,
        region: None,
        ca_file: None,
        path: Some(export.clone()),
        pid: daemon.id(),
    };
    output::print(&format!("{}\n", ready.line()))?;
    eprintln!("plimsoll: {} is limited as {} ({limits}); use direct I/O; Ctrl-C ends it", export.display(), a.tier);
    let died = loop {
        if signals::was_asked_to_stop() {
            break false;
        }
        if daemon.try_wait().is_ok_and(|s| s.is_some()) {
            break true;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    end(&mut daemon);
    if died {
        return Err(Fault::input(format!("{DAEMON} ended"), "Its own message is above."));
    }
    Ok(Exit::Valid)
}

/// A built-in tier of block limits, at another scale.
fn tier(name: &str, scale: f64) -> Result<LimitSet, Fault> {
    let bad = |e: plimsoll_target::limiter::LimitsError| Fault::input(e.to_string(), "See `plimsoll target block --help`.");
    let set = LimitSet::tier(name).map_err(bad)?;
    if set.kind != TierKind::Block {
        return Err(Fault::input(
            format!("tier {name} is one of objects, not of blocks"),
            "Use it with `plimsoll target s3 --tier`; block tiers are vultr-hdd and vultr-nvme.",
        ));
    }
    set.scaled(scale).map_err(bad)
}

/// The limits in QEMU's words. Its burst of `max` lasts max x length / (max - base) seconds, so that a burst of
/// T seconds needs length = T x (max - base) / max.
fn throttle_group(set: &LimitSet) -> Result<String, Fault> {
    let mut group = serde_json::Map::new();
    for l in &set.limits {
        let name = match l.unit {
            Unit::Ops => "iops-total",
            Unit::Bytes => "bps-total",
        };
        // Amounts are kept in millionths.
        let whole = |a: Amount| a.0 / MICRO;
        let (base, burst) = (whole(l.rate_per_s), l.burst_per_s.map(whole));
        group.insert(name.into(), base.into());
        if let Some(max) = burst {
            let seconds = l.burst_for_s.unwrap_or(1.0);
            let length = (seconds * (max - base) as f64 / max as f64).round().max(1.0) as u64;
            group.insert(format!("{name}-max"), max.into());
            group.insert(format!("{name}-max-length"), length.into());
        }
    }
    serde_json::to_string(&group).map_err(|e| Fault::bug(e.to_string()))
}

/// Where disk and export lie; one that was not given is removed at the end.
struct Directory {
    path: PathBuf,
    temporary: bool,
}

impl Directory {
    fn make(given: Option<&Path>) -> Result<Self, Fault> {
        let own = || std::env::temp_dir().join(format!("plimsoll-block-{}", std::process::id()));
        let path = given.map_or_else(own, Path::to_owned);
        std::fs::create_dir_all(&path).map_err(|e| cannot(&path, &e))?;
        Ok(Self { path, temporary: given.is_none() })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.temporary {
            // Whatever cannot be removed lies in the temporary directory, and says whose it is by its name.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Real data: holes would be answered without passing the throttle. A file of the right size is kept.
fn fill(disk: &Path, bytes: u64) -> Result<(), Fault> {
    if std::fs::metadata(disk).is_ok_and(|m| m.len() == bytes) {
        return Ok(());
    }
    let mut file = std::fs::File::create(disk).map_err(|e| cannot(disk, &e))?;
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
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
        file.write_all(&block[..n]).map_err(|e| cannot(disk, &e))?;
        left -= n as u64;
    }
    file.sync_all().map_err(|e| cannot(disk, &e))
}

fn start(disk: &Path, export: &Path, limits: &str) -> Result<Child, Fault> {
    let (disk, export) = (disk.display(), export.display());
    Command::new(DAEMON)
        .args(["--object", &format!(r#"{{"qom-type":"throttle-group","id":"tg0","limits":{limits}}}"#)])
        .args(["--blockdev", &format!("driver=file,filename={disk},node-name=file0,aio=threads,cache.direct=on")])
        .args(["--blockdev", "driver=raw,node-name=raw0,file=file0"])
        .args(["--blockdev", "driver=throttle,node-name=thr0,throttle-group=tg0,file=raw0"])
        .args(["--export", &format!("type=fuse,id=f0,node-name=thr0,mountpoint={export},writable=on")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| {
            Fault::input(
                format!("{DAEMON} cannot be started: {e}"),
                "Install it: apt-get install qemu-system-common fuse3 (Debian), or use another limiter.",
            )
        })
}

/// The export is there when the file has the disk's size.
fn await_export(daemon: &mut Child, export: &Path, bytes: u64) -> Result<(), Fault> {
    let deadline = Instant::now() + START;
    while Instant::now() < deadline {
        if std::fs::metadata(export).is_ok_and(|m| m.len() == bytes) {
            return Ok(());
        }
        if daemon.try_wait().is_ok_and(|s| s.is_some()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    end(daemon);
    Err(Fault::input(format!("{DAEMON} exports nothing"), "Its own message is above; FUSE exports need /dev/fuse."))
}

fn end(daemon: &mut Child) {
    if let Ok(pid) = i32::try_from(daemon.id()) {
        // SAFETY: a plain kill of our own child, which is not reaped yet, so that the number is still its own.
        unsafe { libc::kill(pid, libc::SIGTERM) };
    }
    let deadline = Instant::now() + Duration::from_secs(5);
    while matches!(daemon.try_wait(), Ok(None)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    // It may have ended meanwhile; then there is nothing to kill.
    let _ = daemon.kill();
    let _ = daemon.wait();
}

fn cannot(path: &Path, e: &std::io::Error) -> Fault {
    Fault::input(format!("{}: {e}", path.display()), "Choose another directory with --data DIR.")
}
