//! A long run that reports cliffs as they come.

use plimsoll_model::plan::Stage;
use plimsoll_model::units::Span;
use plimsoll_stats::bucket::{self, FitOptions};

use super::{Controller, Fixed, Observation, Slice, Step};
use crate::error::RunError;

/// Seconds between two looks at the whole series, at first; a look takes time that grows with the series.
const LOOK_EVERY_S: usize = 15;
/// At most so many points are looked at: of hours, sums of several seconds.
const MOST_POINTS: usize = 7200;

#[derive(Debug)]
pub struct Watch {
    stages: Fixed,
    slice_s: f64,
    /// Slices of the second that is open, and the rates of the ones before.
    open: Vec<Slice>,
    ops_per_s: Vec<f64>,
    next_look: usize,
    told: usize,
    remark: Option<String>,
}

impl Watch {
    pub fn new(mut stage: Stage, duration: Span, grid: Span) -> Self {
        for w in &mut stage.workloads {
            w.stop.duration = Some(duration);
        }
        Self {
            stages: Fixed::new(vec![stage]),
            slice_s: grid.0.as_secs_f64(),
            open: Vec::new(),
            ops_per_s: Vec::new(),
            next_look: 2 * LOOK_EVERY_S,
            told: 0,
            remark: None,
        }
    }

    fn look(&mut self) {
        let n = self.ops_per_s.len();
        // Doubling steps keep the cost of all looks together in proportion to the length of the run.
        self.next_look = n + LOOK_EVERY_S.max(n / 20);
        let bin = n.div_ceil(MOST_POINTS).max(1);
        let x: Vec<f64> =
            self.ops_per_s.chunks_exact(bin).map(|c| c.iter().sum::<f64>() / bin as f64).collect();
        let fit = bucket::fit(&x, bin as f64, &FitOptions::default());
        if fit.tiers.len() > self.told {
            self.told = fit.tiers.len();
            if let Some(t) = fit.tiers.last() {
                self.remark = Some(format!(
                    "cliff at {:.0} s: from {:.0} to {:.0} ops/s, after {:.0} ops beyond that rate",
                    t.cliff_s, t.before, t.rate, t.capacity
                ));
            }
        }
    }
}

impl Controller for Watch {
    fn next(&mut self, seen: &[Observation]) -> Step {
        self.stages.next(seen)
    }

    fn slice(&mut self, slice: &Slice) -> bool {
        self.open.push(*slice);
        let length_s = self.open.len() as f64 * self.slice_s;
        if length_s >= 1.0 - self.slice_s / 2.0 {
            let ok: u64 = self.open.iter().map(|s| s.ok).sum();
            self.ops_per_s.push(ok as f64 / length_s);
            self.open.clear();
            if self.ops_per_s.len() >= self.next_look {
                self.look();
            }
        }
        true
    }

    fn remark(&mut self) -> Option<String> {
        self.remark.take()
    }

    fn total(&self) -> Option<u32> {
        self.stages.total()
    }

    fn resume(&mut self, completed: &[Stage]) -> Result<(), RunError> {
        self.stages.resume(completed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Plan;

    #[test]
    fn a_cliff_is_told_once_and_soon() {
        let text = "version = 1\n[targets.n]\nkind = \"null\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = { null = 1 }\n";
        let stage = Plan::from_toml(text).unwrap().stages.remove(0);
        let grid = Span(std::time::Duration::from_millis(100));
        let mut w = Watch::new(stage, Span(std::time::Duration::from_secs(3600)), grid);
        let mut told = Vec::new();
        for i in 0..6000u64 {
            // 100 ops a slice for a minute, then 20.
            let noise = i * 7919 % 5;
            let ok = if i < 600 { 98 + noise } else { 18 + noise };
            assert!(w.slice(&Slice { ok, ..Slice::default() }));
            told.extend(w.remark().map(|t| (i, t)));
        }
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].0 < 1200 && told[0].1.contains("cliff at 60 s"), "{told:?}");
    }
}
