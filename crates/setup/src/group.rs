//! Control groups that a run makes for its process: known by the run's mark in their names, and removed when they are empty.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the kernel may take to see that the last thread has left.
const EMPTY: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// File systems of control groups, version 1 and 2.
const KINDS: [u64; 2] = [0x0027_e0eb, 0x6367_7270];

/// Of a CPU quota, as the kernel has it unless told otherwise.
const PERIOD_US: u64 = 100_000;

/// File and value of a CPU quota.
pub fn cpu_setting(cores: f64, is_v2: bool) -> (&'static str, String) {
    let quota = ((cores * PERIOD_US as f64) as u64).max(1000);
    match is_v2 {
        true => ("cpu.max", format!("{quota} {PERIOD_US}")),
        false => ("cpu.cfs_quota_us", quota.to_string()),
    }
}

/// Whether groups made in this one (version 2) have these controllers.
pub fn delegates(directory: &Path, names: &[&str]) -> bool {
    let has = fs::read_to_string(directory.join("cgroup.subtree_control")).unwrap_or_default();
    names.iter().all(|n| has.split_ascii_whitespace().any(|h| h == *n))
}

/// Where the group of the run with this mark is, below another one.
pub fn path_in(above: &Path, run: &str) -> PathBuf {
    above.join(name_of(run))
}

/// The mark holds 128 random bits: who has it in a name has it of the run.
fn name_of(run: &str) -> String {
    format!("plimsoll-{run}")
}

/// Removes the group of the run with this mark. One that is not there is fine; any other stays, and the reason is given.
pub fn remove(path: &Path, run: &str) -> Result<(), String> {
    if path.file_name().is_none_or(|n| n.to_str() != Some(&name_of(run))) {
        return Err("it does not carry this run's mark".into());
    }
    match rustix::fs::statfs(path) {
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        Err(e) => return Err(e.to_string()),
        Ok(fs) if !KINDS.contains(&(fs.f_type as u64)) => return Err("it is no control group".into()),
        Ok(_) => {}
    }
    let began = Instant::now();
    loop {
        // Groups in it are its own, and hold nothing but processes.
        let below = fs::read_dir(path).into_iter().flatten().flatten();
        for entry in below.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
            // One that is not empty keeps this one from being removed, and that is told.
            let _ = fs::remove_dir(entry.path());
        }
        match fs::remove_dir(path) {
            Ok(()) => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) if began.elapsed() > EMPTY => return Err(e.to_string()),
            Err(_) => std::thread::sleep(LOOK_EVERY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_control_group_of_this_run_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let run = "r.0123456789abcdef0123456789abcdef";
        let other = path_in(dir.path(), "r.ffffffffffffffffffffffffffffffff");
        fs::create_dir(&other).unwrap();
        assert!(remove(&other, run).unwrap_err().contains("mark"));
        let own = path_in(dir.path(), run);
        assert_eq!(remove(&own, run), Ok(()), "it is gone already");
        fs::create_dir(&own).unwrap();
        assert!(remove(&own, run).unwrap_err().contains("no control group"));
        assert!(own.exists() && other.exists());
    }
}
