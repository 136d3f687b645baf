//! Lines of a search for the best concurrency, and what holds for the concurrency that it found.

use plimsoll_control::{load_point_of, rung_of};
use plimsoll_model::analysis::{Saturation, SaturationPoint};
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::{Estimate, RunSummary};

use super::line::Line;

/// Repeats of one concurrency are two or three: how much they scatter is known from all of the search together.
pub fn apply(lines: &[Line<'_>], summaries: &mut [WorkloadSummary], found: &[Saturation]) {
    let [found] = found else { return };
    for (line, summary) in lines.iter().zip(summaries) {
        let Some(point) = rung(line).and_then(|c| point(found, c)) else { continue };
        if line.op_name() != found.op_class {
            continue;
        }
        summary.ops_per_s = Some(point.ops_per_s);
        if let Some(b) = &mut summary.bytes_per_s {
            let relative = |x: f64| b.value * x / point.ops_per_s.value.max(f64::MIN_POSITIVE);
            let e = point.ops_per_s;
            *b = Estimate { value: b.value, low: relative(e.low), high: relative(e.high), n_eff: e.n_eff };
        }
    }
}

fn rung(line: &Line<'_>) -> Option<u32> {
    rung_of(&line.parts.first()?.stage.spec)
}

fn point(found: &Saturation, concurrency: u32) -> Option<&SaturationPoint> {
    found.points.iter().find(|p| p.concurrency == concurrency)
}

/// The summary with the lines of the concurrency that was found: what a promise is held against. The other steps were
/// means to its end.
pub fn of_the_best(s: &RunSummary, lines: &[Line<'_>], found: &[Saturation]) -> Option<RunSummary> {
    let best = found.first()?.c95?.value as u32;
    let mut out = s.clone();
    let mut is_best = lines.iter().map(|l| rung(l) == Some(best));
    out.workloads.retain(|_| is_best.next().unwrap_or(false));
    (!out.workloads.is_empty()).then_some(out)
}

/// Labels of the lines that stand beside each other: what is wrong with one of them is wrong with that one. Of a search they
/// are its load points; its other steps lead to one answer together.
pub fn cells(lines: &[Line<'_>], searched: bool) -> Vec<String> {
    let is_cell = |l: &&Line<'_>| {
        let spec = &l.parts[0].stage.spec;
        if l.together {
            return false;
        }
        if searched { load_point_of(spec).is_some() } else { spec.cell.is_some() }
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
