use super::*;

const GIB: u64 = 1 << 30;

fn options() -> FileBenchOptions {
    FileBenchOptions {
        directory: "/data".into(),
        embedded: None,
        runs: 2,
        size_bytes: None,
        threads: None,
        iops_duration: Duration::from_secs(5),
        original: Original::default(),
        seed: 3,
    }
}

fn host() -> Host {
    Host {
        memory_bytes: 4 * GIB,
        is_memory_limited: false,
        cpus: 4,
        free_bytes: Some(100 * GIB),
        cache: CacheMode::Dropped,
        direct_alignment: Some(512),
    }
}

fn made(o: &FileBenchOptions, h: &Host) -> Plan {
    plan(o, h).unwrap().plan
}

fn block(p: &Plan, stage: usize) -> BlockOptions {
    p.stages[stage].workloads[0].block.clone().unwrap_or_default()
}

#[test]
fn three_phases_a_run_over_twice_the_memory() {
    let p = made(&options(), &host());
    let names: Vec<&str> = p.stages.iter().map(|s| s.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["write", "read", "iops", "write", "read", "iops"]);
    let TargetSpec::Files(f) = &p.targets["files"] else { panic!() };
    assert_eq!(f.file_size.0 * 4, 8 * GIB);
    assert!(f.invalidate && f.buffered && !f.layout);
    assert_eq!(p.stages[3].cell, Some(Cell { index: 0, repeat: 1 }));
    let w = &p.stages[2].workloads[0];
    assert_eq!(w.mix, BTreeMap::from([(OpKind::Read, 9), (OpKind::Write, 1)]));
    assert_eq!((w.size.clone(), w.jobs), (SizeDist::Fixed(Size(512)), Some(4)));
    assert!(block(&p, 0).fresh && block(&p, 0).end_fsync);
    assert_eq!(block(&p, 2).offset_align, None);
    assert!(!p.options.keep);
    assert_eq!(p.labels["corrections"], "fsync,unique,aligned,fresh,cache");
}

#[test]
fn each_correction_can_be_taken_back() {
    let o = FileBenchOptions { original: Original::from_names(&["all"]).unwrap(), ..options() };
    let p = made(&o, &host());
    assert!(!block(&p, 0).end_fsync);
    assert_eq!(p.stages[0].workloads[0].data.dedupable, 1.0);
    assert_eq!(p.stages[2].workloads[0].data.dedupable, 1.0);
    assert_eq!(block(&p, 2).offset_align, Some(Size(1)));
    assert_eq!(p.labels["corrections"], "");
    let one = Original::from_names(&["unique"]).unwrap();
    assert_eq!(one.corrected(), ["fsync", "aligned", "fresh", "cache"]);
    assert!(one.notes().iter().any(|n| n.starts_with("unique: as the original")));
    assert!(Original::from_names(&["speed"]).unwrap_err().to_string().contains("no such correction"));
}

#[test]
fn where_the_cache_stays_direct_reads_go_round_it() {
    let h = Host { cache: CacheMode::Direct, ..host() };
    let p = made(&options(), &h);
    let targets: Vec<&str> = (0..3).map(|i| p.stages[i].workloads[0].target.as_deref().unwrap()).collect();
    assert_eq!(targets, ["files", "files-direct", "files-direct"]);
    // 512-byte blocks are too small for a disk of 4 KiB sectors.
    let four = Host { direct_alignment: Some(4096), ..h.clone() };
    let made4 = plan(&options(), &four).unwrap();
    assert_eq!(made4.plan.stages[2].workloads[0].target.as_deref(), Some("files"));
    assert!(made4.notes.iter().any(|n| n.contains("IOPS figure includes the cache")), "{:?}", made4.notes);
    let refused = Host { direct_alignment: Some(0), ..h };
    let made0 = plan(&options(), &refused).unwrap();
    assert!(!made0.plan.targets.contains_key("files-direct"));
    assert!(made0.notes.iter().any(|n| n.contains("figures include the cache")), "{:?}", made0.notes);
}

#[test]
fn space_and_size_are_checked_first() {
    let e = plan(&options(), &Host { free_bytes: Some(GIB), ..host() }).unwrap_err().to_string();
    assert!(e.contains("are needed") && e.contains("1.00 GiB are free"), "{e}");
    let e = plan(&FileBenchOptions { size_bytes: Some(1000), ..options() }, &host()).unwrap_err();
    assert!(e.to_string().contains("less than one 64 KiB block"));
    let small = plan(&FileBenchOptions { size_bytes: Some(GIB), ..options() }, &host()).unwrap();
    assert!(small.notes.iter().any(|n| n.starts_with("size:")), "{:?}", small.notes);
}

#[test]
fn files_are_twice_the_memory_of_a_bounded_client() {
    let client = |memory| plimsoll_model::plan::ClientBounds {
        memory: Some(Size(memory)),
        cores: None,
        cpus: vec![1],
    };
    let within = host().within(Some(&client(GIB)));
    assert_eq!((within.memory_bytes, within.is_memory_limited, within.cpus), (GIB, true, 1));
    assert_eq!(host().within(Some(&client(100 * GIB))).memory_bytes, host().memory_bytes);
    assert_eq!(host().within(None), host());
}

#[test]
fn files_on_an_embedded_disk_keep_its_word() {
    let disk = EmbeddedDisk { tier: Some("azure-premium-256".into()), ..Default::default() };
    let o = FileBenchOptions { directory: "embedded".into(), embedded: Some(disk.clone()), ..options() };
    let on = host().on_embedded(&disk);
    assert_eq!((on.cache, on.free_bytes), (CacheMode::Dropped, Some((1 << 30) / 10 * 9)));
    let e = plan(&o, &on).unwrap_err().to_string();
    assert!(e.contains("are needed"), "{e}");
    let p = made(&FileBenchOptions { size_bytes: Some(256 << 20), ..o }, &on);
    let TargetSpec::Files(f) = &p.targets["files"] else { panic!() };
    assert_eq!((f.directory.as_str(), f.embedded.as_deref()), ("embedded/plimsoll-file", Some(&disk)));
}

#[test]
fn this_machine_can_be_looked_at() {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let h = Host::of(dir.path()).unwrap();
    assert!(h.memory_bytes > 0 && h.cpus > 0 && h.free_bytes.is_some());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the probe file is gone");
    assert!(Host::of(Path::new("/proc/nowhere")).is_err());
}
