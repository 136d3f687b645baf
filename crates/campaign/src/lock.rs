//! One process at a time works on a campaign. The lock is the kernel's, and ends with whoever has it. `kill -9` returns before the process is
//! gone: its threads end one by one, and its descriptors are closed with the last of them (10 to 23 ms later on two busy cores; nobody else has
//! them, each is closed where a program is begun). Until then its lock is still there, so in it stands who has it, and one who is going is waited for.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_store::process::ProcessNote;

use crate::place::own;

/// So long a lock is waited for whose holder's first thread is gone: others of it may wait for a device.
const GOING: Duration = Duration::from_secs(10);
/// So long any other: who was just killed looks alive for a moment.
const A_MOMENT: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A note is short.
const LONGEST: u64 = 4096;

/// Held as long as this is.
#[derive(Debug)]
pub(crate) struct CampaignLock {
    _file: File,
}

impl CampaignLock {
    /// `None`: another process has it, and lives.
    pub(crate) fn take(path: &Path) -> io::Result<Option<Self>> {
        let began = Instant::now();
        let mut file = own().read(true).truncate(false).open(path)?;
        // Under another name it is somebody's, who would find a note of ours in it.
        if file.metadata()?.nlink() != 1 {
            return Err(io::Error::other("it has another name elsewhere"));
        }
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(fs::TryLockError::Error(e)) => return Err(e),
                Err(fs::TryLockError::WouldBlock) => {
                    let is_going = holder(&mut file).is_some_and(|note| !note.lives());
                    let patience = if is_going { GOING } else { A_MOMENT };
                    if began.elapsed() >= patience {
                        return Ok(None);
                    }
                    std::thread::sleep(LOOK_EVERY);
                }
            }
        }
        let note = serde_json::to_vec(&ProcessNote::own()).expect("plain data is always JSON");
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&note)?;
        Ok(Some(Self { _file: file }))
    }
}

/// `None`: it is being written just now, or was made before holders said who they are.
fn holder(file: &mut File) -> Option<ProcessNote> {
    let mut text = Vec::new();
    file.rewind().ok()?;
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first thread is gone, and the lock is there: as when a killed process is taken apart.
    fn of_one_who_is_gone(path: &Path) {
        let gone = ProcessNote { start_ticks: ProcessNote::own().start_ticks + 1, ..ProcessNote::own() };
        fs::write(path, serde_json::to_vec(&gone).unwrap()).unwrap();
    }

    #[test]
    fn a_file_of_somebody_under_its_name_keeps_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let (theirs, path) = (dir.path().join("theirs"), dir.path().join("lock"));
        fs::write(&theirs, "precious").unwrap();
        fs::hard_link(&theirs, &path).unwrap();
        assert!(CampaignLock::take(&path).unwrap_err().to_string().contains("another name"));
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "precious");
    }

    #[test]
    fn who_lives_keeps_it_and_who_is_gone_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = CampaignLock::take(&path).unwrap().unwrap();
        let began = Instant::now();
        assert!(CampaignLock::take(&path).unwrap().is_none());
        assert!((A_MOMENT..GOING).contains(&began.elapsed()));
        of_one_who_is_gone(&path);
        let at = path.clone();
        let second = std::thread::spawn(move || (CampaignLock::take(&at).unwrap().is_some(), Instant::now()));
        // Longer than anybody who lives is waited for.
        std::thread::park_timeout(A_MOMENT + A_MOMENT / 2);
        let freed = Instant::now();
        drop(held);
        let (has_it, when) = second.join().unwrap();
        assert!(has_it && when >= freed);
    }

    /// A process that is killed, and whose lock is asked for at once.
    #[test]
    fn a_killed_process_keeps_nobody_from_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        for _ in 0..5 {
            let file = own().read(true).truncate(false).open(&path).unwrap();
            file.try_lock().unwrap();
            // The lock is its child's, too, as if it had been its own.
            let mut holder = std::process::Command::new("sleep").arg("1000").stdin(file).spawn().unwrap();
            fs::write(&path, serde_json::to_vec(&ProcessNote::of(holder.id())).unwrap()).unwrap();
            holder.kill().unwrap();
            assert!(CampaignLock::take(&path).unwrap().is_some());
            holder.wait().unwrap();
        }
    }
}
