//! Clients, a law and a storage, request by request on a virtual clock. A refused client of a closed loop asks again after its
//! pause; who is refused in an open loop goes away.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use super::storage::ProductStorage;
use super::{LawAnswer, LawRequest, ProductLaw};
use crate::rng::Rng;
use crate::simulate::{Load, RatesSeen, System};

/// Time of an answer on the wire, and of a client between two requests.
const WIRE_S: f64 = 5e-4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Asks,
    Starts,
    Ends,
    Refused,
}

#[derive(Debug, Clone, Copy)]
struct Due {
    at_s: f64,
    /// Ties go in the order of their making.
    number: u64,
    moment: Moment,
    client: u32,
    begun_s: f64,
    started_s: f64,
    open: bool,
    size: f64,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    /// Earliest first out of a max-heap.
    fn cmp(&self, other: &Self) -> Ordering {
        other.at_s.total_cmp(&self.at_s).then(other.number.cmp(&self.number))
    }
}

/// What passed in one run, counted where it happened: the truth of a test.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Admitted {
    /// Given to the storage.
    pub passed: u64,
    /// Refused.
    pub refused: u64,
}

/// See the head of this file.
#[derive(Debug)]
pub struct Product {
    law: Box<dyn ProductLaw>,
    storage: ProductStorage,
    rng: Rng,
    /// Of a client that was refused, give or take half.
    pub pause_s: f64,
    /// Since the system was made.
    pub admitted: Admitted,
    now_s: f64,
    number: u64,
    active: usize,
    waiting: VecDeque<Due>,
    due: BinaryHeap<Due>,
    shape: Option<(f64, u32, f64)>,
    /// Of an open loop: its rate, the time at which it was left, and that of the next arrival.
    open: Option<(f64, f64, f64)>,
}

impl Product {
    /// A law before a storage.
    pub fn new(seed: u64, law: Box<dyn ProductLaw>, storage: ProductStorage) -> Self {
        Self {
            law,
            storage,
            rng: Rng::new(seed ^ 0xc11e),
            pause_s: 0.02,
            admitted: Admitted::default(),
            now_s: 0.0,
            number: 0,
            active: 0,
            waiting: VecDeque::new(),
            due: BinaryHeap::new(),
            shape: None,
            open: None,
        }
    }

    fn push(&mut self, mut d: Due, at_s: f64, moment: Moment) {
        self.number += 1;
        (d.at_s, d.moment, d.number) = (at_s, moment, self.number);
        self.due.push(d);
    }

    fn client(&mut self, client: u32, at_s: f64, size: f64, open: bool) {
        let d =
            Due { at_s, number: 0, moment: Moment::Asks, client, begun_s: at_s, started_s: at_s, open, size };
        self.push(d, at_s, Moment::Asks);
    }

    /// The limiter has let it through: a slot first, where there are slots.
    fn enters(&mut self, d: Due) {
        let slots = self.law.slots();
        if slots.is_none_or(|s| self.active < s.most) {
            self.serves(d);
        } else if slots.is_some_and(|s| self.waiting.len() < s.queue) {
            let mut d = d;
            d.started_s = d.at_s + slots.map_or(0.0, |s| s.deadline_s);
            self.waiting.push_back(d);
        } else {
            self.push(d, d.at_s + WIRE_S, Moment::Refused);
        }
    }

    fn serves(&mut self, mut d: Due) {
        self.active += 1;
        self.admitted.passed += 1;
        d.started_s = d.at_s;
        let mut ends = self.storage.serve(d.at_s, d.size);
        if let Some(rate) = self.law.connection_bytes_per_s() {
            ends = ends.max(d.at_s + d.size / rate);
        }
        self.push(d, ends, Moment::Ends);
    }

    /// Who waited for too long is refused; whoever has a slot now begins.
    fn turn(&mut self, now_s: f64) {
        while let Some(&d) = self.waiting.front() {
            if d.started_s <= now_s {
                self.waiting.pop_front();
                self.push(d, now_s.max(d.started_s), Moment::Refused);
            } else if self.law.slots().is_none_or(|s| self.active < s.most) {
                self.waiting.pop_front();
                self.serves(Due { at_s: now_s, ..d });
            } else {
                break;
            }
        }
    }

    fn happens(&mut self, d: Due, tally: &mut ProductTally) {
        match d.moment {
            Moment::Asks => {
                let asked = LawRequest { at_s: d.at_s, size_bytes: d.size, connection: d.client };
                match self.law.ask(asked) {
                    LawAnswer::At(t) if t <= d.at_s => self.enters(d),
                    LawAnswer::At(t) => self.push(d, t, Moment::Starts),
                    LawAnswer::RefusedAt(t) => self.push(d, t + WIRE_S, Moment::Refused),
                }
            }
            Moment::Starts => self.enters(d),
            Moment::Refused => {
                self.admitted.refused += 1;
                tally.refused(&d);
                if !d.open {
                    let at = d.at_s + self.pause_s * (0.5 + self.rng.uniform());
                    self.client(d.client, at, d.size, false);
                }
                self.turn(d.at_s);
            }
            Moment::Ends => {
                self.active -= 1;
                self.law.ended(d.at_s, d.at_s - d.started_s);
                tally.ended(&d);
                if !d.open {
                    self.client(d.client, d.at_s + WIRE_S, d.size, false);
                }
                self.turn(d.at_s);
            }
        }
    }

    fn clients(&mut self, load: &Load) {
        let (size, t0) = (load.size_bytes, self.now_s);
        if let Some(rate) = load.offered_per_s {
            // The same load goes on without a break.
            let next = self.open.filter(|o| o.0 == rate && o.1 == t0).map(|o| o.2);
            if next.is_none() {
                self.quiesce();
            }
            let (begin, end) = (next.unwrap_or(self.now_s), self.now_s + load.duration_s);
            let n = ((end - begin) * rate).ceil().max(0.0) as u32;
            for i in 0..n {
                self.client(i % load.concurrency.max(1), begin + f64::from(i) / rate, size, true);
            }
            self.open = Some((rate, end, begin + f64::from(n) / rate));
            return;
        }
        self.open = None;
        if self.shape == Some((size, load.concurrency, t0)) {
            return;
        }
        self.quiesce();
        let t0 = self.now_s;
        for i in 0..load.concurrency {
            self.client(i, t0 + f64::from(i) * 1e-4, size, false);
        }
    }
}

impl System for Product {
    fn run(&mut self, load: &Load) -> RatesSeen {
        self.clients(load);
        let (t0, end) = (self.now_s, self.now_s + load.duration_s);
        let mut tally = ProductTally::new(t0, load.dt_s, load.duration_s);
        while let Some(d) = self.due.pop() {
            if d.at_s >= end {
                self.due.push(d);
                break;
            }
            self.happens(d, &mut tally);
        }
        self.now_s = end;
        let closed = load.offered_per_s.is_none();
        self.shape = closed.then_some((load.size_bytes, load.concurrency, end));
        tally.seen()
    }

    fn quiesce(&mut self) {
        let mut unseen = ProductTally::new(self.now_s, 1.0, 1.0);
        while let Some(d) = self.due.pop() {
            if d.moment == Moment::Asks {
                continue;
            }
            self.now_s = self.now_s.max(d.at_s);
            self.happens(d, &mut unseen);
        }
        self.waiting.clear();
        self.open = None;
        self.shape = None;
    }

    fn idle(&mut self, seconds: f64) {
        self.quiesce();
        self.now_s += seconds;
    }

    fn now_s(&self) -> f64 {
        self.now_s
    }
}

/// What the clients saw, slice by slice.
struct ProductTally {
    t0: f64,
    dt_s: f64,
    ops: Vec<f64>,
    bytes: Vec<f64>,
    refused: Vec<f64>,
    took_s: Vec<f64>,
}

impl ProductTally {
    fn new(t0: f64, dt_s: f64, duration_s: f64) -> Self {
        let n = ((duration_s / dt_s).round() as usize).max(1);
        let none = vec![0.0; n];
        Self { t0, dt_s, ops: none.clone(), bytes: none.clone(), refused: none.clone(), took_s: none }
    }

    fn slice(&self, at_s: f64) -> usize {
        (((at_s - self.t0) / self.dt_s).max(0.0) as usize).min(self.ops.len() - 1)
    }

    fn refused(&mut self, d: &Due) {
        let j = self.slice(d.at_s);
        self.refused[j] += 1.0;
        self.took_s[j] += d.at_s - d.begun_s;
    }

    fn ended(&mut self, d: &Due) {
        let j = self.slice(d.at_s);
        self.ops[j] += 1.0;
        self.bytes[j] += d.size;
        self.took_s[j] += d.at_s - d.begun_s;
    }

    fn seen(self) -> RatesSeen {
        let per = |v: &[f64]| v.iter().map(|x| x / self.dt_s).collect();
        RatesSeen {
            dt_s: self.dt_s,
            ops_per_s: per(&self.ops),
            bytes_per_s: per(&self.bytes),
            rejected_per_s: per(&self.refused),
            // Of all that ended, as the tool's series has it.
            latency_s: self
                .took_s
                .iter()
                .zip(self.ops.iter().zip(&self.refused))
                .map(|(l, (ok, refused))| l / (ok + refused).max(1.0))
                .collect(),
        }
    }
}
