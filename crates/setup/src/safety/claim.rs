//! Gathers the facts about a device, asks the judge, and holds the device for as long as the run goes on.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::content::signatures;
use super::device::DeviceInfo;
use super::judge::{Request, TargetRefusal, judge};
use super::signature::Signature;
use super::{facts, handle, held};

/// Leave to use a block device. While it lives no other run uses the device, and where it is to be written to nobody can
/// mount or claim it.
#[derive(Debug)]
pub struct Permit {
    /// What was judged, as it was then.
    pub device: DeviceInfo,
    /// What is on it at present.
    pub signatures: Vec<Signature>,
    /// What was judged: open exclusively when the run writes.
    pub file: File,
    writes: bool,
}

impl Permit {
    /// Whether it was given for writing.
    pub fn may_write(&self) -> bool {
        self.writes
    }
}

/// Decides about a block device. With `writes` the device is claimed (O_EXCL) until the permit is dropped.
///
/// The path is looked up once; all that is judged, claimed and used afterwards is what was opened then.
pub fn permit(path: &Path, writes: bool, destroy_data: Option<&str>) -> Result<Permit, TargetRefusal> {
    let shown = path.display().to_string();
    let permit = judged(path, writes, destroy_data)?;
    let file = if writes { claim_device(&permit.file, &shown)? } else { permit.file };
    held::lock(&file, &shown)?;
    Ok(Permit { file, ..permit })
}

/// Leave to read a device that others use, without a lock: udev and whoever else locks it is not kept waiting.
pub fn permit_to_look(path: &Path) -> Result<Permit, TargetRefusal> {
    judged(path, false, None)
}

/// The same beside another agent of this run on this machine, which has claimed the device for all of them: judged by the same rules, and
/// not claimed once more.
pub fn permit_beside(path: &Path, writes: bool, destroy_data: Option<&str>) -> Result<Permit, TargetRefusal> {
    let shown = path.display().to_string();
    let permit = judged(path, writes, destroy_data)?;
    let file = if writes { open_device(&permit.file, &shown, 0)? } else { permit.file };
    Ok(Permit { file, ..permit })
}

fn judged(path: &Path, writes: bool, destroy_data: Option<&str>) -> Result<Permit, TargetRefusal> {
    let shown = path.display().to_string();
    let unreadable = |e: std::io::Error| {
        let remedy = match rustix::process::geteuid().is_root() {
            true => {
                "Something refuses it even to root (a container without that device, or a lock on it): measure it from outside, or a file on it"
            }
            false => "Run as root, or as a member of the group that owns the device",
        };
        TargetRefusal::new(&shown, format!("cannot be read: {e}"), remedy)
    };
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    let device = DeviceInfo::of_file(&file)
        .map_err(|e| TargetRefusal::new(&shown, format!("cannot be read: {e}"), "Name a block device"))?;
    let signatures = signatures(&file, device.size_bytes).map_err(unreadable)?;
    let request = Request { path: &shown, writes, destroy_data };
    // Who only reads disturbs no use of it, and need not try whether there is one.
    let uses = if writes { facts::uses(&device) } else { Vec::new() };
    judge(request, &device, &uses, &signatures)?;
    Ok(Permit { device, signatures, file, writes })
}

/// What is held by somebody in the kernel (a mount, a RAID, device mapper) or by another program that asked
/// for it exclusively cannot be opened with O_EXCL.
pub(crate) fn claim_device(judged: &File, shown: &str) -> Result<File, TargetRefusal> {
    open_device(judged, shown, libc::O_EXCL)
}

fn open_device(judged: &File, shown: &str, how: i32) -> Result<File, TargetRefusal> {
    let flags = how | libc::O_CLOEXEC;
    let opened = File::options().read(true).write(true).custom_flags(flags).open(handle::through(judged));
    opened.map_err(|e| match e.raw_os_error() {
        Some(libc::EBUSY) => TargetRefusal::new(
            shown,
            "it is in use by another program or by the kernel",
            "Find out what uses it (lsblk, fuser -v), and release it or choose another",
        ),
        Some(libc::EACCES | libc::EPERM) => TargetRefusal::new(
            shown,
            format!("cannot be opened for writing: {e}"),
            "Run as root, or as a member of the group that owns the device",
        ),
        _ => TargetRefusal::new(
            shown,
            format!("cannot be opened for writing: {e}"),
            "Check the device (dmesg)",
        ),
    })
}
