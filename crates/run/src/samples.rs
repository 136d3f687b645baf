//! Where samples go: a file for each host of the run, however many agents are on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use plimsoll_lower::Agent;
use plimsoll_model::Sample;
use plimsoll_store::{RunDir, StoreError, StreamWriter};

use crate::error::RunError;

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
