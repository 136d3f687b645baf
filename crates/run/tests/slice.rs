//! From plan to sealed run directory to judged summary, against the simulated target (whose truth is known to the
//! nanosecond) and the null target.

mod support;

use plimsoll_model::{Event, Plan};
use plimsoll_run::execute;
use plimsoll_store::{LoadOptions, RunDir};
use support::{options, run};

/// Each op takes exactly 2 ms, 16 at a time: 8,000 ops/s.
const SIM: &str = r#"
version = 1
seed = 7
[targets.s]
kind = "sim"
base = "2ms"
[[stage]]
warmup = "2s"
[[stage.workload]]
name = "w"
mix = { get = 1 }
concurrency = 16
stop = { duration = "10s" }
"#;

#[test]
fn a_simulated_run_tells_the_truth() {
    let dir = tempfile::tempdir().unwrap();
    let f = run(dir.path(), SIM);
    let s = &f.summary;
    assert_eq!(f.exit_code, 0, "{}", s.verdict);
    assert!(s.valid, "{:?}", s.findings);
    let w = &s.workloads[0];
    let ops = w.ops_per_s.unwrap();
    assert!((ops.value - 8000.0).abs() < 1.0 && ops.contains(8000.0), "{ops:?}");
    assert_eq!(w.window_s, 10.0);
    assert_eq!(w.warmup_s, 2.0);
    let l = w.latency_ns.response.as_ref().unwrap();
    assert_eq!(l.mean, 2_000_000.0);
    assert!(l.p99.unwrap().abs_diff(2_000_000) < 2000);
    let law = w.littles_law.as_ref().unwrap();
    assert!(law.error < 1e-3, "{law:?}");
    assert!(s.findings.iter().any(|f| f.name == "concurrency_bound"), "{:?}", s.findings);
    let on_disk = RunDir::open(&f.path).unwrap();
    assert_eq!(on_disk.summary().unwrap(), *s);
    assert_eq!(on_disk.sealed().unwrap().unwrap().end, "done");
    assert!(on_disk.altered_files().unwrap().is_empty());
}

/// The trace has the requests that the figures are of: none of the warm-up.
#[test]
fn a_trace_is_of_the_measured_part() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trace.csv");
    let traced = SIM
        .replace("seed = 7", &format!("seed = 7\n[options]\ntrace = {:?}", file.display().to_string()))
        .replace("duration = \"10s\"", "duration = \"1s\"");
    let f = run(dir.path(), &traced);
    let ok = f.summary.workloads[0].outcomes["ok"];
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count() as u64 - 1, ok);
    assert_eq!(ok, 8000, "2 s of warm-up, with twice as many, are in neither");
}

/// Ops that take longer than a slice leave slices of which no worker has anything to say: they are time, too.
#[test]
fn slices_without_an_op_count_as_time() {
    let dir = tempfile::tempdir().unwrap();
    let slow =
        SIM.replace("base = \"2ms\"", "base = \"350ms\"").replace("duration = \"10s\"", "duration = \"35s\"");
    let mut done = None;
    execute(&Plan::from_toml(&slow).unwrap(), &options(dir.path()), |e| {
        if let Event::StageDone { ok, seconds, .. } = e {
            done = Some((ok, seconds));
        }
    })
    .unwrap();
    let (ok, seconds) = done.unwrap();
    assert!((seconds - 35.0).abs() < 0.5 && ok.abs_diff(1600) <= 32, "{ok} in {seconds} s");
}

/// A burst of three seconds has no interval: what was written has to be readable even so.
#[test]
fn a_short_burst_leaves_a_summary_that_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let bucket =
        "base = \"2ms\"\n[targets.s.ops]\nsustained_per_s = 50.0\nburst_per_s = 200.0\ncapacity = 450.0";
    let plan = SIM.replace("base = \"2ms\"", bucket).replace("warmup = \"2s\"", "").replace("10s", "40s");
    let f = run(dir.path(), &plan);
    assert_eq!(f.summary.limits.len(), 1, "{}", f.summary.verdict);
    assert_eq!(RunDir::open(&f.path).unwrap().summary().unwrap().limits, f.summary.limits);
}

/// What two workloads do at the same time is a line of its own, and a limit that they share is seen in it.
#[test]
fn workloads_of_a_stage_are_summed_up() {
    let dir = tempfile::tempdir().unwrap();
    let second = "\n[[stage.workload]]\nname = \"v\"\nmix = { get = 1 }\nconcurrency = 8\nstop = { duration = \"10s\" }\n";
    let f = run(dir.path(), &format!("{SIM}{second}"));
    let [w, v, both] = &f.summary.workloads[..] else { panic!("{:?}", f.summary.workloads) };
    assert_eq!((w.together, v.together, both.together), (0, 0, 2));
    assert_eq!((both.name.as_str(), both.op.as_str(), both.concurrency), ("together", "get", 24));
    assert!((both.ops_per_s.unwrap().value - 12_000.0).abs() < 2.0, "{both:?}");
    assert_eq!(both.outcomes["ok"], w.outcomes["ok"] + v.outcomes["ok"]);
    assert_eq!(both.latency_ns.response.as_ref().unwrap().mean, 2_000_000.0);
    let t = &f.summary.verdict;
    assert!(t.contains("with 24 in flight from 2 jobs combined") && !t.contains("8,000"), "{t}");

    let bucket =
        "base = \"2ms\"\n[targets.s.ops]\nsustained_per_s = 500.0\nburst_per_s = 2000.0\ncapacity = 20000.0";
    let limited = format!("{SIM}{second}").replace("base = \"2ms\"", bucket).replace("10s", "120s");
    let f = run(dir.path(), &limited.replace("warmup = \"2s\"", ""));
    let [limit] = &f.summary.limits[..] else { panic!("{:?}", f.summary.limits) };
    let found = limit.ops_per_s.as_ref().unwrap().sustained.unwrap();
    assert!((found.value / 500.0 - 1.0).abs() < 0.02, "{limit:?}");
}

#[test]
fn the_same_plan_gives_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let noisy = SIM.replace("base = \"2ms\"", "base = \"2ms\"\nspread = 0.3\nerror_rate = 0.0005\nservers = 12\nstall_every = \"3s\"\nstall_for = \"200ms\"");
    let plans = [
        SIM.to_owned(),
        noisy.clone(),
        noisy.replace("concurrency = 16", "concurrency = 16\npacing = { poisson = \"3000/s\" }"),
    ];
    for plan in &plans {
        let (a, b) = (run(dir.path(), plan), run(dir.path(), plan));
        let bytes = |f: &plimsoll_run::Finished| std::fs::read(f.path.join("intervals/local.zst")).unwrap();
        assert!(bytes(&a) == bytes(&b), "interval files differ");
        assert_eq!(a.summary.workloads, b.summary.workloads);
        assert_eq!(a.summary.findings, b.summary.findings);
        assert_eq!(a.summary.verdict, b.summary.verdict);
    }
    let other = run(dir.path(), &noisy.replace("seed = 7", "seed = 8"));
    let same = run(dir.path(), &noisy);
    assert_ne!(other.summary.workloads, same.summary.workloads, "the seed matters");
}

#[test]
fn a_run_can_be_judged_again() {
    let dir = tempfile::tempdir().unwrap();
    let f = run(dir.path(), SIM);
    let run = RunDir::open(&f.path).unwrap();
    std::fs::remove_file(f.path.join("summary.json")).unwrap();
    std::fs::remove_file(f.path.join("analysis.json")).unwrap();
    assert_eq!(plimsoll_run::analyze(&run).unwrap(), f.summary);
    assert_eq!(run.analysis().unwrap().spans.len(), 1);
}

#[test]
fn throttled_is_not_failed_and_failed_is_invalid() {
    let dir = tempfile::tempdir().unwrap();
    let bucket = "base = \"2ms\"\nreject = true\n[targets.s.ops]\nsustained_per_s = 500.0\ncapacity = 100.0";
    let f = run(dir.path(), &SIM.replace("base = \"2ms\"", bucket));
    let w = &f.summary.workloads[0];
    assert!(w.outcomes["http_429"] > 0);
    assert!((w.ops_per_s.unwrap().value / 500.0 - 1.0).abs() < 0.02, "{:?}", w.ops_per_s);
    assert!(w.attempts_per_s > 2.0 * w.ops_per_s.unwrap().value);
    assert_eq!(f.exit_code, 0, "{}", f.summary.verdict);

    let f = run(dir.path(), &SIM.replace("base = \"2ms\"", "base = \"2ms\"\nerror_rate = 0.01"));
    assert_eq!(f.exit_code, 3);
    assert!(f.summary.findings.iter().any(|x| x.code == "V01"));
    let w = &f.summary.workloads[0];
    let failed = w.outcomes["http_5xx"] as f64 / (w.outcomes["http_5xx"] + w.outcomes["ok"]) as f64;
    assert!((failed - 0.01).abs() < 0.002, "{failed}");
}

#[test]
fn promises_decide_the_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let with = |e: &str| run(dir.path(), &SIM.replace("seed = 7", &format!("seed = 7\nexpect = [\"{e}\"]")));
    assert_eq!(with("get.ops_per_s >= 7900").exit_code, 0);
    assert_eq!(with("get.ops_per_s >= 8100").exit_code, 4);
    // Too few ops for that quantile: nothing says whether it holds.
    assert_eq!(with("get.p9999 <= 1s").exit_code, 5);
    for bad in ["fast", "put.ops_per_s >= 1"] {
        let plan = SIM.replace("seed = 7", &format!("seed = 7\nexpect = [\"{bad}\"]"));
        let e = execute(&Plan::from_toml(&plan).unwrap(), &options(dir.path()), |_| {}).unwrap_err();
        assert_eq!(e.exit_code(), 2, "{bad}: {e}");
    }
}

#[test]
fn a_sweep_has_a_line_per_cell_over_its_repeats() {
    let dir = tempfile::tempdir().unwrap();
    let plan = r#"
version = 1
seed = 3
[targets.s]
kind = "sim"
base = "1ms"
stream = "100MB/s"
spread = 0.05
[controller]
kind = "sweep"
ops = ["put", "get"]
sizes = ["4KB", "1MB"]
repeat = 3
[controller.template]
warmup = "1s"
[[controller.template.workload]]
name = "w"
mix = { put = 1 }
concurrency = 8
stop = { duration = "4s" }
"#;
    let f = run(dir.path(), plan);
    assert_eq!(f.summary.workloads.len(), 4, "{:#?}", f.summary.workloads);
    for w in &f.summary.workloads {
        assert_eq!((w.repeats, w.window_s), (3, 12.0));
        // 1 ms and 10 us per KB on average, 8 at a time.
        let truth = 8.0 / (1e-3 + w.size_bytes as f64 / 100e6);
        let ops = w.ops_per_s.unwrap();
        assert!((ops.value / truth - 1.0).abs() < 0.02, "{} {ops:?} {truth}", w.name);
        assert_eq!(ops.n_eff, 3.0);
    }
    let run = RunDir::open(&f.path).unwrap();
    let analysis = run.analysis().unwrap();
    assert_eq!(analysis.spans.len(), 12);
    assert_eq!(run.load(&LoadOptions::default()).unwrap().stages.len(), 12);
}

#[test]
fn the_null_target_is_measured_and_events_come() {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan::from_toml(
        "version = 1\n[targets.n]\nkind = \"null\"\n[[stage]]\nwarmup = \"200ms\"\n[[stage.workload]]\nname = \"loop\"\n\
         mix = { null = 1 }\nconcurrency = 4\nstop = { duration = \"800ms\" }\n",
    )
    .unwrap();
    let mut events = Vec::new();
    let f = execute(&plan, &options(dir.path()), |e| events.push(e)).unwrap();
    let w = &f.summary.workloads[0];
    assert!(w.ops_per_s.unwrap().value > 1000.0, "{w:?}");
    assert!(!f.summary.findings.iter().any(|x| x.name == "client_bound"), "the client is the subject");
    assert!(matches!(events.first(), Some(Event::Started { .. })));
    assert!(events.iter().any(|e| matches!(e, Event::Live(_))));
    assert!(events.iter().any(|e| matches!(e, Event::StageDone { .. })));
    let data = RunDir::open(&f.path).unwrap().load(&LoadOptions::default()).unwrap();
    assert!(data.clients().map(|h| h.samples.len()).sum::<usize>() >= 2, "resources are sampled");
    assert!(!f.summary.environment.ring.is_empty());
}

#[test]
fn a_killed_sweep_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan::from_toml(
        r#"
version = 1
seed = 5
[targets.s]
kind = "sim"
base = "2ms"
spread = 0.1
[controller]
kind = "sweep"
ops = ["put", "get"]
sizes = ["4KB", "64KB"]
repeat = 2
[controller.template]
warmup = "500ms"
[[controller.template.workload]]
name = "w"
mix = { put = 1 }
concurrency = 4
stop = { duration = "2s" }
"#,
    )
    .unwrap();
    let whole = execute(&plan, &options(dir.path()), |_| {}).unwrap();
    // What a kill leaves: no seal, no results, and the last frame torn in the middle of a stage.
    let file = whole.path.join("intervals/local.zst");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() * 6 / 10]).unwrap();
    for name in ["seal.json", "summary.json", "analysis.json"] {
        std::fs::remove_file(whole.path.join(name)).unwrap();
    }
    let before = RunDir::open(&whole.path).unwrap().load(&LoadOptions::default()).unwrap();
    assert!(before.end.is_none() && before.stages.len() < 8);

    let resumed = plimsoll_run::resume(&whole.path, &options(dir.path()), |_| {}).unwrap();
    assert_eq!(resumed.exit_code, 0, "{}", resumed.summary.verdict);
    let run = RunDir::open(&whole.path).unwrap();
    let data = run.load(&LoadOptions::default()).unwrap();
    assert_eq!(data.end.as_deref(), Some("done"));
    assert!(data.damage.is_empty());
    let mut cells: Vec<(u32, u32)> = data
        .stages
        .iter()
        .filter(|s| s.void.is_none())
        .map(|s| s.spec.cell.as_ref().map(|c| (c.index, c.repeat)).unwrap())
        .collect();
    cells.sort_unstable();
    assert_eq!(cells, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)]);
    assert_eq!(resumed.summary.workloads.len(), 4);
    assert!(resumed.summary.workloads.iter().all(|w| w.repeats == 2));
    let e = plimsoll_run::resume(&whole.path, &options(dir.path()), |_| {}).unwrap_err();
    assert_eq!(e.exit_code(), 2, "{e}");
}
