//! Where connections of a stage come in: a port that is open until all that are expected are there, and no longer. Who cannot prove
//! a key of one of them, or comes from an address that is not allowed, gets no answer.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::address::AllowedNetworks;
use crate::hello::{Claimed, Hello, PATIENCE, Purpose, hear, introduce, welcome};
use crate::secret::NetKey;

/// Strangers that are heard at the same time.
const HEARD_AT_ONCE: usize = 128;
/// Whether it is to be closed is asked so often.
const LOOK: Duration = Duration::from_millis(10);

/// A connection of a lane: its number, the stream's (of a ping: none), and the socket.
pub type Arrived = (u32, Option<u16>, TcpStream);

/// What is expected, and what has come.
#[derive(Debug, Default)]
struct Expected {
    /// By lane: its key, and how many streams.
    lanes: BTreeMap<u32, (NetKey, u16)>,
    came: BTreeMap<(u32, Purpose, u16), TcpStream>,
    refused: Vec<String>,
}

/// The connections of a stage that others open.
#[derive(Debug, Default)]
pub struct Guests {
    inside: Mutex<Expected>,
    news: Condvar,
}

impl Guests {
    /// Of these lanes.
    pub fn of(lanes: BTreeMap<u32, (NetKey, u16)>) -> Arc<Self> {
        let inside = Expected { lanes, ..Expected::default() };
        Arc::new(Self { inside: Mutex::new(inside), news: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Expected> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stranger's claim: answered where it is one of ours, for the first time.
    pub fn admit(&self, mut stream: TcpStream, claimed: &Claimed) -> io::Result<()> {
        let Hello { purpose, lane, stream: number, .. } = claimed.hello;
        let place = (lane, purpose, number);
        let key = {
            let inside = self.lock();
            let expected = inside.lanes.get(&lane).filter(|(_, streams)| match purpose {
                Purpose::Bulk => number < *streams,
                Purpose::Ping => number == 0,
                Purpose::Control => false,
            });
            let free = expected.filter(|_| !inside.came.contains_key(&place));
            free.map(|(key, _)| key.clone()).filter(|key| claimed.is_proved(key))
        };
        let key =
            key.ok_or_else(|| io::Error::new(io::ErrorKind::PermissionDenied, "it has no key of this test"))?;
        welcome(&mut stream, claimed, &key)?;
        self.lock().came.entry(place).or_insert(stream);
        self.news.notify_all();
        Ok(())
    }

    fn missing(inside: &Expected) -> usize {
        let all: usize = inside.lanes.values().map(|(_, streams)| usize::from(*streams) + 1).sum();
        all - inside.came.len()
    }

    /// Waits until all are there. In words, why they are not.
    pub fn all(&self, patience: Duration, stop: &AtomicBool) -> Result<Vec<Arrived>, String> {
        let until = Instant::now() + patience;
        let mut inside = self.lock();
        while Self::missing(&inside) > 0 {
            if Instant::now() >= until || stop.load(Ordering::Relaxed) {
                let (n, why) = (Self::missing(&inside), inside.refused.last());
                let refused = why.map_or(String::new(), |why| format!("; refused: {why}"));
                return Err(format!("{n} connections did not come{refused}"));
            }
            inside = self.news.wait_timeout(inside, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        let came = std::mem::take(&mut inside.came).into_iter();
        let one =
            |((lane, purpose, number), stream)| (lane, (purpose == Purpose::Bulk).then_some(number), stream);
        Ok(came.map(one).collect())
    }

    fn refuse(&self, why: String) {
        let mut inside = self.lock();
        // The last ones tell enough.
        if inside.refused.len() > 8 {
            inside.refused.remove(0);
        }
        inside.refused.push(why);
    }
}

/// An open port. Dropped, it is closed.
#[derive(Debug)]
pub struct Door {
    /// That it listens on.
    pub port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Door {
    /// On all addresses, for these guests.
    pub fn open(guests: Arc<Guests>, allowed: AllowedNetworks) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0))
            .or_else(|_| TcpListener::bind("0.0.0.0:0"))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let body = move || listen(&listener, &guests, &allowed, &stopped);
        let thread = Some(std::thread::Builder::new().name("net-door".into()).spawn(body)?);
        Ok(Self { port, stop, thread })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic has been printed already.
            let _ = thread.join();
        }
    }
}

fn listen(listener: &TcpListener, guests: &Arc<Guests>, allowed: &AllowedNetworks, stop: &AtomicBool) {
    let heard = Arc::new(AtomicUsize::new(0));
    while !stop.load(Ordering::Acquire) {
        let Ok((mut stream, from)) = listener.accept() else {
            std::thread::sleep(LOOK);
            continue;
        };
        if let Some(why) = allowed.refuses(from.ip()) {
            guests.refuse(why);
            continue;
        }
        if heard.load(Ordering::Acquire) >= HEARD_AT_ONCE {
            continue;
        }
        heard.fetch_add(1, Ordering::AcqRel);
        let (guests, counted) = (Arc::clone(guests), Arc::clone(&heard));
        let body = move || {
            // Of an accepted socket the flag is not inherited on Linux; said, all the same.
            let _ = stream.set_nonblocking(false);
            let came = hear(&mut stream, Instant::now() + PATIENCE)
                .and_then(|claimed| guests.admit(stream, &claimed));
            if let Err(e) = came {
                guests.refuse(format!("{}: {e}", from.ip().to_canonical()));
            }
            counted.fetch_sub(1, Ordering::AcqRel);
        };
        if std::thread::Builder::new().name("net-hello".into()).spawn(body).is_err() {
            heard.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// How long somebody dials, for all that they dial together.
#[derive(Debug, Clone, Copy)]
pub struct Dialling<'a> {
    /// No connection is begun, and no answer waited for, after it.
    pub until: Instant,
    /// Set where it is to end.
    pub stop: &'a AtomicBool,
}

impl Dialling<'_> {
    /// For the next connection; in words, why there is none.
    fn left(&self) -> Result<Duration, String> {
        if self.stop.load(Ordering::Relaxed) {
            return Err("it was told to stop".into());
        }
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err("not all connections were there in time".into()) } else { Ok(left) }
    }

    fn connect(&self, at: SocketAddr, hello: &Hello, key: &NetKey) -> io::Result<TcpStream> {
        const PATIENCE: Duration = Duration::from_secs(3);
        let left = self.left().map_err(|why| io::Error::new(io::ErrorKind::TimedOut, why))?;
        let mut stream = TcpStream::connect_timeout(&at, left.min(PATIENCE))?;
        introduce(&mut stream, hello, key, self.until)?;
        Ok(stream)
    }
}

/// Opens all connections of a lane to its other end: to the first of its addresses that answers.
pub fn dial(
    (lane, key, streams): (u32, &NetKey, u16),
    addresses: &[IpAddr],
    port: u16,
    dialling: Dialling<'_>,
) -> Result<Vec<Arrived>, String> {
    let mut tried = Vec::new();
    for address in addresses {
        let at = SocketAddr::new(*address, port);
        let one = |purpose, number| dialling.connect(at, &Hello::new(purpose, lane, number), key);
        if let Err(why) = dialling.left() {
            tried.push(why);
            break;
        }
        // The small one first: where it does not get through, nothing does.
        match one(Purpose::Ping, 0) {
            Err(e) => tried.push(format!("{at}: {e}")),
            Ok(ping) => {
                let mut out = vec![(lane, None, ping)];
                for number in 0..streams {
                    let stream = one(Purpose::Bulk, number).map_err(|e| format!("{at}: {e}"))?;
                    out.push((lane, Some(number), stream));
                }
                return Ok(out);
            }
        }
    }
    Err(if tried.is_empty() { "it has no address that may be used".into() } else { tried.join("; ") })
}
