//! A judged run to the program's exit code.

use plimsoll_model::claim::figure;
use plimsoll_model::summary::WorkloadSummary;
use plimsoll_model::{Finding, Level, RunSummary};

use crate::error::exit;

/// Lines whose interval carries no figure, and of which nothing else says so: totals of mixes, which no check looks at by
/// themselves.
pub fn no_figure(lines: &[WorkloadSummary], findings: &[Finding]) -> Vec<Finding> {
    let refused = |w: &WorkloadSummary| {
        let rate = w.ops_per_s.filter(|e| w.repeats <= 1 && e.value > 0.0)?;
        let why = figure(rate, Some(w.attempts_per_s)).err()?;
        let said = |f: &Finding| f.level == Level::Invalid && f.workload.as_ref() == Some(&w.label());
        if findings.iter().any(said) {
            return None;
        }
        let text = format!("No rate: {}.", why.0);
        Some(Finding::new("V04", "no_rate", Level::Invalid, text).on(w.label()))
    };
    lines.iter().filter_map(refused).collect()
}

/// In order: interrupted, what was asked for is not answered (a promise on void lines included), a promise broken,
/// undetermined, answered. Lines may be void in an answered run: `status` is `partly` then.
pub fn exit_code(summary: &RunSummary, interrupted: bool) -> u8 {
    let broken = summary.expectations.iter().any(|e| e.met == Some(false));
    let open = summary.expectations.iter().any(|e| e.met.is_none())
        || summary.workloads.iter().all(|w| w.ops_per_s.is_none());
    match () {
        () if interrupted => exit::INTERRUPTED,
        () if !summary.answered || summary.expectations.iter().any(|e| e.void) => exit::INVALID,
        () if broken => exit::NOT_MET,
        () if open => exit::UNDETERMINED,
        () => exit::VALID,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::summary::Expectation;

    fn summary(valid: bool, met: &[Option<bool>]) -> RunSummary {
        let expectation = |m: &Option<bool>| Expectation {
            text: "x".into(),
            met: *m,
            void: false,
            measured: None,
            reason: String::new(),
        };
        RunSummary {
            answered: valid,
            expectations: met.iter().map(expectation).collect(),
            ..RunSummary::default()
        }
    }

    #[test]
    fn the_worst_news_decides() {
        assert_eq!(exit_code(&summary(false, &[Some(false)]), true), exit::INTERRUPTED);
        assert_eq!(exit_code(&summary(false, &[Some(false)]), false), exit::INVALID);
        assert_eq!(exit_code(&summary(true, &[Some(true), Some(false), None]), false), exit::NOT_MET);
        assert_eq!(exit_code(&summary(true, &[None]), false), exit::UNDETERMINED);
        assert_eq!(
            exit_code(&summary(true, &[Some(true)]), false),
            exit::UNDETERMINED,
            "nothing was measured"
        );
        // A promise that was held against void lines has no answer, in a run that has one otherwise.
        let mut s = summary(true, &[Some(true), None]);
        s.expectations[1].void = true;
        assert_eq!(exit_code(&s, false), exit::INVALID);
    }
}
