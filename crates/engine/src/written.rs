//! What was written last to each block of a file or device: kept in shared memory over a file of its own, so that it
//! outlives a process that is killed. A later read is held against it: a block that shows an older writing than
//! the one that was acknowledged has lost a write, however sound its stamp is.
//!
//! A generation orders the writings of a block: the epoch (a stage that writes counts one up), and the number of the
//! write, which all of a stage's workers draw from one counter; the worker is told for whoever reads it. Numbers are drawn before a
//! write is submitted. So of two writes that were not under way at once, the later has the higher number; of two that were,
//! nothing is known of what they leave, and neither is noted ([`crate::underway`]).
//!
//! After a restart of the machine only what an fsync had made durable counts.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// `PLIMWRT2`. (In the first, each worker counted for itself.)
const MAGIC: u64 = u64::from_le_bytes(*b"PLIMWRT2");
/// Workers of one epoch.
pub const WRITERS: u16 = 1024;
/// Epochs whose sync marks are kept; what older ones wrote does not count after a restart.
const EPOCHS: u64 = 1024;
const HEADER_BYTES: u64 = 4096;
const MARKS_BYTES: u64 = EPOCHS * WRITERS as u64 * 8;
const TABLE: u64 = HEADER_BYTES + MARKS_BYTES;

/// Bits of a generation: epoch, worker, number.
const NUMBER_BITS: u32 = 36;
const WRITER_BITS: u32 = 10;
const LAST_EPOCH: u64 = (1 << (64 - NUMBER_BITS - WRITER_BITS)) - 1;

/// Words of the header.
const H_MAGIC: u64 = 0;
const H_UNIT: u64 = 1;
const H_EPOCH: u64 = 2;
/// First epoch since the machine was started.
const H_BOOT_EPOCH: u64 = 3;
/// Two words.
const H_BOOT: u64 = 4;
/// Four words.
const H_IDENTITY: u64 = 6;

/// Whose content it is, so that the record of a file that was replaced is not taken for the new one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Device and inode number, birth time: whatever tells this file from another one under its name.
    pub file: [u64; 3],
    /// Seed of the stamps.
    pub seed: u64,
}

/// A writing of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Writing {
    epoch: u64,
    writer: u64,
    number: u64,
}

impl Writing {
    fn of(generation: u64) -> Self {
        Self {
            epoch: generation >> (NUMBER_BITS + WRITER_BITS),
            writer: generation >> NUMBER_BITS & ((1 << WRITER_BITS) - 1),
            number: generation & ((1 << NUMBER_BITS) - 1),
        }
    }

    fn generation(self) -> u64 {
        // Past the last number all are alike: older than these nothing is told any more, and nothing told wrongly.
        self.epoch << (NUMBER_BITS + WRITER_BITS)
            | self.writer << NUMBER_BITS
            | self.number.min((1 << NUMBER_BITS) - 1)
    }
}

/// The record of one file or device.
#[derive(Debug)]
pub struct Written {
    base: *mut u8,
    bytes: u64,
    unit: u64,
    epoch: u64,
    boot_epoch: u64,
    /// Number of the next write in this epoch.
    next: AtomicU64,
}

// SAFETY: the mapping is owned, and touched through atomics only.
unsafe impl Send for Written {}
// SAFETY: as above.
unsafe impl Sync for Written {}

impl Drop for Written {
    fn drop(&mut self) {
        // SAFETY: our mapping; nobody holds a reference into it beyond `self`'s life.
        unsafe { libc::munmap(self.base.cast(), self.bytes as usize) };
    }
}

/// A record is what it is by its place in memory: two are equal when they are the same.
impl PartialEq for Written {
    fn eq(&self, other: &Self) -> bool {
        self.base == other.base
    }
}

impl Eq for Written {}

impl Written {
    /// Bytes of disk that the record of such a region takes.
    pub fn size_of(length: u64, unit: u64) -> u64 {
        HEADER_BYTES + WRITERS as u64 * 8 + length / unit * 8
    }

    /// Opens, or makes, the record for a stage that writes to `[offset, offset + length)`; a new epoch begins. What an
    /// older record says is kept where it is of the same content, and as fine.
    pub fn begin(
        path: &Path,
        identity: Identity,
        boot: [u64; 2],
        (offset, length): (u64, u64),
        unit: u64,
    ) -> io::Result<Self> {
        let file = Self::open(path, true)?;
        let old = Self::map(&file, unit)?.filter(|w| {
            w.is_of(identity) && w.unit <= unit && unit.is_multiple_of(w.unit) && w.epoch < LAST_EPOCH
        });
        let unit = old.as_ref().map_or(unit, |w| w.unit);
        if old.is_none() {
            if !begins_as_record(&file)? {
                return Err(io::Error::other(
                    "the existing file is not such a record, and is not overwritten",
                ));
            }
            file.set_len(0)?;
        }
        let mut new = Self::grown(&file, (offset, length), unit)?;
        let epoch = old.as_ref().map_or(0, |w| w.epoch) + 1;
        let same_boot =
            new.word(H_BOOT).load(Relaxed) == boot[0] && new.word(H_BOOT + 1).load(Relaxed) == boot[1];
        if old.is_none() || !same_boot {
            new.word(H_BOOT_EPOCH).store(epoch, Relaxed);
        }
        let words = [(H_UNIT, unit), (H_EPOCH, epoch), (H_BOOT, boot[0]), (H_BOOT + 1, boot[1])];
        let whose = identity.file.into_iter().chain([identity.seed]).zip(H_IDENTITY..).map(|(w, at)| (at, w));
        for (at, word) in words.into_iter().chain(whose).chain([(H_MAGIC, MAGIC)]) {
            new.word(at).store(word, Relaxed);
        }
        (new.epoch, new.unit) = (epoch, unit);
        new.boot_epoch = new.word(H_BOOT_EPOCH).load(Relaxed);
        for writer in 0..WRITERS {
            new.mark(epoch, u64::from(writer)).store(0, Relaxed);
        }
        Ok(new)
    }

    /// Opens the record of what earlier stages and runs wrote; `None` where there is none of this content.
    pub fn look(path: &Path, identity: Identity, boot: [u64; 2]) -> io::Result<Option<Self>> {
        let file = match Self::open(path, false) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let Some(mut w) = Self::map(&file, 1)?.filter(|w| w.is_of(identity)) else { return Ok(None) };
        if [w.word(H_BOOT).load(Relaxed), w.word(H_BOOT + 1).load(Relaxed)] != boot {
            w.boot_epoch = w.epoch + 1;
        }
        Ok(Some(w))
    }

    /// No link is followed: what it leads to is not ours.
    fn open(path: &Path, create: bool) -> io::Result<File> {
        let mut options = File::options();
        options
            .read(true)
            .write(true)
            .create(create)
            .truncate(false)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)
    }

    /// The file as it is; `None` when it is too short or of another format.
    fn map(file: &File, unit: u64) -> io::Result<Option<Self>> {
        let bytes = file.metadata()?.len();
        if bytes < TABLE {
            return Ok(None);
        }
        let mut w = Self::over(mmap(file, bytes)?, bytes, unit);
        if w.word(H_MAGIC).load(Relaxed) != MAGIC {
            return Ok(None);
        }
        w.unit = w.word(H_UNIT).load(Relaxed);
        w.epoch = w.word(H_EPOCH).load(Relaxed);
        w.boot_epoch = w.word(H_BOOT_EPOCH).load(Relaxed);
        Ok(Some(w).filter(|w| w.unit > 0))
    }

    /// The file with room for the region. The room is allocated: a store into a hole of a full disk would kill us.
    fn grown(file: &File, (offset, length): (u64, u64), unit: u64) -> io::Result<Self> {
        let end = TABLE + (offset + length).div_ceil(unit) * 8;
        let bytes = end.max(file.metadata()?.len());
        let room = |from: u64, to: u64| {
            // SAFETY: a plain system call on a descriptor that is open.
            let rc = unsafe {
                libc::posix_fallocate(file.as_raw_fd(), from as libc::off_t, (to - from) as libc::off_t)
            };
            if rc == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(rc)) }
        };
        file.set_len(bytes)?;
        room(0, TABLE)?;
        room(TABLE + offset / unit * 8, end)?;
        Ok(Self::over(mmap(file, bytes)?, bytes, unit))
    }

    fn over(base: *mut u8, bytes: u64, unit: u64) -> Self {
        Self { base, bytes, unit, epoch: 0, boot_epoch: 0, next: AtomicU64::new(0) }
    }

    fn is_of(&self, identity: Identity) -> bool {
        let whose = identity.file.into_iter().chain([identity.seed]);
        whose.zip(H_IDENTITY..).all(|(word, at)| self.word(at).load(Relaxed) == word)
    }

    fn at(&self, byte: u64) -> &AtomicU64 {
        assert!(byte + 8 <= self.bytes && byte.is_multiple_of(8));
        // SAFETY: inside the mapping, aligned, and shared through atomics only.
        unsafe { AtomicU64::from_ptr(self.base.add(byte as usize).cast()) }
    }

    fn word(&self, index: u64) -> &AtomicU64 {
        self.at(index * 8)
    }

    fn mark(&self, epoch: u64, writer: u64) -> &AtomicU64 {
        self.at(HEADER_BYTES + (epoch % EPOCHS * u64::from(WRITERS) + writer) * 8)
    }

    /// Bytes that one entry stands for.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// Generation of a write that a worker is about to submit.
    #[inline]
    pub fn draw(&self, writer: u16) -> u64 {
        let number = self.next.fetch_add(1, SeqCst);
        Writing { epoch: self.epoch, writer: u64::from(writer), number }.generation()
    }

    /// The write was acknowledged, and nothing else was written to these places meanwhile.
    #[inline]
    pub fn acknowledged(&self, offset: u64, length: u64, generation: u64) {
        for unit in offset / self.unit..(offset + length).div_ceil(self.unit) {
            self.at(TABLE + unit * 8).store(generation, Relaxed);
        }
    }

    /// An fsync made all writes of the worker with numbers below `number` durable.
    pub fn synced(&self, writer: u16, number: u64) {
        self.mark(self.epoch, u64::from(writer)).store(number, Relaxed);
    }

    /// The last acknowledged writing at this offset that must still be there; 0: none that is known.
    #[inline]
    pub fn expected(&self, offset: u64) -> u64 {
        let byte = TABLE + offset / self.unit * 8;
        if byte + 8 > self.bytes {
            return 0;
        }
        let generation = self.at(byte).load(Relaxed);
        let w = Writing::of(generation);
        let durable = w.epoch >= self.boot_epoch
            || w.epoch + EPOCHS > self.epoch && w.number < self.mark(w.epoch, w.writer).load(Relaxed);
        if durable { generation } else { 0 }
    }
}

/// Whether a block that shows the writing `found` has lost the writing `expected`, which was acknowledged.
#[inline]
pub fn is_lost(expected: u64, found: u64) -> bool {
    if expected == 0 {
        return false;
    }
    let (e, f) = (Writing::of(expected), Writing::of(found));
    f.epoch < e.epoch || f.epoch == e.epoch && f.number < e.number
}

/// Number of the write.
pub fn number_of(generation: u64) -> u64 {
    Writing::of(generation).number
}

/// A writing in words.
pub fn describe(generation: u64) -> String {
    match Writing::of(generation) {
        Writing { epoch: 0, .. } => "content from before the record".into(),
        w => format!("write {} (worker {}) in stage {} of the record", w.number, w.writer, w.epoch),
    }
}

/// Whether a file begins as a record of any version does, or was not begun yet.
fn begins_as_record(file: &File) -> io::Result<bool> {
    let mut head = [0u8; 7];
    let read = file.read_at(&mut head, 0)?;
    Ok(head[..read].iter().all(|b| *b == 0) || head == MAGIC.to_le_bytes()[..7])
}

fn mmap(file: &File, bytes: u64) -> io::Result<*mut u8> {
    // SAFETY: a shared mapping of a file that is as long; who else maps it uses atomics, too.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if base == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(base.cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: Identity = Identity { file: [1, 2, 3], seed: 4 };
    const BOOT: [u64; 2] = [5, 6];
    const MIB: u64 = 1 << 20;

    fn begin(path: &Path, boot: [u64; 2]) -> Written {
        Written::begin(path, FILE, boot, (0, MIB), 4096).unwrap()
    }

    proptest! {
        #[test]
        fn a_later_write_is_newer(epoch in 1u64..=LAST_EPOCH, writer in 0u64..1024, a in 0u64..1 << 36, b in 0u64..1 << 36) {
            let g = |epoch, writer, number| Writing { epoch, writer, number }.generation();
            prop_assert_eq!(Writing::of(g(epoch, writer, a)), Writing { epoch, writer, number: a });
            prop_assert_eq!(is_lost(g(epoch, writer, a), g(epoch, writer, b)), b < a);
            prop_assert_eq!(is_lost(g(epoch, writer, a), g(epoch, (writer + 1) % 1024, b)), b < a, "of another worker, too");
            prop_assert!(is_lost(g(epoch, writer, a), g(epoch - 1, writer, b)));
            prop_assert!(!is_lost(g(epoch - 1, writer, a), g(epoch, writer, b)));
        }
    }

    #[test]
    fn what_was_acknowledged_outlives_the_mapping() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record");
        assert!(Written::look(&path, FILE, BOOT).unwrap().is_none());
        let w = begin(&path, BOOT);
        let first = w.draw(3);
        w.acknowledged(8192, 8192, first);
        drop(w);
        let w = Written::look(&path, FILE, BOOT).unwrap().unwrap();
        assert_eq!([4096, 8192, 12288, 16384].map(|at| w.expected(at)), [0, first, first, 0]);
        assert_eq!(w.expected(1 << 40), 0, "beyond the record nothing is known");
        // A second stage goes on, and its writes are newer.
        let w = begin(&path, BOOT);
        let second = w.draw(0);
        assert_eq!((w.expected(8192), is_lost(second, first), is_lost(first, second)), (first, true, false));
    }

    #[test]
    fn another_file_or_seed_has_no_record() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record");
        let w = begin(&path, BOOT);
        w.acknowledged(0, 4096, w.draw(0));
        drop(w);
        for other in [Identity { file: [1, 2, 9], ..FILE }, Identity { seed: 9, ..FILE }] {
            assert!(Written::look(&path, other, BOOT).unwrap().is_none());
        }
        let w = Written::begin(&path, Identity { seed: 9, ..FILE }, BOOT, (0, MIB), 4096).unwrap();
        assert_eq!(w.expected(0), 0, "made anew");
    }

    #[test]
    fn what_is_no_record_is_not_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("record"), dir.path().join("link"));
        std::fs::write(&path, b"precious").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for place in [&path, &link] {
            assert!(Written::begin(place, FILE, BOOT, (0, MIB), 4096).is_err());
            assert_eq!(std::fs::read(&path).unwrap(), b"precious");
        }
        std::fs::write(&path, b"PLIMWRT1 of an older version").unwrap();
        assert!(Written::begin(&link, FILE, BOOT, (0, MIB), 4096).is_err());
        assert!(Written::begin(&path, FILE, BOOT, (0, MIB), 4096).is_ok());
    }

    #[test]
    fn after_a_restart_only_what_was_synced_counts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record");
        let w = begin(&path, BOOT);
        for n in 0..4 {
            w.acknowledged(n * 4096, 4096, w.draw(1));
        }
        w.synced(1, 2);
        drop(w);
        let seen = |w: &Written| [0, 1, 2, 3].map(|n| w.expected(n * 4096) > 0);
        assert_eq!(seen(&Written::look(&path, FILE, BOOT).unwrap().unwrap()), [true; 4]);
        assert_eq!(seen(&Written::look(&path, FILE, [0, 0]).unwrap().unwrap()), [true, true, false, false]);
        // And so it stays when another stage has written since.
        let w = begin(&path, [0, 0]);
        w.acknowledged(3 * 4096, 4096, w.draw(0));
        assert_eq!(seen(&w), [true, true, false, true]);
    }

    #[test]
    fn a_record_grows_and_stays_as_fine_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record");
        let w = Written::begin(&path, FILE, BOOT, (0, MIB), 512).unwrap();
        w.acknowledged(512, 512, w.draw(0));
        drop(w);
        let w = Written::begin(&path, FILE, BOOT, (MIB, MIB), 4096).unwrap();
        assert_eq!((w.unit(), w.expected(0), w.expected(512) > 0), (512, 0, true));
        w.acknowledged(2 * MIB - 4096, 4096, w.draw(0));
        assert!(w.expected(2 * MIB - 1) > 0);
    }
}
