//! An agent's record and what was fetched of its own, as one: of each slice the one in which more of its workers are. Both are parts of the
//! same stream from its beginning, so that this is their union.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use plimsoll_crew::FromAgent;
use plimsoll_store::{Mark, Record, RunDir, SparseInterval, StoreError, StreamReader, StreamWriter};

use super::{KILLED, Lacking, header_of};
use crate::stage::grid::GridMerge;

/// What comes of one agent, while it comes.
#[derive(Debug)]
pub struct Fetching {
    own: PathBuf,
    fetched: PathBuf,
    replaced: PathBuf,
    writer: StreamWriter,
    grids: BTreeMap<u32, GridMerge>,
    workers: BTreeMap<u32, u32>,
    /// Slices that came, by stage and worker: of each grid's slice one, and one more where it came late.
    came: BTreeMap<(u32, u16), u64>,
    grid_ns: u64,
}

/// (stage, slice).
type Place = (u32, u64);

/// A slice as far as two of them are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Weight {
    workers: u64,
    ops: u64,
}

impl Weight {
    fn add(&mut self, slice: &SparseInterval) {
        self.workers += u64::from(slice.client.workers);
        let ops = slice.series.iter().fold(0u64, |n, s| n.saturating_add(s.counts.started));
        self.ops = self.ops.saturating_add(ops);
    }
}

/// What is to be written.
#[derive(Debug)]
pub struct Merged {
    own: PathBuf,
    fetched: PathBuf,
    replaced: PathBuf,
    /// Slices that are taken from what was fetched, and the ops that the record did not have.
    better: BTreeMap<Place, u64>,
    /// End of the last slice of each stage, as recorded before, and with what was fetched.
    had_until_ns: BTreeMap<u32, u64>,
    until_ns: BTreeMap<u32, u64>,
}

impl Fetching {
    pub fn new(run: &RunDir, of: &Lacking) -> Result<Self, StoreError> {
        let own = run.intervals_path(&of.agent);
        let header = header_of(&own)?;
        let grid_ns = header.grid_ns;
        let [fetched, replaced] = run.merge_paths(&of.agent)?;
        let writer = StreamWriter::create(&fetched, &header)?;
        let mut grids = BTreeMap::new();
        for (stage, lacking) in &of.stages {
            let agents = vec![of.number; lacking.workers as usize];
            grids.insert(*stage, GridMerge::new(agents, lacking.start_ns / grid_ns.max(1)));
        }
        let workers = of.stages.iter().map(|(stage, l)| (*stage, l.workers)).collect();
        Ok(Self { own, fetched, replaced, writer, grids, workers, came: BTreeMap::new(), grid_ns })
    }

    /// An output of a stage, in its order. Ops are traced live or not at all.
    pub fn take(&mut self, stage: u32, came: FromAgent, latest: u64) -> Result<(), StoreError> {
        let FromAgent::Interval { worker, interval } = came else { return Ok(()) };
        let (Some(grid), Some(workers)) = (self.grids.get_mut(&stage), self.workers.get(&stage)) else {
            return Ok(());
        };
        let came = self.came.entry((stage, worker.worker)).or_default();
        *came += 1;
        if u32::from(worker.worker) >= *workers || interval.index > latest || *came > latest.saturating_mul(2)
        {
            return Err(StoreError::Record("slice of an agent's own record"));
        }
        grid.offer(usize::from(worker.worker), &interval);
        self.store(stage)
    }

    fn store(&mut self, stage: u32) -> Result<(), StoreError> {
        let Some(grid) = self.grids.get_mut(&stage) else { return Ok(()) };
        while let Some(parts) = grid.take_complete() {
            // All of it is of one agent.
            for (_, slice) in parts {
                self.writer.sparse(stage, &slice)?;
            }
        }
        Ok(())
    }

    /// Nothing more comes. Of stages that did not come whole nothing is taken.
    pub fn finish(mut self, whole: &[u32]) -> Result<Merged, StoreError> {
        let stages: Vec<u32> = self.grids.keys().copied().collect();
        for stage in stages {
            if let Some(grid) = self.grids.get_mut(&stage) {
                (0..self.workers[&stage] as usize).for_each(|w| grid.ended(w));
            }
            self.store(stage)?;
        }
        self.writer.finish()?;
        let wanted: BTreeSet<u32> = self.workers.keys().copied().collect();
        let had = weights(&self.own, &wanted)?;
        let got = weights(&self.fetched, &whole.iter().copied().collect())?;
        let mut better = BTreeMap::new();
        for (place, weight) in &got {
            let had = had.get(place).copied().unwrap_or_default();
            if weight.workers > had.workers {
                better.insert(*place, weight.ops.saturating_sub(had.ops));
            }
        }
        let end_ns = |index: u64| index.saturating_add(1).saturating_mul(self.grid_ns);
        let last = |of: &mut dyn Iterator<Item = &Place>| {
            let mut last: BTreeMap<u32, u64> = BTreeMap::new();
            for (stage, index) in of {
                let until = last.entry(*stage).or_default();
                *until = (*until).max(end_ns(*index));
            }
            last
        };
        let had_until_ns = last(&mut had.keys());
        let until_ns = last(&mut had.keys().chain(better.keys()));
        let Self { own, fetched, replaced, .. } = self;
        Ok(Merged { own, fetched, replaced, better, had_until_ns, until_ns })
    }
}

fn weights(path: &Path, stages: &BTreeSet<u32>) -> Result<BTreeMap<Place, Weight>, StoreError> {
    let mut all: BTreeMap<Place, Weight> = BTreeMap::new();
    let mut reader = StreamReader::open(path)?;
    while let Some(record) = reader.next()? {
        if let Record::Interval { stage, interval } = record
            && stages.contains(&stage)
        {
            all.entry((stage, interval.index)).or_default().add(&interval);
        }
    }
    Ok(all)
}

impl Merged {
    /// How many slices come from what was fetched.
    pub fn slices(&self) -> u64 {
        self.better.len() as u64
    }

    /// And ops that were not recorded before.
    pub fn ops(&self) -> u64 {
        self.better.values().fold(0, |n, ops| n.saturating_add(*ops))
    }

    pub fn slices_of(&self, stage: u32) -> u64 {
        self.better.keys().filter(|(s, _)| *s == stage).count() as u64
    }

    /// End of the last slice that was recorded before.
    pub fn had_until_ns(&self, stage: u32) -> u64 {
        self.had_until_ns.get(&stage).copied().unwrap_or(0)
    }

    /// End of the last slice that there is.
    pub fn until_ns(&self, stage: u32) -> u64 {
        self.until_ns.get(&stage).copied().unwrap_or(0)
    }

    /// Writes the record anew, and puts it in the place of the old one as a whole. `marks`: by stage, what follows its slices.
    pub fn write(
        &self,
        run: &RunDir,
        agent: &str,
        marks: &BTreeMap<u32, Vec<Mark>>,
    ) -> Result<(), StoreError> {
        let mut writer = StreamWriter::create(&self.replaced, &header_of(&self.own)?)?;
        let mut reader = StreamReader::open(&self.own)?;
        let mut open: Option<u32> = None;
        while let Some(record) = reader.next()? {
            match record {
                Record::Interval { stage, interval } => {
                    if !self.better.contains_key(&(stage, interval.index)) {
                        writer.sparse(stage, &interval)?;
                    }
                }
                Record::Mark(mark) => {
                    if let Mark::StageStart { stage, .. } = &mark {
                        self.end_stage(open.replace(*stage), marks, &mut writer)?;
                    }
                    if !is_replaced(&mark, marks) {
                        writer.mark(&mark)?;
                    }
                }
                Record::Sample(_) | Record::Scrape(_) => {}
                // A newer version wrote it: what cannot be read cannot be written, either.
                Record::Unknown(_) => {
                    let problem = format!("agent {agent}: a newer version wrote it, and has to collect it");
                    return Err(StoreError::Content { path: run.path().to_owned(), problem });
                }
            }
        }
        self.end_stage(open, marks, &mut writer)?;
        writer.finish()?;
        std::fs::rename(&self.replaced, &self.own).map_err(StoreError::io("replace", &self.own))
    }

    fn end_stage(
        &self,
        stage: Option<u32>,
        marks: &BTreeMap<u32, Vec<Mark>>,
        writer: &mut StreamWriter,
    ) -> Result<(), StoreError> {
        let Some((stage, marks)) = stage.and_then(|s| marks.get(&s).map(|m| (s, m))) else { return Ok(()) };
        let mut reader = StreamReader::open(&self.fetched)?;
        while let Some(record) = reader.next()? {
            if let Record::Interval { stage: of, interval } = record
                && of == stage
                && self.better.contains_key(&(of, interval.index))
            {
                writer.sparse(stage, &interval)?;
            }
        }
        marks.iter().try_for_each(|m| writer.mark(m))
    }

    /// What was fetched is not needed any more.
    pub fn clear(&self) {
        // What stays is removed by the next collection, or with the run.
        let _ = std::fs::remove_file(&self.fetched);
        let _ = std::fs::remove_file(&self.replaced);
    }
}

/// Marks of an earlier collection, of a stage that has new ones.
fn is_replaced(mark: &Mark, marks: &BTreeMap<u32, Vec<Mark>>) -> bool {
    match mark {
        Mark::Delivered { stage, .. } => marks.contains_key(stage),
        Mark::StopRequested { stage, reason, .. } => reason == KILLED && marks.contains_key(stage),
        _ => false,
    }
}
