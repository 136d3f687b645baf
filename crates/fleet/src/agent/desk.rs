//! Where orders come in: judged, and given to the hands; and where it is noticed that none come any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_bus::sealed::{SealingKey, voucher};
use plimsoll_bus::subjects::{Subjects, check_name};
use plimsoll_bus::{Bus, BusError, Speaks, Subscription};
use plimsoll_model::HostFacts;

use super::delivery::Delivery;
use super::engagement::Engagement;
use super::hands::Hands;
use super::voice::Voice;
use super::{AgentOptions, AgentTime, spawn};
use crate::error::AgentRefusal;
use crate::wire::order::{Assignment, FetchKept, Order};
use crate::wire::pieces::Joiner;
use crate::wire::seal::{Envelope, Guard, Unsealed};
use crate::wire::tell::{Here, SealingTold, State, Tell, There};
use crate::wire::{language, speaks};

/// It says that it is there so often.
const HERE_EVERY: Duration = Duration::from_millis(500);
/// And at work, where that is told in few words, who it is so often: a thousand agents would tell their one conductor megabytes a second.
const WHO_EVERY: Duration = Duration::from_secs(5);
/// How long it waits for an order at a time: what else there is to look at is looked at as often. (A choice: a call is answered soon enough, and
/// an agent that has nothing to do hardly wakes up.)
const LOOK: Duration = Duration::from_millis(100);
/// Load that nobody waits for drains so long, and is cancelled then.
const DRAIN: Duration = Duration::from_secs(5);

pub struct Desk {
    options: AgentOptions,
    time: AgentTime,
    voice: Arc<Voice>,
    orders: Subscription,
    calls: Subscription,
    joiner: Joiner,
    guard: Guard,
    machine: HostFacts,
    /// To which keys for the storage are sealed, where it takes them.
    sealing: Option<(Arc<SealingKey>, SealingTold)>,
    at_work: Arc<AtomicBool>,
    said_here: Option<Instant>,
    said_who: Option<Instant>,
    engaged: Option<Engaged>,
    /// Gives what was kept; begun when it is asked for.
    delivery: Option<Delivery>,
    /// Orders that were not obeyed, as they were told last.
    refused: Option<Unsealed>,
    /// Who called last, and speaks another language.
    stranger: Option<Speaks>,
}

/// A run that it works for.
struct Engaged {
    with: Arc<Engagement>,
    /// Dropped where there is nothing more to be ordered.
    jobs: Option<Sender<(u64, Assignment)>>,
    thread: JoinHandle<()>,
    since: Instant,
    heard: Instant,
    deadman: Duration,
    /// It ends by itself since.
    leaving: Option<Instant>,
    /// What it wrote to is somebody else's.
    is_robbed: bool,
}

impl Desk {
    pub fn new(
        bus: Arc<dyn Bus>,
        subjects: &Subjects,
        options: AgentOptions,
        time: AgentTime,
        session: String,
    ) -> Result<Self, BusError> {
        let sealing = match &options.takes_keys_by {
            Some(secret) => {
                let own = SealingKey::random()?;
                let key = own.public();
                let voucher = voucher(secret, &options.name, &session, &key);
                Some((Arc::new(own), SealingTold { key, voucher }))
            }
            None => None,
        };
        Ok(Self {
            sealing,
            at_work: Arc::default(),
            orders: bus.subscribe(&subjects.order(&options.name))?,
            calls: bus.subscribe(&subjects.call())?,
            voice: Arc::new(Voice::new(bus, subjects, &options.name, &session)),
            joiner: Joiner::default(),
            guard: Guard::new(&options.conductor, &session),
            machine: this_machine(&options),
            said_here: None,
            said_who: None,
            engaged: None,
            delivery: None,
            refused: None,
            stranger: None,
            options,
            time,
        })
    }

    /// Whether it works for a run.
    pub fn at_work(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.at_work)
    }

    /// Until it is to stop, or the bus has ended; then it drains, and cleans up.
    pub fn serve(&mut self, stop: &AtomicBool, tell: &dyn Fn(String)) {
        while !stop.load(Ordering::Acquire) && !self.orders.closed() {
            if let Some(message) = self.orders.next(LOOK)
                && let Ok(Some(sealed)) = self.joiner.offer(&message.payload)
            {
                match self.guard.open(&sealed, self.time.now_ns()) {
                    Ok(envelope) => self.obey(envelope, tell),
                    Err(why) => self.refuse(why, tell),
                }
            }
            if let Some(call) = self.calls.next(Duration::ZERO) {
                self.said_here = None;
                self.called(&call.payload, tell);
            }
            self.look_after(tell);
            self.say_here();
        }
        if let Some(engaged) = &mut self.engaged {
            engaged.leave(State::Stopped);
        }
        while self.engaged.is_some() {
            self.look_after(tell);
            std::thread::sleep(LOOK);
        }
    }

    /// Whoever calls says what it speaks; one that cannot work with us is told here, once. (An older one does not say it.)
    fn called(&mut self, by: &[u8], tell: &dyn Fn(String)) {
        let by: Speaks = serde_json::from_slice(by).unwrap_or_default();
        if by.is_foreign_to(&speaks()) && self.stranger.as_ref() != Some(&by) {
            tell(format!(
                "the fleet's conductor is {}, and this agent is {}: it takes no orders of it. Use the same version of plimsoll on all machines",
                by.words(),
                speaks().words()
            ));
            self.stranger = Some(by);
        }
    }

    /// Told once for each reason: doubles come on any network, and are no news.
    fn refuse(&mut self, why: Unsealed, tell: &dyn Fn(String)) {
        let is_news = !matches!(why, Unsealed::Replayed | Unsealed::To | Unsealed::Run);
        if is_news && self.refused.replace(why) != Some(why) {
            tell(format!("an order was not obeyed: {why}"));
        }
    }

    fn obey(&mut self, envelope: Envelope, tell: &dyn Fn(String)) {
        let Envelope { run, order, .. } = envelope;
        if let Order::Work { task, job } = &order
            && let Assignment::Hire { deadman_ns, .. } = &**job
        {
            self.hire(&run, *task, Duration::from_nanos(*deadman_ns), tell);
        }
        if let Order::Fetch(fetch) = order {
            return self.deliver(run, fetch);
        }
        let Some(engaged) = self.engaged.as_mut().filter(|e| e.with.run == run) else { return };
        engaged.heard = Instant::now();
        match order {
            Order::Work { task, job } => {
                if engaged.leaving.is_none()
                    && engaged.with.is_new(task)
                    && let Some(jobs) = &engaged.jobs
                {
                    // The hands end only where nothing more can be ordered.
                    let _ = jobs.send((task, *job));
                }
            }
            Order::Heed(heed) => engaged.with.heed(&heed),
            Order::Leave => drop(engaged.with.interrupt.signal()),
            Order::Dismiss => engaged.leave(State::Leaving),
            Order::Fetch(_) => {}
        }
    }

    /// Gives what was kept of a run. Not beside a load: reading takes CPU, disk and network from it.
    fn deliver(&mut self, run: String, fetch: FetchKept) {
        let refused = match (&self.engaged, check_name("run", &run)) {
            (Some(engaged), _) => Some(format!("it is at work for run {}", engaged.with.run)),
            (None, Err(_)) => Some(format!("{run:?} is no name of a run")),
            (None, Ok(())) => None,
        };
        if self.delivery.is_none() && refused.is_none() {
            self.delivery = Delivery::start(self.options.clone(), Arc::clone(&self.voice)).ok();
        }
        match (&self.delivery, refused) {
            (Some(delivery), None) => delivery.ask(run, fetch),
            (_, refused) => {
                let why = refused.unwrap_or_else(|| "it cannot start a thread".into());
                let result = Err(AgentRefusal::new(why, ""));
                self.voice.tell(Some(&run), Tell::Kept { question: fetch.question, result });
            }
        }
    }

    /// From now on it works for this run, unless there is another one.
    fn hire(&mut self, run: &str, task: u64, deadman: Duration, tell: &dyn Fn(String)) {
        if let Some(engaged) = &self.engaged {
            if engaged.with.run != run {
                let other = format!("it is at work for run {}", engaged.with.run);
                let refusal = AgentRefusal::new(other, "Wait until that has ended");
                self.voice.tell(Some(run), Tell::Answer { task, result: Err(refusal) });
            }
            return;
        }
        // It becomes a file's name here: bounds hold against the conductor, too.
        if check_name("run", run).is_err() {
            tell(format!("not at work for {run:?}: that is no name of a run"));
            let refusal = AgentRefusal::new(format!("{run:?} is no name of a run"), "");
            return self.voice.tell(Some(run), Tell::Answer { task, result: Err(refusal) });
        }
        let with = Engagement::new(run, Arc::clone(&self.voice));
        let sealing = self.sealing.as_ref().map(|(key, _)| Arc::clone(key));
        let hands = Hands::new(self.options.clone(), self.time, Arc::clone(&with), sealing);
        let (jobs, received) = channel();
        let Ok(thread) = spawn("agent-hands", move || hands.serve(&received)) else {
            let refusal = AgentRefusal::new("it cannot start a thread", "Raise the limit on threads");
            return self.voice.tell(Some(run), Tell::Answer { task, result: Err(refusal) });
        };
        tell(format!("at work for run {run}"));
        let now = Instant::now();
        self.engaged = Some(Engaged {
            with,
            jobs: Some(jobs),
            thread,
            since: now,
            heard: now,
            deadman,
            leaving: None,
            is_robbed: false,
        });
        self.at_work.store(true, Ordering::Release);
        self.guard.works_for(Some(run));
        self.said_here = None;
    }

    /// A silent conductor, a run that lasts too long, and one that is over.
    fn look_after(&mut self, tell: &dyn Fn(String)) {
        let max_duration = self.options.bounds.max_duration;
        let Some(engaged) = &mut self.engaged else { return };
        // Whose it is now has data there: nothing more is written, whatever anybody orders.
        if !engaged.is_robbed
            && let Some(why) = engaged.with.hold().taken()
        {
            engaged.is_robbed = true;
            tell(format!("{why}: the load is cancelled"));
            engaged.with.abort();
            self.said_here = None;
        }
        if engaged.leaving.is_none() {
            if engaged.heard.elapsed() > engaged.deadman {
                let silent = engaged.deadman.as_secs_f64();
                tell(format!("nothing was heard of the conductor for {silent} s: the load ends"));
                engaged.leave(State::Deserted);
            } else if max_duration.is_some_and(|most| engaged.since.elapsed() > most) {
                tell("the run lasts longer than it may here (--max-duration): the load ends".into());
                engaged.leave(State::Overdue);
            }
        }
        if engaged.leaving.is_some_and(|since| since.elapsed() > DRAIN) {
            engaged.with.abort();
        }
        if engaged.thread.is_finished() {
            tell(format!("done with run {}", engaged.with.run));
            // It may have been calibrated.
            self.machine = this_machine(&self.options);
            self.engaged = None;
            self.at_work.store(false, Ordering::Release);
            self.guard.works_for(None);
            self.said_here = None;
        }
    }

    fn say_here(&mut self) {
        if self.said_here.is_some_and(|at| at.elapsed() < HERE_EVERY) {
            return;
        }
        let is_news = self.said_here.replace(Instant::now()).is_none() || self.engaged.is_none();
        let hold = self.engaged.as_ref().map(|e| e.with.hold());
        let there = There {
            state: self.engaged.as_ref().map_or(State::Free, |e| e.with.state()),
            monotonic_ns: self.time.now_ns(),
            holds: hold.as_ref().map_or_else(Vec::new, |h| h.held()),
            taken: hold.as_ref().and_then(|h| h.taken()),
        };
        let run = self.engaged.as_ref().map(|e| e.with.run.as_str());
        if !is_news && self.said_who.is_some_and(|at| at.elapsed() < WHO_EVERY) {
            return self.voice.tell(run, Tell::There(Box::new(there)));
        }
        self.said_who = Some(Instant::now());
        let There { state, monotonic_ns, holds, taken } = there;
        let here = Here {
            language: language(),
            version: env!("CARGO_PKG_VERSION").into(),
            machine: self.machine.clone(),
            labels: self.options.labels.clone(),
            state,
            monotonic_ns,
            last_order: self.guard.last(),
            holds,
            taken,
            sealing: self.sealing.as_ref().map(|(_, told)| told.clone()),
        };
        self.voice.tell(run, Tell::Here(Box::new(here)));
    }
}

/// With the ceiling that it was found to have.
fn this_machine(options: &AgentOptions) -> HostFacts {
    let (identity, ceiling) = (options.identity.clone(), plimsoll_run::ceiling::ceiling());
    HostFacts { identity, ceiling, ..plimsoll_run::machine() }
}

impl Engaged {
    /// Nothing more is ordered. What is under way drains; whom its conductor sent away has nothing more to do.
    fn leave(&mut self, why: State) {
        self.jobs = None;
        self.leaving.get_or_insert_with(Instant::now);
        self.with.ends_by_itself(why);
        if why == State::Leaving {
            self.with.abort();
        }
    }
}
