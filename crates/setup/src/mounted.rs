//! File systems that a run mounted in directories that it made.

use std::path::Path;

use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use crate::safety::mounts::mounts;
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

/// Unmounts all that is mounted below a directory of ours.
pub(crate) fn below(dir: &Path) {
    let mut places: Vec<_> = mounts().into_iter().map(|m| m.mount_point).collect();
    places.retain(|p| Path::new(p).starts_with(dir) && Path::new(p) != dir);
    // What is mounted in what is mounted comes first.
    places.sort_by_key(|p| std::cmp::Reverse(p.len()));
    for place in places {
        // What stays keeps its directory from being removed.
        let _ = unmount(place, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
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
}
