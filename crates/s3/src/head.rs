//! Request heads: request line, headers, signature, written into the caller's buffer without allocating.
//!
//! Each kind of request has a template made once per endpoint. In it all that never changes is laid out in both
//! forms that are needed, the canonical one (which is signed) and the one on the wire; only key, query, date,
//! payload hash, signature, length and a few values are filled in per request.

use crate::checksum::CrcKind;
use crate::endpoint::Endpoint;
use crate::sign::{Credentials, EMPTY_SHA256, Signer, UNSIGNED_PAYLOAD};
use crate::uri::{encode_path, encode_query, push_decimal};

mod options;
mod template;

pub use options::{HeadOptions, HeaderError, customer_key_problem};
use template::{Slot, Template, Values};

/// What is asked of the server. Strings are raw; they are encoded here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action<'a> {
    /// The body is the object; one that is there is replaced.
    PutObject,
    /// PutObject that fails with 412 where there is such an object already (`If-None-Match: *`).
    PutNew,
    /// The whole object.
    GetObject,
    /// Bytes `first` to `last`, both included.
    GetRange {
        /// Offset in bytes, from 0.
        first: u64,
        /// Offset in bytes; the range ends with it.
        last: u64,
    },
    /// One version of an object.
    GetVersion {
        /// As a listing or `x-amz-version-id` had it.
        version_id: &'a str,
    },
    /// Size and metadata, no body.
    HeadObject,
    /// A bucket that keeps versions puts a delete marker in its place.
    DeleteObject,
    /// One version of an object, or one delete marker, for good.
    DeleteVersion {
        /// As a listing had it; `null` where versions were not kept.
        version_id: &'a str,
    },
    /// Makes the request's key a copy of `source`, a key of the same bucket.
    CopyObject {
        /// Raw: it is encoded into `x-amz-copy-source`.
        source: &'a str,
    },
    /// Begins an upload in parts; the answer has its id.
    CreateMultipart,
    /// The body is the part. One of the same number is replaced.
    UploadPart {
        /// As CreateMultipart's answer had it.
        upload_id: &'a str,
        /// 1 to 10,000.
        number: u32,
    },
    /// The body lists numbers and ETags of the parts; the object is there after it.
    CompleteMultipart {
        /// As CreateMultipart's answer had it.
        upload_id: &'a str,
    },
    /// Removes the parts of an upload, and its id.
    AbortMultipart {
        /// As CreateMultipart's answer had it.
        upload_id: &'a str,
    },
    /// What an upload has so far, page by page.
    ListParts {
        /// As CreateMultipart's answer had it.
        upload_id: &'a str,
        /// Last part number of the page before; 0 for the first page.
        after: u32,
    },
    /// ListObjectsV2.
    List {
        /// Only keys that begin so; empty: all.
        prefix: &'a str,
        /// Keys that have it after the prefix are rolled up into one entry.
        delimiter: Option<&'a str>,
        /// 0: the server's default (1000).
        max_keys: u32,
        /// Of the page before, to go on from there.
        token: Option<&'a str>,
        /// Only keys after this one, in the order of bytes.
        start_after: Option<&'a str>,
        /// Ask for percent-encoded keys, so that any key survives XML.
        url_encoding: bool,
    },
    /// Uploads that have begun and not ended, page by page.
    ListUploads {
        /// Only keys that begin so; empty: all.
        prefix: &'a str,
        /// Last key of the page before.
        key_marker: Option<&'a str>,
        /// Last upload id of the page before: a key may have several.
        upload_id_marker: Option<&'a str>,
    },
    /// Many keys in one body (see [`crate::xml::write_delete`]).
    DeleteObjects {
        /// Base64 of the body's MD5, without which S3 refuses the call.
        content_md5: &'a [u8; 24],
    },
    /// In the signer's region.
    CreateBucket,
    /// Only an empty one goes.
    DeleteBucket,
    /// Whether it is there, and may be reached.
    HeadBucket,
    /// GET of a bucket with a canonical query of the caller's: sorted, encoded, each name with its `=`.
    GetBucket {
        /// Empty for a plain GET.
        query: &'a [u8],
    },
    /// GET of `/`: the account's buckets.
    ListBuckets,
}

/// How the body is covered by the signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadHash<'a> {
    /// Not at all: `UNSIGNED-PAYLOAD`.
    Unsigned,
    /// There is none.
    Empty,
    /// By its SHA-256 in hex (see [`crate::sign::sha256_hex`]).
    Sha256(&'a [u8; 64]),
}

/// The body that follows a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body<'a> {
    /// `Content-Length`, bytes.
    pub length: u64,
    /// What is signed in place of the body.
    pub hash: PayloadHash<'a>,
    /// Base64 of the checksum, when the options name one: PutObject and UploadPart need it then.
    pub checksum: &'a [u8],
}

impl<'a> Body<'a> {
    /// For requests that have none.
    pub const NONE: Body<'static> = Body { length: 0, hash: PayloadHash::Empty, checksum: b"" };

    /// Without a checksum of its own.
    pub fn new(length: u64, hash: PayloadHash<'a>) -> Self {
        Self { length, hash, checksum: b"" }
    }
}

/// The longest key that S3 knows, in bytes of UTF-8.
pub const MAX_KEY_BYTES: usize = 1024;
/// Room that the longest head of this module needs, beside the caller's own headers.
pub const HEAD_CAPACITY: usize = 12 * 1024;

/// Writes the heads of all requests to one bucket at one endpoint. One per worker and endpoint.
#[derive(Debug, Clone)]
pub struct Heads {
    signer: Signer,
    templates: Vec<Template>,
    /// `/bucket` with path addressing, empty with virtual hosts.
    bucket_path: Vec<u8>,
    /// `/bucket/` as the value of `x-amz-copy-source` begins.
    copy_prefix: Vec<u8>,
    canonical: Vec<u8>,
    copy_source: Vec<u8>,
    range: Vec<u8>,
    expect_continue: bool,
    checksum: Option<CrcKind>,
}

impl Heads {
    /// Fails when a header of the options cannot be sent as it is written.
    pub fn new(
        endpoint: &Endpoint,
        credentials: Credentials,
        region: &str,
        options: &HeadOptions,
    ) -> Result<Self, HeaderError> {
        let templates = template::all(endpoint, credentials.session_token.as_deref(), options)?;
        let mut bucket_path = Vec::new();
        if !options.virtual_host {
            bucket_path.push(b'/');
            encode_path(options.bucket.as_bytes(), &mut bucket_path);
        }
        let mut copy_prefix = vec![b'/'];
        encode_path(options.bucket.as_bytes(), &mut copy_prefix);
        copy_prefix.push(b'/');
        Ok(Self {
            signer: Signer::new(credentials, region),
            templates,
            bucket_path,
            copy_prefix,
            canonical: Vec::with_capacity(HEAD_CAPACITY),
            copy_source: Vec::with_capacity(3 * MAX_KEY_BYTES + 128),
            range: Vec::with_capacity(64),
            expect_continue: options.expect_continue,
            checksum: options.checksum,
        })
    }

    /// Which checksum the bodies of PutObject and UploadPart must bring.
    pub fn checksum(&self) -> Option<CrcKind> {
        self.checksum
    }

    /// Whether [`Self::write`] asks the server for `100 Continue` before this body.
    pub fn expects_continue(&self, action: &Action<'_>, body: &Body<'_>) -> bool {
        self.expect_continue
            && body.length > 0
            && matches!(action, Action::PutObject | Action::UploadPart { .. })
    }

    /// Appends the head of one request, signed for the time `unix_s`, to `out`. With [`HEAD_CAPACITY`] free in
    /// `out` it does not allocate. `key` is raw; it is not looked at by requests that concern the bucket.
    pub fn write(
        &mut self,
        out: &mut Vec<u8>,
        action: &Action<'_>,
        key: &[u8],
        body: &Body<'_>,
        unix_s: u64,
    ) {
        let template = &self.templates[Template::index(action)];
        self.signer.at(unix_s);
        let canonical = &mut self.canonical;
        canonical.clear();

        // Line 1 and 2 of the canonical request; the wire's request line has the same path.
        canonical.extend_from_slice(template.method.as_bytes());
        canonical.push(b'\n');
        let path_at = canonical.len();
        push_path(canonical, &self.bucket_path, action, key);
        let path_end = canonical.len();
        canonical.push(b'\n');
        let query_at = canonical.len();
        push_query(canonical, action);
        let query_end = canonical.len();
        canonical.push(b'\n');

        out.extend_from_slice(template.method.as_bytes());
        out.push(b' ');
        out.extend_from_slice(&canonical[path_at..path_end]);
        if query_end > query_at {
            out.push(b'?');
            out.extend_from_slice(&canonical[query_at..query_end]);
        }
        out.extend_from_slice(b" HTTP/1.1\r\n");

        self.copy_source.clear();
        self.range.clear();
        let md5: &[u8] = match action {
            Action::CopyObject { source } => {
                self.copy_source.extend_from_slice(&self.copy_prefix);
                encode_path(source.as_bytes(), &mut self.copy_source);
                b""
            }
            Action::GetRange { first, last } => {
                self.range.extend_from_slice(b"bytes=");
                push_decimal(*first, &mut self.range);
                self.range.push(b'-');
                push_decimal(*last, &mut self.range);
                b""
            }
            Action::DeleteObjects { content_md5 } => content_md5.as_slice(),
            _ => b"",
        };
        let mut values: Values<'_> = [b""; Slot::COUNT];
        values[Slot::ContentMd5 as usize] = md5;
        values[Slot::Range as usize] = &self.range;
        values[Slot::Checksum as usize] = body.checksum;
        let hash = payload_hash(&body.hash);
        values[Slot::ContentSha256 as usize] = hash;
        values[Slot::CopySource as usize] = &self.copy_source;
        values[Slot::Date as usize] = self.signer.date();
        template.write(canonical, out, &values);

        canonical.push(b'\n');
        canonical.extend_from_slice(&template.signed_names);
        canonical.push(b'\n');
        canonical.extend_from_slice(hash);
        let signature = self.signer.sign(&self.canonical);
        out.extend_from_slice(b"authorization:AWS4-HMAC-SHA256 Credential=");
        self.signer.push_credential(out);
        out.extend_from_slice(b",SignedHeaders=");
        out.extend_from_slice(&template.signed_names);
        out.extend_from_slice(b",Signature=");
        out.extend_from_slice(&signature);
        out.extend_from_slice(b"\r\n");

        if template.has_length {
            out.extend_from_slice(b"content-length:");
            push_decimal(body.length, out);
            out.extend_from_slice(b"\r\n");
        }
        if self.expects_continue(action, body) {
            out.extend_from_slice(b"expect:100-continue\r\n");
        }
        out.extend_from_slice(&template.tail);
    }
}

fn payload_hash<'a>(hash: &PayloadHash<'a>) -> &'a [u8] {
    match *hash {
        PayloadHash::Unsigned => UNSIGNED_PAYLOAD,
        PayloadHash::Empty => EMPTY_SHA256,
        PayloadHash::Sha256(hex) => hex,
    }
}

fn push_path(out: &mut Vec<u8>, bucket_path: &[u8], action: &Action<'_>, key: &[u8]) {
    match action {
        Action::ListBuckets => out.push(b'/'),
        _ if Template::concerns_bucket(action) => {
            out.extend_from_slice(bucket_path);
            // `/bucket` and `/bucket/` are both in use; with virtual hosts the path is never empty.
            if bucket_path.is_empty() {
                out.push(b'/');
            }
        }
        _ => {
            out.extend_from_slice(bucket_path);
            out.push(b'/');
            encode_path(key, out);
        }
    }
}

/// Parameters in the order of their encoded names, each with `=`: the canonical form, which is also sent.
fn push_query(out: &mut Vec<u8>, action: &Action<'_>) {
    let start = out.len();
    let mut param = |name: &str, value: &str| {
        if out.len() > start {
            out.push(b'&');
        }
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        encode_query(value.as_bytes(), out);
    };
    match *action {
        Action::CreateMultipart => param("uploads", ""),
        Action::UploadPart { upload_id, number } => {
            param("partNumber", decimal(number).as_str());
            param("uploadId", upload_id);
        }
        Action::CompleteMultipart { upload_id } | Action::AbortMultipart { upload_id } => {
            param("uploadId", upload_id);
        }
        Action::ListParts { upload_id, after } => {
            if after > 0 {
                param("part-number-marker", decimal(after).as_str());
            }
            param("uploadId", upload_id);
        }
        Action::List { prefix, delimiter, max_keys, token, start_after, url_encoding } => {
            if let Some(t) = token {
                param("continuation-token", t);
            }
            if let Some(d) = delimiter {
                param("delimiter", d);
            }
            if url_encoding {
                param("encoding-type", "url");
            }
            param("list-type", "2");
            if max_keys > 0 {
                param("max-keys", decimal(max_keys).as_str());
            }
            param("prefix", prefix);
            if let Some(s) = start_after {
                param("start-after", s);
            }
        }
        Action::ListUploads { prefix, key_marker, upload_id_marker } => {
            if let Some(k) = key_marker {
                param("key-marker", k);
            }
            param("prefix", prefix);
            if let Some(u) = upload_id_marker {
                param("upload-id-marker", u);
            }
            param("uploads", "");
        }
        Action::GetVersion { version_id } | Action::DeleteVersion { version_id } => {
            param("versionId", version_id);
        }
        Action::DeleteObjects { .. } => param("delete", ""),
        Action::GetBucket { query } => out.extend_from_slice(query),
        _ => {}
    }
}

/// A `u32` as text on the stack.
struct Decimal([u8; 10], usize);

impl Decimal {
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0[self.1..]).unwrap_or("0")
    }
}

fn decimal(mut n: u32) -> Decimal {
    let mut d = Decimal([b'0'; 10], 10);
    loop {
        d.1 -= 1;
        d.0[d.1] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            return d;
        }
    }
}

#[cfg(test)]
mod tests;
