//! Where slices end: at the edges of a grid that may follow another machine's clock.
//!
//! A crystal's 50 ppm are 2.2 s in twelve hours. So that slices of many machines stay slices of one grid, an edge is no multiple of a step
//! of the own clock but a point of a line, which is bent a little from time to time: slewed, never stepped. Workers look up one edge a
//! slice; they take no lock for it.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize};

/// Parts of a nanosecond that a step is told in: in a day of slices of 100 ms the error is a few nanoseconds.
const PARTS: i128 = 1 << 16;

/// The edges of a stage's slices on this machine's clock, since the run's start.
#[derive(Debug)]
pub struct SliceGrid {
    step_ns: u64,
    /// The newest, and the one before it.
    lines: [Line; 2],
    newest: AtomicUsize,
}

/// From one edge on.
#[derive(Debug, Default)]
struct Line {
    edge: AtomicU64,
    at_ns: AtomicU64,
    /// What each slice takes beyond the step, in parts of a nanosecond.
    extra: AtomicI64,
}

/// A line as it is at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GridLine {
    /// Number of its first edge: slice `n` begins at edge `n`.
    pub edge: u64,
    /// Where that edge lies, nanoseconds.
    pub at_ns: u64,
    /// What each slice takes beyond the grid's step, in 1/65536 ns.
    pub extra: i64,
    step_ns: u64,
}

impl GridLine {
    /// Edges that are multiples of the step.
    pub fn straight(step_ns: u64) -> Self {
        Self { edge: 0, at_ns: 0, extra: 0, step_ns }
    }

    /// Where an edge lies.
    pub fn edge_ns(&self, edge: u64) -> u64 {
        let ahead = i128::from(edge) - i128::from(self.edge);
        let at = i128::from(self.at_ns)
            + ahead * i128::from(self.step_ns)
            + (ahead * i128::from(self.extra)).div_euclid(PARTS);
        u64::try_from(at.max(0)).unwrap_or(u64::MAX)
    }

    /// The slice that a time is in.
    pub fn index_at(&self, now_ns: u64) -> u64 {
        let length = (i128::from(self.step_ns) * PARTS + i128::from(self.extra)).max(1);
        let since = (i128::from(now_ns) - i128::from(self.at_ns)) * PARTS;
        let near = i128::from(self.edge) + since.div_euclid(length);
        let mut index = u64::try_from(near.max(0)).unwrap_or(u64::MAX - 1);
        // Edges are rounded to whole nanoseconds, and this was not.
        while index > 0 && self.edge_ns(index) > now_ns {
            index -= 1;
        }
        while self.edge_ns(index + 1) <= now_ns {
            index += 1;
        }
        index
    }

    /// The line that leaves this one at an edge, so that `after` slices on an edge lies at `then_ns`. A slice is made longer or shorter by
    /// one in `most` at the most: what is left is for the next line.
    pub fn bent(&self, edge: u64, after: u64, then_ns: u64, most: u64) -> Self {
        let at_ns = self.edge_ns(edge);
        let straight = i128::from(at_ns) + i128::from(after) * i128::from(self.step_ns);
        let off = (i128::from(then_ns) - straight) * PARTS / i128::from(after.max(1));
        let bound = i128::from(self.step_ns) * PARTS / i128::from(most.max(1));
        let extra = i64::try_from(off.clamp(-bound, bound)).unwrap_or(0);
        Self { edge, at_ns, extra, step_ns: self.step_ns }
    }
}

impl SliceGrid {
    /// Edges that are multiples of `step_ns`.
    pub fn new(step_ns: u64) -> Self {
        Self { step_ns, lines: Default::default(), newest: AtomicUsize::new(0) }
    }

    fn line(&self, which: usize) -> GridLine {
        let l = &self.lines[which & 1];
        GridLine {
            edge: l.edge.load(Relaxed),
            at_ns: l.at_ns.load(Relaxed),
            extra: l.extra.load(Relaxed),
            step_ns: self.step_ns,
        }
    }

    /// The line that was bent last: it may begin only later.
    pub fn newest(&self) -> GridLine {
        self.line(self.newest.load(Acquire))
    }

    /// Where an edge lies. One from before the last two lines lies where the elder of them would have it.
    pub fn edge_ns(&self, edge: u64) -> u64 {
        let newest = self.newest.load(Acquire);
        let line = self.line(newest);
        if edge >= line.edge { line.edge_ns(edge) } else { self.line(newest.wrapping_add(1)).edge_ns(edge) }
    }

    /// The slice that a time is in.
    pub fn index_at(&self, now_ns: u64) -> u64 {
        let newest = self.newest.load(Acquire);
        let line = self.line(newest);
        if now_ns >= line.at_ns {
            line.index_at(now_ns)
        } else {
            self.line(newest.wrapping_add(1)).index_at(now_ns)
        }
    }

    /// From its first edge on the grid follows this line, which leaves [`Self::newest`] there. Told by one thread, while no worker is at
    /// that edge yet and all have passed the first edge of the newest: they may look while this is told.
    pub fn follow(&self, line: GridLine) {
        let newest = self.newest.load(Relaxed);
        debug_assert!(line.edge >= self.line(newest).edge, "lines follow each other");
        let elder = &self.lines[newest.wrapping_add(1) & 1];
        elder.edge.store(line.edge, Relaxed);
        elder.at_ns.store(line.at_ns, Relaxed);
        elder.extra.store(line.extra, Relaxed);
        self.newest.store(newest.wrapping_add(1) & 1, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STEP: u64 = 100_000_000;

    #[test]
    fn a_straight_grid_has_multiples_of_its_step() {
        let grid = SliceGrid::new(STEP);
        for (at_ns, index) in [(0, 0), (1, 0), (STEP - 1, 0), (STEP, 1), (12_345 * STEP + 7, 12_345)] {
            assert_eq!((grid.index_at(at_ns), grid.edge_ns(index)), (index, index * STEP));
        }
    }

    proptest! {
        #[test]
        fn edges_only_grow_whatever_it_is_told_and_a_time_is_in_its_slice(
            bends in prop::collection::vec((20u64..200, -50_000_000i64..50_000_000), 1..40),
            probes in prop::collection::vec(0u64..1_000_000_000, 20),
        ) {
            let grid = SliceGrid::new(STEP);
            let mut edge = 0;
            for (after, off_ns) in bends {
                let newest = grid.newest();
                edge += after;
                let then_ns = newest.edge_ns(edge + 100).saturating_add_signed(off_ns);
                grid.follow(newest.bent(edge, 100, then_ns, 2000));
                // One in 2,000 at the most: 50 us of 100 ms.
                let lengths = (edge - 15..edge + 15).map(|n| grid.edge_ns(n + 1) - grid.edge_ns(n));
                for length in lengths {
                    prop_assert!(length.abs_diff(STEP) <= STEP / 2000 + 1, "{}", length);
                }
                for p in &probes {
                    let at_ns = grid.edge_ns(edge - 5) + p;
                    let index = grid.index_at(at_ns);
                    prop_assert!(grid.edge_ns(index) <= at_ns && at_ns < grid.edge_ns(index + 1));
                }
            }
        }
    }

    #[test]
    fn a_line_comes_to_where_it_was_to_come() {
        let line = GridLine::straight(STEP).bent(50, 100, 150 * STEP + 300_000, 2000);
        assert_eq!(
            (line.edge_ns(50), line.edge_ns(150).abs_diff(150 * STEP + 300_000) <= 1),
            (50 * STEP, true)
        );
        // Too far for one line: as far as it may.
        let line = GridLine::straight(STEP).bent(50, 100, 151 * STEP, 2000);
        assert_eq!(line.edge_ns(150), 150 * STEP + 100 * STEP / 2000);
    }
}
