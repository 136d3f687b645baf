//! The bus, the keeper and the door, with a real broker: what comes through, and above all what does not.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_bus::enrol::{EnrolAnswer, Joined, Question, join, join_as, newcomer};
use plimsoll_bus::keeper::{Home, Keeper, OpenFleet, Wish, down, now_s};
use plimsoll_bus::subjects::Subjects;
use plimsoll_bus::token::{Pin, Secret, Token, Trust};
use plimsoll_bus::{Broker, Bus, BusError, BusEvent, Identity, LARGEST_BYTES, NatsBus, Speaks, Subscription};

const LONG: Duration = Duration::from_secs(10);
/// Long enough for what does come; what must not come is awaited no longer.
const QUIET: Duration = Duration::from_millis(300);

/// A fleet that is up, with its keeper in a thread, until it is dropped.
struct Up {
    home: Home,
    stop: Arc<AtomicBool>,
    keeper: Option<JoinHandle<()>>,
    _base: tempfile::TempDir,
}

impl Up {
    fn new() -> Self {
        Self::until(now_s() + 3_600)
    }

    fn until(expires_s: u64) -> Self {
        let base = tempfile::tempdir().unwrap();
        let home = Home::below(base.path(), "demo").unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (at, ended) = (home.clone(), stop.clone());
        // The broker is this thread's child, and ends with it.
        let keeper = std::thread::spawn(move || {
            let mut keeper = Keeper::start(&at, wish(expires_s)).unwrap();
            ready.send(()).unwrap();
            keeper.keep(|| ended.load(Ordering::SeqCst)).unwrap();
            keeper.end().unwrap();
        });
        is_ready.recv_timeout(Duration::from_secs(30)).expect("the keeper is up");
        Self { home, stop, keeper: Some(keeper), _base: base }
    }

    fn token(&self) -> Token {
        self.home.token().unwrap()
    }

    fn fleet(&self) -> OpenFleet {
        self.home.open().unwrap()
    }

    fn broker(&self) -> Broker {
        self.fleet().broker()
    }

    fn down(mut self) -> (Home, tempfile::TempDir) {
        self.end();
        (self.home.clone(), std::mem::replace(&mut self._base, tempfile::tempdir().unwrap()))
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(keeper) = self.keeper.take() {
            keeper.join().unwrap();
        }
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end();
        }
    }
}

fn wish(expires_s: u64) -> Wish {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Wish { listen, hosts: vec!["127.0.0.1".into()], expires_s, keys: None, speaks: speaks(2) }
}

fn speaks(version: u32) -> Speaks {
    Speaks { language: format!("fleet {version}"), program: format!("0.{version}.0") }
}

fn subjects() -> Subjects {
    Subjects::of("demo").unwrap()
}

fn payloads(subscription: &Subscription, count: usize) -> Vec<Vec<u8>> {
    (0..count).map_while(|_| subscription.next(LONG)).map(|m| m.payload).collect()
}

/// Waits for what the broker does in its own time.
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn words<T: std::fmt::Debug>(outcome: Result<T, BusError>) -> String {
    outcome.unwrap_err().to_string()
}

#[test]
fn agents_and_their_conductor_hear_each_other() {
    let up = Up::new();
    let agents = ["lg-1", "lg-2"].map(|name| join(&up.token(), name).unwrap());
    let orders = agents.each_ref().map(|a| a.bus.subscribe(&subjects().order(&a.name)).unwrap());
    let calls = agents.each_ref().map(|a| a.bus.subscribe(&subjects().call()).unwrap());
    let conductor = up.fleet().connect("conductor").unwrap();
    let tells = conductor.subscribe(&subjects().tells()).unwrap();
    for agent in &agents {
        agent.bus.publish(&subjects().tell(&agent.name), agent.name.as_bytes()).unwrap();
    }
    let told: BTreeSet<_> = payloads(&tells, 2).into_iter().collect();
    assert_eq!(told, [b"lg-1".to_vec(), b"lg-2".to_vec()].into());
    conductor.publish(&subjects().order("lg-2"), b"go").unwrap();
    conductor.publish(&subjects().call(), b"who").unwrap();
    assert_eq!(payloads(&orders[1], 1), [b"go"]);
    assert!(calls.iter().all(|c| payloads(c, 1) == [b"who"]));
    assert_eq!(orders[0].next(QUIET), None);
    assert_eq!(agents.each_ref().map(|a| a.bus.denied()), [Vec::<String>::new(), Vec::new()]);
}

#[test]
fn a_thousand_large_frames_come_whole_and_in_order() {
    let up = Up::new();
    let agent = join(&up.token(), "lg-1").unwrap();
    let conductor = up.fleet().connect("conductor").unwrap();
    let frames = conductor.subscribe(&subjects().frames()).unwrap();
    for n in 0..1_000u32 {
        let frame = [&n.to_be_bytes()[..], &vec![7; 32 * 1024]].concat();
        while agent.bus.publish(&subjects().frame("lg-1"), &frame) == Err(BusError::Busy) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let came = payloads(&frames, 1_000);
    let numbers: Vec<u32> = came.iter().map(|f| u32::from_be_bytes([f[0], f[1], f[2], f[3]])).collect();
    assert_eq!(numbers, (0..1_000).collect::<Vec<_>>());
    assert!(came.iter().all(|f| f.len() == 4 + 32 * 1024));
    assert_eq!(frames.dropped(), 0);
    let e = agent.bus.publish(&subjects().frame("lg-1"), &vec![0; LARGEST_BYTES + 1]).unwrap_err();
    assert!(matches!(e, BusError::TooLarge { .. }));
}

/// Each of these subjects is tried by an agent that has no business there; the one whose they are says that nothing came.
#[test]
fn an_agent_can_neither_read_nor_command_another() {
    let up = Up::new();
    let (thief, victim) = (join(&up.token(), "thief").unwrap(), join(&up.token(), "victim").unwrap());
    let conductor = up.fleet().connect("conductor").unwrap();
    let s = subjects();
    let tells = conductor.subscribe(&s.tells()).unwrap();
    let frames = conductor.subscribe(&s.frames()).unwrap();
    let orders = victim.bus.subscribe(&s.order("victim")).unwrap();
    let reads =
        [s.order("victim"), s.tell("victim"), s.frame("victim"), s.clock("victim"), s.tells(), s.order("*")];
    let reads = reads.into_iter().chain([
        ">".into(),
        "fleet.>".into(),
        s.enrol(),
        "_INBOX.>".into(),
        "$SYS.>".into(),
    ]);
    let overheard: Vec<_> = reads.map(|subject| (thief.bus.subscribe(&subject).unwrap(), subject)).collect();
    for (n, subject) in
        [s.order("victim"), s.order("thief"), s.call(), s.over(), s.tell("victim"), s.frame("victim")]
            .iter()
            .enumerate()
    {
        thief.bus.publish(subject, format!("stolen {n}").as_bytes()).unwrap();
    }
    conductor.publish(&s.order("victim"), b"secret order").unwrap();
    assert_eq!(payloads(&orders, 1), [b"secret order"], "the order of the conductor, and no other");
    victim.bus.publish(&s.tell("victim"), b"secret answer").unwrap();
    victim.bus.publish(&s.frame("victim"), b"secret frame").unwrap();
    assert_eq!(payloads(&tells, 1), [b"secret answer"]);
    assert_eq!(payloads(&frames, 1), [b"secret frame"]);
    for (subscription, subject) in &overheard {
        assert_eq!(subscription.next(QUIET), None, "{subject}");
    }
    assert_eq!(orders.next(QUIET), None);
    eventually("all is denied", || thief.bus.denied().len() >= overheard.len() + 6);
    assert!(victim.bus.denied().is_empty() && conductor.denied().is_empty());
}

#[test]
fn a_newcomer_can_only_ask() {
    let up = Up::new();
    let agent = join(&up.token(), "lg-1").unwrap();
    let orders = agent.bus.subscribe(&subjects().order("lg-1")).unwrap();
    let door = NatsBus::connect(&up.broker(), &newcomer(&up.token().secret).unwrap(), "newcomer").unwrap();
    door.publish(&subjects().order("lg-1"), b"go").unwrap();
    door.publish(&subjects().enrolled(&agent.identity.public()), b"{}").unwrap();
    let all = door.subscribe("fleet.>").unwrap();
    let other = door.subscribe(&subjects().order("lg-1")).unwrap();
    eventually("all is denied", || door.denied().len() == 4);
    assert_eq!((orders.next(QUIET), all.next(QUIET), other.next(QUIET)), (None, None, None));
}

#[test]
fn without_a_known_key_nobody_gets_in() {
    let up = Up::new();
    let e = words(NatsBus::connect(&up.broker(), &Identity::random(), "stranger"));
    assert!(e.contains("does not know this key"), "{e}");
    let other = Token { secret: Secret([1; 32]), ..up.token() };
    let e = words(join(&other, "lg-1"));
    assert!(e.contains("does not know this key"), "{e}");
    // Nor does who speaks another language than the fleet's conductor, older or newer: it is told which.
    for version in [1, 3] {
        let e = words(join_as(&up.token(), "lg-1", Identity::random(), &speaks(version)));
        let its = format!(
            "it is plimsoll 0.{version}.0, which speaks 'fleet {version}', and the fleet was started by"
        );
        assert!(e.contains(&its) && e.contains("plimsoll 0.2.0, which speaks 'fleet 2'"), "{e}");
    }
    assert_eq!(up.fleet().roll().unwrap(), []);
}

#[test]
fn another_broker_is_not_taken_for_ours() {
    let (up, other) = (Up::new(), Up::new());
    let lured = Token { addresses: other.token().addresses, ..up.token() };
    let e = words(join(&lured, "lg-1"));
    assert!(e.contains("another broker, not the certificate of this fleet"), "{e}");
    let wrong = Broker { trust: Trust::Own(Pin([0; 32])), ..up.broker() };
    assert!(matches!(NatsBus::connect(&wrong, &up.fleet().conductor, "x"), Err(BusError::Refused { .. })));
    let nobody = Broker { addresses: vec!["127.0.0.1:1".into()], ..up.broker() };
    let e = NatsBus::connect(&nobody, &up.fleet().conductor, "x").unwrap_err();
    assert!(matches!(e, BusError::Unreachable { .. }), "{e}");
    let both = Token { addresses: vec!["127.0.0.1:1".into(), up.token().addresses[0].clone()], ..up.token() };
    join(&both, "lg-1").unwrap();
}

/// What the keeper answers to a question that is put as it is.
fn put(up: &Up, question: &Question) -> Option<EnrolAnswer> {
    let door = NatsBus::connect(&up.broker(), &newcomer(&up.token().secret).unwrap(), "newcomer").unwrap();
    let answers = door.subscribe(&subjects().enrolled(&question.key)).unwrap();
    door.publish(&subjects().enrol(), &serde_json::to_vec(question).unwrap()).unwrap();
    answers.next(Duration::from_secs(5)).map(|m| serde_json::from_slice(&m.payload).unwrap())
}

#[test]
fn a_replayed_enrolment_lets_nobody_in() {
    let up = Up::new();
    let identity = Identity::random();
    let question = Question::new("demo", &up.token().secret, &identity, "lg-1").unwrap();
    assert_eq!(put(&up, &question).unwrap().refused, None);
    let again = put(&up, &question).unwrap().refused.unwrap();
    assert!(again.contains("replayed"), "{again}");
    let forged = Question { name: "lg-2".into(), nonce: nonce(), ..question };
    let e = put(&up, &forged).unwrap().refused.unwrap();
    assert!(e.contains("secret"), "{e}");
}

/// Of the shape of ours.
fn nonce() -> String {
    Question::new("demo", &Secret([0; 32]), &Identity::random(), "x").unwrap().nonce
}

/// Whoever has the token knows the newcomers' key, and a thief may have another of the fleet's: with one of them twice in it the broker
/// would take no configuration any more.
#[test]
fn the_fleets_own_keys_cannot_be_enrolled() {
    let up = Up::new();
    let seed = |name: &str| std::fs::read_to_string(up.home.dir().join(name)).unwrap();
    let own = [
        newcomer(&up.token().secret).unwrap(),
        up.fleet().conductor,
        Identity::from_seed(&seed("system.seed")).unwrap(),
    ];
    let secret = up.token().secret;
    for (n, key) in own.iter().enumerate() {
        let question = Question::new("demo", &secret, key, &format!("twin-{n}")).unwrap();
        let e = put(&up, &question).unwrap().refused.unwrap();
        assert!(e.contains("one of the fleet's own"), "{e}");
    }
    let before = up.home.note().unwrap();
    join(&up.token(), "lg-1").unwrap();
    kill(before.broker_pid);
    eventually("it is started again", || up.home.note().unwrap().broker_pid != before.broker_pid);
    join(&up.token(), "lg-2").unwrap();
    assert_eq!(up.fleet().roll().unwrap().len(), 2);
}

#[test]
fn who_the_broker_does_not_take_is_refused_and_not_kept() {
    let up = Up::new();
    join(&up.token(), "lg-1").unwrap();
    let broker = up.home.note().unwrap().broker_pid;
    // It reads its certificate at each reload, and refuses all where that is none.
    let certificate = up.home.dir().join("certificate.pem");
    let kept = std::fs::read_to_string(&certificate).unwrap();
    std::fs::write(&certificate, "none").unwrap();
    let e = words(join(&up.token(), "lg-2"));
    assert!(e.contains("broker does not take it in"), "{e}");
    let names = || up.fleet().roll().unwrap().into_iter().map(|e| e.name).collect::<Vec<_>>();
    assert_eq!(names(), ["lg-1"]);
    // It has asked twice by then.
    let conf = || std::fs::read_to_string(up.home.dir().join("broker.conf")).unwrap();
    eventually("it is rolled back", || conf().contains("tell.lg-1") && !conf().contains("lg-2"));
    std::fs::write(&certificate, kept).unwrap();
    join(&up.token(), "lg-2").unwrap();
    assert_eq!((names().len(), up.home.note().unwrap().broker_pid), (2, broker));
}

#[test]
fn garbage_at_the_door_harms_nobody() {
    let up = Up::new();
    let door = NatsBus::connect(&up.broker(), &newcomer(&up.token().secret).unwrap(), "newcomer").unwrap();
    let question = Question::new("demo", &up.token().secret, &Identity::random(), "lg-1").unwrap();
    let bad_key = Question { key: "*".into(), ..question.clone() };
    let long = Question { nonce: "A".repeat(100_000), ..question };
    let [bad_key, long] = [bad_key, long].map(|q| serde_json::to_vec(&q).unwrap());
    for text in [&b""[..], b"{", &[0xff; 4096], &bad_key, &long] {
        door.publish(&subjects().enrol(), text).unwrap();
    }
    join(&up.token(), "lg-1").unwrap();
    assert_eq!(up.fleet().roll().unwrap().len(), 1);
}

#[test]
fn an_expired_token_opens_nothing_and_a_renewed_one_does() {
    let up = Up::until(now_s() + 2);
    let old = up.token();
    let early = join(&old, "early").unwrap();
    eventually("the token expires", || now_s() >= old.expires_s);
    let e = words(join(&old, "late"));
    assert!(e.contains("expired"), "{e}");
    // One whose clock is behind gets no further: the keeper has its own.
    let behind = Token { expires_s: old.expires_s + 3_600, ..old.clone() };
    let e = words(join(&behind, "late"));
    assert!(e.contains("does not know this key") || e.contains("has expired"), "{e}");
    let renewed = up.home.renew(now_s() + 60).unwrap();
    assert_ne!(renewed.secret, old.secret);
    let late = join(&renewed, "late").unwrap();
    assert!(words(join(&behind, "later")).contains("does not know this key"), "the old secret stays shut");
    let conductor = up.fleet().connect("conductor").unwrap();
    let tells = conductor.subscribe(&subjects().tells()).unwrap();
    conductor.publish(&subjects().call(), b"").unwrap();
    for agent in [&early, &late] {
        say_until_heard(agent, &tells);
    }
}

/// Says its name until the other side's subscription is there.
fn say_until_heard(agent: &Joined, tells: &Subscription) {
    let heard = || {
        agent.bus.publish(&subjects().tell(&agent.name), agent.name.as_bytes()).unwrap();
        std::iter::from_fn(|| tells.next(Duration::from_millis(100)))
            .any(|m| m.payload == agent.name.as_bytes())
    };
    eventually(&format!("{} is heard", agent.name), heard);
}

#[test]
fn two_agents_of_one_name_are_told_apart() {
    let up = Up::new();
    let first = join(&up.token(), "lg-1").unwrap();
    let e = words(join(&up.token(), "lg-1"));
    assert!(e.contains("another agent is connected under the name lg-1") && e.contains("--name"), "{e}");
    let roll = || up.fleet().roll().unwrap();
    eventually("it is connected", || roll()[0].client.is_some());
    assert_eq!(roll()[0].client.as_ref().unwrap().ip, "127.0.0.1");
    // It comes back with the same key, or another takes its place when it is gone.
    let Joined { bus, identity, .. } = first;
    drop(bus);
    let again = join_as(&up.token(), "lg-1", identity, &Speaks::default()).unwrap();
    drop(again);
    eventually("it is gone", || roll()[0].client.is_none());
    join(&up.token(), "lg-1").unwrap();
    assert_eq!(roll().len(), 1);
}

#[test]
fn those_who_are_in_do_not_notice_others_joining() {
    let up = Up::new();
    let first = join(&up.token(), "first").unwrap();
    let events = first.bus.events();
    let token = up.token();
    let joins: Vec<_> = (0..12)
        .map(|n| (n, token.clone()))
        .map(|(n, token)| std::thread::spawn(move || join(&token, &format!("lg-{n}")).unwrap()))
        .collect();
    let joined: Vec<_> = joins.into_iter().map(|j| j.join().unwrap()).collect();
    assert_eq!(up.fleet().roll().unwrap().len(), 13);
    let lost = std::iter::from_fn(|| events.next(QUIET)).any(|e| e == BusEvent::Disconnected);
    assert!(!lost && joined.len() == 12);
}

#[test]
fn a_broker_that_dies_comes_back_and_all_with_it() {
    let up = Up::new();
    let agent = join(&up.token(), "lg-1").unwrap();
    let conductor = up.fleet().connect("conductor").unwrap();
    let tells = conductor.subscribe(&subjects().tells()).unwrap();
    let events = agent.bus.events();
    say_until_heard(&agent, &tells);
    let before = up.home.note().unwrap();
    kill(before.broker_pid);
    assert!(std::iter::from_fn(|| events.next(LONG)).any(|e| e == BusEvent::Disconnected));
    say_until_heard(&agent, &tells);
    let after = up.home.note().unwrap();
    assert_ne!(before.broker_pid, after.broker_pid);
    assert_eq!(before.local, after.local);
    join(&up.token(), "lg-2").unwrap();
}

fn kill(pid: u32) {
    let status = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_fleet_in_use_is_not_ended_by_mistake() {
    let up = Up::new();
    let lease = up.fleet().lease("plimsoll object get").unwrap();
    let e = words(down(&up.home, false));
    assert!(
        e.contains("fleet demo is in use by plimsoll object get (process ") && e.contains("--force"),
        "{e}"
    );
    join(&up.token(), "lg-1").unwrap();
    drop(lease);
    assert_eq!(up.fleet().holder(), None);
}

#[test]
fn down_leaves_nothing() {
    let up = Up::new();
    let note = up.home.note().unwrap();
    let agent = join(&up.token(), "lg-1").unwrap();
    let e = words(Keeper::start(&up.home, wish(now_s() + 60)).map(|_| ()));
    assert!(e.contains("fleet demo is up already (process "), "{e}");
    let (home, _base) = up.down();
    assert!(!home.dir().exists());
    assert!(!Path::new(&format!("/proc/{}", note.broker_pid)).exists());
    assert!(words(home.open()).contains("no fleet demo is up"));
    assert_eq!(payloads(&agent.over, 1), [b"over"], "agents are told");
    agent.bus.publish(&subjects().tell("lg-1"), b"?").unwrap();
}
