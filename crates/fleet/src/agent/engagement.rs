//! One run that an agent works for: what the desk hears and the hands do, between them.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_engine::ring::monotonic_ns;
use plimsoll_setup::Interrupt;
use plimsoll_setup::block::SharedHold;

use super::slew::Slew;
use super::voice::Voice;
use crate::error::AgentRefusal;
use crate::frame::outgoing::Outgoing;
use crate::wire::order::Heed;
use crate::wire::tell::{State, Tell, WorkDone};

/// What came of a job, or that it is being done.
type Came = Option<Result<WorkDone, AgentRefusal>>;

/// What both know.
#[derive(Debug)]
pub struct Engagement {
    pub run: String,
    pub interrupt: Interrupt,
    voice: Arc<Voice>,
    inside: Mutex<Inside>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct Inside {
    state: State,
    tasks: BTreeMap<u64, Came>,
    stream: Option<Outgoing>,
    taken: u64,
    stop: bool,
    abort: bool,
    /// Why it ends by itself, where it does.
    ends: Option<State>,
    /// What it holds for all agents of the run.
    hold: Arc<SharedHold>,
    /// Of the load that runs: its slices, and the run's start on this machine's clock.
    slew: Option<(Slew, u64)>,
}

/// What is wanted of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wishes {
    pub stop: bool,
    pub abort: bool,
}

impl Engagement {
    pub fn new(run: &str, voice: Arc<Voice>) -> Arc<Self> {
        Arc::new(Self {
            run: run.to_owned(),
            interrupt: Interrupt::default(),
            voice,
            inside: Mutex::default(),
            news: Condvar::new(),
        })
    }

    /// What a panicking thread left is whole: each change is of one field.
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn state(&self) -> State {
        let inside = self.lock();
        inside.ends.unwrap_or(inside.state)
    }

    pub fn enter(&self, state: State) {
        self.lock().state = state;
    }

    /// A job was ordered: whether it is new. One that was done is answered again.
    pub fn is_new(&self, task: u64) -> bool {
        let came = {
            let mut inside = self.lock();
            match inside.tasks.get(&task) {
                None => {
                    inside.tasks.insert(task, None);
                    return true;
                }
                Some(came) => came.clone(),
            }
        };
        if let Some(result) = came {
            self.say(Tell::Answer { task, result });
        }
        false
    }

    /// What came of a job.
    pub fn answer(&self, task: u64, result: Result<WorkDone, AgentRefusal>) {
        self.lock().tasks.insert(task, Some(result.clone()));
        self.say(Tell::Answer { task, result });
    }

    /// Of this process.
    pub fn session(&self) -> &str {
        self.voice.session()
    }

    /// From now on this says what is held here for all agents of the run.
    pub fn holds_by(&self, hold: Arc<SharedHold>) {
        self.lock().hold = hold;
    }

    /// What is.
    pub fn hold(&self) -> Arc<SharedHold> {
        Arc::clone(&self.lock().hold)
    }

    pub fn say(&self, tell: Tell) {
        self.voice.tell(Some(&self.run), tell);
    }

    /// A stage begins.
    pub fn open_stream(&self, stage: u32, every: Duration) {
        let mut inside = self.lock();
        inside.stream = Some(Outgoing::new(self.voice.session(), &self.run, stage, every));
        (inside.taken, inside.stop, inside.abort) = (0, inside.ends.is_some(), false);
        inside.slew = None;
    }

    /// From now on the load's slices follow the conductor's clock.
    pub fn follow_clock(&self, slew: Slew, epoch_ns: u64) {
        self.lock().slew = Some((slew, epoch_ns));
    }

    /// Puts times of this machine's clock on the conductor's, as the load's slices have them.
    pub fn date(&self, dates: impl FnOnce(&Slew)) {
        if let Some((slew, _)) = &self.lock().slew {
            dates(slew);
        }
    }

    /// Does something with the stage's stream, and sends the frames that came of it.
    pub fn stream(&self, does: impl FnOnce(&mut Outgoing)) {
        let frames = {
            let mut inside = self.lock();
            let Some(stream) = &mut inside.stream else { return };
            does(stream);
            stream.new_ones()
        };
        self.voice.frames(frames);
    }

    /// The conductor has been heard.
    pub fn heed(&self, heed: &Heed) {
        let again = {
            let mut inside = self.lock();
            let Some(stream) = &mut inside.stream else { return };
            if heed.stage != Some(stream.stage()) {
                return;
            }
            let again = stream.asked(&heed.missing, heed.from);
            inside.taken = inside.taken.max(heed.taken);
            inside.stop |= heed.stop;
            inside.abort |= heed.abort;
            if let (Some((slew, epoch_ns)), Some(ahead)) = (&mut inside.slew, heed.ahead) {
                slew.told(ahead, monotonic_ns().saturating_sub(*epoch_ns));
            }
            again
        };
        self.news.notify_all();
        self.voice.frames(again);
    }

    pub fn wishes(&self) -> Wishes {
        let inside = self.lock();
        Wishes { stop: inside.stop, abort: inside.abort }
    }

    /// Waits until something else is wanted than what is `known`, at most so long.
    pub fn wait_for_wish(&self, known: Wishes, wait: Duration) {
        let inside = self.lock();
        let as_known = |inside: &mut Inside| (inside.stop, inside.abort) == (known.stop, known.abort);
        // Whether it was that or the time is looked at by whoever waits.
        drop(self.news.wait_timeout_while(inside, wait, as_known));
    }

    /// Waits until the conductor has taken so many outputs, or until that does not matter any more.
    pub fn wait_until_taken(&self, outputs: u64) {
        let mut inside = self.lock();
        while inside.taken < outputs && !inside.abort && inside.ends.is_none() {
            let waited = self.news.wait_timeout(inside, Duration::from_millis(100));
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// It is over for this reason, which is told from now on: load drains, what is being made ready is left.
    pub fn ends_by_itself(&self, why: State) {
        {
            let mut inside = self.lock();
            inside.ends.get_or_insert(why);
            inside.stop = true;
        }
        self.interrupt.signal();
        self.news.notify_all();
    }

    /// Nothing is waited for any more.
    pub fn abort(&self) {
        {
            let mut inside = self.lock();
            (inside.stop, inside.abort) = (true, true);
        }
        self.news.notify_all();
    }
}
