//! A disk as a file, by FUSE: each request is answered when the disk's law says so, from a file that is faster.
//!
//! Requests wait in the order of their times, each with a copy of its data: any number is in flight, and none waits for another's answer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite,
    Request, WriteFlags,
};

use super::law::DiskLaw;
use crate::clock::now_ns;
use crate::limiter::Direction;

/// The one file.
pub(super) const NAME: &str = "disk";
const FILE: INodeNo = INodeNo(2);
/// Of one request: what a disk takes at once.
const MOST_BYTES: u32 = 1 << 20;
const FOREVER: Duration = Duration::from_secs(1 << 20);

/// What is to be done when its time has come.
enum Job {
    Read { offset: u64, bytes: u32, reply: ReplyData },
    Write { offset: u64, data: Vec<u8>, reply: ReplyWrite },
}

/// A request in its place: by time, then by order of arrival.
struct Waiting {
    at: Reverse<(u64, u64)>,
    job: Job,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

struct Inside {
    law: DiskLaw,
    waiting: BinaryHeap<Waiting>,
    arrived: u64,
    /// Nothing waits any more: what is left is to be written out before the disk goes.
    is_open: bool,
    /// Each request is answered with an error, as a broken drive does.
    is_failing: bool,
}

/// Requests and their law, between the kernel and the thread that answers.
pub(super) struct DiskQueue {
    inside: Mutex<Inside>,
    came: Condvar,
    backing: File,
}

impl DiskQueue {
    pub fn new(law: DiskLaw, backing: File) -> Arc<Self> {
        let inside =
            Inside { law, waiting: BinaryHeap::new(), arrived: 0, is_open: false, is_failing: false };
        Arc::new(Self { inside: Mutex::new(inside), came: Condvar::new(), backing })
    }

    fn take(&self, direction: Direction, bytes: u64, job: Job) {
        let mut inside = self.locked();
        let due = if inside.is_open { 0 } else { inside.law.book(now_ns(), direction, bytes) };
        let order = inside.arrived;
        inside.arrived += 1;
        inside.waiting.push(Waiting { at: Reverse((due, order)), job });
        self.came.notify_one();
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another law from now on; what waits keeps its time.
    pub fn obey(&self, law: DiskLaw) {
        self.locked().law = law;
    }

    /// Whether each request fails from now on.
    pub fn fail(&self, is_failing: bool) {
        self.locked().is_failing = is_failing;
    }

    /// From now on nothing is held back.
    pub fn open_wide(&self) {
        self.locked().is_open = true;
        self.came.notify_one();
    }

    /// Seconds of credit that are left.
    pub fn credit_s(&self) -> Option<f64> {
        self.locked().law.credit_s()
    }

    /// Answers, for ever: its thread ends with the process.
    pub fn serve(&self) {
        let mut buffer = vec![0; MOST_BYTES as usize];
        loop {
            self.answer(self.next(), &mut buffer);
        }
    }

    fn next(&self) -> Job {
        let mut inside = self.locked();
        loop {
            let wait_ns = match inside.waiting.peek() {
                Some(w) if inside.is_open || w.at.0.0 <= now_ns() => {
                    return inside.waiting.pop().expect("it was seen").job;
                }
                Some(w) => w.at.0.0 - now_ns().min(w.at.0.0),
                None => u64::MAX >> 8,
            };
            inside = self
                .came
                .wait_timeout(inside, Duration::from_nanos(wait_ns))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn answer(&self, job: Job, buffer: &mut [u8]) {
        let is_failing = self.locked().is_failing;
        match job {
            Job::Read { reply, .. } if is_failing => reply.error(Errno::EIO),
            Job::Write { reply, .. } if is_failing => reply.error(Errno::EIO),
            Job::Read { offset, bytes, reply } => {
                let part = &mut buffer[..(bytes as usize).min(MOST_BYTES as usize)];
                match self.backing.read_exact_at(part, offset) {
                    Ok(()) => reply.data(part),
                    Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => reply.data(&[]),
                    Err(e) => reply.error(e.into()),
                }
            }
            Job::Write { offset, data, reply } => match self.backing.write_all_at(&data, offset) {
                Ok(()) => reply.written(data.len() as u32),
                Err(e) => reply.error(e.into()),
            },
        }
    }
}

/// The file system of one file.
pub(super) struct DiskFile {
    pub queue: Arc<DiskQueue>,
    pub size_bytes: u64,
    /// The kernel keeps no page of it.
    pub is_direct: bool,
}

impl DiskFile {
    fn attr(&self, ino: INodeNo) -> FileAttr {
        let is_file = ino == FILE;
        FileAttr {
            ino,
            size: if is_file { self.size_bytes } else { 0 },
            blocks: if is_file { self.size_bytes / 512 } else { 0 },
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: 0,
            blksize: 4096,
        }
    }
}

impl Filesystem for DiskFile {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // What the kernel does not take it says, and goes on with less.
        let _ = config.set_max_write(MOST_BYTES);
        let _ = config.set_max_readahead(MOST_BYTES);
        let _ = config.set_max_background(256);
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == NAME {
            reply.entry(&FOREVER, &self.attr(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOREVER, &self.attr(ino));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let direct = if self.is_direct { FopenFlags::FOPEN_DIRECT_IO } else { FopenFlags::empty() };
        reply.opened(FileHandle(0), direct | FopenFlags::FOPEN_NOFLUSH);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let bytes = size.min(u32::try_from(self.size_bytes.saturating_sub(offset)).unwrap_or(u32::MAX));
        self.queue.take(Direction::Out, bytes.into(), Job::Read { offset, bytes, reply });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if offset.saturating_add(data.len() as u64) > self.size_bytes {
            return reply.error(Errno::ENOSPC);
        }
        self.queue.take(Direction::In, data.len() as u64, Job::Write { offset, data: data.to_vec(), reply });
    }

    // What was answered is in the backing file; there is no power to be lost.
    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Not wanted, now or later (kernels before 5.16 do not know FOPEN_NOFLUSH): whoever is killed while it has the file open would wait on
        // its way out for an answer of its own, for ever, and everybody who looks at the mount with it.
        reply.error(Errno::ENOSYS);
    }
}
