//! File systems that a run mounted in directories that it made.

use std::path::Path;

use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use crate::safety::mounts::{Mount, mounts};
use crate::safety::trees;

/// Unmounts what is mounted there, in a directory that the run with this mark made. Nothing there is fine.
pub fn remove(path: &Path, run: &str) -> Result<(), String> {
    let Some(above) = path.parent().filter(|d| d.is_absolute()) else {
        return Err("it is in no directory".into());
    };
    if !above.exists() {
        return Ok(());
    }
    let mut places = path.ancestors().skip(1).take(2);
    if !places.any(|dir| trees::is_made(dir, run)) {
        return Err("its directory does not carry this run's mark".into());
    }
    // Whoever still looks into it keeps it for as long; for everybody else it is gone.
    match unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(e) => Err(e.to_string()),
    }
}

/// Unmounts what servers of ours mounted below a directory of ours. What else is mounted there is somebody's, and keeps its
/// directory from being removed.
pub(crate) fn below(dir: &Path) {
    let mut places: Vec<_> = mounts().into_iter().filter(is_of_a_server).map(|m| m.mount_point).collect();
    places.retain(|p| Path::new(p).starts_with(dir) && Path::new(p) != dir);
    // What is mounted in what is mounted comes first.
    places.sort_by_key(|p| std::cmp::Reverse(p.len()));
    for place in places {
        // What stays keeps its directory from being removed.
        let _ = unmount(place, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
    }
}

/// What `target disk` mounts (FUSE by its name, ext4 on a loop device whose file is the one inside that), and the export of a
/// QEMU storage daemon.
fn is_of_a_server(m: &Mount) -> bool {
    match (m.file_system.as_str(), m.source.as_str()) {
        ("fuse", "plimsoll-disk" | "/dev/fuse") => true,
        ("ext4", source) => {
            let number = source.strip_prefix("/dev/loop").filter(|n| n.parse::<u32>().is_ok());
            let behind = number.map(|n| format!("/sys/block/loop{n}/loop/backing_file"));
            behind.and_then(|f| std::fs::read_to_string(f).ok()).is_some_and(|f| f.trim_end() == "/disk")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_unmounted_in_a_directory_of_others() {
        let dir = tempfile::tempdir().unwrap();
        let run = "r.0123456789abcdef0123456789abcdef";
        assert!(remove(&dir.path().join("mnt"), run).unwrap_err().contains("mark"));
        assert_eq!(remove(&dir.path().join("gone/mnt"), run), Ok(()));
        trees::mark_made(dir.path(), run).unwrap();
        assert_eq!(remove(&dir.path().join("mnt"), run), Ok(()), "nothing is there");
        assert!(remove(Path::new("mnt"), run).unwrap_err().contains("no directory"));
    }

    /// A bind mount of somebody's below a directory of ours was taken away with it once.
    #[test]
    fn what_others_mounted_below_stays() {
        let dir = tempfile::tempdir().unwrap();
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let (ours, run) = (dir.path().join("ours"), "r.0123456789abcdef0123456789abcdef");
        let place = ours.join("theirs");
        std::fs::create_dir_all(&place).unwrap();
        trees::mark_made(&ours, run).unwrap();
        rustix::mount::mount("theirs", &place, "tmpfs", rustix::mount::MountFlags::empty(), None).unwrap();
        std::fs::write(place.join("precious"), b"p").unwrap();
        let told = trees::remove_mounted(&ours, run);
        let kept = std::fs::read(place.join("precious"));
        // Before anything can fail: a mount outlives the test.
        let is_there = unmount(&place, UnmountFlags::empty()).is_ok();
        assert!(is_there && kept.is_ok_and(|k| k == b"p"));
        assert!(told.is_err_and(|e| e.contains("theirs")));
    }
}
