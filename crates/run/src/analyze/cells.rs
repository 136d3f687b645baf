//! A sweep's cells to the limit model: which cap binds at which size and concurrency.

use plimsoll_model::Verdict;
use plimsoll_model::analysis::{Cell, SizeModel};
use plimsoll_stats::limit_model::{self, Cap, Options};

use super::line::Line;
use plimsoll_model::plan::ControllerSpec;
use plimsoll_store::RunData;

/// One model per op kind of a sweep; none where the cells do not carry one.
pub fn models(data: &RunData, lines: &[Line<'_>]) -> Vec<SizeModel> {
    if !matches!(data.plan.controller, Some(ControllerSpec::Sweep { .. })) {
        return Vec::new();
    }
    let mut ops: Vec<&'static str> = lines.iter().filter(|l| l.kind.is_some()).map(Line::op_name).collect();
    ops.sort_unstable();
    ops.dedup();
    ops.into_iter().filter_map(|op| model(data, lines, op)).collect()
}

fn model(data: &RunData, lines: &[Line<'_>], op: &str) -> Option<SizeModel> {
    let slices_per_s = 1e9 / data.grid_ns as f64;
    let mine: Vec<(&Line<'_>, limit_model::Cell)> = lines
        .iter()
        .filter(|l| l.op_name() == op)
        .map(|l| {
            let summary = l.summary(data);
            let cell = limit_model::Cell {
                size_bytes: summary.size_bytes as f64,
                concurrency: f64::from(summary.concurrency),
                ops_per_s: l.run_means().iter().map(|m| m * slices_per_s).collect(),
            };
            (l, cell)
        })
        .collect();
    let cells: Vec<limit_model::Cell> = mine.iter().map(|(_, c)| c.clone()).collect();
    let Verdict::Known(m) = limit_model::analyse(&cells, Options::default()) else { return None };
    let at_least = |c: &Cap| match c {
        Cap::AtLeast(v) => Some(*v),
        Cap::Value(_) => None,
    };
    let shown = mine.iter().zip(&m.cells).filter_map(|((l, c), limit)| {
        Some(Cell {
            size_bytes: c.size_bytes as u64,
            concurrency: c.concurrency as u32,
            ops_per_s: l.summary(data).ops_per_s?,
            predicted: Some(limit.predicted_ops_per_s),
            binding: limit.binding.name().into(),
            room: Some(1.0 + limit.room),
        })
    });
    Some(SizeModel {
        target: mine.first().and_then(|(l, _)| l.parts[0].spec().target.clone()).unwrap_or_default(),
        op_class: op.to_owned(),
        ops_per_s: m.ops_cap.value(),
        ops_at_least: at_least(&m.ops_cap),
        bytes_per_s: m.bytes_cap.value(),
        bytes_at_least: at_least(&m.bytes_cap),
        knee_bytes: m.knee_bytes,
        base_ns: None,
        stream_bytes_per_s: None,
        p: Some(m.exponent),
        reading: m.reading().into(),
        cells: shown.collect(),
    })
}
