//! Threads that take what comes from agents to where it is waited for.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_bus::subjects::agent_of;
use plimsoll_bus::{BusError, Message, Subscription};
use plimsoll_crew::{Arrival, CrewError, FromAgent, WINDOW};
use plimsoll_engine::ring::monotonic_ns;
use plimsoll_model::{Event, Sample};

use super::known::{Inside, KnownAgent, StagePart, StageUnderway};
use super::link::Link;
use crate::agent::ProbeEcho;
use crate::clock::Echo;
use crate::frame::envelope;
use crate::wire::VERSION;
use crate::wire::tell::{AgentTold, State, Tell, There};

/// Whether there is still somebody who waits is asked so often.
const LOOK: Duration = Duration::from_millis(100);

/// Samples lie a second apart; nearer ones are not of use. (A choice.)
const SAMPLES_APART_NS: u64 = 100_000_000;
/// Of a machine with thousands of devices and interfaces, many times over.
const LONGEST_SAMPLE: usize = 1 << 20;
/// What an agent told of its work and nobody took yet: more is no work. (A choice: it tells of it four times a second.)
const EVENTS: usize = 1024;
/// Frames ahead of those that the collector has taken from: while it is behind, an agent keeps what is further ahead, and is asked for
/// it again. (A choice: a quarter of what an inbox takes, so that no honest agent is beyond it.)
const AHEAD: u64 = WINDOW / 4;
/// No slice is so far ahead of our clock: clocks are known to milliseconds.
const AHEAD_NS: u64 = 60_000_000_000;
/// On the virtual clock, no slice is so far ahead of the one before: somebody would have done something in a day.
const AHEAD_VIRTUAL_NS: u64 = 86_400_000_000_000;

/// Three of them: what agents say, what they measured, and their clocks, whose answers must not wait behind the others.
pub fn start(link: &Arc<Link>) -> Result<Vec<JoinHandle<()>>, CrewError> {
    let subjects = &link.subjects;
    let subscribe = |subject: String| link.bus.subscribe(&subject).map_err(gone);
    Ok(vec![
        listen("fleet-tells", link, subscribe(subjects.tells())?, told)?,
        listen("fleet-frames", link, subscribe(subjects.frames())?, measured)?,
        listen("fleet-clocks", link, subscribe(subjects.clock_echoes())?, echoed)?,
    ])
}

/// The bus as a crew's trouble.
pub fn gone(e: BusError) -> CrewError {
    match e {
        BusError::Unreachable { problem, remedy } | BusError::Refused { problem, remedy } => {
            CrewError::input(problem, remedy)
        }
        other => CrewError::input(other.to_string(), "Look at the fleet with: plimsoll fleet status"),
    }
}

pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, CrewError> {
    crate::agent::spawn(name, body).map_err(gone)
}

fn listen(
    name: &str,
    link: &Arc<Link>,
    subscription: Subscription,
    take: fn(&Link, Message),
) -> Result<JoinHandle<()>, CrewError> {
    let link = Arc::clone(link);
    let named = name.to_owned();
    spawn(name, move || {
        let _watched = Watched { name: &named, link: &link };
        while link.is_open() && !subscription.closed() {
            if let Some(message) = subscription.next(LOOK) {
                take(&link, message);
            }
        }
    })
}

/// In a thread without which nothing can be conducted: where it dies, the run ends.
pub struct Watched<'a> {
    pub name: &'a str,
    pub link: &'a Link,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.link.died(self.name);
        }
    }
}

/// What an agent says.
fn told(link: &Link, message: Message) {
    let mut inside = link.lock();
    let Some(number) = inside.number_of(agent_of(&message.subject)) else { return };
    if inside.agents[number].lost.is_some() {
        return;
    }
    let bytes = match inside.agents[number].joiner.offer(&message.payload) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return,
        Err(e) => {
            inside.lose(number, format!("what it says cannot be read: {e}"));
            link.news.notify_all();
            return;
        }
    };
    // Nobody has to wait for it meanwhile. What one agent says is taken in its order, by this thread.
    drop(inside);
    let Ok(told) = serde_json::from_slice::<AgentTold>(&bytes) else { return };
    let mut inside = link.lock();
    if inside.agents[number].lost.is_some() {
        return;
    }
    if told.version != VERSION {
        return;
    }
    let is_same = told.session == inside.agents[number].session;
    if !is_same {
        // Another process has its name: what the one that was hired did is not known.
        if matches!(told.tell, Tell::Here(_) | Tell::There(_)) && inside.agents[number].is_hired {
            inside.lose(number, "it was started again".into());
            link.news.notify_all();
        }
        return;
    }
    inside.agents[number].heard = Instant::now();
    let is_ours = told.run.as_deref() == Some(&link.run);
    match told.tell {
        Tell::Here(here) => is_there(&mut inside, number, There::from(*here), is_ours),
        Tell::There(there) => is_there(&mut inside, number, *there, is_ours),
        Tell::Answer { task, result } if is_ours => {
            let agent = &mut inside.agents[number];
            if agent.open.contains(&task) {
                agent.answers.entry(task).or_insert(result);
            }
        }
        Tell::Event { task, event } if is_ours => happened(&mut inside, number, task, event),
        Tell::Sample(mut sample) if is_ours => {
            let agent = &inside.agents[number];
            // Its clock has gone on since it was told when the run began.
            let ahead_ns = agent
                .fit
                .at(monotonic_ns())
                .map_or(0, |c| c.offset_ns.saturating_sub(agent.watched_ahead_ns));
            sample.at_ns = sample.at_ns.saturating_add_signed(ahead_ns.saturating_neg());
            sampled(&mut inside, number, *sample, bytes.len());
        }
        _ => {}
    }
    drop(inside);
    link.news.notify_all();
}

/// A sample a second is written down; one that comes faster, or is longer than any, would fill a disk.
fn sampled(inside: &mut Inside, number: usize, sample: Sample, bytes: usize) {
    if bytes > LONGEST_SAMPLE {
        return inside.lose(number, format!("it tells of its machine in {bytes} bytes"));
    }
    let agent = &mut inside.agents[number];
    let since = agent.sampled_ns.map(|last| sample.at_ns.checked_sub(last));
    if since.is_some_and(|since| since.is_none_or(|since| since < SAMPLES_APART_NS)) {
        return;
    }
    agent.sampled_ns = Some(sample.at_ns);
    if let Some(sink) = &mut inside.sink {
        sink(sample);
    }
}

fn happened(inside: &mut Inside, number: usize, task: u64, event: Event) {
    let agent = &mut inside.agents[number];
    if !agent.open.contains(&task) {
        return;
    }
    if agent.events.len() < EVENTS {
        agent.events.push((task, event));
    } else {
        inside.lose(number, "it tells more of its work than can be heard".into());
    }
}

fn is_there(inside: &mut Inside, number: usize, there: There, is_ours: bool) {
    let agent = &mut inside.agents[number];
    let was_ours = agent.is_hired && agent.state != State::Free;
    let state = there.state;
    agent.state = state;
    if is_ours {
        agent.holds = there.holds.into_iter().collect();
        agent.taken = agent.taken.take().or(there.taken);
    }
    agent.about_ahead_ns = i128::from(there.monotonic_ns) - i128::from(monotonic_ns());
    if was_ours && is_ours && state == State::Deserted {
        inside.lose(number, "it did not hear of us for too long, and stopped".into());
    } else if was_ours && is_ours && state == State::Overdue {
        let why = "the run lasted longer than its --max-duration allows, counted from when it was engaged, and it stopped";
        inside.lose(number, why.into());
    } else if was_ours && is_ours && state == State::Stopped {
        inside.lose(number, "it was stopped on its own machine".into());
    } else if was_ours && !is_ours && state == State::Free {
        inside.lose(number, "it stopped working for this run".into());
    }
}

/// What an agent measured.
fn measured(link: &Link, message: Message) {
    let Some((head, content)) = envelope::decode(&message.payload) else { return };
    let mut inside = link.lock();
    let Some(number) = inside.number_of(agent_of(&message.subject)) else { return };
    let Inside { agents, stage, .. } = &mut *inside;
    let (agent, Some(stage)) = (&mut agents[number], stage) else { return };
    // What comes from an agent that was given up is of no use: nobody knows what else it did.
    let is_wanted = agent.lost.is_none() && agent.session == head.session;
    if !is_wanted || head.run != link.run || head.stage != stage.index {
        return;
    }
    agent.heard = Instant::now();
    let KnownAgent { part: Some(part), .. } = agent else { return };
    if part.is_full() && head.number.saturating_sub(part.incoming.in_order()) > AHEAD {
        return inside.is_ahead(number);
    }
    let (had, left) = (part.incoming.wanted().1, part.incoming.left());
    part.incoming.accept(head.number, content);
    let is_ahead = part.incoming.left() > left;
    if part.incoming.wanted().1 > had {
        part.progress = Instant::now();
    }
    hand_over(&mut inside, number);
    if is_ahead {
        inside.is_ahead(number);
    }
    drop(inside);
    link.news.notify_all();
}

/// What an agent's frames say, to the collector: as much as may wait there. The rest follows as the collector gives back what it had.
/// (Of an agent that is lost with more than that waiting, nothing is given out any more: its last slice says how far it was seen.)
pub fn hand_over(inside: &mut Inside, number: usize) {
    let Inside { agents, stage, .. } = &mut *inside;
    let (Some(KnownAgent { part: Some(part), lost: None, .. }), Some(stage)) =
        (agents.get_mut(number), stage)
    else {
        return;
    };
    let had_ended = part.incoming.end().is_some();
    let mut broken = None;
    while broken.is_none() && !part.is_full() {
        part.incoming.not_after(latest_ns(part, stage));
        let Some(came) = part.incoming.next_output() else { break };
        broken = take(part, stage, came).err();
    }
    if part.incoming.end().is_some() && !had_ended {
        part.progress = Instant::now();
    }
    let broken = broken.or_else(|| part.incoming.broken().map(str::to_owned));
    if let Some(why) = broken {
        inside.lose(number, format!("what it measured cannot be read: {why}"));
    }
}

/// Nothing that an agent did is later.
fn latest_ns(part: &StagePart, stage: &StageUnderway) -> u64 {
    if stage.in_lockstep {
        part.seen_until_ns.saturating_add(AHEAD_VIRTUAL_NS)
    } else {
        monotonic_ns().saturating_sub(stage.epoch_ns).saturating_add(AHEAD_NS)
    }
}

/// An output for the collector, if its worker can have handed it over by now; in words why not.
fn take(part: &mut StagePart, stage: &mut StageUnderway, came: FromAgent) -> Result<(), String> {
    let worker = came.worker().worker;
    if !part.workers.contains(&worker) {
        return Err(format!("it has no worker {worker}"));
    }
    if let FromAgent::Interval { interval, .. } = &came {
        let end_ns = interval.index.checked_add(1).and_then(|n| n.checked_mul(stage.grid_ns));
        let end_ns = end_ns.filter(|end| *end <= latest_ns(part, stage));
        let end_ns = end_ns.ok_or_else(|| format!("slice {} has not been yet", interval.index))?;
        part.seen_until_ns = part.seen_until_ns.max(end_ns);
    }
    part.gives(&came);
    stage.ready.push_back(Arrival::FromAgent(came));
    Ok(())
}

/// What time it is there.
fn echoed(link: &Link, message: Message) {
    let had_ns = monotonic_ns();
    let Ok(echo) = serde_json::from_slice::<ProbeEcho>(&message.payload) else { return };
    let mut inside = link.lock();
    let Some(number) = inside.number_of(agent_of(&message.subject)) else { return };
    let agent = &mut inside.agents[number];
    let ProbeEcho { asked_ns, heard_ns, answered_ns, .. } = echo;
    // Each question has one answer, and nothing is an answer to none.
    let Some(at) = agent.probes.iter().position(|p| *p == asked_ns) else { return };
    if agent.session != echo.session || answered_ns < heard_ns {
        return;
    }
    agent.probes.swap_remove(at);
    inside.echoed = Some(Instant::now());
    let agent = &mut inside.agents[number];
    agent.echoes.push(Echo { asked_ns, heard_ns, answered_ns, had_ns });
}
