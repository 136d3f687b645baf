//! The paragraph keeps its order, carries every interval, and says the horizon.

use std::collections::BTreeMap;

use plimsoll_model::summary::*;
use plimsoll_model::{Analysis, Environment, Estimate, Finding, Level, analysis};

use super::*;
use crate::validity;

/// Settled, derived, and held against itself.
fn paragraph(s: &RunSummary, a: &Analysis, goal_s: Option<f64>) -> String {
    let mut s = s.clone();
    let answered = s.answered;
    s.settle(answered, false);
    let claims = derive(&s, a, goal_s);
    assert_eq!(contradictions(&claims, &s), Vec::<String>::new());
    super::paragraph(&claims)
}

fn summary() -> RunSummary {
    let ops = Estimate::symmetric(1004.0, 5.5, 40.0);
    RunSummary {
        schema: SCHEMA.into(),
        id: "r".into(),
        answered: true,
        workloads: vec![WorkloadSummary {
            name: "put".into(),
            op: "put".into(),
            size_bytes: 4096,
            size: "4KiB".into(),
            concurrency: 16,
            window_s: 300.0,
            horizon_s: 1200.0,
            warmup_s: 2.0,
            tail_s: 0.0,
            repeats: 5,
            ops_per_s: Some(ops),
            bytes_per_s: Some(ops.scaled(4096.0)),
            attempts_per_s: 1004.0,
            latency_ns: Latencies::default(),
            outcomes: BTreeMap::from([("ok".to_owned(), 301_200)]),
            ..WorkloadSummary::default()
        }],
        environment: Environment::default(),
        ..RunSummary::default()
    }
}

#[test]
fn a_plain_run() {
    let t = paragraph(&summary(), &Analysis::default(), None);
    assert!(t.starts_with("VALID. Measured 1,004 ± 6 op/s of 4KiB PUT, 4.112 ± 0.023 MB/s with 16 in flight (95 % CI, 5 runs, 5 min window)."), "{t}");
    assert!(t.contains("Seen for 20 min: a burst that lasts longer is not excluded"), "{t}");
}

#[test]
fn an_open_loop_says_whose_rate_it_is() {
    let mut s = summary();
    s.workloads[0].offered_per_s = Some(1004.0);
    let t = paragraph(&s, &Analysis::default(), None);
    assert!(t.contains(", of 1,004 op/s offered, with at most 16 in flight (95 % CI"), "{t}");
}

#[test]
fn an_invalid_run_says_so_first() {
    let mut s = summary();
    s.findings = vec![
        Finding::new("V07", "client_bound", Level::Invalid, "Client-bound: x."),
        Finding::new("Q01", "horizon", Level::Qualified, "y."),
    ];
    s.answered = false;
    let t = paragraph(&s, &Analysis::default(), None);
    assert!(t.starts_with("[INVALID V07] Client-bound: x."), "{t}");
    assert!(t.contains("Notes: Q01 horizon."), "{t}");
    s.workloads[0].ops_per_s = None;
    assert!(paragraph(&s, &Analysis::default(), None).contains("**Undetermined**: the rate of 4KiB PUT"));
}

/// Ten cycles, of which the last six are slower, or a cliff within the window: the mean is of neither phase, and is not said.
#[test]
fn of_phases_the_mean_is_not_told() {
    let mut s = summary();
    let text = "From cycle 5 on, 4 min after the start, put does 800 op/s, and 1,310 before.";
    let mut fall = Finding::new("F30", "cliff", Level::Qualified, text).on("put");
    fall.evidence = vec![("cycle".into(), "5".into())];
    s.findings = vec![fall.clone()];
    let t = paragraph(&s, &Analysis::default(), None);
    assert!(t.contains(text) && !t.contains("1,004"), "{t}");
    // Without cycles it is the window that counts: a cliff before it is none of its mean.
    s.findings[0].evidence.clear();
    let span = analysis::LineSpan { line: 0, ..serde_json::from_str(SPAN).unwrap() };
    let at = |at_s: f64| Analysis {
        spans: vec![span.clone()],
        holds: vec![analysis::Hold {
            cliffs: vec![analysis::Cliff { at_s, ..analysis::Cliff::default() }],
            ..analysis::Hold::default()
        }],
        ..Analysis::default()
    };
    let (inside, before) = (paragraph(&s, &at(100.0), None), paragraph(&s, &at(5.0), None));
    assert!(inside.contains(text) && !inside.contains("1,004"), "{inside}");
    assert!(before.contains("1,004"), "{before}");
}

const SPAN: &str = r#"{"line":0,"stage":0,"workload":0,"kind":"put","repeat":0,"start_s":0.0,"end_s":310.0,"window_start_s":10.0,
    "window_end_s":310.0}"#;

/// A burst of 20 s, driven for 20 s: its rate is held as exactly as that of a limit.
#[test]
fn only_what_follows_a_burst_is_called_sustained() {
    let claim = |capacity: Option<Estimate>| {
        let mut s = summary();
        s.limits = vec![LimitSummary {
            target: "s3".into(),
            op_class: "get".into(),
            scope: "unknown".into(),
            ops_per_s: Some(BucketSummary {
                sustained: Some(Estimate::symmetric(750.0, 0.75, 5.0)),
                capacity,
                proved: true,
                horizon_s: Some(20.0),
                ..BucketSummary::default()
            }),
            bytes_per_s: None,
            knee_bytes: None,
            binding: "ops".into(),
            refused: None,
            evidence: Vec::new(),
        }];
        paragraph(&s, &Analysis::default(), None)
    };
    let held = claim(None);
    assert!(
        held.contains("Held **750.0 ± 0.8 op/s** of GET (95 % CI) for as long as it was seen (20.0 s)."),
        "{held}"
    );
    assert!(!held.contains("Sustained"), "{held}");
    let drained = claim(Some(Estimate::symmetric(5000.0, 100.0, 3.0)));
    assert!(drained.contains("Sustained **750.0 ± 0.8 op/s** of GET"), "{drained}");
}

/// A watch of one size: the limit is there, and what it counts is open. Both are said, and neither denies the other.
#[test]
fn a_limit_of_one_size_is_proved_and_its_unit_is_open() {
    let said = |proved: bool| {
        let mut s = summary();
        s.limits = vec![LimitSummary {
            target: "s3".into(),
            op_class: "get".into(),
            scope: "unknown".into(),
            ops_per_s: Some(BucketSummary {
                sustained: Some(Estimate::symmetric(100.0, 1.0, 5.0)),
                capacity: Some(Estimate::symmetric(20_000.0, 300.0, 5.0)),
                proved,
                horizon_s: Some(40.0),
                ..BucketSummary::default()
            }),
            bytes_per_s: None,
            knee_bytes: None,
            binding: "undetermined".into(),
            refused: None,
            evidence: vec![("unit".into(), "one size only".into())],
        }];
        paragraph(&s, &Analysis::default(), None)
    };
    let (proved, seen) = (said(true), said(false));
    assert!(proved.contains("ops of one size do not tell operations from bytes"), "{proved}");
    assert!(
        !proved.contains("no limit was proved") && seen.contains("no limit was proved"),
        "{proved}\n{seen}"
    );
}

#[test]
fn a_limiter_in_the_order_of_the_methods() {
    let mut s = summary();
    let e = |v: f64, h: f64| Some(Estimate::symmetric(v, h, 5.0));
    s.limits = vec![LimitSummary {
        target: "s3".into(),
        op_class: "put".into(),
        scope: "unknown".into(),
        ops_per_s: Some(BucketSummary {
            sustained: e(1000.0, 6.0),
            burst: e(2970.0, 40.0),
            capacity: e(60_000.0, 1000.0),
            refill: e(1000.0, 20.0),
            proved: true,
            horizon_s: None,
            full_again_s: e(60.0, 2.0),
        }),
        bytes_per_s: Some(BucketSummary {
            sustained: e(210e6, 4e6),
            proved: true,
            ..BucketSummary::default()
        }),
        knee_bytes: Some(Estimate { value: 205e3, low: 190e3, high: 222e3, n_eff: 4.0 }),
        binding: "both".into(),
        refused: None,
        evidence: vec![],
    }];
    let t = paragraph(&s, &Analysis::default(), None);
    let order = [
        "VALID",
        "Sustained **1,000 ± 6 op/s**",
        "The rate starts at 2,970",
        "60,000 ± 1,000 ops",
        "full again after 60.0 s",
        "210 ± 4 MB/s",
        "205 KB",
        "was seen for at most 20 min",
        "per connection, bucket, key or client",
    ];
    let at: Vec<usize> =
        order.iter().map(|w| t.find(w).unwrap_or_else(|| panic!("{w} is not in: {t}"))).collect();
    assert!(at.is_sorted(), "{t}");
    let ops = s.limits[0].ops_per_s.as_mut().unwrap();
    ops.capacity = Some(Estimate { value: 51_234.0, low: 51_234.0, high: f64::MAX, n_eff: 1.0 });
    assert!(
        paragraph(&s, &Analysis::default(), None).contains("a token bucket of **at least 51,000 ops**"),
        "{}",
        paragraph(&s, &Analysis::default(), None)
    );
}

/// What jobs did together is said for all of them; a promise on the op is one on each.
#[test]
fn jobs_together_stand_for_each() {
    let mut s = summary();
    let job = |name: &str| WorkloadSummary { name: name.into(), ..s.workloads[0].clone() };
    let both = WorkloadSummary {
        together: 2,
        concurrency: 32,
        ops_per_s: Some(Estimate::symmetric(2008.0, 8.0, 40.0)),
        ..job("together")
    };
    s.workloads = vec![job("a"), job("b"), both];
    let t = paragraph(&s, &Analysis::default(), None);
    assert!(t.contains("2,008 ± 8 op/s") && t.contains("with 32 in flight from 2 jobs combined"), "{t}");
    assert!(!t.contains("1,004"), "{t}");
    s.settle(true, false);
    let expect = |text: &str| text.parse::<crate::expect::Expect>().unwrap().check(&s).met;
    assert_eq!(expect("put.ops_per_s <= 1100"), Some(true));
    assert_eq!(expect("put.ops_per_s >= 1100"), Some(false));
    assert_eq!(expect("together/put.ops_per_s >= 1100"), Some(true));
}

/// What is wrong with one cell is said of that cell, and the others stand.
#[test]
fn one_bad_cell_voids_itself() {
    let mut s = summary();
    let cell = |name: &str| WorkloadSummary { name: name.into(), ..s.workloads[0].clone() };
    s.workloads = vec![cell("put 4KiB c1"), cell("put 4KiB c16")];
    let late =
        Finding::new("V06", "schedule_lag", Level::Invalid, "Ops were sent late.").on("put 4KiB c16/put");
    s.findings = vec![late];
    let cells = ["put 4KiB c1/put", "put 4KiB c16/put"].map(String::from);
    let valid = |f: &[Finding], needed| validity::is_run_valid(f, &cells, needed);
    assert!(valid(&s.findings, true));
    let t = paragraph(&s, &Analysis::default(), None);
    let start =
        "PARTLY VALID: 1 of 2 lines is void (put 4KiB c16/put): [INVALID V06]. Ops were sent late. Measured";
    assert!(t.starts_with(start), "{t}");
    assert!(t.contains("Not usable: 1,004 ± 6 op/s of 4KiB PUT with 16 in flight [INVALID V06]."), "{t}");
    s.settle(true, false);
    assert!(validity::is_line_valid(&s, &s.workloads[0]) && !validity::is_line_valid(&s, &s.workloads[1]));
    // An expectation of a cell that is void is not met, and that of the other is.
    let expect = |name: &str| {
        let e = format!("{name}.ops_per_s >= 900").parse::<crate::expect::Expect>().unwrap().check(&s);
        (e.met, e.void)
    };
    assert_eq!((expect("put 4KiB c1/put"), expect("put 4KiB c16/put")), ((Some(true), false), (None, true)));
    // All of them, or something that is wrong with the run, void the run.
    let other = Finding::new("V01", "error_rate", Level::Invalid, "Errors.").on("put 4KiB c1/put");
    let all = [s.findings[0].clone(), other];
    assert!(!valid(&all, true) && valid(&all, false));
    let hash = Finding::new("V23", "hash", Level::Invalid, "A file was altered.");
    assert!(!valid(&[hash], false));
}

#[test]
fn a_sweep_says_which_cap_binds_or_why_not() {
    let e = |v: f64| Some(Estimate::symmetric(v, 0.01 * v, 4.0));
    let m = analysis::SizeModel {
        op_class: "get".into(),
        ops_per_s: e(1000.0),
        bytes_per_s: e(200e6),
        knee_bytes: e(200e3),
        repeats: 3,
        ..Default::default()
    };
    let said = |m: analysis::SizeModel| {
        paragraph(&summary(), &Analysis { size_models: vec![m], ..Analysis::default() }, None)
    };
    let t = said(m.clone());
    assert!(
        t.contains("GET reaches at most **1,000 ± 10 op/s** and at most **200.0 ± 2.0 MB/s** (95 % CI)."),
        "{t}"
    );
    assert!(
        t.contains("GET below **200 KB** (198 to 202) is limited by operations") && !t.contains("--repeat"),
        "{t}"
    );
    let t = said(analysis::SizeModel { repeats: 1, ..m.clone() });
    assert!(t.contains("based on 1 run per cell") && t.contains("--repeat 3"), "{t}");
    let open =
        analysis::SizeModel { bytes_per_s: None, bytes_at_least: Some(150e6), knee_bytes: None, ..m.clone() };
    let t = said(open);
    assert!(
        t.contains("and at least 150 MB/s") && t.contains("**Undetermined**: the size of GET below which"),
        "{t}"
    );
    let one_depth = analysis::SizeModel { in_flight: Some(32), knee_bytes: None, repeats: 1, ..m.clone() };
    let t = said(one_depth);
    assert!(t.contains("With 32 in flight, GET reaches at most **1,000 ± 10 op/s**"), "{t}");
    assert!(t.contains("looks the same") && !t.contains("--repeat"), "{t}");
    let none =
        analysis::SizeModel { reading: "undetermined: 3 cells are too few".into(), ..Default::default() };
    assert!(said(none).contains("(3 cells are too few)"));
}

/// Each rule of outages is broken once, and heard.
#[test]
fn outages_that_contradict_themselves_are_heard() {
    use plimsoll_model::claim::{Outage, OutageKind, OutageSpan};
    let rate = |v: f64| Some(Estimate::symmetric(v, 0.01 * v, 20.0));
    let span = |from_s: f64, to_s: Option<f64>| OutageSpan {
        stage: 0,
        load_s: 0.0,
        at: "s3".into(),
        from_s,
        to_s,
        seen_until_s: 60.0,
    };
    let good = |from_s: f64, to_s: Option<f64>| {
        let made = Outage::new(span(from_s, to_s), OutageKind::Failing, 2.0, 40).unwrap();
        let after = rate(110.0).filter(|_| to_s.is_some());
        let made = made.rates([rate(100.0), after], [rate(90.0), rate(105.0)]).unwrap();
        made.attempts(Some("reset".into()), 16.0).recovered(to_s.map(|_| 1.0))
    };
    let mut s = summary();
    s.settle(true, false);
    let heard = |outages: Vec<Outage>, known: bool| {
        let mut s = s.clone();
        s.findings.extend(known.then(|| Finding::new("F60", "outage", Level::Qualified, "Outages.")));
        let claims = derive(&s, &Analysis { outages, ..Analysis::default() }, None);
        contradictions(&claims, &s)
    };
    let none = Vec::<String>::new();
    assert_eq!(heard(vec![good(5.0, Some(9.0)), good(20.0, None)], true), none);
    assert_eq!(heard(vec![], false), none);
    let mut broken = vec![good(5.0, Some(9.0)); 10];
    broken[0].span.to_s = Some(5.0);
    broken[1].span.to_s = Some(61.0);
    broken[2].recover_s = Some(55.0);
    broken[3].span.to_s = None;
    broken[4].during_per_s = 95.0;
    broken[5].after_per_s = rate(3.0);
    broken[6].without_per_s = rate(80.0);
    broken[7].ended = 0;
    broken[8].before_per_s = Some(Estimate { value: 100.0, low: 0.0, high: 1e9, n_eff: 2.0 });
    broken[9].span.from_s = -1.0;
    for o in broken {
        assert!(!heard(vec![o.clone()], true).is_empty(), "{o:?}");
    }
    assert!(!heard(vec![good(5.0, Some(9.0)), good(8.0, Some(12.0))], true).is_empty());
    assert!(!heard(vec![good(5.0, Some(9.0))], false).is_empty());
    assert!(!heard(vec![], true).is_empty());
    // And none of them can be made.
    assert!(Outage::new(span(5.0, Some(5.0)), OutageKind::Silent, 0.0, 0).is_err());
    assert!(Outage::new(span(5.0, Some(61.0)), OutageKind::Silent, 0.0, 0).is_err());
    assert!(Outage::new(span(5.0, Some(9.0)), OutageKind::Throttled, 0.0, 0).is_err());
    let half = Outage::new(span(5.0, Some(9.0)), OutageKind::Silent, 55.0, 0).unwrap();
    assert!(half.rates([rate(100.0), None], [None, None]).is_err());
}

#[test]
fn an_outage_and_ops_that_all_took_alike_contradict_each_other() {
    use plimsoll_model::claim::{Outage, OutageKind, OutageSpan};
    let span = OutageSpan {
        stage: 0,
        load_s: 0.5,
        at: "x".into(),
        from_s: 3.5,
        to_s: Some(5.5),
        seen_until_s: 10.5,
    };
    let outages = vec![Outage::new(span, OutageKind::Silent, 0.0, 0).unwrap().attempts(None, 4.0)];
    let a = Analysis { outages, ..Analysis::default() };
    let mut s = summary();
    s.workloads.truncate(1);
    s.findings = vec![Finding::new("F60", "outage", Level::Qualified, "Outages.")];
    let answered = s.answered;
    s.settle(answered, false);
    let claims = derive(&s, &a, None);
    // Counted from the load's start, as everything else that is said.
    assert!(claims.iter().any(|c| c.text.starts_with("From 3.0 s to 5.0 s into the load")), "{claims:?}");
    assert_eq!(contradictions(&claims, &s), Vec::<String>::new());
    s.findings.push(Finding::new("F02", crate::judge::CONCURRENCY_BOUND, Level::Info, "no op took longer"));
    assert_eq!(contradictions(&claims, &s).len(), 1);
}

/// A few 503 of a server that started again were a rate limiter.
#[test]
fn a_few_503_of_a_server_that_was_away_are_no_sure_sign_of_a_limiter() {
    let with = |refused: (&str, u64), finding: Option<&str>| {
        let mut s = summary();
        s.workloads[0].outcomes =
            BTreeMap::from([("ok".to_owned(), 10_000), (refused.0.to_owned(), refused.1)]);
        s.findings.extend(finding.map(|code| Finding::new(code, "away", Level::Qualified, "Away.")));
        is_of_a_server_that_was_away(&s, &s.workloads[0])
    };
    assert!(with(("http_503", 40), Some("F60")));
    assert!(with(("http_503", 40), Some("F74")));
    assert!(!with(("http_503", 40), None), "nobody was away");
    assert!(!with(("http_503", 900), Some("F60")), "they are many");
    assert!(!with(("http_429", 40), Some("F60")), "that is a limiter's");
    assert!(!with(("http_500", 40), Some("F60")), "nothing was refused");
}

#[test]
fn a_load_that_held_back_is_told_with_what_was_refused() {
    let mut s = summary();
    s.workloads[0].outcomes = BTreeMap::from([("ok".to_owned(), 700), ("http_429".to_owned(), 300)]);
    let t = paragraph(&s, &Analysis::default(), None);
    assert!(t.contains("30.0 %") && !t.contains("held back"), "{t}");
    s.workloads[0].client.held_back = 0.982;
    let t = paragraph(&s, &Analysis::default(), None);
    assert!(
        t.contains("300 of 1,000 attempts")
            && t.contains("The load held back after refused attempts, for 98.2 % of"),
        "{t}"
    );
    assert_eq!(contradictions(&derive(&s, &Analysis::default(), None), &s), Vec::<String>::new());
}

/// The mean over a burst and what came after it is neither: where the rate after the cliff is known, that is what passes.
#[test]
fn what_passes_is_the_rate_after_the_burst() {
    let mut s = summary();
    let w = &mut s.workloads[0];
    w.ops_per_s = Some(Estimate::symmetric(770.0, 60.0, 30.0));
    (w.attempts_per_s, w.window_s) = (10_000.0, 20.0);
    w.outcomes = BTreeMap::from([("ok".to_owned(), 15_400), ("http_429".to_owned(), 184_600)]);
    let t = paragraph(&s, &Analysis::default(), None);
    assert!(t.contains("770 ± 60 op/s get through."), "{t}");
    let bucket = |capacity: Option<Estimate>| BucketSummary {
        sustained: Some(Estimate::symmetric(200.0, 0.5, 30.0)),
        capacity,
        proved: true,
        horizon_s: Some(20.0),
        ..BucketSummary::default()
    };
    let limit = |capacity| LimitSummary {
        target: "s3".into(),
        op_class: "put".into(),
        scope: "unknown".into(),
        ops_per_s: Some(bucket(capacity)),
        bytes_per_s: None,
        knee_bytes: None,
        binding: "ops".into(),
        refused: Some(0.92),
        evidence: vec![],
    };
    s.limits = vec![limit(Some(Estimate::symmetric(12_000.0, 100.0, 9.0)))];
    let t = paragraph(&s, &Analysis::default(), None);
    assert!(t.contains("200.0 ± 0.5 op/s get through after the burst.") && !t.contains("770"), "{t}");
    // No burst was seen to end: all that was measured is one rate.
    s.limits = vec![limit(None)];
    let t = paragraph(&s, &Analysis::default(), None);
    assert!(t.contains("770 ± 60 op/s get through.") && !t.contains("after the burst"), "{t}");
}
