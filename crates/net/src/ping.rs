//! Small messages there and back beside the data: what a request would wait, before the load and under it. One thread for all lanes
//! of a host: it asks on those that it sends on, and answers on the others.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::host::now_ns;
use crate::wire::{PingRecord, RunOrder};

/// Of a question, and of its answer.
const MESSAGE: usize = 64;
/// Between two questions of a lane, unless the answer takes longer.
const EVERY_NS: u64 = 5_000_000;
/// Times that are kept of a lane, of each kind; a stage of an hour has more, of which the first stay.
const KEPT: usize = 200_000;

/// A lane's connection for it.
#[derive(Debug)]
pub struct PingStream {
    socket: TcpStream,
    asks: bool,
    /// When it was asked.
    asked_ns: Option<u64>,
    next_ns: u64,
    /// Of a message that has come in part.
    have: usize,
    open: bool,
    record: PingRecord,
}

impl PingStream {
    /// `asks`: of the lane's sender.
    pub fn new(socket: TcpStream, lane: u32, asks: bool) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let record = PingRecord { lane, ..PingRecord::default() };
        Ok(Self { socket, asks, asked_ns: None, next_ns: 0, have: 0, open: true, record })
    }

    /// What was seen, of a lane that we ask on.
    pub fn into_record(self) -> Option<PingRecord> {
        self.asks.then_some(self.record)
    }

    fn ask(&mut self, now_ns: u64) -> io::Result<()> {
        if self.asks && self.asked_ns.is_none() && now_ns >= self.next_ns {
            self.send()?;
            (self.asked_ns, self.next_ns) = (Some(now_ns), now_ns + EVERY_NS);
        }
        Ok(())
    }

    /// A message always fits: there is one under way at the most.
    fn send(&mut self) -> io::Result<()> {
        self.socket.write_all(&[0x70; MESSAGE])
    }

    fn hear(&mut self, order: &RunOrder) -> io::Result<()> {
        let mut message = [0; MESSAGE];
        match self.socket.read(&mut message[self.have..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => self.have += n,
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(());
            }
            Err(e) => return Err(e),
        }
        if self.have < MESSAGE {
            return Ok(());
        }
        self.have = 0;
        if !self.asks {
            return self.send();
        }
        let now_ns = now_ns();
        if let Some(asked_ns) = self.asked_ns.take() {
            let took_us = u32::try_from(now_ns.saturating_sub(asked_ns) / 1000).unwrap_or(u32::MAX);
            let window_ns = order.at_ns + order.warmup_ns..order.at_ns + order.warmup_ns + order.measured_ns;
            let kept = if now_ns < order.at_ns {
                &mut self.record.idle_us
            } else if window_ns.contains(&asked_ns) {
                &mut self.record.loaded_us
            } else {
                return Ok(());
            };
            if kept.len() < KEPT {
                kept.push(took_us);
            }
        }
        Ok(())
    }
}

/// Until the stage has ended: the asking side stops with the window, the answering one when the other is gone or a while later.
pub fn exchange(streams: &mut [PingStream], order: &RunOrder, stop: &AtomicBool) {
    const LINGER_NS: u64 = 300_000_000;
    let end_ns = order.at_ns + order.warmup_ns + order.measured_ns;
    for stream in streams.iter_mut() {
        let most = |ns: u64| ((ns / EVERY_NS) as usize + 8).min(KEPT);
        stream.record.idle_us.reserve(most(order.at_ns.saturating_sub(now_ns())));
        stream.record.loaded_us.reserve(most(order.measured_ns));
    }
    let mut polled: Vec<libc::pollfd> = Vec::with_capacity(streams.len());
    while !stop.load(Ordering::Relaxed) {
        let now = now_ns();
        if now >= end_ns + LINGER_NS || streams.iter().all(|s| !s.open) {
            return;
        }
        polled.clear();
        for stream in streams.iter_mut() {
            if stream.open && now < end_ns {
                stream.open = stream.ask(now).is_ok();
            }
            // A negative descriptor is passed over.
            let fd = if stream.open { stream.socket.as_raw_fd() } else { -1 };
            polled.push(libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        }
        // SAFETY: the list lives through the call, and its length is its own.
        let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 1) };
        if ready <= 0 {
            continue;
        }
        for (stream, at) in streams.iter_mut().zip(&polled) {
            if at.revents != 0 {
                stream.open = stream.hear(order).is_ok();
            }
        }
    }
}
