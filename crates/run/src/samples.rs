//! Where samples go: a file for each host of the run, however many agents are on it; and one for each source of servers' metrics.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use plimsoll_lower::Agent;
use plimsoll_model::{Sample, Scrape};
use plimsoll_store::{RunDir, StoreError, StreamWriter};

use crate::error::RunError;

/// One writer for each source of servers' metrics; clones are the same ones.
#[derive(Debug, Clone, Default)]
pub struct ObservedFiles {
    by_number: Arc<Mutex<Vec<StreamWriter>>>,
}

impl ObservedFiles {
    /// `observes`: make and address of each, in order of their numbers. A resumed run goes on with its files.
    pub fn open(run: &RunDir, observes: &[String]) -> Result<Self, StoreError> {
        let open = |(number, observes): (usize, &String)| run.open_observed(number, observes);
        let writers = observes.iter().enumerate().map(open).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { by_number: Arc::new(Mutex::new(writers)) })
    }

    /// A help, not the measurement: a full disk is told by the intervals.
    pub fn take(&self, number: usize, scrape: &Scrape) {
        if let Ok(mut writers) = self.by_number.lock()
            && let Some(writer) = writers.get_mut(number)
        {
            let _ = writer.scrape(scrape);
        }
    }

    /// What comes later is left out.
    pub fn finish(&self) -> Result<(), RunError> {
        let mut writers = self.by_number.lock().map_err(|_| RunError::Bug("an observer died".into()))?;
        Ok(std::mem::take(&mut *writers).into_iter().try_for_each(StreamWriter::finish)?)
    }
}

/// One writer per host; clones are the same ones.
#[derive(Debug, Clone)]
pub struct Samples {
    by_host: Arc<Mutex<BTreeMap<String, StreamWriter>>>,
}

impl Samples {
    /// `resumed`: goes on with the files of a run that was killed.
    pub fn open(run: &RunDir, roll: &[Agent], resumed: bool) -> Result<Self, StoreError> {
        let mut by_host = BTreeMap::new();
        for Agent { host, .. } in roll {
            if !by_host.contains_key(host) {
                let writer = if resumed { run.resume_samples(host)? } else { run.create_samples(host)? };
                by_host.insert(host.clone(), writer);
            }
        }
        Ok(Self { by_host: Arc::new(Mutex::new(by_host)) })
    }

    /// Samples are a help, not the measurement: a full disk is told by the intervals, and a host that nobody knows is left out.
    pub fn take(&self, sample: &Sample) {
        if let Ok(mut by_host) = self.by_host.lock()
            && let Some(writer) = by_host.get_mut(&sample.host)
        {
            let _ = writer.sample(sample);
        }
    }

    /// What comes later is left out.
    pub fn finish(&self) -> Result<(), RunError> {
        let mut by_host = self.by_host.lock().map_err(|_| RunError::Bug("the sampler died".into()))?;
        Ok(std::mem::take(&mut *by_host).into_values().try_for_each(StreamWriter::finish)?)
    }
}
