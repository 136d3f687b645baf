//! Small messages there and back beside the data: what a request would wait, before the load and under it. One thread for all lanes
//! of a host: it asks on those that it sends on, and answers on the others. A lane is asked each 5 ms; what was to be asked while an answer was
//! waited for would have waited with it, and counts with the time from then on: else one long wait would be one sample, and hide the rest.

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
pub const KEPT: usize = 200_000;

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
    /// When it broke.
    broke_ns: u64,
    record: PingRecord,
}

impl PingStream {
    /// `asks`: of the lane's sender.
    pub fn new(socket: TcpStream, lane: u32, asks: bool) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let record = PingRecord { lane, ..PingRecord::default() };
        Ok(Self { socket, asks, asked_ns: None, next_ns: 0, have: 0, open: true, broke_ns: 0, record })
    }

    /// What was seen, of a lane that we ask on.
    pub fn into_record(self) -> Option<PingRecord> {
        self.asks.then_some(self.record)
    }

    fn ask(&mut self, now_ns: u64) -> io::Result<()> {
        if self.asks && self.asked_ns.is_none() && now_ns >= self.next_ns {
            self.send()?;
            self.asked_ns = Some(now_ns);
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
        self.note(now_ns(), order, true);
        Ok(())
    }

    /// The question under way, and those that were to be asked since: all took until now, or, without an answer, at least that long.
    fn note(&mut self, now_ns: u64, order: &RunOrder, answered: bool) {
        let Some(asked_ns) = self.asked_ns.take() else { return };
        let mut at_ns = asked_ns;
        loop {
            self.keep(at_ns, now_ns, order, answered);
            at_ns += EVERY_NS;
            if at_ns >= now_ns {
                break;
            }
        }
        self.next_ns = at_ns;
    }

    fn keep(&mut self, at_ns: u64, now_ns: u64, order: &RunOrder, answered: bool) {
        let window_ns = order.at_ns + order.warmup_ns..order.at_ns + order.warmup_ns + order.measured_ns;
        let record = &mut self.record;
        let (kept, left_out) = if now_ns < order.at_ns {
            (&mut record.idle_us, &mut record.left_out[0])
        } else if window_ns.contains(&at_ns) {
            (&mut record.loaded_us, &mut record.left_out[1])
        } else {
            return;
        };
        if kept.len() == KEPT {
            *left_out += 1;
            return;
        }
        kept.push(u32::try_from(now_ns.saturating_sub(at_ns) / 1000).unwrap_or(u32::MAX));
        record.unanswered += u64::from(!answered);
    }

    fn broke(&mut self) {
        (self.open, self.broke_ns) = (false, now_ns());
    }

    /// What has no answer when the watch ends. A connection that broke before the window's end waits for none.
    fn end(&mut self, order: &RunOrder) {
        let now_ns = if self.open { now_ns() } else { self.broke_ns };
        if self.open || now_ns >= order.at_ns + order.warmup_ns + order.measured_ns {
            self.note(now_ns, order, false);
        }
    }
}

/// Until the stage has ended, and what was asked has its time.
pub fn exchange(streams: &mut [PingStream], order: &RunOrder, stop: &AtomicBool) {
    watch(streams, order, stop);
    streams.iter_mut().filter(|s| s.asks).for_each(|s| s.end(order));
}

/// Until the stage has ended: the asking side stops with the window, the answering one when the other is gone or a while later.
fn watch(streams: &mut [PingStream], order: &RunOrder, stop: &AtomicBool) {
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
            if stream.open && now < end_ns && stream.ask(now).is_err() {
                stream.broke();
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
            if at.revents != 0 && stream.hear(order).is_err() {
                stream.broke();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn asking() -> (PingStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (PingStream::new(ours, 7, true).unwrap(), listener.accept().unwrap().0)
    }

    #[test]
    fn a_question_without_an_answer_counts_with_all_that_it_held_up() {
        let (ours, _silent) = asking();
        let order = RunOrder { at_ns: now_ns(), warmup_ns: 0, measured_ns: 1_000_000_000 };
        let mut streams = [ours];
        exchange(&mut streams, &order, &AtomicBool::new(false));
        let [stream] = streams;
        let record = stream.into_record().unwrap();
        assert!(record.loaded_us.len() > 1, "{record:?}");
        assert!(
            record.loaded_us.windows(2).all(|w| w[0] - w[1] == 5000),
            "each 5 ms later than the one before"
        );
        // The watch goes on for 0.3 s after the window.
        assert!(record.loaded_us.iter().all(|us| *us >= 300_000));
        assert_eq!(record.unanswered, record.loaded_us.len() as u64);
        assert!(record.idle_us.is_empty());
    }

    #[test]
    fn an_answer_counts_for_each_question_that_it_held_up() {
        use std::io::{Read as _, Write as _};
        let (mut ours, mut other) = asking();
        let mut message = [0; MESSAGE];
        let start = now_ns();
        ours.ask(start).unwrap();
        other.read_exact(&mut message).unwrap();
        // It was asked 52 ms ago, of which the first 20 ms are warm-up.
        let (asked_ns, warmup_ns) = (start - 52_000_000, 20_000_000);
        ours.asked_ns = Some(asked_ns);
        other.write_all(&message).unwrap();
        ours.socket.set_nonblocking(false).unwrap();
        let order = RunOrder { at_ns: asked_ns, warmup_ns, measured_ns: 1_000_000_000 };
        ours.hear(&order).unwrap();
        let record = ours.into_record().unwrap();
        // At 20, 25, ... 50 ms, and later ones where this machine was slow.
        assert!(record.loaded_us.len() >= 7 && record.loaded_us[0] >= 32_000, "{record:?}");
        assert!(record.loaded_us.windows(2).all(|w| w[0] - w[1] == 5000), "{record:?}");
        assert_eq!(record.unanswered, 0);
    }
}
