//! Who uses a block device: mounts, swaps, holders, open exclusive claims; and who uses its partitions or its disk.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

use super::DeviceInfo;

/// Whose use it is, seen from the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UseOf {
    Itself,
    /// A partition of the target.
    Part,
    /// The disk that the target is a partition of.
    Whole,
}

/// One use that forbids writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceUse {
    pub whose: UseOf,
    /// Kernel name of the device in use.
    pub device: String,
    /// For example `is mounted on /srv`.
    pub what: String,
}

/// A line of /proc/self/mountinfo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub major: u32,
    pub minor: u32,
    pub mount_point: String,
    pub file_system: String,
    pub source: String,
}

/// Mounts of this mount namespace, and of the first process's where that can be read.
pub fn mounts() -> Vec<Mount> {
    let mut all = Vec::new();
    for path in ["/proc/self/mountinfo", "/proc/1/mountinfo"] {
        if let Ok(text) = fs::read_to_string(path) {
            for m in text.lines().filter_map(parse_mount) {
                if !all.contains(&m) {
                    all.push(m);
                }
            }
        }
    }
    all
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue` (proc(5)).
fn parse_mount(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ');
    let (maj, min) = left.nth(2)?.split_once(':')?;
    let mount_point = unescape(left.nth(1)?);
    let mut right = right.split(' ');
    let file_system = right.next()?.to_owned();
    let source = unescape(right.next()?);
    Some(Mount { major: maj.parse().ok()?, minor: min.parse().ok()?, mount_point, file_system, source })
}

/// Space, tab, newline and backslash are written as octal (`\040`).
fn unescape(text: &str) -> String {
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let octal = (bytes[i] == b'\\')
            .then(|| text.get(i + 1..i + 4).and_then(|d| u8::from_str_radix(d, 8).ok()))
            .flatten();
        match octal {
            Some(b) => {
                out.push(b);
                i += 4;
            }
            None => {
                out.push(bytes[i]);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mountinfo_is_read_with_its_escapes() {
        let m = parse_mount(
            r"36 35 98:3 / /mnt/my\040disk rw,noatime shared:1 master:2 - ext4 /dev/disk\134x rw",
        )
        .unwrap();
        assert_eq!((m.major, m.minor), (98, 3));
        assert_eq!(m.mount_point, "/mnt/my disk");
        assert_eq!(m.file_system, "ext4");
        assert_eq!(m.source, r"/dev/disk\x");
        assert!(parse_mount("garbage").is_none());
    }

    #[test]
    fn this_machine_has_a_root() {
        assert!(mounts().iter().any(|m| m.mount_point == "/"));
    }
}
