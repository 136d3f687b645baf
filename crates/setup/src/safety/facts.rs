//! Who uses a block device: mounts, swaps, holders, open exclusive claims; and who uses its partitions or its disk.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

use super::device::DeviceInfo;
use super::mounts::{mounts, unescape};

/// Whose use it is, seen from the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UseOf {
    /// The very device that was named.
    Itself,
    /// A partition of the target.
    Part,
    /// The disk that the target is a partition of.
    Whole,
    /// Another loop device on the file that the target is on, or a partition of that.
    Twin,
}

/// One use that forbids writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceUse {
    /// A use of the whole, or of a part, forbids it, too.
    pub whose: UseOf,
    /// Kernel name of the device in use.
    pub device: String,
    /// For example `is mounted on /srv`.
    pub what: String,
}

/// Paths of active swaps (/proc/swaps).
fn swaps() -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/swaps").unwrap_or_default();
    text.lines()
        .skip(1)
        .filter_map(|l| l.split_whitespace().next())
        .map(|p| PathBuf::from(unescape(p)))
        .collect()
}

fn number_of(path: &Path) -> Option<(u32, u32)> {
    let m = fs::metadata(path).ok().filter(|m| m.file_type().is_block_device())?;
    Some((major(m.rdev()), minor(m.rdev())))
}

/// Every use of the device, of its partitions, and of the disk that it is a part of.
pub fn uses(device: &DeviceInfo) -> Vec<DeviceUse> {
    let mut out = uses_of(&device.name, (device.major, device.minor), UseOf::Itself);
    for (name, number) in partitions(&device.name) {
        out.extend(uses_of(&name, number, UseOf::Part));
    }
    if let Some(disk) = &device.partition_of
        && let Some(number) = sys_number(&class_path(disk))
    {
        out.extend(uses_of(disk, number, UseOf::Whole));
    }
    // A file may lie behind several loop devices: what one of them holds is what all of them are.
    let disk = device.partition_of.as_deref().unwrap_or(&device.name);
    for (name, number) in twins(disk) {
        out.extend(uses_of(&name, number, UseOf::Twin));
        for (name, number) in partitions(&name) {
            out.extend(uses_of(&name, number, UseOf::Twin));
        }
    }
    out
}

fn class_path(name: &str) -> PathBuf {
    // Slashes of a name (cciss/c0d0) are written as exclamation marks in sysfs.
    Path::new("/sys/class/block").join(name.replace('/', "!"))
}

fn sys_number(sys: &Path) -> Option<(u32, u32)> {
    let text = fs::read_to_string(sys.join("dev")).ok()?;
    let (maj, min) = text.trim().split_once(':')?;
    Some((maj.parse().ok()?, min.parse().ok()?))
}

fn partitions(disk: &str) -> Vec<(String, (u32, u32))> {
    let Ok(entries) = fs::read_dir(class_path(disk)) else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter(|e| e.path().join("partition").exists())
        .filter_map(|e| Some((e.file_name().to_string_lossy().into_owned(), sys_number(&e.path())?)))
        .collect()
}

fn uses_of(name: &str, number: (u32, u32), whose: UseOf) -> Vec<DeviceUse> {
    let mut out = Vec::new();
    let mut add = |what: String| out.push(DeviceUse { whose, device: name.to_owned(), what });
    let mut seen = Vec::new();
    for m in mounts() {
        // File systems over several devices (btrfs) have a number of their own: their source tells.
        let hit = (m.major, m.minor) == number || number_of(Path::new(&m.source)) == Some(number);
        if hit && !seen.contains(&m.mount_point) {
            add(format!("is mounted on {}", m.mount_point));
            seen.push(m.mount_point);
        }
    }
    if swaps().iter().any(|s| number_of(s) == Some(number)) {
        add("is a swap in use".into());
    }
    if let Ok(holders) = fs::read_dir(class_path(name).join("holders")) {
        for h in holders.filter_map(Result::ok) {
            let holder = h.file_name().to_string_lossy().into_owned();
            let label = fs::read_to_string(h.path().join("dm/name")).unwrap_or_default();
            let label = label.trim();
            let label = if label.is_empty() { String::new() } else { format!(" ({label})") };
            add(format!("is held by {holder}{label}"));
        }
    }
    out
}

/// Other loop devices on the file that this one is on.
fn twins(name: &str) -> Vec<(String, (u32, u32))> {
    let file = |sys: &Path| {
        let path = fs::read_to_string(sys.join("loop/backing_file")).ok()?;
        let m = fs::metadata(path.trim_end_matches('\n')).ok()?;
        Some((m.dev(), m.ino()))
    };
    let Some(ours) = file(&class_path(name)) else { return Vec::new() };
    fs::read_dir("/sys/block")
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter(|e| e.file_name().to_string_lossy() != name && file(&e.path()) == Some(ours))
        .filter_map(|e| Some((e.file_name().to_string_lossy().into_owned(), sys_number(&e.path())?)))
        .collect()
}

/// Why writing to this regular file would hurt somebody: it is a swap, or lies behind a loop device.
pub fn file_uses(file: &fs::File) -> Vec<String> {
    let mut out = Vec::new();
    let Ok(meta) = file.metadata() else { return out };
    let same = |p: &Path| fs::metadata(p).is_ok_and(|m| (m.dev(), m.ino()) == (meta.dev(), meta.ino()));
    if swaps().iter().any(|s| same(s)) {
        out.push("is a swap in use".into());
    }
    for entry in fs::read_dir("/sys/block").into_iter().flatten().filter_map(Result::ok) {
        let Ok(backing) = fs::read_to_string(entry.path().join("loop/backing_file")) else { continue };
        if same(Path::new(backing.trim_end_matches('\n'))) {
            out.push(format!("lies behind /dev/{}", entry.file_name().to_string_lossy()));
        }
    }
    out
}
