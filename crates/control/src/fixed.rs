//! The simplest controller: a list of stages, in order.

use plimsoll_model::plan::Stage;

use crate::controller::{ControlStep, Controller, Observation};
use crate::error::ControlError;

/// Nothing that is seen changes it.
#[derive(Debug)]
pub struct Fixed {
    pub(super) stages: Vec<Stage>,
    pub(super) next: usize,
}

impl Fixed {
    /// In the order in which they are run.
    pub fn new(stages: Vec<Stage>) -> Self {
        Self { stages, next: 0 }
    }
}

impl Controller for Fixed {
    fn next(&mut self, _seen: &[Observation]) -> ControlStep {
        let step =
            self.stages.get(self.next).map_or(ControlStep::Done, |s| ControlStep::Run(Box::new(s.clone())));
        self.next += 1;
        step
    }

    fn total(&self) -> Option<u32> {
        Some(self.stages.len() as u32)
    }

    fn resume(&mut self, completed: &[Stage]) -> Result<(), ControlError> {
        let same = completed.iter().zip(&self.stages).all(|(a, b)| is_same(a, b));
        if !same || completed.len() > self.stages.len() {
            return Err(ControlError::input(
                "the stages already run are not those of the plan",
                "Start a new run",
            ));
        }
        self.next = completed.len();
        Ok(())
    }
}

/// Whether a stage that was carried out is this one. Objects that were there already are as many, and of the sizes, as were found.
fn is_same(done: &Stage, planned: &Stage) -> bool {
    let mut done = done.clone();
    for (d, p) in done.workloads.iter_mut().zip(&planned.workloads).filter(|(d, _)| d.existing().is_some()) {
        d.size = p.size.clone();
        if let (Some(d), Some(p)) = (&mut d.object, &p.object) {
            d.objects = p.objects;
        }
    }
    done == *planned
}
