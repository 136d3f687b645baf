//! Objects that are there already and are read: found by listing before the stage, by whoever conducts it.

use plimsoll_model::Event;
use plimsoll_model::plan::Stage;
use plimsoll_setup::objects::{FoundObjects, WantedObjects};

use super::Session;
use crate::error::RunError;

impl Session {
    /// What each workload reads, where it reads what is there; what was found is in the result.
    pub(super) fn find_objects(
        &mut self,
        stage: &Stage,
        events: &mut dyn FnMut(Event),
    ) -> Result<Vec<Option<FoundObjects>>, RunError> {
        let mut all = Vec::new();
        for w in &stage.workloads {
            let (name, _) = self.plan.target_of(w)?;
            let (Some(wanted), Some(claim)) = (WantedObjects::of(w), self.claims.get(name)) else {
                all.push(None);
                continue;
            };
            events(Event::Doing("looking for objects to read".into()));
            let found = claim.find_existing(&wanted)?;
            let finding = found.finding(&wanted, &claim.access().target.bucket);
            self.found(finding);
            all.push(Some(found));
        }
        Ok(all)
    }
}

/// The stage as it can be carried out, and is recorded: of so many objects, with the sizes that they have.
pub(super) fn as_found(stage: &Stage, found: &[Option<FoundObjects>]) -> Stage {
    let mut stage = stage.clone();
    for (w, found) in stage.workloads.iter_mut().zip(found) {
        if let Some(found) = found {
            *w = found.as_found(w);
        }
    }
    stage
}
