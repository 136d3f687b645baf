//! Many agents, slow ones among them: nobody is passed over in silence, and nobody is drowned in orders.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_bus::subjects::Subjects;
use plimsoll_bus::{Bus, Identity, MemoryBus, Speaks, Subscription, Weather};
use plimsoll_setup::Interrupt;

use super::ask::Barrier;
use super::choice::Choice;
use super::link::OpenLink;
use super::recruit::{Fleet, FleetOptions};
use super::roll_call::Present;
use crate::agent::json;
use crate::wire::order::{Assignment, Order};
use crate::wire::seal::Envelope;
use crate::wire::tell::{AgentTold, Tell};
use crate::wire::{VERSION, pieces, speaks};

/// An agent that answers a call after its own time.
fn answers(network: &MemoryBus, subjects: &Subjects, name: &str, after: Duration) -> JoinHandle<()> {
    let (bus, subject) = (network.client(), subjects.tell(name));
    let calls = bus.subscribe(&subjects.call()).unwrap();
    let here = Present::for_tests(name, "z", None).here;
    std::thread::spawn(move || {
        calls.next(Duration::from_secs(20)).unwrap();
        std::thread::sleep(after);
        let tell = Tell::Here(Box::new(here));
        let told = AgentTold { version: VERSION, session: String::new(), run: None, tell };
        bus.publish(&subject, &pieces::split(0, &json(&told), 1 << 18)[0]).unwrap();
    })
}

/// A fleet of agents that answer after so many milliseconds, of which these are connected.
fn fleet(agents: &[(&str, u64)], connected: &[&str], choice: Choice) -> (Fleet, Vec<JoinHandle<()>>) {
    let (network, subjects) = (MemoryBus::new(Weather::default()), Subjects::of("test").unwrap());
    let answer = |(name, ms): &(&str, u64)| answers(&network, &subjects, name, Duration::from_millis(*ms));
    let threads = agents.iter().map(answer).collect();
    let options = FleetOptions { choice, ..FleetOptions::default() };
    let connected: BTreeSet<String> = connected.iter().map(|n| (*n).to_owned()).collect();
    let fleet = Fleet::new(Arc::new(network.client()), subjects, Identity::random(), options);
    (fleet.knowing(move || Some(connected.clone())), threads)
}

#[test]
fn who_is_connected_is_waited_for_and_who_is_silent_is_named() {
    let (slow, threads) = fleet(&[("a", 0), ("b", 2000)], &["a", "b"], Choice::All);
    let chosen = slow.chosen().unwrap();
    let names: Vec<&str> = chosen.agents.iter().map(|p| p.name.as_str()).collect();
    assert_eq!((names, chosen.silent), (vec!["a", "b"], None));
    threads.into_iter().for_each(|t| t.join().unwrap());

    let many: Vec<String> = (0..11).map(|n| format!("lg-{n:02}")).collect();
    let connected: Vec<&str> = many.iter().map(String::as_str).chain(["a"]).collect();
    let (silent, threads) = fleet(&[("a", 0)], &connected, Choice::All);
    let said = silent.chosen().unwrap().silent.unwrap();
    assert!(said.starts_with("11 agents are connected and did not answer within 3."), "{said}");
    assert!(said.ends_with(": lg-00, lg-01, lg-02, lg-03, lg-04, lg-05, lg-06, lg-07 and 3 more"), "{said}");
    threads.into_iter().for_each(|t| t.join().unwrap());

    let (few, threads) = fleet(&[("a", 0)], &["a", "b"], Choice::Count(2));
    let why = few.chosen().err().unwrap().to_string();
    assert!(why.contains("2 agents are wanted, and 1 is free, of a; 1 agent is connected"), "{why}");
    threads.into_iter().for_each(|t| t.join().unwrap());
}

/// An agent of another version, whose words are another version's, too.
fn answers_otherwise(
    network: &MemoryBus,
    subjects: &Subjects,
    name: &str,
    said: &'static str,
) -> JoinHandle<Speaks> {
    let (bus, subject) = (network.client(), subjects.tell(name));
    let calls = bus.subscribe(&subjects.call()).unwrap();
    std::thread::spawn(move || {
        let call = calls.next(Duration::from_secs(20)).unwrap();
        bus.publish(&subject, &pieces::split(0, said.as_bytes(), 1 << 18)[0]).unwrap();
        serde_json::from_slice(&call.payload).unwrap()
    })
}

#[test]
fn who_is_of_another_version_is_named_with_it_and_not_silent() {
    let newer = r#"{"version":99,"session":"s","run":null,"tell":{"here":{"language":"fleet 99, plan 2","version":"0.9.0","state":"dancing"}}}"#;
    let older = r#"{"version":1,"session":"s","tell":{"there":{"state":"free"}}}"#;
    let said = |said: &'static str, choice: Choice| {
        let (network, subjects) = (MemoryBus::new(Weather::default()), Subjects::of("test").unwrap());
        let ours = answers(&network, &subjects, "b", Duration::ZERO);
        let other = answers_otherwise(&network, &subjects, "a", said);
        let options = FleetOptions { choice, ..FleetOptions::default() };
        let connected: BTreeSet<String> = ["a", "b"].map(str::to_owned).into();
        let fleet = Fleet::new(Arc::new(network.client()), subjects, Identity::random(), options);
        let chosen = fleet.knowing(move || Some(connected.clone())).chosen();
        ours.join().unwrap();
        assert_eq!(other.join().unwrap(), speaks(), "who calls says what it speaks");
        chosen.map(|c| c.agents.into_iter().map(|p| p.name).collect::<Vec<_>>()).map_err(|e| e.to_string())
    };
    let why = said(newer, Choice::All).unwrap_err();
    assert!(
        why.contains("agent a is plimsoll 0.9.0, which speaks 'fleet 99, plan 2', and this is plimsoll "),
        "{why}"
    );
    assert!(why.contains("same version of plimsoll on all machines"), "{why}");
    let why = said(older, Choice::Count(2)).unwrap_err();
    assert!(why.contains("agent a is plimsoll of an unknown version, which speaks 'fleet 1', and"), "{why}");
    // Where the others are enough, it is left out.
    assert_eq!(said(newer, Choice::Count(1)), Ok(vec!["b".to_owned()]));
}

/// Orders to do something, of those that came.
fn work(orders: &Subscription) -> usize {
    let all = std::iter::from_fn(|| orders.next(Duration::ZERO));
    let envelopes = all.map(|m| serde_json::from_slice::<Envelope>(&m.payload[16 + 64..]).unwrap());
    envelopes.filter(|e| matches!(e.order, Order::Work { .. })).count()
}

#[test]
fn what_takes_long_is_said_again_more_and_more_seldom() {
    let (network, subjects) = (MemoryBus::new(Weather::default()), Subjects::of("test").unwrap());
    let (bus, identity) = (Arc::new(network.client()), Arc::new(Identity::random()));
    let orders = network.client().subscribe(&subjects.order("a")).unwrap();
    let present = [Present::for_tests("a", "z", None)];
    let open = OpenLink::new(bus, &subjects, identity, "r1", &present, Duration::from_secs(60)).unwrap();
    let (enough, begun) = (Arc::new(AtomicBool::new(false)), Instant::now());
    let ender = std::thread::spawn({
        let enough = Arc::clone(&enough);
        move || {
            std::thread::sleep(Duration::from_millis(2500));
            enough.store(true, Ordering::Release);
        }
    });
    let (interrupt, mut quiet) = (Interrupt::default(), |_| {});
    let asked = Barrier { give_up: enough.into(), ..Barrier::new("filling", &interrupt, &mut quiet) };
    open.link.ask(vec![(0, Assignment::Rest)], asked).unwrap_err();
    ender.join().unwrap();
    // After 0.3, 0.9, 2.1 and 4.5 s; at three a second it would be eight by now.
    let said = work(&orders);
    let at_most = 2 + (begun.elapsed().as_secs_f64() / 0.3 + 1.0).log2() as usize;
    assert!((2..=at_most).contains(&said), "{said} of at most {at_most}");
}
