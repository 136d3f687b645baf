//! What the store's own files look like. Only such are removed as a whole; what else is found beside them is somebody's.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

/// Name of what is not yet whole, or is about to go, in `tmp/`: one that nobody gives to their own.
pub(super) fn passing_name(number: u64) -> String {
    format!("plimsoll-passing-{number}")
}

fn is_passing(name: &str) -> bool {
    name.strip_prefix("plimsoll-passing-").is_some_and(|n| n.parse::<u64>().is_ok())
}

/// The first entry of `tmp/` that the store did not put there, or that holds such a one.
pub(super) fn strange_in_passing(tmp: &Path) -> io::Result<Option<PathBuf>> {
    first(tmp, |name, entry| {
        let kind = entry.file_type()?;
        Ok(match () {
            () if !is_passing(name) || !(kind.is_dir() || kind.is_file()) => Some(entry.path()),
            () if kind.is_file() => None,
            // A bucket or an upload on its way out.
            () => match strange_in_bucket(&entry.path())? {
                Some(_) => strange_in_upload(&entry.path())?,
                None => None,
            },
        })
    })
}

/// The first thing in a bucket's directory that is none of `bucket.json`, `objects/xx/HASH`, `uploads/ID/...`.
pub(super) fn strange_in_bucket(bucket: &Path) -> io::Result<Option<PathBuf>> {
    first(bucket, |name, entry| {
        let kind = entry.file_type()?;
        match name {
            "bucket.json" if kind.is_file() => Ok(None),
            "objects" if kind.is_dir() => first(&entry.path(), |shard, entry| match entry.file_type()? {
                kind if kind.is_dir() && is_hex(shard, 2) => first(&entry.path(), |object, entry| {
                    let is_ours = is_hex(object, 64) && entry.file_type()?.is_file();
                    Ok((!is_ours).then(|| entry.path()))
                }),
                _ => Ok(Some(entry.path())),
            }),
            "uploads" if kind.is_dir() => first(&entry.path(), |id, entry| match entry.file_type()? {
                kind if kind.is_dir() && is_hex(id, 32) => strange_in_upload(&entry.path()),
                _ => Ok(Some(entry.path())),
            }),
            _ => Ok(Some(entry.path())),
        }
    })
}

/// The same of an upload's directory: `upload.json` and its parts.
pub(super) fn strange_in_upload(upload: &Path) -> io::Result<Option<PathBuf>> {
    first(upload, |name, entry| {
        let is_part = |n: &str| n.len() == 5 && n.bytes().all(|b| b.is_ascii_digit());
        let is_ours = name == "upload.json" || name.strip_prefix("part-").is_some_and(is_part);
        Ok((!is_ours || !entry.file_type()?.is_file()).then(|| entry.path()))
    })
}

fn is_hex(name: &str, digits: usize) -> bool {
    name.len() == digits && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// What is found first, entry by entry; a name that is no text is nobody's of ours.
fn first(
    dir: &Path,
    look: impl Fn(&str, &DirEntry) -> io::Result<Option<PathBuf>>,
) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let found = match entry.file_name().to_str() {
            Some(name) => look(name, &entry)?,
            None => Some(entry.path()),
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}
