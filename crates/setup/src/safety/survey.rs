//! What the targets of a plan are on this machine, in words that two machines can compare: whether they mean the same device, image or
//! directory, and whether one of them uses what another is to write to. Nothing is opened for writing, locked or made.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use plimsoll_model::plan::{Plan, TargetSpec};
use rustix::fs::{major, minor};
use serde::{Deserialize, Serialize};

use super::device::DeviceInfo;
use super::{facts, mounts};

/// File systems that several machines have at once: what lies on them is named by where they come from.
const ON_MANY: [&str; 16] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "ceph",
    "lustre",
    "gpfs",
    "beegfs",
    "glusterfs",
    "fuse.glusterfs",
    "9p",
    "virtiofs",
    "afs",
    "orangefs",
    "pvfs2",
    "wekafs",
];
/// Those that several machines have on one device.
const ON_ONE_DEVICE: [&str; 2] = ["gfs2", "ocfs2"];
/// What QEMU calls a disk that was given no serial number: each of its machines has one.
const NAMELESS: &str = "QM000";

/// What one machine sees.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Survey {
    /// What the plan names.
    pub things: Vec<SeenThing>,
    /// Devices that this machine uses (mounted, swap, part of something), whoever writes to them: identities, and what for. Looked for
    /// only where the plan writes to devices.
    pub in_use: Vec<(Vec<String>, String)>,
}

/// A device, file or directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenThing {
    /// Name of the target in the plan.
    pub target: String,
    /// As the plan names it.
    pub path: String,
    /// Which kind.
    pub kind: SeenKind,
    /// Any of them says which it is: two machines that have one in common mean the same thing.
    pub identities: Vec<String>,
    /// A directory or file that is there by now.
    pub exists: bool,
}

/// What a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeenKind {
    /// A block device.
    Device,
    /// A regular file, or one that is to be made.
    File,
    /// Where a set of files is to lie.
    Directory,
}

impl SeenKind {
    /// For a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::File => "file",
            Self::Directory => "directory",
        }
    }
}

/// Looks at what a plan names. What is only read, beside others who use it, is everybody's.
pub fn survey(plan: &Plan) -> Survey {
    let boot = boot_id();
    let mut all = Survey::default();
    let mut devices = false;
    for (name, spec) in &plan.targets {
        match spec {
            TargetSpec::Block(b) if !b.existing => {
                for path in std::iter::once(&b.path).chain(&b.also) {
                    let seen = thing(name, path, &boot);
                    devices |= seen.kind == SeenKind::Device;
                    all.things.push(seen);
                }
            }
            TargetSpec::Files(f) => {
                let seen = thing(name, &f.directory, &boot);
                all.things.push(SeenThing { kind: SeenKind::Directory, ..seen });
            }
            _ => {}
        }
    }
    if devices {
        all.in_use = in_use(&boot);
    }
    all
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn thing(target: &str, path: &str, boot: &str) -> SeenThing {
    let at = Path::new(path);
    let seen = |kind, identities, exists| SeenThing {
        target: target.to_owned(),
        path: path.to_owned(),
        kind,
        identities,
        exists,
    };
    match fs::metadata(at) {
        Ok(m) if m.file_type().is_block_device() => {
            let info = DeviceInfo::of(at).unwrap_or_default();
            seen(SeenKind::Device, of_device(&info, boot), true)
        }
        Ok(m) => {
            let kind = if m.is_dir() { SeenKind::Directory } else { SeenKind::File };
            seen(kind, vec![of_inode(&m, boot)], true)
        }
        Err(_) => seen(SeenKind::File, of_missing(at, boot).into_iter().collect(), false),
    }
}

/// What is not there yet: the directory that it is to be in, and its name.
fn of_missing(path: &Path, boot: &str) -> Option<String> {
    let absolute = std::path::absolute(path).ok()?;
    let there = absolute.ancestors().find(|p| p.exists())?;
    let rest = absolute.strip_prefix(there).ok()?;
    let inode = of_inode(&fs::metadata(there).ok()?, boot);
    Some(format!("{inode}/{}", rest.display()))
}

/// A file or directory: its file system, and its number there.
fn of_inode(m: &fs::Metadata, boot: &str) -> String {
    format!("{} inode {}", file_system(m.dev(), boot), m.ino())
}

/// A file system: by where it comes from, if several machines can have it; otherwise it is this machine's.
fn file_system(dev: u64, boot: &str) -> String {
    let number = (major(dev), minor(dev));
    let own = || format!("{boot} {}:{}", number.0, number.1);
    let Some(m) = mounts::mounts().into_iter().find(|m| (m.major, m.minor) == number) else { return own() };
    if ON_MANY.contains(&m.file_system.as_str()) {
        return format!("{} {}", m.file_system, m.source);
    }
    if ON_ONE_DEVICE.contains(&m.file_system.as_str())
        && let Ok(device) = DeviceInfo::of(Path::new(&m.source))
        && let Some(first) = of_device(&device, boot).into_iter().next()
    {
        return first;
    }
    own()
}

/// A device, by what it says of itself (WWN, serial number), and by its number on this machine. A loop device is the file behind it.
fn of_device(d: &DeviceInfo, boot: &str) -> Vec<String> {
    let mut all = Vec::new();
    let part = part_of(d);
    let mut put = |identity: String| all.push(format!("{identity}{part}"));
    for name in d.by_id.iter().filter(|n| n.starts_with("wwn-") || n.starts_with("nvme-eui.")) {
        put(name.split("-part").next().unwrap_or(name).to_owned());
    }
    if let Some(wwid) = wwid(d) {
        put(format!("wwid {wwid}"));
    }
    if !d.serial.is_empty() && !d.serial.starts_with(NAMELESS) {
        put(format!("serial {} {}", d.model, d.serial));
    }
    if let Some(m) = d.backing_file.as_ref().and_then(|f| fs::metadata(f).ok()) {
        all.push(of_inode(&m, boot));
    }
    all.push(format!("{boot} device {}:{}", d.major, d.minor));
    all
}

/// Partitions have what their disk says of itself, and a place on it.
fn part_of(d: &DeviceInfo) -> String {
    let sys = PathBuf::from(format!("/sys/dev/block/{}:{}", d.major, d.minor));
    match (&d.partition_of, fs::read_to_string(sys.join("start"))) {
        (Some(_), Ok(start)) => format!(" from sector {}", start.trim()),
        _ => String::new(),
    }
}

fn wwid(d: &DeviceInfo) -> Option<String> {
    let disk = d.partition_of.as_deref().unwrap_or(&d.name).replace('/', "!");
    let sys = Path::new("/sys/class/block").join(disk);
    let read = |at: &str| fs::read_to_string(sys.join(at)).ok();
    let text = read("wwid").or_else(|| read("device/wwid"))?;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // QEMU's says no more than its serial number.
    (!text.is_empty() && !text.contains(NAMELESS)).then_some(text)
}

/// All devices of this machine that are in use.
fn in_use(boot: &str) -> Vec<(Vec<String>, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/sys/class/block").into_iter().flatten().filter_map(Result::ok) {
        let Ok(number) = fs::read_to_string(entry.path().join("dev")) else { continue };
        let Some((maj, min)) = number.trim().split_once(':') else { continue };
        let (Ok(maj), Ok(min)) = (maj.parse(), min.parse()) else { continue };
        let path = Path::new("/dev").join(entry.file_name());
        let Ok(device) = DeviceInfo::by_number(maj, min, path) else { continue };
        let uses = facts::uses(&device);
        if let Some(first) = uses.first() {
            all.push((of_device(&device, boot), format!("/dev/{} {}", first.device, first.what)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(dir: &Path) -> Plan {
        Plan::from_toml(&format!(
            "version = 1\n[targets.t]\nkind = \"files\"\ndirectory = \"{}\"\nfile_size = \"1MiB\"\n[[stage]]\n[[stage.workload]]\n\
             name = \"w\"\nmix = {{ read = 1 }}\n",
            dir.display()
        ))
        .unwrap()
    }

    #[test]
    fn a_directory_is_the_same_by_whatever_name_and_before_it_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let of = |p: &Path| survey(&files(p)).things.remove(0);
        assert_eq!(of(&real).identities, of(&link).identities);
        assert!(of(&real).exists && !of(&real.join("x")).exists);
        assert_eq!(of(&real.join("x/y")).identities, of(&link.join("x/y")).identities);
        assert_ne!(of(&real.join("x")).identities, of(&real.join("y")).identities);
        assert_eq!(of(&real.join("x")).kind, SeenKind::Directory);
    }

    #[test]
    fn what_is_mounted_here_is_in_use() {
        let boot = boot_id();
        let mounted = mounts::mounts().into_iter().find_map(|m| DeviceInfo::of(Path::new(&m.source)).ok());
        if let Some(device) = mounted {
            let ids = of_device(&device, &boot);
            assert!(in_use(&boot).iter().any(|(used, _)| used.iter().any(|i| ids.contains(i))), "{ids:?}");
        }
    }
}
