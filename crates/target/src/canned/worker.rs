//! One thread of the canned server: an edge-triggered epoll loop with a timer heap of its own.
//!
//! Tokio's timers are a millisecond coarse. Here a delay is awaited by `epoll_pwait2` in nanoseconds, and the last
//! part by polling, so that the client's latency carries the delay that was asked for and no scheduler noise.
//! (rustix rounds the wait up to milliseconds unless its feature `linux_5_11` is on: seen as answers 80 us late.)
//! After work the loop polls on for a while before it sleeps: waking a thread on an idle CPU of a virtual machine
//! costs whoever sends to it several microseconds, and that would be the measured client.

use super::Shared;
use super::conn::{Conn, Cx, Step};
use super::io::Io;
use super::stats::add;
use crate::clock::{http_date, now_ns, unix_s};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::OwnedFd;
use rustix::net::sockopt::set_socket_linger;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LISTENER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;
/// Room that MSG_TRUNC may claim at once; its pages are never touched without TLS.
const SCRATCH_BYTES: usize = 1 << 20;
/// How long before a deadline the sleep ends and polling begins: about twice a wake-up on a virtual machine.
const POLL_BEFORE_NS: u64 = 30_000;

/// The way to a worker: new connections, and a wake-up to take them or to stop.
#[derive(Debug)]
pub(crate) struct Inbox {
    streams: Mutex<Vec<TcpStream>>,
    wake: OwnedFd,
}

impl Inbox {
    pub fn new() -> io::Result<Inbox> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Inbox { streams: Mutex::new(Vec::new()), wake })
    }

    /// Wakes the worker.
    pub fn wake(&self) {
        // Fails only when the counter is full, and then the worker is awake already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn give(&self, stream: TcpStream) {
        if let Ok(mut s) = self.streams.lock() {
            s.push(stream);
        }
        self.wake();
    }

    fn take(&self) -> Vec<TcpStream> {
        self.streams.lock().map(|mut s| std::mem::take(&mut *s)).unwrap_or_default()
    }
}

pub(crate) struct Worker {
    shared: Arc<Shared>,
    index: usize,
    epoll: OwnedFd,
    /// Worker 0 accepts for all.
    listener: Option<TcpListener>,
    next_worker: usize,
    conns: Vec<Slot>,
    free: Vec<u32>,
    timers: BinaryHeap<Reverse<(u64, u64)>>,
    scratch: Vec<u8>,
    date: (u64, String),
    accepted: u64,
    spin_ns: u64,
}

/// A place for a connection; its generation tells old events and timers from new ones.
struct Slot {
    generation: u32,
    conn: Option<Box<Conn>>,
}

impl Worker {
    pub fn new(shared: Arc<Shared>, index: usize, listener: Option<TcpListener>) -> io::Result<Worker> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &shared.inboxes[index].wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        if let Some(l) = &listener {
            l.set_nonblocking(true)?;
            epoll::add(&epoll, l, EventData::new_u64(LISTENER), EventFlags::IN)?;
        }
        let spin_ns = u64::try_from(shared.options.spin.as_nanos()).unwrap_or(u64::MAX);
        Ok(Worker {
            shared,
            index,
            epoll,
            listener,
            next_worker: 0,
            conns: Vec::new(),
            free: Vec::new(),
            timers: BinaryHeap::new(),
            scratch: vec![0; SCRATCH_BYTES],
            date: (0, String::new()),
            accepted: 0,
            spin_ns,
        })
    }

    /// Serves until the stop flag is up.
    pub fn run(mut self) -> io::Result<()> {
        // Default slack lets the kernel be 50 us late with our deadlines; 1 ns is the least that can be asked for.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
        let mut spin_until_ns = 0;
        while !self.shared.stop.load(Ordering::Acquire) {
            let timeout = self.timeout(spin_until_ns);
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            if !events.is_empty() {
                spin_until_ns = now_ns().saturating_add(self.spin_ns);
                self.refresh_date();
            }
            for event in events.iter() {
                let flags = event.flags;
                match event.data.u64() {
                    LISTENER => self.accept(),
                    WAKE => self.take_inbox(),
                    token => {
                        let hung_up = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
                        let (r, w) = (flags.contains(EventFlags::IN), flags.contains(EventFlags::OUT));
                        if let Some(c) = self.conn(token) {
                            c.ready(r, w, hung_up);
                            self.drive(token);
                        }
                    }
                }
            }
            self.fire_timers();
        }
        Ok(())
    }

    /// How long epoll may sleep: not at all while more is likely to come at once, else until shortly before the next
    /// deadline.
    fn timeout(&self, spin_until_ns: u64) -> Option<Timespec> {
        let next = self.timers.peek();
        if next.is_none() && spin_until_ns == 0 {
            return None;
        }
        let now = now_ns();
        if now < spin_until_ns {
            return Timespec::try_from(Duration::ZERO).ok();
        }
        let Reverse((at, _)) = next?;
        let left = at.saturating_sub(now).saturating_sub(POLL_BEFORE_NS);
        Timespec::try_from(Duration::from_nanos(left)).ok()
    }

    fn fire_timers(&mut self) {
        while let Some(&Reverse((at, token))) = self.timers.peek() {
            if at > now_ns() {
                return;
            }
            self.timers.pop();
            if self.conn(token).is_some_and(|c| c.timer(at)) {
                self.drive(token);
            }
        }
    }

    fn refresh_date(&mut self) {
        let now = unix_s();
        if self.date.0 != now {
            self.date = (now, http_date(now));
        }
    }

    fn conn(&mut self, token: u64) -> Option<&mut Conn> {
        let slot = self.conns.get_mut((token & 0xffff_ffff) as usize)?;
        if u64::from(slot.generation) != token >> 32 {
            return None;
        }
        slot.conn.as_deref_mut()
    }

    fn drive(&mut self, token: u64) {
        let index = (token & 0xffff_ffff) as usize;
        let Some(conn) = self.conns[index].conn.as_deref_mut() else { return };
        let mut cx = Cx {
            shared: &self.shared,
            counters: &self.shared.counters[self.index],
            date: &self.date.1,
            scratch: &mut self.scratch,
        };
        match conn.drive(&mut cx) {
            Step::Idle => {}
            Step::WakeAt(at) => self.timers.push(Reverse((at, token))),
            step @ (Step::Close | Step::Reset) => {
                if step == Step::Reset {
                    // Linger of zero turns the close into RST.
                    let _ = set_socket_linger(conn.io().socket(), Some(Duration::ZERO));
                }
                let slot = &mut self.conns[index];
                slot.conn = None;
                slot.generation = slot.generation.wrapping_add(1) & 0x7fff_ffff;
                self.free.push(index as u32);
            }
        }
    }

    fn accept(&mut self) {
        let Some(listener) = self.listener.take() else { return };
        while let Ok((stream, _)) = listener.accept() {
            let to = self.next_worker;
            self.next_worker = (to + 1) % self.shared.inboxes.len();
            if to == self.index {
                self.adopt(stream);
            } else {
                self.shared.inboxes[to].give(stream);
            }
        }
        self.listener = Some(listener);
    }

    fn take_inbox(&mut self) {
        let shared = self.shared.clone();
        let inbox = &shared.inboxes[self.index];
        let mut count = [0u8; 8];
        let _ = rustix::io::read(&inbox.wake, &mut count);
        for stream in inbox.take() {
            self.adopt(stream);
        }
    }

    /// A connection that cannot be set up is dropped; the client sees it closed.
    fn adopt(&mut self, stream: TcpStream) {
        if stream.set_nonblocking(true).is_err() || stream.set_nodelay(true).is_err() {
            return;
        }
        let io = match &self.shared.tls {
            None => Io::Plain(stream),
            Some(config) => match rustls::ServerConnection::new(config.clone()) {
                Ok(mut tls) => {
                    tls.set_buffer_limit(None);
                    Io::Tls(stream, Box::new(tls))
                }
                Err(_) => return,
            },
        };
        add(&self.shared.counters[self.index].connections, 1);
        let index = self.free.pop().unwrap_or_else(|| {
            self.conns.push(Slot { generation: 0, conn: None });
            (self.conns.len() - 1) as u32
        });
        let slot = &mut self.conns[index as usize];
        let token = u64::from(slot.generation) << 32 | u64::from(index);
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        if epoll::add(&self.epoll, io.socket(), EventData::new_u64(token), flags).is_err() {
            self.free.push(index);
            return;
        }
        let client = io.socket().peer_addr().map(|a| a.ip().to_string()).unwrap_or_default();
        self.accepted += 1;
        let number = self.accepted * self.shared.inboxes.len() as u64 + self.index as u64;
        let slot = &mut self.conns[index as usize];
        slot.conn = Some(Box::new(Conn::new(io, client, number)));
        self.drive(token);
    }
}
