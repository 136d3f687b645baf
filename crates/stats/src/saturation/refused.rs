//! Rungs at which a limiter refuses attempts: from which on, and what is left below them.

use super::{Point, REFUSED, SaturationSearch};
use crate::math;

/// Slots that back off are refused rarely, and pause much of their time: from this share of it on a limiter is at work (a choice: the
/// same as of attempts; a single refusal holds one slot of many back for a moment).
const HELD_BACK: f64 = 0.01;

impl Point {
    pub(super) fn refused(&self) -> f64 {
        math::mean(&self.seen.iter().map(|o| o.refused).collect::<Vec<_>>())
    }

    fn is_refused(&self) -> bool {
        let held_back = math::mean(&self.seen.iter().map(|o| o.held_back).collect::<Vec<_>>());
        self.refused() >= REFUSED || held_back >= HELD_BACK
    }
}

impl SaturationSearch {
    /// The least concurrency from which on all rungs were refused.
    pub(super) fn refused_from(&self) -> Option<u32> {
        self.points.iter().rev().take_while(|p| p.is_refused()).last().map(|p| p.concurrency)
    }

    /// The largest concurrency below those; none: nothing was refused, or everything.
    pub(super) fn most_unrefused(&self) -> Option<u32> {
        let from = self.refused_from()?;
        self.points.iter().rfind(|p| p.concurrency < from).map(|p| p.concurrency)
    }

    /// Half of the least that was tried, where all that were tried were refused.
    pub(super) fn below_all_refused(&self) -> Option<u32> {
        let from = self.refused_from().filter(|_| self.most_unrefused().is_none())?;
        Some(from / 2)
    }

    /// Whether the last two rungs were refused, and one before them was not: more in flight are only refused more.
    pub(super) fn is_refused_again(&self) -> bool {
        let refused = self.points.iter().rev().take_while(|p| p.is_refused()).count();
        refused >= 2 && refused < self.points.len()
    }
}
