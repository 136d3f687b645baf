//! A sweep's cells to the limit model: which cap binds at which size and concurrency.

use plimsoll_model::analysis::{SizeModel, SizeModelCell};
use plimsoll_model::plan::{ControllerSpec, TargetSpec};
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::units::format_size;
use plimsoll_model::{Finding, OpKind, RunStatus, RunSummary, Verdict};
use plimsoll_stats::judge::CONCURRENCY_BOUND;
use plimsoll_stats::limit_model::{self, FittedCap, LimitModelOptions, Plain};
use plimsoll_stats::validity;
use plimsoll_store::{RunData, StageData};

use super::line::Line;

/// A step of the pilot that chose the cells of a sweep: it is none of them.
pub fn is_pilot(data: &RunData, stage: &StageData) -> bool {
    matches!(data.plan.controller, Some(ControllerSpec::Sweep { .. })) && stage.spec.cell.is_none()
}

/// One model per op kind of a sweep. Where the cells do not carry one, its reading says why, and what would.
pub fn models(data: &RunData, lines: &[Line<'_>], summary: &RunSummary) -> Vec<SizeModel> {
    // A list of block sizes is a sweep, too: its stages are cells.
    let of_block = data.plan.controller.is_none()
        && data.plan.targets.values().all(|t| matches!(t, TargetSpec::Block(_)))
        && data.stages.iter().filter(|s| s.spec.cell.is_some()).count() > 1;
    if !of_block && !matches!(data.plan.controller, Some(ControllerSpec::Sweep { .. })) {
        return Vec::new();
    }
    let has_cells = |l: &&Line<'_>| l.kind.is_some_and(OpKind::moves_bytes);
    let mut ops: Vec<&'static str> = lines.iter().filter(has_cells).map(Line::op_name).collect();
    ops.sort_unstable();
    ops.dedup();
    let mut models: Vec<SizeModel> = ops.into_iter().map(|op| model(data, lines, summary, op)).collect();
    if of_block {
        // In the words of the command.
        for m in &mut models {
            m.reading = m.reading.replace(
                "add --sizes or --concurrencies, or use --sizes auto",
                "add sizes to --bs, around the size where the rate starts to fall",
            );
        }
    }
    models
}

/// Of a cell that a cap binds it is not said that its concurrency may have set the rate.
pub fn drop_what_a_cap_explains(
    findings: &mut Vec<Finding>,
    lines: &[WorkloadSummary],
    models: &[SizeModel],
) {
    let is_capped = |w: &WorkloadSummary| {
        models.iter().filter(|m| m.op_class == w.op).flat_map(|m| &m.cells).any(|c| {
            ["ops", "bytes"].contains(&c.binding.as_str())
                && (c.size_bytes, c.concurrency) == (w.size_bytes, w.concurrency)
        })
    };
    let of = |f: &Finding, w: &WorkloadSummary| {
        f.workload.as_ref().is_some_and(|on| *on == w.name || *on == w.label())
    };
    findings.retain(|f| f.name != CONCURRENCY_BOUND || !lines.iter().any(|w| of(f, w) && is_capped(w)));
}

/// What a few sizes at one concurrency show without a model: a level in operations, and one in bytes.
fn of_levels(
    p: &Plain,
    mine: &[(&Line<'_>, &WorkloadSummary)],
    cells: &[limit_model::MeasuredCell],
    blank: SizeModel,
) -> SizeModel {
    let shown = mine.iter().zip(cells).filter(|(_, c)| c.is_usable()).filter_map(|((_, w), c)| {
        // On a level, that is what binds: of operations it may be latency.
        let binding = if c.size_bytes >= p.bytes_from { "bytes" } else { "undetermined" };
        Some(SizeModelCell {
            size_bytes: w.size_bytes,
            concurrency: w.concurrency,
            ops_per_s: w.ops_per_s?,
            predicted: Some(p.ops_per_s.value.min(p.bytes_per_s.value / c.size_bytes)),
            binding: binding.into(),
            room: None,
        })
    });
    SizeModel {
        ops_per_s: Some(p.ops_per_s),
        bytes_per_s: Some(p.bytes_per_s),
        in_flight: Some(p.concurrency as u32),
        reading: format!(
            "the same operations per second up to {}, the same bytes per second from {}; with a single concurrency, \
             a limit on operations cannot be told from latency",
            format_size(p.ops_up_to as u64),
            format_size(p.bytes_from as u64)
        ),
        cells: shown.collect(),
        ..blank
    }
}

/// Cells that are invalid are left out.
fn model(data: &RunData, lines: &[Line<'_>], summary: &RunSummary, op: &str) -> SizeModel {
    // Half of a mix is no load of its own: beside reads alone, the reads of a mix are no cells of the same caps.
    let alone = |l: &Line<'_>| l.parts[0].spec().mix.values().filter(|weight| **weight > 0).count() == 1;
    let any_alone = lines.iter().any(|l| l.op_name() == op && alone(l));
    let usable = |(l, w): &(&Line<'_>, &WorkloadSummary)| {
        l.op_name() == op
            && !l.together
            && (alone(l) || !any_alone)
            && (summary.status == RunStatus::None || validity::is_line_valid(summary, w))
    };
    let mine: Vec<(&Line<'_>, &WorkloadSummary)> =
        lines.iter().zip(&summary.workloads).filter(usable).collect();
    let cells: Vec<limit_model::MeasuredCell> = mine
        .iter()
        .map(|(l, w)| limit_model::MeasuredCell {
            size_bytes: w.size_bytes as f64,
            concurrency: f64::from(w.concurrency),
            ops_per_s: l.run_means(data),
        })
        .collect();
    let repeats = mine.iter().map(|(l, _)| l.parts.len()).min().unwrap_or(0) as u32;
    let target = mine.first().and_then(|(l, _)| l.parts[0].spec().target.clone()).unwrap_or_default();
    let blank = SizeModel { target, op_class: op.to_owned(), repeats, ..SizeModel::default() };
    let found = limit_model::analyse(&cells, LimitModelOptions::default());
    let knows_both =
        found.known().is_some_and(|m| m.ops_cap.value().is_some() && m.bytes_cap.value().is_some());
    if let Some(p) = limit_model::plain(&cells).filter(|_| !knows_both) {
        return of_levels(&p, &mine, &cells, blank);
    }
    let m = match found {
        Verdict::Known(m) => m,
        Verdict::Inconclusive(why) => {
            return SizeModel { reading: format!("{}{why}", SizeModel::UNDETERMINED), ..blank };
        }
    };
    let at_least = |c: &FittedCap| match c {
        FittedCap::AtLeast(v) => Some(*v),
        FittedCap::Value(_) => None,
    };
    // The model's cells are those that have a rate, in order.
    let has_rate = |c: &&(&(&Line<'_>, &WorkloadSummary), &limit_model::MeasuredCell)| c.1.is_usable();
    let with_rate: Vec<_> = mine.iter().zip(&cells).collect();
    let shown = with_rate.iter().filter(has_rate).zip(&m.cells).filter_map(|(((_, w), _), limit)| {
        Some(SizeModelCell {
            size_bytes: w.size_bytes,
            concurrency: w.concurrency,
            ops_per_s: w.ops_per_s?,
            predicted: Some(limit.predicted_ops_per_s),
            binding: limit.binding.name().into(),
            room: Some(1.0 + limit.room),
        })
    });
    SizeModel {
        ops_per_s: m.ops_cap.value(),
        ops_at_least: at_least(&m.ops_cap),
        bytes_per_s: m.bytes_cap.value(),
        bytes_at_least: at_least(&m.bytes_cap),
        knee_bytes: m.knee_bytes,
        p: Some(m.exponent),
        reading: m.reading().into(),
        cells: shown.collect(),
        ..blank
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::{Estimate, Level};

    #[test]
    fn what_the_table_calls_limited_by_bytes_is_not_set_by_the_concurrency() {
        let line = |size_bytes: u64| WorkloadSummary {
            name: format!("randread {}", format_size(size_bytes)),
            op: "read".into(),
            size_bytes,
            concurrency: 16,
            ..WorkloadSummary::default()
        };
        let cell = |size_bytes: u64, binding: &str| SizeModelCell {
            size_bytes,
            concurrency: 16,
            ops_per_s: Estimate::symmetric(135.0, 5.0, 9.0),
            predicted: None,
            binding: binding.into(),
            room: None,
        };
        let lines = [line(4096), line(1 << 20)];
        let told = || -> Vec<Finding> {
            let of = |w: &WorkloadSummary| {
                Finding::new("F02", CONCURRENCY_BOUND, Level::Info, "x").on(w.name.clone())
            };
            lines.iter().map(of).collect()
        };
        let model = SizeModel {
            op_class: "read".into(),
            cells: vec![cell(4096, "undetermined"), cell(1 << 20, "bytes")],
            ..SizeModel::default()
        };
        let mut findings = told();
        drop_what_a_cap_explains(&mut findings, &lines, &[model]);
        assert_eq!(findings, told()[..1]);
        drop_what_a_cap_explains(&mut findings, &lines, &[]);
        assert_eq!(findings.len(), 1);
    }
}
