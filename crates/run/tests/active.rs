//! The active controllers against simulated storage whose limits are known: what they find is the truth.

mod support;

use plimsoll_run::Finished;
use plimsoll_store::RunDir;
use support::run;

const OPS_BUCKET: &str = r#"
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
budget = "20m"
[controller.template]
[[controller.template.workload]]
name = "w"
mix = { put = 1 }
concurrency = 32
"#;

#[test]
fn the_probe_finds_an_ops_bucket() {
    let dir = tempfile::tempdir().unwrap();
    let f = run(dir.path(), OPS_BUCKET);
    let limit = &f.summary.limits[0];
    let ops = limit.ops_per_s.as_ref().unwrap();
    let within = |e: plimsoll_model::Estimate, truth: f64, share: f64| (e.value / truth - 1.0).abs() < share;
    assert!(within(ops.sustained.unwrap(), 300.0, 0.01), "{limit:?}");
    let capacity = ops.capacity.unwrap();
    assert!(within(capacity, 9000.0, 0.02) && capacity.high < 9500.0, "{limit:?}");
    // The simulated clock waits for whoever looks: the second run is the first one, to the last digit.
    let twin = run(dir.path(), OPS_BUCKET);
    assert_eq!(twin.summary.limits, f.summary.limits);
    assert_eq!(limit.binding, "ops", "{limit:?}");
    // The same stored data leads to the same conclusion.
    let again = plimsoll_run::analyze(&RunDir::open(&f.path).unwrap()).unwrap();
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
    assert!(f.summary.verdict.contains("a token bucket of"), "{}", f.summary.verdict);

    // The same storage without a limiter: nothing is claimed.
    let plan = std::fs::read_to_string(f.path.join("plan.toml")).unwrap();
    let start = plan.find("[targets.s.ops]").unwrap();
    let end = plan[start..].find("\n[[").map(|e| start + e).unwrap();
    let free = run(dir.path(), &format!("{}{}", &plan[..start], &plan[end..]));
    assert!(free.summary.limits.is_empty(), "{:?}", free.summary.limits);
    assert_eq!(RunDir::open(&free.path).unwrap().analysis().unwrap().holds[0].verdict, "steady");
}

/// A simulated storage with this limiter, and a probe of it.
fn probe(root: &std::path::Path, target: &str, controller: &str, op: &str) -> Finished {
    run(
        root,
        &format!(
            "version = 1\nseed = 2\n[targets.s]\nkind = \"sim\"\nbase = \"4ms\"\nspread = 0.3\nstream = \"200MB/s\"\n{target}\n\
             [controller]\nkind = \"limits\"\n{controller}\n[controller.template]\n[[controller.template.workload]]\n\
             name = \"w\"\nmix = {{ {op} = 1 }}\nconcurrency = 8\n"
        ),
    )
}

#[test]
fn refusals_prove_a_limit_without_a_burst_and_the_ladder_reaches_it() {
    let dir = tempfile::tempdir().unwrap();
    // Eight in flight reach 2,000 ops/s at most; the limit is above that.
    let target = "reject = true\n[targets.s.ops]\nsustained_per_s = 3000.0\ncapacity = 300.0";
    let f = probe(dir.path(), target, "budget = \"4m\"", "stat");
    let limit = &f.summary.limits[0];
    let ops = limit.ops_per_s.as_ref().unwrap();
    assert!((ops.sustained.unwrap().value / 3000.0 - 1.0).abs() < 0.01, "{limit:?}");
    assert_eq!((limit.binding.as_str(), &limit.bytes_per_s), ("ops", &None), "{}", f.summary.verdict);
    let has = |name: &str| f.summary.findings.iter().any(|x| x.name == name);
    assert!(has("limit_cause"), "{}", f.summary.verdict);
    let analysis = RunDir::open(&f.path).unwrap().analysis().unwrap();
    assert!(
        analysis.advice.iter().any(|a| a.contains("--rps-limit 3000") || a.contains("--rps-limit 29")),
        "{:?}",
        analysis.advice
    );
    assert_eq!(analysis.buckets.len(), 1);
}

#[test]
fn storage_without_a_limiter_has_none() {
    let dir = tempfile::tempdir().unwrap();
    let f = probe(dir.path(), "servers = 24", "budget = \"5m\"", "put");
    let limit = &f.summary.limits[0];
    assert!(["none", "latency"].contains(&limit.binding.as_str()), "{}", f.summary.verdict);
    assert!(limit.knee_bytes.is_none());
}

#[test]
fn ops_of_one_bucket_share_it_and_more_connections_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let target = "reject = true\n[targets.s.ops]\nsustained_per_s = 300.0\ncapacity = 30.0";
    let f = probe(dir.path(), target, "budget = \"6m\"\nprobe_shared = true\nprobe_scope = true", "get");
    let limit = &f.summary.limits[0];
    let said = |name: &str| -> &str {
        limit.evidence.iter().find(|(n, _)| n == name).map_or("", |(_, text)| text.as_str())
    };
    for op in ["put", "stat", "list", "delete"] {
        assert!(said(&format!("shared with {op}")).starts_with("same bucket"), "{limit:?}");
    }
    assert!(said("scope: connection").ends_with("wider"), "{limit:?}");
    assert_eq!(limit.scope, "unknown");
    // The same stored data leads to the same conclusion.
    let again = plimsoll_run::analyze(&RunDir::open(&f.path).unwrap()).unwrap();
    assert_eq!(again.limits, f.summary.limits);
}

#[test]
fn a_goal_beyond_what_was_seen_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let target = "reject = true\n[targets.s.ops]\nsustained_per_s = 300.0\ncapacity = 30.0";
    let plan = format!("{target}\n[options]\ngoal = \"1h\"");
    let f = probe(dir.path(), &plan, "budget = \"3m\"", "stat");
    let q = f.summary.findings.iter().find(|x| x.code == "Q01").expect("a short horizon");
    assert!(q.text.contains("--budget") && q.measured < q.threshold, "{q:?}");
}

#[test]
fn a_sweep_finds_its_own_sizes_and_says_which_cap_binds() {
    let dir = tempfile::tempdir().unwrap();
    let plan = |sizes: &str| {
        format!(
            "version = 1\nseed = 3\n[targets.s]\nkind = \"sim\"\nbase = \"5ms\"\nstream = \"50MB/s\"\nreject = false\n\
             [targets.s.ops]\nsustained_per_s = 1000.0\ncapacity = 10.0\n\
             [targets.s.bytes]\nsustained_per_s = 200000000.0\ncapacity = 1000000.0\n\
             [controller]\nkind = \"sweep\"\nops = [\"get\"]\nsizes = {sizes}\nrepeat = 1\n\
             [controller.template]\nwarmup = \"1s\"\n[[controller.template.workload]]\n\
             name = \"w\"\nmix = {{ get = 1 }}\nconcurrency = 16\nstop = {{ duration = \"4s\" }}\n"
        )
    };
    let f = run(dir.path(), &plan("[]"));
    let model = RunDir::open(&f.path).unwrap().analysis().unwrap().size_models.remove(0);
    let knee = model.knee_bytes.expect("a knee").value;
    assert!((knee / 200e3 - 1.0).abs() < 0.05, "{model:?}");
    assert_eq!(f.summary.workloads.len(), 24, "the pilot's steps are no cells");
    assert!(
        f.summary.verdict.contains("is limited by operations, above it by bytes"),
        "{}",
        f.summary.verdict
    );
    assert!(f.summary.verdict.contains("1 run per cell"), "{}", f.summary.verdict);
    // Cells that carry no model: why, and what would.
    let few = run(dir.path(), &plan("[\"4KiB\", \"1MiB\"]"));
    assert!(few.summary.verdict.contains("2 cells with a rate are too few"), "{}", few.summary.verdict);
    assert!(few.summary.verdict.contains("--sizes auto"), "{}", few.summary.verdict);
}

/// The stored run said nothing of it, and that a probe of servers that answer nothing needs more time.
#[test]
fn a_probe_of_storage_that_has_gone_keeps_why_it_ended() {
    let dir = tempfile::tempdir().unwrap();
    let gone = OPS_BUCKET.replace("reject = false", "error_rate = 1.0");
    let f = run(dir.path(), &gone);
    let said = |code: &str| f.summary.findings.iter().find(|x| x.code == code).map(|x| x.text.as_str());
    let all = &f.summary.findings;
    assert!(
        said("F59").is_some_and(|t| t.contains("Nothing was answered for 30 s (all attempts failed)")),
        "{all:?}"
    );
    assert!(said("F57").is_some_and(|t| t.contains("F59")), "{all:?}");
    assert!(all.iter().all(|x| !x.text.contains("--budget")), "{all:?}");
}
