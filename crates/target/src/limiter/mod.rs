//! Rate limits in front of the embedded servers: who may go when, and who is sent away.
//!
//! The core takes the time as an argument and never looks at a clock, so that its laws are tested exactly.
//! [`Gate`] puts it behind a lock and the monotonic clock for the servers.

mod bucket;
mod config;
mod latency;

pub use bucket::{Law, MICRO, TokenBucket};
pub use config::{
    Amount, CreditSpec, Direction, LatencySpec, LimitAnswer, LimitSet, LimitSpec, LimitsError, Scope,
    TierKind, Unit,
};
pub use latency::Latency;

use crate::clock::now_ns;
use serde::Deserialize;
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

/// What an operation is, to a limiter.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "lowercase")]
pub enum OpClass {
    Get,
    Head,
    Put,
    Copy,
    /// Create, complete, abort of a multipart upload; a part is a `put`.
    Multipart,
    Delete,
    List,
    /// Anything about buckets or the service.
    Bucket,
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    pub class: OpClass,
    pub access_key: &'a str,
    pub bucket: &'a str,
    /// The client's address.
    pub client: &'a str,
    pub connection: u64,
}

/// The limiter's answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may go at this time, which may be now.
    Go {
        at_ns: u64,
        ticket: Ticket,
    },
    Reject {
        status: u16,
        retry_after_s: u64,
        limit: String,
    },
}

/// The bytes buckets that a request draws on while it moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    inward: Vec<usize>,
    outward: Vec<usize>,
}

impl Ticket {
    /// Whether bytes in this direction have to be charged at all.
    pub fn charges(&self, direction: Direction) -> bool {
        !self.of(direction).is_empty()
    }

    fn of(&self, direction: Direction) -> &[usize] {
        match direction {
            Direction::In => &self.inward,
            Direction::Out => &self.outward,
        }
    }
}

/// More callers than this in one limit share a bucket: a bound on memory, whatever keys clients invent.
const MAX_STATES: usize = 65_536;

/// One bucket in use.
#[derive(Clone, Debug)]
struct State {
    law: Law,
    limit: usize,
    /// Times at which those who wait may go.
    waiting: VecDeque<u64>,
}

/// All limits of a set, and their buckets.
#[derive(Clone, Debug)]
pub struct Limiter {
    specs: Vec<LimitSpec>,
    states: Vec<State>,
    /// (limit, whose) to state.
    index: HashMap<(usize, String), usize>,
    start_ns: u64,
}

impl Limiter {
    pub fn new(set: &LimitSet, now_ns: u64) -> Limiter {
        Limiter { specs: set.limits.clone(), states: Vec::new(), index: HashMap::new(), start_ns: now_ns }
    }

    /// Decides about a request that is here now.
    pub fn admit(&mut self, now_ns: u64, caller: &Caller<'_>) -> Verdict {
        let mut mine: Vec<usize> = Vec::new();
        for i in 0..self.specs.len() {
            if charges(&self.specs[i], caller.class) {
                mine.push(self.state(i, caller));
            }
        }
        // Whoever is refused by one limit costs the others nothing.
        for &s in &mine {
            if let Some(reject) = self.refusal(now_ns, s) {
                return reject;
            }
        }
        let mut at_ns = now_ns;
        let mut ticket = Ticket::default();
        for s in mine {
            let spec = &self.specs[self.states[s].limit];
            match spec.unit {
                Unit::Ops => {
                    let queued = spec.answer() == LimitAnswer::Queue;
                    let state = &mut self.states[s];
                    let due = state.law.book(now_ns, MICRO);
                    if queued && due > now_ns {
                        state.waiting.push_back(due);
                    }
                    at_ns = at_ns.max(due);
                }
                Unit::Bytes => {
                    let either = |d| spec.directions.as_ref().is_none_or(|all| all.contains(&d));
                    if either(Direction::In) {
                        ticket.inward.push(s);
                    }
                    if either(Direction::Out) {
                        ticket.outward.push(s);
                    }
                }
            }
        }
        Verdict::Go { at_ns, ticket }
    }

    /// Charges bytes that move; the answer is when they may. Limits that refuse requests don't hold bytes back: they
    /// go into debt, and the next request is refused.
    pub fn bytes(&mut self, now_ns: u64, ticket: &Ticket, direction: Direction, n: u64) -> u64 {
        let mut at_ns = now_ns;
        for &s in ticket.of(direction) {
            let holds =
                matches!(self.specs[self.states[s].limit].answer(), LimitAnswer::Delay | LimitAnswer::Queue);
            let due = self.states[s].law.book(now_ns, n.saturating_mul(MICRO));
            if holds {
                at_ns = at_ns.max(due);
            }
        }
        at_ns
    }

    fn refusal(&mut self, now_ns: u64, s: usize) -> Option<Verdict> {
        let state = &mut self.states[s];
        let spec = &self.specs[state.limit];
        let status = match spec.answer() {
            LimitAnswer::Delay => return None,
            LimitAnswer::Queue => {
                while state.waiting.front().is_some_and(|&t| t <= now_ns) {
                    state.waiting.pop_front();
                }
                if spec.unit == Unit::Bytes || state.waiting.len() < spec.queue_length.unwrap_or(100) {
                    return None;
                }
                503
            }
            LimitAnswer::TooManyRequests => 429,
            LimitAnswer::SlowDown => 503,
        };
        let full = match spec.unit {
            _ if spec.answer() == LimitAnswer::Queue => false,
            Unit::Ops => state.law.has(now_ns, MICRO),
            Unit::Bytes => state.law.solvent(now_ns),
        };
        if full {
            return None;
        }
        let need = if spec.unit == Unit::Ops { MICRO } else { 1 };
        let wait_ns = state.law.ready_at(now_ns, need).saturating_sub(now_ns);
        if spec.rejects_cost_tokens {
            state.law.fine(now_ns, need);
        }
        let retry_after_s =
            spec.retry_after_s.unwrap_or_else(|| wait_ns.div_ceil(1_000_000_000).clamp(1, 3_600));
        let limit = spec.name.clone().unwrap_or_else(|| format!("{:?}", spec.unit).to_lowercase());
        Some(Verdict::Reject { status, retry_after_s, limit })
    }

    /// The bucket of this limit for this caller.
    fn state(&mut self, limit: usize, caller: &Caller<'_>) -> usize {
        let whose = match self.specs[limit].scope {
            Scope::Server => String::new(),
            Scope::AccessKey => caller.access_key.to_owned(),
            Scope::Bucket => caller.bucket.to_owned(),
            Scope::Client => caller.client.to_owned(),
            Scope::Connection => caller.connection.to_string(),
        };
        let full = self.index.len() >= MAX_STATES;
        if let Some(&s) = self.index.get(&(limit, whose.clone())) {
            return s;
        }
        let whose = if full { String::from("\0others") } else { whose };
        if let Some(&s) = self.index.get(&(limit, whose.clone())) {
            return s;
        }
        let law = law_of(&self.specs[limit], self.start_ns);
        self.states.push(State { law, limit, waiting: VecDeque::new() });
        let s = self.states.len() - 1;
        self.index.insert((limit, whose), s);
        s
    }
}

fn charges(spec: &LimitSpec, class: OpClass) -> bool {
    spec.charges.as_ref().is_none_or(|c| c.contains(&class))
}

/// A bucket as its limit says, at the time the server started.
pub(crate) fn law_of(spec: &LimitSpec, now_ns: u64) -> Law {
    let capacity = spec.capacity_micro();
    if let Some(ms) = spec.fixed_window_ms {
        return Law::Window {
            per_window_micro: capacity,
            window_ns: ms * 1_000_000,
            index: 0,
            used_micro: 0,
        };
    }
    let fill = (capacity as f64 * spec.initial_fill.unwrap_or(1.0)).round() as u64;
    let peak = spec.burst_per_s.map(|p| {
        // Room for 2 ms of the burst rate, so that the timing of single requests does not cost tokens.
        let room = (p.0 / 500).max(MICRO);
        TokenBucket::new(p.0, room, room, now_ns)
    });
    Law::Tokens { sustained: TokenBucket::new(spec.rate_per_s.0, capacity, fill, now_ns), peak }
}

/// A limiter, its latency model and the clock: what a server asks.
#[derive(Debug)]
pub struct Gate {
    limiter: Mutex<Limiter>,
    latency: Option<Latency>,
    piece_bytes: u64,
}

impl Gate {
    pub fn new(set: &LimitSet) -> Gate {
        let fastest =
            set.limits.iter().filter(|l| l.unit == Unit::Bytes).map(|l| l.rate_per_s.0 / MICRO).min();
        Gate {
            limiter: Mutex::new(Limiter::new(set, now_ns())),
            latency: set.latency.as_ref().map(Latency::new),
            // A fifth of a millisecond of the slowest bytes limit: smooth, and yet not a timer per packet.
            piece_bytes: fastest.map_or(256 << 10, |r| (r / 5_000).clamp(8 << 10, 256 << 10)),
        }
    }

    pub fn admit(&self, caller: &Caller<'_>) -> Verdict {
        // A lock that a panicked thread held protects plain numbers: they are still good.
        let mut l = self.limiter.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        l.admit(now_ns(), caller)
    }

    /// When `n` bytes may move.
    pub fn bytes(&self, ticket: &Ticket, direction: Direction, n: u64) -> u64 {
        let mut l = self.limiter.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        l.bytes(now_ns(), ticket, direction, n)
    }

    /// Bytes to move and charge at a time.
    pub fn piece_bytes(&self) -> u64 {
        self.piece_bytes
    }

    /// Time that this request takes beside all limits.
    pub fn latency_ns(&self, class: OpClass, bytes: u64) -> u64 {
        self.latency.as_ref().map_or(0, |l| l.next_ns(class, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn limiter(limits: &str) -> Limiter {
        let text = format!("name = \"t\"\nkind = \"object\"\n{limits}");
        Limiter::new(&LimitSet::parse(&text, "test").unwrap(), 0)
    }

    fn caller(class: OpClass, access_key: &str) -> Caller<'_> {
        Caller { class, access_key, bucket: "b", client: "c", connection: 1 }
    }

    #[test]
    fn each_access_key_has_its_own_bucket_and_metadata_counts_when_told() {
        let mut l = limiter(
            "[[limit]]\nunit='ops'\nrate_per_s=10\ncapacity=2\nscope='access-key'\ncharges=['get','head']\n",
        );
        let mut go = |class, key| matches!(l.admit(0, &caller(class, key)), Verdict::Go { .. });
        assert!(go(OpClass::Get, "a") && go(OpClass::Head, "a") && !go(OpClass::Get, "a"));
        assert!(go(OpClass::Get, "b") && go(OpClass::Put, "a"));
    }

    #[test]
    fn a_refusal_names_status_wait_and_limit_and_costs_the_other_limit_nothing() {
        let mut l = limiter(
            "[[limit]]\nname='all'\nunit='ops'\nrate_per_s=10\ncapacity=5\nanswer='503'\n\
             [[limit]]\nname='lists'\nunit='ops'\nrate_per_s=0.25\ncapacity=1\ncharges=['list']\n",
        );
        assert!(matches!(l.admit(0, &caller(OpClass::List, "a")), Verdict::Go { .. }));
        for _ in 0..3 {
            let want = Verdict::Reject { status: 429, retry_after_s: 4, limit: "lists".into() };
            assert_eq!(l.admit(0, &caller(OpClass::List, "a")), want);
        }
        let served =
            (0..10).filter(|_| matches!(l.admit(0, &caller(OpClass::Get, "a")), Verdict::Go { .. })).count();
        assert_eq!(served, 4);
        assert!(matches!(l.admit(0, &caller(OpClass::Get, "a")), Verdict::Reject { status: 503, .. }));
    }

    #[test]
    fn delays_are_a_perfect_pacer_and_a_queue_has_an_end() {
        let mut l = limiter("[[limit]]\nunit='ops'\nrate_per_s=1000\ncapacity=0\nanswer='delay'\n");
        for i in 1..=100u64 {
            let Verdict::Go { at_ns, .. } = l.admit(0, &caller(OpClass::Get, "a")) else { panic!() };
            assert_eq!(at_ns, i * S / 1_000);
        }
        let mut l =
            limiter("[[limit]]\nunit='ops'\nrate_per_s=10\ncapacity=1\nanswer='queue'\nqueue_length=3\n");
        let go =
            |l: &mut Limiter, now| matches!(l.admit(now, &caller(OpClass::Get, "a")), Verdict::Go { .. });
        assert_eq!((0..10).filter(|_| go(&mut l, 0)).count(), 4);
        assert!(go(&mut l, S / 10) && !go(&mut l, S / 10));
    }

    #[test]
    fn bytes_are_paced_as_they_move_in_the_directions_that_count() {
        let mut l = limiter("[[limit]]\nunit='bytes'\nrate_per_s='1 MB'\ncapacity=0\ndirections=['out']\n");
        let Verdict::Go { ticket, .. } = l.admit(0, &caller(OpClass::Get, "a")) else { panic!() };
        assert!(ticket.charges(Direction::Out) && !ticket.charges(Direction::In));
        assert_eq!(l.bytes(0, &ticket, Direction::Out, 500_000), S / 2);
        assert_eq!(l.bytes(0, &ticket, Direction::Out, 500_000), S);
        assert_eq!(l.bytes(0, &ticket, Direction::In, 500_000), 0);
    }

    #[test]
    fn a_bytes_limit_that_rejects_goes_into_debt_first() {
        let mut l = limiter("[[limit]]\nunit='bytes'\nrate_per_s=1000\ncapacity=1000\nanswer='429'\n");
        let Verdict::Go { ticket, .. } = l.admit(0, &caller(OpClass::Get, "a")) else { panic!() };
        assert_eq!(l.bytes(0, &ticket, Direction::Out, 5_000), 0);
        assert!(matches!(
            l.admit(3 * S, &caller(OpClass::Get, "a")),
            Verdict::Reject { retry_after_s: 2, .. }
        ));
        assert!(matches!(l.admit(4 * S + 1_000_000, &caller(OpClass::Get, "a")), Verdict::Go { .. }));
    }
}
