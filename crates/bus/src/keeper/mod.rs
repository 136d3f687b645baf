//! The keeper of a fleet: a process in the background that owns the broker. It makes keys and certificate, lets newcomers in, starts
//! the broker again when it dies, and leaves nothing when it ends.
//!
//! [`Home`] is what other commands of the same user see of it: the token, the roll, and the lease that makes a fleet one conductor's
//! at a time.

mod broker;
mod certificate;
mod config;
mod detached;
mod down;
mod guest;
mod home;
mod hosts;
mod key_set;
mod place;
mod presence;
mod process;
mod roster;

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

pub use broker::Program;
pub use detached::{Detached, DetachedEnd, DetachedNote};
pub use down::{Ended, down};
pub use guest::{GuestNote, GuestWish, be_guest};
pub use home::{Door, Home, KeeperNote, Lease, OpenFleet};
pub use hosts::of_this_machine;
pub use key_set::KeySet;
pub use plimsoll_store::process::ProcessNote;
pub use presence::Client;
pub use roster::Roster;

use broker::BrokerProcess;
use certificate::Certificate;
use config::{Config, User};
use place::PlaceLock;

use crate::enrol::{EnrolAnswer, LONGEST_QUESTION, Question, VERSION, newcomer};
use crate::key::{is_user_key, random};
use crate::subjects::Subjects;
use crate::token::{Pin, Secret, Trust};
use crate::{Broker, Bus, BusError, Identity, Message, NatsBus, Speaks, Subscription};

/// How often the keeper looks whether it is to end, whether the broker lives, and whether the door has changed.
const TICK: Duration = Duration::from_millis(200);
/// Newcomers that come together are let in together: when the broker reads its configuration, it throws out all who are about to say
/// who they are, so it does that not more often than this. The first of them does not wait.
const TOGETHER: Duration = Duration::from_millis(300);
/// And so many of them at once, at most.
const MOST_TOGETHER: usize = 4_096;
/// How long agents may take to hear that the fleet is over.
const FAREWELL: Duration = Duration::from_secs(3);
/// Of whoever the broker did not read into its configuration.
const NOT_TAKEN: &str = "the fleet's broker does not take it in: join again";
/// How long the broker may take to read its configuration.
const RELOAD: Duration = Duration::from_secs(6);
/// A broker that dies more often in a row than this stays dead.
const MOST_STARTS: u32 = 10;

/// What a fleet is started with.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Where the broker listens; port 0 is any free one.
    pub listen: SocketAddr,
    /// What others are told to try: hosts or addresses, without the port.
    pub hosts: Vec<String>,
    /// Until when the token opens the door, in seconds since 1970.
    pub expires_s: u64,
    /// Keys that were made before, where others have the token already; none: new ones.
    pub keys: Option<KeySet>,
    /// What conductor and agents speak: who speaks another language is refused at the door.
    pub speaks: Speaks,
}

/// A running keeper.
#[derive(Debug)]
pub struct Keeper {
    home: Home,
    subjects: Subjects,
    wish: Wish,
    program: Program,
    keys: Keys,
    pin: Pin,
    door: Door,
    /// Whether newcomers were let to the broker when it read its configuration last.
    door_open: bool,
    roster: Roster,
    broker: BrokerProcess,
    starts: u32,
    /// When the broker was told last to read its configuration.
    reloaded: Instant,
    own: Option<Own>,
    _lock: PlaceLock,
}

/// The keeper's own connections: to newcomers, and to the broker itself. They have to go before the broker does.
#[derive(Debug)]
struct Own {
    system: NatsBus,
    questions: Subscription,
    keeper: NatsBus,
}

#[derive(Debug)]
struct Keys {
    system: Identity,
    keeper: Identity,
    conductor: Identity,
}

impl Keeper {
    /// Brings a fleet up: from here on its broker answers. The calling thread has to live as long as the process.
    pub fn start(home: &Home, wish: Wish) -> Result<Self, BusError> {
        let subjects = Subjects::of(home.fleet())?;
        let program = Program::find()?;
        home.make()?;
        let Some(lock) = home.take(place::LOCK)? else { return Err(already_up(home)) };
        let started = Self::start_locked(home, subjects, wish, program, lock);
        // What stands in the way is told; that there is nothing to remove, or that it cannot be, is not.
        started.inspect_err(|_| drop(home.remove()))
    }

    fn start_locked(
        home: &Home,
        subjects: Subjects,
        wish: Wish,
        program: Program,
        lock: PlaceLock,
    ) -> Result<Self, BusError> {
        home.forget()?;
        let conductor = match &wish.keys {
            Some(set) => Identity::from_seed(&set.conductor)?,
            None => Identity::random(),
        };
        let keys = Keys { system: Identity::random(), keeper: Identity::random(), conductor };
        home.write("conductor.seed", keys.conductor.seed())?;
        home.write("system.seed", keys.system.seed())?;
        let made = match &wish.keys {
            Some(set) => set.certificate()?,
            None => Certificate::make(home.fleet())?,
        };
        let pin = made.leave_in(home)?;
        let secret = wish.keys.as_ref().map_or_else(random, |set| Ok(set.secret))?;
        let door = Door { secret, expires_s: wish.expires_s };
        home.write_json("door.json", &door)?;
        let roster = Roster::default();
        home.write_json("roster.json", &roster)?;
        let users = users(&subjects, &keys, &roster, Some(&door))?;
        configure(home, &subjects, wish.listen, &keys, &users)?;
        let broker = BrokerProcess::start(&program, home)?;
        let mut keeper = Self {
            home: home.clone(),
            subjects,
            wish,
            program,
            keys,
            pin,
            door,
            door_open: true,
            roster,
            broker,
            starts: 1,
            reloaded: Instant::now(),
            own: None,
            _lock: lock,
        };
        // A broker that is started again keeps its port, so that agents find it.
        keeper.wish.listen.set_port(keeper.broker.port);
        keeper.connect()?;
        keeper.note()?;
        Ok(keeper)
    }

    /// Where this fleet's state is.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Keeps the fleet until `ended` says so. What it could not do for a newcomer, that one is told; an error here ends the fleet.
    pub fn keep(&mut self, ended: impl Fn() -> bool) -> Result<(), BusError> {
        while !ended() {
            self.revive()?;
            self.look_at_door()?;
            let questions = self.questions();
            if !questions.is_empty() {
                self.answer(&questions)?;
            }
        }
        Ok(())
    }

    /// Those who want to join, as soon as the broker may be told of them.
    fn questions(&self) -> Vec<Message> {
        let Some(own) = &self.own else { return Vec::new() };
        let Some(first) = own.questions.next(TICK) else { return Vec::new() };
        // What is longer than any question is not kept until the others are there.
        let sound = |m: &Message| m.payload.len() <= LONGEST_QUESTION;
        let from = self.reloaded + TOGETHER;
        let more = || own.questions.next(from.saturating_duration_since(Instant::now()));
        let all = std::iter::once(first).chain(std::iter::from_fn(more)).take(MOST_TOGETHER);
        all.filter(sound).collect()
    }

    /// Ends the broker and removes all that this fleet left on the machine.
    pub fn end(mut self) -> Result<(), BusError> {
        self.dismiss();
        self.own = None;
        let home = self.home.clone();
        // Broker first: it writes into the directory until it ends. The lock goes last.
        let Self { broker, _lock: lock, .. } = self;
        drop(broker);
        let removed = home.remove();
        drop(lock);
        removed
    }

    /// Tells all agents that the fleet is over, and waits until they have heard it and left: who does not hear it looks for the broker
    /// until somebody ends it. That a message was published says nothing of its arrival.
    fn dismiss(&self) {
        let Some(own) = &self.own else { return };
        let until = Instant::now() + FAREWELL;
        let _ = own.keeper.publish(&self.subjects.over(), b"over");
        let still_here = || {
            let clients = presence::clients(&own.system).unwrap_or_default();
            self.roster.agents.values().any(|key| clients.contains_key(key))
        };
        while still_here() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn reach(&self) -> Broker {
        Broker { addresses: vec![self.local()], trust: Trust::Own(self.pin) }
    }

    /// The broker as this machine reaches it.
    fn local(&self) -> String {
        let ip = self.wish.listen.ip();
        let here = match ip {
            _ if !ip.is_unspecified() => ip,
            std::net::IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            std::net::IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        SocketAddr::new(here, self.broker.port).to_string()
    }

    fn connect(&mut self) -> Result<(), BusError> {
        let system = NatsBus::connect(&self.reach(), &self.keys.system, "plimsoll keeper")?;
        let keeper = NatsBus::connect(&self.reach(), &self.keys.keeper, "plimsoll keeper")?;
        let questions = keeper.subscribe(&self.subjects.enrol())?;
        self.own = Some(Own { system, questions, keeper });
        Ok(())
    }

    /// Writes what other commands need to know.
    fn note(&self) -> Result<(), BusError> {
        let with_port = |host: &String| match host.parse::<std::net::Ipv6Addr>() {
            Ok(ip) => format!("[{ip}]:{}", self.broker.port),
            Err(_) => format!("{host}:{}", self.broker.port),
        };
        let note = KeeperNote {
            version: 1,
            process: ProcessNote::own(),
            broker_pid: self.broker.pid(),
            broker: self.program.version.clone(),
            addresses: self.wish.hosts.iter().map(with_port).collect(),
            local: self.local(),
            pin: self.pin.0,
            conductor: self.keys.conductor.public(),
            door_expires_s: self.door.expires_s,
            guest: None,
        };
        self.home.write_json(place::NOTE, &note)
    }

    /// A broker that died is started again; all keys hold.
    fn revive(&mut self) -> Result<(), BusError> {
        if self.broker.lives() {
            return Ok(());
        }
        if self.starts >= MOST_STARTS {
            return Err(BusError::unreachable(
                format!("the broker ended {MOST_STARTS} times"),
                format!("See {}", self.home.file("broker.log").display()),
            ));
        }
        self.starts += 1;
        self.write_config()?;
        self.broker = BrokerProcess::start(&self.program, &self.home)?;
        // Our connections come back by themselves.
        self.note()
    }

    /// A renewed door, or one that has closed by now.
    fn look_at_door(&mut self) -> Result<(), BusError> {
        let found = self.home.read_json::<Door>("door.json").unwrap_or_else(|| self.door.clone());
        let open = now_s() < found.expires_s;
        if found == self.door && open == self.door_open {
            return Ok(());
        }
        let renewed = found != self.door;
        let before = (std::mem::replace(&mut self.door, found), std::mem::replace(&mut self.door_open, open));
        if !self.reload()? {
            // The old one holds; the new one is tried again.
            (self.door, self.door_open) = before;
            return self.write_config();
        }
        if renewed {
            self.roster.forget_questions();
        }
        self.note()
    }

    fn answer(&mut self, messages: &[Message]) -> Result<(), BusError> {
        let questions = messages.iter().filter_map(|m| serde_json::from_slice::<Question>(&m.payload).ok());
        // Keys become part of a subject and of the configuration: only real ones do.
        let questions: Vec<Question> = questions.filter(|q| is_user_key(&q.key)).collect();
        let before = self.roster.agents.clone();
        let own = self.own_keys()?;
        let mut again = false;
        let mut outcomes: Vec<_> = questions.iter().map(|q| self.admit(q, &own)).collect();
        if self.roster.agents != before {
            if !self.reload()? {
                // Nobody new is in; and a broker that is started again finds what holds.
                self.roster.agents = before;
                self.write_config()?;
                again = true;
                let refused = || Err(NOT_TAKEN.to_owned());
                outcomes.iter_mut().filter(|o| o.is_ok()).for_each(|o| *o = refused());
            }
            self.home.write_json("roster.json", &self.roster)?;
        }
        let Some(own) = &self.own else { return Ok(()) };
        for (question, outcome) in questions.iter().zip(outcomes) {
            let nonce = question.nonce.clone();
            let refused = outcome.err();
            let again = again && refused.as_deref() == Some(NOT_TAKEN);
            let answer = EnrolAnswer { version: VERSION, nonce, refused, again };
            // Plain texts: nothing in them can fail.
            let text = serde_json::to_vec(&answer).expect("an answer is plain data");
            // Who does not hear it asks again.
            let _ = own.keeper.publish(&self.subjects.enrolled(&question.key), &text);
        }
        Ok(())
    }

    /// The keys that no agent may have.
    fn own_keys(&self) -> Result<[String; 4], BusError> {
        let Keys { system, keeper, conductor } = &self.keys;
        let newcomer = newcomer(&Secret(self.door.secret))?;
        Ok([system, keeper, conductor, &newcomer].map(Identity::public))
    }

    fn admit(&mut self, question: &Question, own: &[String]) -> Result<(), String> {
        let system = self.own.as_ref().map(|own| &own.system);
        // Asked only where a name is taken. A broker that does not answer is no reason to take a name away.
        let connected =
            |key: &str| system.and_then(presence::clients).is_none_or(|clients| clients.contains_key(key));
        let door = (&self.door, &self.wish.speaks);
        self.roster.admit(question, &self.subjects, door, own, now_s(), connected)
    }

    fn write_config(&self) -> Result<(), BusError> {
        let door = self.door_open.then_some(&self.door);
        let users = users(&self.subjects, &self.keys, &self.roster, door)?;
        configure(&self.home, &self.subjects, self.wish.listen, &self.keys, &users)
    }

    /// The broker reads who may connect. Whether it has done so when this returns: it goes on with what it had where it does not like
    /// what it reads.
    fn reload(&mut self) -> Result<bool, BusError> {
        let loaded = |keeper: &Self| keeper.own.as_ref().and_then(|own| presence::loaded(&own.system));
        let before = loaded(self);
        self.write_config()?;
        self.broker.reload();
        self.reloaded = Instant::now();
        let until = Instant::now() + RELOAD;
        while before.is_some() && Instant::now() < until {
            // One that does not answer has not said that it did.
            if loaded(self).is_some_and(|now| before.as_ref() != Some(&now)) {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(false)
    }
}

fn already_up(home: &Home) -> BusError {
    let who = home.note().map_or(String::new(), |n| format!(" (process {}, {})", n.process.pid, n.local));
    BusError::refused(
        format!("fleet {} is up already{who}", home.fleet()),
        format!("Use it, end it with `plimsoll fleet down --name {0}`, or give another --name", home.fleet()),
    )
}

fn configure(
    home: &Home,
    subjects: &Subjects,
    listen: SocketAddr,
    keys: &Keys,
    users: &[User],
) -> Result<(), BusError> {
    let system = keys.system.public();
    let config = Config { subjects, listen, dir: home.dir(), system: &system, users };
    home.write("broker.conf", &config.text())
}

/// Everybody that the broker lets in; newcomers only while the door is open.
fn users(
    subjects: &Subjects,
    keys: &Keys,
    roster: &Roster,
    door: Option<&Door>,
) -> Result<Vec<User>, BusError> {
    let mut users = vec![
        User { key: keys.keeper.public(), permissions: subjects.of_keeper() },
        User { key: keys.conductor.public(), permissions: subjects.of_conductor() },
    ];
    if let Some(door) = door {
        let key = newcomer(&Secret(door.secret))?.public();
        users.push(User { key, permissions: subjects.of_newcomer() });
    }
    let agents = roster.agents.iter();
    users.extend(agents.map(|(name, key)| User { key: key.clone(), permissions: subjects.of_agent(name) }));
    Ok(users)
}

/// Seconds since 1970, by this machine's clock.
pub fn now_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// An agent that was let in, and where it is connected from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollEntry {
    /// Its name.
    pub name: String,
    /// Its connection; none where there is none just now.
    pub client: Option<Client>,
}

impl OpenFleet {
    /// All agents that were let in, and which of them are connected, as the broker sees it.
    pub fn roll(&self) -> Result<Vec<RollEntry>, BusError> {
        if self.note.guest.is_some() {
            // Somebody else's broker does not say who is connected.
            return Ok(Vec::new());
        }
        let home = self.home();
        let key = home.identity("system.seed")?;
        let system = NatsBus::connect(&self.broker(), &key, "plimsoll fleet status")?;
        let clients = presence::clients(&system)
            .ok_or_else(|| BusError::unreachable("the broker does not say who is connected", "Try again"))?;
        let roster = home.read_json::<Roster>("roster.json").unwrap_or_default();
        let present = |(name, key): (String, String)| RollEntry { name, client: clients.get(&key).cloned() };
        Ok(roster.agents.into_iter().map(present).collect())
    }
}
