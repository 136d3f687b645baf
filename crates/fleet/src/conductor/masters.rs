//! Conductors that have the key of a fleet, and want more of an agent than its machine's owner lets be done.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_bus::subjects::Subjects;
use plimsoll_bus::{Bus, Identity, MemoryBus, Subscription, Weather};
use plimsoll_lower::Agent as Rolled;

use super::roll_call::roll_call;
use crate::agent::{AgentOptions, Bounds, Calibrate, FleetAgent};
use crate::error::AgentRefusal;
use crate::wire::order::{Assignment, Order};
use crate::wire::roll::PackedRoll;
use crate::wire::seal::Envelope;
use crate::wire::tell::{AgentTold, Tell, WorkDone};
use crate::wire::{VERSION, pieces};

const PATIENCE: Duration = Duration::from_secs(60);

/// An agent, `a`, and whoever gives it orders.
struct Scene {
    bus: MemoryBus,
    subjects: Subjects,
    conductor: Identity,
    tells: Subscription,
    session: String,
    said: u64,
    _agent: FleetAgent,
    _network: MemoryBus,
}

impl Scene {
    fn new(runs: &Path, bounds: Bounds, calibrate: Option<Calibrate>) -> Self {
        let (network, subjects) = (MemoryBus::new(Weather::default()), Subjects::of("test").unwrap());
        let conductor = Identity::random();
        let options = AgentOptions {
            name: "a".into(),
            labels: Default::default(),
            runs: runs.to_owned(),
            bounds,
            calibrate,
            identity: Default::default(),
            conductor: conductor.public(),
            keep: Default::default(),
            takes_keys_by: None,
            clock_ahead_ns: 0,
            clock_jump: None,
        };
        let bus = network.client();
        let tells = bus.subscribe(&subjects.tells()).unwrap();
        let agent = FleetAgent::start(Arc::new(network.client()), &subjects, options, |_| {}).unwrap();
        let there = roll_call(&bus, &subjects, PATIENCE, &|all| !all.is_empty()).unwrap();
        let session = there[0].session.clone();
        Self { bus, subjects, conductor, tells, session, said: 0, _agent: agent, _network: network }
    }

    fn order(&mut self, job: Assignment) -> Result<WorkDone, AgentRefusal> {
        self.said += 1;
        let (task, sequence) = (self.said, self.said);
        let order = Order::Work { task, job: Box::new(job) };
        let (run, to) = ("r1".to_owned(), self.session.clone());
        let envelope = Envelope { version: VERSION, run, to, sequence, until_ns: u64::MAX, order };
        let message = pieces::split(sequence, &envelope.sealed(&self.conductor), 1 << 18).remove(0);
        self.bus.publish(&self.subjects.order("a"), &message).unwrap();
        // Its signs of life go on, whatever becomes of the order.
        let until = Instant::now() + PATIENCE;
        loop {
            let message = self.tells.next(PATIENCE).expect("it is there");
            assert!(Instant::now() < until, "it does not answer");
            let told: AgentTold = serde_json::from_slice(&message.payload[16..]).unwrap();
            if let Tell::Answer { task: of, result } = told.tell
                && of == task
            {
                return result;
            }
        }
    }

    fn hire(&mut self, plan: &str) {
        let hire = Assignment::Hire { plan: plan.into(), deadman_ns: 3_600_000_000_000 };
        assert_eq!(self.order(hire), Ok(WorkDone::Well));
    }
}

#[test]
fn who_serves_loads_no_machine_to_measure_its_ceiling_and_nobody_does_so_for_hours() {
    let dir = tempfile::tempdir().unwrap();
    let serves = Bounds { network_only: true, ..Bounds::default() };
    for (bounds, seconds, why) in
        [(serves, 1, "no load on storage"), (Bounds::default(), 7200, "no longer than 600 s")]
    {
        let mut scene = Scene::new(dir.path(), bounds, Some(|_, _, _, _| panic!("it was measured")));
        // Of a network test: there is no plan that could be refused.
        scene.hire("");
        let done = scene.order(Assignment::Calibrate { duration_ns: seconds * 1_000_000_000 });
        assert!(done.unwrap_err().problem.contains(why));
    }
}

#[test]
fn names_in_the_roll_lead_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let (work, elsewhere) = (dir.path().join("work"), dir.path().join("elsewhere"));
    std::fs::create_dir(&work).unwrap();
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, work.join("plimsoll.b")).unwrap();
    let bounds = Bounds { dirs: vec![work.clone()], ..Bounds::default() };
    let mut scene = Scene::new(&dir.path().join("runs"), bounds, None);
    scene.hire(&format!(
        "version = 1\n[options]\nshared = true\n[targets.t]\nkind = \"files\"\ndirectory = \"{}\"\nfile_size = \"1MiB\"\n[[stage]]\n\
         warmup = \"0s\"\n[[stage.workload]]\nname = \"w\"\nmix = {{ read = 1 }}\nstop = {{ duration = \"1s\" }}\n",
        work.display()
    ));
    let seat =
        |name: &str| Rolled { name: name.into(), host: "h".into(), cores: 1, beside: Default::default() };
    let mut muster = |next: &str| {
        scene.order(Assignment::Muster {
            roll: PackedRoll::of(&[seat("a"), seat(next)]),
            seat: 0,
            claims: Default::default(),
            apart: ["t".to_owned()].into(),
            shared: Default::default(),
        })
    };
    for name in ["../../elsewhere", "x/../../elsewhere", "", "/etc"] {
        let why = muster(name).unwrap_err().problem;
        assert!(why.contains("no name of an agent"), "{name}: {why}");
    }
    // A name as any, and a place that leads out of what is allowed.
    let why = muster("b").unwrap_err().problem;
    assert!(why.contains("does not let files be made in"), "{why}");
}
