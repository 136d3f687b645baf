//! Sequences of ops: pure functions of the seed, whole when shared, and where they should be.

use std::collections::HashSet;

use plimsoll_engine::source::{Numbered, OpCursor};
use plimsoll_engine::{Dist, FileOrder, KindSpec, OpPlace, OpSource, Share, SizeSpec, SyncRule};
use plimsoll_model::OpKind;
use proptest::prelude::*;

fn region(kind: OpKind, weight: u32, size: SizeSpec, files: u32, length_bytes: u64, dist: Dist) -> KindSpec {
    let place = OpPlace::Region {
        files,
        order: FileOrder::Serial,
        offset_bytes: 1 << 20,
        length_bytes,
        align_bytes: 512,
        dist,
    };
    KindSpec { kind, weight, size, place }
}

fn source(seed: u64, kinds: Vec<KindSpec>) -> OpSource {
    OpSource { seed, kinds, sync: SyncRule::default() }
}

fn walk(source: &OpSource, share: Share, count: usize) -> Vec<Numbered> {
    assert_eq!(source.check(), Ok(()));
    let mut cursor = OpCursor::new(source, share);
    (0..count).map(|_| cursor.next_op()).collect()
}

fn any_dist() -> impl Strategy<Value = Dist> {
    prop_oneof![
        Just(Dist::Sequential),
        Just(Dist::Uniform),
        Just(Dist::Once),
        (0.2f64..3.0).prop_map(Dist::Zipf),
        (0.05f64..0.95).prop_map(Dist::Pareto),
    ]
}

fn any_size() -> impl Strategy<Value = SizeSpec> {
    prop_oneof![
        (1u64..9).prop_map(|k| SizeSpec::Fixed(k * 512)),
        (1u64..4, 0u64..5).prop_map(|(a, b)| SizeSpec::Uniform {
            min: a * 512,
            max: (a + b) * 512,
            step: 512
        }),
        (1u32..9, 1u32..9).prop_map(|(a, b)| SizeSpec::Weighted(vec![(512, a), (4096, b)])),
    ]
}

proptest! {
    #[test]
    fn ops_stay_inside_and_replay(seed: u64, dist in any_dist(), size in any_size(), files in 1u32..4, blocks in 20u64..200) {
        let length = blocks * 512;
        let s = source(seed, vec![
            region(OpKind::Read, 7, size.clone(), files, length, dist),
            region(OpKind::Write, 3, size.clone(), files, length, dist),
        ]);
        let ops = walk(&s, Share::WHOLE, 500);
        for Numbered { op, .. } in &ops {
            prop_assert!(op.key < u64::from(files));
            prop_assert!(op.offset >= 1 << 20 && op.offset + op.length <= (1 << 20) + length, "{op:?}");
            prop_assert!(op.offset % 512 == 0 && op.length >= size.min_bytes() && op.length <= size.max_bytes());
        }
        prop_assert_eq!(&ops, &walk(&s, Share::WHOLE, 500));
    }

    #[test]
    fn one_pass_touches_each_block_once_whoever_shares_it(seed: u64, blocks in 1u64..300, of in 1u32..5, mixed: bool) {
        let kind = |k, w| region(k, w, SizeSpec::Fixed(512), 1, blocks * 512, Dist::Once);
        let mut kinds = vec![kind(OpKind::Write, 2)];
        if mixed {
            kinds.push(kind(OpKind::Read, 1));
        }
        let s = source(seed, kinds);
        let mut seen = HashSet::new();
        for index in 0..of {
            let mine = blocks / u64::from(of) + u64::from(u64::from(index) < blocks % u64::from(of));
            for Numbered { op, .. } in walk(&s, Share { index, of }, mine as usize) {
                prop_assert!(seen.insert(op.offset), "{} twice", op.offset);
            }
        }
        prop_assert_eq!(seen.len() as u64, blocks);
    }

    #[test]
    fn keys_have_one_size_whoever_reads_them(seed: u64, other: u64, size in any_size()) {
        let keys = |dist, count| OpPlace::Keys { first: 10, count, stride: 1, dist, size_seed: 77, within: None };
        let put = KindSpec { kind: OpKind::Put, weight: 1, size: size.clone(), place: keys(Dist::Fresh, 0) };
        let get = KindSpec { kind: OpKind::Get, weight: 1, size, place: keys(Dist::Zipf(1.1), 100) };
        let written: Vec<u64> = walk(&source(seed, vec![put]), Share::WHOLE, 100).iter().map(|n| n.op.length).collect();
        for Numbered { op, .. } in walk(&source(other, vec![get]), Share::WHOLE, 200) {
            prop_assert!((10..110).contains(&op.key));
            prop_assert_eq!(op.length, written[op.key as usize - 10]);
        }
    }

    #[test]
    fn ranges_lie_inside_their_objects(seed: u64, range in 1u64..5000, object in 1u64..5000) {
        let place = OpPlace::Keys {
            first: 0, count: 10, stride: 1, dist: Dist::Uniform, size_seed: 1, within: Some(SizeSpec::Fixed(object)),
        };
        let kind = KindSpec { kind: OpKind::GetRange, weight: 1, size: SizeSpec::Fixed(range), place };
        for Numbered { op, .. } in walk(&source(seed, vec![kind]), Share::WHOLE, 100) {
            prop_assert_eq!(op.length, range.min(object));
            prop_assert!(op.offset + op.length <= object);
        }
    }

    #[test]
    fn a_mix_keeps_its_weights(seed: u64, reads in 1u32..10, writes in 1u32..10) {
        let kind = |k, w| region(k, w, SizeSpec::Fixed(512), 1, 1 << 20, Dist::Uniform);
        let s = source(seed, vec![kind(OpKind::Read, reads), kind(OpKind::Write, writes)]);
        let n = 20_000;
        let seen = walk(&s, Share::WHOLE, n).iter().filter(|x| x.op.kind == OpKind::Read).count() as f64;
        let p = f64::from(reads) / f64::from(reads + writes);
        let sigma = (n as f64 * p * (1.0 - p)).sqrt();
        // Six sigma: one case in 500 million is wrong by chance.
        prop_assert!((seen - n as f64 * p).abs() < 6.0 * sigma, "{seen} of {}", n as f64 * p);
    }
}

#[test]
fn sequential_ops_of_any_size_leave_no_gap_and_start_again() {
    let sizes = SizeSpec::Weighted(vec![(512, 1), (1024, 1)]);
    let s = source(5, vec![region(OpKind::Write, 1, sizes, 1, 64 * 512, Dist::Sequential)]);
    let mut expected = 1 << 20;
    for Numbered { op, .. } in walk(&s, Share::WHOLE, 500) {
        // An op that would cross the end goes to the start: at most one smallest block is left over.
        assert!(
            op.offset == expected || op.offset == 1 << 20 && expected + 1024 > (1 << 20) + 64 * 512,
            "{op:?}"
        );
        expected = op.offset + op.length;
    }
}

#[test]
fn syncs_follow_their_writes_and_are_not_counted() {
    let mut s =
        source(1, vec![region(OpKind::Write, 1, SizeSpec::Fixed(512), 2, 512 * 50, Dist::Sequential)]);
    s.sync.fdatasync_every = 3;
    let ops = walk(&s, Share::WHOLE, 12);
    let kinds: Vec<bool> = ops.iter().map(|n| n.op.kind == OpKind::Fsync).collect();
    assert_eq!(kinds, [false, false, false, true].repeat(3));
    assert_eq!(ops[3].n, 2, "a sync carries the number of the write before it");
    assert_eq!(ops[4].n, 3);
    assert_eq!(ops[3].op.key, ops[2].op.key);
}

#[test]
fn bad_sources_are_refused_in_words() {
    let small = source(1, vec![region(OpKind::Read, 1, SizeSpec::Fixed(4096), 1, 512, Dist::Uniform)]);
    assert!(small.check().unwrap_err().contains("do not fit"));
    let none = source(1, vec![region(OpKind::Read, 0, SizeSpec::Fixed(512), 1, 512, Dist::Uniform)]);
    assert!(none.check().unwrap_err().contains("mix"));
    let zipf = source(1, vec![region(OpKind::Read, 1, SizeSpec::Fixed(512), 1, 512, Dist::Zipf(0.0))]);
    assert!(zipf.check().unwrap_err().contains("zipf"));
}
