//! Lists: objects (v1, v2, versions), parts, uploads and buckets, cut into pages.

use super::convert::{etag, timestamp, url_encode};
use super::index::{Entry, Page, PageRequest};
use super::multipart::Upload;
use super::object::Meta;
use super::store::{Bucket, Store, hex};
use s3s::dto::*;
use s3s::{S3Result, s3_error};

/// S3's bound on a page.
const MAX_KEYS: i32 = 1_000;

fn max_of(asked: Option<i32>) -> S3Result<i32> {
    match asked {
        None => Ok(MAX_KEYS),
        Some(n) if n < 0 => {
            Err(s3_error!(InvalidArgument, "a page cannot have {n} entries: ask for 0 to 1,000"))
        }
        Some(n) => Ok(n.min(MAX_KEYS)),
    }
}

/// How keys are written in the answer: as they are, or percent-encoded when the client asked for that.
fn writer(encoding: Option<&EncodingType>) -> fn(&[u8]) -> String {
    fn plain(key: &[u8]) -> String {
        String::from_utf8_lossy(key).into_owned()
    }
    fn url(key: &[u8]) -> String {
        url_encode(&plain(key))
    }
    if encoding.is_some_and(|e| e.as_str() == EncodingType::URL) { url } else { plain }
}

fn cut(bucket: &Bucket, prefix: Option<&str>, delimiter: Option<&str>, after: &str, max: i32) -> Page {
    bucket.list(PageRequest {
        prefix: prefix.unwrap_or_default().as_bytes(),
        delimiter: delimiter.unwrap_or_default().as_bytes(),
        after: after.as_bytes(),
        max: max as usize,
    })
}

fn objects(page: &Page, text: fn(&[u8]) -> String) -> Vec<Object> {
    let object = |(key, e): &(Box<[u8]>, Entry)| Object {
        key: Some(text(key)),
        size: Some(e.size as i64),
        e_tag: Some(etag(&e.etag)),
        last_modified: Some(timestamp(e.modified_ms)),
        storage_class: Some(class_of(e).to_owned().into()),
        ..Default::default()
    };
    page.items.iter().map(object).collect()
}

fn class_of(e: &Entry) -> &str {
    e.storage_class.as_deref().unwrap_or("STANDARD")
}

fn prefixes(page: &Page, text: fn(&[u8]) -> String) -> Option<Vec<CommonPrefix>> {
    let all: Vec<_> = page.prefixes.iter().map(|p| CommonPrefix { prefix: Some(text(p)) }).collect();
    (!all.is_empty()).then_some(all)
}

pub(crate) fn list_v1(bucket: &Bucket, i: ListObjectsInput) -> S3Result<ListObjectsOutput> {
    let max = max_of(i.max_keys)?;
    let after = i.marker.clone().unwrap_or_default();
    let page = cut(bucket, i.prefix.as_deref(), i.delimiter.as_deref(), &after, max);
    let text = writer(i.encoding_type.as_ref());
    Ok(ListObjectsOutput {
        name: Some(i.bucket),
        prefix: Some(text(i.prefix.unwrap_or_default().as_bytes())),
        marker: Some(text(after.as_bytes())),
        max_keys: Some(max),
        is_truncated: Some(page.next.is_some()),
        contents: Some(objects(&page, text)),
        common_prefixes: prefixes(&page, text),
        delimiter: i.delimiter.map(|d| text(d.as_bytes())),
        next_marker: page.next.as_deref().map(text),
        encoding_type: i.encoding_type,
        request_charged: None,
    })
}

pub(crate) fn list_v2(bucket: &Bucket, i: ListObjectsV2Input) -> S3Result<ListObjectsV2Output> {
    let max = max_of(i.max_keys)?;
    let after = match &i.continuation_token {
        Some(t) => from_token(t)?,
        None => i.start_after.clone().unwrap_or_default(),
    };
    let page = cut(bucket, i.prefix.as_deref(), i.delimiter.as_deref(), &after, max);
    let text = writer(i.encoding_type.as_ref());
    Ok(ListObjectsV2Output {
        name: Some(i.bucket),
        prefix: Some(text(i.prefix.unwrap_or_default().as_bytes())),
        max_keys: Some(max),
        key_count: Some((page.items.len() + page.prefixes.len()) as i32),
        continuation_token: i.continuation_token,
        is_truncated: Some(page.next.is_some()),
        next_continuation_token: page.next.as_deref().map(hex),
        contents: Some(objects(&page, text)),
        common_prefixes: prefixes(&page, text),
        delimiter: i.delimiter.map(|d| text(d.as_bytes())),
        encoding_type: i.encoding_type,
        start_after: i.start_after.map(|s| text(s.as_bytes())),
        request_charged: None,
    })
}

/// A continuation token is the last key (or common prefix) of the page before, in hex.
fn from_token(token: &str) -> S3Result<String> {
    let bad = || s3_error!(InvalidArgument, "the continuation token is not one of this server");
    let digits = token.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return Err(bad());
    }
    let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(|p| Some(digit(p[0])? << 4 | digit(p[1])?)).collect();
    String::from_utf8(bytes.ok_or_else(bad)?).map_err(|_| bad())
}

pub(crate) fn list_versions(
    bucket: &Bucket,
    i: ListObjectVersionsInput,
) -> S3Result<ListObjectVersionsOutput> {
    let max = max_of(i.max_keys)?;
    let after = i.key_marker.clone().unwrap_or_default();
    let page = cut(bucket, i.prefix.as_deref(), i.delimiter.as_deref(), &after, max);
    let text = writer(i.encoding_type.as_ref());
    let version = |(key, e): &(Box<[u8]>, Entry)| ObjectVersion {
        key: Some(text(key)),
        size: Some(e.size as i64),
        e_tag: Some(etag(&e.etag)),
        last_modified: Some(timestamp(e.modified_ms)),
        storage_class: Some(class_of(e).to_owned().into()),
        is_latest: Some(true),
        version_id: Some("null".into()),
        ..Default::default()
    };
    Ok(ListObjectVersionsOutput {
        name: Some(i.bucket),
        prefix: i.prefix,
        key_marker: i.key_marker,
        max_keys: Some(max),
        is_truncated: Some(page.next.is_some()),
        next_key_marker: page.next.as_deref().map(text),
        next_version_id_marker: page.next.as_ref().map(|_| "null".into()),
        versions: Some(page.items.iter().map(version).collect()),
        common_prefixes: prefixes(&page, text),
        delimiter: i.delimiter,
        encoding_type: i.encoding_type,
        ..Default::default()
    })
}

pub(crate) fn parts_page(i: ListPartsInput, parts: Vec<(i32, Meta)>, upload: &Upload) -> ListPartsOutput {
    let max = i.max_parts.unwrap_or(MAX_KEYS).clamp(0, MAX_KEYS);
    let after = i.part_number_marker.unwrap_or(0);
    let mut rest = parts.into_iter().filter(|p| p.0 > after).peekable();
    let page: Vec<_> = rest.by_ref().take(max as usize).collect();
    let truncated = max > 0 && rest.peek().is_some();
    let part = |(number, m): &(i32, Meta)| Part {
        part_number: Some(*number),
        size: Some(m.size as i64),
        e_tag: Some(etag(&m.etag)),
        last_modified: Some(timestamp(m.modified_ms)),
        checksum_crc32: m.checksums.crc32.clone(),
        checksum_crc32c: m.checksums.crc32c.clone(),
        checksum_crc64nvme: m.checksums.crc64nvme.clone(),
        checksum_sha1: m.checksums.sha1.clone(),
        checksum_sha256: m.checksums.sha256.clone(),
    };
    ListPartsOutput {
        bucket: Some(i.bucket),
        key: Some(i.key),
        upload_id: Some(i.upload_id),
        part_number_marker: Some(after),
        max_parts: Some(max),
        is_truncated: Some(truncated),
        next_part_number_marker: if truncated { page.last().map(|p| p.0) } else { None },
        parts: Some(page.iter().map(part).collect()),
        checksum_algorithm: upload.checksum_algorithm.clone().map(Into::into),
        checksum_type: upload.checksum_type.clone().map(Into::into),
        storage_class: Some(upload.headers.storage_class.clone().unwrap_or_else(|| "STANDARD".into()).into()),
        ..Default::default()
    }
}

pub(crate) fn uploads_page(i: ListMultipartUploadsInput, all: Vec<Upload>) -> ListMultipartUploadsOutput {
    let max = i.max_uploads.unwrap_or(MAX_KEYS).clamp(0, MAX_KEYS);
    let prefix = i.prefix.clone().unwrap_or_default();
    let key_after = i.key_marker.clone().unwrap_or_default();
    let id_after = i.upload_id_marker.clone().unwrap_or_default();
    // Within the marker's key, those behind the marker's upload in the order of the list.
    let seen = all.iter().position(|u| !id_after.is_empty() && u.key == key_after && u.id == id_after);
    let mut rest = all
        .iter()
        .enumerate()
        .filter(|(at, u)| match seen {
            Some(s) => *at > s,
            None => key_after.is_empty() || u.key.as_bytes() > key_after.as_bytes(),
        })
        .map(|(_, u)| u)
        .filter(|u| u.key.starts_with(&prefix))
        .peekable();
    let page: Vec<_> = rest.by_ref().take(max as usize).collect();
    let truncated = max > 0 && rest.peek().is_some();
    let text = writer(i.encoding_type.as_ref());
    let upload = |u: &&Upload| MultipartUpload {
        key: Some(text(u.key.as_bytes())),
        upload_id: Some(u.id.clone()),
        initiated: Some(timestamp(u.initiated_ms)),
        checksum_algorithm: u.checksum_algorithm.clone().map(Into::into),
        checksum_type: u.checksum_type.clone().map(Into::into),
        storage_class: Some(u.headers.storage_class.clone().unwrap_or_else(|| "STANDARD".into()).into()),
        ..Default::default()
    };
    let last = if truncated { page.last() } else { None };
    ListMultipartUploadsOutput {
        bucket: Some(i.bucket),
        prefix: i.prefix,
        key_marker: i.key_marker,
        upload_id_marker: i.upload_id_marker,
        max_uploads: Some(max),
        is_truncated: Some(truncated),
        next_key_marker: last.map(|u| text(u.key.as_bytes())),
        next_upload_id_marker: last.map(|u| u.id.clone()),
        uploads: Some(page.iter().map(upload).collect()),
        encoding_type: i.encoding_type,
        ..Default::default()
    }
}

pub(crate) fn list_buckets(store: &Store) -> ListBucketsOutput {
    let bucket = |(name, created_ms): (String, u64)| s3s::dto::Bucket {
        name: Some(name),
        creation_date: Some(timestamp(created_ms)),
        ..Default::default()
    };
    ListBucketsOutput {
        buckets: Some(store.bucket_names().into_iter().map(bucket).collect()),
        owner: Some(Owner { display_name: Some("plimsoll".into()), id: Some("plimsoll".into()) }),
        ..Default::default()
    }
}

pub(crate) fn attributes(meta: &Meta) -> GetObjectAttributesOutput {
    let c = &meta.checksums;
    let mut sums = Checksum::default();
    (sums.checksum_crc32, sums.checksum_crc32c) = (c.crc32.clone(), c.crc32c.clone());
    (sums.checksum_crc64nvme, sums.checksum_sha1) = (c.crc64nvme.clone(), c.sha1.clone());
    (sums.checksum_sha256, sums.checksum_type) = (c.sha256.clone(), c.kind.clone().map(Into::into));
    GetObjectAttributesOutput {
        e_tag: Some(etag(&meta.etag)),
        object_size: Some(meta.size as i64),
        last_modified: Some(timestamp(meta.modified_ms)),
        storage_class: Some(meta.headers.storage_class.clone().unwrap_or_else(|| "STANDARD".into()).into()),
        checksum: c.kind.is_some().then_some(sums),
        ..Default::default()
    }
}
