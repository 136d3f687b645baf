//! Whether a region is written: holes, unwritten extents, and (for devices, which hide trims) what sampled blocks hold.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use plimsoll_engine::pacer::Pacer;
use plimsoll_engine::source::{Dist, FileOrder, KindSpec, OpPlace, OpSource, Share, SizeSpec, SyncRule};
use plimsoll_engine::{DataSeed, SeriesSpec, StopRule, TargetConfig, WorkerSpec, api::FileConfig, rng};
use plimsoll_model::interval::SeriesShape;
use plimsoll_model::plan::{DataSpec, RingChoice};
use plimsoll_model::{OpKind, WorkerId};

use super::names::first_object;

/// A region of a file that has to be written in full before it is read.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutJob {
    /// As the plan names it; for messages.
    pub path: PathBuf,
    /// Leads to the file that was judged under that name.
    pub through: PathBuf,
    /// Number in stamps of this file: the one that whoever verifies expects.
    pub object: u64,
    /// Begin of the region, bytes.
    pub offset: u64,
    /// Bytes to write.
    pub length: u64,
    /// Through the page cache: by wish, or because the file system has no direct I/O.
    pub buffered: bool,
    /// What the blocks are filled with.
    pub data: DataSpec,
    /// Seed of the plan.
    pub seed: u64,
}

/// The workers that write these regions once, in order, and sync them. One thread per file, at most `threads`:
/// the rest follow in further rounds.
pub fn layout_workers(jobs: &[LayoutJob], threads: usize) -> Vec<Vec<WorkerSpec>> {
    jobs.chunks(threads.max(1))
        .map(|round| round.iter().enumerate().map(|(i, j)| layout_worker(i as u16, j)).collect())
        .collect()
}

fn layout_worker(worker: u16, j: &LayoutJob) -> WorkerSpec {
    let block = layout_block(j.offset, j.length);
    let series = |kind, i| SeriesSpec { kind, shape: SeriesShape::default(), trace_series: i };
    WorkerSpec {
        worker: WorkerId::here(worker),
        stage: 0,
        workload: 0,
        series: vec![series(OpKind::Write, 0), series(OpKind::Fsync, 1)],
        cpu: None,
        ring: RingChoice::Auto,
        source: OpSource {
            seed: rng::derive(j.seed, 11),
            kinds: vec![KindSpec {
                kind: OpKind::Write,
                weight: 1,
                size: SizeSpec::Fixed(block),
                place: OpPlace::Region {
                    files: 1,
                    order: FileOrder::Serial,
                    offset_bytes: j.offset,
                    length_bytes: j.length,
                    align_bytes: block,
                    dist: Dist::Sequential,
                },
            }],
            sync: SyncRule { end_fsync: true, ..SyncRule::default() },
        },
        share: Share::WHOLE,
        pacer: Pacer::Closed,
        pace_share: Share::WHOLE,
        target: TargetConfig::Block(FileConfig {
            paths: vec![j.path.clone()],
            through: vec![j.through.clone()],
            buffered: j.buffered,
            create: false,
            first_object: j.object,
            written: Vec::new(),
        }),
        slots: 8,
        // Ops, not loops: the count is exact whatever the block.
        stop: StopRule { ops: Some(j.length / block), ..StopRule::default() },
        start_delay_ns: 0,
        trace: false,
        verify: false,
        data: DataSeed { spec: j.data, seed: j.seed },
    }
}

/// The largest power of two, 1 MiB at most, that divides both.
pub fn layout_block(offset: u64, length: u64) -> u64 {
    let common = (offset | length).trailing_zeros().min(20);
    1 << common
}

/// Object number of the file `index` of a file set.
pub fn object_of(first: &Path, index: usize) -> u64 {
    first_object(first) + index as u64
}

/// Bytes of `[offset, offset + length)` that were never written, as far as the file system tells. Beyond the end
/// of the file counts as unwritten.
pub fn unwritten_bytes(path: &Path, offset: u64, length: u64) -> std::io::Result<u64> {
    let file = File::open(path)?;
    let end = offset + length;
    let size = file.metadata()?.len();
    let beyond = end.saturating_sub(size.max(offset));
    let within = end.min(size);
    if within <= offset {
        return Ok(length);
    }
    let holes = hole_bytes(&file, offset, within);
    let unwritten = fiemap_unwritten(&file, offset, within - offset).unwrap_or(0);
    // A file system may show an unwritten extent as a hole as well: never count it twice.
    Ok(beyond + holes.max(unwritten))
}

/// By SEEK_DATA and SEEK_HOLE; 0 where the file system does not have them (all is data then).
fn hole_bytes(file: &File, offset: u64, end: u64) -> u64 {
    use rustix::fs::SeekFrom;
    let mut at = offset;
    let mut data = 0;
    while at < end {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) if start < end => start,
            // No data after this place.
            Ok(_) | Err(rustix::io::Errno::NXIO) => break,
            Err(_) => return 0,
        };
        let stop = match rustix::fs::seek(file, SeekFrom::Hole(start)) {
            Ok(stop) => stop.min(end),
            Err(_) => return 0,
        };
        data += stop - start;
        at = stop.max(start + 1);
    }
    (end - offset).saturating_sub(data)
}

/// struct fiemap with room for this many extents.
const EXTENTS: usize = 128;

#[repr(C)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [FiemapExtent; EXTENTS],
}

/// Bytes of extents that are allocated but unwritten (FIEMAP); `None` where there is no FIEMAP.
fn fiemap_unwritten(file: &File, offset: u64, length: u64) -> Option<u64> {
    const FS_IOC_FIEMAP: libc::c_ulong = 0xC020_660B;
    const LAST: u32 = 1;
    const UNWRITTEN: u32 = 0x800;
    const SYNC: u32 = 1;
    let end = offset + length;
    let (mut at, mut unwritten) = (offset, 0);
    loop {
        // SAFETY: all-zero bytes are a valid value of these plain structs.
        let mut map: Box<Fiemap> = unsafe { Box::new(std::mem::zeroed()) };
        map.start = at;
        map.length = end - at;
        map.flags = SYNC;
        map.extent_count = EXTENTS as u32;
        // SAFETY: the argument is a live struct fiemap with room for `extent_count` extents, as the request asks.
        let rc = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut *map) };
        if rc != 0 {
            return None;
        }
        let n = (map.mapped_extents as usize).min(EXTENTS);
        if n == 0 {
            return Some(unwritten);
        }
        for e in &map.extents[..n] {
            if e.flags & UNWRITTEN != 0 {
                let (from, to) = (e.logical.max(offset), (e.logical + e.length).min(end));
                unwritten += to.saturating_sub(from);
            }
        }
        let last = &map.extents[n - 1];
        let next = last.logical + last.length;
        if last.flags & LAST != 0 || next <= at || next >= end {
            return Some(unwritten);
        }
        at = next;
    }
}

/// What sampled blocks of a device hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContentSample {
    /// How many were looked at.
    pub blocks: u32,
    /// Blocks of nothing but zeros: trimmed, or never written.
    pub zeros: u32,
    /// Blocks (not zero) that are equal to another of the sample.
    pub repeats: u32,
}

impl ContentSample {
    /// Of blocks that were read.
    pub fn of(blocks: &[Vec<u8>]) -> Self {
        let mut seen = std::collections::HashSet::new();
        let mut out = Self { blocks: blocks.len() as u32, ..Self::default() };
        for b in blocks {
            if b.iter().all(|x| *x == 0) {
                out.zeros += 1;
            } else if !seen.insert(b.as_slice()) {
                out.repeats += 1;
            }
        }
        out
    }

    /// More than a tenth zeros, or repeats: what is read is not what a full device would read.
    pub fn is_suspect(&self) -> bool {
        self.blocks > 0 && (self.zeros + self.repeats) * 10 > self.blocks
    }
}

/// Reads blocks at random places of a region; through the page cache, which the caller drops afterwards.
pub fn sample_content(path: &Path, offset: u64, length: u64, seed: u64) -> std::io::Result<ContentSample> {
    const BLOCK: u64 = 4096;
    const BLOCKS: u64 = 128;
    let file = File::open(path)?;
    // Without it each of these reads would fetch what lies behind it as well.
    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random);
    let places = length / BLOCK;
    let mut blocks = Vec::new();
    // Each place once: a block that is picked twice would look like a repeat.
    let order = (places > 0).then(|| rng::Permutation::new(places, rng::derive(seed, 12)));
    for i in 0..BLOCKS.min(places) {
        let place = order.as_ref().map_or(0, |o| o.get(i));
        let mut block = vec![0u8; BLOCK as usize];
        file.read_exact_at(&mut block, offset + place * BLOCK)?;
        blocks.push(block);
    }
    Ok(ContentSample::of(&blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_with(parts: &[(u64, usize)], size: u64) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("f");
        let f = File::create(&path).unwrap();
        f.set_len(size).unwrap();
        for (at, n) in parts {
            f.write_all_at(&vec![7u8; *n], *at).unwrap();
        }
        f.sync_all().unwrap();
        (dir, path)
    }

    #[test]
    fn holes_are_found() {
        const M: u64 = 1 << 20;
        let (_d, full) = file_with(&[(0, 4 << 20)], 4 * M);
        assert_eq!(unwritten_bytes(&full, 0, 4 * M).unwrap(), 0);
        assert_eq!(unwritten_bytes(&full, 0, 5 * M).unwrap(), M, "beyond the end");
        assert_eq!(unwritten_bytes(&full, 8 * M, M).unwrap(), M);
        let (_d, half) = file_with(&[(M, 1 << 20)], 4 * M);
        assert_eq!(unwritten_bytes(&half, 0, 4 * M).unwrap(), 3 * M);
        assert_eq!(unwritten_bytes(&half, M, M).unwrap(), 0);
    }

    #[test]
    fn preallocated_extents_are_unwritten() {
        let (_d, path) = file_with(&[], 0);
        let f = File::options().write(true).open(&path).unwrap();
        if rustix::fs::fallocate(&f, rustix::fs::FallocateFlags::empty(), 0, 1 << 20).is_ok() {
            assert_eq!(unwritten_bytes(&path, 0, 1 << 20).unwrap(), 1 << 20);
        }
    }

    #[test]
    fn zeros_and_repeats_are_suspect() {
        let block = |b: u8| vec![b; 4096];
        let mixed: Vec<Vec<u8>> = (1..=100).map(block).collect();
        assert!(!ContentSample::of(&mixed).is_suspect());
        let zeros = ContentSample::of(&vec![block(0); 50]);
        assert_eq!((zeros.zeros, zeros.is_suspect()), (50, true));
        let repeats = ContentSample::of(&vec![block(9); 50]);
        assert_eq!((repeats.repeats, repeats.is_suspect()), (49, true));
        let (_d, path) = file_with(&[(0, 1 << 20)], 2 << 20);
        let s = sample_content(&path, 1 << 20, 1 << 20, 1).unwrap();
        assert_eq!((s.blocks, s.zeros), (128, 128));
    }

    #[test]
    fn the_layout_block_divides_the_region() {
        assert_eq!(layout_block(0, 1 << 30), 1 << 20);
        assert_eq!(layout_block(4096, 1 << 20), 4096);
        assert_eq!(layout_block(0, 1000), 8);
    }
}
