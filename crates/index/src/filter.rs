//! Which runs are wanted.

use std::str::FromStr;

use rusqlite::types::Value;
use serde::{Deserialize, Serialize};

use crate::entry::IndexedRun;

/// How a run stands, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStanding {
    /// Every line may be used.
    Valid,
    /// Some lines may.
    Partly,
    /// No line may.
    Invalid,
    /// A process works on it now.
    Running,
    /// It did not come to its end.
    Killed,
    /// Its end is on record, and nothing has been made of it yet.
    Unjudged,
}

impl RunStanding {
    /// All, as they are named on the command line.
    pub const ALL: [(&'static str, Self); 6] = [
        ("valid", Self::Valid),
        ("partly", Self::Partly),
        ("invalid", Self::Invalid),
        ("running", Self::Running),
        ("killed", Self::Killed),
        ("unjudged", Self::Unjudged),
    ];

    /// As in [`Self::ALL`].
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, s)| *s == self).map_or("", |(name, _)| name)
    }
}

impl FromStr for RunStanding {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, s)| *s).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
            format!("write one of {}", names.join(", "))
        })
    }
}

/// Which runs are wanted: all conditions hold. An empty one asks for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Each label with this value.
    pub labels: Vec<(String, String)>,
    /// A line of one of these ops.
    pub ops: Vec<String>,
    /// One of these is a part of a target's name, kind, endpoint, bucket or path.
    pub targets: Vec<String>,
    /// One of these.
    pub standings: Vec<RunStanding>,
    /// Begun then or later, microseconds since 1970. A run without a time is of no time.
    pub since_us: Option<i64>,
    /// Begun before then.
    pub until_us: Option<i64>,
}

impl RunFilter {
    /// Whether a run is wanted: the same condition, for whoever has the runs in memory.
    pub fn takes(&self, run: &IndexedRun) -> bool {
        let any = |none: bool, one: bool| none || one;
        let begun =
            || run.entry.started_at.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond);
        self.labels.iter().all(|(name, value)| run.entry.labels.get(name) == Some(value))
            && any(self.ops.is_empty(), run.ops.iter().any(|op| self.ops.contains(op)))
            && any(self.standings.is_empty(), self.standings.contains(&run.standing))
            && any(
                self.targets.is_empty(),
                run.targets.iter().any(|w| self.targets.iter().any(|t| w.contains(t))),
            )
            && self.since_us.is_none_or(|since| begun().is_some_and(|at| at >= since))
            && self.until_us.is_none_or(|until| begun().is_some_and(|at| at < until))
    }

    /// The condition on `runs`, and its values in order.
    pub(crate) fn condition(&self) -> (String, Vec<Value>) {
        let (mut all, mut values): (Vec<String>, Vec<Value>) = (vec!["1".into()], Vec::new());
        for (name, value) in &self.labels {
            all.push(
                "EXISTS (SELECT 1 FROM labels l WHERE l.dir = runs.dir AND l.name = ? AND l.value = ?)"
                    .into(),
            );
            values.extend([Value::from(name.clone()), Value::from(value.clone())]);
        }
        let mut any = |one: &str, of: Vec<Value>| {
            if !of.is_empty() {
                all.push(format!("({})", vec![one; of.len()].join(" OR ")));
                values.extend(of);
            }
        };
        let texts = |list: &[String]| list.iter().cloned().map(Value::from).collect::<Vec<_>>();
        any("EXISTS (SELECT 1 FROM ops o WHERE o.dir = runs.dir AND o.op = ?)", texts(&self.ops));
        any(
            "EXISTS (SELECT 1 FROM targets t WHERE t.dir = runs.dir AND instr(t.word, ?) > 0)",
            texts(&self.targets),
        );
        any("standing = ?", self.standings.iter().map(|s| Value::from(s.name().to_owned())).collect());
        any("started_us >= ?", self.since_us.into_iter().map(Value::from).collect());
        any("started_us < ?", self.until_us.into_iter().map(Value::from).collect());
        (all.join(" AND "), values)
    }
}
