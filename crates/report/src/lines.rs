//! Which series of the raw data belongs to which line of the summary.

use plimsoll_model::plan::{SizeDist, Workload};
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::units::Size;
use plimsoll_model::{Analysis, OpKind, RunSummary, SeriesId};
use plimsoll_store::{RunData, StageData, Window};

/// One series of one stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Stage, workload and op kind.
    pub id: SeriesId,
    /// Index into the summary's workloads; `None` for a series that the summary does not show.
    pub line: Option<usize>,
    /// What tells it from the others of its run.
    pub label: String,
    /// Which repeat of its cell, from 0.
    pub repeat: u32,
    /// What counts of the stage; `None`: nothing.
    pub window: Option<Window>,
}

/// Every series of every stage that counts. The analysis says where each belongs; without it, they are matched
/// by name, op, size and concurrency.
pub fn of(summary: &RunSummary, analysis: &Analysis, data: &RunData) -> Vec<Line> {
    let mut out = Vec::new();
    for stage in data.stages.iter().filter(|s| s.void.is_none()) {
        for id in stage.series.keys() {
            let span = analysis
                .spans
                .iter()
                .find(|s| s.stage == id.stage && s.workload == id.workload && s.kind == id.kind)
                .filter(|s| s.line < summary.workloads.len());
            let workload = stage.spec.workloads.get(usize::from(id.workload));
            let line = span.map(|s| s.line).or_else(|| find(summary, workload?, id.kind));
            out.push(Line {
                id: *id,
                line,
                label: line.map_or_else(
                    || fallback_label(workload, id.kind),
                    |l| label(&summary.workloads[l], &summary.workloads),
                ),
                repeat: stage.spec.cell.as_ref().map_or(0, |c| c.repeat),
                window: window(stage, span, data.grid_ns),
            });
        }
    }
    out
}

fn window(
    stage: &StageData,
    span: Option<&plimsoll_model::analysis::LineSpan>,
    grid_ns: u64,
) -> Option<Window> {
    let Some(s) = span else { return stage.window(grid_ns) };
    let slice = |t: f64| (t * 1e9 / grid_ns as f64).round().max(0.0) as u64;
    let (from, to) = (slice(s.window_start_s), slice(s.window_end_s));
    (from < to).then_some(Window { stage: stage.index, from, to })
}

fn find(summary: &RunSummary, workload: &Workload, kind: OpKind) -> Option<usize> {
    let op = kind.name();
    let size = nominal_bytes(&workload.size);
    let fits = |w: &WorkloadSummary, strict: bool| {
        w.op == op
            && (!strict || (w.concurrency == workload.concurrency && w.name == workload.name))
            && size.is_none_or(|s| s == w.size_bytes || !kind.moves_bytes())
    };
    let position = |strict| summary.workloads.iter().position(|w| fits(w, strict));
    position(true).or_else(|| {
        // Only where it is unambiguous.
        (summary.workloads.iter().filter(|w| fits(w, false)).count() == 1).then(|| position(false)).flatten()
    })
}

/// The one size of a fixed distribution.
fn nominal_bytes(size: &SizeDist) -> Option<u64> {
    match size {
        SizeDist::Fixed(Size(bytes)) => Some(*bytes),
        _ => None,
    }
}

/// What a line is called: its workload, or how many of them it sums up.
pub fn name(w: &WorkloadSummary) -> String {
    match w.name.strip_suffix("together") {
        // A stage's name may stand before it.
        Some(stage) if w.together > 0 => format!("{stage}all {} together", w.together),
        _ => w.name.clone(),
    }
}

/// The shortest name that tells a line from its neighbours: `get 4 KiB`, with the concurrency where that varies.
pub fn label(w: &WorkloadSummary, all: &[WorkloadSummary]) -> String {
    let mut out = w.op.clone();
    if OpKind::parse(&w.op).is_none_or(OpKind::moves_bytes) {
        out.push(' ');
        out.push_str(&size(w, all));
    }
    if w.together > 0 {
        return format!("{out} ({})", name(w));
    }
    let same = |o: &&WorkloadSummary| o.op == w.op && o.size_bytes == w.size_bytes && o.together == 0;
    if all.iter().filter(same).any(|o| o.concurrency != w.concurrency) {
        out.push_str(&format!(", {} in flight", w.concurrency));
    }
    if all.iter().filter(same).any(|o| o.concurrency == w.concurrency && o.name != w.name) {
        out.push_str(&format!(" ({})", w.name));
    }
    out
}

/// The size of a line, written as its neighbours' are.
pub fn size(w: &WorkloadSummary, all: &[WorkloadSummary]) -> String {
    crate::number::size_among(w.size_bytes, crate::number::is_decimal(all.iter().map(|w| w.size_bytes)))
}

fn fallback_label(workload: Option<&Workload>, kind: OpKind) -> String {
    workload.map_or_else(|| kind.name().to_owned(), |w| format!("{kind} ({})", w.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::sweep as summary;

    #[test]
    fn labels_are_as_long_as_they_must_be() {
        let mut s = summary();
        let all = s.workloads.clone();
        assert_eq!(label(&all[0], &all), "put 4 KB");
        let mut twin = all[0].clone();
        twin.concurrency = 64;
        s.workloads.push(twin);
        assert_eq!(label(&s.workloads[0], &s.workloads), "put 4 KB, 16 in flight");
    }
}
