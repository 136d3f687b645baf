//! Workers that are ready, and wait to be told when to start.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::{ArmedStage, WorkerEnd};
use plimsoll_setup::s3::HeldKeys;

use super::load::LocalLoad;
use crate::error::CrewError;
use crate::order::{Arrival, Enlisted, Load};

/// One agent's workers of a stage, ready. Dropped, they end without an op.
#[derive(Debug)]
pub struct LocalArmed {
    /// Absent: this agent has no part of the stage.
    stage: Option<ArmedStage>,
    workers: Vec<Enlisted>,
    /// What their requests are signed with.
    keys: Vec<Arc<HeldKeys>>,
}

impl LocalArmed {
    pub(super) fn new(stage: ArmedStage, workers: Vec<Enlisted>, keys: Vec<Arc<HeldKeys>>) -> Self {
        Self { stage: Some(stage), workers, keys }
    }

    pub(super) fn without_workers() -> Self {
        Self { stage: None, workers: Vec::new(), keys: Vec::new() }
    }

    /// All of them, in order.
    pub fn workers(&self) -> &[Enlisted] {
        &self.workers
    }

    /// The earliest time since the run's start at which they can begin, if they are told of it now.
    pub fn earliest_ns(&self) -> u64 {
        self.stage.as_ref().map_or(0, ArmedStage::earliest_ns)
    }

    /// Starts them at a time since the run's start, an edge of the grid, or as early as they can where that is later.
    pub fn go(self, at_ns: u64) -> Result<Box<dyn Load>, CrewError> {
        match self.stage {
            Some(stage) => Ok(Box::new(LocalLoad::new(stage.go(at_ns)?, self.workers, self.keys))),
            None => Ok(Box::new(NoLoad { started_ns: at_ns })),
        }
    }
}

/// The part of an agent that has none.
#[derive(Debug)]
struct NoLoad {
    started_ns: u64,
}

impl Load for NoLoad {
    fn started_ns(&self) -> u64 {
        self.started_ns
    }

    fn workers(&self) -> &[Enlisted] {
        &[]
    }

    fn next(&mut self, _: Duration) -> Option<Arrival> {
        None
    }

    fn recycle(&mut self, _: Arrival) {}

    fn stop(&mut self) {}

    fn abort(&mut self) {}

    fn join(self: Box<Self>) -> Vec<WorkerEnd> {
        Vec::new()
    }
}
