//! How workers ended, as it is told: the engine's own types know no wire.

use plimsoll_engine::{EngineError, FirstError, Mismatch, RingUse, StopCause, WorkerEnd};
use plimsoll_model::{OpKind, Outcome, WorkerId};
use serde::{Deserialize, Serialize};

/// [`WorkerEnd`] of a worker of the agent that tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndTold {
    worker: u16,
    stage: u32,
    workload: u16,
    ring: Option<[String; 3]>,
    error: Option<String>,
    cause: Cause,
    /// Started, stopped, last submission, finished.
    times_ns: [u64; 4],
    /// Awoke at its start.
    #[serde(default)]
    began_ns: u64,
    ops: u64,
    abandoned: u32,
    /// Mismatches, crossed reads, unchecked bodies, unconfirmed uploads.
    verified: [u64; 4],
    /// Object, offset, expected, found.
    mismatches: Vec<(String, u64, String, String)>,
    /// Outcome, kind, text.
    errors: Vec<(String, OpKind, String)>,
    synced_through: u64,
    notes: Vec<(String, String)>,
    ring_syscalls: u64,
    starved_slices: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Cause {
    Deadline,
    Ops,
    Bytes,
    Asked,
    Aborted,
    Failed,
}

impl From<StopCause> for Cause {
    fn from(c: StopCause) -> Self {
        match c {
            StopCause::Deadline => Self::Deadline,
            StopCause::Ops => Self::Ops,
            StopCause::Bytes => Self::Bytes,
            StopCause::Asked => Self::Asked,
            StopCause::Aborted => Self::Aborted,
            StopCause::Failed => Self::Failed,
        }
    }
}

impl From<Cause> for StopCause {
    fn from(c: Cause) -> Self {
        match c {
            Cause::Deadline => Self::Deadline,
            Cause::Ops => Self::Ops,
            Cause::Bytes => Self::Bytes,
            Cause::Asked => Self::Asked,
            Cause::Aborted => Self::Aborted,
            Cause::Failed => Self::Failed,
        }
    }
}

impl From<&WorkerEnd> for EndTold {
    fn from(e: &WorkerEnd) -> Self {
        let mismatch = |m: &Mismatch| (m.object.clone(), m.offset_bytes, m.expected.clone(), m.found.clone());
        let error = |f: &FirstError| (f.outcome.name().to_owned(), f.kind, f.text.clone());
        Self {
            worker: e.worker.worker,
            stage: e.stage,
            workload: e.workload,
            ring: e.ring.as_ref().map(|r| [r.name.clone(), r.why.clone(), r.detail.clone()]),
            error: e.error.as_ref().map(ToString::to_string),
            cause: e.cause.into(),
            times_ns: [e.started_ns, e.stopped_ns, e.last_submit_ns, e.finished_ns],
            began_ns: e.began_ns,
            ops: e.ops,
            abandoned: e.abandoned,
            verified: [e.mismatches, e.crossed_reads, e.unchecked_bodies, e.unconfirmed_uploads],
            mismatches: e.first_mismatches.iter().map(mismatch).collect(),
            errors: e.errors.iter().map(error).collect(),
            synced_through: e.synced_through,
            notes: e.notes.clone(),
            ring_syscalls: e.ring_syscalls,
            starved_slices: e.starved_slices,
        }
    }
}

impl EndTold {
    /// Of a worker of which nothing is known but why.
    pub fn broken(worker: u16, why: &str) -> Self {
        Self {
            worker,
            stage: 0,
            workload: 0,
            ring: None,
            error: Some(why.to_owned()),
            cause: Cause::Failed,
            times_ns: [0; 4],
            began_ns: 0,
            ops: 0,
            abandoned: 0,
            verified: [0; 4],
            mismatches: Vec::new(),
            errors: Vec::new(),
            synced_through: 0,
            notes: Vec::new(),
            ring_syscalls: 0,
            starved_slices: 0,
        }
    }

    /// One more fact.
    pub fn note(&mut self, name: &str, value: &str) {
        self.notes.push((name.to_owned(), value.to_owned()));
    }

    /// As the conductor takes it, of the agent of this number.
    pub fn of_agent(self, agent: u32) -> WorkerEnd {
        let outcome = |name: &str| Outcome::ALL.into_iter().find(|o| o.name() == name);
        let ring = |[name, why, detail]: [String; 3]| RingUse { name, why, detail };
        let mismatch =
            |(object, offset_bytes, expected, found)| Mismatch { object, offset_bytes, expected, found };
        let error = |(name, kind, text): (String, OpKind, String)| {
            Some(FirstError { outcome: outcome(&name)?, kind, text })
        };
        let [started_ns, stopped_ns, last_submit_ns, finished_ns] = self.times_ns;
        let [mismatches, crossed_reads, unchecked_bodies, unconfirmed_uploads] = self.verified;
        WorkerEnd {
            worker: WorkerId { agent, worker: self.worker },
            stage: self.stage,
            workload: self.workload,
            ring: self.ring.map(ring),
            // Whatever it was there, here it is what the agent says.
            error: self.error.map(EngineError::Target),
            cause: self.cause.into(),
            started_ns,
            began_ns: self.began_ns,
            stopped_ns,
            last_submit_ns,
            finished_ns,
            ops: self.ops,
            abandoned: self.abandoned,
            mismatches,
            crossed_reads,
            unchecked_bodies,
            unconfirmed_uploads,
            first_mismatches: self.mismatches.into_iter().map(mismatch).collect(),
            errors: self.errors.into_iter().filter_map(error).collect(),
            synced_through: self.synced_through,
            notes: self.notes,
            ring_syscalls: self.ring_syscalls,
            starved_slices: self.starved_slices,
        }
    }
}
