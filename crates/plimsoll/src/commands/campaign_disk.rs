//! What the file benchmark of a campaign takes on disks that plimsoll brings: their limits are known before anything is measured.

use std::path::Path;

use plimsoll_campaign::{CampaignCell, CellWork};
use plimsoll_target::disk::DiskRounds;

use super::target_s3::limit_set;

/// Says so of a cell on such a disk; one that cannot be read is told when it is to be made.
pub fn say_least(cell: &mut CampaignCell) {
    let CellWork::Files(f) = &mut cell.work else { return };
    let Some(disk) = f.embedded.as_deref() else { return };
    let limits = disk.limits.as_deref().map(Path::new);
    let set = limit_set(disk.tier.as_deref(), limits, disk.scale.unwrap_or(1.0));
    let Ok(Some(set)) = set else { return };
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let rounds = DiskRounds {
        rounds: f.cycles,
        bytes: f.bytes_of(f.threads.unwrap_or(cores)),
        small_s: f.iops_duration.0.as_secs_f64(),
        is_cached: disk.cached,
    };
    f.least_s = Some(rounds.takes_s(&set, disk.credit.map(|c| c.0.as_secs_f64())));
}
