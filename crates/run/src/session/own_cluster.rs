//! A cluster that a run brings along.

use plimsoll_setup::s3::BucketClaim;

use super::Session;
use crate::error::RunError;
use crate::guard::RunGuard;

impl Session {
    /// Servers that were started for this run are known: what they are made of is in its plan from here on, as `--cluster` has it of others.
    pub(super) fn describe_own_cluster(&mut self) -> Result<(), RunError> {
        let is_cluster =
            |c: &&BucketClaim| c.access().target.embedded.as_ref().is_some_and(|e| e.cluster.is_some());
        let own = self.claims.values().filter(is_cluster).find_map(BucketClaim::own_servers);
        let Some(own) = own else { return Ok(()) };
        let hosts: Vec<&str> = own.iter().map(|e| e.host.as_str()).collect();
        if !self.plan.describe_own_cluster(&hosts) {
            return Ok(());
        }
        // The plan as it is stored is not the one that is carried out, where a run has started volumes.
        let mut stored = self.run.plan()?;
        stored.describe_own_cluster(&hosts);
        self.run.write_plan(&stored)?;
        self.guard = RunGuard::of(&self.plan);
        Ok(())
    }
}
