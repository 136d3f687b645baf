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

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use plimsoll_store::{RunEntry, RunState};
    use proptest::collection::{btree_map, btree_set, vec};
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::fingerprint::Fingerprint;
    use crate::tables;

    /// Few of each, so that filters meet runs; with what SQL and Rust might take otherwise: cases, wildcards, quotes, a zero, nothing.
    const WORDS: [&str; 12] = ["", "a", "A", "ab", "a%", "a_", "_", "é", "É", "'", "a\0b", "b"];
    /// Times of runs, and what is no time; with parts of a microsecond, other zones, and before 1970.
    const TIMES: [&str; 8] = [
        "",
        "yesterday",
        "2026-11-01T08:00:00Z",
        "2026-11-01T08:00:00.0000005Z",
        "2026-11-01T08:00:00.000001Z",
        "2026-11-01T09:00:00+01:00",
        "1969-12-31T23:59:59.9999995Z",
        "2026-11-02T08:00:00Z",
    ];
    /// Their edges, microseconds since 1970.
    const EDGES: [i64; 6] =
        [i64::MIN, -1, 0, 1_793_520_000_000_000, 1_793_520_000_000_001, 1_793_606_400_000_000];

    fn word() -> impl Strategy<Value = String> {
        select(&WORDS[..]).prop_map(str::to_owned)
    }

    fn standing() -> impl Strategy<Value = RunStanding> {
        select(&RunStanding::ALL[..]).prop_map(|(_, standing)| standing)
    }

    type Said = (BTreeMap<String, String>, BTreeSet<String>, BTreeSet<String>, RunStanding, &'static str);

    fn run((labels, ops, targets, standing, started_at): Said) -> IndexedRun {
        let entry = RunEntry {
            id: "r".into(),
            path: "r".into(),
            name: None,
            started_at: started_at.into(),
            state: RunState::Sealed,
            labels,
            verdict: None,
            valid: None,
            status: None,
            cleanup_due: 0,
            bytes: 0,
            summary: None,
        };
        IndexedRun {
            entry,
            what: String::new(),
            result: String::new(),
            mark: String::new(),
            answered: None,
            standing,
            ops: ops.into_iter().collect(),
            targets: targets.into_iter().collect(),
            imported: None,
        }
    }

    fn runs() -> impl Strategy<Value = Vec<IndexedRun>> {
        let labels = btree_map(word(), word(), 0..3);
        let said = (labels, btree_set(word(), 0..3), btree_set(word(), 0..3), standing(), select(&TIMES[..]));
        vec(said.prop_map(run), 1..12)
    }

    fn filter() -> impl Strategy<Value = RunFilter> {
        let edge = || proptest::option::weighted(0.4, select(&EDGES[..]));
        let few = || vec(word(), 0..3);
        (vec((word(), word()), 0..2), few(), few(), vec(standing(), 0..3), edge(), edge()).prop_map(
            |(labels, ops, targets, standings, since_us, until_us)| RunFilter {
                labels,
                ops,
                targets,
                standings,
                since_us,
                until_us,
            },
        )
    }

    fn indexed(runs: &[IndexedRun]) -> rusqlite::Connection {
        let db = rusqlite::Connection::open_in_memory().unwrap();
        tables::prepare(&db).unwrap();
        let print = Fingerprint { hash: [1; 16], made_ns: 0, rests: true };
        for (i, run) in runs.iter().enumerate() {
            tables::put(&db, &format!("{i:02}"), &print, &(run.clone(), Vec::new())).unwrap();
        }
        db
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// The condition is said twice, for the index and for runs in memory: both mean the same.
        #[test]
        fn the_index_finds_what_the_filter_takes(runs in runs(), filters in vec(filter(), 1..12)) {
            let db = indexed(&runs);
            for filter in filters {
                let mut found: Vec<String> =
                    tables::runs(&db, &filter).unwrap().into_iter().map(|(dir, _)| dir).collect();
                found.sort();
                let taken: Vec<String> = runs.iter().enumerate()
                    .filter(|(_, r)| filter.takes(r)).map(|(i, _)| format!("{i:02}")).collect();
                prop_assert_eq!(found, taken, "{:?}", filter);
            }
        }
    }
}
