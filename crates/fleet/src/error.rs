//! What an agent could not do, as it is told to its conductor.

use plimsoll_crew::CrewError;
use plimsoll_setup::SetupError;
use serde::{Deserialize, Serialize};

/// In words for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRefusal {
    /// What is the matter. Without a full stop.
    pub problem: String,
    /// What to do about it. Without a full stop; empty: the problem says it.
    pub remedy: String,
    /// It was told to leave it.
    pub interrupted: bool,
    /// It would take longer than the run's budget allows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_time: bool,
}

impl AgentRefusal {
    pub fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into(), interrupted: false, out_of_time: false }
    }

    /// As the conductor tells it.
    pub fn of_agent(self, agent: &str) -> CrewError {
        if self.interrupted {
            return SetupError::Interrupted.into();
        }
        let remedy = if self.remedy.is_empty() { "Correct that, and run again".into() } else { self.remedy };
        let problem = format!("agent {agent}: {}", self.problem);
        match self.out_of_time {
            true => CrewError::OutOfTime { problem, remedy },
            false => CrewError::input(problem, remedy),
        }
    }
}

impl From<CrewError> for AgentRefusal {
    fn from(e: CrewError) -> Self {
        match e {
            CrewError::Setup(SetupError::Input { problem, remedy }) => Self::new(problem, remedy),
            CrewError::Setup(SetupError::Interrupted) => {
                Self { interrupted: true, ..Self::new("interrupted", "") }
            }
            CrewError::OutOfTime { problem, remedy } => {
                Self { out_of_time: true, ..Self::new(problem, remedy) }
            }
            other => Self::new(other.to_string().trim_end_matches('.'), ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On its way from an agent it stays what it is: a search ends with it, and is no failed run.
    #[test]
    fn what_takes_longer_than_the_budget_is_that_at_the_conductor_too() {
        let here = CrewError::OutOfTime { problem: "too slow".into(), remedy: "Wait".into() };
        let sent = serde_json::to_string(&AgentRefusal::from(here)).unwrap();
        let come: AgentRefusal = serde_json::from_str(&sent).unwrap();
        let CrewError::OutOfTime { problem, remedy } = come.of_agent("lg-1") else {
            panic!("{sent}");
        };
        assert_eq!((problem.as_str(), remedy.as_str()), ("agent lg-1: too slow", "Wait"));
        let other = serde_json::to_string(&AgentRefusal::new("no", "")).unwrap();
        assert!(!other.contains("out_of_time"), "{other}");
    }
}
