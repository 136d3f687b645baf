//! libaio: the kernel's older asynchronous interface (io_submit), through system calls. For containers
//! that forbid io_uring. Only direct I/O is asynchronous with it; files only.

use std::collections::VecDeque;
use std::io;

use plimsoll_model::plan::RingChoice;

use super::{
    Completion, Completions, Ring, RingError, RingOp, RingSpec, Token, errno, monotonic_ns, sleep_until,
};

/// `struct iocb` of linux/aio_abi.h (little endian).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buf: u64,
    nbytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    resfd: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct IoEvent {
    data: u64,
    obj: u64,
    res: i64,
    res2: i64,
}

const CMD_PREAD: u16 = 0;
const CMD_PWRITE: u16 = 1;
const CMD_FSYNC: u16 = 2;
const CMD_FDSYNC: u16 = 3;

/// io_submit and io_getevents, for files with direct I/O.
#[derive(Debug)]
pub struct LibaioRing {
    context: u64,
    epoch_ns: u64,
    files: Vec<i32>,
    /// Control blocks by place; `order` names those to submit, as pointers into `blocks`.
    blocks: Vec<Iocb>,
    free: Vec<u32>,
    order: Vec<u64>,
    events: Vec<IoEvent>,
    done: VecDeque<Completion>,
    submitted: u32,
    syscalls: u64,
}

impl Drop for LibaioRing {
    fn drop(&mut self) {
        // SAFETY: the context is ours; the call waits for what is in flight.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

impl LibaioRing {
    fn queue(&mut self, token: Token, opcode: u16, file: u32, ptr: u64, len: u64, offset: u64) {
        let at = self.free.pop().expect("at most `entries` ops are in flight");
        let data = token.0;
        self.blocks[at as usize] = Iocb {
            data,
            opcode,
            fd: self.files[file as usize] as u32,
            buf: ptr,
            nbytes: len,
            offset: offset as i64,
            ..Iocb::default()
        };
        self.order.push(&raw const self.blocks[at as usize] as u64);
    }

    fn place_of(&self, block: u64) -> u32 {
        ((block - self.blocks.as_ptr() as u64) / size_of::<Iocb>() as u64) as u32
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut from = 0;
        while from < self.order.len() {
            self.syscalls += 1;
            let count = self.order.len() - from;
            // SAFETY: the pointers name blocks of ours that stay in place until their events came.
            let n = unsafe {
                libc::syscall(
                    libc::SYS_io_submit,
                    self.context,
                    count as libc::c_long,
                    self.order.as_ptr().add(from),
                )
            };
            if n > 0 {
                from += n as usize;
                self.submitted += n as u32;
                continue;
            }
            let error = errno();
            if n == 0 || error == libc::EAGAIN || error == libc::EINTR {
                self.collect(1, u64::MAX)?;
                continue;
            }
            // The first block is at fault: it ends with the error, the rest goes on.
            let block = self.order[from];
            let place = self.place_of(block);
            let token = Token(self.blocks[place as usize].data);
            self.free.push(place);
            self.done.push_back(Completion { token, result: -error });
            from += 1;
        }
        self.order.clear();
        Ok(())
    }

    fn collect(&mut self, min: u32, until_ns: u64) -> io::Result<()> {
        let min = min.min(self.submitted);
        let left = if min == 0 { 0 } else { until_ns.saturating_sub(self.now_ns()) };
        let limit =
            libc::timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
        let limit_ptr = if until_ns == u64::MAX && min > 0 { std::ptr::null() } else { &raw const limit };
        self.syscalls += 1;
        // SAFETY: `events` has room for as many as are asked for.
        let n = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                min as libc::c_long,
                self.events.capacity() as libc::c_long,
                self.events.as_mut_ptr(),
                limit_ptr,
            )
        };
        if n < 0 {
            let e = errno();
            return if e == libc::EINTR { Ok(()) } else { Err(io::Error::from_raw_os_error(e)) };
        }
        // SAFETY: the kernel wrote that many events.
        unsafe { self.events.set_len(n as usize) };
        for i in 0..n as usize {
            let e = self.events[i];
            self.submitted -= 1;
            let place = self.place_of(e.obj);
            self.free.push(place);
            self.done.push_back(Completion { token: Token(e.data), result: e.res as i32 });
        }
        self.events.clear();
        Ok(())
    }
}

impl Ring for LibaioRing {
    const CHOICE: RingChoice = RingChoice::Libaio;

    fn open(spec: &RingSpec) -> Result<Self, RingError> {
        if spec.sockets > 0 {
            return Err(RingError::Unfit(
                "libaio is for files and devices: use the io_uring or epoll ring".into(),
            ));
        }
        let entries = spec.entries.max(1);
        let mut context = 0u64;
        // SAFETY: the kernel writes the context's id.
        if unsafe { libc::syscall(libc::SYS_io_setup, entries as libc::c_long, &raw mut context) } < 0 {
            return Err(RingError::Refused {
                ring: "libaio",
                what: format!("io_setup with {entries} entries"),
                reason: format!("{} (see /proc/sys/fs/aio-max-nr)", io::Error::last_os_error()),
            });
        }
        Ok(Self {
            context,
            epoch_ns: spec.epoch_ns,
            files: spec.files.clone(),
            blocks: vec![Iocb::default(); entries as usize],
            free: (0..entries).rev().collect(),
            order: Vec::with_capacity(entries as usize),
            events: Vec::with_capacity(entries as usize),
            done: VecDeque::with_capacity(entries as usize + 1),
            submitted: 0,
            syscalls: 0,
        })
    }

    fn describe(&self) -> String {
        "io_submit and io_getevents".into()
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns() - self.epoch_ns
    }

    unsafe fn push(&mut self, token: Token, op: RingOp) {
        match op {
            RingOp::Read { file, ptr, len, offset, .. } => {
                self.queue(token, CMD_PREAD, file, ptr as u64, u64::from(len), offset);
            }
            RingOp::Write { file, ptr, len, offset, .. } => {
                self.queue(token, CMD_PWRITE, file, ptr as u64, u64::from(len), offset);
            }
            RingOp::Fsync { file, data_only } => {
                let command = if data_only { CMD_FDSYNC } else { CMD_FSYNC };
                self.queue(token, command, file, 0, 0, 0);
            }
            RingOp::Trim { file, offset, len } => {
                // There is no asynchronous trim here: it is done at once, in the submitting thread.
                self.syscalls += 1;
                let n = super::trim(self.files[file as usize], offset, len);
                let result = if n < 0 { -errno() } else { 0 };
                self.done.push_back(Completion { token, result });
            }
            RingOp::Nop => self.done.push_back(Completion { token, result: 0 }),
            _ => self.done.push_back(Completion { token, result: -libc::EOPNOTSUPP }),
        }
    }

    /// The kernel cancels no block I/O through this interface: only what was not submitted yet.
    fn cancel(&mut self, token: Token) {
        let found = self.order.iter().position(|b| self.blocks[self.place_of(*b) as usize].data == token.0);
        if let Some(i) = found {
            let block = self.order.remove(i);
            let place = self.place_of(block);
            self.free.push(place);
            self.done.push_back(Completion { token, result: -libc::ECANCELED });
        }
    }

    fn submit(&mut self) -> io::Result<()> {
        self.flush()
    }

    fn wait(&mut self, min: u32, until_ns: u64) -> io::Result<()> {
        self.flush()?;
        let there = self.done.len() as u32;
        if self.submitted == 0 {
            if there == 0 && min > 0 {
                self.syscalls += 1;
                sleep_until(self.epoch_ns, until_ns);
            }
            return Ok(());
        }
        self.collect(min.saturating_sub(there), until_ns)
    }

    fn reap(&mut self, out: &mut Completions) {
        while !out.is_full() {
            let Some(c) = self.done.pop_front() else { break };
            out.push(c.token, c.result);
        }
    }

    fn syscalls(&self) -> u64 {
        self.syscalls
    }
}
