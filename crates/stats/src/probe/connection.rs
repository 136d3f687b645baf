//! A rate of each connection (nginx's `limit_rate`, a stream that its window or its latency holds): small and large ops move the same bytes
//! per second while they last, and twice as many connections move twice as much.

use plimsoll_model::Estimate;

use super::{ProbeOutcome, Resource};

/// Bytes per second of small and of large ops that differ by no more are the same; of sizes so many times apart.
const SAME: f64 = 0.03;
const SIZES_APART: u64 = 8;
/// Where twice as many are in flight an op takes as long, give or take so much of it.
const TWICE: f64 = 0.05;
/// More refusals are a limit of another kind.
const REFUSED: f64 = 0.01;

impl ProbeOutcome {
    /// Bytes per second that each connection gets, whatever the size of its ops and however many there are; `None`: not seen.
    pub fn per_connection(&self) -> Option<Estimate> {
        let look = self.ops.first_look.filter(|l| l.latency_s > 0.0)?;
        let longer = look.twice_latency_s? / look.latency_s;
        let long_s = self.bytes.drains.iter().filter_map(|d| d.latency_s).reduce(f64::max)?;
        let apart = self.moves_bytes && self.large_bytes >= SIZES_APART * self.small_bytes;
        let free = self.ops.refused().max(self.bytes.refused()) < REFUSED;
        let limited = self.is_limited(Resource::Ops) || self.is_limited(Resource::Bytes);
        if !apart || !free || limited || (longer - 1.0).abs() > TWICE || long_s <= 0.0 {
            return None;
        }
        // An op's own time comes on top of each, the more so of a small one.
        let (small, large) = (self.small_bytes as f64 / look.latency_s, self.large_bytes as f64 / long_s);
        let (low, high) = (small.min(large), small.max(large));
        (high / low - 1.0 <= SAME).then_some(Estimate {
            value: large,
            low: low / (1.0 + SAME),
            high: high * (1.0 + SAME),
            n_eff: 2.0,
        })
    }
}
