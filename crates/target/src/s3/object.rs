//! One object in one file: the data first, then its description, then a mark that says the file is whole.
//!
//! Data and description arrive under their name together, by one rename: a reader sees the old object or the new one,
//! never a mixture, whatever kills the server.

use super::error::StoreError;
use bytes::Bytes;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Md5};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// End of every whole file; the version of the format is in it.
const MAGIC: &[u8; 8] = b"PLMSOBJ1";
const FOOTER_BYTES: u64 = 16;
/// A description cannot be longer: S3 allows 2 KiB of metadata, and 10,000 parts are some 100 KiB.
const MAX_META_BYTES: u64 = 4 << 20;
/// Objects up to this size are read in one call together with their description.
pub(crate) const SMALL_BYTES: u64 = 256 << 10;
/// Bytes read of the end of a larger one: nearly every description fits.
const TAIL_BYTES: u64 = 4 << 10;
/// Bytes of an upload that is to be durable after which the disk is told to begin: else it idles until the last byte has come, and
/// the client waits for the whole of it then (64 MiB synced: seen at 0.9x of a server that writes as it receives).
const WRITEBACK_BYTES: u64 = 8 << 20;

/// Checksums that a client sent and that were verified, in base64.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Checksums {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crc32: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crc32c: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crc64nvme: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha1: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// COMPOSITE, or FULL_OBJECT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// Headers that are stored and given back as they came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Headers {
    pub content_type: Option<String>,
    pub cache_control: Option<String>,
    pub content_disposition: Option<String>,
    pub content_encoding: Option<String>,
    pub content_language: Option<String>,
    /// Unix milliseconds.
    pub expires_ms: Option<i64>,
    pub storage_class: Option<String>,
    pub encryption: Option<String>,
    pub metadata: BTreeMap<String, String>,
}

/// The description of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub key: String,
    pub size: u64,
    /// Without quotes.
    pub etag: String,
    pub modified_ms: u64,
    #[serde(default)]
    pub headers: Headers,
    #[serde(default)]
    pub checksums: Checksums,
    /// Sizes of the parts of a multipart upload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<u64>,
}

/// A new object on its way: a file under tmp/, hashed as it grows, gone if it is dropped.
pub(crate) struct Writer {
    file: File,
    tmp: PathBuf,
    md5: Md5,
    sums: ChecksumHasher,
    size: u64,
    named: bool,
    /// Bytes whose way to the disk has begun; none where nothing is synced.
    begun: Option<u64>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("tmp", &self.tmp).field("size", &self.size).finish_non_exhaustive()
    }
}

impl Writer {
    /// With `sync`, what is written goes to the disk while the rest is received.
    pub fn create(tmp: PathBuf, sums: ChecksumHasher, sync: bool) -> Result<Writer, StoreError> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&tmp)?;
        Ok(Writer { file, tmp, md5: Md5::new(), sums, size: 0, named: false, begun: sync.then_some(0) })
    }

    pub fn write(&mut self, pieces: &[Bytes]) -> Result<(), StoreError> {
        for p in pieces {
            self.md5.update(p);
            self.sums.update(p);
            self.size += p.len() as u64;
        }
        write_together(&self.file, pieces)?;
        if let Some(begun) = self.begun
            && self.size - begun >= WRITEBACK_BYTES
        {
            begin_writeback(&self.file, begun, self.size - begun);
            self.begun = Some(self.size);
        }
        Ok(())
    }

    /// Adds the first `n` bytes of another file, hashed only where a checksum is asked for.
    pub fn append_file(&mut self, from: &File, n: u64, hash: bool) -> Result<(), StoreError> {
        let mut source = from.take(n);
        let copied = if hash {
            let mut buf = vec![0; 1 << 20];
            let mut copied = 0u64;
            loop {
                let got = source.read(&mut buf)?;
                if got == 0 {
                    break copied;
                }
                self.md5.update(&buf[..got]);
                self.sums.update(&buf[..got]);
                self.file.write_all(&buf[..got])?;
                copied += got as u64;
            }
        } else {
            // The kernel copies by itself where it can (copy_file_range).
            io::copy(&mut source, &mut self.file)?
        };
        self.size += copied;
        if copied == n { Ok(()) } else { Err(StoreError::Damaged("a part is shorter than it says".into())) }
    }

    /// Ends the data: (size, MD5, checksums).
    pub fn digest(&mut self) -> (u64, [u8; 16], s3s::dto::Checksum) {
        let md5 = std::mem::replace(&mut self.md5, Md5::new()).finalize();
        let mut out = [0u8; 16];
        out.copy_from_slice(md5.as_ref());
        (self.size, out, std::mem::take(&mut self.sums).finalize())
    }

    /// Writes the description; after this the file is whole, though still under its temporary name.
    pub fn seal(&mut self, meta: &Meta, sync: bool) -> Result<(), StoreError> {
        let mut tail = serde_json::to_vec(meta).map_err(|e| StoreError::Damaged(e.to_string()))?;
        let len = tail.len() as u64;
        tail.extend_from_slice(&len.to_le_bytes());
        tail.extend_from_slice(MAGIC);
        self.file.write_all(&tail)?;
        if sync {
            self.file.sync_data()?;
        }
        Ok(())
    }

    /// Gives the file its name; what was there before is replaced.
    pub fn rename(&mut self, to: &Path) -> Result<(), StoreError> {
        match std::fs::rename(&self.tmp, to) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let dir = to.parent().unwrap_or(to);
                std::fs::create_dir_all(dir)?;
                if let Some(above) = dir.parent() {
                    File::open(above)?.sync_all()?;
                }
                std::fs::rename(&self.tmp, to)?;
            }
            other => other?,
        }
        self.named = true;
        Ok(())
    }
}

/// Writes pieces one behind the other, in one call if the kernel takes all: the page cache keeps them as it is told of them.
fn write_together(mut file: &File, pieces: &[Bytes]) -> io::Result<()> {
    let mut slices: Vec<_> = pieces.iter().map(|p| IoSlice::new(p)).collect();
    let mut left = &mut slices[..];
    // Empty ones go: a call that wrote nothing would be an error.
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match file.write_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut left, n),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Starts to write a range to the disk, and waits for nothing. A hint: durability comes from `seal`, which also tells of errors.
fn begin_writeback(file: &File, at: u64, n: u64) {
    let (at, n) = (at.cast_signed(), n.cast_signed());
    // SAFETY: the call takes a descriptor, which is open as long as `file`, and numbers; it touches no memory of ours.
    unsafe { libc::sync_file_range(file.as_raw_fd(), at, n, libc::SYNC_FILE_RANGE_WRITE) };
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.named {
            // What cannot be removed now is removed when the server starts again.
            let _ = std::fs::remove_file(&self.tmp);
        }
    }
}

/// An open object.
#[derive(Debug)]
pub(crate) struct Opened {
    pub file: File,
    pub meta: Meta,
    /// All data of a small object.
    pub data: Option<Bytes>,
}

/// Opens an object file and reads its description; small objects whole.
pub(crate) fn open(path: &Path) -> Result<Opened, StoreError> {
    let file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(StoreError::NoSuchKey),
        other => other?,
    };
    let damaged = |why: &str| StoreError::Damaged(format!("{}: {why}", path.display()));
    let len = file.metadata()?.len();
    let tail_len = if len <= SMALL_BYTES { len } else { TAIL_BYTES };
    let mut tail = vec![0; tail_len as usize];
    file.read_exact_at(&mut tail, len - tail_len)?;
    let Some(footer) = tail.len().checked_sub(FOOTER_BYTES as usize).map(|at| &tail[at..]) else {
        return Err(damaged("too short"));
    };
    if &footer[8..] != MAGIC {
        return Err(damaged("its end mark is missing"));
    }
    let mut n = [0; 8];
    n.copy_from_slice(&footer[..8]);
    let meta_len = u64::from_le_bytes(n);
    if meta_len > MAX_META_BYTES || meta_len + FOOTER_BYTES > len {
        return Err(damaged("its description has a wrong length"));
    }
    let data_len = len - FOOTER_BYTES - meta_len;
    let parse = |bytes: &[u8]| serde_json::from_slice::<Meta>(bytes).map_err(|e| damaged(&e.to_string()));
    let meta = if meta_len + FOOTER_BYTES <= tail_len {
        let end = tail.len() - FOOTER_BYTES as usize;
        parse(&tail[end - meta_len as usize..end])?
    } else {
        let mut bytes = vec![0; meta_len as usize];
        file.read_exact_at(&mut bytes, data_len)?;
        parse(&bytes)?
    };
    if meta.size != data_len {
        return Err(damaged("its size is not the one it says"));
    }
    let data = (len == tail_len).then(|| {
        tail.truncate(data_len as usize);
        Bytes::from(tail)
    });
    Ok(Opened { file, meta, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, data: &[u8]) -> PathBuf {
        let mut w = Writer::create(dir.join("t"), ChecksumHasher::default(), true).unwrap();
        w.write(&[Bytes::copy_from_slice(data)]).unwrap();
        let (size, ..) = w.digest();
        let meta = Meta { key: "k".into(), size, etag: "e".into(), ..Meta::default() };
        w.seal(&meta, true).unwrap();
        let to = dir.join("ab/name");
        w.rename(&to).unwrap();
        to
    }

    #[test]
    fn what_is_written_is_read_and_no_torn_file_is_taken_for_whole() {
        let dir = tempfile::tempdir().unwrap();
        for size in [0usize, 1, 4_096, 300_000, WRITEBACK_BYTES as usize] {
            let data: Vec<u8> = (0..size).map(|i| i as u8).collect();
            let path = write(dir.path(), &data);
            let o = open(&path).unwrap();
            assert_eq!(o.meta.size, size as u64);
            assert_eq!(o.data.is_some(), size < 200_000);
            if let Some(d) = o.data {
                assert_eq!(d, data);
            }
            let whole = std::fs::read(&path).unwrap();
            for cut in [0, 1, 15, 16, whole.len() / 2, whole.len() - 1] {
                let torn = dir.path().join("torn");
                std::fs::write(&torn, &whole[..cut.min(whole.len() - 1)]).unwrap();
                assert!(matches!(open(&torn), Err(StoreError::Damaged(_))), "{size} cut at {cut}");
            }
        }
    }

    #[test]
    fn pieces_of_one_write_come_in_order_however_many_there_are() {
        let dir = tempfile::tempdir().unwrap();
        // More than the kernel takes in one call, and empty ones at the beginning, between others, and at the end.
        let pieces: Vec<_> = (0..3_000u32).map(|i| Bytes::from(vec![i as u8; (i % 3) as usize])).collect();
        let mut w = Writer::create(dir.path().join("t"), ChecksumHasher::default(), false).unwrap();
        w.write(&[]).unwrap();
        w.write(&[Bytes::new()]).unwrap();
        w.write(&pieces).unwrap();
        let want = pieces.concat();
        assert_eq!(w.digest().0, want.len() as u64);
        assert!(std::fs::read(dir.path().join("t")).unwrap() == want);
    }

    #[test]
    fn an_unfinished_writer_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        drop(Writer::create(dir.path().join("t"), ChecksumHasher::default(), false).unwrap());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
