//! The simplest controller: a list of stages, in order.

use plimsoll_model::plan::Stage;

use crate::controller::{Controller, Observation, Step};
use crate::error::ControlError;

#[derive(Debug)]
pub struct Fixed {
    pub(super) stages: Vec<Stage>,
    pub(super) next: usize,
}

impl Fixed {
    pub fn new(stages: Vec<Stage>) -> Self {
        Self { stages, next: 0 }
    }
}

impl Controller for Fixed {
    fn next(&mut self, _seen: &[Observation]) -> Step {
        let step = self.stages.get(self.next).map_or(Step::Done, |s| Step::Run(Box::new(s.clone())));
        self.next += 1;
        step
    }

    fn total(&self) -> Option<u32> {
        Some(self.stages.len() as u32)
    }

    fn resume(&mut self, completed: &[Stage]) -> Result<(), ControlError> {
        let same = completed.iter().zip(&self.stages).all(|(a, b)| a == b);
        if !same || completed.len() > self.stages.len() {
            return Err(ControlError::input(
                "the stages that were run are not those of the plan",
                "Start a new run",
            ));
        }
        self.next = completed.len();
        Ok(())
    }
}
