//! Block devices and files as targets of workers. [`plimsoll_setup::block::Ground`] makes them ready before each stage.

use std::path::PathBuf;

use plimsoll_engine::api::FileConfig;
use plimsoll_engine::written::WRITERS;
use plimsoll_engine::{DataSeed, Share, TargetConfig, WorkerSpec};
use plimsoll_lower::{self as lower, Region, purpose};
use plimsoll_model::plan::{FilesTarget, Pacing, TargetSpec};
use plimsoll_model::{OpKind, Plan};
use plimsoll_setup::block::{first_object, known_size, paths_of_job, range_of, range_unit};

use super::Lot;
use super::place::cpu_of;
use crate::error::CrewError;

/// A device, a file or a set of files.
#[derive(Debug)]
pub struct FilesReady {
    name: String,
    spec: TargetSpec,
    /// The agent's own number.
    seat: u32,
    /// It is every agent's, and each has a range of it.
    shared: bool,
    /// The same, as the next agent has it: what is only read is read there.
    next: Option<(u32, TargetSpec)>,
}

impl FilesReady {
    pub fn new(name: &str, spec: &TargetSpec) -> Self {
        Self { name: name.to_owned(), spec: spec.clone(), seat: 0, shared: false, next: None }
    }

    /// As one of several agents: its number, whether the target is everybody's, and whose files it reads, which lie where.
    pub fn among(self, seat: u32, shared: bool, next: Option<(u32, &str)>) -> Self {
        let next = next.and_then(|(agent, directory)| match &self.spec {
            TargetSpec::Files(f) => {
                Some((agent, TargetSpec::Files(FilesTarget { directory: directory.to_owned(), ..f.clone() })))
            }
            _ => None,
        });
        Self { seat, shared, next, ..self }
    }

    /// Block devices on which its data lies.
    pub fn devices(&self) -> Vec<crate::sample::Device> {
        paths_of_job(&self.name, &self.spec, 0).iter().filter_map(|p| crate::sample::device_of(p)).collect()
    }

    /// What lies under it, for the report.
    pub fn describe(&self) -> std::collections::BTreeMap<String, String> {
        paths_of_job(&self.name, &self.spec, 0)
            .first()
            .map(|p| plimsoll_setup::safety::device::describe(p))
            .unwrap_or_default()
    }

    /// The bytes that each job uses of each file.
    fn region(&self) -> Result<Region, CrewError> {
        match &self.spec {
            TargetSpec::Files(f) => {
                Ok(Region { files: f.files, offset_bytes: 0, length_bytes: f.file_size.0 })
            }
            TargetSpec::Block(b) => {
                let offset_bytes = b.offset.map_or(0, |o| o.0);
                let known = || known_size(&PathBuf::from(&b.path));
                let length = b.size.map(|s| s.0).or_else(|| known().map(|k| k.saturating_sub(offset_bytes)));
                match length {
                    Some(length_bytes) if length_bytes > 0 => {
                        let files = 1 + b.also.len() as u32;
                        Ok(Region { files, offset_bytes, length_bytes })
                    }
                    _ => Err(CrewError::input(
                        format!("{}: there is nothing to read or write", b.path),
                        "Give a size, for example --size 1GiB, or a smaller offset",
                    )),
                }
            }
            _ => Err(CrewError::bug(format!("target '{}' is neither block nor files", self.name))),
        }
    }

    /// The range of an agent, where all have the target.
    fn region_of(
        &self,
        whole: Region,
        agent: u32,
        agents: u32,
        unit_bytes: u64,
    ) -> Result<Region, CrewError> {
        if !self.shared {
            return Ok(whole);
        }
        let (at, length_bytes) = range_of(agent, agents, whole.length_bytes, unit_bytes);
        if length_bytes == 0 {
            return Err(CrewError::input(
                format!(
                    "target '{}': {} bytes are too few for {agents} agents",
                    self.name, whole.length_bytes
                ),
                "Give a larger size, or use fewer agents (--agents)",
            ));
        }
        Ok(Region { offset_bytes: whole.offset_bytes + at, length_bytes, ..whole })
    }

    /// The job of another agent whose files this one's job reads: as many after that one's first as this is after its own.
    fn job_of(&self, agent: u32, part: &lower::Division, parts: &[lower::Division]) -> u32 {
        let of = |agent: u32| parts.iter().filter(|p| p.agent == agent).map(|p| p.index).collect::<Vec<_>>();
        let theirs = of(agent);
        theirs.get(part.thread as usize % theirs.len().max(1)).copied().unwrap_or(part.index)
    }

    fn config(&self, spec: &TargetSpec, job: u32) -> TargetConfig {
        let paths = paths_of_job(&self.name, spec, job);
        let buffered = match &self.spec {
            TargetSpec::Block(b) => b.buffered,
            TargetSpec::Files(f) => f.buffered,
            _ => true,
        };
        let config = FileConfig {
            first_object: paths.first().map_or(0, |p| first_object(p)),
            buffered,
            create: false,
            paths,
            through: Vec::new(),
            written: Vec::new(),
        };
        match &self.spec {
            TargetSpec::Files(_) => TargetConfig::Files(config),
            _ => TargetConfig::Block(config),
        }
    }

    /// One worker per job, each with a sequence of its own.
    pub fn workers(&self, plan: &Plan, lot: &Lot<'_>) -> Result<Vec<WorkerSpec>, CrewError> {
        let w = lot.w;
        let block = w.block.clone().unwrap_or_default();
        let series = lower::series(w, &self.spec, 0);
        let region = self.region()?;
        let only_reads = w.mix.iter().all(|(kind, n)| *n == 0 || *kind == OpKind::Read);
        let next = self.next.as_ref().filter(|_| only_reads && lot.agents > 1);
        let unit_bytes = range_unit(w);
        let one = |part: &lower::Division| -> Result<WorkerSpec, CrewError> {
            let job = part.index;
            let region = self.region_of(region, part.agent, lot.agents, unit_bytes)?;
            let target = match next {
                Some((agent, spec)) if part.agent == self.seat => {
                    self.config(spec, self.job_of(*agent, part, &lot.parts))
                }
                _ => self.config(&self.spec, job),
            };
            let seed = lower::seed(plan.seed, purpose::OPS, lot.stage, lot.workload, job);
            let arrivals = lower::seed(plan.seed, purpose::ARRIVALS, lot.stage, lot.workload, 0);
            let worker = lot.worker_of(part);
            // Each worker paces its own part of a rate of bytes; the schedules of ops are shared.
            let (pacing, pace_share) = match &w.pacing {
                Pacing::Bytes(b) => {
                    let mut own = *b;
                    own.0 = part.rate_of(own.0);
                    (Pacing::Bytes(own), Share::WHOLE)
                }
                other => (other.clone(), part.share()),
            };
            Ok(WorkerSpec {
                worker,
                stage: lot.stage,
                workload: lot.workload,
                series: series.clone(),
                cpu: cpu_of(&plan.options, worker.worker),
                ring: block.ring.unwrap_or(plan.options.ring),
                source: lower::region_source(w, region, seed),
                share: Share::WHOLE,
                pacer: lower::pacer(&pacing, arrivals),
                pace_share,
                target,
                slots: w.concurrency,
                stop: lower::stop_rule(w, lot.warmup_ns, part),
                start_delay_ns: block.start_delay.map_or(0, |d| d.as_ns()),
                trace: plan.options.trace.is_some(),
                verify: w.verify,
                data: DataSeed { spec: w.data, seed: lower::data_seed(plan.seed, w) },
            })
        };
        lot.parts.iter().map(one).collect()
    }
}

/// Gives workers the files and devices that were judged, and those that verify, or write to what is verified, the records of
/// what was written last.
pub fn with_records(
    workers: &mut [WorkerSpec],
    ground: &plimsoll_setup::block::Ground,
) -> Result<(), CrewError> {
    for w in workers {
        if let TargetConfig::Block(c) | TargetConfig::Files(c) = &mut w.target {
            c.through = ground.through(&c.paths);
            c.written = ground.written(&c.paths);
            if !c.written.is_empty() && w.worker.worker >= WRITERS {
                return Err(CrewError::input(
                    format!(
                        "a record of what was written last holds {WRITERS} jobs at once, and there are more"
                    ),
                    "Use fewer jobs, or leave out --verify (verify=)",
                ));
            }
        }
    }
    Ok(())
}
