//! The end of a fleet, from outside: its keeper is asked to end, and what a killed one left is removed.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::ProcessNote;
use super::home::{Home, OpenFleet};
use super::place::LOCK;
use super::process::is_keeper_of;
use crate::BusError;

/// How long the keeper may take to end its broker and to clean up.
const PATIENCE: Duration = Duration::from_secs(15);

/// A keeper that is gone when it is looked for lets go of its fleet within this.
const GOES: Duration = Duration::from_secs(1);

/// What there was to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// A fleet that was up.
    Fleet,
    /// What a keeper left that was killed.
    Remains,
}

/// Ends the fleet and leaves nothing. One that a command uses is ended only by `force`.
pub fn down(home: &Home, force: bool) -> Result<Ended, BusError> {
    let Some(place) = home.place()? else { return Err(home.not_up()) };
    if !place.is_locked(LOCK) && home.is_guest() {
        let fleet = home.open()?;
        refuse_used(home, &fleet, force)?;
        // Agents that do not hear it find nobody who orders anything.
        let told = fleet.dismiss();
        home.remove_at(&place)?;
        return told.map(|()| Ended::Fleet);
    }
    if !place.is_locked(LOCK) {
        home.remove_at(&place)?;
        return Ok(Ended::Remains);
    }
    let fleet = home.open()?;
    refuse_used(home, &fleet, force)?;
    let (keeper, pid) = (&fleet.note.process, fleet.note.process.pid);
    for signal in [Signal::TERM, Signal::KILL] {
        let sent = send(keeper, signal, home.fleet());
        let until = Instant::now() + if sent { PATIENCE } else { GOES };
        while place.is_locked(LOCK) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        if !place.is_locked(LOCK) {
            // A keeper that was killed left its directory.
            home.remove_at(&place)?;
            return Ok(Ended::Fleet);
        }
        if !sent {
            return Err(BusError::refused(
                format!("process {pid} is not the keeper of fleet {}, though its note says so", home.fleet()),
                format!("Nothing was ended. Find who holds {}, and end that", home.file(LOCK).display()),
            ));
        }
    }
    Err(BusError::unreachable(
        format!("the keeper of fleet {} does not end (process {pid})", home.fleet()),
        "Look at what it waits for",
    ))
}

fn refuse_used(home: &Home, fleet: &OpenFleet, force: bool) -> Result<(), BusError> {
    match fleet.holder().filter(|_| !force) {
        None => Ok(()),
        Some(holder) => Err(BusError::refused(
            format!("fleet {} is in use by {holder}", home.fleet()),
            if home.detached().is_some_and(|note| home.goes_on(&note)) {
                "It goes on in the background: `plimsoll fleet wait` waits for its end, `plimsoll fleet stop` stops it. Or end the fleet \
                 under it with --force"
            } else {
                "Wait until that has ended, or end it, too, with --force"
            },
        )),
    }
}

/// Whether the keeper of this fleet was told, and nobody else.
fn send(keeper: &ProcessNote, signal: Signal, fleet: &str) -> bool {
    keeper.signal(signal, || is_keeper_of(keeper, fleet))
}
