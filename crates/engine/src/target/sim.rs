//! The simulated target: a service-time law on the virtual clock, with limits, errors and stalls. It is
//! the truth that tests compare with: the same plan gives the same times, to the nanosecond.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_model::plan::{SimBucket, SimTarget};
use plimsoll_model::{Op, Outcome};

use super::{Built, Context, Done, OpStep, Target};
use crate::ring::{Ring, RingOp, RingSpec, Token};
use crate::rng;

/// The state of a simulated storage, shared by all workers and stages that use it, as one with a certain clock sees it.
#[derive(Debug, Clone)]
pub struct SimWorld {
    world: Arc<Mutex<World>>,
    /// How far that clock is ahead of the world's.
    ahead_ns: i64,
}

#[derive(Debug)]
struct World {
    spec: SimTarget,
    seed: u64,
    /// Ops seen.
    count: u64,
    ops: Option<Bucket>,
    bytes: Option<Bucket>,
    /// When each server is free again.
    servers: Option<BinaryHeap<Reverse<u64>>>,
}

/// A token bucket in continuous time; admission is first come, first served.
#[derive(Debug, Clone)]
struct Bucket {
    sustained_per_ns: f64,
    /// Nanoseconds per token at the burst rate; 0: no burst limit.
    burst_ns: f64,
    capacity: f64,
    level: f64,
    at_ns: f64,
    /// When the last admitted cost has passed the burst limit.
    burst_free_ns: f64,
}

impl Bucket {
    fn new(b: &SimBucket) -> Self {
        Self {
            sustained_per_ns: b.sustained_per_s / 1e9,
            burst_ns: b.burst_per_s.map_or(0.0, |p| 1e9 / p),
            capacity: b.capacity,
            level: b.capacity * b.initial_fill.clamp(0.0, 1.0),
            at_ns: 0.0,
            burst_free_ns: 0.0,
        }
    }

    /// When `cost` tokens are there for one who comes at `now_ns`. A cost above the capacity waits until
    /// the bucket is full and leaves a debt.
    fn admits_at(&self, now_ns: f64, cost: f64) -> f64 {
        let from = now_ns.max(self.at_ns);
        let level = (self.level + (from - self.at_ns) * self.sustained_per_ns).min(self.capacity);
        let missing = (cost.min(self.capacity) - level).max(0.0);
        (from + missing / self.sustained_per_ns).max(self.burst_free_ns)
    }

    fn take(&mut self, at_ns: f64, cost: f64) {
        let level = (self.level + (at_ns - self.at_ns) * self.sustained_per_ns).min(self.capacity);
        self.level = level - cost;
        self.at_ns = at_ns;
        self.burst_free_ns = self.burst_free_ns.max(at_ns) + cost * self.burst_ns;
    }
}

impl SimWorld {
    /// At its beginning: nobody waits, all buckets are as the spec has them.
    pub fn new(spec: SimTarget, seed: u64) -> Self {
        let servers = spec.servers.map(|n| (0..n.max(1)).map(|_| Reverse(0)).collect());
        let world = World {
            ops: spec.ops.as_ref().map(Bucket::new),
            bytes: spec.bytes.as_ref().map(Bucket::new),
            servers,
            seed,
            count: 0,
            spec,
        };
        Self { world: Arc::new(Mutex::new(world)), ahead_ns: 0 }
    }

    /// The same world, for workers whose clock is ahead of its own by so much (or behind: negative).
    pub fn with_clock_ahead(&self, ahead_ns: i64) -> Self {
        Self { world: Arc::clone(&self.world), ahead_ns }
    }

    /// What the world's clock says when the worker's says `own_ns`. Before its beginning it stands at 0.
    pub(crate) fn true_ns(&self, own_ns: u64) -> u64 {
        own_ns.saturating_add_signed(self.ahead_ns.saturating_neg())
    }

    fn own_ns(&self, true_ns: u64) -> u64 {
        true_ns.saturating_add_signed(self.ahead_ns)
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World {
    /// When an op that comes at `now_ns` ends, and how.
    fn serve(&mut self, now_ns: u64, bytes: u64) -> (u64, Outcome) {
        let n = self.count;
        self.count += 1;
        let now = now_ns as f64;
        let (cost_ops, cost_bytes) = (1.0, bytes as f64);
        let at_ops = self.ops.as_ref().map_or(now, |b| b.admits_at(now, cost_ops));
        let at_bytes = self.bytes.as_ref().map_or(now, |b| b.admits_at(now, cost_bytes));
        let admitted = at_ops.max(at_bytes);
        if self.spec.reject && admitted > now {
            return (now_ns + self.service_ns(n, 0), Outcome::Http429);
        }
        if let Some(b) = &mut self.ops {
            b.take(admitted, cost_ops);
        }
        if let Some(b) = &mut self.bytes {
            b.take(admitted, cost_bytes);
        }
        let service_ns = self.service_ns(n, bytes);
        let on_server_ns = self.on_a_server(admitted as u64);
        let begin_ns = self.after_stall(on_server_ns);
        let end_ns = begin_ns + service_ns;
        if let Some(servers) = &mut self.servers {
            servers.push(Reverse(end_ns));
        }
        let failed = rng::unit(rng::at(rng::derive(self.seed, 1), n)) < self.spec.error_rate;
        (end_ns, if failed { Outcome::Http5xx } else { Outcome::Ok })
    }

    /// Takes the server that is free first.
    fn on_a_server(&mut self, from_ns: u64) -> u64 {
        match &mut self.servers {
            None => from_ns,
            Some(s) => s.pop().map_or(from_ns, |Reverse(free)| free.max(from_ns)),
        }
    }

    fn after_stall(&self, at_ns: u64) -> u64 {
        let (Some(every), Some(length)) = (self.spec.stall_every, self.spec.stall_for) else { return at_ns };
        let (every, length) = (every.as_ns().max(1), length.as_ns());
        let into = at_ns % every;
        // The first stall comes after one whole period.
        if at_ns >= every && into < length { at_ns - into + length } else { at_ns }
    }

    fn service_ns(&self, n: u64, bytes: u64) -> u64 {
        let transfer = self.spec.stream.map_or(0.0, |rate| bytes as f64 / rate.0 * 1e9);
        let mean = self.spec.base.as_ns() as f64 + transfer;
        if self.spec.spread == 0.0 {
            return mean.round() as u64;
        }
        let z = rng::normal(rng::at(rng::derive(self.seed, 2), n), rng::at(rng::derive(self.seed, 3), n));
        // The mean stays the mean: exp(sigma z - sigma^2 / 2).
        (mean * (self.spec.spread * z - self.spec.spread * self.spec.spread / 2.0).exp()).round() as u64
    }
}

/// One worker's view of the world.
#[derive(Debug)]
pub struct SimWorker {
    world: SimWorld,
    slots: Vec<(u64, Outcome)>,
}

impl SimWorker {
    /// `slots`: ops in flight at most; `world` is shared with other workers.
    pub fn build(world: SimWorld, slots: u32) -> Built<Self> {
        let ring = RingSpec { entries: slots, ..RingSpec::default() };
        Built { target: Self { world, slots: vec![(0, Outcome::Ok); slots as usize] }, ring }
    }
}

impl<R: Ring> Target<R> for SimWorker {
    const STAMP_AFTER_PREPARE: bool = false;

    fn begin(&mut self, cx: &mut Context<'_, R>, slot: u32, op: &Op, _n: u64) -> OpStep {
        let (end_ns, outcome) = self.world.lock().serve(self.world.true_ns(cx.now_ns), op.length);
        let end_ns = self.world.own_ns(end_ns);
        self.slots[slot as usize] = (op.length, outcome);
        // SAFETY: a sleep points to nothing.
        unsafe { cx.ring.push(Token::new(slot, 0), RingOp::Sleep { until_ns: end_ns }) };
        OpStep::MORE
    }

    fn complete(&mut self, cx: &mut Context<'_, R>, token: Token, result: i32) -> OpStep {
        let _ = cx;
        let (bytes, outcome) = self.slots[token.slot() as usize];
        let outcome = if result < 0 { Outcome::Cancelled } else { outcome };
        OpStep::Done(Done::at_once(outcome, if outcome.is_ok() { bytes } else { 0 }))
    }

    fn cancel(&mut self, cx: &mut Context<'_, R>, slot: u32, _why: Outcome) -> OpStep {
        cx.ring.cancel(Token::new(slot, 0));
        OpStep::MORE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::units::Span;
    use std::time::Duration;

    fn world(spec: SimTarget) -> SimWorld {
        SimWorld::new(spec, 1)
    }

    #[test]
    fn a_bucket_gives_its_capacity_and_then_its_rate() {
        let ops = SimBucket { sustained_per_s: 100.0, burst_per_s: None, capacity: 50.0, initial_fill: 1.0 };
        let w = world(SimTarget { base: Span(Duration::ZERO), ops: Some(ops), ..SimTarget::default() });
        let ends: Vec<u64> = (0..150).map(|_| w.lock().serve(0, 0).0).collect();
        assert!(ends[..50].iter().all(|t| *t == 0));
        assert_eq!(ends[50], 10_000_000);
        assert_eq!(ends[149], 1_000_000_000);
    }

    #[test]
    fn one_server_serves_one_at_a_time() {
        let w = world(SimTarget { servers: Some(1), ..SimTarget::default() });
        let ends: Vec<u64> = (0..3).map(|_| w.lock().serve(0, 0).0).collect();
        assert_eq!(ends, [1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn a_stall_holds_what_begins_in_it() {
        let spec = SimTarget {
            stall_every: Some(Span(Duration::from_secs(1))),
            stall_for: Some(Span(Duration::from_millis(100))),
            ..SimTarget::default()
        };
        assert_eq!(world(spec.clone()).lock().serve(1_050_000_000, 0).0, 1_101_000_000);
        assert_eq!(world(spec).lock().serve(500_000_000, 0).0, 501_000_000);
    }
}
