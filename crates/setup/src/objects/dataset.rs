//! Data sets: objects that are prepared once and read by many runs.
//!
//! A named data set lives under a prefix of its own with a marker and, once it is complete, a manifest. It belongs
//! to no run: it stays until its owner deletes it.

use plimsoll_model::plan::{S3Target, SizeDist};
use serde::{Deserialize, Serialize};

use super::area::DATASETS;
use super::proof::MARKER;
use super::store::{ObjectStore, StoreFault};
use crate::error::SetupError;

/// Of the manifest: another one says that something else lies there.
pub const DATASET_FORMAT: &str = "plimsoll.dataset/1";
pub(super) const MANIFEST: &str = ".plimsoll-dataset.json";

/// What a data set consists of; two with equal manifests hold the same objects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`DATASET_FORMAT`] of who wrote it.
    pub format: String,
    /// As the plan names it.
    pub name: String,
    /// How many there are.
    pub objects: u64,
    /// Sizes of the objects.
    pub size: SizeDist,
    /// Sizes and contents follow from it.
    pub seed: u64,
    /// How many prefixes the keys are spread over.
    pub prefixes: u32,
    /// Share of each block that compresses to nothing, 0 to 1.
    pub compressible: f64,
    /// Share of blocks that repeat another, 0 to 1.
    pub dedupable: f64,
    /// Stamped blocks, or slices of the pool.
    pub signing: String,
    /// Encryption and storage class that the uploads asked for; reading one kind is no measurement of another.
    #[serde(default)]
    pub kept_as: String,
}

/// [`Manifest::kept_as`] of a target. Of a customer's key only that there is one.
pub fn kept_as(target: &S3Target) -> String {
    let asked = |n: &&String| ["x-amz-server-side", "x-amz-storage-class"].iter().any(|p| n.starts_with(p));
    let mut parts: Vec<String> = target
        .put_headers
        .iter()
        .map(|(n, v)| (n.to_ascii_lowercase(), v))
        .filter(|(n, _)| asked(&n) && !n.contains("customer"))
        .map(|(n, v)| format!("{n}: {v}"))
        .collect();
    if target.sse_c_key_file.is_some() {
        parts.push("the customer's key".into());
    }
    parts.join(", ")
}

/// How far a data set is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dataset {
    /// Complete, and as wanted.
    Ready,
    /// Nothing is there, or an unfinished one of ours: write all objects, then [`finish_dataset`].
    ToPrepare,
}

/// Where a named data set lives. Its size is in the name, so that a sweep has one for each.
pub fn dataset_prefix(name: &str, size: &SizeDist) -> String {
    let text = serde_json::to_string(size).unwrap_or_default();
    let word: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    format!("{DATASETS}{name}/{}/", word.trim_matches('-'))
}

/// What the marker of a data set holds.
fn dataset_content(name: &str) -> String {
    format!("made by plimsoll, data set {name}\n")
}

/// Whether this is what is put at a data set's place beside its objects: its marker, or its manifest.
pub(super) fn is_of_dataset(key: &str, body: &[u8]) -> bool {
    let below = key.strip_prefix(DATASETS).unwrap_or_default();
    let Some((name, rest)) = below.split_once('/') else { return false };
    let Some((size, last)) = rest.split_once('/') else { return false };
    let manifest = || serde_json::from_slice::<Manifest>(body).is_ok_and(|m| m.name == name);
    !size.is_empty()
        && match last {
            MARKER => body == dataset_content(name).as_bytes(),
            MANIFEST => manifest(),
            _ => false,
        }
}

/// Looks at what is under `prefix`; makes the marker where nothing is. Anything that is not ours is refused.
pub fn claim_dataset(
    store: &dyn ObjectStore,
    prefix: &str,
    wanted: &Manifest,
) -> Result<Dataset, SetupError> {
    let other = |problem: String, remedy: &str| {
        SetupError::input(format!("data set '{}': {problem}", wanted.name), remedy)
    };
    let fault =
        |e: StoreFault| other(e.to_string(), e.remedy().unwrap_or("Check the bucket and the credentials"));
    if let Some(bytes) = store.get(&format!("{prefix}{MANIFEST}")).map_err(fault)? {
        let found: Manifest = serde_json::from_slice(&bytes)
            .map_err(|e| other(format!("its manifest cannot be read: {e}"), "Choose another name"))?;
        if found == *wanted {
            return Ok(Dataset::Ready);
        }
        return Err(other(
            format!("it contains something else: {}", difference(&found, wanted)),
            "Use the options that it was created with, or another name",
        ));
    }
    let marker = format!("{prefix}{MARKER}");
    let content = dataset_content(&wanted.name);
    match store.get(&marker).map_err(fault)? {
        Some(bytes) if bytes == content.as_bytes() => Ok(Dataset::ToPrepare),
        Some(_) => Err(other(format!("'{marker}' is not its marker"), "Choose another name")),
        None => {
            let page = store.list(prefix, None, 1).map_err(fault)?;
            if let Some(key) = page.keys.first() {
                return Err(other(
                    format!("'{key}' exists and was not created by plimsoll"),
                    "Choose another name: plimsoll does not overwrite what it did not create",
                ));
            }
            store.put(&marker, content.as_bytes()).map_err(fault)?;
            Ok(Dataset::ToPrepare)
        }
    }
}

/// Says that all objects are there. The manifest is the last thing written.
pub fn finish_dataset(store: &dyn ObjectStore, prefix: &str, manifest: &Manifest) -> Result<(), SetupError> {
    let text = serde_json::to_vec_pretty(manifest).map_err(|e| SetupError::Bug(e.to_string()))?;
    store.put(&format!("{prefix}{MANIFEST}"), &text).map_err(|e| {
        SetupError::input(
            format!("data set '{}': {e}", manifest.name),
            "Check the bucket and the credentials",
        )
    })
}

fn difference(found: &Manifest, wanted: &Manifest) -> String {
    let (Ok(serde_json::Value::Object(f)), Ok(serde_json::Value::Object(w))) =
        (serde_json::to_value(found), serde_json::to_value(wanted))
    else {
        return "another manifest".into();
    };
    let differ: Vec<String> =
        f.iter().filter(|(k, v)| w.get(*k) != Some(v)).map(|(k, v)| format!("{k} is {v}")).collect();
    differ.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::memory::Memory;
    use super::*;
    use plimsoll_model::units::Size;

    fn manifest(objects: u64) -> Manifest {
        Manifest {
            format: DATASET_FORMAT.into(),
            name: "n".into(),
            objects,
            size: SizeDist::Fixed(Size(4096)),
            seed: 1,
            prefixes: 1,
            compressible: 0.0,
            dedupable: 0.0,
            signing: "unsigned".into(),
            kept_as: String::new(),
        }
    }

    #[test]
    fn prepared_once_and_reused() {
        let store = Memory::with_bucket();
        let m = manifest(10);
        let prefix = dataset_prefix(&m.name, &m.size);
        assert_eq!(claim_dataset(&store, &prefix, &m).unwrap(), Dataset::ToPrepare);
        // Killed while preparing: the next run goes on.
        assert_eq!(claim_dataset(&store, &prefix, &m).unwrap(), Dataset::ToPrepare);
        finish_dataset(&store, &prefix, &m).unwrap();
        assert_eq!(claim_dataset(&store, &prefix, &m).unwrap(), Dataset::Ready);
        let e = claim_dataset(&store, &prefix, &manifest(11)).unwrap_err().to_string();
        assert!(e.contains("objects is 10"), "{e}");
    }

    #[test]
    fn foreign_objects_are_never_taken_over() {
        let store = Memory::with_bucket();
        let m = manifest(10);
        let prefix = dataset_prefix(&m.name, &m.size);
        store.put(&format!("{prefix}mine"), b"x").unwrap();
        let e = claim_dataset(&store, &prefix, &m).unwrap_err().to_string();
        assert!(e.contains("not created by plimsoll"), "{e}");
        assert_eq!(store.keys().len(), 1);
    }
}
