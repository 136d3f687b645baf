//! Runs whose rate is no one level: levels that grow, and teeth. What they consist of is reported, and the run is not void for it.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_judge::{judge, windows_of};
use plimsoll_model::interval::{ClientCounts, SeriesShape};
use plimsoll_model::{
    AgentHost, Analysis, Environment, Finding, HostFacts, Interval, Level, OpKind, Outcome, Plan, RunSummary,
    Series, SeriesId,
};
use plimsoll_store::mark::{LoadTimes, StageReport};
use plimsoll_store::{EnvFile, LoadOptions, Mark, RunDir, rundir::ENV_FORMAT};

const GRID_NS: u64 = 100_000_000;
const WARM: u64 = 20;
const SLOTS: u64 = 16;

/// Ops that end well in each slice, and those that are refused.
fn written(dir: &Path, slices: &[(u64, u64)]) -> RunDir {
    let n = slices.len() as u64;
    let plan = format!(
        "version = 1\n[targets.s3]\nkind = \"s3\"\nendpoints = [\"http://10.0.0.9:9000\"]\nbucket = \"bench\"\n[[stage]]\n\
         warmup = \"2s\"\n[[stage.workload]]\nname = \"get\"\nmix = {{ get = 1 }}\nsize = \"4KiB\"\nconcurrency = {SLOTS}\n\
         stop = {{ duration = \"{}s\" }}\n",
        (n - WARM) / 10
    );
    let run = RunDir::create(dir).unwrap();
    run.write_plan(&Plan::from_toml(&plan).unwrap()).unwrap();
    let machine = HostFacts { host: "node1".into(), cpu_count: 4, ..HostFacts::default() };
    let agents = vec![AgentHost { agent: "local".into(), number: 0, machine: machine.clone(), clock: None }];
    let env = EnvFile {
        format: ENV_FORMAT.into(),
        id: "levels".into(),
        environment: Environment { machine, agents, ..Default::default() },
        rerun: "plimsoll run levels.toml".into(),
        clock_offsets_ns: BTreeMap::new(),
    };
    run.write_env(&env).unwrap();
    let mut w = run.create_intervals("local", GRID_NS).unwrap();
    let spec = Box::new(run.plan().unwrap().stages.remove(0));
    let start = Mark::StageStart {
        stage: 0,
        at_ns: 0,
        spec,
        endpoints: vec![vec!["http://10.0.0.9:9000".into()]],
        workers: 2,
        ring: "epoll".into(),
        slots: SLOTS as u32,
    };
    w.mark(&start).unwrap();
    let mut slice = Interval::empty(0);
    let id = SeriesId { stage: 0, workload: 0, kind: OpKind::Get };
    slice.series.push(Series::new(id, SeriesShape::default()));
    for (i, (ok, refused)) in (0..).zip(slices) {
        if i == WARM {
            w.mark(&Mark::WarmupEnd { stage: 0, at_ns: WARM * GRID_NS }).unwrap();
        }
        slice.reset(i);
        let in_flight_ns = SLOTS * GRID_NS;
        let s = &mut slice.series[0];
        for k in 0..*ok {
            s.response.record(in_flight_ns / (ok + refused) / 4 * (1 + k % 7));
        }
        s.counts.started = ok + refused;
        s.counts.outcomes[Outcome::Ok.index()] = *ok;
        s.counts.outcomes[Outcome::Http429.index()] = *refused;
        (s.counts.bytes_ok, s.counts.bytes_moved) = (ok * 4096, ok * 4096);
        s.counts.in_system_ns = u128::from(in_flight_ns);
        slice.client = ClientCounts {
            workers: 2,
            alive_ns: 2 * GRID_NS,
            waited_ns: 19 * GRID_NS / 10,
            cpu_ns: GRID_NS / 20,
            in_flight_ns: u128::from(in_flight_ns),
            ..ClientCounts::default()
        };
        w.interval(0, &slice).unwrap();
    }
    let at_ns = n * GRID_NS;
    w.mark(&Mark::StopRequested { stage: 0, at_ns, reason: "duration".into() }).unwrap();
    let times = LoadTimes { began_ns: 0, finished_ns: at_ns };
    let report = Box::new(StageReport { times: Some(times), ..StageReport::default() });
    w.mark(&Mark::StageReport { stage: 0, at_ns, report }).unwrap();
    w.mark(&Mark::StageEnd { stage: 0, at_ns }).unwrap();
    w.finish().unwrap();
    run.seal("done").unwrap();
    run
}

fn judged(slices: &[(u64, u64)]) -> (RunSummary, Analysis) {
    let dir = tempfile::tempdir().unwrap();
    let run = written(dir.path(), slices);
    let data = run.load(&LoadOptions::default()).unwrap();
    let windows = windows_of(&data);
    let totals = run.totals(&windows.measured, windows.measured.len()).unwrap();
    let whole = run.totals(&windows.whole, 0).unwrap();
    judge(&data, &totals, &whole, &run.altered_files().unwrap())
}

/// Slices of levels: (ops in a slice, slices); one in `one_in` slices has a refusal more.
fn levels(all: &[(u64, usize)], one_in: u64) -> Vec<(u64, u64)> {
    let ok = all.iter().flat_map(|&(ops, n)| vec![ops; n]);
    (0..).zip(ok).map(|(i, ok)| (ok, u64::from(one_in > 0 && i % one_in.max(1) == 0))).collect()
}

fn finding<'a>(s: &'a RunSummary, code: &str) -> &'a Finding {
    s.findings.iter().find(|f| f.code == code).unwrap_or_else(|| panic!("no {code}: {:?}", s.findings))
}

/// 100, 200, 300, 400 op/s, each exactly: "INVALID: the interval is as wide as the rate".
#[test]
fn four_exact_levels_are_four_events_and_no_fault() {
    for one_in in [0, 2] {
        let (s, a) = judged(&levels(&[(10, 750), (20, 750), (30, 750), (40, 750)], one_in));
        assert!(s.answered && s.workloads[0].valid, "{:?}", s.findings);
        assert!(s.findings.iter().all(|f| f.level != Level::Invalid), "{:?}", s.findings);
        assert!(
            s.findings.iter().all(|f| !["F33", "F35", "F30"].contains(&f.code.as_str())),
            "{:?}",
            s.findings
        );
        let f = finding(&s, "F36");
        let what = if one_in == 0 { "rate" } else { "limit" };
        assert!(
            f.text.starts_with(&format!(
                "The {what} grew in 4 levels: 100.0 op/s for 75.0 s, then 200.0 op/s for 75.0 s, then 300.0 op/s for 75.0 s, then \
                 400.0 op/s for 75.0 s."
            )),
            "{}",
            f.text
        );
        assert!(f.text.contains("No sustained rate is known yet"), "{}", f.text);
        assert_eq!(f.evidence[3], ("level 4".to_owned(), "225 s to 300 s: 400.0 op/s".to_owned()));
        let [hold] = &a.holds[..] else { panic!("{:?}", a.holds) };
        assert_eq!((hold.verdict.as_str(), hold.levels.len()), ("growing", 4));
        assert!(s.verdict.contains("grew in 4 levels"), "{}", s.verdict);
        assert!(!s.verdict.contains("Measured"), "no mean over them is quoted: {}", s.verdict);
        assert!(
            a.advice[0]
                .starts_with("There is no sustained limit to configure yet: the last level (400 op/s)"),
            "{:?}",
            a.advice
        );
        assert!(a.advice.iter().all(|t| !t.contains("--rps-limit")), "{:?}", a.advice);
    }
}

/// Where the last level lasts for twice as long as any before, growth may be over.
#[test]
fn a_last_level_that_lasts_is_said_to() {
    let (s, a) = judged(&levels(&[(10, 300), (20, 300), (30, 300), (40, 1200)], 0));
    assert!(
        finding(&s, "F36").text.contains("has lasted for longer than any before (2 min)"),
        "{:?}",
        s.findings
    );
    assert!(a.advice.iter().all(|t| !t.contains("no sustained limit")), "{:?}", a.advice);
}

#[test]
fn a_ramp_and_a_dip_are_no_levels() {
    // 100 to 400 op/s within 300 s, in whole ops.
    let done = |i: u64| 10 * i + i * i / 200;
    let ramp: Vec<(u64, u64)> = (0..3000).map(|i| (done(i + 1) - done(i), 0)).collect();
    let dip = levels(&[(40, 1200), (10, 300), (40, 1200)], 0);
    for slices in [ramp, dip] {
        let (s, a) = judged(&slices);
        assert!(s.findings.iter().all(|f| !["F36", "F37"].contains(&f.code.as_str())), "{:?}", s.findings);
        assert!(a.holds.iter().all(|h| h.verdict != "growing" && h.verdict != "sawtooth"), "{:?}", a.holds);
    }
}

#[test]
fn a_sawtooth_is_one_and_no_fault() {
    let slices: Vec<(u64, u64)> =
        (0..3000).map(|i| (6 + 7 * (i % 400) / 400, u64::from(i % 400 > 300))).collect();
    let (s, a) = judged(&slices);
    assert!(s.answered && s.workloads[0].valid, "{:?}", s.findings);
    let f = finding(&s, "F37");
    assert!(f.text.contains("like a sawtooth: from") && f.text.contains("adaptive limit"), "{}", f.text);
    assert!(s.verdict.contains("sawtooth") && !s.verdict.contains("Measured"), "{}", s.verdict);
    assert_eq!(a.holds[0].verdict, "sawtooth");
    assert!(a.advice[0].starts_with("There is no constant rate to configure"), "{:?}", a.advice);
}
