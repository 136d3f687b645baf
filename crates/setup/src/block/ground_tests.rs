use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use plimsoll_model::plan::{
    BlockOptions, BlockTarget, FilesTarget, KeyDist, PLAN_VERSION, RunOptions, SizeDist, TargetSpec,
};
use plimsoll_model::units::{Size, Span};
use plimsoll_model::{Level, OpKind};

use super::*;

const MIB: u64 = 1 << 20;

struct Bench {
    dir: tempfile::TempDir,
    journal: Journal,
    ground: Ground,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let journal = Journal::open(&dir.path().join("journal")).unwrap();
        let ground = Ground::new(journal.mark(), dir.path());
        Self { dir, journal, ground }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Prepares the plan's first stage; the layout writes ones. Returns what was laid out.
    fn prepare(&mut self, plan: &Plan) -> Result<(Vec<Finding>, Vec<LayoutJob>), SetupError> {
        let mut done = Vec::new();
        let mut layout = |jobs: &[LayoutJob]| -> Result<(), SetupError> {
            for j in jobs {
                let f = File::options().write(true).open(&j.path).unwrap();
                f.write_all_at(&vec![1u8; j.length as usize], j.offset).unwrap();
                f.sync_all().unwrap();
                done.push(j.clone());
            }
            Ok(())
        };
        let stage = &plan.stages[0];
        let findings = self.ground.prepare(plan, stage, &|_| 5, &mut self.journal, &mut layout)?;
        Ok((findings, done))
    }

    fn pending(&self) -> Vec<Thing> {
        self.journal.pending().into_iter().map(|(_, t)| t).collect()
    }
}

fn workload(kind: OpKind) -> Workload {
    Workload {
        name: "w".into(),
        target: None,
        mix: BTreeMap::from([(kind, 1)]),
        size: SizeDist::Fixed(Size(4096)),
        keys: KeyDist::Uniform,
        concurrency: 1,
        jobs: None,
        pacing: Default::default(),
        stop: Default::default(),
        verify: false,
        data: Default::default(),
        object: None,
        block: None,
        machines: None,
    }
}

fn plan_of(target: TargetSpec, w: Workload) -> Plan {
    Plan {
        version: PLAN_VERSION,
        name: None,
        seed: 1,
        options: RunOptions::default(),
        labels: BTreeMap::new(),
        expect: Vec::new(),
        targets: BTreeMap::from([("t".into(), target)]),
        stages: vec![Stage { name: None, warmup: Span(Duration::ZERO), workloads: vec![w], cell: None }],
        controller: None,
    }
}

fn file(path: &Path, size: Option<u64>) -> BlockTarget {
    BlockTarget {
        also: Vec::new(),
        path: path.display().to_string(),
        size: size.map(Size),
        offset: None,
        buffered: true,
        destroy_data: None,
        layout: true,
        invalidate: true,
        existing: false,
        embedded: None,
    }
}

#[test]
fn a_device_that_is_not_there_is_no_file_to_be_made() {
    let mut b = Bench::new();
    for path in ["/dev/plimsoll-no-such-disk", "/dev/disk/by-id/plimsoll-no-such-disk"].map(Path::new) {
        let plan = plan_of(TargetSpec::Block(file(path, Some(MIB))), workload(OpKind::Read));
        let told = b.prepare(&plan).unwrap_err().to_string();
        assert!(told.contains("no such device"), "{told}");
        assert!(!path.exists());
    }
    assert_eq!(b.pending(), []);
}

#[test]
fn a_missing_file_is_made_laid_out_once_and_in_the_journal() {
    let mut b = Bench::new();
    let path = b.path("data");
    let plan = plan_of(TargetSpec::Block(file(&path, Some(2 * MIB))), workload(OpKind::Read));
    let (findings, laid) = b.prepare(&plan).unwrap();
    assert_eq!((findings.len(), laid.len(), laid[0].length, laid[0].seed), (0, 1, 2 * MIB, 5));
    assert!(matches!(marker::maker_at(&path), Maker::Run(_)));
    assert_eq!(b.pending(), [Thing::File { path: path.clone() }]);
    assert_eq!(b.prepare(&plan).unwrap().1, [], "what is written needs no second layout");
    // A later run finds it, full and ours.
    b.ground = Ground::new("other", b.dir.path());
    assert_eq!(b.prepare(&plan).unwrap().1, []);
}

#[test]
fn a_write_needs_no_layout_but_room() {
    let mut b = Bench::new();
    let path = b.path("data");
    let plan = plan_of(TargetSpec::Block(file(&path, Some(MIB))), workload(OpKind::Write));
    assert_eq!(b.prepare(&plan).unwrap().1, []);
    assert_eq!(fs::metadata(&path).unwrap().len(), MIB);
    let huge = plan_of(TargetSpec::Block(file(&b.path("huge"), Some(1 << 50))), workload(OpKind::Write));
    let e = b.prepare(&huge).unwrap_err().to_string();
    assert!(e.contains("are free") || e.contains("cannot grow"), "{e}");
}

#[test]
fn without_layout_reads_of_holes_are_invalid() {
    let mut b = Bench::new();
    let path = b.path("sparse");
    File::create(&path).unwrap().set_len(MIB).unwrap();
    let plan = plan_of(TargetSpec::Block(file(&path, None)), workload(OpKind::Read));
    let (findings, laid) = b.prepare(&plan).unwrap();
    assert_eq!(laid, [], "a file of somebody else is not written");
    assert_eq!((findings[0].code.as_str(), findings[0].level), ("V09", Level::Invalid));
}

#[test]
fn refusals_leave_nothing_behind() {
    let mut b = Bench::new();
    let path = b.path("theirs");
    fs::write(&path, b"precious").unwrap();
    let plan = plan_of(TargetSpec::Block(file(&path, Some(MIB))), workload(OpKind::Write));
    let e = b.prepare(&plan).unwrap_err().to_string();
    assert!(e.contains("not created by plimsoll"), "{e}");
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    let missing = plan_of(TargetSpec::Block(file(&b.path("none"), None)), workload(OpKind::Read));
    assert!(b.prepare(&missing).is_err());
    assert_eq!(b.pending(), []);
}

#[test]
fn file_sets_have_directories_and_begin_anew_when_asked() {
    let mut b = Bench::new();
    let dir = b.path("a");
    let target = TargetSpec::Files(FilesTarget {
        directory: dir.display().to_string(),
        stem: Some("s".into()),
        files: 2,
        file_size: Size(MIB),
        buffered: true,
        layout: false,
        invalidate: true,
        embedded: None,
    });
    let fresh = Some(BlockOptions { fresh: true, ..BlockOptions::default() });
    let plan = plan_of(target, Workload { jobs: Some(2), block: fresh, ..workload(OpKind::Write) });
    b.prepare(&plan).unwrap();
    let first = dir.join("s.1.1");
    fs::write(&first, b"from the first run").unwrap();
    let inode = |p: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(p).unwrap());
    let before = inode(&dir.join("s.0.0"));
    // Keeps the inode number in use, so that a new file cannot get it again.
    let held = File::open(dir.join("s.0.0")).unwrap();
    b.prepare(&plan).unwrap();
    assert_ne!(inode(&dir.join("s.0.0")), before);
    drop(held);
    assert_ne!(fs::read(&first).unwrap(), b"from the first run");
    let things = b.pending();
    assert_eq!(things.iter().filter(|t| matches!(t, Thing::File { .. })).count(), 4);
    assert_eq!(things.iter().filter(|t| matches!(t, Thing::Directory { .. })).count(), 1);
}

#[test]
fn a_mistyped_directory_is_an_error_and_is_not_made() {
    let mut b = Bench::new();
    let (one, two) = (b.path("no"), b.path("no/where"));
    let of_file = |dir: &Path| TargetSpec::Block(file(&dir.join("f"), Some(MIB)));
    for dir in [&one, &two] {
        let told = b.prepare(&plan_of(of_file(dir), workload(OpKind::Write))).unwrap_err().to_string();
        assert!(told.contains("there is no directory") && told.contains("mkdir -p"), "{told}");
    }
    let set = TargetSpec::Files(FilesTarget {
        directory: two.display().to_string(),
        stem: None,
        files: 1,
        file_size: Size(MIB),
        buffered: true,
        layout: false,
        invalidate: true,
        embedded: None,
    });
    assert!(b.prepare(&plan_of(set, workload(OpKind::Write))).is_err(), "one level only");
    assert!(!one.exists());
    assert_eq!(b.pending(), []);
}

#[test]
fn a_directory_is_no_file_and_memory_is_no_storage() {
    let mut b = Bench::new();
    let plan = plan_of(TargetSpec::Block(file(&b.path("."), None)), workload(OpKind::Read));
    let told = b.prepare(&plan).unwrap_err().to_string();
    assert!(told.contains("is a directory"), "{told}");
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else { return };
    let path = memory.path().join("f");
    fs::write(&path, vec![1; MIB as usize]).unwrap();
    let plan = plan_of(TargetSpec::Block(file(&path, None)), workload(OpKind::Read));
    let (findings, _) = b.prepare(&plan).unwrap();
    assert!(
        findings.iter().any(|f| f.name == "memory_file_system" && f.level == Level::Qualified),
        "{findings:?}"
    );
}

#[test]
fn blocks_that_direct_io_cannot_do_are_told() {
    let mut b = Bench::new();
    let path = b.path("data");
    let direct = BlockTarget { buffered: false, ..file(&path, Some(MIB)) };
    let w = Workload { size: SizeDist::Fixed(Size(1000)), ..workload(OpKind::Read) };
    let e = b.prepare(&plan_of(TargetSpec::Block(direct), w)).unwrap_err().to_string();
    assert!(e.contains("1KB") || e.contains("direct I/O"), "{e}");
}

/// A file larger than the file system is refused before it is made, with what is free as it was: to reserve it first would
/// take all of it, and then tell that nothing is free.
#[test]
fn a_file_that_has_no_room_is_refused_before_it_is_made() {
    let mut bench = Bench::new();
    let free = super::super::free_bytes(bench.dir.path()).unwrap();
    let path = bench.path("big");
    let target = TargetSpec::Block(file(&path, Some(free.saturating_mul(2))));
    let plan = plan_of(target, workload(OpKind::Write));
    let refused = bench.ground.check_all(&plan).unwrap_err().to_string();
    assert!(refused.contains("are needed") && !refused.contains(" 0 B are free"), "{refused}");
    assert!(!path.exists() && bench.pending().is_empty());
    // What others took since then: the file is there, and stays as small as it was.
    File::create(&path).unwrap();
    let refused = extend(&path, &path, free.saturating_mul(2), true).unwrap_err().to_string();
    assert!(refused.contains("are needed") && !refused.contains(" 0 B are free"), "{refused}");
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
}
