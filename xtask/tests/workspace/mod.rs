//! The workspace as Cargo and the files have it: what the tests of its house rules look at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What each crate of the workspace names in its manifest, in whatever table.
pub fn named() -> BTreeMap<String, BTreeSet<String>> {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let text = |v: &serde_json::Value| v.as_str().unwrap().to_owned();
    let package = |p: &serde_json::Value| {
        let dependencies = p["dependencies"].as_array().unwrap().iter();
        (short(&text(&p["name"])), dependencies.map(|d| text(&d["name"])).collect())
    };
    metadata["packages"].as_array().unwrap().iter().map(package).collect()
}

/// The name of one of ours without what all have in common.
pub fn short(name: &str) -> String {
    name.strip_prefix("plimsoll-").unwrap_or(name).to_owned()
}

/// Where a crate's own code is, tests beside it not counted.
pub fn source_dir(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match name {
        "fuzz" => root.join("fuzz/fuzz_targets"),
        "xtask" => root.join("xtask/src"),
        _ => root.join("crates").join(name).join("src"),
    }
}

/// All Rust files below a directory: path and text.
pub fn sources(dir: &Path) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            out.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
        }
    }
    out
}
