//! The active probe of an unknown limiter, over the pure controller in stats.
//!
//! A phase of load is one stage without an end of its own; after every few seconds the probe looks at what came and
//! says whether the same load goes on. So a drain is never broken by a pause. What is measured beside it (which ops share
//! the limit, whose limit it is) comes after it, in stages of their own length.

mod advised;
mod asked;
mod beside;
mod kinds;
mod shape;

use asked::PROBES_SHARE;
pub use asked::{Asked, dimensions};
use beside::Beside;
use plimsoll_model::plan::{Pacing, RingChoice, Stage, Stop};
use plimsoll_model::summary::BucketSummary;
use plimsoll_model::units::{OpsRate, Span};
use plimsoll_model::{Finding, Level, OpKind, Plan};
use plimsoll_stats::advice::{Known, surely};
use plimsoll_stats::probe::scope::Dimension;
use plimsoll_stats::probe::{
    OPEN_QUESTION, Probe, ProbeAction, ProbeObservation, ProbeOptions, ProbeOutcome, Resource,
};
use plimsoll_stats::simulate::RatesSeen;
use shape::{Shape, seconds};

use crate::controller::{
    Conclusion, ControlRemark, ControlStep, Controller, IN_VAIN, Observation, REFUSED, Slice,
};
use crate::error::ControlError;

/// A stage of a probe ends when the probe says so; this is only the end of all patience.
const LONGEST_S: f64 = 4.0 * 3600.0;
/// A burst that ends later is not excluded, unless the user's goal is further away.
const HORIZON_S: f64 = 120.0;
/// What the buffers of a connection hold at most, as Linux sizes them by itself (tcp_wmem).
const SOCKET_BYTES: u64 = 4 << 20;
/// Heads of a request and its response, and the headers of their packets, take up less than this of a link.
const HEADER_BYTES: u64 = 2048;

/// The limit probe: its loads as stages, what they show as its observations.
#[derive(Debug)]
pub struct Limits {
    probe: Probe,
    shape: Shape,
    slice_s: f64,
    /// What the probe said while the stage was running.
    pending: Option<ProbeAction>,
    /// The load that is on, and its slices since the last look.
    load: Option<(f64, f64)>,
    chunk: Vec<Slice>,
    /// End of what was seen, seconds since the run's start.
    now_s: f64,
    /// What is measured after the probe.
    beside: Beside,
    /// Observations that were the probe's own.
    probed: usize,
    goal_s: Option<f64>,
    budget_s: f64,
    /// The sizes were told, and that the budget is short.
    told_sizes: bool,
    told_short: bool,
    /// Seconds of load in a row in which nothing was answered and no byte moved, and whether attempts failed in them.
    dead_s: f64,
    dead_failed: bool,
    /// It was so for too long: the storage has gone, and a probe of it tells nothing more.
    gone: bool,
    told_gone: bool,
}

/// A storage from which nothing came for so long has gone: where attempts fail, and where they only wait (choices; a limiter that bans
/// refuses, and that is an answer).
const GONE_S: f64 = 30.0;
const HANGS_S: f64 = 60.0;

/// Name of the finding of a probe that ended because nothing was answered any more.
pub const NOTHING_ANSWERED: &str = "nothing_answered";

impl Limits {
    /// `budget`: for all, what is asked beside the figures included. A template without a workload is an error.
    pub fn new(plan: &Plan, template: Stage, budget: Span, asked: Asked) -> Result<Self, ControlError> {
        let shape = Shape::of(plan, template)?;
        let budget_s = budget.0.as_secs_f64();
        let beside = Beside::new(&shape, asked, budget_s)?;
        let slice_s = plan.options.grid.0.as_secs_f64();
        let goal_s = plan.options.goal.map(|g| g.0.as_secs_f64());
        // With one op in flight and no ring, there is nothing to climb.
        let climbs = plan.options.ring != RingChoice::Psync;
        let options = ProbeOptions {
            small_bytes: shape.small_bytes,
            large_bytes: shape.large_bytes,
            keep_large: shape.named[1],
            concurrency: shape.concurrency,
            most: if climbs { shape.most } else { [0; 2] },
            moves_bytes: shape.moves_bytes,
            overhead_bytes: if shape.is_s3 { HEADER_BYTES } else { 0 },
            // Uploads count as they leave: sockets take up megabytes that have not moved yet. Downloads count as they come.
            buffered_bytes: if shape.is_s3 && shape.uploads { SOCKET_BYTES } else { 0 },
            questions: true,
            // A multiple of the grid, near to what the method was tuned with.
            dt_s: (0.2 / slice_s).round().max(1.0) * slice_s,
            budget_s: (budget_s - beside.expected_s()).max(PROBES_SHARE * budget_s),
            horizon_s: HORIZON_S.max(goal_s.unwrap_or(0.0)),
        };
        Ok(Self {
            probe: Probe::new(options),
            shape,
            slice_s,
            pending: None,
            load: None,
            chunk: Vec::new(),
            now_s: 0.0,
            beside,
            probed: 0,
            goal_s,
            budget_s,
            told_sizes: false,
            told_short: false,
            dead_s: 0.0,
            dead_failed: false,
            gone: false,
            told_gone: false,
        })
    }

    /// As far as the probe has come: asked again at any time.
    pub fn outcome(&self) -> ProbeOutcome {
        self.probe.outcome()
    }

    fn stage(&self, size_bytes: u64, concurrency: u32, offered_per_s: Option<f64>) -> Stage {
        let mut stage = self.shape.stage(size_bytes, concurrency);
        stage.warmup = seconds(0.0);
        stage.name = Some(self.probe.phase());
        for w in &mut stage.workloads {
            w.stop = Stop { duration: Some(seconds(LONGEST_S)), ..Stop::default() };
            if let Some(rate) = offered_per_s {
                w.pacing = Pacing::Constant(OpsRate(rate));
            }
        }
        stage
    }

    /// Slices of the chunk as rates per `dt_s`.
    fn seen(&self, dt_s: f64) -> RatesSeen {
        let per = ((dt_s / self.slice_s).round() as usize).max(1);
        let mut seen = RatesSeen { dt_s: per as f64 * self.slice_s, ..RatesSeen::default() };
        // Bodies of failed ops have moved, too, and are no work: looked at over all of the chunk, since long ops move before they fail.
        let in_chunk = |f: fn(&Slice) -> u64| self.chunk.iter().map(f).sum::<u64>() as f64;
        let in_vain = in_chunk(|s| s.failed) > IN_VAIN * in_chunk(|s| s.ok + s.throttled + s.failed);
        for part in self.chunk.chunks_exact(per) {
            let sum = |f: fn(&Slice) -> u64| part.iter().map(f).sum::<u64>() as f64;
            let ended = sum(|s| s.ok + s.throttled);
            let time_s = part.iter().map(|s| s.in_system_ns).sum::<u128>() as f64 / 1e9;
            seen.ops_per_s.push(sum(|s| s.ok) / seen.dt_s);
            // Bodies of refused uploads move, too, and no limiter charges them; of downloads nothing moves that is refused.
            let refused = self.shape.uploads && sum(|s| s.throttled) > REFUSED * ended;
            let bytes = if refused || in_vain { sum(|s| s.bytes_ok) } else { sum(|s| s.bytes_moved) };
            seen.bytes_per_s.push(bytes / seen.dt_s);
            seen.rejected_per_s.push(sum(|s| s.throttled) / seen.dt_s);
            seen.latency_s.push(if ended > 0.0 { time_s / ended } else { 0.0 });
        }
        seen
    }

    fn next_of_probe(&mut self) -> ControlStep {
        loop {
            let action = match self.pending.take() {
                Some(action) => action,
                None => self.probe.next(&ProbeObservation { now_s: self.now_s, seen: None }),
            };
            match action {
                ProbeAction::Load { size_bytes, concurrency, duration_s, dt_s, offered_per_s, .. } => {
                    self.load = Some((duration_s, dt_s));
                    return ControlStep::Run(Box::new(self.stage(size_bytes, concurrency, offered_per_s)));
                }
                // The stage before has ended, with every op in flight.
                ProbeAction::Stop => {}
                ProbeAction::Idle { seconds } => {
                    self.now_s += seconds;
                    return ControlStep::Idle(std::time::Duration::from_secs_f64(seconds.max(0.0)));
                }
                ProbeAction::Done => return ControlStep::Done,
            }
        }
    }

    /// Whether nothing came back for too long, this slice included.
    fn is_gone(&mut self, slice: &Slice) -> bool {
        let answered = slice.ok + slice.throttled > 0 || slice.bytes_moved > 0;
        if answered || slice.in_flight_ns == 0 && slice.failed == 0 {
            (self.dead_s, self.dead_failed) = (0.0, false);
            return self.gone;
        }
        self.dead_s += self.slice_s;
        self.dead_failed |= slice.failed > 0;
        self.gone |= self.dead_s >= self.patience_s();
        self.gone
    }

    /// How long nothing may be answered.
    fn patience_s(&self) -> f64 {
        if self.dead_failed { GONE_S } else { HANGS_S }
    }

    /// Why the probe ended before it knew all, where the storage was why. The text of its remark is nobody's to read later.
    fn ended_early(&self) -> Option<Finding> {
        let text = format!(
            "Nothing was answered for {:.0} s ({}), and the probe ended: what it found is of the time before. Find out why the \
             storage answers nothing, and probe again; more time would not help.",
            self.dead_s,
            if self.dead_failed { "all attempts failed" } else { "ops were sent, and hung" },
        );
        let found = Finding::new("F59", NOTHING_ANSWERED, Level::Qualified, text);
        self.gone.then(|| found.measured(self.dead_s, self.patience_s()))
    }
}

impl Controller for Limits {
    fn next(&mut self, seen: &[Observation]) -> ControlStep {
        if let Some(last) = seen.last() {
            self.now_s = self.now_s.max(last.end_s);
            self.probe.began(last.start_s);
        }
        self.load = None;
        self.chunk.clear();
        if self.gone {
            return ControlStep::Done;
        }
        if !self.beside.has_begun() {
            match self.next_of_probe() {
                ControlStep::Done => {
                    let machines = seen.iter().map(|o| o.machines).min().unwrap_or(1);
                    self.beside.begin(&self.shape, &self.probe.outcome(), machines);
                }
                step => return step,
            }
            self.probed = seen.len();
        }
        match self.beside.next(&self.shape, &seen[self.probed.min(seen.len())..], self.now_s) {
            Some(stage) => ControlStep::Run(Box::new(stage)),
            None => ControlStep::Done,
        }
    }

    fn slice(&mut self, slice: &Slice) -> bool {
        if self.is_gone(slice) {
            return false;
        }
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
        let look = ProbeObservation { now_s: self.now_s, seen: Some(self.seen(dt_s)) };
        self.chunk.clear();
        match self.probe.next(&look) {
            ProbeAction::Load { continues: true, duration_s, dt_s, .. } => {
                self.load = Some((duration_s, dt_s));
                true
            }
            other => {
                self.pending = Some(other);
                false
            }
        }
    }

    fn remark(&mut self) -> Option<ControlRemark> {
        if self.gone && !std::mem::replace(&mut self.told_gone, true) {
            let text = format!(
                "nothing was answered for {:.0} s: the probe ends, for it would tell nothing more",
                self.dead_s
            );
            return Some(text.into());
        }
        if !std::mem::replace(&mut self.told_sizes, true) && self.shape.moves_bytes {
            let text = format!("probing with {}", self.shape.sizes(None));
            return Some(ControlRemark { is_progress: true, ..text.into() });
        }
        let beside_s = self.beside.expected_s();
        let short = self.beside.is_asked() && beside_s > (1.0 - PROBES_SHARE) * self.budget_s;
        if std::mem::replace(&mut self.told_short, true) || !short {
            return None;
        }
        let text = format!(
            "the additional questions need {beside_s:.0} s, but the budget leaves {:.0} s of {:.0} for them: the \
             last ones may be skipped",
            (1.0 - PROBES_SHARE) * self.budget_s,
            self.budget_s
        );
        Some(text.into())
    }

    fn ends_stages(&self) -> bool {
        true
    }

    fn resume(&mut self, completed: &[Stage]) -> Result<(), ControlError> {
        if completed.is_empty() {
            return Ok(());
        }
        Err(ControlError::input(
            "a limit probe cannot be resumed: the fill of the limiter's buckets is no longer known",
            "Start it again",
        ))
    }

    fn conclude(&self) -> Option<Conclusion> {
        let w = self.shape.workload();
        let target = w.target.as_deref().unwrap_or("target");
        let op = match w.mix.len() {
            1 => w.mix.keys().next().map_or("", |k: &OpKind| k.name()),
            _ => "total",
        };
        let outcome = self.probe.outcome();
        let mut limit = outcome.summary(target, op);
        if self.shape.moves_bytes {
            limit.evidence.push(("sizes".into(), self.shape.sizes(Some(outcome.large_bytes))));
        }
        let mut findings = outcome.findings();
        self.beside.conclude(&mut limit, &mut findings);
        let by_kind = self.beside.by_kind(&mut limit, &mut findings);
        match self.ended_early() {
            Some(why) => {
                // What would need a longer probe needs storage that answers first.
                findings.retain(|f| !(f.name == OPEN_QUESTION && f.text.contains("--budget")));
                findings.push(why);
            }
            None => findings.extend(outcome.horizon_finding(self.goal_s, self.budget_s)),
        }
        let sustained = |b: &Option<BucketSummary>| b.as_ref().and_then(|b| b.sustained);
        let known = Known {
            surely: surely([sustained(&limit.ops_per_s), sustained(&limit.bytes_per_s)]),
            ops_per_s: outcome.limit_of_ops(),
            bytes_per_s: outcome.limit_of_bytes(),
            // Large ops were measured as they are; small ones are as many as bytes allow only where nothing else is in their way.
            ops_open: outcome.is_open(Resource::Ops) && self.shape.asked_bytes < outcome.large_bytes,
            size_bytes: Some(self.shape.asked_bytes as f64).filter(|_| outcome.moves_bytes),
            latency_s: outcome.unloaded_latency_s(),
            clients: 1,
            is_block: self.shape.is_block,
            refuses: outcome.ops.refused() >= 0.01,
            held_for_s: limit.held_for_s(),
            law: outcome.law(),
            untried: false,
            each: Dimension::parse(&limit.scope),
            connections: Some(outcome.ops.concurrency),
        };
        Some(Conclusion {
            findings,
            buckets: outcome.buckets(target, op),
            advice: advised::of(&known, &by_kind, &self.beside.costs(op)),
            limits: std::iter::once(limit).chain(by_kind).collect(),
            ..Conclusion::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        let text = "version = 1\n[targets.s]\nkind = \"sim\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\n\
                    mix = { get = 1 }\nsize = \"4KiB\"\n";
        let plan = Plan::from_toml(text).unwrap();
        let stage = plan.stages[0].clone();
        Limits::new(&plan, stage, seconds(60.0), Asked::default()).unwrap()
    }

    /// Answers that are shorter than what was asked for have moved, and have failed.
    #[test]
    fn bytes_of_failed_ops_are_no_work() {
        let slice = |ok: u64, failed: u64| Slice {
            ok,
            failed,
            bytes_ok: ok * 4096,
            bytes_moved: (ok + failed) * 4096,
            ..Slice::default()
        };
        let bytes = |chunk: Vec<Slice>| {
            let mut l = limits();
            l.chunk = chunk;
            l.seen(0.1).bytes_per_s.iter().sum::<f64>()
        };
        assert_eq!(bytes(vec![slice(0, 150); 10]), 0.0);
        assert!((bytes(vec![slice(80, 20); 10]) / (800.0 * 40960.0) - 1.0).abs() < 1e-9);
        // Also before any op has ended.
        assert_eq!(
            bytes(vec![Slice { bytes_moved: 1 << 20, ..Slice::default() }, slice(0, 150)]),
            0.0,
            "what had not ended failed"
        );
        // Long ops: bytes as they move.
        let moving = bytes(vec![Slice { bytes_moved: 1 << 20, ..Slice::default() }, slice(150, 1)]);
        assert!((moving / (10.0 * f64::from((1 << 20) + 151 * 4096)) - 1.0).abs() < 1e-9, "{moving}");
    }

    /// Seconds until the probe ends of slices that are all alike.
    fn ends_after(slice: Slice) -> Option<f64> {
        let mut l = limits();
        assert!(matches!(l.next(&[]), ControlStep::Run(_)));
        let n = (2.0 * HANGS_S / l.slice_s) as u32;
        let at = (1..=n).find(|_| !l.slice(&slice) && l.gone)?;
        assert!(matches!(l.next(&[]), ControlStep::Done));
        let mut says_so = || l.remark().is_some_and(|r| r.text.starts_with("nothing was answered for "));
        assert_eq!((says_so(), says_so()), (true, false), "once");
        let findings = l.conclude().unwrap().findings;
        let why =
            findings.iter().find(|f| f.name == NOTHING_ANSWERED).expect("it is kept with what was found");
        assert!(
            why.text.contains("why the storage answers nothing") && !why.text.contains("--budget"),
            "{why:?}"
        );
        Some(f64::from(at) * l.slice_s)
    }

    /// It went on to the end of its budget, and called what had gone a limiter.
    #[test]
    fn storage_that_has_gone_ends_the_probe() {
        let near =
            |s: Option<f64>, wanted: f64| assert!(s.is_some_and(|s| (s - wanted).abs() < 0.5), "{s:?}");
        near(ends_after(Slice { failed: 3, ..Slice::default() }), GONE_S);
        // What hangs may come back, and is waited for longer.
        near(ends_after(Slice { in_flight_ns: 1, ..Slice::default() }), HANGS_S);
        // A refusal is an answer; and where nothing is asked, nothing is missed.
        assert_eq!(ends_after(Slice { failed: 3, throttled: 1, ..Slice::default() }), None);
        assert_eq!(ends_after(Slice::default()), None);
        // An answer in between is one.
        let mut l = limits();
        l.next(&[]);
        let (dead, alive) = (Slice { failed: 1, ..Slice::default() }, Slice { ok: 1, ..Slice::default() });
        for _ in 0..3 {
            (0..(0.9 * GONE_S / l.slice_s) as u32).for_each(|_| _ = l.slice(&dead));
            l.slice(&alive);
        }
        assert!(!l.gone && l.ended_early().is_none());
    }
}
