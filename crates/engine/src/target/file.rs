//! Block devices and files as targets: one buffer a slot, one ring call an op.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_model::{Op, OpKind, Outcome};

use super::{Built, Context, Done, OpStep, Target};
use crate::api::{FileConfig, WorkerSpec};
use crate::error::EngineError;
use crate::payload::{Difference, GRANULE, Payload, SMALL_GRANULE};
use crate::recorder::Mismatch;
use crate::ring::{Ring, RingOp, RingSpec, Token};
use crate::source::FDATASYNC;
use crate::underway::Underway;
use crate::written::{self, Written};

/// Buffers are aligned to this: no device asks for more than its logical block, which is smaller.
const ALIGN: usize = 4096;

/// Direct I/O is handed over in parts of so many ops at most: the device works on the first of them while the
/// next are prepared. With all 32 successors of a turn at once a virtual disk stood still for a seventh of the
/// time; one at a time costs a system call each.
const SUBMIT_AT_ONCE: u32 = 4;

/// Memory of all slots: one mapping, zeroed, touched before the start.
#[derive(Debug)]
struct Buffers {
    base: *mut u8,
    each: usize,
    total: usize,
}

// SAFETY: the mapping is owned, and used by the worker's thread only.
unsafe impl Send for Buffers {}

impl Buffers {
    fn new(slots: u32, each: u64) -> Result<Self, String> {
        let each = (each.max(1) as usize).next_multiple_of(ALIGN);
        let total = each * slots as usize;
        // SAFETY: an anonymous private mapping of our own.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                total,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(format!(
                "no memory for {slots} buffers of {each} bytes: {}; use a smaller block size or fewer in flight",
                std::io::Error::last_os_error()
            ));
        }
        Ok(Self { base: base.cast(), each, total })
    }

    fn ptr(&self, slot: u32) -> *mut u8 {
        // SAFETY: slots are below the number that the mapping was made for.
        unsafe { self.base.add(slot as usize * self.each) }
    }

    /// The first `len` bytes of a slot's buffer.
    ///
    /// # Safety
    /// No ring op on the slot's buffer may be in flight.
    unsafe fn bytes(&mut self, slot: u32, len: usize) -> &mut [u8] {
        debug_assert!(len <= self.each);
        // SAFETY: inside the mapping; the caller says that the kernel is not using it.
        unsafe { std::slice::from_raw_parts_mut(self.ptr(slot), len) }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: our mapping; workers with ops in flight are leaked, not dropped.
        unsafe { libc::munmap(self.base.cast(), self.total) };
    }
}

/// A device or a set of files: one ring op for each op, on a registered buffer.
#[derive(Debug)]
pub struct FileTarget {
    files: Vec<File>,
    names: Vec<String>,
    first_object: u64,
    buffers: Buffers,
    payload: Payload,
    verify: bool,
    /// Somebody writes other than whole granules to the files.
    fine: bool,
    ops: Vec<Op>,
    /// Bytes of the slot's op that have moved: a short read or write goes on.
    moved: Vec<u32>,
    direct: bool,
    /// What was written last, where a record is kept or held against.
    history: History,
    crossing: Option<Crossing>,
}

/// What crosses the reads of this worker.
#[derive(Debug)]
struct Crossing {
    underway: Arc<Underway>,
    /// Of the read or write in each slot: what was under way when it began, a word for each line.
    noted: Vec<u64>,
    per_slot: usize,
    /// Reads that were not judged.
    reads: u64,
}

impl Crossing {
    fn begin(&mut self, slot: u32, object: u64, op: &Op) {
        let noted = &mut self.noted[slot as usize * self.per_slot..][..self.per_slot];
        match op.kind {
            OpKind::Read => self.underway.note(object, op.offset, op.length, noted),
            OpKind::Write | OpKind::Trim => self.underway.begin(object, op.offset, op.length, noted),
            _ => {}
        }
    }

    fn end(&self, object: u64, op: &Op) {
        if matches!(op.kind, OpKind::Write | OpKind::Trim) {
            self.underway.end(object, op.offset, op.length);
        }
    }

    fn settled(&self, slot: u32, object: u64, op: &Op, part: impl FnMut(u64, u64)) {
        let noted = &self.noted[slot as usize * self.per_slot..][..self.per_slot];
        self.underway.settled(object, op.offset, op.length, noted, part);
    }

    /// Whether a write to the same place crossed the slot's read: what it shows is then no sign of damage.
    fn crossed(&mut self, slot: u32, object: u64, op: &Op) -> bool {
        let noted = &self.noted[slot as usize * self.per_slot..][..self.per_slot];
        let crossed = self.underway.crossed(object, op.offset, op.length, noted);
        self.reads += u64::from(crossed);
        crossed
    }
}

/// The records of the files, and what the ops in flight have to do with them.
#[derive(Debug)]
struct History {
    written: Vec<Arc<Written>>,
    /// Number of the worker in the record.
    writer: u16,
    /// Whether this worker's writes are recorded.
    writes: bool,
    /// Of the write in each slot; 0: none is in flight.
    generations: Vec<u64>,
    /// Lowest number of a write that failed, and the number after the last that was drawn.
    failed: u64,
    drawn: u64,
    /// Of the fsync in each slot: all writes with lower numbers had been acknowledged when it began.
    promises: Vec<u64>,
    synced: u64,
    /// Of the read in each slot: what was acknowledged before it began, a word for each unit.
    expected: Vec<u64>,
    per_slot: usize,
}

impl History {
    fn new(spec: &WorkerSpec, written: &[Arc<Written>], largest: u64) -> Self {
        let slots = spec.slots as usize;
        let unit = written.iter().map(|w| w.unit()).min().unwrap_or(u64::MAX);
        let per_slot =
            if spec.verify && !written.is_empty() { largest.div_ceil(unit) as usize + 1 } else { 0 };
        Self {
            written: written.to_vec(),
            writer: spec.worker.worker,
            writes: !written.is_empty() && spec.source.kinds.iter().any(|k| k.kind == OpKind::Write),
            generations: vec![0; slots],
            failed: u64::MAX,
            drawn: 0,
            promises: vec![0; slots],
            synced: 0,
            expected: vec![0; per_slot * slots],
            per_slot,
        }
    }

    /// What must be there when the read ends: what was acknowledged in the meantime need not be.
    fn remember(&mut self, slot: u32, op: &Op) {
        let Some(record) = self.written.get(op.key as usize).filter(|_| self.per_slot > 0) else { return };
        let unit = record.unit();
        let words = &mut self.expected[slot as usize * self.per_slot..][..self.per_slot];
        for (i, word) in words.iter_mut().enumerate().take((op.length / unit) as usize + 1) {
            *word = record.expected(op.offset + i as u64 * unit);
        }
    }

    /// Draws the generation of the slot's write; `n` where no record is kept.
    fn draw(&mut self, slot: u32, key: u64, n: u64) -> u64 {
        let Some(record) = self.written.get(key as usize) else { return n };
        let generation = record.draw(self.writer);
        self.drawn = written::number_of(generation) + 1;
        self.generations[slot as usize] = generation;
        generation
    }

    /// The slot's write failed: what it was to write may be there or not.
    fn fail(&mut self, slot: u32) {
        let generation = std::mem::take(&mut self.generations[slot as usize]);
        if generation != 0 {
            self.failed = self.failed.min(written::number_of(generation));
        }
    }

    /// An fsync begins.
    fn promise(&mut self, slot: u32) {
        let in_flight = self.generations.iter().filter(|g| **g != 0).map(|g| written::number_of(*g));
        self.promises[slot as usize] = in_flight.chain([self.drawn, self.failed]).min().unwrap_or(0);
    }

    /// The slot's fsync is over. It speaks for one file only.
    fn sync(&mut self, slot: u32) {
        if let ([record], true) = (self.written.as_slice(), self.writes) {
            self.synced = self.synced.max(self.promises[slot as usize]);
            record.synced(self.writer, self.synced);
        }
    }

    /// Of `len` bytes at `at` of what was read, that show the writing `found`.
    fn judge(&self, slot: u32, op: &Op, (at, len): (usize, usize), found: u64) -> Result<(), Difference> {
        let Some(record) = self.written.get(op.key as usize) else { return Ok(()) };
        let unit = record.unit();
        // Without a stamp nothing is told, unless all that the record knows of has one in each of its units.
        if found == 0 && unit > SMALL_GRANULE as u64 {
            return Ok(());
        }
        let (from, to) = (op.offset + at as u64, op.offset + (at + len) as u64);
        let first = op.offset / unit;
        let words = &self.expected[slot as usize * self.per_slot..];
        let lost = (from / unit..to.div_ceil(unit))
            .map(|u| (u, words[(u - first) as usize]))
            .find(|(_, expected)| written::is_lost(*expected, found));
        let Some((unit_lost, expected)) = lost else { return Ok(()) };
        let at = (unit_lost * unit).max(from) - op.offset;
        Err(Difference {
            at: at as usize,
            expected: format!("{}, or a later write", written::describe(expected)),
            found: format!(
                "{}: a lost write (it was acknowledged, but older content is there)",
                written::describe(found)
            ),
        })
    }
}

impl FileTarget {
    /// `underway`: what all who write to the stage's files share, where reads of them are verified meanwhile.
    pub fn build(
        spec: &WorkerSpec,
        config: &FileConfig,
        underway: Option<Arc<Underway>>,
    ) -> Result<Built<Self>, EngineError> {
        let writes = spec.source.kinds.iter().any(|k| matches!(k.kind, OpKind::Write | OpKind::Trim));
        let through = |i: usize| config.through.get(i).unwrap_or(&config.paths[i]);
        let paths = config.paths.iter().enumerate();
        let open = |(i, path): (usize, &PathBuf)| open(path, through(i), config, writes);
        let files = paths.map(open).collect::<Result<Vec<_>, _>>()?;
        let each = spec.source.kinds.iter().map(|k| k.size.max_bytes()).max().unwrap_or(0);
        if each > u64::from(u32::MAX / 2) {
            return Err(EngineError::BadSpec(format!("a block of {each} bytes is too large: 2 GiB at most")));
        }
        let buffers = Buffers::new(spec.slots, each).map_err(EngineError::Target)?;
        let slots = spec.slots as usize;
        let ring = RingSpec {
            epoch_ns: 0,
            entries: spec.slots,
            files: files.iter().map(AsRawFd::as_raw_fd).collect(),
            buffers: (0..spec.slots).map(|s| (buffers.ptr(s) as usize, buffers.each)).collect(),
            sockets: 0,
        };
        let target = Self {
            names: config.paths.iter().map(|p| p.display().to_string()).collect(),
            files,
            first_object: config.first_object,
            buffers,
            payload: Payload::new(spec.data),
            verify: spec.verify,
            fine: config.written.iter().any(|w| w.unit() < GRANULE as u64),
            ops: vec![Op { kind: OpKind::Null, key: 0, offset: 0, length: 0 }; slots],
            moved: vec![0; slots],
            direct: !config.buffered,
            history: History::new(spec, &config.written, each),
            crossing: underway.map(|underway| {
                let per_slot = Underway::lines_of(each);
                Crossing { underway, noted: vec![0; per_slot * slots], per_slot, reads: 0 }
            }),
        };
        Ok(Built { target, ring })
    }

    /// Queues what is left of the slot's op.
    #[inline]
    fn push<R: Ring>(&self, cx: &mut Context<'_, R>, slot: u32) {
        let op = &self.ops[slot as usize];
        let moved = self.moved[slot as usize];
        let file = op.key as u32;
        // SAFETY: `moved` is at most the op's length, which is at most the buffer's.
        let ptr = unsafe { self.buffers.ptr(slot).add(moved as usize) };
        let (len, offset) = (op.length as u32 - moved.min(op.length as u32), op.offset + u64::from(moved));
        let buffer = slot as u16;
        let ring_op = match op.kind {
            OpKind::Read => RingOp::Read { file, buffer, ptr, len, offset },
            OpKind::Write => RingOp::Write { file, buffer, ptr, len, offset },
            OpKind::Trim => RingOp::Trim { file, offset: op.offset, len: op.length },
            OpKind::Fsync => RingOp::Fsync { file, data_only: op.length == FDATASYNC },
            _ => RingOp::Nop,
        };
        // SAFETY: the slot's buffer lives as long as the ring, and this is its only op in flight.
        unsafe { cx.ring.push(Token::new(slot, 0), ring_op) };
    }

    #[inline]
    fn completed<R: Ring>(&mut self, cx: &mut Context<'_, R>, slot: u32, result: i32) -> OpStep {
        let op = self.ops[slot as usize];
        if result < 0 {
            return match -result {
                libc::EINTR | libc::EAGAIN => {
                    self.push(cx, slot);
                    OpStep::MORE
                }
                errno => {
                    self.history.fail(slot);
                    self.failed(cx, slot, errno)
                }
            };
        }
        if !matches!(op.kind, OpKind::Read | OpKind::Write) {
            if op.kind == OpKind::Fsync {
                self.history.sync(slot);
            }
            return OpStep::Done(Done::at_once(
                Outcome::Ok,
                if op.kind == OpKind::Trim { op.length } else { 0 },
            ));
        }
        let now_moved = result as u32;
        self.moved[slot as usize] += now_moved;
        let left = op.length as u32 - self.moved[slot as usize];
        if left > 0 && now_moved > 0 {
            self.push(cx, slot);
            return OpStep::More { moved_bytes: u64::from(now_moved), first_byte: false };
        }
        let outcome = if left > 0 {
            let name = &self.names[op.key as usize];
            cx.recorder.error(Outcome::ShortBody, op.kind, || {
                format!("{} at {} of {name}: short by {left} bytes", op.kind, op.offset)
            });
            self.history.fail(slot);
            Outcome::ShortBody
        } else if self.verify && op.kind == OpKind::Read {
            self.verify_slot(cx, slot)
        } else {
            if op.kind == OpKind::Write {
                self.acknowledged(slot, &op);
            }
            Outcome::Ok
        };
        let done = Done::at_once(outcome, if outcome.is_ok() { op.length } else { 0 });
        OpStep::Done(Done { moved_bytes: u64::from(now_moved), ..done })
    }

    /// Notes what the slot's write left, where nothing crossed it.
    fn acknowledged(&mut self, slot: u32, op: &Op) {
        let generation = std::mem::take(&mut self.history.generations[slot as usize]);
        let Some(record) = self.history.written.get(op.key as usize) else { return };
        let note = |offset, length| record.acknowledged(offset, length, generation);
        match &self.crossing {
            None => note(op.offset, op.length),
            Some(c) => c.settled(slot, self.first_object + op.key, op, note),
        }
    }

    fn verify_slot<R: Ring>(&mut self, cx: &mut Context<'_, R>, slot: u32) -> Outcome {
        let op = self.ops[slot as usize];
        // SAFETY: the slot's op has just completed.
        let block = unsafe { self.buffers.bytes(slot, op.length as usize) };
        let history = &self.history;
        let judge = |at: usize, len: usize, found: u64| match history.per_slot {
            0 => Ok(()),
            _ => history.judge(slot, &op, (at, len), found),
        };
        let object = self.first_object + op.key;
        match self.payload.check_each(block, object, op.offset, judge) {
            Ok(()) => Outcome::Ok,
            Err(_) if self.crossing.as_mut().is_some_and(|c| c.crossed(slot, object, &op)) => Outcome::Ok,
            Err(d) => {
                let name = &self.names[op.key as usize];
                cx.recorder.mismatch(|| Mismatch {
                    object: name.clone(),
                    offset_bytes: op.offset + d.at as u64,
                    expected: d.expected,
                    found: d.found,
                });
                Outcome::VerifyMismatch
            }
        }
    }

    fn failed<R: Ring>(&self, cx: &mut Context<'_, R>, slot: u32, errno: i32) -> OpStep {
        let op = self.ops[slot as usize];
        let outcome = match errno {
            libc::ENOSPC | libc::EDQUOT => Outcome::NoSpace,
            libc::ECANCELED => Outcome::Cancelled,
            libc::ETIMEDOUT => Outcome::Timeout,
            _ => Outcome::IoError,
        };
        if outcome != Outcome::Cancelled {
            let name = &self.names[op.key as usize];
            let direct = self.direct;
            cx.recorder.error(outcome, op.kind, || explain(op, name, errno, direct));
        }
        OpStep::Done(Done::at_once(outcome, 0))
    }
}

fn explain(op: Op, name: &str, errno: i32, direct: bool) -> String {
    let error = std::io::Error::from_raw_os_error(errno);
    let mut text = format!("{} of {} bytes at {} of {name}: {error}", op.kind, op.length, op.offset);
    if errno == libc::EINVAL && direct {
        text.push_str(" (with direct I/O, size and offset must be multiples of the device's block)");
    }
    text
}

/// `through` leads to the file of that name.
fn open(path: &Path, through: &Path, config: &FileConfig, writes: bool) -> Result<File, EngineError> {
    let mut flags = libc::O_CLOEXEC;
    if !config.buffered {
        flags |= libc::O_DIRECT;
    }
    let open = |more: i32| {
        OpenOptions::new()
            .read(true)
            .write(writes)
            .create(config.create && writes)
            .truncate(false)
            .custom_flags(flags | more)
            .open(through)
    };
    // Times of access are no part of what is measured; only the owner may leave them alone.
    let result = open(libc::O_NOATIME).or_else(|e| match e.raw_os_error() {
        Some(libc::EPERM) => open(0),
        _ => Err(e),
    });
    result.map_err(|e| {
        let what = if e.raw_os_error() == Some(libc::EINVAL) && !config.buffered {
            "this file system does not support direct I/O (O_DIRECT); use --buffered, which measures through the \
             page cache".into()
        } else {
            e.to_string()
        };
        EngineError::File { path: path.display().to_string(), what }
    })
}

impl<R: Ring> Target<R> for FileTarget {
    const STAMP_AFTER_PREPARE: bool = false;

    #[inline]
    fn begin(&mut self, cx: &mut Context<'_, R>, slot: u32, op: &Op, n: u64) -> OpStep {
        self.ops[slot as usize] = *op;
        self.moved[slot as usize] = 0;
        // Before the number is drawn: numbers then are in the order of writes that do not cross.
        if let Some(crossing) = &mut self.crossing {
            crossing.begin(slot, self.first_object + op.key, op);
        }
        if op.kind == OpKind::Write {
            // SAFETY: the slot is free: nothing of it is in flight.
            let block = unsafe { self.buffers.bytes(slot, op.length as usize) };
            let generation = self.history.draw(slot, op.key, n);
            self.payload.fill(block, self.first_object + op.key, op.offset, generation, self.fine);
        } else if op.kind == OpKind::Read {
            self.history.remember(slot, op);
        } else if op.kind == OpKind::Fsync {
            self.history.promise(slot);
        }
        self.push(cx, slot);
        OpStep::MORE
    }

    #[inline]
    fn complete(&mut self, cx: &mut Context<'_, R>, token: Token, result: i32) -> OpStep {
        let step = self.completed(cx, token.slot(), result);
        if let (Some(crossing), OpStep::Done(_)) = (&self.crossing, &step) {
            let op = &self.ops[token.slot() as usize];
            crossing.end(self.first_object + op.key, op);
        }
        step
    }

    fn cancel(&mut self, cx: &mut Context<'_, R>, slot: u32, _why: Outcome) -> OpStep {
        cx.ring.cancel(Token::new(slot, 0));
        OpStep::MORE
    }

    /// Two writes of one block in flight have no order, and what was written last could not be told.
    fn must_wait(&self, op: &Op) -> bool {
        if !self.history.writes || op.kind != OpKind::Write {
            return false;
        }
        self.ops.iter().zip(&self.history.generations).any(|(other, in_flight)| {
            *in_flight != 0
                && other.key == op.key
                && other.offset < op.offset + op.length
                && op.offset < other.offset + other.length
        })
    }

    fn submit_every(&self) -> u32 {
        // Through the page cache the submission itself does the work: there is no device to keep busy.
        if self.direct { (self.ops.len() as u32 / 8).clamp(1, SUBMIT_AT_ONCE) } else { u32::MAX }
    }

    fn crossed_reads(&self) -> u64 {
        self.crossing.as_ref().map_or(0, |c| c.reads)
    }

    fn notes(&self) -> Vec<(String, String)> {
        let way = if self.direct { "direct" } else { "buffered (page cache)" };
        let mut notes = vec![("io".to_owned(), way.to_owned())];
        if self.verify {
            notes.push(("verify".into(), "the stamp and content of each block read".into()));
        }
        debug_assert_eq!(self.files.len(), self.names.len());
        notes
    }
}
