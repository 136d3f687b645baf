//! Files through every ring: what is written is what is read, and damage is named.

mod common;

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use common::{MIB, file, run, stage, total, worker};
use plimsoll_engine::api::FileConfig;
use plimsoll_engine::payload::Payload;
use plimsoll_engine::written::{Identity, Written};
use plimsoll_engine::{Clock, Dist, OpPlace, SizeSpec, StopRule, SyncRule, TargetConfig};
use plimsoll_model::plan::RingChoice;
use plimsoll_model::{OpKind, Outcome, WorkerId};

const RINGS: [(RingChoice, u32); 3] =
    [(RingChoice::IoUring, 8), (RingChoice::Libaio, 8), (RingChoice::Psync, 1)];

#[test]
fn what_is_written_is_what_is_read() {
    for (ring, slots) in RINGS {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let mut write = worker(OpKind::Write, file(&path, true), MIB, Dist::Sequential);
        (write.ring, write.slots) = (ring, slots);
        write.source.sync = SyncRule { fsync_every: 100, end_fsync: true, ..SyncRule::default() };
        let (slices, ends) = run(stage(Clock::Real, vec![write]));
        assert_eq!(ends[0].error, None, "{ring:?}");
        assert_eq!(total(&slices, OpKind::Write).ok(), 256);
        assert_eq!(total(&slices, OpKind::Write).counts.bytes_ok, MIB);
        assert_eq!(total(&slices, OpKind::Fsync).ok(), 3, "two on the way and one at the end");
        assert_eq!(ends[0].synced_through, 256);

        let mut read = worker(OpKind::Read, file(&path, true), MIB, Dist::Uniform);
        (read.ring, read.slots, read.verify) = (ring, slots, true);
        let (slices, ends) = run(stage(Clock::Real, vec![read.clone()]));
        assert_eq!((total(&slices, OpKind::Read).ok(), ends[0].mismatches), (256, 0), "{ring:?}");

        let f = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        f.write_all_at(&[0xff; 1], 5 * 4096 + 1000).unwrap();
        read.stop = StopRule { loops: Some(1), ..StopRule::default() };
        read.source.kinds[0].place = match read.source.kinds[0].place.clone() {
            OpPlace::Region { files, order, offset_bytes, length_bytes, align_bytes, .. } => {
                OpPlace::Region {
                    files,
                    order,
                    offset_bytes,
                    length_bytes,
                    align_bytes,
                    dist: Dist::Sequential,
                }
            }
            other => other,
        };
        let (slices, ends) = run(stage(Clock::Real, vec![read]));
        let reads = total(&slices, OpKind::Read);
        assert_eq!(reads.counts.outcomes[Outcome::VerifyMismatch.index()], 1, "{ring:?}");
        assert_eq!(reads.ok(), 255);
        assert_eq!(ends[0].first_mismatches[0].offset_bytes, 5 * 4096 + 1000);
    }
}

/// Reads that cross writes of other jobs see mixtures: these are no damage, and damage beside them is found.
#[test]
fn a_read_that_a_write_crosses_is_no_damage() {
    const BLOCK: u64 = 65536;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    run(stage(Clock::Real, vec![worker(OpKind::Write, file(&path, true), MIB, Dist::Sequential)]));
    let damaged = MIB / 2 + 4096 + 1000;
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&[0xff], damaged).unwrap();

    let job = |n: u16, kind, region_bytes, ops| {
        let mut w = worker(kind, file(&path, true), region_bytes, Dist::Uniform);
        (w.worker, w.source.seed, w.slots) = (WorkerId::here(n), u64::from(n), 8);
        w.source.kinds[0].size = SizeSpec::Fixed(BLOCK);
        if let OpPlace::Region { align_bytes, .. } = &mut w.source.kinds[0].place {
            *align_bytes = 512;
        }
        (w.verify, w.stop) = (kind == OpKind::Read, StopRule { ops: Some(ops), ..StopRule::default() });
        w
    };
    // The writers stay in the first two blocks' place.
    let writers = (0..2).map(|n| job(n, OpKind::Write, 2 * BLOCK, 8000));
    let readers =
        [(2, 2 * BLOCK, 8000), (3, MIB, 2000)].map(|(n, bytes, ops)| job(n, OpKind::Read, bytes, ops));
    let (_, ends) = run(stage(Clock::Real, writers.chain(readers).collect()));
    assert_eq!(ends[2].first_mismatches, [], "of {} reads that were crossed", ends[2].crossed_reads);
    assert!(ends[3].mismatches > 0);
    let elsewhere: Vec<_> = ends[3].first_mismatches.iter().filter(|m| m.offset_bytes != damaged).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

/// With a record of what was written last, older content is a lost write, though its stamp is sound.
#[test]
fn a_lost_write_is_told_from_the_content_before_it() {
    for (ring, slots) in RINGS {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let identity = Identity { file: [1, 2, 3], seed: 4 };
        let record = || Written::begin(&dir.path().join("record"), identity, [5, 6], (0, MIB), 4096).unwrap();
        let at = |record: Written| match file(&path, true) {
            TargetConfig::Block(c) => {
                TargetConfig::Block(FileConfig { written: vec![Arc::new(record)], ..c })
            }
            other => other,
        };
        // The same blocks twice in one stage, and then once more in another: each time older content is kept.
        let mut write = worker(OpKind::Write, at(record()), MIB, Dist::Once);
        (write.ring, write.slots, write.verify) = (ring, slots, true);
        write.stop = StopRule { loops: Some(1), ..StopRule::default() };
        let (_, ends) = run(stage(Clock::Real, vec![write.clone()]));
        assert_eq!((ends[0].error.clone(), ends[0].ops), (None, 256), "{ring:?}");
        let first = std::fs::read(&path).unwrap();
        write.target = at(record());
        write.stop = StopRule { loops: Some(2), ..StopRule::default() };
        run(stage(Clock::Real, vec![write.clone()]));
        let last = std::fs::read(&path).unwrap();
        assert!(
            first.chunks(4096).zip(last.chunks(4096)).all(|(a, b)| a != b),
            "the same seed writes new data"
        );

        let look = Written::look(&dir.path().join("record"), identity, [5, 6]).unwrap().unwrap();
        let mut read = worker(OpKind::Read, at(look), MIB, Dist::Sequential);
        (read.ring, read.slots, read.verify) = (ring, slots, true);
        let (_, ends) = run(stage(Clock::Real, vec![read.clone()]));
        assert_eq!(ends[0].mismatches, 0, "{:?}", ends[0].first_mismatches);

        let f = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        f.write_all_at(&first[9 * 4096..][..4096], 9 * 4096).unwrap();
        let (_, ends) = run(stage(Clock::Real, vec![read]));
        assert_eq!(ends[0].mismatches, 1, "{ring:?}");
        let m = &ends[0].first_mismatches[0];
        assert!(m.offset_bytes == 9 * 4096 && m.found.contains("a lost write"), "{m}");
    }
}

/// Two jobs write parts of their own, so that nothing crosses. What the other one wrote before is as lost as its own.
#[test]
fn a_write_is_lost_to_an_older_one_of_another_job() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let identity = Identity { file: [1, 2, 3], seed: 4 };
    let record = dir.path().join("record");
    let with = |record: Written| match file(&path, true) {
        TargetConfig::Block(c) => TargetConfig::Block(FileConfig { written: vec![Arc::new(record)], ..c }),
        other => other,
    };
    let target = with(Written::begin(&record, identity, [5, 6], (0, MIB), 4096).unwrap());
    let job = |n: u16| {
        let mut w = worker(OpKind::Write, target.clone(), MIB / 2, Dist::Once);
        (w.worker, w.verify) = (WorkerId::here(n), true);
        if let OpPlace::Region { offset_bytes, .. } = &mut w.source.kinds[0].place {
            *offset_bytes = u64::from(n) * MIB / 2;
        }
        w
    };
    let jobs = vec![job(0), job(1)];
    let (data, object) = (jobs[0].data, 9);
    let (_, ends) = run(stage(Clock::Real, jobs));
    assert!(ends.iter().all(|e| e.error.is_none() && e.ops == 128), "{ends:?}");

    let mut read = worker(
        OpKind::Read,
        with(Written::look(&record, identity, [5, 6]).unwrap().unwrap()),
        MIB,
        Dist::Sequential,
    );
    read.verify = true;
    let (_, ends) = run(stage(Clock::Real, vec![read.clone()]));
    assert_eq!(ends[0].first_mismatches, []);
    // As if the first write of all had been worker 0's, and to each block of worker 1.
    let first =
        Written::begin(&dir.path().join("another"), identity, [5, 6], (0, MIB), 4096).unwrap().draw(0);
    let mut older = vec![0; MIB as usize / 2];
    Payload::new(data).fill(&mut older, object, MIB / 2, first, false);
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&older, MIB / 2).unwrap();
    let (_, ends) = run(stage(Clock::Real, vec![read]));
    // The first of all may have been one of them.
    assert!((127..=128).contains(&ends[0].mismatches), "{}", ends[0].mismatches);
    assert!(ends[0].first_mismatches.iter().all(|m| m.found.contains("a lost write")), "{ends:?}");
}

#[test]
fn the_end_of_a_file_is_a_short_read_not_a_result() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    std::fs::write(&path, vec![1; 8 * 4096]).unwrap();
    let read = worker(OpKind::Read, file(&path, true), 16 * 4096, Dist::Sequential);
    let (slices, ends) = run(stage(Clock::Real, vec![read]));
    let reads = total(&slices, OpKind::Read);
    assert_eq!((reads.ok(), reads.counts.outcomes[Outcome::ShortBody.index()]), (8, 8));
    assert!(ends[0].errors[0].text.contains("short by"), "{:?}", ends[0].errors);
}

#[test]
fn a_full_disk_is_an_outcome() {
    let target = file(std::path::Path::new("/dev/full"), true);
    let write = worker(OpKind::Write, target, 16 * 4096, Dist::Sequential);
    let (slices, _) = run(stage(Clock::Real, vec![write]));
    assert_eq!(total(&slices, OpKind::Write).counts.outcomes[Outcome::NoSpace.index()], 16);
}

#[test]
fn rings_refuse_what_they_cannot_do() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    std::fs::write(&path, [0; 4096]).unwrap();
    let mut read = worker(OpKind::Read, file(&path, true), 4096, Dist::Sequential);
    read.ring = RingChoice::Psync;
    let (_, ends) = run(stage(Clock::Real, vec![read.clone()]));
    assert!(ends[0].error.as_ref().unwrap().to_string().contains("psync does one op at a time"));
    read.ring = RingChoice::Epoll;
    let (_, ends) = run(stage(Clock::Real, vec![read.clone()]));
    assert!(ends[0].error.as_ref().unwrap().to_string().contains("epoll is for sockets"));
    read.target = file(&dir.path().join("nothing/there"), true);
    let (_, ends) = run(stage(Clock::Real, vec![read]));
    assert!(ends[0].error.as_ref().unwrap().to_string().contains("nothing/there"));
}

#[test]
fn a_cpu_that_is_not_there_is_an_error() {
    for cpu in [1023, 1024, u32::MAX] {
        let mut w = worker(OpKind::Null, TargetConfig::Null, MIB, Dist::Uniform);
        w.cpu = Some(cpu);
        let (_, ends) = run(stage(Clock::Real, vec![w]));
        let text = ends[0].error.as_ref().expect("refused").to_string();
        assert!(text.contains(&format!("CPU {cpu}")), "{text}");
    }
}
