//! The data of the HTML page, `plimsoll.page/1`: the whole state, which a hello of `web/src/feed.ts` brings. Bounded
//! in size whatever the run's length: series are reduced to some hundred points, numbers to four digits.
//!
//! Times are seconds since the run's start, latencies nanoseconds, sizes bytes.

use std::collections::BTreeMap;

use plimsoll_model::units::OpsRate;
use plimsoll_model::{Analysis, Outcome, RunSummary, SeriesCounts};
use plimsoll_store::{Point, StageData};
use serde::{Deserialize, Serialize};

use crate::drains;
use crate::glance::Glance;
use crate::group::{Group, GroupKey};
use crate::layout::Layout;
use crate::lines::Line;
use crate::number::round4;
use crate::resources::{self, HostResource, ServerCourse};
use crate::run::{RunReport, RunSeries, SealMark};
use crate::several::SideBySide;
use crate::spectrum::Spectrum;
use crate::verdict::{status, verdict};

/// Of the page's data.
pub const SCHEMA: &str = "plimsoll.page/1";

/// All that the HTML page shows; its script reads it as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the program that made the page.
    pub made_by: String,
    /// What the user calls it; absent: what was measured is its title.
    pub title: Option<String>,
    /// Of the table of several runs; empty: all of them.
    pub columns: Vec<String>,
    /// In the order in which they were named.
    pub runs: Vec<PageRun>,
    /// Heads of the group keys; empty with one run.
    pub by: Vec<String>,
    /// Lines of all runs, by [`Page::by`].
    pub groups: Vec<Group>,
    /// What several runs say side by side; null with one run.
    pub together: Option<SideBySide>,
}

/// One run on the page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageRun {
    /// As it is on disk, cleaned.
    pub summary: RunSummary,
    /// `VALID (2 notes)`, `[INVALID V07]`.
    pub status: String,
    /// The verdict with the status before it, if it does not begin with it.
    pub verdict: String,
    /// What the page begins with.
    pub glance: Glance,
    /// The shortest telling name of each line of the summary.
    pub labels: Vec<String>,
    /// What makes each line invalid beside the others: `[INVALID V13]`, or nothing.
    pub spoiled: Vec<String>,
    /// Lines are cells of a sweep.
    pub sweep: bool,
    /// The target is a block device or file.
    pub block: bool,
    /// TOML.
    pub plan: String,
    /// Empty where there is none.
    pub analysis: Analysis,
    /// In the order in which they ran.
    pub stages: Vec<PageStage>,
    /// Of each series that the summary shows.
    pub series: Vec<PageSeries>,
    /// Latencies of whole windows.
    pub spectra: Vec<Spectrum>,
    /// Of all hosts with samples.
    pub resources: Vec<HostResource>,
    /// Of servers' resources with a known ceiling; absent: none was observed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerCourse>,
    /// What is missing from this report, and why.
    pub gaps: Vec<String>,
    /// How the run ended; null: it was killed.
    pub end: Option<String>,
    /// Of its raw data; null: it never ended in order, or is of several runs.
    pub seal: Option<SealMark>,
}

/// A stage as it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageStage {
    /// In the run, from 0.
    pub index: u32,
    /// Of the plan, or the names of its workloads.
    pub name: String,
    /// Of load, seconds since the run's start.
    pub start_s: f64,
    /// Seconds since the run's start.
    pub end_s: f64,
    /// The measured window; null: there was none.
    pub window: Option<(f64, f64)>,
    /// Which repeat of its cell, from 0.
    pub repeat: u32,
    /// Why it does not count.
    pub void: Option<String>,
}

/// One series over time; all arrays have one length. Null: nothing is known for that point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageSeries {
    /// Index into the summary's workloads.
    pub line: Option<usize>,
    /// As [`PageRun::labels`] has it.
    pub label: String,
    /// Kind of op.
    pub op: String,
    /// Index of its stage.
    pub stage: u32,
    /// Start of the first point, and their distance.
    pub start_s: f64,
    /// Distance of points, seconds.
    pub step_s: f64,
    /// Offered rate (open loop), if constant.
    pub offered_per_s: Option<f64>,
    /// Of ops that ended well.
    pub ops_per_s: Vec<Option<f64>>,
    /// Payload as it moved; of ops that ended well where others did not (see `bytes_of_ok`).
    pub bytes_per_s: Vec<Option<f64>>,
    /// `bytes_per_s` counts ops that ended well only.
    pub bytes_of_ok: bool,
    /// Median response of what ended in the point.
    pub p50_ns: Vec<Option<u64>>,
    /// Likewise, 90th percentile.
    pub p90_ns: Vec<Option<u64>>,
    /// Likewise, 99th percentile.
    pub p99_ns: Vec<Option<u64>>,
    /// Likewise, 99.9th percentile.
    pub p999_ns: Vec<Option<u64>>,
    /// Likewise, the longest.
    pub max_ns: Vec<Option<u64>>,
    /// Median time to the first byte; empty where it was not recorded.
    pub ttfb_p50_ns: Vec<Option<u64>>,
    /// Attempts per second by outcome, without `ok`; only outcomes that occurred.
    pub outcomes_per_s: BTreeMap<String, Vec<Option<f64>>>,
}

/// The page's data for one or several runs.
pub fn page(runs: &[RunReport], layout: Layout<'_>) -> Page {
    let alone = layout.by.is_empty() && runs.len() == 1;
    let by = if alone { Vec::new() } else { crate::tables::keys(layout.by, runs) };
    let groups = if by.is_empty() { Vec::new() } else { crate::group::groups(runs, &by) };
    Page {
        schema: SCHEMA.into(),
        made_by: env!("CARGO_PKG_VERSION").into(),
        title: layout.title.map(|_| layout.title_of(runs)),
        columns: layout.columns.to_vec(),
        runs: runs.iter().map(page_run).collect(),
        together: (runs.len() > 1).then(|| SideBySide::of(runs, &by, &groups)),
        by: by.iter().map(GroupKey::name).collect(),
        groups,
    }
}

fn page_run(r: &RunReport) -> PageRun {
    let s = &r.summary;
    let mut run = PageRun {
        summary: s.clone(),
        status: status(s),
        verdict: verdict(s),
        glance: Glance::of(r),
        labels: s.workloads.iter().map(|w| crate::lines::label(w, &s.workloads)).collect(),
        spoiled: s.workloads.iter().map(|w| crate::tables::spoiled(s, w)).collect(),
        sweep: crate::tables::is_sweep(s),
        block: crate::tables::is_block(s),
        plan: String::new(),
        analysis: bounded(r.analysis.clone()),
        stages: Vec::new(),
        series: Vec::new(),
        spectra: Vec::new(),
        resources: Vec::new(),
        servers: Vec::new(),
        gaps: r.gaps.clone(),
        end: None,
        seal: r.seal.clone(),
    };
    if let Some(series) = &r.series {
        let data = &series.data;
        run.plan = data.plan.to_toml();
        run.stages = data.stages.iter().map(|s| page_stage(s, series)).collect();
        run.series = series.lines.iter().filter_map(|l| page_series(l, series)).collect();
        run.spectra = series.spectra.clone();
        run.resources = resources::of(data);
        run.servers = s.servers.as_ref().map_or_else(Vec::new, |servers| resources::courses(data, servers));
        run.end = data.end.clone();
        if run.analysis.buckets.iter().all(|b| b.drains.is_empty()) {
            let shown = drains::of(s, series);
            run.analysis.buckets.extend(shown);
            run.analysis = bounded(run.analysis);
        }
    }
    run
}

/// Evidence comes from others; the page's size must not depend on their restraint.
fn bounded(mut a: Analysis) -> Analysis {
    const MAX: usize = 400;
    for b in &mut a.buckets {
        thin(&mut b.frontier, MAX);
        thin(&mut b.recoveries, MAX);
        b.drains.truncate(24);
        b.drains.iter_mut().for_each(|d| thin(&mut d.work, MAX));
    }
    a.holds.iter_mut().for_each(|h| thin(&mut h.events, MAX));
    a.spans.clear();
    a
}

/// Keeps at most `max` of a list: the first, the last, and evenly spaced ones between.
pub fn thin<T: Clone>(list: &mut Vec<T>, max: usize) {
    if list.len() > max {
        let last = list.len() - 1;
        *list = (0..max).map(|i| list[i * last / (max - 1)].clone()).collect();
    }
}

fn seconds(ns: u64) -> f64 {
    (ns as f64 / 1e6).round() / 1e3
}

fn page_stage(s: &StageData, series: &RunSeries) -> PageStage {
    let grid_ns = series.data.grid_ns;
    let window =
        series.lines.iter().find(|l| l.id.stage == s.index).and_then(|l| l.window).or(s.window(grid_ns));
    PageStage {
        index: s.index,
        name: s.spec.name.clone().unwrap_or_else(|| {
            s.spec.workloads.iter().map(|w| w.name.as_str()).collect::<Vec<_>>().join(" + ")
        }),
        start_s: seconds(s.start_ns),
        end_s: seconds(s.end_ns.unwrap_or(s.last_ns)),
        window: window.map(|w| (seconds(w.from * grid_ns), seconds(w.to * grid_ns))),
        repeat: s.spec.cell.as_ref().map_or(0, |c| c.repeat),
        void: s.void.clone(),
    }
}

/// Columns of one series, and what is needed to fill them.
struct Columns<'a> {
    points: &'a [Point],
    /// Seconds of each point in which the stage ran; too short ones carry no rate.
    covered_s: Vec<Option<f64>>,
}

impl Columns<'_> {
    fn rate(&self, pick: impl Fn(&SeriesCounts) -> u64) -> Vec<Option<f64>> {
        self.points
            .iter()
            .zip(&self.covered_s)
            .map(|(p, c)| Some(round4(pick(&p.counts) as f64 / (*c)?)))
            .collect()
    }

    /// A percentile of fewer ops than `least` would only be the maximum under another name.
    fn latency(&self, least: u64, pick: impl Fn(&Point) -> u64) -> Vec<Option<u64>> {
        let known = |(p, c): (&Point, &Option<f64>)| {
            (c.is_some() && p.counts.ok() >= least).then(|| round4(pick(p) as f64) as u64)
        };
        self.points.iter().zip(&self.covered_s).map(known).collect()
    }
}

fn page_series(l: &Line, run: &RunSeries) -> Option<PageSeries> {
    let data = &run.data;
    let stage = data.stages.iter().find(|s| s.index == l.id.stage)?;
    let points = stage.series.get(&l.id)?;
    let end_ns = stage.stop_ns.unwrap_or(stage.last_ns);
    let cover = |i: usize| {
        let from = (stage.first_point + i as u64) * data.step_ns;
        let to = (from + data.step_ns).min(end_ns);
        let covered = to.saturating_sub(from.max(stage.start_ns));
        (covered * 2 >= data.step_ns).then_some(covered as f64 / 1e9)
    };
    let columns = Columns { points, covered_s: (0..points.len()).map(cover).collect() };
    let bytes_of_ok = {
        let all: u64 = points.iter().map(|p| p.counts.outcomes.iter().sum::<u64>()).sum();
        let ok: u64 = points.iter().map(|p| p.counts.ok()).sum();
        (all - ok) as f64 > 0.001 * all as f64
    };
    let ttfb = points.iter().any(|p| p.first_byte.p50_ns > 0);
    Some(PageSeries {
        line: l.line,
        label: l.label.clone(),
        op: l.id.kind.name().into(),
        stage: l.id.stage,
        start_s: seconds(stage.first_point * data.step_ns),
        step_s: seconds(data.step_ns),
        offered_per_s: offered(stage, l),
        ops_per_s: columns.rate(SeriesCounts::ok),
        bytes_per_s: if l.id.kind.moves_bytes() {
            columns.rate(|c| if bytes_of_ok { c.bytes_ok } else { c.bytes_moved })
        } else {
            Vec::new()
        },
        bytes_of_ok,
        p50_ns: columns.latency(1, |p| p.response.p50_ns),
        p90_ns: columns.latency(10, |p| p.response.p90_ns),
        p99_ns: columns.latency(100, |p| p.response.p99_ns),
        p999_ns: columns.latency(1000, |p| p.response.p999_ns),
        max_ns: columns.latency(1, |p| p.response.max_ns),
        ttfb_p50_ns: if ttfb { columns.latency(1, |p| p.first_byte.p50_ns) } else { Vec::new() },
        outcomes_per_s: outcomes(&columns),
    })
}

fn offered(stage: &StageData, l: &Line) -> Option<f64> {
    use plimsoll_model::plan::Pacing;
    let workload = stage.spec.workloads.get(usize::from(l.id.workload))?;
    match workload.pacing {
        // The rate of the whole workload: of one op only when it is alone.
        Pacing::Constant(OpsRate(r)) | Pacing::Capped(OpsRate(r)) | Pacing::Poisson(OpsRate(r))
            if workload.mix.len() == 1 =>
        {
            Some(r)
        }
        _ => None,
    }
}

fn outcomes(columns: &Columns<'_>) -> BTreeMap<String, Vec<Option<f64>>> {
    let bad = Outcome::ALL.into_iter().filter(|o| !o.is_ok() && *o != Outcome::Cancelled);
    bad.filter(|o| columns.points.iter().any(|p| p.counts.outcomes[o.index()] > 0))
        .map(|o| (o.name().to_string(), columns.rate(|c| c.outcomes[o.index()])))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_both_ends() {
        let mut v: Vec<u32> = (0..1000).collect();
        thin(&mut v, 7);
        assert_eq!((v.len(), v[0], v[6]), (7, 0, 999));
        let mut short = vec![1, 2];
        thin(&mut short, 7);
        assert_eq!(short, [1, 2]);
    }
}
