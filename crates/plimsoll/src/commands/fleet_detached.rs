//! What goes on in the background (`--detach`): waited for, stopped, and shown.

use std::time::{Duration, Instant};

use plimsoll_bus::keeper::{DetachedNote, Home, now_s};
use plimsoll_bus::token::in_words;
use plimsoll_model::text::clean;
use serde_json::{Value, json};

use super::fleet::StopArgs;
use crate::fault::{Exit, Fault};
use crate::output;
use crate::signals::{self, ProcessRole};

/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(100);
/// Its end is noted a moment before it lets go of the fleet, or it was killed.
const NOTED_BY: Duration = Duration::from_secs(2);
/// Of a measurement without a result, the last of what it said.
const LAST_LINES: usize = 5;

/// Until it has ended: what it printed, and its exit code.
pub fn wait(name: &str, within: Option<Duration>) -> Result<Exit, Fault> {
    signals::install(ProcessRole::Server);
    let home = Home::of(name)?;
    let note = noted(&home)?;
    if home.goes_on(&note) {
        output::tell(format_args!("plimsoll: waiting for {}", words(&note)));
    }
    match until_its_end(&home, &note, within)? {
        Some(note) => show(&home, &note),
        None if signals::was_asked_to_stop() => {
            output::tell(format_args!("plimsoll: no longer waiting; {} goes on", words(&note)));
            Ok(Exit::Interrupted)
        }
        None => Err(Fault::input(
            format!("{} still goes on", words(&note)),
            "Wait for longer (--within), or end it with `plimsoll fleet stop`.",
        )),
    }
}

/// Ends it in order: its result is written, and what it made is removed.
pub fn stop(a: &StopArgs) -> Result<Exit, Fault> {
    signals::install(ProcessRole::Server);
    let home = Home::of(&a.fleet.name)?;
    let note = noted(&home)?;
    if let Some(run) = &a.run
        && *run != note.run
    {
        return Err(Fault::input(
            format!(
                "what goes on in the background on fleet {} is run {}, not {run}",
                home.fleet(),
                note.run
            ),
            "Nothing was stopped. Name that one, or none.",
        ));
    }
    if !home.stop_detached(&note) {
        return Err(Fault::input(
            format!("nothing goes on in the background on fleet {}: {}", home.fleet(), state(&home, &note)),
            "`plimsoll fleet status` shows who uses the fleet; a command at a terminal ends with Ctrl-C there.",
        ));
    }
    output::tell(format_args!("plimsoll: stopping {}", words(&note)));
    match until_its_end(&home, &note, None)? {
        Some(note) => {
            output::tell(format_args!(
                "plimsoll: {}; its result is in {}",
                state(&home, &note),
                note.directory.display()
            ));
            Ok(Exit::Valid)
        }
        None => {
            output::tell("plimsoll: no longer waiting; it ends by itself");
            Ok(Exit::Interrupted)
        }
    }
}

fn noted(home: &Home) -> Result<DetachedNote, Fault> {
    home.note()?;
    home.detached().ok_or_else(|| {
        Fault::input(
            format!("nothing was left to itself on fleet {}", home.fleet()),
            "A measuring command with --detach leaves its load to itself; `plimsoll fleet wait N` waits for agents.",
        )
    })
}

/// The note with how it ended; `None`: nobody waits for so long.
fn until_its_end(
    home: &Home,
    note: &DetachedNote,
    within: Option<Duration>,
) -> Result<Option<DetachedNote>, Fault> {
    let until = within.map(|t| Instant::now() + t);
    let mut gone: Option<Instant> = None;
    loop {
        // The fleet may have been ended under it, with all that was noted.
        let now = home.detached().filter(|n| n.process == note.process).unwrap_or_else(|| note.clone());
        if now.ended.is_some() {
            return Ok(Some(now));
        }
        if !now.process.lives() && gone.get_or_insert_with(Instant::now).elapsed() > NOTED_BY {
            return Err(killed(&now));
        }
        if signals::was_asked_to_stop() || until.is_some_and(|t| Instant::now() >= t) {
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}

fn killed(note: &DetachedNote) -> Fault {
    Fault {
        what: format!("{} ended without a word: it was killed, or the fleet was ended under it", words(note)),
        remedy: format!(
            "`plimsoll fleet collect {0}` fetches what agents kept and judges it; `plimsoll run --resume {0} --fleet` goes on with it.",
            clean(&note.run)
        ),
        exit: Exit::Invalid,
    }
}

/// What it printed, as if it had been waited for from the beginning.
fn show(home: &Home, note: &DetachedNote) -> Result<Exit, Fault> {
    let (out, log) = home.detached_words();
    if out.is_empty() {
        let lines: Vec<&str> = log.lines().collect();
        output::tell_whole(&format!("{}\n", lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")));
    }
    output::print(&out)?;
    output::tell(format_args!("plimsoll: {}", state(home, note)));
    let code = note.ended.map_or(Exit::Bug as u8, |end| end.exit_code);
    Ok(Exit::of_code(code))
}

/// `run X (plimsoll object put, process 17)`.
fn words(note: &DetachedNote) -> String {
    format!("run {} ({}, process {})", clean(&note.run), clean(&note.command), note.process.pid)
}

fn ago(at_s: u64) -> String {
    in_words(Duration::from_secs(now_s().saturating_sub(at_s).max(1)))
}

/// How it stands with it, in words.
fn state(home: &Home, note: &DetachedNote) -> String {
    match note.ended {
        Some(end) => {
            format!("run {} ended {} ago with exit code {}", clean(&note.run), ago(end.at_s), end.exit_code)
        }
        None if home.goes_on(note) => {
            format!("{} has gone on in the background for {}", words(note), ago(note.since_s))
        }
        None => format!("{} was killed", words(note)),
    }
}

/// A line of the fleet's status; empty: there never was one.
pub fn line(home: &Home) -> String {
    let Some(note) = home.detached() else { return String::new() };
    let log = home.detached_log();
    format!("{}; in {}, log {}\n", state(home, &note), note.directory.display(), log.display())
}

/// The same as JSON.
pub fn as_json(home: &Home) -> Value {
    let Some(note) = home.detached() else { return Value::Null };
    json!({
        "run": note.run,
        "command": note.command,
        "process": note.process.pid,
        "directory": note.directory,
        "log": home.detached_log(),
        "since_unix_s": note.since_s,
        "goes_on": home.goes_on(&note),
        "exit_code": note.ended.map(|end| end.exit_code),
        "ended_unix_s": note.ended.map(|end| end.at_s),
    })
}
