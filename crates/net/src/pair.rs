//! Two machines without a fleet: one waits with a key for one test, the other has the key and asks for it.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::address::AllowedNetworks;
use crate::conduct::NetHosts;
use crate::control::{Session, is_closed_before};
use crate::door::Guests;
use crate::error::NetError;
use crate::hello::{Hello, PATIENCE, Purpose, hear, introduce, welcome};
use crate::host::{now_ns, this_host};
use crate::node::NetNode;
use crate::secret::NetKey;
use crate::wire::{NetAnswer, NetOrder};

/// Whether it is to stop is asked so often.
const LOOK: Duration = Duration::from_millis(20);
/// Who has the test says nothing for no longer than this.
const SILENCE: Duration = Duration::from_secs(60);
/// Answers but that of a run come sooner.
const ANSWER: Duration = Duration::from_secs(45);
/// Questions for the time; the quickest answer counts.
const CLOCK_QUESTIONS: usize = 16;
/// Strangers that are heard at the same time.
const HEARD_AT_ONCE: usize = 64;
/// The first order is a question, and no longer.
const FIRST_ORDER: usize = 1 << 16;

/// A machine that waits for one test.
#[derive(Debug)]
pub struct NetServer {
    listener: TcpListener,
    key: NetKey,
    allowed: AllowedNetworks,
}

/// Who is let in: guests of the stage that is opened, and one who has the key of the test.
#[derive(Debug)]
struct Reception {
    key: NetKey,
    guests: Mutex<Arc<Guests>>,
    taken: AtomicBool,
    over: AtomicBool,
    session: SyncSender<Taker>,
}

/// Who has the test, and the first thing that it ordered.
type Taker = (Session, SocketAddr, NetOrder);

impl Reception {
    fn guests(&self) -> Arc<Guests> {
        Arc::clone(&self.guests.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn receive(&self, mut stream: TcpStream, from: SocketAddr) -> io::Result<()> {
        let claimed = hear(&mut stream, Instant::now() + PATIENCE)?;
        if claimed.hello.purpose != Purpose::Control {
            return self.guests().admit(stream, &claimed);
        }
        if !claimed.is_proved(&self.key) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it does not have the key"));
        }
        let under_way =
            || io::Error::new(io::ErrorKind::PermissionDenied, "the key opens one test, which is under way");
        if self.taken.load(Ordering::Acquire) {
            return Err(under_way());
        }
        let session = welcome(&mut stream, &claimed, &self.key)?;
        let mut session = Session::new(stream, session, false)?;
        // A hello may be one that somebody heard when the key was used before, and says again: whoever has the key says something more,
        // with a key that came of our answer, and has the test from then on.
        let order = session.hear_up_to(FIRST_ORDER, PATIENCE, &self.over)?;
        if self.taken.swap(true, Ordering::AcqRel) {
            return Err(under_way());
        }
        self.session.send((session, from, order)).map_err(io::Error::other)
    }
}

impl NetServer {
    /// Listens from now on, for whoever has the key.
    pub fn listen(at: SocketAddr, key: NetKey, allowed: AllowedNetworks) -> Result<Self, NetError> {
        if let (false, Some(why)) = (at.ip().is_unspecified(), allowed.refuses(at.ip())) {
            return Err(NetError::input(why, "Name it with --allow-net if it is yours to load"));
        }
        let cannot = |e: io::Error| {
            NetError::input(
                format!("cannot listen on {at}: {e}"),
                "Give another address or port with --listen",
            )
        };
        let listener = TcpListener::bind(at).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        Ok(Self { listener, key, allowed })
    }

    /// Where it waits.
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("it is bound")
    }

    /// Carries out one test. `tell` is told what happens, a sentence each.
    pub fn serve(self, stop: &Arc<AtomicBool>, tell: &(dyn Fn(String) + Sync)) -> Result<(), NetError> {
        let (session, sessions) = sync_channel(1);
        let reception = Reception {
            key: self.key.clone(),
            guests: Mutex::default(),
            taken: AtomicBool::new(false),
            over: AtomicBool::new(false),
            session,
        };
        std::thread::scope(|scope| {
            let listening = || self.let_in(&reception, tell);
            std::thread::Builder::new().name("net-door".into()).spawn_scoped(scope, listening).map_err(
                |e| NetError::input(format!("cannot start a thread: {e}"), "Raise the limit on threads"),
            )?;
            let came = one_test(&sessions, &reception, &self.allowed, stop, tell);
            reception.over.store(true, Ordering::Release);
            came
        })
    }

    fn let_in(&self, reception: &Reception, tell: &(dyn Fn(String) + Sync)) {
        let heard = Heard::default();
        std::thread::scope(|scope| {
            while !reception.over.load(Ordering::Acquire) {
                let Ok((stream, from)) = self.listener.accept() else {
                    std::thread::sleep(LOOK);
                    continue;
                };
                if let Some(why) = self.allowed.refuses(from.ip()) {
                    tell(format!("refused: {why} (--allow-net names addresses that may be used)"));
                    continue;
                }
                let Some(number) = heard.begins(&stream) else { continue };
                let heard = &heard;
                let body = move || {
                    let _ = stream.set_nonblocking(false);
                    let came = reception.receive(stream, from);
                    heard.ended(number);
                    // Who was cut off because the test is over has done nothing.
                    if let (Err(e), false) = (came, reception.over.load(Ordering::Acquire)) {
                        tell(format!("refused {}: {e}", from.ip().to_canonical()));
                    }
                };
                if std::thread::Builder::new().name("net-hello".into()).spawn_scoped(scope, body).is_err() {
                    heard.ended(number);
                }
            }
            // Nobody waits for what they would say still.
            heard.cut_off();
        });
    }
}

/// Strangers whose first bytes are waited for.
#[derive(Debug, Default)]
struct Heard(Mutex<(u64, BTreeMap<u64, TcpStream>)>);

impl Heard {
    /// One more, and its number; nothing where there are enough of them.
    fn begins(&self, stream: &TcpStream) -> Option<u64> {
        let mut inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, streams) = &mut *inside;
        if streams.len() >= HEARD_AT_ONCE {
            return None;
        }
        *number += 1;
        streams.insert(*number, stream.try_clone().ok()?);
        Some(*number)
    }

    fn ended(&self, number: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&number);
    }

    fn cut_off(&self) {
        let inside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One that is closed already is cut off.
        inside.1.values().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }
}

fn one_test(
    sessions: &Receiver<Taker>,
    reception: &Reception,
    allowed: &AllowedNetworks,
    stop: &Arc<AtomicBool>,
    tell: &(dyn Fn(String) + Sync),
) -> Result<(), NetError> {
    let (mut session, from, first) = loop {
        if stop.load(Ordering::Acquire) {
            return Err(NetError::Interrupted);
        }
        if let Ok(came) = sessions.recv_timeout(LOOK) {
            break came;
        }
    };
    let who = from.ip().to_canonical().to_string();
    tell(format!("at work for {who}"));
    let ending = Arc::new(AtomicBool::new(false));
    let mut node = NetNode::new(allowed.clone(), Arc::clone(&ending)).behind_a_door();
    let lost = |e: io::Error| NetError::Lost { host: who.clone(), why: e.to_string() };
    let mut order = first;
    loop {
        let is_open = matches!(order, NetOrder::Open { .. });
        let watched = session.watched().map_err(lost)?;
        let answer = while_it_is_there(&watched, &ending, stop, || node.obey(order));
        if ending.load(Ordering::Acquire) {
            let is_ours = stop.load(Ordering::Acquire);
            let gone = NetError::Lost {
                host: who.clone(),
                why: "it closed the connection in the middle of a test".into(),
            };
            return Err(if is_ours { NetError::Interrupted } else { gone });
        }
        if is_open {
            *reception.guests.lock().unwrap_or_else(PoisonError::into_inner) = node.guests();
        }
        match session.say(&answer, stop) {
            Err(_) if stop.load(Ordering::Acquire) => return Err(NetError::Interrupted),
            said => said.map_err(lost)?,
        }
        order = match session.hear(SILENCE, stop) {
            Ok(order) => order,
            Err(_) if stop.load(Ordering::Acquire) => return Err(NetError::Interrupted),
            // Between two orders the other side may have what it wanted.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(e) => return Err(lost(e)),
        };
    }
}

/// Does something that ends early where the other side goes away: nobody is loaded for nobody.
fn while_it_is_there<T>(
    watched: &TcpStream,
    ending: &Arc<AtomicBool>,
    stop: &Arc<AtomicBool>,
    work: impl FnOnce() -> T,
) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let look = || {
            if is_closed_before(watched, &over) {
                ending.store(true, Ordering::Release);
            }
        };
        let asked = || {
            while !over.load(Ordering::Acquire) {
                if stop.load(Ordering::Acquire) {
                    ending.store(true, Ordering::Release);
                }
                std::thread::sleep(LOOK);
            }
        };
        // Without them it ends with the stage, or with the connections of its data.
        let _ = std::thread::Builder::new().name("net-look".into()).spawn_scoped(scope, look);
        let _ = std::thread::Builder::new().name("net-stop".into()).spawn_scoped(scope, asked);
        let done = work();
        over.store(true, Ordering::Release);
        done
    })
}

/// The two machines, for the one that asks: itself first.
#[derive(Debug)]
pub struct NetPair {
    own: NetNode,
    /// Of this machine.
    name: String,
    session: Session,
    other: SocketAddr,
    ahead_ns: i128,
    /// Set where a person ends it.
    interrupt: Arc<AtomicBool>,
    /// Set where what this machine does is to end.
    ending: Arc<AtomicBool>,
}

impl NetPair {
    /// With the machine that waits there.
    pub fn connect(
        to: &[SocketAddr],
        key: &NetKey,
        allowed: AllowedNetworks,
        interrupt: Arc<AtomicBool>,
    ) -> Result<Self, NetError> {
        const CONNECT: Duration = Duration::from_secs(5);
        let mut tried = Vec::new();
        for at in to {
            if let Some(why) = allowed.refuses(at.ip()) {
                return Err(NetError::input(
                    why,
                    format!("Give --allow-net {} if it is yours to load", at.ip()),
                ));
            }
            let opened = TcpStream::connect_timeout(at, CONNECT).and_then(|mut stream| {
                let hello = Hello::new(Purpose::Control, 0, 0);
                let session = introduce(&mut stream, &hello, key, Instant::now() + PATIENCE)?;
                Session::new(stream, session, true)
            });
            match opened {
                Err(e) => tried.push(format!("{at}: {e}")),
                Ok(session) => {
                    let ending = Arc::new(AtomicBool::new(false));
                    let own = NetNode::new(allowed, Arc::clone(&ending));
                    let name = this_host().host;
                    let mut pair = Self { own, name, session, other: *at, ahead_ns: 0, interrupt, ending };
                    pair.know_clock()?;
                    return Ok(pair);
                }
            }
        }
        Err(NetError::input(
            tried.join("; "),
            "Start `plimsoll net serve` there, and give the key that it prints for this one test",
        ))
    }

    /// What the other clock is ahead of ours, of the quickest of several answers.
    fn know_clock(&mut self) -> Result<(), NetError> {
        let mut best = u64::MAX;
        for _ in 0..CLOCK_QUESTIONS {
            let asked = now_ns();
            let NetAnswer::Described { now_ns: there, .. } = self.other(NetOrder::Describe)? else { break };
            let answered = now_ns();
            if answered - asked < best {
                best = answered - asked;
                self.ahead_ns = i128::from(there) - i128::from(asked + (answered - asked) / 2);
            }
        }
        Ok(())
    }

    fn other(&mut self, order: NetOrder) -> Result<NetAnswer, NetError> {
        let patience = match &order {
            NetOrder::Run(run) => ANSWER + Duration::from_nanos(run.warmup_ns + run.measured_ns),
            _ => ANSWER,
        };
        let lost = |e: io::Error| NetError::Lost { host: self.other.to_string(), why: e.to_string() };
        let said = self.session.say(&order, &self.interrupt);
        let came = said.and_then(|()| self.session.hear(patience, &self.interrupt));
        if self.interrupt.load(Ordering::Acquire) {
            return Err(NetError::Interrupted);
        }
        came.map_err(lost)
    }
}

impl NetHosts for NetPair {
    fn names(&self) -> Vec<String> {
        vec![self.name.clone(), self.other.ip().to_canonical().to_string()]
    }

    fn ask(&mut self, orders: Vec<(usize, NetOrder)>) -> Result<Vec<(usize, NetAnswer)>, NetError> {
        let (mut own, mut other) = (None, None);
        for (host, order) in orders {
            *(if host == 0 { &mut own } else { &mut other }) = Some(order);
        }
        let mut out = Vec::new();
        // Taken apart, so that both can work at the same time.
        let mut node =
            std::mem::replace(&mut self.own, NetNode::new(AllowedNetworks::Nothing, Arc::default()));
        let ending = Arc::clone(&self.ending);
        let came = std::thread::scope(|scope| {
            let mine = own.map(|order| scope.spawn(|| node.obey(order)));
            let theirs = other.map(|order| self.other(order)).transpose();
            if theirs.is_err() {
                // Without the other side there is nothing to be measured.
                ending.store(true, Ordering::Release);
            }
            out.extend(mine.and_then(|thread| thread.join().ok()).map(|answer| (0, answer)));
            theirs
        });
        self.own = node;
        out.extend(came?.map(|answer| (1, answer)));
        Ok(out)
    }

    fn ahead_ns(&self, host: usize) -> i128 {
        if host == 0 { 0 } else { self.ahead_ns }
    }

    fn dialler(&self, _from: usize, _to: usize) -> usize {
        0
    }

    fn places(&self, _dialler: usize, _waiter: usize, _port: Option<u16>) -> (Vec<IpAddr>, u16) {
        (vec![self.other.ip()], self.other.port())
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    /// A server on its own thread, what it told, and how it ended.
    fn served<T>(
        key: &NetKey,
        does: impl FnOnce(SocketAddr, &Arc<AtomicBool>) -> T,
    ) -> (T, Vec<String>, bool) {
        let server =
            NetServer::listen("127.0.0.1:0".parse().unwrap(), key.clone(), AllowedNetworks::Private).unwrap();
        let (at, stop, told) = (server.address(), Arc::new(AtomicBool::new(false)), Mutex::new(Vec::new()));
        let tell = |text: String| told.lock().unwrap().push(text);
        let (did, well) = std::thread::scope(|scope| {
            let serving = scope.spawn(|| server.serve(&stop, &tell));
            let did = does(at, &stop);
            (did, serving.join().unwrap().is_ok())
        });
        (did, told.into_inner().unwrap(), well)
    }

    /// Heard on the wire when the key was used before, and said again as it was.
    #[test]
    fn a_hello_that_is_said_again_takes_no_test_and_ends_none() {
        let key = NetKey::random();
        let heard = Hello::new(Purpose::Control, 0, 0).sealed(&key);
        let (names, told, well) = served(&key, |at, _| {
            let replay = |more: &[u8]| {
                let mut stream = TcpStream::connect(at).unwrap();
                stream.write_all(&heard).unwrap();
                stream.read_exact(&mut [0; 48]).unwrap();
                stream.write_all(more).unwrap();
                stream
            };
            // One goes on with what it cannot know, one is silent, one goes away.
            let mut wrong = replay(&[&2u32.to_le_bytes()[..], &[7; 34]].concat());
            assert_eq!(wrong.read(&mut [0]).unwrap_or(0), 0, "it is answered");
            let _silent = replay(&[]);
            drop(replay(&[]));
            let pair = NetPair::connect(&[at], &key, AllowedNetworks::Private, Arc::default());
            pair.map(|p| p.names().len())
        });
        assert_eq!(names.unwrap(), 2);
        assert!(well && told.iter().any(|t| t.contains("not by the other side of this test")), "{told:?}");
    }

    #[test]
    fn who_is_cut_off_ends_what_waits_for_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _silent = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let heard = Heard::default();
        heard.begins(&stream).unwrap();
        // Without a time-out: nothing else ends it.
        let waits = std::thread::spawn(move || stream.read(&mut [0]).unwrap_or(0));
        heard.cut_off();
        assert_eq!(waits.join().unwrap(), 0);
    }

    /// A stranger who is still heard holds up nobody.
    #[test]
    fn an_end_cuts_off_whoever_is_heard() {
        let ((), told, well) = served(&NetKey::random(), |at, stop| {
            let mut slow = TcpStream::connect(at).unwrap();
            slow.write_all(b"pl").unwrap();
            std::thread::sleep(LOOK * 5);
            stop.store(true, Ordering::Release);
            // Cut off, and not after the time that it had.
            slow.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            assert_eq!(slow.read(&mut [0]).unwrap_or(0), 0);
        });
        assert!(!well && told.is_empty(), "{told:?}");
    }
}
