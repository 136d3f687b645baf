//! The search for the concurrency beyond which throughput no longer grows, over the pure controller in stats; and
//! then, where they are asked for, load points: open loop at fractions of the rate that was found.

use std::collections::VecDeque;

use plimsoll_model::plan::{Cell, Pacing, Stage, Stop};
use plimsoll_model::units::{OpsRate, Span};
use plimsoll_model::{Estimate, Finding, Histogram, Level, analysis};
use plimsoll_stats::load_points::{self, LoadPoint};
use plimsoll_stats::saturation::{self, Action, Ended, Options, Phase};

use crate::controller::{Conclusion, Controller, Observation, Step};
use crate::error::ControlError;

/// Share of the workers' time beyond which the client is what was measured (V07).
const CLIENT_BUSY: f64 = 0.85;
/// Load points are long enough for this percentile.
const PERCENTILE: f64 = 0.99;
/// An open loop may have so many times the best concurrency in flight: arrivals come in bunches.
const ROOM: u32 = 4;

/// Cells of the search: measurements of one concurrency are repeats of one cell, whose index is the concurrency. Those
/// that are no part of its curve have cells of their own.
const DRAIN_CELL: u32 = 0;
const RETURN_CELL: u32 = 1 << 24;
const LOAD_CELLS: u32 = 1 << 25;

#[derive(Debug)]
pub struct Saturation {
    search: saturation::Saturation,
    template: Stage,
    max_concurrency: u32,
    /// Observations that the search has seen.
    taken: usize,
    repeats: std::collections::BTreeMap<u32, u32>,
    fractions: Vec<f64>,
    asked_s: Option<f64>,
    /// Length of a load point, where a budget sets it.
    point_s: Option<f64>,
    /// When the first step began, seconds since the run's start: what is made ready before it is not the search's.
    begun_s: Option<f64>,
    /// Load points that are still to be measured; `None` while the search goes on.
    points: Option<VecDeque<(usize, LoadPoint)>>,
}

/// What a plan asks of the search.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    pub max_concurrency: Option<u32>,
    pub p99_ceiling: Option<Span>,
    pub drain: Option<Span>,
    pub load_points: Vec<f64>,
    pub budget: Option<Span>,
    pub seed: u64,
}

/// Load points get at most this share of a budget, and each no more than it would without one.
const POINTS_SHARE: f64 = 0.5;

/// The index of a load point among those of the plan, of a stage that is one.
pub fn load_point_of(stage: &Stage) -> Option<usize> {
    let index = stage.cell.as_ref()?.index;
    index.checked_sub(LOAD_CELLS).map(|i| i as usize)
}

/// The concurrency of a stage that is a point of the search's curve.
pub fn rung_of(stage: &Stage) -> Option<u32> {
    let index = stage.cell.as_ref()?.index;
    (index > DRAIN_CELL && index < RETURN_CELL).then_some(index)
}

impl Saturation {
    pub fn new(template: Stage, wish: Wish) -> Self {
        let mut options = Options {
            seed: wish.seed,
            p99_ceiling_s: wish.p99_ceiling.map(|s| s.0.as_secs_f64()),
            drain_s: wish.drain.map(|s| s.0.as_secs_f64()),
            ..Options::default()
        };
        let budget_s = wish.budget.map(|s| s.0.as_secs_f64());
        let points = wish.load_points.len() as f64;
        let asked_s = template.workloads.iter().find_map(|w| w.stop.duration).map(|d| d.0.as_secs_f64());
        let point_s = budget_s.filter(|_| points > 0.0).map(|b| {
            let share_s = (POINTS_SHARE * b / points - options.ramp_s).max(1.0);
            asked_s.unwrap_or(load_points::LEAST_S).min(share_s)
        });
        let of_points = point_s.map_or(0.0, |s| points * (s + options.ramp_s));
        options.budget_s = budget_s.map(|b| (b - of_points).max(0.0));
        options = options.within_budget();
        if let Some(max) = wish.max_concurrency {
            options.max = max;
            options.start = options.start.min(max);
        }
        // A template that says how long to measure is obeyed.
        if let Some(d) = asked_s {
            options.measure_s = d;
            options.ramp_s = template.warmup.0.as_secs_f64();
        }
        Self {
            search: saturation::Saturation::new(options),
            template,
            max_concurrency: options.max,
            taken: 0,
            repeats: Default::default(),
            fractions: wish.load_points,
            asked_s,
            point_s,
            begun_s: None,
            points: None,
        }
    }

    /// A stage of the template at a concurrency, named for what it is.
    fn stage(&mut self, cell: u32, concurrency: u32, name: &str, mark: &str) -> Stage {
        let repeat = self.repeats.entry(cell).or_default();
        let mut stage = self.template.clone();
        stage.cell = Some(Cell { index: cell, repeat: *repeat });
        *repeat += 1;
        stage.name = Some(name.to_owned());
        for w in &mut stage.workloads {
            w.name = mark.to_owned();
            w.concurrency = concurrency;
        }
        stage
    }

    fn rung(&mut self, concurrency: u32, ramp_s: f64, measure_s: f64, phase: Phase) -> Stage {
        let c = concurrency;
        let (cell, name, mark) = match phase {
            Phase::Drain => (DRAIN_CELL, format!("drain at {c} in flight"), "drain".to_owned()),
            Phase::Ladder => (c, format!("{c} in flight"), format!("c{c}")),
            Phase::Confirm => (c, format!("{c} in flight, again"), format!("c{c}")),
            Phase::Return => (
                RETURN_CELL,
                format!("the first step, {c} in flight, at the end"),
                format!("c{c} at the end"),
            ),
        };
        let mut stage = self.stage(cell, c, &name, &mark);
        stage.warmup = seconds(ramp_s);
        for w in &mut stage.workloads {
            w.stop = Stop { duration: Some(seconds(measure_s)), ..Stop::default() };
        }
        stage
    }

    fn plan_points(&self) -> VecDeque<(usize, LoadPoint)> {
        let out = self.search.outcome();
        // Without a rate that holds there is nothing to be a fraction of.
        let Some(rate) = out.rate.filter(|_| out.changed.is_none()) else { return VecDeque::new() };
        load_points::plan_at(&rate, &self.fractions, PERCENTILE).into_iter().enumerate().collect()
    }

    fn load_point(&mut self, index: usize, point: LoadPoint) -> Stage {
        let best = self.search.outcome().c95.unwrap_or(1);
        let concurrency = best.saturating_mul(ROOM).min(self.max_concurrency.max(best));
        let share = plimsoll_stats::words::about(100.0 * point.fraction, 3);
        let share = share.strip_suffix(".0").unwrap_or(&share);
        let name = format!("{share} % of the rate found");
        let cell = LOAD_CELLS + index as u32;
        let mut stage = self.stage(cell, concurrency, &name, &format!("load {share} %"));
        if self.asked_s.is_none() {
            stage.warmup = seconds(Options::default().ramp_s);
        }
        for w in &mut stage.workloads {
            // Independent users do not come evenly spaced.
            w.pacing = Pacing::Poisson(OpsRate(point.rate_per_s));
            let measure_s = self.point_s.or(self.asked_s).unwrap_or(point.duration_s);
            w.stop = Stop { duration: Some(seconds(measure_s)), ..Stop::default() };
        }
        stage
    }
}

fn seconds(s: f64) -> Span {
    Span(std::time::Duration::from_secs_f64(s.max(0.0)))
}

/// What one stage showed, over all its workloads.
fn observe(o: &Observation) -> saturation::Observation {
    let mut latency = Histogram::new();
    let (mut ok, mut failed, mut ended) = (0, 0, 0);
    for s in &o.series {
        latency.merge(&s.response);
        ok += s.ok();
        failed += s.failed();
        ended += s.ok() + s.failed() + s.throttled();
    }
    let at = |q: f64, least: u64| (latency.count() >= least).then(|| latency.quantile(q) as f64 / 1e9);
    saturation::Observation {
        ops_per_s: if o.window_s > 0.0 { ok as f64 / o.window_s } else { 0.0 },
        mean_latency_s: latency.mean() / 1e9,
        p50_s: at(0.5, 1),
        p99_s: at(0.99, 1000),
        error_rate: if ended > 0 { failed as f64 / ended as f64 } else { 0.0 },
        client_bound: o.busy_fraction > CLIENT_BUSY,
    }
}

impl Controller for Saturation {
    fn next(&mut self, seen: &[Observation]) -> Step {
        if self.points.is_none() {
            if let Some((first, last)) = seen.first().zip(seen.last()) {
                let begun_s = *self.begun_s.get_or_insert(first.start_s);
                self.search.elapsed(last.end_s - begun_s);
            }
            let last = seen.get(self.taken..).and_then(<[Observation]>::last).map(observe);
            self.taken = seen.len();
            match self.search.next(last.as_ref()) {
                Action::Done => self.points = Some(self.plan_points()),
                Action::Measure { concurrency, ramp_s, measure_s, phase } => {
                    return Step::Run(Box::new(self.rung(concurrency, ramp_s, measure_s, phase)));
                }
            }
        }
        match self.points.as_mut().and_then(VecDeque::pop_front) {
            Some((i, point)) => Step::Run(Box::new(self.load_point(i, point))),
            None => Step::Done,
        }
    }

    fn resume(&mut self, completed: &[Stage]) -> Result<(), ControlError> {
        if completed.is_empty() {
            return Ok(());
        }
        Err(ControlError::input(
            "a search for the best concurrency cannot go on after a kill: the storage may have changed meanwhile",
            "Start it again",
        ))
    }

    fn conclude(&self) -> Option<Conclusion> {
        let out = self.search.outcome();
        let w = self.template.workloads.first()?;
        let op = if w.mix.len() > 1 { "total" } else { w.mix.keys().next().map_or("", |k| k.name()) };
        let ns = |s: Option<f64>| s.map(|s| (s * 1e9).round() as u64);
        let point = |(p, rate): (&saturation::Point, &Estimate)| {
            let (p50, p99) = p.percentiles_s();
            analysis::SaturationPoint {
                concurrency: p.concurrency,
                ops_per_s: *rate,
                p50_ns: ns(p50),
                p99_ns: ns(p99),
            }
        };
        let mut found = analysis::Saturation {
            op_class: op.to_owned(),
            size_bytes: w.size.mean_bytes(),
            points: out.curve.iter().zip(&out.rates).map(point).collect(),
            c95: out.c95.map(|c| c95_band(c, &out)),
            plateau_per_s: out.plateau.map(Estimate::exact),
            fewer_fall_short: out.fewer_fall_short,
            verdict: verdict(&out).to_owned(),
        };
        if let (Some(p), Some(rate)) = (&mut found.plateau_per_s, out.rate) {
            let relative = rate.relative_half_width();
            *p = Estimate::symmetric(p.value, p.value * relative, rate.n_eff);
        }
        Some(Conclusion {
            findings: finding(&out).into_iter().collect(),
            saturations: vec![found],
            ..Conclusion::default()
        })
    }
}

/// The ladder has steps: c95 lies above the last concurrency that was surely too small.
fn c95_band(c: u32, out: &saturation::Outcome) -> Estimate {
    Estimate {
        value: f64::from(c),
        low: out.surely_short.map_or(1.0, f64::from).min(f64::from(c)),
        high: f64::from(c),
        n_eff: out.curve.len() as f64,
    }
}

fn verdict(out: &saturation::Outcome) -> &'static str {
    match (&out.ended, out.changed) {
        (_, Some(_)) => "state changed during search",
        (Ended::Saturated, _) => "saturated",
        (Ended::AtMaximum, _) => "not saturated at the largest concurrency",
        (Ended::ClientBound, _) => "client limited",
        (Ended::LatencyCeiling, _) => "latency ceiling",
        (Ended::Errors, _) => "errors",
        (Ended::Budget, _) => "the budget ended before the rate did",
        (Ended::NoThroughput, _) => "no throughput",
    }
}

/// The answer for programs: the verdict says it in words.
fn best(out: &saturation::Outcome) -> Option<Finding> {
    let (c, rate) = (out.c95?, out.rate?);
    let text = format!(
        "{c} in flight give {} ops/s, 95 % or more of the most that was seen; more in flight only wait longer.{}",
        plimsoll_stats::words::about(rate.value, 4),
        if out.fewer_fall_short
            || out.surely_short.is_none() && out.curve.first().is_some_and(|p| p.concurrency == c)
        {
            ""
        } else {
            " Fewer may do as well: their rates are not surely lower. Longer steps (--duration, --budget) would tell."
        }
    );
    let mut f = Finding::new("F20", "best_concurrency", Level::Info, text).measured(f64::from(c), 0.0);
    f.threshold = None;
    f.evidence = vec![("ops per second".into(), format!("{:.1}", rate.value))];
    f.evidence.extend(out.latency_s.map(|s| ("mean latency".into(), format!("{:.3} ms", 1e3 * s))));
    f.evidence.extend(out.knee.map(|k| ("greatest rate over latency".into(), format!("{k} in flight"))));
    Some(f)
}

/// What the last steps of a curve without a plateau show.
fn end_of_curve(out: &saturation::Outcome, top: u32) -> String {
    match out.still_rose {
        Some(true) => format!("The rate still rose at {top} in flight"),
        Some(false) => {
            format!(
                "Whether the rate still rises is open: the last step, to {top} in flight, gained less than 3 %"
            )
        }
        None => format!(
            "Whether the rate rises with more in flight is not known: one step was measured, {top} in flight"
        ),
    }
}

/// What keeps the search's answer from being the storage's, with what to do. The answer itself is in the verdict.
fn finding(out: &saturation::Outcome) -> Option<Finding> {
    if let Some(change) = out.changed {
        let text = format!(
            "The first concurrency, measured again at the end, gave {:.0} % of its first rate: the storage changed during \
             the search, and no concurrency follows from it. Search again, after a rest, or drain a burst first (--drain 60s).",
            100.0 * (1.0 + change)
        );
        return Some(Finding::new("V19", "state_changed", Level::Invalid, text));
    }
    let top = out.curve.last().map_or(0, |p| p.concurrency);
    let (name, level, text) = match out.ended {
        Ended::Saturated => return best(out),
        Ended::AtMaximum => (
            "still_gaining",
            Level::Qualified,
            format!("{}, the most that was allowed: raise --max-concurrency.", end_of_curve(out, top)),
        ),
        Ended::ClientBound => (
            "client_limited",
            Level::Qualified,
            format!(
                "The client was busy at {top} in flight: the search ended there, and the storage may have more. Use more \
                 threads or client machines."
            ),
        ),
        Ended::LatencyCeiling => (
            "latency_ceiling",
            Level::Info,
            format!("At {top} in flight the 99th percentile was above the ceiling: the search ended there."),
        ),
        Ended::Errors => (
            "errors",
            Level::Qualified,
            format!(
                "More than 1 % of the ops failed at {top} in flight: the search ended there. Find the cause first."
            ),
        ),
        Ended::Budget => (
            "still_gaining",
            Level::Qualified,
            format!("{} when the budget ended: give more with --budget.", end_of_curve(out, top)),
        ),
        Ended::NoThroughput => {
            ("no_throughput", Level::Invalid, "No op succeeded: there is no best concurrency.".to_owned())
        }
    };
    Some(Finding::new("F20", name, level, text))
}
