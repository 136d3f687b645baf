//! Several searches in one run: each is answered within the budget, or says what would do.

use std::collections::BTreeMap;

use plimsoll_model::plan::ControllerSpec;
use plimsoll_model::{Level, OpKind, Outcome, Plan, Series, SeriesId};

use super::*;

const PLAN: &str = r#"
version = 1
[targets.s]
kind = "sim"
[controller]
kind = "saturation"
[controller.template]
[[controller.template.workload]]
name = "put"
mix = { put = 1 }
[[controller.then]]
[[controller.then.workload]]
name = "get"
mix = { get = 1 }
"#;

/// A storage on its own clock: each op has a cap on its rate, 10 ms of latency, and something to be made ready before it.
struct Storage {
    /// Ops per second, by op.
    caps: BTreeMap<OpKind, f64>,
    /// Seconds before the first step of an op.
    ready_s: BTreeMap<OpKind, f64>,
    /// Seconds of a step beside its load.
    around_s: f64,
    /// Most in flight: the others are refused, and back off.
    most: u32,
    /// Of an op that ended.
    bytes_per_op: u64,
}

impl Storage {
    fn of(put: f64, get: f64) -> Self {
        Self {
            caps: [(OpKind::Put, put), (OpKind::Get, get)].into(),
            ready_s: BTreeMap::new(),
            around_s: 0.2,
            most: u32::MAX,
            bytes_per_op: 4096,
        }
    }

    /// Runs a plan to its end: what was concluded, the clock at the end of the last step, and all that was told.
    fn run(mut self, budget: Option<&str>) -> (Conclusion, f64, Vec<String>, Vec<Stage>) {
        let mut plan = Plan::from_toml(PLAN).unwrap();
        if let Some(ControllerSpec::Saturation { budget: b, .. }) = &mut plan.controller {
            *b = budget.map(|b| b.parse().unwrap());
        }
        let mut c = crate::of_plan(&plan).unwrap();
        let (mut seen, mut now_s, mut told) = (Vec::new(), 0.0, Vec::new());
        while let ControlStep::Run(stage) = c.next(&seen) {
            while let Some(r) = c.remark() {
                told.push(r.text);
            }
            seen.push(self.observe(&stage, &mut now_s));
        }
        // Whoever looks at the same again, as the analysis of stored data does, concludes the same.
        assert_eq!(c.next(&seen), ControlStep::Done);
        (c.conclude().unwrap(), now_s, told, seen.into_iter().map(|o| o.stage).collect())
    }

    fn observe(&mut self, stage: &Stage, now_s: &mut f64) -> Observation {
        let w = &stage.workloads[0];
        let kind = *w.mix.keys().next().unwrap();
        let let_in = w.concurrency.min(self.most);
        let held_back = 1.0 - f64::from(let_in) / f64::from(w.concurrency);
        // Where others wait for their turn, none of those is idle between two ops.
        let per_s = (f64::from(let_in) / 0.01 * (1.0 + 0.1 * held_back)).min(self.caps[&kind]);
        let window_s = w.stop.duration.unwrap().0.as_secs_f64();
        let ramp_s = stage.warmup.0.as_secs_f64();
        let mut s = Series::new(SeriesId { stage: 0, workload: 0, kind }, Default::default());
        s.counts.outcomes[Outcome::Ok.index()] = (per_s * window_s) as u64;
        s.counts.bytes_ok = s.counts.outcomes[Outcome::Ok.index()] * self.bytes_per_op;
        s.counts.outcomes[Outcome::Http503SlowDown.index()] = (held_back * 10.0) as u64;
        s.response.record((f64::from(w.concurrency) / per_s * 1e9) as u64);
        let start_s = *now_s + self.ready_s.remove(&kind).unwrap_or(0.0) + self.around_s;
        *now_s = start_s + ramp_s + window_s;
        Observation {
            stage: stage.clone(),
            window_s,
            series: vec![s],
            start_s,
            end_s: *now_s,
            window_start_s: start_s + ramp_s,
            slice_s: 0.1,
            slices: Vec::new(),
            busy_fraction: 0.1,
            held_back,
            machines: 1,
        }
    }
}

fn best(found: &Saturation) -> Option<u32> {
    found.c95.map(|c| c.value as u32)
}

fn names(c: &Conclusion) -> Vec<&str> {
    c.findings.iter().map(|f| f.name.as_str()).collect()
}

#[test]
fn each_op_is_answered_within_the_budget_of_all() {
    for (budget, budget_s) in
        [(None, f64::INFINITY), (Some("1m"), 60.0), (Some("2m"), 120.0), (Some("10m"), 600.0)]
    {
        let (c, end_s, told, stages) = Storage::of(1_500.0, 12_000.0).run(budget);
        let [put, get] = &c.saturations[..] else { panic!("{c:?}") };
        assert_eq!((put.op_class.as_str(), get.op_class.as_str()), ("put", "get"));
        assert_eq!((best(put), best(get)), (Some(16), Some(128)), "{budget:?}: {c:?}");
        for (found, cap) in [(put, 1_500.0), (get, 12_000.0)] {
            assert_eq!(found.verdict, "saturated", "{budget:?}");
            assert!((found.plateau_per_s.unwrap().value / cap - 1.0).abs() < 0.01, "{budget:?}: {found:?}");
        }
        assert_eq!(names(&c), ["best_concurrency", "best_concurrency"]);
        let on: Vec<_> = c.findings.iter().map(|f| f.workload.as_deref()).collect();
        assert_eq!(on, [Some("put"), Some("get")]);
        assert!(end_s <= budget_s, "{budget:?} took {end_s} s");
        // One search is over before the next begins, and each knows its own stages.
        let of: Vec<usize> = stages.iter().map(|s| search_of(s).unwrap()).collect();
        assert!(of.is_sorted() && of.contains(&0) && of.contains(&1), "{of:?}");
        assert!(stages.iter().all(|s| {
            rung_of(s).is_none_or(|(i, c)| (i, c) == (search_of(s).unwrap(), s.workloads[0].concurrency))
        }));
        let first = stages[0].workloads[0].name.as_str();
        assert_eq!((first, stages[0].name.as_deref()), ("put/c4", Some("put, 4 in flight")));
        assert!(
            told[0].starts_with("put: step 1 of about 1") && told[0].ends_with("; get comes after"),
            "{told:?}"
        );
        let last = told.last().unwrap();
        assert!(last.starts_with("get: step") && !last.contains("after"), "{last}");
    }
}

/// Eight at once, 503 for the others, which back off: 32 in flight were recommended, as nothing is left idle with so many.
#[test]
fn what_is_refused_beyond_a_limit_is_never_recommended() {
    let mut storage = Storage::of(1e6, 1e6);
    storage.most = 8;
    let (c, ..) = storage.run(None);
    for found in &c.saturations {
        assert_eq!(best(found), Some(8), "{found:?}");
        assert_eq!(found.verdict, "a limiter refused attempts from 16 in flight on");
    }
    assert_eq!(names(&c), ["refused", "refused"]);
    let text = &c.findings[0].text;
    assert!(text.contains("from 16 in flight on") && text.contains("8 in flight is the best"), "{text}");
}

/// What has to be made ready takes its time, and is no part of the searches: the whole stays within the budget.
#[test]
fn what_is_made_ready_counts_towards_the_budget() {
    let mut storage = Storage::of(1_500.0, 12_000.0);
    storage.ready_s = [(OpKind::Put, 5.0), (OpKind::Get, 20.0)].into();
    let (c, end_s, ..) = storage.run(Some("2m"));
    assert_eq!(c.saturations.iter().map(best).collect::<Vec<_>>(), [Some(16), Some(128)], "{c:?}");
    assert!(end_s <= 120.0, "{end_s}");
}

/// An op for which nothing is left is undetermined, and the other one is answered; with the budget that is named both are.
#[test]
fn a_budget_that_is_too_short_says_what_would_do() {
    let slow = || {
        let mut s = Storage::of(1_500.0, 12_000.0);
        s.ready_s = [(OpKind::Get, 40.0)].into();
        s
    };
    let (c, end_s, ..) = slow().run(Some("1m"));
    let [put, get] = &c.saturations[..] else { panic!("{c:?}") };
    assert_eq!((best(put), put.budget_needed_s), (Some(16), None), "{c:?}");
    assert_eq!((best(get), get.plateau_per_s), (None, None), "{c:?}");
    // What was made ready could not be foreseen, and one step after it is made: not another one.
    assert!(end_s < 80.0, "{end_s}");
    let f = c.findings.iter().find(|f| f.name == Saturation::BUDGET_TOO_SHORT).unwrap();
    assert!(f.level == Level::Qualified && f.workload.as_deref() == Some("get"), "{f:?}");
    let needed_s = get.budget_needed_s.unwrap();
    assert!((60.0..300.0).contains(&needed_s), "{needed_s}");
    assert!(f.text.contains(&Saturation::would_do(needed_s)), "{f:?}");
    let (c, end_s, ..) = slow().run(Some(&format!("{needed_s}s")));
    assert_eq!(
        c.saturations.iter().map(best).collect::<Vec<_>>(),
        [Some(16), Some(128)],
        "{needed_s}: {c:?}"
    );
    assert!(end_s <= needed_s, "{end_s} of {needed_s}");
}

#[test]
fn with_no_time_at_all_nothing_is_begun_beyond_the_first() {
    let (c, end_s, _, stages) = Storage::of(1_500.0, 12_000.0).run(Some("10s"));
    assert!(end_s <= 10.0 && stages.iter().all(|s| search_of(s).is_some()), "{end_s}");
    assert!(c.saturations.iter().all(|s| best(s).is_none() && s.budget_needed_s.is_some()), "{c:?}");
    let (c, end_s, _, stages) = Storage::of(1_500.0, 12_000.0).run(Some("4s"));
    assert!(stages.is_empty() && end_s == 0.0, "{stages:?}");
    assert!(c.saturations.iter().all(|s| s.verdict == "the budget ended before this search began"), "{c:?}");
}

/// One search alone has the cells that it always had: runs of older versions are read with the same numbers.
#[test]
fn the_cells_of_one_search_are_what_they_were() {
    let plan = PLAN.split("[[controller.then]]").next().unwrap();
    let mut c = crate::of_plan(&Plan::from_toml(plan).unwrap()).unwrap();
    let ControlStep::Run(stage) = c.next(&[]) else { panic!("no step") };
    assert_eq!(stage.cell.as_ref().map(|c| (c.index, c.repeat)), Some((4, 0)));
    assert_eq!((stage.workloads[0].name.as_str(), stage.name.as_deref()), ("c4", Some("4 in flight")));
    let told = c.remark().unwrap().text;
    assert!(told.starts_with("step 1 of about 16, about "), "{told}");
    let at = |index| Stage {
        cell: Some(plimsoll_model::plan::Cell { index, repeat: 0 }),
        ..stage.as_ref().clone()
    };
    assert_eq!((rung_of(&at(64)), load_point_of(&at(64))), (Some((0, 64)), None));
    assert_eq!((rung_of(&at(0)), rung_of(&at(1 << 24))), (None, None));
    assert_eq!((rung_of(&at((1 << 25) + 2)), load_point_of(&at((1 << 25) + 2))), (None, Some((0, 2))));
    assert_eq!(rung_of(&at((3 << 26) + 8)), Some((3, 8)));
    assert_eq!(load_point_of(&at((1 << 26) + (1 << 25) + 1)), Some((1, 1)));
}

/// 414 objects were written for one step of a search that had a minute: it took 46 s, and the run 73 s.
#[test]
fn what_is_read_is_written_in_a_fifth_of_the_time() {
    let read = |stages: &[Stage]| {
        let get = stages.iter().find(|s| s.workloads[0].mix.contains_key(&OpKind::Get)).unwrap();
        get.workloads[0].object.as_ref().map_or(1000, |o| o.objects)
    };
    let storage = |bytes_per_s: u64| Storage { bytes_per_op: bytes_per_s / 100, ..Storage::of(100.0, 100.0) };
    let (_, _, told, stages) = storage(50_000_000).run(Some("1m"));
    // Of half a minute at the most a fifth, of objects of 4 KiB, and never fewer than let readers differ.
    assert_eq!(read(&stages), 1000, "4 KiB each: all of them are soon written");
    assert!(told.iter().all(|t| !t.contains("in place of")), "{told:?}");
    let (_, _, told, stages) = storage(100_000).run(Some("1m"));
    assert!((100..200).contains(&read(&stages)), "{}", read(&stages));
    assert!(told.iter().any(|t| t.starts_with("get uses 1") && t.contains("in place of 1000")), "{told:?}");
    assert_eq!(read(&storage(1_000).run(Some("1m")).3), 16);
    assert_eq!(read(&storage(1_000).run(None).3), 1000, "without a budget nothing is kept");
}
