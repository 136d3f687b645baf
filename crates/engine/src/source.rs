//! Which op is number n: kind, object or offset, length. The sequence follows from the seed alone, so
//! that a run can be replayed.

use plimsoll_model::{Op, OpKind};

use crate::dist::{Permutation, Positions, Sizes, below};
use crate::keyspace::{CREATED_BASE, KeySpace};
use crate::pacer::mix;

/// Length of the table of kinds, about: long enough that small weights are spread well.
const TABLE: u64 = 1024;

/// Kinds of op by weight, in a shuffled table that repeats. Because it repeats, how many ops of a kind
/// came before op n is known without counting.
#[derive(Debug, Clone)]
pub struct Mix {
    table: Vec<OpKind>,
    /// Creates (put, multipart, copy) and deletes before each place of the table.
    creates_before: Vec<u32>,
    deletes_before: Vec<u32>,
    creates: u32,
    deletes: u32,
}

fn creates(k: OpKind) -> bool {
    matches!(k, OpKind::Put | OpKind::Multipart | OpKind::Copy)
}

fn deletes(k: OpKind) -> bool {
    matches!(k, OpKind::Delete | OpKind::DeleteBatch)
}

impl Mix {
    /// Weights of zero are left out; panics when all are.
    pub fn new(weights: &[(OpKind, u32)], seed: u64) -> Self {
        let sum: u64 = weights.iter().map(|(_, w)| u64::from(*w)).sum();
        assert!(sum > 0, "a plan's mix is never empty");
        let repeat = if weights.len() == 1 { 1 } else { TABLE.div_ceil(sum) };
        let one = weights.len() == 1;
        let mut table: Vec<OpKind> = Vec::new();
        for (kind, w) in weights {
            let n = if one { 1 } else { u64::from(*w) * repeat };
            table.extend(std::iter::repeat_n(*kind, n as usize));
        }
        for i in (1..table.len()).rev() {
            table.swap(i, below(mix(seed ^ i as u64), i as u64 + 1) as usize);
        }
        let (mut c, mut d) = (0, 0);
        let (mut creates_before, mut deletes_before) = (Vec::new(), Vec::new());
        for k in &table {
            creates_before.push(c);
            deletes_before.push(d);
            c += u32::from(creates(*k));
            d += u32::from(deletes(*k));
        }
        Self { table, creates_before, deletes_before, creates: c, deletes: d }
    }

    /// Kind of op `n`, with the numbers of creates and deletes before it.
    #[inline]
    fn at(&self, n: u64) -> (OpKind, u64, u64) {
        let len = self.table.len() as u64;
        let (turn, i) = (n / len, (n % len) as usize);
        (
            self.table[i],
            turn * u64::from(self.creates) + u64::from(self.creates_before[i]),
            turn * u64::from(self.deletes) + u64::from(self.deletes_before[i]),
        )
    }

    pub fn kinds(&self) -> Vec<OpKind> {
        let mut k = self.table.clone();
        k.sort_unstable();
        k.dedup();
        k
    }

    /// Deletes per create in the long run; infinite without creates, 0 without deletes.
    pub fn deletes_per_create(&self) -> f64 {
        if self.deletes == 0 { 0.0 } else { f64::from(self.deletes) / f64::from(self.creates) }
    }
}

/// Ops on objects. Pure in n.
#[derive(Debug, Clone)]
pub struct ObjectSource {
    pub seed: u64,
    pub mix: Mix,
    /// Size of an object follows from its number: a GET knows what it should find.
    pub sizes: Sizes,
    pub keys: KeySpace,
    pub positions: Positions,
    /// Bytes of a ranged GET.
    pub range_bytes: u64,
    /// Objects of a batch delete.
    pub delete_batch: u64,
    /// Number of prefixes (LIST goes over them).
    pub prefixes: u64,
}

impl ObjectSource {
    /// Size in bytes of object `id` under `seed`: whoever knows both knows the size.
    #[inline]
    pub fn size_of(&self, id: u64) -> u64 {
        self.sizes.draw(mix(self.seed ^ mix(id)))
    }

    /// `key` is the object (for LIST the prefix; for a batch delete the number of its first victim), `length` its bytes.
    /// `offset` is the first byte of a ranged GET, the new object of a COPY, the number of keys of a batch delete.
    #[inline]
    pub fn op(&self, n: u64) -> Op {
        let (kind, created, deleted) = self.mix.at(n);
        let hash = mix(self.seed.rotate_left(17) ^ n);
        let prepared = || self.positions.draw(n, hash, self.keys.prepared.max(1));
        match kind {
            OpKind::Put | OpKind::Multipart => {
                let key = CREATED_BASE + created;
                Op { kind, key, offset: 0, length: self.size_of(key) }
            }
            OpKind::Copy => {
                let key = prepared();
                Op { kind, key, offset: CREATED_BASE + created, length: self.size_of(key) }
            }
            OpKind::GetRange => {
                let key = prepared();
                let size = self.size_of(key);
                let length = self.range_bytes.min(size);
                Op { kind, key, offset: below(mix(hash), size - length + 1), length }
            }
            OpKind::Delete => Op { kind, key: self.keys.victim(deleted), offset: 0, length: 0 },
            OpKind::DeleteBatch => {
                Op { kind, key: deleted * self.delete_batch, offset: self.delete_batch, length: 0 }
            }
            OpKind::List => Op { kind, key: below(hash, self.prefixes.max(1)), offset: 0, length: 0 },
            _ => {
                let key = prepared();
                let length = if kind == OpKind::Get { self.size_of(key) } else { 0 };
                Op { kind, key, offset: 0, length }
            }
        }
    }
}

/// Ops on blocks of files or a device: one job's sequence.
#[derive(Debug, Clone)]
pub struct BlockSource {
    pub seed: u64,
    pub mix: Mix,
    pub read_sizes: Sizes,
    pub write_sizes: Sizes,
    /// Files, and the bytes of each that are used (from `start_bytes` on).
    pub files: u64,
    pub start_bytes: u64,
    pub region_bytes: u64,
    /// Offsets are multiples of this.
    pub align_bytes: u64,
    pub positions: Positions,
    /// Each offset once before any repeats (uniform only).
    pub random_map: bool,
    /// An fsync op after this many writes; 0: never.
    pub fsync_every: u32,
    state: BlockState,
}

#[derive(Debug, Clone, Default)]
struct BlockState {
    next_bytes: u64,
    file: u64,
    draws: u64,
    writes_since_sync: u32,
    taken: u64,
}

/// What a [`BlockSource`] is made of.
#[derive(Debug, Clone)]
pub struct BlockSourceSpec {
    pub seed: u64,
    pub mix: Mix,
    pub read_sizes: Sizes,
    pub write_sizes: Sizes,
    pub files: u64,
    pub start_bytes: u64,
    pub region_bytes: u64,
    pub align_bytes: u64,
    pub positions: plimsoll_model::plan::KeyDist,
    pub random_map: bool,
    pub fsync_every: u32,
}

impl BlockSource {
    pub fn new(s: BlockSourceSpec) -> Self {
        let places = (s.region_bytes / s.align_bytes.max(1)).max(1);
        Self {
            seed: s.seed,
            mix: s.mix,
            read_sizes: s.read_sizes,
            write_sizes: s.write_sizes,
            files: s.files.max(1),
            start_bytes: s.start_bytes,
            region_bytes: s.region_bytes,
            align_bytes: s.align_bytes.max(1),
            positions: Positions::new(s.positions, places),
            random_map: s.random_map,
            fsync_every: s.fsync_every,
            state: BlockState::default(),
        }
    }

    pub fn max_length(&self) -> u64 {
        self.read_sizes.largest().max(self.write_sizes.largest())
    }

    /// The next op of the job.
    #[inline]
    pub fn next_op(&mut self) -> Op {
        if self.fsync_every > 0 && self.state.writes_since_sync >= self.fsync_every {
            self.state.writes_since_sync = 0;
            return Op { kind: OpKind::Fsync, key: self.state.file, offset: 0, length: 0 };
        }
        let n = self.state.taken;
        self.state.taken += 1;
        let (kind, _, _) = self.mix.at(n);
        let hash = mix(self.seed ^ mix(n));
        let sizes = if kind == OpKind::Write { &self.write_sizes } else { &self.read_sizes };
        let length = sizes.draw(hash).min(self.region_bytes);
        self.state.writes_since_sync += u32::from(kind == OpKind::Write);
        let (key, offset) = if self.positions == Positions::Sequential {
            self.sequential(length)
        } else {
            self.random(mix(hash), length)
        };
        Op { kind, key, offset: self.start_bytes + offset, length }
    }

    /// File after file; a block that does not fit begins the next file (or the first again).
    fn sequential(&mut self, length: u64) -> (u64, u64) {
        let s = &mut self.state;
        if s.next_bytes + length > self.region_bytes {
            s.next_bytes = 0;
            s.file = (s.file + 1) % self.files;
        }
        let at = s.next_bytes;
        s.next_bytes += length;
        (s.file, at)
    }

    fn random(&mut self, hash: u64, length: u64) -> (u64, u64) {
        let i = self.state.draws;
        self.state.draws += 1;
        let per_file = (self.region_bytes / self.align_bytes).max(1);
        let places = per_file * self.files;
        let place = if self.random_map && self.positions == Positions::Uniform {
            // Each pass over the space is another permutation.
            Permutation::new(places, mix(self.seed ^ (i / places))).at(i % places)
        } else {
            let at = self.positions.draw(i, hash, per_file);
            below(mix(hash), self.files) * per_file + at
        };
        let file = place / per_file;
        self.state.file = file;
        let offset = (place % per_file) * self.align_bytes;
        let last = (self.region_bytes - length) / self.align_bytes * self.align_bytes;
        (file, offset.min(last))
    }
}

/// The ops of one worker.
#[derive(Debug, Clone)]
pub enum OpSource {
    Object(ObjectSource),
    Block(Box<BlockSource>),
}

impl OpSource {
    /// Op number `n` of the workload; a worker asks for ascending numbers (block jobs have a sequence of
    /// their own and ignore it).
    #[inline]
    pub fn op(&mut self, n: u64) -> Op {
        match self {
            Self::Object(s) => s.op(n),
            Self::Block(s) => s.next_op(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::plan::KeyDist;
    use std::collections::HashSet;

    fn objects(weights: &[(OpKind, u32)]) -> ObjectSource {
        ObjectSource {
            seed: 9,
            mix: Mix::new(weights, 1),
            sizes: Sizes::Fixed(4096),
            keys: KeySpace { prepared: 100, victims: 50 },
            positions: Positions::Uniform,
            range_bytes: 512,
            delete_batch: 10,
            prefixes: 4,
        }
    }

    #[test]
    fn a_mix_holds_its_weights_and_its_counts() {
        let s = objects(&[(OpKind::Get, 45), (OpKind::Stat, 30), (OpKind::Put, 15), (OpKind::Delete, 10)]);
        let (mut put, mut gone) = (HashSet::new(), HashSet::new());
        let mut counts = std::collections::HashMap::new();
        for n in 0..11_000 {
            let op = s.op(n);
            *counts.entry(op.kind).or_insert(0) += 1;
            match op.kind {
                OpKind::Put => assert!(put.insert(op.key), "created twice"),
                OpKind::Delete => {
                    assert!(gone.insert(op.key), "deleted twice");
                    assert!(op.key < CREATED_BASE || put.contains(&op.key), "deleted before it was created");
                }
                _ => assert!(op.key < 100, "only prepared objects are read"),
            }
        }
        assert_eq!(counts[&OpKind::Get], 4950);
        assert_eq!(counts[&OpKind::Delete], 1100);
    }

    fn blocks(positions: KeyDist, random_map: bool) -> BlockSource {
        BlockSource::new(BlockSourceSpec {
            seed: 5,
            mix: Mix::new(&[(OpKind::Read, 1)], 1),
            read_sizes: Sizes::Fixed(4096),
            write_sizes: Sizes::Fixed(4096),
            files: 2,
            start_bytes: 8192,
            region_bytes: 40 * 4096 + 100,
            align_bytes: 4096,
            positions,
            random_map,
            fsync_every: 0,
        })
    }

    #[test]
    fn blocks_stay_inside_and_a_map_repeats_nothing() {
        for (dist, map) in [
            (KeyDist::Uniform, true),
            (KeyDist::Uniform, false),
            (KeyDist::Zipf(1.1), false),
            (KeyDist::Sequential, false),
        ] {
            let mut s = blocks(dist, map);
            let mut seen = HashSet::new();
            for _ in 0..80 {
                let op = s.next_op();
                assert!(op.offset >= 8192 && op.offset + op.length <= 8192 + 40 * 4096 + 100);
                assert_eq!(op.offset % 4096, 0);
                seen.insert((op.key, op.offset));
            }
            if map || dist == KeyDist::Sequential {
                assert_eq!(seen.len(), 80);
            }
        }
    }

    #[test]
    fn an_fsync_follows_every_nth_write() {
        let mut s = blocks(KeyDist::Sequential, false);
        s.mix = Mix::new(&[(OpKind::Write, 1)], 1);
        s.fsync_every = 3;
        let kinds: Vec<_> = (0..8).map(|_| s.next_op().kind).collect();
        use OpKind::{Fsync as F, Write as W};
        assert_eq!(kinds, [W, W, W, F, W, W, W, F]);
    }
}
