//! One cap that both loads meet: small and large ops come to the same ops, or to the same bytes, per second.

use super::{Draining, Probe, Resource};
use crate::math;

/// Large ops that are as many as small ones for this long meet the same cap.
const OTHER_CAP_S: f64 = 25.0;

impl Probe {
    /// Large ops have come down to the rate of small ones, in ops or in bytes: it is the same cap, and this is what it counts.
    pub(super) fn other_cap(&self, d: &Draining) -> Option<Resource> {
        let ops = self.tracks[Resource::Ops as usize].rate.filter(|r| *r > 0.0)?;
        if d.of != Resource::Bytes || d.t < OTHER_CAP_S || self.small_for_bytes {
            return None;
        }
        let tail = |v: &[f64]| math::mean(&v[v.len().saturating_sub((10.0 / self.options.dt_s) as usize)..]);
        if (tail(&d.seen.ok) / ops - 1.0).abs() < 0.05 {
            return Some(Resource::Ops);
        }
        let (small, bytes) = (ops * self.options.small_bytes as f64, tail(&d.seen.x));
        (small < bytes * 1.05 && bytes * 0.95 < small + ops * self.options.overhead_bytes as f64)
            .then_some(Resource::Bytes)
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
                    && (rate / of_large - 1.0).abs() < 0.05
                {
                    bytes.rate = Some(rate);
                    self.small_for_bytes = true;
                }
            }
        }
    }
}
