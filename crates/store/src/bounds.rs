//! How large the documents of a run directory may be. They are read whole, and a directory may come from anybody: without a bound a file of
//! megabytes, packed, or one of nothing but a length takes all memory there is.
//!
//! Streams are not meant: they are read frame by frame, and a frame has a bound of its own ([`crate::frame`]).

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::StoreError;

const MIB: u64 = 1 << 20;
/// As much as is read of a plan that a user wrote; those of ours have kilobytes. TOML takes many times its length in memory.
const PLAN: u64 = 16 * MIB;
/// A fleet of ten thousand agents has 20 MB in its environment, and 3 MB of hashes in its seal.
const FACTS: u64 = 64 * MIB;
/// A line of results has up to 10 KB, and an agent's part in it 1 KB: two hundred lines of a thousand agents.
const RESULTS: u64 = 256 * MIB;
/// A thing that a run makes has two lines of 100 bytes or so, each synced before it is made: half a million things are hours of that.
pub(crate) const JOURNAL: u64 = 128 * MIB;
/// Notes of persons.
pub(crate) const REMARKS: u64 = 4 * MIB;
/// A network test has a line for each pair of hosts.
pub(crate) const NET: u64 = 64 * MIB;
/// So many bytes of a bound allow an object or a list: large documents of ours have 150 for each. In memory an empty object, of two bytes,
/// may take several hundred.
const BYTES_PER_PART: u64 = 128;

/// The most that is read of a document of a run directory, by its name; `None`: it is none, and not read whole.
pub fn most_bytes(name: &str) -> Option<u64> {
    match name {
        "plan.toml" => Some(PLAN),
        "env.json" | "seal.json" => Some(FACTS),
        "summary.json" | "analysis.json" | "imported.json" => Some(RESULTS),
        "journal" => Some(JOURNAL),
        "remarks" => Some(REMARKS),
        _ => None,
    }
}

/// The same by the path of one. What has no name of a document has the bound of the smallest.
pub(crate) fn of(path: &Path) -> u64 {
    path.file_name().and_then(|n| n.to_str()).and_then(most_bytes).unwrap_or(REMARKS)
}

/// Reads all of an open file that has at most so many bytes. Its length is looked at first, and it may grow meanwhile: no more is read.
pub(crate) fn read(file: &File, path: &Path, most: u64) -> Result<Vec<u8>, StoreError> {
    let io = |e| StoreError::io("read", path)(e);
    let too_large = |bytes| StoreError::TooLarge { path: path.to_owned(), bytes, most };
    let length = file.metadata().map_err(io)?.len();
    if length > most {
        return Err(too_large(length));
    }
    let mut bytes = Vec::with_capacity(length as usize);
    file.take(most + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > most {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}

/// Whether a document has no more objects and lists than one of its bound can have: a file of nothing else takes a hundred times its
/// length in memory. Brackets in texts count, too: ours have few.
pub(crate) fn check_parts(text: &[u8], path: &Path, most: u64) -> Result<(), StoreError> {
    let parts = text.iter().filter(|b| matches!(b, b'{' | b'[')).count() as u64;
    if parts <= most / BYTES_PER_PART {
        return Ok(());
    }
    let problem =
        format!("it has {parts} objects and lists, and {} are the most that is read", most / BYTES_PER_PART);
    Err(StoreError::Content { path: path.to_owned(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_or_grows_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("env.json");
        std::fs::write(&path, "12345").unwrap();
        let read_of = |most| read(&File::open(&path).unwrap(), &path, most);
        assert_eq!(read_of(5).unwrap(), b"12345");
        let told = read_of(4).unwrap_err().to_string();
        assert!(
            told.contains("env.json") && told.contains("5 bytes") && told.contains("at most 4"),
            "{told}"
        );
        // A device has no length.
        let endless = File::open("/dev/zero").unwrap();
        assert!(matches!(read(&endless, &path, 4), Err(StoreError::TooLarge { bytes: 5, .. })));
    }

    #[test]
    fn many_small_parts_are_not_read() {
        let path = Path::new("env.json");
        assert!(check_parts(b"[{},{}]", path, 384).is_ok());
        assert!(
            check_parts(b"[{},{},{}]", path, 384).unwrap_err().to_string().contains("4 objects and lists")
        );
    }
}
