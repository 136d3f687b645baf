//! Samples, each host's by itself: counters are cumulative since a host's own boot, and those of two hosts subtract to nothing. And what
//! sources said of servers, each source's by itself.

use std::collections::HashMap;

use plimsoll_model::sample::Role;
use plimsoll_model::{Sample, Scrape};

use super::{RunAgent, RunData};
use crate::StoreError;
use crate::frame::Damage;
use crate::rundir::RunDir;
use crate::stream::{Header, Record, StreamReader};
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
        let paths = self.sample_files()?;
        let mut files = Vec::with_capacity(paths.len());
        for path in &paths {
            let mut reader = StreamReader::open(path)?;
            let is_again = has_file(&files, &reader.header().source);
            let mut file = SampleFile::new(reader.header(), is_again, max, paths.len());
            file.read(&mut reader)?;
            damage.extend(reader.damage().cloned());
            files.push(file);
        }
        Ok(gathered(files, skipped))
    }
}

/// Whether a host's samples are in one of these files.
pub(super) fn has_file<'a>(files: impl IntoIterator<Item = &'a SampleFile>, host: &str) -> bool {
    files.into_iter().any(|f| f.host == host && f.of_role.iter().any(|(_, kept)| !kept.kept.is_empty()))
}

/// What was kept of files of samples, in their order.
pub(super) fn gathered(
    files: impl IntoIterator<Item = SampleFile>,
    skipped: &mut Skipped,
) -> (Vec<HostSamples>, Vec<ObservedSource>) {
    let (mut hosts, mut observed) = (Vec::new(), Vec::new());
    for file in files {
        skipped.merge(file.skipped);
        observed.extend(file.scrapes.finish());
        for (role, mut thinned) in file.of_role {
            if !thinned.kept.is_empty() {
                thinned.kept.sort_by_key(|s| s.at_ns);
                let (host, every) = (file.host.clone(), thinned.every);
                hosts.push(HostSamples { host, role, every, samples: thinned.kept });
            }
        }
    }
    (hosts, observed)
}

/// What is kept of one file, as far as it was read.
#[derive(Debug, Clone)]
pub(super) struct SampleFile {
    host: String,
    /// The host has a file already.
    is_again: bool,
    scrapes: Scrapes,
    of_role: [(Role, Thinned); 2],
    skipped: Skipped,
}

impl SampleFile {
    /// Of so many files: all of them together keep `max` samples.
    pub(super) fn new(header: &Header, is_again: bool, max: usize, files: usize) -> Self {
        let (max, most_readings) = ((max / files.max(1)).max(2), MOST_READINGS / files.max(1));
        Self {
            host: header.source.clone(),
            is_again,
            scrapes: Scrapes::new(header.observes.clone(), most_readings),
            of_role: [Role::Client, Role::Server].map(|role| (role, Thinned::new(max))),
            skipped: Skipped::default(),
        }
    }

    /// To the end of the file.
    fn read(&mut self, reader: &mut StreamReader) -> Result<(), StoreError> {
        while let Some(record) = reader.next()? {
            self.take(record);
        }
        Ok(())
    }

    /// The next record.
    pub(super) fn take(&mut self, record: Record) {
        match record {
            Record::Sample(s) if s.host != self.host => {
                self.skipped.add(Unknown::of_counts("sample", "of another host than its file"));
            }
            Record::Sample(_) if self.is_again => {
                self.skipped.add(Unknown::of_counts("sample", "of a host that has a file already"));
            }
            Record::Sample(s) => {
                let mine = self.of_role.iter_mut().find(|(role, _)| *role == s.role);
                mine.expect("both roles are there").1.push(*s);
            }
            Record::Scrape(s) => self.scrapes.push(*s),
            Record::Unknown(u) => self.skipped.add(u),
            Record::Interval { .. } | Record::Mark(_) => {}
        }
    }
}

/// Keeps scrapes of one source, fewer of them where each holds much.
#[derive(Debug, Clone)]
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
#[derive(Debug, Clone)]
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
