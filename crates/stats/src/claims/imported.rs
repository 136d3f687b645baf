//! Figures that another tool printed, without an interval: what may be said of them is that it printed them.

use plimsoll_model::Estimate;
use plimsoll_model::claim::{ClaimKind, Fact, Refusal};
use plimsoll_model::summary::{RunSummary, WorkloadSummary};

use super::lines::place;
use crate::words;

/// The finding that names the file.
const IMPORTED: &str = "F80";

/// Whether a fact is the figure of such a line.
pub(super) fn is_figure(f: &Fact) -> bool {
    f.codes == [IMPORTED]
}

/// What the tool printed for this line; `None`: it is a run of ours, or the line has an interval and is said as ours are.
pub(super) fn reported(s: &RunSummary, w: &WorkloadSummary) -> Option<Result<ClaimKind, Refusal>> {
    let who = s.environment.imported.as_ref()?.who();
    if w.ops_per_s.is_some_and(|e| !words::is_boundless(&e)) {
        return None;
    }
    let bytes = |e: Estimate| {
        let (unit, f) = words::bytes_unit(e.value);
        match words::is_boundless(&e) {
            true => format!("{} {unit}/s", words::about(e.value / f, 4)),
            false => format!("{} (95 % CI)", words::bytes_rate(&e)),
        }
    };
    let ops = w.ops_per_s.map(|e| format!("{} op/s", words::about(e.value, 4)));
    let rates: Vec<String> = ops.into_iter().chain(w.bytes_per_s.map(bytes)).collect();
    if rates.is_empty() {
        return None;
    }
    let without = if w.ops_per_s.is_some() { ": figures without an interval" } else { "" };
    let said = format!(
        "{who} reports {} of {} with {} in flight over {}{without}.",
        rates.join(", "),
        super::words::named(&place(w)),
        w.concurrency,
        words::span(w.window_s)
    );
    Some(Fact::new(vec![IMPORTED.to_owned()], said).map(ClaimKind::Fact))
}
