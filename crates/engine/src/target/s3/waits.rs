//! What ops wait for beside the ring: the pause after a throttled answer, a `100 Continue` that does not come, and the
//! abort of an upload at a server that is silent.

use plimsoll_model::Outcome;
use plimsoll_model::plan::OnThrottle;

use super::machine::{Machine, Phase};
use crate::ring::Ring;

/// The first and the longest pause after a throttled answer without `Retry-After`, nanoseconds.
const FIRST_PAUSE_NS: u64 = 50_000_000;
const LONGEST_PAUSE_NS: u64 = 20_000_000_000;
/// With `pause`: short against a limiter's tenth of a second, long against the time of a refusal.
const SHORT_PAUSE_NS: u64 = 10_000_000;

/// How long a body waits for `100 Continue`: the second that curl and the AWS SDKs wait.
pub(super) const CONTINUE_NS: u64 = 1_000_000_000;
/// How long the abort of an upload may take that ended by a time-out: its server may be silent to this as well.
pub(super) const ABORT_NS: u64 = 5_000_000_000;

impl Machine {
    /// When [`Self::wake`] wants to be called.
    pub fn wake_ns(&self) -> u64 {
        self.wake_ns
    }

    /// What time itself brings: bodies that waited long enough for `100 Continue` go out, and aborts of uploads that
    /// take too long are given up (their op ends with the completions that follow).
    pub fn wake<R: Ring>(&mut self, ring: &mut R, now_ns: u64) {
        self.wake_ns = u64::MAX;
        for slot in 0..self.slots.len() as u32 {
            let until_ns = self.slots[slot as usize].abort_until_ns;
            if self.slots[slot as usize].phase == Phase::Abort {
                if until_ns <= now_ns {
                    self.stop_lanes(ring, slot, Outcome::Timeout);
                } else {
                    self.wake_ns = self.wake_ns.min(until_ns);
                }
            }
            for lane in 0..self.lanes_per_slot {
                let i = slot as usize * self.lanes_per_slot + lane;
                if !self.lanes[i].awaits_continue || !self.lanes[i].active {
                    continue;
                }
                let due_ns = self.began_ns[i] + self.continue_ns;
                let sent = due_ns <= now_ns && self.stop_awaiting(ring, slot, lane);
                if !sent {
                    self.wake_ns = self.wake_ns.min(due_ns.max(now_ns + self.continue_ns / 10));
                }
            }
        }
    }

    fn stop_awaiting<R: Ring>(&mut self, ring: &mut R, slot: u32, lane: usize) -> bool {
        let (lane, mut side) = self.lane_with_side(ring, slot, lane);
        lane.stop_awaiting(&mut side)
    }

    /// When the slot may go on after a throttled answer.
    pub(super) fn pause(&mut self, slot: u32, now_ns: u64, asked_s: Option<u64>) {
        let on_throttle = self.config.on_throttle;
        let s = &mut self.slots[slot as usize];
        s.throttles = s.throttles.saturating_add(1);
        // Half of it by chance, so that slots do not come back together.
        let r = s.n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let spread = |full: u64| full / 2 + (full / 2).saturating_mul(r) / u64::from(u32::MAX);
        // `Retry-After: 0`, or a time that has passed, is taken at its word once. Where it is said with each refusal it says nothing.
        let asked_s = asked_s.filter(|t| *t > 0 || s.throttles == 1);
        let pause = match (on_throttle, asked_s) {
            (OnThrottle::Record, _) => return,
            (OnThrottle::Pause, _) => spread(SHORT_PAUSE_NS),
            (OnThrottle::Backoff, Some(t)) => t.saturating_mul(1_000_000_000).min(600_000_000_000),
            (OnThrottle::Backoff, None) => {
                spread((FIRST_PAUSE_NS << u32::from(s.throttles - 1).min(16)).min(LONGEST_PAUSE_NS))
            }
        };
        s.hold_until_ns = s.hold_until_ns.max(now_ns + pause);
    }
}
