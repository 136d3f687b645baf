//! How a broker and its keeper do with many agents at once: so many join at the same time, then all are asked, again and again.
//!
//!     cargo run --release -p plimsoll-bus --example crowd -- 1000

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_bus::enrol::{Joined, join};
use plimsoll_bus::keeper::{Home, Keeper, Wish, now_s};
use plimsoll_bus::subjects::agent_of;
use plimsoll_bus::token::Token;
use plimsoll_bus::{Bus, BusError, Speaks};

const ROUNDS: u32 = 8;
const FRAMES: u32 = 10;
const FRAME_BYTES: usize = 8 * 1024;
const WAIT: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agents: usize = std::env::args().nth(1).map_or(Ok(100), |n| n.parse())?;
    let base = std::env::temp_dir().join(format!("plimsoll-crowd-{}", std::process::id()));
    let home = Home::below(&base, "crowd")?;
    let stop = Arc::new(AtomicBool::new(false));
    let (ready, is_ready) = std::sync::mpsc::channel();
    let keeper = thread::spawn({
        let (home, stop) = (home.clone(), stop.clone());
        move || keep(&home, &stop, &ready)
    });
    is_ready.recv()?;
    let outcome = measure(&home, agents);
    stop.store(true, Ordering::SeqCst);
    keeper.join().map_err(|_| "the keeper panicked")??;
    // Only where the fleet left something is there anything.
    let _ = std::fs::remove_dir(&base);
    Ok(outcome?)
}

fn keep(home: &Home, stop: &AtomicBool, ready: &std::sync::mpsc::Sender<()>) -> Result<(), BusError> {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut keeper = Keeper::start(
        home,
        Wish {
            listen,
            hosts: vec!["127.0.0.1".into()],
            expires_s: now_s() + 3_600,
            keys: None,
            speaks: Speaks::default(),
        },
    )?;
    // Whoever waits for it is there.
    let _ = ready.send(());
    keeper.keep(|| stop.load(Ordering::SeqCst))?;
    keeper.end()
}

fn measure(home: &Home, count: usize) -> Result<(), BusError> {
    let token = home.token()?;
    let began = Instant::now();
    let joined = all_join(&token, count);
    println!("{} of {count} agents joined in {:.1} s", joined.len(), began.elapsed().as_secs_f64());
    let agents = Arc::new(joined);
    ask(home, &agents)?;
    frames(home, &agents)
}

fn all_join(token: &Token, count: usize) -> Vec<Joined> {
    let joins: Vec<_> = (0..count)
        .map(|n| {
            let token = token.clone();
            thread::spawn(move || join(&token, &format!("lg-{n}")).map_err(|e| eprintln!("lg-{n}: {e}")).ok())
        })
        .collect();
    joins.into_iter().filter_map(|j| j.join().ok().flatten()).collect()
}

/// All are called, and answer: how long until the last answer is there.
fn ask(home: &Home, agents: &Arc<Vec<Joined>>) -> Result<(), BusError> {
    let fleet = home.open()?;
    let conductor = fleet.connect("conductor")?;
    let subjects = &agents[0].subjects;
    let tells = conductor.subscribe(&subjects.tells())?;
    let calls: Vec<_> =
        agents.iter().map(|a| a.bus.subscribe(&a.subjects.call())).collect::<Result<_, _>>()?;
    let answering = agents.clone();
    let answers = thread::spawn(move || {
        for _ in 0..ROUNDS {
            for (agent, call) in answering.iter().zip(&calls) {
                if call.next(WAIT).is_some() {
                    // Whoever counts finds out.
                    let _ = agent.bus.publish(&agent.subjects.tell(&agent.name), b"here");
                }
            }
        }
    });
    for round in 0..ROUNDS {
        let began = Instant::now();
        conductor.publish(&subjects.call(), &round.to_be_bytes())?;
        let came = (0..agents.len()).map_while(|_| tells.next(WAIT)).count();
        println!("round {round}: {came} answers in {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
    }
    // A panic there is one of this example.
    answers.join().expect("the answering thread ends");
    Ok(())
}

/// All send what they measured, as fast as they may: is anything lost, or out of order?
fn frames(home: &Home, agents: &Arc<Vec<Joined>>) -> Result<(), BusError> {
    let conductor = home.open()?.connect("conductor")?;
    let frames = conductor.subscribe(&agents[0].subjects.frames())?;
    let events = conductor.events();
    let began = Instant::now();
    for n in 0..FRAMES {
        let frame = [&n.to_be_bytes()[..], &[7; FRAME_BYTES]].concat();
        for agent in agents.iter() {
            agent.bus.publish(&agent.subjects.frame(&agent.name), &frame)?;
        }
    }
    let all = agents.len() * FRAMES as usize;
    let mut next = std::collections::BTreeMap::<String, u32>::new();
    let mut out_of_order = 0;
    for message in (0..all).map_while(|_| frames.next(WAIT)) {
        let expected = next.entry(agent_of(&message.subject).to_owned()).or_default();
        out_of_order += u32::from(message.payload[..4] != expected.to_be_bytes());
        *expected += 1;
    }
    let came: u32 = next.values().sum();
    println!(
        "{came} of {all} frames of {FRAME_BYTES} bytes in {:.1} s, {out_of_order} out of order, {} dropped",
        began.elapsed().as_secs_f64(),
        frames.dropped()
    );
    for event in std::iter::from_fn(|| events.next(Duration::ZERO)) {
        println!("the conductor's connection: {event:?}");
    }
    Ok(())
}
