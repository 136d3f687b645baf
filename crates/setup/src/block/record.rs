//! The records of what was written last: one for each file or device that a verifying workload writes to, kept beside
//! the runs, so that a later run (after a crash, too) can tell a lost write from the content before it.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plimsoll_engine::written::{Identity, Written};
use plimsoll_model::units::format_size;
use plimsoll_model::{Finding, Level};

use super::names::first_object;
use crate::error::SetupError;
use crate::safety::{DeviceInfo, trees};

/// Directory of the records, in the one that holds the runs.
pub const DIRECTORY: &str = ".written";

/// Where the record of a path is: a directory of its own.
pub fn place_of(records: &Path, path: &Path) -> PathBuf {
    let canonical = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    records.join(format!("{:016x}", first_object(&canonical)))
}

fn file_in(place: &Path) -> PathBuf {
    place.join("generations")
}

/// A file is the same while its inode and birth time are; a device while its serial number (a loop device: its file) and
/// its size are. Device numbers are given to others when a device is taken away.
pub fn identity_of(path: &Path, seed: u64) -> io::Result<Identity> {
    let meta = fs::metadata(path)?;
    if let Ok(device) = DeviceInfo::of(path) {
        let behind = device.backing_file.as_deref().map(identity_of_file).transpose()?;
        let serial = behind.map_or_else(|| first_object(Path::new(&device.serial)), |[_, inode, _]| inode);
        return Ok(Identity { file: [meta.rdev(), serial, device.size_bytes], seed });
    }
    Ok(Identity { file: identity_of_file(path)?, seed })
}

fn identity_of_file(path: &Path) -> io::Result<[u64; 3]> {
    let meta = fs::metadata(path)?;
    let born = meta.created().ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    Ok([meta.dev(), meta.ino(), born.map_or(0, |t| t.as_nanos() as u64)])
}

/// The machine's present life, as two words.
fn boot() -> [u64; 2] {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let hex: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let word =
        |from: usize| hex.get(from..from + 16).and_then(|h| u64::from_str_radix(h, 16).ok()).unwrap_or(0);
    [word(0), word(16)]
}

/// The grain in which blocks of these sizes and places can be told apart; `None` below 512 bytes.
pub fn unit_of(values: impl IntoIterator<Item = u64>) -> Option<u64> {
    let common = values.into_iter().fold(0, |all, v| all | v).trailing_zeros();
    match common {
        12.. => Some(4096),
        9.. => Some(512),
        _ => None,
    }
}

/// Makes the place of a record; with the mark of a run, it goes with that run.
pub fn make(place: &Path, path: &Path, run: Option<&str>) -> Result<(), SetupError> {
    let make = || {
        place.parent().map_or(Ok(()), fs::create_dir_all)?;
        match run.map_or_else(|| fs::create_dir(place), |run| trees::make(place, 0o777, run)) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        contents(place).map(drop)
    };
    make().map_err(|e: io::Error| {
        SetupError::input(
            format!("{}: cannot record the writes in {}: {e}", path.display(), place.display()),
            "Store runs elsewhere (--runs-dir), or omit --verify",
        )
    })
}

/// The files in the place of a record. An error: one of them is not ours, and all stay as they are.
fn contents(place: &Path) -> io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        let known = path == file_in(place) && is_record(&path)? || path == place.join(trees::MARKER);
        if !known || !path.symlink_metadata()?.is_file() {
            return Err(io::Error::other(format!("{} is not one of its files", path.display())));
        }
        all.push(path);
    }
    Ok(all)
}

/// Whether a file begins as a record does, or was not begun yet.
fn is_record(path: &Path) -> io::Result<bool> {
    let mut head = [0u8; 7];
    let read = fs::File::open(path)?.read(&mut head)?;
    Ok(read == 0 || head == [0; 7] || head == *b"PLIMWRT")
}

/// Opens the record of a region that is about to be written, making it if there is none. `through` leads to the file or
/// device of that path.
pub fn begin(
    place: &Path,
    (path, through): (&Path, &Path),
    seed: u64,
    region: (u64, u64),
    unit: u64,
) -> Result<Written, SetupError> {
    let open = || Written::begin(&file_in(place), identity_of(through, seed)?, boot(), region, unit);
    open().map_err(|e: io::Error| {
        SetupError::input(
            format!(
                "{}: cannot record the writes in {} ({} are needed): {e}",
                path.display(),
                place.display(),
                format_size(Written::size_of(region.1, unit))
            ),
            "Store runs where there is space (--runs-dir), use a smaller --size, or omit --verify",
        )
    })
}

/// Opens the record of what was written before; `None` where there is none.
pub fn look(place: &Path, path: &Path, seed: u64) -> Result<Option<Written>, SetupError> {
    let open = || Written::look(&file_in(place), identity_of(path, seed)?, boot());
    open().map_err(|e| {
        SetupError::input(
            format!("{}: the record of the last writes cannot be read: {e}", place.display()),
            format!("Make it readable, or remove {} to verify without it", place.display()),
        )
    })
}

/// What is written without a record makes the old one wrong.
pub fn forget(place: &Path) -> Result<(), SetupError> {
    let forget = || {
        contents(place)?.iter().try_for_each(fs::remove_file)?;
        fs::remove_dir(place)
    };
    match forget() {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(SetupError::input(
            format!("{}: the record of earlier writes cannot be removed: {e}", place.display()),
            "Remove it manually: it is no longer valid",
        )),
        _ => Ok(()),
    }
}

/// Said where content is verified without a record.
pub fn missing(workload: &str, path: &Path) -> Finding {
    let text = format!(
        "Each block read from {} is checked against its stamp, but lost writes cannot be detected, because there is \
         no record of the last writes. To create one, write with --verify, using the same runs directory.",
        path.display()
    );
    Finding::new("F51", "verified_without_record", Level::Info, text).on(workload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_divides_all_sizes_and_places() {
        assert_eq!(unit_of([4096, 65536, 0]), Some(4096));
        assert_eq!(unit_of([4096, 512]), Some(512));
        assert_eq!(unit_of([4096, 100]), None);
        assert_eq!(unit_of([0]), Some(4096));
    }

    #[test]
    fn a_record_is_of_one_file_under_a_name() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("f");
        fs::write(&path, b"1").unwrap();
        let place = place_of(dir.path(), &path);
        assert_ne!(place, place_of(dir.path(), &dir.path().join("g")));
        assert!(look(&place, &path, 1).unwrap().is_none());
        make(&place, &path, None).unwrap();
        drop(begin(&place, (&path, &path), 1, (0, 4096), 4096).unwrap());
        assert!(look(&place, &path, 1).unwrap().is_some());
        assert!(look(&place, &path, 2).unwrap().is_none(), "another seed");
        // Another file, even with the same inode number.
        fs::remove_file(&path).unwrap();
        fs::write(&path, b"2").unwrap();
        assert!(look(&place, &path, 1).unwrap().is_none());
        fs::write(place.join("theirs"), b"precious").unwrap();
        assert!(forget(&place).is_err() && make(&place, &path, None).is_err());
        assert!(place.join("theirs").exists() && file_in(&place).exists());
        fs::remove_file(place.join("theirs")).unwrap();
        forget(&place).unwrap();
        forget(&place).unwrap();
        assert!(!place.exists());
    }
}
