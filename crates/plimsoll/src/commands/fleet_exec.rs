//! What `fleet` does. The keeper is a process of its own, which `up` leaves in the background: a fleet outlives the terminal that
//! it was started from.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use plimsoll_bus::BusError;
use plimsoll_bus::keeper::{
    Ended, GuestWish, Home, Keeper, KeySet, Wish, be_guest, down, now_s, of_this_machine,
};
use plimsoll_bus::token::in_words;
use plimsoll_fleet::Choice;

use super::fleet::{DownArgs, FleetCommand, KeepArgs, TokenArgs, UpArgs};
use super::{fleet_collect, fleet_detached, fleet_status, fleet_tally, launchers};
use crate::fault::{Exit, Fault, sentence};
use crate::launch::ssh;
use crate::output;
use crate::signals::{self, ProcessRole};

/// What the keeper says on its standard output when its fleet is up.
const READY: &str = "up";

impl From<BusError> for Fault {
    fn from(e: BusError) -> Self {
        match e {
            BusError::Unreachable { problem, remedy } | BusError::Refused { problem, remedy } => {
                Fault::input(problem, sentence(&remedy))
            }
            BusError::Closed | BusError::Busy => {
                Fault::input(format!("the fleet's broker: {e}"), "See `plimsoll fleet status`.")
            }
            BusError::TooLarge { .. } | BusError::Subject(_) => Fault::bug(e.to_string()),
        }
    }
}

/// `wanted`: of `--agents`, where it was given.
pub fn fleet(c: &FleetCommand, wanted: Option<&Choice>) -> Result<Exit, Fault> {
    match c {
        FleetCommand::Up(a) => up(a),
        FleetCommand::Status(a) => fleet_status::status(a),
        FleetCommand::Collect(a) => fleet_collect::collect(a),
        FleetCommand::Tally(a) => fleet_tally::tally(a),
        FleetCommand::Wait(a) => fleet_status::wait(a),
        FleetCommand::Stop(a) => fleet_detached::stop(a),
        FleetCommand::Slurm(a) => launchers::slurm(a),
        FleetCommand::Manifest(a) => launchers::manifest(a, wanted),
        FleetCommand::Token(a) => token(a),
        FleetCommand::Down(a) => end(a),
        FleetCommand::Keep(a) => keep(a),
    }
}

fn up(a: &UpArgs) -> Result<Exit, Fault> {
    let home = Home::of(&a.fleet.name)?;
    if !a.ssh.is_empty() {
        // What was started by then is ended, and not left to itself.
        signals::install(ProcessRole::Server);
    }
    let left = home.launched();
    let came = match &a.nats {
        Some(url) => on_a_broker_of_others(&home, url, a),
        None => start_keeper(a).and_then(|mut keeper| await_ready(&mut keeper)),
    };
    if let (Err(_), Some(left), None) = (&came, left, home.launched()) {
        // A start that failed removed all that there was: agents of an earlier fleet are still to be ended.
        home.note_launched(&left)?;
    }
    came?;
    let note = home.note()?;
    let token = home.token()?;
    let place = match &note.guest {
        Some(guest) => guest.url.clone(),
        None => format!("port {}", note.local.rsplit(':').next().unwrap_or_default()),
    };
    if !a.ssh.is_empty() {
        output::tell(format_args!("plimsoll: fleet {} is up ({}, {place})", home.fleet(), note.broker));
        let wish = ssh::SshWish { hosts: &a.ssh, config: a.ssh_config.clone(), flags: a.agents.flags() };
        // Without one agent there is nothing to be up for.
        return ssh::launch(&home, &token, &wish)
            .map(|()| Exit::Valid)
            .inspect_err(|_| drop(take_down(&home, true)));
    }
    output::tell(format_args!(
        "plimsoll: fleet {} is up ({}, {place}). On each machine that is to generate load:",
        home.fleet(),
        note.broker,
    ));
    // Not as an argument, which all users of that machine could read as long as the agent lives.
    output::print(&format!("PLIMSOLL_JOIN={} plimsoll agent\n", token.text()?))?;
    output::tell(format_args!(
        "plimsoll: the token holds for {}; it is tried at {}",
        in_words(a.token_for.0),
        token.addresses.join(", ")
    ));
    Ok(Exit::Valid)
}

/// One that was there before, and stays.
fn on_a_broker_of_others(home: &Home, url: &str, a: &UpArgs) -> Result<(), Fault> {
    let authority_pem = a.ca.as_ref().map(std::fs::read).transpose().map_err(|e| {
        let file = a.ca.as_deref().unwrap_or(Path::new("")).display();
        Fault::input(format!("--ca: {file} cannot be read: {e}"), "Name a certificate in PEM.")
    })?;
    let expires_s = now_s() + a.token_for.0.as_secs();
    let wish = GuestWish { url: url.to_owned(), creds: a.creds.clone(), authority_pem, expires_s };
    be_guest(home, &wish, &|name| std::env::var(name).ok())?;
    let plain = if url.starts_with("nats://") { ", and what passes there is not encrypted" } else { "" };
    output::tell(format_args!(
        "plimsoll: the broker is its owner's: who else may listen and speak there is what its owner set{plain}. Each agent \
         needs credentials of its own for it (plimsoll agent --creds FILE)"
    ));
    Ok(())
}

/// The keeper, away from this terminal and its signals.
fn start_keeper(a: &UpArgs) -> Result<Child, Fault> {
    let cannot = |e: std::io::Error| {
        Fault::input(
            format!("the fleet's keeper cannot be started: {e}"),
            "Is the plimsoll binary still there?",
        )
    };
    let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
    command.args(["fleet", "keep", "--name", &a.fleet.name, "--listen", &a.listen.to_string()]);
    command.arg("--token-until").arg((now_s() + a.token_for.0.as_secs()).to_string());
    for host in &a.hosts {
        command.args(["--host", host]);
    }
    if let Some(keys) = &a.keys {
        command.arg("--keys").arg(std::path::absolute(keys).map_err(cannot)?);
    }
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: setsid is async-signal-safe and touches no memory of the parent.
    unsafe {
        command.pre_exec(own_session);
    }
    command.spawn().map_err(cannot)
}

/// A closed terminal is no reason to end.
pub fn own_session() -> std::io::Result<()> {
    // SAFETY: the call has no arguments and changes this process only.
    if unsafe { libc::setsid() } < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits until the keeper says that its fleet is up, or passes on why it is not.
fn await_ready(keeper: &mut Child) -> Result<(), Fault> {
    let mut line = String::new();
    if let Some(stdout) = keeper.stdout.take() {
        // Without a line there is what it said on stderr.
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    if line.trim() == READY {
        return Ok(());
    }
    let mut said = String::new();
    if let Some(mut stderr) = keeper.stderr.take() {
        // What cannot be read is not told.
        let _ = stderr.read_to_string(&mut said);
    }
    // It has closed its output, so it is about to end.
    let _ = keeper.wait();
    let (what, remedy) = said.trim().split_once("\n  fix: ").unwrap_or((said.trim(), ""));
    let what = what.strip_prefix("error: ").unwrap_or(what);
    let what = if what.is_empty() { "the fleet's keeper ended without a word" } else { what };
    Err(Fault::input(what, remedy))
}

fn keep(a: &KeepArgs) -> Result<Exit, Fault> {
    signals::install(ProcessRole::Server);
    let home = Home::of(&a.fleet.name)?;
    let hosts = if a.hosts.is_empty() { of_this_machine(a.listen) } else { a.hosts.clone() };
    let wish = Wish {
        listen: a.listen,
        hosts,
        expires_s: a.token_until,
        keys: keys(a)?,
        speaks: plimsoll_fleet::speaks(),
    };
    // The broker is the child of this thread, the process's first, and ends with it.
    let mut keeper = Keeper::start(&home, wish)?;
    output::print(&format!("{READY}\n"))?;
    let kept = keeper.keep(signals::was_asked_to_stop);
    keeper.end()?;
    kept?;
    Ok(Exit::Valid)
}

fn keys(a: &KeepArgs) -> Result<Option<KeySet>, Fault> {
    let Some(file) = &a.keys else { return Ok(None) };
    let text = std::fs::read_to_string(file).map_err(|e| {
        Fault::input(format!("--keys: {} cannot be read: {e}", file.display()), "Name the right file.")
    })?;
    Ok(Some(KeySet::parse(&text)?))
}

fn token(a: &TokenArgs) -> Result<Exit, Fault> {
    let home = Home::of(&a.fleet.name)?;
    let token = match &a.token_for {
        Some(time) => home.renew(now_s() + time.0.as_secs())?,
        None => home.token()?,
    };
    if token.expires_s <= now_s() {
        return Err(Fault::input(
            format!("the token of fleet {} has expired", home.fleet()),
            "Make a new one: `plimsoll fleet token --for 1h`.",
        ));
    }
    output::print(&format!("{}\n", token.text()?))?;
    Ok(Exit::Valid)
}

fn end(a: &DownArgs) -> Result<Exit, Fault> {
    let home = Home::of(&a.fleet.name)?;
    let (ended, left) = take_down(&home, a.force)?;
    match ended {
        Ended::Fleet => output::tell(format_args!("plimsoll: fleet {} is down", home.fleet())),
        Ended::Remains => output::tell(format_args!(
            "plimsoll: fleet {} was not up any more; what its keeper had left is removed",
            home.fleet()
        )),
    }
    if left == 0 {
        return Ok(Exit::Valid);
    }
    if a.force {
        home.forget_launched()?;
        output::tell(format_args!("plimsoll: {left} agent(s) that may still run are forgotten (--force)"));
    } else {
        output::tell(format_args!(
            "plimsoll: {left} agent(s) may still run, and stay noted: call `plimsoll fleet down --name {}` again when their \
             hosts answer; --force forgets them",
            home.fleet()
        ));
    }
    Ok(Exit::LeftBehind)
}

/// Ends the fleet and the agents that were started with it, also where its last word reached nobody; how many agents may still run.
fn take_down(home: &Home, force: bool) -> Result<(Ended, usize), Fault> {
    let launched = home.launched();
    let ended = down(home, force);
    if ended.is_err() && home.is_up().unwrap_or(true) {
        // Nothing was ended, and its agents are still to be ordered.
        return ended.map(|ended| (ended, 0)).map_err(Fault::from);
    }
    let left = launched.map_or(Ok(0), |launched| ssh::end(home, &launched))?;
    Ok((ended?, left))
}
