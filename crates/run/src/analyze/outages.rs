//! Outages of each stage's storage, and of single endpoints of it, from the series of the whole load.

use plimsoll_model::claim::{Outage, OutageSpan};
use plimsoll_model::plan::TargetSpec;
use plimsoll_model::{Estimate, Finding, Level, OpKind, Outcome, SeriesId};
use plimsoll_stats::outage::{self, Seen};
use plimsoll_stats::{math, rate};
use plimsoll_store::{Point, RunData, StageData};

use super::line::Line;

/// Of the load's time; more of it makes the stage's rates those of an outage (the width that an interval may have, Q03).
const MOST_OF_THE_LOAD: f64 = 0.1;

/// All of a run.
pub fn of_run(data: &RunData) -> Vec<Outage> {
    data.stages.iter().filter(|s| s.void.is_none()).flat_map(|s| of_stage(data, s)).collect()
}

fn of_stage(data: &RunData, stage: &StageData) -> Vec<Outage> {
    let (from_ns, to_ns) = (stage.start_ns, stage.stop_ns.unwrap_or(stage.last_ns));
    let load = Load::of(data, stage, from_ns, to_ns);
    let mut out = load.outages(&load.points, &at(data, stage));
    for (name, points) in load.endpoints(stage, data) {
        let beside = |o: &Outage| out.iter().all(|all| !overlaps(all, o));
        let own: Vec<Outage> = load.outages(&points, &name).into_iter().filter(|o| beside(o)).collect();
        out.extend(own);
    }
    out.sort_by(|a, b| a.span.from_s.total_cmp(&b.span.from_s));
    out
}

/// What the stage loads, by name.
fn at(data: &RunData, stage: &StageData) -> String {
    let mut names: Vec<String> = stage.endpoints.iter().flatten().cloned().collect();
    names.sort_unstable();
    names.dedup();
    match &names[..] {
        [one] => one.clone(),
        [] => {
            let target = stage.spec.workloads.first().and_then(|w| data.plan.target_of(w).ok());
            match target.map(|(_, t)| t) {
                Some(TargetSpec::Block(b)) => b.path.clone(),
                _ => "the storage".into(),
            }
        }
        many => format!("all {} endpoints", many.len()),
    }
}

fn overlaps(a: &Outage, b: &Outage) -> bool {
    let end = |o: &Outage| o.span.to_s.unwrap_or(o.span.seen_until_s);
    a.span.from_s < end(b) && b.span.from_s < end(a)
}

/// A stage's load, step by step, all its ops together.
struct Load {
    stage: u32,
    start_s: f64,
    dt_s: f64,
    points: Vec<Point>,
    in_flight: Vec<f64>,
    /// What one op takes.
    op_s: f64,
    loads: Vec<SeriesId>,
    span_ns: (u64, u64),
}

impl Load {
    fn of(data: &RunData, stage: &StageData, from_ns: u64, to_ns: u64) -> Self {
        let step_ns = data.step_ns;
        let dt_s = step_ns as f64 / 1e9;
        // Parts are inside their op, and syncs that belong to writes are no load of their own.
        let is_load = |id: &SeriesId| {
            let mix = stage.spec.workloads.get(usize::from(id.workload)).map(|w| &w.mix);
            id.kind != OpKind::UploadPart && mix.is_some_and(|m| m.contains_key(&id.kind))
        };
        let loads: Vec<SeriesId> = stage.series.keys().copied().filter(is_load).collect();
        let mut points: Vec<Point> = Vec::new();
        for id in &loads {
            let mine = stage.points(*id, step_ns, from_ns, to_ns);
            points.resize(points.len().max(mine.len()), Point::default());
            points.iter_mut().zip(mine).for_each(|(a, p)| a.add_counts(p));
        }
        let client = stage.client_points(step_ns, from_ns, to_ns);
        // A slice that no worker handed over is one in which all of them waited: as many were in flight as before.
        let mut in_flight: Vec<f64> = Vec::with_capacity(points.len());
        for i in 0..points.len() {
            let before = in_flight.last().copied().unwrap_or(0.0);
            let seen = client.get(i).filter(|c| c.workers > 0);
            in_flight.push(seen.map_or(before, |c| c.in_flight_ns as f64 / 1e9 / dt_s));
        }
        let took = |p: &Point| {
            let ended = p.ok() + p.throttled();
            (ended > 0).then(|| p.in_system_ns as f64 / 1e9 / ended as f64)
        };
        let times: Vec<f64> = points.iter().filter_map(took).collect();
        Self {
            stage: stage.index,
            start_s: from_ns.div_ceil(step_ns) as f64 * dt_s,
            dt_s,
            op_s: if times.is_empty() { 0.0 } else { math::median(&times) },
            points,
            in_flight,
            loads,
            span_ns: (from_ns, to_ns),
        }
    }

    fn outages(&self, points: &[Point], at: &str) -> Vec<Outage> {
        let column = |f: &dyn Fn(&Point) -> u64| points.iter().map(|p| f(p) as f64).collect::<Vec<f64>>();
        let ok = column(&Point::ok);
        let (throttled, failed) = (column(&Point::throttled), column(&Point::failed));
        let found = outage::find(&Seen {
            ok: &ok,
            throttled: &throttled,
            failed: &failed,
            in_flight: &self.in_flight,
            dt_s: self.dt_s,
            op_s: self.op_s,
        });
        let whole = |x: &[f64]| rate::estimate(x, self.dt_s).known().copied();
        let without = outage::without(&ok, self.dt_s, &found);
        let both: [Option<Estimate>; 2] = [whole(&ok), whole(&without)];
        let seen_until_s = self.start_s + points.len() as f64 * self.dt_s;
        let claimed = |o: &outage::Outage| {
            let span = OutageSpan {
                stage: self.stage,
                at: at.to_owned(),
                from_s: self.start_s + o.from_s,
                to_s: o.to_s.map(|t| self.start_s + t),
                seen_until_s,
            };
            let (ended, outcome) = most(&points[self.slices(o)]);
            let made = Outage::new(span, o.kind, o.during_per_s).ok()?;
            let made = made.rates([o.before_per_s, o.after_per_s], both).recovered(o.recover_s);
            Some(made.attempts(ended, outcome, o.in_flight))
        };
        found.iter().filter_map(claimed).collect()
    }

    fn slices(&self, o: &outage::Outage) -> std::ops::Range<usize> {
        let slice = |s: f64| ((s / self.dt_s).round() as usize).min(self.points.len());
        slice(o.from_s)..o.to_s.map_or(self.points.len(), slice)
    }

    /// Of several endpoints, what each of them answered.
    fn endpoints(&self, stage: &StageData, data: &RunData) -> Vec<(String, Vec<Point>)> {
        let mut out: Vec<(String, Vec<Point>)> = Vec::new();
        for id in &self.loads {
            let names = stage.endpoints.get(usize::from(id.workload)).map_or(&[][..], Vec::as_slice);
            let slices = stage.endpoint_points(*id, data.step_ns, self.span_ns.0, self.span_ns.1);
            for (e, name) in names.iter().enumerate().filter(|_| names.len() > 1) {
                let i = out.iter().position(|(n, _)| n == name).unwrap_or_else(|| {
                    out.push((name.clone(), vec![Point::default(); self.points.len()]));
                    out.len() - 1
                });
                for (p, all) in out[i].1.iter_mut().zip(slices) {
                    let Some(c) = all.get(e) else { continue };
                    p.outcomes[Outcome::Ok.index()] += c.ok;
                    p.outcomes[Outcome::Http503SlowDown.index()] += c.throttled;
                    p.outcomes[Outcome::Reset.index()] += c.failed;
                }
            }
        }
        out
    }
}

/// How many attempts ended without success, and how most of them did.
fn most(points: &[Point]) -> (u64, Option<String>) {
    let count = |o: Outcome| points.iter().map(|p| p.outcomes[o.index()]).fold(0, u64::saturating_add);
    let bad = || Outcome::ALL.into_iter().filter(|o| o.is_failure() || o.is_throttled());
    let ended = bad().map(count).fold(0, u64::saturating_add);
    let most = bad().max_by_key(|o| count(*o)).filter(|_| ended > 0);
    (ended, most.map(|o| o.name().to_owned()))
}

/// What outages do to the results: a stage of which much was one, or which ended in one, has no rate.
pub fn findings(outages: &[Outage], lines: &[Line<'_>], searched: bool) -> Vec<Finding> {
    let mut out = Vec::new();
    let mut stages: Vec<u32> = outages.iter().map(|o| o.span.stage).collect();
    stages.dedup();
    for stage in stages {
        let mine: Vec<&Outage> = outages.iter().filter(|o| o.span.stage == stage).collect();
        let Some(part) = lines.iter().flat_map(|l| &l.parts).find(|p| p.stage.index == stage) else {
            continue;
        };
        let load_s = (part.stage.stop_ns.unwrap_or(part.stage.last_ns) - part.stage.start_ns) as f64 / 1e9;
        let share = mine.iter().map(|o| o.length_s()).sum::<f64>() / load_s.max(f64::MIN_POSITIVE);
        let open = mine.iter().any(|o| o.span.to_s.is_none());
        let spoils = (share > MOST_OF_THE_LOAD || open) && !searched;
        let level = if spoils { Level::Invalid } else { Level::Qualified };
        let longest = mine.iter().max_by(|a, b| a.length_s().total_cmp(&b.length_s()));
        let said = longest.map_or(String::new(), |o| outage::sentence(o).replace("**", ""));
        let more = if mine.len() > 1 {
            format!(" {} in all, this is the longest.", mine.len())
        } else {
            String::new()
        };
        let then = if spoils { " The mean over it is no rate of this storage." } else { "" };
        let text = format!("An outage: {said}{more}{then} Find out what happened then, and measure again.");
        let several = lines.iter().any(|l| l.parts.iter().any(|p| p.stage.index != stage));
        let of_stage = |l: &&Line<'_>| several && l.parts.iter().any(|p| p.stage.index == stage);
        let labels: Vec<Option<String>> =
            match lines.iter().filter(of_stage).map(|l| Some(l.label())).collect() {
                labels if !several => vec![None; 1].into_iter().chain(labels).collect(),
                labels => labels,
            };
        for label in labels {
            let mut f = Finding::new("F60", "outage", level, text.clone()).measured(share, MOST_OF_THE_LOAD);
            f.workload = label;
            f.evidence = mine
                .iter()
                .take(8)
                .map(|o| ("outage".to_owned(), outage::sentence(o).replace("**", "")))
                .collect();
            out.push(f);
        }
    }
    out
}

/// A wide interval has its reason: more time would not make it narrower.
pub fn explain(findings: &mut [Finding], outages: &[Outage]) {
    let Some(o) = outages.first() else { return };
    for f in findings.iter_mut().filter(|f| f.code == "Q03" || f.name == "no_rate" && f.measured.is_some()) {
        let width = f.measured.unwrap_or(0.0) * 100.0;
        f.text = format!(
            "The interval is +-{width:.1} % wide (10 % is the most) because an outage lies in it (F60), which no longer run \
             would mend.{}",
            o.without_per_s.map_or(String::new(), |e| {
                format!(" Without it the load ran at {}.", plimsoll_stats::words::ops_rate(&e))
            })
        );
    }
}

/// Ops that had no answer when the run let them go.
pub fn unanswered(data: &RunData) -> Option<Finding> {
    let of = |s: &StageData| {
        let all = s.series.iter().filter(|(id, _)| id.kind != OpKind::UploadPart).flat_map(|(_, p)| p);
        all.map(|p| p.outcomes[Outcome::Cancelled.index()]).fold(s.report.abandoned, u64::saturating_add)
    };
    let interrupted = data.end.as_deref() == Some("interrupted");
    let stages = || data.stages.iter().filter(|s| s.void.is_none());
    let n: u64 = stages().map(of).fold(0, u64::saturating_add);
    if n == 0 || interrupted {
        return None;
    }
    let asked: u64 = stages().map(|s| s.report.ops).sum();
    let text = format!(
        "{n} of {asked} ops had no answer when the load had ended and a minute had been waited for them: they are in no rate \
         and in no latency, and whether they took effect is not known. The storage hangs, or loses requests."
    );
    Some(Finding::new("F61", "unanswered", Level::Qualified, text).measured(n as f64, 0.0))
}
