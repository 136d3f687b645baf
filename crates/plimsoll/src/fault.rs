//! What went wrong, for a person: one line of what, one line of what to do, and the exit code.

use std::fmt;
use std::process::ExitCode;

/// How a command ended. ARCHITECTURE.md, "Exit codes", is the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Valid = 0,
    /// A bug of ours.
    Bug = 1,
    /// Bad input or environment: nothing was measured.
    Input = 2,
    /// Measured, but not valid (or too many failures).
    Invalid = 3,
    /// An `--expect` was not met.
    ExpectationMissed = 4,
    /// The data does not carry an answer.
    Undetermined = 5,
    /// Measured and valid, but something that the run made is still there, or its report could not be written.
    LeftBehind = 6,
    /// The storage returned other data than what was written to it.
    Damaged = 7,
    /// Stopped by a guard: its budget of money, or what it was not to do to others.
    Stopped = 8,
    Interrupted = 130,
}

impl Exit {
    /// From the code of a finished run.
    pub fn of_code(code: u8) -> Self {
        match code {
            0 => Self::Valid,
            2 => Self::Input,
            3 => Self::Invalid,
            4 => Self::ExpectationMissed,
            5 => Self::Undetermined,
            6 => Self::LeftBehind,
            7 => Self::Damaged,
            8 => Self::Stopped,
            130 => Self::Interrupted,
            _ => Self::Bug,
        }
    }

    /// Of several results the worst decides, in the order of the README.
    pub fn worse_of(self, other: Self) -> Self {
        let badness = |e: Self| match e {
            Self::Valid => 0,
            Self::LeftBehind => 1,
            Self::Undetermined => 2,
            Self::ExpectationMissed => 3,
            Self::Invalid => 4,
            Self::Stopped => 5,
            Self::Damaged => 6,
            Self::Input | Self::Bug => 7,
            Self::Interrupted => 8,
        };
        if badness(other) > badness(self) { other } else { self }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// An error with its remedy. Shown on stderr; stdout belongs to results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub what: String,
    pub remedy: String,
    pub exit: Exit,
}

impl Fault {
    /// The user (or the machine) has to change something.
    pub fn input(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into(), exit: Exit::Input }
    }

    /// The same of what came after a measurement: its result is kept, and where it held, that it is not shown decides.
    pub fn after_a_run(mut self, run: Exit, id: &str) -> Self {
        if self.exit == Exit::Input {
            self.exit = if run == Exit::Valid { Exit::LeftBehind } else { run };
            let then = if self.remedy.is_empty() { String::new() } else { format!("{} ", self.remedy) };
            self.remedy = format!("{then}The run itself is stored: `plimsoll report {id}` shows it.");
        }
        self
    }

    /// We are at fault.
    pub fn bug(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            remedy: "This is a bug in plimsoll. Please report it with this message and the command.".into(),
            exit: Exit::Bug,
        }
    }
}

/// A remedy as a sentence: one stop at its end, and none after a question.
pub fn sentence(text: &str) -> String {
    let text = text.trim_end_matches('.');
    let stop = if text.is_empty() || text.ends_with(['?', '!']) { "" } else { "." };
    format!("{text}{stop}")
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        if !self.remedy.is_empty() {
            write!(f, "\n  fix: {}", self.remedy)?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

impl From<plimsoll_model::plan::PlanError> for Fault {
    fn from(e: plimsoll_model::plan::PlanError) -> Self {
        use plimsoll_model::plan::PlanError;
        match e {
            PlanError::Syntax(m) => Fault::input(
                format!("the plan cannot be read: {m}"),
                "Correct the line named above; `plimsoll object put --dry-run` writes plans to start from.",
            ),
            PlanError::Invalid { place, problem, remedy } => {
                Fault::input(format!("{place}: {problem}"), remedy)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_ends_once() {
        assert_eq!(sentence("Correct it"), "Correct it.");
        assert_eq!(sentence("Correct it."), "Correct it.");
        assert_eq!(
            sentence("Check the endpoint: is it an S3 server?"),
            "Check the endpoint: is it an S3 server?"
        );
        assert_eq!(sentence(""), "");
    }

    #[test]
    fn of_several_results_the_worst_decides() {
        let worst_first = [130, 7, 8, 3, 4, 5, 6, 0].map(Exit::of_code);
        for pair in worst_first.windows(2) {
            assert_eq!((pair[0].worse_of(pair[1]), pair[1].worse_of(pair[0])), (pair[0], pair[0]));
        }
    }

    #[test]
    fn a_report_that_fails_makes_nothing_of_no_run() {
        let lost =
            || Fault::input("o.html cannot be written", "Name another.").after_a_run(Exit::Valid, "r1");
        assert_eq!((lost().exit, lost().remedy.contains("plimsoll report r1")), (Exit::LeftBehind, true));
        for worse in [Exit::Invalid, Exit::Damaged, Exit::Interrupted, Exit::Undetermined] {
            assert_eq!(Fault::input("o", "").after_a_run(worse, "r1").exit, worse);
        }
        assert_eq!(Fault::bug("b").after_a_run(Exit::Valid, "r1").exit, Exit::Bug);
    }
}
