//! A sweep that finds its own cells: a short pilot sees where the caps are, and sizes on both sides of the knee are then
//! measured at concurrencies that saturate.
//!
//! Fixed sizes waste cells far from the knee, and a concurrency at which latency still binds hides a cap behind it. The
//! pilot itself is in stats ([`Pilot`]); its steps are means to an end and no cells of the result.

use plimsoll_model::plan::{ObjectOptions, Stage, Stop};
use plimsoll_model::units::{Size, Span};
use plimsoll_model::{OpKind, Series, Verdict};
use plimsoll_stats::limit_model::Pilot;

use super::sweep::{Sweep, stage_of};
use crate::controller::{ControlRemark, ControlStep, Controller, IN_VAIN, Observation, REFUSED};
use crate::error::ControlError;

/// Sizes of the pilot's ops, and the most of them in flight.
const SMALL_BYTES: u64 = 4 << 10;
const LARGE_BYTES: u64 = 8 << 20;
const MOST: u32 = 256;
/// A step of the pilot: it looks for factors of four, not for percents.
const PILOT_S: f64 = 4.0;
const PILOT_WARMUP_S: f64 = 1.0;
/// Objects of a size that are prepared to be read are no more than this, and hold no more, but are at least so many: preparing
/// takes a limiter's tokens, and there are eight sizes of them.
const MOST_OBJECTS: u64 = 128;
const MOST_BYTES: u64 = 128 << 20;
const LEAST_OBJECTS: u64 = 8;
const LARGEST_BYTES: u64 = 64 << 20;

/// First a pilot for each op, then the cells that it leads to.
#[derive(Debug)]
pub struct Adaptive {
    template: Stage,
    /// Concurrencies that the user named; empty: the pilot's.
    asked: Vec<u32>,
    repeat: u32,
    seed: u64,
    pilots: Vec<(OpKind, Pilot)>,
    /// The pilot at work, and whether it waits for a step.
    at: usize,
    waits: bool,
    /// Steps of the pilots so far.
    steps: u32,
    cells: Vec<(OpKind, Size, u32)>,
    list: Option<Sweep>,
    remark: Option<String>,
}

impl Adaptive {
    /// `concurrencies`: of the cells, and the pilot goes no higher; empty: the pilot finds them.
    pub fn new(template: &Stage, ops: &[OpKind], concurrencies: &[u32], repeat: u32, seed: u64) -> Self {
        let most = concurrencies.iter().copied().max().unwrap_or(MOST);
        Self {
            template: template.clone(),
            asked: concurrencies.to_vec(),
            repeat,
            seed,
            pilots: ops.iter().map(|op| (*op, Pilot::new(SMALL_BYTES, LARGE_BYTES, most))).collect(),
            at: 0,
            waits: false,
            steps: 0,
            cells: Vec::new(),
            list: None,
            remark: None,
        }
    }

    /// The next step of the pilots; `None` when all have ended.
    fn pilot(&mut self, seen: &[Observation]) -> Option<Stage> {
        while let Some((op, pilot)) = self.pilots.get_mut(self.at) {
            if std::mem::take(&mut self.waits)
                && let (Some((size, _)), Some(last)) = (pilot.next(), seen.last())
            {
                pilot.saw(rate(last, size));
            }
            if let Some((size, concurrency)) = pilot.next() {
                self.waits = true;
                self.steps += 1;
                let cell = (*op, Size(size), concurrency);
                return Some(pilot_stage(&self.template, cell));
            }
            let (op, campaign) = (*op, pilot.campaign());
            self.take(op, campaign);
            self.at += 1;
        }
        None
    }

    fn take(&mut self, op: OpKind, campaign: Verdict<plimsoll_stats::limit_model::Campaign>) {
        let text = match campaign {
            Verdict::Known(c) => {
                let mut sizes: Vec<Size> = c.sizes_bytes.iter().map(|s| round(*s)).collect();
                sizes.dedup();
                let concurrencies = if self.asked.is_empty() { &c.concurrencies } else { &self.asked };
                for size in &sizes {
                    self.cells.extend(concurrencies.iter().map(|c| (op, *size, *c)));
                }
                let ends =
                    sizes.first().zip(sizes.last()).map_or(String::new(), |(a, b)| format!("{a} to {b}"));
                format!("pilot of {op}: {} sizes from {ends}, at {concurrencies:?} in flight", sizes.len())
            }
            Verdict::Inconclusive(why) => format!("pilot of {op}: {why}"),
        };
        let before = self.remark.take().map_or(String::new(), |t| t + "; ");
        self.remark = Some(before + &text);
    }
}

/// Whole KiB, so that a size can be read and typed; a knee is not known better than to 10 % here.
fn round(bytes: u64) -> Size {
    let kib = (bytes as f64 / 1024.0).round() as u64;
    Size(if kib >= 4 { kib * 1024 } else { bytes.max(1) }.min(LARGEST_BYTES))
}

fn seconds(s: f64) -> Span {
    Span(std::time::Duration::from_secs_f64(s))
}

fn pilot_stage(template: &Stage, cell: (OpKind, Size, u32)) -> Stage {
    let mut stage = bounded(stage_of(template, cell, 0, 0));
    stage.cell = None;
    let name = stage.name.take().unwrap_or_default();
    stage.name = Some(format!("pilot: {name}"));
    stage.warmup = Span(stage.warmup.0.min(seconds(PILOT_WARMUP_S).0));
    for w in &mut stage.workloads {
        let asked_s = w.stop.duration.map_or(PILOT_S, |d| d.0.as_secs_f64());
        w.stop = Stop { duration: Some(seconds(asked_s.min(PILOT_S))), ..Stop::default() };
        w.name = format!("pilot {}", w.name);
    }
    stage
}

/// What is prepared to be read stays small: the user named no sizes, and cannot know how much they come to.
fn bounded(mut stage: Stage) -> Stage {
    for w in &mut stage.workloads {
        let size = w.size.mean_bytes().max(1);
        let objects = w.object.get_or_insert_with(ObjectOptions::default);
        if objects.dataset.is_none() {
            objects.objects = objects.objects.min(MOST_OBJECTS).min((MOST_BYTES / size).max(LEAST_OBJECTS));
        }
    }
    stage
}

/// Ops per second as bytes moved: large ops that have not ended count for what they did.
fn rate(o: &Observation, size_bytes: u64) -> f64 {
    let sum = |f: fn(&Series) -> u64| o.series.iter().map(f).sum::<u64>() as f64;
    let (ok, refused, failed) = (sum(Series::ok), sum(Series::throttled), sum(Series::failed));
    let moved = sum(|s| s.counts.bytes_moved) / size_bytes.max(1) as f64;
    let in_vain = refused > REFUSED * (ok + refused) || failed > IN_VAIN * (ok + refused + failed);
    let ops = if in_vain { ok } else { ok.max(moved) };
    if o.window_s > 0.0 { ops / o.window_s } else { 0.0 }
}

impl Controller for Adaptive {
    fn next(&mut self, seen: &[Observation]) -> ControlStep {
        if self.list.is_none() {
            if let Some(stage) = self.pilot(seen) {
                return ControlStep::Run(Box::new(stage));
            }
            self.list = Some(Sweep::of_cells(&self.template, &self.cells, self.repeat, self.seed));
        }
        match self.list.as_mut().map(|l| l.next(seen)) {
            Some(ControlStep::Run(stage)) => ControlStep::Run(Box::new(bounded(*stage))),
            other => other.unwrap_or(ControlStep::Done),
        }
    }

    fn remark(&mut self) -> Option<ControlRemark> {
        self.remark.take().map(ControlRemark::from)
    }

    fn total(&self) -> Option<u32> {
        self.list.as_ref()?.total().map(|n| n + self.steps)
    }

    fn resume(&mut self, completed: &[Stage]) -> Result<(), ControlError> {
        if completed.is_empty() {
            return Ok(());
        }
        Err(ControlError::input(
            "a sweep with --sizes auto cannot be resumed: it would pick other sizes",
            "Start it again, or give the sizes with --sizes",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Plan;

    const PLAN: &str = r#"
version = 1
seed = 3
[targets.n]
kind = "null"
[controller]
kind = "sweep"
ops = ["put"]
sizes = []
repeat = 2
[controller.template]
[[controller.template.workload]]
name = "w"
mix = { put = 1 }
"#;

    /// What a storage with 1,000 ops/s, 200 MB/s and 5 ms gives.
    fn observe(stage: &Stage) -> Observation {
        let w = &stage.workloads[0];
        let size = w.size.mean_bytes();
        let per_s = (f64::from(w.concurrency) / 0.005).min(1000.0).min(200e6 / size as f64);
        let id = plimsoll_model::SeriesId { stage: 0, workload: 0, kind: OpKind::Put };
        let mut s = Series::new(id, plimsoll_model::interval::SeriesShape::default());
        s.counts.outcomes[0] = (per_s * 4.0) as u64;
        s.counts.bytes_moved = (per_s * 4.0 * size as f64) as u64;
        Observation {
            stage: stage.clone(),
            window_s: 4.0,
            series: vec![s],
            start_s: 0.0,
            end_s: 5.0,
            window_start_s: 1.0,
            slice_s: 0.1,
            slices: vec![],
            busy_fraction: 0.1,
            held_back: 0.0,
            machines: 1,
        }
    }

    #[test]
    fn bytes_of_failed_ops_are_no_ops() {
        let plan = Plan::from_toml(PLAN).unwrap();
        let mut c = super::super::of_plan(&plan).unwrap();
        let ControlStep::Run(stage) = c.next(&[]) else { panic!("no pilot") };
        let size = stage.workloads[0].size.mean_bytes();
        let mut o = observe(&stage);
        o.series[0].counts.outcomes[plimsoll_model::Outcome::ShortBody.index()] =
            std::mem::take(&mut o.series[0].counts.outcomes[0]);
        assert_eq!(rate(&o, size), 0.0);
    }

    #[test]
    fn a_pilot_chooses_sizes_on_both_sides_of_the_knee() {
        let plan = Plan::from_toml(PLAN).unwrap();
        let mut c = super::super::of_plan(&plan).unwrap();
        let (mut seen, mut cells) = (Vec::new(), Vec::new());
        while let ControlStep::Run(stage) = c.next(&seen) {
            seen.push(observe(&stage));
            let w = &stage.workloads[0];
            match &stage.cell {
                None => assert!(cells.is_empty() && w.name.starts_with("pilot"), "the pilot comes first"),
                Some(_) => cells.push((w.size.mean_bytes(), w.concurrency)),
            }
        }
        assert_eq!(Some(seen.len() as u32), c.total());
        // 200 KB is the knee; every cell twice.
        let (small, large) = (cells.iter().filter(|c| c.0 < 100_000), cells.iter().filter(|c| c.0 > 400_000));
        assert!(small.count() >= 12 && large.count() >= 12, "{cells:?}");
        assert!(cells.iter().any(|c| c.1 == 1) && cells.iter().any(|c| c.1 >= 64), "{cells:?}");
        assert!(cells.iter().all(|c| cells.iter().filter(|d| *d == c).count() == 2));
        let text = c.remark().unwrap().text;
        assert!(text.starts_with("pilot of put: 8 sizes from"), "{text}");
        assert!(super::super::of_plan(&plan).unwrap().resume(&[seen[0].stage.clone()]).is_err());
    }

    #[test]
    fn nothing_seen_ends_it() {
        let plan = Plan::from_toml(PLAN).unwrap();
        let mut c = super::super::of_plan(&plan).unwrap();
        let mut seen = Vec::new();
        while let ControlStep::Run(stage) = c.next(&seen) {
            seen.push(Observation { series: vec![], ..observe(&stage) });
        }
        assert_eq!(seen.len(), 2);
        assert!(c.remark().unwrap().text.contains("had no rate"));
    }
}
