//! What a block device is: size, alignment, model, serial number, stable names. Read from sysfs, udev and ioctls.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use plimsoll_model::text::clean;
use rustix::fs::{major, minor};

/// A block device as the kernel knows it. Empty strings: not known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceInfo {
    /// The path without symbolic links, for example `/dev/nvme0n1`.
    pub path: PathBuf,
    /// Kernel name, for example `nvme0n1`.
    pub name: String,
    /// Of its number, as in /proc/partitions.
    pub major: u32,
    /// Of its number, as in /proc/partitions.
    pub minor: u32,
    /// The whole device, or the whole partition.
    pub size_bytes: u64,
    /// The least that direct I/O may read or write, and what it has to be aligned to.
    pub logical_block_bytes: u32,
    /// What the device writes at once: less costs it a read.
    pub physical_block_bytes: u32,
    /// As sysfs has it.
    pub model: String,
    /// As sysfs has it.
    pub serial: String,
    /// Names under /dev/disk/by-id.
    pub by_id: Vec<String>,
    /// The scheduler in use, for example `none`.
    pub scheduler: String,
    /// It seeks: a hard disk, or something that says it is one.
    pub rotational: bool,
    /// The kernel refuses writes.
    pub read_only: bool,
    /// Kernel name of the whole disk, when this is a partition.
    pub partition_of: Option<String>,
    /// File behind a loop device.
    pub backing_file: Option<PathBuf>,
}

impl DeviceInfo {
    /// Reads everything about the device at `path` (symbolic links are followed).
    pub fn of(path: &Path) -> std::io::Result<Self> {
        // Without opening the device itself: that may wait for a medium.
        let flags = libc::O_PATH | libc::O_CLOEXEC;
        Self::of_file(&fs::File::options().read(true).custom_flags(flags).open(path)?)
    }

    /// Reads everything about a device that is open.
    pub fn of_file(file: &fs::File) -> std::io::Result<Self> {
        let meta = file.metadata()?;
        let path = super::handle::path_of(file).unwrap_or_default();
        if !meta.file_type().is_block_device() {
            return Err(std::io::Error::other(format!("{} is not a block device", path.display())));
        }
        Self::by_number(major(meta.rdev()), minor(meta.rdev()), path)
    }

    /// Reads everything about a device number.
    pub fn by_number(major: u32, minor: u32, path: PathBuf) -> std::io::Result<Self> {
        let sys = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}"))?;
        let name = sys.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let partition = sys.join("partition").exists();
        // The queue and the identity of a partition are those of its disk.
        let disk = if partition { sys.parent().unwrap_or(&sys).to_owned() } else { sys.clone() };
        let number = |p: PathBuf| word(&p).and_then(|w| w.parse::<u64>().ok()).unwrap_or(0);
        Ok(Self {
            size_bytes: number(sys.join("size")) * 512,
            logical_block_bytes: number(disk.join("queue/logical_block_size")) as u32,
            physical_block_bytes: number(disk.join("queue/physical_block_size")) as u32,
            model: word(&disk.join("device/model")).unwrap_or_default(),
            serial: serial(&disk).unwrap_or_default(),
            by_id: by_id(major, minor),
            scheduler: word(&disk.join("queue/scheduler")).map(|s| chosen(&s)).unwrap_or_default(),
            rotational: number(disk.join("queue/rotational")) == 1,
            read_only: number(sys.join("ro")) == 1,
            partition_of: partition
                .then(|| disk.file_name().map(|n| n.to_string_lossy().into_owned()))
                .flatten(),
            backing_file: word(&sys.join("loop/backing_file")).map(PathBuf::from),
            path,
            name,
            major,
            minor,
        })
    }

    /// Whether `word` names exactly this device: a path to it, a by-id name, or its serial number.
    pub fn is_named_by(&self, word: &str) -> bool {
        if word.is_empty() {
            return false;
        }
        if word == self.serial && self.partition_of.is_none() {
            return true;
        }
        let bare = word.strip_prefix("/dev/disk/by-id/").unwrap_or(word);
        if self.by_id.iter().any(|n| n == bare) {
            return true;
        }
        // A relative name such as `sda` is a path only if it leads to the device node itself.
        word.contains('/')
            && fs::metadata(word).is_ok_and(|m| {
                m.file_type().is_block_device()
                    && (major(m.rdev()), minor(m.rdev())) == (self.major, self.minor)
            })
    }

    /// For `Environment::devices`.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let mut map = BTreeMap::new();
        let mut put = |k: &str, v: String| {
            if !v.is_empty() {
                map.insert(k.to_owned(), v);
            }
        };
        put("path", self.path.display().to_string());
        put("name", self.name.clone());
        put("size_bytes", self.size_bytes.to_string());
        put("logical_block_bytes", self.logical_block_bytes.to_string());
        put("physical_block_bytes", self.physical_block_bytes.to_string());
        put("model", self.model.clone());
        put("serial", self.serial.clone());
        put("by_id", self.by_id.join(" "));
        let volume = crate::identity::volume_of(&self.name, &self.model, &self.serial, &self.by_id);
        put("volume", volume.unwrap_or_default());
        put("scheduler", self.scheduler.clone());
        put("rotational", self.rotational.to_string());
        put("partition_of", self.partition_of.clone().unwrap_or_default());
        put("backing_file", self.backing_file.as_ref().map(|p| p.display().to_string()).unwrap_or_default());
        map
    }
}

/// What lies under a file: its file system, and the device of that where there is one.
pub fn describe_file(path: &Path) -> BTreeMap<String, String> {
    let mut map = BTreeMap::from([("path".to_owned(), path.display().to_string())]);
    let existing = path.ancestors().find(|p| p.exists()).map_or_else(|| PathBuf::from("."), Path::to_owned);
    let Ok(meta) = fs::metadata(&existing) else { return map };
    let (maj, min) = (major(meta.dev()), minor(meta.dev()));
    if let Some(m) = super::mounts::mounts().into_iter().find(|m| (m.major, m.minor) == (maj, min)) {
        map.insert("file_system".into(), m.file_system.clone());
        map.insert("mount_point".into(), m.mount_point.clone());
        map.insert("mount_source".into(), m.source.clone());
        // btrfs and overlays have device numbers of their own; the source may still be a device.
        let device = DeviceInfo::by_number(maj, min, PathBuf::from(&m.source))
            .or_else(|_| DeviceInfo::of(Path::new(&m.source)));
        if let Ok(d) = device {
            for (k, v) in d.to_map() {
                map.insert(if k == "path" { "device".into() } else { format!("device_{k}") }, v);
            }
        }
    }
    map
}

/// `Environment::devices` entry of a target: of the device itself, or of what lies under the file.
pub fn describe(path: &Path) -> BTreeMap<String, String> {
    DeviceInfo::of(path).map_or_else(|_| describe_file(path), |d| d.to_map())
}

/// Kernel name of the block device whose counters in /proc/diskstats show the I/O of `path`.
pub fn diskstats_name(path: &Path) -> Option<String> {
    if let Ok(d) = DeviceInfo::of(path) {
        return Some(d.name);
    }
    let map = describe_file(path);
    map.get("device_name").cloned()
}

/// Size of a block device in bytes.
pub fn size_bytes(path: &Path) -> Option<u64> {
    DeviceInfo::of(path).ok().map(|d| d.size_bytes)
}

/// What firmware and udev say is text from outside.
fn said(text: &str) -> Option<String> {
    let text = text.trim_matches(|c: char| c.is_control() || c.is_whitespace());
    (!text.is_empty()).then(|| clean(text).into_owned())
}

fn word(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    said(&String::from_utf8_lossy(&bytes))
}

/// The scheduler in brackets: `[none] mq-deadline`.
fn chosen(line: &str) -> String {
    line.split_whitespace().find_map(|w| w.strip_prefix('[')?.strip_suffix(']')).unwrap_or(line).to_owned()
}

/// NVMe and virtio say it in sysfs, SCSI in its page 0x80 (four bytes of header), and udev keeps it for the rest.
fn serial(disk: &Path) -> Option<String> {
    let page80 = || {
        let bytes = fs::read(disk.join("device/vpd_pg80")).ok()?;
        said(&String::from_utf8_lossy(bytes.get(4..)?))
    };
    let udev = || {
        let number = word(&disk.join("dev"))?;
        let data = fs::read_to_string(format!("/run/udev/data/b{number}")).ok()?;
        let find = |key: &str| data.lines().find_map(|l| l.strip_prefix(key)).and_then(said);
        find("E:ID_SERIAL_SHORT=").or_else(|| find("E:ID_SERIAL="))
    };
    word(&disk.join("serial")).or_else(|| word(&disk.join("device/serial"))).or_else(page80).or_else(udev)
}

fn by_id(maj: u32, min: u32) -> Vec<String> {
    let Ok(entries) = fs::read_dir("/dev/disk/by-id") else { return Vec::new() };
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|e| {
            fs::metadata(e.path()).is_ok_and(|m| {
                m.file_type().is_block_device() && (major(m.rdev()), minor(m.rdev())) == (maj, min)
            })
        })
        .map(|e| clean(&e.file_name().to_string_lossy()).into_owned())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_firmware_says_is_clean_where_it_comes_in() {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path();
        assert_eq!(serial(disk), None);
        fs::create_dir(disk.join("device")).unwrap();
        fs::write(disk.join("device/vpd_pg80"), b"\0\x80\0\x0e  S4\x1b[31mEWNX\x00\x00 ").unwrap();
        assert_eq!(serial(disk).as_deref(), Some("S4\\u{1b}[31mEWNX"));
        fs::write(disk.join("serial"), "AB\u{202e}C\n".as_bytes()).unwrap();
        assert_eq!(serial(disk).as_deref(), Some("AB\\u{202e}C"));
    }

    #[test]
    fn the_scheduler_in_brackets_is_the_one_in_use() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }

    #[test]
    fn a_device_is_named_exactly_or_not_at_all() {
        let d = DeviceInfo {
            serial: "S4EWNX0N".into(),
            by_id: vec!["nvme-ACME_X_S4EWNX0N".into()],
            name: "nvme0n1".into(),
            ..DeviceInfo::default()
        };
        assert!(d.is_named_by("S4EWNX0N"));
        assert!(d.is_named_by("nvme-ACME_X_S4EWNX0N"));
        assert!(d.is_named_by("/dev/disk/by-id/nvme-ACME_X_S4EWNX0N"));
        for wrong in ["", "S4EWNX0", "nvme0n1", "nvme-ACME", "/dev/null", "s4ewnx0n"] {
            assert!(!d.is_named_by(wrong), "{wrong}");
        }
        let partition = DeviceInfo { partition_of: Some("nvme0n1".into()), ..d };
        assert!(!partition.is_named_by("S4EWNX0N"), "a serial names the disk, not its partitions");
    }

    #[test]
    fn a_file_tells_its_file_system() {
        let map = describe(&std::env::temp_dir().join("not-there-yet"));
        assert!(map.contains_key("file_system"), "{map:?}");
    }
}
