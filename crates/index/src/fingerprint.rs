//! Whether a run directory is as it was when it was read, by what the file system says of its files. Nothing is opened.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What an entry of the index depends on: these files, and the directories in which streams are added and replaced.
const LOOKED_AT: [&str; 9] = [
    "plan.toml",
    "env.json",
    "summary.json",
    "analysis.json",
    "seal.json",
    "imported.json",
    "journal",
    "intervals",
    "samples",
];
/// A file that changed so lately may change again within the same tick of the file system's clock: some count whole seconds.
const TICK: Duration = Duration::from_secs(2);

/// What a directory looked like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// XXH3-128 of inode, length and times of all that is looked at.
    pub hash: [u8; 16],
    /// When the directory was made, nanoseconds since 1970; 0: the file system does not say.
    pub made_ns: i64,
    /// Nothing in it changed within the last tick: the same hash later means the same content.
    pub rests: bool,
}

/// `None`: there is no such directory any more.
pub(crate) fn of(dir: &Path) -> Option<Fingerprint> {
    let own = std::fs::metadata(dir).ok().filter(std::fs::Metadata::is_dir)?;
    let mut bytes = Vec::with_capacity(64 * (LOOKED_AT.len() + 1));
    let mut newest = (0, 0);
    let mut add = |meta: Option<&std::fs::Metadata>| {
        // What is not there is a part of the picture, too.
        let Some(meta) = meta else { return bytes.push(0) };
        newest = newest.max((meta.ctime(), meta.ctime_nsec()));
        for n in [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()] {
            bytes.extend(n.to_le_bytes());
        }
        for n in [meta.dev(), meta.ino(), meta.len()] {
            bytes.extend(n.to_le_bytes());
        }
    };
    add(Some(&own));
    for name in LOOKED_AT {
        add(std::fs::metadata(dir.join(name)).ok().as_ref());
    }
    let since_1970 = |t: SystemTime| t.duration_since(SystemTime::UNIX_EPOCH).ok();
    let made_ns = own.created().ok().and_then(since_1970).map_or(0, |d| d.as_nanos() as i64);
    let newest = Duration::new(newest.0.max(0) as u64, newest.1.max(0) as u32);
    let rests = since_1970(SystemTime::now()).is_some_and(|now| now.saturating_sub(newest) > TICK);
    Some(Fingerprint { hash: xxhash_rust::xxh3::xxh3_128(&bytes).to_le_bytes(), made_ns, rests })
}
