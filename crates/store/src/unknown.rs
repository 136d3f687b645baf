//! Records that this program cannot read, though their frames are whole: a newer program wrote them, or another agent.
//!
//! They are skipped, one by one: what lies behind them is read. They stay in their files (a resumed run appends), and
//! each reader is told which they were and how many.

use std::collections::BTreeMap;

use serde::Deserialize;

/// One record that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unknown {
    /// What kind of record it is, and what is not known of it.
    pub what: String,
    /// Counts or the frame of a stage are in it: figures without it are not whole.
    pub figures: bool,
}

/// Longest name of a foreign kind that is repeated.
const MOST_NAME: usize = 40;
/// Kinds that are told apart in one run.
const MOST_KINDS: usize = 50;
/// Records that carry no figures: what is not known of them is not missed by any.
const WITHOUT_FIGURES: [&str; 2] = ["note", "resumed"];

impl Unknown {
    /// A record whose tag is not known.
    pub fn of_tag(tag: u8) -> Self {
        Self { what: format!("record of kind {tag}"), figures: false }
    }

    /// A record of a known kind with counts in it.
    pub fn of_counts(what: &str, why: impl std::fmt::Display) -> Self {
        Self { what: format!("{what} ({why})"), figures: true }
    }

    /// A mark: of a kind that is not known, or of a known one that says what is not known.
    pub fn of_mark(body: &[u8], known: impl Fn(&str) -> bool) -> Self {
        #[derive(Deserialize)]
        struct Named {
            mark: String,
        }
        match serde_json::from_slice::<Named>(body) {
            Ok(Named { mark }) => {
                let figures = known(&mark) && !WITHOUT_FIGURES.contains(&mark.as_str());
                // A name from a file is outside input.
                let plain = mark.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '?' });
                Self { what: format!("mark '{}'", plain.take(MOST_NAME).collect::<String>()), figures }
            }
            Err(_) => Self { what: "mark without a name".into(), figures: false },
        }
    }
}

/// Records that were skipped, by what they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Skipped {
    counts: BTreeMap<Unknown, u64>,
}

impl Skipped {
    /// Beyond the most kinds that are kept, all count as one.
    pub fn add(&mut self, unknown: Unknown) {
        self.add_times(unknown, 1);
    }

    /// Adds what was skipped elsewhere.
    pub fn merge(&mut self, other: Self) {
        other.counts.into_iter().for_each(|(unknown, times)| self.add_times(unknown, times));
    }

    fn add_times(&mut self, unknown: Unknown, times: u64) {
        let unknown = if self.counts.len() < MOST_KINDS || self.counts.contains_key(&unknown) {
            unknown
        } else {
            Unknown { what: "others".into(), figures: unknown.figures }
        };
        let n = self.counts.entry(unknown).or_default();
        *n = n.saturating_add(times);
    }

    /// All records were known.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Records, all told.
    pub fn count(&self) -> u64 {
        self.counts.values().fold(0, |a, n| a.saturating_add(*n))
    }

    /// Whether figures miss something.
    pub fn has_figures(&self) -> bool {
        self.counts.keys().any(|u| u.figures)
    }
}

impl std::fmt::Display for Skipped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, (unknown, n)) in self.counts.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{n} x {}", unknown.what)?;
        }
        Ok(())
    }
}
