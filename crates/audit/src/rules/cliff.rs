//! A mean over runs of which the later ones were slower: how many were good follows from it, for each figure of the run.

use super::of_table;
use crate::AuditError;
use crate::facts::{AuditFacts, CliffFact};
use crate::quantity::Quantity;
use crate::remark::{AuditReport, short};

pub(super) fn check(facts: &AuditFacts, report: &mut AuditReport) -> Result<(), AuditError> {
    for (i, cliff) in facts.cliffs.iter().enumerate() {
        of_cliff(cliff, &format!("map, cliff {}", i + 1), report)?;
    }
    Ok(())
}

/// Runs before the cliff, of all, by the mean of all and what was before and after.
fn good_runs(cliff: &CliffFact, place: &str) -> Result<Vec<f64>, AuditError> {
    let of = |p: &crate::facts::PhaseFact| {
        let read = |text: &str| Quantity::printed(text).map(|(q, _)| q.value);
        let (mean, before, after) = (read(&p.mean)?, read(&p.before)?, read(&p.after)?);
        let share = (mean - after) / (before - after);
        share.is_finite().then_some(share * cliff.runs)
    };
    let bad = |name: &str| {
        AuditError::new(
            format!("{place}, {name}"),
            "mean, before and after are not numbers of one kind, or before and after are the same",
            "Write numbers such as '43 MB/s'.",
        )
    };
    cliff.phases.iter().map(|p| of(p).ok_or_else(|| bad(&p.name))).collect()
}

fn of_cliff(cliff: &CliffFact, place: &str, report: &mut AuditReport) -> Result<(), AuditError> {
    let good = good_runs(cliff, place)?;
    report.checked("cliff", good.len());
    if good.is_empty() || !good.iter().all(|g| *g > 0.5 && *g < cliff.runs - 0.5) {
        return Ok(());
    }
    let means: Vec<String> = cliff.phases.iter().map(|p| format!("{} ({})", p.mean, p.name)).collect();
    let states: Vec<String> = cliff
        .phases
        .iter()
        .map(|p| format!("{} {} before and {} after", p.name, p.before, p.after))
        .collect();
    report.remarks.push(of_table(
        "cliff",
        &cliff.name,
        means.join(", "),
        format!("two states: {}", states.join("; ")),
        format!("means over a cliff: no run of the {} delivered them", short(cliff.runs)),
    ));
    let rounded: Vec<f64> = good.iter().map(|g| g.round()).collect();
    let least = rounded.iter().copied().fold(f64::INFINITY, f64::min);
    let runs: Vec<String> = cliff
        .phases
        .iter()
        .zip(&good)
        .map(|(p, g)| format!("{} {} good runs ({})", p.name, short(g.round()), short(*g)))
        .collect();
    if rounded.iter().any(|g| *g != cliff.after) {
        // In the run in which some phases were still good, the credit ran out behind the last good one.
        let last_good =
            cliff.phases.iter().zip(&rounded).rfind(|(_, g)| **g > least).map(|(p, _)| p.name.clone());
        let at = last_good.map_or_else(
            || format!("after run {}", short(least)),
            |phase| format!("inside of run {}, after its {phase} phase", short(least + 1.0)),
        );
        report.remarks.push(of_table(
            "cliff",
            &cliff.name,
            format!("all fell after run {}", short(cliff.after)),
            runs.join(", "),
            format!("the credit ran out {at}"),
        ));
    }
    Ok(())
}
