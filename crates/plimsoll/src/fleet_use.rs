//! The fleet that the measuring commands of this process use, if they use one: connected to when the first run begins, and held until
//! the process ends.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use plimsoll_bus::keeper::{Home, OpenFleet};
use plimsoll_bus::subjects::Subjects;
use plimsoll_bus::token::Trust;
use plimsoll_fleet::{Fleet, FleetOptions, OthersBroker};
use plimsoll_model::Plan;
use plimsoll_model::units::Span;
use plimsoll_run::CrewChoice;
use plimsoll_setup::s3::ClaimBy;

use crate::args::FleetArgs;
use crate::cli::Command;
use crate::commands::fleet::FleetCommand;
use crate::fault::Fault;

/// Names the fleet where no flag does.
const FROM_ENVIRONMENT: &str = "PLIMSOLL_FLEET";
/// Agents say twice a second that they are there: less would take each delay for a loss.
const LEAST_DEADMAN: Duration = Duration::from_secs(2);

static ARGS: RwLock<Option<Arc<FleetArgs>>> = RwLock::new(None);
static FLEET: Mutex<Option<Arc<Fleet>>> = Mutex::new(None);

/// What the command line says of a fleet. Refused by name where the command measures nothing that a fleet could.
pub fn note(args: &FleetArgs, command: &Command) -> Result<(), Fault> {
    let measures = matches!(
        command,
        Command::Object(_)
            | Command::Block(_)
            | Command::Fio(_)
            | Command::File(_)
            | Command::Drive(_)
            | Command::Run(_)
            | Command::Limits(_)
            | Command::Speedtest(_)
            | Command::Watch(_)
            | Command::Check(_)
            | Command::Campaign(_)
            | Command::Replicate(_)
            | Command::Net(_)
            | Command::Cleanup(_)
            | Command::Calibrate(_)
    );
    if matches!(command, Command::Cleanup(_) | Command::Net(_) | Command::Calibrate(_))
        && let Some(flag) = args
            .each
            .then_some("--each")
            .or(args.shared.then_some("--shared"))
            .or(args.detach.then_some("--detach"))
    {
        return Err(Fault::input(
            format!("{flag}: this command puts no load on any storage"),
            "Leave it out.",
        ));
    }
    // How many agents it is to have.
    let is_manifest = matches!(command, Command::Fleet(FleetCommand::Manifest(_)));
    let plain = FleetArgs { agents: if is_manifest { None } else { args.agents.clone() }, ..args.clone() };
    if !measures {
        let args = &plain;
        return args.given().map_or(Ok(()), |flag| {
            Err(Fault::input(
                format!("{flag}: this command does not measure over a fleet"),
                "Leave it out, or give it to a command that measures, such as `plimsoll object put`.",
            ))
        });
    }
    let mut args = args.clone();
    args.fleet = named(args.fleet, std::env::var(FROM_ENVIRONMENT).ok());
    if args.fleet.is_none()
        && let Some(flag) = args.given()
    {
        return Err(Fault::input(
            format!("{flag} is of a fleet, and none is used"),
            "Add --fleet, or leave it out.",
        ));
    }
    if args.deadman.is_some_and(|d| d.0 < LEAST_DEADMAN) {
        return Err(Fault::input(
            "--deadman: agents say twice a second that they are there, and less than 2s would take each delay for a loss",
            "Use 2s or more.",
        ));
    }
    keep(args);
    Ok(())
}

fn keep(args: FleetArgs) {
    *ARGS.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(args));
}

/// What the command line says; none: it is of a command that measures nothing.
fn args() -> Option<Arc<FleetArgs>> {
    ARGS.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The flags by which a command that goes on uses the same fleet in the same way; empty: none is used.
pub fn words() -> Vec<String> {
    args().filter(|args| args.fleet.is_some()).map_or_else(Vec::new, |args| args.words())
}

/// Goes on over the fleet of such flags, where the command line names none. Gives its name where that is so.
pub fn go_on_with(words: &[String]) -> Option<String> {
    if is_used() {
        return None;
    }
    let before = FleetArgs::of_words(words).filter(|args| args.fleet.is_some())?;
    let name = before.fleet.clone();
    keep(before);
    name
}

/// A run that goes on waits as long for a silent agent as it did when it began, unless it is told otherwise. `command`: the one by which it
/// was begun. Gives what it takes from there.
pub fn go_on_as(command: &str) -> Option<Span> {
    let args = args().filter(|args| args.fleet.is_some() && args.deadman.is_none())?;
    let deadman = deadman_of(command).filter(|d| d.0 >= LEAST_DEADMAN)?;
    keep(FleetArgs { deadman: Some(deadman), ..(*args).clone() });
    Some(deadman)
}

/// Of a command as a shell reads it; a time is never in quotes.
fn deadman_of(command: &str) -> Option<Span> {
    let mut words = command.split(' ');
    let value = words.find_map(|w| match w.strip_prefix("--deadman")? {
        "" => Some(None),
        rest => rest.strip_prefix('=').map(Some),
    })?;
    value.or_else(|| words.next())?.parse().ok()
}

/// Which fleet, if one: by the flag's own name; a flag without one is of the fleet that the environment names, or else of the one that
/// has no other name.
fn named(flag: Option<String>, environment: Option<String>) -> Option<String> {
    let environment = environment.filter(|name| !name.is_empty());
    match flag {
        Some(name) if name.is_empty() => Some(environment.unwrap_or_else(|| "default".to_owned())),
        Some(name) => Some(name),
        None => environment,
    }
}

/// What the command line says of losses becomes the plan's: the run is judged by it at any later time.
pub fn with_losses(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    if let Some(on_agent_loss) = args().and_then(|args| args.on_agent_loss) {
        plan.options.on_agent_loss = on_agent_loss;
    }
    plan
}

/// Whether it is a fleet that measures.
pub fn is_used() -> bool {
    args().is_some_and(|args| args.fleet.is_some())
}

/// Whether the measurement is to go on without this command.
pub fn detaches() -> bool {
    args().is_some_and(|args| args.fleet.is_some() && args.detach)
}

/// The fleet's name, where one is used.
pub fn name() -> Option<String> {
    args().and_then(|args| args.fleet.clone())
}

/// What was typed, in few words.
pub fn command_in_short() -> String {
    let typed: Vec<String> = std::env::args().skip(1).take(2).collect();
    format!("plimsoll {}", typed.join(" "))
}

/// Who carries out what is measured.
pub fn crew() -> Result<CrewChoice, Fault> {
    Ok(match fleet()? {
        Some(fleet) => CrewChoice::Fleet(fleet),
        None => CrewChoice::Local,
    })
}

/// The plan that is carried out: of all agents together, where it was asked for each of them.
pub fn for_each(mut plan: Plan) -> Result<Plan, Fault> {
    plan.options.shared |= args().is_some_and(|args| args.shared);
    if !args().is_some_and(|args| args.each) {
        return Ok(plan);
    }
    let Some(fleet) = fleet()? else { return Ok(plan) };
    Ok(plan.for_each_of(fleet.count()?)?)
}

/// Who asks the storage beside the load.
pub fn claim_by() -> ClaimBy {
    args().and_then(|args| args.claim_by).unwrap_or_default()
}

/// The fleet itself, for what is no measurement; none: none is used.
pub fn fleet() -> Result<Option<Arc<Fleet>>, Fault> {
    let Some(args) = args() else { return Ok(None) };
    let Some(name) = args.fleet.as_deref() else { return Ok(None) };
    let mut held = FLEET.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Some(match &*held {
        Some(fleet) => Arc::clone(fleet),
        None => Arc::clone(held.insert(Arc::new(hold(name, &args)?))),
    }))
}

/// At the end of the process: what was said last still goes out, and the fleet is free for others.
pub fn release() {
    drop(FLEET.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// The fleet, which nobody else uses meanwhile.
fn hold(name: &str, args: &FleetArgs) -> Result<Fleet, Fault> {
    let standard = FleetOptions::default();
    let options = FleetOptions {
        choice: args.agents.clone().unwrap_or_default(),
        deadman: args.deadman.map_or(standard.deadman, |d| d.0),
        send_keys: args.send_credentials,
        ..standard
    };
    held(name, options)
}

/// The same for a command that measures nothing. Whose broker it is is known here, and not of `options`.
pub fn held(name: &str, options: FleetOptions) -> Result<Fleet, Fault> {
    let home = Home::of(name)?;
    let up = home.open()?;
    let lease = up.lease(&command_in_short())?;
    let bus = Arc::new(up.connect("conductor")?);
    let subjects = Subjects::of(up.name())?;
    let options = FleetOptions { broker: others_broker(&home, &up)?, ..options };
    Ok(Fleet::new(bus, subjects, up.conductor, options).knowing(move || connected(&home)).holding(lease))
}

/// Who is, as the fleet's own broker has it. A broker of somebody else's does not say, and one that does not answer is no reason not to ask
/// the agents themselves.
fn connected(home: &Home) -> Option<BTreeSet<String>> {
    let up = home.open().ok().filter(|up| up.note.guest.is_none())?;
    let roll = up.roll().ok()?;
    Some(roll.into_iter().filter(|agent| agent.client.is_some()).map(|agent| agent.name).collect())
}

/// What a result says of a broker that is somebody else's; none: it is the fleet's own.
fn others_broker(home: &Home, up: &OpenFleet) -> Result<Option<OthersBroker>, Fault> {
    let Some(guest) = &up.note.guest else { return Ok(None) };
    let is_encrypted = guest.trust != Trust::Plain;
    Ok(Some(OthersBroker { url: guest.url.clone(), is_encrypted, secret: home.token()?.secret }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_for_silent_agents_is_read_from_the_command_that_began_a_run() {
        let of = |command: &str| deadman_of(command).map(|d| d.to_string());
        assert_eq!(of("plimsoll run p.toml --fleet --deadman=5s -q").as_deref(), Some("5s"));
        assert_eq!(of("plimsoll run p.toml --deadman 1m --fleet").as_deref(), Some("1m"));
        for none in [
            "plimsoll run p.toml --fleet",
            "plimsoll run --deadmans=5s",
            "plimsoll run --deadman",
            "--deadman soon",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn a_flag_without_a_name_is_of_the_fleet_that_the_environment_names() {
        let name =
            |flag: Option<&str>, env: Option<&str>| named(flag.map(str::to_owned), env.map(str::to_owned));
        assert_eq!(name(Some(""), Some("lab")).as_deref(), Some("lab"));
        assert_eq!(name(Some(""), Some("")).as_deref(), Some("default"));
        assert_eq!(name(Some(""), None).as_deref(), Some("default"));
        assert_eq!(name(Some("mine"), Some("lab")).as_deref(), Some("mine"));
        assert_eq!(name(None, Some("lab")).as_deref(), Some("lab"));
        assert_eq!(name(None, Some("")), None);
    }
}
