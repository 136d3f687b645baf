//! What cleaning up asks of a server: what is there, in which versions, and its removal.
//!
//! Servers differ in what they know. Where one refuses a detail of a request, the plainer form is asked for, and remembered.

use plimsoll_model::text::said;
use plimsoll_s3::checksum::content_md5;
use plimsoll_s3::head::Action;
use plimsoll_s3::uri::encode_query;
use plimsoll_s3::xml::{
    self, DeleteFailure, DeleteResult, ListPage, ObjectLock, UploadsPage, VersionsPage, parse_versioning,
};

use super::connection::Answer;
use super::{Admin, AdminError, Trouble};

/// The most keys of one DeleteObjects.
pub const MAX_DELETE_KEYS: usize = 1000;
/// Pages of unfinished uploads after which a server is not believed any more (a thousand uploads each).
const MOST_UPLOAD_PAGES: u32 = 1000;

/// How the server can be asked for a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Listing {
    /// ListObjectsV2 with percent-encoded keys, so that any key survives XML.
    #[default]
    Encoded,
    Plain,
    /// ListObjects, the first version.
    Old,
}

/// What is to be removed: an object, or one version of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeleteItem {
    /// Raw, as it was put.
    pub key: String,
    /// `None`: the object itself.
    pub version: Option<String>,
}

/// What a server did not remove, in its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// As it was asked for.
    pub item: DeleteItem,
    /// `AccessDenied`, ...
    pub code: String,
    /// The server's words.
    pub message: String,
}

/// Whether a bucket keeps what is overwritten or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeepsVersions {
    /// `Enabled`, `Suspended`, or empty: never.
    pub status: String,
    /// Objects can be locked.
    pub lock: bool,
    /// How long each new object is locked, where the bucket says so: `3 days, COMPLIANCE`.
    pub retention: Option<String>,
}

impl Admin {
    /// One page of the listing under `prefix`.
    pub fn list_page(&mut self, prefix: &str, token: Option<&str>) -> Result<ListPage, AdminError> {
        let plainer = match self.listing {
            Listing::Encoded => &[Listing::Encoded, Listing::Plain, Listing::Old][..],
            Listing::Plain => &[Listing::Plain, Listing::Old],
            Listing::Old => &[Listing::Old],
        };
        let mut first = None;
        for how in plainer {
            match self.list_page_as(*how, prefix, token) {
                Ok(page) => {
                    self.listing = *how;
                    return Ok(page);
                }
                Err(e) if e.trouble.may_be_of_form() => drop(first.get_or_insert(e)),
                Err(e) => return Err(e),
            }
        }
        Err(first.expect("at least one form was tried"))
    }

    fn list_page_as(
        &mut self,
        how: Listing,
        prefix: &str,
        from: Option<&str>,
    ) -> Result<ListPage, AdminError> {
        let a = if how == Listing::Old {
            let query = query(&[("marker", from), ("prefix", Some(prefix))]);
            self.request(&Action::GetBucket { query: &query }, "", b"")?
        } else {
            let action = Action::List {
                prefix,
                delimiter: None,
                max_keys: 0,
                token: from,
                start_after: None,
                url_encoding: how == Listing::Encoded,
            };
            self.request(&action, "", b"")?
        };
        let mut page = ListPage::parse(&a.body).map_err(|e| self.document(&a, e))?;
        if how == Listing::Old && page.truncated {
            page.next_token = page.objects.last().map(|o| o.key.clone());
        }
        // A server that ignores the prefix must never lead to foreign objects being deleted.
        self.only_under(prefix, page.objects.iter().map(|o| o.key.as_str()))?;
        Ok(page)
    }

    fn only_under<'a>(
        &self,
        prefix: &str,
        mut keys: impl Iterator<Item = &'a str>,
    ) -> Result<(), AdminError> {
        match keys.find(|k| !k.starts_with(prefix)) {
            None => Ok(()),
            Some(k) => {
                let text =
                    format!("{} listed '{}', which is not under '{prefix}'", self.setup.endpoint, said(k));
                Err(AdminError::new(Trouble::Foreign, text))
            }
        }
    }

    /// One page of all versions and delete markers under `prefix`, from behind a key and a version.
    pub fn versions_page(
        &mut self,
        prefix: &str,
        from: Option<(&str, &str)>,
    ) -> Result<VersionsPage, AdminError> {
        let query = query(&[
            ("encoding-type", Some("url")),
            ("key-marker", from.map(|f| f.0)),
            ("prefix", Some(prefix)),
            ("version-id-marker", from.map(|f| f.1).filter(|v| !v.is_empty())),
            ("versions", Some("")),
        ]);
        let a = self.request(&Action::GetBucket { query: &query }, "", b"")?;
        let page = VersionsPage::parse(&a.body).map_err(|e| self.document(&a, e))?;
        self.only_under(prefix, page.versions.iter().map(|v| v.key.as_str()))?;
        Ok(page)
    }

    /// The content of one version; `None` when there is none (or it is a delete marker).
    pub fn get_version(&mut self, key: &str, version_id: &str) -> Result<Option<Vec<u8>>, AdminError> {
        match self.request(&Action::GetVersion { version_id }, key, b"") {
            Ok(a) => Ok(Some(a.body)),
            // A delete marker is answered with 405.
            Err(e) if matches!(e.trouble, Trouble::NotFound | Trouble::Unsupported) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Whether the bucket keeps versions and locks objects. An error: the server does not say.
    pub fn keeps_versions(&mut self) -> Result<KeepsVersions, AdminError> {
        let a = self.request(&Action::GetBucket { query: b"versioning=" }, "", b"")?;
        let status = parse_versioning(&a.body).map_err(|e| self.document(&a, e))?;
        if status.is_empty() {
            return Ok(KeepsVersions::default());
        }
        // A bucket without a lock answers 404, as does a server that knows none.
        let lock = match self.request(&Action::GetBucket { query: b"object-lock=" }, "", b"") {
            Ok(a) => ObjectLock::parse(&a.body).unwrap_or_default(),
            Err(_) => ObjectLock::default(),
        };
        Ok(KeepsVersions { status, lock: lock.enabled, retention: lock.retention })
    }

    /// Removes up to [`MAX_DELETE_KEYS`] objects or versions, and says which ones stayed. A server without batch deletes
    /// gets single ones.
    pub fn delete_items(&mut self, items: &[DeleteItem]) -> Result<Vec<Kept>, AdminError> {
        assert!(items.len() <= MAX_DELETE_KEYS, "the caller cuts batches");
        if items.is_empty() {
            return Ok(Vec::new());
        }
        if !self.single_deletes {
            let mut body = Vec::new();
            let written = items.iter().map(|i| (i.key.as_bytes(), i.version.as_ref().map(|v| v.as_bytes())));
            xml::write_delete_versions(written, true, &mut body);
            let md5 = content_md5(&body);
            let a = self.exchange(&Action::DeleteObjects { content_md5: &md5 }, "", &body)?;
            if a.outcome().is_ok() {
                let failed = DeleteResult::parse(&a.body).map_err(|e| self.document(&a, e))?.failed;
                return Ok(failed.into_iter().map(|f| kept(f, items)).collect());
            }
            let refusal = self.refusal(&a);
            if !refusal.trouble.may_be_of_form() {
                return Err(refusal);
            }
        }
        let left = self.delete_singly(items)?;
        self.single_deletes = true;
        Ok(left)
    }

    fn delete_singly(&mut self, items: &[DeleteItem]) -> Result<Vec<Kept>, AdminError> {
        let mut left = Vec::new();
        for item in items {
            let a = match &item.version {
                Some(version_id) => self.exchange(&Action::DeleteVersion { version_id }, &item.key, b"")?,
                None => self.exchange(&Action::DeleteObject, &item.key, b"")?,
            };
            if a.outcome().is_ok() || a.head.status == 404 {
                continue;
            }
            let refusal = self.refusal(&a);
            match refusal.trouble {
                // Of this object, not of the server.
                Trouble::Forbidden | Trouble::Refused | Trouble::Conflict | Trouble::Other => {
                    let message = refusal.message;
                    left.push(Kept { item: item.clone(), code: a.code().to_owned(), message });
                }
                _ => return Err(refusal),
            }
        }
        Ok(left)
    }

    /// Unfinished multipart uploads under `prefix`: key and upload id.
    pub fn list_uploads(&mut self, prefix: &str) -> Result<Vec<(String, String)>, AdminError> {
        let mut all = Vec::new();
        let mut marker = (String::new(), String::new());
        for _ in 0..MOST_UPLOAD_PAGES {
            let some = |s: &str| (!s.is_empty()).then(|| s.to_owned());
            let (key, id) = (some(&marker.0), some(&marker.1));
            let action =
                Action::ListUploads { prefix, key_marker: key.as_deref(), upload_id_marker: id.as_deref() };
            let a = self.request(&action, "", b"")?;
            let page = UploadsPage::parse(&a.body).map_err(|e| self.document(&a, e))?;
            all.extend(page.uploads.into_iter().filter(|(k, _)| k.starts_with(prefix)));
            let next = (page.next_key_marker, page.next_upload_id_marker);
            if !page.truncated || next == marker || next.0.is_empty() {
                return Ok(all);
            }
            marker = next;
        }
        let text = format!("{} lists unfinished uploads without an end", self.setup.endpoint);
        Err(AdminError::new(Trouble::Other, text))
    }

    /// Aborts one upload; one that is gone is no error.
    pub fn abort_upload(&mut self, key: &str, upload_id: &str) -> Result<(), AdminError> {
        match self.request(&Action::AbortMultipart { upload_id }, key, b"") {
            Err(e) if e.trouble != Trouble::NotFound => Err(e),
            _ => Ok(()),
        }
    }
}

impl Trouble {
    /// The server may know the question in another form: it says that it does not know this one, or stumbles over it.
    fn may_be_of_form(self) -> bool {
        matches!(self, Self::Unsupported | Self::Failing | Self::NotFound | Self::Refused | Self::Other)
    }
}

/// What a batch did not remove. A server may leave the version out of what it says of it.
fn kept(f: DeleteFailure, items: &[DeleteItem]) -> Kept {
    let version = Some(f.version_id).filter(|v| !v.is_empty());
    let named = items.iter().find(|i| i.key == f.key && (version.is_none() || i.version == version));
    let item = named.cloned().unwrap_or(DeleteItem { key: f.key, version });
    Kept { item, code: f.code, message: f.message }
}

/// A query in canonical form: the names come in order; those without a value are left out.
fn query(parts: &[(&str, Option<&str>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in parts {
        let Some(value) = value else { continue };
        if !out.is_empty() {
            out.push(b'&');
        }
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        encode_query(value.as_bytes(), &mut out);
    }
    out
}

impl Answer {
    /// The error code of its body; empty when it has none.
    pub(super) fn code(&self) -> &str {
        self.error.as_ref().map_or("", |e| e.code.as_str())
    }
}
