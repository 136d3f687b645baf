//! The controller on simulated systems, and on executors that misbehave.

use super::*;
use crate::simulate::events::Events;
use crate::simulate::fluid::Fluid;
use crate::simulate::{Bucket, Charges, Load, System, drive};

fn both(seed: u64) -> Fluid {
    let mut s = Fluid::new(seed, 3000.0, 600e6, 0.002, 30e6);
    s.buckets = vec![Bucket::new(Charges::Ops, 1000.0, 20_000.0), Bucket::new(Charges::Bytes, 200e6, 3e9)];
    s
}

fn measured(f: &Found) -> f64 {
    match f.capacity {
        Capacity::Measured(e) => e.value,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn both_buckets_are_found_and_measured() {
    let o = drive::probe(&mut both(1), Options::default());
    assert!((o.ops.sustained.unwrap().value / 1000.0 - 1.0).abs() < 0.02, "{:?}", o.ops.sustained);
    assert!((o.bytes.sustained.unwrap().value / 200e6 - 1.0).abs() < 0.02);
    assert!((measured(&o.ops) / 20_000.0 - 1.0).abs() < 0.05);
    assert!((measured(&o.bytes) / 3e9 - 1.0).abs() < 0.05);
    assert!((o.ops.burst.unwrap().value / 3000.0 - 1.0).abs() < 0.1);
    assert!(o.ops.refill.is_none_or(|r| (r.value / 1000.0 - 1.0).abs() < 0.1));
    assert!(o.elapsed_s < 900.0);
    assert_eq!(o, drive::probe(&mut both(1), Options::default()));
}

#[test]
fn no_limiter_is_no_bucket() {
    let o = drive::probe(&mut Fluid::new(3, 3000.0, 600e6, 0.002, 30e6), Options::default());
    assert!(!o.ops.is_bucket() && !o.bytes.is_bucket());
    assert!(
        o.ops.open[0].contains("not excluded") && o.ops.not_excluded(1000.0) > 2000.0 * 100.0,
        "{:?} {} {:?}",
        o.ops.sustained,
        o.ops.horizon_s,
        o.ops.open
    );
}

#[test]
fn whole_requests_and_429s() {
    let buckets =
        [Bucket::new(Charges::Ops, 200.0, 4000.0), Bucket::new(Charges::Bytes, 40e6, 800e6).filled(0.5)];
    let mut s = Events::new(4, &buckets, 1);
    (s.ops_cap, s.bytes_cap) = (600.0, 120e6);
    let o = drive::probe(&mut s, Options { concurrency: 64, ..Options::default() });
    assert!((o.ops.sustained.unwrap().value / 200.0 - 1.0).abs() < 0.01);
    assert!((measured(&o.ops) / 4000.0 - 1.0).abs() < 0.03);
    assert!((measured(&o.bytes) / 800e6 - 1.0).abs() < 0.03, "{:?}", o.bytes.capacity);
}

/// A disk with a limit on bytes only: small ops meet it, too, and it is one bucket.
#[test]
fn a_cap_on_bytes_is_found_under_both_loads() {
    let mut s = Fluid::new(5, 50_000.0, 1e9, 0.0002, 5e7);
    s.buckets = vec![Bucket::new(Charges::Bytes, 20e6, 40e6)];
    let o = drive::probe(&mut s, Options { small_bytes: 4096, large_bytes: 512 << 10, ..Options::default() });
    assert_eq!((o.seen_twice(), o.binding()), (Some(Resource::Bytes), "bytes"), "{:?}", o.evidence());
    assert!((o.bytes.sustained.unwrap().value / 20e6 - 1.0).abs() < 0.02, "{:?}", o.bytes.sustained);
    assert!((measured(&o.bytes) / 40e6 - 1.0).abs() < 0.1, "{:?}", o.bytes.capacity);
    assert!(o.ops.drains.len() == 1 && o.findings().iter().all(|f| !f.text.contains("burst of ops")));
}

/// A load that took half a second to make ready left the bucket that much more rest.
#[test]
fn a_load_that_begins_late_is_more_rest() {
    let mut p = Probe::new(Options::default());
    p.state = State::Drained(Draining {
        of: Resource::Ops,
        first: false,
        idle_s: Some(4.0),
        rest_s: 4.0,
        taken_per_s: 9.0,
        limit_s: 60.0,
        start_s: 100.0,
        t: 0.0,
        seen: Plateau::default(),
    });
    p.began(100.5);
    p.began(99.0);
    let State::Drained(d) = &p.state else { panic!("{:?}", p.state) };
    assert_eq!((d.start_s, d.idle_s, d.rest_s, d.taken_per_s), (100.5, Some(4.5), 4.5, 8.0));
}

#[test]
fn an_executor_that_sees_nothing_ends_with_reasons() {
    for seen in [
        None,
        Some(Seen { dt_s: 0.25, ..Seen::default() }),
        Some(Seen { dt_s: 0.25, ops_per_s: vec![0.0; 20], bytes_per_s: vec![0.0; 20], ..Seen::default() }),
    ] {
        let mut p = Probe::new(Options::default());
        let mut now = 0.0;
        let mut last = Observation::default();
        for _ in 0..2000 {
            last = match p.next(&last) {
                Action::Done => break,
                Action::Load { duration_s, .. } => {
                    now += duration_s;
                    Observation { now_s: now, seen: seen.clone() }
                }
                Action::Idle { seconds } => {
                    now += seconds;
                    Observation { now_s: now, seen: None }
                }
                Action::Stop => Observation { now_s: now, seen: None },
            };
        }
        assert_eq!(p.next(&last), Action::Done);
        let o = p.outcome();
        assert!(!o.ops.is_bucket() && !o.ops.open.is_empty(), "{:?}", o.ops);
    }
}

/// Sums of times round: a rest can end an ulp before what was asked for, and was then asked for again for ever.
#[test]
fn a_clock_that_rounds_keeps_no_probe_from_its_end() {
    let options = Options { questions: true, budget_s: 1200.0, ..Options::default() };
    for i in 0..12 {
        let mut s = both(1);
        let mut p = Probe::new(options);
        let mut now = 1.0 / f64::from(2 * i + 3) + 1000.0 * f64::from(i);
        let (mut last, mut rests) = (Observation { now_s: now, seen: None }, 0);
        let actions = (0..2000).find(|_| {
            let seen = match p.next(&last) {
                Action::Done => return true,
                Action::Stop => None,
                Action::Idle { seconds } => {
                    rests += 1;
                    assert!(seconds > 1e-3, "a rest of {seconds} s is none");
                    s.idle(seconds);
                    // Less than was asked for, as a rounded sum is; in the last cases by much, as an interrupted sleep is.
                    now += seconds * if i < 8 { 1.0 - 1e-15 } else { 0.5 };
                    None
                }
                Action::Load { size_bytes, concurrency, duration_s, dt_s, offered_per_s, .. } => {
                    now += duration_s;
                    let size_bytes = size_bytes as f64;
                    Some(s.run(&Load { size_bytes, concurrency, duration_s, dt_s, offered_per_s }))
                }
            };
            last = Observation { now_s: now, seen };
            false
        });
        assert!(actions.is_some(), "case {i}: no end after {rests} rests");
        let tokens = p.outcome().answers.burst.iter().flatten().any(|(l, _)| *l == BurstLaw::Tokens);
        assert!(tokens || i >= 8, "case {i}: {:?}", p.outcome().answers);
    }
}

#[test]
fn the_summary_says_what_was_found_and_what_is_open() {
    let o = drive::probe(&mut both(1), Options::default());
    let s = o.summary("s3", "put");
    assert_eq!((s.binding.as_str(), s.scope.as_str()), ("both", "unknown"));
    let knee = s.knee_bytes.unwrap();
    assert!((knee.value / 200e3 - 1.0).abs() < 0.03 && knee.contains(200e3), "{knee:?}");
    let drains = s.evidence.iter().filter(|(name, _)| name.contains(" drain ")).count();
    assert_eq!(drains, o.ops.drains.len() + o.bytes.drains.len());
    assert!(s.evidence.iter().any(|(name, text)| name == "ops: why a limit" && text.contains("burst")));
    assert!(s.ops_per_s.unwrap().capacity.is_some());
    let none = drive::probe(&mut Fluid::new(3, 3000.0, 600e6, 0.002, 30e6), Options::default());
    assert_eq!(none.summary("s3", "put").binding, "none");
    assert!(none.findings().iter().all(|f| f.text.ends_with('.') && f.name == "open_question"));
}
