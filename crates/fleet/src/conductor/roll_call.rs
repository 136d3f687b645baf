//! Who is there.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use plimsoll_bus::subjects::{Subjects, agent_of};
use plimsoll_bus::{Bus, BusError, Speaks};
use plimsoll_engine::ring::monotonic_ns;
use plimsoll_model::HostFacts;
use serde::Deserialize;
use serde_json::Value;

use super::known::LONGEST_TELL;
use crate::agent::json;
use crate::wire::pieces::Joiner;
use crate::wire::tell::{AgentTold, Here, State, Tell};
use crate::wire::{VERSION, language, speaks};

/// More orders than any process was given: a thousand a second, for 30,000 years.
const MOST_ORDERS: u64 = 1 << 50;

/// Whether those who answered are enough is asked so often.
const LOOK: Duration = Duration::from_millis(20);

/// Label of what an agent is for.
pub const ROLE: &str = "role";
/// The role of one that stores.
pub const SERVER: &str = "server";

/// An agent that answered.
#[derive(Debug, Clone)]
pub struct Present {
    /// No other agent of the fleet has it.
    pub name: String,
    /// The run that it works for.
    pub run: Option<String>,
    pub(super) session: String,
    pub(super) here: Here,
    /// On our clock.
    pub(super) heard_ns: u64,
}

impl Present {
    /// It waits for a run.
    pub fn is_free(&self) -> bool {
        self.run.is_none() && self.here.state == State::Free
    }

    /// What it does, in words.
    pub fn state(&self) -> &'static str {
        self.here.state.words()
    }

    /// Orders to it would have numbers that it cannot count on from, and its program never had so many.
    pub(super) fn is_absurd(&self) -> bool {
        self.here.last_order > MOST_ORDERS
    }

    /// Whether it would take keys for the storage.
    pub fn takes_keys(&self) -> bool {
        self.here.sealing.is_some()
    }

    /// Its machine.
    pub fn machine(&self) -> &HostFacts {
        &self.here.machine
    }

    /// What it was marked with.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.here.labels
    }

    /// It stores, and takes part in network tests only.
    pub fn is_server(&self) -> bool {
        self.labels().get(ROLE).is_some_and(|role| role == SERVER)
    }

    /// Of its program.
    pub fn version(&self) -> &str {
        &self.here.version
    }

    /// Why it cannot work with us, if it cannot.
    pub fn is_foreign(&self) -> Option<String> {
        let other = &self.here.language;
        (*other != language()).then(|| {
            let its = Speaks { language: other.clone(), program: self.version().to_owned() };
            format!("agent {} is {}, and this is {}", self.name, its.words(), speaks().words())
        })
    }

    /// It cannot work with us.
    pub fn speaks_otherwise(&self) -> bool {
        self.here.language != language()
    }

    #[cfg(test)]
    pub(super) fn for_tests(name: &str, zone: &str, run: Option<&str>) -> Self {
        let here = Here {
            language: language(),
            version: "1".into(),
            machine: HostFacts::default(),
            labels: [("zone".to_owned(), zone.to_owned())].into(),
            state: if run.is_some() { State::Running } else { State::Free },
            monotonic_ns: 0,
            last_order: 0,
            holds: Vec::new(),
            taken: None,
            sealing: None,
        };
        let run = run.map(str::to_owned);
        Self { name: name.into(), run, session: String::new(), here, heard_ns: 0 }
    }
}

/// Calls all agents of a fleet, and listens for so long, or until those who answered are `enough`. In order of their names.
pub fn roll_call(
    bus: &dyn Bus,
    subjects: &Subjects,
    listen: Duration,
    enough: &dyn Fn(&[Present]) -> bool,
) -> Result<Vec<Present>, BusError> {
    let tells = bus.subscribe(&subjects.tells())?;
    let until = Instant::now() + listen;
    let mut joiners: HashMap<String, Joiner> = HashMap::new();
    let mut present: Vec<Present> = Vec::new();
    // Of a thousand each is found at once, and none is copied: a roll call that is slower than its agents are answers to nobody.
    let mut places: HashMap<String, usize> = HashMap::new();
    // Agents of another version read who calls, and tell it where they are.
    bus.publish(&subjects.call(), &json(&speaks()))?;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || enough(&present) {
            present.sort_by(|a, b| a.name.cmp(&b.name));
            return Ok(present);
        }
        // That nobody says anything may be enough, too.
        let Some(message) = tells.next(left.min(LOOK)) else { continue };
        let heard_ns = monotonic_ns();
        let name = agent_of(&message.subject);
        if !joiners.contains_key(name) {
            joiners.insert(name.to_owned(), Joiner::up_to(LONGEST_TELL));
        }
        let Some(Ok(Some(told))) = joiners.get_mut(name).map(|j| j.offer(&message.payload)) else { continue };
        let Some((session, run, here)) = read_here(&told) else { continue };
        let said = Present { name: name.to_owned(), run, session, here, heard_ns };
        match places.get(name) {
            Some(place) => present[*place] = said,
            None => {
                places.insert(name.to_owned(), present.len());
                present.push(said);
            }
        }
    }
}

/// Who says so; of one of another version what can be known of it, so that it is named instead of being silent.
fn read_here(told: &[u8]) -> Option<(String, Option<String>, Here)> {
    match serde_json::from_slice(told) {
        Ok(AgentTold { version: VERSION, session, run, tell: Tell::Here(here) }) => {
            Some((session, run, *here))
        }
        Ok(AgentTold { version: VERSION, .. }) => None,
        _ => read_foreign(told),
    }
}

/// What is the same in all versions: each message has the version of its wire, and where it says who it is, that of its program.
fn read_foreign(told: &[u8]) -> Option<(String, Option<String>, Here)> {
    #[derive(Deserialize)]
    struct AnyTold {
        version: u32,
        #[serde(default)]
        session: String,
        #[serde(default)]
        tell: Value,
    }
    let AnyTold { version, session, tell } = serde_json::from_slice(told).ok()?;
    let here = &tell["here"];
    let text = |name: &str| here[name].as_str().map(str::to_owned);
    let its = text("language").unwrap_or_else(|| format!("fleet {version}"));
    // What cannot be read and says that it is of ours is no stranger's.
    if version == VERSION || its == language() {
        return None;
    }
    let labels = serde_json::from_value(here["labels"].clone()).unwrap_or_default();
    Some((
        session,
        None,
        Here {
            language: its,
            version: text("version").unwrap_or_default(),
            machine: HostFacts {
                host: here["machine"]["host"].as_str().unwrap_or_default().into(),
                ..HostFacts::default()
            },
            labels,
            state: State::Free,
            monotonic_ns: 0,
            last_order: 0,
            holds: Vec::new(),
            taken: None,
            sealing: None,
        },
    ))
}
