//! The pilot: which large size moves most bytes, without minutes in flight before a slow limiter.

use super::plateau::Plateau;
use super::{Probe, ProbeAction, Resource, State};
use crate::math;
use crate::simulate::RatesSeen;

const ALIGN: u64 = 4096;
const PILOT_S: f64 = 4.0;
/// How phases begin, or go on, that only choose the load of those after them.
pub(super) const PILOT: &str = "pilot: ";
pub(super) const LADDER: &str = " in flight saturate it: ";

/// Whether a phase that is called so only chooses the load of those after it: no figure of an answer rests on what it saw.
pub fn only_chooses_load(phase: &str) -> bool {
    phase.starts_with(PILOT) || phase.contains(LADDER)
}

/// The pilot goes on until so many large ops have ended, or for this long: a slow limiter lets few of them through.
const PILOT_OPS: f64 = 16.0;
const LONGEST_PILOT_S: f64 = 20.0;
const PILOT_CONCURRENCY: u32 = 8;
/// Ops of a part of the large size, one at a time, are looked at for so long, and again, until so many ended; then ops that would take so
/// long, one at a time, but no smaller ones than a part.
const FIRST_PILOT_S: f64 = 1.0;
const FIRST_PILOT_OPS: f64 = 2.0;
const PILOT_OP_S: f64 = 0.4;
const FIRST_PILOT_PART: u64 = 16;
const SLOW_PILOT_PART: u64 = 128;
/// Large ops are no larger than lets so many end in a second: a slice holds several.
const LEAST_LARGE_PER_S: f64 = 20.0;

/// The pilot asks for one op of a part of the size first: eight large ones, and those that follow, are minutes of a slow limiter.
#[derive(Debug, Clone, Default)]
pub(super) struct PilotRun {
    size_bytes: u64,
    /// One in flight.
    is_first: bool,
    seen: Plateau,
}

impl Probe {
    pub(super) fn start_pilot(&mut self) -> ProbeAction {
        if !self.options.moves_bytes || self.options.keep_large {
            return self.choose();
        }
        let size_bytes = self.part_of_large(FIRST_PILOT_PART);
        self.pilot(PilotRun { size_bytes, is_first: true, seen: Plateau::default() })
    }

    fn part_of_large(&self, part: u64) -> u64 {
        let large = self.options.large_bytes;
        (large / part).max(ALIGN).min(large)
    }

    fn pilot(&mut self, p: PilotRun) -> ProbeAction {
        let (size_bytes, continues) = (p.size_bytes, !p.seen.x.is_empty());
        let concurrency = if p.is_first { 1 } else { PILOT_CONCURRENCY.min(self.options.concurrency) };
        let duration_s = if p.is_first { FIRST_PILOT_S } else { PILOT_S };
        self.state = State::Pilot(p);
        ProbeAction::Load {
            size_bytes,
            concurrency,
            duration_s,
            dt_s: self.options.dt_s,
            continues,
            offered_per_s: None,
        }
    }

    pub(super) fn pilot_seen(&mut self, mut pilot: PilotRun, seen: Option<&RatesSeen>) -> ProbeAction {
        if let Some(s) = seen.filter(|s| !s.ops_per_s.is_empty()) {
            pilot.seen.add(s, Resource::Bytes);
            let dt = self.options.dt_s;
            let ended = pilot.seen.ok.iter().chain(&pilot.seen.refused).sum::<f64>() * dt;
            let seconds = pilot.seen.x.len() as f64 * dt;
            if pilot.is_first {
                if ended < FIRST_PILOT_OPS && seconds < PILOT_S - 0.5 * dt {
                    return self.pilot(pilot);
                }
                // What eight of them take is no minutes.
                let per_s = ended * pilot.size_bytes as f64 / seconds;
                let least = self.part_of_large(SLOW_PILOT_PART);
                let size_bytes =
                    ((PILOT_OP_S * per_s) as u64 / ALIGN * ALIGN).clamp(least, self.options.large_bytes);
                return self.pilot(PilotRun { size_bytes, is_first: false, seen: Plateau::default() });
            }
            let ended = pilot.seen.ok.iter().sum::<f64>() * dt;
            let longest = LONGEST_PILOT_S.min(0.1 * self.options.budget_s);
            if ended < PILOT_OPS && seconds + 0.5 * dt + PILOT_S <= longest {
                return self.pilot(pilot);
            }
        }
        self.choose_size(&pilot.seen.x);
        ProbeAction::Stop
    }

    /// As large as possible, but at least 20 ops a second, so that a slice holds several.
    fn choose_size(&mut self, x: &[f64]) {
        let rate = math::mean(&x[4.min(x.len())..]);
        let low = (64.0 * 1024.0f64).min(self.options.large_bytes as f64);
        let wanted = (rate / LEAST_LARGE_PER_S).clamp(low, self.options.large_bytes as f64) as u64;
        // Direct I/O wants whole blocks.
        self.large_bytes = if wanted > ALIGN { wanted / ALIGN * ALIGN } else { wanted };
    }
}
