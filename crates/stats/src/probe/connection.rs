//! A rate of each connection (nginx's `limit_rate`, a stream that its window or its latency holds): small and large ops move the same bytes
//! per second while they last, and twice as many connections move twice as much.

use plimsoll_model::Estimate;

use super::{ProbeOutcome, Resource};

/// Bytes per second of small and of large ops that differ by no more are the same; of sizes so many times apart.
const SAME: f64 = 0.03;
const SIZES_APART: u64 = 8;
/// Where twice as many are in flight an op takes as long, give or take so much of it.
const TWICE: f64 = 0.05;
/// Ops are paced where one takes as long with many times as many in flight, give or take so much (a choice: queues move latency by more).
const PACED: f64 = 0.01;
const TIMES_AS_MANY: u32 = 4;
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

    /// Ops per second that each connection gets, where that is the same with few and with many of them and no queue shows: the time of an op is all
    /// that holds them. How few, and how many; `None`: not seen.
    pub fn pace_of_each(&self) -> Option<(f64, u32, u32)> {
        let look = self.ops.first_look.filter(|l| l.latency_s > 0.0)?;
        let most = self.ops.drains.iter().filter(|d| d.concurrency == self.ops.concurrency);
        let last_s = most.filter_map(|d| d.latency_s).reduce(f64::max)?;
        let below_s = self.ops.latency_below_s?;
        let alike = |s: f64| (s / look.latency_s - 1.0).abs() <= PACED;
        // Little's law: what the first look had in flight.
        let few = (look.per_s * look.latency_s).round().max(1.0) as u32;
        let many = self.ops.concurrency >= TIMES_AS_MANY * few;
        (self.is_latency_bound()
            && many
            && alike(last_s)
            && alike(below_s)
            && self.per_connection().is_none())
        .then_some((1.0 / look.latency_s, few, self.ops.concurrency))
    }
}
