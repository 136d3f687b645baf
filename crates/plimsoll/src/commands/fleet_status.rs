//! The roll call of a fleet: who was let in, who is connected as the broker sees it, and what those who answer say of themselves. One
//! that is connected and silent hangs, or is another version.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plimsoll_bus::keeper::{Home, OpenFleet, RollEntry, now_s};
use plimsoll_bus::subjects::Subjects;
use plimsoll_bus::token::{Trust, in_words};
use plimsoll_fleet::{Present, clocks, roll_call};
use plimsoll_model::count::{are, counted};
use plimsoll_model::text::clean;
use plimsoll_model::units::{about_size, format_latency_ns};
use plimsoll_model::{AgentClock, HostFacts};
use plimsoll_report::table::Table;
use serde_json::{Value, json};

use super::fleet::{StatusArgs, WaitArgs};
use super::fleet_detached;
use crate::fault::{Exit, Fault};
use crate::output;
use crate::signals::{self, ProcessRole};

/// How long agents may take to answer; those that are connected are waited for no longer than they need.
const LISTEN: Duration = Duration::from_secs(3);
/// And no shorter: they say that they are there twice a second.
const ANSWER: Duration = Duration::from_secs(1);
/// How long agents are waited for, where nothing was said.
const FOR_AGENTS: Duration = Duration::from_secs(300);
/// Of the table of agents, in columns.
const WIDTH: usize = 110;

/// One agent, from both sides.
struct Member {
    /// As the broker sees it.
    seen: RollEntry,
    /// What it says; none: it does not answer.
    says: Option<Present>,
    /// How its clock lies to this machine's.
    clock: Option<AgentClock>,
}

pub fn status(a: &StatusArgs) -> Result<Exit, Fault> {
    let home = Home::of(&a.fleet.name)?;
    let fleet = home.open()?;
    let members = members(&fleet)?;
    let text = if a.json { as_json(&home, &fleet, &members) } else { as_text(&home, &fleet, &members) };
    output::print(&text)?;
    Ok(Exit::Valid)
}

/// Until so many are there and free, or until what goes on in the background has ended.
pub fn wait(a: &WaitArgs) -> Result<Exit, Fault> {
    let within = a.within.map(|span| span.0);
    match a.count {
        Some(count) => wait_for(&a.fleet.name, count as usize, within.unwrap_or(FOR_AGENTS)),
        None => fleet_detached::wait(&a.fleet.name, within),
    }
}

/// Who is there is told whenever that changes.
fn wait_for(name: &str, wanted: usize, within: Duration) -> Result<Exit, Fault> {
    signals::install(ProcessRole::Server);
    let fleet = Home::of(name)?.open()?;
    let bus = fleet.connect("plimsoll fleet wait")?;
    let subjects = Subjects::of(fleet.name())?;
    let until = Instant::now() + within;
    let free = |all: &[Present]| all.iter().filter(|p| p.is_free() && !p.speaks_otherwise()).count();
    let mut told = None;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        // Who was asked a moment ago has not answered yet: that is not to be nobody.
        let listen = left.clamp(ANSWER, LISTEN);
        let here = roll_call(&bus, &subjects, listen, &|all| free(all) >= wanted)?;
        if free(&here) >= wanted {
            output::tell(format_args!(
                "plimsoll: {} {} there: {}",
                counted(wanted, "agent"),
                are(wanted),
                names(&here)
            ));
            return Ok(Exit::Valid);
        }
        if told.replace(here.len()) != Some(here.len()) {
            output::tell(format_args!(
                "plimsoll: {} of {} {} there",
                here.len(),
                counted(wanted, "agent"),
                are(here.len())
            ));
        }
        if left.is_zero() || signals::was_asked_to_stop() {
            let foreign =
                here.iter().find_map(Present::is_foreign).map_or(String::new(), |why| format!("; {why}"));
            return Err(Fault::input(
                format!(
                    "{} {} wanted, and {} {} free, of: {}{foreign}",
                    counted(wanted, "agent"),
                    are(wanted),
                    free(&here),
                    are(free(&here)),
                    names(&here)
                ),
                "See `plimsoll fleet status`, and what the agents say on their machines.",
            ));
        }
    }
}

fn names(all: &[Present]) -> String {
    const SHOWN: usize = 16;
    let mut names: Vec<&str> = all.iter().take(SHOWN).map(|p| p.name.as_str()).collect();
    if all.len() > SHOWN {
        names.push("...");
    }
    if names.is_empty() { "nobody".to_owned() } else { clean(&names.join(", ")).into_owned() }
}

fn members(fleet: &OpenFleet) -> Result<Vec<Member>, Fault> {
    let is_guest = fleet.note.guest.is_some();
    let mut seen = fleet.roll()?;
    let connected = seen.iter().filter(|p| p.client.is_some()).count();
    let bus = fleet.connect("plimsoll fleet status")?;
    let subjects = Subjects::of(fleet.name())?;
    let answers = roll_call(&bus, &subjects, LISTEN, &|all| !is_guest && all.len() >= connected)?;
    if is_guest {
        // Who answers is there; who does not, nobody knows.
        seen = answers.iter().map(|p| RollEntry { name: p.name.clone(), client: None }).collect();
    }
    let mut clocks = clocks(&bus, &subjects, &answers)?;
    let mut answers: BTreeMap<String, _> = answers.into_iter().map(|p| (p.name.clone(), p)).collect();
    let member =
        |seen: RollEntry| Member { says: answers.remove(&seen.name), clock: clocks.remove(&seen.name), seen };
    Ok(seen.into_iter().map(member).collect())
}

impl Member {
    fn is_here(&self) -> bool {
        self.seen.client.is_some() || self.says.is_some()
    }

    fn state(&self) -> String {
        match (&self.seen.client, &self.says) {
            (None, None) => "gone".to_owned(),
            (Some(_), None) => "connected, but silent".to_owned(),
            (_, Some(says)) if says.speaks_otherwise() => "another version".to_owned(),
            (_, Some(says)) => says.state().to_owned(),
        }
    }
}

fn as_json(home: &Home, fleet: &OpenFleet, members: &[Member]) -> String {
    let agent = |m: &Member| {
        let (client, says) = (&m.seen.client, &m.says);
        json!({
            "name": m.seen.name,
            "connected": m.is_here(),
            "state": m.state(),
            "foreign": says.as_ref().and_then(Present::is_foreign),
            "address": client.as_ref().map(|c| &c.ip),
            "round_trip": client.as_ref().map(|c| &c.rtt),
            "run": says.as_ref().and_then(|s| s.run.as_ref()),
            "clock_offset_ns": m.clock.map(|c| c.offset_ns),
            "clock_bound_ns": m.clock.map(|c| c.bound_ns),
            "takes_credentials": says.as_ref().map(Present::takes_keys),
            "version": says.as_ref().map(Present::version),
            "labels": says.as_ref().map(Present::labels),
            // Plain data; were it not, it would be left out.
            "machine": says.as_ref().map_or(Value::Null, |s| serde_json::to_value(s.machine()).unwrap_or_default()),
        })
    };
    let all = json!({
        "fleet": fleet.name(),
        "broker": fleet.note.broker,
        "broker_of_others": fleet.note.guest.as_ref().map(|g| &g.url),
        "addresses": fleet.note.addresses,
        "token_expires_unix_s": fleet.note.door_expires_s,
        "in_use_by": fleet.holder(),
        "detached": fleet_detached::as_json(home),
        "agents": members.iter().map(agent).collect::<Vec<_>>(),
    });
    format!("{all:#}\n")
}

fn as_text(home: &Home, fleet: &OpenFleet, members: &[Member]) -> String {
    let left = Duration::from_secs(fleet.note.door_expires_s.saturating_sub(now_s()));
    let token = if left.is_zero() { "expired".to_owned() } else { format!("holds for {}", in_words(left)) };
    let here = members.iter().filter(|m| m.is_here()).count();
    let mut out = format!(
        "fleet {}: {here} of {} connected; {}; token {token}\n",
        fleet.name(),
        counted(members.len(), "agent"),
        fleet.holder().map_or_else(|| unheld(members), |who| format!("in use by {who}")),
    );
    out.push_str(&fleet_detached::line(home));
    if let Some(guest) = &fleet.note.guest {
        let plain = if guest.trust == Trust::Plain { ", and nothing is encrypted" } else { "" };
        out.push_str(&format!(
            "broker {} ({}) is its owner's: who else may listen and speak there is what its owner set{plain}\n",
            guest.url, fleet.note.broker
        ));
    }
    if !members.is_empty() {
        out.push_str(&table(members));
    }
    for why in members.iter().filter_map(|m| m.says.as_ref()?.is_foreign()) {
        out.push_str(&format!("{}: use the same version of plimsoll on all machines\n", clean(&why)));
    }
    out
}

/// Nobody holds the fleet; agents may work for one that has died.
fn unheld(members: &[Member]) -> String {
    let busy = members.iter().filter_map(|m| m.says.as_ref()).filter(|p| !p.is_free()).count();
    if busy == 0 {
        return "not in use".to_owned();
    }
    let who = if busy == 1 { "1 agent is".to_owned() } else { format!("{busy} agents are") };
    format!(
        "whoever used it is gone, and {who} still at work: each ends by itself once it has heard nothing for its --deadman"
    )
}

/// A round trip as the broker has it, in Go's words (`45.966642ms`), in ours.
fn round_trip(go: &str) -> String {
    let unit = go.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let ns = match unit {
        "ns" => 1.0,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return clean(go).into_owned(),
    };
    let number = go[..go.len() - unit.len()].parse::<f64>();
    number.map_or_else(|_| clean(go).into_owned(), |n| format_latency_ns(n * ns))
}

fn table(members: &[Member]) -> String {
    let heads = [
        "agent",
        "state",
        "host",
        ">cores",
        ">memory",
        "network",
        ">clock",
        "ceiling",
        "version",
        "labels",
        "address",
        ">round trip",
    ];
    let mut table = Table::new("Agents", 1, &heads);
    for m in members {
        let (ip, rtt) = m.seen.client.as_ref().map(|c| (c.ip.clone(), c.rtt.clone())).unwrap_or_default();
        let mut row = vec![m.seen.name.clone(), m.state()];
        row.extend(m.says.as_ref().map_or_else(|| vec![String::new(); 8], |says| facts(says, m.clock)));
        row.extend([ip, round_trip(&rtt)]);
        table.push(row);
    }
    table.without_empty_columns().plain(WIDTH)
}

/// What one says of its machine and of itself, in the order of the columns.
fn facts(says: &Present, clock: Option<AgentClock>) -> Vec<String> {
    let machine = says.machine();
    let cores = machine.cpu_quota_cores.map_or(machine.cpu_count.to_string(), |q| format!("{q:.1}"));
    let memory = machine.memory_limit_bytes.unwrap_or(machine.memory_bytes);
    let pairs = says.labels().iter().map(|(k, v)| format!("{k}={v}"));
    [
        machine.host.clone(),
        cores,
        about_size(memory),
        network(machine),
        clock.map_or(String::new(), bound),
        ceiling(machine),
        says.version().to_owned(),
        pairs.collect::<Vec<_>>().join(" "),
    ]
    .map(|text| clean(&text).into_owned())
    .into()
}

/// How sure its clock is. What it is ahead is said only where it can be compared with anything: of machines that were started at different
/// times that is not so.
fn bound(clock: AgentClock) -> String {
    format!("± {}", format_latency_ns(clock.bound_ns as f64))
}

/// Interfaces with their speed; the loopback carries nothing between machines.
fn network(machine: &HostFacts) -> String {
    let speed = |(name, mbit): (&String, &Option<u64>)| match mbit {
        Some(mbit) => format!("{name} {mbit} Mbit/s"),
        None => name.clone(),
    };
    machine.nics.iter().filter(|(name, _)| *name != "lo").map(speed).collect::<Vec<_>>().join(", ")
}

/// What `plimsoll calibrate` found there, where it was run.
fn ceiling(machine: &HostFacts) -> String {
    machine.ceiling.iter().map(|(what, value)| format!("{what} {value:.0}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_told_as_other_times_are() {
        assert_eq!(round_trip("472\u{b5}s"), format_latency_ns(472e3));
        assert_eq!(round_trip("45.966642ms"), format_latency_ns(45.966_642e6));
        assert_eq!(round_trip("1m2.5s"), "1m2.5s");
        assert_eq!(round_trip(""), "");
    }

    #[test]
    fn a_machine_is_told_by_what_bounds_it() {
        let mut machine = HostFacts { cpu_count: 8, ..HostFacts::default() };
        machine.nics =
            [("eth0".to_owned(), Some(10_000)), ("lo".to_owned(), None), ("wg0".to_owned(), None)].into();
        machine.ceiling = [("null".to_owned(), 1_234_567.8)].into();
        assert_eq!(network(&machine), "eth0 10000 Mbit/s, wg0");
        assert_eq!(ceiling(&machine), "null 1234568");
    }

    #[test]
    fn one_that_does_not_answer_is_told_from_one_that_is_gone() {
        let client =
            plimsoll_bus::keeper::Client { key: "U".into(), ip: "10.0.0.8".into(), rtt: "1ms".into() };
        let seen = |client| RollEntry { name: "lg-1".into(), client };
        let gone = Member { seen: seen(None), says: None, clock: None };
        let silent = Member { seen: seen(Some(client)), says: None, clock: None };
        assert_eq!([gone.state(), silent.state()], ["gone", "connected, but silent"]);
        let text = table(&[gone, silent]);
        assert!(text.contains("10.0.0.8") && !text.contains("memory"), "{text}");
    }
}
