//! Answers: plausible S3 heads and XML for each kind of request, written into the connection's own buffer.

use super::keep::Keep;
use super::request::{Head, Method};
use std::io::Write;

/// ETag of every object: the body is not looked at, so no true MD5 can be told.
pub(crate) const ETAG: &str = "\"9b2cf535f27731c974343645a3985328\"";
const LAST_MODIFIED: &str = "Thu, 01 Jan 2026 00:00:00 GMT";
const XML: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
const NS: &str = "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"";

/// What a request is, in the words of the limiter and of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Get,
    Head,
    Put,
    Copy,
    Part,
    Multipart,
    Delete,
    DeleteMany,
    List,
    Bucket,
    Stats,
}

pub(crate) fn kind_of(h: &Head<'_>) -> Kind {
    let key = h.has_key();
    match h.method {
        _ if h.path == b"/__stats" => Kind::Stats,
        Method::Get if key && h.query_value(b"uploadId").is_some() => Kind::List,
        Method::Get if key => Kind::Get,
        Method::Head if key => Kind::Head,
        Method::Put if key && h.query_value(b"uploadId").is_some() => Kind::Part,
        Method::Put if key && h.copy => Kind::Copy,
        Method::Put if key => Kind::Put,
        Method::Post if h.query_value(b"delete").is_some() => Kind::DeleteMany,
        Method::Post if key => Kind::Multipart,
        Method::Delete if key => Kind::Delete,
        Method::Get if is_bucket_query(h) => Kind::Bucket,
        Method::Get => Kind::List,
        _ => Kind::Bucket,
    }
}

fn is_bucket_query(h: &Head<'_>) -> bool {
    [&b"location"[..], b"versioning", b"object-lock", b"policy", b"lifecycle", b"tagging"]
        .iter()
        .any(|q| h.query_value(q).is_some())
}

/// What surrounds an answer: constants of this server and the second's date.
#[derive(Debug)]
pub(crate) struct Env<'a> {
    pub date: &'a str,
    pub body_bytes: u64,
    pub list_keys: u64,
    pub server: &'a str,
    /// Where bodies are, if they are kept.
    pub keep: Option<&'a Keep>,
}

/// The body that follows the head from the pool: (offset, bytes).
pub(crate) type PoolBody = (u64, u64);

/// Status line and the headers that every answer has.
fn start(out: &mut Vec<u8>, status: u16, env: &Env<'_>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    let _ = write!(out, "{status} {}", reason(status));
    for part in
        ["\r\nServer: ", env.server, "\r\nDate: ", env.date, "\r\nx-amz-request-id: 0000000000000000\r\n"]
    {
        out.extend_from_slice(part.as_bytes());
    }
}

fn length(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(b"Content-Length: ");
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut n = n;
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\r\n");
}

fn with_xml(out: &mut Vec<u8>, status: u16, env: &Env<'_>, body: &str) {
    start(out, status, env);
    out.extend_from_slice(b"Content-Type: application/xml\r\n");
    length(out, (XML.len() + body.len()) as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(XML.as_bytes());
    out.extend_from_slice(body.as_bytes());
}

/// An answer without a body.
pub(crate) fn empty(out: &mut Vec<u8>, status: u16, env: &Env<'_>) {
    start(out, status, env);
    if status != 204 {
        length(out, 0);
    }
    out.extend_from_slice(b"\r\n");
}

/// An S3 error; a HEAD gets the status and no body.
pub(crate) fn error(out: &mut Vec<u8>, status: u16, extra: &str, is_head: bool, env: &Env<'_>) {
    let (code, message) = s3_error(status);
    start(out, status, env);
    out.extend_from_slice(extra.as_bytes());
    if is_head {
        out.extend_from_slice(b"Content-Length: 0\r\n\r\n");
        return;
    }
    let body = format!(
        "{XML}<Error><Code>{code}</Code><Message>{message}</Message><RequestId>0</RequestId></Error>"
    );
    out.extend_from_slice(b"Content-Type: application/xml\r\n");
    length(out, body.len() as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body.as_bytes());
}

/// The good answer to a request; `body` is what was kept of its body (batch deletes only).
pub(crate) fn good(out: &mut Vec<u8>, h: &Head<'_>, kind: Kind, env: &Env<'_>) -> PoolBody {
    let text = |v: Option<&[u8]>| escape(&decode(v.unwrap_or_default()));
    match kind {
        Kind::Get | Kind::Head => return object(out, h, kind, env),
        Kind::Put | Kind::Part => {
            start(out, 200, env);
            let _ = write!(out, "ETag: {ETAG}\r\n");
            length(out, 0);
            out.extend_from_slice(b"\r\n");
        }
        Kind::Copy => {
            let body = format!(
                "<CopyObjectResult {NS}><ETag>{ETAG}</ETag><LastModified>2026-01-01T00:00:00.000Z</LastModified></CopyObjectResult>"
            );
            with_xml(out, 200, env, &body);
        }
        Kind::Multipart => {
            let (bucket, key) = bucket_and_key(h.path);
            let body = if h.query_value(b"uploads").is_some() {
                format!(
                    "<InitiateMultipartUploadResult {NS}><Bucket>{bucket}</Bucket><Key>{key}</Key><UploadId>canned-upload</UploadId></InitiateMultipartUploadResult>"
                )
            } else {
                format!(
                    "<CompleteMultipartUploadResult {NS}><Location>/{bucket}/{key}</Location><Bucket>{bucket}</Bucket><Key>{key}</Key><ETag>{ETAG}</ETag></CompleteMultipartUploadResult>"
                )
            };
            with_xml(out, 200, env, &body);
        }
        Kind::Delete => empty(out, 204, env),
        Kind::List => with_xml(out, 200, env, &list(h, env)),
        Kind::Bucket => bucket(out, h, env),
        Kind::DeleteMany | Kind::Stats => {
            with_xml(out, 200, env, &format!("<DeleteResult {NS}>{}</DeleteResult>", text(None)));
        }
    }
    (0, 0)
}

fn object(out: &mut Vec<u8>, h: &Head<'_>, kind: Kind, env: &Env<'_>) -> PoolBody {
    let Some((first, bytes, ranged)) = h.range_of(env.body_bytes) else {
        error(out, 416, "", kind == Kind::Head, env);
        return (0, 0);
    };
    start(out, if ranged { 206 } else { 200 }, env);
    if ranged {
        let _ = write!(out, "Content-Range: bytes {first}-{}/{}\r\n", first + bytes - 1, env.body_bytes);
    }
    for part in ["ETag: ", ETAG, "\r\nLast-Modified: ", LAST_MODIFIED] {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(b"\r\nAccept-Ranges: bytes\r\nContent-Type: application/octet-stream\r\n");
    length(out, bytes);
    out.extend_from_slice(b"\r\n");
    if kind == Kind::Head { (0, 0) } else { (first, bytes) }
}

fn bucket(out: &mut Vec<u8>, h: &Head<'_>, env: &Env<'_>) {
    match h.method {
        Method::Get if h.query_value(b"location").is_some() => {
            with_xml(out, 200, env, &format!("<LocationConstraint {NS}/>"));
        }
        Method::Get if h.query_value(b"versioning").is_some() => {
            with_xml(out, 200, env, &format!("<VersioningConfiguration {NS}/>"));
        }
        Method::Get => error(out, 404, "", false, env),
        Method::Delete => empty(out, 204, env),
        Method::Head | Method::Put => empty(out, 200, env),
        Method::Post | Method::Other => error(out, 405, "", false, env),
    }
}

/// A page of keys under the prefix that was asked for; the list of buckets at the root; empty lists of uploads.
fn list(h: &Head<'_>, env: &Env<'_>) -> String {
    let (bucket, key) = bucket_and_key(h.path);
    if bucket.is_empty() {
        return format!(
            "<ListAllMyBucketsResult {NS}><Owner><ID>canned</ID></Owner><Buckets/></ListAllMyBucketsResult>"
        );
    }
    if h.query_value(b"uploads").is_some() {
        return format!(
            "<ListMultipartUploadsResult {NS}><Bucket>{bucket}</Bucket><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>"
        );
    }
    if h.query_value(b"uploadId").is_some() {
        return format!(
            "<ListPartsResult {NS}><Bucket>{bucket}</Bucket><Key>{key}</Key><IsTruncated>false</IsTruncated></ListPartsResult>"
        );
    }
    if let Some(keep) = env.keep {
        return list_kept(h, keep, &bucket);
    }
    let prefix = escape(&decode(h.query_value(b"prefix").unwrap_or_default()));
    let max = h.query_value(b"max-keys").and_then(super::request::number).unwrap_or(1_000);
    let n = env.list_keys.min(max);
    let mut body = format!(
        "<ListBucketResult {NS}><Name>{bucket}</Name><Prefix>{prefix}</Prefix><KeyCount>{n}</KeyCount><MaxKeys>{max}</MaxKeys><IsTruncated>false</IsTruncated>"
    );
    for i in 0..n {
        body.push_str(&format!(
            "<Contents><Key>{prefix}object-{i:06}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>{ETAG}</ETag><Size>{}</Size><StorageClass>STANDARD</StorageClass></Contents>",
            env.body_bytes
        ));
    }
    body.push_str("</ListBucketResult>");
    body
}

/// A page of what is kept. The continuation token is the last key of the page before.
fn list_kept(h: &Head<'_>, keep: &Keep, bucket: &str) -> String {
    let text = |name: &[u8]| decode(h.query_value(name).unwrap_or_default());
    let prefix = text(b"prefix");
    let after = text(b"continuation-token").max(text(b"start-after"));
    let max = h.query_value(b"max-keys").and_then(super::request::number).unwrap_or(1_000).min(1_000);
    let (page, more) = keep.list(bucket, &prefix, &after, max as usize);
    let mut body = format!(
        "<ListBucketResult {NS}><Name>{bucket}</Name><Prefix>{}</Prefix><KeyCount>{}</KeyCount><MaxKeys>{max}</MaxKeys><IsTruncated>{more}</IsTruncated>",
        escape(&prefix),
        page.len()
    );
    if let (true, Some((last, _))) = (more, page.last()) {
        body.push_str(&format!("<NextContinuationToken>{}</NextContinuationToken>", escape(last)));
    }
    for (key, bytes) in &page {
        body.push_str(&format!(
            "<Contents><Key>{}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>{ETAG}</ETag><Size>{bytes}</Size><StorageClass>STANDARD</StorageClass></Contents>",
            escape(key)
        ));
    }
    body.push_str("</ListBucketResult>");
    body
}

/// The answer to a batch delete: every `<Key>` of the request, as it was written there.
pub(crate) fn delete_many(out: &mut Vec<u8>, request: &[u8], bucket: &str, env: &Env<'_>) {
    let text = String::from_utf8_lossy(request);
    let mut body = format!("<DeleteResult {NS}>");
    let quiet = text.contains("<Quiet>true</Quiet>");
    for piece in text.split("<Key>").skip(1) {
        let Some(end) = piece.find("</Key>") else { continue };
        if !quiet {
            body.push_str("<Deleted><Key>");
            body.push_str(&piece[..end]);
            body.push_str("</Key></Deleted>");
        }
        if let Some(keep) = env.keep {
            keep.delete(&format!("{}/{}", bucket.trim_end_matches('/'), unescape(&piece[..end])));
        }
    }
    body.push_str("</DeleteResult>");
    with_xml(out, 200, env, &body);
}

pub(crate) fn json(out: &mut Vec<u8>, body: &str, env: &Env<'_>) {
    start(out, 200, env);
    out.extend_from_slice(b"Content-Type: application/json\r\n");
    length(out, body.len() as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body.as_bytes());
}

/// Bucket and key of a path, decoded and escaped for XML.
fn bucket_and_key(path: &[u8]) -> (String, String) {
    let rest = path.get(1..).unwrap_or_default();
    let (bucket, key) = match rest.iter().position(|&b| b == b'/') {
        Some(i) => (&rest[..i], &rest[i + 1..]),
        None => (rest, &b""[..]),
    };
    (escape(&decode(bucket)), escape(&decode(key)))
}

pub(crate) fn decode(v: &[u8]) -> String {
    let mut out = Vec::with_capacity(v.len());
    let mut at = 0;
    while at < v.len() {
        let pair = || {
            let digit = |b: Option<&u8>| b.and_then(|&b| (b as char).to_digit(16));
            Some((digit(v.get(at + 1))? * 16 + digit(v.get(at + 2))?) as u8)
        };
        match (v[at], pair()) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn escape(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    for c in s.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

fn unescape(s: &str) -> String {
    s.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}

fn s3_error(status: u16) -> (&'static str, &'static str) {
    match status {
        400 => ("BadRequest", "The request could not be understood."),
        403 => ("AccessDenied", "Access Denied"),
        404 => ("NoSuchKey", "The specified key does not exist."),
        405 => ("MethodNotAllowed", "The specified method is not allowed against this resource."),
        416 => ("InvalidRange", "The requested range is not satisfiable."),
        429 => ("TooManyRequests", "Please reduce your request rate."),
        503 => ("SlowDown", "Please reduce your request rate."),
        501 => ("NotImplemented", "Bodies in chunks are not kept."),
        507 => ("InsufficientStorage", "There is no room to keep this body."),
        _ => ("InternalError", "We encountered an internal error. Please try again."),
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        206 => "Partial Content",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        507 => "Insufficient Storage",
        500 => "Internal Server Error",
        _ => "Status",
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::Parsed;
    use super::*;

    fn answer(raw: &str) -> (String, PoolBody) {
        let Parsed::Complete(h) = Head::parse(raw.as_bytes()) else { panic!("head") };
        let env = Env { date: "D", body_bytes: 100, list_keys: 2, server: "S", keep: None };
        let mut out = Vec::new();
        let body = good(&mut out, &h, kind_of(&h), &env);
        (String::from_utf8(out).unwrap(), body)
    }

    #[test]
    fn each_request_gets_its_kind_of_answer() {
        let (text, body) = answer("GET /b/k HTTP/1.1\r\nRange: bytes=10-19\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 206 ") && text.contains("Content-Range: bytes 10-19/100\r\n"));
        assert_eq!(body, (10, 10));
        let (text, body) = answer("HEAD /b/k HTTP/1.1\r\n\r\n");
        assert!(text.contains("Content-Length: 100\r\n") && body == (0, 0));
        let (text, _) = answer("GET /b?list-type=2&prefix=a%26b/ HTTP/1.1\r\n\r\n");
        assert!(text.contains("<Key>a&amp;b/object-000001</Key>") && text.contains("<KeyCount>2</KeyCount>"));
        let (text, _) = answer("POST /b/k?uploads= HTTP/1.1\r\n\r\n");
        assert!(text.contains("<UploadId>"));
        let (text, _) = answer("DELETE /b/k HTTP/1.1\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 204 ") && !text.contains("Content-Length"));
        let (text, _) = answer("GET /b/k HTTP/1.1\r\nRange: bytes=100-\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 416 "));
    }

    #[test]
    fn lengths_are_those_of_the_bodies() {
        for raw in [
            "GET /?x HTTP/1.1\r\n\r\n",
            "GET /b?uploads HTTP/1.1\r\n\r\n",
            "POST /b/k?uploadId=1 HTTP/1.1\r\n\r\n",
        ] {
            let (text, _) = answer(raw);
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            let n: usize =
                head.split("Content-Length: ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
            assert_eq!(n, body.len(), "{text}");
        }
    }

    #[test]
    fn a_batch_delete_names_its_keys() {
        let env = Env { date: "D", body_bytes: 1, list_keys: 0, server: "S", keep: None };
        let mut out = Vec::new();
        let request = b"<Delete><Object><Key>a&amp;b</Key></Object><Object><Key>c</Key></Object></Delete>";
        delete_many(&mut out, request, "/b", &env);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("<Deleted>").count(), 2);
        assert!(text.contains("<Key>a&amp;b</Key>"));
    }

    #[test]
    fn what_is_kept_is_listed_and_deleted_by_name() {
        let keep = Keep::new(100);
        for key in ["a&b", "c", "d"] {
            keep.put(format!("/b/{key}"), vec![0; 3]);
        }
        let env = Env { date: "D", body_bytes: 1, list_keys: 9, server: "S", keep: Some(&keep) };
        let page = |query: &str| {
            let raw = format!("GET /b?list-type=2&{query} HTTP/1.1\r\n\r\n");
            let Parsed::Complete(h) = Head::parse(raw.as_bytes()) else { panic!("head") };
            list(&h, &env)
        };
        let first = page("max-keys=2");
        assert!(
            first.contains("<IsTruncated>true</IsTruncated><NextContinuationToken>c</NextContinuationToken>")
        );
        assert!(first.contains("<Key>a&amp;b</Key>") && first.contains("<Size>3</Size>"));
        assert!(page("continuation-token=c").contains("<KeyCount>1</KeyCount>"));
        let request = b"<Delete><Quiet>true</Quiet><Object><Key>a&amp;b</Key></Object></Delete>";
        delete_many(&mut Vec::new(), request, "/b", &env);
        assert!(page("").contains("<KeyCount>2</KeyCount>"));
    }
}
