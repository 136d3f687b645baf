//! The engine's running stage, as the collectors here use it: what is not followed to its end is cancelled.

use std::time::Duration;

use plimsoll_engine::{Next, Output, RunningStage, WorkerEnd};

/// What came next; the end is `None`.
#[derive(Debug)]
pub enum Step {
    Output(Output),
    Nothing,
}

/// Present until it is joined.
#[derive(Debug)]
pub struct Port(Option<RunningStage>);

impl Port {
    pub fn new(running: RunningStage) -> Self {
        Self(Some(running))
    }

    /// `None`: all workers have ended, and all of their output was taken.
    pub fn next(&mut self, wait: Duration) -> Option<Step> {
        match self.0.as_ref()?.next(wait) {
            Next::Output(output) => Some(Step::Output(output)),
            Next::Nothing => Some(Step::Nothing),
            Next::Ended => None,
        }
    }

    pub fn recycle(&self, output: Output) {
        if let Some(running) = &self.0 {
            running.recycle(output);
        }
    }

    pub fn stop(&self) {
        if let Some(running) = &self.0 {
            running.stop();
        }
    }

    pub fn abort(&self) {
        if let Some(running) = &self.0 {
            running.abort();
        }
    }

    pub fn join(mut self) -> Vec<WorkerEnd> {
        self.0.take().map(RunningStage::join).unwrap_or_default()
    }
}

impl Drop for Port {
    /// The collector broke off (a full disk): the load must not go on behind its back, into the cleanup.
    fn drop(&mut self) {
        if let Some(running) = self.0.take() {
            running.abort();
            running.join();
        }
    }
}
