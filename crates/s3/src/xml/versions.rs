//! Answers about buckets that keep versions: what is kept, and for how long.

use super::documents::{read, truth};
use super::{DocumentError, bad};
use crate::uri::decode;

/// One version of an object, or a delete marker in its place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListedVersion {
    /// Decoded, where the listing was asked for encoded keys.
    pub key: String,
    /// `null` for what was written while versions were not kept.
    pub version_id: String,
    /// Nothing is stored: the object counts as removed.
    pub delete_marker: bool,
}

/// One page of ListObjectVersions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VersionsPage {
    /// In the order of the listing: a key's newest first.
    pub versions: Vec<ListedVersion>,
    /// There is a next page.
    pub truncated: bool,
    /// Where the next page begins; empty: the server gives none.
    pub next_key_marker: String,
    /// Where among the versions of that key.
    pub next_version_id_marker: String,
}

impl VersionsPage {
    /// An error document, or one with another root, is an error.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        let mut page = Self::default();
        let mut one = ListedVersion::default();
        let mut url = false;
        read(body, "ListVersionsResult", |path, text| {
            match path {
                "EncodingType" => url = text.trim() == "url",
                "IsTruncated" => page.truncated = truth(text),
                "NextKeyMarker" => page.next_key_marker = text.to_owned(),
                "NextVersionIdMarker" => page.next_version_id_marker = text.trim().to_owned(),
                "Version/Key" | "DeleteMarker/Key" => one.key = text.to_owned(),
                "Version/VersionId" | "DeleteMarker/VersionId" => one.version_id = text.trim().to_owned(),
                "Version" => page.versions.push(std::mem::take(&mut one)),
                "DeleteMarker" => {
                    one.delete_marker = true;
                    page.versions.push(std::mem::take(&mut one));
                }
                _ => {}
            }
            Ok(())
        })?;
        if url {
            let keys = page.versions.iter_mut().map(|v| &mut v.key).chain([&mut page.next_key_marker]);
            for k in keys {
                *k = decode(k, true).ok_or_else(|| bad(format!("key '{k}' is not percent-encoded")))?;
            }
        }
        Ok(page)
    }
}

/// The status of GetBucketVersioning's answer: `Enabled`, `Suspended`, or empty where versions were never kept.
pub fn parse_versioning(body: &[u8]) -> Result<String, DocumentError> {
    let mut status = String::new();
    read(body, "VersioningConfiguration", |path, text| {
        if path == "Status" {
            status = text.trim().to_owned();
        }
        Ok(())
    })?;
    Ok(status)
}

/// GetObjectLockConfiguration's answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectLock {
    /// Objects of the bucket can be locked against removal.
    pub enabled: bool,
    /// How long what is written is kept unless it says otherwise itself, as `3 days, COMPLIANCE`.
    pub retention: Option<String>,
}

impl ObjectLock {
    /// An error document, or one with another root, is an error.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        let mut enabled = false;
        let (mut mode, mut time) = (String::new(), String::new());
        read(body, "ObjectLockConfiguration", |path, text| {
            let text = text.trim();
            match path {
                "ObjectLockEnabled" => enabled = text == "Enabled",
                "Rule/DefaultRetention/Mode" => mode = text.to_owned(),
                "Rule/DefaultRetention/Days" => time = format!("{text} days"),
                "Rule/DefaultRetention/Years" => time = format!("{text} years"),
                _ => {}
            }
            Ok(())
        })?;
        let retention = (!mode.is_empty()).then(|| format!("{time}, {mode}"));
        Ok(Self { enabled, retention })
    }
}
