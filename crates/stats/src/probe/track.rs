//! All that is known of one resource, and when to drain it again.

use super::drain::Micro;
use super::{DrainEvidence, DrainKind};

#[derive(Debug, Clone, Default)]
pub(super) struct Track {
    pub drains: Vec<DrainEvidence>,
    pub last_end_s: f64,
    /// Plateau and burst rate, once known.
    pub rate: Option<f64>,
    pub burst: Option<f64>,
    pub micro: Option<Micro>,
    /// A short burst was seen, and its cycles showed that there is none: the look that it ended is made again, to the horizon.
    pub refuted: bool,
    pub look_again: bool,
    /// Tokens of this resource used up to the end of its last drain.
    pub mark: f64,
    pub done: bool,
    /// Idle time wanted before the next drain.
    pub want_s: f64,
    /// Not longer, either: a rest that fills the bucket shows no refill.
    pub no_longer: bool,
    /// Ops in flight, as the ladder found them; `None`: those of the options.
    pub concurrency: Option<u32>,
    /// The ladder ended while the rate still grew: latency, not a limit, may be what is seen.
    pub still_grew: bool,
    /// Latency with half as many in flight as the ladder ended with, seconds.
    pub latency_below_s: Option<f64>,
    pub first_look: Option<FirstLook>,
}

/// The first slices of the ladder's first rung, with few ops in flight and nothing refused: what an op takes, unless something
/// held these few back as well.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FirstLook {
    /// Mean time in system, seconds.
    pub latency_s: f64,
    /// Units per second that it came with.
    pub per_s: f64,
    /// Units per second with twice as many in flight; absent: not tried.
    pub twice_per_s: Option<f64>,
    /// Mean time in system then, seconds.
    pub twice_latency_s: Option<f64>,
}

/// A rate so near to another, or above it by no more than this, is the same one. (A choice: ten times the half width of the rates
/// that probes give.)
const APART: f64 = 0.1;

impl FirstLook {
    /// Its latency, where the load was below the limit `cap_per_s`: what a limiter delays waits in its queue, and that time is
    /// no storage's. Above the cap a bucket's tokens were used up; what shows that nothing else held these ops back is that twice
    /// as many came to more.
    pub fn latency_below(&self, cap_per_s: f64) -> Option<f64> {
        let below = self.per_s < (1.0 - APART) * cap_per_s;
        let free = self.per_s > (1.0 + APART) * cap_per_s
            && self.twice_per_s.is_some_and(|t| t > (1.0 + APART) * self.per_s);
        (below || free).then_some(self.latency_s).filter(|l| *l > 0.0)
    }
}

/// Idle time after a drain without a burst.
pub(super) const REST_S: f64 = 20.0;

/// Plateau that a drain needs after its cliff before it may end, with the look that ends it; seconds.
const PLATEAU_S: f64 = 12.0;
/// More drains than this bring nothing that the others did not (guess; the budget ends most probes before).
pub(super) const MOST_DRAINS: usize = 8;

/// A shorter rest tells nothing of the refill.
pub(super) const LEAST_REST_S: f64 = 2.0;

impl Track {
    pub fn most_recovered(&self) -> f64 {
        self.drains.iter().filter_map(|d| d.recovered).fold(0.0, f64::max)
    }

    /// Whether to drain again, and after how much idle time.
    pub fn decide(&mut self, left_s: f64) {
        let known = self.drains.iter().any(|d| d.recovered.is_some());
        let Some(r) = self.rate.filter(|r| known && *r > 0.0) else {
            self.done = self.drains.len() >= 2;
            self.want_s = 0.0;
            return;
        };
        if self.drains.iter().all(|d| d.kind == DrainKind::Flat) {
            // The bucket may have been empty at the start: one more drain after an idle time, else there is none. Time in
            // which the other's ops kept it empty is no idle time.
            let rested = |d: &DrainEvidence| (r - d.taken_per_s) * d.rest_s >= 0.5 * REST_S * r;
            self.done = self.drains.iter().any(rested) || self.drains.len() >= 4;
            self.want_s = REST_S;
            return;
        }
        let most = self.most_recovered();
        for d in &mut self.drains {
            d.would_fill =
                d.idle_s.filter(|_| d.kind != DrainKind::Unsteady).map(|i| (r - d.taken_per_s) * i);
        }
        let have_capacity = self.drains.iter().any(|d| d.is_saturated() && d.recovered > Some(0.9 * most));
        let have_refill = self.refill_drain(most).is_some();
        if have_capacity && have_refill {
            self.done = true;
            return;
        }
        // A budget is not given up while a drain fits into it that would settle what is open.
        let fits = |want_s: f64, t: &Self| want_s + t.drain_s() <= left_s && t.drains.len() < MOST_DRAINS;
        self.no_longer = have_capacity;
        if have_capacity {
            let rest_s = self.refill_rest_s();
            self.want_s = rest_s.unwrap_or(0.0);
            self.done = rest_s.is_none_or(|w| !fits(w, self));
            return;
        }
        self.want_s = self.capacity_rest_s();
        self.done = !fits(self.want_s, self);
    }

    /// The last drain after an idle time that did not fill the bucket.
    pub fn refill_drain(&self, capacity: f64) -> Option<&DrainEvidence> {
        let partly = |d: &&DrainEvidence| {
            d.is_unsaturated() && d.recovered < Some(0.9 * capacity) && d.idle_s > Some(0.0)
        };
        self.drains.iter().rev().find(partly)
    }

    /// Idle time that would fill a bucket of what was seen over and over.
    pub fn capacity_rest_s(&self) -> f64 {
        let (most, r) = (self.most_recovered(), self.rate.unwrap_or(0.0));
        let growing = self.drains.iter().any(|d| d.would_fill.is_some_and(|f| f > 1.1 * most));
        1.8 * most / r * if growing { 1.6 } else { 1.0 } + 5.0
    }

    /// Idle time that does not fill the bucket, and whose tokens can be resolved; `None` where no rest is both.
    pub fn refill_rest_s(&self) -> Option<f64> {
        let (most, r) = (self.most_recovered(), self.rate.filter(|r| *r > 0.0)?);
        let width =
            self.drains.iter().rev().find(|d| d.recovered.is_some()).map_or(0.0, |d| d.recovered_half_width);
        let w = 0.4 * most / r;
        (w * r >= 5.0 * width && w >= LEAST_REST_S).then_some(w)
    }

    /// How long a drain lasts that shows its plateau.
    pub fn drain_s(&self) -> f64 {
        self.drains.iter().filter_map(|d| d.cliff_s).fold(0.0, f64::max) + PLATEAU_S
    }
}
