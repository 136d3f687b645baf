//! Multipart uploads on disk: a directory per upload with its description and a file per part.

use super::error::StoreError;
use super::object::{self, Checksums, Headers, Meta, Writer};
use super::store::{Bucket, Condition, Store, hex, now_ms};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use s3s::S3ErrorCode;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Crc32, Crc32c, Md5, Sha1, Sha256};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Read;
use std::path::PathBuf;

/// S3's least size of any part but the last.
const MIN_PART_BYTES: u64 = 5 << 20;

/// What was said when the upload began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Upload {
    pub id: String,
    pub key: String,
    pub initiated_ms: u64,
    pub headers: Headers,
    pub checksum_algorithm: Option<String>,
    pub checksum_type: Option<String>,
}

/// A part as the completing client names it.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub number: i32,
    pub etag: Option<String>,
}

fn dir_of(bucket: &Bucket, id: &str) -> Result<PathBuf, StoreError> {
    // Only ids of our own making are names of directories.
    if id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()) {
        Ok(bucket.dir.join("uploads").join(id))
    } else {
        Err(StoreError::NoSuchUpload)
    }
}

fn part_name(number: i32) -> String {
    format!("part-{number:05}")
}

pub(crate) fn create(store: &Store, bucket: &Bucket, mut upload: Upload) -> Result<Upload, StoreError> {
    let mut random = [0u8; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
    upload.id = hex(&random);
    let dir = dir_of(bucket, &upload.id)?;
    fs::create_dir(&dir)?;
    let text = serde_json::to_vec(&upload).map_err(|e| StoreError::Damaged(e.to_string()))?;
    store.write_file(&dir.join("upload.json"), &text)?;
    store.sync_dir(&bucket.dir.join("uploads"))?;
    Ok(upload)
}

/// The upload with this id, if it is for this key.
pub(crate) fn find(bucket: &Bucket, id: &str, key: &str) -> Result<Upload, StoreError> {
    let text = match fs::read(dir_of(bucket, id)?.join("upload.json")) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(StoreError::NoSuchUpload),
        other => other?,
    };
    let upload: Upload = serde_json::from_slice(&text).map_err(|e| StoreError::Damaged(e.to_string()))?;
    if upload.key == key { Ok(upload) } else { Err(StoreError::NoSuchUpload) }
}

pub(crate) fn put_part(
    store: &Store,
    bucket: &Bucket,
    id: &str,
    number: i32,
    mut w: Writer,
) -> Result<(), StoreError> {
    let dir = dir_of(bucket, id)?;
    if !dir.is_dir() {
        return Err(StoreError::NoSuchUpload);
    }
    w.rename(&dir.join(part_name(number)))?;
    store.sync_dir(&dir)
}

/// All uploads of a bucket, by key and then by age.
pub(crate) fn list(bucket: &Bucket) -> Result<Vec<Upload>, StoreError> {
    let mut all = Vec::new();
    for dir in fs::read_dir(bucket.dir.join("uploads"))? {
        // One that is being made or removed right now is not listed.
        if let Ok(text) = fs::read(dir?.path().join("upload.json"))
            && let Ok(u) = serde_json::from_slice::<Upload>(&text)
        {
            all.push(u);
        }
    }
    all.sort_by(|a: &Upload, b| {
        (a.key.as_bytes(), a.initiated_ms, &a.id).cmp(&(b.key.as_bytes(), b.initiated_ms, &b.id))
    });
    Ok(all)
}

/// The parts that are there: (number, description), in order.
pub(crate) fn parts(bucket: &Bucket, id: &str) -> Result<Vec<(i32, Meta)>, StoreError> {
    let mut all = Vec::new();
    for file in fs::read_dir(dir_of(bucket, id)?)? {
        let file = file?;
        let name = file.file_name();
        if let Some(number) = name.to_str().and_then(|n| n.strip_prefix("part-")).and_then(|n| n.parse().ok())
        {
            all.push((number, object::open(&file.path())?.meta));
        }
    }
    all.sort_by_key(|p| p.0);
    Ok(all)
}

pub(crate) fn abort(store: &Store, bucket: &Bucket, id: &str, key: &str) -> Result<(), StoreError> {
    find(bucket, id, key)?;
    let (dir, tmp) = (dir_of(bucket, id)?, store.tmp_path());
    if let Some(theirs) = super::own::strange_in_upload(&dir)? {
        return Err(StoreError::Holds(theirs));
    }
    fs::rename(dir, &tmp)?;
    store.sync_dir(&bucket.dir.join("uploads"))?;
    fs::remove_dir_all(&tmp)?;
    Ok(())
}

/// Puts the named parts together under the key.
pub(crate) fn complete(
    store: &Store,
    bucket: &Bucket,
    upload: &Upload,
    named: &[Named],
    condition: &Condition,
) -> Result<Meta, StoreError> {
    let dir = dir_of(bucket, &upload.id)?;
    check_order(named)?;
    let algorithm = upload.checksum_algorithm.as_deref();
    let full = full_object(upload);
    let mut w = store.writer(if full { hasher(algorithm) } else { ChecksumHasher::default() })?;
    let (mut md5, mut sums, mut sizes) = (Md5::new(), Vec::new(), Vec::new());
    for (i, n) in named.iter().enumerate() {
        let bad = || {
            let text = format!("part {} is not there, or has another ETag than the one named", n.number);
            StoreError::invalid(S3ErrorCode::InvalidPart, text)
        };
        let part = match object::open(&dir.join(part_name(n.number))) {
            Err(StoreError::NoSuchKey) => return Err(bad()),
            other => other?,
        };
        if n.etag.as_ref().is_some_and(|e| *e != part.meta.etag) {
            return Err(bad());
        }
        if part.meta.size < MIN_PART_BYTES && i + 1 < named.len() {
            let text = format!("part {} has {} bytes: all but the last need 5 MiB", n.number, part.meta.size);
            return Err(StoreError::invalid(S3ErrorCode::EntityTooSmall, text));
        }
        w.append_file(&part.file, part.meta.size, full)?;
        md5.update(&unhex(&part.meta.etag));
        sums.push(part.meta.checksums);
        sizes.push(part.meta.size);
    }
    let (size, _, whole) = w.digest();
    let checksums = if full { from_dto(whole, "FULL_OBJECT") } else { composite(algorithm, &sums) };
    let meta = Meta {
        key: upload.key.clone(),
        size,
        etag: format!("{}-{}", hex(md5.finalize().as_ref()), named.len()),
        modified_ms: now_ms(),
        headers: upload.headers.clone(),
        checksums,
        parts: sizes,
    };
    w.seal(&meta, store.sync)?;
    store.commit(bucket, w, &meta, condition)?;
    // The object is there; leftovers of the upload are no reason to fail.
    let _ = abort(store, bucket, &upload.id, &upload.key);
    Ok(meta)
}

fn check_order(named: &[Named]) -> Result<(), StoreError> {
    if named.is_empty() {
        return Err(StoreError::invalid(
            S3ErrorCode::MalformedXML,
            "a multipart upload needs at least one part",
        ));
    }
    if named.windows(2).any(|w| w[0].number >= w[1].number) {
        return Err(StoreError::invalid(S3ErrorCode::InvalidPartOrder, "parts are named in ascending order"));
    }
    Ok(())
}

/// Whether the checksum is of all data, rather than of the parts' checksums: CRC64NVME always is.
fn full_object(upload: &Upload) -> bool {
    upload.checksum_algorithm.as_deref() == Some("CRC64NVME")
        || (upload.checksum_algorithm.is_some() && upload.checksum_type.as_deref() == Some("FULL_OBJECT"))
}

pub(crate) fn hasher(algorithm: Option<&str>) -> ChecksumHasher {
    let mut h = ChecksumHasher::default();
    match algorithm {
        Some("CRC32") => h.crc32 = Some(s3s::crypto::Checksum::new()),
        Some("CRC32C") => h.crc32c = Some(s3s::crypto::Checksum::new()),
        Some("CRC64NVME") => h.crc64nvme = Some(s3s::crypto::Checksum::new()),
        Some("SHA1") => h.sha1 = Some(s3s::crypto::Checksum::new()),
        Some("SHA256") => h.sha256 = Some(s3s::crypto::Checksum::new()),
        _ => {}
    }
    h
}

pub(crate) fn from_dto(c: s3s::dto::Checksum, kind: &str) -> Checksums {
    let sums = Checksums {
        crc32: c.checksum_crc32,
        crc32c: c.checksum_crc32c,
        crc64nvme: c.checksum_crc64nvme,
        sha1: c.checksum_sha1,
        sha256: c.checksum_sha256,
        kind: None,
    };
    let any = sums != Checksums::default();
    Checksums { kind: any.then(|| kind.to_owned()), ..sums }
}

/// The checksum of the parts' checksums, with their number, as S3 has it.
fn composite(algorithm: Option<&str>, parts: &[Checksums]) -> Checksums {
    let of = |get: fn(&Checksums) -> Option<&String>| -> Option<Vec<u8>> {
        let mut all = Vec::new();
        for p in parts {
            all.extend(BASE64.decode(get(p)?).ok()?);
        }
        Some(all)
    };
    let text = |sum: &[u8]| Some(format!("{}-{}", BASE64.encode(sum), parts.len()));
    let mut out = Checksums { kind: Some("COMPOSITE".into()), ..Checksums::default() };
    match algorithm {
        Some("CRC32") => out.crc32 = of(|c| c.crc32.as_ref()).and_then(|b| text(&Crc32::checksum(&b))),
        Some("CRC32C") => out.crc32c = of(|c| c.crc32c.as_ref()).and_then(|b| text(&Crc32c::checksum(&b))),
        Some("SHA1") => out.sha1 = of(|c| c.sha1.as_ref()).and_then(|b| text(Sha1::checksum(&b).as_ref())),
        Some("SHA256") => {
            out.sha256 = of(|c| c.sha256.as_ref()).and_then(|b| text(Sha256::checksum(&b).as_ref()))
        }
        _ => {}
    }
    let none = Checksums { kind: out.kind.clone(), ..Checksums::default() };
    if out == none { Checksums::default() } else { out }
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |b: u8| (b as char).to_digit(16).unwrap_or(0) as u8;
    text.as_bytes().chunks_exact(2).map(|p| digit(p[0]) << 4 | digit(p[1])).collect()
}
