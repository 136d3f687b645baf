//! epoll: sockets where io_uring is forbidden (the default in container runtimes). Readiness is made to
//! look like completions: a call is tried when its socket is known to be ready, and parked otherwise.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use plimsoll_model::plan::RingChoice;

use super::{
    Completion, Completions, Ring, RingError, RingOp, RingSpec, Token, errno, low_water, monotonic_ns,
    open_socket,
};

/// Events taken at a time.
const EVENTS: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Socket {
    fd: i32,
    /// Nothing is known to be in the way of a read (or write): edge-triggered, cleared by EAGAIN.
    readable: bool,
    writable: bool,
    read: Option<(Token, RingOp)>,
    write: Option<(Token, RingOp)>,
    listed: bool,
    /// The peer has closed its side (or the connection broke). That edge comes once, perhaps together with
    /// data: a short read does not mean that there is nothing more to read, for the end is.
    ended: bool,
}

const CLOSED: Socket =
    Socket { fd: -1, readable: false, writable: false, read: None, write: None, listed: false, ended: false };

/// Readiness by epoll, for sockets; made to look like completions.
#[derive(Debug)]
pub struct EpollRing {
    epoll: i32,
    epoch_ns: u64,
    sockets: Vec<Socket>,
    /// Sockets with a call to try.
    todo: Vec<u32>,
    done: VecDeque<Completion>,
    events: Vec<libc::epoll_event>,
    syscalls: u64,
}

impl Drop for EpollRing {
    fn drop(&mut self) {
        for s in &self.sockets {
            if s.fd >= 0 {
                // SAFETY: the descriptor is ours.
                unsafe { libc::close(s.fd) };
            }
        }
        // SAFETY: likewise.
        unsafe { libc::close(self.epoll) };
    }
}

/// What trying a call came to.
enum Tried {
    Ended(i32),
    NotYet,
}

impl EpollRing {
    fn list(&mut self, sock: u32) {
        let s = &mut self.sockets[sock as usize];
        if !s.listed {
            s.listed = true;
            self.todo.push(sock);
        }
    }

    /// Tries what is listed and ready.
    fn work(&mut self) {
        while let Some(sock) = self.todo.pop() {
            let s = &mut self.sockets[sock as usize];
            s.listed = false;
            if s.writable
                && let Some((token, op)) = &s.write
            {
                let token = *token;
                self.syscalls += 1;
                match attempt(s.fd, op) {
                    Tried::Ended(result) => {
                        s.write = None;
                        self.done.push_back(Completion { token, result });
                    }
                    Tried::NotYet => s.writable = false,
                }
            }
            if s.readable
                && let Some((token, op)) = &s.read
            {
                let token = *token;
                self.syscalls += 1;
                match attempt(s.fd, op) {
                    Tried::Ended(result) => {
                        // A read that filled less than it could has emptied the socket: the next one
                        // would only be told to wait. An end of stream or an error stays readable.
                        if let RingOp::Recv { len, .. } = *op
                            && result > 0
                            && (result as u32) < len
                            && !s.ended
                        {
                            s.readable = false;
                        }
                        s.read = None;
                        self.done.push_back(Completion { token, result });
                    }
                    Tried::NotYet => s.readable = false,
                }
            }
        }
    }

    /// Waits for readiness until the time, or only looks.
    fn poll(&mut self, until_ns: u64, look_only: bool) -> io::Result<()> {
        let left = if look_only { 0 } else { until_ns.saturating_sub(self.now_ns()) };
        let limit =
            libc::timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
        let forever = until_ns == u64::MAX && !look_only;
        self.syscalls += 1;
        // SAFETY: `events` has room for EVENTS; the limit lives through the call.
        let n = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll,
                self.events.as_mut_ptr(),
                EVENTS as libc::c_int,
                if forever { std::ptr::null() } else { &raw const limit },
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        if n < 0 {
            let e = errno();
            return if e == libc::EINTR { Ok(()) } else { Err(io::Error::from_raw_os_error(e)) };
        }
        // SAFETY: the kernel wrote that many events.
        unsafe { self.events.set_len(n as usize) };
        for i in 0..n as usize {
            let (what, sock) = (self.events[i].events, self.events[i].u64 as u32);
            let s = &mut self.sockets[sock as usize];
            let broken = what & (libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0;
            s.ended |= broken || what & libc::EPOLLRDHUP as u32 != 0;
            s.readable |= broken || what & (libc::EPOLLIN | libc::EPOLLRDHUP) as u32 != 0;
            s.writable |= broken || what & libc::EPOLLOUT as u32 != 0;
            if (s.readable && s.read.is_some()) || (s.writable && s.write.is_some()) {
                self.list(sock);
            }
        }
        self.events.clear();
        Ok(())
    }
}

/// Makes the call of an op whose socket is ready.
#[inline]
fn attempt(fd: i32, op: &RingOp) -> Tried {
    // By number, since the C library's functions are points where a thread may be cancelled, and prepare for it
    // at each call (1 % of a 4 KiB exchange).
    // SAFETY: `push`'s contract: the memory is valid until the completion was reaped. No address is passed.
    let n = unsafe {
        match *op {
            RingOp::Connect { addr, addr_len, .. } => return connect(fd, addr, addr_len),
            RingOp::SendMsg { msg, flags, .. } => {
                libc::syscall(libc::SYS_sendmsg, fd, msg, flags | libc::MSG_NOSIGNAL)
            }
            RingOp::Send { ptr, len, flags, .. } => {
                let flags = flags | libc::MSG_NOSIGNAL;
                libc::syscall(libc::SYS_sendto, fd, ptr, len as usize, flags, 0usize, 0usize)
            }
            RingOp::Recv { ptr, len, flags, .. } => {
                let flags = flags & !libc::MSG_WAITALL;
                libc::syscall(libc::SYS_recvfrom, fd, ptr, len as usize, flags, 0usize, 0usize)
            }
            _ => return Tried::Ended(-libc::EOPNOTSUPP),
        }
    };
    if n >= 0 {
        return Tried::Ended(n as i32);
    }
    match errno() {
        libc::EAGAIN | libc::EINTR => Tried::NotYet,
        e => Tried::Ended(-e),
    }
}

/// Begins a connect; when called again after readiness, tells how it ended.
///
/// # Safety
/// `addr` names `len` valid bytes.
unsafe fn connect(fd: i32, addr: *const libc::sockaddr, len: libc::socklen_t) -> Tried {
    // SAFETY: the caller's promise.
    if unsafe { libc::connect(fd, addr, len) } == 0 {
        return Tried::Ended(0);
    }
    match errno() {
        libc::EINPROGRESS | libc::EALREADY | libc::EAGAIN | libc::EINTR => Tried::NotYet,
        libc::EISCONN => Tried::Ended(0),
        e => Tried::Ended(-e),
    }
}

impl Ring for EpollRing {
    const CHOICE: RingChoice = RingChoice::Epoll;

    fn open(spec: &RingSpec) -> Result<Self, RingError> {
        if !spec.files.is_empty() {
            return Err(RingError::Unfit(
                "epoll is for sockets: use the io_uring, libaio or psync ring for files".into(),
            ));
        }
        // SAFETY: plain system call.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if epoll < 0 {
            let reason = io::Error::last_os_error().to_string();
            return Err(RingError::Refused { ring: "epoll", what: "epoll_create1".into(), reason });
        }
        let room = spec.entries as usize + 8;
        Ok(Self {
            epoll,
            epoch_ns: spec.epoch_ns,
            sockets: vec![CLOSED; spec.sockets as usize],
            todo: Vec::with_capacity(spec.sockets as usize + 1),
            done: VecDeque::with_capacity(room),
            events: Vec::with_capacity(EVENTS),
            syscalls: 0,
        })
    }

    fn describe(&self) -> String {
        "edge-triggered epoll".into()
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns() - self.epoch_ns
    }

    unsafe fn push(&mut self, token: Token, op: RingOp) {
        let (sock, reads) = match op {
            RingOp::Nop => {
                self.done.push_back(Completion { token, result: 0 });
                return;
            }
            RingOp::Recv { sock, .. } => (sock, true),
            RingOp::Connect { sock, .. } | RingOp::SendMsg { sock, .. } | RingOp::Send { sock, .. } => {
                (sock, false)
            }
            _ => {
                self.done.push_back(Completion { token, result: -libc::EOPNOTSUPP });
                return;
            }
        };
        let s = &mut self.sockets[sock as usize];
        if s.fd < 0 {
            self.done.push_back(Completion { token, result: -libc::EBADF });
            return;
        }
        let ready = if reads {
            debug_assert!(s.read.is_none(), "one read a socket");
            s.read = Some((token, op));
            s.readable
        } else {
            debug_assert!(s.write.is_none(), "one write a socket");
            s.write = Some((token, op));
            s.writable
        };
        if ready {
            self.list(sock);
        }
    }

    fn cancel(&mut self, token: Token) {
        for s in &mut self.sockets {
            for op in [&mut s.read, &mut s.write] {
                if op.is_some_and(|(t, _)| t == token) {
                    *op = None;
                    self.done.push_back(Completion { token, result: -libc::ECANCELED });
                    return;
                }
            }
        }
    }

    fn submit(&mut self) -> io::Result<()> {
        self.work();
        Ok(())
    }

    fn wait(&mut self, min: u32, until_ns: u64) -> io::Result<()> {
        self.work();
        if self.done.len() >= min as usize {
            if min == 0 {
                self.poll(0, true)?;
                self.work();
            }
            return Ok(());
        }
        while self.done.len() < min as usize && self.now_ns() < until_ns {
            self.poll(until_ns, false)?;
            self.work();
        }
        Ok(())
    }

    fn reap(&mut self, out: &mut Completions) {
        while !out.is_full() {
            let Some(c) = self.done.pop_front() else { break };
            out.push(c.token, c.result);
        }
    }

    fn socket_open(&mut self, sock: u32, peer: &SocketAddr) -> io::Result<()> {
        debug_assert!(self.sockets[sock as usize].fd < 0);
        self.syscalls += 3;
        let fd = open_socket(peer, true)?;
        let mut event = libc::epoll_event {
            events: (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET) as u32,
            u64: u64::from(sock),
        };
        // SAFETY: both descriptors are ours; the event lives through the call.
        if unsafe { libc::epoll_ctl(self.epoll, libc::EPOLL_CTL_ADD, fd, &mut event) } < 0 {
            let e = io::Error::last_os_error();
            // SAFETY: as above.
            unsafe { libc::close(fd) };
            return Err(e);
        }
        // The connect is tried at once: a new socket counts as writable.
        self.sockets[sock as usize] = Socket { fd, writable: true, ..CLOSED };
        Ok(())
    }

    fn socket_close(&mut self, sock: u32) {
        let s = &mut self.sockets[sock as usize];
        if s.fd >= 0 {
            self.syscalls += 1;
            // SAFETY: ours; closing takes it out of the epoll set.
            unsafe { libc::close(s.fd) };
        }
        let listed = s.listed;
        *s = Socket { listed, ..CLOSED };
    }

    fn socket_low_water(&mut self, sock: u32, bytes: u32) {
        let s = &mut self.sockets[sock as usize];
        if s.fd < 0 {
            return;
        }
        // What is there already does not count any more, unless it is all that will come. If it is enough after
        // all, the kernel makes a new edge for it.
        s.readable = s.ended;
        self.syscalls += 1;
        low_water(s.fd, bytes);
    }

    fn syscalls(&self) -> u64 {
        self.syscalls
    }
}
