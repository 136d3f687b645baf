//! No claim contradicts a counter (ok, throttled, failed), an interval, or another claim: over random summaries, and over
//! simulated systems that are judged and probed as real ones are.

use std::collections::BTreeMap;

use plimsoll_model::analysis::{Hold, LineSpan, LoadPoint, Saturation, SaturationPoint, SizeModel};
use plimsoll_model::claim::{ClaimKind, Outage, OutageKind, OutageSpan, RunStatus};
use plimsoll_model::summary::{BucketSummary, LimitSummary, WorkloadSummary};
use plimsoll_model::{Analysis, Claim, Estimate, Finding, Level, OpKind, RunSummary};
use plimsoll_stats::claims::{self, contradictions, derive};
use plimsoll_stats::judge::{ClientSeen, StageSeen, WorkloadSeen, judge};
use plimsoll_stats::probe::ProbeOptions;
use plimsoll_stats::simulate::events::Events;
use plimsoll_stats::simulate::fluid::Fluid;
use plimsoll_stats::simulate::{Bucket, Charges, Load, RatesSeen, System, drive};
use plimsoll_stats::validity;
use proptest::prelude::*;

/// Settled and derived as a run is, and then held against its counters by rules of this test's own, beside
/// `contradictions`.
fn hold(s: &mut RunSummary, a: &Analysis, searched: bool) -> Vec<Claim> {
    let answered = validity::is_run_valid(&s.findings, &[], !searched);
    s.settle(answered, searched);
    claims::bind_to_counters(s);
    let claims = derive(s, a, None);
    s.claims = claims.clone();
    s.verdict = claims::paragraph(&claims);
    assert_eq!(contradictions(&claims, s), Vec::<String>::new(), "{}\n{s:#?}", s.verdict);
    against_counters(s, &claims);
    // What is kept is what was said.
    let json = serde_json::to_string(s).unwrap();
    let back: RunSummary = serde_json::from_str(&json).unwrap();
    let said = |c: &Claim| (c.subject.clone(), std::mem::discriminant(&c.kind), c.text.clone());
    assert!(back.claims.iter().map(said).eq(claims.iter().map(said)), "{json}");
    claims
}

fn counters(s: &RunSummary) -> (u64, u64, u64) {
    let sum = |names: &[&str]| -> u64 {
        let lines = s.workloads.iter().filter(|w| !w.is_total());
        lines.flat_map(|w| names.iter().filter_map(|n| w.outcomes.get(*n))).sum()
    };
    (sum(&["ok"]), sum(&["http_429", "http_503"]), sum(&["timeout", "reset", "http_5xx", "io_error"]))
}

fn against_counters(s: &RunSummary, claims: &[Claim]) {
    let (ok, throttled, _) = counters(s);
    let says = |words: &str| s.verdict.contains(words);
    assert!(!(throttled > 0 && says("no refusals")), "{}", s.verdict);
    assert!(!(throttled > 0 && says("No limiter was found")), "{}", s.verdict);
    // Where all was refused, storage that is down may be what did it.
    let refusing = says("A rate limiter refuses")
        || says("with 429 or 503: either a limiter")
        || says("with 429: a limiter");
    assert_eq!(throttled > 0, refusing, "{}", s.verdict);
    assert!(!(ok == 0 && (says("Measured") || says("Sustained"))) || !s.limits.is_empty(), "{}", s.verdict);
    assert_eq!(s.valid, s.verdict.starts_with("VALID"), "{}", s.verdict);
    assert_eq!(
        s.valid,
        s.workloads.iter().all(|w| w.valid) && s.findings.iter().all(|f| f.level != Level::Invalid)
    );
    for c in claims {
        let ClaimKind::Rate(r) = &c.kind else { continue };
        let e = r.ops_per_s;
        assert!(
            e.value.is_finite() && e.low > 0.0 && e.low <= e.value && e.value <= e.high && e.high.is_finite()
        );
        assert!(e.half_width() < e.value, "{}", c.text);
        let w = s.workloads.iter().find(|w| Some(w.label()) == c.subject).unwrap();
        assert!(w.valid && w.ops_per_s == Some(e));
    }
    assert_eq!(s.status == RunStatus::None, !s.valid && s.workloads.iter().all(|w| !w.valid) && !s.answered);
}

/// Estimates as they come, and as they must not come: without an end, upside down, as wide as themselves.
fn estimate(value: f64) -> impl Strategy<Value = Estimate> {
    let around = move |low: f64, high: f64| Estimate { value, low, high, n_eff: 5.0 };
    prop_oneof![
        4 => (0.0..0.3f64).prop_map(move |w| around(value * (1.0 - w), value * (1.0 + w))),
        1 => (0.3..3.0f64).prop_map(move |w| around(value * (1.0 - w), value * (1.0 + w))),
        1 => (1.0..1e30f64).prop_map(move |f| around(value / f, value * f)),
        1 => Just(around(f64::NEG_INFINITY, f64::INFINITY)),
        1 => Just(around(value, f64::MAX)),
        1 => Just(around(value * 1.1, value * 1.2)),
        1 => Just(Estimate { value: f64::NAN, ..around(0.0, 1.0) }),
        1 => Just(Estimate { value: value * 2.0, low: value * 1.9, high: value * 2.1, n_eff: 5.0 }),
        1 => Just(Estimate { value: 0.0, ..around(0.0, 0.0) }),
    ]
}

fn maybe(value: f64) -> impl Strategy<Value = Option<Estimate>> {
    prop_oneof![1 => Just(None), 5 => estimate(value).prop_map(Some)]
}

prop_compose! {
    fn line(name: String, op: &'static str)(
        ok in prop_oneof![Just(0u64), 1..100_000u64],
        throttled in prop_oneof![3 => Just(0u64), 1 => 1..1_000_000u64],
        failed in prop_oneof![3 => Just(0u64), 1 => 1..1000u64],
        window_s in prop_oneof![Just(30.0), 0.1..1000.0f64],
        repeats in 1..4u32,
    )(
        ops in maybe(ok as f64 / window_s), bytes in maybe(4096.0 * ok as f64 / window_s),
        ok in Just(ok), throttled in Just(throttled), failed in Just(failed), window_s in Just(window_s),
        repeats in Just(repeats), horizon in 0.0..2000.0f64,
    ) -> WorkloadSummary {
        WorkloadSummary {
            name: name.clone(), op: op.into(), size_bytes: 4096, concurrency: 16, window_s, horizon_s: horizon, repeats,
            ops_per_s: ops, bytes_per_s: bytes, attempts_per_s: (ok + throttled + failed) as f64 / window_s,
            outcomes: BTreeMap::from([("ok".into(), ok), ("http_429".into(), throttled), ("timeout".into(), failed)]),
            ..WorkloadSummary::default()
        }
    }
}

fn total_of(parts: &[WorkloadSummary], rate: Option<Estimate>, weights: (u32, u32)) -> WorkloadSummary {
    let mut total = WorkloadSummary { op: "total".into(), ops_per_s: rate, ..parts[0].clone() };
    total.outcomes.clear();
    for (k, n) in parts.iter().flat_map(|p| &p.outcomes) {
        *total.outcomes.entry(k.clone()).or_default() += n;
    }
    total.attempts_per_s = parts.iter().map(|p| p.attempts_per_s).sum();
    let weights = [weights.0, weights.1].into_iter().map(f64::from);
    total.mix = parts.iter().map(|p| p.op.clone()).zip(weights).collect();
    total
}

prop_compose! {
    fn finding()(
        code in prop_oneof![Just("V01"), Just("V04"), Just("V07"), Just("V13"), Just("Q01"), Just("F01")],
        level in prop_oneof![Just(Level::Invalid), Just(Level::Qualified), Just(Level::Info)],
        on in prop_oneof![Just(None), Just(Some("m/put")), Just(Some("m/get")), Just(Some("m/total")), Just(Some("put"))],
        name in prop_oneof![Just("no_rate"), Just("nothing_succeeded"), Just("open_question"), Just("limit_cause")],
    ) -> Finding {
        Finding { workload: on.map(Into::into), ..Finding::new(code, name, level, "Something was seen.") }
    }
}

prop_compose! {
    fn bucket()(
        sustained in maybe(1000.0), burst in maybe(3000.0), capacity in maybe(60_000.0), refill in maybe(990.0),
        proved: bool, horizon_s in proptest::option::of(0.0..500.0f64), full_again_s in maybe(60.0),
    ) -> BucketSummary {
        BucketSummary { sustained, burst, capacity, refill, proved, horizon_s, full_again_s }
    }
}

prop_compose! {
    fn limit()(
        ops in proptest::option::of(bucket()), bytes in proptest::option::of(bucket()), knee in maybe(20e3),
        with_knee: bool,
        binding in prop_oneof![Just("none"), Just("ops"), Just("bytes"), Just("both"), Just("in_flight"), Just("latency"), Just("undetermined")],
        scope in prop_oneof![Just("unknown"), Just("server"), Just("bucket")],
    ) -> LimitSummary {
        // As the probe has it: what was not proved does not bind, and only what binds has a knee or a scope.
        let found = binding != "none" && binding != "latency";
        let proved = |b: BucketSummary| BucketSummary { proved: b.proved && found, ..b };
        LimitSummary {
            target: "t".into(), op_class: "put".into(), scope: if found { scope } else { "unknown" }.into(),
            ops_per_s: ops.map(proved), bytes_per_s: bytes.map(proved),
            knee_bytes: knee.filter(|_| with_knee && binding == "both"), binding: binding.into(), refused: None, evidence: vec![],
        }
    }
}

prop_compose! {
    /// One of random times and rates, where it may be claimed.
    fn outage()(
        at in prop_oneof![Just("a"), Just("b")], from_s in 0.0..50.0f64, length_s in proptest::option::of(-1.0..20.0f64),
        during in prop_oneof![2 => Just(0.0), 1 => 0.0..200.0f64], rates in (maybe(100.0), maybe(80.0), maybe(90.0), maybe(95.0)),
        ended in 0..3000u64, named: bool, recover_s in proptest::option::of(0.0..5.0f64),
    ) -> Option<Outage> {
        let span = OutageSpan {
            stage: 0, load_s: 0.0, at: at.into(), from_s, to_s: length_s.map(|l| from_s + l), seen_until_s: 60.0,
        };
        let kind = if ended == 0 { OutageKind::Silent } else { OutageKind::Failing };
        let made = Outage::new(span, kind, during, ended).ok()?;
        let made = made.rates([rates.0, rates.1], [rates.2, rates.3]).ok()?;
        Some(made.attempts(named.then(|| "reset".to_owned()), 16.0).recovered(recover_s))
    }
}

prop_compose! {
    fn analysis()(
        best in proptest::option::of(estimate(500.0)), plateau in maybe(520.0),
        ended in prop_oneof![Just("saturated"), Just("client limited"), Just("state changed during search")],
        caps in (maybe(1000.0), maybe(200e6), maybe(200e3)), sized: bool, sustainable: bool,
        reading in prop_oneof![Just("two independent limiters"), Just("undetermined: 3 cells are too few")],
        steady in prop_oneof![Just("steady"), Just("drifting")],
    ) -> Analysis {
        let point = |e| SaturationPoint { concurrency: 8, ops_per_s: e, p50_ns: Some(20_000_000), p99_ns: None };
        let search = best.map(|e| Saturation {
            op_class: "put".into(), size_bytes: 4096, points: vec![point(e)], c95: Some(Estimate::exact(8.0)),
            plateau_per_s: plateau, verdict: ended.into(), ..Saturation::default()
        });
        let model = SizeModel {
            op_class: "put".into(), ops_per_s: caps.0, bytes_per_s: caps.1, knee_bytes: caps.2, repeats: 1,
            reading: reading.into(), ..SizeModel::default()
        };
        let load = LoadPoint { fraction: 0.5, offered_per_s: 250.0, sustainable, ..LoadPoint::default() };
        Analysis {
            load_points: search.iter().map(|_| load.clone()).collect(),
            saturations: search.into_iter().collect(),
            size_models: sized.then_some(model).into_iter().collect(),
            holds: vec![Hold { line: 0, verdict: steady.into(), ..Hold::default() }],
            ..Analysis::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_claim_of_a_random_summary_contradicts_it(
        put in line("m".into(), "put"), get in line("m".into(), "get"), total in maybe(100.0), mixed: bool,
        weights in (1..10u32, 1..10u32), findings in proptest::collection::vec(finding(), 0..4),
        limits in proptest::collection::vec(limit(), 0..2), mut a in analysis(), down in outage(),
    ) {
        let mut workloads = vec![put, get];
        if mixed {
            workloads.push(total_of(&workloads, total, weights));
        }
        let searched = !limits.is_empty() || !a.saturations.is_empty();
        let mut s = RunSummary { workloads, findings, limits, ..RunSummary::default() };
        if let Some(o) = down {
            let level = if o.span.to_s.is_none() && !searched { Level::Invalid } else { Level::Qualified };
            s.findings.push(Finding::new("F60", "outage", level, "Outages."));
            a.outages = vec![o];
        }
        hold(&mut s, &a, searched);
    }
}

/// A system, and what a client counts at it.
struct Counted<'a> {
    system: &'a mut dyn System,
    ok: f64,
    refused: f64,
    seconds: f64,
}

impl<'a> Counted<'a> {
    fn new(system: &'a mut dyn System) -> Self {
        Self { system, ok: 0.0, refused: 0.0, seconds: 0.0 }
    }
}

impl System for Counted<'_> {
    fn run(&mut self, load: &Load) -> RatesSeen {
        let seen = self.system.run(load);
        self.ok += seen.ops_per_s.iter().sum::<f64>() * seen.dt_s;
        self.refused += seen.rejected_per_s.iter().sum::<f64>() * seen.dt_s;
        self.seconds += seen.ops_per_s.len() as f64 * seen.dt_s;
        seen
    }

    fn quiesce(&mut self) {
        self.system.quiesce();
    }

    fn idle(&mut self, seconds: f64) {
        self.system.idle(seconds);
    }

    fn now_s(&self) -> f64 {
        self.system.now_s()
    }
}

fn counted_line(name: &str, ok: f64, refused: f64, seconds: f64, rate: Option<Estimate>) -> WorkloadSummary {
    let n = |x: f64| x.round().max(0.0) as u64;
    WorkloadSummary {
        name: name.into(),
        op: "put".into(),
        size_bytes: 4096,
        concurrency: 16,
        window_s: seconds,
        horizon_s: seconds,
        repeats: 1,
        ops_per_s: rate,
        attempts_per_s: (ok + refused) / seconds,
        outcomes: BTreeMap::from([("ok".into(), n(ok)), ("http_429".into(), n(refused))]),
        ..WorkloadSummary::default()
    }
}

/// Storage of many shapes, some of it behind limiters that delay or refuse.
fn system(seed: u64, shape: (f64, f64, f64, f64, bool, f64)) -> Fluid {
    let (ops_cap, limit, capacity_s, noise, rejects, stalls) = shape;
    let mut s = Fluid::new(seed, ops_cap, ops_cap * 200e3, 0.002, 30e6);
    (s.cv, s.rejects, s.stall_rate) = (noise, rejects, stalls);
    if limit < 1.0 {
        let rate = ops_cap * limit;
        s.buckets = vec![Bucket::new(Charges::Ops, rate, rate * capacity_s)];
    }
    s
}

fn shapes() -> impl Strategy<Value = (f64, f64, f64, f64, bool, f64)> {
    (
        100.0..5000.0f64,
        0.05..1.6f64,
        0.0..60.0f64,
        0.0..0.6f64,
        any::<bool>(),
        prop_oneof![Just(0.0), 0.0..0.2f64],
    )
}

/// One stage of load, judged.
fn judged(seed: u64, shape: (f64, f64, f64, f64, bool, f64), seconds: f64) -> RunSummary {
    let mut s = system(seed, shape);
    let load =
        Load { size_bytes: 4096.0, concurrency: 16, duration_s: seconds, dt_s: 0.1, offered_per_s: None };
    let seen = s.run(&load);
    let count = |x: &[f64]| x.iter().map(|r| (r * seen.dt_s).round().max(0.0)).collect::<Vec<f64>>();
    let (ok, throttled) = (count(&seen.ops_per_s), count(&seen.rejected_per_s));
    let w = WorkloadSeen {
        name: "put".into(),
        op: Some(OpKind::Put),
        size_bytes: 4096,
        concurrency: 16,
        bytes_ok: ok.iter().map(|n| n * 4096.0).collect(),
        started: ok.iter().zip(&throttled).map(|(a, b)| a + b).collect(),
        failed: vec![0.0; ok.len()],
        ok,
        throttled,
        ..WorkloadSeen::default()
    };
    let sums = (w.ok.iter().sum::<f64>(), w.throttled.iter().sum::<f64>());
    let stage = StageSeen {
        dt_s: seen.dt_s,
        workloads: vec![w],
        clients: vec![ClientSeen::default()],
        horizon_s: seconds,
        max_error_rate: 0.001,
        ..StageSeen::default()
    };
    let judged = judge(&stage);
    let j = &judged.workloads[0];
    let line = counted_line("put", sums.0, sums.1, j.window_s, j.ops_per_s.known().copied());
    RunSummary { workloads: vec![line], findings: judged.findings, ..RunSummary::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_claim_of_a_judged_stage_contradicts_it(seed: u64, shape in shapes(), seconds in 0.3..60.0f64) {
        hold(&mut judged(seed, shape, seconds), &Analysis::default(), false);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_claim_of_a_probe_contradicts_it(seed: u64, shape in shapes(), budget_s in 20.0..400.0f64, whole: bool) {
        let mut fluid = system(seed, shape);
        // Whole requests are slow to simulate: a small system.
        let rate = 20.0 + 200.0 * shape.1;
        let mut events = Events::new(seed, &[Bucket::new(Charges::Ops, rate, rate * shape.2)], 1);
        (events.ops_cap, events.bytes_cap) = (300.0, 60e6);
        let mut counted = Counted::new(if whole { &mut events } else { &mut fluid });
        let outcome = drive::probe(&mut counted, ProbeOptions { budget_s, ..ProbeOptions::default() });
        let line = counted_line("probe", counted.ok, counted.refused, counted.seconds.max(0.1), None);
        let mut s = RunSummary {
            workloads: vec![line],
            limits: vec![outcome.summary("sim", "put")],
            findings: outcome.findings(),
            ..RunSummary::default()
        };
        hold(&mut s, &Analysis::default(), true);
    }
}

/// What was seen on real limiters, as the counters had it.
#[test]
fn refusals_are_said_and_exclude_no_limiter() {
    let rate = Some(Estimate::symmetric(0.5, 0.1, 20.0));
    let line = counted_line("put", 79.0, 212_870.0, 158.0, rate);
    let none = LimitSummary {
        target: "s3".into(),
        op_class: "put".into(),
        scope: "unknown".into(),
        ops_per_s: Some(BucketSummary { sustained: rate, ..BucketSummary::default() }),
        bytes_per_s: None,
        knee_bytes: None,
        binding: "none".into(),
        refused: None,
        evidence: vec![],
    };
    let mut s = RunSummary { workloads: vec![line], limits: vec![none], ..RunSummary::default() };
    hold(&mut s, &Analysis::default(), true);
    assert!(
        s.verdict.contains("A rate limiter refuses **99.96 %** of PUT (212,870 of 212,949 attempts"),
        "{}",
        s.verdict
    );
    assert!(s.verdict.contains("0.50 ± 0.10 op/s get through"), "{}", s.verdict);
    assert_eq!(s.limits[0].binding, "undetermined");
    // A plain run says so in its first paragraph, too.
    let mut s = RunSummary {
        workloads: vec![counted_line("put", 1736.0, 32_696.0, 30.0, None)],
        ..RunSummary::default()
    };
    hold(&mut s, &Analysis::default(), false);
    assert!(s.verdict.contains("**95.0 %** of PUT (32,696 of 34,432 attempts"), "{}", s.verdict);
}

/// A probe with `--probe-shared`: GET by itself gets all 200 op/s, beside PUT half of them. Share and rate are of one stretch,
/// and of the one that had the limiter to itself.
#[test]
fn what_a_limiter_lets_pass_is_of_one_stretch_of_load() {
    let part = |name: &str, op: &str, ok: f64, refused: f64| {
        let mut w = counted_line(name, ok, refused, 4.0, Some(Estimate::symmetric(ok / 4.0, 1.0, 20.0)));
        w.op = op.into();
        w
    };
    let mut s = RunSummary {
        workloads: vec![
            part("get alone", "get", 800.0, 6000.0),
            part("both/get", "get", 400.0, 9000.0),
            part("both/put", "put", 400.0, 9000.0),
        ],
        ..RunSummary::default()
    };
    let span = |line: usize, stage: u32, workload: u16, kind| LineSpan {
        line,
        stage,
        workload,
        kind,
        repeat: 0,
        start_s: 0.0,
        end_s: 4.0,
        window_start_s: 0.0,
        window_end_s: 4.0,
    };
    let a = Analysis {
        spans: vec![span(0, 0, 0, OpKind::Get), span(1, 1, 0, OpKind::Get), span(2, 1, 1, OpKind::Put)],
        ..Analysis::default()
    };
    hold(&mut s, &a, false);
    let text = &s.verdict;
    assert!(
        text.contains("refuses **88.2 %** of GET (6,000 of 6,800 attempts in get alone/get were answered with 429 or 503); 200.0 ± 1.0 op/s get through."),
        "{text}"
    );
    // PUT was seen beside GET alone: that is said.
    assert!(text.contains("of PUT (9,000 of 9,400 attempts were answered with 429 or 503); 100.0 ± 1.0 op/s get through while GET ran at the same time."), "{text}");
}

/// Asked for 50, 30 and 20, and refusals made it 96 % GET: that is said, and the total is called one.
#[test]
fn a_mix_that_was_not_delivered_is_said() {
    let part = |op: &str, ok: f64, refused: f64| {
        let mut w = counted_line("mixed", ok, refused, 30.0, Some(Estimate::symmetric(ok / 30.0, 1.0, 20.0)));
        w.op = op.into();
        w
    };
    let parts = [part("get", 19_000.0, 0.0), part("put", 500.0, 60_000.0), part("delete", 300.0, 40_000.0)];
    let mut total = part("total", 19_800.0, 100_000.0);
    total.mix = [("get", 50.0), ("put", 30.0), ("delete", 20.0)].map(|(k, w)| (k.to_owned(), w)).into();
    let workloads = parts.into_iter().chain([total]).collect();
    let mut s = RunSummary { workloads, ..RunSummary::default() };
    hold(&mut s, &Analysis::default(), false);
    let said = "requested DELETE 20 %, GET 50 %, PUT 30 %; delivered DELETE 2 %, GET 96 %, PUT 3 %";
    assert!(s.verdict.contains(said), "{}", s.verdict);
    let claims = derive(&s, &Analysis::default(), None);
    assert!(claims.iter().any(|c| c.text.contains("of all ops of the mix")), "{claims:#?}");
}

/// A server's limiter of 60 op/s refuses all ops of a mix alike: it is one, and what it lets pass is the total's.
#[test]
fn a_limiter_on_all_ops_of_a_mix_is_one() {
    let part = |op: &str, ok: f64, refused: f64| {
        let mut w = counted_line("mixed", ok, refused, 30.0, Some(Estimate::symmetric(ok / 30.0, 1.0, 20.0)));
        w.op = op.into();
        w
    };
    let parts =
        [part("get", 900.0, 405_000.0), part("put", 540.0, 243_000.0), part("delete", 360.0, 162_000.0)];
    let told = |parts: &[WorkloadSummary], total| {
        let workloads = parts.iter().cloned().chain([total]).collect();
        let mut s = RunSummary { workloads, ..RunSummary::default() };
        hold(&mut s, &Analysis::default(), false);
        s.verdict
    };
    let text = told(&parts, part("total", 1800.0, 810_000.0));
    assert_eq!(text.matches("A rate limiter refuses").count(), 1, "{text}");
    assert!(text.contains("of all ops of the mix (810,000 of 811,800 attempts were answered with 429 or 503); 60.0 ± 1.0 op/s get through."), "{text}");
    // One that refuses a part of the ops is told by those.
    let parts = [part("get", 900.0, 0.0), part("put", 540.0, 243_000.0)];
    let text = told(&parts, part("total", 1440.0, 243_000.0));
    assert!(
        text.contains("of PUT (243,000") && text.matches("A rate limiter refuses").count() == 1,
        "{text}"
    );
}
