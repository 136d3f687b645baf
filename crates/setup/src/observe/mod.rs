//! Who is asked what the servers do while they are measured: sources of metrics, each by a thread of its own, beside the load.
//!
//! Nothing here ends a run. What a source does not answer is a gap with its reason; what asking costs is in each record.

mod ask;
mod describe;
mod place;
mod ssh;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_engine::target::s3::LiveKeys;
use plimsoll_model::Scrape;

use ask::Asking;
pub use describe::{DescribeKeys, describe};
pub use place::{ObservedPlace, places, places_with};

/// How long the start of a run waits for each source's first word: so that a wrong token is told before the load.
const FIRST: Duration = Duration::from_secs(3);
/// A source has this long to answer, and no longer than until it is asked again.
const LIMIT: Duration = Duration::from_secs(4);
/// Who is asked once, for what it is made of, has this long.
const OBSERVED_ONCE: Duration = Duration::from_secs(5);
/// And this long at the end of a run.
const LAST_LIMIT: Duration = Duration::from_secs(2);

/// So long the end of a run waits for all sources together: one that is being asked, and is asked once more, needs less. What hangs beyond
/// any limit (a file on a dead mount, a name that nobody resolves) is left behind.
const LEAVE_AFTER: Duration = Duration::from_secs(8);

/// Takes what came of a source, by its number.
pub type ScrapeSink = Arc<dyn Fn(usize, Scrape) + Send + Sync>;

/// What all sources have in common.
#[derive(Debug, Clone)]
pub struct ObserveSetting {
    /// How often each is asked.
    pub every: Duration,
    /// The run's keys, of which MinIO's token is made where none is named.
    pub keys: Option<LiveKeys>,
    /// CLOCK_MONOTONIC at the run's start, nanoseconds.
    pub epoch_ns: u64,
}

/// Asks until it is dropped, and then once more.
pub struct Observers {
    stop: Vec<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
    first: Receiver<(usize, Option<String>)>,
}

impl std::fmt::Debug for Observers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Observers({})", self.threads.len())
    }
}

impl Observers {
    /// A thread for each place. The first request goes out at once.
    pub fn start(
        places: Vec<ObservedPlace>,
        setting: &ObserveSetting,
        sink: &ScrapeSink,
    ) -> std::io::Result<Self> {
        let (told, first) = channel();
        let mut all = Self { stop: Vec::new(), threads: Vec::new(), first };
        let places_there = places.len().max(1) as u32;
        for place in places {
            let (stop, stopped) = channel();
            // They are not all asked at the same time.
            let shift = setting.every / places_there * place.number as u32;
            let (setting, sink, told) = (setting.clone(), Arc::clone(sink), told.clone());
            let thread = std::thread::Builder::new()
                .name("observer".into())
                .spawn(move || observe(place, &setting, shift, &stopped, &told, &sink))?;
            all.stop.push(stop);
            all.threads.push(thread);
        }
        Ok(all)
    }

    /// What is wrong at the start, by source: each is waited for, though not for long.
    pub fn first_troubles(&self) -> Vec<(usize, String)> {
        let until = Instant::now() + FIRST;
        let mut troubles = Vec::new();
        let mut silent: BTreeSet<usize> = (0..self.threads.len()).collect();
        for _ in 0..self.threads.len() {
            match self.first.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((number, trouble)) => {
                    silent.remove(&number);
                    troubles.extend(trouble.map(|t| (number, t)));
                }
                Err(_) => break,
            }
        }
        // It may take its connection and never answer: that is told now, too.
        let text = format!("no answer within {} s so far", FIRST.as_secs());
        troubles.extend(silent.into_iter().map(|number| (number, text.clone())));
        troubles
    }
}

impl Drop for Observers {
    fn drop(&mut self) {
        self.stop.clear();
        join_within(LEAVE_AFTER, self.threads.drain(..));
    }
}

/// Waits for threads, though not for ever: one that hangs holds nothing that matters, and what it still brings is not taken any more.
fn join_within(limit: Duration, threads: impl Iterator<Item = JoinHandle<()>>) {
    let until = Instant::now() + limit;
    for thread in threads {
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        if thread.is_finished() {
            // A panic there has been printed, and costs the run only that source.
            let _ = thread.join();
        }
    }
}

fn observe(
    place: ObservedPlace,
    setting: &ObserveSetting,
    shift: Duration,
    stopped: &Receiver<()>,
    told: &Sender<(usize, Option<String>)>,
    sink: &ScrapeSink,
) {
    let (number, every) = (place.number, setting.every);
    let mut asking = Asking::new(place, setting.clone());
    let scrapes = asking.ask(LIMIT.min(every));
    let trouble = scrapes.iter().find_map(|s| s.gap.clone());
    scrapes.into_iter().for_each(|s| sink(number, s));
    // Whoever waits for a first word finds what it said where it went.
    let _ = told.send((number, trouble));
    let mut next = Instant::now() + shift + every / 2;
    loop {
        let wait = next.saturating_duration_since(Instant::now());
        let goes_on = stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
        let limit = if goes_on { LIMIT.min(every) } else { LAST_LIMIT };
        asking.ask(limit).into_iter().for_each(|s| sink(number, s));
        if !goes_on {
            return;
        }
        // A slow source is asked at its own times: what was missed is not made up for.
        while next <= Instant::now() {
            next += every;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_hangs_is_left_behind() {
        let (done, ended) = channel();
        let hangs = std::thread::spawn(|| std::thread::sleep(Duration::from_secs(60)));
        let ends = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            let _ = done.send(());
        });
        let began = Instant::now();
        join_within(Duration::from_millis(500), [hangs, ends].into_iter());
        assert!((500..5000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
        assert!(ended.try_recv().is_ok(), "the other one was waited for");
        let began = Instant::now();
        join_within(Duration::from_secs(60), [std::thread::spawn(|| ())].into_iter());
        assert!(began.elapsed() < Duration::from_secs(30), "nobody hangs, and nobody waits");
    }
}
