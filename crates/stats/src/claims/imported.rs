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

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::ImportSource;

    fn run(low: f64, tool: Option<&str>) -> RunSummary {
        let e = Estimate { value: 31_021.7, low, high: f64::INFINITY, n_eff: 1.0 };
        let w = WorkloadSummary {
            name: "j".into(),
            op: "read".into(),
            valid: true,
            size_bytes: 4096,
            concurrency: 4,
            window_s: 3.0,
            ops_per_s: Some(e),
            ..WorkloadSummary::default()
        };
        let mut s = RunSummary { workloads: vec![w], ..RunSummary::default() };
        s.environment.imported = tool.map(|t| ImportSource {
            tool: t.into(),
            tool_version: "3.33".into(),
            ..ImportSource::default()
        });
        s
    }

    #[test]
    fn a_point_is_what_a_tool_reports_and_no_measurement_of_ours() {
        let s = run(f64::NEG_INFINITY, Some("fio"));
        let Some(Ok(ClaimKind::Fact(f))) = reported(&s, &s.workloads[0]) else { panic!("no claim") };
        assert_eq!(
            f.said,
            "fio 3.33 reports 31,020 op/s of 4KiB READ with 4 in flight over 3.0 s: figures without an interval."
        );
        assert!(is_figure(&f));
        let ours = run(f64::NEG_INFINITY, None);
        assert!(reported(&ours, &ours.workloads[0]).is_none());
    }

    #[test]
    fn a_line_with_an_interval_is_said_as_ours_are() {
        let mut s = run(30_000.0, Some("GoBonnieGo"));
        s.workloads[0].ops_per_s = Some(Estimate::symmetric(31_000.0, 100.0, 5.0));
        assert!(reported(&s, &s.workloads[0]).is_none());
    }
}
