//! How many ops in flight saturate: doublings until the rate no longer grows, or refusals come.
//!
//! A limit that too few ops in flight never reach looks like a slow storage. What the ladder uses up of a bucket is
//! counted like all else, and the first drain's fill is not known in any case.

use super::track::FirstLook;
use super::{Probe, ProbeAction, Resource, State};
use crate::math;
use crate::simulate::RatesSeen;

const RUNG_S: f64 = 2.0;
/// Less growth than this for twice the ops in flight is none: of the rate, and of the latency.
pub(super) const GROWTH: f64 = 1.1;
/// More refusals than this share: more ops in flight bring only more of them.
const REFUSED: f64 = 0.05;

#[derive(Debug, Clone)]
pub(super) struct Ladder {
    pub of: Resource,
    pub concurrency: u32,
    /// Ops in flight of its first rung.
    first: u32,
    before: Option<Look>,
    /// What the present rung showed.
    now: Option<Look>,
}

/// One rung, after its start.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Look {
    pub rate: f64,
    /// Share of refusals.
    pub refused: f64,
    /// Mean time in system of what ended, seconds.
    latency_s: Option<f64>,
}

impl Ladder {
    /// Up to `most` in flight. Whoever asks for that many or more gets them, and half of them before: whether the rate still grows
    /// is to be seen in any case.
    pub fn new(of: Resource, concurrency: u32, most: u32) -> Self {
        let first = if concurrency < most { concurrency } else { concurrency / 2 }.max(1);
        Self { of, concurrency: first, first, before: None, now: None }
    }
}

/// Mean time in system of what ended, seconds; `None` where nothing did. Slices in which nothing ends have none.
pub(super) fn latency(ended_per_s: impl Iterator<Item = f64>, latency_s: &[f64]) -> Option<f64> {
    let (n, time) =
        ended_per_s.zip(latency_s).fold((0.0, 0.0), |(n, time), (ended, l)| (n + ended, time + ended * l));
    (n > 0.0 && time > 0.0).then(|| time / n)
}

pub(super) fn look(seen: &RatesSeen, of: Resource) -> Look {
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
    let ended = seen.ops_per_s.iter().zip(&seen.rejected_per_s).map(|(a, b)| a + b).skip(from);
    let latency_s = latency(ended, seen.latency_s.get(from..).unwrap_or_default());
    Look { rate: math::mean(&x[from..]), refused: share, latency_s }
}

/// Slices at the rung's begin: a bucket that is not empty yet lets ops through as the storage is.
const FIRST_SLICES: usize = 3;

/// Latency is counted over all that ended: where something was refused, it is not that of ops.
fn first_look(seen: &RatesSeen, of: Resource) -> Option<FirstLook> {
    let x = match of {
        Resource::Ops => &seen.ops_per_s,
        Resource::Bytes => &seen.bytes_per_s,
    };
    let from = seen.latency_s.iter().position(|v| *v > 0.0)?;
    let slices = from..(from + FIRST_SLICES).min(x.len()).min(seen.latency_s.len());
    if slices.is_empty() || seen.rejected_per_s.get(..slices.end)?.iter().any(|r| *r > 0.0) {
        return None;
    }
    let latency_s = math::median(&seen.latency_s[slices.clone()]);
    Some(FirstLook { latency_s, per_s: math::mean(&x[slices]), ..FirstLook::default() })
}

impl Probe {
    pub(super) fn rung(&mut self, l: Ladder) -> ProbeAction {
        let (of, concurrency) = (l.of, l.concurrency);
        self.state = State::Rung(l);
        ProbeAction::Load {
            size_bytes: self.size_of(of),
            concurrency,
            duration_s: RUNG_S,
            dt_s: self.options.dt_s,
            continues: false,
            offered_per_s: None,
        }
    }

    pub(super) fn rung_seen(&mut self, mut l: Ladder, seen: Option<&RatesSeen>) -> ProbeAction {
        l.now = seen.map(|s| look(s, l.of));
        if let (Some(s), None) = (seen, l.before) {
            self.track(l.of).first_look = first_look(s, l.of);
        } else if let (Some(now), Some(_)) = (l.now, l.before) {
            // The second rung; later ones are more than twice as many.
            let first = self.track(l.of).first_look.as_mut().filter(|_| l.concurrency == 2 * l.first);
            if let Some(look) = first {
                (look.twice_per_s, look.twice_latency_s) = (Some(now.rate), now.latency_s);
            }
        }
        self.state = State::RungEnd(l);
        ProbeAction::Stop
    }

    pub(super) fn rung_next(&mut self, l: Ladder) -> ProbeAction {
        let Look { rate, refused, .. } = l.now.unwrap_or_default();
        let grew = l.before.is_none_or(|b| rate > GROWTH * b.rate);
        let most = self.options.most[l.of as usize].max(self.options.concurrency);
        // Half of an odd number, twice, is one less.
        let next = if l.before.is_none() && most / 2 == l.concurrency { most } else { 2 * l.concurrency };
        let at_top = next > most;
        if l.now.is_some() && refused <= REFUSED && grew && !at_top {
            return self.rung(Ladder { concurrency: next, before: l.now, now: None, ..l });
        }
        // Large ops that do not gain by being more only fill buffers.
        let fewer = l.of == Resource::Bytes && !grew && l.concurrency > 1;
        let (now, used) = (self.now_s, self.used[l.of as usize]);
        let t = self.track(l.of);
        (t.last_end_s, t.mark) = (now, used);
        t.concurrency = Some(if fewer { l.concurrency / 2 } else { l.concurrency });
        t.still_grew = at_top && grew && refused <= REFUSED && l.before.is_some();
        t.latency_below_s = l.before.and_then(|b| b.latency_s);
        self.choose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(ok: f64, refused: f64, latency_s: f64) -> RatesSeen {
        RatesSeen {
            dt_s: 0.2,
            ops_per_s: vec![ok; 10],
            bytes_per_s: vec![1024.0 * ok; 10],
            rejected_per_s: vec![refused; 10],
            latency_s: vec![latency_s; 10],
        }
    }

    /// Refusals are quick, and are no ops: their mean with those is the latency of neither.
    #[test]
    fn what_was_refused_gives_no_latency() {
        assert_eq!(first_look(&seen(150.0, 55_000.0, 287e-6), Resource::Ops), None);
        let look = first_look(&seen(150.0, 0.0, 0.002), Resource::Ops).unwrap();
        assert_eq!((look.latency_s, look.per_s), (0.002, 150.0));
        assert_eq!(first_look(&RatesSeen::default(), Resource::Ops), None);
    }

    /// 16 in flight at a limiter that delays: 150 op/s, each 106 ms, which is its queue.
    #[test]
    fn the_queue_of_a_limiter_is_no_latency() {
        let delayed =
            FirstLook { latency_s: 0.106, per_s: 150.0, twice_per_s: Some(150.0), ..FirstLook::default() };
        assert_eq!(delayed.latency_below(149.9), None);
        assert_eq!(FirstLook { per_s: 140.0, ..delayed }.latency_below(149.9), None);
        // Few enough: what they take is the storage's.
        let below = FirstLook { latency_s: 0.2, per_s: 80.0, ..FirstLook::default() };
        assert_eq!(below.latency_below(149.9), Some(0.2));
        // A bucket with tokens left: where twice as many come to no more, something else held them back.
        let burst = FirstLook { latency_s: 0.002, per_s: 8000.0, twice_per_s: Some(15_000.0), ..delayed };
        assert_eq!(burst.latency_below(149.9), Some(0.002));
        assert_eq!(FirstLook { twice_per_s: Some(8100.0), ..burst }.latency_below(149.9), None);
        assert_eq!(FirstLook { twice_per_s: None, ..burst }.latency_below(149.9), None);
    }
}
