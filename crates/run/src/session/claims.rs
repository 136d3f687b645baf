//! What a run says is its own in buckets, and what is known of servers and client from then on.

use std::time::Duration;

use plimsoll_lower as lower;
use plimsoll_model::plan::{ControllerSpec, TargetSpec};
use plimsoll_model::{Event, Finding, Level, Plan};
use plimsoll_setup::s3::{BucketClaim, ForRun, claim};
use plimsoll_store::Journal;

use super::Session;
use crate::error::RunError;
use crate::options::Options;

impl Session {
    pub(super) fn make_claims(
        &mut self,
        options: &Options,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), RunError> {
        let plan = self.plan.clone();
        let id = self.run.id();
        for (name, spec) in &plan.targets {
            if let TargetSpec::S3(s3) = spec {
                // A resumed run has a prefix of its own: the one before was cleaned up.
                let id = if self.next_stage > 0 { format!("{id}-{}", self.next_stage) } else { id.clone() };
                // Two targets in one bucket have a prefix each.
                let id = if beside(&plan, name) { format!("{id}-{name}") } else { id };
                let mut journal = Journal::locked(&self.journal);
                let errands = self.crew.errands(journal.mark());
                let (exe, interrupt, by) = (&options.exe, &self.interrupt, options.claim_by);
                let run = ForRun { id: &id, exe, interrupt, by, errands };
                let claimed = claim(&plan, name, s3, run, &mut journal, events)?;
                drop(journal);
                self.describe_s3(name, &claimed);
                let load = plan.stages.iter().filter_map(lower::planned_ns).fold(0, u64::saturating_add);
                let held = claimed.access().held.as_ref();
                let short = held.and_then(|h| h.too_short_for(Duration::from_nanos(load)));
                short.map(Event::Message).into_iter().for_each(&mut *events);
                self.claims.insert(name.clone(), claimed);
            }
        }
        Ok(())
    }

    fn describe_s3(&mut self, name: &str, claim: &BucketClaim) {
        if let Some(header) = claim.server_header() {
            self.environment.servers.insert(name.to_owned(), header);
        }
        let signing = serde_json::to_value(claim.access().target.signing).unwrap_or_default();
        let signing = signing.as_str().unwrap_or_default().to_owned();
        self.environment.notes.insert("payload signing".into(), signing);
        if let Some(text) = claim.access().keys_in_words() {
            self.environment.notes.insert("credentials".into(), text);
        }
        if let Some(area) = claim.area()
            && let Some(text) = area.versioning.words(&area.bucket)
        {
            let stays = area.versioning.retention.is_some() || area.versioning.hidden;
            let level = if stays { Level::Qualified } else { Level::Info };
            let mut chars = text.chars();
            let text =
                chars.next().map(|c| c.to_uppercase().chain(chars).collect::<String>()).unwrap_or_default();
            self.found(Finding::new("F15", "versioned_bucket", level, format!("{text}.")));
        }
        if claim.is_unchecked() {
            let text = format!(
                "The certificates of '{name}' were not verified (--insecure), so the identity of the server is not \
                 known."
            );
            self.found(Finding::new("Q13", "certificate_unchecked", Level::Qualified, text));
        }
        if !claim.unconfirmed().is_empty() {
            let text = claim.unconfirmed().join(" ");
            self.found(Finding::new("Q11", "unconfirmed", Level::Qualified, text));
        }
    }

    /// What this process may use of its machine, now that it is in groups of its own.
    pub(super) fn describe_client(&mut self) {
        let Some(client) = self.plan.options.client.as_ref().filter(|c| !c.is_empty()) else { return };
        self.environment.notes.insert("client".into(), client.words());
        if self.environment.agents.is_empty() {
            crate::environment::bounded(&mut self.environment.machine);
        }
    }
}

/// Whether this target is measured beside another one.
fn beside(plan: &Plan, name: &str) -> bool {
    match &plan.controller {
        Some(ControllerSpec::Limits { scope_targets, .. }) => scope_targets.values().any(|t| t == name),
        _ => false,
    }
}
