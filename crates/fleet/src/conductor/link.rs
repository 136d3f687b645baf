//! The conductor's line to its agents: says orders, signed and numbered, and keeps what comes back. Its threads only move what comes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_bus::subjects::Subjects;
use plimsoll_bus::{Bus, Identity};
use plimsoll_crew::CrewError;
use plimsoll_engine::ring::monotonic_ns;
use plimsoll_setup::{Interrupt, SetupError};

use super::known::Inside;
use super::listen;
use super::roll_call::Present;
use crate::wire::VERSION;
use crate::wire::order::{Heed, Order};
use crate::wire::pieces;
use crate::wire::seal::Envelope;

/// An order that was longer on its way is not obeyed.
pub const ORDER_LIFE: Duration = Duration::from_secs(15);
/// Whether there is something to do is looked at so often.
const TICK: Duration = Duration::from_millis(20);
/// An agent of which something is missing is asked for it so often at the most.
const ASK_EVERY: Duration = Duration::from_millis(60);
/// One under load is told so often what has come, so that it need not keep it.
const HEED_LOADED: Duration = Duration::from_millis(150);
/// Who was told to cancel what it does has so long for it. (An agent's workers give up what a device does not give back sooner.)
const CANCELLED: Duration = Duration::from_secs(20);
/// And one that prepares or waits, that the conductor is there.
const HEED_IDLE: Duration = Duration::from_millis(400);

/// See the module.
#[derive(Debug)]
pub struct Link {
    pub bus: Arc<dyn Bus>,
    pub subjects: Subjects,
    identity: Arc<Identity>,
    pub run: String,
    /// Who was silent for so long is lost.
    pub patience: Duration,
    inside: Mutex<Inside>,
    pub news: Condvar,
    stop: AtomicBool,
}

/// The line, and its threads.
#[derive(Debug)]
pub struct OpenLink {
    pub link: Arc<Link>,
    threads: Vec<JoinHandle<()>>,
}

impl OpenLink {
    /// To these agents, in this order.
    pub fn new(
        bus: Arc<dyn Bus>,
        subjects: &Subjects,
        identity: Arc<Identity>,
        run: &str,
        present: &[Present],
        patience: Duration,
    ) -> Result<Self, CrewError> {
        let link = Arc::new(Link {
            bus,
            subjects: subjects.clone(),
            identity,
            run: run.to_owned(),
            patience,
            inside: Mutex::new(Inside::new(present)),
            news: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let mut threads = listen::start(&link)?;
        let ticking = Arc::clone(&link);
        threads.push(listen::spawn("fleet-tick", move || {
            let _watched = listen::Watched { name: "fleet-tick", link: &ticking };
            ticking.tick_on();
        })?);
        let asking = Arc::clone(&link);
        threads.push(listen::spawn("fleet-ask-clocks", move || {
            let _watched = listen::Watched { name: "fleet-ask-clocks", link: &asking };
            asking.compare_clocks_on();
        })?);
        Ok(Self { link, threads })
    }
}

/// Nothing more is put on what nobody holds.
pub fn unheld(why: &str) -> CrewError {
    CrewError::input(why, "Find out who uses it by now (lsblk, fuser -v), and run again")
}

impl Drop for OpenLink {
    /// Who is still hired is let go.
    fn drop(&mut self) {
        self.link.dismiss();
        self.link.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            // A panic has been printed already.
            let _ = thread.join();
        }
    }
}

impl Link {
    /// What a panicking thread left is whole enough to let agents go.
    pub fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_open(&self) -> bool {
        !self.stop.load(Ordering::Acquire)
    }

    /// Waits for news, at most so long.
    pub fn wait<'a>(&self, inside: MutexGuard<'a, Inside>, wait: Duration) -> MutexGuard<'a, Inside> {
        self.news.wait_timeout(inside, wait).unwrap_or_else(PoisonError::into_inner).0
    }

    /// One of our threads has died: whoever waits is told.
    pub fn died(&self, thread: &str) {
        let mut inside = self.lock();
        let why = || format!("the thread {thread} of the conductor has died");
        inside.dead.get_or_insert_with(why);
        for number in 0..inside.agents.len() {
            inside.lose(number, why());
        }
        drop(inside);
        self.news.notify_all();
    }

    /// Says an order to an agent. What is lost is said again by whoever waits for an answer.
    pub fn say(&self, inside: &mut Inside, number: usize, order: Order) {
        inside.said += 1;
        let said = inside.said;
        let agent = &mut inside.agents[number];
        let Some(sequence) = agent.sequence.checked_add(1) else {
            return inside.lose(number, "it counts orders that nobody gave".into());
        };
        agent.sequence = sequence;
        let until_ns = i128::from(monotonic_ns()) + agent.about_ahead_ns + ORDER_LIFE.as_nanos() as i128;
        let envelope = Envelope {
            version: VERSION,
            run: self.run.clone(),
            to: agent.session.clone(),
            sequence: agent.sequence,
            until_ns: u64::try_from(until_ns).unwrap_or(0),
            order,
        };
        let subject = self.subjects.order(&agent.name);
        for piece in pieces::split(said, &envelope.sealed(&self.identity), self.bus.largest()) {
            let _ = self.bus.publish(&subject, &piece);
        }
    }

    /// Tells an agent that its conductor is there, and what of its stage has come.
    pub fn heed(&self, inside: &mut Inside, number: usize) {
        let mut heed = Heed::default();
        if let (Some(stage), Some(part)) = (&inside.stage, &inside.agents[number].part) {
            let (missing, from) = part.incoming.wanted();
            let (stop, abort, taken) = (stage.stop, stage.abort, part.taken);
            let agent = &inside.agents[number];
            let ahead = if stage.in_lockstep { None } else { agent.clock_ahead(stage.epoch_ns) };
            heed = Heed { stage: Some(stage.index), missing, from, taken, stop, abort, ahead };
        }
        inside.agents[number].heeded = Instant::now();
        self.say(inside, number, Order::Heed(heed));
    }

    /// The same to all who are not lost.
    pub fn heed_all(&self, inside: &mut Inside) {
        for number in 0..inside.agents.len() {
            if inside.agents[number].lost.is_none() {
                self.heed(inside, number);
            }
        }
    }

    /// Waits until somebody holds what the agents share, or until it is known that nobody will.
    pub fn await_holds(&self, interrupt: &Interrupt) -> Result<(), CrewError> {
        let mut inside = self.lock();
        loop {
            if let Some(why) = &inside.unheld {
                return Err(unheld(why));
            }
            if inside.shared.iter().all(|s| s.is_held(&inside.agents)) {
                return Ok(());
            }
            if interrupt.is_requested() {
                return Err(SetupError::Interrupted.into());
            }
            inside = self.wait(inside, TICK);
        }
    }

    /// Lets go of all who were hired. Said twice: it is not answered, and who does not hear it ends by itself later.
    pub fn dismiss(&self) {
        let mut inside = self.lock();
        for number in 0..inside.agents.len() {
            if std::mem::take(&mut inside.agents[number].is_hired) {
                self.say(&mut inside, number, Order::Dismiss);
                self.say(&mut inside, number, Order::Dismiss);
            }
        }
    }

    /// Nothing else is done here: agents that hear nothing of us stop their load.
    fn tick_on(&self) {
        while self.is_open() {
            std::thread::sleep(TICK);
            self.tick();
        }
    }

    /// Who was silent for too long is lost; the others hear of us.
    fn tick(&self) {
        let mut inside = self.lock();
        // Signing takes its time, where there are many.
        let more = Duration::from_millis(inside.agents.len() as u64);
        let cancelled = inside.stage.as_ref().and_then(|s| s.aborted);
        let over_for = inside.stage.as_ref().and_then(|s| s.over_for()).unwrap_or_default();
        inside.look_at_holds(self.patience);
        for number in 0..inside.agents.len() {
            let agent = &inside.agents[number];
            if !agent.is_hired || agent.lost.is_some() {
                continue;
            }
            if agent.heard.elapsed() > self.patience {
                let text = format!("nothing was heard of it for {} s", self.patience.as_secs_f64());
                inside.lose(number, text);
                self.news.notify_all();
                continue;
            }
            if agent.is_awaited() && cancelled.is_some_and(|at| at.elapsed() > CANCELLED) {
                let text = format!("it did not end within {} s of being told to cancel", CANCELLED.as_secs());
                inside.lose(number, text);
                self.news.notify_all();
                continue;
            }
            let still = agent.part.as_ref().map_or(Duration::ZERO, |p| p.still());
            if agent.is_awaited() && over_for.min(still) > self.patience {
                let text = format!(
                    "the load is over, and it does not end: nothing came of its stream for {} s",
                    self.patience.as_secs_f64()
                );
                inside.lose(number, text);
                self.news.notify_all();
                continue;
            }
            let lacks = |p: &super::known::StagePart| !p.incoming.wanted().0.is_empty();
            let every = match &agent.part {
                Some(part) if lacks(part) => ASK_EVERY,
                Some(_) if agent.is_awaited() => HEED_LOADED,
                _ => HEED_IDLE,
            };
            if agent.heeded.elapsed() >= every + more {
                self.heed(&mut inside, number);
            }
        }
    }

    /// How long a message is on its way to whoever is farthest, nanoseconds at most, as the echoes of their clocks have it.
    pub fn longest_way_ns(&self) -> u64 {
        let now_ns = monotonic_ns();
        let inside = self.lock();
        let there = inside.agents.iter().filter(|a| a.lost.is_none());
        there.filter_map(|a| a.fit.at(now_ns)).map(|clock| clock.bound_ns).max().unwrap_or(0)
    }
}
