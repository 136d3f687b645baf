//! Samples, each host's by itself: counters are cumulative since a host's own boot, and those of two hosts subtract to nothing. And what
//! sources said of servers, each source's by itself.

use std::collections::HashMap;

use plimsoll_model::sample::Role;
use plimsoll_model::{Sample, Scrape};

use super::{RunAgent, RunData};
use crate::StoreError;
use crate::frame::Damage;
use crate::rundir::RunDir;
use crate::stream::{Record, StreamReader};
use crate::unknown::{Skipped, Unknown};

/// One host's samples in one role, by time.
#[derive(Debug, Clone, PartialEq)]
pub struct HostSamples {
    /// As its file is called.
    pub host: String,
    /// Which part it plays.
    pub role: Role,
    /// Every so many-th of those that were taken is kept.
    pub every: u64,
    /// Those that are kept.
    pub samples: Vec<Sample>,
}

/// What one source said of servers, by time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ObservedSource {
    /// Make and address: `node http://s1:9100/metrics`.
    pub observes: String,
    /// Every so many-th scrape is kept.
    pub every: u64,
    /// Those that are kept.
    pub scrapes: Vec<Scrape>,
}

/// Readings that are kept of all sources together, however long a run was: some 100 MB of memory.
const MOST_READINGS: usize = 2_000_000;

impl RunData {
    /// The hosts that agents are on, with their samples.
    pub fn clients(&self) -> impl Iterator<Item = &HostSamples> {
        self.hosts.iter().filter(|h| h.role == Role::Client)
    }

    /// The samples of the machine that an agent is on; `None` where there are none.
    pub fn samples_of(&self, agent: &RunAgent) -> Option<&HostSamples> {
        self.hosts.get(agent.samples?)
    }
}

/// Finds the samples of the machine that each agent is on.
pub(super) fn assign(agents: &mut [RunAgent], hosts: &[HostSamples]) {
    let clients = || hosts.iter().enumerate().filter(|(_, h)| h.role == Role::Client);
    // A host is there once in each role.
    let by_name: HashMap<&str, usize> = clients().map(|(i, h)| (h.host.as_str(), i)).collect();
    for a in agents.iter_mut() {
        a.samples = by_name.get(a.host.machine.host.as_str()).copied();
    }
    // The one machine of the one agent: what it was called when it was asked for its name, or is in a copy of the run, says nothing.
    if let [alone] = agents {
        alone.samples = alone.samples.or_else(|| clients().next().map(|(i, _)| i));
    }
}

impl RunDir {
    /// `max`: samples that are kept at most, of all hosts together (two of each at the least: less gives no difference).
    pub(super) fn load_samples(
        &self,
        max: usize,
        damage: &mut Vec<Damage>,
        skipped: &mut Skipped,
    ) -> Result<(Vec<HostSamples>, Vec<ObservedSource>), StoreError> {
        let files = self.sample_files()?;
        let (max, most_readings) = ((max / files.len().max(1)).max(2), MOST_READINGS / files.len().max(1));
        let mut hosts: Vec<HostSamples> = Vec::new();
        let mut observed = Vec::new();
        for path in files {
            let mut reader = StreamReader::open(&path)?;
            let host = reader.header().source.clone();
            let mut scrapes = Scrapes::new(reader.header().observes.clone(), most_readings);
            let again = hosts.iter().any(|h| h.host == host);
            let mut of_role = [Role::Client, Role::Server].map(|role| (role, Thinned::new(max)));
            while let Some(record) = reader.next()? {
                match record {
                    Record::Sample(s) if s.host != host => {
                        skipped.add(Unknown::of_counts("sample", "of another host than its file"));
                    }
                    Record::Sample(_) if again => {
                        skipped.add(Unknown::of_counts("sample", "of a host that has a file already"));
                    }
                    Record::Sample(s) => {
                        let mine = of_role.iter_mut().find(|(role, _)| *role == s.role);
                        mine.expect("both roles are there").1.push(*s);
                    }
                    Record::Scrape(s) => scrapes.push(*s),
                    Record::Unknown(u) => skipped.add(u),
                    Record::Interval { .. } | Record::Mark(_) => {}
                }
            }
            observed.extend(scrapes.finish());
            damage.extend(reader.damage().cloned());
            for (role, mut thinned) in of_role {
                if !thinned.kept.is_empty() {
                    thinned.kept.sort_by_key(|s| s.at_ns);
                    hosts.push(HostSamples {
                        host: host.clone(),
                        role,
                        every: thinned.every,
                        samples: thinned.kept,
                    });
                }
            }
        }
        Ok((hosts, observed))
    }
}

/// Keeps scrapes of one source, fewer of them where each holds much.
struct Scrapes {
    of: ObservedSource,
    readings: usize,
    most: usize,
    seen: u64,
}

impl Scrapes {
    fn new(observes: String, most: usize) -> Self {
        Self { of: ObservedSource { observes, every: 1, scrapes: Vec::new() }, readings: 0, most, seen: 0 }
    }

    fn push(&mut self, scrape: Scrape) {
        // A gap is always kept: it says why there is nothing.
        if self.seen.is_multiple_of(self.of.every) || scrape.gap.is_some() {
            self.readings += readings(&scrape);
            self.of.scrapes.push(scrape);
        }
        self.seen += 1;
        while self.readings > self.most && self.of.scrapes.len() > 2 {
            let mut i = 0;
            self.of.scrapes.retain(|_| {
                i += 1;
                i % 2 == 1
            });
            self.of.every = self.of.every.saturating_mul(2);
            self.readings = self.of.scrapes.iter().map(readings).sum();
        }
    }

    fn finish(mut self) -> Option<ObservedSource> {
        self.of.scrapes.sort_by_key(|s| s.at_ns);
        (!self.of.scrapes.is_empty()).then_some(self.of)
    }
}

/// What a scrape counts in memory: one for itself, too.
fn readings(scrape: &Scrape) -> usize {
    1 + scrape.subjects.iter().map(|s| s.readings.len()).sum::<usize>()
}

/// Keeps at most `max` things of a stream of unknown length: every one, then every second, then every fourth.
struct Thinned {
    kept: Vec<Sample>,
    max: usize,
    every: u64,
    seen: u64,
}

impl Thinned {
    fn new(max: usize) -> Self {
        Self { kept: Vec::new(), max, every: 1, seen: 0 }
    }

    fn push(&mut self, s: Sample) {
        if self.seen.is_multiple_of(self.every) {
            if self.kept.len() == self.max {
                let mut i = 0;
                self.kept.retain(|_| {
                    i += 1;
                    i % 2 == 1
                });
                self.every *= 2;
            }
            if self.seen.is_multiple_of(self.every) {
                self.kept.push(s);
            }
        }
        self.seen += 1;
    }
}
