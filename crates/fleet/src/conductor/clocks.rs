//! What the clocks of agents say, outside of a run: for the roll call.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plimsoll_bus::subjects::{Subjects, agent_of};
use plimsoll_bus::{Bus, BusError, Subscription};
use plimsoll_engine::ring::monotonic_ns;
use plimsoll_model::AgentClock;

use super::roll_call::Present;
use crate::agent::{ClockProbe, ProbeEcho, json};
use crate::clock::{ClockFit, Echo, PROBES};

/// Between two questions.
const BETWEEN: Duration = Duration::from_millis(3);
/// The last answers may be on their way for so long.
const LAST: Duration = Duration::from_secs(1);

/// By agent: how far its clock is ahead of this machine's, and how sure that is. Who does not answer is missing.
pub fn clocks(
    bus: &dyn Bus,
    subjects: &Subjects,
    agents: &[Present],
) -> Result<BTreeMap<String, AgentClock>, BusError> {
    let from = bus.subscribe(&subjects.clock_echoes())?;
    let mut asked: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut echoes: BTreeMap<String, Vec<Echo>> = BTreeMap::new();
    let wanted = agents.len() * PROBES as usize;
    for _ in 0..PROBES {
        for agent in agents {
            let probe = ClockProbe { asked_ns: monotonic_ns() };
            asked.entry(&agent.name).or_default().push(probe.asked_ns);
            // One that is lost is one of many.
            let _ = bus.publish(&subjects.clock(&agent.name), &json(&probe));
        }
        hear(&from, BETWEEN, agents, &mut asked, &mut echoes, wanted);
    }
    hear(&from, LAST, agents, &mut asked, &mut echoes, wanted);
    let now_ns = monotonic_ns();
    let known = |(name, all): (String, Vec<Echo>)| {
        let mut fit = ClockFit::default();
        fit.add(&all);
        Some((name, fit.at(now_ns)?))
    };
    Ok(echoes.into_iter().filter_map(known).collect())
}

/// Answers, for so long, or until there are as many as are wanted.
fn hear(
    from: &Subscription,
    time: Duration,
    agents: &[Present],
    asked: &mut BTreeMap<&str, Vec<u64>>,
    echoes: &mut BTreeMap<String, Vec<Echo>>,
    wanted: usize,
) {
    let until = Instant::now() + time;
    while echoes.values().map(Vec::len).sum::<usize>() < wanted
        && let Some(message) = from.next(until.saturating_duration_since(Instant::now()))
    {
        let had_ns = monotonic_ns();
        let name = agent_of(&message.subject);
        let Ok(echo) = serde_json::from_slice::<ProbeEcho>(&message.payload) else { continue };
        let ProbeEcho { asked_ns, heard_ns, answered_ns, session } = echo;
        let is_its = agents.iter().any(|a| a.name == name && a.session == session);
        // Each question has one answer; those of a conductor that asks at the same time are not ours.
        let open = asked.get_mut(name).and_then(|all| Some((all.iter().position(|a| *a == asked_ns)?, all)));
        if let (true, Some((at, all)), true) = (is_its, open, answered_ns >= heard_ns) {
            all.swap_remove(at);
            let echo = Echo { asked_ns, heard_ns, answered_ns, had_ns };
            echoes.entry(name.to_owned()).or_default().push(echo);
        }
    }
}
