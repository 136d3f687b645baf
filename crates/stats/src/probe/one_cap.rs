//! One cap that both loads meet: small and large ops come to the same ops, or to the same bytes, per second.

use super::{Cause, DrainEvidence, Draining, Probe, ProbeOutcome, Resource};
use crate::math;

/// Rates that differ by less are the same cap's (validated: one bucket under two loads).
const SAME: f64 = 0.05;
/// Large ops that are as many as small ones for this long meet the same cap.
const OTHER_CAP_S: f64 = 25.0;
/// Rates of one cap, seen under two loads, differ by less than this.
const NEAR: f64 = 0.08;
/// Rates in bytes of ops so many times apart in size that differ by no more than this share are one cap (a choice: what an op costs beside
/// its bytes would have to be less than a thousandth of what the larger one takes).
const SAME_BYTES: f64 = 0.015;
const SIZES_APART: u64 = 8;

impl Probe {
    /// Large ops have come down to the rate of small ones, in ops or in bytes: it is the same cap, and this is what it counts.
    pub(super) fn other_cap(&self, d: &Draining) -> Option<Resource> {
        let ops = self.tracks[Resource::Ops as usize].rate.filter(|r| *r > 0.0)?;
        if d.of != Resource::Bytes || d.t < OTHER_CAP_S || self.small_for_bytes {
            return None;
        }
        let tail = |v: &[f64]| math::mean(&v[v.len().saturating_sub((10.0 / self.options.dt_s) as usize)..]);
        if (tail(&d.seen.ok) / ops - 1.0).abs() < SAME {
            return Some(Resource::Ops);
        }
        let (small, bytes) = (ops * self.options.small_bytes as f64, tail(&d.seen.x));
        (small < bytes * (1.0 + SAME)
            && bytes * (1.0 - SAME) < small + ops * self.options.overhead_bytes as f64)
            .then_some(Resource::Bytes)
    }

    /// Small ops moved more bytes per second than large ones are given on their plateau: no cap on bytes allows that for ever.
    /// What they saw was a burst of that bucket which had not ended (and which they emptied, so that large ops saw none). The look
    /// is made again while it is empty.
    pub(super) fn contradicted(&mut self) {
        let small = self.options.small_bytes as f64;
        let [ops, bytes] = &mut self.tracks;
        let (Some(o), Some(b)) = (ops.rate, bytes.rate) else { return };
        if self.looked_twice || self.small_for_bytes || b <= 0.0 || o * small <= (1.0 + SAME) * b {
            return;
        }
        self.looked_twice = true;
        ops.drains.iter_mut().for_each(DrainEvidence::was_a_burst);
        (ops.rate, ops.burst, ops.micro) = (None, None, None);
        (ops.done, ops.look_again, ops.want_s) = (false, true, 0.0);
    }

    /// The second look at small ops came to what large ones move.
    pub(super) fn is_one_cap_after_all(&self) -> bool {
        let rate = |r: Resource| self.tracks[r as usize].rate.filter(|r| *r > 0.0);
        let (Some(o), Some(b)) = (rate(Resource::Ops), rate(Resource::Bytes)) else { return false };
        let moved = o * (self.options.small_bytes + self.options.overhead_bytes) as f64;
        self.looked_twice
            && o * self.options.small_bytes as f64 <= (1.0 + SAME) * b
            && moved >= (1.0 - SAME) * b
    }

    /// One cap was seen under both loads: the other's bucket, if there is one, is out of reach.
    pub(super) fn settle_other(&mut self, cap: Resource) {
        match cap {
            // More drains would only keep the ops bucket from filling.
            Resource::Ops => self.track(Resource::Bytes).done = true,
            Resource::Bytes => {
                self.track(Resource::Ops).done = true;
                let small = self.options.small_bytes as f64;
                let rate = self.tracks[Resource::Ops as usize].rate.map(|r| r * small);
                let left_s = self.options.budget_s - self.elapsed_s();
                let bytes = self.track(Resource::Bytes);
                // Small ops, with headers that nobody counted, kept it empty: that was no rest.
                if let [only] = &mut bytes.drains[..] {
                    only.rest_s = 0.0;
                    bytes.decide(left_s);
                }
                if let (Some(rate), Some(of_large)) = (rate, bytes.rate)
                    && (rate / of_large - 1.0).abs() < SAME
                {
                    bytes.rate = Some(rate);
                    self.small_for_bytes = true;
                }
            }
        }
    }
}

impl ProbeOutcome {
    /// Small and large ops came to the same number of ops, or of bytes, per second: one cap was seen twice.
    pub fn one_cap(&self) -> bool {
        self.seen_twice().is_some()
    }

    /// The resource whose cap was seen under the other's load, too.
    pub fn seen_twice(&self) -> Option<Resource> {
        let (o, b) = (self.ops.sustained?.value, self.bytes.sustained?.value);
        let near = |x: f64, y: f64| y > 0.0 && (x / y - 1.0).abs() < NEAR;
        if near(b / self.large_bytes as f64, o) {
            return Some(Resource::Ops);
        }
        // Who refuses ops counts ops; a link counts headers, too.
        let overhead = if self.ops.refused() < 0.01 { self.overhead_bytes as f64 } else { 0.0 };
        let small = o * self.small_bytes as f64;
        (b > 0.0 && small / b < 1.0 + NEAR && (small + o * overhead) / b > 1.0 - NEAR)
            .then_some(Resource::Bytes)
    }

    /// One cap on bytes that both loads met is known as well as the better of both knows it; headers that are not counted
    /// would make it seem lower.
    pub(super) fn pool_one_cap(&mut self) {
        let (Some(Resource::Bytes), Some(ops), Some(bytes)) =
            (self.seen_twice(), self.ops.sustained, self.bytes.sustained)
        else {
            return;
        };
        let small = ops.scaled(self.small_bytes as f64);
        let same = (small.value / bytes.value - 1.0).abs() < 0.05;
        if same && small.relative_half_width() < bytes.relative_half_width() {
            self.bytes.sustained = Some(small);
        }
    }

    /// The same bytes per second of small and of large ops: what each op costs has no part in it, as it has in any storage.
    pub(super) fn cause_of_same_bytes(&self) -> Cause {
        let (Some(Resource::Bytes), Some(ops), Some(bytes)) =
            (self.seen_twice(), self.ops.sustained, self.bytes.sustained)
        else {
            return Cause::None;
        };
        let same = (ops.value * self.small_bytes as f64 / bytes.value - 1.0).abs() <= SAME_BYTES;
        let known = ops.relative_half_width().max(bytes.relative_half_width()) <= 2.0 * SAME_BYTES;
        let apart = self.large_bytes >= SIZES_APART * self.small_bytes;
        if same && known && apart { Cause::Held } else { Cause::None }
    }
}
