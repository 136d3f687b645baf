//! A block or file workload of the plan, as the engine's workers: one per job.

use plimsoll_engine::pacer::Pacer;
use plimsoll_engine::source::{Dist, FileOrder, KindSpec, OpSource, Place, Share, SizeSpec, SyncRule};
use plimsoll_engine::{DataSeed, SeriesSpec, StopRule, TargetConfig, WorkerSpec, api::FileConfig, rng};
use plimsoll_model::interval::SeriesShape;
use plimsoll_model::plan::{BlockOptions, KeyDist, Pacing, Plan, SizeDist, Stage, TargetSpec, Workload};
use plimsoll_model::{OpKind, SeriesId};

use super::names::{first_object, paths_of_job};
use crate::RunError;

/// Where a workload stands, for [`workers`].
#[derive(Debug, Clone, Copy)]
pub struct LowerWorkload<'a> {
    pub plan: &'a Plan,
    pub stage: &'a Stage,
    pub stage_index: u32,
    pub workload: usize,
    /// Number of this workload's first worker; they count up from it.
    pub first_worker: u16,
    pub trace: bool,
    /// `OpRecord::series` of the workload's first series; they count up in the order of [`series_of`].
    pub first_trace_series: u16,
    /// Bytes of the device or file, where the plan does not say.
    pub known_size: Option<u64>,
}

/// The duration of a workload that has no stop rule.
const DEFAULT_SECONDS: u64 = 30;

/// Kinds that a workload records, in order: those of its mix, then fsync where it syncs.
pub fn kinds_of(w: &Workload) -> Vec<OpKind> {
    let options = w.block.clone().unwrap_or_default();
    let mut kinds: Vec<OpKind> = w.mix.iter().filter(|(_, n)| **n > 0).map(|(k, _)| *k).collect();
    let syncs = options.fsync > 0 || options.fdatasync > 0 || options.end_fsync;
    if syncs && !kinds.contains(&OpKind::Fsync) {
        kinds.push(OpKind::Fsync);
    }
    kinds.sort();
    kinds
}

/// The series of a workload, in ascending order of id.
pub fn series_of(stage: u32, workload: u16, w: &Workload) -> Vec<SeriesId> {
    kinds_of(w).into_iter().map(|kind| SeriesId { stage, workload, kind }).collect()
}

/// One worker per job, each with its own sequence of offsets.
pub fn workers(l: LowerWorkload<'_>) -> Result<Vec<WorkerSpec>, RunError> {
    let w = &l.stage.workloads[l.workload];
    let (name, target) = l.plan.target_of(w)?;
    let jobs = w.jobs.unwrap_or(1).max(1);
    let options = w.block.clone().unwrap_or_default();
    let region = Region::of(name, target, l.known_size)?;
    let open = !matches!(w.pacing, Pacing::Closed);
    let seed = rng::derive(l.plan.seed, (u64::from(l.stage_index) << 20) + l.workload as u64);
    let series: Vec<SeriesSpec> = kinds_of(w)
        .into_iter()
        .enumerate()
        .map(|(i, kind)| SeriesSpec {
            kind,
            shape: SeriesShape { service: open, submission: true, ..SeriesShape::default() },
            trace_series: l.first_trace_series + i as u16,
        })
        .collect();
    let worker = |job: u32| WorkerSpec {
        worker: l.first_worker + job as u16,
        stage: l.stage_index,
        workload: l.workload as u16,
        series: series.clone(),
        cpu: cpu(l.plan, l.first_worker + job as u16),
        ring: options.ring.unwrap_or(l.plan.options.ring),
        source: source(w, &options, &region, rng::derive(seed, u64::from(job))),
        share: Share::WHOLE,
        pacer: pacer(&w.pacing, jobs, seed),
        pace_share: pace_share(&w.pacing, job, jobs),
        target: target_config(name, target, job),
        slots: w.concurrency,
        stop: stop(w, l.stage, job, jobs),
        start_delay_ns: options.start_delay.map_or(0, |s| s.as_ns()),
        trace: l.trace,
        verify: w.verify,
        data: DataSeed { spec: w.data, seed: l.plan.seed },
    };
    let all: Vec<WorkerSpec> = (0..jobs).map(worker).collect();
    if let Some(Err(problem)) = all.first().map(|w| w.source.check()) {
        return Err(RunError::input(
            format!("workload '{}': {problem}", w.name),
            "Correct sizes and region in the plan",
        ));
    }
    Ok(all)
}

/// The part of each file that is used.
struct Region {
    files: u32,
    offset: u64,
    length: u64,
}

impl Region {
    fn of(name: &str, target: &TargetSpec, known: Option<u64>) -> Result<Self, RunError> {
        match target {
            TargetSpec::Block(b) => {
                let offset = b.offset.map_or(0, |s| s.0);
                let length = b.size.map(|s| s.0).or_else(|| known.map(|k| k.saturating_sub(offset)));
                match length {
                    Some(length) if length > 0 => Ok(Self { files: 1, offset, length }),
                    _ => Err(RunError::input(
                        format!("target '{name}': {} has no size", b.path),
                        "Give a size, for example --size 1GiB",
                    )),
                }
            }
            TargetSpec::Files(f) => Ok(Self { files: f.files, offset: 0, length: f.file_size.0 }),
            _ => Err(RunError::Bug(format!("target '{name}' is neither block nor files"))),
        }
    }
}

fn cpu(plan: &Plan, worker: u16) -> Option<u32> {
    let cpus = &plan.options.cpus;
    (!cpus.is_empty()).then(|| cpus[usize::from(worker) % cpus.len()])
}

fn target_config(name: &str, target: &TargetSpec, job: u32) -> TargetConfig {
    let paths = paths_of_job(name, target, job);
    let object = paths.first().map_or(0, |p| first_object(p));
    let config =
        |buffered| FileConfig { paths: paths.clone(), buffered, create: false, first_object: object };
    match target {
        TargetSpec::Files(f) => TargetConfig::Files(config(f.buffered)),
        TargetSpec::Block(b) => TargetConfig::Block(config(b.buffered)),
        _ => TargetConfig::Block(config(true)),
    }
}

fn source(w: &Workload, options: &BlockOptions, region: &Region, seed: u64) -> OpSource {
    let kinds = w
        .mix
        .iter()
        .filter(|(_, weight)| **weight > 0)
        .map(|(kind, weight)| {
            let dist = match (*kind, &options.write_size) {
                (OpKind::Write, Some(size)) => size,
                _ => &w.size,
            };
            let size = size_spec(dist, options.offset_align.map(|a| a.0));
            let align = options.offset_align.map_or_else(|| size.min_bytes(), |a| a.0).max(1);
            KindSpec {
                kind: *kind,
                weight: *weight,
                place: Place::Region {
                    files: region.files,
                    order: FileOrder::RoundRobin,
                    offset_bytes: region.offset,
                    length_bytes: region.length,
                    align_bytes: align,
                    dist: dist_of(w.keys, options.norandommap),
                },
                size,
            }
        })
        .collect();
    let sync = SyncRule {
        fsync_every: options.fsync,
        fdatasync_every: options.fdatasync,
        end_fsync: options.end_fsync,
    };
    OpSource { seed, kinds, sync }
}

/// With an alignment of its own a fixed size is a range of one: only then do offsets follow the alignment.
fn size_spec(d: &SizeDist, align: Option<u64>) -> SizeSpec {
    match d {
        SizeDist::Fixed(s) => match align {
            Some(a) if a != s.0 => SizeSpec::Uniform { min: s.0, max: s.0, step: 1 },
            _ => SizeSpec::Fixed(s.0),
        },
        SizeDist::Uniform { min, max } => SizeSpec::Uniform { min: min.0, max: max.0, step: min.0.max(1) },
        SizeDist::Weighted(l) => SizeSpec::Weighted(l.iter().map(|(s, w)| (s.0, *w)).collect()),
        SizeDist::LogNormal { median, sigma, max } => {
            SizeSpec::LogNormal { median: median.0, sigma: *sigma, max: max.0 }
        }
    }
}

fn dist_of(keys: KeyDist, norandommap: bool) -> Dist {
    match keys {
        KeyDist::Sequential => Dist::Sequential,
        KeyDist::Uniform if norandommap => Dist::Uniform,
        KeyDist::Uniform => Dist::Once,
        KeyDist::Zipf(s) => Dist::Zipf(s),
        KeyDist::Pareto(h) => Dist::Pareto(h),
    }
}

fn pacer(p: &Pacing, jobs: u32, seed: u64) -> Pacer {
    match p {
        Pacing::Closed => Pacer::Closed,
        Pacing::Constant(r) => Pacer::Constant { per_s: r.0 },
        Pacing::Poisson(r) => Pacer::Poisson { per_s: r.0, seed: rng::derive(seed, 7) },
        // Each worker paces its own bytes.
        Pacing::Bytes(r) => Pacer::Bytes { bytes_per_s: r.0 / f64::from(jobs) },
        Pacing::Ramp { from, to, over } => {
            Pacer::Ramp { from_per_s: from.0, to_per_s: to.0, over_ns: over.as_ns() }
        }
    }
}

fn pace_share(p: &Pacing, job: u32, jobs: u32) -> Share {
    match p {
        Pacing::Bytes(_) | Pacing::Closed => Share::WHOLE,
        _ => Share { index: job, of: jobs },
    }
}

/// Ops and bytes are the workload's, divided over its jobs; passes are each job's own, as fio has them.
fn stop(w: &Workload, stage: &Stage, job: u32, jobs: u32) -> StopRule {
    let part = |total: u64| {
        let jobs = u64::from(jobs);
        total / jobs + u64::from(u64::from(job) < total % jobs)
    };
    let s = w.stop;
    let none = s.duration.is_none() && s.ops.is_none() && s.bytes.is_none() && s.loops.is_none();
    let after = match s.duration {
        Some(d) => Some(d.as_ns()),
        None => none.then_some(DEFAULT_SECONDS * 1_000_000_000),
    };
    StopRule {
        after_ns: after.map(|ns| ns + stage.warmup.as_ns()),
        ops: s.ops.map(part),
        bytes: s.bytes.map(|b| part(b.0)),
        loops: s.loops,
    }
}
