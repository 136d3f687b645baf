//! Gathers the facts about a device, asks the judge, and holds the device for as long as the run goes on.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::content::signatures;
use super::device::DeviceInfo;
use super::judge::{Refusal, Request, judge};
use super::signature::Signature;
use super::{facts, handle, held};

/// Leave to use a block device. While it lives no other run uses the device, and where it is to be written to nobody can
/// mount or claim it.
#[derive(Debug)]
pub struct Permit {
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
pub fn permit(path: &Path, writes: bool, destroy_data: Option<&str>) -> Result<Permit, Refusal> {
    let shown = path.display().to_string();
    let unreadable = |e: std::io::Error| {
        Refusal::new(
            &shown,
            format!("cannot be read: {e}"),
            "Run as root, or as a member of the group that owns the device",
        )
    };
    let flags = libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    let device = DeviceInfo::of_file(&file)
        .map_err(|e| Refusal::new(&shown, format!("cannot be read: {e}"), "Name a block device"))?;
    let signatures = signatures(&file, device.size_bytes).map_err(unreadable)?;
    let request = Request { path: &shown, writes, destroy_data };
    judge(request, &device, &facts::uses(&device), &signatures)?;
    let file = if writes { claim_device(&file, &shown)? } else { file };
    held::lock(&file, &shown)?;
    Ok(Permit { device, signatures, file, writes })
}

/// What is held by somebody in the kernel (a mount, a RAID, device mapper) or by another program that asked
/// for it exclusively cannot be opened with O_EXCL.
fn claim_device(judged: &File, shown: &str) -> Result<File, Refusal> {
    let flags = libc::O_EXCL | libc::O_CLOEXEC;
    let opened = File::options().read(true).write(true).custom_flags(flags).open(handle::through(judged));
    opened.map_err(|e| match e.raw_os_error() {
        Some(libc::EBUSY) => Refusal::new(
            shown,
            "it is held by another program or by the kernel",
            "Find out who has it (lsblk, fuser -v), and free it or choose another",
        ),
        Some(libc::EACCES | libc::EPERM) => Refusal::new(
            shown,
            format!("cannot be opened for writing: {e}"),
            "Run as root, or as a member of the group that owns the device",
        ),
        _ => Refusal::new(shown, format!("cannot be opened for writing: {e}"), "Check the device (dmesg)"),
    })
}
