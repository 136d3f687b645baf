//! Finds agents for a run, and hires them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_bus::subjects::Subjects;
use plimsoll_bus::token::Secret;
use plimsoll_bus::{Bus, Identity};
use plimsoll_crew::{Crew, CrewError};
use plimsoll_lower::Agent as Rolled;
use plimsoll_model::plan::TargetSpec;
use plimsoll_model::text::clean;
use plimsoll_model::{AgentHost, Event, Finding, Level, Plan};
use plimsoll_run::ceiling::Calibration;
use plimsoll_run::{AgentFetched, Ask, CleanUpCrew, Recruit};
use plimsoll_setup::s3::{CANNED, EMBEDDED, Errands};
use plimsoll_setup::{Interrupt, SetupError};

use super::ask::Barrier;
use super::attendance::{Attendance, LISTEN};
use super::choice::Choice;
use super::collect::{self, SpokenLine};
use super::crew::FleetCrew;
use super::errands::FleetErrands;
use super::link::OpenLink;
use super::listen::gone;
use super::roll_call::{Present, roll_call};
use crate::agent::random_word;
use crate::wire::order::Assignment;
use crate::wire::tell::WorkDone;

/// An agent that has cleaned up has nothing to do but to close its files.
const LETS_GO: Duration = Duration::from_secs(10);

/// Agents that a cleanup takes: the one that works, and those in its place.
const CLEANERS: usize = 3;

/// A plan for what is no load of a plan.
const NOTHING: &str = "version = 1\n[targets.none]\nkind = \"null\"\n[[stage]]\n[[stage.workload]]\nname = \"none\"\nmix = { null = 1 }\n";

/// How a fleet is used for a run.
#[derive(Debug, Clone)]
pub struct FleetOptions {
    /// Which agents.
    pub choice: Choice,
    /// An agent that was silent for so long is lost, and one that heard nothing for so long ends by itself.
    pub deadman: Duration,
    /// Sends them the keys of the storage that this machine has, sealed to each.
    pub send_keys: bool,
    /// The broker is somebody else's.
    pub broker: Option<OthersBroker>,
}

/// A broker that is there for others, too: what keeps strangers out is its owner's.
#[derive(Debug, Clone)]
pub struct OthersBroker {
    /// Where, without anything secret.
    pub url: String,
    /// Connections to it are encrypted.
    pub is_encrypted: bool,
    /// By which agents show that they have the token.
    pub secret: Secret,
}

impl Default for FleetOptions {
    fn default() -> Self {
        Self { choice: Choice::All, deadman: Duration::from_secs(10), send_keys: false, broker: None }
    }
}

/// Who is connected to a fleet's broker, by name; `None`: it does not say.
pub struct Connected(Box<dyn Fn() -> Option<BTreeSet<String>> + Send + Sync>);

impl Debug for Connected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connected").finish_non_exhaustive()
    }
}

/// Those that a run gets.
pub(super) struct Chosen {
    pub agents: Vec<Present>,
    /// In words: who is connected, and did not answer.
    pub silent: Option<String>,
}

/// A fleet that is up, for whoever holds its conductor's key.
#[derive(Debug)]
pub struct Fleet {
    bus: Arc<dyn Bus>,
    subjects: Subjects,
    identity: Arc<Identity>,
    options: FleetOptions,
    /// Who is connected, by name, as the broker has it.
    connected: Option<Connected>,
    /// Kept for as long as this is.
    _held: Option<Box<dyn Debug + Send + Sync>>,
}

impl Fleet {
    /// `identity`: the conductor's, by which agents know it.
    pub fn new(bus: Arc<dyn Bus>, subjects: Subjects, identity: Identity, options: FleetOptions) -> Self {
        Self { bus, subjects, identity: Arc::new(identity), options, connected: None, _held: None }
    }

    pub(super) fn options(&self) -> &FleetOptions {
        &self.options
    }

    /// Says who is connected, so that a roll call waits for those, and names who does not answer.
    pub fn knowing(self, connected: impl Fn() -> Option<BTreeSet<String>> + Send + Sync + 'static) -> Self {
        Self { connected: Some(Connected(Box::new(connected))), ..self }
    }

    /// Keeps something (a lease) for as long as the fleet is used.
    pub fn holding(self, what: impl Debug + Send + Sync + 'static) -> Self {
        Self { _held: Some(Box::new(what)), ..self }
    }

    /// Those that a run gets.
    pub(super) fn chosen(&self) -> Result<Chosen, CrewError> {
        // Who stores generates no load.
        self.chosen_of(|p| !p.is_server())
    }

    /// The same of those who are fit for it.
    pub(super) fn chosen_of(&self, is_fit: fn(&Present) -> bool) -> Result<Chosen, CrewError> {
        let choice = &self.options.choice;
        let attendance = Attendance::new(self.connected.as_ref().and_then(|known| known.0()));
        let enough = |present: &[Present]| attendance.is_enough(choice, present);
        let called = roll_call(self.bus.as_ref(), &self.subjects, attendance.at_most(), &enough);
        let mut present = called.map_err(gone)?;
        let silent = attendance.silent_in_words(&present);
        let there = present.len();
        present.retain(is_fit);
        if present.is_empty() && there > 0 {
            let why = "every agent is a server, and none generates load";
            return Err(CrewError::input(why, "Start agents without --role server on machines that are to"));
        }
        let remedy = "Look who is there with: plimsoll fleet status";
        let and_silent = silent.as_ref().map_or(String::new(), |who| format!("; {who}"));
        let chosen = choice.of(present).map_err(|why| CrewError::input(why + &and_silent, remedy))?;
        if let Some(p) = chosen.iter().find(|p| p.is_absurd()) {
            return Err(CrewError::input(
                format!("agent {} counts orders that nobody gave: {}", p.name, p.here.last_order),
                "Start it again, or leave it out (--agents label=value)",
            ));
        }
        match foreign(&chosen) {
            Some(why) => Err(CrewError::input(
                why,
                "Run the same version of plimsoll on all machines, or leave them out (--agents label=value)",
            )),
            None => Ok(Chosen { agents: chosen, silent }),
        }
    }
}

impl Fleet {
    /// A line to agents who work for this run from now on; `plan` as they are told of it.
    pub(super) fn hire(
        &self,
        chosen: &[Present],
        run: &str,
        plan: &str,
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

    /// Has the ceiling of each agent's machine measured there, at the same time: by one agent of each machine. Gives what each found, by name.
    pub fn calibrate(
        &self,
        duration: Duration,
        interrupt: &Interrupt,
        events: &mut dyn FnMut(Event),
    ) -> Result<Vec<(String, Calibration)>, SetupError> {
        let mut chosen = self.chosen().map_err(in_setup)?.agents;
        let mut machines = BTreeSet::new();
        chosen.retain(|p| machines.insert(p.machine().boot_id.clone()));
        let plan = Plan::from_toml(NOTHING)?;
        let run = format!("calibrate-{}", &random_word()[..8]);
        let open = self.hire(&chosen, &run, &plan.to_toml(), interrupt, events).map_err(in_setup)?;
        let duration_ns = duration.as_nanos() as u64;
        let jobs = (0..chosen.len()).map(|n| (n, Assignment::Calibrate { duration_ns })).collect();
        let asked = Barrier::new("calibrating", interrupt, events);
        let done = open.link.ask_each(jobs, asked).map_err(in_setup)?;
        let one = |(number, done): (usize, WorkDone)| match done {
            WorkDone::Calibrated(made) => Some((chosen[number].name.clone(), *made)),
            _ => None,
        };
        Ok(done.into_iter().filter_map(one).collect())
    }

    /// How many agents a run gets.
    pub fn count(&self) -> Result<u32, SetupError> {
        Ok(self.chosen().map_err(in_setup)?.agents.len() as u32)
    }

    /// Agents who clean up in buckets what a run that is over has left there: one does it, and a few are there for where it cannot.
    pub fn cleaners(&self, run: &str, plan: &Plan, interrupt: &Interrupt) -> Result<Cleaners, SetupError> {
        let hired = self.chosen().and_then(|Chosen { agents: mut chosen, .. }| {
            chosen.truncate(CLEANERS);
            let open = self.hire(&chosen, run, &plan.to_toml(), interrupt, &mut |_| {})?;
            if self.options.send_keys {
                self.entrust(&open, plan, &chosen, run, interrupt, &mut |_| {})?;
            }
            Ok(open)
        });
        hired.map(|open| Cleaners { open }).map_err(in_setup)
    }
}

/// Agents who clean up; let go where this is dropped.
#[derive(Debug)]
pub struct Cleaners {
    open: OpenLink,
}

impl Cleaners {
    /// For the run of this mark.
    pub fn errands(&self, mark: &str) -> Box<dyn Errands> {
        Box::new(FleetErrands::new(&self.open.link, mark))
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
        let Chosen { agents: chosen, silent } = self.chosen()?;
        for_many(plan, &chosen)?;
        let hosts = hosts(&chosen);
        let deadman = self.options.deadman;
        let open = self.hire(&chosen, run, &plan.to_toml(), interrupt, events)?;
        let agent = |h: &AgentHost| Rolled {
            name: h.agent.clone(),
            host: h.machine.host.clone(),
            cores: h.machine.cpu_count,
            beside: Default::default(),
        };
        let roll: Vec<Rolled> = hosts.iter().map(agent).collect();
        events(Event::Message(told(&roll, deadman)));
        if let Some(who) = &silent {
            events(Event::Message(format!("{who}; they have no part in this run")));
        }
        let mut remarks: Vec<Finding> = self.options.broker.iter().map(OthersBroker::remark).collect();
        if self.options.send_keys {
            remarks.extend(self.entrust(&open, plan, &chosen, run, interrupt, events)?);
        }
        let of = |p: &Present| [p.name.clone(), p.version().to_owned(), p.machine().kernel.clone()];
        let mut found = unlike(&chosen.iter().map(of).collect::<Vec<_>>(), env!("CARGO_PKG_VERSION"));
        found.extend(silent.map(without));
        Ok(Box::new(FleetCrew::new(open, plan, roll, hosts, remarks, interrupt.clone()).with_findings(found)))
    }

    fn fetch_kept(&self, ask: Ask<'_>) -> Result<Vec<AgentFetched>, CrewError> {
        let line = SpokenLine { bus: &self.bus, subjects: &self.subjects, identity: &self.identity };
        collect::fetch_kept(&line, ask)
    }

    fn clean_up_crew(
        &self,
        run: &str,
        plan: &Plan,
        interrupt: &Interrupt,
    ) -> Result<Option<Box<dyn CleanUpCrew>>, SetupError> {
        Ok(Some(Box::new(self.cleaners(run, plan, interrupt)?)))
    }
}

impl CleanUpCrew for Cleaners {
    fn errands(&self, mark: &str) -> Box<dyn Errands> {
        Self::errands(self, mark)
    }

    fn let_go(self: Box<Self>) {
        let link = &self.open.link;
        link.dismiss();
        let names: Vec<String> = link.lock().agents.iter().map(|a| a.name.clone()).collect();
        let is_free = |there: &[Present], name: &String| there.iter().any(|p| p.name == *name && p.is_free());
        let enough = |there: &[Present]| names.iter().all(|name| is_free(there, name));
        // Who is not free by then is told of by whoever wants it next.
        let until = Instant::now() + LETS_GO;
        while Instant::now() < until {
            match roll_call(link.bus.as_ref(), &link.subjects, LISTEN, &enough) {
                Ok(there) if !enough(&there) => {}
                _ => return,
            }
        }
    }
}

/// Agents (name, version, kernel) that are not what the conductor, or the others, are. They understand each other, and what they measure
/// may differ for that.
fn unlike(agents: &[[String; 3]], ours: &str) -> Vec<Finding> {
    let groups = |field: usize| {
        let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        agents.iter().for_each(|a| all.entry(&a[field]).or_default().push(&a[0]));
        all
    };
    let words = |(what, names): (&&str, &Vec<&str>)| {
        const SHOWN: usize = 4;
        let more = names.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{} on {}{more}", clean(what), names[..names.len().min(SHOWN)].join(", "))
    };
    let mut out = Vec::new();
    let versions = groups(1);
    if versions.keys().any(|v| *v != ours) {
        let there = versions.iter().map(words).collect::<Vec<_>>().join("; ");
        let text = format!(
            "The agents run other versions of plimsoll than this one ({ours}): {there}. Plans and records are the same in all of them."
        );
        out.push(Finding::new("F23", "unlike_versions", Level::Info, text));
    }
    let kernels = groups(2);
    if kernels.len() > 1 {
        let there = kernels.iter().map(words).collect::<Vec<_>>().join("; ");
        out.push(Finding::new(
            "F24",
            "unlike_kernels",
            Level::Info,
            format!("The agents' kernels differ: {there}."),
        ));
    }
    out
}

/// Those of another version: the first with what it speaks, the others by name.
fn foreign(chosen: &[Present]) -> Option<String> {
    const SHOWN: usize = 8;
    let mut all = chosen.iter().filter(|p| p.speaks_otherwise());
    let first = all.next()?.is_foreign()?;
    let others: Vec<&str> = all.map(|p| p.name.as_str()).collect();
    let more = match others.len().saturating_sub(SHOWN) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let shown = others[..others.len().min(SHOWN)].join(", ");
    Some(if others.is_empty() { first } else { format!("{first}; of another version, too: {shown}{more}") })
}

/// The load was divided among the others.
fn without(silent: String) -> Finding {
    let text =
        format!("{silent}. The run was done without them: `plimsoll fleet status` says what became of each.");
    Finding::new("F26", "silent_agents", Level::Info, text)
}

/// No engine is at work where agents are looked for.
fn in_setup(e: CrewError) -> SetupError {
    match e {
        CrewError::Setup(e) => e,
        CrewError::Engine(what) => SetupError::Bug(what),
        CrewError::OutOfTime { problem, remedy } => SetupError::Input { problem, remedy },
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

/// A server that is started for the run listens on the conductor's loopback: only agents on the same machine reach it.
fn for_many(plan: &Plan, chosen: &[Present]) -> Result<(), CrewError> {
    let here = plimsoll_run::machine().boot_id;
    let Some(far) = chosen.iter().find(|p| p.machine().boot_id != here) else { return Ok(()) };
    for (name, spec) in &plan.targets {
        if let TargetSpec::S3(s3) = spec
            && let Some(word) = s3.endpoints.iter().find(|e| *e == EMBEDDED || *e == CANNED)
        {
            return Err(CrewError::input(
                format!(
                    "target '{name}': the {word} server is started on this machine, for agents on the same one, and {} is on another",
                    far.name
                ),
                "Start one that all of them reach with `plimsoll target s3 --listen ADDRESS:PORT`, and name its endpoint",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_unlike_the_others_is_told_by_name() {
        let agent = |name: &str, version: &str, kernel: &str| [name, version, kernel].map(str::to_owned);
        let same = [agent("a", "0.1.0", "6.1"), agent("b", "0.1.0", "6.1")];
        assert_eq!(unlike(&same, "0.1.0"), []);
        let text = |agents: &[[String; 3]]| -> Vec<String> {
            unlike(agents, "0.1.0").into_iter().map(|f| f.text).collect()
        };
        let other = text(&[agent("a", "0.1.0", "6.1"), agent("b", "0.1.1", "6.1")]);
        assert!(other.len() == 1 && other[0].contains("0.1.0 on a; 0.1.1 on b"), "{other:?}");
        let old =
            text(&[agent("a", "0.1.0", "6.1"), agent("b", "0.1.0", "5.15"), agent("c", "0.1.0", "6.1")]);
        assert!(old.len() == 1 && old[0].contains("5.15 on b; 6.1 on a, c"), "{old:?}");
    }
}
