//! The seeded generator of a workload's ops.

use std::sync::Arc;

use plimsoll_engine::{Dist, FileOrder, KindSpec, OpPlace, OpSource, SizeSpec, SyncRule};
use plimsoll_model::OpKind;
use plimsoll_model::plan::{KeyDist, SizeDist, Workload};

use crate::keys::KeyPlan;

/// `step`: sizes are multiples of it above the smallest (files); 1 for objects.
pub fn size_spec(size: &SizeDist, step: u64) -> SizeSpec {
    match size {
        SizeDist::Fixed(s) => SizeSpec::Fixed(s.0),
        SizeDist::Uniform { min, max } => SizeSpec::Uniform { min: min.0, max: max.0, step },
        SizeDist::Weighted(list) => SizeSpec::Weighted(list.iter().map(|(s, w)| (s.0, *w)).collect()),
        SizeDist::LogNormal { median, sigma, max } => {
            SizeSpec::LogNormal { median: median.0, sigma: *sigma, max: max.0 }
        }
    }
}

fn key_dist(keys: KeyDist) -> Dist {
    match keys {
        KeyDist::Uniform => Dist::Uniform,
        KeyDist::Zipf(s) => Dist::Zipf(s),
        KeyDist::Pareto(h) => Dist::Pareto(h),
        KeyDist::Sequential => Dist::Sequential,
    }
}

/// Ops on objects, and those of targets without places (null, sim), which take any key.
///
/// `overwrite`: puts go over so many objects again and again, in place of new ones. `found`: sizes of objects that are there already, by
/// their numbers.
pub fn object_source(
    w: &Workload,
    keys: &KeyPlan,
    seed: u64,
    size_seed: u64,
    overwrite: Option<u64>,
    found: Option<&Arc<[u64]>>,
) -> OpSource {
    let object = w.object.clone().unwrap_or_default();
    let size = found.map_or_else(|| size_spec(&w.size, 1), |bytes| SizeSpec::Listed(Arc::clone(bytes)));
    let kinds = w.mix.iter().filter(|(_, weight)| **weight > 0).map(|(kind, weight)| {
        let place = |first: u64, count: u64, stride: u64, dist: Dist| OpPlace::Keys {
            first,
            count,
            stride,
            dist,
            size_seed,
            within: None,
        };
        let (size, place) = match kind {
            OpKind::Put | OpKind::Multipart | OpKind::UploadPart => {
                let (count, dist) = overwrite.map_or((0, Dist::Fresh), |n| (n, Dist::Sequential));
                (size.clone(), place(keys.fresh_first, count, 1, dist))
            }
            OpKind::Delete => (SizeSpec::Fixed(0), place(keys.victims_first, 0, 1, Dist::Fresh)),
            OpKind::DeleteBatch => {
                let batch = u64::from(object.delete_batch.max(1));
                (SizeSpec::Fixed(0), place(keys.victims_first, 0, batch, Dist::Fresh))
            }
            OpKind::List => {
                (SizeSpec::Fixed(0), place(0, u64::from(object.prefixes.max(1)), 1, Dist::Uniform))
            }
            OpKind::Stat => (SizeSpec::Fixed(0), place(0, keys.dataset.max(1), 1, key_dist(w.keys))),
            OpKind::GetRange => {
                let range = object.range.map_or(64 << 10, |r| r.0);
                let place = OpPlace::Keys {
                    first: 0,
                    count: keys.dataset.max(1),
                    stride: 1,
                    dist: key_dist(w.keys),
                    size_seed,
                    within: Some(size.clone()),
                };
                (SizeSpec::Fixed(range), place)
            }
            _ => (size.clone(), place(0, keys.dataset.max(1), 1, key_dist(w.keys))),
        };
        KindSpec { kind: *kind, weight: *weight, size, place }
    });
    OpSource { seed, kinds: kinds.collect(), sync: SyncRule::default() }
}

/// The bytes that a job works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// How many; the ops go over them in turn.
    pub files: u32,
    /// Bytes used of each file, from `offset_bytes` on.
    pub length_bytes: u64,
    /// First byte of the region in each file.
    pub offset_bytes: u64,
}

/// Ops on blocks of a device or of files: the sequence of one job.
pub fn region_source(w: &Workload, region: Region, seed: u64) -> OpSource {
    let block = w.block.clone().unwrap_or_default();
    let smallest = |s: &SizeDist| size_spec(s, 1).min_bytes().max(1);
    let align = block.offset_align.map_or_else(|| smallest(&w.size), |a| a.0);
    let dist = match w.keys {
        // As fio does: each place once before any comes again, unless the job says otherwise.
        KeyDist::Uniform if !block.norandommap => Dist::Once,
        keys => key_dist(keys),
    };
    let kinds = w.mix.iter().filter(|(_, weight)| **weight > 0).map(|(kind, weight)| {
        let size = match (&block.write_size, kind) {
            (Some(write), OpKind::Write | OpKind::Trim) => write,
            _ => &w.size,
        };
        let place = OpPlace::Region {
            files: region.files,
            order: FileOrder::RoundRobin,
            offset_bytes: region.offset_bytes,
            length_bytes: region.length_bytes,
            align_bytes: align,
            dist,
        };
        let size = match size {
            // With an alignment of its own a fixed size is a range of one: only then do offsets follow it.
            SizeDist::Fixed(s) if block.offset_align.is_some() && align < s.0 => {
                SizeSpec::Uniform { min: s.0, max: s.0, step: 1 }
            }
            _ => size_spec(size, smallest(size)),
        };
        KindSpec { kind: *kind, weight: *weight, size, place }
    });
    let sync =
        SyncRule { fsync_every: block.fsync, fdatasync_every: block.fdatasync, end_fsync: block.end_fsync };
    OpSource { seed, kinds: kinds.collect(), sync }
}

/// Objects `first..` in order, each once: what GET and stat read, or deletes delete.
pub fn prepare_source(w: &Workload, first: u64, size_seed: u64) -> OpSource {
    let place = OpPlace::Keys { first, count: 0, stride: 1, dist: Dist::Fresh, size_seed, within: None };
    let kind = KindSpec { kind: OpKind::Put, weight: 1, size: size_spec(&w.size, 1), place };
    OpSource { seed: 0, kinds: vec![kind], sync: SyncRule::default() }
}
