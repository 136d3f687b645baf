//! Follows a run while it goes on, in a thread of its own: looks at its directory, tells its pages what is new, and rests in between so
//! that all of it takes a small share of one CPU however long the run has become.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_store::{GrowingRun, RunDir};
use rustix::time::{ClockId, clock_gettime};

use crate::feed::PageFeed;
use crate::look::look;
use crate::metrics::RunMetrics;
use crate::now::LiveHints;

/// A run's record grows about once a second.
const LEAST_REST: Duration = Duration::from_secs(1);
/// A look is followed by so many times its CPU time of rest: 1.5 % of one CPU at the most. (A choice: on a machine that measures, and with what the pages take
/// below 2 % in all.)
const REST_PER_LOOK: u32 = 65;
/// Of one rest, unless looks need more each time; what one of them took beyond that (the first one of a long run) is rested for after those that
/// follow, so that its page is not silent meanwhile. After so long a new page, and the end of the run, end a longer rest, too.
const MOST_REST: Duration = Duration::from_secs(10);
/// Who has no page for so long is not followed any more.
const UNWATCHED: Duration = Duration::from_secs(60);
/// A run that ended is judged by its own process; where that does not happen, it was killed, and is judged here.
const FOR_ITS_SUMMARY: Duration = Duration::from_secs(10);

/// How long after its end a run's counters and histograms are given out: a scrape each minute sees the last of them a few times. (A choice.)
const COUNTERS_KEPT: Duration = Duration::from_secs(300);

/// What a run's pages and metrics are taken from.
#[derive(Debug)]
pub struct RunFollower {
    feed: PageFeed,
    shared: Mutex<Shared>,
    wake: Mutex<Sender<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    hints: LiveHints,
    metrics: Option<RunMetrics>,
    /// When its last look was.
    ended_at: Option<Instant>,
    title: String,
    /// It is followed whether anybody looks or not.
    is_own: bool,
    /// Somebody asked for its metrics since it was last seen to.
    was_asked: bool,
    /// Its own process says that it has ended.
    has_ended: bool,
    /// In words, once its directory could not be read.
    problem: Option<String>,
}

impl RunFollower {
    /// Begins to follow. `feed` is a name that no other feed had.
    pub fn start(dir: RunDir, feed: String, is_own: bool) -> std::io::Result<Arc<Self>> {
        let (wake, woken) = channel();
        let follower = Arc::new(Self {
            feed: PageFeed::new(feed),
            shared: Mutex::new(Shared { is_own, ..Shared::default() }),
            wake: Mutex::new(wake),
        });
        let of_thread = Arc::clone(&follower);
        std::thread::Builder::new().name("follows-run".into()).spawn(move || {
            give_way();
            of_thread.follow(dir, &woken);
        })?;
        Ok(follower)
    }

    /// What its pages are told.
    pub fn feed(&self) -> &PageFeed {
        &self.feed
    }

    /// What it is called.
    pub fn title(&self) -> String {
        self.shared().title.clone()
    }

    /// As of the last look.
    pub fn metrics(&self) -> Option<RunMetrics> {
        let mut shared = self.shared();
        shared.was_asked = true;
        let long_ago = shared.ended_at.is_some_and(|at| at.elapsed() > COUNTERS_KEPT);
        let metrics = shared.metrics.clone();
        if long_ago { metrics.map(RunMetrics::without_counters) } else { metrics }
    }

    /// It is over, and its counters are no longer given out.
    pub fn is_forgotten(&self) -> bool {
        let ended_at = self.shared().ended_at;
        self.feed.is_over() && ended_at.is_none_or(|at| at.elapsed() > COUNTERS_KEPT)
    }

    /// Why there is nothing to show.
    pub fn problem(&self) -> Option<String> {
        self.shared().problem.clone()
    }

    /// What the run itself says.
    pub fn hint(&self, change: impl FnOnce(&mut LiveHints)) {
        change(&mut self.shared().hints);
    }

    /// The run has ended, by its own process's word: its result is there, or it has none.
    pub fn has_ended(&self) {
        self.shared().has_ended = true;
        let _ = self.wake.lock().unwrap_or_else(PoisonError::into_inner).send(());
    }

    fn shared(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self, dir: RunDir, woken: &Receiver<()>) {
        let run = GrowingRun::new(dir);
        let dir = run.dir();
        let mut watched = Instant::now();
        let mut ended: Option<Instant> = None;
        let mut rests = LookRests::default();
        loop {
            let (begun, cpu) = (Instant::now(), cpu_time());
            if !dir.is_running() && !dir.summary_is_there() {
                let since = *ended.get_or_insert(begun);
                // Its own process is about to judge it: a moment later there is the whole result.
                if since.elapsed() < FOR_ITS_SUMMARY && !self.shared().has_ended {
                    rest(woken, Duration::from_millis(100));
                    continue;
                }
            } else {
                ended = None;
            }
            let hints = self.shared().hints.clone();
            match look(&run, &hints) {
                Ok(seen) => {
                    {
                        let mut shared = self.shared();
                        shared.metrics = Some(seen.metrics);
                        shared.ended_at = seen.is_over.then(Instant::now);
                        shared.title = seen.title;
                        shared.problem = None;
                    }
                    self.feed.update(seen.page);
                    if seen.is_over {
                        let killed = matches!(dir.sealed(), Ok(None));
                        return self.feed.end(match killed {
                            true => "the run was killed, and this is what it had come to",
                            false => "the run has ended, and this is its result",
                        });
                    }
                }
                Err(e) => {
                    self.shared().problem = Some(e.to_string());
                    if !dir.is_running() {
                        return self.feed.end("the run has ended, and its directory cannot be read");
                    }
                }
            }
            {
                let mut shared = self.shared();
                if std::mem::take(&mut shared.was_asked) || shared.is_own || self.feed.watchers() > 0 {
                    watched = Instant::now();
                }
            }
            if watched.elapsed() > UNWATCHED {
                return self.feed.end("nobody has looked for a while: reload the page");
            }
            let next = rests.after(cpu_time().saturating_sub(cpu));
            let rested = Instant::now();
            let pages = self.feed.watchers();
            while let Some(left) = next.checked_sub(rested.elapsed()).filter(|left| !left.is_zero()) {
                let is_woken = rest(woken, left.min(MOST_REST));
                let now = self.feed.watchers();
                if now > 0 {
                    watched = Instant::now();
                }
                if is_woken || now > pages || !dir.is_running() {
                    break;
                }
            }
            rests.rested(rested.elapsed());
        }
    }
}

/// How long is rested after a look.
#[derive(Debug, Default)]
struct LookRests {
    /// Rest that looks took and that was not had yet.
    owed: Duration,
    /// CPU time of the look before.
    before: Option<Duration>,
}

impl LookRests {
    /// After a look of so much CPU time. Two in a row that were dear are what this run takes: then the rest is as long as it has to be, and what was not
    /// rested before is made up for.
    fn after(&mut self, look: Duration) -> Duration {
        self.owed += look * REST_PER_LOOK;
        let usual = self.before.replace(look).map_or(Duration::ZERO, |before| before.min(look));
        self.owed.clamp(LEAST_REST, MOST_REST.max(usual * REST_PER_LOOK * 2))
    }

    fn rested(&mut self, time: Duration) {
        self.owed = self.owed.saturating_sub(time);
    }
}

/// Whether it was woken.
fn rest(woken: &Receiver<()>, time: Duration) -> bool {
    match woken.recv_timeout(time) {
        Ok(()) => {
            // However often it was woken, it looks once.
            while woken.try_recv().is_ok() {}
            return true;
        }
        Err(RecvTimeoutError::Timeout) => {}
        Err(RecvTimeoutError::Disconnected) => std::thread::sleep(time),
    }
    false
}

/// Of this thread.
fn cpu_time() -> Duration {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(t.tv_sec.try_into().unwrap_or(0), t.tv_nsec.try_into().unwrap_or(0))
}

/// From here on this thread, and those that it starts, get the CPU when no other wants it.
pub fn give_way() {
    // Where it is not allowed, the rests between the looks are what bounds it.
    let _ = rustix::process::setpriority_process(None, 19);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CPU time of looks over all time, where they take these milliseconds, and the longest rest in seconds.
    fn share(looks: impl Iterator<Item = u64>) -> (f64, f64) {
        let (mut rests, mut cpu_s, mut all_s, mut longest_s) = (LookRests::default(), 0.0, 0.0, 0.0);
        for ms in looks {
            let look = Duration::from_millis(ms);
            let rest = rests.after(look);
            rests.rested(rest);
            cpu_s += look.as_secs_f64();
            all_s += look.as_secs_f64() + rest.as_secs_f64();
            longest_s = rest.as_secs_f64().max(longest_s);
        }
        (cpu_s / all_s, longest_s)
    }

    #[test]
    fn looks_take_their_share_however_long_the_run_has_become() {
        // A quarter of a second each, and longer from look to look.
        for looks in [vec![250; 100], (0..100).map(|n| 5 * n).collect::<Vec<u64>>()] {
            let (share, _) = share(looks.into_iter());
            assert!(share <= 0.0153, "{share}");
        }
        // A first one of three seconds is rested for in pieces of ten seconds.
        let (share, longest_s) = share(std::iter::once(3000).chain(std::iter::repeat_n(20, 60)));
        assert!(longest_s <= 10.0 && share < 0.018, "{longest_s} {share}");
    }
}
