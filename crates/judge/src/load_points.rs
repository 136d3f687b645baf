//! (k) Load points of a search: response against service time in open loop at fractions of the rate that it found.

use plimsoll_control::load_point_of;
use plimsoll_model::analysis::LoadPoint;
use plimsoll_model::plan::{ControllerSpec, Pacing};
use plimsoll_model::summary::LatencySummary;
use plimsoll_model::{Estimate, Finding, Histogram, Level};
use plimsoll_stats::load_points::{self, PointVerdict};
use plimsoll_store::{Point, RunData, Totals};

use super::line::Line;

/// One point per stage that offered a fraction of the rate found, in the order of the plan.
pub fn of_run(data: &RunData, lines: &[Line<'_>], findings: &[Finding]) -> Vec<LoadPoint> {
    let Some(ControllerSpec::Saturation { load_points: fractions, .. }) = &data.plan.controller else {
        return Vec::new();
    };
    let mut points: Vec<LoadPoint> =
        lines.iter().filter_map(|l| point(data, l, fractions, findings)).collect();
    // Of several searches those of each stay together.
    let order: Vec<String> = points.iter().map(|p| p.op_class.clone()).collect();
    let at = |op: &str| order.iter().position(|o| o == op);
    points.sort_by(|a, b| at(&a.op_class).cmp(&at(&b.op_class)).then(a.fraction.total_cmp(&b.fraction)));
    points
}

fn point(data: &RunData, line: &Line<'_>, fractions: &[f64], findings: &[Finding]) -> Option<LoadPoint> {
    let part = line.parts.first()?;
    let fraction = *fractions.get(load_point_of(&part.stage.spec)?.1)?;
    let Pacing::Poisson(rate) = &part.spec().pacing else { return None };
    // Of a mix the total stands for the point; its kinds have no rate of their own.
    if line.kind.is_some() && part.spec().mix.len() > 1 {
        return None;
    }
    let summary = line.summary(data);
    let (response, service) = (merged(part.totals, line, false), merged(part.totals, line, true));
    let achieved = summary.ops_per_s;
    let verdict = judge(data, line, rate.0, fraction, achieved);
    let label = line.label();
    let is_mine = |f: &&Finding| f.level == Level::Invalid && f.workload.as_ref() == Some(&label);
    Some(LoadPoint {
        invalid: findings.iter().filter(is_mine).map(|f| f.code.clone()).collect(),
        op_class: line.op_name().into(),
        fraction,
        offered_per_s: rate.0,
        achieved_per_s: achieved,
        sustainable: verdict.is_some_and(|v| v.sustained),
        response: LatencySummary::of(&response),
        service: LatencySummary::of(&service),
        response_spectrum: spectrum(&response),
        service_spectrum: spectrum(&service),
    })
}

fn merged(totals: &Totals, line: &Line<'_>, service: bool) -> Histogram {
    let mut out = Histogram::new();
    for s in totals.series.iter().filter(|s| line.kind.is_none_or(|k| k == s.id.kind)) {
        out.merge(if service { s.service.as_ref().unwrap_or(&s.response) } else { &s.response });
    }
    out
}

/// The number of ops in the system (waiting to be sent, or in flight) by Little's law, slice by slice: completed rate
/// times response time. A backlog that grows without end shows in it, and the chance of the arrivals does not.
fn judge(
    data: &RunData,
    line: &Line<'_>,
    rate_per_s: f64,
    fraction: f64,
    achieved: Option<Estimate>,
) -> Option<PointVerdict> {
    let part = line.parts.first()?;
    let window = part.totals.window;
    let (from, to) = (window.from * data.grid_ns, window.to * data.grid_ns);
    let dt = data.step_ns as f64 / 1e9;
    let mut in_system: Vec<f64> = Vec::new();
    for s in part.totals.series.iter().filter(|s| line.kind.is_none_or(|k| k == s.id.kind)) {
        let points: Vec<Point> = part.stage.points(s.id, data.step_ns, from, to).to_vec();
        in_system.resize(in_system.len().max(points.len()), 0.0);
        let of = |p: &Point| p.counts.ok() as f64 * p.response.mean_ns / 1e9 / dt;
        in_system.iter_mut().zip(&points).for_each(|(sum, p)| *sum += of(p));
    }
    let point = load_points::LoadPointPlan { fraction, rate_per_s, duration_s: in_system.len() as f64 * dt };
    load_points::judge(&point, achieved?.value, &in_system, dt)
}

/// (quantile, nanoseconds), closer together in the tail; only quantiles with ten ops beyond them.
fn spectrum(h: &Histogram) -> Vec<(f64, f64)> {
    if h.is_empty() {
        return Vec::new();
    }
    let count = h.count() as f64;
    let mut out: Vec<f64> = (0..=8).map(|i| f64::from(i) / 10.0).collect();
    for decade in 1..=5 {
        out.extend([1.0, 0.7, 0.5, 0.35, 0.25, 0.15].map(|f| 1.0 - 10f64.powi(-decade) * f));
    }
    out.retain(|q| *q <= 0.5 || count * (1.0 - q) >= LatencySummary::TAIL);
    out.into_iter().map(|q| (q, h.quantile(q) as f64)).collect()
}
