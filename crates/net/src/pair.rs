//! Two machines without a fleet: one waits with a key for one test, the other has the key and asks for it.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::address::AllowedNetworks;
use crate::conduct::NetHosts;
use crate::control::{Session, is_closed_before};
use crate::door::Guests;
use crate::error::NetError;
use crate::hello::{Hello, Purpose, hear, introduce, welcome};
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
    session: SyncSender<(Session, SocketAddr)>,
}

impl Reception {
    fn guests(&self) -> Arc<Guests> {
        Arc::clone(&self.guests.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn receive(&self, mut stream: TcpStream, from: SocketAddr) -> io::Result<()> {
        let claimed = hear(&mut stream)?;
        if claimed.hello.purpose != Purpose::Control {
            return self.guests().admit(stream, &claimed);
        }
        if !claimed.is_proved(&self.key) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it does not have the key"));
        }
        if self.taken.swap(true, Ordering::AcqRel) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the key opens one test, which is under way",
            ));
        }
        let session =
            welcome(&mut stream, &claimed, &self.key).and_then(|key| Session::new(stream, key, false));
        match session {
            Ok(session) => self.session.send((session, from)).map_err(io::Error::other),
            Err(e) => {
                // It went away before it was answered: another one may have the test.
                self.taken.store(false, Ordering::Release);
                Err(e)
            }
        }
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
            session,
        };
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let listening = || self.let_in(&reception, &over, tell);
            std::thread::Builder::new().name("net-door".into()).spawn_scoped(scope, listening).map_err(
                |e| NetError::input(format!("cannot start a thread: {e}"), "Raise the limit on threads"),
            )?;
            let came = one_test(&sessions, &reception, &self.allowed, stop, tell);
            over.store(true, Ordering::Release);
            came
        })
    }

    fn let_in(&self, reception: &Reception, over: &AtomicBool, tell: &(dyn Fn(String) + Sync)) {
        let heard = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            while !over.load(Ordering::Acquire) {
                let Ok((stream, from)) = self.listener.accept() else {
                    std::thread::sleep(LOOK);
                    continue;
                };
                if let Some(why) = self.allowed.refuses(from.ip()) {
                    tell(format!("refused: {why} (--allow-net names addresses that may be used)"));
                    continue;
                }
                if heard.load(Ordering::Acquire) >= HEARD_AT_ONCE {
                    continue;
                }
                heard.fetch_add(1, Ordering::AcqRel);
                let heard = &heard;
                let body = move || {
                    let _ = stream.set_nonblocking(false);
                    if let Err(e) = reception.receive(stream, from) {
                        tell(format!("refused {}: {e}", from.ip().to_canonical()));
                    }
                    heard.fetch_sub(1, Ordering::AcqRel);
                };
                if std::thread::Builder::new().name("net-hello".into()).spawn_scoped(scope, body).is_err() {
                    heard.fetch_sub(1, Ordering::AcqRel);
                }
            }
        });
    }
}

fn one_test(
    sessions: &Receiver<(Session, SocketAddr)>,
    reception: &Reception,
    allowed: &AllowedNetworks,
    stop: &Arc<AtomicBool>,
    tell: &(dyn Fn(String) + Sync),
) -> Result<(), NetError> {
    let (mut session, from) = loop {
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
    let mut orders = 0;
    loop {
        let order: NetOrder = match session.hear(SILENCE, stop) {
            Ok(order) => order,
            Err(_) if stop.load(Ordering::Acquire) => return Err(NetError::Interrupted),
            // Between two orders the other side may have what it wanted.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof && orders > 0 => return Ok(()),
            Err(e) => return Err(lost(e)),
        };
        orders += 1;
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
        session.say(&answer).map_err(lost)?;
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
        const PATIENCE: Duration = Duration::from_secs(5);
        let mut tried = Vec::new();
        for at in to {
            if let Some(why) = allowed.refuses(at.ip()) {
                return Err(NetError::input(
                    why,
                    format!("Give --allow-net {} if it is yours to load", at.ip()),
                ));
            }
            let opened = TcpStream::connect_timeout(at, PATIENCE).and_then(|mut stream| {
                let session = introduce(&mut stream, &Hello::new(Purpose::Control, 0, 0), key)?;
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
        let came = self.session.say(&order).and_then(|()| self.session.hear(patience, &self.interrupt));
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
