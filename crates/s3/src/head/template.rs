//! One request kind at one endpoint, laid out once: constant text with holes.

use super::Action;
use super::options::{Extra, HeadOptions, HeaderError};
use crate::checksum::CrcKind;
use crate::endpoint::Endpoint;

/// A value that changes from request to request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    ContentMd5,
    Range,
    Checksum,
    ContentSha256,
    CopySource,
    Date,
}

impl Slot {
    pub const COUNT: usize = 6;
}

/// A value for each [`Slot`].
pub(super) type Values<'a> = [&'a [u8]; Slot::COUNT];

/// Constant text as the canonical request and as the wire have it, then perhaps a hole.
#[derive(Debug, Clone)]
struct Piece {
    canonical: Vec<u8>,
    wire: Vec<u8>,
    then: Option<Slot>,
}

#[derive(Debug, Clone)]
pub(super) struct Template {
    pub method: &'static str,
    pieces: Vec<Piece>,
    /// `host;x-amz-content-sha256;x-amz-date`, sorted.
    pub signed_names: Vec<u8>,
    pub has_length: bool,
    /// What follows the authorization: unsigned constant headers and the empty line.
    pub tail: Vec<u8>,
}

enum Value {
    Fixed(String),
    Hole(Slot),
}

/// Kinds of requests, in the order of the templates.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Kind {
    Put,
    PutNew,
    Get,
    GetRange,
    Head,
    Delete,
    Copy,
    CreateMultipart,
    UploadPart,
    /// POST or DELETE or GET with nothing but a query.
    Complete,
    DeleteObjects,
    PlainGet,
    PlainPut,
    PlainHead,
}

const KINDS: [Kind; 14] = [
    Kind::Put,
    Kind::PutNew,
    Kind::Get,
    Kind::GetRange,
    Kind::Head,
    Kind::Delete,
    Kind::Copy,
    Kind::CreateMultipart,
    Kind::UploadPart,
    Kind::Complete,
    Kind::DeleteObjects,
    Kind::PlainGet,
    Kind::PlainPut,
    Kind::PlainHead,
];

/// ListBuckets has no bucket in its host; it has a template after all others.
const LIST_BUCKETS: usize = KINDS.len();

impl Template {
    pub fn index(action: &Action<'_>) -> usize {
        let kind = match action {
            Action::PutObject => Kind::Put,
            Action::PutNew => Kind::PutNew,
            Action::GetObject | Action::GetVersion { .. } => Kind::Get,
            Action::GetRange { .. } => Kind::GetRange,
            Action::HeadObject => Kind::Head,
            Action::DeleteObject
            | Action::DeleteVersion { .. }
            | Action::AbortMultipart { .. }
            | Action::DeleteBucket => Kind::Delete,
            Action::CopyObject { .. } => Kind::Copy,
            Action::CreateMultipart => Kind::CreateMultipart,
            Action::UploadPart { .. } => Kind::UploadPart,
            Action::CompleteMultipart { .. } => Kind::Complete,
            Action::DeleteObjects { .. } => Kind::DeleteObjects,
            Action::ListParts { .. }
            | Action::List { .. }
            | Action::ListUploads { .. }
            | Action::GetBucket { .. } => Kind::PlainGet,
            Action::CreateBucket => Kind::PlainPut,
            Action::HeadBucket => Kind::PlainHead,
            Action::ListBuckets => return LIST_BUCKETS,
        };
        kind as usize
    }

    /// Whether the path ends at the bucket.
    pub fn concerns_bucket(action: &Action<'_>) -> bool {
        matches!(
            action,
            Action::List { .. }
                | Action::ListUploads { .. }
                | Action::DeleteObjects { .. }
                | Action::CreateBucket
                | Action::DeleteBucket
                | Action::HeadBucket
                | Action::GetBucket { .. }
        )
    }

    /// Appends the headers in both forms.
    #[inline]
    pub fn write(&self, canonical: &mut Vec<u8>, wire: &mut Vec<u8>, values: &Values<'_>) {
        for p in &self.pieces {
            canonical.extend_from_slice(&p.canonical);
            wire.extend_from_slice(&p.wire);
            if let Some(slot) = p.then {
                canonical.extend_from_slice(values[slot as usize]);
                wire.extend_from_slice(values[slot as usize]);
            }
        }
    }

    fn new(
        method: &'static str,
        host: &str,
        token: Option<&str>,
        mut headers: Vec<(String, Value)>,
        close: bool,
    ) -> Self {
        headers.push(("host".into(), Value::Fixed(host.into())));
        headers.push(("x-amz-content-sha256".into(), Value::Hole(Slot::ContentSha256)));
        headers.push(("x-amz-date".into(), Value::Hole(Slot::Date)));
        if let Some(t) = token {
            headers.push(("x-amz-security-token".into(), Value::Fixed(t.into())));
        }
        headers.sort_by(|a, b| a.0.cmp(&b.0));
        let names: Vec<&str> = headers.iter().map(|(n, _)| n.as_str()).collect();
        let signed_names = names.join(";").into_bytes();
        let mut pieces = vec![Piece { canonical: Vec::new(), wire: Vec::new(), then: None }];
        for (name, value) in &headers {
            let last = pieces.last_mut().expect("starts with one piece");
            let text = format!("{name}:");
            last.canonical.extend_from_slice(text.as_bytes());
            last.wire.extend_from_slice(text.as_bytes());
            let tail = match value {
                Value::Fixed(v) => {
                    last.canonical.extend_from_slice(single_spaced(v).as_bytes());
                    last.wire.extend_from_slice(v.as_bytes());
                    last
                }
                Value::Hole(slot) => {
                    last.then = Some(*slot);
                    pieces.push(Piece { canonical: Vec::new(), wire: Vec::new(), then: None });
                    pieces.last_mut().expect("just pushed")
                }
            };
            tail.canonical.extend_from_slice(b"\n");
            tail.wire.extend_from_slice(b"\r\n");
        }
        let mut tail = format!("user-agent:plimsoll/{}\r\n", env!("CARGO_PKG_VERSION"));
        if close {
            tail.push_str("connection:close\r\n");
        }
        tail.push_str("\r\n");
        let has_length = matches!(method, "PUT" | "POST");
        Self { method, pieces, signed_names, has_length, tail: tail.into_bytes() }
    }
}

/// Runs of spaces become one in the canonical form (SigV4, "Trimall").
fn single_spaced(v: &str) -> String {
    v.split([' ', '\t']).filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ")
}

/// All templates of one endpoint, in the order of [`Template::index`].
pub(super) fn all(
    endpoint: &Endpoint,
    token: Option<&str>,
    options: &HeadOptions,
) -> Result<Vec<Template>, HeaderError> {
    let extra = Extra::new(&options.put_headers)?;
    let bucket = options.virtual_host.then_some(options.bucket.as_str());
    let host = endpoint.host_header(bucket);
    let mut list: Vec<Template> = KINDS
        .iter()
        .map(|&kind| {
            let (method, headers) = layout(kind, &extra, options.checksum);
            Template::new(method, &host, token, headers, options.close)
        })
        .collect();
    list.push(Template::new("GET", &endpoint.host_header(None), token, Vec::new(), options.close));
    Ok(list)
}

fn layout(kind: Kind, extra: &Extra, checksum: Option<CrcKind>) -> (&'static str, Vec<(String, Value)>) {
    let fixed = |list: &[(String, String)]| -> Vec<(String, Value)> {
        list.iter().map(|(n, v)| (n.clone(), Value::Fixed(v.clone()))).collect()
    };
    let hole = |name: &str, slot| (name.to_owned(), Value::Hole(slot));
    let mut h = Vec::new();
    let method = match kind {
        Kind::Put | Kind::PutNew => {
            h.extend(fixed(&extra.put));
            h.extend(fixed(&extra.sse_c));
            h.extend(checksum.map(|c| hole(c.header(), Slot::Checksum)));
            if matches!(kind, Kind::PutNew) {
                h.retain(|(name, _)| name != "if-none-match");
                h.push(("if-none-match".into(), Value::Fixed("*".into())));
            }
            "PUT"
        }
        Kind::UploadPart => {
            h.extend(fixed(&extra.sse_c));
            h.extend(checksum.map(|c| hole(c.header(), Slot::Checksum)));
            "PUT"
        }
        Kind::Copy => {
            h.extend(fixed(&extra.put));
            h.extend(fixed(&extra.sse_c));
            h.extend(extra.copy_source_sse_c().map(|(n, v)| (n, Value::Fixed(v))));
            h.push(hole("x-amz-copy-source", Slot::CopySource));
            "PUT"
        }
        Kind::CreateMultipart => {
            h.extend(fixed(&extra.put));
            h.extend(fixed(&extra.sse_c));
            if let Some(c) = checksum {
                h.push(("x-amz-checksum-algorithm".into(), Value::Fixed(c.algorithm().into())));
                // CRC64NVME exists for whole objects only; CRC32C of a multipart object is one of its parts' sums.
                let of = if c == CrcKind::Crc64Nvme { "FULL_OBJECT" } else { "COMPOSITE" };
                h.push(("x-amz-checksum-type".into(), Value::Fixed(of.into())));
            }
            "POST"
        }
        Kind::Get | Kind::GetRange | Kind::Head => {
            h.extend(fixed(&extra.sse_c));
            if checksum.is_some() && !matches!(kind, Kind::GetRange) {
                h.push(("x-amz-checksum-mode".into(), Value::Fixed("ENABLED".into())));
            }
            if matches!(kind, Kind::GetRange) {
                h.push(hole("range", Slot::Range));
            }
            if matches!(kind, Kind::Head) { "HEAD" } else { "GET" }
        }
        Kind::DeleteObjects => {
            h.push(hole("content-md5", Slot::ContentMd5));
            "POST"
        }
        Kind::Complete => "POST",
        Kind::Delete => "DELETE",
        Kind::PlainGet => "GET",
        Kind::PlainPut => "PUT",
        Kind::PlainHead => "HEAD",
    };
    (method, h)
}
