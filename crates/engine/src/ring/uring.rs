//! io_uring: one ring a worker, made in the worker's own thread; files and buffers registered.

use std::io;
use std::net::SocketAddr;

use io_uring::squeue::Entry;
use io_uring::{IoUring, opcode, types};
use plimsoll_model::plan::RingChoice;

use super::{Completions, Ring, RingError, RingOp, RingSpec, SockId, Token, monotonic_ns};

mod sockets;
use sockets::Sockets;

/// Flag of `io_uring_enter`: run deferred task work and look for completions, also when not waiting.
const ENTER_GETEVENTS: u32 = 1;
/// Flag: the argument is an extended one (time limit).
const ENTER_EXT_ARG: u32 = 8;
/// Flag of a receive (5.19): wait first, then look; for data that cannot have come yet.
const POLL_FIRST: u16 = 1;
/// Completions of cancel requests themselves are dropped here.
const CANCEL: Token = Token((Token::RESERVED_SLOT as u64) << 32);

/// io_uring: files and sockets.
pub struct UringRing {
    ring: IoUring,
    epoch_ns: u64,
    flavour: &'static str,
    files: Vec<i32>,
    files_registered: bool,
    buffers_registered: bool,
    sockets: Sockets,
    /// What receives of data that cannot have come yet say.
    awaited: u16,
    queued: u32,
    syscalls: u64,
}

impl std::fmt::Debug for UringRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UringRing").field("flavour", &self.flavour).finish_non_exhaustive()
    }
}

/// The newest way in which the kernel's part of the work is run (6.1).
const DEFERRED: &str = "single issuer, deferred task run";

/// The best flavour that this kernel has: deferred task run (6.1), cooperative (5.19), plain (5.15).
fn build(entries: u32) -> Result<(IoUring, &'static str), RingError> {
    let refused =
        |reason: String| RingError::Refused { ring: "io_uring", what: "io_uring_setup".into(), reason };
    let mut last = String::new();
    for flavour in [DEFERRED, "cooperative task run", "plain"] {
        let mut b = IoUring::builder();
        b.setup_cqsize(entries * 2).setup_clamp();
        match flavour {
            "plain" => {}
            "cooperative task run" => drop(b.setup_coop_taskrun()),
            _ => drop(b.setup_single_issuer().setup_defer_taskrun()),
        }
        match b.build(entries) {
            Ok(ring) if ring.params().is_feature_ext_arg() => return Ok((ring, flavour)),
            Ok(_) => last = "this kernel has no timed wait (5.11 has)".into(),
            Err(e) => last = e.to_string(),
        }
    }
    Err(refused(last))
}

/// Builds an opcode for a registered or a plain file.
macro_rules! on_file {
    ($ring:expr, $file:expr, |$f:ident| $build:expr) => {
        if $ring.files_registered {
            let $f = types::Fixed($file);
            $build
        } else {
            let $f = types::Fd($ring.files[$file as usize]);
            $build
        }
    };
}

/// Builds an opcode for a socket, in the ring's table or not.
macro_rules! on_socket {
    ($ring:expr, $sock:expr, |$f:ident| $build:expr) => {
        if $ring.sockets.is_in_table($sock) {
            let $f = types::Fixed($sock);
            $build
        } else {
            let $f = $ring.sockets.fd($sock);
            $build
        }
    };
}

impl UringRing {
    fn entry(&self, op: RingOp) -> Entry {
        match op {
            RingOp::Nop | RingOp::Sleep { .. } => opcode::Nop::new().build(),
            RingOp::Read { file, buffer, ptr, len, offset } if self.buffers_registered => {
                on_file!(self, file, |f| opcode::ReadFixed::new(f, ptr, len, buffer).offset(offset).build())
            }
            RingOp::Read { file, ptr, len, offset, .. } => {
                on_file!(self, file, |f| opcode::Read::new(f, ptr, len).offset(offset).build())
            }
            RingOp::Write { file, buffer, ptr, len, offset } if self.buffers_registered => {
                on_file!(self, file, |f| opcode::WriteFixed::new(f, ptr, len, buffer).offset(offset).build())
            }
            RingOp::Write { file, ptr, len, offset, .. } => {
                on_file!(self, file, |f| opcode::Write::new(f, ptr, len).offset(offset).build())
            }
            RingOp::Fsync { file, data_only } => {
                let flags = if data_only { types::FsyncFlags::DATASYNC } else { types::FsyncFlags::empty() };
                on_file!(self, file, |f| opcode::Fsync::new(f).flags(flags).build())
            }
            RingOp::Trim { file, offset, len } => {
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                on_file!(self, file, |f| opcode::Fallocate::new(f, len).offset(offset).mode(mode).build())
            }
            RingOp::Connect { sock, addr, addr_len } => {
                on_socket!(self, sock, |f| opcode::Connect::new(f, addr, addr_len).build())
            }
            RingOp::SendMsg { sock, msg, flags } => {
                let flags = (flags | libc::MSG_NOSIGNAL) as u32;
                on_socket!(self, sock, |f| opcode::SendMsg::new(f, msg).flags(flags).build())
            }
            RingOp::Send { sock, ptr, len, flags } => {
                let flags = flags | libc::MSG_NOSIGNAL;
                on_socket!(self, sock, |f| opcode::Send::new(f, ptr, len).flags(flags).build())
            }
            RingOp::Recv { sock, ptr, len, flags, awaited } => {
                let how = if awaited { self.awaited } else { 0 };
                on_socket!(self, sock, |f| opcode::Recv::new(f, ptr, len).flags(flags).ioprio(how).build())
            }
        }
    }

    /// # Safety
    /// What the entry points to stays valid until its completion was reaped.
    #[inline]
    unsafe fn queue(&mut self, entry: &Entry) {
        // SAFETY: the caller's promise.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // The queue is full: hand it over. A lasting error shows again in the next wait.
            if self.enter(0, ENTER_GETEVENTS, None).is_err() {
                std::thread::yield_now();
            }
        }
        self.queued += 1;
    }

    fn enter(&mut self, want: u32, flags: u32, limit: Option<&types::Timespec>) -> io::Result<()> {
        self.syscalls += 1;
        let submitter = self.ring.submitter();
        let result = match limit {
            // SAFETY: no argument is passed, and the flags announce none.
            None => unsafe { submitter.enter::<libc::sigset_t>(self.queued, want, flags, None) },
            Some(ts) => {
                let args = types::SubmitArgs::new().timespec(ts);
                // SAFETY: the flags announce the extended argument; it lives through the call.
                unsafe { submitter.enter(self.queued, want, flags | ENTER_EXT_ARG, Some(&args)) }
            }
        };
        match result {
            Ok(n) => {
                self.queued -= (n as u32).min(self.queued);
                Ok(())
            }
            // Everything was taken before the wait ran out of time, or a signal came, or the kernel is
            // short of memory for now: the loop comes again.
            Err(e)
                if matches!(
                    e.raw_os_error(),
                    Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY)
                ) =>
            {
                self.queued = self.ring.submission().len() as u32;
                Ok(())
            }
            Err(e) => Err(e),
        }
    }
}

impl Ring for UringRing {
    const CHOICE: RingChoice = RingChoice::IoUring;

    fn open(spec: &RingSpec) -> Result<Self, RingError> {
        let entries = spec.entries.next_power_of_two().clamp(8, 4096);
        let (ring, flavour) = build(entries)?;
        let submitter = ring.submitter();
        let files_registered = !spec.files.is_empty() && submitter.register_files(&spec.files).is_ok();
        let buffers: Vec<libc::iovec> = spec
            .buffers
            .iter()
            .map(|(address, bytes)| libc::iovec { iov_base: *address as *mut libc::c_void, iov_len: *bytes })
            .collect();
        // SAFETY: `RingSpec` promises that buffers live as long as the ring. A refusal (the limit of
        // locked memory) costs speed, not truth.
        let buffers_registered =
            !buffers.is_empty() && unsafe { submitter.register_buffers(&buffers) }.is_ok();
        let modern = flavour == DEFERRED;
        let sockets = Sockets::new(spec.sockets, modern && spec.files.is_empty(), &submitter);
        Ok(Self {
            epoch_ns: spec.epoch_ns,
            flavour,
            files: spec.files.clone(),
            files_registered,
            buffers_registered,
            sockets,
            awaited: if modern { POLL_FIRST } else { 0 },
            queued: 0,
            syscalls: 0,
            ring,
        })
    }

    fn describe(&self) -> String {
        let mut s = self.flavour.to_string();
        if self.files_registered {
            s.push_str(", registered files");
        }
        if self.buffers_registered {
            s.push_str(", registered buffers");
        }
        if self.sockets.registered() {
            s.push_str(", registered sockets");
        }
        s
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        monotonic_ns() - self.epoch_ns
    }

    #[inline]
    unsafe fn push(&mut self, token: Token, op: RingOp) {
        let entry = self.entry(op).user_data(token.0);
        // SAFETY: the caller's promise.
        unsafe { self.queue(&entry) };
    }

    fn cancel(&mut self, token: Token) {
        let entry = opcode::AsyncCancel::new(token.0).build().user_data(CANCEL.0);
        // SAFETY: a cancel points to nothing.
        unsafe { self.queue(&entry) };
    }

    #[inline]
    fn submit(&mut self) -> io::Result<()> {
        // Completions are looked for when the turn waits: here the kernel only takes what is queued.
        if self.queued == 0 { Ok(()) } else { self.enter(0, 0, None) }
    }

    #[inline]
    fn wait(&mut self, min: u32, until_ns: u64) -> io::Result<()> {
        let ready = self.ring.completion().len() as u32;
        if ready >= min && min > 0 {
            return self.submit();
        }
        if min == 0 || until_ns == u64::MAX {
            return self.enter(min, ENTER_GETEVENTS, None);
        }
        let left = until_ns.saturating_sub(self.now_ns());
        if left == 0 {
            return self.enter(0, ENTER_GETEVENTS, None);
        }
        let limit = types::Timespec::new().sec(left / 1_000_000_000).nsec((left % 1_000_000_000) as u32);
        self.enter(min, ENTER_GETEVENTS, Some(&limit))
    }

    #[inline]
    fn reap(&mut self, out: &mut Completions) {
        let mut queue = self.ring.completion();
        while !out.is_full() {
            let Some(entry) = queue.next() else { break };
            if entry.user_data() >> 32 != u64::from(Token::RESERVED_SLOT) {
                out.push(Token(entry.user_data()), entry.result());
            }
        }
    }

    fn socket_open(&mut self, sock: SockId, peer: &SocketAddr) -> io::Result<()> {
        self.syscalls += self.sockets.open(sock, peer, &self.ring.submitter())?;
        Ok(())
    }

    fn socket_close(&mut self, sock: SockId) {
        self.syscalls += self.sockets.close(sock, &self.ring.submitter());
    }

    fn socket_low_water(&mut self, sock: SockId, bytes: u32) {
        self.syscalls += 1;
        self.sockets.low_water(sock, bytes);
    }

    fn syscalls(&self) -> u64 {
        self.syscalls
    }
}
