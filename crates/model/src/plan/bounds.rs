//! The most of everything that a plan counts. Inside these bounds no sum or product of the program overflows, keys of
//! different workloads stay apart, and worker numbers fit in 16 bits; outside of them a plan is a slip of the pen.
//! Whether a machine has the memory for what is asked is another question, which the run asks before each stage.

use std::time::Duration;

use super::check::invalid;
use super::{
    BlockOptions, BlockTarget, ControllerSpec, FilesTarget, ObjectOptions, Pacing, Plan, PlanError,
    RunOptions, SimTarget, SizeDist, Stage, TargetSpec, Workload,
};
use crate::OpKind;
use crate::units::{Size, Span};

/// Stages of a run, those that a controller makes included: each has numbers for the objects of all its workloads.
pub const MAX_STAGES: u64 = 4_000;
/// Workloads of a stage.
pub const MAX_WORKLOADS: u64 = 4_096;
/// Searches of one run: the cells of each have numbers of their own.
pub const MAX_SEARCHES: u64 = 16;
/// Jobs of all workloads of a stage: each is a thread, and worker numbers have 16 bits.
pub const MAX_JOBS: u64 = 16_000;
/// Ops in flight of all workloads of a stage.
pub const MAX_IN_FLIGHT: u64 = 1_000_000;
/// Bytes of an object: S3's own bound.
pub const MAX_OBJECT: u64 = 50 << 40;
/// Bytes of one I/O on a device or file: the kernel moves less than 2 GiB at once.
pub const MAX_BLOCK: u64 = 1 << 30;
/// Bytes of a device or file: offsets are signed, and sums of two stay so.
pub const MAX_REGION: u64 = 1 << 61;
/// Length of anything that takes time.
pub const MAX_TIME: Duration = Duration::from_secs(366 * 86_400);
/// The slice of the recorded series.
pub const GRID: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(60));
/// Operations a second.
pub const OPS_RATE: (f64, f64) = (1e-6, 1e9);
/// Bytes a second.
pub const MAX_BYTES_RATE: f64 = 1e15;
/// Objects that are prepared: numbers of data sets end at 2^40.
pub const MAX_OBJECTS: u64 = 10_000_000_000;
/// Objects that are there already and are read: their names are kept in memory.
pub const MAX_EXISTING: u64 = 1_000_000;
/// Ops and passes after which a workload ends.
pub const MAX_OPS: u64 = 1 << 53;
/// Weight of an op or a size.
pub const MAX_WEIGHT: u64 = 1_000_000;
/// Prefixes over which keys are spread.
pub const MAX_PREFIXES: u64 = 1 << 24;
/// Parts of one upload: S3's own bound.
pub const MAX_PARTS: u64 = 10_000;
/// Keys of one LIST page, objects of one batch of deletes, parts of one upload in flight.
pub const MAX_BATCH: u64 = 10_000;
/// Files of one job.
pub const MAX_FILES: u64 = 1_000_000;
/// Endpoints, CPUs, devices, sizes of a list, load points: whatever is written one by one.
pub const MAX_LIST: u64 = 4_096;

/// Where something is written, and what it is.
type At<'a> = (&'a str, &'a str);

fn within((place, what): At<'_>, value: u64, least: u64, most: u64) -> Result<(), PlanError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let remedy = format!("Write a number from {least} to {most}.");
    Err(invalid(place, format!("{what} of {value} is out of range"), remedy))
}

fn size((place, what): At<'_>, value: Size, least: u64, most: u64) -> Result<(), PlanError> {
    if (least..=most).contains(&value.0) {
        return Ok(());
    }
    let remedy = format!("Write a size from {} to {}.", Size(least), Size(most));
    Err(invalid(place, format!("{what} of {value} is out of range"), remedy))
}

fn time((place, what): At<'_>, value: Span) -> Result<(), PlanError> {
    if value.0 <= MAX_TIME {
        return Ok(());
    }
    Err(invalid(place, format!("{what} of {value} is out of range"), "Write 366d or less."))
}

/// A time in which something is to be done.
fn some_time((place, what): At<'_>, value: Span) -> Result<(), PlanError> {
    if value.0.is_zero() {
        return Err(invalid(place, format!("{what} of {value} leaves no time"), "Write a time such as 2m."));
    }
    time((place, what), value)
}

/// A number that is none, or not in a range.
fn number((place, what): At<'_>, value: f64, (least, most): (f64, f64)) -> Result<(), PlanError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let remedy = format!("Write a number from {least} to {most}.");
    Err(invalid(place, format!("{what} of {value} is out of range"), remedy))
}

impl Plan {
    /// Everything that can be counted is within its bounds.
    pub(super) fn check_bounds(&self) -> Result<(), PlanError> {
        options(&self.options)?;
        within(("targets", "a number"), self.targets.len() as u64, 1, MAX_LIST)?;
        for (name, spec) in &self.targets {
            target(&format!("targets.{name}"), spec)?;
        }
        within(("stage", "a number"), self.stages.len() as u64, 0, MAX_STAGES)?;
        for (i, stage) in self.stages.iter().enumerate() {
            self.stage_bounds(&format!("stage {}", i + 1), stage)?;
        }
        self.controller.as_ref().map_or(Ok(()), |c| self.controller_bounds(c))
    }

    fn controller_bounds(&self, controller: &ControllerSpec) -> Result<(), PlanError> {
        let place = "controller";
        let template = match controller {
            ControllerSpec::Sweep { template, ops, sizes, concurrencies, repeat } => {
                let many = |n: usize| n.max(1) as u64;
                let cells =
                    [many(ops.len()), many(sizes.len()), many(concurrencies.len()), u64::from(*repeat)];
                let stages = cells.into_iter().fold(1, u64::saturating_mul);
                within(
                    (place, "a number of cells (ops x sizes x concurrencies x repeat)"),
                    stages,
                    1,
                    MAX_STAGES,
                )?;
                for s in sizes {
                    size((place, "a size"), *s, 0, MAX_OBJECT)?;
                }
                for c in concurrencies {
                    within((place, "a concurrency"), u64::from(*c), 1, MAX_IN_FLIGHT)?;
                }
                template
            }
            ControllerSpec::Saturation {
                template,
                then,
                max_concurrency,
                p99_ceiling,
                drain,
                load_points,
                budget,
            } => {
                within(
                    (place, "max_concurrency"),
                    u64::from(max_concurrency.unwrap_or(1)),
                    1,
                    MAX_IN_FLIGHT,
                )?;
                within((place, "a number of load points"), load_points.len() as u64, 0, MAX_LIST)?;
                within((place, "a number of searches"), 1 + then.len() as u64, 1, MAX_SEARCHES)?;
                for (i, stage) in then.iter().enumerate() {
                    self.stage_bounds(&format!("controller.then {}", i + 1), stage)?;
                }
                for span in [p99_ceiling, drain].into_iter().flatten() {
                    time((place, "a time"), *span)?;
                }
                budget.map_or(Ok(()), |b| some_time((place, "a budget"), b))?;
                template
            }
            ControllerSpec::Limits { template, budget, .. } => {
                some_time((place, "a budget"), *budget)?;
                template
            }
            ControllerSpec::Watch { template, duration } => {
                time((place, "a duration"), *duration)?;
                template
            }
        };
        self.stage_bounds("controller.template", template)
    }

    fn stage_bounds(&self, place: &str, stage: &Stage) -> Result<(), PlanError> {
        time((place, "a warm-up"), stage.warmup)?;
        within((place, "a number of workloads"), stage.workloads.len() as u64, 0, MAX_WORKLOADS)?;
        let (mut jobs, mut in_flight) = (0u64, 0u64);
        for w in &stage.workloads {
            let place = format!("{place}, workload '{}'", w.name);
            let (_, spec) = self.target_of(w)?;
            workload(&place, w, spec)?;
            jobs += u64::from(w.jobs.unwrap_or(1));
            in_flight = in_flight.saturating_add(u64::from(w.concurrency) * u64::from(w.jobs.unwrap_or(1)));
        }
        within((place, "a number of jobs (of all workloads)"), jobs, 0, MAX_JOBS)?;
        within((place, "concurrency x jobs (of all workloads)"), in_flight, 0, MAX_IN_FLIGHT)
    }
}

fn options(o: &RunOptions) -> Result<(), PlanError> {
    let place = "options";
    within((place, "threads"), u64::from(o.threads.unwrap_or(1)), 0, MAX_LIST)?;
    within((place, "a number of cpus"), o.cpus.len() as u64, 0, MAX_LIST)?;
    for cpu in &o.cpus {
        within((place, "a cpu"), u64::from(*cpu), 0, u64::from(u16::MAX))?;
    }
    if !(GRID.0..=GRID.1).contains(&o.grid.0) {
        return Err(invalid("options.grid", format!("{} is out of range", o.grid), "Write 1ms to 60s."));
    }
    o.goal.map_or(Ok(()), |goal| time((place, "a goal"), goal))
}

fn target(place: &str, spec: &TargetSpec) -> Result<(), PlanError> {
    match spec {
        TargetSpec::S3(s3) => {
            within((place, "a number of endpoints"), s3.endpoints.len() as u64, 0, MAX_LIST)?;
            if let Some(scale) = s3.embedded.as_ref().and_then(|e| e.scale) {
                number((place, "embedded.scale"), scale, (1e-9, 1e9))?;
            }
            time((place, "a timeout"), s3.timeout)
        }
        TargetSpec::Block(b) => block_target(place, b),
        TargetSpec::Files(f) => files_target(place, f),
        TargetSpec::Null => Ok(()),
        TargetSpec::Sim(sim) => sim_target(place, sim),
    }
}

fn block_target(place: &str, b: &BlockTarget) -> Result<(), PlanError> {
    if let Some(volume) = b.embedded_volume() {
        for (what, factor) in [("embedded.scale", volume.scale), ("embedded.burst_scale", volume.burst_scale)]
        {
            factor.map_or(Ok(()), |f| number((place, what), f, (1e-6, 1e3)))?;
        }
    }
    within((place, "a number of paths"), b.also.len() as u64 + 1, 1, MAX_LIST)?;
    let (offset, length) = (b.offset.unwrap_or(Size(0)), b.size.unwrap_or(Size(0)));
    size((place, "an offset"), offset, 0, MAX_REGION)?;
    size((place, "a size"), length, 0, MAX_REGION)?;
    size((place, "an end (offset + size)"), Size(offset.0 + length.0), 0, MAX_REGION)
}

fn files_target(place: &str, f: &FilesTarget) -> Result<(), PlanError> {
    within((place, "files"), u64::from(f.files), 1, MAX_FILES)?;
    size((place, "file_size"), f.file_size, 0, MAX_REGION)?;
    let all = u64::from(f.files).saturating_mul(f.file_size.0);
    size((place, "files x file_size"), Size(all), 0, MAX_REGION)
}

fn sim_target(place: &str, s: &SimTarget) -> Result<(), PlanError> {
    for span in [Some(s.base), s.stall_every, s.stall_for].into_iter().flatten() {
        time((place, "a time"), span)?;
    }
    if let Some(stream) = s.stream {
        number((place, "stream"), stream.0, (1.0, MAX_BYTES_RATE))?;
    }
    number((place, "spread"), s.spread, (0.0, 10.0))?;
    number((place, "error_rate"), s.error_rate, (0.0, 1.0))?;
    within((place, "servers"), u64::from(s.servers.unwrap_or(1)), 1, MAX_IN_FLIGHT)?;
    for bucket in [&s.ops, &s.bytes].into_iter().flatten() {
        number((place, "sustained_per_s"), bucket.sustained_per_s, (0.0, MAX_BYTES_RATE))?;
        number((place, "burst_per_s"), bucket.burst_per_s.unwrap_or(1.0), (OPS_RATE.0, MAX_BYTES_RATE))?;
        number((place, "capacity"), bucket.capacity, (0.0, MAX_REGION as f64))?;
        number((place, "initial_fill"), bucket.initial_fill, (0.0, 1.0))?;
    }
    Ok(())
}

fn workload(place: &str, w: &Workload, spec: &TargetSpec) -> Result<(), PlanError> {
    for weight in w.mix.values() {
        within((place, "a weight"), u64::from(*weight), 0, MAX_WEIGHT)?;
    }
    within((place, "concurrency"), u64::from(w.concurrency), 0, MAX_IN_FLIGHT)?;
    within((place, "jobs"), u64::from(w.jobs.unwrap_or(1)), 0, MAX_JOBS)?;
    let most = match spec {
        TargetSpec::Block(_) | TargetSpec::Files(_) => MAX_BLOCK,
        TargetSpec::S3(_) | TargetSpec::Null | TargetSpec::Sim(_) => MAX_OBJECT,
    };
    sizes(place, &w.size, most)?;
    pacing(place, &w.pacing)?;
    if let Some(duration) = w.stop.duration {
        time((place, "a duration"), duration)?;
    }
    within((place, "ops"), w.stop.ops.unwrap_or(1), 0, MAX_OPS)?;
    size((place, "bytes"), w.stop.bytes.unwrap_or(Size(1)), 0, MAX_REGION)?;
    if let Some(object) = &w.object {
        object_options(place, object, w)?;
    }
    w.block.as_ref().map_or(Ok(()), |block| block_options(place, block))
}

/// The largest size that is drawn.
pub(super) fn largest(sizes: &SizeDist) -> u64 {
    match sizes {
        SizeDist::Fixed(s) => s.0,
        SizeDist::Uniform { max, .. } | SizeDist::LogNormal { max, .. } => max.0,
        SizeDist::Weighted(list) => list.iter().map(|(s, _)| s.0).max().unwrap_or(0),
    }
}

fn sizes(place: &str, sizes: &SizeDist, most: u64) -> Result<(), PlanError> {
    if let SizeDist::Weighted(list) = sizes {
        within((place, "a number of sizes"), list.len() as u64, 1, MAX_LIST)?;
        for (_, weight) in list {
            within((place, "a weight of a size"), u64::from(*weight), 0, MAX_WEIGHT)?;
        }
    }
    if let SizeDist::LogNormal { sigma, .. } = sizes {
        number((place, "a sigma"), *sigma, (0.0, 100.0))?;
    }
    size((place, "a size"), Size(largest(sizes)), 0, most)
}

fn pacing(place: &str, pacing: &Pacing) -> Result<(), PlanError> {
    let rate = |r: f64| number((place, "a rate"), r, OPS_RATE);
    match pacing {
        Pacing::Closed => Ok(()),
        Pacing::Constant(r) | Pacing::Capped(r) | Pacing::Poisson(r) => rate(r.0),
        Pacing::Bytes(b) => number((place, "a rate"), b.0, (1.0, MAX_BYTES_RATE)),
        Pacing::Ramp { from, to, over } => {
            rate(from.0)?;
            rate(to.0)?;
            time((place, "a ramp"), *over)
        }
    }
}

fn object_options(place: &str, o: &ObjectOptions, w: &Workload) -> Result<(), PlanError> {
    within((place, "objects"), o.objects, 0, MAX_OBJECTS)?;
    within((place, "prefixes"), u64::from(o.prefixes), 0, MAX_PREFIXES)?;
    size((place, "part_size"), o.part_size, 1, MAX_OBJECT)?;
    within((place, "part_concurrency"), u64::from(o.part_concurrency), 1, MAX_BATCH)?;
    within((place, "list_max_keys"), u64::from(o.list_max_keys), 1, MAX_BATCH)?;
    within((place, "delete_batch"), u64::from(o.delete_batch), 1, MAX_BATCH)?;
    size((place, "a range"), o.range.unwrap_or(Size(1)), 0, MAX_OBJECT)?;
    if w.mix.contains_key(&OpKind::Multipart) {
        let parts = largest(&w.size).div_ceil(o.part_size.0);
        within((place, "a number of parts (size / part_size)"), parts, 0, MAX_PARTS)?;
    }
    Ok(())
}

fn block_options(place: &str, b: &BlockOptions) -> Result<(), PlanError> {
    if let Some(delay) = b.start_delay {
        time((place, "start_delay"), delay)?;
    }
    if let Some(write) = &b.write_size {
        sizes(place, write, MAX_BLOCK)?;
    }
    size((place, "offset_align"), b.offset_align.unwrap_or(Size(1)), 1, MAX_REGION)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S3: &str = "version = 1\n[targets.s]\nkind = \"s3\"\nendpoints = [\"http://h\"]\nbucket = \"b\"\n[[stage]]\n\
                      [[stage.workload]]\nname = \"w\"\nmix = { put = 1 }\n";
    const BLOCK: &str = "version = 1\n[targets.s]\nkind = \"block\"\npath = \"/x\"\nsize = \"1GiB\"\n[[stage]]\n\
                         [[stage.workload]]\nname = \"w\"\nmix = { read = 1 }\n";

    fn refused(plan: &str, by: &str) {
        let e = Plan::from_toml(plan).expect_err(plan).to_string();
        assert!(e.contains(by) && e.contains("out of range") && e.contains("Write "), "{by}: {e}");
    }

    #[test]
    fn whatever_counts_has_an_end() {
        for (line, by) in [
            ("concurrency = 4294967295", "concurrency"),
            ("mix = { put = 4294967295 }", "weight"),
            ("size = \"60TiB\"", "size"),
            ("stop = { duration = \"400d\" }", "duration"),
            ("stop = { ops = 9223372036854775807 }", "ops"),
            ("pacing = { constant = \"1000000000000/s\" }", "rate"),
            ("object = { objects = 99999999999 }", "objects"),
            ("object = { prefixes = 4294967295 }", "prefixes"),
            ("object = { part_size = \"0\" }", "part_size"),
            ("object = { part_concurrency = 0 }", "part_concurrency"),
            ("object = { delete_batch = 4294967295 }", "delete_batch"),
            ("mix = { multipart = 1 }\nsize = \"1GiB\"\nobject = { part_size = \"16KiB\" }", "parts"),
        ] {
            let plan = if line.starts_with("mix") {
                S3.replace("mix = { put = 1 }", line)
            } else {
                format!("{S3}{line}\n")
            };
            refused(&plan, by);
        }
        for (line, by) in [
            ("jobs = 100000", "jobs"),
            ("jobs = 16000\nconcurrency = 1000", "concurrency x jobs"),
            ("size = \"2GiB\"", "size"),
            ("block = { start_delay = \"999d\" }", "start_delay"),
            ("block = { write_size = \"2GiB\" }", "size"),
        ] {
            refused(&format!("{BLOCK}{line}\n"), by);
        }
        refused(
            &BLOCK.replace(
                "size = \"1GiB\"",
                "size = \"2EiB\"".replace("2EiB", "4611686018427387904").as_str(),
            ),
            "size",
        );
        let end = "size = \"2305843009213693952\"\noffset = \"2305843009213693952\"";
        refused(&BLOCK.replace("size = \"1GiB\"", end), "end");
        refused(&S3.replace("[targets.s]", "[options]\ngrid = \"1us\"\n[targets.s]"), "grid");
    }

    #[test]
    fn jobs_and_workloads_count_over_the_whole_stage() {
        let workload = "[[stage.workload]]\nname = \"x\"\nmix = { read = 1 }\njobs = 9000\n";
        refused(&format!("{BLOCK}{workload}{workload}"), "jobs");
        let one = "[[stage.workload]]\nname = \"x\"\nmix = { read = 1 }\n";
        refused(&format!("{BLOCK}{}", one.repeat(4096)), "workloads");
    }

    #[test]
    fn what_is_asked_for_every_day_is_within_bounds() {
        for line in ["jobs = 4096", "concurrency = 65536", "size = \"1GiB\"", "stop = { duration = \"90d\" }"]
        {
            Plan::from_toml(&format!("{BLOCK}{line}\n")).unwrap();
        }
    }
}
