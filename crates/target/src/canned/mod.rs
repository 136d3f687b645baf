//! `plimsoll target canned`: the leanest HTTP/1.1 responder that looks like S3.
//!
//! Fixed bodies, no storage, no auth check. It exists to measure the client against something that is never the
//! bottleneck, with a delay that is known to a few microseconds, and to test clients against faults that are
//! counted exactly. Its own epoll loop; no runtime.

mod answer;
mod conn;
mod fault;
mod io;
mod keep;
mod limits;
mod pool;
mod request;
mod response;
mod stats;
mod worker;

pub use fault::{CannedFault, FaultKind, FaultScope, Trickle};
pub use stats::{Delays, Stats};

use crate::limiter::{Gate, LimitSet};
use fault::FaultDealer;
use keep::Keep;
use pool::Pool;
use stats::Counters;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use worker::{Inbox, Worker};

/// What to answer when a client sends `Expect: 100-continue`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Continue {
    /// `100 Continue`, at once.
    #[default]
    Send,
    /// Nothing: the client has to lose patience and send its body.
    Silent,
    /// `417 Expectation Failed`.
    Refuse,
}

/// How the canned server answers.
#[derive(Clone, Debug)]
pub struct CannedOptions {
    /// Size of every object, in bytes: what GET sends and HEAD tells.
    pub body_bytes: u64,
    /// Threads that serve; connections are dealt to them in turn.
    pub threads: usize,
    /// Fixed time between the last byte of a request and the first byte of its answer.
    pub delay: Duration,
    /// Keep bodies that are PUT, up to so many bytes in all, and answer GET, HEAD and LIST with them; 0 keeps none.
    pub keep_bytes: u64,
    /// How long a thread polls for more after work, before it sleeps.
    pub spin: Duration,
    /// Keys that a LIST shows, under the prefix it asks for.
    pub list_keys: u64,
    /// Faults on purpose and their shares, dealt by counting; counts are at /__stats.
    pub faults: Vec<CannedFault>,
    /// Which requests the shares of the faults are of.
    pub fault_scope: FaultScope,
    /// Seconds that a 429 or 503 fault names in Retry-After.
    pub retry_after_s: Option<u32>,
    /// Where the redirect fault points: scheme and host, without a slash at the end.
    pub redirect_to: String,
    /// Piece size and pause of the trickle fault.
    pub trickle: Trickle,
    /// Close each connection, with notice, after this many requests.
    pub close_after: Option<u64>,
    /// What to do about Expect: 100-continue.
    pub expect_continue: Continue,
    /// Value of the Server header.
    pub server: String,
    /// TLS with this configuration; plain TCP when absent.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Rate limits and latencies of a tier, in front of everything else.
    pub limits: Option<LimitSet>,
}

impl Default for CannedOptions {
    fn default() -> Self {
        CannedOptions {
            body_bytes: 4_096,
            threads: 1,
            delay: Duration::ZERO,
            keep_bytes: 0,
            spin: Duration::from_micros(50),
            list_keys: 16,
            faults: Vec::new(),
            fault_scope: FaultScope::Objects,
            retry_after_s: None,
            redirect_to: String::from("http://127.0.0.1:9"),
            trickle: Trickle::default(),
            close_after: None,
            expect_continue: Continue::Send,
            server: String::from("PlimsollCanned"),
            tls: None,
            limits: None,
        }
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum CannedError {
    #[error("canned server: {0}")]
    Io(#[from] std::io::Error),
    #[error("canned server: {0}")]
    Options(String),
}

/// What the threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    options: CannedOptions,
    delay_ns: u64,
    tls: Option<Arc<rustls::ServerConfig>>,
    gate: Option<Gate>,
    pool: Pool,
    keep: Keep,
    dealer: FaultDealer,
    counters: Vec<Counters>,
    inboxes: Vec<Inbox>,
    stop: AtomicBool,
}

impl Shared {
    fn stats(&self) -> Stats {
        Stats::sum(&self.counters, self.dealer.counts(), self.delay_ns)
    }
}

/// A running server; it stops when this is dropped.
#[derive(Debug)]
pub struct CannedHandle {
    addr: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<std::io::Result<()>>>,
}

impl CannedHandle {
    /// The address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What it has done so far; also at `GET /__stats`.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Stops the threads and closes all connections.
    pub fn stop(mut self) -> Stats {
        self.halt();
        self.shared.stats()
    }

    /// Serves until the process ends, or until a thread fails.
    pub fn wait(mut self) -> Result<(), CannedError> {
        for t in std::mem::take(&mut self.threads) {
            match t.join() {
                Ok(result) => result?,
                Err(_) => return Err(CannedError::Options("a server thread panicked".into())),
            }
        }
        Ok(())
    }

    fn halt(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        for inbox in &self.shared.inboxes {
            inbox.wake();
        }
        for t in self.threads.drain(..) {
            // A panic of a worker was printed by its thread already.
            let _ = t.join();
        }
    }
}

impl Drop for CannedHandle {
    fn drop(&mut self) {
        self.halt();
    }
}

/// Serves on `listener` with threads of its own; the answer comes at once.
pub fn serve(listener: TcpListener, mut options: CannedOptions) -> Result<CannedHandle, CannedError> {
    if options.keep_bytes > 0 && options.server == CannedOptions::default().server {
        // By the other name clients know that nothing is kept, and prepare nothing.
        options.server = String::from("PlimsollKeeping");
    }
    let threads = options.threads.max(1);
    let addr = listener.local_addr()?;
    // BBR, the default of many systems, paces: every 64 KiB then waits for a timer and wakes the client, and the
    // server is the limit at half the rate (1 MiB GETs: 4,000 a second against 7,900). Reno is there on every Linux,
    // for everybody; connections inherit it. Where it is refused, only speed is lost.
    let _ = rustix::net::sockopt::set_tcp_congestion(&listener, "reno");
    let shared = Arc::new(Shared {
        delay_ns: u64::try_from(options.delay.as_nanos()).unwrap_or(u64::MAX),
        tls: options.tls.clone(),
        gate: options.limits.as_ref().map(Gate::new),
        pool: Pool::new(options.body_bytes),
        keep: Keep::new(options.keep_bytes),
        dealer: FaultDealer::new(&options.faults).map_err(CannedError::Options)?,
        counters: (0..threads).map(|_| Counters::default()).collect(),
        inboxes: (0..threads).map(|_| Inbox::new()).collect::<Result<_, _>>()?,
        stop: AtomicBool::new(false),
        options,
    });
    let mut handle = CannedHandle { addr, shared: shared.clone(), threads: Vec::new() };
    let mut listener = Some(listener);
    for index in 0..threads {
        let worker = Worker::new(shared.clone(), index, listener.take())?;
        let spawn = std::thread::Builder::new().name(format!("canned-{index}"));
        handle.threads.push(spawn.spawn(move || worker.run())?);
    }
    Ok(handle)
}

/// Binds `listen` (port 0 for a free one) and serves.
pub fn spawn(listen: SocketAddr, options: CannedOptions) -> Result<CannedHandle, CannedError> {
    serve(TcpListener::bind(listen)?, options)
}
