//! What the canned server did: counters per worker, summed when asked, so that counting costs no shared cache line.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// How late answers with a fixed delay left, in steps of a microsecond; what is later is in the last one.
#[derive(Debug)]
pub(crate) struct Late {
    steps: Vec<AtomicU64>,
    sum_ns: AtomicU64,
    max_ns: AtomicU64,
}

const LATE_STEPS: usize = 2_000;

impl Default for Late {
    fn default() -> Late {
        let steps = (0..LATE_STEPS).map(|_| AtomicU64::new(0)).collect();
        Late { steps, sum_ns: AtomicU64::new(0), max_ns: AtomicU64::new(0) }
    }
}

impl Late {
    pub fn record(&self, late_ns: u64) {
        let step = usize::try_from(late_ns / 1_000).unwrap_or(usize::MAX).min(LATE_STEPS - 1);
        add(&self.steps[step], 1);
        add(&self.sum_ns, late_ns);
        self.max_ns.fetch_max(late_ns, Ordering::Relaxed);
    }
}

/// The delays that answers really had, as the server saw them: from when it had read the request to when it began to
/// send the answer. Percentiles are to a microsecond, rounded up, and no more than the longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    pub count: u64,
    pub mean_ns: u64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
}

impl Delays {
    fn of(workers: &[Counters], delay_ns: u64) -> Delays {
        let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
        let steps: Vec<u64> =
            (0..LATE_STEPS).map(|i| workers.iter().map(|w| get(&w.late.steps[i])).sum()).collect();
        let count: u64 = steps.iter().sum();
        if count == 0 {
            return Delays::default();
        }
        let max_ns = workers.iter().map(|w| get(&w.late.max_ns)).max().unwrap_or(0);
        let at = |share: f64| {
            let rank = ((count as f64 * share).ceil() as u64).max(1);
            let mut seen = 0;
            let step = steps.iter().position(|n| {
                seen += n;
                seen >= rank
            });
            let upper_ns = step.filter(|i| i + 1 < LATE_STEPS).map_or(max_ns, |i| (i as u64 + 1) * 1_000);
            delay_ns + upper_ns.min(max_ns)
        };
        let sum_ns: u64 = workers.iter().map(|w| get(&w.late.sum_ns)).sum();
        let (p50_ns, p90_ns, p99_ns) = (at(0.5), at(0.9), at(0.99));
        Delays {
            count,
            mean_ns: delay_ns + sum_ns / count,
            p50_ns,
            p90_ns,
            p99_ns,
            max_ns: delay_ns + max_ns,
        }
    }
}

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
    pub late: Late,
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
    /// Of answers with a fixed delay.
    pub delays: Delays,
}

impl Stats {
    pub(crate) fn sum(
        workers: &[Counters],
        (in_fault_scope, faults): (u64, Vec<(String, u64)>),
        delay_ns: u64,
    ) -> Stats {
        let delays = if delay_ns > 0 { Delays::of(workers, delay_ns) } else { Delays::default() };
        let mut s = Stats { in_fault_scope, faults, delays, ..Stats::default() };
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
        let d = &self.delays;
        let _ = write!(
            out,
            "}},\"delay_ns\":{{\"count\":{},\"mean\":{},\"p50\":{},\"p90\":{},\"p99\":{},\"max\":{}}}}}",
            d.count, d.mean_ns, d.p50_ns, d.p90_ns, d.p99_ns, d.max_ns
        );
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_those_of_all_workers() {
        let workers = [Counters::default(), Counters::default()];
        for i in 0..100 {
            workers[i % 2].late.record(i as u64 * 1_000 + 1);
        }
        let d = Delays::of(&workers, 1_000_000);
        assert_eq!((d.count, d.p50_ns, d.p99_ns), (100, 1_050_000, 1_099_000));
        assert_eq!((d.mean_ns, d.max_ns), (1_049_501, 1_099_001));
        workers[0].late.record(9_000_000);
        assert_eq!(Delays::of(&workers, 1_000_000).max_ns, 10_000_000);
        assert_eq!(Delays::of(&[], 5), Delays::default());
    }
}
