//! Whether a stage's reads came from the device: what the workload read against what the kernel counted.

use plimsoll_model::plan::TargetSpec;
use plimsoll_model::sample::Role;
use plimsoll_model::{Finding, OpKind, Sample};
use plimsoll_store::{RunData, StageData};

use crate::safety::reads::{ReadCounts, cached_reads, is_uncounted};

/// One finding at most: the kernel's counts do not tell the workloads of a stage apart.
pub fn judge_reads(data: &RunData, stage: &StageData) -> Option<Finding> {
    let mut read = 0;
    let mut buffered = false;
    let mut name = None;
    let mut uncounted = false;
    for (id, points) in stage.series.iter().filter(|(id, _)| id.kind == OpKind::Read) {
        let workload = stage.spec.workloads.get(usize::from(id.workload))?;
        let (through_cache, path) = match data.plan.target_of(workload).ok()?.1 {
            TargetSpec::Block(b) => (b.buffered, &b.path),
            TargetSpec::Files(f) => (f.buffered, &f.directory),
            _ => continue,
        };
        buffered |= through_cache;
        let facts = data.environment.devices.get(path);
        uncounted |= facts.and_then(|d| d.get("file_system")).is_some_and(|kind| is_uncounted(kind));
        // Warm-up and tail included: samples cannot leave them out.
        read += points.iter().map(|p| p.bytes_moved).sum::<u64>();
        name.get_or_insert_with(|| workload.name.clone());
    }
    let (a, b) = around(&data.samples, stage.start_ns, stage.end_ns.unwrap_or(stage.last_ns))?;
    let grown = |pick: fn(&Sample) -> u64| pick(b).saturating_sub(pick(a));
    let device = (!b.disks.is_empty()).then(|| {
        let fetched = |(n, d): (&String, &plimsoll_model::sample::DiskCounters)| {
            d.read_bytes.saturating_sub(a.disks.get(n).map_or(0, |x| x.read_bytes))
        };
        b.disks.iter().map(fetched).sum()
    });
    let counts =
        ReadCounts { read, process: grown(|s| s.process_io.read_bytes), device, buffered, uncounted };
    cached_reads(&name?, counts)
}

/// The last sample before the stage and the first after it: counts may be too high by what others read, never too low.
fn around(samples: &[Sample], from_ns: u64, to_ns: u64) -> Option<(&Sample, &Sample)> {
    let client = || samples.iter().filter(|s| s.role == Role::Client);
    let first = client().rfind(|s| s.at_ns <= from_ns)?;
    let last = client().find(|s| s.at_ns >= to_ns)?;
    Some((first, last))
}
