//! What is asked beside the limit is asked, or it is said that it was not; and a busy machine does not change an answer.

use plimsoll_model::interval::SeriesShape;
use plimsoll_model::{Plan, Series, SeriesId};

use super::*;
use crate::controller::Slice;
use crate::limits::asked::PROBES_SHARE;

fn shape(mix: &str, kind: &str) -> Shape {
    let text = format!(
        "version = 1\n[targets.s]\nkind = \"{kind}\"\n[[stage]]\n[[stage.workload]]\nname = \"w\"\nmix = {mix}\nsize = \"4KiB\"\n"
    );
    let plan = Plan::from_toml(&text).unwrap();
    let stage = plan.stages[0].clone();
    Shape::of(&plan, stage).unwrap()
}

/// As the collector hands it on: each workload at its rate, held.
fn observe(stage: &Stage, start_s: f64, per_s: &[f64]) -> Observation {
    let warmup_s = stage.warmup.0.as_secs_f64();
    let window_s = stage.workloads[0].stop.duration.unwrap().0.as_secs_f64();
    let series = |(i, rate): (usize, &f64)| {
        let kind = *stage.workloads[i].mix.keys().next().unwrap();
        let mut s = Series::new(SeriesId { stage: 0, workload: i as u16, kind }, SeriesShape::default());
        s.counts.outcomes[0] = (rate * window_s).round() as u64;
        s
    };
    let all: f64 = per_s.iter().sum();
    let slices = ((warmup_s + window_s) / 0.1).round() as usize;
    let up_to = |i: usize| (all * 0.1 * i as f64).round() as u64;
    Observation {
        stage: stage.clone(),
        window_s,
        series: per_s.iter().enumerate().map(series).collect(),
        start_s,
        end_s: start_s + warmup_s + window_s + 0.05,
        window_start_s: start_s + warmup_s,
        slice_s: 0.1,
        slices: (0..slices).map(|i| Slice { ok: up_to(i + 1) - up_to(i), ..Slice::default() }).collect(),
        busy_fraction: 0.1,
        held_back: 0.0,
        machines: 1,
    }
}

/// All that is asked after a probe that ended at `now_s`, on a machine that takes `between_s` between two stages.
fn ask(
    b: &mut Beside,
    shape: &Shape,
    mut now_s: f64,
    between_s: f64,
    rates: &mut dyn FnMut(&Stage) -> Vec<f64>,
) -> Vec<Stage> {
    let mut seen: Vec<Observation> = Vec::new();
    while let Some(stage) = b.next(shape, &seen, now_s) {
        seen.push(observe(&stage, now_s + between_s, &rates(&stage)));
        now_s = seen.last().unwrap().end_s;
        assert!(seen.len() < 40);
    }
    seen.into_iter().map(|o| o.stage).collect()
}

fn limit() -> LimitSummary {
    LimitSummary {
        target: "s".into(),
        op_class: "get".into(),
        scope: "unknown".into(),
        ops_per_s: None,
        bytes_per_s: None,
        knee_bytes: None,
        binding: "none".into(),
        refused: None,
        evidence: vec![],
    }
}

#[test]
fn what_the_budget_does_not_hold_is_named_and_the_budget_that_would_do() {
    let shape = shape("{ get = 1 }", "sim");
    use Dimension::{Bucket, Connection, Key, Prefix};
    let targets = [("bucket".into(), "b".into()), ("key".into(), "k".into())].into();
    let asked = Asked { shared: true, scope: vec![Connection, Prefix, Bucket, Key], scope_targets: targets };
    let run = |budget_s: f64, between_s: f64| {
        let mut b = Beside::new(&shape, asked.clone(), budget_s).unwrap();
        b.list = Some(b.wanted(Resource::Ops));
        let all = b.list.as_ref().unwrap().len();
        // The probe takes what it may.
        let probed_s = (budget_s - b.expected_s()).max(PROBES_SHARE * budget_s);
        let stages = ask(&mut b, &shape, probed_s, between_s, &mut |s| vec![40.0; s.workloads.len()]);
        let (mut limit, mut findings) = (limit(), Vec::new());
        b.conclude(&mut limit, &mut findings);
        let cut = findings.into_iter().find(|f| f.name == "limit_not_asked");
        assert_eq!(cut.is_none(), stages.len() == all, "{cut:?}");
        (limit, cut)
    };
    // A machine on which a stage takes twice as long to make ready as on the one that the numbers are from, too.
    for between_s in [0.2, 1.0, 1.7] {
        let (limit, cut) = run(60.0, between_s);
        let cut = cut.expect("too little for all");
        assert!(
            cut.text.contains("whether the limit is per key") && !cut.text.contains("whether put shares"),
            "{}",
            cut.text
        );
        let asked = |l: &LimitSummary, what: &str| l.evidence.iter().any(|(name, _)| name == what);
        assert!(asked(&limit, "shared with put") && !asked(&limit, "scope: key"), "{:?}", limit.evidence);
        let (limit, cut) = run(cut.threshold.unwrap(), between_s);
        assert!(cut.is_none(), "{cut:?}");
        assert!(["put", "stat", "list", "delete"].iter().all(|k| asked(&limit, &format!("shared with {k}"))));
        assert!(
            ["connection", "prefix", "bucket", "key"].iter().all(|d| asked(&limit, &format!("scope: {d}")))
        );
    }
}

/// Reads and writes; `together`: how much of its own rate each keeps, look by look.
fn kinds(
    alone: [f64; 2],
    kept: &[[f64; 2]],
    budget_s: f64,
) -> (Vec<LimitSummary>, LimitSummary, Finding, usize) {
    let shape = shape("{ read = 1, write = 1 }", "null");
    let mut b = Beside::new(&shape, Asked::default(), budget_s).unwrap();
    b.list = Some(b.wanted(Resource::Ops));
    let mut looks = kept.iter();
    let stages = ask(&mut b, &shape, 60.0, 0.3, &mut |s| match s.workloads.len() {
        2 => {
            let kept = looks.next().expect("no more looks than there are");
            vec![alone[0] * kept[0], alone[1] * kept[1]]
        }
        _ if s.workloads[0].mix.contains_key(&OpKind::Read) => vec![alone[0]],
        _ => vec![alone[1]],
    });
    let (mut total, mut findings) = (limit(), Vec::new());
    let limits = b.by_kind(&mut total, &mut findings);
    (limits, total, findings.remove(0), stages.len())
}

#[test]
fn kinds_are_looked_at_again_until_it_is_clear() {
    // A machine that stands still in the first look: the second one tells.
    let (limits, total, _, n) = kinds([310.0, 130.0], &[[0.8, 0.97], [0.99, 1.0]], 300.0);
    assert_eq!((limits.len(), n), (2, 6));
    assert_eq!(
        total.binding, "undetermined",
        "where its kinds have limits, none is not what was found of the total"
    );
    // Clear at once: once.
    assert_eq!(kinds([310.0, 130.0], &[[1.0, 0.99]], 300.0).3, 3);
    // One limit of both stays one, in however many looks.
    let (limits, _, said, n) = kinds([500.0, 500.0], &[[0.42, 0.43], [0.5, 0.5]], 300.0);
    assert!(limits.is_empty() && n == 6 && said.text.contains("share one limit"), "{}", said.text);
    let (limits, _, said, _) = kinds([500.0, 500.0], &[[0.42, 0.43], [0.3, 0.55], [0.45, 0.45]], 300.0);
    assert!(limits.is_empty() && said.text.contains("undetermined"), "{}", said.text);
}

#[test]
fn where_a_kind_is_limited_there_is_a_limiter() {
    let (limits, total, said, n) = kinds([310.0, 130.0], &[[0.8, 0.97]], 100.0);
    assert!(limits.is_empty() && n == 3, "there was time for one look");
    assert!(said.text.contains("undetermined"), "{}", said.text);
    assert_eq!(total.binding, "undetermined");
}

/// As many in flight from half of the machines, then from twice as many: what a limit per client gives doubles, what all share stays.
#[test]
fn clients_are_doubled_without_anything_else() {
    use plimsoll_model::plan::MachinesPart::{BothHalves, Half};
    let shape = shape("{ get = 1 }", "sim");
    let scope = vec![Dimension::Connection, Dimension::Client];
    let probe = |per_client: bool| {
        let asked = Asked { scope: scope.clone(), ..Asked::default() };
        let mut b = Beside::new(&shape, asked, 600.0).unwrap();
        b.list = Some(b.wanted(Resource::Ops));
        let mut parts = Vec::new();
        ask(&mut b, &shape, 100.0, 0.3, &mut |s| {
            let w = &s.workloads[0];
            parts.push((w.machines, w.concurrency));
            vec![if per_client && w.machines == Some(Half) { 50.0 } else { 100.0 }]
        });
        let (mut limit, mut findings) = (limit(), Vec::new());
        b.conclude(&mut limit, &mut findings);
        (parts, limit, findings.into_iter().find(|f| f.name == "limit_scope").unwrap().text)
    };
    let (parts, limit, said) = probe(true);
    let n = shape.concurrency;
    assert_eq!(parts, [(None, n), (None, 2 * n), (Some(Half), n), (Some(BothHalves), n), (None, n)]);
    assert_eq!(limit.scope, "client", "{said}");
    let (_, limit, said) = probe(false);
    assert!(limit.scope == "unknown" && said.contains("not per connection, nor per client"), "{said}");
}

/// To a server, agents on one machine may be one client: that is not tried, and what it takes is said.
#[test]
fn one_machine_is_one_client() {
    let shape = shape("{ get = 1 }", "sim");
    let asked = Asked { scope: vec![Dimension::Client], ..Asked::default() };
    let mut b = Beside::new(&shape, asked, 600.0).unwrap();
    let outcome = plimsoll_stats::probe::Probe::new(Default::default()).outcome();
    b.begin(&shape, &outcome, 1);
    assert!(b.asked.scope.is_empty());
}
