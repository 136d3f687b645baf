//! Drives of the nodes: directories, or mounted disks with a limit that holds what is written back later, too.

use std::fs::{self, File};
use std::io::{self, Write as _};
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

/// What stands in the place of a drive that is down. By it the file is known as ours.
const DOWN: &str = "a drive that is down\n";

/// The directory of a drive becomes a file: whoever looks for a drive there finds none, and makes none.
fn take_away(path: &Path) -> io::Result<()> {
    if !path.is_dir() {
        return Ok(());
    }
    let away = path.with_extension("away");
    if away.symlink_metadata().is_ok() {
        return Err(io::Error::other(format!(
            "{} is in the way, and was not put there as a drive",
            away.display()
        )));
    }
    fs::rename(path, &away)?;
    let stands = File::create_new(path).and_then(|mut f| f.write_all(DOWN.as_bytes()));
    // A server that was faster made a directory of its own there: then the drive is not down.
    stands.map_err(|e| {
        io::Error::new(e.kind(), format!("{}: {e}; its data are in {}", path.display(), away.display()))
    })
}

fn bring_back(path: &Path) -> io::Result<()> {
    let away = path.with_extension("away");
    if !away.is_dir() {
        return Ok(());
    }
    match fs::read(path) {
        Ok(text) if text == DOWN.as_bytes() => fs::remove_file(path)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        // A part of our text is of a drive that was not taken away to the end; whatever else is there is not ours.
        Ok(text) if DOWN.as_bytes().starts_with(&text) => fs::remove_file(path)?,
        Ok(_) | Err(_) => {
            return Err(io::Error::other(format!(
                "{} is in the way, and was not put there for a drive that is down: move it, and call this again",
                path.display()
            )));
        }
    }
    fs::rename(away, path)
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
    fn what_others_put_in_its_place_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let away = dir.path().join("data.away");
        fs::create_dir(&path).unwrap();
        fs::create_dir(&away).unwrap();
        assert!(take_away(&path).unwrap_err().to_string().contains("data.away is in the way"));
        assert!(path.is_dir() && away.is_dir());
        fs::remove_dir(&away).unwrap();
        take_away(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        let e = bring_back(&path).unwrap_err().to_string();
        assert!(e.contains("is in the way") && fs::read_to_string(&path).unwrap() == "mine", "{e}");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(bring_back(&path).is_err() && away.is_dir());
        fs::remove_dir(&path).unwrap();
        bring_back(&path).unwrap();
        assert!(path.is_dir() && !away.exists());
    }

    #[test]
    fn reads_and_writes_have_limits_of_their_own() {
        let set = limits(BytesRate(5e6), BytesRate(1e7)).unwrap();
        let rates: Vec<u64> = set.limits.iter().map(|l| l.rate_per_s.0 / 1_000_000).collect();
        assert_eq!(rates, [5_000_000, 10_000_000]);
        assert!(limits(BytesRate(1e30), BytesRate(1e6)).is_err());
    }
}
