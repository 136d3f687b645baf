//! How many ops in flight saturate: doublings until the rate no longer grows, or refusals come.
//!
//! A limit that too few ops in flight never reach looks like a slow storage. What the ladder uses up of a bucket is
//! counted like all else, and the first drain's fill is not known in any case.

use super::{Action, Probe, Resource, State};
use crate::math;
use crate::simulate::Seen;

const RUNG_S: f64 = 2.0;
/// Less growth than this for twice the ops in flight is none.
const GROWTH: f64 = 1.1;
/// More refusals than this share: more ops in flight bring only more of them.
const REFUSED: f64 = 0.05;

#[derive(Debug, Clone)]
pub(super) struct Ladder {
    pub of: Resource,
    pub concurrency: u32,
    before: Option<f64>,
    /// Rate and share of refusals of the present rung.
    now: Option<(f64, f64)>,
}

impl Ladder {
    pub fn new(of: Resource, concurrency: u32) -> Self {
        Self { of, concurrency: concurrency.max(1), before: None, now: None }
    }
}

/// Rate and share of refusals after the start of a rung.
fn look(seen: &Seen, of: Resource) -> (f64, f64) {
    let x = match of {
        Resource::Ops => &seen.ops_per_s,
        Resource::Bytes => &seen.bytes_per_s,
    };
    let from = x.len() / 3;
    let (ok, refused) = (
        math::mean(seen.ops_per_s.get(from..).unwrap_or_default()),
        math::mean(seen.rejected_per_s.get(from..).unwrap_or_default()),
    );
    let share = if ok + refused > 0.0 { refused / (ok + refused) } else { 0.0 };
    (math::mean(&x[from..]), share)
}

impl Probe {
    pub(super) fn rung(&mut self, l: Ladder) -> Action {
        let (of, concurrency) = (l.of, l.concurrency);
        self.state = State::Rung(l);
        Action::Load {
            size_bytes: self.size_of(of),
            concurrency,
            duration_s: RUNG_S,
            dt_s: self.options.dt_s,
            continues: false,
            offered_per_s: None,
        }
    }

    pub(super) fn rung_seen(&mut self, mut l: Ladder, seen: Option<&Seen>) -> Action {
        l.now = seen.map(|s| look(s, l.of));
        if let (Some(s), None) = (seen, l.before) {
            // Of the first slices: a bucket that is not empty yet lets ops through as the storage is.
            let first: Vec<f64> = s.latency_s.iter().copied().filter(|v| *v > 0.0).take(3).collect();
            self.track(l.of).unloaded_s = (!first.is_empty()).then(|| math::median(&first));
        }
        self.state = State::RungEnd(l);
        Action::Stop
    }

    pub(super) fn rung_next(&mut self, l: Ladder) -> Action {
        let (rate, refused) = l.now.unwrap_or_default();
        let grew = l.before.is_none_or(|b| rate > GROWTH * b);
        let next = l.concurrency.saturating_mul(2);
        let at_top = next > self.options.most[l.of as usize];
        if l.now.is_some() && refused <= REFUSED && grew && !at_top {
            return self.rung(Ladder { concurrency: next, before: Some(rate), now: None, ..l });
        }
        // Large ops that do not gain by being more only fill buffers.
        let fewer = l.of == Resource::Bytes && !grew && l.concurrency > 1;
        let (now, used) = (self.now_s, self.used[l.of as usize]);
        let t = self.track(l.of);
        (t.last_end_s, t.mark) = (now, used);
        t.concurrency = Some(if fewer { l.concurrency / 2 } else { l.concurrency });
        t.still_grew = at_top && grew && refused <= REFUSED && l.before.is_some();
        self.choose()
    }
}
