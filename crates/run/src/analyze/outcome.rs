//! A judged run to the program's exit code.

use plimsoll_model::RunSummary;

use crate::error::exit;

/// In order: interrupted, invalid, a promise broken, undetermined, valid.
pub fn exit_code(summary: &RunSummary, interrupted: bool) -> u8 {
    let broken = summary.expectations.iter().any(|e| e.met == Some(false));
    let open = summary.expectations.iter().any(|e| e.met.is_none())
        || summary.workloads.iter().all(|w| w.ops_per_s.is_none());
    match () {
        () if interrupted => exit::INTERRUPTED,
        () if !summary.valid => exit::INVALID,
        () if broken => exit::NOT_MET,
        () if open => exit::UNDETERMINED,
        () => exit::VALID,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Environment;
    use plimsoll_model::summary::Expectation;

    fn summary(valid: bool, met: &[Option<bool>]) -> RunSummary {
        let expectation = |m: &Option<bool>| Expectation {
            text: "x".into(),
            met: *m,
            measured: None,
            reason: String::new(),
        };
        RunSummary {
            schema: String::new(),
            id: String::new(),
            valid,
            verdict: String::new(),
            findings: Vec::new(),
            workloads: Vec::new(),
            limits: Vec::new(),
            expectations: met.iter().map(expectation).collect(),
            labels: Default::default(),
            rerun: String::new(),
            environment: Environment::default(),
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
    }
}
