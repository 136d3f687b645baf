//! A barrier: something is ordered of several agents, and waited for until each has answered. It ends by their progress, not by a time;
//! who is still waited for is told, by name, with what it does.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plimsoll_crew::CrewError;
use plimsoll_engine::admin::GiveUp;
use plimsoll_model::Event;
use plimsoll_setup::{Interrupt, SetupError};

use super::known::Inside;
use super::link::{Link, unheld};
use crate::error::AgentRefusal;
use crate::wire::order::{Assignment, Order};
use crate::wire::tell::{State, WorkDone};

/// An order that was not answered is said again, the first time after so long, then after twice as long each time: what is long at work, or
/// has many before it, is not helped by hearing it three times a second.
const AGAIN: Duration = Duration::from_millis(300);
/// But no more seldom: an answer that was lost is waited for so long.
const AGAIN_AT_LEAST: Duration = Duration::from_secs(3);
/// More time for more agents: all of them are told, and answer, through one broker. (A choice: some five times what each takes.)
const OF_EACH: Duration = Duration::from_millis(1);
/// Whoever waits looks around so often.
const LOOK: Duration = Duration::from_millis(50);
/// It is told who is waited for, from then on and so often.
const TELL: Duration = Duration::from_secs(5);
/// Who was told to leave what they do has so long for it.
const LEAVE: Duration = Duration::from_secs(10);

/// What came of it, from one agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Came {
    Answer(Result<WorkDone, AgentRefusal>),
    /// In words, why it is lost.
    Lost(String),
}

/// What is asked, beside the orders themselves.
pub struct Barrier<'a> {
    /// In words, for those who wait: `filling`.
    pub what: &'a str,
    /// After how long it is said again, the first time.
    pub again: Duration,
    /// Ends the waiting; absent: nothing does.
    pub interrupt: Option<&'a Interrupt>,
    /// Ends it, too, when it is set.
    pub give_up: GiveUp,
    /// An agent that is still free after so long does not obey us; absent: whoever is there is waited for.
    pub unheard: Option<Duration>,
    /// Told of what the agents do.
    pub tell: &'a mut dyn FnMut(Event),
}

impl<'a> Barrier<'a> {
    pub fn new(what: &'a str, interrupt: &'a Interrupt, tell: &'a mut dyn FnMut(Event)) -> Self {
        Self {
            what,
            again: AGAIN,
            interrupt: Some(interrupt),
            give_up: GiveUp::default(),
            unheard: None,
            tell,
        }
    }
}

/// Agents that have not answered yet: number, the work's number, the order, and when it was said.
struct Waiting {
    number: usize,
    task: u64,
    job: Assignment,
    said: Option<Instant>,
    /// After how long it is said again.
    again: Duration,
}

impl Waiting {
    fn is_due(&self) -> bool {
        self.said.is_none_or(|at| at.elapsed() >= self.again)
    }
}

impl Link {
    /// Orders `jobs` (the agent's number, and what) and waits for all of them.
    pub fn ask(
        &self,
        jobs: Vec<(usize, Assignment)>,
        asked: Barrier<'_>,
    ) -> Result<BTreeMap<usize, Came>, CrewError> {
        let again = asked.again + OF_EACH * jobs.len() as u32;
        let mut waiting: Vec<Waiting> = {
            let mut inside = self.lock();
            let numbered = |(number, job)| {
                inside.next_task += 1;
                let task = inside.next_task;
                let agent: &mut super::known::KnownAgent = &mut inside.agents[number];
                // Of what was asked before nothing is waited for any more.
                (agent.open, agent.answers) = ([task].into(), Default::default());
                agent.events.clear();
                Waiting { number, task, job, said: None, again }
            };
            jobs.into_iter().map(numbered).collect()
        };
        let tasks: BTreeMap<u64, usize> = waiting.iter().map(|w| (w.task, w.number)).collect();
        let mut came = BTreeMap::new();
        let mut progress = Progress::default();
        let begun = Instant::now();
        let (mut told, mut left): (Instant, Option<Instant>) = (begun, None);
        while !waiting.is_empty() {
            let events = {
                let mut inside = self.lock();
                self.look(&mut inside, &mut waiting, &mut came);
                if asked.unheard.is_some_and(|limit| begun.elapsed() > limit) {
                    deaf(&inside, &mut waiting, &mut came);
                }
                if !waiting.is_empty() {
                    inside = self.wait(inside, LOOK);
                }
                if let Some(why) = &inside.dead {
                    return Err(CrewError::bug(why.clone()));
                }
                // Cleaning up goes on: it is what ends it.
                if let Some(why) = inside.unheld.as_ref().filter(|_| asked.interrupt.is_some()) {
                    return Err(unheld(why));
                }
                let mut events = Vec::new();
                for (number, agent) in inside.agents.iter_mut().enumerate() {
                    events.extend(agent.events.drain(..).map(|(task, event)| (number, task, event)));
                }
                events
            };
            for (number, task, event) in events {
                if tasks.contains_key(&task) {
                    progress.took(number, event, asked.tell);
                }
            }
            if told.elapsed() >= TELL && !waiting.is_empty() {
                told = Instant::now();
                (asked.tell)(Event::Doing(self.roll_of(&waiting, asked.what)));
            }
            if asked.give_up.is_due() {
                return Err(SetupError::Interrupted.into());
            }
            if asked.interrupt.is_some_and(Interrupt::is_requested) {
                let since = *left.get_or_insert_with(|| {
                    self.tell_to_leave(&waiting);
                    Instant::now()
                });
                if since.elapsed() > LEAVE || asked.interrupt.is_some_and(Interrupt::is_enough) {
                    return Err(SetupError::Interrupted.into());
                }
            }
        }
        if left.is_some() { Err(SetupError::Interrupted.into()) } else { Ok(came) }
    }

    fn look(&self, inside: &mut Inside, waiting: &mut Vec<Waiting>, came: &mut BTreeMap<usize, Came>) {
        waiting.retain_mut(|w| {
            if let Some(result) = inside.agents[w.number].answers.remove(&w.task) {
                inside.agents[w.number].open.remove(&w.task);
                came.insert(w.number, Came::Answer(result));
                return false;
            }
            if let Some(why) = &inside.agents[w.number].lost {
                came.insert(w.number, Came::Lost(why.clone()));
                return false;
            }
            if w.is_due() {
                if w.said.replace(Instant::now()).is_some() {
                    w.again = (w.again * 2).min(AGAIN_AT_LEAST.max(w.again));
                }
                let order = Order::Work { task: w.task, job: Box::new(w.job.clone()) };
                self.say(inside, w.number, order);
            }
            true
        });
    }

    fn tell_to_leave(&self, waiting: &[Waiting]) {
        let mut inside = self.lock();
        for w in waiting {
            self.say(&mut inside, w.number, Order::Leave);
        }
    }

    /// `waiting for lg-2 (preparing data) and 3 more, while filling`.
    fn roll_of(&self, waiting: &[Waiting], what: &str) -> String {
        const SHOWN: usize = 4;
        let inside = self.lock();
        let one = |w: &Waiting| {
            let agent = &inside.agents[w.number];
            format!("{} ({})", agent.name, agent.state.words())
        };
        let mut text = waiting.iter().take(SHOWN).map(one).collect::<Vec<_>>().join(", ");
        if waiting.len() > SHOWN {
            text.push_str(&format!(" and {} more", waiting.len() - SHOWN));
        }
        format!("{what}: waiting for {text}")
    }

    /// The same where each has to do it: the first that did not is the error, by name.
    pub fn ask_each(
        &self,
        jobs: Vec<(usize, Assignment)>,
        asked: Barrier<'_>,
    ) -> Result<BTreeMap<usize, WorkDone>, CrewError> {
        let what = asked.what.to_owned();
        let came = self.ask(jobs, asked)?;
        let inside = self.lock();
        let one = |(number, came): (usize, Came)| match came {
            Came::Answer(Ok(done)) => Ok((number, done)),
            Came::Answer(Err(refusal)) => Err(refusal.of_agent(&inside.agents[number].name)),
            Came::Lost(why) => Err(CrewError::input(
                format!("agent {} was lost ({what}): {why}", inside.agents[number].name),
                "Look whether it still runs, and run again",
            )),
        };
        came.into_iter().map(one).collect()
    }
}

/// Those who are there, and did not take our order for one.
fn deaf(inside: &Inside, waiting: &mut Vec<Waiting>, came: &mut BTreeMap<usize, Came>) {
    waiting.retain(|w| {
        let is_deaf = inside.agents[w.number].state == State::Free;
        if is_deaf {
            let why =
                "it is there and does not obey: it knows another conductor, or our orders do not reach it";
            came.insert(w.number, Came::Lost(why.into()));
        }
        !is_deaf
    });
}

/// What several agents tell of one piece of work, as one.
#[derive(Default)]
struct Progress {
    of: BTreeMap<usize, (u64, u64, u64)>,
}

impl Progress {
    fn took(&mut self, number: usize, event: Event, tell: &mut dyn FnMut(Event)) {
        let Event::Preparing { what, unit, done, total, elapsed, refused } = event else {
            return tell(event);
        };
        self.of.insert(number, (done, total, refused));
        let sum = |of: fn(&(u64, u64, u64)) -> u64| self.of.values().map(of).sum();
        let (done, total, refused) = (sum(|x| x.0), sum(|x| x.1), sum(|x| x.2));
        tell(Event::Preparing { what, unit, done, total, elapsed, refused });
    }
}
