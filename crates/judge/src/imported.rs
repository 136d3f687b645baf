//! A run that another tool measured, and of which there are its figures only: nothing is measured again, and nothing made up.

use plimsoll_model::analysis;
use plimsoll_model::{Analysis, RunSummary, summary};
use plimsoll_stats::claims;
use plimsoll_stats::validity;
use plimsoll_store::{ImportedLines, RunData};

/// The lines as the tool printed them, with what its file contradicts itself in.
pub fn judge(data: &RunData, imported: &ImportedLines, altered: &[String]) -> (RunSummary, Analysis) {
    let whole = super::run_facts(data, altered);
    let mut findings = super::run_findings(data, &[], &whole);
    findings.extend(imported.findings.iter().cloned());
    findings
        .sort_by(|a, b| b.level.cmp(&a.level).then(a.code.cmp(&b.code)).then(a.workload.cmp(&b.workload)));
    let mut summary = RunSummary {
        schema: summary::SCHEMA.into(),
        id: data.id.clone(),
        findings,
        remarks: super::remarks(data),
        workloads: imported.lines.clone(),
        labels: data.plan.labels.clone(),
        rerun: data.rerun.clone(),
        environment: plimsoll_model::Environment { findings: Vec::new(), ..data.environment.clone() },
        ..RunSummary::default()
    };
    let answered = validity::is_run_valid(&summary.findings, &[], false);
    summary.settle(answered, false);
    let mut analysis = Analysis {
        schema: analysis::SCHEMA.into(),
        remarks: summary.remarks.clone(),
        checks: validity::table(&[whole], &summary.findings),
        ..Analysis::default()
    };
    summary.claims = claims::derive(&summary, &analysis, None);
    summary.verdict = claims::paragraph(&summary.claims);
    analysis.advice = super::advice::of_run(&summary, &analysis, Vec::new());
    debug_assert_eq!(claims::contradictions(&summary.claims, &summary), Vec::<String>::new());
    (summary, analysis)
}
