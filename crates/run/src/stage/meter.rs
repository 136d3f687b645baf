//! Slices to the figures of the progress display.

use std::collections::VecDeque;

use plimsoll_control::IN_VAIN;
use plimsoll_model::event::{Figures, Phase};
use plimsoll_model::{Histogram, Interval, Outcome};

/// Running figures of one stage.
#[derive(Debug)]
pub struct Meter {
    grid_ns: u64,
    /// The last second.
    recent: VecDeque<Recent>,
    phase: Phase,
    latency: Histogram,
    outcomes: [u64; Outcome::COUNT],
}

#[derive(Debug, Clone, Copy, Default)]
struct Recent {
    ok: u64,
    throttled: u64,
    /// Of attempts that succeeded, as they end; and of all, as they move.
    bytes_ok: u64,
    bytes_moved: u64,
    alive_ns: u64,
    waited_ns: u64,
    in_flight_ns: u128,
}

impl Meter {
    pub fn new(grid_ns: u64) -> Self {
        Self {
            grid_ns,
            recent: VecDeque::new(),
            phase: Phase::Warmup,
            latency: Histogram::new(),
            outcomes: [0; Outcome::COUNT],
        }
    }

    /// A new phase begins: latencies and counts start anew.
    pub fn enter(&mut self, phase: Phase) {
        if phase != self.phase {
            self.phase = phase;
            // What was measured stays in sight while the tail drains.
            if phase == Phase::Measuring {
                self.latency.clear();
                self.outcomes = [0; Outcome::COUNT];
            }
        }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    pub fn add(&mut self, slice: &Interval) {
        let mut r = Recent {
            alive_ns: slice.client.alive_ns,
            waited_ns: slice.client.waited_ns,
            in_flight_ns: slice.client.in_flight_ns,
            ..Recent::default()
        };
        for s in &slice.series {
            r.ok += s.ok();
            r.throttled += s.throttled();
            r.bytes_ok += s.counts.bytes_ok;
            r.bytes_moved += s.counts.bytes_moved;
        }
        self.add_late(slice);
        self.push(r);
    }

    /// Of a slice that was shown already: it counts in the phase, and is not of the last second.
    pub fn add_late(&mut self, slice: &Interval) {
        for s in &slice.series {
            self.latency.merge(&s.response);
            for (sum, n) in self.outcomes.iter_mut().zip(s.counts.outcomes) {
                *sum += n;
            }
        }
    }

    /// A slice in which nothing ended, and of which nothing was handed over: it is a part of the last second, too.
    pub fn pass(&mut self) {
        self.push(Recent::default());
    }

    fn push(&mut self, r: Recent) {
        let keep = (1_000_000_000 / self.grid_ns.max(1)).max(1) as usize;
        if self.recent.len() >= keep {
            self.recent.pop_front();
        }
        self.recent.push_back(r);
    }

    pub fn figures(&self) -> Figures {
        let seconds = self.recent.len() as f64 * self.grid_ns as f64 / 1e9;
        let rate = |n: u64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
        let sum = |f: fn(&Recent) -> u64| self.recent.iter().map(f).sum::<u64>();
        let (alive, waited) = (sum(|r| r.alive_ns), sum(|r| r.waited_ns));
        let in_flight: u128 = self.recent.iter().map(|r| r.in_flight_ns).sum();
        let count = |pick: fn(Outcome) -> bool| {
            Outcome::ALL.into_iter().filter(|o| pick(*o)).map(|o| self.outcomes[o.index()]).sum()
        };
        let errors = Outcome::ALL
            .into_iter()
            .filter(|o| !o.is_ok() && !o.is_throttled() && self.outcomes[o.index()] > 0)
            .map(|o| (o.name().to_owned(), self.outcomes[o.index()]))
            .collect();
        // Bytes as they move are smoother where ops are long, but the bodies of attempts that were refused or failed have moved,
        // too, and are no throughput.
        let ended: u64 = self.outcomes.iter().sum();
        let in_vain = ended - self.outcomes[Outcome::Ok.index()];
        let wasted = in_vain as f64 > IN_VAIN * ended as f64;
        let bytes = if wasted { sum(|r| r.bytes_ok) } else { sum(|r| r.bytes_moved) };
        Figures {
            ops_per_s: rate(sum(|r| r.ok)),
            throttled_per_s: rate(sum(|r| r.throttled)),
            bytes_per_s: rate(bytes),
            p50_ns: self.latency.quantile(0.5),
            p99_ns: self.latency.quantile(0.99),
            p999_ns: self.latency.quantile(0.999),
            max_ns: self.latency.max(),
            ok: count(Outcome::is_ok),
            throttled: count(Outcome::is_throttled),
            failed: count(Outcome::is_failure),
            errors,
            busy_fraction: if alive > 0 { 1.0 - waited as f64 / alive as f64 } else { 0.0 },
            in_flight: if seconds > 0.0 { in_flight as f64 / (seconds * 1e9) } else { 0.0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::interval::{ClientCounts, SeriesShape};
    use plimsoll_model::{OpKind, Series, SeriesId};

    /// 80 of 41,000 uploads pass: their 4 KiB are the throughput, and what was refused is no error.
    #[test]
    fn bytes_of_refused_attempts_are_no_throughput() {
        let mut meter = Meter::new(1_000_000_000);
        meter.enter(Phase::Measuring);
        let mut s =
            Series::new(SeriesId { stage: 0, workload: 0, kind: OpKind::Put }, SeriesShape::default());
        s.counts.outcomes[Outcome::Ok.index()] = 80;
        s.counts.outcomes[Outcome::Http429.index()] = 40_920;
        s.counts.outcomes[Outcome::Timeout.index()] = 3;
        (s.counts.bytes_ok, s.counts.bytes_moved) = (80 * 4096, 41_000 * 4096);
        meter.add(&Interval { index: 0, series: vec![s], client: ClientCounts::default() });
        let f = meter.figures();
        assert_eq!((f.ops_per_s, f.bytes_per_s, f.throttled_per_s), (80.0, 80.0 * 4096.0, 40_920.0));
        assert_eq!(
            (f.throttled, f.errors.into_iter().collect::<Vec<_>>()),
            (40_920, vec![("timeout".to_owned(), 3)])
        );
    }
}
