//! Rings: the one way in which a worker talks to the kernel (or to a virtual clock).
//!
//! A target pushes [`RingOp`]s under a [`Token`]; the worker submits and waits once a turn and
//! gives each [`Completion`] back to the target. The trait is monomorphised into the worker loop.

use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use plimsoll_model::plan::RingChoice;

pub(crate) use socket::{low_water, open_socket};

pub mod epoll;
pub mod libaio;
pub mod psync;
pub mod simulated;
pub(crate) mod socket;
pub mod uring;

/// Names an op in flight: the worker's slot, and a tag of the target's own choice (which connection
/// or part of the slot). A token must not be in flight twice at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub u64);

impl Token {
    /// `slot`: of the worker; `tag`: the target's own, to tell the ring ops of a slot apart.
    #[inline]
    pub fn new(slot: u32, tag: u32) -> Self {
        debug_assert!(slot < Self::RESERVED_SLOT);
        Self(u64::from(slot) << 32 | u64::from(tag))
    }

    /// Which op of the worker it belongs to.
    #[inline]
    pub fn slot(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// As the target gave it.
    #[inline]
    pub fn tag(self) -> u32 {
        self.0 as u32
    }

    /// Slots from here on belong to the rings themselves (cancels, timers); never seen by targets.
    pub const RESERVED_SLOT: u32 = u32::MAX;
}

/// The end of one ring op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Of the op that was pushed.
    pub token: Token,
    /// Bytes moved, or zero; negative: minus an errno. A stream may move fewer bytes than asked.
    pub result: i32,
}

/// A socket of the ring, by the number that the target gave it: 0 up to [`RingSpec::sockets`].
pub type SockId = u32;

/// Work for the ring. Files and buffers are indices into what was registered in the [`RingSpec`].
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "each variant says what its fields are, in the words of the system call")]
pub enum RingOp {
    /// Completes at once with 0.
    Nop,
    /// Completes with 0 at this time of the ring's clock. Only the virtual ring has it: a real
    /// target that wants to wait says so in its [`crate::target::Done::hold_until_ns`].
    Sleep { until_ns: u64 },
    /// Reads `len` bytes at `offset` into `ptr`, which lies in registered buffer `buffer`.
    Read { file: u32, buffer: u16, ptr: *mut u8, len: u32, offset: u64 },
    /// Writes `len` bytes from `ptr`, which lies in registered buffer `buffer`.
    Write { file: u32, buffer: u16, ptr: *const u8, len: u32, offset: u64 },
    /// Makes completed writes durable; `data_only`: fdatasync.
    Fsync { file: u32, data_only: bool },
    /// Gives the range back: hole punching in files, discard on devices.
    Trim { file: u32, offset: u64, len: u64 },
    /// Connects to the address (a `sockaddr_in` or `sockaddr_in6`).
    Connect { sock: SockId, addr: *const libc::sockaddr, addr_len: libc::socklen_t },
    /// Sends the message's iovecs; may be short: advance and push again. `MSG_NOSIGNAL` is implied.
    SendMsg { sock: SockId, msg: *const libc::msghdr, flags: i32 },
    /// Sends bytes that lie together; may be short: advance and push again. `MSG_NOSIGNAL` is implied.
    Send { sock: SockId, ptr: *const u8, len: u32, flags: i32 },
    /// Receives up to `len` bytes; 0 is the end of the stream. For a body that nobody looks at:
    /// `ptr` null and `flags` `MSG_TRUNC`: the kernel discards up to `len` bytes and says how many.
    /// `MSG_WAITALL` completes once `len` bytes came (io_uring only; epoll completes with what there is).
    Recv {
        sock: SockId,
        ptr: *mut u8,
        len: u32,
        flags: i32,
        /// Nothing (or not enough) can have come yet: looking before waiting would be in vain. A hint.
        awaited: bool,
    },
}

/// What a ring is made of. Files and buffers stay alive for as long as the ring.
#[derive(Debug, Clone, Default)]
pub struct RingSpec {
    /// The run's start on `CLOCK_MONOTONIC`, nanoseconds: the ring's clock counts from it.
    pub epoch_ns: u64,
    /// Ring ops that can be in flight at the same time.
    pub entries: u32,
    /// Registered, in this order; they are not closed by the ring.
    pub files: Vec<RawFd>,
    /// Memory of the ops' data, (address, bytes). Empty for sockets.
    pub buffers: Vec<(usize, usize)>,
    /// Sockets that the target will open.
    pub sockets: u32,
}

/// Why a ring could not be made or used.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum RingError {
    /// The kernel, or what confines the process, refuses it.
    #[error("{ring}: {what}: {reason}")]
    Refused {
        /// Its name, as options have it.
        ring: &'static str,
        /// What was tried: a system call, or a feature.
        what: String,
        /// The system's words, and what may forbid it.
        reason: String,
    },
    /// The ring exists, but is not for this work.
    #[error("{0}")]
    Unfit(String),
}

/// A queue to the kernel, owned by one worker thread and made in it.
///
/// Every system call of the measuring loop is made here, and counted.
pub trait Ring: Sized {
    /// Which ring this is, as the plan names it.
    const CHOICE: RingChoice;

    /// In the thread that will use it: io_uring has rings of a single issuer.
    fn open(spec: &RingSpec) -> Result<Self, RingError>;

    /// What the ring uses: features of the kernel that were found.
    fn describe(&self) -> String;

    /// Nanoseconds since the epoch, on the clock that this ring lives by.
    fn now_ns(&self) -> u64;

    /// Queues an op. Nothing happens before [`Ring::submit`] or [`Ring::wait`]. Never fails: what
    /// goes wrong is a completion with a negative result.
    ///
    /// # Safety
    /// What the op points to must stay valid, and unaliased where the kernel writes, until its
    /// completion was reaped. At most `entries` ops may be in flight.
    unsafe fn push(&mut self, token: Token, op: RingOp);

    /// Asks for the op in flight under `token` to end early. It completes all the same, with
    /// `-ECANCELED` or with its own result, whichever came first.
    fn cancel(&mut self, token: Token);

    /// Submits what is queued, without waiting.
    fn submit(&mut self) -> io::Result<()>;

    /// Submits what is queued, then waits for `min` completions or the time `until_ns`.
    fn wait(&mut self, min: u32, until_ns: u64) -> io::Result<()>;

    /// Moves completions that are there to `out`, until it is full or none is left.
    fn reap(&mut self, out: &mut Completions);

    /// When something happens next, for a ring on a virtual clock: the driver decides who goes on.
    fn next_event_ns(&self) -> Option<u64> {
        None
    }

    /// Moves a virtual clock on. Nothing on a real one.
    fn advance_to(&mut self, _now_ns: u64) {}

    /// Makes a stream socket for the family of `peer` under the number `sock`, ready for
    /// [`RingOp::Connect`], with `TCP_NODELAY`. Replaces none: close the old one first.
    /// Rings for files have none: `EOPNOTSUPP`.
    fn socket_open(&mut self, _sock: SockId, _peer: &SocketAddr) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
    }

    /// Closes the socket. Its ops must have completed (cancel them first).
    fn socket_close(&mut self, _sock: SockId) {}

    /// A receive on this socket need not end before so many bytes are there, or the stream ends (`SO_RCVLOWAT`);
    /// 1, as new sockets have it: at once. What is received may still be less.
    fn socket_low_water(&mut self, _sock: SockId, _bytes: u32) {}

    /// System calls made so far by this ring.
    fn syscalls(&self) -> u64;
}

/// Completions of one turn, with room for a fixed number.
#[derive(Debug)]
pub struct Completions {
    items: Vec<Completion>,
}

impl Completions {
    /// Never grows: what does not fit stays in the ring.
    pub fn with_room(room: usize) -> Self {
        Self { items: Vec::with_capacity(room.max(1)) }
    }

    /// Before the next reap.
    #[inline]
    pub fn clear(&mut self) {
        self.items.clear();
    }

    /// There may be more in the ring.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.items.len() == self.items.capacity()
    }

    /// Adds one; the caller has checked that there is room.
    #[inline]
    pub fn push(&mut self, token: Token, result: i32) {
        debug_assert!(!self.is_full());
        self.items.push(Completion { token, result });
    }

    /// In the order in which the ring gave them.
    #[inline]
    pub fn as_slice(&self) -> &[Completion] {
        &self.items
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds since boot. The same clock for epochs, rings and samples.
#[inline]
pub fn monotonic_ns() -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is valid for writing; CLOCK_MONOTONIC exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// The calling thread's last error.
pub(crate) fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Sleeps until the time, nanoseconds since the epoch.
pub(crate) fn sleep_until(epoch_ns: u64, until_ns: u64) {
    let at = epoch_ns.saturating_add(until_ns);
    let ts = libc::timespec { tv_sec: (at / 1_000_000_000) as i64, tv_nsec: (at % 1_000_000_000) as i64 };
    // SAFETY: the time lives through the call. Waking early (a signal) is allowed.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &ts, std::ptr::null_mut()) };
}

/// Gives a range back: punches a hole in a file, discards on a device. As the system call returns.
pub(crate) fn trim(fd: RawFd, offset: u64, len: u64) -> isize {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: plain system call on a descriptor of the ring's.
    unsafe { libc::fallocate(fd, mode, offset as libc::off_t, len as libc::off_t) as isize }
}
