//! Discrete events: closed-loop clients, one server with log-normal base time, real queues and real 429s.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use super::{Bucket, Charges, Load, RatesSeen, System};
use crate::rng::Rng;

/// What a client does after a 429.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Backoff {
    /// This long, give or take half.
    Constant(f64),
    /// From the first to the second, doubling.
    Exponential(f64, f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Arrive,
    Complete,
    /// Admitted by a queueing limiter: starts now.
    Start,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Event {
    at: f64,
    client: u32,
    kind: Kind,
    /// When this attempt was made.
    begun: f64,
    tries: u32,
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// Earliest first out of a max-heap.
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.total_cmp(&self.at).then(other.client.cmp(&self.client))
    }
}

/// At most `quota` requests in any (sliding) period, refused ones counted too: haproxy's `http_req_rate`, with its two
/// counters. A load that is refused keeps it shut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sliding {
    /// Length of the period.
    pub period_s: f64,
    /// Requests in each.
    pub quota: f64,
    period: u64,
    current: f64,
    previous: f64,
}

impl Sliding {
    /// No request has come yet.
    pub fn new(period_s: f64, quota: f64) -> Self {
        Self { period_s, quota, period: 0, current: 0.0, previous: 0.0 }
    }

    fn admits(&mut self, t: f64) -> bool {
        let period = (t / self.period_s) as u64;
        if period != self.period {
            self.previous = if period == self.period + 1 { self.current } else { 0.0 };
            (self.period, self.current) = (period, 0.0);
        }
        self.current += 1.0;
        let left = 1.0 - (t / self.period_s - period as f64);
        self.current + self.previous * left <= self.quota
    }
}

/// Real queues at one server, op by op: refusals come at their own moments.
#[derive(Debug, Clone)]
pub struct Events {
    /// Ops per second that the server can do.
    pub ops_cap: f64,
    /// Bytes per second that it can move.
    pub bytes_cap: f64,
    /// Median time of an op on an idle server, without its bytes.
    pub base_s: f64,
    /// Sigma of the logarithm of the base time.
    pub spread: f64,
    /// Coefficient of variation of the capacity's noise.
    pub cv: f64,
    /// Answer 429 instead of queueing.
    pub rejects: bool,
    /// Of each client, after a 429.
    pub backoff: Backoff,
    /// A 429 costs a tenth of a token.
    pub rejects_cost: bool,
    /// Ops allowed in each whole window of this many seconds, instead of a bucket.
    pub fixed_window: Option<(f64, u64)>,
    /// A sliding count of all requests, instead of a bucket.
    pub sliding: Option<Sliding>,
    /// More requests than this at once are refused, whatever their rate (nginx's `limit_conn`).
    pub most_at_once: Option<usize>,
    /// Share of requests that are refused by chance, whatever their rate: one server of several is out of order.
    pub broken: f64,
    /// Requests that were admitted and have not ended.
    active: usize,
    nodes: Vec<Vec<(Bucket, f64)>>,
    rng: Rng,
    t: f64,
    free: f64,
    z: f64,
    z_at: f64,
    windows: HashMap<u64, u64>,
    pending: BinaryHeap<Event>,
    /// Size, concurrency and end of the run that left `pending`.
    shape: Option<(f64, u32, f64)>,
}

impl Events {
    /// `buckets` are split evenly over `nodes`, each op going to a random one.
    pub fn new(seed: u64, buckets: &[Bucket], nodes: usize) -> Self {
        let n = nodes.max(1);
        let share = |b: &Bucket| {
            let f = 1.0 / n as f64;
            let b =
                Bucket { rate_per_s: b.rate_per_s * f, capacity: b.capacity * f, level: b.level * f, ..*b };
            (b, 0.0)
        };
        Self {
            ops_cap: 1500.0,
            bytes_cap: 2e8,
            base_s: 0.004,
            spread: 0.4,
            cv: 0.03,
            rejects: true,
            backoff: Backoff::Constant(0.02),
            rejects_cost: false,
            fixed_window: None,
            sliding: None,
            most_at_once: None,
            broken: 0.0,
            active: 0,
            nodes: vec![buckets.iter().map(share).collect(); n],
            rng: Rng::new(seed),
            t: 0.0,
            free: 0.0,
            z: 0.0,
            z_at: 0.0,
            windows: HashMap::new(),
            pending: BinaryHeap::new(),
            shape: None,
        }
    }

    fn weather(&mut self, t: f64) -> f64 {
        if t - self.z_at > 0.25 {
            let a = (-(t - self.z_at) / 4.0).exp();
            self.z = a * self.z + (1.0 - a * a).sqrt() * self.rng.normal();
            self.z_at = t;
        }
        (self.cv * self.z).exp()
    }

    /// When the op may start; `None`: refused.
    fn admit(&mut self, t: f64, size: f64) -> Option<f64> {
        if self.most_at_once.is_some_and(|n| self.active >= n) {
            return None;
        }
        if self.broken > 0.0 && self.rng.uniform() < self.broken {
            return None;
        }
        if let Some((w, quota)) = self.fixed_window {
            let k = (t / w) as u64;
            let used = self.windows.entry(k).or_insert(0);
            if *used >= quota {
                return if self.rejects { None } else { Some((k + 1) as f64 * w) };
            }
            *used += 1;
            return Some(t);
        }
        if let Some(s) = &mut self.sliding {
            return s.admits(t).then_some(t);
        }
        let i = if self.nodes.len() > 1 { self.rng.below(self.nodes.len()) } else { 0 };
        let mut ready = t;
        for (b, at) in &mut self.nodes[i] {
            let cost = b.charges.cost(size);
            if t > *at {
                b.level = b.capacity.min(b.level + b.rate_per_s * (t - *at));
                *at = t;
            }
            if self.rejects {
                if b.level < cost.min(b.capacity) {
                    if self.rejects_cost {
                        b.level = (b.level - 0.1 * cost).max(-b.rate_per_s);
                    }
                    return None;
                }
            } else if b.level < cost {
                ready = ready.max(t + (cost - b.level) / b.rate_per_s);
            }
        }
        for (b, _) in &mut self.nodes[i] {
            b.level -= b.charges.cost(size);
        }
        Some(ready)
    }

    fn serve(&mut self, e: Event, size: f64, base: f64) {
        let g = self.weather(e.at);
        let work =
            if size < self.bytes_cap / self.ops_cap { 1.0 / self.ops_cap } else { size / self.bytes_cap };
        self.free = self.free.max(e.at) + work / g;
        self.pending.push(Event { at: self.free + base, kind: Kind::Complete, tries: 0, ..e });
    }

    fn base(&mut self) -> f64 {
        self.base_s * (self.spread * self.rng.normal()).exp()
    }

    fn arrive(&mut self, e: Event, size: f64, retries: bool) -> bool {
        match self.admit(e.at, size) {
            None if !retries => return false,
            None => {
                let wait = match self.backoff {
                    Backoff::Constant(s) => s,
                    Backoff::Exponential(from, to) => (from * 2f64.powi(e.tries.min(30) as i32)).min(to),
                } * (0.5 + self.rng.uniform());
                let at = e.at + 0.002 + wait;
                self.pending.push(Event { at, begun: at, tries: e.tries + 1, ..e });
                return false;
            }
            Some(at) => {
                self.active += 1;
                if at > e.at {
                    self.pending.push(Event { at, kind: Kind::Start, tries: 0, ..e });
                    return true;
                }
                let base = self.base();
                self.serve(e, size, base);
            }
        }
        true
    }
}

impl System for Events {
    fn run(&mut self, load: &Load) -> RatesSeen {
        let (size, conc) = (load.size_bytes, load.concurrency);
        let goes_on = self.shape == Some((size, 0, self.t));
        if load.offered_per_s.is_some() && !goes_on {
            self.quiesce();
        }
        let (t0, end) = (self.t, self.t + load.duration_s);
        match (self.shape, load.offered_per_s) {
            // Arrivals at their times, whatever became of those before them; who is refused goes away.
            (_, Some(rate)) => {
                let number = |t: f64| (t * rate - 1e-6).ceil() as u64;
                let arrive = |i: u64| {
                    let at = i as f64 / rate;
                    Event { at, client: i as u32, kind: Kind::Arrive, begun: at, tries: 0 }
                };
                self.pending.extend((number(t0)..number(end)).map(arrive));
            }
            (Some((s, c, at)), None) if s == size && c == conc && at == t0 => {}
            _ => {
                self.quiesce();
                let t0 = self.t;
                let arrive = |i| Event {
                    at: t0 + f64::from(i) * 1e-4,
                    client: i,
                    kind: Kind::Arrive,
                    begun: t0,
                    tries: 0,
                };
                self.pending.extend((0..conc).map(arrive));
            }
        }
        let m = (load.duration_s / load.dt_s).round() as usize;
        let mut tally = Tally::new(t0, load.dt_s, m);
        while let Some(e) = self.pending.pop() {
            if e.at >= end {
                self.pending.push(e);
                break;
            }
            match e.kind {
                Kind::Complete => {
                    self.active = self.active.saturating_sub(1);
                    let moving = (size / self.bytes_cap * 4.0).min(e.at - t0).max(0.0);
                    tally.complete(e.at, e.at - e.begun, e.at - moving, size);
                    if load.offered_per_s.is_none() {
                        let at = e.at + 2e-4;
                        self.pending.push(Event { at, kind: Kind::Arrive, begun: at, tries: 0, ..e });
                    }
                }
                Kind::Start => {
                    let base = self.base();
                    self.serve(e, size, base);
                }
                Kind::Arrive => {
                    if !self.arrive(e, size, load.offered_per_s.is_none()) {
                        tally.reject(e.at);
                    }
                }
            }
        }
        self.t = end;
        self.shape = Some((size, if load.offered_per_s.is_some() { 0 } else { conc }, end));
        tally.seen()
    }

    fn quiesce(&mut self) {
        let mut last = self.t;
        let size = self.shape.map_or(0.0, |s| s.0);
        while let Some(e) = self.pending.pop() {
            match e.kind {
                Kind::Start => {
                    let base = self.base_s;
                    self.serve(e, size, base);
                }
                Kind::Complete => last = last.max(e.at),
                Kind::Arrive => {}
            }
        }
        self.t = last;
        self.active = 0;
        self.shape = None;
    }

    fn idle(&mut self, seconds: f64) {
        self.quiesce();
        self.t += seconds;
    }

    fn now_s(&self) -> f64 {
        self.t
    }
}

/// Counts of one run, slice by slice.
struct Tally {
    t0: f64,
    dt: f64,
    ops: Vec<f64>,
    bytes: Vec<f64>,
    rejected: Vec<f64>,
    latency: Vec<f64>,
}

impl Tally {
    fn new(t0: f64, dt: f64, m: usize) -> Self {
        Self { t0, dt, ops: vec![0.0; m], bytes: vec![0.0; m], rejected: vec![0.0; m], latency: vec![0.0; m] }
    }

    fn slice(&self, at: f64) -> usize {
        (((at - self.t0) / self.dt) as usize).min(self.ops.len().saturating_sub(1))
    }

    fn reject(&mut self, at: f64) {
        let j = self.slice(at);
        self.rejected[j] += 1.0;
    }

    /// Bytes count as they move, from `from` to `at`.
    fn complete(&mut self, at: f64, latency: f64, from: f64, size: f64) {
        let j = self.slice(at);
        self.ops[j] += 1.0;
        self.latency[j] += latency;
        let i = self.slice(from);
        if i >= j || at <= from {
            self.bytes[j] += size;
            return;
        }
        let r = size / (at - from);
        for k in i..=j {
            let (a, b) = (self.t0 + k as f64 * self.dt, self.t0 + (k + 1) as f64 * self.dt);
            self.bytes[k] += r * (at.min(b) - from.max(a));
        }
    }

    fn seen(self) -> RatesSeen {
        let per = |v: &[f64]| v.iter().map(|x| x / self.dt).collect();
        RatesSeen {
            dt_s: self.dt,
            ops_per_s: per(&self.ops),
            bytes_per_s: per(&self.bytes),
            rejected_per_s: per(&self.rejected),
            // Of all that ended, as a run has it: who is refused gets to know it at once.
            latency_s: (0..self.ops.len())
                .map(|i| self.latency[i] / (self.ops[i] + self.rejected[i]).max(1.0))
                .collect(),
        }
    }
}

/// An ops bucket of this rate and capacity: the commonest case.
pub fn ops_bucket(rate_per_s: f64, capacity: f64) -> Bucket {
    Bucket::new(Charges::Ops, rate_per_s, capacity)
}
