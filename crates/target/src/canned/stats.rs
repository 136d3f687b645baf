//! What the canned server did: counters per worker, summed when asked, so that counting costs no shared cache line.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one worker.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub connections: AtomicU64,
    pub get: AtomicU64,
    pub head: AtomicU64,
    pub put: AtomicU64,
    pub post: AtomicU64,
    pub delete: AtomicU64,
    pub list: AtomicU64,
    pub other: AtomicU64,
    pub throttled: AtomicU64,
    pub bytes_in: AtomicU64,
    pub bytes_out: AtomicU64,
}

/// Adds without an ordering: these are counts, read by `/__stats` only.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

/// Totals since the start. Requests to `/__stats` are not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub connections: u64,
    pub requests: u64,
    pub get: u64,
    pub head: u64,
    pub put: u64,
    pub post: u64,
    pub delete: u64,
    pub list: u64,
    pub other: u64,
    /// Requests refused by the limiter (429 or 503).
    pub throttled: u64,
    /// Body bytes received and sent.
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Requests that the fault shares are of.
    pub in_fault_scope: u64,
    /// Faults dealt, by kind.
    pub faults: Vec<(String, u64)>,
}

impl Stats {
    pub(crate) fn sum(workers: &[Counters], (in_fault_scope, faults): (u64, Vec<(String, u64)>)) -> Stats {
        let mut s = Stats { in_fault_scope, faults, ..Stats::default() };
        for w in workers {
            let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
            s.connections += get(&w.connections);
            s.get += get(&w.get);
            s.head += get(&w.head);
            s.put += get(&w.put);
            s.post += get(&w.post);
            s.delete += get(&w.delete);
            s.list += get(&w.list);
            s.other += get(&w.other);
            s.throttled += get(&w.throttled);
            s.bytes_in += get(&w.bytes_in);
            s.bytes_out += get(&w.bytes_out);
        }
        s.requests = s.get + s.head + s.put + s.post + s.delete + s.list + s.other;
        s
    }

    /// One JSON object, as `/__stats` answers it.
    pub fn to_json(&self) -> String {
        let mut out = String::from("{");
        let fields = [
            ("connections", self.connections),
            ("requests", self.requests),
            ("get", self.get),
            ("head", self.head),
            ("put", self.put),
            ("post", self.post),
            ("delete", self.delete),
            ("list", self.list),
            ("other", self.other),
            ("throttled", self.throttled),
            ("bytes_in", self.bytes_in),
            ("bytes_out", self.bytes_out),
            ("in_fault_scope", self.in_fault_scope),
        ];
        for (name, n) in fields {
            let _ = write!(out, "\"{name}\":{n},");
        }
        out.push_str("\"faults\":{");
        for (i, (kind, n)) in self.faults.iter().enumerate() {
            let _ = write!(out, "{}\"{kind}\":{n}", if i > 0 { "," } else { "" });
        }
        out.push_str("}}");
        out
    }
}
