//! The engine's running stage, in this process.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::{Next, RunningStage, SliceGrid, WorkerEnd};

use crate::order::{Arrival, Enlisted, Load};

#[derive(Debug)]
pub struct LocalLoad {
    running: RunningStage,
    workers: Vec<Enlisted>,
}

impl LocalLoad {
    pub fn new(running: RunningStage, workers: Vec<Enlisted>) -> Self {
        Self { running, workers }
    }
}

impl Load for LocalLoad {
    fn started_ns(&self) -> u64 {
        self.running.started_ns()
    }

    fn workers(&self) -> &[Enlisted] {
        &self.workers
    }

    fn grid(&self) -> Option<Arc<SliceGrid>> {
        Some(Arc::clone(self.running.grid()))
    }

    fn next(&mut self, wait: Duration) -> Option<Arrival> {
        match self.running.next(wait) {
            Next::Output(output) => Some(Arrival::Output(output)),
            Next::Nothing => Some(Arrival::Nothing),
            Next::Ended => None,
        }
    }

    fn recycle(&mut self, taken: Arrival) {
        if let Arrival::Output(output) = taken {
            self.running.recycle(output);
        }
    }

    fn stop(&mut self) {
        self.running.stop();
    }

    fn abort(&mut self) {
        self.running.abort();
    }

    fn join(self: Box<Self>) -> Vec<WorkerEnd> {
        self.running.join()
    }
}
