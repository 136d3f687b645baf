//! A machine that puts load on when its conductor says so: waits to be hired, works inside its own bounds, and ends by itself where the
//! conductor is silent for too long.

mod bounds;
mod delivery;
mod desk;
mod engagement;
mod hands;
mod records;
mod slew;
mod voice;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_bus::subjects::Subjects;
use plimsoll_bus::token::Secret;
use plimsoll_bus::{Bus, BusError};
use plimsoll_engine::ring::monotonic_ns;
use plimsoll_model::Event;
use plimsoll_run::RunError;
use plimsoll_run::ceiling::Calibration;
use plimsoll_setup::Interrupt;
use serde::{Deserialize, Serialize};

pub use bounds::Bounds;
pub(crate) use delivery::AT_ONCE;
use desk::Desk;
pub use records::KeepRecords;

/// Whether it is to stop is asked so often.
const LOOK: Duration = Duration::from_millis(200);

/// Who an agent is, and what it lets be done.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// No other agent of the fleet has it.
    pub name: String,
    /// To be chosen by.
    pub labels: BTreeMap<String, String>,
    /// Where it keeps records of its own.
    pub runs: PathBuf,
    /// What its conductor cannot have it do.
    pub bounds: Bounds,
    /// The public key of the conductor that it obeys.
    pub conductor: String,
    /// How much of its own records it keeps.
    pub keep: KeepRecords,
    /// The token's secret, by which the conductor knows that keys for the storage go to no stranger; absent: it takes none.
    pub takes_keys_by: Option<Secret>,
    /// How its machine's ceiling is measured, where the program can: with this length of each measurement, and a place for its runs.
    pub calibrate: Option<Calibrate>,
    /// Whose machine it is on, as that was found out; empty: it was not.
    pub identity: BTreeMap<String, String>,
    /// For tests: what its clock is ahead of this machine's.
    pub clock_ahead_ns: i64,
    /// For tests: after so long it is ahead by so many nanoseconds more.
    pub clock_jump: Option<(Duration, i64)>,
}

/// Measures and keeps the ceiling of this machine.
pub type Calibrate = fn(
    duration: Duration,
    runs: &Path,
    interrupt: &Interrupt,
    tell: &mut dyn FnMut(Event),
) -> Result<Calibration, RunError>;

/// An agent's clock: this machine's, or for tests another one.
#[derive(Debug, Clone, Copy)]
struct AgentTime {
    ahead_ns: i64,
    /// From this time of the machine's on, so much more.
    jump: Option<(u64, i64)>,
}

impl AgentTime {
    fn of(options: &AgentOptions) -> Self {
        let jump = options.clock_jump.map(|(after, by)| (monotonic_ns() + after.as_nanos() as u64, by));
        Self { ahead_ns: options.clock_ahead_ns, jump }
    }

    fn ahead_ns(self) -> i64 {
        let jumped = self.jump.filter(|(at, _)| monotonic_ns() >= *at);
        self.ahead_ns.saturating_add(jumped.map_or(0, |(_, by)| by))
    }

    fn now_ns(self) -> u64 {
        monotonic_ns().saturating_add_signed(self.ahead_ns())
    }

    /// A time of this clock on the machine's, if the machine was up then.
    fn of_machine(self, at_ns: u64) -> Option<u64> {
        at_ns.checked_add_signed(self.ahead_ns().checked_neg()?)
    }
}

/// The conductor's question for the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClockProbe {
    /// On the conductor's clock; it comes back as it is.
    pub asked_ns: u64,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProbeEcho {
    pub asked_ns: u64,
    pub session: String,
    pub heard_ns: u64,
    pub answered_ns: u64,
}

/// A waiting agent. Dropped, it drains, cleans up after itself, and is gone.
#[derive(Debug)]
pub struct FleetAgent {
    stop: Arc<AtomicBool>,
    at_work: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl FleetAgent {
    /// Listens from now on. `tell` is told what happens, a sentence each.
    pub fn start(
        bus: Arc<dyn Bus>,
        subjects: &Subjects,
        options: AgentOptions,
        tell: impl Fn(String) + Send + 'static,
    ) -> Result<Self, BusError> {
        let stop = Arc::new(AtomicBool::new(false));
        let time = AgentTime::of(&options);
        let session = random_word();
        let clock = bus.subscribe(&subjects.clock(&options.name))?;
        let echoes = subjects.clock_echo(&options.name);
        let (stopped, speaker, who) = (Arc::clone(&stop), Arc::clone(&bus), session.clone());
        let echo = move || {
            while !stopped.load(Ordering::Acquire) && !clock.closed() {
                let Some(message) = clock.next(LOOK) else { continue };
                let heard_ns = time.now_ns();
                let Ok(ClockProbe { asked_ns }) = serde_json::from_slice(&message.payload) else { continue };
                let session = who.clone();
                let echo = ProbeEcho { asked_ns, session, heard_ns, answered_ns: time.now_ns() };
                // One that is lost is one of many.
                let _ = speaker.publish(&echoes, &json(&echo));
            }
        };
        let mut desk = Desk::new(bus, subjects, options, time, session)?;
        let at_work = desk.at_work();
        let stopped = Arc::clone(&stop);
        let body = move || desk.serve(&stopped, &tell);
        let threads = vec![spawn("agent-clock", echo)?, spawn("agent-desk", body)?];
        Ok(Self { stop, at_work, threads })
    }

    /// Whether it works for a run.
    pub fn is_at_work(&self) -> bool {
        self.at_work.load(Ordering::Acquire)
    }

    /// Whether it has ended by itself: the bus is gone for good.
    pub fn is_over(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Drains, cleans up, and waits for that.
    pub fn stop(self) {}
}

impl Drop for FleetAgent {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            // A panic has been printed already.
            let _ = thread.join();
        }
    }
}

pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, BusError> {
    std::thread::Builder::new().name(name.into()).spawn(body).map_err(|e| {
        BusError::unreachable(format!("cannot start a thread: {e}"), "Raise the limit on threads")
    })
}

pub(crate) fn json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data is always JSON")
}

/// No other process has it.
pub(crate) fn random_word() -> String {
    let mut bytes = [0u8; 16];
    if rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()).is_err() {
        let salt = (u128::from(std::process::id()) << 64) | u128::from(monotonic_ns());
        bytes = salt.to_le_bytes();
    }
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
