//! What a stage needs before its load: files and devices made ready, objects that are read or deleted put there.

use std::sync::Arc;

use plimsoll_engine::{DataSeed, StopRule, TargetConfig, WorkerSpec};
use plimsoll_model::plan::{OnThrottle, Stage, Workload};
use plimsoll_model::{Event, Finding};
use plimsoll_setup::block::{LayoutJob, layout_workers};
use plimsoll_setup::objects::{self, Dataset, Manifest, claim_dataset, finish_dataset};
use plimsoll_store::Mark;

use super::Session;
use crate::error::RunError;
use crate::target::{self, Place, Ready, S3Ready};
use crate::{lower, prepare};

/// Objects that have to be there before a stage.
struct Preparation {
    what: String,
    workers: Vec<WorkerSpec>,
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
        if !self.targets.values().any(|t| matches!(t, Ready::Files(_))) {
            return Ok(Vec::new());
        }
        let at_ns = self.now_ns();
        self.intervals.mark(&Mark::PrepareStart { stage: index, at_ns })?;
        let (seed, interrupt) = (self.plan.seed, self.interrupt);
        let mut layout = |jobs: &[LayoutJob]| -> Result<(), RunError> {
            for round in layout_workers(jobs, target::cores() as usize) {
                let total = round.iter().filter_map(|w| w.stop.ops.map(|n| n * w.source.max_bytes())).sum();
                let job = prepare::Job { what: "files", unit: "bytes", total };
                prepare::run(round, job, events, interrupt)?;
            }
            Ok(())
        };
        let seeds = |w: &Workload| lower::data_seed(seed, w);
        let findings = self.ground.prepare(&self.plan, stage, &seeds, &mut self.journal, &mut layout)?;
        let at_ns = self.now_ns();
        self.intervals.mark(&Mark::PrepareEnd { stage: index, at_ns })?;
        Ok(findings)
    }

    /// The objects of each workload, where they are not there yet.
    pub(super) fn prepare_stage(
        &mut self,
        index: u32,
        stage: &Stage,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), RunError> {
        for (i, w) in stage.workloads.iter().enumerate() {
            let Ready::S3(s3) = self.target(w)? else { continue };
            if let Some(area) = s3.storage.area().filter(|_| index == 0) {
                objects::still_ours(s3.storage.store(), area, self.journal.mark())?;
            }
            let at_ns = self.now_ns();
            let jobs = self.preparations(w, index, i as u16)?;
            if jobs.is_empty() {
                continue;
            }
            self.intervals.mark(&Mark::PrepareStart { stage: index, at_ns })?;
            for p in jobs {
                let job = prepare::Job { what: &p.what, unit: "objects", total: p.count };
                prepare::run(p.workers, job, events, self.interrupt)?;
                if let Some((prefix, manifest)) = p.manifest
                    && let Ready::S3(s3) = self.target(w)?
                {
                    finish_dataset(s3.storage.store(), &prefix, &manifest)?;
                }
                self.prepared.insert(p.key);
            }
            let at_ns = self.now_ns();
            self.intervals.mark(&Mark::PrepareEnd { stage: index, at_ns })?;
        }
        Ok(())
    }

    /// What a workload needs and is not there yet.
    fn preparations(&self, w: &Workload, stage: u32, workload: u16) -> Result<Vec<Preparation>, RunError> {
        let Ready::S3(s3) = self.target(w)? else { return Ok(Vec::new()) };
        if s3.storage.area().is_none() {
            return Ok(Vec::new());
        }
        let sample = &self.target(w)?.workers(&self.plan, w, Place { stage, workload, warmup_ns: 0 }, 0)?;
        let keys = lower::key_plan(w, stage, workload, sample.len() as u32);
        let names = s3.key_names(w);
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
                let m = self.manifest(name, w, count, s3);
                if claim_dataset(s3.storage.store(), prefix, &m)? == Dataset::Ready {
                    continue;
                }
                manifest = Some((prefix.clone(), m));
            }
            let workers = self.preparers(w, s3, first, count)?;
            let what = if first == 0 { "data set" } else { "objects to delete" };
            jobs.push(Preparation { what: format!("{what} of {}", w.name), workers, count, manifest, key });
        }
        Ok(jobs)
    }

    fn manifest(&self, name: &str, w: &Workload, objects: u64, s3: &S3Ready) -> Manifest {
        let signing = serde_json::to_value(s3.storage.access().target.signing).unwrap_or_default();
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
            kept_as: objects::kept_as(&s3.storage.access().target),
        }
    }

    /// Workers that put objects `first..first + count`.
    fn preparers(
        &self,
        w: &Workload,
        s3: &S3Ready,
        first: u64,
        count: u64,
    ) -> Result<Vec<WorkerSpec>, RunError> {
        let concurrency = w.concurrency.clamp(16, 64).min(u32::try_from(count).unwrap_or(u32::MAX)).max(1);
        let parts = lower::divide(concurrency, lower::AGENTS, |_, slots| {
            lower::threads_for(self.plan.options.threads, slots, target::cores(), s3.storage.is_here())
        });
        let mut keys = lower::key_plan(w, 0, 0, parts.len() as u32);
        keys.fresh_first = first;
        let mut config = (*s3.config(&self.plan, w, &keys)?).clone();
        // Nothing is measured here: a limiter's wish is obeyed.
        config.on_throttle = OnThrottle::Backoff;
        let config = Arc::new(config);
        let source = lower::prepare_source(w, first, lower::size_seed(self.plan.seed, w));
        let one = |part: lower::Division| WorkerSpec {
            worker: lower::worker_number(0, part.thread),
            stage: 0,
            workload: 0,
            series: lower::prepare_series(s3.storage.endpoint_names().len()),
            cpu: None,
            ring: self.plan.options.ring,
            source: source.clone(),
            share: part.share(),
            pacer: plimsoll_engine::Pacer::Closed,
            pace_share: part.share(),
            target: TargetConfig::S3(Arc::clone(&config)),
            slots: part.slots,
            stop: StopRule { ops: Some(part.part_of(count)), ..StopRule::default() },
            start_delay_ns: 0,
            trace: true,
            verify: false,
            data: DataSeed { spec: w.data, seed: lower::data_seed(self.plan.seed, w) },
        };
        Ok(parts.into_iter().map(one).collect())
    }
}
