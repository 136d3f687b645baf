//! What is done with a file, device or directory that is held open: by its handle, not by its path.

use std::fs::File;
use std::time::Duration;

use rustix::fs::FlockOperation;

use super::handle::path_of;
use super::judge::TargetRefusal;
use super::marker::{self, Maker};
use super::place::PlaceInDir;

/// Who made a file that is open.
pub fn maker(file: &File) -> Maker {
    match path_of(file).and_then(|p| PlaceInDir::of(&p).ok().flatten()) {
        Some(place) => marker::maker(file, &place),
        None => Maker::Unknown,
    }
}

/// How long a lock may be taken by something that looks at each new device for a moment (udev).
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Locks a file, device or directory against other runs, for as long as it stays open. Two runs on one thing measure each
/// other, and neither could tell.
pub fn lock(file: &File, shown: &str) -> Result<(), TargetRefusal> {
    let end = std::time::Instant::now() + PATIENCE;
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if std::time::Instant::now() < end => {
                std::thread::sleep(LOOK_AGAIN);
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(TargetRefusal::new(
                    shown,
                    "another run is using it (or another program has locked it)",
                    "Wait until it ends (plimsoll runs list, fuser -v); to measure several workloads together, put \
                     them into one plan",
                ));
            }
            // Some network file systems have no locks.
            _ => return Ok(()),
        }
    }
}

/// The same without waiting, for whoever asks again: whether it is locked by this handle now.
pub fn is_locked_now(file: &File) -> bool {
    !matches!(
        rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive),
        Err(rustix::io::Errno::WOULDBLOCK)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let open = || File::open(dir.path()).unwrap();
        let first = open();
        lock(&first, "d").unwrap();
        assert!(lock(&open(), "d").unwrap_err().problem.contains("another run"));
        drop(first);
        lock(&open(), "d").unwrap();
    }
}
