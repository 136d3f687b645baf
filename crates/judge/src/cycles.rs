//! A benchmark that was repeated in one run (`watch --cycle`): a fall from some cycle on, which a mean over all would hide.

use plimsoll_model::{Finding, Level};
use plimsoll_stats::cycles::{Fall, fall as of_means};
use plimsoll_store::RunData;

use super::line::Line;
use super::part::horizon_s;

/// What fell, when, and from what to what.
pub fn fall(data: &RunData, line: &Line<'_>) -> Option<Finding> {
    if !line.is_load() || line.parts.iter().any(|p| p.stage.spec.cell.is_none()) {
        return None;
    }
    let Fall { first_after, before, after } = of_means(&line.run_means(data))?;
    let part = line.parts.get(first_after)?;
    let at_s = part.stage.start_ns as f64 / 1e9;
    let words = |x: f64| plimsoll_stats::words::about(x, 3);
    let text = format!(
        "From cycle {} on, {} after the start, {} runs at {} op/s, and at {} before: the mean over all {} cycles \
         describes neither. Each cycle lasted {}.",
        first_after + 1,
        plimsoll_stats::words::span(at_s),
        line.label(),
        words(after),
        words(before),
        line.parts.len(),
        plimsoll_stats::words::span(horizon_s(part.stage)),
    );
    let mut f = Finding::new("F30", "cliff", Level::Qualified, text).on(line.label());
    f.evidence = vec![
        ("cycle".into(), (first_after + 1).to_string()),
        ("before, op/s".into(), words(before)),
        ("after, op/s".into(), words(after)),
    ];
    Some(f)
}
