//! Many agents in one process, for measuring what a conductor of many takes: each with a key, a name, a connection and records of its own, and
//! the same code that `plimsoll agent` runs.
//!
//!     PLIMSOLL_JOIN=$(plimsoll fleet token) cargo run --release -p plimsoll-fleet --example crowd -- FIRST COUNT DIR
//!
//! Agents lg-FIRST to lg-(FIRST+COUNT-1) join and wait for orders, each with its records in DIR/runs-N; that they are there is printed, and
//! they leave when standard input ends. What one of them tells goes to standard error, behind its name.

use std::error::Error;
use std::io::{Read, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use plimsoll_bus::BusError;
use plimsoll_bus::enrol::{Joined, join};
use plimsoll_bus::token::Token;
use plimsoll_fleet::{AgentOptions, Bounds, FleetAgent};

/// So many join at the same time. The fleet's keeper lets in together those who come together, so that few at a time take long; handshakes
/// are done some at a time by whatever makes the connections.
const AT_ONCE: u32 = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "PLIMSOLL_JOIN=TOKEN crowd FIRST COUNT DIR";
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [first, count, dir] = &args[..] else { return Err(usage.into()) };
    let (first, count): (u32, u32) = (first.parse()?, count.parse()?);
    let token = Token::parse(std::env::var("PLIMSOLL_JOIN").map_err(|_| usage)?.trim())?;
    let agents = all(&token, first, count, Path::new(dir))?;
    println!("{} agents wait for orders of fleet {}", agents.len(), token.fleet);
    stdout().flush()?;
    // Its end is what is waited for; what comes before it is of no meaning.
    let _ = stdin().read_to_end(&mut Vec::new());
    // Each waits for its own threads: one after the other they would take minutes.
    let ends: Vec<_> = agents.into_iter().map(|agent| thread::spawn(move || agent.stop())).collect();
    for end in ends {
        end.join().map_err(|_| "an agent panicked")?;
    }
    Ok(())
}

/// The agents of these numbers, once all of them are there.
fn all(token: &Token, first: u32, count: u32, dir: &Path) -> Result<Vec<FleetAgent>, BusError> {
    let next = AtomicU32::new(first);
    let some = || {
        let mut agents = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= first + count {
                return Ok(agents);
            }
            let runs = dir.join(format!("runs-{number}"));
            agents.push(agent(join(token, &format!("lg-{number}"))?, runs)?);
        }
    };
    let parts: Vec<Result<Vec<FleetAgent>, BusError>> = thread::scope(|scope| {
        let joining: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(some)).collect();
        let part = |j: thread::ScopedJoinHandle<'_, _>| j.join().expect("who joins does not panic");
        joining.into_iter().map(part).collect()
    });
    parts.into_iter().collect::<Result<Vec<_>, _>>().map(|parts| parts.into_iter().flatten().collect())
}

fn agent(joined: Joined, runs: PathBuf) -> Result<FleetAgent, BusError> {
    let name = joined.name.clone();
    let options = AgentOptions {
        name: joined.name,
        labels: [("crowd".to_owned(), std::process::id().to_string())].into(),
        runs,
        bounds: Bounds::default(),
        conductor: joined.conductor,
        keep: Default::default(),
        takes_keys_by: None,
        calibrate: None,
        identity: Default::default(),
        clock_ahead_ns: 0,
        clock_jump: None,
    };
    let tell = move |text: String| eprintln!("{name}: {text}");
    FleetAgent::start(Arc::new(joined.bus), &joined.subjects, options, tell)
}
