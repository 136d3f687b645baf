//! Workers' intervals, in whatever order they come, to slices of the whole stage, in order of time up to a watermark: who is
//! further behind than that holds nobody up, and what comes late keeps its own time.

use std::collections::BTreeMap;

use plimsoll_model::Interval;
use plimsoll_store::SparseInterval;

/// How many slices the watermark is behind the newest at most: 2 s of a grid of 100 ms (a choice: a display that is later is no live
/// one). Living workers hand over empty slices, too; one that is further behind is late: without a processor, or in a system call
/// that does not return.
const LAG: u64 = 20;

/// Merges what workers hand over, agent by agent. A slice is complete when every worker has handed over it or a later one, has ended, or
/// is late. What a late one hands over after that is given out as a slice of its own, with the time that it is of.
#[derive(Debug)]
pub struct GridMerge {
    /// Per worker: its agent.
    agents: Vec<u32>,
    /// Per worker: the next slice that it may still hand over; `None` when it has ended.
    next: Vec<Option<u64>>,
    /// The slice in which the stage starts: what a worker counted while it waited for the start line is of it.
    first: u64,
    newest: u64,
    /// By slice and agent, as it is stored: dense, a thousand agents' slices of two seconds have gigabytes.
    pending: BTreeMap<(u64, u32), SparseInterval>,
}

impl GridMerge {
    /// The agent of each worker, and the slice in which they start.
    pub fn new(agents: Vec<u32>, first: u64) -> Self {
        Self { next: vec![Some(first); agents.len()], agents, first, newest: first, pending: BTreeMap::new() }
    }

    /// A worker hands over its slice; each worker's slices come in order.
    pub fn offer(&mut self, worker: usize, interval: &SparseInterval) {
        let agent = self.agents[worker];
        self.next[worker] = Some(interval.index + 1);
        self.newest = self.newest.max(interval.index);
        let index = interval.index.max(self.first);
        let empty = || SparseInterval::empty(index);
        self.pending.entry((index, agent)).or_insert_with(empty).merge(interval);
    }

    /// A worker has ended and hands over nothing more.
    pub fn ended(&mut self, worker: usize) {
        self.next[worker] = None;
    }

    /// The next slice that a worker may still hand over; `None` when it has ended.
    pub fn next_of(&self, worker: usize) -> Option<u64> {
        self.next[worker]
    }

    /// The earliest slice, if it is complete, by agent: later than the one before, or a part of one that was given out already. The
    /// parts are joined by [`joined`].
    pub fn take_complete(&mut self) -> Option<Vec<(u32, SparseInterval)>> {
        let slowest = self.next.iter().flatten().min().copied().unwrap_or(u64::MAX);
        let complete_before = slowest.max(self.watermark());
        let ((index, _), _) = self.pending.first_key_value()?;
        let index = *index;
        if index >= complete_before {
            return None;
        }
        let mut parts = Vec::new();
        while let Some(entry) = self.pending.first_entry().filter(|e| e.key().0 == index) {
            let ((_, agent), part) = entry.remove_entry();
            parts.push((agent, part));
        }
        Some(parts)
    }

    /// Slices before it wait for nobody.
    fn watermark(&self) -> u64 {
        self.newest.saturating_sub(LAG)
    }

    /// How many workers are behind the watermark.
    pub fn late(&self) -> usize {
        let mark = self.watermark();
        self.next.iter().flatten().filter(|next| **next < mark).count()
    }
}

/// All agents' parts of one slice as one.
pub fn joined(parts: Vec<(u32, SparseInterval)>) -> Interval {
    let mut parts = parts.into_iter().map(|(_, part)| part);
    let mut whole = parts.next().expect("a slice has a part at least");
    parts.for_each(|part| whole.merge(&part));
    whole.to_form()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::interval::{ClientCounts, SeriesShape};
    use plimsoll_model::{OpKind, Series, SeriesId};
    use proptest::prelude::*;

    fn slice(index: u64, ok: u64) -> SparseInterval {
        let id = SeriesId { stage: 0, workload: 0, kind: OpKind::Null };
        let mut s = Series::new(id, SeriesShape::default());
        s.counts.outcomes[0] = ok;
        s.response.record(ok + 1);
        let client = ClientCounts { workers: 1, ..ClientCounts::default() };
        Interval { index, series: vec![s], client }.to_form()
    }

    fn drain(g: &mut GridMerge) -> Vec<(u64, u64, u32)> {
        let mut out = Vec::new();
        while let Some(parts) = g.take_complete() {
            let i = joined(parts);
            out.push((i.index, i.series[0].ok(), i.client.workers));
        }
        out
    }

    #[test]
    fn a_slice_waits_for_the_slowest_worker() {
        let mut g = GridMerge::new(vec![0; 2], 5);
        g.offer(0, &slice(5, 1));
        g.offer(0, &slice(6, 2));
        assert!(drain(&mut g).is_empty());
        g.offer(1, &slice(6, 10));
        assert_eq!(drain(&mut g), [(5, 1, 1), (6, 12, 2)]);
        g.offer(0, &slice(7, 1));
        g.ended(1);
        assert_eq!(drain(&mut g), [(7, 1, 1)]);
        g.ended(0);
    }

    #[test]
    fn a_late_worker_holds_nothing_up_and_what_it_brings_keeps_its_time() {
        let mut g = GridMerge::new(vec![0; 2], 0);
        g.offer(1, &slice(0, 1));
        (0..30).for_each(|i| g.offer(0, &slice(i, 1)));
        let out = drain(&mut g);
        assert_eq!(out.len() as u64, 29 - LAG);
        assert_eq!(g.late(), 1);
        g.offer(1, &slice(1, 5));
        assert_eq!(drain(&mut g), [(1, 5, 1)]);
        (0..2).for_each(|w| g.ended(w));
        assert_eq!(g.late(), 0);
        let rest = drain(&mut g);
        assert_eq!(out.iter().chain(&rest).map(|s| s.1).sum::<u64>(), 31);
        assert!(out.iter().chain(&rest).map(|s| s.0).is_sorted());
    }

    #[test]
    fn what_was_counted_before_the_start_is_of_the_first_slice() {
        let mut g = GridMerge::new(vec![0; 1], 7);
        g.offer(0, &slice(6, 3));
        g.offer(0, &slice(7, 1));
        g.ended(0);
        assert_eq!(drain(&mut g), [(7, 4, 2)]);
    }

    #[test]
    fn no_slice_is_given_another_time_however_late() {
        let mut g = GridMerge::new(vec![0; 50], 0);
        let mut by_time = BTreeMap::<u64, u64>::new();
        let mut keep = |out: Vec<(u64, u64, u32)>| {
            out.iter().for_each(|(at, ok, _)| *by_time.entry(*at).or_default() += ok)
        };
        // One after the other runs through all of its 100 slices, as where 50 threads share a core.
        for w in 0..50 {
            (0..100).for_each(|i| g.offer(w, &slice(i, i + 1)));
            keep(drain(&mut g));
        }
        (0..50).for_each(|w| g.ended(w));
        keep(drain(&mut g));
        assert_eq!(by_time, (0..100).map(|i| (i, 50 * (i + 1))).collect());
    }

    #[test]
    fn each_agent_has_its_part() {
        let mut g = GridMerge::new(vec![0, 0, 1], 0);
        (0..3).for_each(|w| g.offer(w, &slice(0, 1 << w)));
        (0..3).for_each(|w| g.ended(w));
        let parts = g.take_complete().unwrap();
        let by_agent: Vec<_> = parts.iter().map(|(a, i)| (*a, i.series[0].ok(), i.client.workers)).collect();
        assert_eq!(by_agent, [(0, 3, 2), (1, 4, 1)]);
        let whole = joined(parts);
        assert_eq!((whole.series[0].ok(), whole.client.workers), (7, 3));
    }

    proptest! {
        #[test]
        fn the_order_of_arrival_does_not_matter(order in prop::collection::vec(0usize..3, 0..60)) {
            let mut g = GridMerge::new(vec![0; 3], 0);
            let mut at = [0u64; 3];
            let mut out = Vec::new();
            for w in order {
                // Who is further behind than the grid waits for has its slices counted late, by design.
                if at[w] >= at.iter().min().unwrap() + LAG {
                    continue;
                }
                g.offer(w, &slice(at[w], w as u64 + 1));
                at[w] += 1;
                out.extend(drain(&mut g));
            }
            (0..3).for_each(|w| g.ended(w));
            out.extend(drain(&mut g));
            let truth: Vec<_> = (0..*at.iter().max().unwrap())
                .map(|i| {
                    let there: Vec<u64> = (0..3).filter(|w| at[*w] > i).map(|w| w as u64 + 1).collect();
                    (i, there.iter().sum::<u64>(), there.len() as u32)
                })
                .collect();
            prop_assert_eq!(out, truth);
        }
    }
}
