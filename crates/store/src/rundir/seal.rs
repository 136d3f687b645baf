//! The seal of a run: what its files were when it ended, and whether they still are (V23).

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_model::{Analysis, RunSummary};
use serde::{Deserialize, Serialize};

use super::whole::{check_format, json_text, read_json, replace, write_json};
use super::{IMPORTED, RunDir};
use crate::{StoreError, bounds, plain};

/// Of `seal.json`.
pub const SEAL_FORMAT: &str = "plimsoll.seal/1";

/// `seal.json`: the raw files as they were when the run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// [`SEAL_FORMAT`].
    pub format: String,
    /// `done`, `interrupted` or `failed: ...`.
    pub end: String,
    /// By their paths in the directory.
    pub files: BTreeMap<String, FileSeal>,
    /// What was made of them (`summary.json`, `analysis.json`) as it was last written. The one before stays, too: a kill between
    /// this file and that one is no change by anybody.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<String, Vec<FileSeal>>,
}

/// What one file was when it was sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSeal {
    /// Its length.
    pub bytes: u64,
    /// XXH3-128 of the content, hexadecimal.
    pub xxh3: String,
}

impl RunDir {
    /// Writes what was made of the raw data, and its hash into the seal, if there is one.
    pub(super) fn write_result<T: Serialize>(&self, name: &str, value: &T) -> Result<(), StoreError> {
        let path = self.path.join(name);
        let text = json_text(&path, value)?;
        if let Some(mut seal) = self.sealed()? {
            let all = seal.results.entry(name.into()).or_default();
            all.push(hash_bytes(text.as_bytes()));
            all.drain(..all.len().saturating_sub(2));
            write_json(&self.path.join("seal.json"), &seal)?;
        }
        replace(&path, text.as_bytes())
    }

    /// Results that are not as they were written (V23); empty when all are, or where no seal knows them.
    pub fn altered_results(&self) -> Result<Vec<String>, StoreError> {
        let Some(seal) = self.sealed()? else { return Ok(Vec::new()) };
        let mut out = Vec::new();
        // Names from the seal are no paths to be read.
        for name in ["analysis.json", "summary.json"] {
            let (path, known) = (self.path.join(name), seal.results.get(name));
            if let Some(known) = known.filter(|_| path.is_file())
                && !known.contains(&hash_file(&path)?)
            {
                out.push(name.to_owned());
            }
        }
        Ok(out)
    }

    /// Whether these results, to the byte, are the ones that are stored.
    pub fn holds_results(&self, summary: &RunSummary, analysis: &Analysis) -> Result<bool, StoreError> {
        Ok(self.holds("summary.json", summary)? && self.holds("analysis.json", analysis)?)
    }

    fn holds<T: Serialize>(&self, name: &str, value: &T) -> Result<bool, StoreError> {
        let path = self.path.join(name);
        let text = json_text(&path, value)?;
        // What cannot be read is another.
        Ok(plain::read(&path, bounds::of(&path)).is_ok_and(|held| held == text.as_bytes()))
    }

    /// Seals the raw data: nothing but analyses is written afterwards. `end` is `done`, `interrupted` or `failed: ...`.
    pub fn seal(&self, end: &str) -> Result<Seal, StoreError> {
        let seal = Seal {
            format: SEAL_FORMAT.into(),
            end: end.into(),
            files: self.hash_raw()?,
            results: BTreeMap::new(),
        };
        write_json(&self.path.join("seal.json"), &seal)?;
        Ok(seal)
    }

    /// Opens a sealed run again (to resume it).
    pub fn unseal(&self) -> Result<(), StoreError> {
        let path = self.path.join("seal.json");
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(StoreError::io("remove", &path)(e)),
            _ => Ok(()),
        }
    }

    /// The seal; `None` when the run never ended in order.
    pub fn sealed(&self) -> Result<Option<Seal>, StoreError> {
        let path = self.path.join("seal.json");
        if !path.exists() {
            return Ok(None);
        }
        let seal: Seal = read_json(&path)?;
        check_format(&path, &seal.format, SEAL_FORMAT)?;
        Ok(Some(seal))
    }

    /// Raw files that are not what they were when the run was sealed (V23); empty when all are, or without a seal.
    pub fn altered_files(&self) -> Result<Vec<String>, StoreError> {
        let Some(seal) = self.sealed()? else { return Ok(Vec::new()) };
        let now = self.hash_raw()?;
        let names: std::collections::BTreeSet<&String> = seal.files.keys().chain(now.keys()).collect();
        Ok(names.into_iter().filter(|n| seal.files.get(*n) != now.get(*n)).cloned().collect())
    }

    fn hash_raw(&self) -> Result<BTreeMap<String, FileSeal>, StoreError> {
        let mut files = ["plan.toml", "env.json", IMPORTED].map(|name| self.path.join(name)).to_vec();
        files.extend(self.interval_files()?);
        files.extend(self.sample_files()?);
        let named = files.into_iter().filter(|p| p.is_file()).map(|p| {
            let name = p.strip_prefix(&self.path).unwrap_or(&p).to_string_lossy().into_owned();
            Ok((name, hash_file(&p)?))
        });
        named.collect()
    }
}

fn hash_bytes(bytes: &[u8]) -> FileSeal {
    FileSeal { bytes: bytes.len() as u64, xxh3: format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes)) }
}

fn hash_file(path: &Path) -> Result<FileSeal, StoreError> {
    let mut file = plain::open_to_read(path).map_err(StoreError::io("open", path))?;
    let mut hasher = xxhash_rust::xxh3::Xxh3Default::new();
    let mut buffer = vec![0u8; 256 << 10];
    let mut bytes = 0u64;
    loop {
        let n = std::io::Read::read(&mut file, &mut buffer).map_err(StoreError::io("read", path))?;
        if n == 0 {
            return Ok(FileSeal { bytes, xxh3: format!("{:032x}", hasher.digest128()) });
        }
        hasher.update(&buffer[..n]);
        bytes += n as u64;
    }
}
