//! Lines of searches for the best concurrency, and what holds for the concurrency that each found.

use std::collections::BTreeSet;

use plimsoll_control::{load_point_of, rung_of, search_of};
use plimsoll_model::analysis::{Saturation, SaturationPoint};
use plimsoll_model::plan::{ControllerSpec, Plan};
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::summary::servers::{ServersLimit, ServersSummary};
use plimsoll_model::{Estimate, Finding, Level, RunSummary};

use super::line::Line;

/// Repeats of one concurrency are two or three: how much they scatter is known from all of the search together.
pub fn apply(lines: &[Line<'_>], summaries: &mut [WorkloadSummary], found: &[Saturation]) {
    for (line, summary) in lines.iter().zip(summaries) {
        let Some((search, c)) = rung(line) else { continue };
        let Some(found) = found.get(search).filter(|f| f.op_class == line.op_name()) else { continue };
        let Some(point) = point(found, c) else { continue };
        summary.ops_per_s = Some(point.ops_per_s);
        if let Some(b) = &mut summary.bytes_per_s {
            let relative = |x: f64| b.value * x / point.ops_per_s.value.max(f64::MIN_POSITIVE);
            let e = point.ops_per_s;
            *b = Estimate { value: b.value, low: relative(e.low), high: relative(e.high), n_eff: e.n_eff };
        }
    }
}

fn rung(line: &Line<'_>) -> Option<(usize, u32)> {
    rung_of(&line.parts.first()?.stage.spec)
}

fn point(found: &Saturation, concurrency: u32) -> Option<&SaturationPoint> {
    found.points.iter().find(|p| p.concurrency == concurrency)
}

/// What of the servers was at its ceiling with the best concurrency in flight. Where the client was the limit, theirs say nothing of the rate.
pub fn with_limits(found: &mut [Saturation], lines: &[Line<'_>], servers: Option<&ServersSummary>) {
    let Some(servers) = servers else { return };
    for (search, found) in found.iter_mut().enumerate() {
        let best = found.c95.map(|c| c.value as u32).filter(|_| found.verdict != "client limited");
        let Some(best) = best else { continue };
        let of_best = |l: &&Line<'_>| rung(l) == Some((search, best));
        let stages: BTreeSet<u32> =
            lines.iter().filter(of_best).flat_map(|l| &l.parts).map(|p| p.stage.index).collect();
        let windows = servers.windows.iter().filter(|w| stages.contains(&w.stage));
        found.limited_by = agreed(windows.filter_map(|w| w.limit.as_ref()));
    }
}

/// What all repeats say; `None` where they do not agree.
fn agreed<'a>(mut limits: impl Iterator<Item = &'a ServersLimit>) -> Option<String> {
    let first = limits.next()?;
    // Of one kind the share differs from repeat to repeat: the least is said.
    let is_same = |l: &&ServersLimit| (&l.verdict, &l.resource) == (&first.verdict, &first.resource);
    let all: Vec<&ServersLimit> = std::iter::once(first).chain(limits).collect();
    let least = all.iter().min_by(|a, b| a.share.total_cmp(&b.share))?;
    all.iter().all(is_same).then(|| least.in_short())
}

/// The summary with the lines of the concurrencies that were found: what a promise is held against. The other steps were
/// means to their end. Of a search without an answer there is no line, and what is promised of it is undetermined.
pub fn of_the_best(s: &RunSummary, lines: &[Line<'_>], found: &[Saturation]) -> Option<RunSummary> {
    if found.is_empty() {
        return None;
    }
    let best = |search: usize| found.get(search)?.c95.map(|c| c.value as u32);
    let mut out = s.clone();
    let mut is_best = lines.iter().map(|l| rung(l).is_some_and(|(search, c)| best(search) == Some(c)));
    out.workloads.retain(|_| is_best.next().unwrap_or(false));
    // Where nothing came back at all, each step shows it.
    let cut_off = found.iter().any(|f| f.budget_needed_s.is_some());
    (cut_off || !out.workloads.is_empty()).then_some(out)
}

/// Whether the run is of several searches, one after the other.
pub fn is_of_several(plan: &Plan) -> bool {
    matches!(&plan.controller, Some(ControllerSpec::Saturation { then, .. }) if !then.is_empty())
}

/// Of several searches what is wrong with one step is wrong with the search that it is of: its steps lead to one answer together,
/// and those of the others do not. Load points stand for themselves.
pub fn confine(findings: &mut [Finding], lines: &[Line<'_>], plan: &Plan) {
    let Some(spec) = plan.controller.as_ref().filter(|_| is_of_several(plan)) else { return };
    let names: Vec<&str> =
        spec.templates().map(|t| t.workloads.first().map_or("", |w| w.name.as_str())).collect();
    for f in findings.iter_mut().filter(|f| f.level == Level::Invalid) {
        let Some(on) = f.workload.clone() else { continue };
        let Some(line) = lines.iter().find(|l| l.label() == on || l.name == on) else { continue };
        let spec = &line.parts[0].stage.spec;
        let name = search_of(spec).filter(|_| load_point_of(spec).is_none()).and_then(|i| names.get(i));
        if let Some(name) = name {
            f.workload = Some((*name).to_owned());
            f.evidence.push(("step".into(), on));
        }
    }
}

/// Says of each of several searches what makes it void.
pub fn mark_void(found: &mut [Saturation], findings: &[Finding], plan: &Plan) {
    let Some(spec) = plan.controller.as_ref().filter(|_| is_of_several(plan)) else { return };
    for (found, template) in found.iter_mut().zip(spec.templates()) {
        let name = template.workloads.first().map(|w| w.name.as_str());
        let is_on = |f: &&Finding| f.level == Level::Invalid && f.workload.as_deref() == name;
        found.invalid = findings.iter().filter(is_on).map(|f| f.code.clone()).collect();
        found.invalid.sort_unstable();
        found.invalid.dedup();
    }
}

/// Labels of the lines that stand beside each other: what is wrong with one of them is wrong with that one. Of a search they
/// are its load points; its other steps lead to one answer together. Of several searches they are those of all.
pub fn cells(lines: &[Line<'_>], searched: bool, several: bool) -> Vec<String> {
    let is_cell = |l: &&Line<'_>| {
        let spec = &l.parts[0].stage.spec;
        if l.together {
            return false;
        }
        if searched && !several { load_point_of(spec).is_some() } else { spec.cell.is_some() }
    };
    let mut labels: Vec<String> = lines.iter().filter(is_cell).map(Line::label).collect();
    labels.dedup();
    // One alone has no others that could stand.
    if labels.len() > 1 || searched { labels } else { Vec::new() }
}

/// A load point, at which the client's own lag counts.
pub fn is_load_point(lines: &[Line<'_>], stage: u32) -> bool {
    lines
        .iter()
        .flat_map(|l| &l.parts)
        .any(|p| p.stage.index == stage && load_point_of(&p.stage.spec).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_that_do_not_agree_say_nothing_of_what_limited_them() {
        let limit = |verdict: &str, share: f64| ServersLimit {
            verdict: verdict.into(),
            resource: if verdict == "one" { "network in".into() } else { String::new() },
            share,
            ceiling: 25e6,
            unit: "B/s".into(),
            ..ServersLimit::default()
        };
        let (a, b, none) = (limit("one", 0.97), limit("one", 0.94), limit("none", 0.6));
        let said = "the servers' network in at its ceiling (94 % of 200Mbit/s)";
        assert_eq!(agreed([&a, &b].into_iter()).as_deref(), Some(said));
        assert_eq!(agreed([&a, &none].into_iter()), None);
        assert_eq!(agreed([].into_iter()), None);
    }
}
