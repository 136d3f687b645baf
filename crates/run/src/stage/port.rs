//! The engine's running stage, as the collectors here use it.

use std::time::Duration;

use plimsoll_engine::{Next, Output, RunningStage, WorkerEnd};

/// What came next; the end is `None`.
#[derive(Debug)]
pub enum Step {
    Output(Output),
    Nothing,
}

#[derive(Debug)]
pub struct Port(RunningStage);

impl Port {
    pub fn new(running: RunningStage) -> Self {
        Self(running)
    }

    /// `None`: all workers have ended, and all of their output was taken.
    pub fn next(&mut self, wait: Duration) -> Option<Step> {
        match self.0.next(wait) {
            Next::Output(output) => Some(Step::Output(output)),
            Next::Nothing => Some(Step::Nothing),
            Next::Ended => None,
        }
    }

    pub fn recycle(&self, output: Output) {
        self.0.recycle(output);
    }

    pub fn stop(&self) {
        self.0.stop();
    }

    pub fn abort(&self) {
        self.0.abort();
    }

    pub fn join(self) -> Vec<WorkerEnd> {
        self.0.join()
    }
}
