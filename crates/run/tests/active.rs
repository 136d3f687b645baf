//! The active controllers against simulated storage whose limits are known: what they find is the truth.

mod support;

use plimsoll_store::RunDir;
use support::run;

#[test]
fn the_probe_finds_an_ops_bucket() {
    let dir = tempfile::tempdir().unwrap();
    let f = run(
        dir.path(),
        r#"
version = 1
seed = 1
[targets.s]
kind = "sim"
base = "5ms"
stream = "50MB/s"
reject = false
[targets.s.ops]
sustained_per_s = 300.0
burst_per_s = 900.0
capacity = 9000.0
[controller]
kind = "limits"
budget = "6m"
[controller.template]
[[controller.template.workload]]
name = "w"
mix = { put = 1 }
concurrency = 32
"#,
    );
    let limit = &f.summary.limits[0];
    let ops = limit.ops_per_s.as_ref().unwrap();
    let within = |e: plimsoll_model::Estimate, truth: f64, share: f64| (e.value / truth - 1.0).abs() < share;
    assert!(within(ops.sustained.unwrap(), 300.0, 0.01), "{limit:?}");
    assert!(within(ops.capacity.unwrap(), 9000.0, 0.03), "{limit:?}");
    assert_eq!(limit.binding, "ops", "{limit:?}");
    // The same stored data leads to the same conclusion.
    let again = plimsoll_run::analyze::analyze(&RunDir::open(&f.path).unwrap()).unwrap();
    assert_eq!(again.limits, f.summary.limits);
}

#[test]
fn the_search_finds_the_concurrency() {
    let dir = tempfile::tempdir().unwrap();
    let f = run(
        dir.path(),
        r#"
version = 1
seed = 1
[targets.s]
kind = "sim"
base = "10ms"
spread = 0.1
servers = 24
[controller]
kind = "saturation"
[controller.template]
warmup = "1s"
[[controller.template.workload]]
name = "w"
mix = { get = 1 }
stop = { duration = "4s" }
"#,
    );
    let run = RunDir::open(&f.path).unwrap();
    let found = run.analysis().unwrap().saturations.remove(0);
    assert_eq!(found.verdict, "saturated", "{found:?}");
    let c95 = found.c95.unwrap().value;
    assert!((23.0..=32.0).contains(&c95), "{found:?}");
    assert!((found.plateau_per_s.unwrap().value / 2400.0 - 1.0).abs() < 0.02, "{found:?}");
    assert!(f.summary.findings.iter().any(|x| x.name == "best_concurrency"));
}

#[test]
fn a_passive_run_over_a_cliff_says_what_is_sustained() {
    let dir = tempfile::tempdir().unwrap();
    let f = run(
        dir.path(),
        r#"
version = 1
seed = 4
[targets.s]
kind = "sim"
base = "10ms"
spread = 0.1
reject = true
[targets.s.ops]
sustained_per_s = 200.0
capacity = 15000.0
[[stage]]
warmup = "2s"
[[stage.workload]]
name = "w"
mix = { get = 1 }
concurrency = 8
stop = { duration = "90s" }
"#,
    );
    // 800 ops/s from a full bucket: 25 s, then 200 ops/s.
    let analysis = RunDir::open(&f.path).unwrap().analysis().unwrap();
    let hold = &analysis.holds[0];
    assert_eq!(hold.verdict, "throttled", "{hold:?}");
    let cliff = &hold.cliffs[0];
    assert!((cliff.at_s - 25.0).abs() < 1.5, "{cliff:?}");
    let bucket = &analysis.buckets[0];
    assert!((bucket.sustained_per_s.unwrap().value / 200.0 - 1.0).abs() < 0.02, "{bucket:?}");
    assert!((bucket.capacity.unwrap().value / 15_000.0 - 1.0).abs() < 0.03, "{bucket:?}");
    assert!(f.summary.findings.iter().any(|x| x.name == "cliff"));
    assert_eq!(f.summary.limits.len(), 1);
    assert!(f.summary.verdict.contains("200") || f.summary.verdict.contains("20"), "{}", f.summary.verdict);

    // The same storage without a limiter: nothing is claimed.
    let plan = std::fs::read_to_string(f.path.join("plan.toml")).unwrap();
    let start = plan.find("[targets.s.ops]").unwrap();
    let end = plan[start..].find("\n[[").map(|e| start + e).unwrap();
    let free = run(dir.path(), &format!("{}{}", &plan[..start], &plan[end..]));
    assert!(free.summary.limits.is_empty(), "{:?}", free.summary.limits);
    assert_eq!(RunDir::open(&free.path).unwrap().analysis().unwrap().holds[0].verdict, "steady");
}
