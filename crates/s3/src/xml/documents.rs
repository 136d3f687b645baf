//! The answers that are read, as plain structs.

use super::{XmlError, bad, walk};
use plimsoll_model::text::said;

use crate::uri::decode;

/// S3's error answer. Absent elements are empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorDocument {
    /// `NoSuchKey`, `SlowDown`, ...: what to decide by.
    pub code: String,
    /// The server's words, from outside: cleaned before a person sees them.
    pub message: String,
    /// Path of what was asked for.
    pub resource: String,
    /// What the server's logs know the request by.
    pub request_id: String,
    /// Where the bucket really is.
    pub region: String,
    /// Where to go instead (PermanentRedirect, TemporaryRedirect).
    pub endpoint: String,
    /// The server's clock (RequestTimeTooSkewed).
    pub server_time: String,
}

/// Why a body is not the document that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// No well-formed XML, or more of it than is read.
    #[error(transparent)]
    Xml(#[from] XmlError),
    /// The answer is an error, perhaps under status 200.
    #[error("{}: {}", .0.code, .0.message)]
    S3(Box<ErrorDocument>),
}

impl ErrorDocument {
    /// Reads an error answer; `None` when the body is none.
    pub fn parse(body: &[u8]) -> Option<Self> {
        let mut e = Self::default();
        let mut is_error = false;
        let walked = walk(body, |path, text| {
            is_error |= e.take(path, text);
            Ok(())
        });
        (walked.is_ok() && is_error && !e.code.is_empty()).then_some(e)
    }

    fn take(&mut self, path: &str, text: &str) -> bool {
        let field = match path {
            "Error" => return true,
            "Error/Code" => &mut self.code,
            "Error/Message" => &mut self.message,
            "Error/Resource" => &mut self.resource,
            "Error/RequestId" => &mut self.request_id,
            "Error/Region" => &mut self.region,
            "Error/Endpoint" => &mut self.endpoint,
            "Error/ServerTime" => &mut self.server_time,
            _ => return false,
        };
        *field = said(text);
        false
    }
}

/// Walks `body` as a document whose root is `root`; an `Error` root becomes [`DocumentError::S3`]. `visit` gets
/// paths below the root.
pub(super) fn read(
    body: &[u8],
    root: &str,
    mut visit: impl FnMut(&str, &str) -> Result<(), XmlError>,
) -> Result<(), DocumentError> {
    let mut error = ErrorDocument::default();
    let mut is_error = false;
    let mut is_root = false;
    walk(body, |path, text| {
        if let Some(rest) = path.strip_prefix(root) {
            if rest.is_empty() {
                is_root = true;
                return visit("", text);
            }
            if let Some(below) = rest.strip_prefix('/') {
                return visit(below, text);
            }
        }
        is_error |= error.take(path, text);
        Ok(())
    })?;
    if is_error {
        return Err(DocumentError::S3(Box::new(error)));
    }
    if !is_root {
        return Err(bad(format!("its root is not {root}")).into());
    }
    Ok(())
}

/// One object of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListedObject {
    /// Decoded, where the listing was asked for encoded keys.
    pub key: String,
    /// 0 where the element is absent.
    pub size_bytes: u64,
    /// With its quotes.
    pub etag: String,
    /// `GLACIER`, ...; empty where the element is absent.
    pub storage_class: String,
}

/// One page of ListObjectsV2.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListPage {
    /// In the order of the listing.
    pub objects: Vec<ListedObject>,
    /// What a delimiter rolled up: each ends in it.
    pub prefixes: Vec<String>,
    /// There is a next page.
    pub truncated: bool,
    /// Of a truncated listing; a server that gives none cannot be asked for more.
    pub next_token: Option<String>,
}

impl ListPage {
    /// An error document, or one with another root, is an error.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        let mut page = Self::default();
        let mut object = ListedObject::default();
        let mut url = false;
        let mut prefix = String::new();
        read(body, "ListBucketResult", |path, text| {
            match path {
                "EncodingType" => url = text.trim() == "url",
                "IsTruncated" => page.truncated = truth(text),
                "NextContinuationToken" => page.next_token = Some(text.trim().to_owned()),
                "Contents/Key" => object.key = text.to_owned(),
                "Contents/Size" => object.size_bytes = number(text)?,
                "Contents/ETag" => object.etag = text.trim().to_owned(),
                "Contents/StorageClass" => object.storage_class = text.trim().to_owned(),
                "Contents" => page.objects.push(std::mem::take(&mut object)),
                "CommonPrefixes/Prefix" => prefix = text.to_owned(),
                "CommonPrefixes" => page.prefixes.push(std::mem::take(&mut prefix)),
                _ => {}
            }
            Ok(())
        })?;
        if url {
            // The element that says so may come after the keys.
            for k in page.objects.iter_mut().map(|o| &mut o.key).chain(&mut page.prefixes) {
                *k = decode(k, true).ok_or_else(|| bad(format!("key '{k}' is not percent-encoded")))?;
            }
        }
        page.next_token = page.next_token.filter(|t| !t.is_empty());
        Ok(page)
    }
}

/// The upload id of CreateMultipartUpload's answer.
pub fn parse_initiate(body: &[u8]) -> Result<String, DocumentError> {
    let mut id = String::new();
    read(body, "InitiateMultipartUploadResult", |path, text| {
        if path == "UploadId" {
            id = text.trim().to_owned();
        }
        Ok(())
    })?;
    if id.is_empty() { Err(bad("it has no UploadId").into()) } else { Ok(id) }
}

/// The ETag of CompleteMultipartUpload's answer. The status is 200 even when it failed: then the body is an error.
pub fn parse_complete(body: &[u8]) -> Result<String, DocumentError> {
    etag_of(body, "CompleteMultipartUploadResult")
}

/// The ETag of CopyObject's answer. The status may be 200 although it failed.
pub fn parse_copy(body: &[u8]) -> Result<String, DocumentError> {
    etag_of(body, "CopyObjectResult")
}

fn etag_of(body: &[u8], root: &str) -> Result<String, DocumentError> {
    let mut etag = String::new();
    read(body, root, |path, text| {
        if path == "ETag" {
            etag = text.trim().to_owned();
        }
        Ok(())
    })?;
    Ok(etag)
}

/// What DeleteObjects did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeleteResult {
    /// Keys named as deleted (none in quiet mode).
    pub deleted: u64,
    /// Those that are still there.
    pub failed: Vec<DeleteFailure>,
}

/// One key that DeleteObjects left.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeleteFailure {
    /// As it was asked for.
    pub key: String,
    /// Empty: none was named.
    pub version_id: String,
    /// `AccessDenied`, ...: what to decide by.
    pub code: String,
    /// The server's words.
    pub message: String,
}

impl DeleteResult {
    /// An error document, or one with another root, is an error.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        let mut r = Self::default();
        let mut f = DeleteFailure::default();
        read(body, "DeleteResult", |path, text| {
            match path {
                "Deleted" => r.deleted += 1,
                "Error/Key" => f.key = text.to_owned(),
                "Error/VersionId" => f.version_id = text.trim().to_owned(),
                "Error/Code" => f.code = said(text),
                "Error/Message" => f.message = said(text),
                "Error" => r.failed.push(std::mem::take(&mut f)),
                _ => {}
            }
            Ok(())
        })?;
        Ok(r)
    }
}

/// One page of ListMultipartUploads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UploadsPage {
    /// Key and upload id.
    pub uploads: Vec<(String, String)>,
    /// There is a next page.
    pub truncated: bool,
    /// Where the next page begins; empty: the server gives none.
    pub next_key_marker: String,
    /// Where among the uploads of that key.
    pub next_upload_id_marker: String,
}

impl UploadsPage {
    /// An error document, or one with another root, is an error.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        let mut page = Self::default();
        let mut one = (String::new(), String::new());
        read(body, "ListMultipartUploadsResult", |path, text| {
            match path {
                "IsTruncated" => page.truncated = truth(text),
                "NextKeyMarker" => page.next_key_marker = text.to_owned(),
                "NextUploadIdMarker" => page.next_upload_id_marker = text.trim().to_owned(),
                "Upload/Key" => one.0 = text.to_owned(),
                "Upload/UploadId" => one.1 = text.trim().to_owned(),
                "Upload" => page.uploads.push(std::mem::take(&mut one)),
                _ => {}
            }
            Ok(())
        })?;
        Ok(page)
    }
}

/// One page of ListParts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartsPage {
    /// Number, size in bytes, ETag.
    pub parts: Vec<(u32, u64, String)>,
    /// There is a next page: after the last number of this one.
    pub truncated: bool,
}

impl PartsPage {
    /// An error document, or one with another root, is an error.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        let mut page = Self::default();
        let mut one = (0, 0, String::new());
        read(body, "ListPartsResult", |path, text| {
            match path {
                "IsTruncated" => page.truncated = truth(text),
                "Part/PartNumber" => one.0 = number(text)? as u32,
                "Part/Size" => one.1 = number(text)?,
                "Part/ETag" => one.2 = text.trim().to_owned(),
                "Part" => page.parts.push(std::mem::take(&mut one)),
                _ => {}
            }
            Ok(())
        })?;
        Ok(page)
    }
}

/// The region of GetBucketLocation's answer; empty text means us-east-1.
pub fn parse_location(body: &[u8]) -> Result<String, DocumentError> {
    let mut region = String::new();
    read(body, "LocationConstraint", |path, text| {
        if path.is_empty() {
            region = text.trim().to_owned();
        }
        Ok(())
    })?;
    Ok(if region.is_empty() { "us-east-1".into() } else { region })
}

pub(super) fn truth(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("true")
}

pub(super) fn number(text: &str) -> Result<u64, XmlError> {
    text.trim().parse().map_err(|_| bad(format!("'{}' is not a number", text.trim())))
}
