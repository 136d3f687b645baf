//! What was written is what is read: points, windows, totals, several agents, states of a run.

mod common;

use common::{GRID_NS, append_record, id, new_run, slice, stage_start, write_stage};
use plimsoll_model::sample::Role;
use plimsoll_model::{AgentHost, Interval, OpKind, Sample};
use plimsoll_store::{LoadOptions, Mark, RunState, SparseInterval, Thing, Window, codec, rundir};
use proptest::prelude::*;

fn merged(slices: impl Iterator<Item = Interval>) -> Interval {
    let mut sum = Interval::empty(0);
    slices.for_each(|s| sum.merge(&s));
    sum
}

#[test]
fn points_and_totals_are_the_truth() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    write_stage(&run, 37);
    let data = run.load(&LoadOptions::default()).unwrap();
    let stage = &data.stages[0];
    assert_eq!((data.grid_ns, data.step_ns), (GRID_NS, GRID_NS));
    let points = &stage.series[&id(0, OpKind::Get)];
    assert_eq!(points.len(), 37);
    let truth = slice(0, 20, 10 + 20 % 3, 20);
    assert_eq!(points[20].counts.ok(), truth.series[0].ok());
    assert_eq!(points[20].response.p99_ns, truth.series[0].response.quantile(0.99));

    let window = stage.window(GRID_NS).unwrap();
    assert_eq!((window.from, window.to), (5, 35));
    let totals = &run.totals(&[window], 1).unwrap()[0];
    let truth = merged((5..35).map(|i| slice(0, i, 10 + i % 3, i)));
    assert_eq!(totals.series, truth.series);
    assert_eq!(totals.client, truth.client);
    let seen: u64 = stage
        .points(id(0, OpKind::Get), GRID_NS, 5 * GRID_NS, 35 * GRID_NS)
        .iter()
        .map(|p| p.counts.ok())
        .sum();
    assert_eq!(seen, truth.series[0].ok());
}

#[test]
fn coarser_points_hold_the_same_work() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    write_stage(&run, 40);
    let fine = run.load(&LoadOptions::default()).unwrap();
    let coarse = run.load(&LoadOptions::step(1_000_000_000)).unwrap();
    let bounded = run.load(&LoadOptions { max_points: 7, ..LoadOptions::default() }).unwrap();
    assert_eq!(coarse.step_ns, 1_000_000_000);
    assert_eq!(coarse.stages[0].client.len(), 4);
    assert!(bounded.stages[0].client.len() <= 7);
    let work = |d: &plimsoll_store::RunData| -> u64 {
        d.stages[0].series.values().flatten().map(|p| p.counts.ok()).sum()
    };
    assert_eq!(work(&fine), work(&coarse));
    assert_eq!(work(&fine), work(&bounded));
}

/// Slices of unlike lengths are no slices of one grid: whose is right is not known.
#[test]
fn files_with_unlike_grids_are_no_run() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    write_stage(&run, 30);
    let mut w = run.create_intervals("other", 10 * GRID_NS).unwrap();
    w.mark(&stage_start(0, 0)).unwrap();
    w.interval(0, &slice(0, 1, 1, 1)).unwrap();
    w.finish().unwrap();
    let e = run.load(&LoadOptions::default()).unwrap_err().to_string();
    assert!(e.contains("grids of"), "{e}");
}

#[test]
fn agents_are_merged_on_the_grid_and_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    write_stage(&run, 30);
    let mut w = run.create_intervals("other/../agent", GRID_NS).unwrap();
    w.mark(&stage_start(0, 0)).unwrap();
    w.mark(&Mark::WarmupEnd { stage: 0, at_ns: 6 * GRID_NS }).unwrap();
    (0..20).for_each(|i| w.interval(0, &slice(0, i, 1, i + 100)).unwrap());
    w.finish().unwrap();
    assert_eq!(run.interval_files().unwrap().len(), 2);
    let data = run.load(&LoadOptions::default()).unwrap();
    let stage = &data.stages[0];
    // The record of the second one ends before the stage does: the window is of the time in which both were there.
    let window = stage.window(GRID_NS).unwrap();
    assert_eq!((window.from, window.to), (6, 20));
    let cut = &data.while_all_were_there().stages[0];
    assert_eq!(
        (cut.stop_ns, cut.end_ns, cut.last_ns),
        (Some(20 * GRID_NS), Some(20 * GRID_NS), 20 * GRID_NS)
    );
    let told = cut.cut.unwrap();
    assert_eq!((told.at_ns, told.stop_ns), (20 * GRID_NS, stage.stop_ns.unwrap()));
    assert_eq!((cut.window(GRID_NS), cut.ended_by_work()), (Some(window), false));
    let window = Window { stage: 0, from: 6, to: 28 };
    assert_eq!(stage.workers, 2);
    let local = || (6..28).map(|i| slice(0, i, 10 + i % 3, i));
    let other = || (6..20).map(|i| slice(0, i, 1, i + 100));
    let totals = &run.totals(&[window], 1).unwrap()[0];
    assert_eq!(totals.series, merged(local().chain(other())).series);

    // Nobody told of the second one: what it did counts, and where it was is not known.
    let told: Vec<_> = data.agents.iter().map(|a| (a.host.agent.as_str(), a.listed, a.files)).collect();
    assert_eq!(told, [("local", true, 1), ("other/../agent", false, 1)]);
    let [a, b] = &stage.agents[..] else { panic!("{:?}", stage.agents) };
    assert_eq!((a.workers, a.start_ns, a.end_ns), (1, Some(0), Some(30 * GRID_NS)));
    assert_eq!((b.last_ns, b.end_ns), (Some(20 * GRID_NS), None));
    assert!(b.is_lost_before(28 * GRID_NS) && !b.is_lost_before(20 * GRID_NS) && !a.is_lost_before(u64::MAX));
    assert_eq!(stage.agent_points(b, GRID_NS, 0, u64::MAX).len(), 20);
    assert_eq!(stage.agent_points(a, GRID_NS, 0, u64::MAX)[7], slice(0, 7, 11, 7).client);
    for (own, truth) in totals.agents.iter().zip([merged(local()), merged(other())]) {
        assert_eq!(own.client, truth.client);
        let (of_all, s) = (&own.series[0], &truth.series[0]);
        assert_eq!(of_all.counts, s.counts);
        let times = of_all.response.as_ref().unwrap();
        assert_eq!((times.quantile(0.99), times.count()), (s.response.quantile(0.99), s.response.count()));
    }
    // Agents are kept of as many windows as are asked for.
    let both = run.totals(&[window, window], 1).unwrap();
    assert_eq!((&both[0], &both[1].series), (totals, &totals.series));
    assert!(both[1].agents.is_empty() && both[1].blocks == totals.blocks);
}

/// Counts of single agents take memory, too: with many of them points become coarser, and the work in them stays the same.
#[test]
fn many_agents_make_points_coarser() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    let agents: u64 = 300;
    for n in 0..agents {
        let mut w = run.create_intervals(&format!("lg-{n}"), GRID_NS).unwrap();
        w.mark(&stage_start(0, 0)).unwrap();
        // A slice a while apart: the points between them are made, too.
        for i in [0, 8_000, 16_000] {
            w.interval(0, &slice(0, i, 1, n)).unwrap();
        }
        w.finish().unwrap();
    }
    let data = run.load(&LoadOptions::default()).unwrap();
    assert!(data.step_ns > GRID_NS);
    let stage = &data.stages[0];
    let held: usize =
        stage.agents.iter().map(|a| stage.agent_points(a, data.step_ns, 0, u64::MAX).len()).sum();
    assert!(held <= 4 << 20, "{held}");
    let workers: u32 = stage.client.iter().map(|c| c.workers).sum();
    assert_eq!(workers, 3 * agents as u32);
}

fn sample(host: &str, role: Role, at_s: u64, busy_ns: u64) -> Sample {
    Sample {
        host: host.into(),
        role,
        at_ns: at_s * 1_000_000_000,
        cpus: vec![[busy_ns, 0, 0, 0, 0, 0]],
        process_cpu_ns: busy_ns,
        process_rss_bytes: 0,
        process_usage: Default::default(),
        memory_available_bytes: 0,
        process_io: Default::default(),
        nics: Default::default(),
        tcp_out: 0,
        tcp_retransmits: 0,
        disks: Default::default(),
        psi_ns: [0; 3],
        cpu_quotas: Vec::new(),
    }
}

#[test]
fn samples_are_of_one_host_each() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    write_stage(&run, 10);
    for (host, boot) in [("b", 1_000_000), ("a", 7)] {
        let mut w = run.create_samples(host).unwrap();
        for at_s in 0..5 {
            w.sample(&sample(host, Role::Client, at_s, boot + at_s)).unwrap();
            w.sample(&sample(host, Role::Server, at_s, 0)).unwrap();
        }
        w.finish().unwrap();
    }
    let data = run.load(&LoadOptions::default()).unwrap();
    let all: Vec<_> =
        data.hosts.iter().map(|h| (h.host.as_str(), h.role, h.samples.len(), h.every)).collect();
    let client = |host, n| (host, Role::Client, n, 1);
    let server = |host, n| (host, Role::Server, n, 1);
    assert_eq!(all, [client("a", 5), server("a", 5), client("b", 5), server("b", 5)]);
    for h in &data.hosts {
        assert!(h.samples.iter().all(|s| s.host == h.host && s.role == h.role));
    }
    // The bound is on all of them together, and says how far apart they are then.
    let few = run.load(&LoadOptions { max_samples: 8, ..LoadOptions::default() }).unwrap();
    assert!(few.clients().all(|h| h.samples.len() <= 4 && h.every == 2), "{:?}", few.hosts);
    // A file of one host with another's samples in it, as nobody of ours writes it.
    let other = serde_json::to_vec(&sample("c", Role::Client, 9, 9)).unwrap();
    append_record(&run.sample_files().unwrap()[0], 3, &other);
    let data = run.load(&LoadOptions::default()).unwrap();
    assert_eq!(data.clients().count(), 2);
    assert_eq!(data.skipped.to_string(), "1 x sample (of another host than its file)");
}

#[test]
#[should_panic(expected = "a file of samples is of one host")]
fn a_sample_of_another_host_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut w = new_run(dir.path()).create_samples("a").unwrap();
    let _ = w.sample(&sample("b", Role::Client, 0, 0));
}

#[test]
#[should_panic(expected = "agent 'lg-9' is not in the run's table of agents")]
fn an_agent_that_nobody_knows_is_not_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    let mut env = run.env().unwrap();
    env.environment.agents = vec![AgentHost { agent: "lg-1".into(), ..AgentHost::default() }];
    run.write_env(&env).unwrap();
    run.create_intervals("lg-1", GRID_NS).unwrap();
    let _ = run.create_intervals("lg-9", GRID_NS);
}

/// A worker that had no processor for a while hands over slices that others have long been past.
#[test]
fn what_comes_late_counts_in_its_own_time() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    let mut w = run.create_intervals("local", GRID_NS).unwrap();
    w.mark(&stage_start(0, 0)).unwrap();
    w.mark(&Mark::WarmupEnd { stage: 0, at_ns: 0 }).unwrap();
    (0..30).for_each(|i| w.interval(0, &slice(0, i, 10, i)).unwrap());
    (3..7).for_each(|i| w.interval(0, &slice(0, i, 5, i + 50)).unwrap());
    w.mark(&Mark::StopRequested { stage: 0, at_ns: 30 * GRID_NS, reason: "duration".into() }).unwrap();
    w.mark(&Mark::StageEnd { stage: 0, at_ns: 30 * GRID_NS }).unwrap();
    w.finish().unwrap();
    let data = run.load(&LoadOptions::default()).unwrap();
    let get = id(0, OpKind::Get);
    let ok: Vec<u64> = data.stages[0].series[&get].iter().map(|p| p.counts.ok()).collect();
    assert_eq!(ok, (0..30).map(|i| if (3..7).contains(&i) { 15 } else { 10 }).collect::<Vec<_>>());
    assert_eq!(data.stages[0].endpoint_series[&get][4][1].ok, 15);
    assert_eq!(data.stages[0].client[4].workers, 2);
    let window = data.stages[0].window(GRID_NS).unwrap();
    let late = (3..7).map(|i| slice(0, i, 5, i + 50));
    let truth = merged((0..30).map(|i| slice(0, i, 10, i)).chain(late));
    assert_eq!(run.totals(&[window], 1).unwrap()[0].series, truth.series);
}

#[test]
fn states_and_removal() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    write_stage(&run, 10);
    let state = || rundir::list(dir.path()).unwrap().remove(0).state;
    let mut journal = run.journal().unwrap();
    assert_eq!(state(), RunState::Running);
    let thing = journal.creating(Thing::File { path: "/nowhere".into() }).unwrap();
    assert!(run.clone().remove().unwrap_err().to_string().contains("still in progress"));
    drop(journal);
    assert_eq!(state(), RunState::Unfinished);
    assert!(run.clone().remove().unwrap_err().to_string().contains("plimsoll cleanup"));
    run.journal().unwrap().removed(thing).unwrap();
    run.seal("done").unwrap();
    assert_eq!(state(), RunState::Sealed);
    assert!(run.altered_files().unwrap().is_empty());
    let file = run.interval_files().unwrap().remove(0);
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert_eq!(run.altered_files().unwrap(), ["intervals/local.zst"]);
    let found = rundir::RunDir::find(dir.path(), &run.id()[..12]).unwrap();
    assert_eq!(found.id(), run.id());
    run.remove().unwrap();
    assert!(rundir::list(dir.path()).unwrap().is_empty());
    let e = rundir::RunDir::find(dir.path(), "2026").unwrap_err().to_string();
    assert!(e.contains("no run '2026'"), "{e}");
}

#[test]
fn a_copy_has_the_name_of_its_directory_and_tells_whose_copy_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let old = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old/run-3");
    let copy = dir.path().join("copy");
    std::fs::create_dir_all(copy.join("intervals")).unwrap();
    for file in ["plan.toml", "env.json", "seal.json", "summary.json", "intervals/local.zst"] {
        std::fs::copy(old.join(file), copy.join(file)).unwrap();
    }
    let (run, copy) = (rundir::RunDir::open(&old).unwrap(), rundir::RunDir::open(&copy).unwrap());
    assert_eq!((run.summary().unwrap().id, copy.summary().unwrap().id), ("run-3".into(), "copy".into()));
    assert_eq!(copy.born_as().unwrap(), run.born_as().unwrap());
    assert_ne!(copy.born_as().unwrap(), "copy");
}

/// Every file below a directory, with its content.
fn all_of(dir: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(all_of(&path));
        } else {
            all.push((path.clone(), std::fs::read(&path).unwrap_or_default()));
        }
    }
    all.sort();
    all
}

#[test]
fn a_run_with_anything_foreign_in_it_stays_whole() {
    for name in ["notes.txt", "intervals/notes.txt", "samples/x.zst/deep"] {
        let dir = tempfile::tempdir().unwrap();
        let run = new_run(dir.path());
        drop(run.journal().unwrap());
        let mine = run.path().join(name);
        std::fs::create_dir_all(mine.parent().unwrap()).unwrap();
        std::fs::write(&mine, "mine").unwrap();
        let before = all_of(dir.path());
        let told = run.remove().unwrap_err().to_string();
        assert!(told.contains("is not a file of a run") && told.contains("Nothing was removed"), "{told}");
        assert_eq!(all_of(dir.path()), before, "{name}");
    }
}

#[test]
fn a_directory_that_only_has_the_names_of_a_run_stays_whole() {
    for (plan, journal, foreign) in
        [("[package]\n", true, false), ("", false, true), ("", true, true), ("", false, false)]
    {
        let dir = tempfile::tempdir().unwrap();
        let run = new_run(dir.path());
        write_stage(&run, 10);
        drop(run.journal().unwrap());
        if !plan.is_empty() {
            std::fs::write(run.path().join("plan.toml"), plan).unwrap();
        }
        if !journal {
            std::fs::write(run.path().join("journal"), "").unwrap();
            std::fs::remove_file(run.path().join("intervals/local.zst")).unwrap();
        }
        if foreign {
            std::fs::write(run.path().join("intervals/foreign.zst"), "my precious data").unwrap();
        }
        let before = all_of(dir.path());
        let told = run.remove().unwrap_err().to_string();
        assert!(told.contains("run"), "{told}");
        assert_eq!(all_of(dir.path()), before, "{plan} {journal} {foreign}");
    }
}

#[test]
fn a_run_whose_streams_are_links_stays_and_so_does_what_they_lead_to() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    drop(run.journal().unwrap());
    let theirs = dir.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::fs::write(theirs.join("data.zst"), "theirs").unwrap();
    std::fs::remove_dir(run.path().join("samples")).unwrap();
    std::os::unix::fs::symlink(&theirs, run.path().join("samples")).unwrap();
    assert!(run.clone().remove().unwrap_err().to_string().contains("samples is not a file of a run"));
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(run.path(), &link).unwrap();
    assert!(rundir::RunDir::open(&link).unwrap().remove().unwrap_err().to_string().contains("it is a link"));
    assert_eq!(std::fs::read(theirs.join("data.zst")).unwrap(), b"theirs");
    assert!(run.path().join("plan.toml").exists());
}

#[test]
fn what_a_kill_left_in_the_middle_of_a_write_goes_with_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    drop(run.journal().unwrap());
    for name in ["plan.new", "summary.new"] {
        std::fs::write(run.path().join(name), "half").unwrap();
    }
    let path = run.path().to_owned();
    run.remove().unwrap();
    assert!(!path.exists());
}

#[test]
fn a_file_is_replaced_and_not_what_a_link_in_its_way_leads_to() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    let theirs = dir.path().join("theirs");
    std::fs::write(&theirs, "theirs").unwrap();
    std::os::unix::fs::symlink(&theirs, run.path().join("plan.new")).unwrap();
    run.write_plan(&run.plan().unwrap()).unwrap();
    assert_eq!(std::fs::read(&theirs).unwrap(), b"theirs");
    assert!(!run.path().join("plan.new").exists());
}

#[test]
fn a_run_that_was_killed_before_it_had_a_plan_is_listed_and_can_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    let whole = new_run(dir.path());
    let half = rundir::RunDir::create(dir.path()).unwrap();
    for other in ["20261122-0531", "notes", "20261122-053127-zzzz"] {
        std::fs::create_dir(dir.path().join(other)).unwrap();
    }
    let theirs = dir.path().join("20261122-053127-d0ae");
    std::fs::create_dir(&theirs).unwrap();
    std::fs::write(theirs.join("photo.jpg"), "theirs").unwrap();
    let mut ids: Vec<String> = rundir::list(dir.path()).unwrap().into_iter().map(|r| r.id).collect();
    ids.sort();
    let mut want = [whole.id(), half.id()];
    want.sort();
    assert_eq!(ids, want);
    assert_eq!(rundir::RunDir::find(dir.path(), "last").unwrap(), whole);
    rundir::RunDir::find(dir.path(), &half.id()).unwrap().remove().unwrap();
    assert!(!half.path().exists() && theirs.join("photo.jpg").exists());
}

#[test]
fn a_run_is_named_by_its_whole_id_or_by_what_no_other_begins_with() {
    let dir = tempfile::tempdir().unwrap();
    let run = new_run(dir.path());
    assert!(
        rundir::RunDir::find(dir.path(), "").unwrap_err().to_string().contains("name of the run is empty")
    );
    let longer = dir.path().join(format!("{}-2", run.id()));
    rundir::RunDir::create_at(&longer).unwrap().write_plan(&run.plan().unwrap()).unwrap();
    assert_eq!(rundir::RunDir::find(dir.path(), &run.id()).unwrap(), run);
    let told = rundir::RunDir::find(dir.path(), &run.id()[..12]).unwrap_err().to_string();
    assert!(told.contains("2 runs begin with"), "{told}");
}

#[test]
fn a_newer_format_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.zst");
    let header = plimsoll_store::stream::Header {
        format: "plimsoll.intervals/9".into(),
        source: "a".into(),
        grid_ns: 1,
        observes: String::new(),
    };
    drop(plimsoll_store::StreamWriter::create(&path, &header).unwrap());
    let e = plimsoll_store::StreamReader::open(&path).unwrap_err().to_string();
    assert!(e.contains("plimsoll.intervals/9") && e.contains("newer"), "{e}");
}

fn any_slice() -> impl Strategy<Value = Interval> {
    (0u32..3, 0u64..20, 0u64..1000).prop_map(|(stage, n, seed)| slice(stage, 0, n, seed))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn merge_is_associative_and_commutative(a in any_slice(), b in any_slice(), c in any_slice()) {
        let s = |i: &Interval| -> SparseInterval { i.to_form() };
        let plus = |x: &SparseInterval, y: &SparseInterval| { let mut m = x.clone(); m.merge(y); m };
        let (sa, sb, sc) = (s(&a), s(&b), s(&c));
        prop_assert_eq!(plus(&plus(&sa, &sb), &sc), plus(&sa, &plus(&sb, &sc)));
        prop_assert_eq!(plus(&sa, &sb), plus(&sb, &sa));
        // Nothing is lost by merging in the one form or in the other.
        let mut dense = a.clone();
        dense.merge(&b);
        prop_assert_eq!(plus(&sa, &sb).to_form(), dense);
    }

    #[test]
    fn bytes_read_back(a in any_slice()) {
        let sparse: SparseInterval = a.to_form();
        let mut bytes = Vec::new();
        codec::encode(&sparse, &mut bytes);
        let mut c = plimsoll_store::varint::Cursor::new(&bytes);
        prop_assert_eq!(&codec::decode(&mut c).unwrap(), &sparse);
        prop_assert_eq!(sparse.to_form(), a.clone());
        // A slice of before waits for a CPU were kept ends without them, one of before the time of failed ops was, without
        // that, and so with pauses; one that ends anywhere else is an error.
        let mut without_pauses = a.clone();
        without_pauses.client.paused_ns = 0;
        let mut without_time = without_pauses.clone();
        without_time.series.iter_mut().for_each(|s| s.counts.failed_in_system_ns = 0);
        let mut without = without_time.clone();
        (without.client.run_wait_ns, without.client.cpu_turns) = (0, 0);
        for cut in 0..bytes.len() {
            match codec::decode(&mut plimsoll_store::varint::Cursor::new(&bytes[..cut])) {
                Err(_) => {}
                Ok(older) => prop_assert!([&without, &without_time, &without_pauses].contains(&&older.to_form())),
            }
        }
    }
}
