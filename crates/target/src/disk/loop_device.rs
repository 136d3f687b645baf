//! A loop device over a file, which goes by itself when its last user goes.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const BLKRASET: libc::c_ulong = 0x1262;
/// Sectors that are read ahead of a stream: as much as the disk takes in one request, so that a stream is bound by its bytes.
const READ_AHEAD: libc::c_ulong = 2048;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;
/// Others may take the free number first.
const ATTEMPTS: usize = 50;

/// `struct loop_info64` of linux/loop.h.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// A loop device; it lasts for as long as it is open or mounted.
pub(super) struct LoopDevice {
    pub path: PathBuf,
    _open: File,
}

/// Puts a free device over the file. `is_direct`: past the page cache of the file.
pub(super) fn attach(file: &File, is_direct: bool) -> io::Result<LoopDevice> {
    let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
    let mut last = io::Error::other("no loop device is free");
    for _ in 0..ATTEMPTS {
        // SAFETY: this request takes no argument.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let device = OpenOptions::new().read(true).write(true).open(&path)?;
        // SAFETY: plain integers, for which zero is a value.
        let mut config: LoopConfig = unsafe { zeroed() };
        config.fd = file.as_raw_fd() as u32;
        config.block_size = 4096;
        config.info.flags = LO_FLAGS_AUTOCLEAR | if is_direct { LO_FLAGS_DIRECT_IO } else { 0 };
        // SAFETY: the kernel reads one such structure, which lives until the call returns.
        if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &config) } == 0 {
            // SAFETY: this request takes a number. Without it, streams are read in smaller requests.
            let _ = unsafe { libc::ioctl(device.as_raw_fd(), BLKRASET as _, READ_AHEAD) };
            return Ok(LoopDevice { path, _open: device });
        }
        last = io::Error::last_os_error();
        if last.raw_os_error() != Some(libc::EBUSY) {
            break;
        }
    }
    Err(last)
}
