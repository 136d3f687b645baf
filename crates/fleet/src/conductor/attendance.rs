//! How long a roll call is waited for: as long as somebody who is known to be connected has not answered, within a bound; and who has not, by
//! name.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::choice::Choice;
use super::roll_call::Present;

/// Agents answer a call at once, and say twice a second that they are there.
pub const LISTEN: Duration = Duration::from_millis(1200);
/// Of a number of agents that is asked for, the last may still be on its way; and one that is connected may be busy.
const LISTEN_FOR_ALL: Duration = Duration::from_secs(3);
/// Many answer through one broker, and are read one after the other. (A choice: some twenty times what each takes.)
const OF_EACH: Duration = Duration::from_millis(10);
/// Where nobody knows who is connected: no longer, however many still come.
const LONGEST: Duration = Duration::from_secs(30);

/// One roll call.
#[derive(Debug)]
pub struct Attendance {
    begun: Instant,
    /// As the broker has it; `None`: it is somebody else's, and does not say.
    connected: Option<BTreeSet<String>>,
    /// How many had answered when that was looked at last, and since when it is no more.
    answered: Cell<(usize, Instant)>,
}

impl Attendance {
    /// From now on.
    pub fn new(connected: Option<BTreeSet<String>>) -> Self {
        let now = Instant::now();
        Self { begun: now, connected, answered: Cell::new((0, now)) }
    }

    /// However few answer.
    pub fn at_most(&self) -> Duration {
        self.connected.as_ref().map_or(LONGEST, |all| LISTEN_FOR_ALL + OF_EACH * all.len() as u32)
    }

    /// Nothing more is waited for. The first by name are taken, not the first who answer: so all get the time that one may need.
    pub fn is_enough(&self, choice: &Choice, present: &[Present]) -> bool {
        let (had, since) = self.answered.get();
        let since = if present.len() == had { since } else { Instant::now() };
        self.answered.set((present.len(), since));
        let passed = self.begun.elapsed();
        if passed < LISTEN {
            return false;
        }
        let is_complete = match &self.connected {
            // Nobody new has answered for as long as it takes all that are there to say so by themselves, twice.
            None => since.elapsed() >= LISTEN,
            // Cheaply, as this is asked with each answer.
            Some(all) => present.len() >= all.len() && self.silent(present).is_empty(),
        };
        let is_wanted =
            !matches!(choice, Choice::Count(_)) || choice.is_met(present) || passed >= LISTEN_FOR_ALL;
        is_complete && is_wanted
    }

    /// Those who are connected, and did not answer.
    pub fn silent(&self, present: &[Present]) -> Vec<&str> {
        let there: BTreeSet<&str> = present.iter().map(|p| p.name.as_str()).collect();
        let all = self.connected.iter().flatten().map(String::as_str);
        all.filter(|name| !there.contains(name)).collect()
    }

    /// The same in words; `None`: all did.
    pub fn silent_in_words(&self, present: &[Present]) -> Option<String> {
        const SHOWN: usize = 8;
        let silent = self.silent(present);
        let more = match silent.len().saturating_sub(SHOWN) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let names = silent[..silent.len().min(SHOWN)].join(", ");
        let waited = self.begun.elapsed().as_secs_f64();
        let (s, have) = if silent.len() == 1 { ("", "is") } else { ("s", "are") };
        (!silent.is_empty()).then(|| {
            format!(
                "{} agent{s} {have} connected and did not answer within {waited:.1} s: {names}{more}",
                silent.len()
            )
        })
    }
}
