//! A fleet in this process: agents and their conductor on one network.
#![allow(dead_code, reason = "each of the tests uses a part of it")]

#[path = "../../../run/tests/support/plans.rs"]
pub mod plans;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plimsoll_bus::subjects::Subjects;
use plimsoll_bus::{Identity, MemoryBus, Weather};
use plimsoll_crew::FromAgent;
use plimsoll_fleet::{
    AgentOptions, Bounds, Choice, Fleet, FleetAgent, FleetOptions, Present, read_own_record, roll_call,
};
use plimsoll_model::{Event, Interval, Plan};
use plimsoll_run::{CrewChoice, Finished, Options, Recruit, RunError, execute};
use plimsoll_setup::Interrupt;
use plimsoll_store::{Record, RunDir, StreamReader};

pub fn plan(text: &str) -> Plan {
    Plan::from_toml(text).unwrap()
}

pub fn options(root: &Path) -> Options {
    Options { root: root.to_owned(), ..Options::default() }
}

pub fn bad_weather(seed: u64) -> Weather {
    Weather {
        seed,
        lost: 0.15,
        doubled: 0.15,
        delayed: 0.4,
        delay: Duration::from_millis(15),
        ..Weather::default()
    }
}

pub struct FleetHere {
    network: MemoryBus,
    conductor: Arc<MemoryBus>,
    seed: String,
    subjects: Subjects,
    dir: tempfile::TempDir,
    agents: BTreeMap<String, (Arc<MemoryBus>, FleetAgent)>,
    told: Arc<Mutex<Vec<String>>>,
    options: FleetOptions,
    interrupt: Interrupt,
}

/// What came of a run.
pub struct Ran {
    result: Result<Finished, RunError>,
    events: Vec<Event>,
}

impl Ran {
    pub fn finished(self) -> Finished {
        self.result.unwrap()
    }

    pub fn refusal(self) -> String {
        self.result.unwrap_err().to_string()
    }

    pub fn messages(&self) -> Vec<String> {
        let text = |e: &Event| if let Event::Message(t) = e { Some(t.clone()) } else { None };
        self.events.iter().filter_map(text).collect()
    }
}

impl FleetHere {
    pub fn new(weather: Weather) -> Self {
        let network = MemoryBus::new(weather);
        Self {
            conductor: Arc::new(network.client()),
            network,
            seed: Identity::random().seed().to_owned(),
            subjects: Subjects::of("test").unwrap(),
            dir: tempfile::tempdir().unwrap(),
            agents: BTreeMap::new(),
            told: Arc::default(),
            options: FleetOptions::default(),
            interrupt: Interrupt::default(),
        }
    }

    fn identity(&self) -> Identity {
        Identity::from_seed(&self.seed).unwrap()
    }

    pub fn agent(self, name: &str) -> Self {
        self.started(name, 0, Bounds::default())
    }

    pub fn agent_ahead(self, name: &str, ahead_ns: i64) -> Self {
        self.started(name, ahead_ns, Bounds::default())
    }

    pub fn agent_within(self, name: &str, bounds: Bounds) -> Self {
        self.started(name, 0, bounds)
    }

    fn started(mut self, name: &str, clock_ahead_ns: i64, bounds: Bounds) -> Self {
        let options = AgentOptions {
            name: name.into(),
            labels: [("name".to_owned(), name.to_owned())].into(),
            runs: self.dir.path().join("of-agents"),
            bounds,
            conductor: self.identity().public(),
            keep: Default::default(),
            takes_keys_by: None,
            identity: Default::default(),
            calibrate: None,
            clock_ahead_ns,
            clock_jump: None,
        };
        let bus = Arc::new(self.network.client());
        let told = Arc::clone(&self.told);
        let tell = move |text: String| told.lock().unwrap().push(text);
        let agent = FleetAgent::start(bus.clone(), &self.subjects, options, tell).unwrap();
        self.agents.insert(name.into(), (bus, agent));
        self
    }

    pub fn patience(mut self, deadman: Duration) -> Self {
        self.options.deadman = deadman;
        self
    }

    pub fn choice(mut self, choice: Choice) -> Self {
        self.options.choice = choice;
        self
    }

    /// How many agents there are.
    pub fn size(&self) -> usize {
        self.agents.len()
    }

    pub fn bus(&self, agent: &str) -> &MemoryBus {
        &self.agents[agent].0
    }

    pub fn conductor(&self) -> &MemoryBus {
        &self.conductor
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    /// What the agents told.
    pub fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }

    pub fn interrupt(&self) {
        if !self.interrupt.is_requested() {
            self.interrupt.signal();
        }
    }

    /// The conductor's own way to its agents.
    pub fn recruit(&self) -> Arc<dyn Recruit> {
        self.as_conductor(self.identity())
    }

    fn as_conductor(&self, identity: Identity) -> Arc<dyn Recruit> {
        let bus = self.conductor.clone();
        Arc::new(Fleet::new(bus, self.subjects.clone(), identity, self.options.clone()))
    }

    /// One with another key than the agents were told.
    pub fn as_stranger(&self) -> Arc<dyn Recruit> {
        self.as_conductor(Identity::random())
    }

    pub fn run(&self, text: &str) -> Ran {
        self.run_and(text, |_, _| {})
    }

    pub fn run_and(&self, text: &str, mut does: impl FnMut(&Self, &Event)) -> Ran {
        let crew = CrewChoice::Fleet(self.as_conductor(self.identity()));
        let options = Options { crew, interrupt: self.interrupt.clone(), ..options(self.root()) };
        let mut events = Vec::new();
        let result = execute(&plan(text), &options, |event| {
            does(self, &event);
            events.push(event);
        });
        Ran { result, events }
    }

    /// All of so many agents are there and free again, within a while.
    pub fn wait_until_free(&self, agents: usize) {
        let until = Instant::now() + Duration::from_secs(20);
        let enough = |there: &[Present]| there.iter().filter(|p| p.is_free()).count() == agents;
        loop {
            let listen = Duration::from_secs(2);
            let there = roll_call(self.conductor.as_ref(), &self.subjects, listen, &enough).unwrap();
            if enough(&there) {
                return;
            }
            assert!(Instant::now() < until, "{:?}", there.iter().map(Present::state).collect::<Vec<_>>());
        }
    }

    /// What an agent wrote down itself, slice by slice.
    pub fn own_record(&self, run: &str, agent: &str, number: u32) -> Vec<(u64, Interval)> {
        slices_of(&[self.own_dir(run, agent, 1)], number, &BTreeMap::new())
    }

    /// The same of a run that may have been resumed once. `first`: the slice in which each stage starts; what workers counted while they
    /// waited for that is of it.
    pub fn own_records(
        &self,
        run: &str,
        agent: &str,
        number: u32,
        first: &BTreeMap<u32, u64>,
    ) -> Vec<(u64, Interval)> {
        let dirs: Vec<PathBuf> =
            (1..=9).map(|n| self.own_dir(run, agent, n)).filter(|d| d.is_dir()).collect();
        slices_of(&dirs, number, first)
    }

    fn own_dir(&self, run: &str, agent: &str, n: u32) -> PathBuf {
        let name = if n == 1 { format!("{run}.{agent}") } else { format!("{run}.{agent}.{n}") };
        self.dir.path().join("of-agents/agents").join(name)
    }
}

fn slices_of(dirs: &[PathBuf], number: u32, first: &BTreeMap<u32, u64>) -> Vec<(u64, Interval)> {
    let mut slices: BTreeMap<u64, Interval> = BTreeMap::new();
    for dir in dirs {
        let stages = read_own_record(&dir.join("frames"), number).unwrap();
        let of_stage = |(stage, outputs): (u32, Vec<FromAgent>)| outputs.into_iter().map(move |o| (stage, o));
        for (stage, output) in stages.into_iter().flat_map(of_stage) {
            let FromAgent::Interval { interval, .. } = output else { continue };
            let index = interval.index.max(first.get(&stage).copied().unwrap_or(0));
            slices.entry(index).or_insert_with(|| Interval::empty(index)).merge(&interval.to_form());
        }
    }
    slices.into_iter().collect()
}

/// The slices of an agent in the conductor's record.
pub fn stored(run: &Path, agent: &str) -> Vec<(u64, Interval)> {
    let mut reader = StreamReader::open(&run.join(format!("intervals/{agent}.zst"))).unwrap();
    let mut slices: BTreeMap<u64, Interval> = BTreeMap::new();
    while let Some(record) = reader.next().unwrap() {
        if let Record::Interval { interval, .. } = record {
            let series = interval.series.iter().map(|s| plimsoll_model::Series {
                id: s.id,
                counts: s.counts,
                response: s.response.to_dense(),
                service: s.service.as_ref().map(|h| h.to_dense()),
                first_byte: s.first_byte.as_ref().map(|h| h.to_dense()),
                submission: s.submission.as_ref().map(|h| h.to_dense()),
                throttled: s.throttled.as_ref().map(|h| h.to_dense()),
                endpoints: s.endpoints.clone(),
            });
            let dense = Interval { index: interval.index, series: series.collect(), client: interval.client };
            slices.entry(dense.index).or_insert_with(|| Interval::empty(dense.index)).merge(&dense);
        }
    }
    slices.into_iter().collect()
}

/// The bytes of each agent's record.
pub fn records(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let files: Vec<PathBuf> = RunDir::open(run).unwrap().interval_files().unwrap();
    let name = |p: &PathBuf| p.file_name().unwrap().to_string_lossy().into_owned();
    files.iter().map(|p| (name(p), std::fs::read(p).unwrap())).collect()
}
