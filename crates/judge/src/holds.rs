//! Does it hold? Levels, cliffs and token buckets of each line, from the series of its whole load.

use plimsoll_model::analysis::{self, BucketFit, Cliff, Evidence, Hold, MeasuredLevel};
use plimsoll_model::plan::Pacing;
use plimsoll_model::summary::{BucketSummary, LimitSummary};
use plimsoll_model::{Estimate, Finding, SeriesCounts};
use plimsoll_stats::advice::{Known, advice};
use plimsoll_stats::bucket::{self, FitOptions, FitVerdict};
use plimsoll_stats::segment::Piece;
use plimsoll_stats::shape::{self, RateShape};
use plimsoll_stats::steady::{self, SteadyVerdict};
use plimsoll_stats::throttle::{self, Throttle, ThrottleContext, ThrottleVerdict};
use plimsoll_stats::validity::{Facts, SteadyFact};
use plimsoll_stats::words;
use plimsoll_store::RunData;

use plimsoll_control::RATE_DROPPED;

use super::agents::machines;
use super::asked::backs_off;
use super::line::Line;
use super::long_ops::{self, CountedWork};
use super::outages::refused_s;
use super::part::{Part, horizon_s};
use super::resources::Resources;
use super::servers::line_changed_at;
use super::shapes;
use super::throttled::RefusedMeanwhile;

/// Slices of the series that the methods look at.
const STEP_NS: u64 = 1_000_000_000;
/// Refusals that take so much of a window's period are why nothing ends in it (a choice).
const WAITS: f64 = 0.3;
/// A shorter load shows no level: nothing is claimed of it.
const SHORTEST_S: f64 = 20.0;

/// What one line shows over time.
#[derive(Debug, Default)]
pub struct Held {
    pub hold: Hold,
    pub bucket: Option<BucketFit>,
    pub limit: Option<LimitSummary>,
    pub findings: Vec<Finding>,
    /// What follows from its shape, for those who set a limit.
    pub advice: Vec<String>,
    /// The rate fell to a limiter's, whatever more is known of it.
    cliff_is_answer: bool,
}

impl Held {
    /// What the checks of the window may look at.
    pub fn facts(&self) -> Facts {
        let steady = match self.hold.verdict.as_str() {
            "steady" => SteadyFact::Steady,
            "drifting" => SteadyFact::Drifting,
            "unstable" | "growing" | "sawtooth" => SteadyFact::Unstable,
            "throttled" => SteadyFact::Throttled,
            _ => SteadyFact::Undetermined(self.hold.reason.clone()),
        };
        Facts { steady: Some(steady), level_changes: Some(self.hold.cliffs.len()), ..Facts::default() }
    }
}

/// Judges a line by its last repeat that is long enough. Mixed totals have no series of their own. `beside`: what is known of refusals while it ran.
pub fn of_line(index: usize, lines: &[Line<'_>], data: &RunData, beside: RefusedMeanwhile) -> Option<Held> {
    let line = lines.get(index)?;
    line.kind?;
    let part = line.parts.iter().rev().find(|p| horizon_s(p.stage) >= SHORTEST_S)?;
    let (start_ns, stop_ns) = (part.stage.start_ns, part.stage.stop_ns.unwrap_or(part.stage.last_ns));
    let series = Series::of(line, part, data, start_ns, stop_ns)?;
    let (x, dt) = (&series.ok_per_s, series.dt_s);
    let judged = steady::steady(x, dt);
    let fit = bucket::fit(x, dt, &FitOptions { in_flight: series.in_flight, ..FitOptions::default() });
    let offset_s = series.start_s;
    let taken = machine_was_taken(data, part, &fit, offset_s);
    let mut throttle = throttle::judge(x, dt, &fit, &series.context(taken, beside));
    // Refusals that are kept waiting hold all slots for as long: that nothing ends then is no window of the limiter's.
    if let ThrottleVerdict::FixedWindow { period_s, .. } = throttle.verdict
        && series.refused_s >= WAITS * period_s
    {
        throttle.verdict = ThrottleVerdict::Refusing(series.refused_share());
    }
    let shape = shape::shape(x, dt, &judged.levels);
    let throttled = matches!(throttle.verdict, ThrottleVerdict::Proved | ThrottleVerdict::Likely);
    let verdict = match &shape {
        Some(RateShape::Grows(_)) => "growing",
        Some(RateShape::Sawtooth(_)) => "sawtooth",
        None if throttled => "throttled",
        None => judged.verdict.name(),
    };
    let reason = match &judged.verdict {
        SteadyVerdict::Undetermined(why) => why.clone(),
        _ => String::new(),
    };
    let hold = Hold {
        line: index,
        unit: "ops".into(),
        verdict: verdict.into(),
        reason,
        levels: levels(x, &judged.levels, shape.as_ref())
            .into_iter()
            .map(|((a, b), per_s)| MeasuredLevel {
                start_s: offset_s + a as f64 * dt,
                end_s: offset_s + b as f64 * dt,
                per_s,
            })
            .collect(),
        cliffs: cliffs(&throttle, offset_s),
        events: judged.events.iter().map(|e| (offset_s + e.start_s, offset_s + e.end_s)).collect(),
        horizon_s: horizon_s(part.stage),
    };
    let mut held = Held { hold, ..Held::default() };
    // What several workloads share is seen in what they do together.
    let shared = !line.together && together_of(lines, line);
    // One size tells no ops bucket from a bytes bucket, and only a closed loop is sure to have emptied it.
    let closed = part.specs(line.kind).iter().all(|w| matches!(w.pacing, Pacing::Closed));
    // A load that holds back may leave tokens to a bucket that is full: its rate is then less than the limiter's.
    let kept = !series.backs_off || series.keeps_tokens(&fit);
    // What falls all along, and a limiter of another law, has no bucket whatever the fit makes of it.
    let other = matches!(throttle.verdict, ThrottleVerdict::GradualDecline | ThrottleVerdict::Refusing(_));
    let other = other || beside.window_s.is_some() || throttle.fell_from_a_limit();
    // Whoever took the machine's processors made the step, unless refusals say who did.
    let other = other || (taken && throttle.verdict != ThrottleVerdict::Proved);
    // And a line that was made slower made the step, unless refusals say otherwise.
    let by_line = fit.tiers.iter().any(|t| line_changed_at(&data.observed, offset_s + t.cliff_s));
    let other = other || (by_line && throttle.verdict != ThrottleVerdict::Proved);
    held.cliff_is_answer = closed && !shared && fit.verdict.is_limiter() && !other && shape.is_none();
    if held.cliff_is_answer && kept {
        held.bucket = Some(passive_bucket(line, &fit, x, dt, offset_s));
        held.limit = Some(limit(line, &fit, &throttle));
    }
    let refused = series.refused_share();
    held.findings = match &shape {
        Some(shape) => vec![shapes::finding(line, shape, &held.hold, refused)],
        None => findings(line, &fit, &throttle, &judged.verdict, Beside { kept, taken }),
    };
    let law = shapes::law(shape.as_ref(), &throttle, &judged.verdict, shape::range(x, dt), &held.hold);
    let is_block = line.kind.is_some_and(|k| k.is_block());
    held.advice = advice(&Known { law, is_block, untried: true, clients: 1, ..Known::default() });
    Some(held)
}

/// Those that the shape consists of, or those that the series was cut into.
fn levels(x: &[f64], cut: &[Piece], shape: Option<&RateShape>) -> Vec<(Piece, Estimate)> {
    match shape {
        Some(RateShape::Grows(all)) => all.iter().map(|l| (l.piece, l.per_s)).collect(),
        // Pieces of teeth are no levels.
        Some(RateShape::Sawtooth(s)) => vec![((0, x.len()), s.mean)],
        None => cut.iter().map(|&(a, b)| ((a, b), level(&x[a..b]))).collect(),
    }
}

/// A watch asks whether a rate holds, and a cliff is its answer. That the mean over the cliff is no rate spoils that mean, and not
/// the watch.
pub fn answer_of_watch(held: &[Held], lines: &[Line<'_>], findings: &mut [Finding]) {
    let found: Vec<String> = held
        .iter()
        .filter(|h| h.cliff_is_answer)
        .filter_map(|h| Some(lines.get(h.hold.line)?.label()))
        .collect();
    let dropped = findings.iter().any(|f| f.name == RATE_DROPPED);
    for f in findings.iter_mut().filter(|f| f.code == "V04" && f.name == "no_rate") {
        if dropped {
            f.level = plimsoll_model::Level::Qualified;
            f.text = "The mean over the watch mixes what was before a drop, in it and after it, so it is not a rate: F27 has them.".into();
        }
        if f.workload.as_ref().is_some_and(|w| found.contains(w)) {
            f.level = plimsoll_model::Level::Qualified;
            f.text = "The mean over the watch mixes the rates before and after the cliff, so it is not a rate. The \
                      rate after the cliff is reported separately."
                .into();
        }
    }
}

/// It is about how well a rate is known.
pub fn is_of_width(f: &Finding) -> bool {
    ["no_rate", "wide_interval"].contains(&f.name.as_str())
}

/// That the mean over levels, or teeth, is known badly is no fault of the run: what it consists of is reported instead.
pub fn answer_of_shape(held: &[Held], lines: &[Line<'_>], findings: &mut [Finding]) {
    for h in held {
        let Some(line) = lines.get(h.hold.line).filter(|l| l.parts.len() == 1) else { continue };
        let Some(text) = shapes::of_the_mean(&h.hold.verdict) else { continue };
        let label = line.label();
        let is_of_mean =
            |f: &&mut Finding| is_of_width(f) && f.measured.is_some() && f.workload.as_ref() == Some(&label);
        for f in findings.iter_mut().filter(is_of_mean) {
            (f.level, f.text) = (plimsoll_model::Level::Qualified, text.into());
        }
    }
}

/// Whether the line is a part of one that sums up its stage's workloads.
fn together_of(lines: &[Line<'_>], line: &Line<'_>) -> bool {
    let stage = line.parts[0].stage.index;
    lines.iter().any(|l| l.together && l.kind == line.kind && l.parts[0].stage.index == stage)
}

fn level(x: &[f64]) -> Estimate {
    let m = plimsoll_stats::rate::Mean::of(x);
    let half = if m.half_width.is_finite() { m.half_width } else { m.value.abs() };
    Estimate::symmetric(m.value, half, m.n_eff)
}

/// A line's whole load, in slices of a second.
struct Series {
    dt_s: f64,
    start_s: f64,
    ok_per_s: Vec<f64>,
    throttled_per_s: Vec<f64>,
    attempts_per_s: Vec<f64>,
    latency_s: Vec<f64>,
    in_flight: f64,
    closed: bool,
    /// How long refused attempts wait for their answers.
    refused_s: f64,
    /// It pauses after refused attempts as the answers ask, or by its back-off.
    backs_off: bool,
}

impl Series {
    fn of(line: &Line<'_>, part: &Part<'_>, data: &RunData, start_ns: u64, stop_ns: u64) -> Option<Self> {
        let mut counts = part.counts(line.kind, data.step_ns, start_ns, stop_ns);
        let long =
            long_ops::done(part, line.kind, CountedWork::Ops, data, (start_ns, stop_ns)).map(|l| l.per_step);
        counts.truncate(long.as_ref().map_or(usize::MAX, Vec::len));
        let per = (STEP_NS / data.step_ns.max(1)).max(1) as usize;
        let dt_s = per as f64 * data.step_ns as f64 / 1e9;
        let bins: Vec<&[SeriesCounts]> = counts.chunks_exact(per).collect();
        let rate = |f: &dyn Fn(&SeriesCounts) -> u64| -> Vec<f64> {
            bins.iter().map(|b| b.iter().map(f).sum::<u64>() as f64 / dt_s).collect()
        };
        let ok_per_s = match &long {
            Some(done) => done.chunks_exact(per).map(|b| b.iter().sum::<f64>() / dt_s).collect(),
            None => rate(&SeriesCounts::ok),
        };
        let mut latency_s: Vec<f64> = bins
            .iter()
            .map(|b| {
                let ended: u64 = b.iter().map(|c| c.ok() + c.throttled()).sum();
                let time: u128 = b.iter().map(|c| c.in_system_ns).sum();
                if ended > 0 { time as f64 / 1e9 / ended as f64 } else { 0.0 }
            })
            .collect();
        if long.is_some() {
            until_the_next(&mut latency_s);
        }
        let specs = part.specs(line.kind);
        Some(Self {
            dt_s,
            start_s: start_ns.div_ceil(data.step_ns) as f64 * data.step_ns as f64 / 1e9,
            throttled_per_s: rate(&SeriesCounts::throttled),
            attempts_per_s: rate(&|c| c.ok() + c.throttled() + c.failed()),
            ok_per_s,
            latency_s,
            refused_s: refused_s(&counts),
            in_flight: f64::from(part.concurrency(line.kind)),
            // Whatever else is in flight is not known to be.
            closed: specs.len() == part.stage.spec.workloads.len()
                && specs.iter().all(|w| matches!(w.pacing, Pacing::Closed) && w.mix.len() == 1),
            backs_off: specs.iter().any(|w| backs_off(data, w)),
        })
    }

    /// Whether what came in while the load paused fits into the bucket, so that none of it was lost. A refusal finds the bucket empty:
    /// the longest time between two of them, after the last cliff, is the longest that tokens were saved up.
    fn keeps_tokens(&self, fit: &bucket::TierFit) -> bool {
        let Some(tier) = fit.tiers.last() else { return false };
        let after = ((tier.cliff_s / self.dt_s) as usize).min(self.throttled_per_s.len());
        let refused = self.throttled_per_s[after..].iter().map(|n| *n > 0.0);
        let longest = refused.fold((0usize, 0usize), |(run, most), refused| {
            let run = if refused { 0 } else { run + 1 };
            (run, most.max(run))
        });
        // Refusals may be at the begin of one slice and at the end of another.
        let gap_s = (longest.1 + 2) as f64 * self.dt_s;
        gap_s * fit.sustained <= tier.capacity - tier.capacity_half_width
    }

    fn refused_share(&self) -> f64 {
        let sum = |x: &[f64]| x.iter().sum::<f64>();
        sum(&self.throttled_per_s) / sum(&self.attempts_per_s).max(f64::MIN_POSITIVE)
    }

    fn context(&self, taken: bool, beside: RefusedMeanwhile) -> ThrottleContext {
        ThrottleContext {
            window_s: beside.window_s,
            // That nothing was saturated would have to be known of the servers, too.
            saturated: taken.then_some(true),
            // What may be a proxy's proves no limiter.
            refused_per_s: if beside.may_be_down { Vec::new() } else { self.throttled_per_s.clone() },
            attempts_per_s: self.attempts_per_s.clone(),
            latency_s: self.latency_s.clone(),
            concurrency: self.closed.then_some(self.in_flight),
            ..ThrottleContext::default()
        }
    }
}

/// Where nothing ended: what was in flight then is what ended next.
fn until_the_next(latency_s: &mut [f64]) {
    let mut next = 0.0;
    for l in latency_s.iter_mut().rev() {
        if *l > 0.0 {
            next = *l;
        }
        *l = next;
    }
}

/// Steps that are sharp, and clear of slow variation (E2, E3): what is not is no fall at a time, however the levels were cut, and its
/// evidence would deny the fall that it is listed under.
fn cliffs(throttle: &Throttle, offset_s: f64) -> Vec<Cliff> {
    throttle
        .steps
        .iter()
        .filter(|s| s.verdict != ThrottleVerdict::GradualDecline)
        .map(|s| Cliff {
            at_s: offset_s + s.at_s,
            from_per_s: s.from,
            to_per_s: s.to,
            verdict: s.verdict.name().into(),
            evidence: s
                .evidence
                .iter()
                .map(|e| Evidence {
                    code: e.code.into(),
                    text: format!("{}: {}", e.test, e.measured),
                    holds: e.passed,
                    weight: weight(e.code).into(),
                })
                .collect(),
        })
        .collect()
}

/// As in the methods: E1 and E7 prove, E2 and E3 are needed, the others support.
fn weight(code: &str) -> &'static str {
    match code {
        "E1" | "E7" => "decisive",
        "E2" | "E3" => "needed",
        _ => "supports",
    }
}

fn passive_bucket(line: &Line<'_>, fit: &bucket::TierFit, x: &[f64], dt: f64, offset_s: f64) -> BucketFit {
    let work = plimsoll_stats::math::cumulative(x, dt);
    let every = work.len().div_ceil(400).max(1);
    let points = work.iter().enumerate().step_by(every).map(|(i, w)| (i as f64 * dt, *w)).collect();
    let slowest = fit.tiers.last();
    let sustained = fit.sustained;
    BucketFit {
        target: line.parts[0].spec().target.clone().unwrap_or_default(),
        op_class: line.op_name().into(),
        unit: "undetermined".into(),
        sustained_per_s: known(sustained, fit.sustained_half_width),
        burst_per_s: known(fit.burst, fit.burst_half_width),
        capacity: slowest.and_then(|t| known(t.capacity, t.capacity_half_width)),
        refill_per_s: None,
        full_again_s: slowest
            .filter(|_| sustained > 0.0)
            .and_then(|t| known(t.capacity / sustained, t.capacity_half_width / sustained)),
        // How full it was at the start is not known: what came out is what it held at the least.
        status: "bound".into(),
        drains: vec![analysis::Drain {
            start_s: offset_s,
            work: points,
            cliff_s: slowest.map(|t| t.cliff_s),
        }],
        recoveries: Vec::new(),
        frontier: [1.02, 1.05, 1.1, 1.2, 1.5]
            .iter()
            .map(|f| (sustained * f, bucket::min_bucket(x, dt, sustained * f)))
            .collect(),
    }
}

/// What has no interval is not told: a burst of a second or two has none.
fn known(value: f64, half_width: f64) -> Option<Estimate> {
    (value.is_finite() && half_width.is_finite()).then(|| Estimate::symmetric(value, half_width, 1.0))
}

fn limit(line: &Line<'_>, fit: &bucket::TierFit, throttle: &Throttle) -> LimitSummary {
    let capacity = fit.tiers.last().and_then(|t| known(t.capacity, t.capacity_half_width));
    LimitSummary {
        target: line.parts[0].spec().target.clone().unwrap_or_default(),
        op_class: line.op_name().into(),
        scope: "unknown".into(),
        ops_per_s: Some(BucketSummary {
            sustained: known(fit.sustained, fit.sustained_half_width),
            burst: known(fit.burst, fit.burst_half_width),
            capacity,
            refill: None,
            proved: matches!(throttle.verdict, ThrottleVerdict::Proved | ThrottleVerdict::Likely),
            horizon_s: Some(horizon_s(line.parts[line.parts.len() - 1].stage)),
            full_again_s: None,
        }),
        bytes_per_s: None,
        knee_bytes: None,
        // With one size an ops limit and a bytes limit look the same.
        binding: "undetermined".into(),
        refused: None,
        evidence: vec![
            ("line".into(), line.label()),
            ("verdict".into(), throttle.verdict.name().into()),
            (
                "unit".into(),
                "with only one size, operations and bytes cannot be told apart; use plimsoll limits".into(),
            ),
        ],
    }
}

/// Processors of which so much is used have none left for a load. Guess: as of the client (V07).
const FULL: f64 = 0.9;
/// Part of what a load's own use fell by that others took: then they, and no limiter, may have made it fall. Guess.
const TAKEN: f64 = 0.5;
/// Less of the machine is nobody's load. Guess.
const LEAST_TAKEN: f64 = 0.05;

/// Whether others took the client's processors at the deepest step down, and so much of them as may explain it.
fn machine_was_taken(data: &RunData, part: &Part<'_>, fit: &bucket::TierFit, offset_s: f64) -> bool {
    let steps = fit.levels.windows(2).filter(|w| w[1].rate < w[0].rate && w[0].rate > 0.0);
    let Some(w) = steps.min_by(|a, b| (a[1].rate / a[0].rate).total_cmp(&(b[1].rate / b[0].rate))) else {
        return false;
    };
    let ns = |s: f64| ((offset_s + s).max(0.0) * 1e9) as u64;
    let fell = 1.0 - w[1].rate / w[0].rate;
    machines(data, part.stage).into_iter().any(|(agent, host)| {
        let seen =
            |from_s, to_s| Resources::of(&host.samples, &agent.host.machine.nics, ns(from_s), ns(to_s));
        let (before, after) = (seen(w[0].start_s, w[0].end_s), seen(w[1].start_s, w[1].end_s));
        let taken = after.others_cpu.zip(before.others_cpu).map(|(a, b)| a - b);
        let own = before.own_cpu.unwrap_or(0.0);
        after.system_cpu.is_some_and(|used| used >= FULL)
            && taken.is_some_and(|t| t >= LEAST_TAKEN.max(TAKEN * fell * own))
    })
}

/// What is known beside the series.
#[derive(Clone, Copy)]
struct Beside {
    /// The bucket holds what came in while the load paused.
    kept: bool,
    /// Others took the client's processors at the step.
    taken: bool,
}

fn findings(
    line: &Line<'_>,
    fit: &bucket::TierFit,
    throttle: &Throttle,
    steady: &SteadyVerdict,
    beside: Beside,
) -> Vec<Finding> {
    use plimsoll_model::Level::{Info, Qualified};
    let mut out = Vec::new();
    let label = line.label();
    match (&throttle.verdict, &fit.verdict) {
        (
            ThrottleVerdict::Proved | ThrottleVerdict::Likely | ThrottleVerdict::CauseOpen,
            FitVerdict::Bucket | FitVerdict::MultiTier,
        ) => {
            let tier = fit.tiers.last();
            let fell = format!(
                "The rate fell from {:.0} to {:.0} ops/s after {:.0} s ({}), so the mean over the window is not a \
                 sustained rate.",
                tier.map_or(fit.burst, |t| t.before),
                fit.sustained,
                tier.map_or(0.0, |t| t.cliff_s),
                throttle.verdict.name()
            );
            let rest = match (beside.taken, beside.kept) {
                (true, _) => {
                    " Other processes took this machine's CPU at that time, which explains it as well as a \
                              limiter would: measure again without them."
                        .to_owned()
                }
                (false, kept) => format!(
                    " The rate after the fall is {}{:.0} ops/s; measure it with plimsoll limits.",
                    if kept { "" } else { "at least (the load held back after refused attempts) " },
                    fit.sustained
                ),
            };
            let text = fell + &rest;
            out.push(Finding::new("F30", "cliff", Qualified, text).on(label));
        }
        (ThrottleVerdict::PeriodicDips(gap), _) => {
            let text = format!(
                "The rate dips every {gap:.0} s: typical of flushes, garbage collection or compaction."
            );
            out.push(Finding::new("F31", "periodic_dips", Info, text).on(label));
        }
        (ThrottleVerdict::FixedWindow { period_s, units }, _) => {
            let text = format!(
                "The rate comes in windows: {} in each {period_s:.2} s, then nothing. That is a quota.",
                plimsoll_model::count::counted(units.round() as u64, "op")
            );
            out.push(Finding::new("F32", "fixed_window", Qualified, text).on(label));
        }
        (ThrottleVerdict::Refusing(share), _)
            if matches!(steady, SteadyVerdict::Drifting | SteadyVerdict::Unstable) =>
        {
            let text = format!(
                "{} of the attempts were refused, and what got through came at no constant rate: a limiter, of a law that this run \
                 does not tell. Its mean is no limit; plimsoll limits finds the rate that passes without refusals.",
                words::share(*share)
            );
            let level = if *steady == SteadyVerdict::Drifting { Qualified } else { Info };
            out.push(
                Finding::new("F35", "unknown_law", level, text).measured(*share, throttle::REFUSED).on(label),
            );
        }
        _ if *steady == SteadyVerdict::Drifting => {
            let text = "The rate drifted instead of staying at one level, so its mean is not a sustained rate. Find \
                        out what changes.";
            out.push(Finding::new("F33", "drifting", Qualified, text).on(label));
        }
        _ => {}
    }
    out
}
