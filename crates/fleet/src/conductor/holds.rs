//! Who keeps others away from the devices and images that agents share. One agent does, for all of its machine (of an image: for all), and
//! the kernel keeps it for that one's process. When it is lost, one of those who stand by has to have it; where none has it in time, the
//! run ends: nothing is written to what may be somebody else's by now.

use std::time::{Duration, Instant};

use plimsoll_model::text::clean;

use super::known::KnownAgent;

/// Beyond the time in which agents notice that they are alone: one that was only cut off drains, and lets go. (A choice.)
const LETS_GO: Duration = Duration::from_secs(5);

/// One device of one machine, or one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedThing {
    /// As the plan names it.
    pub path: String,
    /// Agents that use it and could hold it.
    pub of: Vec<usize>,
    /// The one that does.
    pub holder: Option<usize>,
    /// Since when nobody is known to.
    pub since: Option<Instant>,
}

/// What came of looking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched {
    /// Another agent holds it from now on, in words.
    TakenOver(String),
    /// The run has to end, in words.
    Unheld(String),
}

impl SharedThing {
    /// Held by the first of these.
    pub fn new(path: &str, of: Vec<usize>) -> Self {
        Self { path: path.to_owned(), holder: of.first().copied(), of, since: None }
    }

    /// Whether somebody has it of those who may be at work. Of a thing whose agents are all lost nobody knows anything.
    pub fn is_held(&self, agents: &[KnownAgent]) -> bool {
        let is_there = |n: &usize| agents[*n].lost.is_none();
        !self.of.iter().any(is_there) || self.holder.as_ref().is_some_and(is_there)
    }

    /// `patience`: after so long agents without a conductor end by themselves.
    pub fn look(&mut self, agents: &[KnownAgent], patience: Duration) -> Option<Watched> {
        let robbed = self.of.iter().find_map(|n| Some((&agents[*n].name, agents[*n].taken.as_ref()?)));
        if let Some((name, words)) = robbed {
            return Some(Watched::Unheld(format!("agent {name}: {}", clean(words))));
        }
        if self.is_held(agents) {
            return None;
        }
        let lost = self.holder.map_or_else(String::new, |n| agents[n].name.clone());
        let there = |n: &&usize| agents[**n].lost.is_none();
        let heir = self.of.iter().filter(there).find(|n| agents[**n].holds.contains(&self.path));
        if let Some(heir) = heir.copied() {
            (self.holder, self.since) = (Some(heir), None);
            let name = &agents[heir].name;
            return Some(Watched::TakenOver(format!(
                "agent {name} holds {} from now on, in place of {lost}",
                clean(&self.path)
            )));
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        (since.elapsed() > patience + LETS_GO).then(|| {
            Watched::Unheld(format!(
                "{} is held by nobody who is left: agent {lost}, which held it, is lost, and no other could take it over. \
                 Perhaps another program has it by now",
                clean(&self.path)
            ))
        })
    }
}
