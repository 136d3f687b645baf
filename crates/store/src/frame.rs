//! Frames: the unit in which a run file grows, and the unit that survives a kill.
//!
//! A file is a sequence of frames and nothing else. A frame is a zstd *skippable* frame of 24 bytes (so that
//! `zstdcat` reads the file as it stands) followed by one ordinary zstd frame:
//!
//! | bytes | what |
//! |---|---|
//! | 4 | 0x184D2A5E, little endian: zstd's skippable magic |
//! | 4 | 24: length of the rest of this head |
//! | 8 | number of the frame in the file, from 0 |
//! | 4 | length of the zstd frame |
//! | 4 | length of its content |
//! | 8 | XXH3-64 of the 16 bytes before it and of the zstd frame |
//!
//! The reader stops at the first frame that is torn or damaged, and says where.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3Default;

use crate::StoreError;

pub(crate) const MAGIC: u32 = 0x184D_2A5E;
const HEAD: usize = 32;
/// Larger frames are never written; a length above it is damage, and is not allocated for.
const MAX_FRAME: usize = 256 << 20;
const LEVEL: i32 = 3;

/// Appends frames to a file.
#[derive(Debug)]
pub struct FrameWriter {
    file: File,
    path: PathBuf,
    number: u64,
}

/// Whether a file begins as a frame does, as far as it goes, or with the zeros that a power cut leaves: what does not is no file of
/// ours.
fn begins_as_ours(file: &mut File) -> std::io::Result<bool> {
    let mut head = Vec::new();
    Read::by_ref(file).take(4).read_to_end(&mut head)?;
    Ok(MAGIC.to_le_bytes().starts_with(&head) || head.iter().all(|b| *b == 0))
}

impl FrameWriter {
    /// A new file; it must not exist.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let file = File::create_new(path).map_err(StoreError::io("create", path))?;
        Ok(Self { file, path: path.to_owned(), number: 0 })
    }

    /// Goes on after the last good frame of a file; what follows it (torn by a kill) is cut off.
    pub fn resume(path: &Path) -> Result<Self, StoreError> {
        let mut reader = FrameReader::open(path)?;
        while reader.next()?.is_some() {}
        let (end, number) = (reader.good_end, reader.number);
        let mut file = crate::plain::open(path, File::options().read(true).write(true))
            .map_err(StoreError::io("open", path))?;
        if end == 0 && !begins_as_ours(&mut file).map_err(StoreError::io("read", path))? {
            let problem = "not a frame is in it, and it does not begin as one: it is not cut".into();
            return Err(StoreError::Content { path: path.to_owned(), problem });
        }
        file.set_len(end).map_err(StoreError::io("truncate", path))?;
        file.seek(SeekFrom::End(0)).map_err(StoreError::io("seek in", path))?;
        Ok(Self { file, path: path.to_owned(), number })
    }

    /// Writes one frame with one write call. The kernel has it afterwards: a killed process loses nothing before it.
    pub fn append(&mut self, content: &[u8]) -> Result<(), StoreError> {
        let packed = zstd::bulk::compress(content, LEVEL).map_err(StoreError::io("compress", &self.path))?;
        assert!(content.len() <= MAX_FRAME && packed.len() <= MAX_FRAME, "a frame holds at most a second");
        let mut frame = Vec::with_capacity(HEAD + packed.len());
        frame.extend_from_slice(&MAGIC.to_le_bytes());
        frame.extend_from_slice(&(HEAD as u32 - 8).to_le_bytes());
        frame.extend_from_slice(&self.number.to_le_bytes());
        frame.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        frame.extend_from_slice(&(content.len() as u32).to_le_bytes());
        let sum = checksum(&frame[8..24], &packed);
        frame.extend_from_slice(&sum.to_le_bytes());
        frame.extend_from_slice(&packed);
        self.file.write_all(&frame).map_err(StoreError::io("write", &self.path))?;
        self.number += 1;
        Ok(())
    }

    /// Makes it survive a power cut too. Called when a run is sealed, not in mid-run: it would load the disk under test.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.file.sync_all().map_err(StoreError::io("sync", &self.path))
    }
}

fn checksum(head: &[u8], packed: &[u8]) -> u64 {
    let mut h = Xxh3Default::new();
    h.update(head);
    h.update(packed);
    h.digest()
}

/// Where and why a file cannot be read further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Of the damaged file.
    pub path: PathBuf,
    /// Bytes of the file that are good.
    pub at_byte: u64,
    /// What is wrong with the first bytes that are not good.
    pub reason: String,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is readable up to byte {}: {}", self.path.display(), self.at_byte, self.reason)
    }
}

/// Reads frames until the end or the first bad one.
#[derive(Debug)]
pub struct FrameReader {
    file: std::io::BufReader<File>,
    path: PathBuf,
    number: u64,
    good_end: u64,
    damage: Option<Damage>,
    done: bool,
}

impl FrameReader {
    /// At the first frame; nothing is read yet.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let file = crate::plain::open_to_read(path).map_err(StoreError::io("open", path))?;
        let file = std::io::BufReader::with_capacity(256 << 10, file);
        Ok(Self { file, path: path.to_owned(), number: 0, good_end: 0, damage: None, done: false })
    }

    /// At the frame after so many good ones, which take up so many bytes: [`Self::position`] of a reader that came to the end of a file
    /// that grows.
    pub fn open_at(path: &Path, (number, good_end): (u64, u64)) -> Result<Self, StoreError> {
        let mut reader = Self::open(path)?;
        reader.file.seek(SeekFrom::Start(good_end)).map_err(StoreError::io("read", path))?;
        (reader.number, reader.good_end) = (number, good_end);
        Ok(reader)
    }

    /// Frames that were read, and the bytes of the file that they take up.
    pub fn position(&self) -> (u64, u64) {
        (self.number, self.good_end)
    }

    /// The next frame's content; `None` at the end, or at damage (see [`Self::damage`]).
    #[allow(
        clippy::should_implement_trait,
        reason = "an iterator of results would hide that damage is no error"
    )]
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        if self.done {
            return Ok(None);
        }
        match self.read_one()? {
            Ok(Some(content)) => Ok(Some(content)),
            Ok(None) => {
                self.done = true;
                Ok(None)
            }
            Err(reason) => {
                self.stop(reason);
                Ok(None)
            }
        }
    }

    /// Reads no further; for a content that is bad behind a good checksum.
    pub fn stop(&mut self, reason: impl Into<String>) {
        self.done = true;
        self.damage = Some(Damage { path: self.path.clone(), at_byte: self.good_end, reason: reason.into() });
    }

    /// Absent as long as all that was read is good.
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// Outer error: the disk's. Inner error: damage.
    fn read_one(&mut self) -> Result<Result<Option<Vec<u8>>, String>, StoreError> {
        let mut head = [0u8; HEAD];
        let got = read_up_to(&mut self.file, &mut head).map_err(StoreError::io("read", &self.path))?;
        if got == 0 {
            return Ok(Ok(None));
        }
        if got < HEAD {
            return Ok(Err("the last frame is torn".into()));
        }
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        let (packed_len, content_len) = (word(16) as usize, word(20) as usize);
        if word(0) != MAGIC
            || word(4) as usize != HEAD - 8
            || packed_len > MAX_FRAME
            || content_len > MAX_FRAME
        {
            return Ok(Err("what follows is not a frame".into()));
        }
        let mut packed = Vec::new();
        let got = (&mut self.file)
            .take(packed_len as u64)
            .read_to_end(&mut packed)
            .map_err(StoreError::io("read", &self.path))?;
        if got < packed_len {
            return Ok(Err("the last frame is torn".into()));
        }
        if checksum(&head[8..24], &packed) != long(24) {
            return Ok(Err("the checksum of the next frame does not match".into()));
        }
        if long(8) != self.number {
            return Ok(Err(format!("frame {} follows where {} should", long(8), self.number)));
        }
        match zstd::bulk::decompress(&packed, content_len) {
            Ok(content) if content.len() == content_len => {
                self.number += 1;
                self.good_end += (HEAD + packed_len) as u64;
                Ok(Ok(Some(content)))
            }
            _ => Ok(Err("the next frame does not decompress".into())),
        }
    }
}

fn read_up_to(r: &mut impl Read, buf: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while got < buf.len() {
        match r.read(&mut buf[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_of_frames_is_not_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.zst");
        std::fs::write(&path, b"of somebody else").unwrap();
        assert!(FrameWriter::resume(&path).unwrap_err().to_string().contains("is not cut"));
        assert_eq!(std::fs::read(&path).unwrap(), b"of somebody else");
        for torn in [&b""[..], &MAGIC.to_le_bytes()[..3], &[0; 64]] {
            std::fs::write(&path, torn).unwrap();
            FrameWriter::resume(&path).unwrap().append(b"x").unwrap();
            assert_eq!(FrameReader::open(&path).unwrap().next().unwrap().unwrap(), b"x");
        }
    }
}
