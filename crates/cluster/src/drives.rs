//! Drives of the nodes: directories, or mounted disks with a limit that holds what is written back later, too.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_model::units::BytesRate;
use plimsoll_setup::SetupError;
use plimsoll_store::{Journal, Thing};
use plimsoll_target::disk::{DiskOptions, MountedDisk, start};
use plimsoll_target::limiter::LimitSet;

use crate::fault::Becomes;
use crate::spec::ClusterSpec;

/// One of them, numbered from 1 over all nodes.
#[derive(Debug)]
pub struct BoxDrive {
    /// Where its node has it.
    pub path: PathBuf,
    /// Where it has a limit.
    disk: Option<(MountedDisk, LimitSet)>,
}

impl BoxDrive {
    /// Makes it in the cluster's directory.
    pub fn make(
        spec: &ClusterSpec,
        dir: &Path,
        (node, drive): (u32, u32),
        journal: &mut Journal,
    ) -> Result<Self, SetupError> {
        let place = dir.join(format!("n{node}-d{drive}"));
        let Some(limit) = spec.made.drive_limit else {
            let path = place.join("data");
            fs::create_dir_all(&path).map_err(|e| {
                SetupError::input(
                    format!("{} cannot be made: {e}", path.display()),
                    "Set TMPDIR to a directory on a disk",
                )
            })?;
            return Ok(Self { path, disk: None });
        };
        let limits = limits(limit, spec.made.drive_read_limit.unwrap_or(limit))?;
        journal.creating(Thing::Mount { path: place.join("mnt") })?;
        let options = DiskOptions {
            limits: limits.clone(),
            credit_s: None,
            data: place,
            size_bytes: spec.made.drive_size.0 / 4096 * 4096,
            is_cached: false,
        };
        let disk = start(&options).map_err(|e| {
            SetupError::input(
                format!("drive {drive} of node {node}: {e}"),
                "Limited drives need FUSE, loop devices and ext4; leave --drive-limit out, or set TMPDIR to a larger disk",
            )
        })?;
        Ok(Self { path: disk.path().to_owned(), disk: Some((disk, limits)) })
    }

    /// The block device that is mounted, where there is one.
    pub fn device(&self) -> Option<&Path> {
        self.disk.as_ref().map(|(disk, _)| disk.device())
    }

    /// What becomes of it.
    pub fn fault(&self, becomes: Becomes<BytesRate>) -> Result<(), String> {
        match (&self.disk, becomes) {
            (Some((disk, good)), Becomes::Good) => {
                disk.limit(good);
                disk.fail(false);
            }
            (Some((disk, _)), Becomes::Down) => disk.fail(true),
            (Some((disk, _)), Becomes::Rate(rate)) => {
                disk.limit(&limits(rate, rate).map_err(|e| e.to_string())?);
                disk.fail(false);
            }
            (None, Becomes::Rate(_)) => {
                return Err("drives have no limit that could change: start the cluster with --drive-limit, for example --drive-limit 50MB/s".into());
            }
            (None, Becomes::Down) => take_away(&self.path).map_err(|e| e.to_string())?,
            (None, Becomes::Good) => bring_back(&self.path).map_err(|e| e.to_string())?,
        }
        Ok(())
    }
}

fn limits(writes: BytesRate, reads: BytesRate) -> Result<LimitSet, SetupError> {
    let one = |way: &str, rate: BytesRate| {
        format!("[[limit]]\nunit = \"bytes\"\nrate_per_s = {:.0}\ndirections = [\"{way}\"]\n", rate.0)
    };
    let text = format!("name = \"drive\"\nkind = \"block\"\n{}{}", one("in", writes), one("out", reads));
    LimitSet::parse(&text, "--drive-limit")
        .map_err(|e| SetupError::input(e.to_string(), "Write --drive-limit 50MB/s"))
}

/// The directory of a drive becomes a file: whoever looks for a drive there finds none, and makes none.
fn take_away(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        fs::rename(path, path.with_extension("away"))?;
        fs::write(path, "a drive that is down")?;
    }
    Ok(())
}

fn bring_back(path: &Path) -> std::io::Result<()> {
    let away = path.with_extension("away");
    if away.is_dir() {
        fs::remove_file(path)?;
        fs::rename(away, path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use plimsoll_model::plan::EmbeddedCluster;

    use super::*;

    #[test]
    fn a_directory_goes_and_comes_back_with_what_was_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&dir.path().join("journal")).unwrap();
        let spec = ClusterSpec { name: "box".into(), made: EmbeddedCluster::default() };
        let drive = BoxDrive::make(&spec, dir.path(), (1, 2), &mut journal).unwrap();
        assert!(drive.path.ends_with("n1-d2/data") && drive.device().is_none());
        fs::write(drive.path.join("shard"), "x").unwrap();
        for _ in 0..2 {
            drive.fault(Becomes::Down).unwrap();
            assert!(drive.path.is_file());
        }
        for _ in 0..2 {
            drive.fault(Becomes::Good).unwrap();
            assert_eq!(fs::read_to_string(drive.path.join("shard")).unwrap(), "x");
        }
        let e = drive.fault(Becomes::Rate(BytesRate(5e6))).unwrap_err();
        assert!(e.contains("--drive-limit"), "{e}");
    }

    #[test]
    fn reads_and_writes_have_limits_of_their_own() {
        let set = limits(BytesRate(5e6), BytesRate(1e7)).unwrap();
        let rates: Vec<u64> = set.limits.iter().map(|l| l.rate_per_s.0 / 1_000_000).collect();
        assert_eq!(rates, [5_000_000, 10_000_000]);
        assert!(limits(BytesRate(1e30), BytesRate(1e6)).is_err());
    }
}
