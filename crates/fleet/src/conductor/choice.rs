//! Which agents of a fleet a run is to have.

use std::fmt;
use std::str::FromStr;

use plimsoll_model::count::{are, counted};

use super::roll_call::Present;

/// As it is asked for: all that are there, so many, or those with a label.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Choice {
    /// All.
    #[default]
    All,
    /// The first so many by name.
    Count(u32),
    /// Those that were started with this label.
    Labelled(String, String),
}

/// As [`Choice::from_str`] reads it; of all there is no word.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => Ok(()),
            Self::Count(n) => write!(f, "{n}"),
            Self::Labelled(name, value) => write!(f, "{name}={value}"),
        }
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((name, value)) = text.split_once('=') {
            return Ok(Self::Labelled(name.to_owned(), value.to_owned()));
        }
        match text.parse() {
            Ok(0) => Err("a run has one agent at least".into()),
            Ok(n) => Ok(Self::Count(n)),
            Err(_) => Err(format!(
                "'{text}' is neither a number of agents nor label=value (all of them: omit it; some of them: start these with \
                 `plimsoll agent --label NAME=VALUE`)"
            )),
        }
    }
}

impl Choice {
    /// Whether waiting for more would change nothing.
    pub(super) fn is_met(&self, present: &[Present]) -> bool {
        matches!(self, Self::Count(n) if present.iter().filter(|p| p.is_free()).count() >= *n as usize)
    }

    /// Those of the ones who are there, in order of their names; in words why not.
    pub(super) fn of(&self, mut present: Vec<Present>) -> Result<Vec<Present>, String> {
        present.sort_by(|a, b| a.name.cmp(&b.name));
        if present.is_empty() {
            return Err("no agent answers".into());
        }
        let there = names(&present);
        if let Self::Labelled(name, value) = self {
            present.retain(|p| p.here.labels.get(name) == Some(value));
            if present.is_empty() {
                return Err(format!("no agent has the label {name}={value}, of {there}"));
            }
        }
        let busy = |p: &&Present| !p.is_free();
        if let Self::Count(n) = self {
            present.retain(Present::is_free);
            // One of another version is taken only for want of others, and then it is the error, by name.
            present.sort_by_key(Present::speaks_otherwise);
            if present.len() < *n as usize {
                let wanted = format!("{} {} wanted", counted(*n, "agent"), are(*n));
                let free = format!("{} {} free", present.len(), are(present.len()));
                return Err(format!("{wanted}, and {free}, of {there}"));
            }
            present.truncate(*n as usize);
        } else if let Some(busy) = present.iter().find(busy) {
            let run = busy.run.as_deref().unwrap_or("another run");
            return Err(format!("agent {} is at work for {run}", busy.name));
        }
        Ok(present)
    }
}

fn names(present: &[Present]) -> String {
    const SHOWN: usize = 8;
    let mut names: Vec<&str> = present.iter().take(SHOWN).map(|p| p.name.as_str()).collect();
    let more = format!("{} more", present.len().saturating_sub(SHOWN));
    if present.len() > SHOWN {
        names.push(&more);
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read() {
        assert_eq!("3".parse(), Ok(Choice::Count(3)));
        assert_eq!("zone=a".parse(), Ok(Choice::Labelled("zone".into(), "a".into())));
        assert!("0".parse::<Choice>().is_err() && "all of them".parse::<Choice>().is_err());
    }

    #[test]
    fn who_is_missing_or_busy_is_told() {
        let there = |name: &str, zone: &str, run: Option<&str>| Present::for_tests(name, zone, run);
        let all = || vec![there("b", "1", None), there("a", "2", None), there("c", "1", None)];
        let names = |chosen: Vec<Present>| chosen.into_iter().map(|p| p.name).collect::<Vec<_>>().concat();
        assert_eq!(names(Choice::All.of(all()).unwrap()), "abc");
        assert_eq!(names(Choice::Count(2).of(all()).unwrap()), "ab");
        assert_eq!(names(Choice::Labelled("zone".into(), "1".into()).of(all()).unwrap()), "bc");
        assert_eq!(
            Choice::Count(4).of(all()).unwrap_err(),
            "4 agents are wanted, and 3 are free, of a, b, c"
        );
        assert!(Choice::Labelled("zone".into(), "9".into()).of(all()).unwrap_err().contains("zone=9"));
        assert_eq!(Choice::All.of(vec![]).unwrap_err(), "no agent answers");
        let busy = || vec![there("a", "1", Some("r7")), there("b", "1", None)];
        assert_eq!(Choice::All.of(busy()).unwrap_err(), "agent a is at work for r7");
        assert_eq!(names(Choice::Count(1).of(busy()).unwrap()), "b");
    }
}
