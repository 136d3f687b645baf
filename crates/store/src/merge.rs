//! Several agents' interval files as one stream, in order of slices, one record of each in memory.

use crate::StoreError;
use crate::frame::Damage;
use crate::stream::{Record, StreamReader};

/// Reads all files side by side. Slices of one stage with one index are merged; marks come as they stand.
#[derive(Debug)]
pub struct MergedReader {
    readers: Vec<(StreamReader, Option<Record>)>,
    started: bool,
}

impl MergedReader {
    pub fn new(readers: Vec<StreamReader>) -> Self {
        Self { readers: readers.into_iter().map(|r| (r, None)).collect(), started: false }
    }

    /// Files that could not be read to their end; complete when [`Self::next`] gave `None`.
    pub fn damage(&self) -> Vec<Damage> {
        self.readers.iter().filter_map(|(r, _)| r.damage().cloned()).collect()
    }

    #[allow(
        clippy::should_implement_trait,
        reason = "an iterator of results would hide that damage is no error"
    )]
    pub fn next(&mut self) -> Result<Option<Record>, StoreError> {
        if !self.started {
            self.started = true;
            for (reader, head) in &mut self.readers {
                *head = reader.next()?;
            }
        }
        // A mark says something about what follows it in its own file, so it goes first.
        for (reader, head) in &mut self.readers {
            if matches!(head, Some(Record::Mark(_) | Record::Sample(_) | Record::Unknown(_))) {
                return Ok(std::mem::replace(head, reader.next()?));
            }
        }
        let key = |head: &Option<Record>| match head {
            Some(Record::Interval { stage, interval }) => Some((interval.index, *stage)),
            _ => None,
        };
        let Some(lowest) = self.readers.iter().filter_map(|(_, head)| key(head)).min() else {
            return Ok(None);
        };
        let mut sum: Option<Record> = None;
        for (reader, head) in &mut self.readers {
            while key(head) == Some(lowest) {
                let next = std::mem::replace(head, reader.next()?);
                match (&mut sum, next) {
                    (
                        Some(Record::Interval { interval: sum, .. }),
                        Some(Record::Interval { interval, .. }),
                    ) => {
                        sum.merge(&interval);
                    }
                    (_, next) => sum = next,
                }
            }
        }
        Ok(sum)
    }
}
