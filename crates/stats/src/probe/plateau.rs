//! What a load shows slice by slice: what passed, what was refused, and whether it has any more to tell.

use super::{Resource, cause};
use crate::math;
use crate::simulate::RatesSeen;

/// What a drain sees, beside the rate.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Plateau {
    pub x: Vec<f64>,
    pub ok: Vec<f64>,
    pub refused: Vec<f64>,
    pub latency_s: Vec<f64>,
}

impl Plateau {
    pub fn add(&mut self, s: &RatesSeen, of: Resource) {
        self.x.extend_from_slice(match of {
            Resource::Ops => &s.ops_per_s,
            Resource::Bytes => &s.bytes_per_s,
        });
        self.ok.extend_from_slice(&s.ops_per_s);
        self.refused.extend_from_slice(&s.rejected_per_s);
        self.latency_s.extend_from_slice(&s.latency_s);
    }

    /// Whether next to nothing was let through lately, for all that was asked: to go on asking tells no more.
    pub fn is_shut(&self, dt: f64) -> bool {
        let n = (SHUT_S / dt).round() as usize;
        let late = |v: &[f64]| v.len().checked_sub(n).map(|i| dt * v[i..].iter().sum::<f64>());
        let (Some(ok), Some(refused)) = (late(&self.ok), late(&self.refused)) else { return false };
        ok < SHUT_OPS && refused > 100.0 * SHUT_OPS
    }

    /// So long it was refused without a break: its rate under refusals is known, and what it comes to without them is another question.
    pub fn is_refused_for(&self, seconds: f64, dt: f64) -> bool {
        let n = (seconds / dt).round() as usize;
        let bin = (REFUSED_BIN_S / dt).round() as usize;
        let Some(from) = self.ok.len().checked_sub(n) else { return false };
        let refused = self.refused.get(from..).unwrap_or_default();
        let share = |(ok, no): (&[f64], &[f64])| {
            let (ok, no): (f64, f64) = (ok.iter().sum(), no.iter().sum());
            no >= cause::REFUSED * (ok + no) && no > 0.0
        };
        // Tokens that come by the second, or less often, take longer to show their rate.
        let passed = math::bin_means(&self.ok[from..], bin);
        let most = passed.iter().copied().fold(0.0, f64::max);
        let even = passed.iter().all(|p| *p >= (1.0 - UNEVEN) * most);
        !refused.is_empty() && even && self.ok[from..].chunks(bin).zip(refused.chunks(bin)).all(share)
    }

    /// Seconds of a drain without a cliff after which its plateau tells who holds it. None where any length does: refusals say it
    /// themselves, and so do ops that take no longer than a slice.
    pub fn tells_at_s(&self, dt: f64) -> Option<f64> {
        let late = |v: &[f64]| math::mean(v.get(v.len() / START..).unwrap_or_default());
        if late(&self.refused) >= cause::REFUSED * (late(&self.ok) + late(&self.refused)) {
            return None;
        }
        let plateau_s = cause::seconds_to_tell(late(&self.latency_s), dt)?;
        Some(plateau_s * START as f64 / (START - 1) as f64)
    }

    /// Time of an op that waits with all others in flight: they may end together, once in such a time. None where some are
    /// refused: those do not wait.
    pub fn wave_s(&self) -> f64 {
        let half = |v: &[f64]| math::mean(&v[v.len() / 2..]);
        if self.ok.is_empty() || half(&self.refused) > 0.01 * half(&self.ok) {
            0.0
        } else {
            half(&self.latency_s)
        }
    }
}

/// Refusals are looked for in each of these, seconds: a quota of a second refuses in each second.
const REFUSED_BIN_S: f64 = 2.0;
/// What passes in one of them is less than in another by no more than this part.
const UNEVEN: f64 = 0.25;
/// The start of a drain without a cliff is the way's (connections, buffers): this part of it is not looked at.
pub(super) const START: usize = 3;

/// Fewer ops than this in so long, with a hundred times as many refused and more: a drain has nothing more to show (guess; no
/// limiter of less than 0.2 op/s is told from one that is shut).
const SHUT_S: f64 = 10.0;
const SHUT_OPS: f64 = 2.0;
