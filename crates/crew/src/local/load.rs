//! The engine's running stage, in this process.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::{Next, RunningStage, SliceGrid, WorkerEnd};
use plimsoll_setup::s3::{EXPIRED_KEYS, HeldKeys};

use crate::order::{Arrival, Enlisted, Load};

#[derive(Debug)]
pub struct LocalLoad {
    running: RunningStage,
    workers: Vec<Enlisted>,
    /// What its requests are signed with.
    keys: Vec<Arc<HeldKeys>>,
}

impl LocalLoad {
    pub fn new(running: RunningStage, workers: Vec<Enlisted>, keys: Vec<Arc<HeldKeys>>) -> Self {
        Self { running, workers, keys }
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
        let mut ends = self.running.join();
        for text in self.keys.iter().filter_map(|k| k.expired()) {
            ends.iter_mut().for_each(|e| e.notes.push((EXPIRED_KEYS.into(), text.clone())));
        }
        ends
    }
}
