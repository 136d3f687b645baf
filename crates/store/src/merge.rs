//! Several agents' interval files as one stream, in order of slices, one record of each in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::StoreError;
use crate::frame::Damage;
use crate::stream::{Record, StreamPosition, StreamReader};

/// Reads all files side by side. Each record comes with the number of the file that it is from: merging, which loses it, is left to
/// whoever reads.
#[derive(Debug)]
pub struct MergedReader {
    readers: Vec<StreamReader>,
    heads: Vec<Option<Record>>,
    /// Which file is next.
    turns: BinaryHeap<Reverse<Turn>>,
    started: bool,
}

/// When a record has its turn: marks at once, since they say something about what follows them in their own file; slices by index,
/// then by stage; of equal ones the file with the lower number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    slice: Option<(u64, u32)>,
    file: usize,
}

impl MergedReader {
    /// One for each agent; nothing is read yet.
    pub fn new(readers: Vec<StreamReader>) -> Self {
        let heads = readers.iter().map(|_| None).collect();
        Self { readers, heads, turns: BinaryHeap::new(), started: false }
    }

    /// Files that could not be read to their end, by number; complete when [`Self::next`] gave `None`.
    pub fn damage(&self) -> impl Iterator<Item = (usize, &Damage)> {
        self.readers.iter().enumerate().filter_map(|(file, r)| Some((file, r.damage()?)))
    }

    /// How far each file was read; of all records that were given out when [`Self::next`] gave `None`.
    pub fn positions(&self) -> Vec<StreamPosition> {
        self.readers.iter().map(StreamReader::position).collect()
    }

    /// The next in the order of the grid, and the number of its file; `None`: all streams have ended.
    #[allow(
        clippy::should_implement_trait,
        reason = "an iterator of results would hide that damage is no error"
    )]
    pub fn next(&mut self) -> Result<Option<(usize, Record)>, StoreError> {
        if !self.started {
            self.started = true;
            (0..self.readers.len()).try_for_each(|file| self.advance(file))?;
        }
        let Some(Reverse(Turn { file, .. })) = self.turns.pop() else { return Ok(None) };
        let record = self.heads[file].take();
        self.advance(file)?;
        Ok(record.map(|record| (file, record)))
    }

    fn advance(&mut self, file: usize) -> Result<(), StoreError> {
        self.heads[file] = self.readers[file].next()?;
        if let Some(record) = &self.heads[file] {
            let slice = match record {
                Record::Interval { stage, interval } => Some((interval.index, *stage)),
                Record::Mark(_) | Record::Sample(_) | Record::Scrape(_) | Record::Unknown(_) => None,
            };
            self.turns.push(Reverse(Turn { slice, file }));
        }
        Ok(())
    }
}
