//! The record of this machine's calibration, kept in the user's state directory and joined to later runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_model::Estimate;
use plimsoll_store::whole::{beside, replace_whole};
use serde::{Deserialize, Serialize};

use crate::error::RunError;

/// Of the file; one of another format is no ceiling.
pub const CEILING_FORMAT: &str = "plimsoll.ceiling/1";

/// The file in the state directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// [`CEILING_FORMAT`].
    pub format: String,
    /// Name of the machine; it may change, and the ceiling still holds.
    pub host: String,
    /// With another one the ceiling is not used.
    pub cpu_model: String,
    /// CPUs that the process may use. With another number the ceiling is not used.
    pub cpu_count: u32,
    /// CPU quota of the control group that it was measured in, in cores; absent: none. It is part of the ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_quota_cores: Option<f64>,
    /// Of the program that was measured.
    pub plimsoll_version: String,
    /// That it was built from; empty: not known.
    pub commit: String,
    /// Wall-clock time, RFC 3339.
    pub made_at: String,
    /// Of one thread, ops per second: `null`, `get 4096`, `put 1048576`, ...
    pub ops_per_s: BTreeMap<String, Estimate>,
    /// Those that stayed too wide: shown, and not held against any run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wide: Vec<String>,
}

/// Where it is kept: `$XDG_STATE_HOME/plimsoll` or `~/.local/state/plimsoll`.
fn path() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|h| h.join(".local/state")))?;
    Some(state.join("plimsoll").join("ceiling.json"))
}

/// The ceilings of this machine; empty when it was not calibrated, or has changed since.
pub fn ceiling() -> BTreeMap<String, f64> {
    let read = || -> Option<Calibration> { serde_json::from_slice(&std::fs::read(path()?).ok()?).ok() };
    let Some(c) = read() else { return BTreeMap::new() };
    let here = crate::environment::machine();
    let same = (c.cpu_model, c.cpu_count, c.cpu_quota_cores)
        == (here.cpu_model, here.cpu_count, here.cpu_quota_cores);
    if c.format != CEILING_FORMAT || !same {
        return BTreeMap::new();
    }
    c.ops_per_s
        .into_iter()
        .filter(|(name, _)| !c.wide.contains(name))
        .map(|(name, e)| (name, e.value))
        .collect()
}

/// Keeps a calibration for later runs.
pub fn keep(c: &Calibration) -> Result<(), RunError> {
    let Some(path) = path() else {
        return Err(RunError::input(
            "there is no home directory to store the ceiling in",
            "Set XDG_STATE_HOME",
        ));
    };
    let write = || -> std::io::Result<()> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        replace(&path, &serde_json::to_vec_pretty(c)?)
    };
    write().map_err(|e| {
        RunError::input(
            format!("cannot store the ceiling in {}: {e}", path.display()),
            "Set XDG_STATE_HOME to a writable directory",
        )
    })
}

/// Puts a record in the place of an older one, as a whole, and of nothing else.
fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    if let Ok(old) = std::fs::read(path) {
        let form = |v: serde_json::Value| v["format"].as_str().map(|f| f.starts_with("plimsoll.ceiling/"));
        if serde_json::from_slice(&old).ok().and_then(form) != Some(true) {
            return Err(std::io::Error::other("the existing file is not a ceiling record: move it away"));
        }
    }
    replace_whole(path, &beside(path)?, content, 0o644)
}
