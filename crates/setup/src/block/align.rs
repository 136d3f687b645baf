//! Alignment that direct I/O needs: of offsets and lengths, from STATX_DIOALIGN, the device's logical block, or a trial.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use plimsoll_model::units::format_size;

use crate::error::SetupError;
use crate::safety::DeviceInfo;

/// What direct I/O on a path asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    /// Offsets and lengths are multiples of this. 0: direct I/O is refused.
    pub bytes: u64,
    /// Where the number comes from.
    pub source: &'static str,
}

/// Asks the kernel; tries where it does not say. The path must exist.
pub fn alignment_of(path: &Path) -> Result<Alignment, SetupError> {
    if let Some(bytes) = statx_dioalign(path) {
        return Ok(Alignment { bytes, source: "STATX_DIOALIGN" });
    }
    if let Ok(device) = DeviceInfo::of(path) {
        let bytes = u64::from(device.logical_block_bytes).max(512);
        return Ok(Alignment { bytes, source: "logical block size of the device" });
    }
    Ok(Alignment { bytes: by_trial(path), source: "trial" })
}

/// Refuses what the device cannot do directly: never a silent way through the page cache.
pub fn check_alignment(path: &Path, a: Alignment, values: &[(&str, u64)]) -> Result<(), SetupError> {
    let shown = path.display();
    if a.bytes == 0 {
        return Err(SetupError::input(
            format!("{shown}: the file system does not support direct I/O"),
            "Use --buffered (direct=0); the page cache is then part of what is measured",
        ));
    }
    for (what, value) in values {
        if value % a.bytes != 0 {
            return Err(SetupError::input(
                format!(
                    "{shown}: {what} of {} is not a multiple of {}, as direct I/O requires here ({})",
                    format_size(*value),
                    format_size(a.bytes),
                    a.source
                ),
                format!("Use multiples of {}, or --buffered (direct=0)", format_size(a.bytes)),
            ));
        }
    }
    Ok(())
}

/// `stx_dio_offset_align`; `None` where the kernel (before 6.1) or the file system does not say.
fn statx_dioalign(path: &Path) -> Option<u64> {
    use std::os::unix::ffi::OsStrExt;
    let c = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: an all-zero statx is a valid value of that plain struct.
    let mut stx: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the path is NUL-terminated and outlives the call, and `stx` is writable memory of the right type.
    let rc = unsafe { libc::statx(libc::AT_FDCWD, c.as_ptr(), 0, libc::STATX_DIOALIGN, &raw mut stx) };
    (rc == 0 && stx.stx_mask & libc::STATX_DIOALIGN != 0).then(|| u64::from(stx.stx_dio_offset_align))
}

/// The smallest aligned length whose direct read is not refused. 0: opening with O_DIRECT is refused.
fn by_trial(path: &Path) -> u64 {
    let Ok(file) = File::options().read(true).custom_flags(libc::O_DIRECT | libc::O_CLOEXEC).open(path)
    else {
        return 0;
    };
    let mut memory = vec![0u8; 16384];
    let start = memory.as_ptr().align_offset(4096);
    for bytes in [512usize, 1024, 2048, 4096] {
        // A read at an offset of one block: at offset 0 an empty file would say yes to anything.
        match file.read_at(&mut memory[start..start + bytes], bytes as u64) {
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {}
            _ => return bytes as u64,
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_name_what_is_wrong() {
        let p = Path::new("/dev/x");
        let four = Alignment { bytes: 4096, source: "STATX_DIOALIGN" };
        assert!(check_alignment(p, four, &[("a block", 8192), ("the offset", 0)]).is_ok());
        let e = check_alignment(p, four, &[("a block", 512)]).unwrap_err().to_string();
        assert!(e.contains("512") && e.contains("4KiB") && e.contains("--buffered"), "{e}");
        let none = Alignment { bytes: 0, source: "trial" };
        assert!(
            check_alignment(p, none, &[]).unwrap_err().to_string().contains("does not support direct I/O")
        );
    }

    #[test]
    fn a_file_of_this_machine_has_an_alignment_or_refuses() {
        let f = tempfile::NamedTempFile::new().unwrap();
        let a = alignment_of(f.path()).unwrap();
        assert!(a.bytes == 0 || a.bytes.is_power_of_two(), "{a:?}");
    }
}
