//! Fluid model: capacity with AR(1) noise and stalls, token buckets with jitter, advanced in steps of 50 ms.

use super::{Bucket, Load, RatesSeen, System};
use crate::rng::Rng;

/// A limiter that allows `mult` times the rate for `burst_s` seconds, whatever is used: no bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimedBurst {
    /// In the long run.
    pub rate_bytes_per_s: f64,
    /// Factor on it while the burst lasts.
    pub mult: f64,
    /// Seconds of burst when it is full.
    pub burst_s: f64,
    /// Seconds of burst left now.
    pub left_s: f64,
    /// Burst seconds regained per idle second.
    pub refill: f64,
}

/// Rates without ops: fast, and exact where only means count.
#[derive(Debug, Clone)]
pub struct Fluid {
    /// Ops per second without a limiter.
    pub ops_cap: f64,
    /// Bytes per second without a limiter.
    pub bytes_cap: f64,
    /// Latency of an op without bytes, seconds, and bandwidth of one stream.
    pub base_s: f64,
    /// Bytes per second that one op in flight moves at most.
    pub stream_bytes_per_s: f64,
    /// All of them in series: each op draws on every one.
    pub buckets: Vec<Bucket>,
    /// A limiter by time, beside the buckets.
    pub timer: Option<TimedBurst>,
    /// Coefficient of variation and correlation time of the capacity's noise.
    pub cv: f64,
    /// Seconds.
    pub tau_s: f64,
    /// Stalls per second, by chance.
    pub stall_rate: f64,
    /// Part of the capacity that a stall takes, 0 to 1.
    pub stall_depth: f64,
    /// Length of a stall.
    pub stall_s: f64,
    /// Coefficient of variation of the limiter's own rate.
    pub limiter_jitter: f64,
    /// Refuse (429) what a bucket does not allow, instead of queueing it.
    pub rejects: bool,
    /// Relative change of the capacity per hour.
    pub drift_per_h: f64,
    rng: Rng,
    t: f64,
    z: f64,
    zl: f64,
    stalled: f64,
}

const STEP_S: f64 = 0.05;
/// Correlation time of the limiter's own rate, seconds.
pub const LIMITER_TAU_S: f64 = 5.0;

impl Fluid {
    /// Without limiters and stalls, with 3 % noise. `stream`: bytes per second of one op in flight.
    pub fn new(seed: u64, ops_cap: f64, bytes_cap: f64, base_s: f64, stream: f64) -> Self {
        Self {
            ops_cap,
            bytes_cap,
            base_s,
            stream_bytes_per_s: stream,
            buckets: Vec::new(),
            timer: None,
            cv: 0.03,
            tau_s: 3.0,
            stall_rate: 0.0,
            stall_depth: 0.7,
            stall_s: 2.0,
            limiter_jitter: 0.0,
            rejects: false,
            drift_per_h: 0.0,
            rng: Rng::new(seed),
            t: 0.0,
            z: 0.0,
            zl: 0.0,
            stalled: 0.0,
        }
    }

    /// Factor on the capacity in this step.
    fn weather(&mut self, a: f64, q: f64) -> f64 {
        self.z = a * self.z + q * self.rng.normal();
        let mut g = (self.cv * self.z).exp() * (1.0 + self.drift_per_h * self.t / 3600.0);
        let u = self.rng.uniform();
        if self.stalled > 0.0 {
            self.stalled -= STEP_S;
            g *= 1.0 - self.stall_depth;
        } else if u < self.stall_rate * STEP_S {
            self.stalled = self.stall_s * (0.5 + self.rng.uniform());
        }
        g
    }

    /// Ops that the limiters let through of `want`.
    fn allow(&mut self, want: f64, size: f64, jitter: f64) -> f64 {
        let mut allow = want;
        // A bucket that is drained does not run over: what comes in a step can be used in it, and only what is left is capped.
        for b in &mut self.buckets {
            b.level += b.rate_per_s * jitter * STEP_S;
            allow = allow.min(b.level / b.charges.cost(size));
        }
        if let Some(t) = &mut self.timer {
            let mult = if t.left_s > 0.0 { t.mult } else { 1.0 };
            allow = allow.min(t.rate_bytes_per_s * jitter * mult / size * STEP_S);
            if allow * size > t.rate_bytes_per_s * 1.02 * STEP_S {
                t.left_s -= STEP_S;
            }
        }
        for b in &mut self.buckets {
            b.level = b.capacity.min(b.level - allow * b.charges.cost(size));
        }
        allow
    }
}

impl System for Fluid {
    fn run(&mut self, load: &Load) -> RatesSeen {
        let k = ((load.dt_s / STEP_S).round() as usize).max(1);
        let slices = (load.duration_s / STEP_S).round() as usize / k;
        let mut seen = RatesSeen { dt_s: load.dt_s, ..RatesSeen::default() };
        let a = (-STEP_S / self.tau_s).exp();
        let q = (1.0 - a * a).sqrt();
        let al = (-STEP_S / LIMITER_TAU_S).exp();
        let ql = (1.0 - al * al).sqrt();
        let latency = self.base_s + load.size_bytes / self.stream_bytes_per_s;
        let (mut done, mut whole) = (0.0f64, 0.0f64);
        for _ in 0..slices {
            let (mut bytes, mut rejected) = (0.0, 0.0);
            for _ in 0..k {
                self.zl = al * self.zl + ql * self.rng.normal();
                let g = self.weather(a, q);
                let capacity = self.ops_cap.min(self.bytes_cap / load.size_bytes) * g;
                let mut demand = f64::from(load.concurrency) / latency * g;
                if let Some(offered) = load.offered_per_s {
                    demand = demand.min(offered);
                }
                let want = capacity.min(demand) * STEP_S;
                let jitter = 1.0 + self.limiter_jitter * self.zl;
                let allow = self.allow(want, load.size_bytes, jitter);
                done += allow;
                bytes += allow * load.size_bytes;
                if self.rejects {
                    rejected += want - allow;
                }
                self.t += STEP_S;
            }
            let ops = (done.floor() - whole) / load.dt_s;
            whole = done.floor();
            seen.ops_per_s.push(ops);
            seen.bytes_per_s.push(bytes / load.dt_s);
            seen.rejected_per_s.push(rejected / load.dt_s);
            let queued = f64::from(load.concurrency) / ops.max(1e-9);
            seen.latency_s.push(if self.rejects || load.offered_per_s.is_some() {
                latency
            } else {
                latency.max(queued)
            });
        }
        seen
    }

    /// A fluid has nothing in flight.
    fn quiesce(&mut self) {}

    fn idle(&mut self, seconds: f64) {
        for b in &mut self.buckets {
            b.level = b.capacity.min(b.level + b.rate_per_s * seconds);
        }
        if let Some(t) = &mut self.timer {
            t.left_s = t.burst_s.min(t.left_s + seconds * t.refill);
        }
        self.t += seconds;
    }

    fn now_s(&self) -> f64 {
        self.t
    }
}
