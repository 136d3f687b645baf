//! A sweep: every op at every size and concurrency, repeated, in random order.
//!
//! The order is randomised in blocks: each repeat goes once through all cells before the next begins. So
//! a drift of the system under test falls on all cells alike, and a killed sweep has whole repeats.

use plimsoll_model::OpKind;
use plimsoll_model::plan::{Cell, SizeDist, Stage};
use plimsoll_model::units::Size;
use plimsoll_stats::rng::Rng;

use super::fixed::Fixed;
use crate::controller::{ControlStep, Controller, Observation};
use crate::error::ControlError;

/// All cells, each in every repeat.
#[derive(Debug)]
pub struct Sweep {
    /// In the order in which they are run.
    list: Fixed,
}

impl Sweep {
    /// Without concurrencies: the template's own.
    pub fn new(
        template: &Stage,
        ops: &[OpKind],
        sizes: &[Size],
        concurrencies: &[u32],
        repeat: u32,
        seed: u64,
    ) -> Self {
        let own: Vec<u32> = template.workloads.iter().take(1).map(|w| w.concurrency).collect();
        let concurrencies = if concurrencies.is_empty() { &own } else { concurrencies };
        let mut cells = Vec::new();
        for op in ops {
            for size in sizes {
                cells.extend(concurrencies.iter().map(|c| (*op, *size, *c)));
            }
        }
        Self::of_cells(template, &cells, repeat, seed)
    }

    /// These cells, each `repeat` times.
    pub fn of_cells(template: &Stage, cells: &[(OpKind, Size, u32)], repeat: u32, seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x5377_6565_7021);
        let mut stages = Vec::with_capacity(cells.len() * repeat as usize);
        for repeat in 0..repeat {
            let mut order: Vec<usize> = (0..cells.len()).collect();
            rng.shuffle(&mut order);
            stages.extend(order.into_iter().map(|i| stage_of(template, cells[i], i as u32, repeat)));
        }
        Self { list: Fixed::new(stages) }
    }
}

/// The template with one op, one size and one concurrency in each of its workloads.
pub(super) fn stage_of(template: &Stage, cell: (OpKind, Size, u32), index: u32, repeat: u32) -> Stage {
    let (op, size, concurrency) = cell;
    let mut stage = template.clone();
    stage.cell = Some(Cell { index, repeat });
    stage.name = Some(format!("{op} {size}"));
    for w in &mut stage.workloads {
        w.name = format!("{op} {size} c{concurrency}");
        w.mix = [(op, 1)].into();
        w.size = SizeDist::Fixed(size);
        w.concurrency = concurrency;
    }
    stage
}

impl Controller for Sweep {
    fn next(&mut self, seen: &[Observation]) -> ControlStep {
        self.list.next(seen)
    }

    fn total(&self) -> Option<u32> {
        self.list.total()
    }

    fn resume(&mut self, completed: &[Stage]) -> Result<(), ControlError> {
        let cell = |s: &Stage| s.cell.as_ref().map(|c| (c.index, c.repeat));
        let done: Vec<_> = completed.iter().map(cell).collect();
        let before = self.list.stages.len();
        self.list.stages.retain(|s| !done.contains(&cell(s)));
        if before - self.list.stages.len() != completed.len() {
            return Err(ControlError::input(
                "the cells already run are not those of the plan",
                "Start a new run",
            ));
        }
        self.list.next = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::Plan;

    const PLAN: &str = r#"
version = 1
seed = 3
[targets.n]
kind = "null"
[controller]
kind = "sweep"
ops = ["put", "get"]
sizes = ["4KB", "1MB"]
concurrencies = [1, 16]
repeat = 3
[controller.template]
[[controller.template.workload]]
name = "w"
mix = { put = 1 }
"#;

    fn all(plan: &Plan, completed: &[Stage]) -> Vec<Stage> {
        let mut c = super::super::of_plan(plan).unwrap();
        c.resume(completed).unwrap();
        std::iter::from_fn(|| match c.next(&[]) {
            ControlStep::Run(s) => Some(*s),
            _ => None,
        })
        .collect()
    }

    #[test]
    fn every_cell_once_a_repeat_in_an_order_that_the_seed_fixes() {
        let plan = Plan::from_toml(PLAN).unwrap();
        let stages = all(&plan, &[]);
        assert_eq!(stages.len(), 24);
        for block in stages.chunks(8) {
            let mut cells: Vec<u32> = block.iter().map(|s| s.cell.as_ref().unwrap().index).collect();
            assert_ne!(cells, (0..8).collect::<Vec<_>>(), "the order is random");
            cells.sort_unstable();
            assert_eq!(cells, (0..8).collect::<Vec<_>>());
        }
        assert_eq!(all(&plan, &[]), stages);
    }

    #[test]
    fn a_resumed_sweep_does_the_rest_and_nothing_twice() {
        let plan = Plan::from_toml(PLAN).unwrap();
        let stages = all(&plan, &[]);
        assert_eq!(all(&plan, &stages[..7]), stages[7..]);
        assert!(all(&plan, &stages).is_empty());
        let mut c = super::super::of_plan(&plan).unwrap();
        let mut foreign = stages[0].clone();
        foreign.cell = Some(Cell { index: 99, repeat: 0 });
        assert!(c.resume(&[foreign]).is_err());
    }
}
