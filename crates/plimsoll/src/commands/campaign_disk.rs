//! What the file benchmark of a campaign takes on disks that plimsoll brings: their limits are known before anything is measured.

use std::path::Path;

use plimsoll_campaign::{CampaignCell, CellWork};
use plimsoll_model::plan::EmbeddedDisk;
use plimsoll_suites::filebench::Host;
use plimsoll_target::disk::DiskRounds;
use plimsoll_target::limiter::LimitSet;

use super::target_s3::limit_set;

/// Says so of all cells on such disks. Limits are read once for each disk; one that cannot be read is told when it is to be made.
pub fn say_least(cells: &mut [CampaignCell]) {
    let mut known: Vec<(EmbeddedDisk, Option<LimitSet>)> = Vec::new();
    cells.iter_mut().for_each(|cell| of_cell(cell, &mut known));
}

fn of_cell(cell: &mut CampaignCell, known: &mut Vec<(EmbeddedDisk, Option<LimitSet>)>) {
    let host = Host::of_machine().within(cell.options().client.as_ref());
    let CellWork::Files(f) = &mut cell.work else { return };
    let Some(disk) = f.embedded.as_deref() else { return };
    let at = known.iter().position(|(other, _)| other == disk).unwrap_or_else(|| {
        let limits = disk.limits.as_deref().map(Path::new);
        let set = limit_set(disk.tier.as_deref(), limits, disk.scale.unwrap_or(1.0));
        known.push((disk.clone(), set.ok().flatten()));
        known.len() - 1
    });
    let Some(set) = &known[at].1 else { return };
    let rounds = DiskRounds {
        rounds: f.cycles,
        bytes: f.bytes_of(f.threads.unwrap_or(host.cpus).max(1)),
        small_s: f.iops_duration.0.as_secs_f64(),
        is_cached: disk.cached,
    };
    f.least_s = Some(rounds.takes_s(set, disk.credit.map(|c| c.0.as_secs_f64())));
}
