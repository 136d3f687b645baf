//! What the clocks of agents say, outside of a run: for the roll call.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use plimsoll_bus::subjects::{Subjects, agent_of};
use plimsoll_bus::{Bus, BusError, Subscription};
use plimsoll_engine::ring::monotonic_ns;
use plimsoll_model::AgentClock;

use super::roll_call::Present;
use super::rounds::{BETWEEN, TOGETHER};
use crate::agent::{ClockProbe, ProbeEcho, json};
use crate::clock::{ClockFit, Echo, PROBES};

/// The last answers may be on their way for so long.
const LAST: Duration = Duration::from_secs(1);

/// By agent: how far its clock is ahead of this machine's, and how sure that is. Who does not answer is missing. They are asked some at a
/// time, as in a run.
pub fn clocks(
    bus: &dyn Bus,
    subjects: &Subjects,
    agents: &[Present],
) -> Result<BTreeMap<String, AgentClock>, BusError> {
    let from = bus.subscribe(&subjects.clock_echoes())?;
    let mut known = BTreeMap::new();
    for some in agents.chunks(TOGETHER) {
        known.extend(round(bus, subjects, &from, some));
    }
    Ok(known)
}

/// What was asked of an agent, and what it answered.
#[derive(Default)]
struct Asked<'a> {
    session: &'a str,
    open: Vec<u64>,
    echoes: Vec<Echo>,
}

fn round(
    bus: &dyn Bus,
    subjects: &Subjects,
    from: &Subscription,
    some: &[Present],
) -> BTreeMap<String, AgentClock> {
    let mut asked: HashMap<&str, Asked<'_>> =
        some.iter().map(|a| (a.name.as_str(), Asked { session: &a.session, ..Asked::default() })).collect();
    for _ in 0..PROBES {
        for (name, asked) in &mut asked {
            let probe = ClockProbe { asked_ns: monotonic_ns() };
            asked.open.push(probe.asked_ns);
            // One that is lost is one of many.
            let _ = bus.publish(&subjects.clock(name), &json(&probe));
        }
        hear(from, BETWEEN, &mut asked, false);
    }
    hear(from, LAST, &mut asked, true);
    let now_ns = monotonic_ns();
    let known = |(name, asked): (&str, Asked<'_>)| {
        let mut fit = ClockFit::default();
        fit.add(&asked.echoes);
        Some((name.to_owned(), fit.at(now_ns)?))
    };
    asked.into_iter().filter_map(known).collect()
}

/// Answers, for so long, or (`are_last`) until there are as many as were asked for.
fn hear(from: &Subscription, time: Duration, asked: &mut HashMap<&str, Asked<'_>>, are_last: bool) {
    let until = Instant::now() + time;
    let mut open: usize = asked.values().map(|a| a.open.len()).sum();
    while (open > 0 || !are_last)
        && let Some(message) = from.next(until.saturating_duration_since(Instant::now()))
    {
        let had_ns = monotonic_ns();
        let Some(asked) = asked.get_mut(agent_of(&message.subject)) else { continue };
        let Ok(echo) = serde_json::from_slice::<ProbeEcho>(&message.payload) else { continue };
        let ProbeEcho { asked_ns, heard_ns, answered_ns, session } = echo;
        // Each question has one answer; those of a conductor that asks at the same time are not ours.
        let Some(at) = asked.open.iter().position(|a| *a == asked_ns) else { continue };
        if asked.session == session && answered_ns >= heard_ns {
            asked.open.swap_remove(at);
            open -= 1;
            asked.echoes.push(Echo { asked_ns, heard_ns, answered_ns, had_ns });
        }
    }
}
