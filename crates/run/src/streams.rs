//! Where slices and marks go: a file for each agent of the run.

use plimsoll_lower::Agent;
use plimsoll_model::OpKind;
use plimsoll_store::{Mark, RunDir, SparseInterval, SparseSeries, StoreError, StreamWriter};

/// One writer per agent, in order of their numbers.
#[derive(Debug)]
pub struct Streams {
    by_agent: Vec<StreamWriter>,
    writes: u64,
}

impl Streams {
    pub fn create(run: &RunDir, roll: &[Agent], grid_ns: u64) -> Result<Self, StoreError> {
        let by_agent =
            roll.iter().map(|a| run.create_intervals(&a.name, grid_ns)).collect::<Result<_, _>>()?;
        Ok(Self { by_agent, writes: 0 })
    }

    pub fn resume(run: &RunDir, roll: &[Agent]) -> Result<Self, StoreError> {
        let by_agent = roll.iter().map(|a| run.resume_intervals(&a.name)).collect::<Result<_, _>>()?;
        Ok(Self { by_agent, writes: 0 })
    }

    fn of(&mut self, agent: u32) -> &mut StreamWriter {
        self.by_agent.get_mut(agent as usize).expect("whatever comes is of an agent of the roll")
    }

    /// A slice of one agent's workers.
    pub fn interval(&mut self, agent: u32, stage: u32, slice: &SparseInterval) -> Result<(), StoreError> {
        use OpKind::{Copy, Delete, DeleteBatch, Multipart, Put};
        let writes = |s: &&SparseSeries| matches!(s.id.kind, Put | Multipart | Copy | Delete | DeleteBatch);
        let started = slice.series.iter().filter(writes).map(|s| s.counts.started);
        self.writes = started.fold(self.writes, u64::saturating_add);
        self.of(agent).sparse(stage, slice)
    }

    /// Ops by which objects, versions or delete markers come about, warm-ups and failures among them.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// What happened to the run.
    pub fn mark(&mut self, mark: &Mark) -> Result<(), StoreError> {
        self.of(0).mark(mark)
    }

    /// What happened to one agent.
    pub fn mark_of(&mut self, agent: u32, mark: &Mark) -> Result<(), StoreError> {
        self.of(agent).mark(mark)
    }

    /// What happened to each agent, or is needed to read its file by itself; `None`: not to this one.
    pub fn mark_each(&mut self, mark: impl Fn(u32) -> Option<Mark>) -> Result<(), StoreError> {
        (0u32..).zip(&mut self.by_agent).try_for_each(|(agent, w)| mark(agent).map_or(Ok(()), |m| w.mark(&m)))
    }

    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.by_agent.iter_mut().try_for_each(StreamWriter::flush)
    }

    pub fn finish(self) -> Result<(), StoreError> {
        self.by_agent.into_iter().try_for_each(StreamWriter::finish)
    }
}
