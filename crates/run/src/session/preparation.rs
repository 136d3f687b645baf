//! What a stage needs before its load: files and devices made ready by those who have them, objects that are read or deleted put there.

use std::collections::HashSet;

use plimsoll_crew::{Fill, key_names};
use plimsoll_engine::target::s3::keys::KeyNames;
use plimsoll_lower as lower;
use plimsoll_model::plan::{Stage, TargetSpec, Workload};
use plimsoll_model::{Event, Finding};
use plimsoll_setup::objects::{self, Dataset, Manifest, ObjectStore, claim_dataset, finish_dataset};
use plimsoll_setup::s3::BucketClaim;
use plimsoll_store::{Journal, Mark};

use super::Session;
use crate::error::RunError;

/// Objects that have to be there before a stage.
struct Preparation {
    what: String,
    first: u64,
    count: u64,
    manifest: Option<(String, Manifest)>,
    key: (String, u64, u64),
}

impl Session {
    /// Devices and files made ready: claimed, made, written in full where they are read, dropped from the cache.
    pub(super) fn prepare_files(
        &mut self,
        index: u32,
        stage: &Stage,
        events: &mut dyn FnMut(Event),
    ) -> Result<Vec<Finding>, RunError> {
        let has_files = self.plan.targets.values().any(TargetSpec::is_on_files);
        if has_files {
            let at_ns = self.now_ns();
            self.streams.mark(&Mark::PrepareStart { stage: index, at_ns })?;
        }
        let findings = self.crew.make_ready(stage, events)?;
        if has_files {
            let at_ns = self.now_ns();
            self.streams.mark(&Mark::PrepareEnd { stage: index, at_ns })?;
        }
        Ok(findings)
    }

    /// The objects of each workload, where they are not there yet.
    pub(super) fn prepare_objects(
        &mut self,
        index: u32,
        stage: &Stage,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), RunError> {
        for (i, w) in stage.workloads.iter().enumerate() {
            let (name, _) = self.plan.target_of(w)?;
            let name = name.to_owned();
            let Some(claim) = self.claims.get(&name) else { continue };
            if let Some(area) = claim.area().filter(|_| index == 0) {
                objects::still_ours(claim.store(), area, Journal::locked(&self.journal).mark())?;
            }
            let at_ns = self.now_ns();
            let jobs = self.preparations(w, &name, index, i as u16)?;
            if jobs.is_empty() {
                continue;
            }
            self.streams.mark(&Mark::PrepareStart { stage: index, at_ns })?;
            for p in jobs {
                if p.count == 0 {
                    self.prepared.insert(p.key);
                    continue;
                }
                let fill = Fill { what: &p.what, workload: w, first: p.first, count: p.count };
                self.filled = self.filled.saturating_add(p.count);
                self.crew.fill(&fill, events)?;
                if let Some(spent) = &mut self.spent {
                    spent.made_ready(&w.size, p.count);
                }
                if let Some((prefix, manifest)) = p.manifest
                    && let Some(claim) = self.claims.get(&name)
                {
                    finish_dataset(claim.store(), &prefix, &manifest)?;
                }
                self.prepared.insert(p.key);
            }
            let at_ns = self.now_ns();
            self.streams.mark(&Mark::PrepareEnd { stage: index, at_ns })?;
        }
        Ok(())
    }

    /// What a workload needs and is not there yet.
    fn preparations(
        &self,
        w: &Workload,
        target: &str,
        stage: u32,
        workload: u16,
    ) -> Result<Vec<Preparation>, RunError> {
        let Some(claim) = self.claims.get(target).filter(|c| c.area().is_some()) else {
            return Ok(Vec::new());
        };
        let workers = lower::parts(&self.plan, w, self.plan.target_of(w)?, self.crew.roll()).len();
        let keys = lower::key_plan(w, stage, workload, workers as u32);
        let names = key_names(claim.prefix(), w, None);
        let mut jobs = Vec::new();
        let named = w.object.as_ref().and_then(|o| o.dataset.clone()).zip(names.dataset.clone());
        for (first, count) in [(0, keys.dataset), (keys.victims_first, keys.victims)] {
            // A named data set holds what is read; what is deleted is the run's own.
            let named = named.as_ref().filter(|_| first == 0);
            let prefix = named.map_or(&names.prefix, |(_, prefix)| prefix);
            // Over more prefixes, the same numbers have other keys.
            let prefixes = w.object.as_ref().map_or(1, |o| o.prefixes.max(1));
            let key = (format!("{prefix} {prefixes}"), first, count);
            if count == 0 || self.prepared.contains(&key) {
                continue;
            }
            let mut manifest = None;
            if let Some((name, _)) = named {
                let m = self.manifest(name, w, count, claim);
                if claim_dataset(claim.store(), prefix, &m)? == Dataset::Ready {
                    continue;
                }
                manifest = Some((prefix.clone(), m));
            }
            let mut missing = (first, count);
            if first == 0 && self.next_stage > 0 && lower::reads_what_is_written(&self.plan, w) {
                missing = not_there(claim.store(), &names, count);
            }
            let what = if first == 0 { "data set" } else { "objects to delete" };
            let (first, count) = missing;
            jobs.push(Preparation { what: format!("{what} of {}", w.name), first, count, manifest, key });
        }
        Ok(jobs)
    }

    fn manifest(&self, name: &str, w: &Workload, objects: u64, claim: &BucketClaim) -> Manifest {
        let target = &claim.access().target;
        let signing = serde_json::to_value(target.signing).unwrap_or_default();
        Manifest {
            format: objects::DATASET_FORMAT.into(),
            name: name.to_owned(),
            objects,
            size: w.size.clone(),
            seed: lower::data_seed(self.plan.seed, w),
            prefixes: w.object.as_ref().map_or(1, |o| o.prefixes.max(1)),
            compressible: w.data.compressible,
            dedupable: w.data.dedupable,
            signing: signing.as_str().unwrap_or_default().to_owned(),
            kept_as: objects::kept_as(target),
        }
    }
}

/// Of the objects `0..count` those that no listing shows, as one range with whatever lies between: (first, count). Where the server
/// does not list, all of them: an object that is put again is the same.
fn not_there(store: &dyn ObjectStore, names: &KeyNames, count: u64) -> (u64, u64) {
    const PAGE: u32 = 1000;
    let mut there: HashSet<String> = HashSet::new();
    let mut from: Option<String> = None;
    loop {
        let Ok(page) = store.list(&names.prefix, from.as_deref(), PAGE) else { return (0, count) };
        there.extend(page.keys);
        match page.next {
            Some(next) if from.as_ref() != Some(&next) => from = Some(next),
            _ => break,
        }
    }
    let missing = |n: &u64| !there.contains(&names.key(*n));
    match ((0..count).find(missing), (0..count).rfind(missing)) {
        (Some(first), Some(last)) => (first, last - first + 1),
        _ => (0, 0),
    }
}
