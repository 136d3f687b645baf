//! Any number of simulated agents, on the virtual clock, and a network that is as bad as a test wants it: whole fleets in one process,
//! and the same again each time. What is simulated is what conducting has to do with: agents' clocks, and when and whether what they
//! send arrives.

mod load;
mod network;

use std::collections::BTreeMap;

use plimsoll_engine::{Clock, TargetConfig, arm_unless};
use plimsoll_lower::Agent;
use plimsoll_model::environment::LOCAL_AGENT;
use plimsoll_model::plan::{Stage, TargetSpec};
use plimsoll_model::{AgentHost, Event, Finding, HostFacts, Plan, Sample};
use plimsoll_setup::s3::Reach;

use crate::error::CrewError;
use crate::order::{Crew, Enlisted, Fill, Load, StageOrder};
use crate::target::{Ready, stage_workers};
use load::SimLoad;
pub use network::{Partition, SimNetwork};

/// Agents for plans whose targets are all simulated. All of them use the same simulated storage.
#[derive(Debug)]
pub struct SimCrew {
    plan: Plan,
    roll: Vec<Agent>,
    network: SimNetwork,
    targets: BTreeMap<String, Ready>,
}

impl SimCrew {
    /// Panics on a network without agents.
    pub fn new(plan: &Plan, network: SimNetwork) -> Self {
        assert!(network.agents > 0, "a crew has one agent at least");
        let agent = |n: u32| Agent {
            // A crew of one leaves the same records as this process does.
            name: if network.agents == 1 { LOCAL_AGENT.into() } else { format!("agent-{n}") },
            host: format!("host-{n}"),
            cores: 1,
            beside: Default::default(),
        };
        Self {
            plan: plan.clone(),
            roll: (0..network.agents).map(agent).collect(),
            network,
            targets: BTreeMap::new(),
        }
    }
}

impl Crew for SimCrew {
    fn roll(&self) -> &[Agent] {
        &self.roll
    }

    fn hosts(&self) -> Vec<AgentHost> {
        let host = |(number, a): (u32, &Agent)| AgentHost {
            agent: a.name.clone(),
            number,
            machine: HostFacts { host: a.host.clone(), cpu_count: a.cores, ..HostFacts::default() },
            clock: None,
        };
        // One is as this process.
        if self.roll.len() > 1 { (0..).zip(&self.roll).map(host).collect() } else { Vec::new() }
    }

    fn muster(&mut self, _: BTreeMap<String, Reach>) -> Result<(), CrewError> {
        for (name, spec) in &self.plan.targets {
            let TargetSpec::Sim(sim) = spec else {
                return Err(CrewError::input(
                    format!("target '{name}' is none that simulated agents can reach"),
                    "Use simulated targets only, or agents that are real",
                ));
            };
            self.targets.insert(name.clone(), Ready::sim(sim, self.plan.seed));
        }
        Ok(())
    }

    fn describe(&self, _: &str) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn watch(&mut self, _: u64, _: Box<dyn FnMut(Sample) + Send>) -> Result<(), CrewError> {
        // Hosts that are not there have no counters.
        Ok(())
    }

    fn make_ready(&mut self, stage: &Stage, _: &mut dyn FnMut(Event)) -> Result<Vec<Finding>, CrewError> {
        crate::memory::check(&self.plan, stage)?;
        Ok(Vec::new())
    }

    fn fill(&mut self, fill: &Fill<'_>, _: &mut dyn FnMut(Event)) -> Result<(), CrewError> {
        Err(CrewError::bug(format!("{}: simulated storage holds no objects", fill.what)))
    }

    fn start(&mut self, order: &StageOrder<'_>) -> Result<Box<dyn Load>, CrewError> {
        let Clock::Virtual { start_ns } = order.clock else {
            return Err(CrewError::bug("simulated agents have no real clock"));
        };
        let mut workers = stage_workers(&self.plan, order, &self.roll, &self.targets)?;
        for w in &mut workers {
            if let TargetConfig::Sim(world) = &mut w.target {
                *world = world.with_clock_ahead(self.network.ahead_ns(w.worker.agent));
            }
        }
        let enlisted = Enlisted::all(&workers);
        // Agents whose clocks are ahead begin before the others: not before there is a time.
        let at_ns = start_ns + self.network.most_ahead_ns().next_multiple_of(order.grid_ns);
        let running = arm_unless(order.spec(workers), &|| false)?.go(at_ns)?;
        Ok(Box::new(SimLoad::new(running, enlisted, order.grid_ns, self.network.clone())))
    }

    fn rest(&mut self) {}

    fn disband(&mut self, _: bool) -> Result<Vec<String>, CrewError> {
        self.targets.clear();
        Ok(Vec::new())
    }
}
