//! Statements about a run: each carries what was measured, the threshold, and what to do about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a finding takes away from a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth knowing; takes nothing away.
    Info,
    /// The figures stand, with this said beside them.
    Qualified,
    /// The figures may not be used: of its `workload`, or where it names none, of the whole run.
    Invalid,
}

/// One statement. `code` is a V (validity) or Q (qualification) check of METHODOLOGY.md, or F for other facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// `V07`, ...: stays the same from version to version.
    pub code: String,
    /// The same as a word: `client_bound`.
    pub name: String,
    /// What it means for the result.
    pub level: Level,
    /// A full sentence for a person: what was seen, against what, and what to change.
    pub text: String,
    /// What was seen, in the unit that `text` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// What is allowed, in the same unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Name of the workload that it concerns; absent when it concerns the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Of a run with several agents: the one that it is of. Its name is in the text, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Further facts, as (name, value with unit) pairs, for the evidence table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<(String, String)>,
}

impl Finding {
    /// Of the whole run, without figures: see [`Self::measured()`] and [`Self::on`].
    pub fn new(code: &str, name: &str, level: Level, text: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            name: name.into(),
            level,
            text: text.into(),
            measured: None,
            threshold: None,
            workload: None,
            agent: None,
            evidence: Vec::new(),
        }
    }

    /// Both in one unit, the one that `text` names.
    pub fn measured(mut self, measured: f64, threshold: f64) -> Self {
        self.measured = Some(measured);
        self.threshold = Some(threshold);
        self
    }

    /// How far what was measured lies from what is allowed; 0 where either is not known.
    pub fn off_by(&self) -> f64 {
        self.measured.zip(self.threshold).map_or(0.0, |(m, t)| (m - t).abs())
    }

    /// It voids, or qualifies, this line only.
    pub fn on(mut self, workload: impl Into<String>) -> Self {
        self.workload = Some(workload.into());
        self
    }

    /// Names the agent that it is of, where the run has several.
    pub fn of_agent(mut self, agent: Option<&str>) -> Self {
        if let Some(agent) = agent {
            self.text = format!("agent {agent}: {}", self.text);
            self.agent = Some(agent.to_owned());
        }
        self
    }
}

/// An answer that may honestly be missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict<T> {
    /// The data carries it.
    Known(T),
    /// The data does not carry a claim; the reason says what is missing and what would settle it.
    Inconclusive(String),
}

impl<T> Verdict<T> {
    /// `None` where it is inconclusive.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(t) => Some(t),
            Self::Inconclusive(_) => None,
        }
    }
}
