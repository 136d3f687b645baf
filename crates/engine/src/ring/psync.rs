//! psync: pread and pwrite, one at a time, in the worker's own thread. Depth 1, files only.

use std::io;

use plimsoll_model::plan::RingChoice;

use super::{Completion, Completions, Ring, RingError, RingOp, RingSpec, Token, monotonic_ns, sleep_until};

/// pread and pwrite, one at a time, in the worker's own thread.
#[derive(Debug)]
pub struct PsyncRing {
    epoch_ns: u64,
    files: Vec<i32>,
    queued: Option<(Token, RingOp)>,
    done: Option<Completion>,
    syscalls: u64,
}

impl PsyncRing {
    fn run(&mut self) {
        let Some((token, op)) = self.queued.take() else { return };
        let fd = |file: u32| self.files[file as usize];
        self.syscalls += u64::from(!matches!(op, RingOp::Nop));
        // SAFETY: `push`'s contract: the memory is valid until the completion was reaped; descriptors are
        // open as long as the ring.
        let n = unsafe {
            match op {
                RingOp::Nop => 0,
                RingOp::Read { file, ptr, len, offset, .. } => {
                    libc::pread(fd(file), ptr.cast(), len as usize, offset as libc::off_t)
                }
                RingOp::Write { file, ptr, len, offset, .. } => {
                    libc::pwrite(fd(file), ptr.cast(), len as usize, offset as libc::off_t)
                }
                RingOp::Fsync { file, data_only: true } => libc::fdatasync(fd(file)) as isize,
                RingOp::Fsync { file, data_only: false } => libc::fsync(fd(file)) as isize,
                RingOp::Trim { file, offset, len } => super::trim(fd(file), offset, len),
                _ => {
                    self.done = Some(Completion { token, result: -libc::EOPNOTSUPP });
                    return;
                }
            }
        };
        let result = if n < 0 { -super::errno() } else { n as i32 };
        self.done = Some(Completion { token, result });
    }
}

impl Ring for PsyncRing {
    const CHOICE: RingChoice = RingChoice::Psync;

    fn open(spec: &RingSpec) -> Result<Self, RingError> {
        if spec.entries > 1 {
            return Err(RingError::Unfit(format!(
                "psync does one op at a time, but {} in flight were requested: use more jobs, or the io_uring or \
                 libaio ring",
                spec.entries
            )));
        }
        if spec.sockets > 0 {
            return Err(RingError::Unfit(
                "psync is for files and devices: use the io_uring or epoll ring".into(),
            ));
        }
        Ok(Self { epoch_ns: spec.epoch_ns, files: spec.files.clone(), queued: None, done: None, syscalls: 0 })
    }

    fn describe(&self) -> String {
        "pread and pwrite".into()
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns() - self.epoch_ns
    }

    unsafe fn push(&mut self, token: Token, op: RingOp) {
        debug_assert!(self.queued.is_none() && self.done.is_none());
        self.queued = Some((token, op));
    }

    fn cancel(&mut self, token: Token) {
        if self.queued.is_some_and(|(t, _)| t == token) {
            self.queued = None;
            self.done = Some(Completion { token, result: -libc::ECANCELED });
        }
    }

    fn submit(&mut self) -> io::Result<()> {
        self.run();
        Ok(())
    }

    fn wait(&mut self, min: u32, until_ns: u64) -> io::Result<()> {
        self.run();
        if self.done.is_none() && min > 0 {
            self.syscalls += 1;
            sleep_until(self.epoch_ns, until_ns);
        }
        Ok(())
    }

    fn reap(&mut self, out: &mut Completions) {
        if !out.is_full()
            && let Some(c) = self.done.take()
        {
            out.push(c.token, c.result);
        }
    }

    fn syscalls(&self) -> u64 {
        self.syscalls
    }
}
