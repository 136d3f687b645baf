//! Targets of a plan, made ready: what a run sets up before its first stage and takes down after its last.

mod files;
mod place;
mod s3;

pub use files::{FilesTarget, with_records};
pub use place::{Place, cores};
pub use s3::S3Ready;

use place::cpu_of;
use plimsoll_engine::target::sim::SimWorld;
use plimsoll_engine::{DataSeed, TargetConfig, WorkerSpec};
use plimsoll_model::plan::bounds::MAX_STAGES;
use plimsoll_model::plan::{ControllerSpec, Stage, TargetSpec, Workload};
use plimsoll_model::{Plan, plan::SimTarget};

use crate::error::RunError;
use crate::lower::{self, purpose};

/// A target that workers can be made for.
#[derive(Debug)]
pub enum Ready {
    Null,
    Sim(SimWorld),
    S3(Box<S3Ready>),
    /// Block devices and files are opened by the workers, and made ready before each stage.
    Files(Box<FilesTarget>),
}

impl Ready {
    pub fn sim(spec: &SimTarget, seed: u64) -> Self {
        Self::Sim(SimWorld::new(spec.clone(), lower::seed(seed, purpose::SIM, 0, 0, 0)))
    }

    pub fn is_virtual(&self) -> bool {
        matches!(self, Self::Sim(_))
    }

    /// Names of the endpoints, where there are any.
    pub fn endpoints(&self) -> Vec<String> {
        match self {
            Self::S3(s3) => s3.storage.endpoint_names(),
            _ => Vec::new(),
        }
    }

    /// The workers of one workload, numbered from `first_worker`.
    pub fn workers(
        &self,
        plan: &Plan,
        w: &Workload,
        place: Place,
        first_worker: u16,
    ) -> Result<Vec<WorkerSpec>, RunError> {
        let (_, spec) = plan.target_of(w)?;
        match self {
            Self::Files(files) => files.workers(plan, w, place, first_worker),
            Self::Null | Self::Sim(_) | Self::S3(_) => {
                self.shared_workers(plan, w, spec, place, first_worker)
            }
        }
    }

    /// One sequence of ops that all workers share.
    fn shared_workers(
        &self,
        plan: &Plan,
        w: &Workload,
        spec: &TargetSpec,
        place: Place,
        first_worker: u16,
    ) -> Result<Vec<WorkerSpec>, RunError> {
        let concurrency = w.in_flight();
        let parts = lower::divide(concurrency, lower::AGENTS, |_, slots| match self {
            // A simulation runs in one thread in any case.
            Self::Sim(_) => 1,
            _ => lower::threads_for(plan.options.threads, slots, cores(), self.is_here()),
        });
        let overwrites = overwrites(plan);
        // A search writes the same objects in all its stages.
        let stage = if overwrites { 0 } else { place.stage };
        if u64::from(stage) >= MAX_STAGES {
            return Err(RunError::input(
                format!("a run has no numbers for the objects of more than {MAX_STAGES} stages"),
                "Start a new run",
            ));
        }
        let keys = lower::key_plan(w, stage, place.workload, parts.len() as u32);
        let seed = lower::seed(plan.seed, purpose::OPS, place.stage, place.workload, 0);
        let again =
            overwrites.then(|| lower::objects_to_overwrite(w, lower::size_spec(&w.size, 1).max_bytes()));
        let source = lower::object_source(w, &keys, seed, lower::size_seed(plan.seed, w), again);
        let target = match self {
            Self::Null => TargetConfig::Null,
            Self::Sim(world) => TargetConfig::Sim(world.clone()),
            Self::S3(s3) => TargetConfig::S3(s3.config(plan, w, &keys)?),
            Self::Files(_) => return Err(RunError::Bug("files have no shared sequence".into())),
        };
        let arrivals = lower::seed(plan.seed, purpose::ARRIVALS, place.stage, place.workload, 0);
        let series = lower::series(w, spec, self.endpoints().len());
        let specs = parts.into_iter().map(|part| {
            let mut stop = lower::stop_rule(w, place.warmup_ns, &part);
            if matches!(self, Self::S3(_)) {
                // Numbers of objects are this workload's own up to here.
                let room = keys.room_ops / u64::from(part.of);
                stop.ops = Some(stop.ops.map_or(room, |o| o.min(room)));
            }
            // A search deletes on when nothing is left: the storage answers, and that is what is asked.
            if let Some(most) = keys.most_ops.filter(|_| !overwrites) {
                let each = most / u64::from(part.of);
                stop.ops = Some(stop.ops.map_or(each, |o| o.min(each)));
            }
            let worker = lower::worker_number(first_worker, part.thread);
            WorkerSpec {
                worker,
                stage: place.stage,
                workload: place.workload,
                series: series.clone(),
                cpu: cpu_of(&plan.options, worker),
                ring: plan.options.ring,
                source: source.clone(),
                share: part.share(),
                pacer: lower::pacer(&w.pacing, arrivals),
                pace_share: part.share(),
                target: target.clone(),
                slots: part.slots,
                stop,
                start_delay_ns: 0,
                trace: plan.options.trace.is_some(),
                verify: w.verify,
                data: DataSeed { spec: w.data, seed: lower::data_seed(plan.seed, w) },
            }
        });
        Ok(specs.collect())
    }

    fn is_here(&self) -> bool {
        matches!(self, Self::S3(s3) if s3.storage.is_here())
    }
}

/// Whether puts go over the same objects again and again: searches and watches last, and would fill the storage.
fn overwrites(plan: &Plan) -> bool {
    matches!(
        plan.controller,
        Some(
            ControllerSpec::Limits { .. } | ControllerSpec::Saturation { .. } | ControllerSpec::Watch { .. }
        )
    )
}

/// Whether a stage lives on the simulated clock. All its workloads have to agree.
pub fn is_virtual(plan: &Plan, stage: &Stage) -> Result<bool, RunError> {
    let mut kinds = Vec::new();
    for w in &stage.workloads {
        kinds.push(matches!(plan.target_of(w)?.1, TargetSpec::Sim(_)));
    }
    if kinds.iter().any(|k| *k != kinds[0]) {
        return Err(RunError::input(
            "a stage mixes a simulated target with a real one",
            "Put them into stages of their own: one clock cannot be both",
        ));
    }
    Ok(kinds.first().copied().unwrap_or(false))
}
