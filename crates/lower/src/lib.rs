//! A stage of the plan to the engine's workers. Pure: the same plan and the same roll of agents give the same workers, whoever asks.

#![warn(missing_docs)]

mod division;
mod keys;
mod roll;
mod source;
mod times;
mod workers;

pub use division::Division;
pub use keys::{
    KeyPlan, key_plan, objects_to_overwrite, prepared_objects, reads_what_is_written, used_up,
    writes_what_is_read,
};
pub use roll::{Agent, fill_parts, parts, whose_files, worker_of};
pub use source::{Region, object_source, prepare_source, region_source, size_spec};
pub use times::{planned_ns, stop_rule, warmup_ns};
pub use workers::threads_for;

use plimsoll_engine::{Pacer, SeriesSpec};
use plimsoll_model::OpKind;
use plimsoll_model::interval::SeriesShape;
use plimsoll_model::plan::{Pacing, TargetSpec, Workload};

/// Purposes of the seeds that are derived from the plan's.
pub mod purpose {
    /// Kinds, places and block sizes of ops.
    pub const OPS: u64 = 1;
    /// Intended starts of Poisson arrivals.
    pub const ARRIVALS: u64 = 2;
    /// What is written, and verified.
    pub const DATA: u64 = 3;
    /// Sizes of objects.
    pub const SIZES: u64 = 4;
    /// Service times and errors of the simulated storage.
    pub const SIM: u64 = 5;
}

/// A seed for one purpose of one part of the run.
pub fn seed(plan_seed: u64, purpose: u64, stage: u32, workload: u16, job: u32) -> u64 {
    let mut s = plimsoll_engine::rng::derive(plan_seed, purpose);
    for part in [u64::from(stage), u64::from(workload), u64::from(job)] {
        s = plimsoll_engine::rng::derive(s, part);
    }
    s
}

/// Seed of the contents of a workload's objects or blocks: of the plan, or of its named data set, which outlives plans.
pub fn data_seed(plan_seed: u64, w: &Workload) -> u64 {
    plimsoll_engine::rng::derive(dataset_seed(plan_seed, w), purpose::DATA)
}

/// Seed of the sizes of a workload's objects.
pub fn size_seed(plan_seed: u64, w: &Workload) -> u64 {
    plimsoll_engine::rng::derive(dataset_seed(plan_seed, w), purpose::SIZES)
}

fn dataset_seed(plan_seed: u64, w: &Workload) -> u64 {
    match w.object.as_ref().and_then(|o| o.dataset.as_ref()) {
        // FNV-1a.
        Some(name) => name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)),
        None => plan_seed,
    }
}

/// `seed`: of Poisson arrivals; the others are not random.
pub fn pacer(pacing: &Pacing, seed: u64) -> Pacer {
    match pacing {
        Pacing::Closed => Pacer::Closed,
        Pacing::Constant(r) => Pacer::Constant { per_s: r.0 },
        Pacing::Capped(r) => Pacer::Capped { per_s: r.0 },
        Pacing::Poisson(r) => Pacer::Poisson { per_s: r.0, seed },
        Pacing::Bytes(b) => Pacer::Bytes { bytes_per_s: b.0 },
        Pacing::Ramp { from, to, over } => {
            Pacer::Ramp { from_per_s: from.0, to_per_s: to.0, over_ns: over.as_ns() }
        }
    }
}

/// The series that a workload's ops record into.
pub fn series(w: &Workload, target: &TargetSpec, endpoints: usize) -> Vec<SeriesSpec> {
    let object = matches!(target, TargetSpec::S3(_));
    let files = target.is_on_files();
    let mut kinds: Vec<OpKind> = w.mix.iter().filter(|(_, weight)| **weight > 0).map(|(k, _)| *k).collect();
    if object && kinds.contains(&OpKind::Multipart) {
        kinds.push(OpKind::UploadPart);
    }
    let syncs = w.block.as_ref().is_some_and(|b| b.fsync > 0 || b.fdatasync > 0 || b.end_fsync);
    if files && syncs && !kinds.contains(&OpKind::Fsync) {
        kinds.push(OpKind::Fsync);
    }
    kinds.sort_unstable();
    kinds.dedup();
    let open = !matches!(w.pacing, Pacing::Closed);
    let spec = |(i, kind): (usize, OpKind)| SeriesSpec {
        kind,
        shape: SeriesShape {
            service: open,
            first_byte: object && matches!(kind, OpKind::Get | OpKind::GetRange),
            submission: files,
            throttled: object || matches!(target, TargetSpec::Sim(_)),
            endpoints: if object { endpoints } else { 0 },
        },
        trace_series: i as u16,
    };
    kinds.into_iter().enumerate().map(spec).collect()
}

/// The series of a preparation: plain puts.
pub fn prepare_series(endpoints: usize) -> Vec<SeriesSpec> {
    let shape = SeriesShape { throttled: true, endpoints, ..SeriesShape::default() };
    vec![SeriesSpec { kind: OpKind::Put, shape, trace_series: 0 }]
}
