//! The search of one op: its steps as stages of a template, over the pure controller in stats; then its load points.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_model::plan::{Cell, Pacing, Stage, Stop};
use plimsoll_model::units::{OpsRate, Span};
use plimsoll_model::{Finding, Histogram, analysis};
use plimsoll_stats::load_points::{self, LoadPointPlan};
use plimsoll_stats::saturation::{
    self, Ended, LEAST_STEP_S, SaturationAction, SaturationOptions, SaturationPhase,
};
use plimsoll_stats::words;

use super::{DRAIN_CELL, LOAD_CELLS, RETURN_CELL, SEARCH_CELLS, Wish, found};
use crate::controller::Observation;

/// Share of the workers' time beyond which the client is what was measured (V07).
const CLIENT_BUSY: f64 = 0.85;
/// Load points are long enough for this percentile.
const PERCENTILE: f64 = 0.99;
/// An open loop may have so many times the best concurrency in flight: arrivals come in bunches.
const ROOM: u32 = 4;
/// Load points get at most this share of a budget, and each no more than it would without one.
const POINTS_SHARE: f64 = 0.5;
/// So many objects are read at the least: that not all readers read the same one (a choice).
const LEAST_OBJECTS: u64 = 16;
/// With less than so many steps a search shows no more than that it ended, and takes the time of those after it (a choice).
const LEAST_STEPS: f64 = 3.0;

/// One search among those of a run.
#[derive(Debug)]
pub(super) struct OpSearch {
    /// Its place among the searches of the run.
    number: u32,
    /// Ahead of the names of its steps, where there are others.
    prefix: String,
    search: saturation::SaturationSearch,
    template: Stage,
    wish: Wish,
    max_concurrency: u32,
    /// Observations that the search has seen.
    taken: usize,
    repeats: BTreeMap<u32, u32>,
    asked_s: Option<f64>,
    /// Length of a load point, where a budget sets it.
    point_s: Option<f64>,
    /// Where the search stands, for whoever follows; told once.
    pub progress: Option<String>,
    /// Load points that are still to be measured; `None` while the search goes on.
    points: Option<VecDeque<(usize, LoadPointPlan)>>,
    /// No time was left for it.
    pub skipped: bool,
}

impl OpSearch {
    /// `several`: it is one of them, and its steps say which. The budget comes with [`Self::allot`].
    pub fn new(template: Stage, number: u32, several: bool, wish: &Wish) -> Self {
        let mut options = SaturationOptions {
            seed: wish.seed,
            p99_ceiling_s: wish.p99_ceiling.map(|s| s.0.as_secs_f64()),
            drain_s: wish.drain.map(|s| s.0.as_secs_f64()),
            ..SaturationOptions::default()
        };
        if let Some(max) = wish.max_concurrency {
            options.max = max;
            options.start = options.start.min(max);
        }
        let asked_s = template.workloads.iter().find_map(|w| w.stop.duration).map(|d| d.0.as_secs_f64());
        // A template that says how long to measure is obeyed.
        if let Some(d) = asked_s {
            options.fixed = true;
            options.measure_s = d;
            options.ramp_s = template.warmup.0.as_secs_f64();
        }
        let prefix = match template.workloads.first() {
            Some(w) if several => format!("{}/", w.name),
            _ => String::new(),
        };
        Self {
            number,
            prefix,
            search: saturation::SaturationSearch::new(options),
            template,
            wish: wish.clone(),
            max_concurrency: options.max,
            taken: 0,
            repeats: BTreeMap::new(),
            asked_s,
            point_s: None,
            progress: None,
            points: None,
            skipped: false,
        }
    }

    /// What it is of, in names: `put`, `randread 4KiB`.
    pub fn name(&self) -> &str {
        self.template.workloads.first().map_or("", |w| &w.name)
    }

    /// The op of its results; `total` of a mix.
    fn op(&self) -> &'static str {
        let Some(w) = self.template.workloads.first() else { return "" };
        if w.mix.len() > 1 { "total" } else { w.mix.keys().next().map_or("", |k| k.name()) }
    }

    /// Of a budget, what is this search's and that of its load points: from its first step on.
    pub fn allot(&mut self, budget_s: f64) {
        let points = self.wish.load_points.len() as f64;
        let ramp_s = SaturationOptions::default().ramp_s;
        self.point_s = (points > 0.0).then(|| {
            let share_s = (POINTS_SHARE * budget_s / points - ramp_s).max(1.0);
            self.asked_s.unwrap_or(load_points::LEAST_S).min(share_s)
        });
        let of_points = self.point_s.map_or(0.0, |s| points * (s + ramp_s));
        self.search.allot(budget_s - of_points, self.asked_s.is_some());
    }

    /// Has it read so few objects that writing them first is no more than `bytes`: making them ready is of the same budget. Gives what is to
    /// be told of it. A data set with a name is what it is.
    pub fn read_no_more_than(&mut self, bytes: u64) -> Option<String> {
        let mut told = None;
        for w in &mut self.template.workloads {
            if !w.mix.keys().any(|k| k.reads_objects()) {
                continue;
            }
            let o = w.object.get_or_insert_default();
            if o.dataset.is_some() || o.existing.is_some() {
                continue;
            }
            let most = (bytes / w.size.mean_bytes().max(1)).max(LEAST_OBJECTS);
            if o.objects > most {
                told = Some(format!(
                    "{} uses {most} objects in place of {}: writing more of them first would take too much of --budget.",
                    w.name, o.objects
                ));
                o.objects = most;
            }
        }
        told
    }

    /// A budget below this is none.
    pub fn least_s(&self) -> f64 {
        LEAST_STEPS * LEAST_STEP_S + self.wish.drain.map_or(0.0, |d| d.0.as_secs_f64())
    }

    /// Seconds that a step took beside its load, at the most.
    pub fn around_s(&self) -> f64 {
        self.search.most_around_s()
    }

    /// Whether the budget kept it from its answer.
    fn is_cut_off(&self) -> bool {
        let too_short = |e: &Ended| {
            matches!(e, Ended::TooShort { .. }) && self.wish.budget.is_some() && self.asked_s.is_none()
        };
        let ended = self.search.outcome().ended;
        self.skipped || ended == Ended::Budget || too_short(&ended)
    }

    /// Seconds that it would have taken to answer, where the budget kept it from that. `around_s`: of a step beside its load.
    pub fn wants_s(&self, around_s: f64) -> Option<f64> {
        // Load points take their share, and no more than they would without a budget.
        let longest_s = self.asked_s.unwrap_or(load_points::LEAST_S) + SaturationOptions::default().ramp_s;
        let needed_s = self.search.needed_s(around_s);
        let points_s = (self.wish.load_points.len() as f64 * longest_s)
            .min(POINTS_SHARE / (1.0 - POINTS_SHARE) * needed_s);
        self.is_cut_off().then_some(needed_s + points_s)
    }

    /// The next stage of this search, or `None` when it is over. `seen`: its own observations.
    pub fn next(&mut self, seen: &[Observation], after: &str) -> Option<Stage> {
        if self.points.is_none() {
            if let Some((first, last)) = seen.first().zip(seen.last()) {
                self.search.elapsed(last.end_s - first.start_s);
            }
            let last = seen.get(self.taken..).and_then(<[Observation]>::last).map(observe);
            self.taken = seen.len();
            match self.search.next(last.as_ref()) {
                SaturationAction::Done => self.points = Some(self.plan_points()),
                SaturationAction::Measure { concurrency, ramp_s, measure_s, phase } => {
                    self.progress = Some(self.standing(after));
                    return Some(self.rung(concurrency, ramp_s, measure_s, phase));
                }
            }
        }
        let (i, point) = self.points.as_mut()?.pop_front()?;
        Some(self.load_point(i, point))
    }

    /// `step 4 of about 16, about 2 min to go`; of several: `put: step 4 of about 9, about 48 s to go; get comes after`.
    fn standing(&self, after: &str) -> String {
        let ((step, all), left) = (self.search.steps(), words::span(self.search.left_s().round()));
        let head = if self.prefix.is_empty() { String::new() } else { format!("{}: ", self.name()) };
        let then = match self.wish.load_points.len() {
            0 => String::new(),
            n => format!(", then {n} load points"),
        };
        format!("{head}step {step} of about {all}, about {left} to go{then}{after}")
    }

    /// A stage of the template at a concurrency, named for what it is.
    fn stage(&mut self, cell: u32, concurrency: u32, name: &str, mark: &str) -> Stage {
        let repeat = self.repeats.entry(cell).or_default();
        let mut stage = self.template.clone();
        stage.cell = Some(Cell { index: self.number * SEARCH_CELLS + cell, repeat: *repeat });
        *repeat += 1;
        let head = if self.prefix.is_empty() { String::new() } else { format!("{}, ", self.name()) };
        stage.name = Some(format!("{head}{name}"));
        for w in &mut stage.workloads {
            w.name = format!("{}{mark}", self.prefix);
            w.concurrency = concurrency;
        }
        stage
    }

    fn rung(&mut self, concurrency: u32, ramp_s: f64, measure_s: f64, phase: SaturationPhase) -> Stage {
        let c = concurrency;
        let (cell, name, mark) = match phase {
            SaturationPhase::Drain => (DRAIN_CELL, format!("drain at {c} in flight"), "drain".to_owned()),
            SaturationPhase::Ladder => (c, format!("{c} in flight"), format!("c{c}")),
            SaturationPhase::Confirm => (c, format!("{c} in flight, again"), format!("c{c}")),
            SaturationPhase::Return => (
                RETURN_CELL,
                format!("the first step ({c} in flight) again, at the end"),
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

    fn plan_points(&self) -> VecDeque<(usize, LoadPointPlan)> {
        let out = self.search.outcome();
        // Without a rate that holds there is nothing to be a fraction of.
        let Some(rate) = out.rate.filter(|_| out.changed.is_none()) else { return VecDeque::new() };
        load_points::plan_at(&rate, &self.wish.load_points, PERCENTILE).into_iter().enumerate().collect()
    }

    fn load_point(&mut self, index: usize, point: LoadPointPlan) -> Stage {
        let out = self.search.outcome();
        let best = out.c95.unwrap_or(1);
        // Where more in flight are refused there is no room for them: arrivals wait at the client.
        let room = if out.refused_from.is_some() { 1 } else { ROOM };
        let concurrency = best.saturating_mul(room).min(self.max_concurrency.max(best));
        let share = words::about(100.0 * point.fraction, 3);
        let share = share.strip_suffix(".0").unwrap_or(&share);
        let name = format!("{share} % of the rate found");
        let cell = LOAD_CELLS + index as u32;
        let mut stage = self.stage(cell, concurrency, &name, &format!("load {share} %"));
        if self.asked_s.is_none() {
            stage.warmup = seconds(SaturationOptions::default().ramp_s);
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

impl OpSearch {
    /// What it found, in figures and as findings. `more`: what to do where the budget was too little, and the budget that would do.
    pub fn conclude(&self, more: &str, needed_s: f64) -> (analysis::Saturation, Option<Finding>) {
        let size_bytes = self.template.workloads.first().map_or(0, |w| w.size.mean_bytes());
        let (mut figures, finding) = if self.skipped {
            (found::not_begun(self.op(), size_bytes), Some(found::never_begun(self.name(), more)))
        } else {
            let out = self.search.outcome();
            // A length that was given stays what it is, whatever the budget.
            let more = match out.ended {
                Ended::TooShort { .. } if self.asked_s.is_some() => "measure longer (--duration)",
                Ended::TooShort { .. } if self.wish.budget.is_none() => "find out why an op takes so long",
                _ => more,
            };
            (found::figures(self.op(), size_bytes, &out), found::finding(&out, more))
        };
        figures.budget_needed_s = self.is_cut_off().then_some(needed_s);
        // Of several searches what is wrong with one is wrong with that one.
        let on_it = |f: Finding| if self.prefix.is_empty() { f } else { f.on(self.name().to_owned()) };
        (figures, finding.map(on_it))
    }
}

fn seconds(s: f64) -> Span {
    Span(std::time::Duration::from_secs_f64(s.max(0.0)))
}

/// What one stage showed, over all its workloads.
fn observe(o: &Observation) -> saturation::SaturationObservation {
    let mut latency = Histogram::new();
    let (mut ok, mut failed, mut refused, mut ended) = (0, 0, 0, 0);
    for s in &o.series {
        latency.merge(&s.response);
        ok += s.ok();
        failed += s.failed();
        refused += s.throttled();
        ended += s.ok() + s.failed() + s.throttled();
    }
    let at = |q: f64, least: u64| (latency.count() >= least).then(|| latency.quantile(q) as f64 / 1e9);
    let share = |n: u64| if ended > 0 { n as f64 / ended as f64 } else { 0.0 };
    saturation::SaturationObservation {
        ops_per_s: if o.window_s > 0.0 { ok as f64 / o.window_s } else { 0.0 },
        ops: ok,
        latency_cv: if latency.mean() > 0.0 { latency.stdev() / latency.mean() } else { 0.0 },
        mean_latency_s: latency.mean() / 1e9,
        p50_s: at(0.5, 1),
        p99_s: at(0.99, 1000),
        error_rate: share(failed),
        refused: share(refused),
        held_back: o.held_back,
        client_bound: o.busy_fraction > CLIENT_BUSY,
        none_ended: ended == 0,
    }
}
