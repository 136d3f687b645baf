//! Rings without a kernel: a virtual clock for the simulated target, and one that ends no-ops at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use plimsoll_model::plan::RingChoice;

use super::{Completions, Ring, RingError, RingOp, RingSpec, Token, monotonic_ns, sleep_until};

/// The ring of the simulated target: time jumps from event to event, to the nanosecond.
#[derive(Debug)]
pub struct VirtualRing {
    now_ns: u64,
    /// (when, order of arrival, token, result)
    events: BinaryHeap<Reverse<(u64, u64, u64, i32)>>,
    pushed: u64,
}

impl VirtualRing {
    fn at(&mut self, at_ns: u64, token: Token, result: i32) {
        self.events.push(Reverse((at_ns, self.pushed, token.0, result)));
        self.pushed += 1;
    }
}

impl Ring for VirtualRing {
    const CHOICE: RingChoice = RingChoice::Auto;

    fn open(spec: &RingSpec) -> Result<Self, RingError> {
        let room = 2 * spec.entries as usize + 8;
        Ok(Self { now_ns: 0, events: BinaryHeap::with_capacity(room), pushed: 0 })
    }

    fn describe(&self) -> String {
        "virtual clock".into()
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    unsafe fn push(&mut self, token: Token, op: RingOp) {
        match op {
            RingOp::Nop => self.at(self.now_ns, token, 0),
            RingOp::Sleep { until_ns } => self.at(until_ns.max(self.now_ns), token, 0),
            _ => self.at(self.now_ns, token, -libc::EOPNOTSUPP),
        }
    }

    fn cancel(&mut self, token: Token) {
        let before = self.events.len();
        self.events.retain(|Reverse((_, _, t, _))| *t != token.0);
        if self.events.len() < before {
            self.at(self.now_ns, token, -libc::ECANCELED);
        }
    }

    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, min: u32, until_ns: u64) -> io::Result<()> {
        if min > 0 {
            let next = self.next_event_ns().unwrap_or(u64::MAX).min(until_ns);
            if next == u64::MAX {
                return Err(io::Error::other("nothing will ever happen on this virtual clock"));
            }
            self.advance_to(next);
        }
        Ok(())
    }

    fn reap(&mut self, out: &mut Completions) {
        while !out.is_full() && self.next_event_ns().is_some_and(|t| t <= self.now_ns) {
            let Some(Reverse((_, _, token, result))) = self.events.pop() else { break };
            out.push(Token(token), result);
        }
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.events.peek().map(|Reverse((at, ..))| *at)
    }

    fn advance_to(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    fn syscalls(&self) -> u64 {
        0
    }
}

/// Ends every no-op at once, without a system call: what is left is the loop itself.
#[derive(Debug)]
pub struct MemoryRing {
    epoch_ns: u64,
    done: Vec<Token>,
    syscalls: u64,
}

impl Ring for MemoryRing {
    const CHOICE: RingChoice = RingChoice::Auto;

    fn open(spec: &RingSpec) -> Result<Self, RingError> {
        Ok(Self { epoch_ns: spec.epoch_ns, done: Vec::with_capacity(spec.entries as usize + 8), syscalls: 0 })
    }

    fn describe(&self) -> String {
        "no system call".into()
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns() - self.epoch_ns
    }

    unsafe fn push(&mut self, token: Token, _op: RingOp) {
        self.done.push(token);
    }

    fn cancel(&mut self, _token: Token) {}

    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, min: u32, until_ns: u64) -> io::Result<()> {
        if min > 0 && self.done.is_empty() {
            self.syscalls += 1;
            sleep_until(self.epoch_ns, until_ns);
        }
        Ok(())
    }

    fn reap(&mut self, out: &mut Completions) {
        while !out.is_full() {
            let Some(token) = self.done.pop() else { break };
            out.push(token, 0);
        }
    }

    fn syscalls(&self) -> u64 {
        self.syscalls
    }
}
