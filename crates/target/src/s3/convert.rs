//! Between the words of S3 (as s3s types them) and those of the store.

use super::error::StoreError;
use super::multipart::hasher;
use super::object::{Checksums, Headers, Meta};
use super::store::Condition;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use s3s::checksum::ChecksumHasher;
use s3s::dto::{ETag, ETagCondition, Timestamp};
use s3s::{S3ErrorCode, S3Request};
use std::collections::HashMap;
use std::time::{Duration, UNIX_EPOCH};

pub(crate) fn timestamp(unix_ms: u64) -> Timestamp {
    (UNIX_EPOCH + Duration::from_millis(unix_ms)).into()
}

pub(crate) fn etag(tag: &str) -> ETag {
    ETag::Strong(tag.to_owned())
}

/// A timestamp of a header, in unix milliseconds.
pub(crate) fn unix_ms(t: &Timestamp) -> i64 {
    let mut text = Vec::new();
    if t.format(s3s::dto::TimestampFormat::EpochSeconds, &mut text).is_err() {
        return 0;
    }
    let seconds: f64 = String::from_utf8_lossy(&text).parse().unwrap_or(0.0);
    (seconds * 1_000.0) as i64
}

/// The conditions of a request that writes.
pub(crate) fn write_condition(
    if_match: Option<&ETagCondition>,
    if_none_match: Option<&ETagCondition>,
) -> Condition {
    match (if_match, if_none_match) {
        (Some(ETagCondition::Any), _) => Condition::Present,
        (Some(ETagCondition::ETag(t)), _) => Condition::Is(t.value().to_owned()),
        (None, Some(ETagCondition::Any)) => Condition::Absent,
        (None, Some(ETagCondition::ETag(t))) => Condition::IsNot(t.value().to_owned()),
        (None, None) => Condition::None,
    }
}

/// What a conditional read comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Go,
    NotModified,
    Failed,
}

/// RFC 9110, section 13.2.2, in the order it says. Dates have whole seconds.
pub(crate) fn read_condition(
    meta: &Meta,
    if_match: Option<&ETagCondition>,
    if_none_match: Option<&ETagCondition>,
    modified_since: Option<&Timestamp>,
    unmodified_since: Option<&Timestamp>,
) -> Read {
    let hit = |c: &ETagCondition| c.is_any() || c.as_etag().is_some_and(|t| t.value() == meta.etag);
    let modified_s = (meta.modified_ms / 1_000) as i64;
    match (if_match, unmodified_since) {
        (Some(c), _) if !hit(c) => return Read::Failed,
        (None, Some(t)) if modified_s > unix_ms(t) / 1_000 => return Read::Failed,
        _ => {}
    }
    match (if_none_match, modified_since) {
        (Some(c), _) if hit(c) => Read::NotModified,
        (None, Some(t)) if modified_s <= unix_ms(t) / 1_000 => Read::NotModified,
        _ => Read::Go,
    }
}

/// The headers that PUT, COPY and multipart uploads store.
macro_rules! headers_of {
    ($input:expr) => {
        $crate::s3::object::Headers {
            content_type: $input.content_type.clone(),
            cache_control: $input.cache_control.clone(),
            content_disposition: $input.content_disposition.clone(),
            content_encoding: $input.content_encoding.clone(),
            content_language: $input.content_language.clone(),
            expires_ms: $input.expires.as_ref().map($crate::s3::convert::unix_ms),
            storage_class: $input
                .storage_class
                .as_ref()
                .map(|c| c.as_str().to_owned())
                .filter(|c| c != "STANDARD"),
            encryption: $input.server_side_encryption.as_ref().map(|e| e.as_str().to_owned()),
            metadata: $input.metadata.clone().unwrap_or_default().into_iter().collect(),
        }
    };
}
pub(crate) use headers_of;

/// Puts the stored headers into a GET or HEAD answer.
macro_rules! fill_headers {
    ($output:expr, $meta:expr, $with_sums:expr) => {{
        let (h, c) = (&$meta.headers, &$meta.checksums);
        $output.accept_ranges = Some("bytes".into());
        $output.e_tag = Some($crate::s3::convert::etag(&$meta.etag));
        $output.last_modified = Some($crate::s3::convert::timestamp($meta.modified_ms));
        $output.content_type = Some(h.content_type.clone().unwrap_or_else(|| "binary/octet-stream".into()));
        $output.cache_control = h.cache_control.clone();
        $output.content_disposition = h.content_disposition.clone();
        $output.content_encoding = h.content_encoding.clone();
        $output.content_language = h.content_language.clone();
        $output.expires = h.expires_ms.map(|ms| $crate::s3::convert::timestamp(ms.max(0) as u64));
        $output.storage_class = h.storage_class.clone().map(Into::into);
        $output.server_side_encryption = h.encryption.clone().map(Into::into);
        $output.metadata = Some($crate::s3::convert::metadata(h));
        if $with_sums {
            $crate::s3::convert::fill_sums!($output, c);
            $output.checksum_type = c.kind.clone().map(Into::into);
        }
    }};
}
pub(crate) use fill_headers;

/// Copies checksums into an answer.
macro_rules! fill_sums {
    ($output:expr, $sums:expr) => {{
        $output.checksum_crc32 = $sums.crc32.clone();
        $output.checksum_crc32c = $sums.crc32c.clone();
        $output.checksum_crc64nvme = $sums.crc64nvme.clone();
        $output.checksum_sha1 = $sums.sha1.clone();
        $output.checksum_sha256 = $sums.sha256.clone();
    }};
}
pub(crate) use fill_sums;

/// Checksums that the input of a request names.
macro_rules! sums_of {
    ($input:expr) => {
        $crate::s3::object::Checksums {
            crc32: $input.checksum_crc32.clone(),
            crc32c: $input.checksum_crc32c.clone(),
            crc64nvme: $input.checksum_crc64nvme.clone(),
            sha1: $input.checksum_sha1.clone(),
            sha256: $input.checksum_sha256.clone(),
            kind: None,
        }
    };
}
pub(crate) use sums_of;

pub(crate) fn metadata(h: &Headers) -> HashMap<String, String> {
    h.metadata.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
}

const TRAILERS: [(&str, &str); 5] = [
    ("x-amz-checksum-crc32", "CRC32"),
    ("x-amz-checksum-crc32c", "CRC32C"),
    ("x-amz-checksum-crc64nvme", "CRC64NVME"),
    ("x-amz-checksum-sha1", "SHA1"),
    ("x-amz-checksum-sha256", "SHA256"),
];

/// The hashers that a body needs: for checksums in headers, in announced trailers, or asked for by name.
pub(crate) fn hashers<T>(req: &S3Request<T>, given: &Checksums, algorithm: Option<&str>) -> ChecksumHasher {
    let trailer = req.headers.get("x-amz-trailer").and_then(|v| v.to_str().ok()).unwrap_or_default();
    let trailing = TRAILERS.iter().find(|t| t.0.eq_ignore_ascii_case(trailer.trim())).map(|t| t.1);
    let mut h = hasher(algorithm.or(trailing));
    let on = |name: &str, is: bool| hasher(is.then_some(name));
    if h.crc32.is_none() {
        h.crc32 = on("CRC32", given.crc32.is_some() || trailing == Some("CRC32")).crc32;
    }
    if h.crc32c.is_none() {
        h.crc32c = on("CRC32C", given.crc32c.is_some() || trailing == Some("CRC32C")).crc32c;
    }
    if h.crc64nvme.is_none() {
        h.crc64nvme = on("CRC64NVME", given.crc64nvme.is_some() || trailing == Some("CRC64NVME")).crc64nvme;
    }
    if h.sha1.is_none() {
        h.sha1 = on("SHA1", given.sha1.is_some() || trailing == Some("SHA1")).sha1;
    }
    if h.sha256.is_none() {
        h.sha256 = on("SHA256", given.sha256.is_some() || trailing == Some("SHA256")).sha256;
    }
    h
}

/// Checksums that came behind the body.
pub(crate) fn trailing_sums<T>(req: &S3Request<T>) -> Checksums {
    let mut sums = Checksums::default();
    let Some(trailers) = req.trailing_headers.as_ref().and_then(s3s::TrailingHeaders::take) else {
        return sums;
    };
    let get = |name: &str| trailers.get(name).and_then(|v| v.to_str().ok()).map(|v| v.trim().to_owned());
    sums.crc32 = get("x-amz-checksum-crc32");
    sums.crc32c = get("x-amz-checksum-crc32c");
    sums.crc64nvme = get("x-amz-checksum-crc64nvme");
    sums.sha1 = get("x-amz-checksum-sha1");
    sums.sha256 = get("x-amz-checksum-sha256");
    sums
}

/// Holds what was received against what was said about it.
pub(crate) fn verify(
    md5: &[u8; 16],
    got: &Checksums,
    said: [&Checksums; 2],
    content_md5: Option<&str>,
) -> Result<(), StoreError> {
    if let Some(want) = content_md5 {
        let want = BASE64.decode(want).ok().filter(|w| w.len() == 16);
        let want = want.ok_or_else(|| {
            StoreError::invalid(S3ErrorCode::InvalidDigest, "Content-MD5 is no MD5 in base64")
        })?;
        if want != md5 {
            return Err(StoreError::invalid(
                S3ErrorCode::BadDigest,
                "the body is not the one that Content-MD5 tells of",
            ));
        }
    }
    for s in said {
        let pairs = [
            ("CRC32", &s.crc32, &got.crc32),
            ("CRC32C", &s.crc32c, &got.crc32c),
            ("CRC64NVME", &s.crc64nvme, &got.crc64nvme),
            ("SHA1", &s.sha1, &got.sha1),
            ("SHA256", &s.sha256, &got.sha256),
        ];
        for (name, want, got) in pairs {
            if want.is_some() && want != got {
                let text = format!(
                    "the {name} of the body is {}, not the one sent",
                    got.as_deref().unwrap_or("unknown")
                );
                return Err(StoreError::invalid(S3ErrorCode::BadDigest, text));
            }
        }
    }
    Ok(())
}

/// `encoding-type=url`, as AWS does it: everything but unreserved characters and slashes.
pub(crate) fn url_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b'*' => {
                out.push(b as char)
            }
            _ => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_follow_the_order_of_the_rfc() {
        let meta = Meta { etag: "a".into(), modified_ms: 1_000_500, ..Meta::default() };
        let tag = |t: &str| ETagCondition::ETag(ETag::Strong(t.into()));
        let read = |m: Option<&str>, n: Option<&str>, since: Option<u64>, until: Option<u64>| {
            let (m, n) = (m.map(tag), n.map(tag));
            let (since, until) = (since.map(timestamp), until.map(timestamp));
            read_condition(&meta, m.as_ref(), n.as_ref(), since.as_ref(), until.as_ref())
        };
        assert_eq!(read(Some("b"), None, None, None), Read::Failed);
        assert_eq!(read(Some("a"), None, None, Some(0)), Read::Go);
        assert_eq!(read(None, Some("a"), None, None), Read::NotModified);
        assert_eq!(read(None, Some("b"), Some(2_000_000), None), Read::Go);
        assert_eq!(read(None, None, Some(1_000_000), None), Read::NotModified);
        assert_eq!(read(None, None, None, Some(999_000)), Read::Failed);
    }

    #[test]
    fn keys_are_encoded_as_boto_decodes_them() {
        assert_eq!(url_encode("a b/ü\u{1}+"), "a%20b/%C3%BC%01%2B");
    }
}
