//! Finds agents for a run, and hires them.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_bus::subjects::Subjects;
use plimsoll_bus::{Bus, Identity};
use plimsoll_crew::{Crew, CrewError};
use plimsoll_lower::Agent as Rolled;
use plimsoll_model::plan::TargetSpec;
use plimsoll_model::{AgentHost, Event, Plan};
use plimsoll_run::Recruit;
use plimsoll_setup::Interrupt;
use plimsoll_setup::s3::{CANNED, EMBEDDED};

use super::ask::Barrier;
use super::choice::Choice;
use super::crew::FleetCrew;
use super::link::OpenLink;
use super::listen::gone;
use super::roll_call::{Present, roll_call};
use crate::wire::order::Assignment;

/// Agents answer a call at once, and say twice a second that they are there.
const LISTEN: Duration = Duration::from_millis(1200);
/// Of a number of agents that is asked for, the last may still be on its way.
const LISTEN_FOR_ALL: Duration = Duration::from_secs(3);

/// How a fleet is used for a run.
#[derive(Debug, Clone)]
pub struct FleetOptions {
    /// Which agents.
    pub choice: Choice,
    /// An agent that was silent for so long is lost, and one that heard nothing for so long ends by itself.
    pub deadman: Duration,
}

impl Default for FleetOptions {
    fn default() -> Self {
        Self { choice: Choice::All, deadman: Duration::from_secs(10) }
    }
}

/// A fleet that is up, for whoever holds its conductor's key.
#[derive(Debug)]
pub struct Fleet {
    bus: Arc<dyn Bus>,
    subjects: Subjects,
    identity: Arc<Identity>,
    options: FleetOptions,
    /// Kept for as long as this is.
    _held: Option<Box<dyn Debug + Send + Sync>>,
}

impl Fleet {
    /// `identity`: the conductor's, by which agents know it.
    pub fn new(bus: Arc<dyn Bus>, subjects: Subjects, identity: Identity, options: FleetOptions) -> Self {
        Self { bus, subjects, identity: Arc::new(identity), options, _held: None }
    }

    /// Keeps something (a lease) for as long as the fleet is used.
    pub fn holding(self, what: impl Debug + Send + Sync + 'static) -> Self {
        Self { _held: Some(Box::new(what)), ..self }
    }

    /// Those that a run gets.
    pub(super) fn chosen(&self, is_fit: fn(&Present) -> bool) -> Result<Vec<Present>, CrewError> {
        let choice = &self.options.choice;
        let listen = if matches!(choice, Choice::Count(_)) { LISTEN_FOR_ALL } else { LISTEN };
        let begun = Instant::now();
        // The first by name, not by speed: who is there has answered within the time that all have.
        let enough = |present: &[Present]| begun.elapsed() >= LISTEN && choice.is_met(present);
        let mut present = roll_call(self.bus.as_ref(), &self.subjects, listen, &enough).map_err(gone)?;
        let there = present.len();
        present.retain(is_fit);
        if present.is_empty() && there > 0 {
            let why = "every agent is a server, and none generates load";
            return Err(CrewError::input(why, "Start agents without --role server on machines that are to"));
        }
        let remedy = "Look who is there with: plimsoll fleet status";
        let chosen = choice.of(present).map_err(|why| CrewError::input(why, remedy))?;
        if let Some(p) = chosen.iter().find(|p| p.is_absurd()) {
            return Err(CrewError::input(
                format!("agent {} counts orders that nobody gave: {}", p.name, p.here.last_order),
                "Start it again, or leave it out (--agents label=value)",
            ));
        }
        match chosen.iter().find_map(Present::is_foreign) {
            Some(why) => Err(CrewError::input(why, "Run the same version of plimsoll on all machines")),
            None => Ok(chosen),
        }
    }
}

impl Fleet {
    /// A line to agents that from now on work for this run; `plan` as they are told of it.
    pub(super) fn hired(
        &self,
        run: &str,
        plan: &str,
        chosen: &[Present],
        interrupt: &Interrupt,
        events: &mut dyn FnMut(Event),
    ) -> Result<OpenLink, CrewError> {
        let (bus, identity) = (Arc::clone(&self.bus), Arc::clone(&self.identity));
        let deadman = self.options.deadman;
        let open = OpenLink::new(bus, &self.subjects, identity, run, chosen, deadman)?;
        open.link.know_clocks()?;
        let deadman_ns = deadman.as_nanos() as u64;
        let hire = || Assignment::Hire { plan: plan.to_owned(), deadman_ns };
        let jobs = (0..chosen.len()).map(|number| (number, hire())).collect();
        open.link.lock().agents.iter_mut().for_each(|a| a.is_hired = true);
        let asked = Barrier { unheard: Some(deadman), ..Barrier::new("hiring", interrupt, events) };
        open.link.ask_each(jobs, asked)?;
        Ok(open)
    }
}

impl Recruit for Fleet {
    fn recruit(
        &self,
        run: &str,
        plan: &Plan,
        interrupt: &Interrupt,
        events: &mut dyn FnMut(Event),
    ) -> Result<Box<dyn Crew>, CrewError> {
        for_many(plan)?;
        // Who stores generates no load.
        let chosen = self.chosen(|p| !p.is_server())?;
        let hosts = hosts(&chosen);
        if plan.targets.values().any(TargetSpec::is_on_files) {
            one_each(&hosts)?;
        }
        let deadman = self.options.deadman;
        let open = self.hired(run, &plan.to_toml(), &chosen, interrupt, events)?;
        let agent = |h: &AgentHost| Rolled {
            name: h.agent.clone(),
            host: h.machine.host.clone(),
            cores: h.machine.cpu_count,
            beside: Default::default(),
        };
        let roll: Vec<Rolled> = hosts.iter().map(agent).collect();
        events(Event::Message(told(&roll, deadman)));
        Ok(Box::new(FleetCrew::new(open, plan, roll, hosts, interrupt.clone())))
    }
}

fn told(roll: &[Rolled], deadman: Duration) -> String {
    const SHOWN: usize = 8;
    let mut names = roll.iter().take(SHOWN).map(|a| a.name.as_str()).collect::<Vec<_>>().join(", ");
    if roll.len() > SHOWN {
        names.push_str(&format!(" and {} more", roll.len() - SHOWN));
    }
    let s = if roll.len() == 1 { "" } else { "s" };
    let lost = deadman.as_secs_f64();
    format!("{} agent{s}: {names}; who is silent for {lost} s counts as lost", roll.len())
}

/// What is on the conductor's own machine is no server for agents elsewhere.
fn for_many(plan: &Plan) -> Result<(), CrewError> {
    for (name, spec) in &plan.targets {
        if let TargetSpec::S3(s3) = spec
            && let Some(word) = s3.endpoints.iter().find(|e| *e == EMBEDDED || *e == CANNED)
        {
            return Err(CrewError::input(
                format!(
                    "target '{name}': the {word} server is started for one machine, and agents are on others"
                ),
                "Start one that all of them reach with `plimsoll target s3`, and name its endpoint",
            ));
        }
    }
    Ok(())
}

/// Two agents on one machine would use the same devices and directories.
fn one_each(hosts: &[AgentHost]) -> Result<(), CrewError> {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for h in hosts {
        if let Some(other) = seen.insert(&h.machine.boot_id, &h.agent) {
            return Err(CrewError::input(
                format!(
                    "agents {other} and {} are on one machine, and would use the same devices and files",
                    h.agent
                ),
                "Use one agent of each machine for devices and files (--agents label=value)",
            ));
        }
    }
    Ok(())
}

/// The agents' machines. Two machines of one name are told apart by their agents' names: records of samples are called by hosts.
fn hosts(chosen: &[Present]) -> Vec<AgentHost> {
    let mut boots: BTreeMap<String, String> = BTreeMap::new();
    let one = |(number, p): (u32, &Present)| {
        let mut machine = p.machine().clone();
        let boot = boots.entry(machine.host.clone()).or_insert_with(|| machine.boot_id.clone());
        if *boot != machine.boot_id {
            machine.host = format!("{}-{}", machine.host, p.name);
        }
        AgentHost { agent: p.name.clone(), number, machine, clock: None }
    };
    (0..).zip(chosen).map(one).collect()
}
