//! Files of a run directory that are written and read whole.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::whole::replace_whole;
use crate::{StoreError, bounds, plain};

/// Replaces a file as a whole: a reader sees the old or the new one, also after a power cut. What is too long to be read again is not
/// written: a plan that is says so before anything is measured.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let most = bounds::of(path);
    if content.len() as u64 > most {
        let problem =
            format!("it would be {} bytes long, and at most {most} are read of it again", content.len());
        return Err(StoreError::Content { path: path.to_owned(), problem });
    }
    let temporary = path.with_extension("new");
    let write = || -> std::io::Result<()> {
        // What a killed process left under this name goes; what a stranger's link leads to is not written to.
        match std::fs::remove_file(&temporary) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        replace_whole(path, &temporary, content, 0o666)
    };
    write().map_err(StoreError::io("write", path))
}

pub(super) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), StoreError> {
    replace(path, json_text(path, value)?.as_bytes())
}

pub(super) fn json_text<T: Serialize>(path: &Path, value: &T) -> Result<String, StoreError> {
    let mut text = serde_json::to_string_pretty(value).map_err(|e| StoreError::Content {
        path: path.to_owned(),
        problem: format!("cannot be written as JSON: {e}"),
    })?;
    text.push('\n');
    Ok(text)
}

pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, StoreError> {
    let bytes = plain::read(path, bounds::of(path))?;
    serde_json::from_slice(&bytes)
        .map_err(|e| StoreError::Content { path: path.to_owned(), problem: e.to_string() })
}

pub(super) fn check_format(path: &Path, found: &str, wanted: &'static str) -> Result<(), StoreError> {
    if found == wanted {
        return Ok(());
    }
    Err(StoreError::Format { path: path.to_owned(), found: found.into(), wanted })
}
