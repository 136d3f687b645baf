//! The active probe of an unknown limiter, over the pure controller in stats.
//!
//! A phase of load is one stage without an end of its own; after every few seconds the probe looks at what came and
//! says whether the same load goes on. So a drain is never broken by a pause.

use plimsoll_model::plan::{SizeDist, Stage, Stop};
use plimsoll_model::units::{Size, Span};
use plimsoll_stats::probe::{Action, Observation as Look, Options, Outcome, Probe};
use plimsoll_stats::simulate::Seen;

use super::{Conclusion, Controller, Observation, Slice, Step};
use crate::error::RunError;

/// A stage of a probe ends when the probe says so; this is only the end of all patience.
const LONGEST_S: f64 = 4.0 * 3600.0;

#[derive(Debug)]
pub struct Limits {
    probe: Probe,
    template: Stage,
    slice_s: f64,
    /// What the probe said while the stage was running.
    pending: Option<Action>,
    /// The load that is on, and its slices since the last look.
    load: Option<(f64, f64)>,
    chunk: Vec<Slice>,
    /// End of what was seen, seconds since the run's start.
    now_s: f64,
}

impl Limits {
    pub fn new(template: Stage, budget: Span, grid: Span) -> Self {
        let slice_s = grid.0.as_secs_f64();
        let concurrency = template.workloads.iter().map(|w| w.concurrency).max().unwrap_or(1);
        let large = match template.workloads.first().map(|w| &w.size) {
            // A size that the user gives is that of the large ops.
            Some(SizeDist::Fixed(s)) if s.0 >= 256 << 10 => s.0,
            _ => 8 << 20,
        };
        let options = Options {
            // The default concurrency of a plan is 1, with which nothing is saturated.
            concurrency: if concurrency > 1 { concurrency } else { 64 },
            large_bytes: large,
            // A multiple of the grid, near to what the method was tuned with.
            dt_s: (0.2 / slice_s).round().max(1.0) * slice_s,
            budget_s: budget.0.as_secs_f64(),
            ..Options::default()
        };
        Self {
            probe: Probe::new(options),
            template,
            slice_s,
            pending: None,
            load: None,
            chunk: Vec::new(),
            now_s: 0.0,
        }
    }

    pub fn outcome(&self) -> Outcome {
        self.probe.outcome()
    }

    fn stage(&self, size_bytes: u64, concurrency: u32) -> Stage {
        let mut stage = self.template.clone();
        stage.warmup = Span(std::time::Duration::ZERO);
        stage.name = Some(self.probe.phase());
        for w in &mut stage.workloads {
            w.size = SizeDist::Fixed(Size(size_bytes));
            w.concurrency = concurrency;
            w.stop = Stop {
                duration: Some(Span(std::time::Duration::from_secs_f64(LONGEST_S))),
                ..Stop::default()
            };
        }
        stage
    }

    /// Slices of the chunk as rates per `dt_s`.
    fn seen(&self, dt_s: f64) -> Seen {
        let per = ((dt_s / self.slice_s).round() as usize).max(1);
        let mut seen = Seen { dt_s: per as f64 * self.slice_s, ..Seen::default() };
        for part in self.chunk.chunks_exact(per) {
            let sum = |f: fn(&Slice) -> u64| part.iter().map(f).sum::<u64>() as f64;
            let ended = sum(|s| s.ok + s.throttled);
            let time_s = part.iter().map(|s| s.in_system_ns).sum::<u128>() as f64 / 1e9;
            seen.ops_per_s.push(sum(|s| s.ok) / seen.dt_s);
            seen.bytes_per_s.push(sum(|s| s.bytes_moved) / seen.dt_s);
            seen.rejected_per_s.push(sum(|s| s.throttled) / seen.dt_s);
            seen.latency_s.push(if ended > 0.0 { time_s / ended } else { 0.0 });
        }
        seen
    }
}

impl Controller for Limits {
    fn next(&mut self, seen: &[Observation]) -> Step {
        if let Some(last) = seen.last() {
            self.now_s = self.now_s.max(last.end_s);
        }
        self.load = None;
        self.chunk.clear();
        loop {
            let action = match self.pending.take() {
                Some(action) => action,
                None => self.probe.next(&Look { now_s: self.now_s, seen: None }),
            };
            match action {
                Action::Load { size_bytes, concurrency, duration_s, dt_s, .. } => {
                    self.load = Some((duration_s, dt_s));
                    return Step::Run(Box::new(self.stage(size_bytes, concurrency)));
                }
                // The stage before has ended, with every op in flight.
                Action::Stop => {}
                Action::Idle { seconds } => {
                    self.now_s += seconds;
                    return Step::Idle(std::time::Duration::from_secs_f64(seconds.max(0.0)));
                }
                Action::Done => return Step::Done,
            }
        }
    }

    fn slice(&mut self, slice: &Slice) -> bool {
        let Some((duration_s, dt_s)) = self.load else { return true };
        // The drain of a stage that was told to end.
        if self.pending.is_some() {
            return false;
        }
        self.chunk.push(*slice);
        self.now_s += self.slice_s;
        if (self.chunk.len() as f64 + 0.5) * self.slice_s < duration_s {
            return true;
        }
        let look = Look { now_s: self.now_s, seen: Some(self.seen(dt_s)) };
        self.chunk.clear();
        match self.probe.next(&look) {
            Action::Load { continues: true, duration_s, dt_s, .. } => {
                self.load = Some((duration_s, dt_s));
                true
            }
            other => {
                self.pending = Some(other);
                false
            }
        }
    }

    fn ends_stages(&self) -> bool {
        true
    }

    fn resume(&mut self, completed: &[Stage]) -> Result<(), RunError> {
        if completed.is_empty() {
            return Ok(());
        }
        Err(RunError::input(
            "a limit probe cannot go on after a kill: what the limiter's buckets hold is not known any more",
            "Start it again",
        ))
    }

    fn conclude(&self) -> Option<Conclusion> {
        let w = self.template.workloads.first()?;
        let op = w.mix.keys().next().map_or("", |k| k.name());
        let outcome = self.probe.outcome();
        Some(Conclusion {
            findings: outcome.findings(),
            limits: vec![outcome.summary(w.target.as_deref().unwrap_or("target"), op)],
            ..Conclusion::default()
        })
    }
}
