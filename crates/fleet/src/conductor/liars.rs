//! Agents that were let in, and lie: what they say costs them their place in the run, and the conductor nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_bus::subjects::Subjects;
use plimsoll_bus::{Bus, Identity, MemoryBus, Weather};
use plimsoll_crew::{Arrival, FromAgent};
use plimsoll_engine::Output;
use plimsoll_engine::ring::monotonic_ns;
use plimsoll_model::interval::{ClientCounts, SeriesShape};
use plimsoll_model::sample::Role;
use plimsoll_model::{Event, Interval, OpKind, Sample, Series, SeriesId, WorkerId};
use plimsoll_setup::Interrupt;

use super::ask::Barrier;
use super::choice::Choice;
use super::known::{Inside, StagePart, StageUnderway, UNTAKEN_OF_ALL};
use super::link::OpenLink;
use super::listen::hand_over;
use super::recruit::{Fleet, FleetOptions};
use super::roll_call::{Present, roll_call};
use crate::agent::{self, AgentOptions, Bounds, FleetAgent, ProbeEcho};
use crate::error::AgentRefusal;
use crate::frame::envelope::{FrameHead, encode};
use crate::frame::hash::StreamHash;
use crate::frame::incoming::Incoming;
use crate::frame::record::{EndOfStream, put_end, put_output, weight};
use crate::wire::ends::EndTold;
use crate::wire::order::{Assignment, Order};
use crate::wire::seal::Envelope;
use crate::wire::tell::{AgentTold, Tell, WorkDone};
use crate::wire::{VERSION, pieces};

const RUN: &str = "r1";

/// A conductor with one agent, `evil`, in a stage with one worker.
struct Scene {
    open: OpenLink,
    evil: MemoryBus,
    subjects: Subjects,
}

impl Scene {
    fn new() -> Self {
        Self::with(&[Present::for_tests("evil", "z", None)])
    }

    fn with(present: &[Present]) -> Self {
        let network = MemoryBus::new(Weather::default());
        let subjects = Subjects::of("test").unwrap();
        let (bus, identity) = (Arc::new(network.client()), Arc::new(Identity::random()));
        let patience = Duration::from_secs(60);
        let open = OpenLink::new(bus, &subjects, identity, RUN, present, patience).unwrap();
        {
            let mut inside = open.link.lock();
            for (number, agent) in (0u32..).zip(&mut inside.agents) {
                agent.is_hired = true;
                let part = StagePart::new(Incoming::new(number), [0].into(), 0);
                agent.part = Some(part.among(present.len()));
            }
            inside.stage = Some(StageUnderway {
                index: 0,
                grid_ns: 100_000_000,
                in_lockstep: false,
                epoch_ns: monotonic_ns(),
                stop: false,
                abort: false,
                aborted: None,
                ends_ns: None,
                stopped: None,
                told_ahead: false,
                may_block: false,
                ready: Default::default(),
            });
        }
        Self { open, evil: network.client(), subjects }
    }

    fn frame(&self, number: u64, content: &[u8]) {
        self.frame_of("evil", number, content);
    }

    fn frame_of(&self, agent: &str, number: u64, content: &[u8]) {
        let message = encode(FrameHead::new("", RUN, 0, number), content);
        self.evil.publish(&self.subjects.frame(agent), &message).unwrap();
    }

    fn slice(&self, worker: u16, index: u64) {
        let client = ClientCounts { workers: 1, ..ClientCounts::default() };
        let interval = Box::new(Interval { index, series: vec![], client });
        let mut content = Vec::new();
        put_output(&Output::Interval { worker: WorkerId { agent: 0, worker }, interval }, &mut content);
        self.frame(0, &content);
    }

    fn tell(&self, number: u64, tell: Tell) {
        let told = AgentTold { version: VERSION, session: String::new(), run: Some(RUN.into()), tell };
        for piece in pieces::split(number, &agent::json(&told), 1 << 18) {
            self.evil.publish(&self.subjects.tell("evil"), &piece).unwrap();
        }
    }

    fn wait<T>(&self, mut done: impl FnMut(&Inside) -> Option<T>) -> T {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(found) = done(&self.open.link.lock()) {
                return found;
            }
            assert!(Instant::now() < until, "{:?}", self.open.link.lock().agents[0].lost);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn lost(&self) -> String {
        self.wait(|inside| inside.agents[0].lost.clone())
    }
}

#[test]
fn numbers_of_frames_that_cannot_be_lose_the_agent() {
    for number in [1_000_000_000_000, u64::MAX] {
        let scene = Scene::new();
        scene.frame(number, b"x");
        let why = scene.lost();
        assert!(why.contains(&number.to_string()), "{why}");
        assert!(scene.open.link.lock().dead.is_none());
    }
}

#[test]
fn slices_that_cannot_be_lose_the_agent() {
    for (worker, index) in
        [(0, u64::MAX), (0, u64::MAX - 1), (0, u64::MAX / 100_000_000), (0, 1_000_000), (7, 0)]
    {
        let scene = Scene::new();
        scene.slice(worker, index);
        let why = scene.lost();
        assert!(why.contains("has not been yet") || why.contains("no worker 7"), "{why}");
        assert!(scene.open.link.lock().dead.is_none());
    }
}

/// A slice with a time in each of twenty thousand buckets for four kinds of op, which is several times as large here as on the wire. Gives
/// that size, too.
fn swelling() -> (Output, usize) {
    let kinds = [OpKind::Put, OpKind::Get, OpKind::Stat, OpKind::List];
    let of = |kind| {
        let mut s = Series::new(SeriesId { stage: 0, workload: 0, kind }, SeriesShape::default());
        (0..10).for_each(|k| (2048..4096).for_each(|low: u64| s.response.record(low << k)));
        s
    };
    let mut interval = Box::new(Interval::empty(0));
    interval.series = kinds.map(of).to_vec();
    let worker = WorkerId { agent: 0, worker: 0 };
    let size = weight(&FromAgent::Interval { worker, interval: Box::new(interval.to_form()) });
    (Output::Interval { worker, interval }, size)
}

/// Of twenty agents, what all of them may have waiting is bounded, too; and the rest comes when that was taken.
#[test]
fn slices_of_many_agents_wait_in_one_bound() {
    const SLICES: u64 = 12;
    let (mut output, size) = swelling();
    let names: Vec<String> = (0..20).map(|n| format!("lg-{n:02}")).collect();
    let present: Vec<Present> = names.iter().map(|n| Present::for_tests(n, "z", None)).collect();
    let scene = Scene::with(&present);
    for index in 0..SLICES {
        let Output::Interval { interval, .. } = &mut output else { unreachable!() };
        interval.index = index;
        let mut content = Vec::new();
        put_output(&output, &mut content);
        names.iter().for_each(|name| scene.frame_of(name, index, &content));
    }
    let parts = |inside: &Inside, f: fn(&StagePart) -> u64| -> Vec<u64> {
        inside.agents.iter().map(|a| f(a.part.as_ref().unwrap())).collect()
    };
    scene.wait(|inside| parts(inside, |p| p.incoming.wanted().1).iter().all(|n| *n == SLICES).then_some(()));
    let mut inside = scene.open.link.lock();
    let mut heaviest = 0;
    while let Some(arrival) = inside.stage.as_mut().unwrap().ready.pop_front() {
        heaviest = heaviest.max(parts(&inside, |p| p.weight as u64).iter().sum());
        let Arrival::FromAgent(FromAgent::Interval { worker, .. }) = arrival else { panic!("a slice") };
        inside.agents[worker.agent as usize].part.as_mut().unwrap().takes_back();
        hand_over(&mut inside, worker.agent as usize);
    }
    let most = UNTAKEN_OF_ALL + names.len() * size;
    assert!(heaviest <= most as u64, "{heaviest} of at most {most}, {size} each");
    assert_eq!(parts(&inside, |p| p.taken), vec![SLICES; names.len()], "none is lost");
}

/// Slices that are larger here than on the wire wait as they came, but for a few, and none is lost.
#[test]
fn slices_that_swell_wait_as_they_came() {
    const SLICES: u64 = 60;
    let (mut output, size) = swelling();
    let scene = Scene::new();
    for index in 0..SLICES {
        let Output::Interval { interval, .. } = &mut output else { unreachable!() };
        interval.index = index;
        let mut content = Vec::new();
        put_output(&output, &mut content);
        assert!(content.len() * 4 < size, "{} and {size}", content.len());
        scene.frame(index, &content);
    }
    let came = |inside: &Inside| inside.agents[0].part.as_ref().unwrap().incoming.wanted().1;
    scene.wait(|inside| (came(inside) == SLICES).then_some(()));
    let mut inside = scene.open.link.lock();
    let mut seen = 0;
    let mut heaviest = 0;
    loop {
        let part = inside.agents[0].part.as_ref().unwrap();
        heaviest = heaviest.max(part.weight);
        assert_eq!(part.incoming.wanted(), (vec![], SLICES), "none is asked for again");
        let Some(arrival) = inside.stage.as_mut().unwrap().ready.pop_front() else { break };
        let Arrival::FromAgent(FromAgent::Interval { interval, .. }) = arrival else { panic!("a slice") };
        assert_eq!(interval.index, seen);
        seen += 1;
        // As the collector gives it back.
        inside.agents[0].part.as_mut().unwrap().takes_back();
        hand_over(&mut inside, 0);
    }
    let part = inside.agents[0].part.as_ref().unwrap();
    assert_eq!((seen, part.given, part.taken, part.weight), (SLICES, SLICES, SLICES, 0));
    assert!(heaviest < (16 << 20) + size, "{heaviest} of {size} each");
}

#[test]
fn an_end_that_says_other_sums_than_the_slices_loses_the_agent_with_the_reason() {
    let told = |worker: u16, change: &[(&str, serde_json::Value)]| {
        let mut end = serde_json::to_value(EndTold::broken(worker, "x")).unwrap();
        end["error"] = serde_json::Value::Null;
        change.iter().for_each(|(name, value)| end[*name] = value.clone());
        serde_json::from_value::<EndTold>(end).unwrap()
    };
    let lies = [
        (vec![told(0, &[("ops", 5.into())])], "5 ops, and its slices of 0"),
        (vec![told(0, &[]), told(0, &[])], "one worker twice"),
        (vec![told(0, &[("times_ns", vec![0, 0, 0, u64::MAX].into())])], "a time that has not been yet"),
    ];
    for (ends, why) in lies {
        let scene = Scene::new();
        let mut content = Vec::new();
        put_end(&EndOfStream { ends, hash: StreamHash::default().text() }, &mut content);
        scene.frame(0, &content);
        assert!(scene.lost().contains(why), "{}", scene.lost());
        let mut inside = scene.open.link.lock();
        let came = inside.stage.as_mut().unwrap().ready.pop_front();
        assert!(matches!(came, Some(Arrival::Lost { why: told, .. }) if told.contains(why)));
    }
}

#[test]
fn who_is_told_to_cancel_and_never_ends_is_lost() {
    let scene = Scene::new();
    let long_ago = Instant::now().checked_sub(Duration::from_secs(600)).unwrap();
    scene.open.link.lock().stage.as_mut().unwrap().aborted = Some(long_ago);
    assert!(scene.lost().contains("of being told to cancel"));
}

/// Its signs of life go on, and its stream does not.
#[test]
fn who_says_that_it_is_there_and_never_ends_is_lost_after_the_deadman() {
    let scene = Scene::new();
    let age = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
    let set = |over: Option<Instant>, still: u64, untaken: u64| {
        let mut inside = scene.open.link.lock();
        inside.stage.as_mut().unwrap().stopped = over;
        let agent = &mut inside.agents[0];
        agent.heard = Instant::now();
        let part = agent.part.as_mut().unwrap();
        (part.progress, part.given) = (age(still), untaken);
    };
    // While there is load a stream may stand still (a device that hangs), after it for as long as the deadman, and what was not
    // taken yet is our own delay.
    for (over, still, untaken) in
        [(None, 600, 0), (Some(age(600)), 20, 0), (Some(age(20)), 600, 0), (Some(age(600)), 600, 1)]
    {
        set(over, still, untaken);
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(scene.open.link.lock().agents[0].lost, None, "{over:?} {still} {untaken}");
    }
    // A device may take its time for what it was given.
    scene.open.link.lock().stage.as_mut().unwrap().may_block = true;
    set(Some(age(600)), 600, 0);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(scene.open.link.lock().agents[0].lost, None);
    scene.open.link.lock().stage.as_mut().unwrap().may_block = false;
    set(Some(age(600)), 600, 0);
    let why = scene.lost();
    assert!(why.contains("does not end: nothing came of its stream for 60 s"), "{why}");
    // The same where its time is over.
    let scene = Scene::new();
    {
        let mut inside = scene.open.link.lock();
        let stage = inside.stage.as_mut().unwrap();
        (stage.ends_ns, stage.epoch_ns) = (Some(0), monotonic_ns().saturating_sub(600_000_000_000));
        inside.agents[0].part.as_mut().unwrap().progress = age(600);
    }
    assert!(scene.lost().contains("does not end"));
}

#[test]
fn a_last_order_without_a_next_one_panics_nowhere() {
    let mut present = Present::for_tests("evil", "z", None);
    present.here.last_order = u64::MAX;
    assert!(present.is_absurd());
    let scene = Scene::with(std::slice::from_ref(&present));
    assert!(scene.lost().contains("orders that nobody gave"));
    scene.open.link.lock().agents[0].is_hired = true;
    drop(scene);
}

#[test]
fn what_was_not_asked_is_not_kept() {
    let scene = Scene::new();
    let refused = || Err(AgentRefusal::new("x".repeat(1000), ""));
    for n in 0..2000 {
        scene.tell(n, Tell::Answer { task: 1000 + n, result: refused() });
        scene.tell(n, Tell::Event { task: 1000 + n, event: Event::Message("x".into()) });
        let echo = ProbeEcho { asked_ns: n, session: String::new(), heard_ns: n, answered_ns: n };
        scene.evil.publish(&scene.subjects.clock_echo("evil"), &agent::json(&echo)).unwrap();
    }
    scene.open.link.lock().agents[0].open.insert(7);
    scene.tell(5000, Tell::Answer { task: 7, result: Ok(WorkDone::Well) });
    scene.wait(|inside| inside.agents[0].answers.contains_key(&7).then_some(()));
    let inside = scene.open.link.lock();
    let agent = &inside.agents[0];
    assert_eq!((agent.answers.len(), agent.events.len(), agent.echoes.len()), (1, 0, 0));
}

#[test]
fn who_tells_too_much_of_its_work_or_in_pieces_without_end_is_lost() {
    let scene = Scene::new();
    scene.open.link.lock().agents[0].open.insert(7);
    (0..2000).for_each(|n| scene.tell(n, Tell::Event { task: 7, event: Event::Message("x".into()) }));
    assert!(scene.lost().contains("tells more of its work"));

    let scene = Scene::new();
    let piece = [&9u64.to_le_bytes()[..], &1u32.to_le_bytes(), &u32::MAX.to_le_bytes()].concat();
    scene.evil.publish(&scene.subjects.tell("evil"), &piece).unwrap();
    assert!(scene.lost().contains("4294967295 pieces"));
}

#[test]
fn a_thread_that_dies_ends_what_waits_with_an_error() {
    let scene = Scene::new();
    scene.open.link.lock().sink = Some(Box::new(|_| panic!("a sink that dies (wanted)")));
    let sample = Sample {
        host: "h".into(),
        role: Role::Client,
        at_ns: 1,
        cpus: Vec::new(),
        process_cpu_ns: 0,
        process_rss_bytes: 0,
        process_usage: Default::default(),
        memory_available_bytes: 0,
        process_io: Default::default(),
        nics: Default::default(),
        tcp_out: 0,
        tcp_retransmits: 0,
        disks: Default::default(),
        psi_ns: [0; 3],
        cpu_quotas: Vec::new(),
    };
    scene.tell(1, Tell::Sample(Box::new(sample)));
    let mut quiet = |_| {};
    let interrupt = Interrupt::default();
    scene.wait(|inside| inside.dead.clone());
    let asked = Barrier::new("resting", &interrupt, &mut quiet);
    let said = scene.open.link.ask(vec![(0, Assignment::Rest)], asked).unwrap_err().to_string();
    assert!(said.contains("fleet-tells"), "{said}");
}

/// Agents that answer a call, each after its own time.
fn answers(
    network: &MemoryBus,
    subjects: &Subjects,
    name: &str,
    after: Duration,
) -> std::thread::JoinHandle<()> {
    let (bus, subject) = (network.client(), subjects.tell(name));
    let calls = bus.subscribe(&subjects.call()).unwrap();
    let here = Present::for_tests(name, "z", None).here;
    std::thread::spawn(move || {
        calls.next(Duration::from_secs(20)).unwrap();
        std::thread::sleep(after);
        let tell = Tell::Here(Box::new(here));
        let told = AgentTold { version: VERSION, session: String::new(), run: None, tell };
        bus.publish(&subject, &pieces::split(0, &agent::json(&told), 1 << 18)[0]).unwrap();
    })
}

#[test]
fn the_first_by_name_are_taken_and_not_the_first_who_answer() {
    let (network, subjects) = (MemoryBus::new(Weather::default()), Subjects::of("test").unwrap());
    let late = [("c", 0), ("b", 100), ("a", 400)];
    let threads = late.map(|(name, ms)| answers(&network, &subjects, name, Duration::from_millis(ms)));
    let options = FleetOptions { choice: Choice::Count(2), ..FleetOptions::default() };
    let fleet = Fleet::new(Arc::new(network.client()), subjects, Identity::random(), options);
    let names: Vec<String> = fleet.chosen().unwrap().agents.into_iter().map(|p| p.name).collect();
    assert_eq!(names, ["a", "b"]);
    threads.into_iter().for_each(|t| t.join().unwrap());
}

#[test]
fn a_run_whose_name_is_a_path_makes_no_file_anywhere() {
    let (network, subjects) = (MemoryBus::new(Weather::default()), Subjects::of("test").unwrap());
    let (dir, conductor) = (tempfile::tempdir().unwrap(), Identity::random());
    let options = AgentOptions {
        name: "a".into(),
        labels: Default::default(),
        runs: dir.path().join("deep/er/runs"),
        bounds: Bounds::default(),
        identity: Default::default(),
        calibrate: None,
        conductor: conductor.public(),
        keep: Default::default(),
        takes_keys_by: None,
        clock_ahead_ns: 0,
        clock_jump: None,
    };
    let bus = network.client();
    let tells = bus.subscribe(&subjects.tells()).unwrap();
    let _agent = FleetAgent::start(Arc::new(network.client()), &subjects, options, |_| {}).unwrap();
    let there = roll_call(&bus, &subjects, Duration::from_secs(20), &|all| !all.is_empty()).unwrap();
    let plan = "version = 1\n[targets.n]\nkind = \"null\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { null = 1 }\n";
    let paths = ["../../../escape/x", "..", "/tmp/x", "a/b", "", "a.b"];
    for (sequence, run) in (1..).zip(paths) {
        let job = Box::new(Assignment::Hire { plan: plan.into(), deadman_ns: 1_000_000_000 });
        let (run, to) = (run.to_owned(), there[0].session.clone());
        let order = Order::Work { task: sequence, job };
        let envelope = Envelope { version: VERSION, run, to, sequence, until_ns: u64::MAX, order };
        let message = pieces::split(sequence, &envelope.sealed(&conductor), 1 << 18).remove(0);
        bus.publish(&subjects.order("a"), &message).unwrap();
        let result = loop {
            let message = tells.next(Duration::from_secs(20)).unwrap();
            let told: AgentTold = serde_json::from_slice(&message.payload[16..]).unwrap();
            if let Tell::Answer { task, result } = told.tell
                && task == sequence
            {
                break result;
            }
        };
        assert!(result.unwrap_err().problem.contains("no name of a run"));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
