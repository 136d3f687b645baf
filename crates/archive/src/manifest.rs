//! The first entry of a `.plim`: what the others are.

use std::collections::BTreeMap;

use plimsoll_store::{bounds, net};
use serde::{Deserialize, Serialize};

use crate::PlimError;

/// Of `plim.json`.
pub const PLIM_FORMAT: &str = "plimsoll.plim/1";
/// The name of the first entry, below the run's own.
pub(crate) const MANIFEST: &str = "plim.json";
/// Of a run of ten thousand agents it has 2 MB.
pub(crate) const MOST_MANIFEST_BYTES: u64 = 16 << 20;

/// Files of a run directory that go along. The mark that a directory is ours does not: it is of that directory alone.
const FILES: [&str; 8] = [
    "plan.toml",
    "env.json",
    "imported.json",
    "seal.json",
    "analysis.json",
    "summary.json",
    "remarks",
    "journal",
];
/// What is made of the raw data. Only a seal vouches for it.
pub(crate) const RESULTS: [&str; 2] = ["analysis.json", "summary.json"];
/// Directories of streams.
pub(crate) const STREAMS: [&str; 2] = ["intervals", "samples"];

/// What a `.plim` holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlimManifest {
    /// [`PLIM_FORMAT`].
    pub format: String,
    /// Name of the run, and of its directory.
    pub id: String,
    /// By their paths in the directory, in this order behind the manifest.
    pub files: BTreeMap<String, PackedFile>,
}

/// What one file was when it was packed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedFile {
    /// Its length.
    pub bytes: u64,
    /// XXH3-128 of the content, hexadecimal.
    pub xxh3: String,
}

impl PlimManifest {
    /// Whether it is one that [`crate::pack`] writes: only names of a run directory, one run, no document that would not be read, and not
    /// more than may be unpacked.
    pub(crate) fn check(&self, most_bytes: u64) -> Result<(), PlimError> {
        if !is_id(&self.id) {
            return Err(PlimError::bad(format!("'{}' is no name of a run", shown(&self.id))));
        }
        if let Some(name) = self.files.keys().find(|name| !is_of_a_run(name)) {
            return Err(PlimError::bad(format!("'{}' is no file of a run", shown(name))));
        }
        if !self.files.contains_key("plan.toml") {
            return Err(PlimError::bad("there is no plan.toml in it"));
        }
        if let Some(e) = self.files.iter().find_map(|(name, f)| too_large(name, f.bytes)) {
            return Err(e);
        }
        let bytes = self.files.values().map(|f| f.bytes).try_fold(0u64, u64::checked_add);
        match bytes {
            Some(bytes) if bytes <= most_bytes => Ok(()),
            _ => Err(PlimError::new(
                format!(
                    "it says that it holds {} bytes, and {most_bytes} are allowed",
                    bytes.map_or("2^64".into(), |b| b.to_string())
                ),
                "A run is larger than it is packed by a few times at the most; where it is yours, unpack it with tar --zstd -xf",
            )),
        }
    }
}

/// Documents are read whole, and no run writes larger ones than are read.
fn too_large(name: &str, bytes: u64) -> Option<PlimError> {
    let most = bounds::most_bytes(name).filter(|most| bytes > *most)?;
    Some(PlimError::new(
        format!("{name} is {bytes} bytes long, and at most {most} are read of it"),
        "No run writes such a file: get the run again from where it was made",
    ))
}

/// A name from outside, short enough for a message.
pub(crate) fn shown(name: &str) -> String {
    name.chars().take(80).flat_map(char::escape_default).collect()
}

/// A plain name that is no hidden one, for it goes beside other runs; and none that a command would take for something else: an option,
/// the last run, a packed run's file, network tests.
pub(crate) fn is_id(id: &str) -> bool {
    is_plain(id)
        && id.len() <= 100
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !matches!(id, "last" | "net")
        && !id.ends_with(".plim")
        && !net::is_name(id)
}

fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(plain)
}

/// Whether a path is one that a file of a run directory has.
pub(crate) fn is_of_a_run(path: &str) -> bool {
    match path.split_once('/') {
        None => FILES.contains(&path),
        Some((dir, name)) => STREAMS.contains(&dir) && is_plain(name) && name.ends_with(".zst"),
    }
}
