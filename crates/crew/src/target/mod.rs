//! Targets of a plan as agents have them: reached, and brought together with a workload, the workers of a stage.

mod files;
mod place;
mod s3;

pub use files::{FilesReady, with_records};
pub use place::cores;
pub use s3::{S3Ready, key_names};

use std::collections::BTreeMap;

use place::cpu_of;
use plimsoll_engine::target::sim::SimWorld;
use plimsoll_engine::{DataSeed, TargetConfig, WorkerSpec};
use plimsoll_lower::{self as lower, Agent, Division, purpose};
use plimsoll_model::Plan;
use plimsoll_model::plan::bounds::MAX_STAGES;
use plimsoll_model::plan::{ControllerSpec, SimTarget, TargetSpec, Workload};
use plimsoll_setup::objects::FoundObjects;

use crate::error::CrewError;
use crate::order::StageOrder;

/// A workload of a stage, and who does which part of it.
#[derive(Debug)]
pub struct Lot<'a> {
    pub stage: u32,
    pub workload: u16,
    pub warmup_ns: u64,
    pub w: &'a Workload,
    pub spec: &'a TargetSpec,
    /// Of all agents.
    pub parts: Vec<Division>,
    /// How many they are, those without a part among them.
    pub agents: u32,
    /// Per agent: number of its first worker of this workload.
    pub first: Vec<u16>,
    /// The objects that it reads, where they were there already.
    pub found: Option<&'a FoundObjects>,
}

impl Lot<'_> {
    fn worker_of(&self, part: &Division) -> plimsoll_model::WorkerId {
        lower::worker_of(part, self.first[part.agent as usize])
    }
}

/// The workers of a stage, of all agents of the roll, in order of their numbers.
pub fn stage_workers(
    plan: &Plan,
    order: &StageOrder<'_>,
    roll: &[Agent],
    targets: &BTreeMap<String, Ready>,
) -> Result<Vec<WorkerSpec>, CrewError> {
    let mut first = vec![0u16; roll.len()];
    let mut all = Vec::new();
    for (i, w) in order.stage.workloads.iter().enumerate() {
        let (name, spec) = plan.target_of(w)?;
        let ready =
            targets.get(name).ok_or_else(|| CrewError::bug(format!("target '{name}' was not made ready")))?;
        let lot = Lot {
            stage: order.index,
            workload: i as u16,
            warmup_ns: lower::warmup_ns(order.stage),
            w,
            spec,
            parts: lower::parts(plan, w, (name, spec), roll),
            agents: roll.len() as u32,
            first: first.clone(),
            found: order.found.get(i).and_then(Option::as_ref),
        };
        for worker in ready.workers(plan, &lot)? {
            first[worker.worker.agent as usize] = worker.worker.worker + 1;
            all.push(worker);
        }
    }
    // Agent by agent; one agent's are in order already.
    all.sort_by_key(|w| w.worker);
    Ok(all)
}

/// A target that workers can be made for.
#[derive(Debug)]
pub enum Ready {
    Null,
    Sim(SimWorld),
    S3(Box<S3Ready>),
    /// Block devices and files are opened by the workers, and made ready before each stage.
    Files(Box<FilesReady>),
}

impl Ready {
    pub fn sim(spec: &SimTarget, seed: u64) -> Self {
        Self::Sim(SimWorld::new(spec.clone(), lower::seed(seed, purpose::SIM, 0, 0, 0)))
    }

    /// Its workers of a workload.
    fn workers(&self, plan: &Plan, lot: &Lot<'_>) -> Result<Vec<WorkerSpec>, CrewError> {
        match self {
            Self::Files(files) => files.workers(plan, lot),
            Self::Null | Self::Sim(_) | Self::S3(_) => self.shared_workers(plan, lot),
        }
    }

    /// One sequence of ops that all workers share.
    fn shared_workers(&self, plan: &Plan, lot: &Lot<'_>) -> Result<Vec<WorkerSpec>, CrewError> {
        let w = lot.w;
        let overwrites = overwrites(plan);
        // A search writes the same objects in all its stages.
        let stage = if overwrites { 0 } else { lot.stage };
        if u64::from(stage) >= MAX_STAGES {
            return Err(CrewError::input(
                format!("a run has no numbers for the objects of more than {MAX_STAGES} stages"),
                "Start a new run",
            ));
        }
        let keys = lower::key_plan(w, stage, lot.workload, lot.parts.len() as u32);
        let seed = lower::seed(plan.seed, purpose::OPS, lot.stage, lot.workload, 0);
        let again =
            overwrites.then(|| lower::objects_to_overwrite(w, lower::size_spec(&w.size, 1).max_bytes()));
        // What one search writes another reads.
        let put_first = if lower::writes_what_is_read(plan, w) { 0 } else { keys.fresh_first };
        let places = lower::KeyPlan { fresh_first: put_first, ..keys };
        let source = lower::object_source(
            w,
            &places,
            seed,
            lower::size_seed(plan.seed, w),
            again,
            lot.found.map(|f| &f.bytes),
        );
        let (target, endpoints) = match self {
            Self::Null => (TargetConfig::Null, 0),
            Self::Sim(world) => (TargetConfig::Sim(world.clone()), 0),
            Self::S3(s3) => (
                TargetConfig::S3(s3.config(plan, w, keys.fresh_first, lot.found)?),
                s3.reach.access.endpoints.len(),
            ),
            Self::Files(_) => return Err(CrewError::bug("files have no shared sequence")),
        };
        let arrivals = lower::seed(plan.seed, purpose::ARRIVALS, lot.stage, lot.workload, 0);
        let series = lower::series(w, lot.spec, endpoints);
        let specs = lot.parts.iter().map(|part| {
            let mut stop = lower::stop_rule(w, lot.warmup_ns, part);
            if matches!(self, Self::S3(_)) {
                // Numbers of objects are this workload's own up to here.
                let room = keys.room_ops / u64::from(part.share().of);
                stop.ops = Some(stop.ops.map_or(room, |o| o.min(room)));
            }
            // A search deletes on when nothing is left: the storage answers, and that is what is asked.
            if let Some(most) = keys.most_ops.filter(|_| !overwrites) {
                let each = most / u64::from(part.share().of);
                stop.ops = Some(stop.ops.map_or(each, |o| o.min(each)));
            }
            let worker = lot.worker_of(part);
            WorkerSpec {
                worker,
                stage: lot.stage,
                workload: lot.workload,
                series: series.clone(),
                cpu: cpu_of(&plan.options, worker.worker),
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
