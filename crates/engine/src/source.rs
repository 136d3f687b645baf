//! Which op comes next: kind, place and size, as a pure function of seed, share and count.
//! Replaying a sequence is making its cursor again.

use std::sync::Arc;

use plimsoll_model::{Op, OpKind};

use crate::rng::{self, Permutation};
use crate::source::dist::Picker;

pub mod dist;

pub use dist::Dist;

/// One of `of` workers that share a sequence: it takes n = index, index + of, ...
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// From 0.
    pub index: u32,
    /// How many share it; at least 1.
    pub of: u32,
}

impl Share {
    /// One worker that has the sequence to itself.
    pub const WHOLE: Share = Share { index: 0, of: 1 };
}

/// A seeded generator of ops.
#[derive(Debug, Clone, PartialEq)]
pub struct OpSource {
    /// The whole sequence follows from it.
    pub seed: u64,
    /// Kinds by weight; at least one.
    pub kinds: Vec<KindSpec>,
    /// In between, by what was written.
    pub sync: SyncRule,
}

/// One kind of op in the mix.
#[derive(Debug, Clone, PartialEq)]
pub struct KindSpec {
    /// One of the target's.
    pub kind: OpKind,
    /// Against those of the others; 0: never.
    pub weight: u32,
    /// Of each op.
    pub size: SizeSpec,
    /// Where its ops go; kinds may differ.
    pub place: OpPlace,
}

/// Bytes of an op.
#[derive(Debug, Clone, PartialEq)]
pub enum SizeSpec {
    /// Bytes; all alike.
    Fixed(u64),
    /// Each multiple of `step` from `min` to `max` alike.
    Uniform {
        /// Bytes, included.
        min: u64,
        /// Bytes, included where `step` reaches it.
        max: u64,
        /// Bytes.
        step: u64,
    },
    /// (bytes, weight)
    Weighted(Vec<(u64, u32)>),
    /// Log-normal, at least 1 and at most `max`.
    LogNormal {
        /// Bytes.
        median: u64,
        /// Of the logarithm.
        sigma: f64,
        /// Bytes.
        max: u64,
    },
    /// Of objects only: that of object n is the n-th, as it was found.
    Listed(Arc<[u64]>),
}

/// Where an op goes.
#[derive(Debug, Clone, PartialEq)]
pub enum OpPlace {
    /// Objects by number. The size of an object follows from its key, so that whoever reads it knows it.
    Keys {
        /// Number of the first key.
        first: u64,
        /// Keys to choose from; not used by [`Dist::Fresh`].
        count: u64,
        /// Distance of neighbouring keys: the batch for ops that take several (1 otherwise).
        stride: u64,
        /// Which of the keys comes next.
        dist: Dist,
        /// Seed of the sizes by key: the same for all workloads on one data set.
        size_seed: u64,
        /// For ranged reads, the object's size: the op's own size is that of the range, at a random place.
        within: Option<SizeSpec>,
    },
    /// Bytes of a device or of files of one size; the key is the index of the file.
    Region {
        /// How many, all alike.
        files: u32,
        /// Of sequential ops.
        order: FileOrder,
        /// First byte used of each file.
        offset_bytes: u64,
        /// Bytes used of each file.
        length_bytes: u64,
        /// Offsets are multiples of this (from `offset_bytes`) where sizes vary; the block size otherwise.
        align_bytes: u64,
        /// Which of the blocks comes next.
        dist: Dist,
    },
}

/// How sequential ops go over several files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileOrder {
    /// One file after the other.
    #[default]
    Serial,
    /// A block of each in turn (fio's default).
    RoundRobin,
}

/// Sync ops between the others. They are not counted in n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SyncRule {
    /// fsync after every so many writes; 0: never.
    pub fsync_every: u32,
    /// fdatasync after every so many writes; 0: never.
    pub fdatasync_every: u32,
    /// One fsync of each file after the last op.
    pub end_fsync: bool,
}

/// Length that marks an fsync op as data only.
pub const FDATASYNC: u64 = 1;

impl SizeSpec {
    /// Size of the object or op that `random` stands for.
    #[inline]
    pub fn pick(&self, random: u64) -> u64 {
        match self {
            Self::Fixed(n) => *n,
            Self::Uniform { min, max, step } => {
                let step = (*step).max(1);
                min + step * rng::below(random, (max - min) / step + 1)
            }
            Self::Weighted(list) => {
                let total: u64 = list.iter().map(|(_, w)| u64::from(*w)).sum();
                let mut at = rng::below(random, total);
                for (size, weight) in list {
                    if at < u64::from(*weight) {
                        return *size;
                    }
                    at -= u64::from(*weight);
                }
                unreachable!("the pick is below the sum of the weights")
            }
            Self::LogNormal { median, sigma, max } => {
                let z = rng::normal(random, rng::mix(random));
                ((*median as f64 * (sigma * z).exp()).round() as u64).clamp(1, *max)
            }
            Self::Listed(list) => list[rng::below(random, list.len() as u64) as usize],
        }
    }

    /// Size of object `key`, which follows from the seed, or was found.
    #[inline]
    pub fn of_object(&self, seed: u64, key: u64) -> u64 {
        match self {
            Self::Listed(list) if (key as usize) < list.len() => list[key as usize],
            _ => self.pick(rng::at(seed, key)),
        }
    }

    /// The most that an op can have: buffers are made for it.
    pub fn max_bytes(&self) -> u64 {
        match self {
            Self::Fixed(n) => *n,
            Self::Uniform { max, .. } | Self::LogNormal { max, .. } => *max,
            Self::Weighted(list) => list.iter().map(|(s, _)| *s).max().unwrap_or(0),
            Self::Listed(list) => list.iter().copied().max().unwrap_or(0),
        }
    }

    /// The least that an op can have.
    pub fn min_bytes(&self) -> u64 {
        match self {
            Self::Fixed(n) => *n,
            Self::Uniform { min, .. } => *min,
            Self::LogNormal { .. } => 1,
            Self::Weighted(list) => list.iter().map(|(s, _)| *s).min().unwrap_or(0),
            Self::Listed(list) => list.iter().copied().min().unwrap_or(0),
        }
    }

    fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed(_))
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::Uniform { min, max, .. } if min > max => {
                Err(format!("the smallest size, {min}, is above the largest, {max}"))
            }
            Self::Weighted(list) if list.iter().all(|(_, w)| *w == 0) => {
                Err("a list of sizes needs at least one weight above zero".into())
            }
            Self::LogNormal { sigma, .. } if !(sigma.is_finite() && *sigma >= 0.0) => {
                Err(format!("the sigma of sizes must be a number from zero, not {sigma}"))
            }
            Self::Listed(list) if list.is_empty() => Err("no object was found".into()),
            _ => Ok(()),
        }
    }
}

impl OpSource {
    /// The largest op.
    pub fn max_bytes(&self) -> u64 {
        self.kinds.iter().map(|k| k.size.max_bytes()).max().unwrap_or(0)
    }

    /// Bytes of one pass over the regions of the first kind; `None` for keys.
    pub fn region_bytes(&self) -> Option<u64> {
        match self.kinds.first()?.place {
            OpPlace::Region { files, length_bytes, .. } => {
                Some(u64::from(files).saturating_mul(length_bytes))
            }
            OpPlace::Keys { .. } => None,
        }
    }

    /// Size of the object `key` of kind `kind` (index into `kinds`).
    pub fn object_bytes(&self, kind: usize, key: u64) -> u64 {
        let spec = &self.kinds[kind];
        match &spec.place {
            OpPlace::Keys { size_seed, within, .. } => {
                within.as_ref().unwrap_or(&spec.size).of_object(*size_seed, key)
            }
            OpPlace::Region { length_bytes, .. } => *length_bytes,
        }
    }

    /// What is wrong with it, if anything, and how to mend it.
    pub fn check(&self) -> Result<(), String> {
        if self.kinds.iter().all(|k| k.weight == 0) {
            return Err("the mix of ops is empty: give at least one op a weight above zero".into());
        }
        for spec in &self.kinds {
            spec.size.check()?;
            match &spec.place {
                OpPlace::Keys { count: 0, dist, .. } if *dist != Dist::Fresh => {
                    return Err(format!("{}: there are no objects to choose from", spec.kind));
                }
                OpPlace::Region { files, length_bytes, align_bytes, .. } => {
                    let size = spec.size.max_bytes();
                    if *files == 0 || *length_bytes < size || size == 0 {
                        return Err(format!(
                            "{}: blocks of {size} bytes do not fit into a region of {length_bytes} bytes",
                            spec.kind
                        ));
                    }
                    if *align_bytes == 0 {
                        return Err(format!("{}: an alignment of 0 bytes", spec.kind));
                    }
                }
                OpPlace::Keys { .. } => {}
            }
            spec.place.dist().check().map_err(|e| format!("{}: {e}", spec.kind))?;
        }
        Ok(())
    }
}

impl OpPlace {
    /// Whichever of the two it is.
    pub fn dist(&self) -> Dist {
        match self {
            Self::Keys { dist, .. } | Self::Region { dist, .. } => *dist,
        }
    }
}

/// Purposes of the derived seeds.
const MIX: u64 = 1;
const SIZE: u64 = 2;
const PLACE: u64 = 3;
const WITHIN: u64 = 4;

/// Walks one worker's ops.
#[derive(Debug, Clone)]
pub struct OpCursor {
    kinds: Vec<KindCursor>,
    mix_seed: u64,
    total_weight: u64,
    share: Share,
    taken: u64,
    sync: SyncRule,
    writes: u64,
    /// File of the last write: what a sync op syncs.
    write_file: u64,
    sync_due: Option<Op>,
}

#[derive(Debug, Clone)]
struct KindCursor {
    spec: KindSpec,
    size_seed: u64,
    within_seed: u64,
    picker: Picker,
    /// Ops of this kind that this worker took.
    taken: u64,
    /// Sequential with varying sizes: where the next begins in the concatenated region.
    next_byte: u64,
}

/// An op of the sequence, and its number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered {
    /// Kind, key or offset, length.
    pub op: Op,
    /// Number in the whole sequence; sync ops repeat the number of the op before them.
    pub n: u64,
}

impl OpCursor {
    /// `source` must have passed [`OpSource::check`].
    pub fn new(source: &OpSource, share: Share) -> Self {
        let place_seed = rng::derive(source.seed, PLACE);
        let size_seed = rng::derive(source.seed, SIZE);
        let kinds: Vec<KindCursor> = source
            .kinds
            .iter()
            .map(|spec| KindCursor {
                size_seed,
                within_seed: rng::derive(source.seed, WITHIN),
                picker: Picker::new(spec.place.dist(), spec.positions(), place_seed),
                spec: spec.clone(),
                taken: 0,
                next_byte: 0,
            })
            .collect();
        Self {
            total_weight: kinds.iter().map(|k| u64::from(k.spec.weight)).sum(),
            kinds,
            mix_seed: rng::derive(source.seed, MIX),
            share,
            taken: 0,
            sync: source.sync,
            writes: 0,
            write_file: 0,
            sync_due: None,
        }
    }

    /// The next op. Never ends: what stops is the worker.
    #[inline]
    pub fn next_op(&mut self) -> Numbered {
        let n = u64::from(self.share.index) + self.taken * u64::from(self.share.of);
        if let Some(op) = self.sync_due.take() {
            return Numbered { op, n: n.saturating_sub(u64::from(self.share.of)) };
        }
        self.taken += 1;
        let i = if self.kinds.len() == 1 { 0 } else { self.pick_kind(n) };
        let share = self.share;
        let op = self.kinds[i].next_op(n, share);
        if op.kind == OpKind::Write {
            self.count_write(op.key);
        }
        Numbered { op, n }
    }

    fn pick_kind(&self, n: u64) -> usize {
        let mut at = rng::below(rng::at(self.mix_seed, n), self.total_weight);
        for (i, kind) in self.kinds.iter().enumerate() {
            let weight = u64::from(kind.spec.weight);
            if at < weight {
                return i;
            }
            at -= weight;
        }
        unreachable!("the pick is below the sum of the weights")
    }

    #[inline]
    fn count_write(&mut self, file: u64) {
        self.writes += 1;
        self.write_file = file;
        let due = |every: u32| every > 0 && self.writes.is_multiple_of(u64::from(every));
        if due(self.sync.fsync_every) {
            self.sync_due = Some(sync_op(file, false));
        } else if due(self.sync.fdatasync_every) {
            self.sync_due = Some(sync_op(file, true));
        }
    }
}

/// A sync of file `key`.
pub fn sync_op(key: u64, data_only: bool) -> Op {
    Op { kind: OpKind::Fsync, key, offset: 0, length: if data_only { FDATASYNC } else { 0 } }
}

impl KindSpec {
    /// How many places there are to choose from.
    fn positions(&self) -> u64 {
        match &self.place {
            OpPlace::Keys { count, .. } => *count,
            OpPlace::Region { files, .. } => u64::from(*files) * self.positions_per_file(),
        }
    }

    fn positions_per_file(&self) -> u64 {
        match &self.place {
            OpPlace::Keys { .. } => 0,
            OpPlace::Region { length_bytes, align_bytes, .. } => match self.size {
                SizeSpec::Fixed(block) => length_bytes / block,
                // The largest op must fit at the last position.
                _ => (length_bytes - self.size.max_bytes()) / align_bytes + 1,
            },
        }
    }
}

impl KindCursor {
    #[inline]
    fn next_op(&mut self, n: u64, share: Share) -> Op {
        let j = u64::from(share.index) + self.taken * u64::from(share.of);
        self.taken += 1;
        match self.spec.place {
            OpPlace::Region { .. } => self.in_region(n, j),
            OpPlace::Keys { .. } => self.on_key(n, j),
        }
    }

    fn on_key(&mut self, n: u64, j: u64) -> Op {
        let OpPlace::Keys { first, stride, size_seed, within, .. } = &self.spec.place else {
            unreachable!("the caller looked")
        };
        let key = first + stride * self.picker.pick(n, j);
        let kind = self.spec.kind;
        match within {
            None => {
                let length = self.spec.size.of_object(*size_seed, key);
                Op { kind, key, offset: 0, length }
            }
            Some(object) => {
                let whole = object.of_object(*size_seed, key);
                let length = self.spec.size.pick(rng::at(self.size_seed, n)).min(whole);
                let offset = rng::below(rng::at(self.within_seed, n), whole - length + 1);
                Op { kind, key, offset, length }
            }
        }
    }

    #[inline]
    fn in_region(&mut self, n: u64, j: u64) -> Op {
        let OpPlace::Region { files, order, offset_bytes, length_bytes, align_bytes, dist } = self.spec.place
        else {
            unreachable!("the caller looked")
        };
        let kind = self.spec.kind;
        let (length, unit) = match self.spec.size {
            SizeSpec::Fixed(block) => (block, block),
            ref size => (size.pick(rng::at(self.size_seed, n)), align_bytes),
        };
        if dist == Dist::Sequential && !self.spec.size.is_fixed() {
            return self.sequential_bytes(length, files, offset_bytes, length_bytes);
        }
        let per_file = self.spec.positions_per_file();
        // Once over the region means once by whichever kind: the position follows the count of all ops.
        let position = self.picker.pick(n, if dist == Dist::Once { n } else { j });
        let (key, at) = match order {
            _ if files == 1 => (0, position),
            FileOrder::RoundRobin if dist == Dist::Sequential => {
                (position % u64::from(files), position / u64::from(files))
            }
            _ => (position / per_file, position % per_file),
        };
        Op { kind, key, offset: offset_bytes + at * unit, length }
    }

    /// One op after the other, of any sizes; an op that would cross a file's end starts the next file.
    fn sequential_bytes(&mut self, length: u64, files: u32, offset_bytes: u64, length_bytes: u64) -> Op {
        let mut start = self.next_byte;
        if start % length_bytes + length > length_bytes {
            start = (start / length_bytes + 1) * length_bytes;
        }
        if start >= length_bytes * u64::from(files) {
            start = 0;
        }
        self.next_byte = start + length;
        let (key, within) = (start / length_bytes, start % length_bytes);
        // An op that ended exactly at a file's end left the next one at the start of the next file.
        Op { kind: self.spec.kind, key, offset: offset_bytes + within, length }
    }
}

/// All positions once each, then again in another order.
#[derive(Debug, Clone)]
pub(crate) struct Passes {
    domain: u64,
    seed: u64,
    pass: u64,
    permutation: Permutation,
}

impl Passes {
    pub(crate) fn new(domain: u64, seed: u64) -> Self {
        Self { domain, seed, pass: 0, permutation: Permutation::new(domain, rng::derive(seed, 0)) }
    }

    #[inline]
    pub(crate) fn get(&mut self, j: u64) -> u64 {
        let pass = j / self.domain;
        if pass != self.pass {
            self.pass = pass;
            self.permutation = Permutation::new(self.domain, rng::derive(self.seed, pass));
        }
        self.permutation.get(j % self.domain)
    }
}
