//! Records of network tests, beside the runs: `net/ID.json` under the directory of runs, each a whole document.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use plimsoll_model::net::{NET_FORMAT, NetRecord};

use crate::{StoreError, bounds, plain};

/// How their ids begin, which no run's does.
const PREFIX: &str = "net-";

fn dir(root: &Path) -> PathBuf {
    root.join("net")
}

fn file(root: &Path, id: &str) -> PathBuf {
    dir(root).join(format!("{id}.json"))
}

/// An id that no record had so far, and the wall-clock time, RFC 3339.
pub fn new_id() -> (String, String) {
    (format!("{PREFIX}{}", crate::rundir::new_id()), jiff::Timestamp::now().to_string())
}

/// Whether this names a record, and no run.
pub fn is_name(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Writes a record; one that is there is never overwritten.
pub fn keep(root: &Path, record: &NetRecord) -> Result<PathBuf, StoreError> {
    let dir = dir(root);
    std::fs::create_dir_all(&dir).map_err(StoreError::io("create", &dir))?;
    let path = file(root, &record.id);
    let mut text = serde_json::to_vec(record).expect("plain data is always JSON");
    text.push(b'\n');
    let mut made = std::fs::File::create_new(&path).map_err(StoreError::io("create", &path))?;
    made.write_all(&text).map_err(StoreError::io("write", &path))?;
    Ok(path)
}

/// Reads a record's file.
pub fn read(path: &Path) -> Result<NetRecord, StoreError> {
    #[derive(serde::Deserialize)]
    struct Formatted {
        format: String,
    }
    let bytes = plain::read(path, bounds::NET)?;
    let content =
        |e: serde_json::Error| StoreError::Content { path: path.to_owned(), problem: e.to_string() };
    let Formatted { format } = serde_json::from_slice(&bytes).map_err(content)?;
    if format != NET_FORMAT {
        return Err(StoreError::Format { path: path.to_owned(), found: format, wanted: NET_FORMAT });
    }
    serde_json::from_slice(&bytes).map_err(content)
}

/// A record by its id, or by a beginning of it that no other has.
pub fn find(root: &Path, name: &str) -> Result<PathBuf, StoreError> {
    let mut hits: Vec<String> = ids(root);
    if !hits.iter().any(|id| id == name) {
        hits.retain(|id| id.starts_with(name));
    } else {
        hits = vec![name.to_owned()];
    }
    let none = |problem: String| StoreError::Dir {
        path: root.to_owned(),
        problem,
        remedy: "List the runs with: plimsoll runs list",
    };
    match &hits[..] {
        [one] => Ok(file(root, one)),
        [] => Err(none(format!("there is no network test '{name}'"))),
        many => Err(none(format!("{} network tests begin with '{name}'", many.len()))),
    }
}

/// The ids of all, oldest first.
pub fn ids(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir(root)).into_iter().flatten();
    let id = |e: std::io::Result<std::fs::DirEntry>| {
        let name = e.ok()?.file_name().into_string().ok()?;
        name.strip_suffix(".json").filter(|id| is_name(id)).map(str::to_owned)
    };
    let mut out: Vec<String> = entries.filter_map(id).collect();
    out.sort();
    out
}

/// Removes one. Only a record is.
pub fn remove(root: &Path, name: &str) -> Result<String, StoreError> {
    let path = find(root, name)?;
    let record = read(&path)?;
    std::fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
    Ok(record.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str) -> NetRecord {
        let text = format!(
            r#"{{"format":"{NET_FORMAT}","id":"{id}","plimsoll_version":"1","made_at":"2026-11-23T00:00:00Z",
            "asked":{{"patterns":[],"streams":1,"warmup_s":1,"measured_s":1}},"hosts":[],"stages":[],"findings":[],
            "sentences":[],"valid":true}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_record_is_kept_once_found_by_a_beginning_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert!(ids(root).is_empty());
        for id in ["net-1a", "net-1b", "net-2"] {
            keep(root, &record(id)).unwrap();
        }
        assert!(keep(root, &record("net-2")).is_err(), "never overwritten");
        assert_eq!(read(&find(root, "net-2").unwrap()).unwrap(), record("net-2"));
        assert!(find(root, "net-1").unwrap_err().to_string().contains("2 network tests"));
        assert!(find(root, "net-3").is_err());
        assert_eq!(remove(root, "net-1a").unwrap(), "net-1a");
        assert_eq!(ids(root), ["net-1b", "net-2"]);
        let other = file(root, "net-9");
        std::fs::write(&other, r#"{"format":"plimsoll.net/9"}"#).unwrap();
        assert!(matches!(read(&other), Err(StoreError::Format { .. })));
        assert!(remove(root, "net-9").is_err() && other.exists(), "what cannot be read is not removed");
    }
}
