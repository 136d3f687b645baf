//! Whether this machine has the memory that a stage will take: asked before the stage, because the kernel answers a
//! machine that runs out of it by killing whatever it likes.

use plimsoll_engine::SeriesSpec;
use plimsoll_engine::target::s3::connection_bytes;
use plimsoll_lower as lower;
use plimsoll_model::OpKind;
use plimsoll_model::plan::{Checksum, ObjectOptions, Plan, S3Target, Stage, TargetSpec, Workload, suite};
use plimsoll_model::units::Size;

use crate::error::CrewError;
use crate::sample::{ControlGroups, parse};
use crate::target;

/// Of a thread: what it touches of its stack, its ring, and tables.
const THREAD_BYTES: u64 = 256 << 10;
/// Of an op in flight, beside its buffer.
const SLOT_BYTES: u64 = 4 << 10;
/// Of a histogram, what its values touch: of 270 KB the pages of the octaves that latencies lie in.
const HISTOGRAM_BYTES: u64 = 96 << 10;
/// Share of the memory that is free which a stage may take: the storage's page cache and everybody else need some.
const SHARE: (u64, u64) = (3, 4);

/// Memory that a stage's workers will take, about, and how many they are.
pub fn needs(plan: &Plan, stage: &Stage) -> Result<(u64, u64), CrewError> {
    let mut threads = Vec::new();
    for w in &stage.workloads {
        let (_, spec) = plan.target_of(w)?;
        let on_files = spec.is_on_files();
        let count = match spec {
            TargetSpec::Sim(_) => 1,
            _ if on_files => w.jobs.unwrap_or(1),
            _ => lower::threads_for(plan.options.threads, w.in_flight(), target::cores(), false),
        };
        let buffer = match spec {
            TargetSpec::S3(s3) => connections_of(w, s3),
            _ if on_files => lower::size_spec(&w.size, 1).max_bytes(),
            _ => 0,
        };
        let slots = u64::from(if on_files { w.concurrency } else { w.in_flight().div_ceil(count) });
        let own = THREAD_BYTES + slots.saturating_mul(SLOT_BYTES + buffer);
        let series = lower::series(w, spec, 0);
        threads.push((u64::from(count), own, series.iter().map(histograms).sum::<u64>()));
    }
    let workers: u64 = threads.iter().map(|t| t.0).sum();
    // One slice is being filled, the others wait.
    let slices = plimsoll_engine::spare_slices(workers as usize) as u64 + 1;
    let bytes = threads.into_iter().fold(0, |all: u64, (count, own, histograms)| {
        all.saturating_add(count.saturating_mul(own + slices * histograms * HISTOGRAM_BYTES))
    });
    Ok((bytes, workers))
}

/// Memory of the connections of one op in flight: one, or those of an upload's parts.
fn connections_of(w: &Workload, target: &S3Target) -> u64 {
    let tls = target.endpoints.iter().chain(&target.redirects_to).any(|e| e.starts_with("https://"));
    let reads = w.verify || target.checksum != Checksum::None;
    let in_parts = w.mix.get(&OpKind::Multipart).is_some_and(|weight| *weight > 0);
    let parts =
        w.object.as_ref().map_or_else(|| ObjectOptions::default().part_concurrency, |o| o.part_concurrency);
    connection_bytes(tls, reads) * if in_parts { u64::from(parts.max(1)) } else { 1 }
}

fn histograms(s: &SeriesSpec) -> u64 {
    let shape = &s.shape;
    1 + [shape.service, shape.first_byte, shape.submission, shape.throttled]
        .into_iter()
        .map(u64::from)
        .sum::<u64>()
}

/// Refuses a plan of which a stage is more than this machine has memory for. What a controller makes is looked at when it is made.
pub fn check_all(plan: &Plan) -> Result<(), CrewError> {
    plan.stages.iter().try_for_each(|stage| check(plan, stage))
}

/// Refuses a stage that this machine has no memory for.
pub fn check(plan: &Plan, stage: &Stage) -> Result<(), CrewError> {
    check_part(plan, stage, 1)
}

/// The same of one agent's part, where the stage is divided over so many.
pub fn check_part(plan: &Plan, stage: &Stage, agents: u64) -> Result<(), CrewError> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let given = ControlGroups::of_self().memory_limit_bytes().unwrap_or(u64::MAX);
    match parse::memory_available(&meminfo) {
        // Nobody says.
        0 => Ok(()),
        available => {
            let (bytes, workers) = needs(plan, stage)?;
            judge((bytes.div_ceil(agents), workers.div_ceil(agents)), available.min(given), plan)
        }
    }
}

/// What to change, in the options of the command that the plan is of.
fn remedy(plan: &Plan) -> &'static str {
    let mut workloads = plan.stages.iter().flat_map(|s| &s.workloads);
    let of_a_job_file = workloads.any(Workload::is_of_job_file);
    match plan.labels.get(suite::LABEL).map(String::as_str) {
        Some(suite::DRIVE) => "Use fewer streams (--ioperdrive), or smaller blocks (--blocksize)",
        Some(suite::FILE) => "Use fewer --threads",
        _ if of_a_job_file => "Use fewer jobs (numjobs), fewer in flight (iodepth), or smaller blocks (bs)",
        _ if plan.targets.values().any(TargetSpec::is_on_files) => {
            "Use fewer --jobs, fewer in flight (--iodepth), or smaller blocks (--bs)"
        }
        _ => {
            "Use fewer in flight (--concurrency, and --part-concurrency of uploads in parts), or fewer --threads"
        }
    }
}

fn judge((bytes, workers): (u64, u64), available: u64, plan: &Plan) -> Result<(), CrewError> {
    if bytes <= available / SHARE.1 * SHARE.0 {
        return Ok(());
    }
    let mib = |n: u64| Size(n >> 20 << 20);
    Err(CrewError::input(
        format!(
            "{workers} worker(s) would take about {} of memory, and {} are free here, of which a stage may take three quarters",
            mib(bytes),
            mib(available)
        ),
        remedy(plan),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_of(jobs: u32) -> Plan {
        Plan::from_toml(&format!(
            "version = 1\n[targets.b]\nkind = \"block\"\npath = \"/x\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\n\
             mix = {{ read = 1, write = 1 }}\njobs = {jobs}\nconcurrency = 4\nsize = \"4KiB\"\n"
        ))
        .unwrap()
    }

    fn needed(jobs: u32) -> (u64, u64) {
        let plan = plan_of(jobs);
        needs(&plan, &plan.stages[0]).unwrap()
    }

    #[test]
    fn thousands_of_jobs_are_refused_where_there_is_no_room_for_them() {
        let (bytes, jobs) = needed(10_000);
        assert_eq!(jobs, 10_000);
        assert!((10 << 30..20 << 30).contains(&bytes), "{bytes}");
        let plan = plan_of(1);
        let e = judge((bytes, jobs), 16 << 30, &plan).unwrap_err();
        assert!(matches!(e, CrewError::Setup(plimsoll_setup::SetupError::Input { .. })), "{e:?}");
        assert!(e.to_string().contains("10000 worker(s)") && e.to_string().contains("16GiB"), "{e}");
        assert!(judge(needed(500), 4 << 30, &plan).is_ok(), "{:?}", needed(500));
    }

    #[test]
    fn connections_that_are_read_or_decrypted_take_more() {
        let needed = |scheme: &str, verify: bool| {
            let plan = Plan::from_toml(&format!(
                "version = 1\n[targets.t]\nkind = \"s3\"\nendpoints = [\"{scheme}://h\"]\nbucket = \"b\"\n[[stage]]\n\
                 [[stage.workload]]\nname = \"w\"\nmix = {{ get = 1 }}\nconcurrency = 10000\nsize = \"4KiB\"\nverify = {verify}\n"
            ))
            .unwrap();
            needs(&plan, &plan.stages[0]).unwrap().0 >> 20
        };
        let [plain, read, tls] = [needed("http", false), needed("http", true), needed("https", false)];
        assert!((400..700).contains(&plain), "{plain} MiB");
        assert!((1300..1700).contains(&read), "{read} MiB");
        assert!((2500..3000).contains(&tls), "{tls} MiB");
    }

    #[test]
    fn the_remedy_is_in_the_options_of_the_command() {
        let remedy = |suite: Option<&str>, kind: &str| {
            let target = match kind {
                "s3" => "kind = \"s3\"\nendpoints = [\"http://127.0.0.1:1\"]\nbucket = \"b\"",
                _ => "kind = \"block\"\npath = \"/x\"",
            };
            let label = suite.map_or(String::new(), |s| format!("[labels]\nsuite = \"{s}\"\n"));
            let op = if kind == "s3" { "get" } else { "read" };
            let plan = Plan::from_toml(&format!(
                "version = 1\n{label}[targets.b]\n{target}\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = {{ {op} = 1 }}\n\
                 concurrency = 4\nsize = \"4KiB\"\n"
            ))
            .unwrap();
            let (needs, workers) = needs(&plan, &plan.stages[0]).unwrap();
            format!("{:?}", judge((needs, workers), needs / 2, &plan).unwrap_err())
        };
        let drive = remedy(Some("drive"), "block");
        assert!(drive.contains("--ioperdrive") && drive.contains("--blocksize"), "{drive}");
        assert!(!drive.contains("numjobs"), "{drive}");
        let file = remedy(Some("file"), "block");
        assert!(file.contains("--threads") && !file.contains("numjobs"), "{file}");
        let block = remedy(None, "block");
        assert!(block.contains("--jobs") && block.contains("--iodepth") && block.contains("--bs"), "{block}");
        let object = remedy(None, "s3");
        assert!(object.contains("--concurrency") && !object.contains("numjobs"), "{object}");
    }
}
