//! Work before a stage: the data set that it reads, the objects that it deletes, the files that it reads.
//!
//! The engine does it, at the speed of a measurement; nothing of it is recorded but its progress.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_engine::{Clock, Next, Output, StageSpec, StopRule, TargetConfig, WorkerEnd, WorkerSpec};
use plimsoll_model::event::{Counted, Event};
use plimsoll_model::plan::OnThrottle;
use plimsoll_model::{Outcome, Series};
use plimsoll_setup::{Interrupt, SetupError};

use crate::allowance::{Allowance, HowFar};
use crate::error::CrewError;

/// Rounds over what was refused (throttled, timed out), none of which got anything through, until preparation gives up.
const ROUNDS: u32 = 20;
/// After the first of them, and after one that got something through.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Where nothing but refusals came for so long, nothing will: a load that is asked to wait for longer (Retry-After) has a question for
/// people. (A choice: longer than limiters per minute last.)
const PATIENCE: Duration = Duration::from_secs(65);
/// Ranges of keys that one round repeats; more wait for the next.
const RANGES: usize = 64;

/// What is being prepared, for the progress line.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    pub what: &'a str,
    pub unit: Counted,
    pub total: u64,
    /// What the run's budget leaves for it; `None`: there is none.
    pub allowed: Option<Allowance>,
}

impl Job<'_> {
    fn done_in(&self, s: &Series) -> u64 {
        if self.unit == Counted::Bytes { s.counts.bytes_ok } else { s.ok() }
    }
}

/// Runs the workers to their end. Objects that were refused are put again, more gently each time.
pub fn run(
    mut workers: Vec<WorkerSpec>,
    job: Job<'_>,
    events: &mut dyn FnMut(Event),
    interrupt: &Interrupt,
) -> Result<(), CrewError> {
    let objects = job.unit == Counted::Objects;
    // Which objects were refused is in the records of the ops.
    workers.iter_mut().for_each(|w| w.trace = objects);
    let template = workers.first().cloned();
    let mut progress = Progress { job, done: 0, refused: 0, since: Instant::now(), last: None };
    let mut patience = Patience::from(Instant::now());
    let mut pause = FIRST_PAUSE;
    let (mut round, mut before) = (0, usize::MAX);
    // Refused before, and for a later round.
    let mut waiting: Vec<u64> = Vec::new();
    loop {
        let (ends, mut refused) = once(workers, &mut progress, &mut patience, events, interrupt)?;
        refused.append(&mut waiting);
        if let Some(error) = ends.iter().find_map(|e| e.error.clone()) {
            return Err(error.into());
        }
        if interrupt.is_requested() {
            return Err(SetupError::Interrupted.into());
        }
        let failure = ends.iter().flat_map(|e| &e.errors).find(|e| !e.outcome.is_throttled());
        let again = template.as_ref().filter(|_| objects && !refused.is_empty());
        let Some(template) = again else {
            return match failure {
                Some(f) if refused.is_empty() && !objects => Err(failed(job.what, &f.text)),
                _ => Ok(()),
            };
        };
        let hopeless =
            failure.filter(|f| matches!(f.outcome, Outcome::Http403 | Outcome::Http404 | Outcome::NoSpace));
        if let Some(f) = hopeless {
            return Err(failed(job.what, &f.text));
        }
        // A limiter that lets some through at a time needs patience, not more room.
        (round, pause) = if refused.len() < before { (0, FIRST_PAUSE) } else { (round + 1, pause) };
        before = refused.len();
        if round == ROUNDS {
            let text = failure.map_or_else(|| "it was throttled each time".to_owned(), |f| f.text.clone());
            return Err(failed(job.what, &text));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_secs(5));
        (workers, waiting) = repeats(template, refused);
    }
}

/// Whether it is worth while to go on.
#[derive(Debug)]
struct Patience {
    /// The last op that got through, or the beginning.
    since: Instant,
    refused: u64,
}

impl Patience {
    fn from(now: Instant) -> Self {
        Self { since: now, refused: 0 }
    }

    fn saw(&mut self, ok: u64, refused: u64, now: Instant) {
        if ok > 0 {
            *self = Self::from(now);
        }
        self.refused += refused;
    }

    /// Nothing but refusals for too long: how many they were.
    fn is_over(&self, now: Instant) -> Option<u64> {
        (self.refused > 0 && now.duration_since(self.since) >= PATIENCE).then_some(self.refused)
    }
}

fn failed(what: &str, text: &str) -> CrewError {
    CrewError::input(format!("{what} could not be prepared: {text}"), "Correct that, and run again")
}

/// One range of neighbouring keys per worker, one op in flight each; and the keys that are for a later round. No object that is there is
/// put again: a limiter would let that through in the place of one that is not.
fn repeats(template: &WorkerSpec, keys: Vec<u64>) -> (Vec<WorkerSpec>, Vec<u64>) {
    let (ranges, left) = ranges_of(keys);
    let worker = |(i, (first, count)): (usize, &(u64, u64))| {
        let mut w = template.clone();
        w.worker.worker = i as u16;
        // The pause between rounds is the backoff: all who were refused together would come back together.
        if let TargetConfig::S3(c) = &mut w.target {
            Arc::make_mut(c).on_throttle = OnThrottle::Record;
        }
        w.share = plimsoll_engine::Share::WHOLE;
        w.pace_share = plimsoll_engine::Share::WHOLE;
        w.slots = 1;
        w.stop = StopRule { ops: Some(*count), ..StopRule::default() };
        for k in &mut w.source.kinds {
            if let plimsoll_engine::OpPlace::Keys { first: f, .. } = &mut k.place {
                *f = *first;
            }
        }
        w
    };
    (ranges.iter().enumerate().map(worker).collect(), left)
}

/// First key and number of neighbouring ones, as many as a round repeats; and the keys of all others.
fn ranges_of(mut keys: Vec<u64>) -> (Vec<(u64, u64)>, Vec<u64>) {
    keys.sort_unstable();
    keys.dedup();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for key in keys {
        match ranges.last_mut() {
            Some((first, count)) if *first + *count == key => *count += 1,
            _ => ranges.push((key, 1)),
        }
    }
    let left = ranges.split_off(ranges.len().min(RANGES));
    let left = left.into_iter().flat_map(|(first, count)| first..first + count).collect();
    (ranges, left)
}

struct Progress<'a> {
    job: Job<'a>,
    done: u64,
    refused: u64,
    since: Instant,
    last: Option<Instant>,
}

impl Progress<'_> {
    fn how_far(&self) -> HowFar {
        HowFar { elapsed: self.since.elapsed(), done: self.done.min(self.job.total), refused: self.refused }
    }

    /// How far it was when it was seen to take longer than the budget allows.
    fn beyond(&self) -> Option<(Allowance, HowFar)> {
        let far = self.how_far();
        self.job.allowed.filter(|a| a.is_over(far, self.job.total)).map(|a| (a, far))
    }

    fn show(&mut self, events: &mut dyn FnMut(Event), at_once: bool) {
        let due = self.last.is_none_or(|l| l.elapsed() >= Duration::from_millis(250));
        if due || at_once {
            self.last = Some(Instant::now());
            events(Event::Preparing {
                what: self.job.what.to_owned(),
                unit: self.job.unit,
                done: self.done.min(self.job.total),
                total: self.job.total,
                elapsed: self.since.elapsed(),
                refused: self.refused,
            });
        }
    }
}

/// One pass. Gives the keys of ops that did not end well.
fn once(
    workers: Vec<WorkerSpec>,
    progress: &mut Progress<'_>,
    patience: &mut Patience,
    events: &mut dyn FnMut(Event),
    interrupt: &Interrupt,
) -> Result<(Vec<WorkerEnd>, Vec<u64>), CrewError> {
    let spec = StageSpec {
        epoch_ns: plimsoll_engine::ring::monotonic_ns(),
        // A round begins on its grid, and there are many.
        grid_ns: 20_000_000,
        clock: Clock::Real,
        late_tolerance_ns: u64::MAX,
        workers,
    };
    let running = plimsoll_engine::start_unless(spec, &|| interrupt.is_requested())?;
    let mut refused = Vec::new();
    let (mut stopped, mut beyond) = (None, None);
    loop {
        match running.next(Duration::from_millis(50)) {
            Next::Output(output) => {
                match &output {
                    Output::Interval { interval, .. } => {
                        progress.done += interval.series.iter().map(|s| progress.job.done_in(s)).sum::<u64>();
                        let sum = |f: fn(&Series) -> u64| interval.series.iter().map(f).sum::<u64>();
                        let refused = sum(Series::throttled);
                        progress.refused += refused;
                        patience.saw(sum(Series::ok), refused, Instant::now());
                    }
                    Output::Trace(chunk) => {
                        refused.extend(chunk.records.iter().filter(|r| !r.outcome.is_ok()).map(|r| r.key));
                    }
                }
                running.recycle(output);
            }
            Next::Nothing => {}
            Next::Ended => break,
        }
        let in_vain = patience.is_over(Instant::now());
        // Once it was stopped for that, it does not go on because what was in flight came to a better end.
        beyond = beyond.or_else(|| progress.beyond());
        if interrupt.is_requested() || in_vain.is_some() || beyond.is_some() {
            let since = stopped.get_or_insert_with(|| {
                running.stop();
                Instant::now()
            });
            if since.elapsed() > Duration::from_secs(5) {
                running.abort();
            }
        }
        progress.show(events, false);
    }
    progress.show(events, true);
    let ends = running.join();
    if let Some((allowed, far)) =
        beyond.filter(|_| progress.done < progress.job.total && !interrupt.is_requested())
    {
        return Err(allowed.used_up(&progress.job, far));
    }
    match patience.is_over(Instant::now()) {
        Some(n) if !interrupt.is_requested() => Err(CrewError::input(
            format!(
                "{} could not be prepared: the storage refused all of {n} attempts (429 or 503) for {} s",
                progress.job.what,
                PATIENCE.as_secs()
            ),
            "Wait until it accepts requests, or ask for fewer (--objects, --existing)",
        )),
        _ => Ok((ends, refused)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that refused all with a long Retry-After was waited for without end, whatever the budget.
    #[test]
    fn nothing_but_refusals_ends_it() {
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        let mut p = Patience::from(start);
        assert_eq!(p.is_over(at(1_000)), None, "a large object may take its time");
        p.saw(0, 16, at(1));
        assert_eq!((p.is_over(at(64)), p.is_over(at(65))), (None, Some(16)));
        p.saw(1, 3, at(60));
        assert_eq!(p.is_over(at(124)), None, "one got through");
        p.saw(0, 4, at(100));
        assert_eq!(p.is_over(at(125)), Some(7));
    }

    /// Objects that were there were put again, and a limiter let those through in the place of the ones that were not.
    #[test]
    fn a_round_repeats_what_was_refused_and_nothing_else() {
        let every_third: Vec<u64> = (0..100).map(|i| 3 * i).rev().collect();
        let (ranges, left) = ranges_of([vec![1, 3], every_third.clone()].concat());
        assert_eq!((ranges.len(), ranges[0], ranges[1]), (RANGES, (0, 2), (3, 1)));
        let put = ranges.iter().flat_map(|(first, count)| *first..first + count);
        let mut all: Vec<u64> = put.chain(left).collect();
        all.sort_unstable();
        let mut wanted = [vec![1], every_third].concat();
        wanted.sort_unstable();
        assert_eq!(all, wanted);
        assert_eq!(ranges_of(Vec::new()), (Vec::new(), Vec::new()));
    }
}
