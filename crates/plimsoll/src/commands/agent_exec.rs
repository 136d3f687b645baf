//! What `agent` does: joins, and waits for orders until it is told to stop.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_bus::Login;
use plimsoll_bus::enrol::join_with;
use plimsoll_bus::subjects::name_from;
use plimsoll_bus::token::{Token, in_words};
use plimsoll_bus::{Bus as _, BusEvent};
use plimsoll_fleet::{AgentOptions, Bounds, FleetAgent, ROLE, SERVER};
use plimsoll_net::AllowedNetworks;
use plimsoll_run::ceiling::Calibration;
use plimsoll_run::sample::host_name;
use plimsoll_run::{Options, RunError};
use plimsoll_setup::Interrupt;

use super::agent::AgentCommand;
use crate::fault::{Exit, Fault};
use crate::measure::is_identified;
use crate::signals::{self, ProcessRole};
use crate::{launch, output, runs_dir};

/// As `plimsoll calibrate` does it, for the conductor that asks.
fn calibrate(
    duration: Duration,
    runs: &Path,
    interrupt: &Interrupt,
    tell: &mut dyn FnMut(plimsoll_model::Event),
) -> Result<Calibration, RunError> {
    let options = Options {
        root: runs.to_owned(),
        rerun: "plimsoll calibrate".into(),
        commit: env!("PLIMSOLL_COMMIT").into(),
        interrupt: interrupt.clone(),
        ..Options::default()
    };
    plimsoll_suites::calibrate(&options, duration, tell)
}

/// Whether it is to stop is asked so often.
const LOOK: Duration = Duration::from_millis(100);

/// Many times the longest token.
const LONGEST_TOKEN: u64 = 64 * 1024;

/// The token itself, of what `--join` says: the command line is open to all users of a machine, as long as the agent lives.
fn token_text(join: &str) -> Result<String, Fault> {
    if join != "-" && !join.starts_with('@') {
        return Ok(join.to_owned());
    }
    line_from(join, "--join", "what `plimsoll fleet token` prints")
        .map_err(|e| Fault { what: format!("no token can be read from {}", e.what), ..e })
}

/// The first line of what `@FILE` or `-` names, for a flag that is given `what`.
pub fn line_from(place: &str, flag: &str, what: &str) -> Result<String, Fault> {
    let read = match place.strip_prefix('@') {
        Some(path) => File::open(path).and_then(first_line),
        None => first_line(std::io::stdin()),
    };
    read.map_err(|e| {
        let from = place.strip_prefix('@').unwrap_or("standard input");
        Fault::input(format!("{from}: {e}"), format!("Give {flag} @FILE or {flag} - {what}."))
    })
}

/// Not to its end, which a terminal never comes to.
fn first_line(from: impl Read) -> std::io::Result<String> {
    let mut line = String::new();
    BufReader::new(from.take(LONGEST_TOKEN)).read_line(&mut line)?;
    Ok(line)
}

/// How long an agent has had nothing to do, and may.
struct Idle {
    most: Option<Duration>,
    since: Instant,
    over: bool,
}

impl Idle {
    fn new(most: Option<Duration>) -> Self {
        Self { most, since: Instant::now(), over: false }
    }

    fn is_over(&mut self, at_work: bool) -> bool {
        if at_work {
            self.since = Instant::now();
        }
        self.over = self.most.is_some_and(|most| self.since.elapsed() > most);
        self.over
    }

    /// Why it ends, if that is why.
    fn words(&self) -> Option<String> {
        let most = self.most.filter(|_| self.over)?;
        Some(format!("no run has needed it for {}", in_words(most)))
    }
}

/// Of the place that it was started in, and as they were given; the role of a server is one of them, which all can see.
fn labels(c: &AgentCommand, env: &dyn Fn(&str) -> Option<String>) -> Result<BTreeMap<String, String>, Fault> {
    let mut out: BTreeMap<String, String> =
        launch::place::labels(env).into_iter().chain(c.labels.iter().cloned()).collect();
    if c.role == SERVER {
        out.insert(ROLE.into(), SERVER.into());
    } else if out.get(ROLE).is_some_and(|role| role == SERVER) {
        return Err(Fault::input("--label role=server says what --role says", "Give --role server."));
    }
    Ok(out)
}

pub fn agent(c: &AgentCommand) -> Result<Exit, Fault> {
    // As long as it waits for somebody to write the token there is nothing to end in order.
    let token = Token::parse(&token_text(&c.join)?)?;
    signals::install(ProcessRole::Server);
    let env = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let here = || launch::place::name(&env).unwrap_or_else(host_name);
    let name = c.name.clone().unwrap_or_else(|| name_from(&here()));
    let joined =
        join_with(&token, &name, &Login::find(c.creds.as_deref(), &env)?, &plimsoll_fleet::speaks())?;
    let bus = Arc::new(joined.bus);
    let news = bus.events();
    let options = AgentOptions {
        name: joined.name,
        labels: labels(c, &env)?,
        runs: runs_dir::root(c.runs_dir.as_deref()),
        bounds: Bounds {
            devices: c.allow_device.clone(),
            dirs: c.allow_dir.clone(),
            endpoints: c.allow_endpoint.clone(),
            max_duration: c.max_duration.map(|d| d.0),
            nets: AllowedNetworks::of(&c.allow_net).map_err(|why| {
                Fault::input(format!("--allow-net: {why}"), "For example --allow-net 10.0.0.0/8.")
            })?,
            network_only: c.role == SERVER,
        },
        conductor: joined.conductor,
        keep: c.keep_records,
        takes_keys_by: (!c.refuse_credentials).then(|| token.secret.clone()),
        calibrate: Some(calibrate),
        identity: if is_identified() { plimsoll_setup::identity::identity() } else { BTreeMap::new() },
        clock_ahead_ns: c.clock_ahead,
        clock_jump: c.clock_jump.zip(c.clock_jump_after).map(|(by, after)| (after.0, by)),
    };
    let tell = |text: String| output::tell(format_args!("plimsoll agent: {text}"));
    let agent = FleetAgent::start(bus, &joined.subjects, options, tell)?;
    tell(format!("{name} waits for orders of fleet {}", token.fleet));
    let (mut dismissed, mut idle) = (false, Idle::new(c.until_idle.map(|t| t.0)));
    while !signals::was_asked_to_stop() && !agent.is_over() && !dismissed && !idle.is_over(agent.is_at_work())
    {
        match news.next(LOOK) {
            Some(BusEvent::Disconnected) => {
                tell("the fleet's broker is gone; trying to reach it again".into())
            }
            Some(BusEvent::Connected) => tell("connected".into()),
            Some(BusEvent::Dropped(n)) => {
                tell(format!("{n} messages came faster than they were read, and are lost"))
            }
            None => {}
        }
        dismissed = joined.over.next(Duration::ZERO).is_some();
    }
    if dismissed {
        tell(format!("fleet {} is over", token.fleet));
    } else if let Some(text) = idle.words() {
        tell(text);
    } else if agent.is_over() {
        return Err(Fault::input("the connection to the fleet has ended", "Join again with a new token."));
    }
    agent.stop();
    tell("stopped".into());
    Ok(Exit::Valid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_from_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        std::fs::write(&file, "plimsoll-join-x\nmore").unwrap();
        let at = format!("@{}", file.display());
        assert_eq!(token_text(&at).unwrap().trim(), "plimsoll-join-x");
        assert_eq!(token_text("plimsoll-join-y").unwrap(), "plimsoll-join-y");
        let e = token_text(&format!("{at}.none")).unwrap_err().to_string();
        assert!(e.contains("no token can be read from") && e.contains("token.none"), "{e}");
        std::fs::write(&file, "A".repeat(1 << 20)).unwrap();
        assert!(token_text(&at).unwrap().len() <= 64 * 1024);
    }
}
