//! The data plane: streams that send, and streams that throw away what arrives, a thread for several of them. What a host sends lies
//! in a pool of random bytes that all threads share; what arrives is discarded in the kernel (`MSG_TRUNC`), as a GET of ours discards
//! its body. Nothing is allocated between the start and the end.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_model::net::TcpFacts;

use crate::host::now_ns;
use crate::secret::random;
use crate::tcp_info;
use crate::wire::{RunOrder, SLICE_NS, StreamTold};

/// What is sent: random, so that nothing on the way makes it smaller.
const POOL: usize = 4 << 20;
/// Given to the kernel at once.
const CHUNK: usize = 256 << 10;
/// Taken from it at once.
const TAKE: usize = 1 << 20;
/// A stream has its turn so often before the next one has.
const TURNS: u32 = 8;
/// Bytes that have to be there before a receiver is woken.
const LOW_WATER: libc::c_int = 64 << 10;
/// A sender goes on so long after the window, so that nothing that counts is short of data.
const TAIL_NS: u64 = 200_000_000;
/// The kernel is asked what it knows so often.
const FACTS_EVERY_NS: u64 = 1_000_000_000;
/// Who acknowledges nothing for so long is gone.
const GONE_MS: libc::c_uint = 10_000;
const EVENTS: usize = 64;

/// A pool of random bytes.
pub fn pool() -> Vec<u8> {
    let seed: [u8; 16] = random();
    let mut state = u128::from_le_bytes(seed) | 1;
    let mut out = Vec::with_capacity(POOL);
    while out.len() < POOL {
        // A Lehmer generator: as good as any for bytes that nobody is to guess at, and far faster.
        state = state.wrapping_mul(0xda94_2042_e4dd_58b5);
        out.extend_from_slice(&((state >> 64) as u64).to_le_bytes());
    }
    out
}

/// A connection that is ready.
#[derive(Debug)]
pub struct BulkStream {
    /// Its own.
    pub socket: TcpStream,
    /// What is known of it, and room for what will be.
    pub record: StreamTold,
    cursor: usize,
    open: bool,
}

impl BulkStream {
    /// Of a lane's stream; `most_bytes_per_s`: it is paced to that.
    pub fn new(
        socket: TcpStream,
        lane: u32,
        stream: u16,
        sends: bool,
        most_bytes_per_s: Option<u64>,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let fd = socket.as_raw_fd();
        // A host that vanished is noticed, and nothing is sent to nobody for longer than that.
        let _ = set(fd, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, &GONE_MS.to_ne_bytes());
        if let Some(rate) = most_bytes_per_s.filter(|_| sends) {
            set(fd, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &rate.max(1).to_ne_bytes())?;
        }
        if !sends {
            // A refusal only costs wake-ups.
            let _ = set(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &LOW_WATER.to_ne_bytes());
        }
        let address = |a: io::Result<std::net::SocketAddr>| a.map(|a| a.to_string()).unwrap_or_default();
        let record = StreamTold {
            lane,
            stream,
            sends,
            local: address(socket.local_addr()),
            peer: address(socket.peer_addr()),
            congestion_control: congestion_control(fd),
            ..StreamTold::default()
        };
        let cursor = (stream as usize * CHUNK) % POOL;
        Ok(Self { socket, record, cursor, open: true })
    }

    /// Room for all that will be noted.
    fn make_room(&mut self, order: &RunOrder) {
        let slices = (order.warmup_ns + order.measured_ns).div_ceil(SLICE_NS) as usize;
        self.record.slices = vec![0; slices];
        self.record.tcp = Vec::with_capacity(slices / 10 + 4);
        self.record.ended = None;
        self.record.thread_share = None;
        self.open = true;
    }

    fn end(&mut self, since_ns: u64, why: String) {
        self.open = false;
        self.record.ended.get_or_insert((since_ns, why));
    }

    fn note(&mut self, since_ns: u64) {
        if let Ok(facts) = tcp_info::of(self.socket.as_fd()) {
            self.record.tcp.push((since_ns, facts));
        }
    }

    /// Takes what has arrived, and says how much; nothing where the other side has ended.
    fn take(&mut self) -> io::Result<Option<u64>> {
        let mut all = 0;
        for _ in 0..TURNS {
            // SAFETY: with MSG_TRUNC nothing is written to the buffer of a TCP socket (tcp(7)), so that none is needed.
            let n = unsafe {
                libc::recv(
                    self.socket.as_raw_fd(),
                    std::ptr::null_mut(),
                    TAKE,
                    libc::MSG_TRUNC | libc::MSG_DONTWAIT,
                )
            };
            match n {
                0 => return if all > 0 { Ok(Some(all)) } else { Ok(None) },
                1.. => {
                    all += n as u64;
                    if (n as usize) < TAKE {
                        break;
                    }
                }
                _ => match io::Error::last_os_error() {
                    e if e.kind() == io::ErrorKind::WouldBlock => break,
                    e if e.kind() == io::ErrorKind::Interrupted => {}
                    e => return Err(e),
                },
            }
        }
        Ok(Some(all))
    }

    /// Gives the kernel what it takes, and says how much.
    fn give(&mut self, pool: &[u8]) -> io::Result<u64> {
        let mut all = 0;
        for _ in 0..TURNS {
            let chunk = &pool[self.cursor..(self.cursor + CHUNK).min(pool.len())];
            // SAFETY: the chunk lives through the call.
            let n = unsafe {
                libc::send(
                    self.socket.as_raw_fd(),
                    chunk.as_ptr().cast(),
                    chunk.len(),
                    libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
                )
            };
            if n < 0 {
                match io::Error::last_os_error() {
                    e if e.kind() == io::ErrorKind::WouldBlock => break,
                    e if e.kind() == io::ErrorKind::Interrupted => continue,
                    e => return Err(e),
                }
            }
            all += n as u64;
            self.cursor = (self.cursor + n as usize) % pool.len();
            if (n as usize) < chunk.len() {
                break;
            }
        }
        Ok(all)
    }
}

fn congestion_control(fd: i32) -> String {
    let mut name = [0u8; 16];
    let mut len = name.len() as libc::socklen_t;
    // SAFETY: the buffer and its length live through the call.
    unsafe {
        libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_mut_ptr().cast(), &mut len)
    };
    String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
}

fn set(fd: i32, level: libc::c_int, option: libc::c_int, value: &[u8]) -> io::Result<()> {
    // SAFETY: the value lives through the call, and its length is its own.
    let result =
        unsafe { libc::setsockopt(fd, level, option, value.as_ptr().cast(), value.len() as libc::socklen_t) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Drives some streams through a stage, in this thread. What goes wrong with one of them is noted there.
pub fn drive(streams: &mut [BulkStream], pool: &[u8], order: &RunOrder, stop: &AtomicBool) -> io::Result<()> {
    streams.iter_mut().for_each(|s| s.make_room(order));
    let length_ns = order.warmup_ns + order.measured_ns;
    let epoll = Epoll::new()?;
    for (i, stream) in streams.iter().enumerate() {
        // Senders wait for the start; receivers are there before.
        epoll.watch(stream, i as u64, !stream.record.sends)?;
    }
    wait_until(order.at_ns, stop);
    for (i, stream) in streams.iter().enumerate().filter(|(_, s)| s.record.sends) {
        epoll.rewatch(stream, i as u64)?;
    }
    // SAFETY: plain numbers, for which zero is a value.
    let mut events: [libc::epoll_event; EVENTS] = unsafe { std::mem::zeroed() };
    let mut slice = 0usize;
    let mut facts_at_ns = 0;
    let slices = (length_ns / SLICE_NS) as usize;
    // When the window began and ended, and what this thread had taken of a CPU until then.
    let mut taken: [Option<(u64, u64)>; 2] = [None; 2];
    while !stop.load(Ordering::Relaxed) {
        let since_ns = now_ns().saturating_sub(order.at_ns);
        if since_ns >= (slice as u64 + 1) * SLICE_NS && slice < slices {
            // What is there belongs to the slice that ends.
            each_receiver(streams, slice);
            slice = (since_ns / SLICE_NS) as usize;
        }
        for (at, from_ns) in taken.iter_mut().zip([order.warmup_ns, length_ns]) {
            if at.is_none() && since_ns >= from_ns {
                *at = Some((since_ns, thread_ns()));
            }
        }
        if since_ns >= facts_at_ns && since_ns < length_ns + SLICE_NS {
            streams.iter_mut().for_each(|s| s.note(since_ns));
            facts_at_ns = (since_ns / FACTS_EVERY_NS + 1) * FACTS_EVERY_NS;
        }
        if slice >= slices && since_ns >= length_ns + TAIL_NS {
            break;
        }
        let next_ns = ((slice as u64 + 1) * SLICE_NS).min(length_ns + TAIL_NS);
        let ready = epoll.wait(&mut events, next_ns.saturating_sub(since_ns))?;
        for event in &events[..ready] {
            serve(&mut streams[event.u64 as usize], pool, slice, order, length_ns, &epoll);
        }
        if streams.iter().all(|s| !s.open) {
            break;
        }
    }
    if let [Some(first), Some(last)] = taken {
        let share = (last.1 - first.1) as f64 / last.0.saturating_sub(first.0).max(1) as f64;
        streams.iter_mut().for_each(|s| s.record.thread_share = Some(share));
    }
    Ok(())
}

/// What this thread has taken of a CPU.
fn thread_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives through the call; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// A stream that is ready.
fn serve(
    stream: &mut BulkStream,
    pool: &[u8],
    slice: usize,
    order: &RunOrder,
    length_ns: u64,
    epoll: &Epoll,
) {
    if !stream.open {
        return;
    }
    let came = if stream.record.sends { stream.give(pool).map(Some) } else { stream.take() };
    match came {
        Ok(Some(n)) => {
            if let Some(bytes) = stream.record.slices.get_mut(slice) {
                *bytes += n;
            }
        }
        other => {
            let since_ns = now_ns().saturating_sub(order.at_ns);
            // After the window the other side may be gone.
            let why = other.err().map_or_else(|| "the other side ended it".into(), |e| e.to_string());
            if since_ns < length_ns {
                stream.end(since_ns, why);
            } else {
                stream.open = false;
            }
            epoll.forget(stream);
        }
    }
}

fn each_receiver(streams: &mut [BulkStream], slice: usize) {
    for stream in streams.iter_mut().filter(|s| s.open && !s.record.sends) {
        // An end or an error is there when it is asked for again.
        if let Ok(Some(n)) = stream.take()
            && let Some(bytes) = stream.record.slices.get_mut(slice)
        {
            *bytes += n;
        }
    }
}

/// Waits for a time on the monotonic clock, in steps, so that an end is heard.
pub fn wait_until(at_ns: u64, stop: &AtomicBool) {
    const STEP_NS: u64 = 20_000_000;
    loop {
        let left_ns = at_ns.saturating_sub(now_ns());
        if left_ns == 0 || stop.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_nanos(left_ns.min(STEP_NS)));
    }
}

/// What of the facts lies in the window: the first and the last.
pub fn window(tcp: &[(u64, TcpFacts)], order: &RunOrder) -> Option<(TcpFacts, TcpFacts)> {
    let first = tcp.iter().find(|(at, _)| *at >= order.warmup_ns)?;
    let last = tcp.iter().rfind(|(at, _)| *at > first.0)?;
    Some((first.1, last.1))
}

/// One epoll descriptor.
#[derive(Debug)]
struct Epoll(OwnedFd);

impl Epoll {
    fn new() -> io::Result<Self> {
        use std::os::fd::FromRawFd as _;
        // SAFETY: a plain call.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else has.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    fn control(
        &self,
        stream: &BulkStream,
        operation: libc::c_int,
        events: u32,
        number: u64,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: number };
        // SAFETY: both descriptors are open, and the event lives through the call.
        let result =
            unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, stream.socket.as_raw_fd(), &mut event) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn watch(&self, stream: &BulkStream, number: u64, now: bool) -> io::Result<()> {
        let events = if now { wanted(stream) } else { 0 };
        self.control(stream, libc::EPOLL_CTL_ADD, events, number)
    }

    fn rewatch(&self, stream: &BulkStream, number: u64) -> io::Result<()> {
        self.control(stream, libc::EPOLL_CTL_MOD, wanted(stream), number)
    }

    fn forget(&self, stream: &BulkStream) {
        // It is closed soon, and forgotten then in any case.
        let _ = self.control(stream, libc::EPOLL_CTL_DEL, 0, 0);
    }

    fn wait(&self, events: &mut [libc::epoll_event; EVENTS], most_ns: u64) -> io::Result<usize> {
        let ms = most_ns.div_ceil(1_000_000).min(100) as libc::c_int;
        // SAFETY: the buffer has so many events, and lives through the call.
        let n =
            unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), EVENTS as libc::c_int, ms) };
        match n {
            0.. => Ok(n as usize),
            _ => match io::Error::last_os_error() {
                e if e.kind() == io::ErrorKind::Interrupted => Ok(0),
                e => Err(e),
            },
        }
    }
}

fn wanted(stream: &BulkStream) -> u32 {
    (if stream.record.sends { libc::EPOLLOUT } else { libc::EPOLLIN }) as u32
}
